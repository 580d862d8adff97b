//! Every case of `conformance/` through `interlock state verify --json`.

use std::fs;

use interlock_core::json::{self, Limits, Value};
use interlock_testkit::conformance::{Case, load};

use crate::{path, run, text};

#[test]
fn every_case_holds_at_the_command_line() {
    let mut failures = Vec::new();
    for file in load() {
        for case in &file.cases {
            let name = format!("{}: {}", file.name, case.name);
            if let Err(panic) = std::panic::catch_unwind(|| check(case, &name)) {
                failures.push(panic.downcast_ref::<String>().cloned().unwrap_or(name));
            }
        }
    }
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

fn check(case: &Case, name: &str) {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = case.commit.as_ref().map(|commit| commit.make(scratch.path()));
    let write = |file: &str, bytes: &[u8]| {
        let target = scratch.path().join(file);
        fs::write(&target, bytes).expect("a file");
        path(&target).to_owned()
    };
    let guard = write("guard", case.guard_file(place.as_ref()).as_bytes());
    let proposed = write("proposed", &case.proposed());
    let current = case.current.as_ref().map(|current| write("current", current.as_bytes()));
    let mut arguments = vec!["state", "verify", "--json", "--guard", &guard, "--proposed", &proposed];
    if let Some(current) = &current {
        arguments.extend(["--current", current]);
    }
    if let Some(place) = &place {
        arguments.extend(["--commit", &place.target]);
    }
    let output = run(&arguments);
    let stdout = text(&output.stdout);
    assert!(stdout.ends_with('\n') && stdout.lines().count() == 1, "{name}: not one line: {stdout}");
    if case.proposed().len() > 2_000_000 && case.expect.status.as_deref() == Some("VERIFIED") {
        // An answer holds the state and more, so one about the largest states is larger than a state may be.
        assert!(stdout.starts_with(r#"{"verified":true,"status":"VERIFIED","#), "{name}: {stdout:.300}");
        return;
    }
    let answer =
        json::parse(stdout, &Limits::CONFIG).unwrap_or_else(|error| panic!("{name}: {error} in {stdout:.200}"));
    let answer = answer.root();
    if let Some(error) = &case.expect.error {
        assert_eq!(output.status.code(), Some(2), "{name}");
        let message = string(answer.get("error").expect("an error"), "message");
        assert!(message.contains(error), "{name}: {message}");
        return;
    }
    let verified = case.expect.status.as_deref() == Some("VERIFIED");
    assert_eq!(output.status.code(), Some(if verified { 0 } else { 1 }), "{name}: {stdout:.300}");
    assert_eq!(answer.get("verified").and_then(|value| value.as_bool()), Some(verified), "{name}");
    assert_eq!(Some(string(answer, "status")).as_deref(), case.expect.status.as_deref(), "{name}");
    if verified {
        success(case, name, answer);
    } else {
        failure(case, name, answer);
    }
    if let Some(place) = place {
        place.check(case, name);
    }
}

fn string(object: Value<'_>, key: &str) -> String {
    object.get(key).and_then(|value| value.as_str()).unwrap_or_else(|| panic!("no {key}")).text().to_owned()
}

fn success(case: &Case, name: &str, answer: Value<'_>) {
    let mut keys: Vec<_> = answer.as_object().expect("an object").map(|(key, _)| key.text().to_owned()).collect();
    keys.sort();
    let mut expected = vec!["developer_fields", "normalized_state", "proof", "proof_ref", "status", "verified"];
    if case.current.is_some() {
        expected.push("normalized_previous_state");
    }
    if case.commit.is_some() {
        expected.extend(["transition_proof_ref", "committed_path", "committed_bytes"]);
    }
    expected.sort_unstable();
    assert_eq!(keys, expected, "{name}: the keys of a success");
    let state = answer.get("normalized_state").expect("a state").source();
    if let Some(canonical) = &case.expect.canonical {
        assert_eq!(state, canonical, "{name}: canonical text");
    }
    if let Some(proof) = &case.expect.proof_ref {
        assert_eq!(&string(answer, "proof_ref"), proof, "{name}: proof");
    }
    if case.commit.is_some() {
        let bytes =
            answer.get("committed_bytes").and_then(|value| value.as_number()).and_then(|number| number.to_i128());
        assert_eq!(bytes, i128::try_from(state.len()).ok(), "{name}: committed_bytes");
    }
}

fn failure(case: &Case, name: &str, answer: Value<'_>) {
    let keys: Vec<_> = answer.as_object().expect("an object").map(|(key, _)| key.text().to_owned()).collect();
    assert_eq!(keys, ["verified", "status", "error_code", "message"], "{name}: the keys of a failure");
    assert_eq!(Some(string(answer, "error_code")), case.expect.code, "{name}");
    let message = string(answer, "message");
    assert!(message.starts_with("Blocked: "), "{name}: {message}");
    for part in [&case.expect.message, &case.expect.at].into_iter().flatten() {
        assert!(message.contains(part), "{name}: {message} does not contain {part}");
    }
}
