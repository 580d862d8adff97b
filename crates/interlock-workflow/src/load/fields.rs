//! Reading members of the tree: every wrong type, unknown key and broken limit is told of, and reading goes on.

use core::ops::Range;

use interlock_core::is_visible;

use super::node::{Member, Node, NodeValue};
use super::problem::{Path, Problems, quoted};
use crate::suggest::Suggester;

/// The most characters of a name: of a workflow, a state, an event, a guard, a variable.
pub const NAME_CHARS_MAX: usize = 128;

/// Fields that mean something elsewhere and nothing here so far, and what is said of one.
const NOT_YET: &[(&str, &str)] =
    &[("interrupts", "interrupts are not supported yet"), ("fork", "forks are not supported yet")];

/// Whatever reading needs besides the tree.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) problems: Problems,
    pub(super) suggester: Suggester,
}

/// An object that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'n> {
    pub(super) members: &'n [Member],
    pub(super) span: &'n Range<usize>,
}

impl<'n> Fields<'n> {
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.member(key).map(|member| &member.value)
    }

    pub(super) fn member(&self, key: &str) -> Option<&'n Member> {
        let found = self.members.binary_search_by(|member| member.key.as_str().cmp(key)).ok()?;
        self.members.get(found)
    }
}

impl Reader {
    pub(super) fn error(&mut self, span: &Range<usize>, path: &Path<'_>, message: impl Into<String>) {
        self.problems.errors.add(span, path, message);
    }

    pub(super) fn error_with_help(
        &mut self,
        span: &Range<usize>,
        path: &Path<'_>,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.problems.errors.add_with_help(span, path, message, help);
    }

    pub(super) fn warn(
        &mut self,
        span: &Range<usize>,
        path: &Path<'_>,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.problems.warnings.add_with_help(span, path, message, help);
    }

    /// `expected`, but the node is something else.
    pub(super) fn wrong_type(&mut self, node: &Node, path: &Path<'_>, expected: &str) {
        if !node.is_refused() {
            self.error(&node.span, path, format!("expected {expected}, found {}", node.kind()));
        }
    }

    pub(super) fn object<'n>(&mut self, node: &'n Node, path: &Path<'_>) -> Option<Fields<'n>> {
        if let NodeValue::Object(members) = &node.value {
            return Some(Fields { members, span: &node.span });
        }
        self.wrong_type(node, path, "an object");
        None
    }

    /// Tells of every member whose key is not among these.
    pub(super) fn known(&mut self, fields: Fields<'_>, path: &Path<'_>, known: &[&str]) {
        for member in fields.members {
            if let Some((_, message)) = NOT_YET.iter().find(|(key, _)| *key == member.key) {
                self.error(&member.key_span, &path.key(&member.key), *message);
            } else if !known.contains(&member.key.as_str()) {
                let help = match self.suggester.help(&member.key, known.iter().copied()) {
                    Some(help) => help,
                    None => format!("known here: {}", known.join(", ")),
                };
                let message = format!("unknown field {}", quoted(&member.key));
                self.error_with_help(&member.key_span, &path.key(&member.key), message, help);
            }
        }
    }

    pub(super) fn list<'n>(&mut self, node: &'n Node, path: &Path<'_>, max: usize) -> Option<&'n [Node]> {
        if let NodeValue::Array(items) = &node.value {
            if items.len() > max {
                self.error(&node.span, path, format!("more than {max} items"));
            }
            return Some(items);
        }
        self.wrong_type(node, path, "a list");
        None
    }

    pub(super) fn string<'n>(&mut self, node: &'n Node, path: &Path<'_>) -> Option<&'n str> {
        if let NodeValue::String(text) = &node.value {
            return Some(text);
        }
        self.wrong_type(node, path, "a string");
        None
    }

    pub(super) fn boolean(&mut self, node: &Node, path: &Path<'_>) -> Option<bool> {
        if let NodeValue::Bool(boolean) = &node.value {
            return Some(*boolean);
        }
        self.wrong_type(node, path, "true or false");
        None
    }

    /// A text for people: not blank, not longer than allowed.
    pub(super) fn prose(&mut self, node: &Node, path: &Path<'_>, bytes_max: usize) {
        let Some(text) = self.string(node, path) else { return };
        if text.chars().all(|c| c.is_whitespace() || !is_visible(c)) {
            self.error_with_help(&node.span, path, "this text is blank", "leave the field out".to_owned());
        } else if text.len() > bytes_max {
            self.error(&node.span, path, format!("longer than {bytes_max} bytes"));
        }
    }

    /// A command line: one line, not blank, nothing invisible in it.
    pub(super) fn line(&mut self, node: &Node, path: &Path<'_>, bytes_max: usize) {
        let Some(text) = self.string(node, path) else { return };
        if text.trim().is_empty() {
            self.error(&node.span, path, "this text is blank");
        } else if text.contains(['\n', '\r']) {
            self.error(&node.span, path, "this text must be a single line");
        } else if !text.chars().all(is_visible) {
            self.error(&node.span, path, "this text has characters that cannot be seen");
        } else if text.len() > bytes_max {
            self.error(&node.span, path, format!("longer than {bytes_max} bytes"));
        }
    }

    /// A whole number from 1; `absent` says what to do for no such number.
    pub(super) fn count(&mut self, node: &Node, path: &Path<'_>, max: u32, absent: &str) {
        let NodeValue::Number(number) = &node.value else {
            return self.wrong_type(node, path, &format!("a whole number from 1 to {max}"));
        };
        let value = number.as_number().and_then(|number| number.to_i128());
        if !value.is_some_and(|value| (1..=i128::from(max)).contains(&value)) {
            let message = format!("expected a whole number from 1 to {max}");
            let help = (value == Some(0)).then(|| absent.to_owned());
            self.error_with_help(&node.span, path, message, help);
        }
    }

    /// Tells why a text can be no name.
    pub(super) fn name(&mut self, name: &str, what: &str, span: &Range<usize>, path: &Path<'_>) {
        let wrong = if name.trim().is_empty() {
            "is blank"
        } else if name.chars().count() > NAME_CHARS_MAX {
            "is longer than 128 characters"
        } else if name.trim() != name {
            "begins or ends with a space"
        } else if !name.chars().all(is_visible) {
            "has characters that cannot be seen"
        } else {
            return;
        };
        self.error(span, path, format!("the name of {what} {wrong}"));
    }
}
