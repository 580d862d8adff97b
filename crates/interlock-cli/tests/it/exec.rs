//! `interlock exec` as people and hosts run it: what was judged runs, once and where it was judged, and nothing else does.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use interlock_core::json::quote;
use interlock_hosts::settings::{run_script, shell_prefix};
use serde_json::Value;

use crate::home::Home;
use crate::serve::PROGRAM;
use crate::{path, text};

/// As Claude Code writes it around a line.
const BEFORE: &str = "source /nowhere/snapshot.sh 2>/dev/null || true && { \\builtin unalias -- 'which'; \\builtin unset -f \
    -- 'which'; } >/dev/null 2>&1 || true && ";

/// A user with a host, installed.
pub(crate) struct Agent {
    pub(crate) home: Home,
    prefix: String,
}

impl Agent {
    pub(crate) fn new(host: &str) -> Agent {
        Agent::under(host, "")
    }

    /// The same under a bundle.
    pub(crate) fn under(host: &str, settings: &str) -> Agent {
        let home = Home::new();
        if !settings.is_empty() {
            let bundle = home.home().join("data/bundle");
            DirBuilder::new().recursive(true).mode(0o700).create(&bundle).expect("made");
            fs::write(bundle.join("interlock.toml"), settings).expect("written");
        }
        let output = home.run(&["install", host, "--yes"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let prefix = shell_prefix(path(&home.home()));
        Agent { home, prefix }
    }

    /// What the host is answered before it runs a line, if it is let.
    pub(crate) fn asks(&self, host: &str, line: &str) -> Result<Option<Value>, String> {
        let (name, tool) = match host {
            "gemini" => ("BeforeTool", "run_shell_command"),
            _ => ("PreToolUse", "Bash"),
        };
        let cwd = path(&self.home.repo()).to_owned();
        let event = format!(
            r#"{{"session_id":"s","cwd":"{cwd}","hook_event_name":"{name}","tool_name":"{tool}","tool_input":{{"command":{}}},"tool_use_id":"call"}}"#,
            quote(line)
        );
        let mut command = self.home.command(PROGRAM, &["hook", host]);
        command.env("CLAUDE_CODE_SHELL_PREFIX", &self.prefix);
        let output = self.home.feed(command, event.as_bytes());
        if output.status.code() != Some(0) {
            return Err(text(&output.stderr).to_owned());
        }
        let said = text(&output.stdout);
        Ok((!said.is_empty()).then(|| serde_json::from_str(said).expect("JSON")))
    }

    /// The text that the host is told to run in the place of a line.
    pub(crate) fn rewritten(&self, host: &str, line: &str) -> String {
        let answer = self.asks(host, line).expect("it is let run").expect("it is rewritten");
        let specific = &answer["hookSpecificOutput"];
        let input = if host == "gemini" { &specific["tool_input"] } else { &specific["updatedInput"] };
        input["command"].as_str().expect("a command").to_owned()
    }

    /// Hands a text to the shell prefix, as Claude Code does, with a file for the directory it ends in.
    pub(crate) fn prefixed(&self, carried: &str) -> (Output, Option<String>) {
        let file = self.home.file("claude-00aa-cwd");
        let output = self.handed(carried, &file).output().expect("the prefix");
        let ended_in = fs::read_to_string(&file).ok();
        let _ = fs::remove_file(&file);
        (output, ended_in)
    }

    /// The prefix as Claude Code starts it.
    pub(crate) fn handed(&self, carried: &str, directory_file: &Path) -> Command {
        let quoted = carried.replace('\'', "'\"'\"'");
        let whole = format!("{BEFORE}eval '{quoted}' < /dev/null && pwd -P >| {}", path(directory_file));
        let mut command = self.home.command(&self.prefix, &[&whole]);
        command.env("SHELL", "/bin/bash");
        command
    }

    pub(crate) fn made(&self, name: &str) -> PathBuf {
        self.home.repo().join(name)
    }

    pub(crate) fn enforce(&self) {
        // There is an agent once it has been heard of.
        let _ = self.asks("claude-code", "ls");
        self.home.enforce();
    }
}

pub(crate) fn refused(output: &Output, code: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(126), "{said}");
    assert!(said.starts_with("interlock exec: ") && said.contains(code), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}

/// Whether the kernel can hold anything here; where it cannot, nothing that has a bound runs.
pub(crate) fn holds(home: &Home) -> bool {
    let probed = home.run(&["exec", "--probe"]);
    assert!(probed.status.success(), "{}", text(&probed.stderr));
    let told: Value = serde_json::from_str(text(&probed.stdout)).expect("JSON");
    told["rung"] == "full"
}

#[test]
fn a_person_s_command_runs_held_and_ends_as_it_ends() {
    let home = Home::new();
    let run = |arguments: &[&str]| home.run(&[&["exec"], arguments].concat());
    if !holds(&home) {
        return refused(&run(&["--", "true"]), "INTERLOCK-CONTAIN-001");
    }
    let output = run(&["--", "sh", "-c", "echo out; echo err >&2; : > made; exit 5"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(5), "out\n"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).starts_with("err\n") && home.repo().join("made").exists());
    let output = run(&["--profile", "read", "-c", "cat made; echo x > other"]);
    assert!(!output.status.success() && !home.repo().join("other").exists(), "{}", text(&output.stderr));
    let outside = format!("echo x > {}", path(&home.file("outside")));
    assert!(!run(&["-c", &outside]).status.success() && !home.file("outside").exists());
    assert_eq!(run(&["-c", "kill -TERM $$"]).status.signal(), Some(15));
    assert_eq!(run(&["--", "no-such-program"]).status.code(), Some(127));
    refused(&run(&["--profile", "nonsense", "--", "true"]), "INTERLOCK-CONTAIN-001");
    refused(&run(&["--ticket", "AAAABBBBCCCCDDDD", "--", "true"]), "INTERLOCK-CONTAIN-002");
    assert_eq!(run(&[]).status.code(), Some(2));
    let fed = home.feed(home.command(PROGRAM, &["exec", "--", "cat"]), b"fed");
    assert_eq!(text(&fed.stdout), "fed");
}

#[test]
fn without_a_daemon_nothing_runs() {
    let home = Home::new();
    fs::write(home.home(), "no directory").expect("written");
    let output = home.run(&["exec", "-c", "echo ran > ran"]);
    refused(&output, "INTERLOCK-CONTAIN-003");
    assert!(!home.repo().join("ran").exists());
}

#[test]
fn in_a_sandbox_that_keeps_the_daemon_away_nothing_runs_and_nobody_waits() {
    let home = Home::new();
    assert!(home.run(&["exec", "--probe"]).status.success());
    let mut command = home.command("strace", &["-f", "-qq", "-o", "/dev/null", "-e", "trace=connect", "-e"]);
    command.args(["inject=connect:error=EPERM", PROGRAM, "exec", "-c", "echo ran > ran"]);
    let output = output_of(command);
    refused(&output, "INTERLOCK-CONTAIN-003");
    assert!(text(&output.stderr).contains("sandbox"), "{}", text(&output.stderr));
    assert!(!home.repo().join("ran").exists() && home.daemons().is_empty());
}

/// Observed, lines run as they would without Interlock, with or without a ticket.
#[test]
fn an_observed_host_s_lines_run_as_they_are() {
    let agent = Agent::new("claude-code");
    let (output, ended_in) = agent.prefixed("echo \"it's\"; cd ..; exit_code=3");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "it's\n"), "{}", text(&output.stderr));
    assert_eq!(ended_in.as_deref().map(str::trim), Some(path(&agent.home.user())));
    let carried = agent.rewritten("claude-code", "echo x > made; exit 3");
    let (output, _) = agent.prefixed(&carried);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(agent.made("made").exists());
    let (output, _) = agent.prefixed("kill -KILL $$");
    assert_eq!(output.status.signal(), Some(9));
}

#[test]
fn an_enforced_host_s_lines_run_with_their_ticket_once_and_where_they_were_judged() {
    let agent = Agent::new("claude-code");
    agent.enforce();
    if !holds(&agent.home) {
        return;
    }
    let carried = agent.rewritten("claude-code", "mkdir -p sub && cd sub && pwd > made");
    let (output, ended_in) = agent.prefixed(&carried);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let sub = agent.made("sub");
    assert_eq!(ended_in.as_deref().map(str::trim), Some(path(&sub)), "the host learns where its shell is");
    assert!(sub.join("made").exists());
    refused(&agent.prefixed(&carried).0, "INTERLOCK-CONTAIN-002");
    // Another line, another place, no ticket, an agent's own ticket.
    let carried = agent.rewritten("claude-code", "echo a > one");
    refused(&agent.prefixed(&carried.replacen("one", "two", 1)).0, "INTERLOCK-CONTAIN-002");
    let (_, ticket) = carried.rsplit_once('\n').expect("a ticket");
    refused(&agent.prefixed("echo a > two").0, "INTERLOCK-CONTAIN-002");
    refused(&agent.prefixed("echo a > two\n# interlock:AAAABBBBCCCCDDDD").0, "INTERLOCK-CONTAIN-002");
    assert!(agent.asks("claude-code", &format!("echo a > two\n{ticket}")).is_err());
    assert!(!agent.made("two").exists());
    assert_eq!(agent.prefixed(&carried).0.status.code(), Some(0), "its own ticket was not spent by others");
    assert!(agent.made("one").exists());
}

#[test]
fn what_a_host_hands_over_in_another_form_is_not_run() {
    let agent = Agent::new("claude-code");
    let hand = |text: &str, own: bool| {
        let mut command = agent.home.command(&agent.prefix, &[text]);
        if own {
            command.env("CLAUDE_PROJECT_DIR", "/");
        }
        command.output().expect("the prefix")
    };
    refused(&hand("echo x > made", false), "INTERLOCK-CONTAIN-002");
    refused(&hand("source a.sh; echo x > made", true), "INTERLOCK-CONTAIN-002");
    assert!(!agent.made("made").exists());
    // A hook or a server of the host's own.
    let output = hand("echo 'it'\"'\"'s' > made; exit 7", true);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(agent.made("made")).expect("made"), "it's\n");
    let more = agent.home.command(&agent.prefix, &["a", "b"]).output().expect("the prefix");
    assert_eq!(more.status.code(), Some(126));
}

/// As Codex and Gemini CLI run a text: in a bash of their own.
fn in_bash(agent: &Agent, host: &str, carried: &str) -> Output {
    let whole = match host {
        "gemini" => format!(
            "shopt -u promptvars nullglob extglob nocaseglob dotglob; _bgpids_file=/tmp/g/bgpids.tmp\n(\n  trap 'jobs -p > \
             \"$_bgpids_file\"' EXIT\n{carried}\n)\n__code=$?\nexit $__code"
        ),
        _ => carried.to_owned(),
    };
    agent.home.command("bash", &["-c", &whole]).output().expect("bash")
}

#[test]
fn lines_of_codex_and_gemini_cli_go_through_the_script() {
    for host in ["codex", "gemini"] {
        let agent = Agent::new(host);
        assert!(agent.asks(host, "ls").expect("it is let run").is_some(), "{host}");
        agent.home.enforce();
        if !holds(&agent.home) {
            return;
        }
        let carried = agent.rewritten(host, "echo x > made; exit 3");
        let output = in_bash(&agent, host, &carried);
        assert_eq!(output.status.code(), Some(3), "{host}: {}", text(&output.stderr));
        assert!(agent.made("made").exists(), "{host}");
        // Spent; made up; in a shell that is not bash; the script gone.
        assert_eq!(in_bash(&agent, host, &carried).status.code(), Some(126), "{host}");
        let script = run_script(path(&agent.home.home()));
        let forged = carried.replace("made", "other");
        assert_eq!(in_bash(&agent, host, &forged).status.code(), Some(126), "{host}");
        let sh = agent.home.command("sh", &["-c", &format!(". {script} AAAABBBBCCCCDDDD; echo x > other")]);
        assert_eq!(output_of(sh).status.code(), Some(126), "{host}");
        assert!(!agent.made("other").exists(), "{host}");
    }
}

fn output_of(mut command: Command) -> Output {
    command.output().expect("it runs")
}

/// The programs in the home outlive the binary, and say what to do.
#[test]
fn a_host_whose_interlock_is_gone_says_so_in_one_line() {
    let home = Home::new();
    let binary = home.file("bin/interlock");
    fs::create_dir_all(home.file("bin")).expect("made");
    fs::copy(PROGRAM, &binary).expect("a copy");
    let shell = home.file("bin/interlock-shell");
    let output = output_of(home.command(path(&binary), &["install", "claude-code", "--yes"]));
    assert!(text(&output.stderr).contains("it belongs beside `interlock`"), "{}", text(&output.stderr));
    fs::copy(env!("CARGO_BIN_EXE_interlock-shell"), &shell).expect("a copy");
    for host in ["claude-code", "codex"] {
        let output = output_of(home.command(path(&binary), &["install", host, "--yes"]));
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    // Another one in the place of what was copied takes over, and what cannot say whom to ask runs nothing.
    fs::write(&shell, "#!/bin/sh\necho \"taken over by $0: $*\"\n").expect("written");
    let own = shell_prefix(path(&home.home()));
    let pins = format!("{own}.json");
    let output = output_of(home.command(&own, &["echo x > made"]));
    assert_eq!(text(&output.stdout), format!("taken over by {}: --pins {pins} echo x > made\n", path(&shell)));
    fs::copy(env!("CARGO_BIN_EXE_interlock-shell"), &shell).expect("a copy");
    let whom = fs::read_to_string(&pins).expect("there");
    for wrong in ["", "{}", &whom.replace("sha256:", "sha0:")] {
        fs::write(&pins, wrong).expect("written");
        let output = output_of(home.command(&own, &["echo x > made"]));
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(126) && said.contains("`interlock install` again"), "{wrong}: {said}");
    }
    fs::write(&pins, &whom).expect("written");
    for words in [&[][..], &["a", "b"], &["--sourced"], &["--sourced", "a", "b"]] {
        let output = output_of(home.command(&own, words));
        assert_eq!(output.status.code(), Some(126), "{words:?}: {}", text(&output.stderr));
    }
    fs::remove_file(&binary).expect("removed");
    let prefix = shell_prefix(path(&home.home()));
    let script = run_script(path(&home.home()));
    let line = format!(". {script} AAAABBBBCCCCDDDD || exit 126; echo x > made");
    for command in [home.command(&prefix, &["echo x > made"]), home.command("bash", &["-c", &line])] {
        let output = output_of(command);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(126), "{said}");
        assert!(said.lines().count() == 1 && said.contains("Interlock is gone") && said.contains("settings"), "{said}");
    }
    assert!(!home.repo().join("made").exists());
    // With the last host they go as well.
    for host in ["claude-code", "codex"] {
        assert!(Path::new(&prefix).exists() && Path::new(&script).exists());
        assert!(home.run(&["uninstall", host]).status.success());
    }
    assert!(!home.home().join("bin").exists());
}

/// A change of settings that would take the prefix away is blocked where refusals hold.
#[test]
fn settings_may_not_take_the_prefix_away() {
    let agent = Agent::new("claude-code");
    let settings = agent.home.file(".claude/settings.json");
    let changed = |source: &str, file: &Path, prefix: &str| {
        let event = format!(
            r#"{{"session_id":"s","cwd":"{}","hook_event_name":"ConfigChange","source":"{source}","file_path":"{}"}}"#,
            path(&agent.home.repo()),
            path(file)
        );
        let mut command = agent.home.command(PROGRAM, &["hook", "claude-code"]);
        command.env("CLAUDE_CODE_SHELL_PREFIX", prefix);
        agent.home.feed(command, event.as_bytes())
    };
    let local = agent.home.repo().join(".claude/settings.local.json");
    agent.home.write("repo/.claude/settings.local.json", r#"{"env": {"CLAUDE_CODE_SHELL_PREFIX": ""}}"#);
    assert_eq!(changed("local_settings", &local, &agent.prefix).status.code(), Some(0), "observed, nothing is blocked");
    agent.enforce();
    let blocked = changed("local_settings", &local, &agent.prefix);
    assert_eq!(blocked.status.code(), Some(2), "{}", text(&blocked.stderr));
    assert!(text(&blocked.stdout).contains(r#""decision":"block""#), "{}", text(&blocked.stdout));
    assert_eq!(changed("local_settings", &local, "/other").status.code(), Some(0), "it was not in force");
    assert_eq!(changed("user_settings", &settings, &agent.prefix).status.code(), Some(0), "it is there");
    agent.home.write("repo/.claude/settings.local.json", r#"{"model": "opus"}"#);
    assert_eq!(changed("local_settings", &local, &agent.prefix).status.code(), Some(0));
    let project = agent.home.repo().join(".claude/settings.json");
    assert_eq!(changed("project_settings", &project, &agent.prefix).status.code(), Some(0));
    fs::write(&settings, "{}").expect("written");
    assert_eq!(changed("user_settings", &settings, &agent.prefix).status.code(), Some(2));
    assert_eq!(changed("project_settings", &project, &agent.prefix).status.code(), Some(2), "nothing else holds it");
}

/// Cursor lets nothing be rewritten: a line that only hands its command to the runner is the call of that command.
#[test]
fn a_line_of_cursor_hands_its_command_to_the_runner_by_itself() {
    let agent = Agent::new("cursor");
    if !holds(&agent.home) {
        return;
    }
    let asks = |line: &str, call_id: &str| {
        let cwd = quote(path(&agent.home.repo()));
        let event = format!(
            r#"{{"conversation_id":"c","generation_id":"g","model":"m","hook_event_name":"preToolUse","cursor_version":"2.4.1","workspace_roots":[{cwd}],"user_email":null,"transcript_path":null,"tool_name":"Shell","tool_input":{{"command":{},"working_directory":{cwd}}},"tool_use_id":{},"cwd":{cwd},"agent_message":"m"}}"#,
            quote(line),
            quote(call_id)
        );
        let output = agent.home.feed(agent.home.command(PROGRAM, &["hook", "cursor"]), event.as_bytes());
        (output.status.code(), text(&output.stderr).to_owned())
    };
    assert_eq!(asks("ls", "one").0, Some(0));
    agent.home.enforce();
    let (code, said) = asks("sh made.sh", "two");
    let by_hand = format!("{PROGRAM} exec -- sh made.sh");
    assert!(code == Some(2) && said.contains(&format!("run `{by_hand}`, alone")), "{said}");
    // A script that is judged, found by line and directory, and held.
    agent.home.write("repo/made.sh", "echo in > made; echo out > /etc/made; exit 4\n");
    assert_eq!(asks(&by_hand, "three"), (Some(0), String::new()));
    let started = agent.home.run(&["exec", "--", "sh", "made.sh"]);
    assert_eq!(started.status.code(), Some(4), "{}", text(&started.stderr));
    assert!(agent.made("made").exists() && !Path::new("/etc/made").exists());
    let activity = agent.home.run(&["audit", "verify"]);
    assert!(activity.status.success(), "{}", text(&activity.stdout));
    // Options, patterns and more than one command are no such line.
    for line in [
        format!("{PROGRAM} exec --profile build -- sh made.sh"),
        format!("{PROGRAM} exec -- sh *.sh"),
        format!("{by_hand}; ls"),
        format!("{by_hand} > out"),
    ] {
        assert_eq!(asks(&line, &line).0, Some(2), "{line}");
    }
}

/// What a command was refused is said where it failed, and is on record.
#[test]
fn a_line_that_fails_in_its_bound_says_what_was_refused() {
    let agent = Agent::new("claude-code");
    agent.enforce();
    if !holds(&agent.home) {
        return;
    }
    let outside = agent.home.user().join("outside");
    fs::write(agent.made("try.sh"), "mkdir ~/outside && echo made").expect("written");
    let (output, _) = agent.prefixed(&agent.rewritten("claude-code", "sh ./try.sh"));
    let said = text(&output.stderr);
    assert!(!output.status.success() && !outside.exists(), "{said}");
    assert!(said.contains(&format!("interlock: refused: write {}\n", path(&outside))), "{said}");
    assert!(said.contains("held this command to the profile `project`"), "{said}");
    // What fails by itself is nobody's doing.
    fs::write(agent.made("try.sh"), "cat absent; mkdir try.sh").expect("written");
    let (output, _) = agent.prefixed(&agent.rewritten("claude-code", "sh ./try.sh"));
    assert!(!text(&output.stderr).contains("interlock"), "{}", text(&output.stderr));
}

/// The whole of it on a machine that gives nobody a user namespace.
#[test]
fn without_user_namespaces_a_command_is_held_by_less_and_hosts_are_refused() {
    let home = Home::new();
    if !holds(&home) {
        return;
    }
    let limit = "echo 0 > /proc/sys/user/max_user_namespaces || exit 99; exec \"$0\" \"$@\"";
    let run = |arguments: &[&str]| {
        let mut command = home.command("unshare", &["--user", "--map-root-user", "bash", "-c", limit, PROGRAM]);
        command.args(arguments);
        output_of(command)
    };
    let probed = run(&["exec", "--probe"]);
    let told: Value = serde_json::from_str(text(&probed.stdout)).expect("JSON");
    assert_eq!(told["rung"], "narrow", "{told}");
    let outside = home.file("outside");
    let line = format!("echo in > made; cat made; echo $TMPDIR > $TMPDIR/t; echo x > {}", path(&outside));
    let output = run(&["exec", "-c", &line]);
    assert_eq!(text(&output.stdout), "in\n", "{}", text(&output.stderr));
    assert!(!output.status.success() && !outside.exists(), "{}", text(&output.stderr));
    let output = run(&["exec", "--profile", "read", "-c", "cat made; echo x > other"]);
    assert_eq!(text(&output.stdout), "in\n", "{}", text(&output.stderr));
    assert!(!output.status.success() && !home.repo().join("other").exists());
}
