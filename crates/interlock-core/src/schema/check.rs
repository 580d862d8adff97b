//! Whether a value matches a compiled schema. A value that matches is walked without allocating, unless it holds text
//! that is not in normal form or a `uniqueItems` array of more than eight items.

use core::cmp::Ordering;
use core::fmt;
use std::collections::BTreeSet;

use super::{ArrayRule, Bounds, ObjectRule, Rule, Schema, Shape, StringRule};
use crate::digest::Digest;
use crate::display::names;
use crate::json::{self, Items, Members, NodeIndex, Number, Str, Value};

/// Arrays up to this length are checked for equal items pair by pair.
const UNIQUE_PAIRWISE_MAX: usize = 8;

/// The first thing about a value that does not match.
#[derive(Debug)]
pub struct Violation<'s, 'd> {
    schema: &'s Schema,
    at: Value<'d>,
    reason: Reason<'s>,
}

#[derive(Debug, Clone, Copy)]
enum Reason<'s> {
    NotOneOf(NodeIndex),
    NotConstant(NodeIndex),
    WrongType(&'static str),
    MissingKeys(&'s ObjectRule),
    UnexpectedKeys(&'s ObjectRule),
    TooFewItems(usize),
    TooManyItems(usize),
    RepeatedItems,
    TooShort(usize),
    TooLong(usize),
    PatternUnmatched,
    Below(NodeIndex),
    Above(NodeIndex),
    NotAbove(NodeIndex),
    NotBelow(NodeIndex),
}

type Check<'s, 'd> = Result<(), (Value<'d>, Reason<'s>)>;

impl Schema {
    /// Checks one value. The order within a value: `enum`, `const`, type, then the type's own keywords; in an object
    /// missing keys, then unexpected ones, then its members in the order of the text.
    pub fn check<'d>(&self, value: Value<'d>) -> Result<(), Violation<'_, 'd>> {
        self.check_rule(&self.root, value).map_err(|(at, reason)| Violation { schema: self, at, reason })
    }

    pub(super) fn accepts(&self, rule: &Rule, value: Value<'_>) -> bool {
        self.check_rule(rule, value).is_ok()
    }

    /// Recursion is bounded: a document's depth is below `CONFIG_DEPTH_MAX`.
    fn check_rule<'s, 'd>(&'s self, rule: &'s Rule, value: Value<'d>) -> Check<'s, 'd> {
        if let Some(one_of) = &rule.one_of
            && one_of.values.position(self.source_value(one_of.source), value).is_none()
        {
            return Err((value, Reason::NotOneOf(one_of.source)));
        }
        if let Some(constant) = rule.constant
            && !json::equal(self.source_value(constant), value)
        {
            return Err((value, Reason::NotConstant(constant)));
        }
        let wrong_type = |what| Err((value, Reason::WrongType(what)));
        match &rule.shape {
            Shape::Object(object) => match value.as_object() {
                Some(members) => self.check_object(object, value, members),
                None => wrong_type("an object"),
            },
            Shape::Array(array) => match value.as_array() {
                Some(items) => self.check_array(array, value, items),
                None => wrong_type("an array"),
            },
            Shape::String(string) => match value.as_str() {
                Some(text) => check_string(string, value, &text),
                None => wrong_type("a string"),
            },
            Shape::Integer(bounds) => match value.as_number() {
                Some(number) if number.is_integer() => self.check_bounds(bounds, value, &number),
                _ => wrong_type("an integer"),
            },
            Shape::Number(bounds) => match value.as_number() {
                Some(number) => self.check_bounds(bounds, value, &number),
                None => wrong_type("a number"),
            },
            Shape::Boolean if value.as_bool().is_none() => wrong_type("a boolean"),
            Shape::Null if value.kind() != Some(json::Kind::Null) => wrong_type("null"),
            Shape::Boolean | Shape::Null => Ok(()),
        }
    }

    fn check_object<'s, 'd>(&'s self, rule: &'s ObjectRule, value: Value<'d>, members: Members<'d>) -> Check<'s, 'd> {
        let (mut required_seen, mut unexpected, mut inner, mut position) = (0_usize, false, Ok(()), 0);
        for (key, member) in members {
            match rule.property_near(&key.nfc(), &mut position) {
                Some(property) => {
                    required_seen = required_seen.saturating_add(usize::from(property.required));
                    if inner.is_ok() {
                        inner = self.check_rule(&property.rule, member);
                    }
                }
                None => unexpected |= !rule.open,
            }
        }
        // No key stands twice, so as many as required means each of them.
        if required_seen < rule.required_count {
            return Err((value, Reason::MissingKeys(rule)));
        }
        if unexpected {
            return Err((value, Reason::UnexpectedKeys(rule)));
        }
        inner
    }

    fn check_array<'s, 'd>(&'s self, rule: &'s ArrayRule, value: Value<'d>, items: Items<'d>) -> Check<'s, 'd> {
        if items.len() < rule.count.min {
            return Err((value, Reason::TooFewItems(rule.count.min)));
        }
        if items.len() > rule.count.max {
            return Err((value, Reason::TooManyItems(rule.count.max)));
        }
        for item in items {
            self.check_rule(&rule.items, item)?;
        }
        if rule.unique && !are_unique(items) {
            return Err((value, Reason::RepeatedItems));
        }
        Ok(())
    }

    fn check_bounds<'s, 'd>(&'s self, bounds: &'s Bounds, value: Value<'d>, number: &Number<'_>) -> Check<'s, 'd> {
        let breaks = |bound: Option<NodeIndex>, broken: fn(Ordering) -> bool| {
            bound.filter(|bound| {
                let bound = self.source_value(*bound).as_number();
                // A bound that cannot be read is broken by every number.
                bound.is_none_or(|bound| broken(number.cmp_value(&bound)))
            })
        };
        let reason = if let Some(bound) = breaks(bounds.minimum, Ordering::is_lt) {
            Reason::Below(bound)
        } else if let Some(bound) = breaks(bounds.maximum, Ordering::is_gt) {
            Reason::Above(bound)
        } else if let Some(bound) = breaks(bounds.exclusive_minimum, Ordering::is_le) {
            Reason::NotAbove(bound)
        } else if let Some(bound) = breaks(bounds.exclusive_maximum, Ordering::is_ge) {
            Reason::NotBelow(bound)
        } else {
            return Ok(());
        };
        Err((value, reason))
    }
}

fn check_string<'s, 'd>(rule: &'s StringRule, value: Value<'d>, text: &Str<'_>) -> Check<'s, 'd> {
    if rule.length.min == 0 && rule.length.max == usize::MAX && rule.pattern.is_none() {
        return Ok(());
    }
    let text = text.nfc();
    let length = text.chars().count();
    if length < rule.length.min {
        return Err((value, Reason::TooShort(rule.length.min)));
    }
    if length > rule.length.max {
        return Err((value, Reason::TooLong(rule.length.max)));
    }
    match &rule.pattern {
        Some(pattern) if !pattern.is_match(&text) => Err((value, Reason::PatternUnmatched)),
        Some(_) | None => Ok(()),
    }
}

fn are_unique(items: Items<'_>) -> bool {
    if items.len() <= UNIQUE_PAIRWISE_MAX {
        let mut rest = items;
        while let Some(item) = rest.next() {
            if rest.clone().any(|other| json::equal(item, other)) {
                return false;
            }
        }
        return true;
    }
    // Sorted digests keep this in n log n for whatever items an agent thinks of.
    let mut digests: Vec<_> = items.map(|item| Digest::of(&[&json::by_value(item)])).collect();
    digests.sort_unstable();
    digests.iter().zip(digests.iter().skip(1)).all(|(a, b)| a != b)
}

impl<'d> Violation<'_, 'd> {
    /// The value that does not match.
    pub fn value(&self) -> Value<'d> {
        self.at
    }

    fn keys(&self, wanted: impl Fn(&str) -> bool) -> Vec<&'d str> {
        self.at
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
            .filter(|key| wanted(&key.nfc()))
            .map(|key| key.text())
            .collect()
    }

    fn allowed(&self, index: NodeIndex) -> String {
        json::shown(self.schema.source_value(index))
    }
}

impl fmt::Display for Violation<'_, '_> {
    /// Names paths, keys, types and what the schema allows, never the value itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at.path())?;
        match self.reason {
            Reason::NotOneOf(allowed) => write!(f, "must be one of {}", self.allowed(allowed)),
            Reason::NotConstant(constant) => write!(f, "must equal {}", self.allowed(constant)),
            Reason::WrongType(what) => {
                write!(f, "must be {what}, got {}", self.at.kind().map_or("nothing", json::Kind::name))
            }
            Reason::MissingKeys(rule) => {
                let present: BTreeSet<_> =
                    self.at.as_object().into_iter().flatten().map(|(key, _)| key.nfc()).collect();
                let required = rule.properties.iter().filter(|property| property.required);
                let missing: Vec<_> =
                    required.map(|property| property.name.as_str()).filter(|name| !present.contains(*name)).collect();
                write!(f, "is missing required keys: {}", names(&missing))
            }
            Reason::UnexpectedKeys(rule) => {
                let unexpected = self.keys(|name| rule.property(name).is_none());
                write!(f, "contains unexpected keys: {}", names(&unexpected))
            }
            Reason::TooFewItems(min) => write!(f, "must have at least {min} items"),
            Reason::TooManyItems(max) => write!(f, "must have at most {max} items"),
            Reason::RepeatedItems => f.write_str("must not contain equal items"),
            Reason::TooShort(min) => write!(f, "must have at least {min} characters"),
            Reason::TooLong(max) => write!(f, "must have at most {max} characters"),
            Reason::PatternUnmatched => f.write_str("must match the pattern of its schema"),
            Reason::Below(bound) => write!(f, "must be at least {}", self.allowed(bound)),
            Reason::Above(bound) => write!(f, "must be at most {}", self.allowed(bound)),
            Reason::NotAbove(bound) => write!(f, "must be greater than {}", self.allowed(bound)),
            Reason::NotBelow(bound) => write!(f, "must be less than {}", self.allowed(bound)),
        }
    }
}
