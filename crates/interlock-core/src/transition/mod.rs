//! How a state may change: four kinds of rules, compiled once, checked in one order, the first breach wins.
//!
//! | rule | file |
//! |---|---|
//! | `immutable_paths` | `immutable.rs` |
//! | `monotonic_integer_paths` | `monotonic_integer.rs` |
//! | `ordered_enum_paths` | `ordered_enum.rs` |
//! | `keyed_object_array_paths` | `keyed_array.rs` |
//!
//! Both states have passed the schema and the depth limit before a rule sees them.

mod distinct;
mod immutable;
mod keyed_array;
mod lint;
mod load;
mod monotonic_integer;
mod ordered_enum;
mod path;

use core::fmt;
use std::sync::Arc;

use crate::json::{Document, Value};
use crate::ruling::Side;

pub use lint::{Finding, lint};
pub use load::RulesError;
pub use path::RulePath;

use keyed_array::KeyedArray;
use ordered_enum::OrderedEnum;

/// Compiled transition rules.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The rules as they were given; ordered values are compared where they stand.
    source: Arc<Document<'static>>,
    immutable: Vec<RulePath>,
    monotonic_integers: Vec<RulePath>,
    ordered_enums: Vec<OrderedEnum>,
    keyed_arrays: Vec<KeyedArray>,
}

/// The two states a transition is about.
#[derive(Debug, Clone, Copy)]
pub struct Change<'d> {
    /// The state as it is.
    pub current: Value<'d>,
    /// The state as the agent wants it.
    pub proposed: Value<'d>,
}

/// A rule that a transition breaks.
#[derive(Debug)]
pub struct Breach<'d> {
    /// Why, without values of the states.
    pub reason: String,
    /// Where, if there is a value to point at.
    pub at: Option<(Side, Value<'d>)>,
}

impl Rules {
    /// The rules as they were given.
    pub fn source(&self) -> &Document<'static> {
        &self.source
    }

    /// Whether there is no rule at all; nothing may change then.
    pub fn is_empty(&self) -> bool {
        self.immutable.is_empty()
            && self.monotonic_integers.is_empty()
            && self.ordered_enums.is_empty()
            && self.keyed_arrays.is_empty()
    }

    /// Checks every rule against a change of state.
    pub fn check<'d>(&self, change: Change<'d>) -> Result<(), Breach<'d>> {
        for path in &self.immutable {
            immutable::check(path, change)?;
        }
        for path in &self.monotonic_integers {
            monotonic_integer::check(path, change)?;
        }
        for rule in &self.ordered_enums {
            rule.check(&self.source, change)?;
        }
        for rule in &self.keyed_arrays {
            rule.check(change)?;
        }
        Ok(())
    }
}

impl<'d> Breach<'d> {
    /// A rule is broken at a value of the proposed state.
    fn of(at: Value<'d>, reason: impl fmt::Display) -> Breach<'d> {
        Breach { reason: format!("{} {reason}", at.path()), at: Some((Side::Proposed, at)) }
    }

    /// A rule cannot be evaluated, which is as good as broken.
    fn unevaluable(side: Side, at: Value<'d>, reason: impl fmt::Display) -> Breach<'d> {
        let reason = format!("transition-rule evaluation failed deterministically: {} {reason}", at.path());
        Breach { reason, at: Some((side, at)) }
    }

    fn not_found(path: &RulePath, side: Side, state: Value<'d>) -> Breach<'d> {
        let reason = format!("Configured path '{path}' was not found in state. ({} state)", side.name());
        Breach { reason, at: Some((side, state)) }
    }
}

/// The values at one path of both states.
fn resolve<'d>(path: &RulePath, change: Change<'d>) -> Result<Change<'d>, Breach<'d>> {
    let find = |side, state| path.find(state).ok_or_else(|| Breach::not_found(path, side, state));
    Ok(Change { current: find(Side::Current, change.current)?, proposed: find(Side::Proposed, change.proposed)? })
}
