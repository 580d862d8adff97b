//! `immutable_paths`: the value may not change.

use super::path::RulePath;
use super::{Breach, Change, resolve};
use crate::json;

pub(super) fn check<'d>(path: &RulePath, change: Change<'d>) -> Result<(), Breach<'d>> {
    let values = resolve(path, change)?;
    if json::equal(values.current, values.proposed) {
        Ok(())
    } else {
        Err(Breach::of(values.proposed, "is immutable across state transitions"))
    }
}
