//! One contract for every store: what the model in memory does, SQLite does, and it still knows after it was opened anew.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use interlock_core::bundle::Bundle;
use interlock_core::ledger::{Entry, Frontier};
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::{
    CheckpointFile, Ledger, LedgerKey, MemoryStore, Ports, RecoveryFault, SqliteReader, SqliteStore, Store, recover,
    verify, verify_with_key,
};
use interlock_testkit::service::{ManualClock, OPERATOR_KEY, START_MS, Server};
use interlock_testkit::{gate, simulation};

#[test]
fn sqlite_does_what_the_model_does() {
    for seed in 0..40 {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut open = || -> Box<dyn Store> { Box::new(SqliteStore::open(scratch.path()).expect("a store")) };
        simulation::compare(seed, 12, &mut open).unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
    }
}

#[test]
fn the_model_does_what_the_model_does() {
    // The comparison itself must be able to hold, and to fail.
    let store = MemoryStore::default();
    simulation::compare(1, 12, &mut || Box::new(store.clone())).expect("the same");
    assert!(simulation::compare(1, 12, &mut || Box::new(MemoryStore::default())).is_err(), "a store that forgets");
}

/// A fault says whether what was asked may be on record, and only one that came with the commit leaves that open.
#[test]
fn a_fault_says_whether_it_may_be_recorded() {
    for is_recorded in [false, true] {
        let store = MemoryStore::default();
        let server = Server::start(Box::new(store.clone()), None, bundle());
        let agent = gate::register(&mut server.client(), r#"{"name":"a","type":"supervised","principal_id":"p"}"#)
            .expect("one");
        drop(server);
        let before = store.clone().reader().expect("a reader").head().expect("a head").size();
        let server = Server::start(simulation::failing_once(store.clone(), is_recorded), None, bundle());
        let mut client = server.client();
        let mut ask = || {
            let headers = [("x-agent-token", agent.token.as_str()), ("idempotency-key", "k")];
            let context = r#"{"conversation_id":"c","step_number":1}"#;
            let body = format!(r#"{{"action":{{"type":"calculate","query":"1+1"}},"context":{context}}}"#);
            client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body).expect("an answer")
        };
        let answer = ask();
        assert_eq!(answer.status, 503);
        assert!(answer.body.contains("INTERLOCK-FAULT-002") && answer.body.contains("DENIED"), "{}", answer.body);
        assert_eq!(answer.body.contains("whether this is on record is not known"), is_recorded, "{}", answer.body);
        let size = store.clone().reader().expect("a reader").head().expect("a head").size();
        assert_eq!(size, before + u64::from(is_recorded), "what the answer says is so");
        // Either way the same request is decided once.
        assert!(ask().body.contains("APPROVED"));
        assert_eq!(store.clone().reader().expect("a reader").head().expect("a head").size(), before + 1);
    }
}

fn bundle() -> Bundle {
    Bundle::load("", &BTreeMap::new(), false).expect("a bundle")
}

/// A data directory with some rulings in it, as a killed server leaves it: the last ones are in the log only.
fn filled(directory: &std::path::Path) -> CheckpointFile {
    let file = || CheckpointFile::new(directory, LedgerKey::open(directory, &SystemEntropy::new()).expect("a key"));
    let server = Server::start(Box::new(SqliteStore::open(directory).expect("a store")), Some(file()), bundle());
    let mut client = server.client();
    let agent =
        gate::register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    for step in 1..=20 {
        let body = format!(
            r#"{{"action":{{"type":"calculate","query":"{step}+1"}},"context":{{"conversation_id":"c","step_number":{step}}}}}"#
        );
        let path = format!("/agents/{}/verify", agent.id);
        let answer = client.send("POST", &path, &[("x-agent-token", &agent.token)], &body).expect("an answer");
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
    }
    drop(server);
    file()
}

fn open_again(directory: &std::path::Path) -> Result<Ledger, RecoveryFault> {
    let key = LedgerKey::open(directory, &SystemEntropy::new()).map_err(RecoveryFault::Checkpoint)?;
    let clock = ManualClock::new();
    clock.advance(1_000);
    let ports = Ports {
        store: Box::new(SqliteStore::open(directory)?),
        clock,
        entropy: Arc::new(SystemEntropy::new()),
        checkpoint: Some(CheckpointFile::new(directory, key)),
    };
    Ledger::start(ports, Arc::new(bundle()))
}

#[test]
fn a_sound_ledger_is_opened_again() {
    let scratch = tempfile::tempdir().expect("a directory");
    filled(scratch.path());
    let ledger = open_again(scratch.path()).expect("opened");
    assert_eq!(ledger.size(), 22);
    ledger.stop().expect("stopped");
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    assert!(verify(&mut reader, None, START_MS, &mut |_, _| {}).expect("verified").findings.is_empty());
}

/// Changes the database behind the server's back.
fn tamper(directory: &std::path::Path, sql: &str) {
    let connection = rusqlite::Connection::open(directory.join("ledger.db")).expect("a database");
    connection.execute_batch(sql).expect("tampered");
}

#[test]
fn what_was_signed_and_is_gone_is_noticed_at_start() {
    for sql in [
        "DELETE FROM entries WHERE number >= 15",
        "DELETE FROM entries",
        "UPDATE entries SET frontier = NULL WHERE number = 21",
        "UPDATE entries SET frontier = x'00' WHERE number = 21",
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        filled(scratch.path());
        tamper(scratch.path(), sql);
        let refused = open_again(scratch.path()).err();
        assert!(refused.is_some(), "{sql}");
    }
}

#[test]
fn entries_after_the_checkpoint_are_hashed_at_start() {
    let scratch = tempfile::tempdir().expect("a directory");
    let file = filled(scratch.path());
    // A checkpoint of an earlier size, as it is when the server is killed within a second.
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    use interlock_runtime::ledger::Reader;
    let early = (1..20).rev().find_map(|size| reader.frontier(size).ok().flatten()).expect("a batch ended there");
    file.write(&early).expect("written");
    assert!(open_again(scratch.path()).map(|ledger| ledger.stop()).is_ok(), "nothing is wrong yet");
    file.write(&early).expect("written");
    tamper(
        scratch.path(),
        "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), 'APPROVED', 'PENDING') AS BLOB) WHERE number = 21",
    );
    let refused = open_again(scratch.path()).err().map(|fault| fault.to_string()).unwrap_or_default();
    assert!(refused.contains("do not hash to the head"), "{refused}");
}

#[test]
fn a_checkpoint_that_is_missing_foreign_or_of_another_ledger_is_refused() {
    let scratch = tempfile::tempdir().expect("a directory");
    let file = filled(scratch.path());
    fs::remove_file(scratch.path().join("checkpoint")).expect("removed");
    assert!(matches!(open_again(scratch.path()), Err(RecoveryFault::Damaged(_))));
    let mut other = Frontier::default();
    other.append(interlock_core::Digest::of(&["another"]));
    file.write(&other).expect("written");
    assert!(matches!(open_again(scratch.path()), Err(RecoveryFault::Damaged(_))), "another root");
    let stranger = LedgerKey::from_seed(&[7; 32]).expect("a key");
    CheckpointFile::new(scratch.path(), stranger).write(&other).expect("written");
    assert!(matches!(open_again(scratch.path()), Err(RecoveryFault::Checkpoint(_))), "another key");
}

#[test]
fn an_audit_finds_every_edit() {
    for (sql, finding) in [
        (
            "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), 'APPROVED', 'PENDING') AS BLOB) WHERE number = 5",
            "root",
        ),
        ("UPDATE entries SET bytes = (SELECT bytes FROM entries WHERE number = 6) WHERE number = 5", "follow"),
        ("UPDATE agents SET live = replace(live, '\"trust\":1', '\"trust\":3')", "row of agent_"),
        ("DELETE FROM agents", "no row"),
        ("UPDATE conversations SET id = 'd'", "does not follow"),
        ("DELETE FROM conversations", "no row"),
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        let file = filled(scratch.path());
        tamper(scratch.path(), sql);
        let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
        let checkpoint = file.read().expect("a checkpoint");
        let found = verify(&mut reader, checkpoint, START_MS, &mut |_, _| {}).expect("an audit").findings;
        assert!(found.iter().any(|found| found.contains(finding)), "{sql}: {found:?}");
    }
}

#[test]
fn a_clock_behind_the_ledger_is_refused() {
    let store = MemoryStore::default();
    let clock = ManualClock::new();
    clock.advance(10_000);
    let bundle = Arc::new(bundle());
    let ports =
        Ports { store: Box::new(store.clone()), clock, entropy: Arc::new(SystemEntropy::new()), checkpoint: None };
    Ledger::start(ports, Arc::clone(&bundle)).expect("started").stop().expect("stopped");
    let mut reader = store.reader().expect("a reader");
    let last = interlock_testkit::service::START_MS + 10_000;
    let recovered = |reader: &mut dyn interlock_runtime::ledger::Reader, now| recover(reader, None, &bundle, now);
    assert!(recovered(reader.as_mut(), last - 5_000).is_ok(), "five seconds are forgiven");
    let refused = recovered(reader.as_mut(), last - 5_001);
    assert!(matches!(refused, Err(RecoveryFault::Clock { .. })), "one millisecond more is not");
}

const TOLD: &str = r#"
    [principals.p]
    webhook = "https://hooks.example.org/interlock"
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"#;

/// A data directory with a ticket and its text, an event that waits, and a corrected answer that can be asked for again.
fn filled_beside(directory: &std::path::Path) -> (CheckpointFile, gate::TestAgent) {
    let file = || CheckpointFile::new(directory, LedgerKey::open(directory, &SystemEntropy::new()).expect("a key"));
    let bundle = Bundle::load(TOLD, &BTreeMap::new(), false).expect("a bundle");
    let server = Server::start(Box::new(SqliteStore::open(directory).expect("a store")), Some(file()), bundle);
    let mut client = server.client();
    let agent =
        gate::register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    assert!(ask_for_correction(&mut client, &agent).contains(r#""query":"2+2 = 4""#));
    let body = r#"{"action":{"type":"send_email"},"context":{"conversation_id":"c","step_number":2}}"#;
    let path = format!("/agents/{}/verify", agent.id);
    let answer = client.send("POST", &path, &[("x-agent-token", &agent.token)], body).expect("an answer");
    assert!(answer.body.contains("PENDING"), "{}", answer.body);
    drop(server);
    (file(), agent)
}

fn ask_for_correction(client: &mut interlock_testkit::service::Client, agent: &gate::TestAgent) -> String {
    let body = r#"{"action":{"type":"calculate","query":"2+2=5"},"context":{"conversation_id":"c","step_number":1}}"#;
    let headers = [("x-agent-token", agent.token.as_str()), ("idempotency-key", "k")];
    client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, body).expect("an answer").body
}

fn findings(directory: &std::path::Path, file: &CheckpointFile) -> Vec<String> {
    let mut reader = SqliteReader::open(directory).expect("a reader");
    let sealed = file.read().expect("a checkpoint");
    verify_with_key(&mut reader, sealed, file.key(), START_MS, &mut |_, _| {}).expect("verified").findings
}

#[test]
fn an_audit_looks_at_what_lies_beside_the_rows() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (file, _) = filled_beside(scratch.path());
    assert_eq!(findings(scratch.path(), &file), Vec::<String>::new());
    for (sql, finding) in [
        ("UPDATE kept SET corrected = replace(corrected, '= 4', '= 9')", "the answer kept for agent_"),
        ("UPDATE kept SET corrected = '2+2 = 9'", "the answer kept for agent_"),
        ("UPDATE kept SET seq = seq + 1", "the answer kept for agent_"),
        ("UPDATE kept SET at = at + 86400000", "the answer kept for agent_"),
        ("UPDATE kept SET key = zeroblob(32)", "the answer kept for agent_"),
        ("UPDATE kept SET agent = 'agent_x'", "the answer kept for agent_x"),
        ("UPDATE tickets SET expires = expires + 1000", "the columns of the ticket appr_"),
        ("UPDATE tickets SET undecided = 0", "the columns of the ticket appr_"),
        ("UPDATE tickets SET expires = expires + 7", "the columns of the ticket appr_"),
        ("UPDATE agents SET places = x'00'", "is not found by its name"),
        ("UPDATE agents SET places = x'ff'", "the places of entries of agent_"),
        ("UPDATE places SET bytes = x'0001'", "entry 0 is not found by its name"),
        ("DELETE FROM places", "lead to places, and there are"),
        ("DELETE FROM marks", "is not found by the ids of its decisions"),
        ("UPDATE marks SET mark = mark + 1", "is not found by the ids of its decisions"),
        ("INSERT INTO marks VALUES (1, 'agent_x')", "ids of decisions lead to agent_x, and should not"),
        ("UPDATE tickets SET id = 'appr_x'", "the columns of the ticket appr_"),
        ("UPDATE tickets SET agent = 'agent_x'", "the columns of the ticket appr_"),
        ("UPDATE agents SET id = 'agent_x'", "is found by another id"),
        ("UPDATE texts SET until = until + 1000", "has another end than it should"),
        ("UPDATE outbox SET body = replace(body, 'pending', 'granted')", "the event that waits for entry 3"),
        ("UPDATE outbox SET principal = 'q'", "the event that waits for entry 3"),
        (
            "INSERT INTO outbox SELECT agent, 1, principal, lane, event_id, body, at FROM outbox",
            "the event that waits for entry 1",
        ),
        (
            "INSERT INTO outbox SELECT agent, 99, principal, lane, event_id, body, at FROM outbox",
            "the event that waits for entry 99",
        ),
        ("UPDATE outbox SET lane = 2", "the event that waits for entry 3"),
        ("UPDATE outbox SET agent = 'agent_x'", "the event that waits for entry 3"),
        ("INSERT INTO texts SELECT agent, 99, salt, text, until FROM texts", "the text kept for entry 99 of agent_"),
        ("INSERT INTO texts SELECT agent, 2, salt, text, until FROM texts", "the text kept for entry 2 of agent_"),
        ("UPDATE texts SET until = NULL", "has another end than it should"),
        ("DELETE FROM texts", "the text of entry 3 of agent_"),
        ("INSERT INTO kept SELECT agent, zeroblob(32), 99, at, NULL FROM kept", "is not the one its entry 99 gave"),
        ("INSERT INTO kept SELECT agent, zeroblob(32), seq, at, NULL FROM kept", "the answer kept for agent_"),
        ("DELETE FROM kept", "the answer of entry 2 of agent_"),
    ] {
        let copy = tempfile::tempdir().expect("a directory");
        for name in ["ledger.db", "ledger.key", "checkpoint"] {
            fs::copy(scratch.path().join(name), copy.path().join(name)).expect("copied");
        }
        tamper(copy.path(), sql);
        let found = findings(copy.path(), &file);
        assert!(found.iter().any(|found| found.contains(finding)), "{sql}: {found:?}");
    }
}

#[test]
fn what_acts_by_itself_or_does_not_belong_stops_the_start() {
    for (sql, finding) in [
        ("CREATE TRIGGER t AFTER INSERT ON tickets BEGIN DELETE FROM texts; END", "the trigger `t` does not belong"),
        ("CREATE TABLE extra (x)", "the table `extra` does not belong"),
        ("CREATE VIEW v AS SELECT 1", "the view `v` does not belong"),
        ("CREATE INDEX i ON entries (bytes)", "the index `i` does not belong"),
        ("DROP INDEX tickets_undecided", "the index `tickets_undecided` is missing"),
        ("DROP TABLE runs", "the table `runs` is missing"),
        ("ALTER TABLE heads ADD COLUMN more TEXT", "the table `heads` is not as this layout has it"),
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        let (file, _) = filled_beside(scratch.path());
        tamper(scratch.path(), sql);
        let refused = open_again(scratch.path()).map(|ledger| ledger.stop());
        assert!(
            matches!(&refused, Err(RecoveryFault::Damaged(reason)) if reason.to_string().contains(finding)),
            "{sql}: {refused:?}"
        );
        if sql != "DROP TABLE runs" {
            let found = findings(scratch.path(), &file);
            assert!(found.iter().any(|found| found.contains(finding)), "{sql}: {found:?}");
        }
    }
}

#[test]
fn a_changed_correction_is_not_answered_again() {
    for (sql, expected) in [
        ("SELECT 1", r#""query":"2+2 = 4""#),
        ("UPDATE kept SET corrected = replace(corrected, '= 4', '= 9')", "INTERLOCK-FAULT-001"),
        ("UPDATE kept SET corrected = '2+2 = 9'", "INTERLOCK-FAULT-001"),
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        let (file, agent) = filled_beside(scratch.path());
        let connection = rusqlite::Connection::open(scratch.path().join("ledger.db")).expect("a database");
        connection.execute_batch(sql).expect("tampered");
        drop(connection);
        let bundle = Bundle::load(TOLD, &BTreeMap::new(), false).expect("a bundle");
        let server = Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), Some(file), bundle);
        let answer = ask_for_correction(&mut server.client(), &agent);
        assert!(answer.contains(expected) && !answer.contains("= 9"), "{sql}: {answer}");
    }
}

#[test]
fn no_other_key_is_made_for_a_ledger_whose_key_is_gone() {
    for gone in [&["ledger.key"][..], &["ledger.key", "checkpoint"], &["ledger.key", "ledger.db"]] {
        let scratch = tempfile::tempdir().expect("a directory");
        filled(scratch.path());
        for name in gone {
            fs::remove_file(scratch.path().join(name)).expect("removed");
        }
        let refused = open_again(scratch.path()).map(|ledger| ledger.stop());
        let Err(RecoveryFault::Checkpoint(reason)) = refused else { panic!("{gone:?}: {refused:?}") };
        assert!(reason.to_string().contains("ledger.key is gone"), "{reason}");
        assert!(!scratch.path().join("ledger.key").exists(), "{gone:?}");
    }
}

/// Whatever let something run is decided again from the entries: a mode, a pause, an execution, a request for trust.
#[test]
fn an_audit_decides_again_what_let_something_run() {
    let scratch = tempfile::tempdir().expect("a directory");
    let file =
        || CheckpointFile::new(scratch.path(), LedgerKey::open(scratch.path(), &SystemEntropy::new()).expect("a key"));
    let bundle = Bundle::load(TOLD, &BTreeMap::new(), false).expect("a bundle");
    let server = Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), Some(file()), bundle);
    let mut client = server.client();
    let agent =
        gate::register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let mut send = |path: &str, body: &str| {
        let headers = [("x-agent-token", agent.token.as_str()), ("x-api-key", OPERATOR_KEY)];
        client.send("POST", &format!("/agents/{}/{path}", agent.id), &headers, body).expect("an answer")
    };
    let asked = |kind: &str, step: u32| {
        format!(
            r#"{{"action":{{"type":"{kind}","query":"2+2=4"}},"context":{{"conversation_id":"c","step_number":{step}}}}}"#
        )
    };
    let id =
        |body: &str| body.split(r#""decision_id":""#).nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
    let first = id(&send("verify", &asked("calculate", 1)).body).expect("an id");
    let other = id(&send("verify", &asked("calculate", 2)).body).expect("an id");
    let report = |id: &str| format!(r#"{{"decision_id":"{id}","success":true,"cost_usd":0.5}}"#);
    assert_eq!(send("executions", &report(&first)).status, 201);
    assert_ne!(first, other);
    assert_eq!(send("trust", r#"{"request":"trust_elevation","to_level":2}"#).status, 202);
    assert_eq!(send("observe", "{}").status, 200);
    let refused = send("verify", &asked("file_delete", 3)).body;
    assert!(refused.contains(r#""enforced":false"#), "{refused}");
    let in_force = server.ledger.entry(2).expect("read").expect("a ruling");
    let in_force =
        Entry::from_bytes(&in_force).expect("an entry").body.into_ruled().expect("a ruling").bundle.to_string();
    drop(server);
    let file = file();
    assert_eq!(findings(scratch.path(), &file), Vec::<String>::new());
    let edit = |kind: &str, from: &str, to: &str| {
        format!(
            "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), '{from}', '{to}') AS BLOB) \
             WHERE CAST(bytes AS TEXT) LIKE '%\"kind\":\"{kind}\"%' AND CAST(bytes AS TEXT) LIKE '%{from}%'"
        )
    };
    for (sql, finding) in [
        (edit("mode_changed", r#""mode":"observe""#, r#""mode":"enforce""#), "or is only shown comes out differently"),
        (edit("ruled", r#","observed":true"#, ""), "or is only shown comes out differently"),
        (edit("executed", r#""seq":2}"#, r#""seq":1}"#), "this execution could not be reported"),
        (edit("executed", r#""cost_usd":490000"#, r#""cost_usd":1"#), "or cost something else"),
        (edit("ruled", r#""bundle":"sha256:"#, r#""bundle":"sha256:0"#), "not an entry"),
        (
            format!(
                "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), '{in_force}', '{}') AS BLOB) WHERE \
                 CAST(bytes AS TEXT) LIKE '%\"kind\":\"ruled\"%'",
                "sha256:".to_owned() + &"0".repeat(64)
            ),
            "under another bundle than the one in force",
        ),
        (edit("trust_requested", r#""to_level":2"#, r#""to_level":1"#), "more trust could not be asked for"),
        (edit("trust_requested", r#""from_level":1"#, r#""from_level":0"#), "more trust could not be asked for"),
    ] {
        let copy = tempfile::tempdir().expect("a directory");
        for name in ["ledger.db", "ledger.key", "checkpoint"] {
            fs::copy(scratch.path().join(name), copy.path().join(name)).expect("copied");
        }
        let connection = rusqlite::Connection::open(copy.path().join("ledger.db")).expect("a database");
        assert!(connection.execute(&sql, []).expect("tampered") > 0, "nothing was changed: {sql}");
        drop(connection);
        let found = findings(copy.path(), &file);
        assert!(found.iter().any(|found| found.contains(finding)), "{sql}: {found:?}");
    }
}
