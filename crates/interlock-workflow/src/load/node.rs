//! The tree that texts of every format become: values with the places they came from.
//!
//! Strings and keys are in normal form C and members in the order of their keys, so that what is read from the tree
//! does not depend on the format, nor on the order in which somebody wrote the members.

use core::ops::Range;

use interlock_core::json::{self, Json, nfc};

use super::Limits;
use super::problem::{Path, ProblemList, quoted};

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) value: NodeValue,
    pub(super) span: Range<usize>,
}

/// What a node holds.
#[derive(Debug, Clone)]
pub(super) enum NodeValue {
    Null,
    Bool(bool),
    /// Always a [`Json::Number`].
    Number(Json),
    String(String),
    Array(Vec<Node>),
    /// In the order of the keys, none twice.
    Object(Vec<Member>),
    /// Something that was refused already: nothing more is said about it.
    Refused,
}

/// A member of an object.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn string(text: &str, span: Range<usize>) -> Node {
        Node { value: NodeValue::String(nfc(text).into_owned()), span }
    }

    /// A number as the parser of JSON reads it, in its canonical spelling: `1e3` and `1E+3` are one literal, as they are
    /// in the canonical text. `None` for what that parser does not take for a number.
    pub(super) fn number(literal: &str, span: Range<usize>, limits: &Limits) -> Option<Node> {
        let document = json::parse(literal, &limits.of_json()).ok()?;
        let canonical = document.root().as_number()?.canonical();
        let document = json::parse(&canonical, &limits.of_json()).ok()?;
        Some(Node { value: NodeValue::Number(Json::of(document.root())), span })
    }

    pub(super) fn refused(span: Range<usize>) -> Node {
        Node { value: NodeValue::Refused, span }
    }

    /// An object. Keys that are one key after normalisation are told of; the first stays.
    pub(super) fn object(
        mut members: Vec<Member>,
        span: Range<usize>,
        path: &Path<'_>,
        errors: &mut ProblemList,
    ) -> Node {
        for member in &mut members {
            if let std::borrow::Cow::Owned(key) = nfc(&member.key) {
                member.key = key;
            }
        }
        members.sort_by(|a, b| (&a.key, a.key_span.start).cmp(&(&b.key, b.key_span.start)));
        members.dedup_by(|later, first| {
            let same = later.key == first.key;
            if same {
                let message = format!("the key {} stands twice", quoted(&later.key));
                errors.add(&later.key_span, &path.key(&later.key), message);
            }
            same
        });
        Node { value: NodeValue::Object(members), span }
    }

    /// What it is, for a message.
    pub(super) fn kind(&self) -> &'static str {
        match &self.value {
            NodeValue::Null => "null",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::String(_) => "a string",
            NodeValue::Array(_) => "a list",
            NodeValue::Object(_) => "an object",
            NodeValue::Refused => "something that was refused",
        }
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self.value, NodeValue::Refused)
    }

    /// The value without places. As deep as the document, which is limited.
    pub(super) fn to_json(&self) -> Json {
        match &self.value {
            NodeValue::Null | NodeValue::Refused => Json::Null,
            NodeValue::Bool(boolean) => Json::Bool(*boolean),
            NodeValue::Number(number) => number.clone(),
            NodeValue::String(text) => Json::String(text.clone()),
            NodeValue::Array(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            NodeValue::Object(members) => {
                Json::Object(members.iter().map(|member| (member.key.clone(), member.value.to_json())).collect())
            }
        }
    }
}
