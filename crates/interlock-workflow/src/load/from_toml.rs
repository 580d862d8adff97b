//! TOML into the tree. Dates are refused: no field takes one, and JSON has none.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{Member, Node, NodeValue};
use super::problem::{Path, ProblemList};
use super::{Limits, READ_DEPTH_MAX};

/// The tree of a TOML text; `None` if there is none to speak of.
pub(super) fn read(text: &str, limits: &Limits, errors: &mut ProblemList) -> Option<Node> {
    let (table, refusals) = DeTable::parse_recoverable(text);
    for refusal in &refusals {
        let span = refusal.span().unwrap_or(0..0);
        // The message of the parser can hold lines of the text; its first line does not.
        let message = refusal.message().lines().next().unwrap_or("something is not understood");
        errors.add(&span, &Path::Root, format!("this is not TOML: {}", interlock_core::visible(message)));
    }
    if !refusals.is_empty() {
        return None;
    }
    let mut convert = Convert { limits, errors, values_left: limits.values, depth_told: false };
    let span = table.span();
    convert.values_left = convert.values_left.saturating_sub(1);
    Some(convert.table(table.get_ref(), span, &Path::Root, 0))
}

struct Convert<'c> {
    limits: &'c Limits,
    errors: &'c mut ProblemList,
    values_left: usize,
    depth_told: bool,
}

impl Convert<'_> {
    fn node(&mut self, value: &Spanned<DeValue<'_>>, path: &Path<'_>, depth: usize) -> Node {
        let span = value.span();
        if depth >= self.limits.depth.min(READ_DEPTH_MAX) {
            if !self.depth_told {
                self.depth_told = true;
                self.errors.add(&span, path, format!("nested more than {} deep", self.limits.depth));
            }
            return Node::refused(span);
        }
        let Some(left) = self.values_left.checked_sub(1) else {
            self.errors.add(&(0..0), &Path::Root, format!("the text has more than {} values", self.limits.values));
            return Node::refused(span);
        };
        self.values_left = left;
        let deeper = depth.saturating_add(1);
        match value.get_ref() {
            DeValue::String(text) => Node::string(text, span),
            DeValue::Boolean(boolean) => Node { value: NodeValue::Bool(*boolean), span },
            DeValue::Integer(integer) if integer.radix() == 10 => self.number(integer.as_str(), span, path),
            DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(number) => self.number(&number.to_string(), span, path),
                Err(_) => self.number("", span, path),
            },
            DeValue::Float(float) => self.number(float.as_str(), span, path),
            DeValue::Datetime(_) => {
                let help = "write it as a string, in quotes".to_owned();
                self.errors.add_with_help(&span, path, "dates are not supported", help);
                Node::refused(span)
            }
            DeValue::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(position, item)| self.node(item, &path.item(position), deeper)).collect();
                Node { value: NodeValue::Array(items), span }
            }
            DeValue::Table(table) => self.table(table, span, path, depth),
        }
    }

    fn table(&mut self, table: &DeTable<'_>, span: Range<usize>, path: &Path<'_>, depth: usize) -> Node {
        let deeper = depth.saturating_add(1);
        let members = table
            .iter()
            .map(|(key, value)| Member {
                key: key.get_ref().to_string(),
                key_span: key.span(),
                value: self.node(value, &path.key(key.get_ref()), deeper),
            })
            .collect();
        Node::object(members, span, path, self.errors)
    }

    /// A number through the one parser of numbers, so that it has the limits and the canonical form of all others.
    fn number(&mut self, literal: &str, span: Range<usize>, path: &Path<'_>) -> Node {
        let literal = literal.strip_prefix('+').unwrap_or(literal);
        Node::number(literal, span.clone(), self.limits).unwrap_or_else(|| {
            let help = "whole numbers and decimals are; `inf` and `nan` are not".to_owned();
            self.errors.add_with_help(&span, path, "this number is not supported", help);
            Node::refused(span)
        })
    }
}
