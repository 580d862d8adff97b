//! The document that is made from the wire types: what it says, line by line, that it holds together, and that answers
//! fit it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, LazyLock, Mutex};

use interlock_core::json::{self, Limits, Value};
use interlock_testkit::service::Answer;
use interlock_testkit::{repository, wire};
use interlock_wire::document;
use jsonschema::Validator;
use serde_json::json;

/// One line for each operation and each component, so that a change shows where it is.
fn lines(root: Value<'_>) -> String {
    let mut lines = String::new();
    let mut line = |place: &str, value: Value<'_>| lines.push_str(&format!("{place} {}\n", json::canonical(value)));
    for (key, part) in root.as_object().expect("an object") {
        match key.text() {
            "paths" | "components" => {
                for (name, group) in part.as_object().expect("an object") {
                    for (key, member) in group.as_object().expect("an object") {
                        line(&format!("{} {}", name.text(), key.text()), member);
                    }
                }
            }
            key => line(key, part),
        }
    }
    lines
}

/// `UPDATE_GOLDEN=1` writes the file anew; read the difference before committing it.
#[test]
fn the_document_says_what_it_said() {
    let document = json::parse(document(), &Limits::CONFIG).expect("strict JSON");
    let lines = lines(document.root());
    let path = repository().join("crates/interlock-testkit/tests/golden/openapi.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &lines).expect("written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    for (line, expected) in lines.lines().zip(golden.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), golden.len(), "lines were added or removed");
}

#[test]
fn every_name_leads_somewhere_and_everything_is_led_to() {
    let document = json::parse(document(), &Limits::CONFIG).expect("strict JSON");
    let root = document.root();
    let (mut named, mut statuses) = (BTreeSet::new(), BTreeSet::new());
    walk(root, &mut |key, value| {
        if let ("$ref", Some(place)) = (key, value.as_str()) {
            named.insert(place.text().to_owned());
        }
        if key == "responses" {
            statuses.extend(value.as_object().expect("an object").map(|(status, _)| status.text().to_owned()));
        }
        let is_example = key == "value" && value.source() == "null";
        assert!(!is_example, "an example that there is not");
    });
    for place in &named {
        let mut parts = place.strip_prefix("#/").expect("a place in here").split('/');
        assert!(parts.try_fold(root, |value, part| value.get(part)).is_some(), "{place}");
    }
    for kind in ["schemas", "responses", "parameters"] {
        let components = root.get("components").and_then(|components| components.get(kind)).expect("components");
        for (name, _) in components.as_object().expect("an object") {
            let place = format!("#/components/{kind}/{}", name.text());
            assert!(named.contains(&place), "nothing leads to {place}");
        }
    }
    assert!(!statuses.contains("0"), "a refusal that there is not");
}

fn walk(value: Value<'_>, heard: &mut impl FnMut(&str, Value<'_>)) {
    for (key, member) in value.as_object().into_iter().flatten() {
        heard(key.text(), member);
        walk(member, heard);
    }
    for item in value.as_array().into_iter().flatten() {
        walk(item, heard);
    }
}

/// A type that stands nowhere in the document would be a message that nobody is told of.
#[test]
fn every_wire_type_stands_in_the_document() {
    let document = json::parse(document(), &Limits::CONFIG).expect("strict JSON");
    let schemas = document.root().get("components").and_then(|components| components.get("schemas")).expect("schemas");
    let inlined = [
        "AskedTransition",
        "AskedTrust",
        "Charged",
        "CostBudget",
        "DeveloperFields",
        "EntryRow",
        "RequestBudget",
        "StaleDetails",
        "TokenBudget",
        "WayOut",
    ];
    let mut count = 0;
    for file in fs::read_dir(repository().join("crates/interlock-wire/src")).expect("sources") {
        let Ok(text) = fs::read_to_string(file.expect("a file").path()) else { continue };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let kind = words.next().unwrap_or_default();
            let is_type = line.starts_with("    ") && !line.starts_with("     ");
            if is_type && matches!(kind, "answer" | "open" | "request") {
                let name = words.next().and_then(|name| name.split('<').next()).expect("a name");
                count += 1;
                assert!(schemas.get(name).is_some() != inlined.contains(&name), "{name}");
            }
        }
    }
    assert!(count > 60, "only {count} types were found");
}

/// Panics if an answer does not fit the schema that the document has for its route and status.
pub(crate) fn fits_its_schema(method: &str, path: &str, answer: &Answer) {
    static DOCUMENT: LazyLock<serde_json::Value> =
        LazyLock::new(|| serde_json::from_str(document()).expect("strict JSON"));
    static VALIDATORS: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let document = &*DOCUMENT;
    let Some(route) = route(document, path.split('?').next().expect("a path")) else { return };
    let Some(operation) = document["paths"][&route].get(method.to_lowercase()) else { return };
    let key = format!("{method} {route} {}", answer.status);
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{key} is not in the document: {}", answer.body);
    let response = match response["$ref"].as_str() {
        Some(place) => document.pointer(place.trim_start_matches('#')).expect("a response"),
        None => response,
    };
    let make = || {
        let schema = &response["content"]["application/json"]["schema"];
        let whole = json!({"$ref": "#/root", "root": schema, "components": document["components"]});
        Arc::new(jsonschema::draft202012::new(&whole).expect("a schema"))
    };
    let validator = Arc::clone(VALIDATORS.lock().expect("a lock").entry(key.clone()).or_insert_with(make));
    let body = serde_json::from_str(&answer.body).expect("strict JSON");
    if let Err(error) = validator.validate(&body) {
        panic!("{key}: {error}: {}", answer.body);
    }
}

/// The path in the document that a request went to; one that is spelled out comes before one with parameters.
fn route(document: &serde_json::Value, path: &str) -> Option<String> {
    let fits = |route: &&String| {
        let (mut parts, mut given) = (route.split('/'), path.split('/'));
        parts.by_ref().zip(given.by_ref()).all(|(part, given)| part.starts_with('{') || part == given)
            && route.split('/').count() == path.split('/').count()
    };
    let paths = document["paths"].as_object().expect("paths");
    paths.keys().filter(fits).min_by_key(|route| route.matches('{').count()).cloned()
}

/// An answer to `POST /agents/:id/verify`, as the service writes it.
fn ruling() -> Answer {
    let body = r#"{"decision":"APPROVED","decision_id":"dec_0b9d3f5c1e7a48269c4d2f8b6a1e5073","enforced":true,"verification":{"status":"VERIFIED","engine":"shell","risk_level":"low","checks_passed":["parsed"],"checks_failed":[]},"budget_remaining":{"daily_cost_usd":25.48,"hourly_requests":199,"daily_tokens":null},"leaf_hash":"sha256:b131077ca00c966992768fed992be901d1701dafcf27788ecdd7ab62d4912c22"}"#;
    Answer {
        status: 200,
        head: "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n".to_owned(),
        body: body.to_owned(),
    }
}

fn is_found(look: fn(&str, &str, &Answer), body: &str) -> bool {
    let answer = Answer { body: body.to_owned(), ..ruling() };
    std::panic::catch_unwind(|| look("POST", "/agents/agent_1/verify", &answer)).is_err()
}

#[test]
fn an_answer_that_is_not_what_its_type_writes_is_found() {
    let body = ruling().body;
    assert!(!is_found(wire::check, &body));
    // In another order, with a member that no type has, and without one.
    let (first, rest) = body.trim_matches(['{', '}']).split_once(',').expect("members");
    assert!(is_found(wire::check, &format!("{{{rest},{first}}}")));
    assert!(is_found(wire::check, &body.replacen('{', r#"{"approved_by":"nobody","#, 1)));
    assert!(is_found(wire::check, &body.replacen(r#","enforced":true"#, "", 1)));
}

#[test]
fn an_answer_that_does_not_fit_its_schema_is_found() {
    let body = ruling().body;
    assert!(!is_found(fits_its_schema, &body));
    for (right, wrong) in [("shell", "spell"), ("APPROVED", "GRANTED"), ("\"enforced\":true,", ""), ("25.48", "-1")] {
        assert!(is_found(fits_its_schema, &body.replacen(right, wrong, 1)), "{wrong}");
    }
    assert!(is_found(
        |method, path, answer| {
            fits_its_schema(
                method,
                path,
                &Answer { status: 418, head: answer.head.clone(), body: answer.body.clone() },
            );
        },
        &body
    ));
}
