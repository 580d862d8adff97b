//! `ordered_enum_paths`: a value that moves forward through a list, or stays. Steps may be skipped.

use super::path::RulePath;
use super::{Breach, Change, resolve};
use crate::json::{self, Document, NodeIndex, Value, ValueList};
use crate::ruling::Side;

#[derive(Debug, Clone)]
pub(super) struct OrderedEnum {
    pub(super) path: RulePath,
    /// The list of values in the rules' source.
    pub(super) source: NodeIndex,
    pub(super) values: ValueList,
}

impl OrderedEnum {
    pub(super) fn check<'d>(&self, source: &Document<'_>, change: Change<'d>) -> Result<(), Breach<'d>> {
        let values = resolve(&self.path, change)?;
        let ordered = source.value(self.source);
        let current = self.rank(ordered, Side::Current, values.current)?;
        let proposed = self.rank(ordered, Side::Proposed, values.proposed)?;
        if proposed < current {
            return Err(Breach::of(values.proposed, "regressed: it may only move forward in its order"));
        }
        Ok(())
    }

    fn rank<'d>(&self, ordered: Value<'_>, side: Side, value: Value<'d>) -> Result<usize, Breach<'d>> {
        self.values.position(ordered, value).ok_or_else(|| {
            let allowed = json::shown(ordered);
            Breach::unevaluable(side, value, format_args!("must be one of {allowed} in the {} state", side.name()))
        })
    }
}
