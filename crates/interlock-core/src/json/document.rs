//! A parsed text, and a cursor to read it.
//!
//! The tree is one flat list of nodes (`nodes.rs`). A container node knows where its contents end, so skipping a subtree is one step, dropping a document is freeing
//! three buffers however deep it nests, and the place of any node can be found again from its index alone.

use core::ops::Range;
use std::borrow::Cow;

use super::keys::KeyOrder;
use super::nodes::{Node, NodeIndex, NodeKind, Nodes, Style};
use super::number::Number;
use super::string::{Str, may_be_same, same_string};
use crate::display::is_visible;

/// A JSON text that passed every check of the parser. Its depth is bounded, so readers may recurse.
#[derive(Debug, Clone)]
pub struct Document<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) nodes: Vec<Node>,
    pub(super) unescaped: String,
}

/// The type of a value, in the words of JSON Schema; a number written as an integer is an `Integer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number written without point and exponent.
    Integer,
    /// Any other number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The type's name in JSON Schema.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "boolean",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }
}

impl<'t> Document<'t> {
    /// The outermost value.
    pub fn root(&self) -> Value<'_> {
        self.value(0)
    }

    /// The text this document was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A document that owns its text.
    pub fn into_owned(self) -> Document<'static> {
        Document { text: Cow::Owned(self.text.into_owned()), nodes: self.nodes, unescaped: self.unescaped }
    }

    #[inline]
    pub(crate) fn value(&self, index: NodeIndex) -> Value<'_> {
        Value { document: self, index }
    }

    #[inline]
    pub(super) fn nodes(&self) -> Nodes<'_> {
        Nodes { text: &self.text, unescaped: &self.unescaped, nodes: &self.nodes }
    }
}

/// One value of a document. Copying it copies an address.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d> {
    document: &'d Document<'d>,
    index: NodeIndex,
}

/// What a value holds, ready to match on.
#[derive(Debug, Clone, Copy)]
pub enum Content<'d> {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number of either kind.
    Number(Number<'d>),
    /// A string.
    String(Str<'d>),
    /// An array.
    Array(Items<'d>),
    /// An object.
    Object(Members<'d>),
}

impl<'d> Value<'d> {
    /// What the value holds; `None` where no value is, which no caller can reach through this interface.
    #[inline]
    pub fn content(&self) -> Option<Content<'d>> {
        let node = self.node();
        Some(match node.kind {
            NodeKind::Null => Content::Null,
            NodeKind::False => Content::Boolean(false),
            NodeKind::True => Content::Boolean(true),
            NodeKind::Integer | NodeKind::Decimal => Content::Number(self.document.nodes().number(node)),
            NodeKind::String => Content::String(self.string_of(node)),
            NodeKind::Array => Content::Array(self.items_of(node)),
            NodeKind::Object => Content::Object(self.members_of(node)),
            NodeKind::Missing => return None,
        })
    }

    /// The value's type.
    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        Some(match self.node().kind {
            NodeKind::Null => Kind::Null,
            NodeKind::False | NodeKind::True => Kind::Boolean,
            NodeKind::Integer => Kind::Integer,
            NodeKind::Decimal => Kind::Number,
            NodeKind::String => Kind::String,
            NodeKind::Array => Kind::Array,
            NodeKind::Object => Kind::Object,
            NodeKind::Missing => return None,
        })
    }

    /// The boolean, if it is one.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        let kind = self.node().kind;
        matches!(kind, NodeKind::True | NodeKind::False).then_some(kind == NodeKind::True)
    }

    /// The string, if it is one.
    #[inline]
    pub fn as_str(&self) -> Option<Str<'d>> {
        let node = self.node();
        (node.kind == NodeKind::String).then(|| self.string_of(node))
    }

    /// The number, if it is one.
    #[inline]
    pub fn as_number(&self) -> Option<Number<'d>> {
        let node = self.node();
        matches!(node.kind, NodeKind::Integer | NodeKind::Decimal).then(|| self.document.nodes().number(node))
    }

    /// The items, if it is an array.
    #[inline]
    pub fn as_array(&self) -> Option<Items<'d>> {
        let node = self.node();
        (node.kind == NodeKind::Array).then(|| self.items_of(node))
    }

    /// The members, if it is an object.
    #[inline]
    pub fn as_object(&self) -> Option<Members<'d>> {
        let node = self.node();
        (node.kind == NodeKind::Object).then(|| self.members_of(node))
    }

    /// The member with this key, compared after NFC, if the value is an object that has it.
    pub fn get(&self, key: &str) -> Option<Value<'d>> {
        // ASCII is its own normal form, and it is what nearly every reader asks for.
        if key.is_ascii() {
            return self.get_normalized(key);
        }
        self.as_object()?.find(|(name, _)| same_string(name, key)).map(|(_, value)| value)
    }

    /// The members of an object in the order of canonical text; none if it is no object.
    pub fn members_in_canonical_order(&self) -> CanonicalMembers<'d> {
        let node = self.node();
        let order = match (node.kind, node.style) {
            (NodeKind::Object, Style::SortedKeys) => CanonicalOrder::AsWritten(self.members_of(node)),
            (NodeKind::Object, _) => CanonicalOrder::Sorted(KeyOrder::of(self.document.nodes(), self.index), 0),
            _ => CanonicalOrder::AsWritten(Members { document: self.document, next: 0, left: 0 }),
        };
        CanonicalMembers { document: self.document, order }
    }

    /// [`get`](Value::get) for a key that is in normal form C already.
    pub(crate) fn get_normalized(&self, key: &str) -> Option<Value<'d>> {
        self.as_object()?
            .find(|(name, _)| {
                name.text() == key || (!name.is_plain() && may_be_same(name.text(), key) && name.nfc() == key)
            })
            .map(|(_, value)| value)
    }

    /// The path of this value, such as `$.tasks[0].done`.
    pub fn path(&self) -> String {
        let mut path = String::from("$");
        let mut at = self.document.root();
        // Descend into the child whose subtree holds the index; every node's subtree is a range of indices.
        while at.index != self.index {
            let holds =
                |child: Value<'_>| child.index <= self.index && self.index < self.document.nodes().after(child.index);
            let child = match at.content() {
                Some(Content::Array(items)) => {
                    items.enumerate().find(|(_, item)| holds(*item)).map(|(position, item)| {
                        path.push_str(&format!("[{position}]"));
                        item
                    })
                }
                Some(Content::Object(mut members)) => members.find(|(_, value)| holds(*value)).map(|(key, value)| {
                    push_key(&mut path, key.text());
                    value
                }),
                Some(Content::Null | Content::Boolean(_) | Content::Number(_) | Content::String(_)) | None => None,
            };
            match child {
                Some(child) => at = child,
                None => break,
            }
        }
        path
    }

    /// The bytes of the text this value was written with.
    pub fn span(&self) -> Range<usize> {
        let start = usize::try_from(self.node().start).unwrap_or(0);
        let rest = self.document.text.get(start..).unwrap_or("");
        start..start.saturating_add(source_len(rest))
    }

    /// The bytes of the key before it, if it is a member of an object: in the flat tree a key is the node before its
    /// value.
    pub fn key_span(&self) -> Range<usize> {
        self.elsewhere(self.index.saturating_sub(1)).span()
    }

    /// The text this value was written with.
    pub fn source(&self) -> &'d str {
        self.document.text.get(self.span()).unwrap_or("")
    }

    pub(super) fn is_root(&self) -> bool {
        self.index == 0
    }

    pub(super) fn document(&self) -> &'d Document<'d> {
        self.document
    }

    /// The value with this index in the same document.
    pub(crate) fn elsewhere(&self, index: NodeIndex) -> Value<'d> {
        self.document.value(index)
    }

    pub(crate) fn index(&self) -> NodeIndex {
        self.index
    }

    #[inline]
    fn node(&self) -> Node {
        self.document.nodes().node(self.index)
    }

    #[inline]
    fn string_of(&self, node: Node) -> Str<'d> {
        Str::new(self.document.nodes().contents(node), node.style == Style::Plain)
    }

    #[inline]
    fn items_of(&self, node: Node) -> Items<'d> {
        Items { document: self.document, next: self.index.saturating_add(1), left: node.first }
    }

    #[inline]
    fn members_of(&self, node: Node) -> Members<'d> {
        Members { document: self.document, next: self.index.saturating_add(1), left: node.first }
    }
}

/// Appends one object key to a path: `.name`, or `["odd name"]` for what dot notation cannot carry.
pub fn push_key(path: &mut String, key: &str) {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if plain && key.len() <= crate::display::DISPLAY_CHARS_MAX && key.chars().all(is_visible) {
        path.push('.');
        path.push_str(key);
    } else {
        path.push_str(&format!("[\"{}\"]", crate::display(key)));
    }
}

/// The length of the JSON value that `rest`, a part of an accepted text, begins with.
fn source_len(rest: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (offset, byte) in rest.bytes().enumerate() {
        let after = offset.saturating_add(1);
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => {
                in_string = !in_string;
                if !in_string && depth == 0 {
                    return after;
                }
            }
            _ if in_string => {}
            b'[' | b'{' => depth = depth.saturating_add(1),
            b']' | b'}' if depth == 0 => return offset,
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return after;
                }
            }
            b',' | b' ' | b'\t' | b'\n' | b'\r' | b':' if depth == 0 => return offset,
            _ => {}
        }
    }
    rest.len()
}

/// The items of an array, in order.
#[derive(Debug, Clone, Copy)]
pub struct Items<'d> {
    document: &'d Document<'d>,
    next: NodeIndex,
    left: u32,
}

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    #[inline]
    fn next(&mut self) -> Option<Value<'d>> {
        self.left = self.left.checked_sub(1)?;
        let item = self.document.value(self.next);
        self.next = self.document.nodes().after(self.next);
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Items<'_> {}

/// The members of an object, in the order of the text. No two keys are equal, before or after NFC.
#[derive(Debug, Clone, Copy)]
pub struct Members<'d> {
    document: &'d Document<'d>,
    next: NodeIndex,
    left: u32,
}

impl<'d> Iterator for Members<'d> {
    type Item = (Str<'d>, Value<'d>);

    #[inline]
    fn next(&mut self) -> Option<(Str<'d>, Value<'d>)> {
        self.left = self.left.checked_sub(1)?;
        let key = self.document.value(self.next);
        let value = self.document.value(self.next.saturating_add(1));
        self.next = self.document.nodes().after(value.index);
        Some((key.string_of(key.node()), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Members<'_> {}

/// The members of an object by normalised key, in code point order.
pub struct CanonicalMembers<'d> {
    document: &'d Document<'d>,
    order: CanonicalOrder<'d>,
}

enum CanonicalOrder<'d> {
    /// They stand in order.
    AsWritten(Members<'d>),
    /// They were put in order; the second is the position of the next one.
    Sorted(KeyOrder, usize),
}

impl<'d> Iterator for CanonicalMembers<'d> {
    type Item = (Str<'d>, Value<'d>);

    #[inline]
    fn next(&mut self) -> Option<(Str<'d>, Value<'d>)> {
        let index = match &mut self.order {
            CanonicalOrder::AsWritten(members) => return members.next(),
            CanonicalOrder::Sorted(order, position) => {
                let index = *order.as_slice().get(*position)?;
                *position = position.saturating_add(1);
                index
            }
        };
        let key = self.document.value(index);
        Some((key.string_of(key.node()), self.document.value(index.saturating_add(1))))
    }
}
