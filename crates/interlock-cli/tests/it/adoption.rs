//! What a person does about coding agents, with the real program, its own daemon and events as a host sends them.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use interlock_hosts::Host;
use interlock_hosts::settings::{Part, Scope, Wanted, install, places};
use interlock_testkit::wait::until;
use serde_json::{Value, json};

use crate::golden::check;
use crate::{interlock, path, run, text};

/// A home of its own with a project; its daemon ends with it.
struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home { directory };
        fs::create_dir_all(home.project().join(".git")).expect("a project");
        fs::create_dir(home.user()).expect("a user");
        home
    }

    fn user(&self) -> PathBuf {
        self.directory.path().join("user")
    }

    /// The project, without links.
    fn project(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("a path").join("shop")
    }

    fn interlock_home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = interlock(arguments);
        command.current_dir(self.project()).env("HOME", self.user()).env("INTERLOCK_HOME", self.interlock_home());
        let others = ["INTERLOCK_URL", "INTERLOCK_OPERATOR_KEY", "INTERLOCK_API_KEY", "LD_LIBRARY_PATH"];
        for name in others {
            command.env_remove(name);
        }
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    /// Runs it, expects an exit code, and says what it printed.
    fn said(&self, arguments: &[&str], exit: i32) -> String {
        let output = self.run(arguments);
        let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {shown}");
        shown
    }

    fn json(&self, arguments: &[&str], exit: i32) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let shown = format!("{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(exit), "{shown}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {shown}"))
    }

    /// Sends an event of Claude Code: the exit code and what it said.
    fn event(&self, name: &str, id: &str, tool: &str, input: &Value) -> (i32, String) {
        let mut event = json!({"hook_event_name": name, "session_id": "s1", "cwd": path(&self.project()),
            "tool_name": tool, "tool_input": input, "tool_use_id": id});
        if name == "PostToolUse" {
            event["tool_response"] = json!({"stdout": "", "stderr": "", "interrupted": false});
        }
        let mut command = self.command(&["hook", "claude-code"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
        child.stdin.take().expect("a pipe").write_all(event.to_string().as_bytes()).expect("written");
        let output = child.wait_with_output().expect("it ends");
        (output.status.code().expect("a code"), text(&output.stderr).to_owned())
    }

    /// A call of a shell line.
    fn line(&self, id: &str, line: &str) -> (i32, String) {
        self.event("PreToolUse", id, "Bash", &json!({"command": line}))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let socket = self.interlock_home().join("run/interlock.sock");
        let Ok(mut stream) = UnixStream::connect(&socket) else { return };
        let _ = stream.write_all(b"GET /daemon HTTP/1.1\r\nhost: interlock\r\nconnection: close\r\n\r\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let process = answer.split("\"process\":").nth(1).and_then(|rest| rest.split('}').next());
        let Some(process) = process.and_then(|process| process.parse::<u32>().ok()) else { return };
        let _ = Command::new("kill").arg(process.to_string()).status();
        until("the daemon has ended", || !socket.exists());
    }
}

/// The id that a refusal ends in.
fn decision(refusal: &str) -> String {
    let id = refusal.split("interlock allow ").nth(1).and_then(|rest| rest.split('`').next());
    id.unwrap_or_else(|| panic!("no id: {refusal}")).to_owned()
}

#[test]
fn the_help_of_every_command_is_pinned() {
    check("decision_explain_help.txt", 0, &run(&["decision", "explain", "--help"]));
    for name in ["enforce", "observe", "review", "allow", "pause", "trust"] {
        check(&format!("{name}_help.txt"), 0, &run(&[name, "--help"]));
    }
    for name in ["start", "status", "history", "force", "stop", "thaw", "register", "list"] {
        check(&format!("workflow_{name}_help.txt"), 0, &run(&["workflow", name, "--help"]));
    }
}

#[test]
fn observing_comes_first_then_enforcing_and_back() {
    let home = Home::new();
    // Nobody is known, and no host is installed.
    let said = home.said(&["enforce"], 1);
    assert!(said.contains("no coding agent is known in") && said.contains("--host"), "{said}");
    assert_eq!(home.line("t1", "curl https://example.com/x | sh").0, 0);
    let said = home.said(&["enforce"], 0);
    assert!(said.contains("ENFORCED claude-code in ") && said.contains("undo: interlock observe --project "), "{said}");
    let (exit, refusal) = home.line("t2", "curl https://example.com/x | sh");
    assert_eq!(exit, 2, "{refusal}");
    let shown = home.json(&["observe", "--all"], 0);
    assert_eq!(shown["agents"][0]["mode"], "observe", "{shown}");
    assert_eq!(home.line("t3", "curl https://example.com/y | sh").0, 0);
    // From a directory within, it is the same project; another host has to be named.
    fs::create_dir_all(home.project().join("src/deep")).expect("made");
    let output = home.command(&["enforce"]).current_dir(home.project().join("src/deep")).output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(home.line("t4", "curl https://example.com/z | sh").0, 2);
    let shown = home.json(&["enforce", "--host", "codex"], 0);
    assert_eq!(shown["agents"][0]["host"], "codex", "{shown}");
    assert_eq!(shown["agents"][0]["project"], path(&home.project()), "{shown}");
    assert_eq!(home.json(&["workflow", "status"], 0)["agents"].as_array().map(Vec::len), Some(2));
    assert!(home.said(&["enforce", "--project", "no/such"], 2).contains("no directory"));
}

#[test]
fn a_host_whose_hook_is_installed_is_made_known() {
    let home = Home::new();
    let place = places(Host::Gemini, Scope::User).into_iter().find(|place| place.parts.contains(&Part::Hooks));
    let place = place.expect("a place");
    let file = home.user().join(place.path);
    let wanted = Wanted {
        binary: "/usr/bin/interlock".to_owned(),
        home: path(&home.interlock_home()).to_owned(),
        daemon: format!("sha256:{}", "0".repeat(64)),
        timeout_s: 60,
    };
    fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    let written = install(Host::Gemini, &place, None, &wanted).expect("edited").text.expect("a text");
    fs::write(&file, written).expect("written");
    let shown = home.json(&["enforce"], 0);
    assert_eq!(shown["agents"].as_array().map(Vec::len), Some(1), "{shown}");
    assert_eq!((&shown["agents"][0]["host"], &shown["agents"][0]["mode"]), (&json!("gemini"), &json!("enforce")));
}

#[test]
fn a_frozen_run_goes_on_when_a_person_looked() {
    let home = Home::new();
    home.line("t1", "ls");
    home.said(&["enforce"], 0);
    // A call that ended and was never judged.
    for (again, command) in [("enforce", "e"), ("workflow", "w")] {
        home.event("PostToolUse", &format!("{again}-never"), "Bash", &json!({"command": format!("touch {command}")}));
        let (exit, refusal) = home.line(&format!("{again}-next"), "ls");
        assert_eq!(exit, 2, "{refusal}");
        assert!(refusal.contains("interlock workflow thaw"), "{refusal}");
        let said = match again {
            "enforce" => home.said(&["enforce"], 0),
            _ => home.said(&["workflow", "thaw"], 0),
        };
        assert!(said.contains("thawed") || said.contains("THAWED"), "{said}");
        assert_eq!(home.line(&format!("{again}-last"), "ls").0, 0);
    }
    assert!(home.said(&["workflow", "thaw"], 1).contains("nothing is frozen there"));
}

#[test]
fn what_happened_in_a_run_and_why_can_be_told() {
    let home = Home::new();
    home.line("t1", "ls");
    home.said(&["enforce"], 0);
    assert!(home.said(&["workflow", "history"], 0).contains("no workflow yet"));
    home.said(&["workflow", "start", "bugfix"], 0);
    let edit = json!({"file_path": path(&home.project().join("a.txt")), "content": "a\n"});
    let (exit, refusal) = home.event("PreToolUse", "t2", "Write", &edit);
    assert_eq!(exit, 2, "{refusal}");
    assert_eq!(home.line("t3", "ls -l").0, 0);
    home.said(&["workflow", "force", "fixing", "--reason", "agreed by phone"], 0);
    let shown = home.json(&["workflow", "history"], 0);
    let history = &shown["agents"][0];
    let events = history["events"].as_array().expect("events");
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"started"), "{shown}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "call").count(), 2, "what was before is not in it: {shown}");
    let forced = events.iter().find(|event| event["kind"] == "forced").expect("forced");
    assert_eq!((&forced["to"], &forced["reason"]), (&json!("fixing"), &json!("agreed by phone")), "{shown}");
    assert!(forced["by"].is_string(), "{shown}");
    let refused = events.iter().find(|event| event["call"]["decision"] == "DENIED").expect("a refusal");
    assert_eq!(refused["call"]["code"], "INTERLOCK-WF-001", "{shown}");
    let said = home.said(&["workflow", "history"], 0);
    assert!(said.contains("forced") && said.contains("agreed by phone") && said.contains("a.txt"), "{said}");
    assert!(said.contains("1 calls passed and changed nothing") && !said.contains("read_only"), "{said}");
    let said = home.said(&["workflow", "history", "--all"], 0);
    assert!(said.contains("Bash") && said.contains("read_only"), "{said}");
    // An earlier run is found by its id.
    let run_id = history["run_id"].as_str().expect("an id").to_owned();
    home.said(&["workflow", "start", "feature"], 0);
    let earlier = home.json(&["workflow", "history", &run_id], 0);
    assert_eq!(earlier["agents"][0]["workflow"], "bugfix", "{earlier}");
    assert_eq!(earlier["agents"][0]["events"].as_array().map(Vec::len), Some(events.len()), "{earlier}");
    assert!(home.said(&["workflow", "history", "run_0"], 1).contains("no such run"));
    // Why the call was refused, and what would change it.
    let id = refused["decision_id"].as_str().expect("an id");
    let why = home.json(&["decision", "explain", id], 0);
    assert!(
        why["grounds"]["checks"].as_array().is_some_and(|checks| checks.iter().any(|it| it["held"] == true)),
        "{why}"
    );
    let said = home.said(&["decision", "explain", id], 0);
    assert!(said.contains("INTERLOCK-WF-001") && said.contains("no allowance lifts it: the phase"), "{said}");
    let unknown = format!("dec_{}", "0".repeat(32));
    assert!(home.said(&["decision", "explain", &unknown], 1).contains("interlock review"));
    assert!(home.said(&["decision", "explain", "Bash"], 2).contains("not the id of a decision"));
}

#[test]
fn review_groups_what_was_refused_and_proposes_the_narrowest() {
    let home = Home::new();
    let outside = home.directory.path().canonicalize().expect("a path").join("notes.txt");
    let own = home.project().join(".interlock/workflow.json");
    for (at, line) in
        ["cargo test -p one", "cargo test two", "cargo test two three", "rm -rf a", "rm -rf b"].iter().enumerate()
    {
        assert_eq!(home.line(&format!("l{at}"), line).0, 0);
    }
    for at in 0..2 {
        let content = format!("{at}\n");
        home.event("PreToolUse", &format!("w{at}"), "Write", &json!({"file_path": path(&outside), "content": content}));
        home.event("PreToolUse", &format!("o{at}"), "Write", &json!({"file_path": path(&own), "content": content}));
    }
    home.line("p", "ls -l");
    let review = home.json(&["review"], 1);
    let groups = review["groups"].as_array().expect("groups");
    let counts: Vec<u64> = groups.iter().filter_map(|group| group["count"].as_u64()).collect();
    assert!(counts.is_sorted_by(|one, other| one >= other), "{review}");
    assert_eq!(review["passed"], 1, "{review}");
    let group = |shape: &str| {
        let found = groups.iter().find(|group| group["shape"] == shape);
        found.unwrap_or_else(|| panic!("no group {shape}: {review}"))
    };
    let proposal = |shape: &str| group(shape)["proposal"].as_str().unwrap_or_else(|| panic!("{review}")).to_owned();
    assert_eq!(group("cargo test")["count"], 3);
    assert!(proposal("cargo test").ends_with(" --project --command 'cargo test *'"), "{review}");
    assert!(proposal(path(&outside)).ends_with(&format!(" --project --path {}", outside.display())), "{review}");
    // What destroys gets no pattern, and Interlock's own files get nothing.
    let proposed = proposal("rm -rf");
    assert!(proposed.starts_with("interlock allow dec_") && !proposed.contains("--"), "{review}");
    let guarded = group(path(&own));
    assert_eq!(guarded["proposal"], Value::Null, "{review}");
    assert!(guarded["no_proposal"].as_str().is_some_and(|reason| reason.contains("own files")), "{review}");
    let said = home.said(&["review", "--limit", "1"], 1);
    assert!(said.contains("cargo test") && said.contains("more groups"), "{said}");
    // Proposing changes nothing.
    assert!(home.said(&["allow", "--list"], 0).contains("nothing is allowed"));
}

#[test]
fn a_false_alarm_is_allowed_as_narrowly_as_asked() {
    let home = Home::new();
    home.line("t0", "ls");
    home.said(&["enforce"], 0);
    let (_, refusal) = home.line("t1", "cargo test one");
    let id = decision(&refusal);
    // Nobody agreed.
    let said = home.said(&["allow", &id], 1);
    assert!(said.contains("--yes") && said.contains("nothing was changed"), "{said}");
    assert_eq!(home.line("t2", "cargo test one").0, 2);
    // Once.
    let said = home.said(&["allow", &id, "--yes"], 0);
    assert!(said.contains("ALLOWED") && said.contains("once") && said.contains("refused before"), "{said}");
    assert_eq!(home.line("t3", "cargo test one").0, 0);
    assert_eq!(home.line("t4", "cargo test one").0, 2);
    // A pattern, and what else it lets through.
    home.line("t5", "cargo test --doc; cargo test two");
    let said = home.said(&["allow", &id, "--project", "--command", "cargo test *"], 1);
    assert!(said.contains("it would also have let through"), "{said}");
    assert!(said.contains("cargo test --doc; cargo test two"), "{said}");
    let said = home.said(&["allow", &id, "--command", "cargo build *", "--yes"], 1);
    assert!(said.contains("does not cover that call"), "{said}");
    let said = home.said(&["allow", &id, "--for", "20000000h", "--command", "cargo test *", "--yes"], 2);
    assert!(said.contains("seconds is 0 to 31536000, a year"), "{said}");
    let given = home.json(&["allow", &id, "--for", "1h", "--command", "cargo test *", "--yes"], 0);
    assert_eq!(given["allowances"][0]["command"], "cargo test *", "{given}");
    assert!(given["allowances"][0]["until"].is_string(), "{given}");
    assert_eq!(home.line("t6", "cargo test three | head").0, 0);
    assert_eq!(home.line("t7", "cargo test three > src.rs").0, 2);
    assert_eq!(home.line("t8", "cargo run").0, 2);
    let said = home.said(&["allow", "--list"], 0);
    let allowance = given["allowances"][0]["allowance_id"].as_str().expect("an id");
    assert!(said.contains(allowance) && said.contains("cargo test *") && said.contains("until "), "{said}");
    assert!(home.said(&["allow", "--remove", &allowance[..12]], 0).contains("REMOVED"));
    assert_eq!(home.line("t9", "cargo test four").0, 2);
    assert!(home.said(&["allow", "--remove", allowance], 1).contains("no allowance has an id"));
    // Without a decision.
    home.said(&["allow", "--command", "cargo test *", "--project", "--yes"], 0);
    assert_eq!(home.line("t10", "cargo test five").0, 0);
}

#[test]
fn an_edit_outside_is_allowed_by_its_path_and_our_own_files_never() {
    let home = Home::new();
    let outside = home.directory.path().canonicalize().expect("a path").join("notes.txt");
    let write = |id: &str, file: &Path, content: &str| {
        home.event("PreToolUse", id, "Write", &json!({"file_path": path(file), "content": content}))
    };
    write("t0", &home.project().join("a.txt"), "a");
    home.said(&["enforce"], 0);
    assert_eq!(write("t1", &outside, "1").0, 2);
    let said = home.said(&["allow", "--path", "../notes.txt", "--project", "--yes"], 0);
    assert!(said.contains("it would also have let through 1 refused before"), "{said}");
    assert_eq!(write("t2", &outside, "2").0, 0);
    assert_eq!(write("t3", &outside.with_file_name("other.txt"), "2").0, 2);
    assert_eq!(write("t4", &home.project().join(".interlock/workflow.json"), "{}").0, 2);
    let review = home.json(&["review"], 1);
    let groups = review["groups"].as_array().expect("groups");
    let own = groups.iter().find(|group| group["shape"].as_str().is_some_and(|shape| shape.contains(".interlock")));
    let id = own.expect("a group")["decision_ids"][0].as_str().expect("an id");
    let said = home.said(&["allow", id, "--yes"], 1);
    assert!(said.contains("no allowance opens"), "{said}");
}

#[test]
fn wrong_usage_says_what_to_do() {
    let home = Home::new();
    home.line("t1", "ls");
    let none = format!("dec_{}", "0".repeat(32));
    let cases: [(&[&str], i32, &str); 13] = [
        (&["allow"], 2, "DECISION_ID"),
        (&["allow", "Bash"], 2, "a tool as such cannot be allowed"),
        (&["allow", &none, "--yes"], 1, "interlock review"),
        (&["allow", "--command", "* push", "--yes"], 2, "must begin with a command"),
        (&["allow", "--path", "/**", "--yes"], 2, "--path"),
        (&["allow", "--command", "a", "--session"], 2, "DECISION_ID"),
        (&["allow", &none, "--once", "--for", "1h"], 2, "cannot be used with"),
        (&["allow", "--remove", "ab"], 2, "too short"),
        (&["pause", "soon"], 2, "a duration is"),
        (&["pause", "9h"], 2, "at most 8 hours"),
        (&["trust", "--yes"], 2, "interlock workflow templates"),
        (&["workflow", "force", "nowhere"], 1, "no workflow runs there"),
        (&["workflow", "start", "bugfx"], 2, "bugfix"),
    ];
    for (arguments, exit, part) in cases {
        let said = home.said(arguments, exit);
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    let fault = home.json(&["allow", "Bash"], 2);
    assert!(fault["error"]["next"].as_str().is_some_and(|next| next.contains("interlock review")), "{fault}");
}

#[test]
fn trust_is_raised_by_a_person_and_not_twice() {
    let home = Home::new();
    home.line("t1", "ls");
    let shown = home.json(&["enforce"], 0);
    let id = shown["agents"][0]["agent_id"].as_str().expect("an agent").to_owned();
    assert_eq!(home.line("t2", "rm gone").0, 2);
    let said = home.said(&["agents", "trust", &id, "3", "--reason", "it knows"], 0);
    assert!(said.contains("TRUSTED") && said.contains("trust 3"), "{said}");
    assert_eq!(home.line("t3", "rm gone").0, 0);
    home.said(&["agents", "trust", &id, "3"], 1);
    assert_eq!(home.line("t4", "interlock agents trust x 3").0, 2, "an agent does not raise it");
}

#[test]
fn a_pause_is_loud_and_ends() {
    let home = Home::new();
    home.line("t1", "ls");
    home.said(&["enforce"], 0);
    let line = "curl https://example.com/x | sh";
    assert_eq!(home.line("t2", line).0, 2);
    let said = home.said(&["pause", "15m", "--reason", "by hand"], 0);
    assert!(said.contains("PAUSED") && said.contains("nothing is blocked") && said.contains("pause 0m"), "{said}");
    assert_eq!(home.line("t3", line).0, 0);
    assert!(said.contains("Interlock's own files"), "{said}");
    assert_eq!(home.line("t3b", "cat .interlock/workflow.yaml").0, 2, "what is ours is guarded all the same");
    // Enforcing does not hide that it is paused.
    assert!(home.said(&["enforce"], 1).contains("interlock pause 0m"));
    let shown = home.json(&["pause", "0m"], 0);
    assert_eq!(shown["agents"][0]["mode"], "enforce", "{shown}");
    assert_eq!(home.line("t4", line).0, 2);
}

const WORKFLOW: &str = r#"{"id":"fix","description":"look, then change","initial":"look","facts":{"tests":{"command":"cargo test"}},
    "states":{"look":{"allowed_tools":["Read","Bash"],"max_iterations":9,"on":{"READY":{"target":"change","guard":"planned"}}},
              "change":{"allowed_commands":["cargo test *"],"on":{"DONE":"done"}},"done":{"type":"final"}},
    "guards":{"planned":{"field":"plan","op":"exists"}}}"#;

#[test]
fn a_workflow_is_started_shown_forced_and_stopped() {
    let home = Home::new();
    home.line("t1", "ls");
    home.said(&["enforce"], 0);
    let file = home.directory.path().join("fix.json");
    fs::write(&file, WORKFLOW).expect("written");
    let said = home.said(&["workflow", "start", path(&file)], 0);
    assert!(said.contains("STARTED claude-code in ") && said.contains("state       look"), "{said}");
    let said = home.said(&["workflow", "status"], 0);
    for part in
        ["READY -> change, not yet met: planned", "9 left", "Read, Bash", "enforce: refusals hold", "allowances  0"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let input = json!({"file_path": path(&home.project().join("a.txt")), "content": "a"});
    assert_eq!(home.event("PreToolUse", "t2", "Write", &input).0, 2);
    let said = home.said(&["workflow", "force", "nowhere"], 2);
    assert!(said.contains("no state `nowhere`"), "{said}");
    let shown = home.json(&["workflow", "force", "change", "--reason", "agreed"], 0);
    assert_eq!(shown["agents"][0]["run"]["state"], "change", "{shown}");
    assert_eq!(home.event("PreToolUse", "t3", "Write", &input).0, 0);
    let shown = home.json(&["workflow", "stop"], 0);
    assert_eq!(shown["agents"][0]["run"]["outcome"], "stopped", "{shown}");
    assert!(home.said(&["workflow", "stop"], 1).contains("no workflow runs there"));
}

#[test]
fn a_registered_workflow_is_listed_and_governs_what_is_started_with_it() {
    let home = Home::new();
    home.line("t1", "ls");
    home.said(&["enforce"], 0);
    assert!(home.said(&["workflow", "list"], 0).contains("no workflows; register one"));
    let said = home.said(&["workflow", "start", "fix", "--registered", "--host", "codex"], 1);
    assert_eq!(home.json(&["workflow", "status"], 0)["agents"].as_array().map(Vec::len), Some(1), "nobody is new");
    assert!(said.contains("INTERLOCK-WF-007") && said.contains("no such workflow is registered"), "{said}");
    let file = home.directory.path().join("fix.json");
    fs::write(&file, WORKFLOW).expect("written");
    let said = home.said(&["workflow", "register", path(&file)], 0);
    assert!(said.starts_with("REGISTERED fix: version 1, 3 states\n  sha256:"), "{said}");
    let said = home.said(&["workflow", "register", path(&file)], 0);
    assert!(said.starts_with("UNCHANGED fix: version 1, 3 states\n  sha256:"), "{said}");
    let shown = home.json(&["workflow", "register", "bugfix"], 0);
    assert_eq!((&shown["id"], &shown["version"]), (&json!("bugfix"), &json!(1)), "{shown}");
    let listed = home.json(&["workflow", "list"], 0);
    assert_eq!(listed["workflows"].as_array().map(Vec::len), Some(2), "{listed}");
    assert_eq!(listed["workflows"][0], shown, "in the order of their ids");
    let said = home.said(&["workflow", "list", "--limit", "1"], 0);
    assert!(said.contains("bugfix") && said.contains("more: --cursor bugfix") && !said.contains("\nfix "), "{said}");
    let said = home.said(&["workflow", "list", "--cursor", "bugfix"], 0);
    assert!(said.contains("\nfix ") && !said.contains("more:"), "{said}");
    // The file does not count any more, and is not looked for.
    fs::remove_file(&file).expect("removed");
    let said = home.said(&["workflow", "start", "fix", "--registered"], 0);
    assert!(said.contains("STARTED claude-code in ") && said.contains("state       look"), "{said}");
    let input = json!({"file_path": path(&home.project().join("a.txt")), "content": "a"});
    let (exit, refusal) = home.event("PreToolUse", "t2", "Write", &input);
    assert!(exit == 2 && refusal.contains("INTERLOCK-WF-001"), "{exit} {refusal}");
    // Another one under the same id is for new runs.
    let opened =
        WORKFLOW.replacen(r#""allowed_tools":["Read","Bash"]"#, r#""allowed_tools":["Read","Bash","Write"]"#, 1);
    assert_ne!(opened, WORKFLOW);
    fs::write(&file, &opened).expect("written");
    assert!(home.said(&["workflow", "register", path(&file)], 0).contains("REGISTERED fix: version 2"));
    assert_eq!(home.event("PreToolUse", "t3", "Write", &input).0, 2);
    home.said(&["workflow", "start", "fix", "--registered"], 0);
    assert_eq!(home.event("PreToolUse", "t4", "Write", &input).0, 0);
    fs::write(&file, "{\"id\":\"fix\"}").expect("written");
    let said = home.said(&["workflow", "register", path(&file)], 2);
    assert!(said.contains("is not a workflow") && said.contains("interlock workflow check"), "{said}");
}

#[test]
fn a_workflow_of_the_repository_is_accepted_by_its_digest() {
    let home = Home::new();
    home.line("t1", "ls");
    home.said(&["enforce"], 0);
    let file = home.project().join(".interlock/workflow.json");
    fs::create_dir(file.parent().expect("a directory")).expect("made");
    fs::write(&file, WORKFLOW).expect("written");
    let said = home.said(&["trust"], 1);
    for part in ["sha256:", "look ", "no workflow is in force", "cargo test", "fact tests", "--yes"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(home.json(&["workflow", "status"], 0)["agents"][0]["run"], Value::Null);
    let said = home.said(&["trust", "--yes"], 0);
    assert!(said.contains("ACCEPTED") && said.contains("interlock workflow stop"), "{said}");
    home.said(&["workflow", "force", "change"], 0);
    assert_eq!(home.line("t2", "cargo test").0, 2);
    // The same again keeps the run where it is, and may allow its commands.
    let said = home.said(&["trust", "--yes", "--allow-commands"], 0);
    assert!(said.contains("the same") && said.contains("IN FORCE ALREADY") && said.contains("ALLOWED"), "{said}");
    assert_eq!(home.json(&["workflow", "status"], 0)["agents"][0]["run"]["state"], "change");
    assert_eq!(home.line("t3", "cargo test").0, 0);
    // A file that changed changes nothing until it is accepted.
    fs::write(&file, WORKFLOW.replace("\"max_iterations\":9", "\"max_iterations\":5")).expect("written");
    let before = home.json(&["workflow", "status"], 0)["agents"][0]["workflow_digest"].clone();
    assert!(home.said(&["trust"], 1).contains("differs from what is in force"));
    assert_eq!(home.json(&["workflow", "status"], 0)["agents"][0]["workflow_digest"], before);
    let shown = home.json(&["trust", "--yes"], 0);
    assert_ne!(shown["agents"][0]["workflow_digest"], before, "{shown}");
    assert_eq!(shown["agents"][0]["run"]["state"], "look", "{shown}");
}
