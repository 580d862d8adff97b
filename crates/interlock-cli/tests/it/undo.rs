//! What an agent destroys is kept before, shown afterwards, and brought back; what cannot be kept does not run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use interlock_testkit::wait::until;
use serde_json::Value;

use crate::exec::{Agent, holds, refused};
use crate::home::Home;
use crate::serve::PROGRAM;
use crate::{path, text};

const HOST: &str = "claude-code";

/// A tree as it is: what each path holds, leads to, or is, with its permissions.
fn tree(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).expect("listed") {
            let entry = entry.expect("an entry").path();
            let kind = fs::symlink_metadata(&entry).expect("there");
            let bytes = match kind.file_type() {
                kind if kind.is_symlink() => path(&fs::read_link(&entry).expect("a link")).as_bytes().to_vec(),
                kind if kind.is_dir() => {
                    open.push(entry.clone());
                    Vec::new()
                }
                _ => fs::read(&entry).expect("read"),
            };
            found.insert(entry, (kind.permissions().mode(), bytes));
        }
    }
    found
}

/// An enforced host in a repository with something to lose; nothing where the kernel holds nothing.
fn agent(settings: &str) -> Option<Agent> {
    let agent = Agent::under(HOST, settings);
    if !holds(&agent.home) {
        return None;
    }
    agent.enforce();
    let repo = agent.home.repo();
    for name in ["src/deep", "src/empty"] {
        fs::create_dir_all(repo.join(name)).expect("made");
    }
    agent.home.write("repo/src/main.rs", "fn main() {}\n");
    agent.home.write("repo/src/deep/data", "\u{0}binary");
    agent.home.write("repo/notes.txt", "one\ntwo\n");
    symlink("main.rs", repo.join("src/link")).expect("a link");
    fs::set_permissions(repo.join("src/main.rs"), fs::Permissions::from_mode(0o750)).expect("a mode");
    Some(agent)
}

/// Runs a line as the host does.
fn line(agent: &Agent, line: &str) -> Output {
    agent.prefixed(&agent.rewritten(HOST, line)).0
}

fn ran(agent: &Agent, text_of_line: &str) {
    let output = line(agent, text_of_line);
    assert!(output.status.success(), "{text_of_line}: {}", text(&output.stderr));
}

fn done(home: &Home, arguments: &[&str], code: i32) -> String {
    let output = home.run(arguments);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    let output = home.run(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

/// What the state after the last call says: it is kept after the end was told.
fn is_ended(home: &Home) -> bool {
    json(home, &["changes", "--stat", "--json"])["is_open"] == Value::Bool(false)
}

fn sound(home: &Home) {
    assert!(done(home, &["audit", "verify"], 0).starts_with("SOUND"));
    assert!(done(home, &["audit", "replay"], 0).starts_with("SAME"));
}

#[test]
fn what_a_line_destroyed_comes_back_byte_for_byte_and_an_undo_can_be_undone() {
    let Some(agent) = agent("") else { return };
    let (home, repo) = (&agent.home, agent.home.repo());
    let before = tree(&repo);
    ran(&agent, "rm -rf src && echo three >> notes.txt");
    assert!(!repo.join("src").exists());
    until("the state after it is kept", || is_ended(home));
    let after = tree(&repo);
    let shown = done(home, &["changes"], 1);
    assert!(shown.contains("removed  src/main.rs") && shown.contains("  -fn main() {}"), "{shown}");
    assert!(shown.contains("  +three") && shown.contains("lines are not shown: binary"), "{shown}");
    let planned = done(home, &["undo", "--last", "--dry-run"], 0);
    assert!(planned.contains("create    src/deep/data") && planned.contains("restore   notes.txt"), "{planned}");
    assert_eq!(tree(&repo), after, "a plan changes nothing");
    let asked = done(home, &["undo", "--last"], 1);
    assert!(asked.contains("a person has to agree"), "{asked}");
    assert_eq!(tree(&repo), after, "nobody agreed");
    let undone = json(home, &["undo", "--last", "--yes", "--json"]);
    assert_eq!(undone["conflicts"], 0, "{undone}");
    assert_eq!(tree(&repo), before, "byte for byte");
    let undo_id = undone["undo_id"].as_str().expect("an id").to_owned();
    done(home, &["undo", &undo_id, "--yes"], 0);
    assert_eq!(tree(&repo), after, "the undo is undone");
    // The call is no longer undone, so it is the last one again.
    done(home, &["undo", "--last", "--yes"], 0);
    assert_eq!(tree(&repo), before);
    sound(home);
}

#[test]
fn what_changed_since_is_left_alone_unless_it_is_named() {
    let Some(agent) = agent("") else { return };
    let (home, repo) = (&agent.home, agent.home.repo());
    ran(&agent, "echo three >> notes.txt && rm src/main.rs");
    until("the state after it is kept", || is_ended(home));
    home.write("repo/notes.txt", "mine\n");
    let said = done(home, &["undo", "--last", "--yes"], 1);
    assert!(said.contains("conflict  notes.txt  it changed after the call ended"), "{said}");
    assert_eq!(home.read("repo/notes.txt").as_deref(), Some("mine\n"));
    assert!(repo.join("src/main.rs").exists(), "the rest came back");
    done(home, &["undo", &newest(home, "Bash"), "notes.txt", "--yes"], 0);
    assert_eq!(home.read("repo/notes.txt").as_deref(), Some("one\ntwo\n"));
    sound(home);
}

#[test]
fn what_cannot_be_kept_does_not_run_where_refusals_hold() {
    let Some(agent) = agent("") else { return };
    let (home, repo) = (&agent.home, agent.home.repo());
    let before = tree(&repo);
    fs::write(home.home().join("kept"), "no directory").expect("written");
    refused(&line(&agent, "rm -rf src"), "INTERLOCK-KEEP-001");
    assert_eq!(tree(&repo), before);
    let reading = line(&agent, "cat notes.txt");
    assert_eq!(text(&reading.stdout), "one\ntwo\n", "what only reads needs nothing kept");
    fs::remove_file(home.home().join("kept")).expect("removed");
    ran(&agent, "rm -rf src");
    sound(home);
}

#[test]
fn more_files_than_are_kept_are_refused_with_a_clear_word() {
    let Some(agent) = agent("[keep]\nfiles_max = 5\n") else { return };
    let output = line(&agent, "rm -rf src");
    refused(&output, "INTERLOCK-KEEP-001");
    assert!(text(&output.stderr).contains("more than 5 files and directories"), "{}", text(&output.stderr));
}

#[test]
fn where_nothing_is_kept_what_destroys_is_refused_as_before() {
    let Some(agent) = agent("[keep]\nenabled = false\n") else { return };
    let said = agent.asks(HOST, "rm -rf src").expect_err("refused");
    assert!(said.contains("QWED-AGENT-TRUST-001"), "{said}");
    ran(&agent, "echo more >> notes.txt");
    let said = done(&agent.home, &["changes"], 1);
    assert!(said.contains("nothing was kept for it"), "{said}");
}

#[test]
fn what_is_too_large_to_keep_cannot_be_written() {
    let Some(agent) = agent("[keep]\nfile_mib_max = 1\n") else { return };
    let repo = agent.home.repo();
    fs::write(repo.join("src/large"), vec![7; 3 << 20]).expect("written");
    let output = line(&agent, "rm -rf src");
    assert!(!output.status.success() && repo.join("src/large").exists(), "{}", text(&output.stderr));
    let said = agent.asks(HOST, "rm src/large").expect_err("what it names is not kept");
    assert!(said.contains("QWED-AGENT-TRUST-001"), "{said}");
    until("the state after it is kept", || is_ended(&agent.home));
    done(&agent.home, &["undo", "--last", "--yes"], 0);
    assert_eq!(agent.home.read("repo/src/main.rs").as_deref(), Some("fn main() {}\n"));
}

#[test]
fn observed_lines_are_kept_and_nothing_stops_them() {
    let agent = Agent::under(HOST, "");
    let (home, repo) = (&agent.home, agent.home.repo());
    home.write("repo/notes.txt", "one\n");
    ran(&agent, "rm notes.txt");
    assert!(!repo.join("notes.txt").exists());
    until("the state after it is kept", || is_ended(home));
    done(home, &["undo", "--last", "--yes"], 0);
    assert_eq!(home.read("repo/notes.txt").as_deref(), Some("one\n"));
    fs::remove_dir_all(home.home().join("kept")).expect("removed");
    fs::write(home.home().join("kept"), "no directory").expect("written");
    ran(&agent, "rm notes.txt");
    assert!(!repo.join("notes.txt").exists(), "a fault stops nothing");
}

#[test]
fn edits_are_kept_by_the_files_they_name() {
    let agent = Agent::under(HOST, "");
    let home = &agent.home;
    home.write("repo/notes.txt", "one\n");
    home.write("repo/other.txt", "other\n");
    let input = format!(r#"{{"file_path":"{0}/notes.txt","old_string":"one","new_string":"two"}}"#, path(&home.repo()));
    let event = |name: &str, more: &str| {
        let repo = home.repo();
        format!(
            r#"{{"session_id":"s","cwd":"{}","hook_event_name":"{name}","tool_name":"Edit","tool_input":{input},"tool_use_id":"edit"{more}}}"#,
            path(&repo)
        )
    };
    let tell = |event: String| {
        let output = home.feed(home.command(PROGRAM, &["hook", HOST]), event.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    tell(event("PreToolUse", ""));
    home.write("repo/notes.txt", "two\n");
    tell(event("PostToolUse", r#","tool_response":{"success":true}"#));
    until("the state after it is kept", || is_ended(home));
    let shown = done(home, &["changes"], 1);
    assert!(shown.contains("  -one") && shown.contains("  +two") && !shown.contains("other.txt"), "{shown}");
    home.write("repo/other.txt", "mine\n");
    done(home, &["undo", "--last", "--yes"], 0);
    assert_eq!(home.read("repo/notes.txt").as_deref(), Some("one\n"));
    assert_eq!(home.read("repo/other.txt").as_deref(), Some("mine\n"), "an edit is about its file alone");
    sound(home);
}

#[test]
fn no_agent_undoes_or_drops_anything() {
    let Some(agent) = agent("") else { return };
    for line in ["interlock undo --last --yes", "interlock snapshots prune --all --yes", "interlock changes"] {
        let said = agent.asks(HOST, line).expect_err("refused");
        assert!(said.contains("the rule `self`"), "{line}: {said}");
    }
}

#[test]
fn of_two_at_once_what_both_touched_is_a_conflict() {
    let Some(agent) = agent("") else { return };
    let (home, repo) = (&agent.home, agent.home.repo());
    let waiting =
        agent.rewritten(HOST, "touch begun; until [ -e go ]; do sleep 0.05; done; echo first >> notes.txt; touch own");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| agent.prefixed(&waiting).0);
        until("the first one runs", || repo.join("begun").exists());
        let event = format!(
            r#"{{"session_id":"g","cwd":"{}","hook_event_name":"BeforeTool","tool_name":"replace","tool_input":{{"file_path":"{0}/notes.txt","old_string":"one","new_string":"second"}}}}"#,
            path(&repo)
        );
        let output = home.feed(home.command(PROGRAM, &["hook", "gemini"]), event.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        home.write("repo/notes.txt", "second\ntwo\n");
        let event =
            event.replace("BeforeTool", "AfterTool").replace("}}", r#"},"tool_response":{"llmContent":"done"}}"#);
        let output = home.feed(home.command(PROGRAM, &["hook", "gemini"]), event.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        fs::write(repo.join("go"), "").expect("written");
        let first = first.join().expect("it ran");
        assert!(first.status.success(), "{}", text(&first.stderr));
    });
    let id = newest(home, "Bash");
    let is_ended = |id: &str| json(home, &["changes", id, "--stat", "--json"])["is_open"] == Value::Bool(false);
    until("both ended", || is_ended(&id) && is_ended(&newest(home, "replace")));
    let said = done(home, &["undo", &id, "--dry-run"], 1);
    assert!(said.contains("conflict  notes.txt  a call that ran meanwhile changed it too"), "{said}");
    assert!(said.contains("remove    own"), "{said}");
    sound(home);
}

/// The decision on the newest call of a tool that may change something.
fn newest(home: &Home, tool: &str) -> String {
    let listed = json(home, &["activity", "--json", "--limit", "50"]);
    let rows = listed["activities"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["action_type"] == tool).expect("a call");
    row["decision_id"].as_str().expect("an id").to_owned()
}

/// Kills the daemon, once something is so; says whether it was.
fn kill_once(home: &Home, mut is_so: impl FnMut() -> bool, mut is_over: impl FnMut() -> bool) -> bool {
    loop {
        let so = is_so();
        if so || is_over() {
            let all = home.daemons();
            for id in &all {
                let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
            }
            until("it is gone", || home.daemons().iter().all(|id| !all.contains(id)));
            return so;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_daemon_killed_while_it_keeps_has_started_nothing() {
    let Some(agent) = agent("") else { return };
    let (home, repo) = (&agent.home, agent.home.repo());
    for number in 0..3_000 {
        fs::write(repo.join(format!("src/file{number}")), format!("{number}\n").repeat(200)).expect("written");
    }
    let before = tree(&repo);
    let carried = agent.rewritten(HOST, "rm -rf src");
    std::thread::scope(|scope| {
        let started = scope.spawn(|| agent.prefixed(&carried).0);
        let keeps = || home.home().join("kept").is_dir();
        let was_killed = kill_once(home, keeps, || started.is_finished());
        let output = started.join().expect("it ended");
        // Another daemon may have been started for it, which keeps all of it first.
        if was_killed && !output.status.success() {
            assert_eq!(output.status.code(), Some(126), "{}", text(&output.stderr));
            assert_eq!(tree(&repo), before);
        }
    });
    if repo.join("src").exists() {
        ran(&agent, "rm -rf src");
    }
    until("the state after it is kept", || is_ended(home));
    done(home, &["undo", "--last", "--yes"], 0);
    assert_eq!(tree(&repo), before);
    sound(home);
}

#[test]
fn a_daemon_killed_in_an_undo_leaves_each_path_old_or_new_and_it_is_done_again() {
    let Some(agent) = agent("") else { return };
    let (home, repo) = (&agent.home, agent.home.repo());
    for number in 0..3_000 {
        fs::write(repo.join(format!("src/file{number}")), format!("{number}\n")).expect("written");
    }
    let before = tree(&repo);
    ran(&agent, "rm -rf src");
    until("the state after it is kept", || is_ended(home));
    std::thread::scope(|scope| {
        let undo = scope.spawn(|| home.run(&["undo", "--last", "--yes"]));
        kill_once(home, || repo.join("src").exists(), || undo.is_finished());
        undo.join().expect("it ended");
    });
    for (at, now) in tree(&repo) {
        let is_own = at.strip_prefix(&repo).is_ok_and(|at| at.to_string_lossy().starts_with(".interlock-undo-"));
        let is_directory = at.is_dir();
        assert!(is_own || is_directory || before.get(&at) == Some(&now), "{}", at.display());
    }
    let said = home.run(&["undo", "--last", "--yes"]);
    // What was undone before the kill is there: nothing is left to undo then.
    assert!(matches!(said.status.code(), Some(0 | 1)), "{}", text(&said.stderr));
    assert_eq!(tree(&repo), before);
    sound(home);
}
