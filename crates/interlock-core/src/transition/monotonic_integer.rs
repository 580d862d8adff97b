//! `monotonic_integer_paths`: an integer that never decreases.

use core::cmp::Ordering;

use super::path::RulePath;
use super::{Breach, Change, resolve};
use crate::json::{Number, Value};
use crate::ruling::Side;

pub(super) fn check<'d>(path: &RulePath, change: Change<'d>) -> Result<(), Breach<'d>> {
    let values = resolve(path, change)?;
    let current = integer(Side::Current, values.current)?;
    let proposed = integer(Side::Proposed, values.proposed)?;
    match proposed.cmp_value(&current) {
        Ordering::Less => Err(Breach::of(values.proposed, "regressed: an integer here may not decrease")),
        Ordering::Equal | Ordering::Greater => Ok(()),
    }
}

fn integer<'d>(side: Side, value: Value<'d>) -> Result<Number<'d>, Breach<'d>> {
    let number = value.as_number().filter(Number::is_integer);
    number.ok_or_else(|| {
        Breach::unevaluable(side, value, format_args!("must be an integer in the {} state", side.name()))
    })
}
