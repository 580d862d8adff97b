//! `keyed_object_array_paths`: a list of objects told apart by a key. Items stay, in order; new ones come at the end;
//! what an item says does not change, except that a listed boolean may become true.

use core::cmp::Ordering;
use std::borrow::Cow;

use super::distinct::{all_distinct, is_after};
use super::path::RulePath;
use super::{Breach, Change, resolve};
use crate::display;
use crate::json::{self, Items, Kind, NodeIndex, Value};
use crate::ruling::Side;

#[derive(Debug, Clone)]
pub(super) struct KeyedArray {
    pub(super) path: RulePath,
    /// In normal form C, like every field name here.
    pub(super) key: String,
    pub(super) monotonic_booleans: Vec<String>,
    pub(super) allow_new_items: bool,
    pub(super) allow_new_fields: bool,
}

/// An array whose items are objects with keys of one type.
struct Keyed<'d> {
    array: Value<'d>,
    items: Items<'d>,
    /// The key of each item, by its place in the document.
    keys: Vec<NodeIndex>,
    key_kind: Option<KeyKind>,
}

impl<'d> Keyed<'d> {
    fn keys(&self) -> impl Iterator<Item = Value<'d>> {
        self.keys.iter().map(|key| self.array.elsewhere(*key))
    }
}

/// A field of an item, its name in normal form C.
type Field<'d> = (Cow<'d, str>, Value<'d>);

/// The types a key can have. `15` and `1.5e1` are of one type: the second is written as the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    String,
    Number,
    Boolean,
}

impl KeyKind {
    fn of(key: Value<'_>) -> Option<KeyKind> {
        match key.kind()? {
            Kind::String => Some(KeyKind::String),
            Kind::Integer | Kind::Number => Some(KeyKind::Number),
            Kind::Boolean => Some(KeyKind::Boolean),
            Kind::Null | Kind::Array | Kind::Object => None,
        }
    }
}

impl KeyedArray {
    pub(super) fn check<'d>(&self, change: Change<'d>) -> Result<(), Breach<'d>> {
        let values = resolve(&self.path, change)?;
        let current = self.keyed(Side::Current, values.current)?;
        let proposed = self.keyed(Side::Proposed, values.proposed)?;
        if let (Some(current_kind), Some(proposed_kind)) = (current.key_kind, proposed.key_kind)
            && current_kind != proposed_kind
        {
            return Err(Breach::of(proposed.array, self.about_key("values of another type than before")));
        }
        if !self.is_plainly_kept(&current, &proposed) {
            self.check_step_by_step(&current, &proposed)?;
        }
        let mut added = proposed.items;
        added.by_ref().take(current.items.len()).for_each(drop);
        added.try_for_each(|item| self.check_added(item))
    }

    /// The common case in one pass: keys that rise, the same first keys, the same fields in the same order. Everything
    /// else is for [`check_step_by_step`](KeyedArray::check_step_by_step), which also says what is wrong.
    fn is_plainly_kept(&self, current: &Keyed<'_>, proposed: &Keyed<'_>) -> bool {
        let count_is_allowed = match current.keys.len().cmp(&proposed.keys.len()) {
            Ordering::Less => self.allow_new_items,
            Ordering::Equal => true,
            Ordering::Greater => false,
        };
        let mut was = current.items.zip(current.keys());
        let mut previous: Option<Cow<'_, str>> = None;
        count_is_allowed
            && proposed.items.zip(proposed.keys()).all(|(item, key)| {
                let text = key_text(key);
                let rises = previous.as_ref().is_none_or(|previous| is_after(previous, &text));
                previous = Some(text);
                rises
                    && was
                        .next()
                        .is_none_or(|(was, was_key)| json::equal(was_key, key) && self.is_allowed_in_place(was, item))
            })
    }

    /// Each condition after the other, over all items.
    fn check_step_by_step<'d>(&self, current: &Keyed<'d>, proposed: &Keyed<'d>) -> Result<(), Breach<'d>> {
        self.check_distinct(Side::Proposed, proposed)?;
        let is_prefix = current.keys.len() <= proposed.keys.len()
            && current.keys().zip(proposed.keys()).all(|(current, proposed)| json::equal(current, proposed));
        if !is_prefix {
            // Keys that are the first of distinct ones are distinct; only here can the current state be at fault.
            self.check_distinct(Side::Current, current)?;
            return Err(Breach::of(proposed.array, "must preserve existing item order and prevent deletion"));
        }
        if !self.allow_new_items && proposed.items.len() > current.items.len() {
            return Err(Breach::of(proposed.array, "does not allow appending new items"));
        }
        current.items.zip(proposed.items).try_for_each(|(current, proposed)| self.check_item(current, proposed))
    }

    /// A new item may say what it likes, but a listed boolean that is none would block every later transition.
    fn check_added<'d>(&self, item: Value<'d>) -> Result<(), Breach<'d>> {
        let listed = self.monotonic_booleans.iter().filter_map(|field| item.get_normalized(field));
        match listed.into_iter().find(|field| field.as_bool().is_none()) {
            None => Ok(()),
            Some(field) => Err(Breach::unevaluable(Side::Proposed, field, "must be a boolean")),
        }
    }

    /// Reads one side: an array of objects, each with the key, all keys scalars of one type.
    fn keyed<'d>(&self, side: Side, array: Value<'d>) -> Result<Keyed<'d>, Breach<'d>> {
        let Some(items) = array.as_array() else {
            return Err(Breach::unevaluable(side, array, "must be an array"));
        };
        let (mut keys, mut key_kind) = (Vec::with_capacity(items.len()), None);
        for item in items {
            let Some(key) = item.get_normalized(&self.key) else {
                if item.as_object().is_none() {
                    return Err(Breach::unevaluable(side, item, "must be an object"));
                }
                let reason = format_args!("has no key field '{}'", display(&self.key));
                return Err(Breach::unevaluable(side, item, reason));
            };
            keys.push(key.index());
            let Some(kind) = KeyKind::of(key) else {
                return Err(Breach::unevaluable(side, key, "cannot serve as a key: it must be a scalar"));
            };
            if *key_kind.get_or_insert(kind) != kind {
                return Err(Breach::unevaluable(side, array, self.about_key("values of different types")));
            }
        }
        Ok(Keyed { array, items, keys, key_kind })
    }

    fn check_distinct<'d>(&self, side: Side, keyed: &Keyed<'d>) -> Result<(), Breach<'d>> {
        if all_distinct(keyed.keys.len(), || keyed.keys().map(key_text)) {
            return Ok(());
        }
        let reason = format!("{} contains duplicate '{}' values", keyed.array.path(), display(&self.key));
        Err(Breach { reason, at: Some((side, keyed.array)) })
    }

    fn is_monotonic_boolean(&self, name: &str) -> bool {
        self.monotonic_booleans.iter().any(|field| field == name)
    }

    fn check_item<'d>(&self, current: Value<'d>, proposed: Value<'d>) -> Result<(), Breach<'d>> {
        if self.is_allowed_in_place(current, proposed) {
            return Ok(());
        }
        // Both sides sorted by name, so that fields pair up in one pass whatever their order and number.
        let fields =
            |item: Value<'d>| item.members_in_canonical_order().map(|(name, value)| (name.nfc(), value)).peekable();
        let (mut was, mut becomes) = (fields(current), fields(proposed));
        loop {
            let order = match (was.peek(), becomes.peek()) {
                (Some((was, _)), Some((becomes, _))) => was.cmp(becomes),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Ok(()),
            };
            match order {
                Ordering::Less => self.check_field(proposed, was.next(), None)?,
                Ordering::Equal => self.check_field(proposed, was.next(), becomes.next())?,
                Ordering::Greater => self.check_field(proposed, None, becomes.next())?,
            }
        }
    }

    /// The common case without sorting: the same fields in the same order, each of them fine.
    fn is_allowed_in_place(&self, current: Value<'_>, proposed: Value<'_>) -> bool {
        let (Some(was), Some(becomes)) = (current.as_object(), proposed.as_object()) else { return false };
        was.len() == becomes.len()
            && was.zip(becomes).all(|((name, was), (new_name, becomes))| {
                name.text() == new_name.text()
                    && match (was.as_bool(), becomes.as_bool()) {
                        (Some(was), Some(becomes)) => {
                            was == becomes || becomes && self.is_monotonic_boolean(&name.nfc())
                        }
                        _ => json::equal(was, becomes) && !self.is_monotonic_boolean(&name.nfc()),
                    }
            })
    }

    /// One field of an existing item: on both sides, or on one.
    fn check_field<'d>(
        &self,
        item: Value<'d>,
        was: Option<Field<'d>>,
        becomes: Option<Field<'d>>,
    ) -> Result<(), Breach<'d>> {
        let Some(name) = was.as_ref().or(becomes.as_ref()).map(|(name, _)| name.clone()) else { return Ok(()) };
        let (was, becomes) = (was.map(|(_, value)| value), becomes.map(|(_, value)| value));
        if self.is_monotonic_boolean(&name) {
            for (side, value) in [(Side::Current, was), (Side::Proposed, becomes)] {
                if let Some(value) = value.filter(|value| value.as_bool().is_none()) {
                    return Err(Breach::unevaluable(side, value, "must be a boolean"));
                }
            }
        }
        match (was, becomes) {
            (Some(was), Some(becomes)) if self.is_monotonic_boolean(&name) => {
                match (was.as_bool(), becomes.as_bool()) {
                    (Some(true), Some(true)) | (Some(false), Some(_)) => Ok(()),
                    _ => Err(Breach::of(becomes, "regressed from True to False")),
                }
            }
            (Some(was), Some(becomes)) if json::equal(was, becomes) => Ok(()),
            (Some(_), Some(becomes)) => Err(Breach::of(becomes, "is immutable across state transitions")),
            (Some(was), None) if was.as_bool() == Some(true) && self.is_monotonic_boolean(&name) => {
                Err(absent(item, &name, "regressed from True to absent"))
            }
            (Some(_), None) => Err(absent(item, &name, "is immutable and may not be removed")),
            (None, Some(_)) if self.allow_new_fields => Ok(()),
            (None, Some(becomes)) => {
                Err(Breach::of(becomes, "is a new field of an existing item, which needs allow_new_fields"))
            }
            (None, None) => Ok(()),
        }
    }

    fn about_key(&self, what: &str) -> String {
        format!("contains '{}' {what}", display(&self.key))
    }
}

/// A breach about a field that is not there any more; it points at the item.
fn absent<'d>(item: Value<'d>, name: &str, reason: &str) -> Breach<'d> {
    let mut path = item.path();
    json::push_key(&mut path, name);
    Breach { reason: format!("{path} {reason}"), at: Some((Side::Proposed, item)) }
}

/// A text that two keys of one type share exactly when they are equal.
fn key_text(key: Value<'_>) -> Cow<'_, str> {
    match key.as_str() {
        Some(text) => text.nfc(),
        None => Cow::Owned(json::by_value(key)),
    }
}
