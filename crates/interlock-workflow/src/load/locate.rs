//! Where something stands in a text that loads, and documents that are no workflows.

use core::ops::Range;

use interlock_core::json::Json;

use super::node::{Member, Node, NodeValue};
use super::problem::{Problem, ProblemList};
use super::{Format, Limits, from_json, from_toml, from_yaml};
use crate::analysis::PlacePart;

/// The bytes of the part of a text that a place speaks of: its key where it has one, else the value. Of a place that is
/// not there, what is there of the way to it.
pub fn locate(text: &str, format: Format, places: &[&[PlacePart]]) -> Vec<Range<usize>> {
    let mut errors = ProblemList::default();
    let tree = match format {
        Format::Json => from_json::read(text, &Limits::MAX, &mut errors),
        Format::Yaml => from_yaml::read(text, &Limits::MAX, &mut errors),
        Format::Toml => from_toml::read(text, &Limits::MAX, &mut errors),
    };
    places.iter().map(|place| tree.as_ref().map_or(0..0, |tree| find(tree, place))).collect()
}

/// Reads another document of the same formats, without a word about what it may hold.
pub fn document(text: &str, format: Format) -> Result<Json, Vec<Problem>> {
    let mut errors = ProblemList::default();
    let tree = match format {
        Format::Json => from_json::read(text, &Limits::MAX, &mut errors),
        Format::Yaml => from_yaml::read(text, &Limits::MAX, &mut errors),
        Format::Toml => from_toml::read(text, &Limits::MAX, &mut errors),
    };
    match tree {
        Some(tree) if errors.is_empty() => Ok(tree.to_json()),
        _ => Err(errors.finish(text)),
    }
}

fn find(tree: &Node, place: &[PlacePart]) -> Range<usize> {
    let mut at = tree;
    let mut span = tree.span.start..tree.span.start.saturating_add(1);
    for part in place {
        match (part, &at.value) {
            (PlacePart::Key(key), NodeValue::Object(members)) => match member(members, key) {
                Some(member) => (span, at) = (member.key_span.clone(), &member.value),
                None => return span,
            },
            (PlacePart::Item(item), NodeValue::Array(items)) => match items.get(*item) {
                Some(node) => (span, at) = (node.span.clone(), node),
                None => return span,
            },
            // A single row may stand without a list; its key says more than its braces.
            (_, _) => return span,
        }
    }
    span
}

fn member<'n>(members: &'n [Member], key: &str) -> Option<&'n Member> {
    members.iter().find(|member| member.key == key)
}
