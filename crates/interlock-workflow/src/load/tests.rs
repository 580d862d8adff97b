use interlock_core::workflow::{AfterFinal, Outcome, Source, StateKind};

use super::*;

const JSON: &str = r#"{
  "id": "fix", "initial": "planning", "after_final": "closed", "max_transitions": 40,
  "context": {"attempts": 0, "ratio": 1.50, "big": 1e3, "zero": -0},
  "facts": {"tests": {"command": "pytest -q"}},
  "guards": {
    "ready": {"field": "review.done", "op": "eq", "value": true},
    "tests_pass": {"field": "observed.tests", "op": "eq", "value": 0}
  },
  "states": {
    "planning": {
      "allowed_tools": ["Read", "mcp__github__*"], "max_iterations": 10,
      "on": {"READY": {"target": "working", "guard": "ready"}, "FAIL": "failed"}
    },
    "working": {
      "on": {"DONE": [
        {"target": "done", "guards": ["tests_pass", {"field": "n", "op": "gte", "value": 2}]}, "planning"]}
    },
    "done": {"type": "final"},
    "failed": {"type": "final"}
  }
}"#;

const YAML: &str = r#"
# The same in YAML, in another order.
id: fix
states:
  failed: {type: final}
  done:
    type: final
  working:
    on:
      DONE:
        - target: done
          guards:
            - tests_pass
            - {field: n, op: gte, value: 2}
        - planning
  planning:
    allowed_tools:
      - Read
      - mcp__github__*
    max_iterations: 10
    on:
      READY: {target: working, guard: ready}
      FAIL: failed
initial: planning
after_final: closed
max_transitions: 40
context: {attempts: 0, ratio: 1.50, big: 1E3, zero: 0}
facts: {tests: {command: pytest -q}}
guards:
  ready: {field: review.done, op: eq, value: true}
  tests_pass: {field: observed.tests, op: eq, value: 0}
"#;

const TOML: &str = r#"
id = "fix"
initial = "planning"
after_final = "closed"
max_transitions = 40
context = { attempts = 0, ratio = 1.50, big = 1e+3, zero = 0 }
facts.tests.command = "pytest -q"

[guards]
ready = { field = "review.done", op = "eq", value = true }
tests_pass = { field = "observed.tests", op = "eq", value = 0 }

[states.planning]
allowed_tools = ["Read", "mcp__github__*"]
max_iterations = 10
on.READY = { target = "working", guard = "ready" }
on.FAIL = "failed"

[states.working]
[[states.working.on.DONE]]
target = "done"
guards = ["tests_pass", { field = "n", op = "gte", value = 2 }]
[[states.working.on.DONE]]
target = "planning"

[states.done]
type = "final"
[states.failed]
type = "final"
"#;

fn loaded(text: &str, format: Format) -> Loaded {
    load(text, format, &Limits::MAX).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

#[test]
fn names_are_resolved_and_defaults_filled_in() {
    let Loaded { workflow, warnings } = loaded(JSON, Format::Json);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((workflow.id(), workflow.after_final(), workflow.max_transitions()), ("fix", AfterFinal::Closed, 40));
    let names: Vec<_> = workflow.states().map(|(_, state)| state.name.as_str()).collect();
    assert_eq!(names, ["done", "failed", "planning", "working"]);
    let kind = |name| workflow.find(name).and_then(|id| workflow.state(id)).map(|state| state.kind);
    assert_eq!(kind("done"), Some(StateKind::Final(Outcome::Success)));
    assert_eq!(kind("failed"), Some(StateKind::Final(Outcome::Failure)), "by its name");
    assert_eq!(workflow.state(workflow.initial()).map(|state| state.name.as_str()), Some("planning"));
    let working = workflow.state(workflow.find("working").unwrap()).unwrap();
    let (event, rows) = &working.on[0];
    assert_eq!((event.as_str(), rows.len()), ("DONE", 2));
    let guards: Vec<_> = rows[0].guards.iter().map(|id| workflow.guard(*id).unwrap()).collect();
    assert_eq!(guards.iter().map(|guard| guard.name.as_str()).collect::<Vec<_>>(), ["tests_pass", "n gte"]);
    assert_eq!((guards[0].source, guards[1].source), (Source::Observed, Source::Context));
    assert_eq!(workflow.facts()[0].command, "pytest -q");
}

#[test]
fn one_workflow_has_one_digest_in_every_format() {
    let workflow = loaded(JSON, Format::Json).workflow;
    for (text, format) in [(YAML, Format::Yaml), (workflow.text(), Format::Json)] {
        assert_eq!(loaded(text, format).workflow.text(), workflow.text(), "{format:?}");
    }
    let again = Workflow::from_text(workflow.text()).unwrap();
    assert_eq!(again.digest(), workflow.digest());
    assert_eq!(format!("{again:?}"), format!("{workflow:?}"), "down to every id");
    // In TOML a list of tables holds tables alone, so the last row is spelt as one there.
    let spelt = JSON.replace(r#", "planning"]"#, r#", {"target": "planning"}]"#);
    assert_eq!(loaded(TOML, Format::Toml).workflow.digest(), loaded(&spelt, Format::Json).workflow.digest());
}

#[test]
fn strings_are_one_string_after_normalisation() {
    let text = JSON.replace("working", "cafe\u{301}");
    let workflow = loaded(&text.replacen("cafe\u{301}", "caf\u{e9}", 1), Format::Json).workflow;
    assert_eq!(workflow.digest(), loaded(&text, Format::Json).workflow.digest());
}

#[test]
fn limits_are_kept() {
    let lower = |limits: Limits| {
        load(JSON, Format::Json, &limits).map_or_else(|problems| problems[0].message.clone(), |_| String::new())
    };
    assert_eq!(lower(Limits { states: 4, ..Limits::MAX }), "");
    assert_eq!(lower(Limits { states: 3, ..Limits::MAX }), "more than 3 states");
    assert_eq!(lower(Limits { rows: 1, ..Limits::MAX }), "more than 1 rows");
    assert_eq!(lower(Limits { bytes: JSON.len(), ..Limits::MAX }), "");
    assert!(lower(Limits { bytes: JSON.len() - 1, ..Limits::MAX }).contains("bytes"));
    assert_eq!(lower(Limits { depth: 4, ..Limits::MAX }), "nested more than 4 deep");
    let long = format!("{}{}", JSON, " ".repeat(TEXT_BYTES_MAX));
    assert_eq!(load(&long, Format::Json, &Limits { bytes: usize::MAX, ..Limits::MAX }).unwrap_err().len(), 1);
}
