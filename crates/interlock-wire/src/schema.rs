//! What the description of the service says about a value: JSON Schema, put together from the wire types.
//!
//! A schema that has a name stands once among the components of the document; where it is used it is a reference, which
//! knows how to make what it refers to. So a document holds what its routes lead to, and nothing else.

use std::borrow::Cow;
use std::fmt::Display;

use interlock_core::json::RawJson;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// What a text that is not blank has.
pub(crate) const NOT_BLANK: &str = r"[^\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";
/// The most that anything may cost, in dollars.
pub(crate) const DOLLARS_MAX: u64 = 1_000_000_000;
/// The most that is counted: beyond, numbers are not the same to all readers.
pub(crate) const COUNT_MAX: u64 = 1 << 53;

/// A part of the document.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// JSON already.
    Raw(String),
    Text(Cow<'static, str>),
    List(Vec<Node>),
    Object(Members),
    /// The place of a schema among the components.
    Reference(Named),
}

/// The members of an object, in their order.
pub(crate) type Members = Vec<(Cow<'static, str>, Node)>;

/// A schema with a name of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Schema,
}

/// A schema, as its members.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema(Vec<(&'static str, Node)>);

/// The schema of an object, while it can still be narrowed to one of its forms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object {
    title: Option<&'static str>,
    may_be_null: bool,
    closed: bool,
    /// `null` counts as absent.
    is_request: bool,
    members: Vec<Member>,
}

#[derive(Debug, Clone)]
struct Member {
    name: &'static str,
    presence: Presence,
    schema: Schema,
}

/// When a member is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    /// Always, and it may be `null`.
    Nullable,
    Optional,
}

/// What has a schema.
pub(crate) trait Described {
    /// The schema where a value of this type stands.
    fn schema() -> Schema;
}

impl Described for String {
    fn schema() -> Schema {
        text()
    }
}

impl Described for bool {
    fn schema() -> Schema {
        Schema::of_type("boolean")
    }
}

impl Described for u64 {
    fn schema() -> Schema {
        integer().min(0)
    }
}

impl Described for RawJson {
    fn schema() -> Schema {
        any()
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema() -> Schema {
        list(T::schema())
    }
}

/// The schema of a type, where a value of it stands.
pub(crate) fn of<T: Described>() -> Schema {
    T::schema()
}

/// Whatever there is.
pub(crate) fn any() -> Schema {
    Schema::default()
}

pub(crate) fn text() -> Schema {
    Schema::of_type("string")
}

pub(crate) fn integer() -> Schema {
    Schema::of_type("integer")
}

pub(crate) fn number() -> Schema {
    Schema::of_type("number")
}

pub(crate) fn dollars() -> Schema {
    number().min(0)
}

pub(crate) fn null() -> Schema {
    Schema::of_type("null")
}

/// Some object, with whatever members.
pub(crate) fn map() -> Schema {
    Schema::of_type("object")
}

/// Some list, of whatever.
pub(crate) fn array() -> Schema {
    Schema::of_type("array")
}

pub(crate) fn list(items: impl Into<Schema>) -> Schema {
    array().with("items", items.into().node())
}

/// One value alone.
pub(crate) fn only(value: &'static str) -> Schema {
    any().with("const", Node::Text(value.into()))
}

/// One value alone, as JSON.
pub(crate) fn only_json(value: impl Display) -> Schema {
    any().with("const", Node::Raw(value.to_string()))
}

/// One of a few words.
pub(crate) fn words(words: impl IntoIterator<Item = &'static str>) -> Schema {
    text().one_of(words)
}

/// A trust level, written as an integer.
pub(crate) fn level() -> Schema {
    integer().with("enum", Node::List((0..=3).map(|level| Node::Raw(level.to_string())).collect()))
}

pub(crate) fn one_of(forms: impl IntoIterator<Item = Schema>) -> Schema {
    any().with("oneOf", Node::List(forms.into_iter().map(Schema::node).collect()))
}

pub(crate) fn any_of(forms: impl IntoIterator<Item = Schema>) -> Schema {
    any().with("anyOf", Node::List(forms.into_iter().map(Schema::node).collect()))
}

/// The members of an answer.
pub(crate) fn answer() -> Object {
    Object { closed: true, ..Object::default() }
}

/// The members of an answer that may come to have others.
pub(crate) fn open() -> Object {
    Object::default()
}

/// The members of a request.
pub(crate) fn request() -> Object {
    Object { closed: true, is_request: true, ..Object::default() }
}

impl Schema {
    fn of_type(word: &'static str) -> Schema {
        any().with("type", Node::Text(word.into()))
    }

    pub(crate) fn reference(named: Named) -> Schema {
        any().with("$ref", Node::Reference(named))
    }

    /// A place within a schema that has a name.
    pub(crate) fn reference_to_member(place: &'static str) -> Schema {
        any().with("$ref", Node::Text(place.into()))
    }

    /// The same with this member, in place of one of the same name.
    pub(crate) fn with(mut self, key: &'static str, node: Node) -> Schema {
        self.0.retain(|(known, _)| *known != key);
        self.0.push((key, node));
        self
    }

    fn raw(self, key: &'static str, value: impl Display) -> Schema {
        self.with(key, Node::Raw(value.to_string()))
    }

    fn member(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, node)| node)
    }

    /// The lines of a doc comment as one text. Without any, what is said already stands.
    pub(crate) fn described(self, lines: &[&str]) -> Schema {
        let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        let text = lines.join(" ");
        if text.is_empty() { self } else { self.with("description", Node::Text(text.into())) }
    }

    pub(crate) fn titled(self, title: &'static str) -> Schema {
        self.with("title", Node::Text(title.into()))
    }

    pub(crate) fn one_of(self, words: impl IntoIterator<Item = &'static str>) -> Schema {
        self.with("enum", Node::List(words.into_iter().map(|word| Node::Text(word.into())).collect()))
    }

    pub(crate) fn min(self, least: impl Display) -> Schema {
        self.raw("minimum", least)
    }

    pub(crate) fn max(self, most: impl Display) -> Schema {
        self.raw("maximum", most)
    }

    pub(crate) fn min_length(self, least: usize) -> Schema {
        self.raw("minLength", least)
    }

    pub(crate) fn max_length(self, most: usize) -> Schema {
        self.raw("maxLength", most)
    }

    pub(crate) fn length(self, exact: usize) -> Schema {
        self.min_length(exact).max_length(exact)
    }

    pub(crate) fn min_items(self, least: usize) -> Schema {
        self.raw("minItems", least)
    }

    pub(crate) fn max_items(self, most: usize) -> Schema {
        self.raw("maxItems", most)
    }

    pub(crate) fn pattern(self, pattern: &'static str) -> Schema {
        self.with("pattern", Node::Text(pattern.into()))
    }

    pub(crate) fn format(self, format: &'static str) -> Schema {
        self.with("format", Node::Text(format.into()))
    }

    /// What it is if it is not given, as JSON.
    pub(crate) fn or_else(self, value: impl Display) -> Schema {
        self.raw("default", value)
    }

    pub(crate) fn example(self, example: &'static str) -> Schema {
        self.with("examples", Node::List(vec![Node::Text(example.into())]))
    }

    /// The members of a map by name, and what they are.
    pub(crate) fn of_members(self, names: impl Into<Schema>, values: impl Into<Schema>) -> Schema {
        self.with("propertyNames", names.into().node()).with("additionalProperties", values.into().node())
    }

    /// A map that may have any members.
    pub(crate) fn of_anything(self) -> Schema {
        self.raw("additionalProperties", true)
    }

    /// The same, or `null`. What is named says itself whether it may be.
    pub(crate) fn or_null(self) -> Schema {
        let null = || Node::Text("null".into());
        let Some(Node::Text(word)) = self.member("type").cloned() else { return self };
        if word == "null" {
            return self;
        }
        let listed = self.member("enum").cloned();
        let either = self.with("type", Node::List(vec![Node::Text(word), null()]));
        match listed {
            Some(Node::List(mut listed)) => {
                listed.push(Node::Raw("null".to_owned()));
                either.with("enum", Node::List(listed))
            }
            _ => either,
        }
    }

    pub(crate) fn node(self) -> Node {
        Node::Object(self.0.into_iter().map(|(key, node)| (key.into(), node)).collect())
    }
}

impl Object {
    /// The same with this member, in place of one of the same name.
    pub(crate) fn member(
        mut self,
        name: &'static str,
        presence: Presence,
        lines: &[&str],
        schema: impl Into<Schema>,
    ) -> Object {
        let member = Member { name, presence, schema: schema.into().described(lines) };
        match self.members.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = member,
            None => self.members.push(member),
        }
        self
    }

    /// The same, where this member is always there, and is this.
    pub(crate) fn always(self, name: &'static str, line: &str, schema: impl Into<Schema>) -> Object {
        self.member(name, Presence::Always, &[line], schema)
    }

    /// The same, where this member may be there, and is this.
    pub(crate) fn maybe(self, name: &'static str, line: &str, schema: impl Into<Schema>) -> Object {
        self.member(name, Presence::Optional, &[line], schema)
    }

    /// The form that has these members always.
    pub(crate) fn requiring(mut self, names: &[&str]) -> Object {
        for member in self.members.iter_mut().filter(|member| names.contains(&member.name)) {
            member.presence = Presence::Always;
        }
        self
    }

    /// The form that never has these members.
    pub(crate) fn without(mut self, names: &[&str]) -> Object {
        self.members.retain(|member| !names.contains(&member.name));
        self
    }

    pub(crate) fn titled(self, title: &'static str) -> Object {
        Object { title: Some(title), ..self }
    }

    pub(crate) fn or_null(self) -> Object {
        Object { may_be_null: true, ..self }
    }
}

impl From<Object> for Schema {
    fn from(object: Object) -> Schema {
        let always = object.members.iter().filter(|member| member.presence != Presence::Optional);
        let required: Vec<Node> = always.map(|member| Node::Text(member.name.into())).collect();
        let members = object.members.into_iter().map(|Member { name, presence, schema }| {
            let may_be_null = match presence {
                Presence::Always => false,
                Presence::Nullable => true,
                Presence::Optional => object.is_request,
            };
            (name.into(), if may_be_null { schema.or_null() } else { schema }.node())
        });
        let mut schema = if object.may_be_null { map().or_null() } else { map() };
        schema = schema.with("properties", Node::Object(members.collect()));
        if let Some(title) = object.title {
            schema = schema.titled(title);
        }
        if !required.is_empty() {
            schema = schema.with("required", Node::List(required));
        }
        if object.closed { schema.raw("additionalProperties", false) } else { schema }
    }
}

impl Node {
    /// Whatever is named in here, once for each place.
    pub(crate) fn references(&self, found: &mut Vec<Named>) {
        match self {
            Node::Raw(_) | Node::Text(_) => {}
            Node::List(items) => items.iter().for_each(|item| item.references(found)),
            Node::Object(members) => members.iter().for_each(|(_, member)| member.references(found)),
            Node::Reference(named) => found.push(*named),
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Raw(json) => serializer.serialize_bytes(json.as_bytes()),
            Node::Text(text) => serializer.serialize_str(text),
            Node::List(items) => serializer.collect_seq(items),
            Node::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, member) in members {
                    map.serialize_entry(key, member)?;
                }
                map.end()
            }
            Node::Reference(named) => serializer.collect_str(&format_args!("#/components/schemas/{}", named.name)),
        }
    }
}
