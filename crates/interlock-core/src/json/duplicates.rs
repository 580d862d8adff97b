//! No two keys of an object may be equal, as written or after NFC.
//!
//! Decided once per object, when it closes. Few keys are compared pairwise; many are sorted, never hashed, so that no
//! choice of keys makes it slow.

use super::error::JsonErrorKind;
use super::nodes::{NodeIndex, Nodes, StringStyle};
use super::string::nfc;

/// Up to this many keys are compared with each other.
const PAIRWISE_MAX: usize = 8;

pub(super) struct Duplicate {
    pub(super) kind: JsonErrorKind,
    pub(super) offset: usize,
}

/// Looks for a duplicate among the keys of an object. `scratch` is reused from object to object.
pub(super) fn find(nodes: Nodes<'_>, object: NodeIndex, scratch: &mut Vec<NodeIndex>) -> Option<Duplicate> {
    let count = usize::try_from(nodes.node(object).first).unwrap_or(0);
    if count < 2 {
        return None;
    }
    let mut few = [0; PAIRWISE_MAX];
    let keys = match few.get_mut(..count) {
        Some(few) => few,
        None => {
            scratch.resize(count, 0);
            scratch.as_mut_slice()
        }
    };
    let all_plain = list(nodes, object, keys);
    let as_written = if count <= PAIRWISE_MAX { find_pairwise(nodes, keys) } else { find_sorted(nodes, keys) };
    let (key, kind): (_, fn(String) -> JsonErrorKind) = match as_written {
        Some(key) => (key, JsonErrorKind::DuplicateKey),
        None if all_plain => return None,
        None => (find_normalized(nodes, keys)?, JsonErrorKind::DuplicateNormalizedKey),
    };
    let node = nodes.node(key);
    let offset = usize::try_from(node.start).unwrap_or(0);
    Some(Duplicate { kind: kind(nodes.contents(node).to_owned()), offset })
}

/// Lists the key nodes of an object; says whether all of them are plain ASCII.
fn list(nodes: Nodes<'_>, object: NodeIndex, keys: &mut [NodeIndex]) -> bool {
    let (mut all_plain, mut at) = (true, object.saturating_add(1));
    for slot in keys {
        all_plain &= nodes.node(at).style == StringStyle::Plain;
        *slot = at;
        at = nodes.after(at.saturating_add(1));
    }
    all_plain
}

fn name<'a>(nodes: Nodes<'a>, key: NodeIndex) -> &'a [u8] {
    nodes.content_bytes(nodes.node(key))
}

fn find_pairwise(nodes: Nodes<'_>, keys: &[NodeIndex]) -> Option<NodeIndex> {
    let mut rest = keys;
    while let [key, others @ ..] = rest {
        let first = name(nodes, *key);
        if let Some(other) = others.iter().find(|other| name(nodes, **other) == first) {
            return Some(*other);
        }
        rest = others;
    }
    None
}

/// Leaves `keys` sorted.
fn find_sorted(nodes: Nodes<'_>, keys: &mut [NodeIndex]) -> Option<NodeIndex> {
    // Canonical text comes sorted already; the sort notices and takes one pass.
    keys.sort_by(|a, b| name(nodes, *a).cmp(name(nodes, *b)));
    first_equal_pair(keys, |a, b| name(nodes, *a) == name(nodes, *b)).copied()
}

fn find_normalized(nodes: Nodes<'_>, keys: &[NodeIndex]) -> Option<NodeIndex> {
    let mut names: Vec<_> = keys.iter().map(|key| (nfc(nodes.contents(nodes.node(*key))), *key)).collect();
    names.sort();
    first_equal_pair(&names, |a, b| a.0 == b.0).map(|(_, key)| *key)
}

/// The second of the first two neighbours that are equal.
fn first_equal_pair<T>(sorted: &[T], equal: impl Fn(&T, &T) -> bool) -> Option<&T> {
    sorted.iter().zip(sorted.iter().skip(1)).find(|(a, b)| equal(a, b)).map(|(_, b)| b)
}
