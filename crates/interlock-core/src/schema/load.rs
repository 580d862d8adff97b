//! From a schema text to a [`Schema`]: every keyword known, every name resolved.

use core::cmp::Ordering;
use core::fmt;
use std::sync::Arc;

use super::pattern::Pattern;
use super::{ArrayRule, Bounds, LengthRange, ObjectRule, OneOf, Property, Rule, Schema, Shape, StringRule};
use crate::display;
use crate::display::names;
use crate::json::{Content, Document, JsonError, Kind, Limits, Value, ValueList, parse, push_key};

/// Keywords that are carried and decide nothing.
const ANNOTATIONS: [&str; 6] = ["$id", "$schema", "default", "description", "examples", "title"];
/// Keywords of every type.
const COMMON: [&str; 3] = ["const", "enum", "type"];
const OBJECT: [&str; 3] = ["additionalProperties", "properties", "required"];
const ARRAY: [&str; 4] = ["items", "maxItems", "minItems", "uniqueItems"];
const STRING: [&str; 3] = ["maxLength", "minLength", "pattern"];
const NUMBER: [&str; 4] = ["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"];
const NONE: [&str; 0] = [];

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invalid schema: {}", self.message)
    }
}

impl std::error::Error for SchemaError {}

impl From<JsonError> for SchemaError {
    fn from(error: JsonError) -> SchemaError {
        SchemaError { message: error.to_string() }
    }
}

fn error<T>(message: impl fmt::Display) -> Result<T, SchemaError> {
    Err(SchemaError { message: message.to_string() })
}

impl Schema {
    /// Compiles the schema in a text.
    ///
    /// ```
    /// use interlock_core::schema::Schema;
    ///
    /// assert!(Schema::load(r#"{"type": "array", "items": {"type": "string"}}"#).is_ok());
    /// let error = Schema::load(r#"{"type": "string", "format": "date"}"#).err().map(|e| e.to_string());
    /// assert_eq!(error.as_deref(), Some("Invalid schema: schema at $ contains unsupported keys: 'format'"));
    /// ```
    pub fn load(text: &str) -> Result<Schema, SchemaError> {
        Schema::compile(parse(text, &Limits::CONFIG)?.into_owned())
    }

    fn compile(source: Document<'static>) -> Result<Schema, SchemaError> {
        let root = load_rule(source.root(), "$")?;
        Ok(Schema { source: Arc::new(source), root })
    }
}

/// Recursion is bounded by the depth limit of configuration texts.
fn load_rule(schema: Value<'_>, path: &str) -> Result<Rule, SchemaError> {
    if schema.kind() != Some(Kind::Object) {
        return error(format_args!("schema at {path} must be a dictionary"));
    }
    let (keywords, shape) = load_shape(schema, path)?;
    refuse_unknown_keywords(schema, keywords, path)?;
    if let Some(annotation) = ["title", "description", "$schema", "$id"]
        .into_iter()
        .find(|name| schema.get(name).is_some_and(|value| value.kind() != Some(Kind::String)))
    {
        return error(format_args!("`{annotation}` at {path} must be a string"));
    }
    Ok(Rule { shape, one_of: load_enum(schema, path)?, constant: schema.get("const").map(|value| value.index()) })
}

/// The keywords a type has beside the common ones.
fn load_shape(schema: Value<'_>, path: &str) -> Result<(&'static [&'static str], Shape), SchemaError> {
    let declared = schema.get("type").and_then(|value| value.as_str());
    Ok(match declared.map(|name| name.text()) {
        Some("object") => (&OBJECT, Shape::Object(load_object(schema, path)?)),
        Some("array") => (&ARRAY, Shape::Array(load_array(schema, path)?)),
        Some("string") => (&STRING, Shape::String(load_string(schema, path)?)),
        Some("integer") => (&NUMBER, Shape::Integer(load_bounds(schema, path)?)),
        Some("number") => (&NUMBER, Shape::Number(load_bounds(schema, path)?)),
        Some("boolean") => (&NONE, Shape::Boolean),
        Some("null") => (&NONE, Shape::Null),
        Some(_) | None => {
            return error(format_args!(
                "schema at {path} must declare a supported type: array, boolean, integer, null, number, object or string"
            ));
        }
    })
}

fn refuse_unknown_keywords(schema: Value<'_>, keywords: &[&str], path: &str) -> Result<(), SchemaError> {
    let known = |name: &str| ANNOTATIONS.contains(&name) || COMMON.contains(&name) || keywords.contains(&name);
    let all = [OBJECT.as_slice(), &ARRAY, &STRING, &NUMBER];
    let (mut unknown, mut misplaced) = (Vec::new(), Vec::new());
    for (key, _) in schema.as_object().into_iter().flatten() {
        match key.text() {
            name if known(name) => {}
            name if all.iter().any(|group| group.contains(&name)) => misplaced.push(name),
            name => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        return error(format_args!("schema at {path} contains unsupported keys: {}", names(&unknown)));
    }
    if !misplaced.is_empty() {
        let kind = schema.get("type").and_then(|value| value.as_str()).map_or("", |name| name.text());
        return error(format_args!(
            "schema at {path} contains unsupported keys for type {kind}: {}",
            names(&misplaced)
        ));
    }
    Ok(())
}

fn load_object(schema: Value<'_>, path: &str) -> Result<ObjectRule, SchemaError> {
    let Some(declared) = schema.get("properties") else {
        return error(format_args!("object schema at {path} must define properties"));
    };
    let Some(members) = declared.as_object() else {
        return error(format_args!(
            "object schema at {path} must define properties: `properties` must be a dictionary"
        ));
    };
    let mut properties = Vec::with_capacity(members.len());
    for (key, value) in members {
        if key.text().is_empty() {
            return error(format_args!("property names at {path} must be non-empty strings"));
        }
        let mut inner = path.to_owned();
        push_key(&mut inner, key.text());
        properties.push(Property { name: key.nfc().into_owned(), required: false, rule: load_rule(value, &inner)? });
    }
    let mut by_name: Vec<usize> = (0..properties.len()).collect();
    by_name.sort_unstable_by_key(|at| properties.get(*at).map(|property: &Property| property.name.as_str()));
    let mut object = ObjectRule { properties, by_name, required_count: 0, open: false };
    mark_required(schema, &mut object, path)?;
    object.open = match schema.get("additionalProperties").map(|value| value.as_bool()) {
        None => false,
        Some(Some(open)) => open,
        Some(None) => return error(format_args!("additionalProperties at {path} must be a boolean value")),
    };
    object.required_count = object.properties.iter().filter(|property| property.required).count();
    Ok(object)
}

fn mark_required(schema: Value<'_>, object: &mut ObjectRule, path: &str) -> Result<(), SchemaError> {
    let Some(required) = schema.get("required") else { return Ok(()) };
    let Some(items) = required.as_array() else {
        return error(format_args!("required keys at {path} must be a list of strings"));
    };
    let mut missing = Vec::new();
    for item in items {
        let Some(name) = item.as_str() else {
            return error(format_args!("required keys at {path} must be a list of strings"));
        };
        let normalized = name.nfc();
        match object.properties.iter_mut().find(|property| property.name == normalized) {
            Some(property) => property.required = true,
            None => missing.push(name.text()),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    error(format_args!("required keys at {path} are missing from properties: {}", names(&missing)))
}

fn load_array(schema: Value<'_>, path: &str) -> Result<ArrayRule, SchemaError> {
    let Some(items) = schema.get("items") else {
        return error(format_args!("array schema at {path} must define an items schema"));
    };
    let unique = match schema.get("uniqueItems").map(|value| value.as_bool()) {
        None => false,
        Some(Some(unique)) => unique,
        Some(None) => return error(format_args!("uniqueItems at {path} must be a boolean value")),
    };
    Ok(ArrayRule {
        items: Box::new(load_rule(items, &format!("{path}[]"))?),
        count: load_lengths(schema, "minItems", "maxItems", path)?,
        unique,
    })
}

fn load_string(schema: Value<'_>, path: &str) -> Result<StringRule, SchemaError> {
    let pattern = match schema.get("pattern") {
        None => None,
        Some(value) => Some(Box::new(load_pattern(value, path)?)),
    };
    Ok(StringRule { length: load_lengths(schema, "minLength", "maxLength", path)?, pattern })
}

fn load_pattern(value: Value<'_>, path: &str) -> Result<Pattern, SchemaError> {
    let Some(pattern) = value.as_str() else {
        return error(format_args!("pattern at {path} must be a string"));
    };
    // Strings are matched in normal form, so the pattern is brought into it too.
    Pattern::load(&pattern.nfc()).or_else(|reason| {
        error(format_args!(
            "pattern at {path} is not a regular expression that can be matched in linear time: {}",
            display(&reason.to_string())
        ))
    })
}

fn load_lengths(schema: Value<'_>, min: &str, max: &str, path: &str) -> Result<LengthRange, SchemaError> {
    let load = |name: &str| match schema.get(name) {
        None => Ok(None),
        Some(value) => match value.as_number().and_then(|number| number.to_i128()) {
            Some(count) if count >= 0 => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
            _ => error(format_args!("{name} at {path} must be an integer from 0 to 2^127")),
        },
    };
    let range = LengthRange { min: load(min)?.unwrap_or(0), max: load(max)?.unwrap_or(usize::MAX) };
    if range.min > range.max {
        return error(format_args!("{min} at {path} is greater than {max}"));
    }
    Ok(range)
}

fn load_bounds(schema: Value<'_>, path: &str) -> Result<Bounds, SchemaError> {
    let load = |name: &str| match schema.get(name) {
        None => Ok(None),
        Some(value) if value.as_number().is_some() => Ok(Some(value.index())),
        Some(_) => error(format_args!("{name} at {path} must be a number")),
    };
    for (low, high) in [("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")] {
        let number = |name: &str| schema.get(name).and_then(|value| value.as_number());
        if let (Some(least), Some(most)) = (number(low), number(high))
            && least.cmp_value(&most) == Ordering::Greater
        {
            return error(format_args!("{low} at {path} is greater than {high}"));
        }
    }
    Ok(Bounds {
        minimum: load("minimum")?,
        maximum: load("maximum")?,
        exclusive_minimum: load("exclusiveMinimum")?,
        exclusive_maximum: load("exclusiveMaximum")?,
    })
}

fn load_enum(schema: Value<'_>, path: &str) -> Result<Option<OneOf>, SchemaError> {
    let Some(declared) = schema.get("enum") else { return Ok(None) };
    match declared.content() {
        Some(Content::Array(items)) if items.len() > 0 => {
            Ok(Some(OneOf { source: declared.index(), values: ValueList::of(declared) }))
        }
        _ => error(format_args!("enum at {path} must be a non-empty list")),
    }
}
