//! The slow, obvious meaning of schemas and transition rules, written to be read beside the documentation.
//!
//! It shares no code with the core but Unicode tables: values are an ordinary tree, numbers are padded to equal length
//! and compared as text, objects are searched from the front, nothing is compiled.

use unicode_normalization::UnicodeNormalization;

/// A JSON value as an ordinary tree.
#[derive(Debug, Clone)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it is written.
    Number(String),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order it is written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// A string.
    pub fn text(text: &str) -> Json {
        Json::String(text.to_owned())
    }

    /// An object.
    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The value written as JSON, everything but ASCII letters, digits and common signs left as it is.
    pub fn to_json(&self) -> String {
        match self {
            Json::Null => "null".to_owned(),
            Json::Bool(boolean) => boolean.to_string(),
            Json::Number(literal) => literal.clone(),
            Json::String(text) => quoted(text),
            Json::Array(items) => format!("[{}]", items.iter().map(Json::to_json).collect::<Vec<_>>().join(",")),
            Json::Object(members) => {
                let members: Vec<_> =
                    members.iter().map(|(key, value)| format!("{}: {}", quoted(key), value.to_json())).collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }

    /// The first member with this key, after NFC.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(name, _)| nfc(name) == nfc(key)).map(|(_, value)| value),
            _ => None,
        }
    }

    fn items(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    fn members(&self) -> &[(String, Json)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    fn as_text(&self) -> &str {
        match self {
            Json::String(text) => text,
            _ => "",
        }
    }

    fn is_true(&self) -> bool {
        matches!(self, Json::Bool(true))
    }

    fn is_bool(&self) -> bool {
        matches!(self, Json::Bool(_))
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn nfc(text: &str) -> String {
    text.nfc().collect()
}

/// Whether a number was written as an integer.
pub fn is_integer(literal: &str) -> bool {
    !literal.contains(['.', 'e', 'E'])
}

/// Order of two numbers: both written out in full as sign, whole and fraction of equal length.
pub fn compare_numbers(left: &str, right: &str) -> std::cmp::Ordering {
    let (a, b) = (written_out(left), written_out(right));
    let whole = a.whole.len().max(b.whole.len());
    let fraction = a.fraction.len().max(b.fraction.len());
    let padded = |n: &WrittenOut| format!("{:0>whole$}{:0<fraction$}", n.whole, n.fraction);
    let (x, y) = (padded(&a), padded(&b));
    let zero = "0".repeat(whole + fraction);
    match (a.negative && x != zero, b.negative && y != zero) {
        (false, false) => x.cmp(&y),
        (true, true) => y.cmp(&x),
        (true, false) => std::cmp::Ordering::Less,
        (false, true) => std::cmp::Ordering::Greater,
    }
}

struct WrittenOut {
    negative: bool,
    whole: String,
    fraction: String,
}

fn written_out(literal: &str) -> WrittenOut {
    let negative = literal.starts_with('-');
    let (mantissa, exponent) =
        literal.trim_start_matches('-').split_once(['e', 'E']).unwrap_or((literal.trim_start_matches('-'), "0"));
    let exponent: i32 = exponent.parse().expect("a small exponent");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (mut whole, mut fraction) = (whole.to_owned(), fraction.to_owned());
    for _ in 0..exponent {
        whole.push(if fraction.is_empty() { '0' } else { fraction.remove(0) });
    }
    for _ in exponent..0 {
        fraction.insert(0, whole.pop().unwrap_or('0'));
    }
    WrittenOut { negative, whole, fraction }
}

/// Equality: numbers by value, strings and keys after NFC, objects in any order.
pub fn equal(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Null, Json::Null) => true,
        (Json::Bool(a), Json::Bool(b)) => a == b,
        (Json::Number(a), Json::Number(b)) => compare_numbers(a, b).is_eq(),
        (Json::String(a), Json::String(b)) => nfc(a) == nfc(b),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => false,
    }
}

/// Whether a value matches a schema (which is known to be well-formed; `pattern` is not looked at).
pub fn accepts(schema: &Json, value: &Json) -> bool {
    let of_type = match (schema.get("type").map(Json::as_text), value) {
        (Some("null"), Json::Null) | (Some("boolean"), Json::Bool(_)) => true,
        (Some("integer"), Json::Number(literal)) => is_integer(literal),
        (Some("number"), Json::Number(_)) | (Some("string"), Json::String(_)) => true,
        (Some("array"), Json::Array(_)) | (Some("object"), Json::Object(_)) => true,
        _ => false,
    };
    of_type
        && schema.get("enum").is_none_or(|allowed| allowed.items().iter().any(|item| equal(item, value)))
        && schema.get("const").is_none_or(|constant| equal(constant, value))
        && match value {
            Json::Number(literal) => {
                let bound = |name: &str| match schema.get(name) {
                    Some(Json::Number(bound)) => Some(compare_numbers(literal, bound)),
                    _ => None,
                };
                bound("minimum").is_none_or(std::cmp::Ordering::is_ge)
                    && bound("maximum").is_none_or(std::cmp::Ordering::is_le)
                    && bound("exclusiveMinimum").is_none_or(std::cmp::Ordering::is_gt)
                    && bound("exclusiveMaximum").is_none_or(std::cmp::Ordering::is_lt)
            }
            Json::String(text) => within(schema, "minLength", "maxLength", nfc(text).chars().count()),
            Json::Array(items) => {
                within(schema, "minItems", "maxItems", items.len())
                    && schema.get("items").is_some_and(|inner| items.iter().all(|item| accepts(inner, item)))
                    && !(schema.get("uniqueItems").is_some_and(Json::is_true)
                        && (0..items.len()).any(|a| (0..a).any(|b| equal(&items[a], &items[b]))))
            }
            Json::Object(members) => {
                let properties = schema.get("properties").expect("an object schema");
                let open = schema.get("additionalProperties").is_some_and(Json::is_true);
                schema
                    .get("required")
                    .is_none_or(|names| names.items().iter().all(|name| value.get(name.as_text()).is_some()))
                    && members.iter().all(|(key, member)| match properties.get(key) {
                        Some(inner) => accepts(inner, member),
                        None => open,
                    })
            }
            Json::Null | Json::Bool(_) => true,
        }
}

fn within(schema: &Json, min: &str, max: &str, count: usize) -> bool {
    let bound = |name: &str| match schema.get(name) {
        Some(Json::Number(bound)) => bound.parse::<usize>().ok(),
        _ => None,
    };
    bound(min).is_none_or(|min| count >= min) && bound(max).is_none_or(|max| count <= max)
}

/// Whether a transition keeps every rule.
pub fn transition_allowed(rules: &Json, current: &Json, proposed: &Json) -> bool {
    let paths = |kind: &str| rules.get(kind).map(Json::items).unwrap_or_default().to_vec();
    let both = |path: &str| Some((find(current, path)?, find(proposed, path)?));
    paths("immutable_paths").iter().all(|path| both(path.as_text()).is_some_and(|(was, becomes)| equal(was, becomes)))
        && paths("monotonic_integer_paths").iter().all(|path| match both(path.as_text()) {
            Some((Json::Number(was), Json::Number(becomes))) => {
                is_integer(was) && is_integer(becomes) && compare_numbers(becomes, was).is_ge()
            }
            _ => false,
        })
        && rules.get("ordered_enum_paths").map(Json::members).unwrap_or_default().iter().all(|(path, order)| {
            let rank = |value: &Json| order.items().iter().position(|item| equal(item, value));
            both(path).is_some_and(|(was, becomes)| match (rank(was), rank(becomes)) {
                (Some(was), Some(becomes)) => becomes >= was,
                _ => false,
            })
        })
        && rules
            .get("keyed_object_array_paths")
            .map(Json::members)
            .unwrap_or_default()
            .iter()
            .all(|(path, rule)| both(path).is_some_and(|(was, becomes)| keyed_array_allowed(rule, was, becomes)))
}

fn find<'j>(state: &'j Json, path: &str) -> Option<&'j Json> {
    path.strip_prefix("$.")?.split('.').try_fold(state, |value, key| value.get(key))
}

fn keyed_array_allowed(rule: &Json, current: &Json, proposed: &Json) -> bool {
    let key = rule.get("key").expect("a key").as_text();
    let (Json::Array(was), Json::Array(becomes)) = (current, proposed) else { return false };
    let keys = |items: &[Json]| items.iter().map(|item| item.get(key).cloned()).collect::<Option<Vec<_>>>();
    let (Some(old_keys), Some(new_keys)) = (keys(was), keys(becomes)) else { return false };
    let kind = |key: &Json| match key {
        Json::String(_) => 1,
        Json::Number(_) => 2,
        Json::Bool(_) => 3,
        Json::Null | Json::Array(_) | Json::Object(_) => 0,
    };
    let kinds: Vec<_> = old_keys.iter().chain(&new_keys).map(kind).collect();
    if kinds.contains(&0) || kinds.windows(2).any(|pair| pair[0] != pair[1]) {
        return false;
    }
    let distinct = |keys: &[Json]| (0..keys.len()).all(|a| (0..a).all(|b| !equal(&keys[a], &keys[b])));
    if !distinct(&old_keys) || !distinct(&new_keys) {
        return false;
    }
    let is_prefix = old_keys.len() <= new_keys.len() && old_keys.iter().zip(&new_keys).all(|(a, b)| equal(a, b));
    if !is_prefix || (matches!(rule.get("allow_new_items"), Some(Json::Bool(false))) && new_keys.len() > old_keys.len())
    {
        return false;
    }
    let listed: Vec<&str> =
        rule.get("monotonic_boolean_fields").map(Json::items).unwrap_or_default().iter().map(Json::as_text).collect();
    let is_listed = |name: &str| listed.iter().any(|field| nfc(field) == nfc(name));
    let listed_are_booleans =
        |item: &Json| item.members().iter().all(|(name, value)| !is_listed(name) || value.is_bool());
    let allow_new_fields = rule.get("allow_new_fields").is_some_and(Json::is_true);
    becomes.iter().all(listed_are_booleans)
        && was.iter().zip(becomes).all(|(was, becomes)| {
            listed_are_booleans(was)
                && was.members().iter().all(|(name, old)| match becomes.get(name) {
                    None => false,
                    Some(new) if is_listed(name) => !old.is_true() || new.is_true(),
                    Some(new) => equal(old, new),
                })
                && (allow_new_fields || becomes.members().iter().all(|(name, _)| was.get(name).is_some()))
        })
}
