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

/// Equality of objects with equally many members. The keys settle the order first, so that no value is compared twice:
/// twice at every depth would be without end.
fn equal_members(left: Value<'_>, right: Value<'_>, left_members: Members<'_>, right_members: Members<'_>) -> bool {
    // Mostly both sides come from one writer and their keys stand in the same order.
    if left_members.zip(right_members).all(|((left_key, _), (right_key, _))| left_key.text() == right_key.text()) {
        return left_members.zip(right_members).all(|((_, a), (_, b))| equal(a, b));
    }
    let (left, right) = (left.members_in_canonical_order(), right.members_in_canonical_order());
    left.zip(right).all(|((left_key, a), (right_key, b))| same_string(&left_key, right_key.text()) && equal(a, b))
}
