//! The flat list of nodes behind a document, and how to walk it.

use super::number::Number;

/// Sixteen bytes for each value and each object key, in the order of the text. A key's node stands right before its
/// value's; a container's contents stand right after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// What is known of a string's contents or an object's keys.
    pub(super) style: Style,
    /// Offset of the value's first byte in the text.
    pub(super) start: u32,
    /// String: offset of the contents. Container: number of items or members.
    pub(super) first: u32,
    /// String and number: length. Container: index of the node after its last descendant.
    pub(super) second: u32,
}

/// The place of a node in its document.
pub(crate) type NodeIndex = u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    Null,
    False,
    True,
    Integer,
    Decimal,
    String,
    Array,
    Object,
    /// Read where no node is; of no JSON type, so that nothing accepts it.
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Nothing is known; every value but strings and objects.
    None,
    /// A string of printable ASCII without quotes or backslashes: its contents are its canonical text.
    Plain,
    /// A string whose contents are a part of the text.
    Direct,
    /// A string whose contents are a part of the unescaped buffer.
    Escaped,
    /// An object whose keys are plain and stand in canonical order.
    SortedKeys,
    /// An object whose keys are plain and stand in another order.
    PlainKeys,
    /// An object with other keys.
    AnyKeys,
}

const MISSING: Node = Node { kind: NodeKind::Missing, style: Style::None, start: 0, first: 0, second: 0 };

/// The nodes with the two buffers they point into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nodes<'a> {
    pub(super) text: &'a str,
    /// The contents of strings that were written with escapes, one after the other.
    pub(super) unescaped: &'a str,
    pub(super) nodes: &'a [Node],
}

impl<'a> Nodes<'a> {
    #[inline]
    pub(super) fn get(&self, index: NodeIndex) -> Option<Node> {
        usize::try_from(index).ok().and_then(|index| self.nodes.get(index)).copied()
    }

    #[inline]
    pub(super) fn node(&self, index: NodeIndex) -> Node {
        self.get(index).unwrap_or(MISSING)
    }

    /// The node after a value and everything in it.
    #[inline]
    pub(super) fn after(&self, index: NodeIndex) -> NodeIndex {
        let node = self.node(index);
        match node.kind {
            NodeKind::Array | NodeKind::Object => node.second,
            NodeKind::Null
            | NodeKind::False
            | NodeKind::True
            | NodeKind::Integer
            | NodeKind::Decimal
            | NodeKind::String
            | NodeKind::Missing => index.saturating_add(1),
        }
    }

    #[inline]
    pub(super) fn number(&self, node: Node) -> Number<'a> {
        Number::new(slice(self.text, node.start, node.second), node.kind == NodeKind::Integer)
    }

    /// The contents of a string.
    #[inline]
    pub(super) fn contents(&self, node: Node) -> &'a str {
        slice(self.buffer(node), node.first, node.second)
    }

    /// The contents of a string as bytes, for comparing.
    #[inline]
    pub(super) fn content_bytes(&self, node: Node) -> &'a [u8] {
        byte_slice(self.buffer(node), node.first, node.second)
    }

    /// A plain string with the quotes around it.
    #[inline]
    pub(super) fn quoted(&self, node: Node) -> &'a [u8] {
        byte_slice(self.text, node.start, node.second.saturating_add(2))
    }

    #[inline]
    fn buffer(&self, node: Node) -> &'a str {
        match node.style {
            Style::Escaped => self.unescaped,
            Style::Plain | Style::Direct | Style::None | Style::SortedKeys | Style::PlainKeys | Style::AnyKeys => {
                self.text
            }
        }
    }
}

#[inline]
fn slice(text: &str, start: u32, length: u32) -> &str {
    text.get(range(start, length)).unwrap_or("")
}

#[inline]
fn byte_slice(text: &str, start: u32, length: u32) -> &[u8] {
    text.as_bytes().get(range(start, length)).unwrap_or(&[])
}

#[inline]
fn range(start: u32, length: u32) -> core::ops::Range<usize> {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    start..start.saturating_add(usize::try_from(length).unwrap_or(0))
}
