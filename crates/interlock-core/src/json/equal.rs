//! Equality of values: numbers by exact value, strings and keys after NFC, objects whatever the order of their members.
//!
//! A boolean never equals a number, and `null` equals only `null`.

use core::cmp::Ordering;

use super::document::{Content, Members, Value};
use super::string::same_string;

/// Whether two values are equal; see the module.
pub fn equal(left: Value<'_>, right: Value<'_>) -> bool {
    match (left.content(), right.content()) {
        (Some(Content::Null), Some(Content::Null)) => true,
        (Some(Content::Boolean(a)), Some(Content::Boolean(b))) => a == b,
        (Some(Content::Number(a)), Some(Content::Number(b))) => a.cmp_value(&b) == Ordering::Equal,
        (Some(Content::String(a)), Some(Content::String(b))) => same_string(&a, b.text()),
        (Some(Content::Array(a)), Some(Content::Array(b))) => a.len() == b.len() && a.zip(b).all(|(a, b)| equal(a, b)),
        (Some(Content::Object(a)), Some(Content::Object(b))) => a.len() == b.len() && equal_members(left, right, a, b),
        _ => false,
    }
}

/// Equality of objects with equally many members.
fn equal_members(
    left_object: Value<'_>,
    right_object: Value<'_>,
    mut left: Members<'_>,
    mut right: Members<'_>,
) -> bool {
    // Mostly both sides come from one writer and their keys stand in the same order.
    loop {
        match (left.next(), right.next()) {
            (Some((left_key, a)), Some((right_key, b))) if left_key.text() == right_key.text() => {
                if !equal(a, b) {
                    return false;
                }
            }
            (None, None) => return true,
            _ => {
                let (mut a, b) = (left_object.members_in_canonical_order(), right_object.members_in_canonical_order());
                return a
                    .by_ref()
                    .zip(b)
                    .all(|((a_key, a), (b_key, b))| same_string(&a_key, b_key.text()) && equal(a, b));
            }
        }
    }
}
