//! `doctor` and `config show`, on sound ground and on ground that is not; and the operator's commands on a real server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use interlock_runtime::reach::{Reach, reach};
use interlock_testkit::service::Client;

use crate::recorded::Spawned;
use crate::serve::{KEY, PROGRAM, clean, command, scratch, start, verify};
use crate::{path, text};

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

fn interlock(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env("NO_COLOR", "1");
    clean(&mut command);
    command.env_remove("INTERLOCK_OPERATOR_KEY").env_remove("DOOM_LOOP_GUARD_REQUIRED");
    command
}

fn doctor(data: &Path, server: &str) -> Output {
    interlock(&["doctor", "--data", path(data), "--server", server]).output().expect("it runs")
}

/// The grade of a check and all that is said of it.
fn grade<'a>(said: &'a str, name: &str) -> Vec<&'a str> {
    said.lines()
        .filter(|line| line.get(6..).is_some_and(|rest| rest.starts_with(name)))
        .map(|line| line[..4].trim())
        .collect()
}

#[test]
fn a_sound_installation_has_no_failures() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let mut serving = command(&data);
    serving.env_remove("INTERLOCK_OPERATOR_KEY");
    let served = start(serving);
    let url = format!("http://{}", served.address);
    let before = fs::read(data.join("checkpoint")).expect("a checkpoint");
    let output = doctor(&data, &url);
    let said = text(&output.stdout).to_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    for name in ["version", "environment", "files", "server", "ledger", "clock", "bundle", "disk"] {
        assert_eq!(grade(&said, name), ["ok"], "{name}: {said}");
    }
    assert!(said.contains(&format!("{url} is ready")), "{said}");
    // The same from another port: a server holds the directory and does not answer there.
    let said = text(&doctor(&data, NOWHERE).stdout).to_owned();
    assert_eq!(grade(&said, "server"), ["warn"], "{said}");
    drop(served);
    let said = text(&doctor(&data, NOWHERE).stdout).to_owned();
    assert!(grade(&said, "server") == ["ok"] && said.contains("none runs at"), "{said}");
    assert_eq!(fs::read(data.join("checkpoint")).expect("a checkpoint"), before, "doctor writes nothing");
    // A server that serves something else, and one of another version.
    let other = crate::recorded::Recorded::start();
    other.on("GET /readyz", 200, "ready\n").on("GET /openapi.json", 200, r#"{"info":{"version":"9.9.9"}}"#);
    let said = text(&doctor(&data, &format!("http://{}", other.address)).stdout).to_owned();
    assert_eq!(grade(&said, "server"), ["warn", "warn"], "{said}");
    assert!(said.contains("no server holds this data directory") && said.contains("version 9.9.9"), "{said}");
    // And nothing at all yet.
    let output = doctor(&scratch.path().join("nothing"), NOWHERE);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("there is no data directory"));
    assert!(!scratch.path().join("nothing").exists());
}

#[test]
fn what_is_wrong_is_found_and_has_a_fix() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let mut serving = command(&data);
    serving.env_remove("INTERLOCK_OPERATOR_KEY");
    drop(start(serving));
    let failed = |name: &str, parts: &[&str], output: Output| {
        let said = text(&output.stdout).to_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(grade(&said, name).contains(&"fail"), "{name}: {said}");
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
        let fixes = said.lines().filter(|line| line.trim_start().starts_with("fix: ")).count();
        let findings = said.lines().filter(|line| line.starts_with("fail ") || line.starts_with("warn ")).count();
        assert_eq!(fixes, findings, "every finding has a fix: {said}");
    };
    let set_mode = |name: &str, mode: u32| {
        fs::set_permissions(data.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    set_mode("ledger.key", 0o644);
    failed("files", &["ledger.key can be read by others", "chmod 600"], doctor(&data, NOWHERE));
    set_mode("ledger.key", 0o600);
    set_mode("ledger.db", 0o620);
    failed("files", &["ledger.db can be written by others", "chmod go-w"], doctor(&data, NOWHERE));
    set_mode("ledger.db", 0o600);
    let mut preloaded = interlock(&["doctor", "--data", path(&data), "--server", NOWHERE]);
    preloaded.env("LD_PRELOAD", "/nowhere/lib.so");
    failed("environment", &["LD_PRELOAD", "unset"], preloaded.output().expect("it runs"));
    let mut misspelt = interlock(&["doctor", "--data", path(&data), "--server", NOWHERE]);
    let output = misspelt.env("INTERLOCK_HOEM", "x").output().expect("it runs");
    assert!(text(&output.stdout).contains("INTERLOCK_HOEM means nothing"), "{}", text(&output.stdout));

    let note = fs::read_to_string(data.join("checkpoint")).expect("a checkpoint");
    fs::write(data.join("checkpoint"), note.replacen("same-user", "own-user", 1)).expect("written");
    failed("ledger", &["not signed by this ledger's key", "audit verify"], doctor(&data, NOWHERE));
    fs::remove_file(data.join("checkpoint")).expect("removed");
    failed("ledger", &["there is no checkpoint file"], doctor(&data, NOWHERE));
    assert!(!data.join("checkpoint").exists(), "doctor makes none");
    fs::write(data.join("checkpoint"), &note).expect("written");

    let bundle = scratch.path().join("bundle");
    fs::create_dir(&bundle).expect("a directory");
    fs::write(bundle.join("interlock.toml"), "unknown = 1\n").expect("a bundle");
    let output = interlock(&["doctor", "--data", path(&data), "--server", NOWHERE, "--bundle", path(&bundle)]).output();
    failed("bundle", &["INTERLOCK-CONFIG-001"], output.expect("it runs"));
    fs::write(bundle.join("interlock.toml"), "doom_loop_guard_required = true\n").expect("a bundle");
    let output = interlock(&["doctor", "--data", path(&data), "--server", NOWHERE, "--bundle", path(&bundle)]).output();
    let said = text(&output.expect("it runs").stdout).to_owned();
    assert!(grade(&said, "bundle") == ["warn"] && said.contains("not the one in force"), "{said}");
    let output =
        interlock(&["doctor", "--data", path(&data), "--server", NOWHERE, "--json"]).output().expect("it runs");
    assert!(text(&output.stdout).starts_with("{\"ok\":true,\"reach\":\""), "{}", text(&output.stdout));
}

#[test]
fn reach_is_claimed_only_where_something_speaks_for_it() {
    use Reach::{OwnUser, SameUser};
    #[rustfmt::skip]
    let cases = [
        // owner, asking, behind root
        (1000, 1000, None,       SameUser, "a laptop"),
        (1000, 0,    None,       SameUser, "root looks at a person's files"),
        (1000, 0,    Some(1000), SameUser, "a person looks with sudo at their own"),
        (0,    0,    None,       SameUser, "everything is root's, as in a container"),
        (0,    0,    Some(1000), OwnUser,  "the files are root's, and a person looks with sudo"),
        (0,    1000, None,       OwnUser,  "the files are root's, and a person looks"),
        (998,  1000, None,       OwnUser,  "a service user, and a person looks"),
        (998,  998,  None,       OwnUser,  "a service user looks itself"),
        (998,  0,    None,       OwnUser,  "a service user, and root looks"),
        (1001, 1000, None,       OwnUser,  "another person's files"),
        (1001, 0,    Some(1000), OwnUser,  "another person's files, with sudo"),
    ];
    for (owner, asking, behind_root, expected, name) in cases {
        assert_eq!(reach(owner, asking, behind_root), expected, "{name}");
    }
}

#[test]
fn config_show_says_what_serve_runs_with() {
    let scratch = scratch();
    let (data, bundle) = (scratch.path().join("data"), scratch.path().join("policy"));
    fs::create_dir(&bundle).expect("a directory");
    let toml = "[tools]\nsafe = [\"look\"]\n[actions.calculate]\nengine = \"math\"\nrisk = \"medium\"\n";
    fs::write(bundle.join("interlock.toml"), toml).expect("a bundle");
    let show = |more: &[&str], variables: &[(&str, &str)]| {
        let mut command = interlock(&["config", "show", "--data", path(&data), "--bundle", path(&bundle)]);
        let output = command.args(more).envs(variables.iter().copied()).output().expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let before = show(&[], &[]);
    assert!(before.contains("known after the first start") && !data.exists(), "{before}");
    let mut serving = command(&data);
    serving.arg("--bundle").arg(&bundle).env_remove("INTERLOCK_OPERATOR_KEY");
    let mut child = serving.stdout(Stdio::piped()).spawn().expect("the server");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    child.kill().expect("killed");
    child.wait().expect("its end");
    let digest = line.split("\"bundle\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a digest");
    let after = show(&[], &[]);
    assert!(after.contains(digest), "{digest} is not in {after}");
    let row = |shown: &str, name: &str| {
        let line = shown
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name))
            .unwrap_or_else(|| panic!("{name}: {shown}"));
        line.split("  ").filter(|cell| !cell.is_empty()).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    let file = path(&bundle.join("interlock.toml")).to_owned();
    assert_eq!(row(&after, "data")[2], "--data");
    assert_eq!(row(&after, "listen")[1..], ["127.0.0.1:7878", "default"]);
    assert_eq!(row(&after, "bundle")[2], "--bundle");
    assert_eq!(row(&after, "actions.calculate.risk")[1], "medium");
    assert!(file.starts_with(row(&after, "tools.safe")[2].trim_end_matches('…')), "{after}");
    assert_eq!(row(&after, "tools.dangerous")[1..], ["[]", "default"]);
    assert_eq!(row(&after, "doom_loop_guard_required")[1..], ["false", "default"]);
    let other =
        show(&["--listen", "127.0.0.1:9"], &[("DOOM_LOOP_GUARD_REQUIRED", "1"), ("INTERLOCK_OPERATOR_KEY", KEY)]);
    assert_eq!(row(&other, "listen")[1..], ["127.0.0.1:9", "--listen"]);
    assert_eq!(row(&other, "doom_loop_guard_required")[1..], ["true", "DOOM_LOOP_GUARD_REQUIRED"]);
    assert!(row(&other, "operator_key")[2] == "INTERLOCK_OPERATOR_KEY" && !other.contains(KEY), "{other}");
    let machine = show(&["--json"], &[]);
    let document = interlock_core::json::parse(&machine, &interlock_core::json::Limits::CONFIG).expect("JSON");
    assert_eq!(
        document.root().get("bundle").and_then(|bundle| bundle.get("digest")).map(|value| value.source()),
        Some(format!("\"{digest}\"").as_str())
    );
    fs::write(bundle.join("interlock.toml"), "[tools]\nsave = []\n").expect("a bundle");
    let mut command = interlock(&["config", "show", "--data", path(&data), "--bundle", path(&bundle)]);
    let output = command.output().expect("it runs");
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("save"), "{}", text(&output.stderr));
}

#[test]
fn the_commands_work_on_a_real_server() {
    let scratch = scratch();
    let served = start(command(&scratch.path().join("data")));
    let operate = |arguments: &[&str]| {
        let mut command = interlock(arguments);
        command.env("INTERLOCK_URL", format!("http://{}", served.address)).env("INTERLOCK_OPERATOR_KEY", KEY);
        command
    };
    let run = |arguments: &[&str]| {
        let output = operate(arguments).output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let register = ["agents", "register", "--name", "r \u{202e}", "--type", "autonomous", "--principal", "p"];
    let shown = run(&[&register[..], &["--trust", "1"]].concat());
    assert!(
        shown.contains("REGISTERED agent_") && shown.contains("r \\u{202e}") && shown.contains("trust 1"),
        "{shown}"
    );
    let answer = run(&[&register[..], &["--json"]].concat());
    let part = |name: &str| {
        let rest = answer.split(&format!("\"{name}\":\"")).nth(1).expect("a member");
        rest.split('"').next().expect("a value").to_owned()
    };
    let agent = interlock_testkit::gate::TestAgent { id: part("agent_id"), token: part("agent_token") };
    let mut client = Client::new(served.address);
    for step in 1..=3 {
        verify(&mut client, &agent, "c", step).expect("an answer");
    }
    let shown = run(&["agents", "show", &agent.id]);
    assert!(shown.contains("autonomous, trust 2") && shown.contains("requests, today  3"), "{shown}");
    let shown = run(&["activity", "--agent", &agent.id]);
    let rows = shown.lines().filter(|line| line.starts_with("2"));
    let steps: Vec<&str> = rows.filter_map(|line| line.split_whitespace().nth(6)).collect();
    assert_eq!(steps, ["1", "2", "3"], "{shown}");
    assert!(run(&["top", "--once"]).contains("APPROVED         3"));
    // New rulings arrive while one watches, each once.
    let mut child =
        Spawned::start(&mut operate(&["activity", "--agent", &agent.id, "--follow", "--limit", "1", "--json"]));
    let mut lines = child.lines();
    for step in 3..=6 {
        let line = lines.next().expect("a line").expect("text");
        assert!(line.contains(&format!("\"step_number\":{step},")), "{step}: {line}");
        verify(&mut client, &agent, "c", step + 1).expect("an answer");
    }
    // A wrong key is said to be one, with where it came from.
    let mut command = operate(&["agents", "show", &agent.id]);
    let output = command.env("INTERLOCK_OPERATOR_KEY", "some-other-key").output().expect("it runs");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("the key from INTERLOCK_OPERATOR_KEY"), "{said}");
}
