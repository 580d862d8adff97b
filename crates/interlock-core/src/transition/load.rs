//! From the text of transition rules to [`Rules`]: every path and field name read once.

use core::fmt;
use std::sync::Arc;

use super::Rules;
use super::keyed_array::KeyedArray;
use super::ordered_enum::OrderedEnum;
use super::path::RulePath;
use crate::display;
use crate::display::names;
use crate::json::{self, Document, JsonError, Limits, Members, Value, ValueList};

const KINDS: [&str; 4] =
    ["immutable_paths", "monotonic_integer_paths", "ordered_enum_paths", "keyed_object_array_paths"];
const KEYED_FIELDS: [&str; 4] = ["key", "monotonic_boolean_fields", "allow_new_items", "allow_new_fields"];

/// Why transition rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    message: String,
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RulesError {}

impl From<JsonError> for RulesError {
    fn from(error: JsonError) -> RulesError {
        RulesError { message: format!("Invalid transition rules: {error}") }
    }
}

fn error<T>(message: impl fmt::Display) -> Result<T, RulesError> {
    Err(RulesError { message: message.to_string() })
}

impl Rules {
    /// Compiles the rules in a text.
    ///
    /// ```
    /// use interlock_core::transition::Rules;
    ///
    /// assert!(Rules::load(r#"{"immutable_paths": ["$.agent_id"]}"#).is_ok());
    /// let error = Rules::load(r#"{"immutable_paths": ["agent_id"]}"#).err().map(|e| e.to_string());
    /// assert!(error.is_some_and(|e| e.contains("paths must use dot-style JSON paths")));
    /// ```
    pub fn load(text: &str) -> Result<Rules, RulesError> {
        Rules::compile(json::parse(text, &Limits::CONFIG)?.into_owned())
    }

    fn compile(source: Document<'static>) -> Result<Rules, RulesError> {
        let root = source.root();
        let Some(members) = root.as_object() else {
            return error("Transition rules must be a dictionary");
        };
        refuse_unknown("Transition rules contain unsupported keys", members, &KINDS)?;
        let immutable = load_paths(root, "immutable_paths")?;
        let monotonic_integers = load_paths(root, "monotonic_integer_paths")?;
        let ordered_enums = load_map(root, "ordered_enum_paths", load_ordered_enum)?;
        let keyed_arrays = load_map(root, "keyed_object_array_paths", load_keyed_array)?;
        Ok(Rules { source: Arc::new(source), immutable, monotonic_integers, ordered_enums, keyed_arrays })
    }
}

fn refuse_unknown(what: impl fmt::Display, members: Members<'_>, known: &[&str]) -> Result<(), RulesError> {
    let unknown: Vec<_> = members.map(|(key, _)| key.text()).filter(|key| !known.contains(key)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    error(format_args!("{what}: {} (known: {})", names(&unknown), known.join(", ")))
}

fn load_path(kind: &str, text: &str) -> Result<RulePath, RulesError> {
    match RulePath::parse(text) {
        Some(path) => Ok(path),
        None if text.is_empty() => error(format_args!(
            "{kind} paths must be non-empty strings: {kind} paths must use dot-style JSON paths such as $.agent_id"
        )),
        None => error(format_args!(
            "{kind} paths must use dot-style JSON paths such as $.agent_id (object keys only): {}",
            display(text)
        )),
    }
}

fn load_paths(rules: Value<'_>, kind: &str) -> Result<Vec<RulePath>, RulesError> {
    let Some(declared) = rules.get(kind) else { return Ok(Vec::new()) };
    let not_paths = || RulesError { message: format!("{kind} must be a list of JSON-style path strings") };
    let items = declared.as_array().ok_or_else(not_paths)?;
    items.map(|item| load_path(kind, item.as_str().ok_or_else(not_paths)?.text())).collect()
}

/// Loads a dictionary from paths to rules.
fn load_map<T>(
    rules: Value<'_>,
    kind: &str,
    load: fn(&str, RulePath, Value<'_>) -> Result<T, RulesError>,
) -> Result<Vec<T>, RulesError> {
    let Some(declared) = rules.get(kind) else { return Ok(Vec::new()) };
    let Some(members) = declared.as_object() else {
        return error(format_args!("{kind} must be a dictionary"));
    };
    members
        .map(|(key, value)| {
            let path = load_path(kind, key.text())?;
            load(&format!("{kind}['{path}']"), path, value)
        })
        .collect()
}

fn load_ordered_enum(name: &str, path: RulePath, value: Value<'_>) -> Result<OrderedEnum, RulesError> {
    let too_few = || RulesError { message: format!("{name} must define at least two ordered values") };
    let items = value.as_array().ok_or_else(too_few)?;
    if items.len() < 2 {
        return Err(too_few());
    }
    let values = ValueList::of(value);
    if values.len() < items.len() {
        return error(format_args!("{name} must define at least two ordered values, each of them once"));
    }
    Ok(OrderedEnum { path, source: value.index(), values })
}

fn load_keyed_array(name: &str, path: RulePath, value: Value<'_>) -> Result<KeyedArray, RulesError> {
    let Some(members) = value.as_object() else {
        return error(format_args!("{name} must be a dictionary"));
    };
    refuse_unknown(format_args!("{name} contains unsupported keys"), members, &KEYED_FIELDS)?;
    let key = match value.get("key").and_then(|key| key.as_str()) {
        Some(key) if !key.text().trim().is_empty() => key.nfc().into_owned(),
        Some(_) | None => return error(format_args!("{name} must define a non-empty key field")),
    };
    let flag = |field: &str, default: bool| match value.get(field).map(|flag| flag.as_bool()) {
        None => Ok(default),
        Some(Some(flag)) => Ok(flag),
        Some(None) => error(format_args!("{name}.{field} must be a boolean")),
    };
    let monotonic_booleans = load_field_names(name, value)?;
    if monotonic_booleans.contains(&key) {
        return error(format_args!("{name}.monotonic_boolean_fields must be a list of field names other than the key"));
    }
    Ok(KeyedArray {
        path,
        key,
        monotonic_booleans,
        allow_new_items: flag("allow_new_items", true)?,
        allow_new_fields: flag("allow_new_fields", false)?,
    })
}

fn load_field_names(name: &str, rule: Value<'_>) -> Result<Vec<String>, RulesError> {
    let Some(declared) = rule.get("monotonic_boolean_fields") else { return Ok(Vec::new()) };
    let not_names = || RulesError {
        message: format!(
            "{name}.monotonic_boolean_fields must be a list of field names: they must be non-empty strings"
        ),
    };
    let items = declared.as_array().ok_or_else(not_names)?;
    items
        .map(|item| match item.as_str() {
            Some(field) if !field.text().is_empty() => Ok(field.nfc().into_owned()),
            Some(_) | None => Err(not_names()),
        })
        .collect()
}
