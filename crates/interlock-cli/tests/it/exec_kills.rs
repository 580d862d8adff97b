//! Kills and full disks around a command that was judged: nothing runs unjudged or twice, and what was not seen to end is no
//! fact.

use std::fs;
use std::process::{Child, Command, Stdio};

use interlock_core::json::quote;
use interlock_testkit::wait::until;
use serde_json::Value;

use crate::exec::{Agent, holds, refused};
use crate::recorded::Spawned;
use crate::serve::PROGRAM;
use crate::{path, text};

/// The command of a fact: it says that it ran, and goes on as long as it is told to.
const SCRIPT: &str = "echo ran >> ran\n: > started\nwhile [ -e wait ]; do sleep 0.02; done\n";
const LINE: &str = "sh check.sh";
const WORKFLOW: &str = "id: checked
initial: work
after_final: closed
facts: {tests: {command: sh check.sh}}
guards: {passed: {field: observed.tests, op: eq, value: 0, source: observed}}
states:
  work: {allowed_tools: [Read, Write, Bash], allowed_commands: [sh check.sh, echo *], on: {DONE: {target: done, guard: passed}}}
  done: {type: final}
";

/// An enforced agent in a workflow that waits for the fact; nothing where the kernel can hold nothing.
fn checked() -> Option<Agent> {
    let agent = Agent::new("claude-code");
    agent.home.write("repo/check.sh", SCRIPT);
    agent.home.write("workflow.yaml", WORKFLOW);
    // Facts come from a host that began a session: this process.
    let begins = format!(
        r#"{{"session_id":"s","transcript_path":"/dev/null","cwd":{},"hook_event_name":"SessionStart","source":"startup"}}"#,
        quote(path(&agent.home.repo()))
    );
    let begun = agent.home.hook(&[], begins.as_bytes());
    assert!(begun.status.success(), "{}", text(&begun.stderr));
    agent.enforce();
    let started = agent.home.run(&["workflow", "start", path(&agent.home.file("workflow.yaml"))]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    holds(&agent.home).then_some(agent)
}

/// Whether the fact is met, as far as the ledger knows.
fn is_met(agent: &Agent) -> bool {
    let status = agent.home.run(&["workflow", "status", "--json"]);
    let told: Value = serde_json::from_str(text(&status.stdout)).expect("JSON");
    let unmet = told.pointer("/agents/0/run/transitions/0/unmet").and_then(Value::as_array);
    unmet.unwrap_or_else(|| panic!("no way out: {told}")).is_empty()
}

/// How often the command ran.
fn runs(agent: &Agent) -> usize {
    agent.home.read("repo/ran").map_or(0, |ran| ran.lines().count())
}

fn is_sound(agent: &Agent) {
    for what in ["verify", "replay"] {
        let audit = agent.home.run(&["audit", what]);
        assert!(audit.status.success(), "{what}: {}{}", text(&audit.stdout), text(&audit.stderr));
    }
}

/// Starts the command of a text and waits until it runs.
fn running(agent: &Agent, carried: &str) -> Child {
    agent.home.write("repo/wait", "");
    let mut command = agent.handed(carried, &agent.home.file("claude-00aa-cwd"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the prefix");
    until("the command runs", || agent.made("started").exists());
    child
}

fn kill(process: u32) {
    let killed = Command::new("kill").args(["-KILL", &process.to_string()]).status().expect("kill");
    assert!(killed.success());
}

/// Whether a process of the script is left.
fn is_left(agent: &Agent) -> bool {
    let repo = agent.home.repo();
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    processes.map(|process| process.path()).any(|process| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        let is_it = String::from_utf8_lossy(&words).contains("check.sh");
        is_it && fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == repo)
    })
}

#[test]
fn a_daemon_that_dies_between_ruling_and_start_changes_nothing() {
    let Some(agent) = checked() else { return };
    let carried = agent.rewritten("claude-code", LINE);
    agent.home.daemons().into_iter().for_each(kill);
    let (output, _) = agent.prefixed(&carried);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // An end is answered before the disk has it.
    until("a new daemon knows what was judged", || is_met(&agent));
    refused(&agent.prefixed(&carried).0, "INTERLOCK-CONTAIN-002");
    assert_eq!(runs(&agent), 1);
    is_sound(&agent);
}

#[test]
fn a_runner_that_is_killed_takes_its_command_along_and_meets_no_fact() {
    let Some(agent) = checked() else { return };
    let carried = agent.rewritten("claude-code", LINE);
    let mut runner = running(&agent, &carried);
    assert!(is_left(&agent), "it would be seen");
    kill(runner.id());
    runner.wait().expect("it ended");
    until("nothing of the command is left", || !is_left(&agent));
    assert!(!is_met(&agent));
    refused(&agent.prefixed(&carried).0, "INTERLOCK-CONTAIN-002");
    assert_eq!(runs(&agent), 1);
    is_sound(&agent);
}

/// A host of its own, which starts the prefix and is killed.
#[test]
fn what_a_host_started_ends_with_the_host() {
    let Some(agent) = checked() else { return };
    let carried = agent.rewritten("claude-code", LINE);
    agent.home.write("repo/wait", "");
    let handed = agent.handed(&carried, &agent.home.file("claude-00aa-cwd"));
    let mut host = agent.home.command("sh", &["-c", "\"$@\"; true", "host"]);
    host.env("SHELL", "/bin/bash").arg(handed.get_program()).args(handed.get_args());
    let mut host = host.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a host");
    until("the command runs", || agent.made("started").exists() && is_left(&agent));
    kill(host.id());
    host.wait().expect("it ended");
    until("nothing of the command is left", || !is_left(&agent));
    assert!(!is_met(&agent));
    is_sound(&agent);
}

#[test]
fn a_daemon_that_dies_while_a_command_runs_loses_no_more_than_the_fact() {
    let Some(agent) = checked() else { return };
    let carried = agent.rewritten("claude-code", LINE);
    let mut runner = running(&agent, &carried);
    agent.home.daemons().into_iter().for_each(kill);
    fs::remove_file(agent.made("wait")).expect("removed");
    assert_eq!(runner.wait().expect("it ended").code(), Some(0), "how it ended is the command's to say");
    // The end is told to a new daemon, or it is not.
    let _ = is_met(&agent);
    refused(&agent.prefixed(&carried).0, "INTERLOCK-CONTAIN-002");
    assert_eq!(runs(&agent), 1);
    is_sound(&agent);
}

#[test]
fn two_sessions_run_what_each_was_let_run() {
    let Some(agent) = checked() else { return };
    let (one, other) = (agent.rewritten("claude-code", "echo one > one"), agent.rewritten("claude-code", LINE));
    let mut runner = running(&agent, &other);
    let (output, _) = agent.prefixed(&one);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (_, ticket) = other.rsplit_once('\n').expect("a ticket");
    refused(&agent.prefixed(&format!("echo two > two\n{ticket}")).0, "INTERLOCK-CONTAIN-002");
    fs::remove_file(agent.made("wait")).expect("removed");
    assert_eq!(runner.wait().expect("it ended").code(), Some(0));
    assert!(agent.made("one").exists() && !agent.made("two").exists());
    assert!(!is_met(&agent), "something was written meanwhile");
    is_sound(&agent);
}

/// From some write of the daemon on the disk is full: the command runs and is on record, or neither.
#[test]
fn on_a_full_disk_nothing_starts_that_is_not_on_record() {
    let Some(agent) = checked() else { return };
    let mut refusals = 0;
    for (number, when) in [1, 3, 5, 7, 9, 12].into_iter().enumerate() {
        let carried = agent.rewritten("claude-code", &format!("echo {number} >> ran"));
        agent.home.end_daemons();
        let before = runs(&agent);
        let inject = format!("inject=pwrite64:error=ENOSPC:when={when}+");
        let mut full = agent.home.command("strace", &["-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e"]);
        let home = agent.home.home();
        full.args([&inject, PROGRAM, "serve", "--socket-only", "--home", path(&home)]);
        let mut full = Spawned::start(&mut full);
        until("it listens, or gave up", || {
            full.0.try_wait().expect("a process").is_some() || home.join("run/interlock.sock").exists()
        });
        let (output, _) = agent.prefixed(&carried);
        agent.home.end_daemons();
        drop(full);
        match output.status.code() {
            Some(0) => {
                assert_eq!(runs(&agent), before + 1);
                refused(&agent.prefixed(&carried).0, "INTERLOCK-CONTAIN-002");
            }
            code => {
                assert_eq!((code, runs(&agent)), (Some(126), before), "{}", text(&output.stderr));
                refusals += 1;
            }
        }
        is_sound(&agent);
    }
    assert!(refusals > 0, "the disk was never full");
}
