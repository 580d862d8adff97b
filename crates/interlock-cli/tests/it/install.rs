//! `install`, `uninstall`, `init`, and what `doctor` says of hosts: on a user's directory of the test's own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::home::Home;
use crate::serve::PROGRAM;
use crate::{path, text};

const HOSTS: [&str; 4] = ["claude-code", "codex", "cursor", "gemini"];

fn done(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Every file of a directory but Interlock's own, with mode and contents.
fn tree(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("a directory").flatten() {
            let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
            if path == root.join(".interlock") {
                continue;
            }
            let mode = fs::symlink_metadata(&path).expect("there").permissions().mode();
            let bytes = if kind.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
            if kind.is_dir() {
                left.push(path.clone());
            }
            found.insert(path.display().to_string(), (mode, bytes));
        }
    }
    found
}

/// Settings as people have them, odd in every way that is still strict.
fn furnish(home: &Home) {
    for base in ["", "repo/"] {
        home.write(&format!("{base}.claude/settings.json"), "{\n\t\"hooks\": {\"PreToolUse\": []},\n\t\"é\": 1e3 }");
        home.write(&format!("{base}.codex/config.toml"), "model = \"x\" # no end of line");
        home.write(&format!("{base}.cursor/hooks.json"), "{ \"version\": 1, \"hooks\": { } }\n\n");
    }
    home.write(".claude.json", "{\"mcpServers\":{\"other\":{\"command\":\"x\"}},\"n\":[1,2]}");
    fs::set_permissions(home.file(".claude.json"), fs::Permissions::from_mode(0o640)).expect("a mode");
}

#[test]
fn every_host_is_installed_and_taken_out_to_the_byte() {
    let home = Home::new();
    furnish(&home);
    let before = tree(&home.user());
    for project in [false, true] {
        let more: &[&str] = if project { &["--project"] } else { &[] };
        for host in HOSTS {
            let install = |last: &[&str]| home.run(&[&["install", host], last, more].concat());
            let without = tree(&home.user());
            let shown = install(&["--dry-run"]);
            assert!(done(&shown).contains("a dry run: nothing was changed"), "{host}");
            assert!(tree(&home.user()) == without, "{host}: a dry run");
            let said = done(&install(&["--yes"])).to_owned();
            assert!(said.contains(&format!("installed: {host}, for this")), "{said}");
            assert!(said.contains(&home.fingerprint()) && said.contains(PROGRAM), "{said}");
            let with = tree(&home.user());
            assert!(with != without, "{host}");
            assert!(done(&install(&["--yes"])).contains("nothing to change"), "{host}");
            assert!(done(&install(&[])).contains("nothing to change"), "{host}: nothing to ask");
            assert!(tree(&home.user()) == with, "{host}: installed twice");
        }
    }
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&home.file(".claude.json")), 0o640);
    assert_eq!(mode(&home.home().join("installed")), 0o700);
    for record in fs::read_dir(home.home().join("installed")).expect("records").flatten() {
        assert_eq!(mode(&record.path()), 0o600);
    }
    for project in [true, false] {
        let more: &[&str] = if project { &["--project", "."] } else { &[] };
        for host in HOSTS {
            let said = done(&home.run(&[&["uninstall", host], more].concat())).to_owned();
            assert!(said.contains("restored as it was, to the byte") && said.contains("uninstalled"), "{said}");
            assert!(done(&home.run(&[&["uninstall", host], more].concat())).contains("nothing to change"), "{host}");
        }
    }
    let after = tree(&home.user());
    let names = |tree: &BTreeMap<String, (u32, Vec<u8>)>| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "the same names, and not the same bytes or modes");
    assert!(!home.home().join("installed").exists());
}

#[test]
fn directories_that_were_made_go_as_well() {
    let home = Home::new();
    let before = tree(&home.user());
    for more in [&[][..], &["--project", "."]] {
        for host in HOSTS {
            done(&home.run(&[&["install", host, "--yes"], more].concat()));
            assert!(tree(&home.user()) != before, "{host}");
            done(&home.run(&[&["uninstall", host], more].concat()));
            let left: Vec<String> = tree(&home.user()).into_keys().collect();
            assert_eq!(left, before.keys().cloned().collect::<Vec<_>>(), "{host} {more:?}");
        }
    }
    // One that somebody uses by now stays, and so does one that was there.
    fs::create_dir(home.file(".cursor")).expect("made");
    done(&home.run(&["install", "codex", "--yes"]));
    done(&home.run(&["install", "cursor", "--yes"]));
    home.write(".codex/notes", "x");
    done(&home.run(&["uninstall", "codex"]));
    done(&home.run(&["uninstall", "cursor"]));
    assert_eq!(home.read(".codex/notes").as_deref(), Some("x"));
    assert_eq!(fs::read_dir(home.file(".codex")).expect("there").count(), 1);
    assert_eq!(fs::read_dir(home.file(".cursor")).expect("there").count(), 0);
}

#[test]
fn what_others_changed_since_stays() {
    let home = Home::new();
    home.write(".claude/settings.json", "{\"a\": 1}\n");
    done(&home.run(&["install", "claude-code", "--yes"]));
    let with = home.read(".claude/settings.json").expect("settings");
    home.write(".claude/settings.json", &with.replace("\"a\": 1", "\"a\": 2"));
    // Installed again over it: what was there before is what is there without ours.
    assert!(done(&home.run(&["install", "claude-code", "--yes"])).contains("nothing to change"));
    home.write(".claude/settings.json", &with.replace("\"a\": 1", "\"a\": 3"));
    let said = done(&home.run(&["uninstall", "claude-code"])).to_owned();
    assert!(said.contains("somebody changed the file since: only ours was taken out"), "{said}");
    assert_eq!(home.read(".claude/settings.json").as_deref(), Some("{\"a\": 3}\n"));
    // Without any memory it is taken out all the same.
    done(&home.run(&["install", "claude-code", "--yes"]));
    fs::remove_dir_all(home.home().join("installed")).expect("removed");
    done(&home.run(&["uninstall", "claude-code"]));
    assert_eq!(home.read(".claude/settings.json").as_deref(), Some("{\"a\": 3}\n"));
    assert!(home.read(".claude.json").is_none());
}

#[test]
fn what_cannot_be_edited_is_left_alone() {
    let home = Home::new();
    let cases = [
        ("claude-code", ".claude/settings.json", "{\"a\": 1,}", "not strict JSON"),
        ("claude-code", ".claude.json", "// mine\n{}", "not strict JSON"),
        ("claude-code", ".claude.json", "{\"mcpServers\":{\"interlock\":{\"command\":\"x\"}}}", "another server"),
        ("codex", ".codex/config.toml", "a = ", "not TOML (line 1)"),
        ("gemini", ".gemini/settings.json", "{\"hooks\":[]}", "not an object"),
        ("cursor", ".cursor/mcp.json", "\u{feff}{}", "not strict JSON"),
    ];
    for (host, name, contents, part) in cases {
        home.write(name, contents);
        let before = tree(&home.user());
        let output = home.run(&["install", host, "--yes"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(part) && said.contains("nothing was changed"), "{name}: {said}");
        assert_eq!(tree(&home.user()), before, "{name}");
        fs::remove_file(home.file(name)).expect("removed");
    }
    home.write(".claude.json", "\u{1}");
    fs::write(home.file(".claude.json"), b"\xff").expect("written");
    let output = home.run(&["install", "claude-code", "--yes", "--json"]);
    assert!(text(&output.stdout).contains("is not UTF-8"), "{}", text(&output.stdout));
    assert!(!home.home().exists(), "nothing was made for a refusal");
}

#[test]
fn links_are_followed_where_they_stay_at_home() {
    let home = Home::new();
    let outside = crate::serve::scratch();
    fs::write(outside.path().join("settings.json"), "{}").expect("written");
    home.write("dotfiles/claude/settings.json", "{}");
    symlink("dotfiles/claude", home.file(".claude")).expect("a link");
    symlink("../dotfiles/gemini.json", home.file("gemini-link")).expect("a link");
    let before = tree(&home.user());
    done(&home.run(&["install", "claude-code", "--yes"]));
    assert!(home.read("dotfiles/claude/settings.json").expect("settings").contains("PreToolUse"));
    assert!(fs::symlink_metadata(home.file(".claude")).expect("there").is_symlink());
    done(&home.run(&["uninstall", "claude-code"]));
    assert_eq!(tree(&home.user()), before);
    // Out of it, into nothing, or something that is no file.
    fs::create_dir(home.file(".cursor")).expect("made");
    symlink(outside.path().join("settings.json"), home.file(".cursor/hooks.json")).expect("a link");
    symlink(outside.path(), home.file(".gemini")).expect("a link");
    fs::create_dir(home.file(".codex")).expect("made");
    symlink("nowhere", home.file(".codex/hooks.json")).expect("a link");
    for (host, part) in [("cursor", "leads elsewhere"), ("gemini", "leads elsewhere"), ("codex", "leads nowhere")] {
        let output = home.run(&["install", host, "--yes"]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(part), "{host}: {said}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("settings.json")).expect("there"), "{}");
    assert_eq!(fs::read_dir(outside.path()).expect("a directory").count(), 1);
    fs::remove_file(home.file(".codex/hooks.json")).expect("removed");
    fs::create_dir(home.file(".codex/hooks.json")).expect("made");
    assert!(text(&home.run(&["install", "codex", "--yes"]).stderr).contains("is not a file"));
}

#[test]
fn nothing_is_done_unasked() {
    let home = Home::new();
    let before = tree(&home.user());
    for arguments in [&["install", "gemini"][..], &["install", "gemini", "--json"], &["init", "--host", "gemini"]] {
        let output = home.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(said.contains("nobody to ask") && said.contains("--yes"), "{arguments:?}: {said}");
    }
    assert!(!home.home().exists());
    assert_eq!(tree(&home.user()), before);
    // On a terminal, where the answer counts.
    let ask = |answer: &str| {
        let line = format!("{PROGRAM} install gemini");
        home.feed(home.command("script", &["-qec", &line, "/dev/null"]), answer.as_bytes())
    };
    for answer in ["n\n", "\n", "yess\n"] {
        let output = ask(answer);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("[y/N]") && said.contains("nothing was changed"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(tree(&home.user()), before);
    }
    let output = ask("y\n");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(home.read(".gemini/settings.json").expect("settings").contains("BeforeTool"));
}

#[test]
fn a_write_that_fails_takes_the_others_back() {
    let home = Home::new();
    home.write(".claude/settings.json", "{}");
    home.write(".claude.json", "{}");
    // The daemon first, whose files are renamed as well.
    done(&home.run(&["install", "gemini", "--yes"]));
    let before = tree(&home.user());
    // Record and file, record and file: the fourth rename is the second file's.
    let inject = "inject=rename,renameat,renameat2:error=EIO:when=4";
    let trace = "trace=rename,renameat,renameat2";
    let mut command = home.command("strace", &["-f", "-qq", "-o", "/dev/null", "-e", trace, "-e", inject]);
    command.args([PROGRAM, "install", "claude-code", "--yes"]);
    let output = command.output().expect("strace");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(".claude.json cannot be written") && said.contains("nothing was changed"), "{said}");
    assert_eq!(tree(&home.user()), before);
    done(&home.run(&["install", "claude-code", "--yes"]));
    done(&home.run(&["uninstall", "claude-code"]));
    assert_eq!(tree(&home.user()), before);
}

#[test]
fn programs_read_what_is_done() {
    let home = Home::new();
    let json = |arguments: &[&str]| -> Value {
        let output = home.run(arguments);
        serde_json::from_str(done(&output)).expect("JSON")
    };
    let planned = json(&["install", "codex", "--dry-run", "--json"]);
    assert_eq!((&planned["changed"], &planned["daemon"]), (&Value::Bool(false), &Value::Null));
    assert!(!home.home().exists());
    let installed = json(&["install", "codex", "--yes", "--json"]);
    assert_eq!(installed["daemon"].as_str(), Some(home.fingerprint().as_str()));
    assert_eq!((&installed["changed"], &installed["scope"]), (&Value::Bool(true), &Value::from("user")));
    assert_eq!(installed["files"][0]["state"], "new");
    assert!(installed["files"][0]["diff"].as_str().expect("a text").contains("+ "), "{installed}");
    assert_eq!(json(&["install", "codex", "--json"])["changed"], false);
    let removed = json(&["uninstall", "codex", "--json"]);
    assert_eq!((&removed["changed"], &removed["files"][0]["state"]), (&Value::Bool(true), &Value::from("removed")));
}

#[test]
fn init_sets_a_repository_up_and_says_how_to_undo_it() {
    let home = Home::new();
    let nothing = home.run(&["init", "--yes"]);
    assert!(nothing.status.code() == Some(1) && text(&nothing.stderr).contains("--host"), "{nothing:?}");
    // One is known by its settings, the other by its program.
    fs::create_dir(home.file(".gemini")).expect("made");
    home.write("bin/claude", "#!/bin/sh\n");
    let before = tree(&home.user());
    let init = |more: &[&str]| {
        let mut command = home.command(PROGRAM, &["init"]);
        command.args(more).env("PATH", format!("{}:/usr/bin:/bin", path(&home.file("bin"))));
        command.output().expect("it runs")
    };
    let said = done(&init(&["--template", "bugfix", "--dry-run"])).to_owned();
    for part in ["settings.json", ".claude.json", "workflow.yaml (new file)", "interlock trust", "interlock review"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(tree(&home.user()), before);
    let wrong = init(&["--template", "bugfx"]);
    assert!(wrong.status.code() == Some(2) && text(&wrong.stderr).contains("did you mean `bugfix`"), "{wrong:?}");
    let said = done(&init(&["--template", "bugfix", "--yes"])).to_owned();
    assert!(said.contains("blocks nothing yet") && said.contains("interlock enforce"), "{said}");
    let with = tree(&home.user());
    let template = home.run(&["workflow", "templates", "bugfix"]);
    assert_eq!(home.read("repo/.interlock/workflow.yaml").as_deref(), Some(done(&template)));
    let said = done(&init(&["--template", "bugfix"])).to_owned();
    assert!(said.contains("nothing to change"), "{said}");
    assert_eq!(tree(&home.user()), with, "twice");
    let other = init(&["--template", "review", "--yes"]);
    assert!(other.status.code() == Some(1) && text(&other.stderr).contains("is another workflow"), "{other:?}");
    // It observes: what would be refused passes, and is on record as refused.
    let key = path(&home.home().join("operator.key")).to_owned();
    let event = String::from_utf8(home.event("1")).expect("text").replace(&format!("{}/a", path(&home.repo())), &key);
    assert_eq!(home.hook(&[], event.as_bytes()).status.code(), Some(0));
    assert!(text(&home.run(&["activity", "--json"]).stdout).contains("\"decision\":\"DENIED\""));
    // The commands it printed undo it.
    let undo = said.split("undo:\n").nth(1).expect("commands").to_owned();
    for line in undo.lines().map(str::trim) {
        let line = line.replacen("interlock", PROGRAM, usize::from(line.starts_with("interlock")));
        assert!(home.command("sh", &["-c", &line]).output().expect("sh").status.success(), "{line}");
    }
    fs::remove_dir(home.file("repo/.interlock")).expect("empty");
    assert_eq!(tree(&home.user()), before);
}

/// What doctor says, and its exit code.
fn doctor(home: &Home, more: &[&str]) -> (Option<i32>, String) {
    let output = home.run(&[&["doctor"], more].concat());
    (output.status.code(), text(&output.stdout).to_owned())
}

#[test]
fn doctor_tries_every_hook_that_is_installed() {
    let home = Home::new();
    let (exit, said) = doctor(&home, &[]);
    assert!(exit == Some(0) && said.contains("no host is installed"), "{said}");
    assert!(!home.home().exists(), "nothing to try, nothing made");
    for host in HOSTS {
        done(&home.run(&["install", host, "--yes"]));
    }
    done(&home.run(&["install", "gemini", "--project", "--yes"]));
    home.end_daemons();
    // Whatever project the home lies in, probes are no part of it.
    fs::create_dir(home.file(".git")).expect("made");
    for _ in 0..2 {
        let (exit, said) = doctor(&home, &[]);
        assert_eq!(exit, Some(0), "{said}");
        for host in HOSTS {
            assert!(said.contains(&format!("ok    {host:<11}  installed for this user")), "{host}: {said}");
            assert!(said.contains(&format!("ok    {host:<11}  the hook for this user works")), "{host}: {said}");
        }
        assert!(said.contains("ok    gemini       the hook for the project"), "{said}");
        assert!(said.contains("warn  codex        advisory") && said.contains("warn  gemini       advisory"), "{said}");
        assert!(said.contains("note  codex        not covered: hooks nobody accepted"), "{said}");
        assert!(said.contains("same-user") || said.contains("own-user"), "{said}");
        let fixes = said.lines().filter(|line| line.trim_start().starts_with("fix: ")).count();
        let findings = said.lines().filter(|line| line.starts_with("fail ") || line.starts_with("warn ")).count();
        assert_eq!(fixes, findings, "{said}");
    }
    let listed = home.run(&["agents", "list", "--json"]);
    let agents: Value = serde_json::from_str(done(&listed)).expect("JSON");
    let agents = agents["agents"].as_array().expect("agents").clone();
    assert_eq!(agents.len(), HOSTS.len(), "one for each host, in one project: {agents:?}");
    for agent in agents {
        assert_eq!(agent["description"].as_str(), Some(path(&home.home().join("doctor"))), "{agent}");
    }
    // The second probe is refused where refusals bind, and doctor is content with that.
    home.enforce();
    let (exit, said) = doctor(&home, &[]);
    assert_eq!(exit, Some(0), "{said}");
    let (exit, said) = doctor(&home, &["--no-probe", "--json"]);
    let answer: Value = serde_json::from_str(&said).expect("JSON");
    assert!(exit == Some(0) && answer["ok"] == true && !said.contains("works"), "{said}");
}

#[test]
fn doctor_finds_what_is_wrong_with_a_hook() {
    let home = Home::new();
    let settings = ".claude/settings.json";
    let install = || done(&home.run(&["install", "claude-code", "--yes"])).len();
    let check = |part: &str, grade: &str| {
        let (exit, said) = doctor(&home, &[]);
        let line = said.lines().find(|line| line.starts_with(grade) && line.contains(part));
        assert!(line.is_some(), "{part}: {said}");
        assert_eq!(exit, Some(i32::from(said.lines().any(|line| line.starts_with("fail")))), "{said}");
    };
    install();
    let good = home.read(settings).expect("settings");
    let change = |from: &str, to: &str| home.write(settings, &good.replace(from, to));
    change(PROGRAM, "/no/such/interlock");
    check("which is not there", "fail");
    // A hook that lets everything pass and asks nobody.
    home.write("bin/interlock", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(home.file("bin/interlock"), fs::Permissions::from_mode(0o755)).expect("a mode");
    change(PROGRAM, path(&home.file("bin/interlock")));
    check("not this binary", "warn");
    check("the daemon recorded nothing", "fail");
    home.write("bin/interlock", "#!/bin/sh\necho no >&2\nexit 2\n");
    check("refused something harmless: exit code 2, no", "fail");
    home.write("bin/interlock", "#!/bin/sh\nexit 1\n");
    check("refused something harmless: exit code 1", "fail");
    let fingerprint = home.fingerprint();
    change(&fingerprint, &format!("sha256:{}", "0".repeat(64)));
    check("believes another daemon", "fail");
    check("is not the daemon this was installed for", "fail");
    change("\"timeout\": 60", "\"timeout\": 1");
    check("does not have what `install` writes there", "fail");
    change("\"matcher\": \"*\"", "\"matcher\": \"Bash\"");
    check("does not have what `install` writes there", "fail");
    home.write(settings, &good);
    home.write(".claude/settings.local.json", "{\"disableAllHooks\": true}");
    check("hooks are switched off", "fail");
    fs::remove_file(home.file(".claude/settings.local.json")).expect("removed");
    home.write(settings, "{");
    check("left alone", "fail");
    home.write(settings, "{}");
    fs::remove_file(home.file(".claude.json")).expect("removed");
    check("its entries are gone", "fail");
    install();
    assert_eq!(doctor(&home, &[]).0, Some(0));
    // Another key is another daemon: what was installed for the old one says so, and installing again mends it.
    home.end_daemons();
    fs::remove_dir_all(home.home().join("data")).expect("removed");
    check("believes another daemon", "fail");
    install();
    assert_eq!(doctor(&home, &[]).0, Some(0));
}
