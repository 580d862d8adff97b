//! One contract for every store: what the model in memory does, SQLite does, and it still knows after it was opened anew.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use interlock_core::bundle::Bundle;
use interlock_core::ledger::Frontier;
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::{
    CheckpointFile, Ledger, LedgerKey, MemoryStore, Ports, RecoveryFault, SqliteReader, SqliteStore, Store, recover,
    verify,
};
use interlock_testkit::service::{ManualClock, Server};
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
    assert!(verify(&mut reader, None, &mut |_, _| {}).expect("verified").findings.is_empty());
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
        let found = verify(&mut reader, checkpoint, &mut |_, _| {}).expect("an audit").findings;
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
