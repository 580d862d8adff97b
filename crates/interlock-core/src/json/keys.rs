//! The keys of an object: no two may be equal, as written or after NFC; and the order canonical text has them in.
//!
//! Decided once per object, when it closes. Few keys are compared pairwise; many are sorted, never hashed, so that no
//! choice of keys makes it slow.

use core::cmp::Ordering;

use super::error::JsonErrorKind;
use super::nodes::{NodeIndex, Nodes, Style};
use super::string::nfc;

/// Up to this many keys are handled without allocating.
const FEW_MAX: usize = 8;

pub(super) struct Duplicate {
    pub(super) kind: JsonErrorKind,
    pub(super) offset: usize,
}

/// Refuses duplicates and says what is known of the keys. `scratch` is reused from object to object.
pub(super) fn check(nodes: Nodes<'_>, object: NodeIndex, scratch: &mut Vec<NodeIndex>) -> Result<Style, Duplicate> {
    let count = usize::try_from(nodes.node(object).first).unwrap_or(0);
    let style = style_of(nodes, object, count);
    if style == Style::SortedKeys {
        return Ok(style);
    }
    let mut few = [0; FEW_MAX];
    let keys = match few.get_mut(..count) {
        Some(few) => few,
        None => {
            scratch.resize(count, 0);
            scratch.as_mut_slice()
        }
    };
    list(nodes, object, keys);
    let as_written = if count <= FEW_MAX { find_pairwise(nodes, keys) } else { find_sorted(nodes, keys) };
    let (key, kind): (_, fn(String) -> JsonErrorKind) = match as_written {
        Some(key) => (key, JsonErrorKind::DuplicateKey),
        None if style == Style::PlainKeys => return Ok(style),
        None => match find_normalized(nodes, keys) {
            Some(key) => (key, JsonErrorKind::DuplicateNormalizedKey),
            None => return Ok(style),
        },
    };
    let node = nodes.node(key);
    let offset = usize::try_from(node.start).unwrap_or(0);
    Err(Duplicate { kind: kind(nodes.contents(node).to_owned()), offset })
}

/// What one pass over the keys shows. Keys in strict order hold no duplicate.
fn style_of(nodes: Nodes<'_>, object: NodeIndex, count: usize) -> Style {
    let (mut at, mut sorted, mut previous) = (object.saturating_add(1), true, None);
    for _ in 0..count {
        let node = nodes.node(at);
        if node.style != Style::Plain {
            return Style::AnyKeys;
        }
        if sorted {
            let name = nodes.content_bytes(node);
            sorted = previous.is_none_or(|previous| compare(previous, name).is_lt());
            previous = Some(name);
        }
        at = nodes.after(at.saturating_add(1));
    }
    if sorted { Style::SortedKeys } else { Style::PlainKeys }
}

/// Lists the key nodes of an object as they stand.
fn list(nodes: Nodes<'_>, object: NodeIndex, keys: &mut [NodeIndex]) {
    let mut at = object.saturating_add(1);
    for slot in keys {
        *slot = at;
        at = nodes.after(at.saturating_add(1));
    }
}

/// The key nodes of an object in canonical order: that of the normalised keys' code points, which is the order of their
/// UTF-8 bytes.
pub(super) enum KeyOrder {
    Two([NodeIndex; 2]),
    Few([NodeIndex; FEW_MAX], usize),
    Many(Vec<NodeIndex>),
}

impl KeyOrder {
    pub(super) fn of(nodes: Nodes<'_>, object: NodeIndex) -> KeyOrder {
        let node = nodes.node(object);
        if node.first == 2 && node.style == Style::PlainKeys {
            let first = object.saturating_add(1);
            return KeyOrder::Two([nodes.after(first.saturating_add(1)), first]);
        }
        let count = usize::try_from(node.first).unwrap_or(0);
        let mut few = [0; FEW_MAX];
        if let Some(keys) = few.get_mut(..count) {
            list_in_order(nodes, object, node.style, keys);
            return KeyOrder::Few(few, count);
        }
        let mut many = vec![0; count];
        list_in_order(nodes, object, node.style, &mut many);
        KeyOrder::Many(many)
    }

    pub(super) fn as_slice(&self) -> &[NodeIndex] {
        match self {
            KeyOrder::Two(keys) => keys,
            KeyOrder::Few(keys, count) => keys.get(..*count).unwrap_or(&[]),
            KeyOrder::Many(keys) => keys,
        }
    }
}

fn list_in_order(nodes: Nodes<'_>, object: NodeIndex, style: Style, keys: &mut [NodeIndex]) {
    list(nodes, object, keys);
    match style {
        Style::SortedKeys => {}
        Style::PlainKeys => keys.sort_unstable_by(|a, b| compare(name(nodes, *a), name(nodes, *b))),
        Style::None | Style::Plain | Style::Direct | Style::Escaped | Style::AnyKeys => {
            keys.sort_by_cached_key(|key| nfc(nodes.contents(nodes.node(*key))).into_owned());
        }
    }
}

/// Order of bytes, settled by the first ones where they differ.
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    match (left.first(), right.first()) {
        (Some(a), Some(b)) if a != b => a.cmp(b),
        _ => left.cmp(right),
    }
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
