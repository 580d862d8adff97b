//! Refusals that cost an agent nothing: beyond a bound they are counted and not written out, each still counts for trust,
//! and nobody else has to wait for what is told of them.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Limits};
use interlock_core::ledger::{Body, Entry, EntryName, Likeness, RefusalsRepeated};
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::{
    Answer as Written, CheckpointFile, Command, LedgerKey, Parcel, Reader, SqliteReader, SqliteStore, Turn, replay,
    verify_with_key,
};
use interlock_testkit::gate::{TestAgent, register};
use interlock_testkit::service::{Answer, OPERATOR_KEY, START_MS, Server};

const TOLD: &str = "[principals.p]\nwebhook = 'http://127.0.0.1:1/'\nsecret = 'whsec-that-nobody-else-knows'\n";
/// What is documented: so much is written out in an hour, and what is counted beside it once a minute.
const WRITTEN_OUT_MAX: usize = 1 << 20;

struct Fixture {
    server: Server,
    scratch: tempfile::TempDir,
    agent: TestAgent,
}

fn start(kind: &str) -> Fixture {
    let scratch = tempfile::tempdir().expect("a directory");
    let key = LedgerKey::open(scratch.path(), &SystemEntropy::new()).expect("a key");
    let store = Box::new(SqliteStore::open(scratch.path()).expect("a store"));
    let bundle = Bundle::load(TOLD, &BTreeMap::new(), false).expect("a bundle");
    let server = Server::start(store, Some(CheckpointFile::new(scratch.path(), key)), bundle);
    let agent = new_agent(&server, kind);
    Fixture { server, scratch, agent }
}

fn new_agent(server: &Server, kind: &str) -> TestAgent {
    let body = format!(r#"{{"name":"a","type":"{kind}","principal_id":"p"}}"#);
    register(&mut server.client(), &body).expect("an agent")
}

fn action(kind: &str, query: &str, step: usize) -> String {
    let context = format!(r#"{{"conversation_id":"c","step_number":{step}}}"#);
    format!(r#"{{"action":{{"type":"{kind}","query":"{query}"}},"context":{context}}}"#)
}

impl Fixture {
    fn ask_all(&self, agent: &TestAgent, bodies: impl IntoIterator<Item = String>) -> Vec<Answer> {
        let (mut client, path) = (self.server.client(), format!("/agents/{}/verify", agent.id));
        let ask = |body: String| client.send("POST", &path, &[("x-agent-token", &agent.token)], &body);
        bodies.into_iter().map(ask).map(|answer| answer.expect("an answer")).collect()
    }

    fn reader(&self) -> SqliteReader {
        SqliteReader::open(self.scratch.path()).expect("a reader")
    }

    fn count(&self) {
        assert!(matches!(self.server.ledger.submit_and_wait(Command::CountRepeats), Written::Done));
    }

    fn entries(&self) -> Vec<Entry> {
        let bytes = self.reader().entries(0, 100_000).expect("entries");
        bytes.iter().map(|bytes| Entry::from_bytes(bytes).expect("an entry")).collect()
    }

    fn bytes(&self) -> usize {
        self.reader().entries(0, 100_000).expect("entries").iter().map(Vec::len).sum()
    }

    fn repeated(&self) -> Vec<RefusalsRepeated> {
        let told = self.entries().into_iter().filter_map(|entry| match entry.body {
            Body::RefusalsRepeated(repeated) => Some(repeated),
            _ => None,
        });
        told.collect()
    }

    fn findings(&self) -> Vec<String> {
        let key = LedgerKey::open(self.scratch.path(), &SystemEntropy::new()).expect("a key");
        let now = START_MS;
        verify_with_key(&mut self.reader(), None, &key, now, &mut |_, _| {}).expect("verified").findings
    }

    fn is_sound(&self) {
        assert_eq!(self.findings(), Vec::<String>::new());
        let again = replay(&mut self.reader(), None, &mut |_, _| {}).expect("replayed");
        assert_eq!((again.differences_count, again.findings.len()), (0, 0), "{again:?}");
    }

    fn next(&self, turn: &mut Turn) -> Option<Parcel> {
        let (parcel, forged) = self.server.ledger.next_parcel("p", turn).expect("a look");
        assert_eq!(forged, Vec::<EntryName>::new());
        if let Some(parcel) = &parcel {
            let ids = Command::Delivered(parcel.ids.clone());
            assert!(matches!(self.server.ledger.submit_and_wait(ids), Written::Done));
        }
        parcel
    }
}

fn member(text: &str, path: &[&str]) -> Option<String> {
    let document = json::parse(text, &Limits::STATE).expect("JSON");
    let mut value = document.root();
    for key in path {
        value = value.get(key)?;
    }
    Some(value.as_str().map_or_else(|| value.source().to_owned(), |text| text.text().to_owned()))
}

#[test]
fn equal_refusals_are_counted_and_each_counts_for_trust() {
    let fixture = start("trusted");
    // The type is not registered: refused, and nothing is charged. Steps differ, what is asked does not.
    let answers = fixture.ask_all(&fixture.agent, (1..=200).map(|number| action("nonsense", "x", number % 50 + 1)));
    let folded = answers.iter().filter(|answer| answer.body.contains(r#""folded":true"#)).count();
    assert!(folded > 140, "only {folded} of 200 were counted");
    for answer in &answers {
        assert_eq!(member(&answer.body, &["error", "code"]).as_deref(), Some("QWED-AGENT-ACTION-001"));
    }
    let entries = fixture.entries();
    let known: BTreeSet<String> =
        entries.iter().filter_map(|entry| Some(entry.body.ruled()?.decision_id.clone())).collect();
    for answer in &answers {
        let named = member(&answer.body, &["decision_id"]).expect("an id");
        assert!(known.contains(&named), "an answer names {named}, which is on no record");
    }
    // Trust falls with the fiftieth, the hundredth and the hundred and fiftieth, as if all were written out.
    fixture.count();
    let (mut denied, mut falls) = (0, Vec::new());
    for entry in fixture.entries() {
        match &entry.body {
            Body::Ruled(_) => denied += 1,
            Body::RefusalsRepeated(repeated) => denied += repeated.repeats.iter().map(|it| it.count).sum::<u64>(),
            Body::TrustChanged(changed) => falls.push((denied, u8::from(changed.to_level))),
            _ => {}
        }
    }
    assert_eq!((denied, falls), (200, vec![(50, 2), (100, 1), (150, 0)]));
    let agent = fixture.server.ledger.agent(&fixture.agent.id).expect("read").expect("an agent");
    assert_eq!((agent.refusals(), u8::from(agent.trust)), (200, 0));
    let repeats: Vec<_> = fixture.repeated().into_iter().flat_map(|repeated| repeated.repeats).collect();
    assert!(repeats.iter().all(|repeat| repeat.likeness == Likeness::Equal && repeat.counted), "{repeats:?}");
    // What an operator reads has all of them.
    let path = format!("/agents/{}/activity?limit=1000", fixture.agent.id);
    let key = format!("Bearer {OPERATOR_KEY}");
    let read = fixture.server.client().send("GET", &path, &[("authorization", &key)], "").expect("an answer");
    assert_eq!(member(&read.body, &["summary", "denied"]).as_deref(), Some("200"));
    assert!(read.body.contains(r#""repeats":{"count":"#), "{}", read.body);
    fixture.is_sound();
}

#[test]
fn refusals_that_differ_are_bounded_too_and_every_kind_of_them() {
    let fixture = start("supervised");
    let malformed = |number: usize| format!(r#"{{"action":{{"type":"t{number}"}},"field{number}":1}}"#);
    let dry = |number: usize| {
        let query = format!("{number}+1");
        let open = action("calculate", &query, 1);
        format!(r#"{},"options":{{"dry_run":true}}}}"#, &open[..open.len() - 1])
    };
    let before = fixture.bytes();
    let bodies =
        (0..900).flat_map(|number| [action("nonsense", &format!("q{number}"), 1), malformed(number), dry(number)]);
    let answers = fixture.ask_all(&fixture.agent, bodies);
    for (number, answer) in answers.iter().enumerate() {
        // Whatever is written out, each gets its own answer.
        match number % 3 {
            0 => assert_eq!(member(&answer.body, &["error", "code"]).as_deref(), Some("QWED-AGENT-ACTION-001")),
            1 => assert_eq!(answer.status, 400, "{}", answer.body),
            // Trust falls meanwhile, and then a person would have to decide.
            _ => assert!(answer.body.contains(r#""status":"VERIFIED""#), "{}", answer.body),
        }
    }
    fixture.count();
    let written = fixture.bytes() - before;
    assert!(written < WRITTEN_OUT_MAX + 64 * 1024, "{written} bytes");
    assert!(answers.iter().any(|answer| answer.body.contains(r#""folded":true"#)));
    let repeats: Vec<_> = fixture.repeated().into_iter().flat_map(|repeated| repeated.repeats).collect();
    assert!(repeats.iter().any(|repeat| repeat.likeness == Likeness::Code), "{repeats:?}");
    fixture.is_sound();
    // In the next hour they are written out again.
    fixture.server.clock.advance(3_600_000);
    let answers = fixture.ask_all(&fixture.agent, [action("nonsense", "later", 1)]);
    assert!(!answers[0].body.contains("folded"), "{}", answers[0].body);
    // Another agent's are its own.
    let other = new_agent(&fixture.server, "supervised");
    let answers = fixture.ask_all(&other, [action("nonsense", "q1", 1)]);
    assert!(!answers[0].body.contains("folded"), "{}", answers[0].body);
}

#[test]
fn a_count_that_somebody_changed_is_found() {
    let fixture = start("trusted");
    fixture.ask_all(&fixture.agent, (0..30).map(|_| action("nonsense", "x", 1)));
    fixture.count();
    fixture.is_sound();
    let Fixture { server, scratch, .. } = fixture;
    drop(server);
    let key = LedgerKey::open(scratch.path(), &SystemEntropy::new()).expect("a key");
    let connection = rusqlite::Connection::open(scratch.path().join("ledger.db")).expect("a database");
    let changed = connection.execute(
        "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), '\"count\":20', '\"count\":10') AS BLOB)
            WHERE instr(CAST(bytes AS TEXT), 'refusals_repeated') > 0",
        [],
    );
    assert_eq!(changed.expect("changed"), 1);
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let found = verify_with_key(&mut reader, None, &key, START_MS, &mut |_, _| {}).expect("verified").findings;
    assert!(found.iter().any(|found| found.contains("does not follow from its entries")), "{found:?}");
}

#[test]
fn one_agent_keeps_no_other_from_being_told_of() {
    let fixture = start("supervised");
    let other = new_agent(&fixture.server, "supervised");
    let wrong = |number: usize| action("calculate", &format!("{number}/0"), 1);
    // Found wrong forty times, and then something that a person has to decide.
    let answers = fixture.ask_all(&fixture.agent, (0..40).map(wrong));
    assert!(answers.iter().all(|answer| answer.body.contains("QWED-AGENT-005")), "{}", answers[0].body);
    fixture.ask_all(&other, (0..2).map(wrong));
    fixture.ask_all(&fixture.agent, [action("send_email", "to all", 1)]);
    fixture.ask_all(&other, [action("send_email", "to all", 1)]);
    let mut turn = Turn::default();
    let parcels: Vec<Parcel> = std::iter::from_fn(|| fixture.next(&mut turn)).collect();
    let told: Vec<(String, String, Option<String>)> = parcels
        .iter()
        .map(|parcel| {
            let of = |path: &[&str]| member(&parcel.body, path);
            (of(&["type"]).expect("a type"), of(&["subject"]).expect("an agent"), of(&["data", "count"]))
        })
        .collect();
    let (pending, failed) = ("interlock.approval.pending", "interlock.verification.failed");
    let kinds: Vec<&str> = told.iter().map(|(kind, _, _)| kind.as_str()).collect();
    assert_eq!(kinds[..2], [pending, pending], "{told:?}");
    assert_ne!(told[0].1, told[1].1, "both are told of before anything else");
    let of_noisy: Vec<_> =
        told.iter().filter(|(kind, agent, _)| kind == failed && *agent == fixture.agent.id).collect();
    let of_other: Vec<_> = told.iter().filter(|(kind, agent, _)| kind == failed && *agent == other.id).collect();
    assert_eq!((of_noisy.len(), of_noisy[0].2.as_deref()), (1, Some("40")), "one for all forty: {told:?}");
    assert_eq!((of_other.len(), of_other[0].2.as_deref()), (2, None), "{told:?}");
    assert_eq!(parcels.iter().map(|parcel| parcel.ids.len()).sum::<usize>(), 44);
    fixture.is_sound();
}

#[test]
fn what_was_counted_is_told_of_once_with_its_number() {
    let fixture = start("supervised");
    fixture.ask_all(&fixture.agent, (0..60).map(|_| action("calculate", "1/0", 1)));
    fixture.count();
    let mut turn = Turn::default();
    let parcels: Vec<Parcel> = std::iter::from_fn(|| fixture.next(&mut turn)).collect();
    let failed = |parcel: &&Parcel| parcel.body.contains("interlock.verification.failed");
    let counts: Vec<u64> = parcels
        .iter()
        .filter(failed)
        .map(|parcel| member(&parcel.body, &["data", "count"]).map_or(1, |count| count.parse().expect("a number")))
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 60, "{parcels:?}");
    assert!(counts.len() < 25, "{counts:?}");
    fixture.is_sound();
}

#[test]
fn an_event_that_does_not_follow_from_the_ledger_is_never_sent() {
    let fixture = start("supervised");
    fixture.ask_all(&fixture.agent, [action("send_email", "to all", 1)]);
    let path = fixture.scratch.path().join("ledger.db");
    let connection = rusqlite::Connection::open(path).expect("a database");
    let columns = "principal, lane, event_id, replace(body, 'pending', 'resolved'), at";
    for id in ["900", "1"] {
        let sql = format!("INSERT INTO outbox SELECT agent, {id}, {columns} FROM outbox WHERE seq NOT IN (900, 1)");
        assert_eq!(connection.execute(&sql, []).expect("inserted"), 1);
    }
    let mut turn = Turn::default();
    let (parcel, forged) = fixture.server.ledger.next_parcel("p", &mut turn).expect("a look");
    let parcel = parcel.expect("the true one");
    assert!(parcel.body.contains("interlock.approval.pending"), "{parcel:?}");
    fixture.server.ledger.submit_and_wait(Command::Delivered(parcel.ids));
    let (none, more) = fixture.server.ledger.next_parcel("p", &mut turn).expect("a look");
    assert_eq!(none, None);
    let found: BTreeSet<EntryName> = forged.into_iter().chain(more).collect();
    let name = |seq| EntryName::of_agent(&fixture.agent.id, seq);
    assert_eq!(found, BTreeSet::from([name(1), name(900)]));
    let findings = fixture.findings();
    for name in found {
        let finding = format!("the event that waits for entry {name} is not the one it is worth");
        assert!(findings.contains(&finding), "{findings:?}");
    }
}
