//! `interlock workflow`: what people see, and what scripts read.

use std::fs;

use crate::golden::check;
use crate::{path, run, run_with_input, text};

const DEPLOY: &str = "examples/workflow/deploy.yaml";

#[test]
fn problems_of_a_text_are_all_told_of_with_their_places() {
    let broken = br#"{
  "id": "broken", "initial": "planing",
  "states": {
    "planning": {"allowed_tool": ["Read"], "on": {"READY": "bulding"}},
    "building": {"on": {"DONE": {"target": "done", "guard": "tests_pased"}}, "max_iterations": 0},
    "done": {"type": "final"}
  },
  "guards": {"tests_passed": {"field": "test_result", "op": "equals", "value": "pass"}}
}"#;
    check("workflow_check_load.txt", 1, &run_with_input(&["workflow", "check", "-"], broken));
    check("workflow_check_load.json", 1, &run_with_input(&["workflow", "check", "-", "--json"], broken));
    let strange = b"id: strange
initial: planning
guards:
  none: {field: count, op: lt, value: 3}
  many: {field: count, op: gt, value: 5}
states:
  planning:
    allowed_tools: [Read, Bash]
    allowed_commands: [npm test]
    on:
      READY: {target: building, guards: [none, many]}
      SKIP: building
      STOP: done
  building:
    on: {DONE: done, AGAIN: planning}
  done: {type: final}
";
    check("workflow_check_findings.txt", 1, &run_with_input(&["workflow", "check", "-"], strange));
    check("workflow_check_example.txt", 0, &run(&["workflow", "check", DEPLOY, "bugfix"]));
    let warned = run_with_input(
        &["workflow", "check", "--strict", "--no-notes", "-"],
        b"id: w
initial: a
states: {a: {allowed_tools: [Read], max_iterations: 1, on: {END: b}}, b: {type: final}}
",
    );
    assert_eq!(warned.status.code(), Some(1), "a warning counts under --strict: {}", text(&warned.stdout));
}

#[test]
fn properties_are_proven_or_broken_by_a_run() {
    let properties = [
        "Bash(git push*) only after approved",
        "never deploying before tests_passed",
        "Write only in building",
        "no Write after deploying",
        "deploying only after planning",
        "never Edit in planning",
        "always eventually final",
        "always final within 4",
    ];
    let mut arguments = vec!["workflow", "prove", DEPLOY];
    arguments.extend(properties);
    check("workflow_prove.txt", 1, &run(&arguments));
    arguments.push("--json");
    check("workflow_prove.json", 1, &run(&arguments));
    let calls = ["workflow", "prove", DEPLOY, "--calls", "Bash(git push*) only after approved"];
    check("workflow_prove_calls.txt", 0, &run(&calls));
    check("workflow_prove_unknown.txt", 2, &run(&["workflow", "prove", DEPLOY, "never deploing before tests_passed"]));
    let claimed = b"id: claimed
initial: work
after_final: closed
guards: {tests_passed: {field: test_result, op: eq, value: pass}}
states:
  work: {on: {DEPLOY: {target: deploying, guard: tests_passed}}}
  deploying: {on: {DONE: done}}
  done: {type: final}
";
    let arguments = ["workflow", "prove", "-", "never deploying before tests_passed"];
    check("workflow_prove_claimed.txt", 1, &run_with_input(&arguments, claimed));
}

#[test]
fn a_proof_counts_on_profiles_only_as_far_as_they_hold() {
    let text = b"id: held
initial: work
after_final: closed
states:
  work: {allowed_tools: [Read, Bash], allowed_commands: [./run.sh, npm test, docker run *], on: {DONE: done, GO: alone}}
  alone: {allowed_tools: [Read, Bash], allowed_commands: [./run.sh, npm test], on: {DONE: done}}
  done: {type: final}
";
    let properties = [
        "never Bash(git push*) in alone",
        "never WebFetch in alone",
        "never Bash(git push*) in work",
        "never Write in alone",
        "never Bash(make deploy) in alone",
        "never mcp__github__push in alone",
    ];
    let mut arguments = vec!["workflow", "prove", "-", "--contained"];
    arguments.extend(properties);
    check("workflow_prove_contained.txt", 1, &run_with_input(&arguments, text));
    let bundle = tempfile::tempdir().expect("a directory");
    let listed = "[contain.build]\nconnect = [\"packages.example.org\"]\n";
    std::fs::write(bundle.path().join("interlock.toml"), listed).expect("written");
    arguments.extend(["--bundle", bundle.path().to_str().expect("text")]);
    check("workflow_prove_contained_bundle.txt", 1, &run_with_input(&arguments, text));
}

#[test]
fn a_workflow_is_stepped_through_by_hand() {
    let input =
        b"tool Write\nREADY\n! git push\nTESTED\nobserve tests 0\nTESTED {\"data\": {\"note\": \"x\"}}\ntool Edit\n\
        approve\n! git push origin main\nDEPLOYED\nREADY\nquit\n";
    check("workflow_run.txt", 0, &run_with_input(&["workflow", "run", DEPLOY], input));
    let odd = b"observe nothing 0\nobserve tests\nREADY {\nREADY [1]\nREADY {\"observed\": {}}\napprove\nNO_SUCH\n";
    check("workflow_run_odd.txt", 0, &run_with_input(&["workflow", "run", DEPLOY], odd));
}

#[test]
fn scenarios_are_run_and_coverage_is_told() {
    check("workflow_test.txt", 0, &run(&["workflow", "test", DEPLOY]));
    check("workflow_test.json", 0, &run(&["workflow", "test", DEPLOY, "--json"]));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("wrong.toml");
    fs::write(&file, "[[scenario]]\nname = \"n\"\nsteps = [\n  { event = \"READY\", expect = \"deploying\" },\n]\n")
        .expect("written");
    let failed = run(&["workflow", "test", DEPLOY, path(&file)]);
    assert_eq!(failed.status.code(), Some(1));
    let shown = text(&failed.stdout);
    assert!(shown.contains("step 1: event READY") && shown.contains("wrong.toml:4:3"), "{shown}");
    assert!(shown.contains("expected `deploying`\n  got      `building`"), "{shown}");
    fs::write(&file, "[[scenario]]\nname = \"n\"\nsteps = [\n  { event = \"READY\", expct = \"x\" },\n]\n")
        .expect("written");
    let faulty = run(&["workflow", "test", DEPLOY, path(&file)]);
    assert_eq!(faulty.status.code(), Some(2));
    assert!(text(&faulty.stderr).contains("wrong.toml:4:22: unknown field `expct`"), "{}", text(&faulty.stderr));
}

#[test]
fn pictures_and_templates_are_printed() {
    for format in ["mermaid", "dot", "svg"] {
        check(&format!("workflow_graph.{format}"), 0, &run(&["workflow", "graph", DEPLOY, "--format", format]));
    }
    let lit = run(&["workflow", "graph", DEPLOY, "--format", "svg", "--current", "building"]);
    assert!(text(&lit.stdout).contains("the run is here"));
    assert_eq!(run(&["workflow", "graph", DEPLOY, "--current", "buildin"]).status.code(), Some(2));
    check("workflow_templates.txt", 0, &run(&["workflow", "templates"]));
    assert!(text(&run(&["workflow", "templates", "bugfix"]).stdout).contains("id: bugfix"));
    let unknown = run(&["workflow", "templates", "bugfx"]);
    assert!(unknown.status.code() == Some(2) && text(&unknown.stderr).contains("did you mean `bugfix`?"));
    assert!(text(&run(&["workflow", "schema"]).stdout).contains("json-schema.org"));
    check("workflow_help.txt", 0, &run(&["workflow", "--help"]));
    check("workflow_prove_help.txt", 0, &run(&["workflow", "prove", "--help"]));
}
