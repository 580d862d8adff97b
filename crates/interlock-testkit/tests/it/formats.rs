//! Every format that was ever written must be read for ever. The golden files are never changed, only added to.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use interlock_core::Digest;
use interlock_core::action::PassKind;
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{Entry, EntryError, Frontier, leaf_hash};
use interlock_core::workflow::Workflow;
use interlock_runtime::attestation::{AttestationKeys, FILE_NAME, Jwks, verify};
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::{
    Checkpoint, CheckpointFile, Command, LedgerKey, Reader, Recorded, SqliteReader, SqliteStore, Turn,
    verify as verify_ledger, verify_with_key,
};
use interlock_testkit::gate::{create_key, register};
use interlock_testkit::repository;
use interlock_testkit::service::{OPERATOR_KEY, START_MS, Server};

fn golden(name: &str) -> String {
    let path: PathBuf = repository().join("crates/interlock-testkit/tests/golden").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn entries_of_format_1() {
    let mut kinds = Vec::new();
    let mut frontier = Frontier::default();
    for line in golden("entries-1.jsonl").lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        kinds.push(format!("{:?}", entry.kind));
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
        frontier.append(leaf_hash(line.as_bytes()));
    }
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, ["BundleActivated", "Registered", "Ruled", "Unauthenticated"]);
    assert_eq!(Frontier::from_bytes(&frontier.to_bytes()), Some(frontier.clone()));
    let key = LedgerKey::from_seed(&[1; 32]).expect("a key");
    let note = golden("checkpoint-1.txt");
    assert_eq!(key.sign(&frontier), note, "signed as it was signed");
    assert_eq!(key.open_note(&note), Some(Checkpoint { size: frontier.size(), root: frontier.root() }));
    for (position, _) in note.char_indices().filter(|(_, character)| character.is_ascii_alphanumeric()) {
        let mut other = note.clone();
        let changed = if &note[position..=position] == "x" { "y" } else { "x" };
        other.replace_range(position..=position, changed);
        assert_eq!(key.open_note(&other), None, "a changed byte at {position}");
    }
}

#[test]
fn entries_of_state_commits_of_format_1() {
    for (line, kind) in golden("entries-1-state.jsonl").lines().zip(["StateIntent", "StateOutcome"]) {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(format!("{:?}", entry.kind), kind);
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
}

#[test]
fn entries_of_format_2() {
    let mut kinds = Vec::new();
    for line in golden("entries-2.jsonl").lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        kinds.push(format!("{:?}", entry.kind));
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
    kinds.sort();
    kinds.dedup();
    let expected = [
        "ApprovalResolved",
        "Executed",
        "KeyCreated",
        "KeyRevoked",
        "ModeChanged",
        "Registered",
        "Ruled",
        "SigningKeyRotated",
        "StatusChanged",
        "TextsErased",
        "TokenRotated",
        "TrustChanged",
        "TrustRequested",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn entries_of_format_3() {
    let mut kinds = Vec::new();
    let golden = golden("entries-3.jsonl");
    for line in golden.lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(entry.format, 3);
        kinds.push(format!("{:?}", entry.kind));
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
    kinds.sort();
    kinds.dedup();
    let expected = [
        "AllowanceGiven",
        "AllowanceTaken",
        "ApprovalResolved",
        "CallEnded",
        "ModeChanged",
        "Registered",
        "Ruled",
        "RunStarted",
        "RunSteered",
        "SessionBound",
        "Transitioned",
        "TurnEnded",
    ];
    assert_eq!(kinds, expected);
    // Every shape that a body of these kinds can have.
    for shape in [
        r#""moved":{"#,
        r#""parked":{"#,
        r#""refused":{"#,
        r#""unmet":["#,
        r#""force":""#,
        r#""steer":"stop""#,
        r#""steer":"thaw""#,
        r#""steer":"changed""#,
        r#""pause":"#,
        r#""redeemed":""#,
        r#""used":""#,
        r#""observed":true"#,
        r#""fact":""#,
        r#""phase":{"#,
        r#""fingerprint":""#,
        r#""once":true"#,
        r#""lifts":["#,
        r#""session":"s1","by""#,
        r#""dry_run":true"#,
    ] {
        assert!(golden.contains(shape), "{shape}");
    }
}

#[test]
fn entries_of_registered_workflows_of_format_3() {
    let golden = golden("entries-3-workflows.jsonl");
    assert_eq!(golden.lines().count(), 3);
    for line in golden.lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!((entry.format, format!("{:?}", entry.kind)), (3, "WorkflowRegistered".to_owned()));
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
        let registered = entry.body.workflow_registered().expect("a workflow");
        let workflow = Workflow::from_text(&registered.workflow).expect("a workflow");
        assert_eq!((workflow.digest(), workflow.id()), (registered.digest, registered.id.as_str()));
        assert_eq!(workflow.text(), registered.workflow);
    }
}

#[test]
fn entries_of_host_processes_of_format_4() {
    let golden = golden("entries-4-hosts.jsonl");
    assert_eq!(golden.lines().count(), 3);
    for line in golden.lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(entry.format, 4);
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
    for shape in [r#""host":{"process":""#, r#""began":true"#, r#""foreign":true"#, r#""held_in":""#] {
        assert!(golden.contains(shape), "{shape}");
    }
}

#[test]
fn newer_entries_are_refused() {
    let line = golden("entries-1.jsonl").lines().next().expect("an entry").to_owned();
    for (old, new) in [("\"format\":1", "\"format\":7"), ("\"rules\":1", "\"rules\":7")] {
        let newer = line.replacen(old, new, 1);
        assert!(matches!(Entry::from_bytes(newer.as_bytes()), Err(EntryError::Newer(7))), "{newer}");
    }
    assert!(Entry::from_bytes(line.replacen("\"at\":", "\"extra\":0,\"at\":", 1).as_bytes()).is_err());
}

#[test]
fn bundles_of_format_1() {
    let text = golden("bundle-1.json");
    let bundle = Bundle::from_text(text.trim_end()).expect("a bundle");
    assert_eq!(bundle.text(), text.trim_end(), "written as it was read");
    assert_eq!(bundle.digest(), Digest::of(&[text.trim_end()]));
}

#[test]
fn attestations_and_their_keys_of_format_1() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join(FILE_NAME);
    fs::write(&path, golden("attestation-keys-1.jsonl")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    let keys = AttestationKeys::open(scratch.path(), "interlock/0123456789abcdef").expect("keys");
    let published = Jwks::parse(&golden("attestation-jwks-1.json")).expect("a key set");
    assert_eq!(keys.jwks(), published, "published as they were published");
    let tokens = golden("attestations-1.txt");
    let entries = golden("entries-1.jsonl");
    let line = entries.lines().find(|line| line.contains("\"decision\":\"APPROVED\"")).expect("an approval");
    let entry = Entry::from_bytes(line.as_bytes()).expect("an entry");
    let recorded =
        Recorded { entry, index: 2, leaf: leaf_hash(line.as_bytes()), replayed: false, folded: None, corrected: None };
    let said: Vec<_> =
        tokens.lines().map(|token| verify(token, &published, 1_794_738_917).expect("it holds")).collect();
    assert_eq!(said[0].claims.leaf_hash, recorded.leaf);
    // Ed25519 has one signature for each text.
    let again = keys.attest(&recorded, None, Some(recorded.leaf)).expect("a token");
    assert_eq!(tokens.lines().nth(1), Some(again.as_str()), "signed as it was signed");
}

/// Every table and what is in it, as text; `runs` is new in the third layout, `workflows` in the fourth.
fn tables(path: &Path) -> BTreeMap<String, Vec<String>> {
    let connection = rusqlite::Connection::open(path).expect("a database");
    let mut names =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").expect("SQL");
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).expect("names").map(|name| name.expect("a name")).collect();
    let rows_of = |name: &String| {
        let mut select = connection.prepare(&format!("SELECT * FROM {name}")).expect("SQL");
        let columns = select.column_count();
        let mut rows = select.query([]).expect("rows");
        let mut found = Vec::new();
        while let Some(row) = rows.next().expect("a row") {
            let values = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at).expect("a value"));
            found.push(format!("{:?}", values.collect::<Vec<_>>()));
        }
        found.sort();
        found
    };
    let later = |name: &&String| !["runs", "workflows"].contains(&name.as_str());
    names.iter().filter(later).map(|name| (name.clone(), rows_of(name))).collect()
}

/// A database as the second layout had it: rulings of the first format, then tickets, texts and keys.
fn layout_2(directory: &Path) -> PathBuf {
    let golden = repository().join("crates/interlock-testkit/tests/golden/data-1");
    fs::copy(golden.join("ledger.db"), directory.join("ledger.db")).expect("a copy");
    let bundle = Bundle::load("", &BTreeMap::new(), false).expect("a bundle");
    let server = Server::start(Box::new(SqliteStore::open(directory).expect("a store")), None, bundle);
    let mut client = server.client();
    create_key(&mut client, r#"{"name":"ann","role":"approver"}"#).expect("a key");
    let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    for step in 1..=3 {
        let body = format!(
            r#"{{"action":{{"type":"send_email","parameters":{{"n":{step}}}}},"context":{{"conversation_id":"c","step_number":{step}}}}}"#
        );
        let headers = [("x-agent-token", agent.token.as_str()), ("idempotency-key", &step.to_string())];
        let asked = client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body).expect("an answer");
        assert!(asked.body.contains("PENDING"), "{}", asked.body);
    }
    drop(server);
    fs::remove_file(directory.join("ledger-layout-1.db")).expect("the first copy");
    let path = directory.join("ledger.db");
    let connection = rusqlite::Connection::open(&path).expect("a database");
    connection
        .execute_batch(
            "DROP TABLE runs; DROP TABLE workflows; PRAGMA user_version = 2; PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .expect("older");
    connection.execute_batch(WITHOUT_LANES).expect("older");
    path
}

#[test]
fn a_database_of_layout_2_becomes_one_of_this_layout_and_keeps_everything() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = layout_2(scratch.path());
    let before = tables(&path);
    for table in ["agents", "conversations", "entries", "kept", "operator_keys", "texts", "tickets", "tokens"] {
        assert!(!before[table].is_empty(), "{table} has nothing to lose");
    }
    // It can be audited as it is.
    let mut reader = SqliteReader::open(scratch.path()).expect("the old layout is read");
    let report = verify_ledger(&mut reader, None, START_MS, &mut |_, _| {}).expect("an audit");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    drop(reader);
    let copy = scratch.path().join("ledger-layout-2.db");
    fs::write(&copy, "not a copy of anything, and long enough to be looked at").expect("written");
    let refused = SqliteStore::open(scratch.path()).err().map(|fault| fault.to_string()).unwrap_or_default();
    assert!(refused.contains("is no copy of this ledger"), "{refused}");
    assert_eq!(tables(&path), before, "nothing was changed");
    fs::remove_file(&copy).expect("removed");
    drop(SqliteStore::open(scratch.path()).expect("migrated"));
    assert_eq!(tables(&path), before);
    let version = |path: &Path| {
        let connection = rusqlite::Connection::open(path).expect("a database");
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).expect("a version")
    };
    assert_eq!((version(&path), version(&copy)), (5, 2));
    let copied = tables(&copy);
    assert!(copied.iter().all(|(name, rows)| name == "kept" || *rows == before[name]), "the copy differs");
    assert_eq!(fs::metadata(&copy).expect("a file").permissions().mode() & 0o777, 0o600);
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let report = verify_ledger(&mut reader, None, START_MS, &mut |_, _| {}).expect("an audit");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    drop(reader);
    // And a second time nothing happens.
    drop(SqliteStore::open(scratch.path()).expect("opened"));
    assert_eq!(tables(&path), before);
}

#[test]
fn a_database_of_layout_3_becomes_one_of_this_layout_and_keeps_everything() {
    let scratch = tempfile::tempdir().expect("a directory");
    let bundle = || Bundle::load("", &BTreeMap::new(), false).expect("a bundle");
    let start = || Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), None, bundle());
    let flow = r#"{"id":"w","initial":"a","states":{"a":{"on":{"END":"z"}},"z":{"type":"final"}}}"#;
    let key = [("x-api-key", OPERATOR_KEY)];
    let run = {
        let server = start();
        let body = format!(r#"{{"host":"codex","project":"/srv/shop","workflow":{flow}}}"#);
        let started = server.client().send("POST", "/runs", &key, &body).expect("an answer");
        assert_eq!(started.status, 201, "{}", started.body);
        started.body
    };
    let path = scratch.path().join("ledger.db");
    let connection = rusqlite::Connection::open(&path).expect("a database");
    let older = "DROP TABLE workflows; PRAGMA user_version = 3; PRAGMA wal_checkpoint(TRUNCATE);";
    connection.execute_batch(older).expect("older");
    connection.execute_batch(WITHOUT_LANES).expect("older");
    drop(connection);
    let before = tables(&path);
    // It can be audited and asked as it is.
    let mut reader = SqliteReader::open(scratch.path()).expect("the old layout is read");
    let report = verify_ledger(&mut reader, None, START_MS, &mut |_, _| {}).expect("an audit");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!((reader.workflow("w"), reader.workflows("", 9)), (Ok(None), Ok(Vec::new())));
    drop(reader);
    drop(SqliteStore::open(scratch.path()).expect("migrated"));
    assert_eq!(tables(&path), before);
    assert_eq!(tables(&scratch.path().join("ledger-layout-3.db")), before, "the copy");
    let server = start();
    let mut client = server.client();
    let shown = client.send("GET", "/runs", &key, "").expect("an answer");
    assert!(shown.body.contains(&run), "{}", shown.body);
    let registered = client.send("POST", "/workflows", &key, &format!(r#"{{"workflow":{flow}}}"#)).expect("an answer");
    assert_eq!(registered.status, 201, "{}", registered.body);
    drop(server);
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let report = verify_ledger(&mut reader, None, START_MS, &mut |_, _| {}).expect("an audit");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

/// What the fifth layout added, taken back.
const WITHOUT_LANES: &str = "DROP INDEX outbox_by_lane; ALTER TABLE outbox DROP COLUMN lane;
    ALTER TABLE outbox DROP COLUMN agent; CREATE INDEX outbox_by_principal ON outbox (principal, id);";

#[test]
fn a_database_of_layout_4_becomes_one_of_this_layout_and_keeps_what_waits() {
    let scratch = tempfile::tempdir().expect("a directory");
    let told = "[principals.p]\nwebhook = 'http://127.0.0.1:1/'\nsecret = 'whsec-that-nobody-else-knows'\n";
    let bundle = || Bundle::load(told, &BTreeMap::new(), false).expect("a bundle");
    let key = || LedgerKey::open(scratch.path(), &SystemEntropy::new()).expect("a key");
    let start = || {
        let file = CheckpointFile::new(scratch.path(), key());
        Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), Some(file), bundle())
    };
    {
        let server = start();
        let mut client = server.client();
        let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
        let path = format!("/agents/{}/verify", agent.id);
        for (step, action) in [r#"{"type":"calculate","query":"1/0"}"#, r#"{"type":"send_email"}"#].iter().enumerate() {
            let context = format!(r#"{{"conversation_id":"c","step_number":{}}}"#, step + 1);
            let body = format!(r#"{{"action":{action},"context":{context}}}"#);
            client.send("POST", &path, &[("x-agent-token", &agent.token)], &body).expect("an answer");
        }
        let suspend = format!("/agents/{}/suspend", agent.id);
        client.send("POST", &suspend, &[("x-api-key", OPERATOR_KEY)], "").expect("an answer");
    }
    let connection = rusqlite::Connection::open(scratch.path().join("ledger.db")).expect("a database");
    connection.execute_batch(WITHOUT_LANES).expect("older");
    connection.execute_batch("PRAGMA user_version = 4; PRAGMA wal_checkpoint(TRUNCATE);").expect("older");
    drop(connection);
    let findings = || {
        let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
        verify_with_key(&mut reader, None, &key(), START_MS, &mut |_, _| {}).expect("an audit").findings
    };
    // It can be audited as it is, its events too.
    assert_eq!(findings(), Vec::<String>::new());
    let server = start();
    let (mut turn, mut kinds) = (Turn::default(), Vec::new());
    while let (Some(parcel), _) = server.ledger.next_parcel("p", &mut turn).expect("a look") {
        let kind = ["approval.pending", "agent.suspended", "verification.failed"];
        kinds.extend(kind.into_iter().filter(|kind| parcel.body.contains(kind)));
        server.ledger.submit_and_wait(Command::Delivered(parcel.ids));
    }
    assert_eq!(kinds, ["approval.pending", "agent.suspended", "verification.failed"]);
    drop(server);
    assert_eq!(findings(), Vec::<String>::new());
}

#[test]
fn entries_of_format_4() {
    let golden = golden("entries-4.jsonl");
    let mut kinds = Vec::new();
    for line in golden.lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!((entry.format, entry.rules), (4, 5));
        kinds.push(format!("{:?}", entry.kind));
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
    assert_eq!(kinds, ["BundleActivated", "Ruled", "RefusalsRepeated"]);
    for shape in [
        r#""likeness":"sha256:"#,
        r#""likeness":"equal""#,
        r#""likeness":"code""#,
        r#""dry_run":true"#,
        r#""transition":true"#,
    ] {
        assert!(golden.contains(shape), "{shape}");
    }
    // The digest of a bundle leaves out where the server's own files are.
    let first = Entry::from_bytes(golden.lines().next().unwrap_or_default().as_bytes()).expect("an entry");
    let text = first.body.activated().expect("a bundle").to_owned();
    let moved = text.replace("/srv/interlock/data", "/srv/elsewhere/data");
    assert_ne!(text, moved);
    let digest = |text: &str| Bundle::from_text(text).expect("a bundle").digest();
    assert_eq!(digest(&text), digest(&moved));
    assert_eq!(digest(&text).to_string(), "sha256:49c1bc42190b8344e8b2733cd03e24aa58bd0d1d1df8d5a09ffd140a0fe5b4fc");
}

#[test]
fn entries_of_format_5() {
    let golden = golden("entries-5.jsonl");
    for line in golden.lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!((entry.format, entry.rules), (5, 5));
        assert_eq!(format!("{:?}", entry.kind), "Passed");
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
    let newer = [PassKind::HostCommand, PassKind::Unticketed, PassKind::OwnRun];
    for kind in PassKind::ALL.iter().filter(|kind| !newer.contains(kind)) {
        assert!(golden.contains(&format!(r#""kind":"{kind}""#)), "{kind}");
    }
}
