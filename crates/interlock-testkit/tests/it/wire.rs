//! The document that is made from the wire types: what it says, line by line, and that it holds together.

use std::collections::BTreeSet;
use std::fs;

use interlock_core::json::{self, Limits, Value};
use interlock_testkit::repository;
use interlock_wire::document;

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
