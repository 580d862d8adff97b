//! Typed loading through the strict parser.

use std::collections::BTreeMap;

use interlock_core::json::{LoadError, RawJson, from_str};
use serde::Deserialize;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Policy {
    name: String,
    limit: Option<u64>,
    #[serde(default)]
    effects: Vec<Effect>,
    #[serde(default)]
    prices: BTreeMap<String, i128>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Effect {
    Allow,
    Deny(String),
    Ask { who: String },
}

fn refusal(text: &str) -> String {
    from_str::<Policy>(text).expect_err("refused").to_string()
}

#[test]
fn a_typed_value_is_read() {
    let text = r#"{"name": "p", "limit": 3, "effects": ["allow", {"deny": "x"}, {"ask": {"who": "y"}}], "prices": {"a": -170141183460469231731687303715884105728}}"#;
    let policy: Policy = from_str(text).expect("a policy");
    assert_eq!(policy.effects, [Effect::Allow, Effect::Deny("x".to_owned()), Effect::Ask { who: "y".to_owned() }]);
    assert_eq!((policy.limit, policy.prices["a"]), (Some(3), i128::MIN));
    let policy: Policy = from_str(r#"{"name": "p", "limit": null}"#).expect("a policy");
    assert_eq!((policy.limit, policy.effects.len()), (None, 0));
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    assert!(refusal(r#"{"name": "p", "nmae": "q"}"#).contains("unknown field `nmae`"));
    assert!(refusal(r#"{"name": 1}"#).ends_with("at $.name"));
    assert!(refusal(r#"{"name": "p", "effects": ["allow", "permit"]}"#).ends_with("at $.effects[1]"));
    assert!(refusal(r#"{"name": "p", "effects": [{"ask": ["x"]}]}"#).contains("expected an object"));
    assert!(refusal(r#"{"name": "p", "limit": 1.5}"#).contains("other than an integer"));
    assert!(refusal(r#"{"name": "p", "limit": 1e2}"#).contains("other than an integer"));
    assert!(refusal(&format!(r#"{{"name": "p", "limit": 1{}}}"#, "0".repeat(60))).contains("out of range"));
    assert!(refusal(r#"["p", 1]"#).contains("expected an object"));
    assert!(refusal(r#"{"name": "p", "name": "q"}"#).contains("Duplicate key"));
    assert!(matches!(from_str::<Policy>("{"), Err(LoadError::Json(_))));
}

#[test]
fn raw_parts_keep_their_text() {
    #[derive(Deserialize)]
    struct Parts {
        schema: RawJson,
        rest: Option<RawJson>,
    }
    let parts: Parts = from_str(r#"{"schema": {"a": [1.50, "]}\""]} , "rest": 7.0 }"#).expect("parts");
    assert_eq!(parts.schema.text(), r#"{"a": [1.50, "]}\""]}"#);
    assert_eq!(parts.rest.as_ref().map(RawJson::text), Some("7.0"));
    let parts: Parts = from_str(r#"{"schema": null, "rest": null}"#).expect("parts");
    assert!(parts.schema.text() == "null" && parts.rest.is_none());
}
