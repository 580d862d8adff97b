//! Proofs and exports as a user makes and checks them, of a real ledger, beside its server and after it was changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use interlock_core::Digest;
use interlock_core::bundle::Bundle;
use interlock_core::json::quote;
use interlock_core::ledger::{Frontier, Proof, leaf_hash};
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::{CheckpointFile, LedgerKey, Reader, SqliteReader, SqliteStore};
use interlock_testkit::gate::{self, TestAgent};
use interlock_testkit::service::Server;
use interlock_testkit::wait::until;

use crate::{interlock, path, text};

fn file(data: &Path) -> CheckpointFile {
    CheckpointFile::new(data, LedgerKey::open(data, &SystemEntropy::new()).expect("a key"))
}

fn server(data: &Path) -> Server {
    let bundle = Bundle::load("", &BTreeMap::new(), false).expect("a bundle");
    Server::start(Box::new(SqliteStore::open(data).expect("a store")), Some(file(data)), bundle)
}

fn ask(server: &Server, agent: &TestAgent, conversation: &str, step: u64) {
    // Every third is wrong, so that not all answers are the same.
    let query = if step.is_multiple_of(3) { format!("{step}/0") } else { format!("{step}+1") };
    let context = format!(r#"{{"conversation_id":"{conversation}","step_number":{step}}}"#);
    let body = format!(r#"{{"action":{{"type":"calculate","query":"{query}"}},"context":{context}}}"#);
    let path = format!("/agents/{}/verify", agent.id);
    let key = format!("{conversation}-{step}");
    let headers = [("x-agent-token", agent.token.as_str()), ("idempotency-key", key.as_str())];
    let answer = server.client().send("POST", &path, &headers, &body).expect("an answer");
    assert!(answer.body.contains("decision_id"), "{}", answer.body);
}

const HOSTILE: &str = r#"{"name":"=cmd|' /C calc'!A0","type":"supervised","principal_id":"\u202e@SUM(1,\"2\")"}"#;
const PLAIN: &str = r#"{"name":"plain, \"quoted\"\nand broken","type":"supervised","principal_id":"p"}"#;

/// A ledger with two agents: 1 bundle, 2 registrations, 30 rulings.
fn filled(data: &Path) -> (Server, [TestAgent; 2]) {
    let server = server(data);
    let mut client = server.client();
    let agents = [HOSTILE, PLAIN].map(|body| gate::register(&mut client, body).expect("an agent"));
    for step in 1..=15 {
        server.clock.advance(60_000);
        ask(&server, &agents[0], "=1+1\\u200b", step);
        ask(&server, &agents[1], " -2", step);
    }
    (server, agents)
}

fn stopped(data: &Path) -> [TestAgent; 2] {
    let (server, agents) = filled(data);
    server.ledger.stop().expect("stopped");
    agents
}

fn audit(data: &Path, arguments: &[&str]) -> Output {
    interlock(&[&["audit"], arguments, &["--data", path(data)]].concat())
        .env_remove("INTERLOCK_HOME")
        .output()
        .expect("it runs")
}

/// Standard output of a command that went well.
fn good(data: &Path, arguments: &[&str]) -> String {
    let output = audit(data, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// What a command says that did not, with this exit code.
fn bad(data: &Path, arguments: &[&str], code: i32) -> String {
    let output = audit(data, arguments);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

/// Checks as somebody does who has no data directory.
fn check(arguments: &[&str]) -> (i32, String) {
    let mut command = interlock(&[&["audit", "check"], arguments].concat());
    command.env("INTERLOCK_HOME", "/nowhere").env("HOME", "/nowhere").current_dir("/");
    let output = command.output().expect("it runs");
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output.status.code().expect("an exit code"), said)
}

#[test]
fn proofs_are_made_beside_a_server_and_checked_without_it() {
    let scratch = tempfile::tempdir().expect("a directory");
    let data = scratch.path().join("data");
    fs::create_dir(&data).expect("a directory");
    let at = |name: &str| path(&scratch.path().join(name)).to_owned();
    let (server, agents) = filled(&data);

    let key = good(&data, &["key"]);
    fs::write(at("key"), &key).expect("written");
    assert!(key.starts_with("interlock/") && key.matches('+').count() >= 2, "{key}");
    assert_eq!(good(&data, &["key", "--json"]), format!("{{\"verifier_key\":\"{}\"}}\n", key.trim_end()));

    // The checkpoint follows within a second.
    until("it can be proven", || audit(&data, &["prove", "32"]).status.code() == Some(0));
    fs::copy(data.join("checkpoint"), at("kept")).expect("copied");
    for index in [0, 2, 17, 32] {
        let _ = fs::remove_file(at("entry"));
        let proof = good(&data, &["prove", &index.to_string(), "--save-entry", &at("entry")]);
        fs::write(at("proof"), &proof).expect("written");
        let (code, said) =
            check(&[&at("proof"), "--checkpoint", &at("kept"), "--key", &at("key"), "--entry", &at("entry")]);
        assert_eq!(code, 0, "{said}");
        assert!(said.starts_with(&format!("PROVEN entry {index} is in the ledger of 33 entries\n")), "{said}");
        assert!(said.contains("the entry given") && said.contains("same-user"), "{said}");
        // The note in the proof will do, and so will the key itself.
        let (code, said) = check(&[&at("proof"), "--key", key.trim_end(), "--json"]);
        assert!(code == 0 && said.starts_with("{\"ok\":true,\"kind\":\"inclusion\""), "{said}");
    }

    // A decision is found by its id.
    let entry = String::from_utf8(entries(&data)[20].clone()).expect("UTF-8");
    let id = &entry[entry.find("dec_").expect("an id")..][..36];
    assert_eq!(good(&data, &["prove", id]), good(&data, &["prove", "20"]));
    assert!(bad(&data, &["prove", &id.replace(|c: char| c.is_ascii_digit(), "0")], 2).contains("no decision"));

    // What does not fit is not proven, and says why.
    fs::write(at("other"), "another entry").expect("written");
    let stranger = LedgerKey::from_seed(&[3; 32]).expect("a key");
    let mut frontier = Frontier::default();
    (0..33).for_each(|_| frontier.append(Digest::of(&["x"])));
    fs::write(at("foreign"), stranger.sign(&frontier)).expect("written");
    fs::write(
        at("wrong"),
        fs::read_to_string(at("proof")).expect("a proof").replacen("\"index\":32", "\"index\":31", 1),
    )
    .expect("written");
    let strange = stranger.verifier().to_string();
    for (arguments, reason) in [
        (vec![at("proof"), "--key".into(), strange], "not signed by this key"),
        (vec![at("proof"), "--key".into(), at("key"), "--checkpoint".into(), at("foreign")], "not signed by this key"),
        (vec![at("proof"), "--key".into(), at("key"), "--entry".into(), at("other")], "not the one that was proven"),
        (vec![at("wrong"), "--key".into(), at("key")], "do not lead"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (code, said) = check(&arguments);
        assert!(code == 1 && said.starts_with("NOT PROVEN") && said.contains(reason), "{arguments:?}: {said}");
        let (code, said) = check(&[&arguments[..], &["--json"]].concat());
        assert!(code == 1 && said.starts_with("{\"ok\":false") && said.contains("\"reason\":"), "{said}");
    }

    // It grows, and continues what was kept.
    for step in 16..=20 {
        ask(&server, &agents[0], "more", step - 15);
    }
    server.ledger.stop().expect("stopped");
    let proof = good(&data, &["consistency", &at("kept")]);
    fs::write(at("proof"), &proof).expect("written");
    let (code, said) = check(&[&at("proof"), "--key", &at("key"), "--old", &at("kept")]);
    assert!(code == 0 && said.starts_with("PROVEN the ledger of 38 entries continues that of 33\n"), "{said}");
    let current = data.join("checkpoint");
    assert_eq!(good(&data, &["consistency", "33", path(&current)]), proof);
    assert!(!good(&data, &["consistency", "20", "30"]).contains("checkpoint"), "nobody signed 30 entries");
    let (code, said) = check(&[&at("proof"), "--key", &at("key"), "--checkpoint", &at("kept")]);
    assert!(code == 1 && said.contains("33 entries"), "{said}");
    let (code, said) = check(&[&at("proof"), "--key", &at("key"), "--old", path(&current)]);
    assert!(code == 1 && said.contains("older checkpoint"), "{said}");

    for (arguments, part) in [
        (vec!["prove", "38"], "not under the signed checkpoint, which covers 38 entries"),
        (vec!["prove", "5", "--size", "5"], "not among the first 5 entries"),
        (vec!["prove", "5", "--size", "39"], "has 38 entries"),
        (vec!["prove", "five"], "neither the index of an entry nor the id of a decision"),
        (vec!["prove", "1", "--save-entry", path(&current)], "cannot write"),
        (vec!["consistency", "30", "20"], "the older tree has 30 entries"),
        (vec!["consistency", "20", "39"], "has 38 entries"),
        (vec!["consistency", "no-such-file"], "no-such-file"),
        (vec!["consistency", &at("foreign")], "no checkpoint signed by this ledger's key"),
    ] {
        let said = bad(&data, &arguments, 2);
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert!(bad(&data, &[&arguments[..], &["--json"]].concat(), 2).starts_with("{\"error\":"));
    }
    for (arguments, part) in [
        (vec![at("kept"), "--key".into(), at("key")], "not a proof"),
        (vec![at("proof"), "--key".into(), at("kept")], "name+hash+base64"),
        (vec![at("proof"), "--key".into(), at("key"), "--entry".into(), at("entry")], "inclusion proof"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (code, said) = check(&arguments);
        assert!(code == 2 && said.contains(part), "{arguments:?}: {said}");
    }
}

fn entries(data: &Path) -> Vec<Vec<u8>> {
    SqliteReader::open(data).expect("a reader").entries(0, 10_000).expect("entries")
}

/// Changes the database behind everybody's back; with `cover` the head is made to fit again.
fn tamper(data: &Path, sql: &str, cover: bool) {
    let connection = rusqlite::Connection::open(data.join("ledger.db")).expect("a database");
    connection.execute_batch(sql).expect("tampered");
    if cover {
        let mut frontier = Frontier::default();
        let mut select = connection.prepare("SELECT bytes FROM entries ORDER BY number").expect("a statement");
        for bytes in select.query_map([], |row| row.get::<_, Vec<u8>>(0)).expect("rows") {
            frontier.append(leaf_hash(&bytes.expect("bytes")));
        }
        let update = "UPDATE entries SET frontier = ?1 WHERE number = (SELECT max(number) FROM entries)";
        connection.execute(update, [frontier.to_bytes()]).expect("covered up");
    }
}

#[test]
fn every_way_to_change_a_ledger_is_found() {
    let edit =
        "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), 'DENIED', 'APPROVED') AS BLOB) WHERE number = 7";
    let swap = "UPDATE entries SET number = -1 WHERE number = 7; UPDATE entries SET number = 7 WHERE number = 9;
        UPDATE entries SET number = 9 WHERE number = -1;";
    let tail = "DELETE FROM entries WHERE number >= 20";
    for (what, sql, cover, signed_anew) in [
        ("an edit", edit, false, false),
        ("an edit, covered up", edit, true, false),
        ("an edit, covered up and signed", edit, true, true),
        ("two swapped", swap, false, false),
        ("two swapped, covered up", swap, true, false),
        ("two swapped, covered up and signed", swap, true, true),
        ("the tail is gone", tail, false, false),
        ("the tail is gone, covered up", tail, true, false),
        ("the tail is gone, covered up and signed", tail, true, true),
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        let data = scratch.path().join("data");
        fs::create_dir(&data).expect("a directory");
        stopped(&data);
        let (kept, out) = (scratch.path().join("kept"), scratch.path().join("out"));
        fs::copy(data.join("checkpoint"), &kept).expect("copied");
        assert!(good(&data, &["verify"]).starts_with("SOUND"));
        good(&data, &["consistency", path(&kept)]);
        tamper(&data, sql, cover);
        if signed_anew {
            // Whoever has the key can do that. It is what checkpoints are kept elsewhere for.
            let mut reader = SqliteReader::open(&data).expect("a reader");
            file(&data).write(&reader.head().expect("a head")).expect("signed");
        }
        // From the checkpoint that was kept, there is no way on.
        let said = bad(&data, &["consistency", path(&kept)], 1);
        assert!(said.contains("LEDGER-001") && !said.contains("hashes"), "{what}: {said}");
        // The audit finds it without one: rows and order betray even what was signed anew.
        let said = bad(&data, &["verify"], 1);
        assert!(said.starts_with("DAMAGED"), "{what}: {said}");
        if !signed_anew {
            let said = bad(&data, &["prove", "3"], 1);
            assert!(said.contains("LEDGER-001") && !said.contains("hashes"), "{what}: {said}");
            let said = bad(&data, &["export", "--out", path(&out)], 1);
            assert!(said.contains("LEDGER-001"), "{what}: {said}");
            assert!(!out.exists(), "{what}: nothing is left of an export that failed");
        }
    }
}

/// Reads an export with nothing of ours: counts, digests, leaf hashes, and what a spreadsheet would see.
const READ_EXPORT: &str = r#"
import base64, csv, hashlib, json, sys
directory = sys.argv[1]
manifest = json.load(open(directory + "/manifest.json"))
for file in manifest["files"]:
    data = open(directory + "/" + file["name"], "rb").read()
    assert len(data) == file["bytes"] and "sha256:" + hashlib.sha256(data).hexdigest() == file["sha256"], file
lines = open(directory + "/activity.jsonl", encoding="utf-8", newline="\n").read().split("\n")
assert lines.pop() == ""
rows = []
for line in lines:
    row = json.loads(line)
    assert all(c.isprintable() for c in line), line
    exact = row.pop("entry_base64", None)
    raw = base64.b64decode(exact) if exact else line[line.index(',"entry":') + 9:-1].encode()
    assert (exact is not None) == (not raw.decode().isprintable()), line
    assert "sha256:" + hashlib.sha256(b"\x00" + raw).hexdigest() == row["leaf_hash"], line
    assert json.loads(raw) == row.pop("entry")
    rows.append(row)
sheet = list(csv.reader(open(directory + "/activity.csv", encoding="utf-8", newline=""), strict=True))
header, sheet = sheet[0], sheet[1:]
assert len(sheet) == len(rows) == sum(manifest["rulings"].values())
for row, cells in zip(rows, sheet):
    assert list(row) == header and len(cells) == len(header)
    for name, cell in zip(header, cells):
        assert cell.lstrip(" \"'")[:1] not in tuple("=+-@\t\r") or cell[0] == "'", cell
        assert all(32 <= ord(c) and c not in "\u202e\u200b" for c in cell), cell
        value = row[name]
        plain = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, str) and (not value.isprintable() or value[:1] in " =-"):
            continue
        assert cell == plain, (name, cell, plain)
from collections import Counter
names = ("agent_name", "principal_id", "conversation_id")
print(json.dumps({
    "rulings": dict(sorted(Counter(row["decision"] for row in rows).items())),
    "names": sorted({row["agent_name"] for row in rows}), "agents": manifest["agents"],
    "entries": manifest["entries"], "size": manifest["size"], "filter": manifest["filter"],
    "cells": sorted({cells[header.index(name)] for cells in sheet for name in names}),
}, ensure_ascii=True))
"#;

fn read_export(directory: &Path) -> String {
    let output = Command::new("python3").args(["-c", READ_EXPORT, path(directory)]).output().expect("python3");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

#[test]
fn an_export_stands_for_itself() {
    let scratch = tempfile::tempdir().expect("a directory");
    let data = scratch.path().join("data");
    fs::create_dir(&data).expect("a directory");
    let agents = stopped(&data);
    let out = |name: &str| scratch.path().join(name);

    let said = good(&data, &["export", "--out", path(&out("a/whole"))]);
    assert!(said.starts_with("EXPORTED 30 rulings among 33 entries of 2 agents to "), "{said}");
    assert!(said.contains("  20 APPROVED\n  10 DENIED\n"), "{said}");
    let read = read_export(&out("a/whole"));
    for part in [
        r#""rulings": {"APPROVED": 20, "DENIED": 10}"#,
        r#""agents": 2, "entries": 33, "size": 33, "filter": {"agent": null, "from": null, "to": null}"#,
        r#""' -2", "'=1+1\\u{200b}", "'=cmd|' /C calc'!A0""#,
        r#""\\u{202e}@SUM(1,\"2\")""#,
        r#""plain, \"quoted\"\\u{a}and broken""#,
    ] {
        assert!(read.contains(part), "{part} is not in {read}");
    }
    let manifest = fs::read_to_string(out("a/whole/manifest.json")).expect("a manifest");
    let note = fs::read_to_string(data.join("checkpoint")).expect("a note");
    let key = good(&data, &["key"]);
    for part in [quote(&note), key.trim_end().to_owned(), "\"format\": 1".to_owned()] {
        assert!(manifest.contains(&part), "{part} is not in {manifest}");
    }
    for secret in [&agents[0].token, &agents[1].token] {
        let hash = Digest::of(&[secret]).to_string();
        for name in ["activity.jsonl", "activity.csv", "manifest.json"] {
            let written = fs::read_to_string(out("a/whole").join(name)).expect("a file");
            assert!(!written.contains(secret.as_str()) && !written.contains(&hash), "{name}");
        }
    }

    let said = good(&data, &["export", "--out", path(&out("one")), "--agent", &agents[1].id, "--json"]);
    assert!(said.starts_with("{\"entries\":16,\"rulings\":{\"APPROVED\":10,"), "{said}");
    assert!(
        read_export(&out("one")).contains(r#""names": ["plain, \"quoted\"\nand broken"], "agents": 1, "entries": 16"#)
    );

    // The clock of this ledger stood at 12:00:30 and went on a minute for each step.
    fs::create_dir(out("some")).expect("a directory");
    let span = ["--from", "2026-11-15T12:03:30Z", "--to", "2026-11-15T13:05:30+01:00"];
    good(&data, &[&["export", "--out", path(&out("some"))], &span[..]].concat());
    let read = read_export(&out("some"));
    assert!(read.contains(r#""rulings": {"APPROVED": 2, "DENIED": 2}"#), "{read}");
    assert!(read.contains(r#""from": "2026-11-15T12:03:30.000Z", "to": "2026-11-15T12:05:30.000Z""#), "{read}");

    for (arguments, part) in [
        (vec!["export", "--out", path(&out("some"))], "not an empty directory"),
        (vec!["export", "--out", path(&data.join("checkpoint"))], "not an empty directory"),
        (vec!["export", "--out", path(&out("no")), "--agent", "agent_x"], "no agent `agent_x`"),
        (vec!["export", "--out", path(&out("no")), "--from", "soon"], "not a time"),
        (vec!["export", "--out", path(&out("no")), "--from", "2026-11-16", "--to", "2026-11-16"], "not before --to"),
        (vec!["export"], "--out"),
    ] {
        let said = bad(&data, &arguments, 2);
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    assert!(!out("no").exists());
}

#[test]
fn an_export_has_what_was_answered_before_it_was_asked_for() {
    let scratch = tempfile::tempdir().expect("a directory");
    let data = scratch.path().join("data");
    fs::create_dir(&data).expect("a directory");
    let (server, _) = filled(&data);
    server.ledger.stop().expect("stopped");
    // As a killed server leaves it: the last second is in the store, and nobody signed it.
    let mut reader = SqliteReader::open(&data).expect("a reader");
    let early = (1..30).rev().find_map(|size| reader.frontier(size).ok().flatten()).expect("a batch ended there");
    file(&data).write(&early).expect("written");
    let (size, out) = (early.size(), scratch.path().join("out"));
    let said = good(&data, &["export", "--out", path(&out)]);
    assert!(size < 33 && said.contains("from the 33 entries under the signed checkpoint"), "{said}");
    assert!(!said.contains("later entries"), "{said}");
    assert!(read_export(&out).contains("\"size\": 33"));
    // The checkpoint that the server wrote must be found on the way to the head.
    let mut other = Frontier::default();
    (0..size).for_each(|number| other.append(Digest::of(&[&number.to_string()])));
    let note = file(&data).key().sign(&other);
    let kept = fs::read(data.join("checkpoint")).expect("a checkpoint");
    fs::write(data.join("checkpoint"), note).expect("written");
    let refused = bad(&data, &["export", "--out", path(&scratch.path().join("none"))], 1);
    assert!(refused.contains("do not have the root the checkpoint signed"), "{refused}");
    fs::write(data.join("checkpoint"), kept).expect("written");
    assert!(bad(&data, &["prove", "32"], 2).contains("not under the signed checkpoint"));
    let proof = Proof::parse(good(&data, &["prove", "32", "--size", "33"]).trim_end()).expect("a proof");
    assert!(proof.holds() && proof.checkpoint.is_none());
}

#[test]
fn help_has_examples() {
    for command in ["key", "prove", "consistency", "check", "export"] {
        let output = interlock(&["audit", command, "--help"]).output().expect("it runs");
        assert!(text(&output.stdout).contains(&format!("interlock audit {command} ")), "{}", text(&output.stdout));
    }
}
