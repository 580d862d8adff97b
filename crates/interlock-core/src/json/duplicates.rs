//! No two keys of an object may be equal, as written or after NFC.
//!
//! Decided once per object, when it closes. Few keys are compared pairwise; many are sorted, never hashed, so that no
//! choice of keys makes it slow.

use super::document::{Node, NodeIndex, NodeKind, StringStyle};
use super::error::JsonErrorKind;
use super::string::nfc;

/// Up to this many keys are compared with each other.
const PAIRWISE_MAX: usize = 8;

pub(super) struct Duplicate {
    pub(super) kind: JsonErrorKind,
    pub(super) offset: usize,
}

/// Looks for a duplicate among the keys of the object at `object`, whose members are the last of `nodes`.
pub(super) fn find(
    text: &str,
    unescaped: &str,
    nodes: &[Node],
    object: NodeIndex,
    scratch: &mut Vec<NodeIndex>,
) -> Option<Duplicate> {
    let keys = Keys { text, unescaped, nodes };
    scratch.clear();
    let all_plain = keys.collect(object, scratch);
    let duplicate = if scratch.len() <= PAIRWISE_MAX { keys.find_pairwise(scratch) } else { keys.find_sorted(scratch) };
    match duplicate {
        Some(key) => Some(keys.duplicate(key, JsonErrorKind::DuplicateKey)),
        None if all_plain => None,
        None => keys.find_normalized(scratch).map(|key| keys.duplicate(key, JsonErrorKind::DuplicateNormalizedKey)),
    }
}

struct Keys<'a> {
    text: &'a str,
    unescaped: &'a str,
    nodes: &'a [Node],
}

impl<'a> Keys<'a> {
    /// Lists the key nodes of an object; says whether all of them are plain ASCII.
    fn collect(&self, object: NodeIndex, keys: &mut Vec<NodeIndex>) -> bool {
        let mut all_plain = true;
        let mut at = object.saturating_add(1);
        while let Some(key) = self.node(at) {
            all_plain &= key.style == StringStyle::Plain;
            keys.push(at);
            let value = at.saturating_add(1);
            at = match self.node(value) {
                Some(node) if matches!(node.kind, NodeKind::Array | NodeKind::Object) => node.second,
                _ => value.saturating_add(1),
            };
        }
        all_plain
    }

    fn find_pairwise(&self, keys: &[NodeIndex]) -> Option<NodeIndex> {
        let mut rest = keys;
        while let [key, others @ ..] = rest {
            let name = self.name(*key);
            if let Some(other) = others.iter().find(|other| self.name(**other) == name) {
                return Some(*other);
            }
            rest = others;
        }
        None
    }

    /// Leaves `keys` sorted.
    fn find_sorted(&self, keys: &mut [NodeIndex]) -> Option<NodeIndex> {
        // Canonical text comes sorted already; the sort notices and takes one pass.
        keys.sort_by(|a, b| self.name(*a).cmp(self.name(*b)));
        first_equal_pair(keys, |a, b| self.name(*a) == self.name(*b)).copied()
    }

    fn find_normalized(&self, keys: &[NodeIndex]) -> Option<NodeIndex> {
        let mut names: Vec<_> = keys.iter().map(|key| (nfc(self.name(*key)), *key)).collect();
        names.sort();
        first_equal_pair(&names, |a, b| a.0 == b.0).map(|(_, key)| *key)
    }

    fn duplicate(&self, key: NodeIndex, kind: fn(String) -> JsonErrorKind) -> Duplicate {
        let offset = self.node(key).and_then(|node| usize::try_from(node.start).ok()).unwrap_or(0);
        Duplicate { kind: kind(self.name(key).to_owned()), offset }
    }

    fn node(&self, index: NodeIndex) -> Option<&Node> {
        usize::try_from(index).ok().and_then(|index| self.nodes.get(index))
    }

    fn name(&self, key: NodeIndex) -> &'a str {
        self.node(key)
            .and_then(|node| {
                let buffer = if node.style == StringStyle::Escaped { self.unescaped } else { self.text };
                let start = usize::try_from(node.first).ok()?;
                buffer.get(start..start.checked_add(usize::try_from(node.second).ok()?)?)
            })
            .unwrap_or("")
    }
}

/// The second of the first two neighbours that are equal.
fn first_equal_pair<T>(sorted: &[T], equal: impl Fn(&T, &T) -> bool) -> Option<&T> {
    sorted.iter().zip(sorted.iter().skip(1)).find(|(a, b)| equal(a, b)).map(|(_, b)| b)
}
