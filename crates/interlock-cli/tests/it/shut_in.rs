//! Command lines of Codex inside a sandbox like its own, from within which nothing reaches the daemon: what was left for
//! the call runs held, and how it ended comes back in the output. Nothing else is believed.

use std::fs;
use std::process::Output;

use interlock_core::Digest;
use interlock_core::json::quote;
use interlock_hosts::trailer;
use serde_json::Value;

use crate::home::Home;
use crate::serve::PROGRAM;
use crate::{path, text};

const FLOW: &str = r#"{"id":"fix","initial":"work","facts":{"tests":{"command":"sh test.sh"}},
    "guards":{"passed":{"field":"observed.tests","op":"eq","value":0,"source":"observed"}},
    "states":{"work":{"on":{"DONE":{"target":"done","guard":"passed"}}},"done":{"type":"final"}}}"#;

/// What puts a filter like that of Codex' sandbox around a command.
const FILTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../interlock-runner/tests/it/shut_in.py");

/// Codex, enforced, in a workflow.
struct Codex {
    home: Home,
}

impl Codex {
    /// Its tests end with this code. Nothing where the kernel can hold nothing: then no line is contained in the first place.
    fn new(exit_code: u8) -> Option<Codex> {
        let codex = Codex { home: Home::new() };
        let probed = codex.home.run(&["exec", "--probe"]);
        let told: Value = serde_json::from_str(text(&probed.stdout)).expect("JSON");
        if told["rung"] == "none" {
            return None;
        }
        codex.home.write("repo/flow.json", FLOW);
        codex.home.write("repo/test.sh", &format!("exit {exit_code}\n"));
        assert!(codex.home.run(&["install", "codex", "--yes"]).status.success());
        codex.event("SessionStart", r#""source":"startup""#);
        codex.home.enforce();
        let output = codex.home.run(&["workflow", "start", "flow.json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        Some(codex)
    }

    fn event(&self, name: &str, more: &str) -> Output {
        let cwd = quote(path(&self.home.repo()));
        let event = format!(r#"{{"session_id":"s","cwd":{cwd},"hook_event_name":"{name}",{more}}}"#);
        self.home.feed(self.home.command(PROGRAM, &["hook", "codex"]), event.as_bytes())
    }

    /// The text that Codex is told to run in the place of a line; nothing if it is to run as it is.
    fn rewritten(&self, call: &str, line: &str) -> Option<String> {
        let asked = format!(r#""tool_name":"Bash","tool_input":{{"command":{}}},"tool_use_id":"{call}""#, quote(line));
        let output = self.event("PreToolUse", &asked);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        let answer: Option<Value> = (!said.is_empty()).then(|| serde_json::from_str(said).expect("JSON"));
        answer.map(|it| it["hookSpecificOutput"]["updatedInput"]["command"].as_str().expect("a command").to_owned())
    }

    /// Runs a text as Codex does, in a sandbox. `filter` has options of the filter.
    fn runs(&self, call: &str, carried: &str, filter: &[&str]) -> Output {
        let mut command = self.home.command("/usr/bin/python3", &[FILTER]);
        command.args(filter).args(["/bin/bash", "-c", carried]).env("CODEX_TOOL_CALL_ID", call);
        command.output().expect("it runs")
    }

    /// Tells that a call ended, with this output.
    fn ended(&self, call: &str, carried: &str, output: &str) {
        let (carried, output) = (quote(carried), quote(output));
        let told = format!(
            r#""tool_name":"Bash","tool_input":{{"command":{carried}}},"tool_use_id":"{call}","tool_response":{output}"#
        );
        let output = self.event("PostToolUse", &told);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }

    fn run(&self) -> Value {
        let output = self.home.run(&["workflow", "status", "--json"]);
        let status: Value = serde_json::from_str(text(&output.stdout)).expect("JSON");
        status["agents"][0].clone()
    }

    fn fact(&self) -> Value {
        self.run()["run"]["context"]["observed"]["tests"].clone()
    }

    fn why(&self) -> String {
        self.run()["run"]["transitions"][0]["why"][0].as_str().unwrap_or_default().to_owned()
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn refused(output: &Output, code: &str) {
    assert_eq!(output.status.code(), Some(126), "{}", said(output));
    assert!(text(&output.stderr).contains(code) && output.stdout.is_empty(), "{}", said(output));
}

#[test]
fn what_was_judged_runs_held_inside_and_its_end_is_a_fact() {
    let Some(codex) = Codex::new(3) else { return };
    let outside = codex.home.file("outside");
    let script = format!(
        "echo in > made; echo out > {}; cat {}/left/* {}/data/*; exit 4\n",
        path(&outside),
        path(&codex.home.home()),
        path(&codex.home.home())
    );
    codex.home.write("repo/work.sh", &script);
    let carried = codex.rewritten("one", "sh work.sh").expect("it carries a ticket");
    let output = codex.runs("one", &carried, &[]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(4), ""), "{}", said(&output));
    assert!(codex.home.repo().join("made").exists() && !outside.exists(), "{}", said(&output));
    codex.ended("one", &carried, &said(&output));
    assert_eq!(codex.run()["run"]["context"]["observed"]["last_command"]["exit_code"], 4);
    // The command of a fact, once it fails and once it does not.
    let carried = codex.rewritten("two", "sh test.sh").expect("it carries a ticket");
    let output = codex.runs("two", &carried, &[]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    codex.ended("two", &carried, &said(&output));
    assert_eq!((codex.fact(), codex.why().as_str()), (3.into(), "`sh test.sh` ended with code 3"));
    assert!(codex.run()["frozen"].is_null());
    // What was left is gone with the call, and everything that is on record follows from what was decided.
    assert_eq!(fs::read_dir(codex.home.home().join("left")).expect("a directory").count(), 0);
    codex.home.end_daemons();
    for how in ["verify", "replay"] {
        let audit = codex.home.run(&["audit", how]);
        assert!(audit.status.success(), "{}", said(&audit));
    }
}

#[test]
fn a_ticket_is_for_its_line_its_directory_its_call_and_a_minute() {
    let Some(codex) = Codex::new(3) else { return };
    let carried = codex.rewritten("one", "sh test.sh").expect("it carries a ticket");
    refused(&codex.runs("two", &carried, &[]), "INTERLOCK-CONTAIN-002");
    refused(&codex.runs("", &carried, &[]), "INTERLOCK-CONTAIN-002");
    refused(&codex.runs("one", &carried.replace("sh test.sh", "sh other.sh"), &[]), "INTERLOCK-CONTAIN-002");
    let elsewhere = codex.runs("one", &format!("cd / && {carried}"), &[]);
    assert_eq!(elsewhere.status.code(), Some(126), "{}", said(&elsewhere));
    let forged = carried.replace("tkt_", "tkt_0");
    refused(&codex.runs("one", &forged, &[]), "INTERLOCK-CONTAIN-003");
    // A minute later; then what was left is gone.
    let left = codex.home.home().join("left");
    let file = fs::read_dir(&left).expect("a directory").next().expect("a file").expect("an entry").path();
    let mut old: Value = serde_json::from_str(&fs::read_to_string(&file).expect("text")).expect("JSON");
    let at = old["at"].as_u64().expect("a time");
    for (at, code) in [(at - 61_000, Some(126)), (at + 3_600_000, Some(126)), (at, Some(3))] {
        old["at"] = at.into();
        fs::write(&file, old.to_string()).expect("written");
        let output = codex.runs("one", &carried, &[]);
        assert_eq!(output.status.code(), code, "{}", said(&output));
    }
    fs::remove_file(&file).expect("removed");
    refused(&codex.runs("one", &carried, &[]), "INTERLOCK-CONTAIN-003");
    // A person's own command has nothing left for it either.
    refused(&codex.runs("one", &format!("exec {PROGRAM} exec -- true"), &[]), "INTERLOCK-CONTAIN-003");
}

#[test]
fn only_the_runner_s_own_last_word_is_a_fact() {
    let Some(codex) = Codex::new(0) else { return };
    let output_of = |call: &str| {
        let carried = codex.rewritten(call, "sh test.sh").expect("it carries a ticket");
        let output = codex.runs(call, &carried, &[]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        (carried, said(&output))
    };
    let (first, told) = output_of("0");
    codex.ended("0", &first, "");
    assert!(codex.fact().is_null());
    assert_eq!(codex.why(), "`sh test.sh` was run, but its runner did not tell how it ended");
    let guess = Digest::of(&["a guess"]);
    let made_up = trailer(r#"{"exec_id":"exec_0","exit_code":0,"duration_ms":1}"#, guess);
    // Another call's, one that was changed, one with another secret, one that comes twice, and one before a made-up one.
    for (number, change) in [
        (1, Box::new(|_: &str| told.clone()) as Box<dyn Fn(&str) -> String>),
        (2, Box::new(|own: &str| own.replace("\"exit_code\":0", "\"exit_code\":1"))),
        (3, Box::new(|_: &str| made_up.clone())),
        (4, Box::new(|own: &str| format!("{own}{own}"))),
        (5, Box::new(|own: &str| format!("{own}{made_up}"))),
    ] {
        let call = number.to_string();
        let (carried, own) = output_of(&call);
        codex.ended(&call, &carried, &change(&own));
        assert!(codex.fact().is_null(), "{number}");
        assert!(codex.run()["frozen"].is_null(), "{number}");
        // A change, so that the same result is no loop.
        let other = codex.rewritten(&format!("w{number}"), &format!("echo {number} > n")).expect("a ticket");
        codex.ended(&format!("w{number}"), &other, "");
    }
    // What the command itself prints stands before the runner's word and says nothing.
    let (carried, own) = output_of("6");
    codex.ended("6", &carried, &format!("{made_up}{own}"));
    assert_eq!(codex.fact(), 0);
}

/// Where the sandbox leaves no way to hold anything, one line does not run; from then on lines are judged as without a
/// runner.
#[test]
fn where_nothing_can_be_held_inside_lines_are_judged_as_without_a_runner() {
    let Some(codex) = Codex::new(3) else { return };
    let carried = codex.rewritten("one", "sh test.sh").expect("it carries a ticket");
    let output = codex.runs("one", &carried, &["--no-filters"]);
    assert_eq!(output.status.code(), Some(126), "{}", said(&output));
    assert!(said(&output).contains("INTERLOCK-CONTAIN-001") && said(&output).contains("from the next command line on"));
    codex.ended("one", &carried, &said(&output));
    assert_eq!(codex.rewritten("two", "ls"), None);
    let asked = r#""tool_name":"Bash","tool_input":{"command":"sh test.sh"},"tool_use_id":"three""#;
    let output = codex.event("PreToolUse", asked);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(codex.fact().is_null() && codex.run()["frozen"].is_null());
}

/// What cannot be left for the runner is a refusal, and where refusals are only shown, the line runs as it is.
#[test]
fn a_line_for_which_nothing_can_be_left_is_refused() {
    let Some(codex) = Codex::new(3) else { return };
    fs::write(codex.home.home().join("left"), "no directory").expect("written");
    let asked = r#""tool_name":"Bash","tool_input":{"command":"sh test.sh"},"tool_use_id":"one""#;
    let output = codex.event("PreToolUse", asked);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("INTERLOCK-CONTAIN-003"), "{}", said(&output));
    let observed = codex.home.run(&["observe"]);
    assert!(observed.status.success(), "{}", said(&observed));
    assert_eq!(codex.rewritten("two", "sh test.sh"), None);
}

/// The text that ran is compared with the one that was told.
#[test]
fn another_ticket_than_the_one_that_was_told_freezes_the_run() {
    for kind in ["another call's", "made up", "none"] {
        let Some(codex) = Codex::new(3) else { return };
        let other = codex.rewritten("one", "sh test.sh").expect("a ticket");
        codex.ended("one", &other, "");
        assert!(codex.run()["frozen"].is_null(), "{kind}");
        let carried = codex.rewritten("two", "sh test.sh").expect("a ticket");
        let executed = match kind {
            "another call's" => other,
            "made up" => carried.replace("tkt_", "tkt_0"),
            _ => "sh test.sh".to_owned(),
        };
        codex.ended("two", &executed, "");
        assert_eq!(codex.run()["frozen"], "what was executed is not what was judged", "{kind}");
    }
}
