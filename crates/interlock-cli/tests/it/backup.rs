//! Backups of a real server under load, and what becomes of them; and backups that cannot be made or were changed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use interlock_core::ledger::{Body, Entry};
use interlock_runtime::ledger::{Reader, SqliteReader};
use interlock_testkit::service::Client;
use interlock_testkit::wait::until;

use crate::serve::{KEY, PROGRAM, agent, clean, command, is_sound, scratch, start, verify};
use crate::{path, text};

fn interlock(arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env("NO_COLOR", "1");
    clean(&mut command);
    command.output().expect("it runs")
}

fn back_up(data: &Path, out: &Path) -> Output {
    interlock(&["backup", "--data", path(data), "--out", path(out)])
}

fn restore(from: &Path, data: &Path) -> Output {
    interlock(&["restore", "--from", path(from), "--data", path(data)])
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// The ids of all decisions in a ledger.
fn decisions(data: &Path) -> BTreeSet<String> {
    let mut reader = SqliteReader::open(data).expect("a ledger");
    let size = reader.head().expect("a head").size();
    let entries = reader.entries(0, usize::try_from(size).expect("a size")).expect("entries");
    let id = |bytes: Vec<u8>| match Entry::from_bytes(&bytes).expect("an entry").body {
        Body::Ruled(ruled) => Some(ruled.decision_id),
        _ => None,
    };
    entries.into_iter().filter_map(id).collect()
}

#[test]
fn a_backup_under_load_holds_all_that_was_answered_before_it() {
    const CLIENTS: usize = 4;
    let scratch = scratch();
    let data = scratch.path().join("data");
    fs::create_dir_all(data.join("bundle")).expect("a directory");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).expect("a mode");
    fs::write(data.join("bundle/interlock.toml"), "[tools]\nsafe = [\"look_around\"]\n").expect("a bundle");
    let mut served = start(command(&data));
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    let done = Arc::new(AtomicBool::new(false));
    let agents: Vec<_> = (0..CLIENTS).map(|_| Arc::new(agent(&served))).collect();
    let clients: Vec<_> = agents
        .iter()
        .map(|agent| {
            let (answered, done, address) = (Arc::clone(&answered), Arc::clone(&done), served.address);
            let agent = Arc::clone(agent);
            thread::spawn(move || {
                let mut client = Client::new(address);
                for turn in 0_u64.. {
                    // A conversation has fifty steps.
                    let (conversation, step) = (format!("c{}", turn / 40), turn % 40 + 1);
                    let Ok(answer) = verify(&mut client, &agent, &conversation, step) else { return };
                    let id = answer.body.split("\"decision_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
                    let id = id.unwrap_or_else(|| panic!("no decision: {}", answer.body)).to_owned();
                    assert!(answer.body.contains("APPROVED"), "{}", answer.body);
                    answered.lock().expect("the answers").insert(id);
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                }
            })
        })
        .collect();
    // Several, while the load goes on: each must hold what was answered before it began.
    let mut backups = Vec::new();
    for round in 0..4 {
        let least = backups.last().map_or(0, |(_, _, after)| *after) + 50;
        until("more was answered", || answered.lock().expect("the answers").len() >= least);
        let before = answered.lock().expect("the answers").clone();
        let out = scratch.path().join(format!("backup{round}"));
        let output = back_up(&data, &out);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let after = answered.lock().expect("the answers").len();
        backups.push((out, before, after));
    }
    served.child.kill().expect("killed");
    served.child.wait().expect("its end");
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("a client");
    }
    let grew = backups.iter().filter(|(_, before, after)| *after > before.len()).count();
    assert!(grew > 0, "nothing was asked during any backup");
    for (round, (out, before, _)) in backups.iter().enumerate() {
        assert!(before.len() > 10, "only {} answers before backup {round}", before.len());
        let files: Vec<String> =
            ["attestation.keys", "bundle", "checkpoint", "ledger.db", "ledger.key", "manifest.json"]
                .map(str::to_owned)
                .into();
        assert_eq!(names(out), files.into_iter().collect());
        let target = scratch.path().join(format!("restored{round}"));
        let output = restore(out, &target);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let held = decisions(&target);
        let missing: Vec<_> = before.difference(&held).collect();
        assert!(missing.is_empty(), "backup {round} lacks {} of {}", missing.len(), before.len());
        is_sound(&target);
        for (path, mode) in
            [("", 0o700), ("ledger.db", 0o600), ("ledger.key", 0o600), ("checkpoint", 0o600), ("bundle", 0o700)]
        {
            for place in [&target, out] {
                let found = fs::metadata(place.join(path)).expect("a file").permissions().mode() & 0o777;
                assert_eq!(found, mode, "{}", place.join(path).display());
            }
        }
    }
    // A server goes on from the last one: the agent's token holds, and so does the bundle.
    let target = scratch.path().join("restored3");
    let served = start(command(&target));
    let mut client = Client::new(served.address);
    let answer = verify(&mut client, &agents[0], "new", 1).expect("an answer");
    assert!(answer.body.contains("APPROVED"), "{}", answer.body);
    let headers = [("x-agent-token", agents[0].token.as_str())];
    let body = r#"{"context":{"conversation_id":"new","step_number":2}}"#;
    let tool = format!("/agents/{}/tools/look_around", agents[0].id);
    let answer = client.send("POST", &tool, &headers, body).expect("an answer");
    assert!(answer.body.contains("\"decision\":\"APPROVED\""), "{}", answer.body);
}

/// A data directory that a server was on.
fn used(data: &Path) {
    let served = start(command(data));
    let agent = agent(&served);
    let mut client = Client::new(served.address);
    for step in 1..=5 {
        verify(&mut client, &agent, "c", step).expect("an answer");
    }
    drop(served);
}

#[test]
fn what_cannot_be_backed_up_leaves_nothing_behind() {
    let scratch = scratch();
    let (data, out) = (scratch.path().join("data"), scratch.path().join("backup"));
    used(&data);
    let before = names(scratch.path());
    // A limit on the size of files stands in for the end of the disk, then the calls themselves are made to fail.
    let command = format!("{PROGRAM} backup --data {} --out {}", path(&data), path(&out));
    let log = scratch.path().join("data/../trace");
    let log = path(&log);
    let cases = [
        "trap '' XFSZ; ulimit -f 8;".to_owned(),
        format!("strace -qq -f -o {log} -e inject=pwrite64:error=ENOSPC:when=2+"),
        format!("strace -qq -f -o {log} -e inject=fsync,fdatasync:error=EIO:when=3+"),
        format!("strace -qq -f -o {log} -e inject=rename,renameat,renameat2:error=EIO"),
    ];
    for before_command in cases {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{before_command} {command}")]);
        clean(&mut shell);
        let output = shell.output().expect("bash");
        let said = text(&output.stderr).to_owned();
        assert_eq!(output.status.code(), Some(2), "{before_command}: {said}");
        assert!(
            said.contains("INTERLOCK-FAULT-002") && said.contains("no backup was made"),
            "{before_command}: {said}"
        );
        let _ = fs::remove_file(log);
        assert_eq!(names(scratch.path()), before, "{before_command}");
    }
    // What cannot be read.
    let broken = |name: &str, part: &str| {
        let (kept, place) = (scratch.path().join("kept"), data.join(name));
        fs::rename(&place, &kept).expect("moved");
        for make in [None, Some(())] {
            if make.is_some() {
                fs::create_dir(&place).expect("a directory");
            }
            let output = back_up(&data, &out);
            let said = text(&output.stderr).to_owned();
            assert!(output.status.code() == Some(2) && said.contains(part), "{name}: {said}");
            assert!(!out.exists(), "{name}");
        }
        fs::remove_dir(&place).expect("removed");
        fs::rename(&kept, &place).expect("moved back");
        assert_eq!(names(scratch.path()), before, "{name}");
    };
    broken("checkpoint", "checkpoint cannot be read");
    broken("ledger.key", "holds no ledger");
    broken("ledger.db", "ledger.db");
    // A place that is not one.
    let full = scratch.path().join("full");
    fs::create_dir(&full).expect("a directory");
    fs::write(full.join("x"), "x").expect("a file");
    for (place, part) in [
        (full.clone(), "is not empty"),
        (data.join("below"), "lies in the data directory"),
        (scratch.path().join("no/such"), "cannot be read"),
    ] {
        let output = back_up(&data, &place);
        let said = text(&output.stderr).to_owned();
        assert!(output.status.code() == Some(2) && said.contains(part), "{}: {said}", place.display());
    }
    assert_eq!(names(&full).len(), 1);
    let output = back_up(&data, &out);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // What is damaged is an answer, not a backup.
    let note = fs::read_to_string(data.join("checkpoint")).expect("a checkpoint");
    fs::write(data.join("checkpoint"), note.replacen("same-user", "own-user", 1)).expect("written");
    let output = back_up(&data, &scratch.path().join("other"));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("INTERLOCK-LEDGER-001"), "{}", text(&output.stderr));
}

#[test]
fn registered_workflows_and_their_runs_are_in_what_is_restored() {
    let scratch = scratch();
    let (data, out, target) =
        (scratch.path().join("data"), scratch.path().join("backup"), scratch.path().join("target"));
    let flow = |event: &str| {
        let states = format!(r#"{{"a":{{"on":{{"{event}":"z"}}}},"z":{{"type":"final"}}}}"#);
        format!(r#"{{"workflow":{{"id":"w","initial":"a","states":{states}}}}}"#)
    };
    let start_run = r#"{"host":"codex","project":"/srv/shop","workflow":"w"}"#;
    let served = start(command(&data));
    let ask = |client: &mut Client, method: &str, path: &str, body: &str| {
        let answer = client.send(method, path, &[("x-api-key", KEY)], body).expect("an answer");
        (answer.status, answer.body)
    };
    let mut client = Client::new(served.address);
    assert_eq!(ask(&mut client, "POST", "/workflows", &flow("FIRST")).0, 201);
    assert_eq!(ask(&mut client, "POST", "/runs", start_run).0, 201);
    assert_eq!(ask(&mut client, "POST", "/workflows", &flow("SECOND")).0, 201);
    let known = ["/workflows", "/workflows/w", "/runs"].map(|path| ask(&mut client, "GET", path, ""));
    assert!(known[1].1.contains("SECOND") && known[2].1.contains("FIRST"), "{known:?}");
    let output = back_up(&data, &out);
    assert!(output.status.success(), "{}", text(&output.stderr));
    drop(served);
    let output = restore(&out, &target);
    assert!(output.status.success(), "{}", text(&output.stderr));
    is_sound(&target);
    let exported = scratch.path().join("exported");
    let output = interlock(&["audit", "export", "--data", path(&target), "--out", path(&exported)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let served = start(command(&target));
    let mut client = Client::new(served.address);
    assert_eq!(["/workflows", "/workflows/w", "/runs"].map(|path| ask(&mut client, "GET", path, "")), known);
    assert_eq!(ask(&mut client, "POST", "/workflows", &flow("SECOND")).0, 200);
    drop(served);
    // A row that is gone is noticed.
    let connection = rusqlite::Connection::open(target.join("ledger.db")).expect("a database");
    connection.execute_batch("DELETE FROM workflows").expect("changed");
    drop(connection);
    let output = interlock(&["audit", "verify", "--data", path(&target)]);
    let said = text(&output.stdout).to_owned();
    assert!(output.status.code() == Some(1) && said.contains("the workflow `w` has entries and no row"), "{said}");
}

#[test]
fn a_backup_that_was_changed_is_not_restored() {
    let scratch = scratch();
    let (data, out, target) =
        (scratch.path().join("data"), scratch.path().join("backup"), scratch.path().join("target"));
    used(&data);
    assert!(back_up(&data, &out).status.success());
    let before = names(scratch.path());
    let refused = |part: &str| {
        let output = restore(&out, &target);
        let said = text(&output.stderr).to_owned();
        assert!(output.status.code() == Some(1) && said.contains(part), "{:?} {said}", output.status.code());
        assert_eq!(names(scratch.path()), before, "{part}");
    };
    for name in ["ledger.db", "ledger.key", "checkpoint"] {
        let original = fs::read(out.join(name)).expect("a file");
        let mut changed = original.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        fs::write(out.join(name), &changed).expect("written");
        refused(&format!("`{name}` is not the file the manifest names"));
        fs::write(out.join(name), &original[..original.len() - 1]).expect("written");
        refused("is not the file the manifest names");
        fs::write(out.join(name), &original).expect("written");
    }
    // Who changes the manifest as well is found out by the ledger itself: an older database, a row, an entry.
    let manifest = fs::read_to_string(out.join("manifest.json")).expect("a manifest");
    let original = fs::read(out.join("ledger.db")).expect("a database");
    for statement in [
        "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)",
        "UPDATE agents SET live = replace(live, '\"entries\":6', '\"entries\":5')",
        "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), 'APPROVED', 'DENIED') AS BLOB) WHERE number = 3",
        "UPDATE conversations SET row = replace(row, '5', '4')",
    ] {
        let script = format!(
            "import sqlite3; c = sqlite3.connect('{}'); n = c.execute(\"\"\"{statement}\"\"\").rowcount; c.commit(); c.close(); print(n)",
            path(&out.join("ledger.db"))
        );
        let changed = Command::new("python3").args(["-c", &script]).output().expect("python");
        assert_ne!(text(&changed.stdout).trim(), "0", "{statement}: {}", text(&changed.stderr));
        let bytes = fs::read(out.join("ledger.db")).expect("a database");
        let old = interlock_core::Digest::of_bytes(&original).to_string();
        let forged = manifest.replace(&old, &interlock_core::Digest::of_bytes(&bytes).to_string());
        let forged = forged.replace(&format!("\"bytes\": {}", original.len()), &format!("\"bytes\": {}", bytes.len()));
        assert_ne!(forged, manifest, "{statement}");
        fs::write(out.join("manifest.json"), forged).expect("written");
        let output = restore(&out, &target);
        let said = text(&output.stderr).to_owned();
        // A hole in the entries is a store that cannot be read.
        assert!(
            matches!(output.status.code(), Some(1 | 2)) && said.contains("nothing was restored"),
            "{statement}: {said}"
        );
        assert_eq!(names(scratch.path()), before, "{statement}");
        fs::write(out.join("ledger.db"), &original).expect("written");
    }
    for (from, to, part) in [
        ("\"name\": \"ledger.key\"", "\"name\": \"../ledger.key\"", "is no file of a backup"),
        ("\"name\": \"ledger.key\"", "\"name\": \"bundle/../x.key\"", "is no file of a backup"),
        ("\"name\": \"ledger.key\"", "\"name\": \"checkpoint\"", "does not name `ledger.key`"),
        ("\"name\": \"ledger.key\"", "\"name\": \"lock\"", "is no file of a backup"),
        ("\"format\": 1", "\"format\": 2", "reads backups of format 1"),
        ("\"entries\": 7", "\"entries\": 6", "names another ledger"),
        ("\"format\": 1", "\"format\": 1, \"more\": 1", "manifest.json"),
    ] {
        assert!(manifest.contains(from), "{from} is not in {manifest}");
        fs::write(out.join("manifest.json"), manifest.replacen(from, to, 1)).expect("written");
        refused(part);
    }
    fs::remove_file(out.join("manifest.json")).expect("removed");
    assert_eq!(restore(&out, &target).status.code(), Some(2));
    fs::write(out.join("manifest.json"), &manifest).expect("written");

    // A place that is taken stays as it is; one that is empty is used as it is.
    fs::create_dir(&target).expect("a directory");
    fs::write(target.join("x"), "x").expect("a file");
    let output = restore(&out, &target);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("is not empty"));
    fs::remove_file(target.join("x")).expect("removed");
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).expect("a directory"));
    let empty = inode(&target);
    let output = restore(&out, &target);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(inode(&target), empty, "the directory itself stays: it may be the top of a file system");
    let files: Vec<String> = ["attestation.keys", "checkpoint", "ledger.db", "ledger.key"].map(str::to_owned).into();
    assert_eq!(names(&target), files.into_iter().collect());
    is_sound(&target);
}
