//! Guards: conditions on the context, and on what was observed.

use core::ops::Range;

use interlock_core::workflow::{OBSERVED, OBSERVED_ROOTS, Operator, Source};

use super::fields::{Fields, Reader};
use super::node::{Node, NodeValue};
use super::problem::{Path, quoted};

/// The most guards, named ones and ones written in place together.
pub const GUARDS_MAX: usize = 20_000;
/// The most keys in a guard's field.
pub const FIELD_PARTS_MAX: usize = 16;

/// The guards of a workflow while it is read. A guard is known by its number: named ones come first.
#[derive(Debug)]
pub(super) struct GuardTable<'n> {
    count: usize,
    /// Of the named ones, in order: name, place, whether some edge uses it.
    named: Vec<(&'n str, Range<usize>, bool)>,
    facts: Vec<&'n str>,
}

impl<'n> GuardTable<'n> {
    pub(super) fn read(top: Fields<'n>, facts: Vec<&'n str>, reader: &mut Reader) -> GuardTable<'n> {
        let mut table = GuardTable { count: 0, named: Vec::new(), facts };
        let path = &Path::Root.key("guards");
        let Some(fields) = top.get("guards").and_then(|node| reader.object(node, path)) else { return table };
        for member in fields.members {
            let path = &path.key(&member.key);
            reader.name(&member.key, "a guard", &member.key_span, path);
            table.guard(&member.value, path, reader);
            table.named.push((&member.key, member.key_span.clone(), false));
        }
        table.count = table.named.len();
        if table.count > GUARDS_MAX {
            reader.error(fields.span, path, format!("more than {GUARDS_MAX} guards"));
        }
        table
    }

    /// The guard an edge names, or the one that is written in its place.
    pub(super) fn of_edge(&mut self, node: &Node, path: &Path<'_>, reader: &mut Reader) -> Option<usize> {
        if matches!(node.value, NodeValue::Object(_)) {
            self.guard(node, path, reader)?;
            if self.count >= GUARDS_MAX {
                reader.error(&node.span, path, format!("more than {GUARDS_MAX} guards"));
                return None;
            }
            self.count = self.count.saturating_add(1);
            return Some(self.count.saturating_sub(1));
        }
        let NodeValue::String(name) = &node.value else {
            reader.wrong_type(node, path, "the name of a guard, or a guard");
            return None;
        };
        if let Ok(found) = self.named.binary_search_by(|(other, _, _)| (*other).cmp(name)) {
            if let Some((_, _, used)) = self.named.get_mut(found) {
                *used = true;
            }
            return Some(found);
        }
        let near = reader.suggester.nearest(name, self.named.iter().map(|(name, _, _)| *name));
        if let Some((_, _, used)) = self.named.iter_mut().find(|(name, _, _)| Some(*name) == near) {
            // It was meant, most likely, so it is not called unused on top.
            *used = true;
        }
        let help = match near {
            Some(near) => crate::suggest::did_you_mean(near),
            None if self.named.is_empty() => "the workflow has no `guards`".to_owned(),
            None => format!("define it under `guards`: {{ {}: … }}", quoted(name)),
        };
        reader.error_with_help(&node.span, path, format!("there is no guard {}", quoted(name)), help);
        None
    }

    pub(super) fn warn_of_unused(&self, reader: &mut Reader) {
        let guards = Path::Root.key("guards");
        for (name, span, _) in self.named.iter().filter(|(_, _, used)| !used) {
            let message = format!("no transition uses the guard {}", quoted(name));
            reader.warn(span, &guards.key(name), message, None);
        }
    }

    /// `None` where the guard says too little to be one.
    fn guard(&self, node: &Node, path: &Path<'_>, reader: &mut Reader) -> Option<()> {
        let fields = reader.object(node, path)?;
        reader.known(fields, path, &["field", "op", "source", "value"]);
        let source = source(fields, path, reader);
        let field = self.field(fields, source, path, reader);
        let op = operator(fields, path, reader);
        if let Some(op) = op {
            value(fields, op, path, reader);
        }
        field.zip(op).map(drop)
    }

    fn field(&self, fields: Fields<'_>, source: Option<Source>, path: &Path<'_>, reader: &mut Reader) -> Option<()> {
        let Some(node) = fields.get("field") else {
            let help = "say which value of the context is compared: `field`".to_owned();
            reader.error_with_help(&start_of(fields), path, "`field` is missing", help);
            return None;
        };
        let path = &path.key("field");
        let text = reader.string(node, path)?;
        let parts: Vec<&str> = text.split('.').collect();
        if text.trim().is_empty() {
            reader.error(&node.span, path, "the field is blank");
            return None;
        }
        if parts.iter().any(|part| part.trim().is_empty()) {
            let help = "keys are separated by single dots: `review.approved`".to_owned();
            reader.error_with_help(&node.span, path, "a part of the field is empty", help);
            return None;
        }
        if parts.len() > FIELD_PARTS_MAX {
            reader.error(&node.span, path, format!("the field has more than {FIELD_PARTS_MAX} parts"));
        }
        let observed = parts.first() == Some(&OBSERVED);
        match source {
            Some(Source::Observed) if !observed => {
                let help = format!("what is observed stands under `observed`: {}", self.observable());
                reader.error_with_help(&node.span, path, "an observed field begins with `observed.`", help);
            }
            Some(Source::Context) if observed => {
                let help = "leave `source` out, or say `observed`".to_owned();
                reader.error_with_help(&node.span, path, "`observed` is no part of what agents write", help);
            }
            _ if observed => self.observed(node, &parts, path, reader),
            _ => {}
        }
        Some(())
    }

    /// Tells of a field under `observed` at which nothing will ever stand.
    fn observed(&self, node: &Node, parts: &[&str], path: &Path<'_>, reader: &mut Reader) {
        let (message, help) = match parts.get(1..).unwrap_or_default() {
            ["last_command"] | ["last_command", "exit_code" | "command_digest"] => return,
            ["tools"] | ["tools", _] | ["tools", _, "ok" | "count"] => return,
            ["files_changed"] => return,
            [fact] if self.is_fact(fact) => return,
            [] => ("expected something that is observed".to_owned(), Some(format!("known: {}", self.observable()))),
            ["last_command", other, ..] => {
                let near = reader.suggester.help(other, ["exit_code", "command_digest"]);
                let help = near.or_else(|| Some("known: `exit_code`, `command_digest`".to_owned()));
                ("no such part of `last_command`".to_owned(), help)
            }
            ["tools", _, other, ..] => {
                let near = reader.suggester.help(other, ["ok", "count"]);
                ("no such part of a tool".to_owned(), near.or_else(|| Some("known: `ok`, `count`".to_owned())))
            }
            ["files_changed", ..] => ("`files_changed` is a list of paths and has no parts".to_owned(), None),
            [fact, ..] if self.is_fact(fact) => {
                ("a fact is the exit code of its command and has no parts".to_owned(), None)
            }
            [name, ..] => {
                let near = reader.suggester.nearest(name, self.observables());
                let near = near.map(|near| crate::suggest::did_you_mean(&format!("{OBSERVED}.{near}")));
                let help = near.unwrap_or_else(|| format!("known: {}", self.observable()));
                (format!("nothing is observed under {}", quoted(name)), Some(help))
            }
        };
        reader.error_with_help(&node.span, path, message, help);
    }

    fn is_fact(&self, name: &str) -> bool {
        self.facts.contains(&name)
    }

    fn observables(&self) -> impl Iterator<Item = &str> {
        OBSERVED_ROOTS.into_iter().chain(self.facts.iter().copied())
    }

    /// What can be observed, for a message.
    fn observable(&self) -> String {
        self.observables().take(20).map(|name| quoted(&format!("{OBSERVED}.{name}"))).collect::<Vec<_>>().join(", ")
    }
}

fn source(fields: Fields<'_>, path: &Path<'_>, reader: &mut Reader) -> Option<Source> {
    let node = fields.get("source")?;
    let path = &path.key("source");
    let word = reader.string(node, path)?;
    let found = Source::parse(word);
    if found.is_none() {
        let help = reader.suggester.help(word, Source::ALL.iter().map(|source| source.as_str()));
        reader.error_with_help(&node.span, path, "expected `context` or `observed`", help);
    }
    found
}

fn operator(fields: Fields<'_>, path: &Path<'_>, reader: &mut Reader) -> Option<Operator> {
    let all = || Operator::ALL.iter().map(|op| op.as_str());
    let Some(node) = fields.get("op") else {
        let help = format!("one of {}", all().collect::<Vec<_>>().join(", "));
        reader.error_with_help(&start_of(fields), path, "`op` is missing", help);
        return None;
    };
    let path = &path.key("op");
    let word = reader.string(node, path)?;
    let found = Operator::parse(word);
    if found.is_none() {
        // Signs that other languages use; edit distance knows nothing of them.
        let meant = match word {
            "=" | "==" | "===" | "equals" | "is" => Some("eq"),
            "!=" | "!==" | "<>" | "ne" | "not_eq" => Some("neq"),
            ">" => Some("gt"),
            ">=" | "ge" => Some("gte"),
            "<" => Some("lt"),
            "<=" | "le" => Some("lte"),
            "includes" => Some("contains"),
            "missing" | "absent" => Some("not_exists"),
            _ => reader.suggester.nearest(word, all()),
        };
        let help = match meant {
            Some(meant) => crate::suggest::did_you_mean(meant),
            None => format!("one of {}", all().collect::<Vec<_>>().join(", ")),
        };
        reader.error_with_help(&node.span, path, format!("unknown operator {}", quoted(word)), help);
    }
    found
}

fn value(fields: Fields<'_>, op: Operator, path: &Path<'_>, reader: &mut Reader) {
    let member = fields.member("value");
    let (fits, expected): (fn(&NodeValue) -> bool, _) = match op {
        Operator::Exists | Operator::NotExists => {
            if let Some(member) = member {
                let help = "leave `value` out".to_owned();
                let message = format!("`{op}` takes no value");
                reader.error_with_help(&member.key_span, &path.key("value"), message, help);
            }
            return;
        }
        Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => {
            (|value| matches!(value, NodeValue::Number(_)), "a number")
        }
        Operator::In => (|value| matches!(value, NodeValue::Array(items) if !items.is_empty()), "a list with items"),
        Operator::Contains => (
            |value| matches!(value, NodeValue::String(_) | NodeValue::Number(_) | NodeValue::Bool(_)),
            "a string, a number or a boolean",
        ),
        Operator::Eq | Operator::Neq => (|value| !matches!(value, NodeValue::Null), "something other than null"),
    };
    let Some(member) = member else {
        let message = format!("`{op}` needs a value");
        return reader.error_with_help(&start_of(fields), path, message, format!("`value`: {expected}"));
    };
    if !fits(&member.value.value) && !member.value.is_refused() {
        let message = format!("`{op}` needs {expected}, found {}", shown(&member.value));
        let help = matches!(member.value.value, NodeValue::Null)
            .then(|| "null counts as absent: use `exists` or `not_exists`".to_owned());
        reader.error_with_help(&member.value.span, &path.key("value"), message, help);
    }
}

fn shown(node: &Node) -> &'static str {
    let empty = matches!(&node.value, NodeValue::Array(items) if items.is_empty());
    if empty { "an empty list" } else { node.kind() }
}

fn start_of(fields: Fields<'_>) -> Range<usize> {
    fields.span.start..fields.span.start.saturating_add(1)
}
