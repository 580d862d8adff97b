//! Examples, by name, from `examples.json`. A text `@name` stands for the example of that name; an object with a member
//! `@` is the one of that name with its other members in place of, or beside, those it has.

use std::borrow::Cow;
use std::collections::BTreeMap;

use interlock_core::json::{self, Limits, Value};

use super::{object, text};
use crate::schema::{Members, Node};

/// How deep examples may stand in each other.
const DEPTH_MAX: u32 = 8;

/// An example as a route shows it: its key, what it is, and its name.
pub(super) type Shown = (&'static str, &'static str, &'static str);

/// All examples there are.
pub(super) struct Examples(BTreeMap<String, Node>);

impl Examples {
    pub(super) fn read() -> Examples {
        let Ok(document) = json::parse(include_str!("examples.json"), &Limits::CONFIG) else {
            return Examples(BTreeMap::new());
        };
        let root = document.root();
        let members = root.as_object().into_iter().flatten();
        Examples(members.map(|(name, value)| (name.text().to_owned(), whole(root, value, DEPTH_MAX))).collect())
    }

    /// The example of a name; `null` if there is none.
    pub(super) fn named(&self, name: &str) -> Node {
        self.0.get(name).cloned().unwrap_or_else(|| Node::Raw("null".to_owned()))
    }

    /// What a route shows; nothing if it shows none.
    pub(super) fn shown(&self, shown: &[Shown]) -> Option<Node> {
        let example = |(key, summary, name): &Shown| {
            (Cow::from(*key), object([("summary", text(summary)), ("value", self.named(name))]))
        };
        (!shown.is_empty()).then(|| Node::Object(shown.iter().map(example).collect()))
    }
}

/// An example with whatever it names.
fn whole(root: Value<'_>, value: Value<'_>, depth: u32) -> Node {
    let Some(depth) = depth.checked_sub(1) else { return Node::Raw("null".to_owned()) };
    let named = |name: &str| root.get(name).map(|value| whole(root, value, depth));
    if let Some(written) = value.as_str() {
        let found = written.text().strip_prefix('@').and_then(named);
        return found.unwrap_or_else(|| Node::Text(written.text().to_owned().into()));
    }
    if let Some(items) = value.as_array() {
        return Node::List(items.map(|item| whole(root, item, depth)).collect());
    }
    let Some(members) = value.as_object() else { return Node::Raw(value.source().to_owned()) };
    let mut known = Members::new();
    for (key, member) in members {
        let key = key.text();
        let like = if key == "@" { member.as_str().and_then(|name| named(name.text())) } else { None };
        if let Some(Node::Object(like)) = like {
            known = like;
        } else {
            known.retain(|(name, _)| name != key);
            known.push((key.to_owned().into(), whole(root, member, depth)));
        }
    }
    Node::Object(known)
}
