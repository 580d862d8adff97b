//! The values that conditions on arguments see.
//!
//! A value is seen as it stands. Where it holds addresses of people (`Name <x@y.example>`, a list of them) each is seen
//! as well, and a condition on the recipient (`to`) sees every field of that kind beside it: whoever is in copy gets the
//! message, too.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

use super::subject::fold_value;
use crate::field_names::{is_recipient, means_recipients};

/// What stands between addresses, and around them.
const BETWEEN: [char; 17] = [',', ';', ':', '<', '>', '(', ')', '[', ']', '{', '}', '"', '\'', '|', '?', '&', '='];

/// Notes a value under every name that conditions ask for it by.
pub(super) fn note(
    arguments: &mut BTreeMap<String, Vec<String>>,
    known: &BTreeSet<String>,
    name: &str,
    value: impl FnOnce() -> String,
) {
    let is_asked_for = known.contains(name);
    let names_recipient = !known.is_empty() && name.split('.').any(is_recipient);
    if !is_asked_for && !names_recipient {
        return;
    }
    let others = known.iter().filter(|asked| names_recipient && *asked != name && asks_for(asked, name));
    let names: Vec<&str> = others.map(String::as_str).chain(is_asked_for.then_some(name)).collect();
    if names.is_empty() {
        return;
    }
    let value = value();
    let seen: Vec<String> = core::iter::once(fold_value(&value)).chain(addresses(&value)).collect();
    for name in names {
        arguments.entry(name.to_owned()).or_default().extend(seen.iter().cloned());
    }
}

/// Whether a condition on a recipient means this field: one of that kind at the same place or beneath it.
fn asks_for(asked: &str, name: &str) -> bool {
    let (place, last) = asked.rsplit_once('.').map_or(("", asked), |(place, last)| (place, last));
    let rest = match name.strip_prefix(place) {
        Some(rest) if place.is_empty() => rest,
        Some(rest) => rest.strip_prefix('.').unwrap_or(""),
        None => "",
    };
    means_recipients(last) && rest.split('.').any(is_recipient)
}

/// The addresses of people in a value, if it is more than one address.
fn addresses(value: &str) -> Vec<String> {
    if value.is_ascii() && !value.contains('@') {
        return Vec::new();
    }
    let folded = fold_value(&value.nfkc().collect::<String>());
    let is_between = |c: char| c.is_whitespace() || c.is_control() || BETWEEN.contains(&c);
    let parts = folded.split(is_between).map(|part| part.trim_matches('.')).filter(|part| part.contains('@'));
    parts.filter(|part| *part != value).map(str::to_owned).collect()
}
