//! What people see, byte for byte. `UPDATE_GOLDEN=1` writes the files anew; read the difference before committing it.

use std::fs;
use std::path::Path;

use crate::{run, run_with_input, text};

pub(crate) fn check(name: &str, exit: i32, output: &std::process::Output) {
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &shown).expect("written");
    }
    let expected =
        fs::read_to_string(&path).unwrap_or_else(|_| panic!("no golden file {name}; it would hold:\n{shown}"));
    assert_eq!(shown, expected, "{name}");
    assert_eq!(output.status.code(), Some(exit), "{name}");
}

const GUARD: &str = "examples/state/guard.json";

fn transition(proposed: &str, json: bool) -> std::process::Output {
    let current = "examples/state/current.json";
    let mut arguments = vec!["state", "verify", "--guard", GUARD, "--current", current, "--proposed", proposed];
    arguments.extend(json.then_some("--json"));
    run(&arguments)
}

#[test]
fn the_shipped_example_is_verified_and_the_other_one_blocked() {
    check("verified.txt", 0, &transition("examples/state/finished.json", false));
    check("verified.json", 0, &transition("examples/state/finished.json", true));
    check("blocked.txt", 1, &transition("examples/state/reopened.json", false));
    check("blocked.json", 1, &transition("examples/state/reopened.json", true));
}

#[test]
fn the_place_is_underlined_in_every_kind_of_text() {
    let payload = |input: &[u8]| run_with_input(&["state", "verify", "--guard", GUARD, "--proposed", "-"], input);
    check(
        "duplicate_key.txt",
        1,
        &payload(br#"{"agent_id":"a1","status":"pending","step_count":1,"tasks":[],"tasks":[]}"#),
    );
    check("unexpected_end.txt", 1, &payload(b"{\"agent_id\": \"a1\",\n \"status\": "));
    let tasks = vec!["0"; 200].join(",");
    let long = format!(r#"{{"agent_id":"{}","status":7,"step_count":1,"tasks":[{tasks}]}}"#, "x".repeat(500));
    check("long_line.txt", 1, &payload(long.as_bytes()));
    check(
        "hostile_text.txt",
        1,
        &payload("{\"agent_id\":\"\u{202e}\u{7f}\",\t\"status\":\"\u{200b}oops\"}".as_bytes()),
    );
    check("empty.txt", 1, &payload(b" \n"));
    check("not_utf8.txt", 1, &payload(b"{\"agent_id\": \"\xff\"}"));
}

#[test]
fn lint_and_explain_are_pinned() {
    check("lint_clean.txt", 0, &run(&["state", "lint", GUARD]));
    let guard = br#"{"required_schema": {"type": "object", "properties": {"a": {"type": "string"}, "t": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}}},
        "transition_rules": {"immutable_paths": ["$.missing", "$.a"], "monotonic_integer_paths": ["$.a"],
            "keyed_object_array_paths": {"$.t": {"key": "id", "monotonic_boolean_fields": ["done"]}}}}"#;
    check("lint_findings.txt", 1, &run_with_input(&["state", "lint", "-"], guard));
    check("lint_findings.json", 1, &run_with_input(&["state", "lint", "-", "--json"], guard));
    check("explain_list.txt", 0, &run(&["explain"]));
    check("explain_unknown.txt", 2, &run(&["explain", "QWED-AGENT-STATE-999"]));
    check("help.txt", 0, &run(&["--help"]));
    check("state_verify_help.txt", 0, &run(&["state", "verify", "--help"]));
    check("gateway_help.txt", 0, &run(&["gateway", "--help"]));
    check("install_help.txt", 0, &run(&["install", "--help"]));
    check("uninstall_help.txt", 0, &run(&["uninstall", "--help"]));
    check("init_help.txt", 0, &run(&["init", "--help"]));
    check("hook_help.txt", 0, &run(&["hook", "--help"]));
    check("doctor_help.txt", 0, &run(&["doctor", "--help"]));
    check("attest_verify_help.txt", 0, &run(&["attest", "verify", "--help"]));
}
