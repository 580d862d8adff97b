//! Wrong usage, faults and small commands.

use std::fs;

use interlock_core::Code;
use interlock_testkit::repository;

use crate::{interlock, path, run, run_with_input, text};

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_wrong() {
    let guard = "examples/state/guard.json";
    let cases: [(&[&str], &str); 6] = [
        (&["state", "verify"], "--guard"),
        (&["state", "verify", "--guard", guard, "--proposed", "no-such-file.json"], "no-such-file.json"),
        (&["state", "verify", "--guard", "-", "--proposed", "-"], "cannot both be read from standard input"),
        (&["state", "verify", "--guard", guard, "--proposed", guard, "--commit", "/tmp/x.json"], "--current"),
        (&["state", "verfy"], "verify"),
        (&["explain", "nonsense"], "is not a code"),
    ];
    for (arguments, part) in cases {
        let output = run_with_input(arguments, b"{}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(text(&output.stderr).contains(part), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_guard_that_cannot_be_loaded_is_a_fault_with_a_code() {
    for guard in ["", "[]", "{}", "{\"required_schema\": {\"type\": \"string\"}, \"extra\": 1}", "\u{feff}{}"] {
        let output = run_with_input(&["state", "lint", "-", "--json"], guard.as_bytes());
        assert_eq!(output.status.code(), Some(2), "{guard}");
        assert!(text(&output.stdout).contains("INTERLOCK-CONFIG-001"), "{guard}: {}", text(&output.stdout));
    }
    let output = run_with_input(&["state", "lint", "-"], b"\xff");
    assert!(text(&output.stderr).contains("INTERLOCK-CONFIG-001"));
}

#[test]
fn every_code_is_explained_by_its_page() {
    for code in Code::ALL {
        let output = run(&["explain", code.as_str()]);
        let page = fs::read_to_string(repository().join(format!("docs/errors/{code}.md"))).expect("a page");
        assert_eq!(text(&output.stdout), page);
        let output = run(&["explain", &code.as_str().to_lowercase(), "--json"]);
        assert!(output.status.success() && text(&output.stdout).starts_with("{\"code\":"));
    }
    assert_eq!(run(&["explain", "106"]).stdout, run(&["explain", "QWED-AGENT-STATE-106"]).stdout);
    assert_eq!(run(&["explain", "001"]).status.code(), Some(2), "two codes end so");
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("explain"), "{shell}");
    }
}

#[test]
fn colours_come_only_when_wanted() {
    let arguments = ["state", "lint", "examples/state/guard.json"];
    assert!(!text(&run(&arguments).stdout).contains('\u{1b}'));
    let forced = interlock(&arguments).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1").output().expect("it runs");
    assert!(text(&forced.stdout).contains('\u{1b}'));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    let script = format!("{} explain 106 | head -n 1", env!("CARGO_BIN_EXE_interlock"));
    let output = std::process::Command::new("bash").args(["-c", &format!("set -o pipefail; {script}")]).output();
    let output = output.expect("bash");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_commit_writes_the_canonical_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = path(directory.path());
    let guard = fs::read_to_string(repository().join("examples/state/guard.json")).expect("the guard");
    let guard =
        guard.trim_end().trim_end_matches('}').to_owned() + &format!(", \"allowed_commit_roots\": [\"{root}\"]}}");
    let guard_path = directory.path().join("guard.json");
    fs::write(&guard_path, guard).expect("written");
    let target = directory.path().join("agent.json");
    let commit = |current: &str, proposed: &str| {
        let arguments = ["state", "verify", "--guard", path(&guard_path), "--current", current, "--proposed", proposed];
        run(&[&arguments[..], &["--commit", path(&target)]].concat())
    };
    let first = commit("examples/state/current.json", "examples/state/current.json");
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stdout));
    let second = commit(path(&target), "examples/state/finished.json");
    assert_eq!(second.status.code(), Some(0), "{}", text(&second.stdout));
    let state = fs::read_to_string(&target).expect("the state");
    assert!(state.starts_with("{\"agent_id\":\"a1\",\"status\":\"completed\","), "{state}");
    let third = commit("examples/state/current.json", "examples/state/finished.json");
    assert_eq!(third.status.code(), Some(1));
    assert!(text(&third.stdout).contains("QWED-AGENT-STATE-107"), "{}", text(&third.stdout));
}
