//! What one entry or row says of another is a name, agent and number: it holds wherever the tree has them, and one that
//! leads elsewhere is found.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use interlock_core::Digest;
use interlock_core::action::Agent;
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{Entry, EntryName, Frontier, leaf_hash};
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::{
    Changes, CheckpointFile, Command, LedgerKey, MemoryStore, NewEntry, Reader, Rows, SqliteReader, SqliteStore, Store,
    replay, verify,
};
use interlock_testkit::gate::{TestAgent, register};
use interlock_testkit::service::{OPERATOR_KEY, START_MS, Server};
use interlock_testkit::simulation;

/// The entries with their names, in the order of the tree.
fn named(reader: &mut dyn Reader) -> Vec<NewEntry> {
    let mut of_service = 0;
    let entries = reader.entries(0, usize::MAX).expect("entries").into_iter().map(|bytes| {
        let entry = Entry::from_bytes(&bytes).expect("an entry");
        of_service += u64::from(entry.agent.is_none());
        let seq = entry.agent_seq.expect("every entry has its number");
        assert!(entry.agent.is_some() || seq == of_service, "without gaps");
        NewEntry { name: EntryName { agent: entry.agent, seq }, bytes }
    });
    entries.collect()
}

/// The same entries with agents in another order: wherever only agents have a say, one after the other has its turn, the
/// last one first. What the service says stays where it is: which bundle is in force, and which keys count.
fn in_another_order(entries: Vec<NewEntry>) -> Vec<NewEntry> {
    let mut sealed: Vec<NewEntry> = Vec::new();
    let mut waiting: BTreeMap<String, Vec<NewEntry>> = BTreeMap::new();
    for new in entries {
        match new.name.agent.clone() {
            Some(agent) => waiting.entry(agent).or_default().push(new),
            None => {
                sealed.extend(std::mem::take(&mut waiting).into_values().rev().flatten());
                sealed.push(new);
            }
        }
    }
    sealed.extend(waiting.into_values().rev().flatten());
    sealed
}

/// Everything that a store holds, as one batch, with entries in this order.
fn as_one_batch(reader: &mut dyn Reader, entries: Vec<NewEntry>) -> Changes {
    let rows = reader.rows().expect("rows");
    let Rows { agents, conversations, heads, mut tickets, executions, keys, runs, workflows, tokens, .. } = rows;
    tickets.sort_by(|one, other| {
        (one.opened_at, &one.agent, one.opened).cmp(&(other.opened_at, &other.agent, other.opened))
    });
    let mut frontier = Frontier::default();
    entries.iter().for_each(|new| frontier.append(leaf_hash(&new.bytes)));
    Changes {
        entries,
        agents: agents.into_iter().map(std::sync::Arc::new).collect(),
        conversations,
        heads,
        tickets,
        executions,
        keys,
        runs,
        workflows: workflows.into_iter().map(|(_, head)| head).collect(),
        tokens: tokens.into_iter().map(|(agent, token)| (token, agent)).collect(),
        texts: reader.texts(("", 0), usize::MAX).expect("texts"),
        outbox: reader.events(("", 0), usize::MAX).expect("events"),
        kept: reader.kept(("", Digest::from_bytes([0; 32])), usize::MAX).expect("answers"),
        frontier,
        ..Changes::default()
    }
}

fn found(reader: &mut dyn Reader) -> Vec<String> {
    let mut found = verify(reader, None, START_MS, &mut |_, _| {}).expect("an audit").findings;
    let again = replay(reader, None, &mut |_, _| {}).expect("replayed");
    found.extend(again.findings);
    found.extend(again.differences.iter().map(|difference| format!("{difference:?}")));
    found
}

/// The point of it: replicas record first and seal later, in whatever order they come to.
#[test]
fn entries_of_agents_sealed_in_another_order_fold_to_the_same_rows() {
    for seed in 0..12 {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut open = || -> Box<dyn Store> { Box::new(SqliteStore::open(scratch.path()).expect("a store")) };
        simulation::compare(seed, 12, &mut open).unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
        let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
        let entries = named(&mut reader);
        let sealed = in_another_order(entries.clone());
        let places = |all: &[NewEntry]| all.iter().map(|new| new.name.clone()).collect::<Vec<_>>();
        assert_ne!(places(&entries), places(&sealed), "seed {seed}: another order");
        let changes = as_one_batch(&mut reader, sealed);
        let elsewhere = tempfile::tempdir().expect("a directory");
        let stores: [Box<dyn Store>; 2] =
            [Box::new(MemoryStore::default()), Box::new(SqliteStore::open(elsewhere.path()).expect("a store"))];
        for mut store in stores {
            let changes = as_one_batch(&mut reader, changes.entries.clone());
            let mut txn = store.begin().expect("a transaction");
            txn.write(&changes).expect("written");
            txn.commit(changes).expect("committed");
            assert_eq!(found(store.reader().expect("a reader").as_mut()), Vec::<String>::new(), "seed {seed}");
        }
    }
}

#[test]
fn an_entry_that_is_not_the_next_of_its_agent_is_not_written() {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut open = || -> Box<dyn Store> { Box::new(SqliteStore::open(scratch.path()).expect("a store")) };
    simulation::compare(1, 4, &mut open).expect("the same");
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let mut entries = named(&mut reader);
    let agent = entries.iter().rev().find_map(|new| new.name.agent.clone()).expect("an agent");
    let last = entries.iter().rposition(|new| new.name.agent.as_ref() == Some(&agent)).expect("one");
    entries[last].name.seq += 1;
    let changes = as_one_batch(&mut reader, entries);
    let elsewhere = tempfile::tempdir().expect("a directory");
    let mut store = SqliteStore::open(elsewhere.path()).expect("a store");
    let refused = store.begin().expect("a transaction").write(&changes).err().map(|fault| fault.to_string());
    assert!(refused.is_some_and(|reason| reason.contains("is not the next one")));
}

/// Two agents, each with a ruling that was executed, one whose ticket was decided on, refusals that were counted; and a
/// state file.
fn filled(directory: &Path) -> [TestAgent; 2] {
    let key = LedgerKey::open(directory, &SystemEntropy::new()).expect("a key");
    let store = Box::new(SqliteStore::open(directory).expect("a store"));
    let bundle = Bundle::load("", &BTreeMap::new(), false).expect("a bundle");
    let server = Server::start(store, Some(CheckpointFile::new(directory, key)), bundle);
    let mut client = server.client();
    let agents = [(); 2]
        .map(|()| register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent"));
    let member = |body: &str, name: &str| {
        let rest = body.split(&format!("\"{name}\":\"")).nth(1).unwrap_or_default();
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    for agent in &agents {
        let mut send = |path: &str, body: &str| {
            let headers = [("x-agent-token", agent.token.as_str()), ("x-api-key", OPERATOR_KEY)];
            client.send("POST", path, &headers, body).expect("an answer")
        };
        let verify = format!("/agents/{}/verify", agent.id);
        let ask = |action: &str, step: u32| {
            format!(r#"{{"action":{action},"context":{{"conversation_id":"c","step_number":{step}}}}}"#)
        };
        let ran = send(&verify, &ask(r#"{"type":"calculate","query":"1+1"}"#, 1)).body;
        let report = format!(r#"{{"decision_id":"{}","success":true}}"#, member(&ran, "decision_id"));
        assert_eq!(send(&format!("/agents/{}/executions", agent.id), &report).status, 201);
        let waits = send(&verify, &ask(r#"{"type":"send_email"}"#, 2)).body;
        let ticket = member(&waits, "approval_id");
        assert_eq!(send(&format!("/approvals/{ticket}/deny"), "").status, 200);
        for step in 3..16 {
            send(&verify, &ask(r#"{"type":"nonsense"}"#, step));
        }
    }
    server.ledger.submit_and_wait(Command::CountRepeats);
    agents
}

fn audit(directory: &Path) -> Vec<String> {
    let mut reader = SqliteReader::open(directory).expect("a reader");
    verify(&mut reader, None, START_MS, &mut |_, _| {}).expect("an audit").findings
}

#[test]
fn a_name_that_leads_to_another_agent_or_nowhere_is_found() {
    const NOWHERE: &str = "it names no earlier entry of the same agent";
    let scratch = tempfile::tempdir().expect("a directory");
    let [a, b] = filled(scratch.path());
    assert_eq!(audit(scratch.path()), Vec::<String>::new());
    let named = |agent: &TestAgent, seq: u64| format!(r#"{{"agent":"{}","seq":{seq}}}"#, agent.id);
    for (kind, from, to, finding) in [
        // The other agent's entry with the same number, an entry there is not, the entry itself, and a place in the tree.
        ("executed", named(&a, 2), named(&b, 2), NOWHERE),
        ("executed", named(&a, 2), named(&a, 900), NOWHERE),
        ("executed", named(&a, 2), named(&a, 3), NOWHERE),
        ("executed", named(&a, 2), named(&a, 0), NOWHERE),
        ("executed", named(&a, 2), r#"{"seq":2}"#.to_owned(), NOWHERE),
        ("executed", named(&a, 2), "3".to_owned(), NOWHERE),
        ("executed", named(&a, 2), named(&a, 1), "this execution could not be reported"),
        ("approval_resolved", named(&a, 4), named(&b, 4), NOWHERE),
        ("approval_resolved", named(&a, 4), named(&a, 900), NOWHERE),
        ("approval_resolved", named(&a, 4), named(&a, 2), "another entry than the one that opened the ticket"),
        ("refusals_repeated", named(&a, 6), named(&b, 6), NOWHERE),
        ("refusals_repeated", named(&a, 6), named(&a, 900), NOWHERE),
        ("refusals_repeated", named(&a, 6), named(&a, 2), "it counts repeats of something else"),
        ("executed", r#""agent_seq":3,"#.to_owned(), r#""agent_seq":4,"#.to_owned(), "it does not follow the agent"),
        ("executed", r#""agent_seq":3,"#.to_owned(), r#""agent_seq":3,"previous":3,"#.to_owned(), "it does not follow"),
        (
            "bundle_activated",
            r#""agent_seq":1,"#.to_owned(),
            r#""agent_seq":2,"#.to_owned(),
            "it does not follow the service",
        ),
        ("bundle_activated", r#""agent_seq":1,"#.to_owned(), String::new(), "it does not follow the service"),
    ] {
        let copy = tempfile::tempdir().expect("a directory");
        fs::copy(scratch.path().join("ledger.db"), copy.path().join("ledger.db")).expect("copied");
        let connection = rusqlite::Connection::open(copy.path().join("ledger.db")).expect("a database");
        let sql = "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), ?1, ?2) AS BLOB)
            WHERE CAST(bytes AS TEXT) LIKE ?3 AND instr(CAST(bytes AS TEXT), ?1) > 0";
        let changed = connection.execute(sql, [&from, &to, &format!("%\"kind\":\"{kind}\"%")]).expect("tampered");
        assert!(changed > 0, "{kind}: {from}");
        drop(connection);
        let findings = audit(copy.path());
        assert!(findings.iter().any(|told| told.contains(finding)), "{kind}, {from} to {to}: {findings:?}");
    }
}

/// An outcome names its intent among the service's entries.
#[test]
fn an_outcome_of_another_intent_is_not_recorded() {
    use interlock_core::ledger::{EntryRef, StateIntent, StateOutcome};
    use interlock_runtime::ledger::Answer;
    let server = Server::in_memory(Bundle::load("", &BTreeMap::new(), false).expect("a bundle"));
    let intent = |path: &str| StateIntent {
        guard: "g".to_owned(),
        path: path.to_owned(),
        current: Digest::of(&["a"]),
        proposed: Digest::of(&["b"]),
        first: true,
    };
    let begin = |path: &str| match server.ledger.submit_and_wait(Command::BeginState(intent(path))) {
        Answer::Recorded(recorded) => recorded.entry.agent_seq.expect("a number"),
        other => panic!("{other:?}"),
    };
    let (first, second) = (begin("/srv/a.json"), begin("/srv/b.json"));
    let end = |intent: EntryRef| {
        let outcome = StateOutcome { intent, path: "/srv/a.json".to_owned(), committed: true };
        matches!(server.ledger.submit_and_wait(Command::EndState(outcome)), Answer::Recorded(_))
    };
    for wrong in [
        EntryRef::Named(EntryName::of_service(second)),
        EntryRef::Named(EntryName::of_service(900)),
        EntryRef::Named(EntryName::of_agent("agent_a", first)),
        EntryRef::At(first),
    ] {
        assert!(!end(wrong.clone()), "{wrong:?}");
    }
    assert!(end(EntryRef::Named(EntryName::of_service(first))));
}

/// Ids of decisions lead to their entries through many blocks of places, and only the agent's own.
#[test]
fn decisions_are_found_by_their_ids_however_many_there_are() {
    let scratch = tempfile::tempdir().expect("a directory");
    let start = || {
        let store = Box::new(SqliteStore::open(scratch.path()).expect("a store"));
        Server::start(store, None, Bundle::load("", &BTreeMap::new(), false).expect("a bundle"))
    };
    let mut ids = Vec::new();
    let agents = {
        let server = start();
        let mut client = server.client();
        let body = r#"{"name":"a","type":"trusted","principal_id":"p","budget":{"max_requests_per_hour":9000}}"#;
        let agents: Vec<TestAgent> = (0..3).map(|_| register(&mut client, body).expect("an agent")).collect();
        for number in 0..450_usize {
            let agent = &agents[number % 3];
            let body = format!(
                r#"{{"action":{{"type":"calculate","query":"{number}+1"}},"context":{{"conversation_id":"c{}","step_number":{}}}}}"#,
                number / 90,
                number / 3 % 30 + 1
            );
            let headers = [("x-agent-token", agent.token.as_str())];
            let asked =
                client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body).expect("an answer");
            let id = asked.body.split(r#""decision_id":""#).nth(1).and_then(|rest| rest.split('"').next());
            assert!(asked.body.contains("APPROVED"), "{}", asked.body);
            ids.push((id.expect("an id").to_owned(), agent.id.clone()));
        }
        agents
    };
    let server = start();
    for (number, (id, agent)) in ids.iter().enumerate() {
        let found = server.ledger.ruling(id).expect("read").expect("a ruling");
        assert_eq!(found.entry.agent.as_ref(), Some(agent), "{number}");
        let seq = found.entry.agent_seq.expect("a number");
        let named = server.ledger.entry_of(Some(agent), seq).expect("read").expect("an entry");
        assert_eq!((named.place, &named.bytes), (found.place, &found.bytes));
        let other = agents.iter().find(|other| other.id != *agent).expect("another");
        let elsewhere = server.ledger.entry_of(Some(&other.id), seq).expect("read");
        assert!(elsewhere.is_none_or(|elsewhere| elsewhere.place != found.place));
    }
    let made_up = "dec_00000000000000000000000000000000";
    assert!(server.ledger.ruling(made_up).expect("read").is_none());
    let agent: &Agent = &server.ledger.agent(&agents[0].id).expect("read").expect("an agent");
    assert_eq!(agent.entries, 151);
    for seq in [0, 152, u64::MAX] {
        assert!(server.ledger.entry_of(Some(&agents[0].id), seq).expect("read").is_none(), "{seq}");
    }
    drop(server);
    assert_eq!(audit(scratch.path()), Vec::<String>::new());
}
