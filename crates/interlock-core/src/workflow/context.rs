//! What a run knows: an object, which guards look into and events add to.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::{self, Json, Limits};

/// How long one byte of a key can become in canonical text.
const ESCAPED: usize = 6;
/// So many bytes of a key are in its mark.
const MARKED: usize = 15;
/// So few members are looked through one by one: most keys differ in length already.
const FEW: usize = 16;

/// The members of an object, in order of key. It is written as its canonical text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    members: Vec<Member>,
    /// The length of the canonical text, or more.
    len_at_most: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    mark: KeyMark,
    key: String,
    value: Json,
    /// The length of the value's canonical text, or more.
    len_at_most: usize,
}

/// The beginning and the length of a key in one number. It tells most keys apart, and of short ones everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyMark(u128);

impl KeyMark {
    /// The mark of [`OBSERVED`](super::guard::OBSERVED).
    pub(super) const OBSERVED: KeyMark = KeyMark(u128::from_be_bytes(*b"observed\0\0\0\0\0\0\0\x08"));

    /// The mark of a key.
    pub(super) fn of(key: &str) -> KeyMark {
        let mut bytes = [0; MARKED + 1];
        if let Some((len, start)) = bytes.split_last_mut() {
            *len = u8::try_from(key.len()).unwrap_or(u8::MAX);
            start.iter_mut().zip(key.bytes()).for_each(|(to, byte)| *to = byte);
        }
        KeyMark(u128::from_be_bytes(bytes))
    }

    /// Whether another key with the same mark is the same key.
    fn tells_all(self) -> bool {
        let [len, ..] = self.0.to_le_bytes();
        usize::from(len) <= MARKED
    }
}

impl Member {
    fn new(key: String, value: Json) -> Member {
        let (mark, len_at_most) = (KeyMark::of(&key), value.len_at_most());
        Member { mark, key, value, len_at_most }
    }

    /// The length in canonical text with its key, or more.
    fn len_with_key(&self) -> usize {
        self.key.len().saturating_mul(ESCAPED).saturating_add(self.len_at_most).saturating_add(4)
    }

    #[inline]
    fn is(&self, mark: KeyMark, key: &str) -> bool {
        self.mark == mark && (mark.tells_all() || self.key == key)
    }
}

impl Default for Context {
    fn default() -> Context {
        Context { members: Vec::new(), len_at_most: "{}".len() }
    }
}

impl From<BTreeMap<String, Json>> for Context {
    fn from(members: BTreeMap<String, Json>) -> Context {
        let members: Vec<Member> = members.into_iter().map(|(key, value)| Member::new(key, value)).collect();
        let len_at_most = members.iter().map(Member::len_with_key).fold("{}".len(), usize::saturating_add);
        Context { members, len_at_most }
    }
}

impl Context {
    /// What is under a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.get_marked(KeyMark::of(key), key)
    }

    /// The same, with the key's mark at hand.
    #[inline]
    pub(super) fn get_marked(&self, mark: KeyMark, key: &str) -> Option<&Json> {
        if self.members.len() <= FEW {
            return self.members.iter().find(|member| member.is(mark, key)).map(|member| &member.value);
        }
        self.get_among_many(key)
    }

    #[inline(never)]
    fn get_among_many(&self, key: &str) -> Option<&Json> {
        let at = self.members.binary_search_by(|member| member.key.as_str().cmp(key)).ok()?;
        self.members.get(at).map(|member| &member.value)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members by key.
    pub fn to_map(&self) -> BTreeMap<String, Json> {
        self.members.iter().map(|member| (member.key.clone(), member.value.clone())).collect()
    }

    /// The canonical text.
    pub fn text(&self) -> String {
        Json::Object(self.to_map()).canonical()
    }

    /// The length of the canonical text, or more.
    pub(super) fn len_at_most(&self) -> usize {
        self.len_at_most
    }

    /// With what came later on top: shallow.
    pub fn merge(&mut self, data: &Context) {
        // Both are in order of key, so one look along both finds what is known already.
        let mut known = self.members.iter_mut();
        for (looked_at, new) in data.members.iter().enumerate() {
            let Some(known) = known.find(|known| known.is(new.mark, &new.key)) else {
                return self.add(data.members.iter().skip(looked_at));
            };
            known.value.become_like(&new.value);
            let without = self.len_at_most.saturating_sub(known.len_at_most);
            self.len_at_most = without.saturating_add(new.len_at_most);
            known.len_at_most = new.len_at_most;
        }
    }

    /// The same for members some of whose keys are not known yet.
    #[cold]
    fn add<'a>(&mut self, members: impl Iterator<Item = &'a Member>) {
        let mut all: BTreeMap<String, Json> = core::mem::take(self).into_map();
        all.extend(members.map(|member| (member.key.clone(), member.value.clone())));
        *self = Context::from(all);
    }

    fn into_map(self) -> BTreeMap<String, Json> {
        self.members.into_iter().map(|member| (member.key, member.value)).collect()
    }
}

impl Serialize for Context {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Context {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Context, D::Error> {
        let text = String::deserialize(deserializer)?;
        let document = json::parse(&text, &Limits::CONFIG).map_err(de::Error::custom)?;
        match Json::of(document.root()) {
            Json::Object(members) => Ok(Context::from(members)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                Err(de::Error::custom("a context is an object"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(members: &[(&str, &str)]) -> Context {
        let members = members.iter().map(|(key, value)| ((*key).to_owned(), Json::from(*value)));
        Context::from(members.collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn what_came_later_is_on_top_in_order_and_as_long_as_if_it_had_come_at_once() {
        let many: Vec<(String, String)> = (0..40).map(|n| (format!("k{n:02}"), "x".repeat(n))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        for (before, later) in [
            (context(&[]), context(&[("a", "1")])),
            (context(&[("b", "1")]), context(&[("a", "2"), ("b", "a longer one"), ("c", "3")])),
            (context(&[("a", "1"), ("c", "3")]), context(&[("b", "2")])),
            (context(&[("k05", "else"), ("zz", "last")]), context(&many)),
        ] {
            let mut merged = before.clone();
            merged.merge(&later);
            let mut map = before.to_map();
            map.extend(later.to_map());
            assert_eq!(merged, Context::from(map.clone()), "members, order and length");
            assert!(merged.text().len() <= merged.len_at_most());
            for (key, value) in &map {
                assert_eq!(merged.get(key), Some(value));
            }
            assert_eq!(merged.get("no such key"), None);
        }
    }

    #[test]
    fn keys_that_begin_alike_are_told_apart() {
        let keys = ["a", "a\0", "a_key_of_fifteen", "a_key_of_fifteen_and_more", "a_key_of_fifteen_and_less", "é"];
        let context = context(&keys.map(|key| (key, key)));
        for key in keys {
            assert_eq!(context.get(key), Some(&Json::from(key)));
        }
        let long = "k".repeat(300);
        assert_ne!(KeyMark::of(&long), KeyMark::of("kkk"));
        assert!(!KeyMark::of(&long).tells_all());
        assert_eq!(KeyMark::of(super::super::OBSERVED), KeyMark::OBSERVED);
    }
}
