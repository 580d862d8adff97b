//! What a state may look like: a strict subset of JSON Schema, compiled once.
//!
//! [`load`](Schema::load) resolves and checks everything a schema says; a keyword it does not know, or that cannot
//! apply to the declared type, is an error there and never ignored. [`check`](Schema::check) then only walks.

mod check;
mod load;
mod pattern;

use std::sync::Arc;

use crate::json::{Document, Kind, NodeIndex, Value, ValueList};

pub use check::Violation;
pub use load::SchemaError;

/// A compiled schema.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The schema as it was given; constants and enum values are compared where they stand.
    source: Arc<Document<'static>>,
    root: Rule,
}

/// What one value must be.
#[derive(Debug, Clone)]
struct Rule {
    shape: Shape,
    one_of: Option<OneOf>,
    /// The `const` value in the source.
    constant: Option<NodeIndex>,
}

/// The `enum` of a rule: the array in the source, and its values ready to be found.
#[derive(Debug, Clone)]
struct OneOf {
    source: NodeIndex,
    values: ValueList,
}

/// The seven types, each with the keywords that apply to it.
#[derive(Debug, Clone)]
enum Shape {
    Object(ObjectRule),
    Array(ArrayRule),
    String(StringRule),
    Integer(Bounds),
    Number(Bounds),
    Boolean,
    Null,
}

#[derive(Debug, Clone)]
struct ObjectRule {
    /// As declared, which is the order most states come in.
    properties: Vec<Property>,
    /// Positions in `properties`, sorted by name.
    by_name: Vec<usize>,
    required_count: usize,
    /// Whether keys that are not among the properties pass.
    open: bool,
}

#[derive(Debug, Clone)]
struct Property {
    /// In normal form C.
    name: String,
    required: bool,
    rule: Rule,
}

#[derive(Debug, Clone)]
struct ArrayRule {
    items: Box<Rule>,
    count: LengthRange,
    unique: bool,
}

#[derive(Debug, Clone)]
struct StringRule {
    /// In characters of the normalised text.
    length: LengthRange,
    /// Boxed: its table would make every rule as large as itself.
    pattern: Option<Box<pattern::Pattern>>,
}

/// Absent bounds are the widest ones.
#[derive(Debug, Clone, Copy)]
struct LengthRange {
    min: usize,
    max: usize,
}

/// The bounds of a number, as numbers in the source.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    minimum: Option<NodeIndex>,
    maximum: Option<NodeIndex>,
    exclusive_minimum: Option<NodeIndex>,
    exclusive_maximum: Option<NodeIndex>,
}

/// What a schema says about one path, for those who check configurations.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'s> {
    schema: &'s Schema,
    rule: &'s Rule,
    /// Whether every object on the way must have the key that leads on.
    pub always_present: bool,
}

impl Schema {
    /// The schema as it was given.
    pub fn source(&self) -> &Document<'static> {
        &self.source
    }

    /// What the schema says about the root.
    pub fn expected(&self) -> Expected<'_> {
        Expected { schema: self, rule: &self.root, always_present: true }
    }

    fn source_value(&self, index: NodeIndex) -> Value<'_> {
        self.source.value(index)
    }
}

/// What a schema says about one member of an object.
#[derive(Debug, Clone, Copy)]
pub enum ExpectedMember<'s> {
    /// It is declared.
    Declared(Expected<'s>),
    /// Not declared, but the object is open: it may hold anything.
    Undeclared,
    /// No accepted state can have it.
    Impossible,
}

impl<'s> Expected<'s> {
    /// The declared type.
    pub fn kind(&self) -> Kind {
        match self.rule.shape {
            Shape::Object(_) => Kind::Object,
            Shape::Array(_) => Kind::Array,
            Shape::String(_) => Kind::String,
            Shape::Integer(_) => Kind::Integer,
            Shape::Number(_) => Kind::Number,
            Shape::Boolean => Kind::Boolean,
            Shape::Null => Kind::Null,
        }
    }

    /// What is said about a member; nothing but an object has any.
    pub fn member(&self, name: &str) -> ExpectedMember<'s> {
        let Shape::Object(object) = &self.rule.shape else { return ExpectedMember::Impossible };
        match object.property(name) {
            Some(property) => ExpectedMember::Declared(Expected {
                schema: self.schema,
                rule: &property.rule,
                always_present: self.always_present && property.required,
            }),
            None if object.open => ExpectedMember::Undeclared,
            None => ExpectedMember::Impossible,
        }
    }

    /// What is said about the items of an array.
    pub fn items(&self) -> Option<Expected<'s>> {
        let Shape::Array(array) = &self.rule.shape else { return None };
        Some(Expected { schema: self.schema, rule: &array.items, always_present: true })
    }

    /// Whether this one value would be accepted here.
    pub fn accepts(&self, value: Value<'_>) -> bool {
        self.schema.accepts(self.rule, value)
    }
}

impl ObjectRule {
    /// The property with this (normalised) name.
    fn property(&self, name: &str) -> Option<&Property> {
        self.property_near(name, &mut 0)
    }

    /// The same, looking first at `position`, which is left behind the property that was found.
    fn property_near(&self, name: &str, position: &mut usize) -> Option<&Property> {
        let expected = self.properties.get(*position);
        if let Some(property) = expected.filter(|property| property.name == name) {
            *position = position.saturating_add(1);
            return Some(property);
        }
        let name_at = |at: &usize| self.properties.get(*at).map(|property| property.name.as_str());
        let found = self.by_name.binary_search_by(|at| name_at(at).cmp(&Some(name))).ok()?;
        let at = *self.by_name.get(found)?;
        *position = at.saturating_add(1);
        self.properties.get(at)
    }
}
