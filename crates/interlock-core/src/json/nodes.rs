//! The flat list of nodes behind a document, and how to walk it.

use super::number::Number;

/// Sixteen bytes for each value and each object key, in the order of the text. A key's node stands right before its
/// value's; a container's contents stand right after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// For strings: how the contents are stored and what they hold.
    pub(super) style: StringStyle,
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
pub(super) enum StringStyle {
    /// Printable ASCII without quotes or backslashes: its contents are its canonical text.
    Plain,
    /// Contents are a part of the text.
    Direct,
    /// Contents are a part of the unescaped buffer.
    Escaped,
}

const MISSING: Node = Node { kind: NodeKind::Missing, style: StringStyle::Direct, start: 0, first: 0, second: 0 };

/// The nodes with the two buffers they point into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nodes<'a> {
    pub(super) text: &'a str,
    /// The contents of strings that were written with escapes, one after the other.
    pub(super) unescaped: &'a str,
    pub(super) nodes: &'a [Node],
}

impl<'a> Nodes<'a> {
    pub(super) fn get(&self, index: NodeIndex) -> Option<Node> {
        usize::try_from(index).ok().and_then(|index| self.nodes.get(index)).copied()
    }

    pub(super) fn node(&self, index: NodeIndex) -> Node {
        self.get(index).unwrap_or(MISSING)
    }

    /// The node after a value and everything in it.
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

    pub(super) fn number(&self, node: Node) -> Number<'a> {
        Number::new(slice(self.text, node.start, node.second))
    }

    /// The contents of a string.
    pub(super) fn contents(&self, node: Node) -> &'a str {
        slice(self.buffer(node), node.first, node.second)
    }

    /// The contents of a string as bytes, for comparing.
    pub(super) fn content_bytes(&self, node: Node) -> &'a [u8] {
        byte_slice(self.buffer(node), node.first, node.second)
    }

    /// A plain string with the quotes around it.
    pub(super) fn quoted(&self, node: Node) -> &'a [u8] {
        byte_slice(self.text, node.start, node.second.saturating_add(2))
    }

    fn buffer(&self, node: Node) -> &'a str {
        match node.style {
            StringStyle::Plain | StringStyle::Direct => self.text,
            StringStyle::Escaped => self.unescaped,
        }
    }
}

fn slice(text: &str, start: u32, length: u32) -> &str {
    text.get(range(start, length)).unwrap_or("")
}

fn byte_slice(text: &str, start: u32, length: u32) -> &[u8] {
    text.as_bytes().get(range(start, length)).unwrap_or(&[])
}

fn range(start: u32, length: u32) -> core::ops::Range<usize> {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    start..start.saturating_add(usize::try_from(length).unwrap_or(0))
}
