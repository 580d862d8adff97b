//! Rules that look alive and are not: paths the schema can never hold, types a rule cannot work on.
//!
//! Nothing here decides about a state. It tells the author of a guard, before an agent does, that every transition
//! would be blocked or that a rule will never speak.

use core::fmt;

use super::Rules;
use super::keyed_array::KeyedArray;
use super::ordered_enum::OrderedEnum;
use super::path::RulePath;
use crate::display;
use crate::json::Kind;
use crate::schema::{Expected, ExpectedMember, Schema};

/// One thing about a guard that its author probably did not mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule, such as `immutable_paths['$.id']`.
    pub rule: String,
    /// What is wrong with it.
    pub message: String,
    /// Whether every transition would be blocked; otherwise only some.
    pub blocks_always: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}

/// Compares rules with the schema they will be used with.
pub fn lint(schema: &Schema, rules: &Rules) -> Vec<Finding> {
    let mut lint = Lint { schema, findings: Vec::new() };
    for path in &rules.immutable {
        lint.path("immutable_paths", path);
    }
    for path in &rules.monotonic_integers {
        lint.monotonic_integer(path);
    }
    for rule in &rules.ordered_enums {
        lint.ordered_enum(rule, rules);
    }
    for rule in &rules.keyed_arrays {
        lint.keyed_array(rule);
    }
    lint.findings
}

struct Lint<'s> {
    schema: &'s Schema,
    findings: Vec<Finding>,
}

impl<'s> Lint<'s> {
    fn report(&mut self, rule: &str, message: String, blocks_always: bool) {
        self.findings.push(Finding { rule: rule.to_owned(), message, blocks_always });
    }

    /// Follows a path through the schema; `None` when nothing more can be said about it.
    fn path(&mut self, kind: &str, path: &RulePath) -> Option<(String, Expected<'s>)> {
        let rule = format!("{kind}['{path}']");
        let mut at = self.schema.expected();
        for key in path.keys() {
            match at.member(key) {
                ExpectedMember::Declared(inner) => at = inner,
                ExpectedMember::Undeclared => {
                    let message = format!(
                        "'{}' is not declared in the schema, so it may be absent and is then blocked",
                        display(key)
                    );
                    self.report(&rule, message, false);
                    return None;
                }
                ExpectedMember::Impossible => {
                    let message = format!("the schema can never hold '{}': every transition is blocked", display(key));
                    self.report(&rule, message, true);
                    return None;
                }
            }
        }
        if !at.always_present {
            self.report(&rule, "the schema does not require it: states without it are blocked".to_owned(), false);
        }
        Some((rule, at))
    }

    fn monotonic_integer(&mut self, path: &RulePath) {
        let Some((rule, at)) = self.path("monotonic_integer_paths", path) else { return };
        if !matches!(at.kind(), Kind::Integer | Kind::Number) {
            self.report(
                &rule,
                format!("the schema declares a value of type {}, not an integer", at.kind().name()),
                true,
            );
        }
    }

    fn ordered_enum(&mut self, rule: &OrderedEnum, rules: &Rules) {
        let Some((name, at)) = self.path("ordered_enum_paths", &rule.path) else { return };
        let values = rules.source.value(rule.source);
        let (mut count, mut refused) = (0_usize, 0_usize);
        for value in values.as_array().into_iter().flatten() {
            count = count.saturating_add(1);
            refused = refused.saturating_add(usize::from(!at.accepts(value)));
        }
        if refused > 0 {
            self.report(&name, format!("the schema refuses {refused} of its {count} values"), refused == count);
        }
    }

    fn keyed_array(&mut self, rule: &KeyedArray) {
        let Some((name, at)) = self.path("keyed_object_array_paths", &rule.path) else { return };
        let Some(item) = at.items() else {
            self.report(&name, format!("the schema declares a value of type {}, not an array", at.kind().name()), true);
            return;
        };
        if item.kind() != Kind::Object {
            self.report(&name, "the items of the array are not objects".to_owned(), true);
            return;
        }
        self.item_field(&name, item, &rule.key, &[Kind::String, Kind::Integer, Kind::Number, Kind::Boolean], true);
        for field in &rule.monotonic_booleans {
            self.item_field(&name, item, field, &[Kind::Boolean], false);
        }
    }

    fn item_field(&mut self, rule: &str, item: Expected<'s>, field: &str, kinds: &[Kind], is_key: bool) {
        let shown = display(field);
        match item.member(field) {
            ExpectedMember::Impossible => {
                self.report(rule, format!("items can never have the field '{shown}'"), is_key);
            }
            ExpectedMember::Undeclared => {
                self.report(rule, format!("the field '{shown}' is not declared for the items"), false);
            }
            ExpectedMember::Declared(inner) if !kinds.contains(&inner.kind()) => {
                self.report(rule, format!("the field '{shown}' is declared as {}", inner.kind().name()), is_key);
            }
            ExpectedMember::Declared(inner) if is_key && !inner.always_present => {
                self.report(
                    rule,
                    format!("the key field '{shown}' is not required: items without it are blocked"),
                    false,
                );
            }
            ExpectedMember::Declared(_) => {}
        }
    }
}
