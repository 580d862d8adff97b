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
    Answer, Checkpoint, CheckpointFile, Command, LedgerKey, Reader, Recorded, SqliteReader, SqliteStore, Turn, replay,
    verify as verify_ledger, verify_with_key,
};
use interlock_testkit::gate::TestAgent;
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
    for (old, new, told) in [("\"format\":1", "\"format\":8", 8), ("\"rules\":1", "\"rules\":8", 8)] {
        let newer = line.replacen(old, new, 1);
        assert_eq!(Entry::from_bytes(newer.as_bytes()), Err(EntryError::Newer(told)), "{newer}");
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

/// Every table and what is in it, as text.
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
    names.iter().map(|name| (name.clone(), rows_of(name))).collect()
}

/// A copy of a directory as an older version left it.
fn older(name: &str) -> tempfile::TempDir {
    let scratch = tempfile::tempdir().expect("a directory");
    let golden = repository().join("crates/interlock-testkit/tests/golden").join(name);
    for file in ["ledger.db", "checkpoint", "ledger.key"].map(|file| (golden.join(file), scratch.path().join(file))) {
        if file.0.exists() {
            fs::copy(file.0, &file.1).expect("a copy");
            fs::set_permissions(&file.1, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
    }
    scratch
}

/// What an audit finds, with the key of the ledger if there is one, and what comes out differently when all is decided
/// again. Before the second layout kept answers were not sealed with the key.
fn found(directory: &Path) -> Vec<String> {
    let mut reader = SqliteReader::open(directory).expect("a reader");
    let has_sealed = !directory.join("unsealed").exists();
    let report = if has_sealed && directory.join("ledger.key").exists() {
        let file = CheckpointFile::new(directory, ledger_key(directory));
        let sealed = file.read().expect("a checkpoint");
        verify_with_key(&mut reader, sealed, file.key(), START_MS, &mut |_, _| {})
    } else {
        verify_ledger(&mut reader, None, START_MS, &mut |_, _| {})
    };
    let again = replay(&mut reader, None, &mut |_, _| {}).expect("replayed");
    let mut found = report.expect("an audit").findings;
    found.extend(again.findings);
    found.extend(again.differences.iter().map(|difference| format!("{difference:?}")));
    found
}

fn ledger_key(directory: &Path) -> LedgerKey {
    LedgerKey::open(directory, &SystemEntropy::new()).expect("a key")
}

fn version(path: &Path) -> i64 {
    let connection = rusqlite::Connection::open(path).expect("a database");
    connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).expect("a version")
}

/// Directories of every older layout: what is in them, beside entries and agents.
const OLDER: [(&str, i64, &[&str]); 6] = [
    ("data-1", 1, &["conversations"]),
    ("data-2", 2, &["conversations", "kept", "operator_keys", "texts", "tickets", "tokens"]),
    ("data-3", 3, &["runs"]),
    ("data-4", 4, &["outbox", "texts", "tickets"]),
    ("data-5", 5, &["executions", "heads", "kept", "outbox", "runs", "texts", "tickets", "workflows"]),
    ("world-5", 5, &["executions", "kept", "runs", "texts", "tickets", "workflows"]),
];

/// Sizes of what must not become less, whatever it is called.
fn sizes(tables: &BTreeMap<String, Vec<String>>) -> BTreeMap<&str, usize> {
    let added = ["marks", "places", "tokens", "runs", "workflows"];
    let kept = tables.iter().filter(|(name, _)| !added.contains(&name.as_str()));
    kept.map(|(name, rows)| (name.as_str(), rows.len())).collect()
}

#[test]
fn a_database_of_an_older_layout_becomes_one_of_this_layout_and_keeps_everything() {
    for (name, layout, filled) in OLDER {
        let scratch = older(name);
        if layout < 2 {
            fs::write(scratch.path().join("unsealed"), "").expect("written");
        }
        let path = scratch.path().join("ledger.db");
        let before = tables(&path);
        for table in ["entries", "agents"].iter().chain(filled) {
            assert!(!before[*table].is_empty(), "{name}: {table} has nothing to lose");
        }
        // It can be audited as it is.
        assert_eq!(found(scratch.path()), Vec::<String>::new(), "{name}, as it is");
        let copy = scratch.path().join(format!("ledger-layout-{layout}.db"));
        fs::write(&copy, "not a copy of anything, and long enough to be looked at").expect("written");
        let refused = SqliteStore::open(scratch.path()).err().map(|fault| fault.to_string()).unwrap_or_default();
        assert!(refused.contains("is no copy of this ledger"), "{name}: {refused}");
        assert_eq!(tables(&path), before, "{name}: nothing was changed");
        fs::remove_file(&copy).expect("removed");
        drop(SqliteStore::open(scratch.path()).expect("migrated"));
        let after = tables(&path);
        assert_eq!((version(&path), version(&copy)), (6, layout), "{name}");
        assert_eq!(after["entries"], before["entries"], "{name}: entries stay as they are");
        let (before_sizes, mut after_sizes) = (sizes(&before), sizes(&after));
        after_sizes.retain(|table, _| before_sizes.contains_key(table));
        assert_eq!(after_sizes, before_sizes, "{name}");
        let copied = tables(&copy);
        assert!(
            copied.iter().all(|(table, rows)| table == "kept" || *rows == before[table]),
            "{name}: the copy differs"
        );
        assert_eq!(fs::metadata(&copy).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(found(scratch.path()), Vec::<String>::new(), "{name}, migrated");
        // And a second time nothing happens.
        drop(SqliteStore::open(scratch.path()).expect("opened"));
        assert_eq!(tables(&path), after, "{name}");
    }
}

/// Who is in the directory of the fifth layout, and what they were answered there.
const AGENT_A: (&str, &str) = (
    "agent_5ebe98801da578e97fc3b7741ea4be3b",
    "qwed_agent_b0b688a56c2ac5ee38ffcd843ca2129c83ecd0bdc822c39f50e11b5fb11ecd9d",
);
const AGENT_B: (&str, &str) = (
    "agent_1fdbb440c4530f782dad118369e3c719",
    "qwed_agent_9eee618d2956121c46668e97e1ac55b18e8ebbdb1cd8a1f9995869b74fd87768",
);
const REPORTED_A: &str = "dec_04bf3c468cd21be44f60429fafcfeb6c";
const UNREPORTED_B: &str = "dec_f9029c75ef7fd7b7edacf9866d3bef6b";
const WAITING_A: (&str, &str) = ("appr_cab48732fea89a90163ae0142cfde480", "dec_e0f787a6ffb7e75c8b7325c10906f48a");

/// Sends a method to a path, with headers and a body.
type Sending<'s> = dyn FnMut(&str, &str, &[(&str, &str)], &str) -> interlock_testkit::service::Answer + 's;

#[test]
fn what_an_older_ledger_answered_is_found_after_its_migration() {
    let scratch = older("data-5");
    let file = CheckpointFile::new(scratch.path(), ledger_key(scratch.path()));
    let sealed = file.read().expect("a checkpoint").expect("a checkpoint");
    let told = "[principals.p]\nwebhook = 'http://127.0.0.1:1/'\nsecret = 'whsec-that-nobody-else-knows'\n";
    let bundle = Bundle::load(told, &BTreeMap::new(), false).expect("a bundle");
    let server = Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), Some(file), bundle);
    let [a, b] = [AGENT_A, AGENT_B].map(|(id, token)| TestAgent { id: id.to_owned(), token: token.to_owned() });
    let mut client = server.client();
    let mut send = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        client.send(method, path, headers, body).expect("an answer")
    };
    let admin = [("x-api-key", OPERATOR_KEY)];
    // Decisions by their ids alone: whose they were, and where they stand.
    for (id, agent, place) in [(REPORTED_A, &a, 4), (UNREPORTED_B, &b, 5), (WAITING_A.1, &a, 7)] {
        let shown = send("GET", &format!("/decisions/{id}"), &admin, "");
        assert!(shown.status == 200 && shown.body.contains(&agent.id), "{}", shown.body);
        let proof = send("GET", &format!("/audit/proof?decision={id}&size={}", sealed.size), &admin, "");
        assert!(proof.body.contains(&format!("\"index\":{place},")), "{}", proof.body);
    }
    // Answers under their keys, the corrected text too.
    let again = |send: &mut Sending<'_>, key: &str, query: &str, step: u32| {
        let headers = [("x-agent-token", a.token.as_str()), ("idempotency-key", key)];
        let context = format!(r#"{{"conversation_id":"c","step_number":{step}}}"#);
        let body = format!(r#"{{"action":{{"type":"calculate","query":"{query}"}},"context":{context}}}"#);
        send("POST", &format!("/agents/{}/verify", a.id), &headers, &body).body
    };
    let first = again(&mut send, "one", "1+1", 1);
    assert!(first.contains(REPORTED_A) && first.contains(r#""replayed":true"#), "{first}");
    let corrected = again(&mut send, "two", "2+2 = 5", 2);
    assert!(corrected.contains(r#""query":"2+2 = 4""#) && corrected.contains(r#""replayed":true"#), "{corrected}");
    assert!(again(&mut send, "two", "2+2 = 6", 2).contains("INTERLOCK-REQUEST-004"));
    // A step that was passed stays passed.
    let passed = again(&mut send, "new", "7*8", 3);
    assert!(passed.contains("QWED-AGENT-LOOP-002"), "{passed}");
    // Executions: reported ones are, others can be.
    let report = |id: &str| format!(r#"{{"decision_id":"{id}","success":true}}"#);
    let headers_of = |agent: &TestAgent| [("x-agent-token".to_owned(), agent.token.clone())];
    for (agent, id, status) in
        [(&a, REPORTED_A, 409), (&b, UNREPORTED_B, 201), (&b, UNREPORTED_B, 409), (&a, UNREPORTED_B, 404)]
    {
        let headers = headers_of(agent);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let answer = send("POST", &format!("/agents/{}/executions", agent.id), &headers, &report(id));
        assert_eq!(answer.status, status, "{id}: {}", answer.body);
    }
    // A ticket with its text, decided on now; then it is executed.
    let shown = send("GET", &format!("/approvals/{}", WAITING_A.0), &admin, "");
    assert!(shown.body.contains(r#""action":{"type":"send_email"}"#), "{}", shown.body);
    let approved = send("POST", &format!("/approvals/{}/approve", WAITING_A.0), &admin, "");
    assert_eq!(approved.status, 200, "{}", approved.body);
    let headers = [("x-agent-token", a.token.as_str())];
    let spent = send("POST", &format!("/agents/{}/executions", a.id), &headers, &report(WAITING_A.1));
    assert_eq!(spent.status, 201, "{}", spent.body);
    let activity = send("GET", &format!("/agents/{}/activity?limit=100", a.id), &headers, "");
    assert_eq!(activity.body.matches(r#""execution":{"#).count(), 2, "{}", activity.body);
    let workflows = send("GET", "/workflows", &admin, "");
    assert!(workflows.body.contains(r#""entry":28"#), "{}", workflows.body);
    assert_eq!(send("GET", "/runs", &admin, "").body.matches("run_0cc2de6f24b32561bd201af6a1fc7c7b").count(), 1);
    // What waited is sent, with what came now, in the order of each agent.
    let (mut turn, mut kinds) = (Turn::default(), Vec::new());
    while let (Some(parcel), forged) = server.ledger.next_parcel("p", &mut turn).expect("a look") {
        assert!(forged.is_empty(), "{forged:?}");
        kinds.push(
            parcel
                .body
                .split(r#""type":"interlock."#)
                .nth(1)
                .and_then(|rest| rest.split('"').next())
                .map(str::to_owned),
        );
        server.ledger.submit_and_wait(Command::Delivered(parcel.ids));
    }
    assert_eq!(kinds.len(), 8, "{kinds:?}");
    // The commit that was under way is settled.
    let settled = interlock_runtime::state_commit::settle_open_commits(&server.ledger).expect("settled");
    assert_eq!(settled, 1);
    assert!(matches!(server.ledger.submit_and_wait(Command::CountRepeats), Answer::Done));
    drop(server);
    assert_eq!(found(scratch.path()), Vec::<String>::new());
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let entries = reader.entries(0, 1_000).expect("entries");
    let formats: Vec<u32> = entries.iter().map(|bytes| Entry::from_bytes(bytes).expect("an entry").format).collect();
    assert!(formats.is_sorted() && formats.first() == Some(&5) && formats.last() == Some(&7), "{formats:?}");
    for bytes in entries.iter().filter(|bytes| bytes.starts_with(b"{\"format\":7")) {
        let text = String::from_utf8_lossy(bytes);
        for index in [r#""previous":"#, r#""opened":3"#, r#""decision":5"#, r#""intent":3"#] {
            assert!(!text.contains(index), "{index}: {text}");
        }
    }
}

#[test]
fn what_is_wrong_in_an_older_layout_is_found_there() {
    for (sql, finding) in [
        ("UPDATE agents SET live = replace(live, '\"last_index\":', '\"last_index\":1')", "has another last entry"),
        ("UPDATE executions SET number = number + 1", "the row of the execution of entry"),
        ("UPDATE texts SET number = number + 1", "is not the one it speaks of"),
        ("UPDATE kept SET number = 1", "is not the one its entry"),
        ("UPDATE outbox SET id = id + 100", "is not the one it is worth"),
        ("UPDATE heads SET row = replace(row, '\"index\":', '\"index\":1')", "the row of the state file"),
        ("UPDATE workflows SET row = replace(row, '\"entry\":', '\"entry\":1')", "the row of the workflow"),
        ("UPDATE runs SET row = replace(row, '\"started\":', '\"started\":1')", "the row of the run"),
        ("UPDATE tickets SET row = replace(row, '\"opened\":', '\"opened\":1')", "the columns of the ticket"),
        ("UPDATE conversations SET row = replace(row, '\"rises\":[[1,', '\"rises\":[[1,1')", "the row of conversation"),
    ] {
        let scratch = older("data-5");
        let connection = rusqlite::Connection::open(scratch.path().join("ledger.db")).expect("a database");
        assert!(connection.execute(sql, []).expect("tampered") > 0, "{sql}");
        drop(connection);
        let findings = found(scratch.path());
        assert!(findings.iter().any(|told| told.contains(finding)), "{sql}: {findings:?}");
    }
}

#[test]
fn a_ledger_that_does_not_hold_is_not_migrated() {
    let edit = |from: &str, to: &str| {
        format!("UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), '{from}', '{to}') AS BLOB)")
    };
    for (sql, reason) in [
        (edit("\"decision\":4,", "\"decision\":5,"), "this execution could not be reported"),
        (edit("\"previous\":4,", "\"previous\":5,"), "it does not follow the agent"),
        ("UPDATE texts SET number = 1".to_owned(), "entry 1 is not one of"),
        ("DELETE FROM agents".to_owned(), "has entries and no row"),
    ] {
        let scratch = older("data-5");
        let path = scratch.path().join("ledger.db");
        let connection = rusqlite::Connection::open(&path).expect("a database");
        assert!(connection.execute(&sql, []).expect("tampered") > 0, "{sql}");
        drop(connection);
        let before = tables(&path);
        let refused = SqliteStore::open(scratch.path()).err().map(|fault| fault.to_string()).unwrap_or_default();
        assert!(refused.contains("not migrated") && refused.contains(reason), "{sql}: {refused}");
        assert_eq!((tables(&path), version(&path)), (before, 5), "{sql}: nothing was changed");
    }
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

#[test]
fn entries_of_format_6() {
    let golden = golden("entries-6.jsonl");
    for line in golden.lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!((entry.format, entry.rules, entry.previous), (6, 5, None));
        assert!(entry.agent_seq.is_some(), "every entry has its number: {line}");
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
    for shape in [
        r#""opened":{"agent":"agent_"#,
        r#""decision":{"agent":"agent_"#,
        r#""entry":{"agent":"agent_"#,
        r#""intent":{"seq":4}"#,
    ] {
        assert!(golden.contains(shape), "{shape}");
    }
}

#[test]
fn entries_of_format_7() {
    let golden = golden("entries-7.jsonl");
    for line in golden.lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!((entry.format, entry.rules), (7, 7));
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
    for kind in ["exec_started", "kept", "undo_started", "undo_ended", "pruned"] {
        assert!(golden.contains(&format!(r#""kind":"{kind}""#)), "{kind}");
    }
}
