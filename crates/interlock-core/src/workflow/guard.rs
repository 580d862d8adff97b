//! Whether a guard holds: exact, without coercion, and a missing field fails every operator but `not_exists`.

use core::cell::OnceCell;
use core::cmp::Ordering;
use std::collections::BTreeMap;

use super::context::{Context, KeyMark};
use super::definition::{Guard, Operator, Source};
use super::run::Seen;
use crate::json::{Json, nfc};

/// The root of the context that holds what Interlock saw itself. Agents cannot write there.
pub const OBSERVED: &str = "observed";

/// What is observed without being declared.
pub const OBSERVED_ROOTS: [&str; 3] = ["files_changed", "last_command", "tools"];

impl Guard {
    /// Whether it rests on what Interlock saw itself, not on what an agent says.
    pub fn is_observed(&self) -> bool {
        self.source == Source::Observed || self.field.is_observed
    }

    /// Whether it believes only what was observed and looks where nothing of the kind is: it never finds anything.
    pub fn is_blind(&self) -> bool {
        self.source == Source::Observed && !self.field.is_observed
    }

    /// Whether it holds for a context, merged with what a transition brings, and what was observed.
    pub fn holds(&self, context: &BTreeMap<String, Json>, observed: &Json) -> bool {
        self.compares(self.look_up(|_, key| context.get(key), || observed))
    }

    /// Whether what was found is what it wants.
    fn compares(&self, found: Option<&Json>) -> bool {
        match (self.op, &self.value, found) {
            (Operator::Exists, _, found) => found.is_some(),
            (Operator::NotExists, _, found) => found.is_none(),
            (_, None, _) | (_, _, None) => false,
            (Operator::Eq, Some(value), Some(found)) => found.same(value),
            (Operator::Neq, Some(value), Some(found)) => !found.same(value),
            (Operator::Gt, Some(value), Some(found)) => found.cmp_number(value) == Some(Ordering::Greater),
            (Operator::Gte, Some(value), Some(found)) => found.cmp_number(value).is_some_and(Ordering::is_ge),
            (Operator::Lt, Some(value), Some(found)) => found.cmp_number(value) == Some(Ordering::Less),
            (Operator::Lte, Some(value), Some(found)) => found.cmp_number(value).is_some_and(Ordering::is_le),
            (Operator::In, Some(Json::Array(list)), Some(found)) => list.iter().any(|item| item.same(found)),
            (Operator::In, Some(_), Some(_)) => false,
            (Operator::Contains, Some(value), Some(found)) => contains(found, value),
        }
    }

    fn look_up<'a>(
        &self,
        context: impl FnOnce(KeyMark, &str) -> Option<&'a Json>,
        observed: impl FnOnce() -> &'a Json,
    ) -> Option<&'a Json> {
        let (first, rest) = self.field.split_first()?;
        let root = match (self.field.is_observed, self.source) {
            (true, _) => observed(),
            // A guard that believes only what was observed finds nothing among claims.
            (false, Source::Observed) => return None,
            (false, Source::Context) => context(self.field.mark, first)?,
        };
        root.at(rest)
    }
}

/// What the guards of a transition see: the context, over it what the event brings, and what was observed, which is put
/// together only if a guard asks.
pub(super) struct Sight<'a> {
    context: &'a Context,
    data: &'a Context,
    seen: &'a Seen,
    observed: OnceCell<Json>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(context: &'a Context, data: &'a Context, seen: &'a Seen) -> Sight<'a> {
        Sight { context, data, seen, observed: OnceCell::new() }
    }

    pub(super) fn meets(&self, guard: &Guard) -> bool {
        let claimed =
            |mark: KeyMark, key: &str| self.data.get_marked(mark, key).or_else(|| self.context.get_marked(mark, key));
        guard.compares(guard.look_up(claimed, || self.observed.get_or_init(|| self.seen.to_json())))
    }
}

fn contains(found: &Json, value: &Json) -> bool {
    match (found, value) {
        (Json::String(text), Json::String(part)) => nfc(text).contains(&*nfc(part)),
        (Json::Array(items), value) => items.iter().any(|item| item.same(value)),
        _ => false,
    }
}
