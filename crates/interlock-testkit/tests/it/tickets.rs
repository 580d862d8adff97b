//! Tickets on a real store: many at once, waiting, texts that are kept and forgotten, and what principals are told.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use interlock_core::Digest;
use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Limits};
use interlock_core::ledger::{Body, Entry, EntryName};
use interlock_runtime::attestation::{self, Jwks};
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::{
    Answer as Written, CheckpointFile, Command, LedgerKey, Outgoing, Reader, SqliteReader, SqliteStore, replay, verify,
};
use interlock_testkit::gate::{TestAgent, create_key, register};
use interlock_testkit::repository;
use interlock_testkit::service::{Answer, Client, OPERATOR_KEY, START_MS, Server};
use interlock_testkit::wait::{HANG, until};

struct Fixture {
    server: Server,
    scratch: tempfile::TempDir,
    approver: String,
    agent: TestAgent,
}

fn bundle(text: &str) -> Bundle {
    Bundle::load(text, &BTreeMap::new(), false).expect("a bundle")
}

fn start(text: &str) -> Fixture {
    let scratch = tempfile::tempdir().expect("a directory");
    let store = Box::new(SqliteStore::open(scratch.path()).expect("a store"));
    let server = Server::start(store, None, bundle(text));
    let approver = create_key(&mut server.client(), r#"{"name":"ann","role":"approver"}"#).expect("a key");
    let agent = register(&mut server.client(), r#"{"name":"a","type":"supervised","principal_id":"p"}"#);
    Fixture { server, scratch, approver, agent: agent.expect("an agent") }
}

impl Fixture {
    fn ask(&self, step: u64) -> Answer {
        let body = format!(
            r#"{{"action":{{"type":"send_email","parameters":{{"to":"secret-{step}@example.com"}}}},"context":{{"conversation_id":"c","step_number":{step},"user_intent":"tell them"}}}}"#
        );
        let path = format!("/agents/{}/verify", self.agent.id);
        self.as_agent(&mut self.server.client(), "POST", &path, &body)
    }

    fn as_agent(&self, client: &mut Client, method: &str, path: &str, body: &str) -> Answer {
        client.send(method, path, &[("x-agent-token", &self.agent.token)], body).expect("an answer")
    }

    fn as_approver(&self, client: &mut Client, method: &str, path: &str) -> Answer {
        let key = format!("Bearer {}", self.approver);
        client.send(method, path, &[("authorization", &key)], "").expect("an answer")
    }

    fn as_admin(&self, method: &str, path: &str) -> Answer {
        let key = format!("Bearer {OPERATOR_KEY}");
        self.server.client().send(method, path, &[("authorization", &key)], "").expect("an answer")
    }

    fn report(&self, client: &mut Client, decision: &str) -> Answer {
        let body = format!(r#"{{"decision_id":"{decision}","success":true}}"#);
        self.as_agent(client, "POST", &format!("/agents/{}/executions", self.agent.id), &body)
    }

    fn reader(&self) -> SqliteReader {
        SqliteReader::open(self.scratch.path()).expect("a reader")
    }

    fn is_sound(&self) {
        let report = verify(&mut self.reader(), None, START_MS, &mut |_, _| {}).expect("verified");
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let again = replay(&mut self.reader(), None, &mut |_, _| {}).expect("replayed");
        assert_eq!((again.differences_count, again.findings.len()), (0, 0), "{again:?}");
    }
}

fn text(answer: &Answer, key: &str) -> String {
    let document = json::parse(&answer.body, &Limits::STATE).expect("JSON");
    let found = document.root().get(key).and_then(|value| value.as_str()).map(|value| value.text().to_owned());
    found.unwrap_or_else(|| panic!("no {key}: {} {}", answer.status, answer.body))
}

fn statuses(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[test]
fn a_ticket_decided_by_many_at_once_is_decided_once_and_spent_once() {
    let fixture = Arc::new(start(""));
    for step in 1..=4 {
        let asked = fixture.ask(step);
        let (ticket, decision) = (text(&asked, "approval_id"), text(&asked, "decision_id"));
        let together = |ask: &(dyn Fn(&Fixture, &mut Client, usize) -> Answer + Sync)| {
            let barrier = Barrier::new(32);
            thread::scope(|scope| {
                let threads: Vec<_> = (0..32)
                    .map(|number| {
                        let (fixture, barrier) = (&fixture, &barrier);
                        scope.spawn(move || {
                            let mut client = fixture.server.client();
                            barrier.wait();
                            ask(fixture, &mut client, number)
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().expect("a thread")).collect::<Vec<_>>()
            })
        };
        // Half of them say yes, half no.
        let decided = together(&|fixture, client, number| {
            let word = if number % 2 == 0 { "approve" } else { "deny" };
            fixture.as_approver(client, "POST", &format!("/approvals/{ticket}/{word}"))
        });
        assert_eq!((statuses(&decided, 200), statuses(&decided, 409)), (1, 31));
        let approved = decided.iter().any(|answer| answer.body.contains(r#""status":"approved""#));
        let reported = together(&|fixture, client, _| fixture.report(client, &decision));
        assert_eq!(
            (statuses(&reported, 201), statuses(&reported, 409)),
            (usize::from(approved), 32 - usize::from(approved))
        );
    }
    fixture.is_sound();
}

#[test]
fn a_changed_bundle_ends_what_was_asked_under_the_old_one() {
    let fixture = start("");
    let (first, second) = (fixture.ask(1), fixture.ask(2));
    let client = &mut fixture.server.client();
    let approved = fixture.as_approver(client, "POST", &format!("/approvals/{}/approve", text(&first, "approval_id")));
    assert_eq!(approved.status, 200, "{}", approved.body);
    let other = Arc::new(bundle("[actions.calculate]\nengine = \"math\"\nprice_usd = 0.02\n"));
    assert!(matches!(fixture.server.ledger.submit_and_wait(Command::Activate(other)), Written::Recorded(_)));
    let refused = fixture.as_approver(client, "POST", &format!("/approvals/{}/approve", text(&second, "approval_id")));
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("INTERLOCK-APPROVAL-004"), "{}", refused.body);
    let spent = fixture.report(client, &text(&first, "decision_id"));
    assert!(spent.status == 409 && spent.body.contains("INTERLOCK-APPROVAL-004"), "{}", spent.body);
    let denied = fixture.as_approver(client, "POST", &format!("/approvals/{}/deny", text(&second, "approval_id")));
    assert_eq!(denied.status, 200, "no is still possible: {}", denied.body);
    fixture.is_sound();
}

#[test]
fn who_waits_hears_at_once_and_who_waits_in_vain_hears_in_time() {
    let fixture = start("");
    let ticket = text(&fixture.ask(1), "approval_id");
    let open = text(&fixture.ask(2), "approval_id");
    // Both wait for a minute; who is told hears while the other still waits.
    let (answered, hear) = channel();
    thread::scope(|scope| {
        for ticket in [&open, &ticket] {
            let (fixture, answered) = (&fixture, answered.clone());
            scope.spawn(move || {
                let path = format!("/approvals/{ticket}?wait=60");
                let answer = fixture.as_agent(&mut fixture.server.client(), "GET", &path, "");
                answered.send(answer.body).expect("somebody hears");
            });
        }
        until("both wait", || fixture.server.ledger.waiters_count() == 2);
        for (ticket, word, status) in [(&ticket, "approve", "approved"), (&open, "deny", "denied")] {
            let path = format!("/approvals/{ticket}/{word}");
            let answer = fixture.as_approver(&mut fixture.server.client(), "POST", &path);
            assert_eq!(answer.status, 200, "{}", answer.body);
            let heard = hear.recv().expect("an answer");
            assert!(heard.contains(&format!(r#""status":"{status}""#)), "{heard}");
        }
    });
    let open = text(&fixture.ask(3), "approval_id");
    let began = Instant::now();
    let answer = fixture.as_agent(&mut fixture.server.client(), "GET", &format!("/approvals/{open}?wait=1"), "");
    assert!(answer.body.contains(r#""status":"pending""#), "{}", answer.body);
    assert!(began.elapsed() >= Duration::from_millis(900), "it did not wait");
}

/// An agent cannot take up the connections of all by waiting on them; what is beyond its share is answered at once.
#[test]
fn an_agent_has_only_so_many_requests_that_wait() {
    let fixture = start("");
    let ticket = text(&fixture.ask(1), "approval_id");
    let (path, answered) = (format!("/approvals/{ticket}?wait=60"), AtomicUsize::new(0));
    let wait = || {
        let answer = fixture.as_agent(&mut fixture.server.client(), "GET", &path, "");
        answered.fetch_add(1, Ordering::SeqCst);
        answer
    };
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..40).map(|_| scope.spawn(wait)).collect();
        // Eight are beyond the 32 that one agent has.
        until("eight are answered", || answered.load(Ordering::SeqCst) >= 8);
        until("the others wait", || fixture.server.ledger.waiters_count() == 32);
        assert_eq!(answered.load(Ordering::SeqCst), 8, "answered at once");
        fixture.as_approver(&mut fixture.server.client(), "POST", &format!("/approvals/{ticket}/approve"));
        let heard = waiting.into_iter().map(|waiting| waiting.join().expect("a thread").body);
        assert_eq!(heard.filter(|body| body.contains(r#""status":"approved""#)).count(), 32);
    });
    // Their places are free again.
    let open = text(&fixture.ask(2), "approval_id");
    let began = Instant::now();
    fixture.as_agent(&mut fixture.server.client(), "GET", &format!("/approvals/{open}?wait=1"), "");
    assert!(began.elapsed() >= Duration::from_millis(900), "it did not wait");
}

/// The text the entry of a ruling speaks of, and what the entry says of it.
fn kept(fixture: &Fixture, index: u64) -> (Option<String>, Option<Digest>) {
    let mut reader = fixture.reader();
    let entry = Entry::from_bytes(&reader.entries(index, 1).expect("entries")[0]).expect("an entry");
    let seq = entry.agent_seq.expect("a number");
    let text = reader.text(&fixture.agent.id, seq).expect("a text");
    let said = entry.body.ruled().and_then(|ruled| ruled.text);
    if let Some(text) = &text {
        let digest = Digest::of_bytes(&[text.salt.as_slice(), text.text.as_bytes()].concat());
        assert_eq!(Some(digest), said, "the entry speaks of another text");
    }
    (text.map(|text| text.text), said)
}

#[test]
fn a_text_is_kept_while_a_person_needs_it_and_no_entry_holds_it() {
    let fixture = start("");
    let client = &mut fixture.server.client();
    let ticket = text(&fixture.ask(1), "approval_id");
    let index = fixture.server.ledger.size() - 1;
    let (held, said) = kept(&fixture, index);
    assert!(held.expect("a text").contains("secret-1@example.com") && said.is_some());
    let shown = fixture.as_approver(client, "GET", &format!("/approvals/{ticket}"));
    assert!(shown.body.contains("secret-1@example.com") && shown.body.contains("tell them"), "{}", shown.body);
    fixture.as_approver(client, "POST", &format!("/approvals/{ticket}/approve"));
    assert_eq!(kept(&fixture, index), (None, said), "decided, so forgotten");
    let shown = fixture.as_approver(client, "GET", &format!("/approvals/{ticket}"));
    assert!(!shown.body.contains("secret-1"), "{}", shown.body);
    // One that expires is forgotten too.
    fixture.ask(2);
    let index = fixture.server.ledger.size() - 1;
    fixture.server.clock.advance(901_000);
    fixture.ask(3);
    assert_eq!(kept(&fixture, index).0, None, "expired, so forgotten");
    for bytes in fixture.reader().entries(0, 100).expect("entries") {
        assert!(!String::from_utf8_lossy(&bytes).contains("secret-"), "an entry holds the text");
    }
    fixture.is_sound();
}

#[test]
fn all_texts_or_none_and_an_agent_s_can_be_erased() {
    let fixture = start("payloads = 'all'");
    let body = r#"{"action":{"type":"calculate","query":"40+2"},"context":{"conversation_id":"d","step_number":1}}"#;
    let path = format!("/agents/{}/verify", fixture.agent.id);
    fixture.as_agent(&mut fixture.server.client(), "POST", &path, body);
    let approved = fixture.server.ledger.size() - 1;
    assert!(kept(&fixture, approved).0.expect("a text").contains("40+2"));
    let ticket = text(&fixture.ask(1), "approval_id");
    let pending = fixture.server.ledger.size() - 1;
    fixture.as_approver(&mut fixture.server.client(), "POST", &format!("/approvals/{ticket}/deny"));
    assert!(kept(&fixture, pending).0.is_some(), "kept for ever");
    let erased = fixture.as_admin("POST", &format!("/agents/{}/erase", fixture.agent.id));
    assert!(erased.body.contains(r#""erased":2"#), "{}", erased.body);
    assert_eq!((kept(&fixture, approved).0, kept(&fixture, pending).0), (None, None));
    fixture.is_sound();
    let fixture = start("payloads = 'none'");
    fixture.ask(1);
    assert_eq!(kept(&fixture, fixture.server.ledger.size() - 1), (None, None));
    fixture.is_sound();
}

#[test]
fn principals_are_told_of_what_concerns_them_and_of_nothing_else() {
    let fixture = start("[principals.p]\nwebhook = 'http://127.0.0.1:1/'\nsecret = 'whsec-that-nobody-else-knows'\n");
    let stranger = register(&mut fixture.server.client(), r#"{"name":"b","type":"supervised","principal_id":"q"}"#);
    let stranger = stranger.expect("an agent");
    let body = r#"{"parameters":{},"context":{"conversation_id":"c","step_number":1}}"#;
    let path = format!("/agents/{}/tools/drop_table", stranger.id);
    let asked = fixture.server.client().send("POST", &path, &[("x-agent-token", &stranger.token)], body);
    assert!(asked.expect("an answer").body.contains("PENDING"));
    let ticket = text(&fixture.ask(1), "approval_id");
    let failed = r#"{"action":{"type":"calculate","query":"1/0"},"context":{"conversation_id":"d","step_number":1}}"#;
    let path = format!("/agents/{}/verify", fixture.agent.id);
    fixture.as_agent(&mut fixture.server.client(), "POST", &path, failed);
    fixture.as_approver(&mut fixture.server.client(), "POST", &format!("/approvals/{ticket}/approve"));
    fixture.as_admin("POST", &format!("/agents/{}/complaint", fixture.agent.id));
    fixture.as_admin("POST", &format!("/agents/{}/reactivate", fixture.agent.id));
    let events = fixture.reader().events(("", 0), 100).expect("events");
    let kinds: Vec<String> = events
        .iter()
        .map(|event| {
            assert_eq!(event.principal, "p");
            let document = json::parse(&event.body, &Limits::STATE).expect("JSON");
            let member =
                |key: &str| document.root().get(key).and_then(|value| value.as_str()).map(|v| v.text().to_owned());
            assert_eq!((member("specversion").as_deref(), member("id")), (Some("1.0"), Some(event.event_id.clone())));
            assert!(!event.body.contains("secret-1"), "an event holds the agent's text: {}", event.body);
            member("type").expect("a type")
        })
        .collect();
    let expected = [
        "interlock.approval.pending",
        "interlock.verification.failed",
        "interlock.approval.resolved",
        "interlock.agent.suspended",
        "interlock.agent.reactivated",
    ];
    assert_eq!(kinds, expected);
    let ids: Vec<EntryName> = events.iter().map(Outgoing::name).collect();
    assert!(matches!(fixture.server.ledger.submit_and_wait(Command::Delivered(ids[..2].to_vec())), Written::Done));
    let left = fixture.reader().events(("", 0), 100).expect("events");
    assert_eq!(left, events[2..]);
    // The secret is nowhere in the ledger.
    for bytes in fixture.reader().entries(0, 100).expect("entries") {
        assert!(!String::from_utf8_lossy(&bytes).contains("whsec"));
    }
}

#[test]
fn bad_tokens_and_malformed_requests_cost_nobody_its_trust() {
    let fixture = start("");
    let path = format!("/agents/{}/verify", fixture.agent.id);
    let body = r#"{"action":{"type":"nonsense"},"context":{"conversation_id":"c","step_number":1}}"#;
    for number in 0..120 {
        let token = if number % 2 == 0 { "wrong" } else { fixture.agent.token.as_str() };
        let body = if number % 2 == 0 { body } else { "{}" };
        fixture.server.client().send("POST", &path, &[("x-agent-token", token)], body).expect("an answer");
    }
    let agent = fixture.server.ledger.agent(&fixture.agent.id).expect("read").expect("an agent");
    assert_eq!(u8::from(agent.trust), 1);
    assert!(agent.record.is_empty(), "{:?}", agent.record);
}

#[test]
fn a_directory_of_the_first_layout_is_read_and_goes_on() {
    let scratch = tempfile::tempdir().expect("a directory");
    let golden = repository().join("crates/interlock-testkit/tests/golden/data-1");
    for name in ["ledger.db", "checkpoint", "ledger.key"] {
        fs::copy(golden.join(name), scratch.path().join(name)).expect("a copy");
    }
    let key = || LedgerKey::open(scratch.path(), &SystemEntropy::new()).expect("a key");
    let checkpoint = CheckpointFile::new(scratch.path(), key());
    let before = checkpoint.read().expect("a checkpoint").expect("a checkpoint");
    let store = Box::new(SqliteStore::open(scratch.path()).expect("migrated"));
    assert!(scratch.path().join("ledger-layout-1.db").exists(), "a copy is kept");
    let server = Server::start(store, Some(checkpoint), bundle(""));
    let agent = TestAgent {
        id: "agent_52a7fec3770d934c37607e45f02f101a".to_owned(),
        token: "qwed_agent_7ded4cd428a3ddb6381c4a199fac9c31a3385b4dee4ab0ae31cea1f4a54bdf21".to_owned(),
    };
    let path = format!("/agents/{}/activity", agent.id);
    let activity = server.client().send("GET", &path, &[("x-agent-token", &agent.token)], "").expect("an answer");
    let summary = r#""summary":{"total":8,"approved":2,"corrected":1,"pending":1,"budget_exceeded":0,"denied":4"#;
    assert!(activity.body.contains(summary), "{}", activity.body);
    let body = r#"{"parameters":{},"context":{"conversation_id":"new","step_number":1}}"#;
    let path = format!("/agents/{}/tools/drop_table", agent.id);
    let asked = server.client().send("POST", &path, &[("x-agent-token", &agent.token)], body).expect("an answer");
    assert!(asked.body.contains("approval_id"), "{}", asked.body);
    drop(server);
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let sealed = CheckpointFile::new(scratch.path(), key()).read().expect("a checkpoint");
    assert!(sealed.expect("a checkpoint").size > before.size);
    let report = verify(&mut reader, Some(before), START_MS, &mut |_, _| {}).expect("verified");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let again = replay(&mut reader, None, &mut |_, _| {}).expect("replayed");
    assert_eq!(again.differences_count, 0, "{again:?}");
    let kinds: Vec<_> = reader.entries(0, 100).expect("entries").iter().map(|bytes| Entry::from_bytes(bytes)).collect();
    assert!(kinds.iter().flatten().any(|entry| entry.format == 1), "old entries stay as they are");
    assert!(kinds.iter().flatten().any(|entry| matches!(&entry.body, Body::Ruled(ruled) if ruled.ticket.is_some())));
}

#[test]
fn what_a_person_approved_carries_an_attestation_that_names_the_person() {
    let fixture = start("");
    let agent = register(&mut fixture.server.client(), r#"{"name":"b","type":"autonomous","principal_id":"p"}"#);
    let agent = agent.expect("an agent");
    let headers = [("x-agent-token", agent.token.as_str())];
    let body = r#"{"action":{"type":"file_write"},"context":{"conversation_id":"c","step_number":1}}"#;
    let path = format!("/agents/{}/verify", agent.id);
    let asked = fixture.server.client().send("POST", &path, &headers, body).expect("an answer");
    assert!(asked.body.contains("PENDING") && !asked.body.contains("attestation"), "{}", asked.body);
    let ticket = text(&asked, "approval_id");
    let read = || {
        let path = format!("/approvals/{ticket}");
        fixture.server.client().send("GET", &path, &headers, "").expect("an answer")
    };
    assert!(!read().body.contains("attestation"), "nobody approved it yet");
    let approved = fixture.as_approver(&mut fixture.server.client(), "POST", &format!("/approvals/{ticket}/approve"));
    assert!(approved.head.contains("qwed-attestation: "), "{}", approved.head);
    let token = text(&read(), "attestation");
    let keys = fixture.server.client().send("GET", "/.well-known/jwks.json", &[], "").expect("an answer");
    let keys = Jwks::parse(&keys.body).expect("keys");
    let now = START_MS / 1_000;
    let claims = attestation::verify(&token, &keys, now).expect("valid").claims;
    assert_eq!((claims.approval_id, claims.approved_by), (Some(ticket.clone()), Some("ann".to_owned())));
    assert_eq!((claims.decision_id, claims.exp), (text(&asked, "decision_id"), now + 900));
    let entry = fixture.reader().entries(fixture.server.ledger.size() - 1, 1).expect("entries");
    assert_eq!(claims.leaf_hash, interlock_core::ledger::leaf_hash(&entry[0]), "it is the person's entry");
    assert!(attestation::verify(&token, &keys, now + 900).is_err(), "it holds as long as it may be spent");
    let body = format!(r#"{{"decision_id":"{}","success":true}}"#, text(&asked, "decision_id"));
    let path = format!("/agents/{}/executions", agent.id);
    let spent = fixture.server.client().send("POST", &path, &headers, &body).expect("an answer");
    assert_eq!(spent.status, 201, "{}", spent.body);
    assert!(!read().body.contains("attestation"), "it is spent");
}

/// Whether any file of a directory holds these bytes.
fn is_in_files(directory: &std::path::Path, needle: &str) -> bool {
    let files = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files = files.filter(|path| path.is_file());
    files.any(|path| fs::read(path).expect("a file").windows(needle.len()).any(|window| window == needle.as_bytes()))
}

#[test]
fn an_erased_text_is_in_no_file() {
    let fixture = start("payloads = 'all'");
    for step in 1..=20 {
        fixture.ask(step);
    }
    assert!(is_in_files(fixture.scratch.path(), "secret-7@example.com"), "it is kept until then");
    let erased = fixture.as_admin("POST", &format!("/agents/{}/erase", fixture.agent.id));
    assert!(erased.body.contains(r#""erased":20"#), "{}", erased.body);
    until("it is gone", || !is_in_files(fixture.scratch.path(), "secret-"));
    fixture.is_sound();
}

/// Changes the database behind the server's back.
fn tamper(fixture: &Fixture, sql: &str) {
    let connection = rusqlite::Connection::open(fixture.scratch.path().join("ledger.db")).expect("a database");
    connection.busy_timeout(HANG).expect("a timeout");
    connection.execute_batch(sql).expect("tampered");
}

#[test]
fn what_an_approver_sees_is_what_was_asked_or_nothing() {
    let fixture = start("");
    let ticket = text(&fixture.ask(1), "approval_id");
    tamper(&fixture, "UPDATE texts SET text = replace(text, 'secret-1', 'harmless')");
    let client = &mut fixture.server.client();
    let shown = fixture.as_approver(client, "GET", &format!("/approvals/{ticket}"));
    assert_eq!(shown.status, 503, "{}", shown.body);
    assert!(!shown.body.contains("harmless"), "{}", shown.body);
    let report = verify(&mut fixture.reader(), None, START_MS, &mut |_, _| {}).expect("verified");
    assert!(report.findings.iter().any(|finding| finding.contains("the text kept for entry")), "{:?}", report.findings);
}

#[test]
fn an_audit_finds_edits_of_tickets_executions_keys_and_tokens() {
    for (sql, finding) in [
        (
            "UPDATE tickets SET row = replace(row, '\"verdict\":\"denied\"', '\"verdict\":\"approved\"')",
            "the ticket appr_",
        ),
        ("DELETE FROM tickets", "has entries and no row"),
        ("UPDATE executions SET report = report + 1", "the execution of entry"),
        ("DELETE FROM executions", "has an entry and no row"),
        ("UPDATE operator_keys SET row = replace(row, 'approver', 'admin')", "the row of key_"),
        ("DELETE FROM operator_keys", "has entries and no row"),
        ("DELETE FROM tokens", "the token of agent_"),
        (
            "UPDATE agents SET live = replace(live, '\"status\":\"suspended\"', '\"status\":\"active\"')",
            "the row of agent_",
        ),
    ] {
        let fixture = start("");
        let client = &mut fixture.server.client();
        let (first, second) = (fixture.ask(1), fixture.ask(2));
        fixture.as_approver(client, "POST", &format!("/approvals/{}/approve", text(&first, "approval_id")));
        fixture.as_approver(client, "POST", &format!("/approvals/{}/deny", text(&second, "approval_id")));
        assert_eq!(fixture.report(client, &text(&first, "decision_id")).status, 201);
        fixture.as_admin("POST", &format!("/agents/{}/suspend", fixture.agent.id));
        fixture.is_sound();
        tamper(&fixture, sql);
        let report = verify(&mut fixture.reader(), None, START_MS, &mut |_, _| {}).expect("verified");
        assert!(report.findings.iter().any(|found| found.contains(finding)), "{sql}: {:?}", report.findings);
    }
}

#[test]
fn without_its_row_a_ticket_lets_nothing_run() {
    let fixture = start("");
    let asked = fixture.ask(1);
    tamper(&fixture, "DELETE FROM tickets");
    let reported = fixture.report(&mut fixture.server.client(), &text(&asked, "decision_id"));
    assert_eq!(reported.status, 500, "{}", reported.body);
}

#[test]
fn a_key_that_is_revoked_while_its_request_arrives_does_nothing() {
    use std::io::{BufReader, Write};
    let fixture = start("");
    let admin = |name: &str| {
        let body = format!(r#"{{"name":"{name}","role":"admin"}}"#);
        create_key(&mut fixture.server.client(), &body).expect("a key")
    };
    let (eve, mallory) = (admin("eve"), admin("mallory"));
    let keys = fixture.as_admin("GET", "/keys").body;
    let rows: Vec<&str> = keys.split("{\"key_id\":\"").skip(1).collect();
    let id_of = |name: &str| {
        let row = rows.iter().find(|row| row.contains(&format!("\"name\":\"{name}\""))).expect("a key");
        row.split('"').next().expect("an id").to_owned()
    };
    let ticket = text(&fixture.ask(1), "approval_id");
    for (key, name, path, body) in [
        (&fixture.approver, "ann", format!("/approvals/{ticket}/approve"), r#"{"reason":"x"}"#.to_owned()),
        (&eve, "eve", "/keys".to_owned(), r#"{"name":"again","role":"admin"}"#.to_owned()),
        (&mallory, "mallory", format!("/agents/{}/reactivate", fixture.agent.id), "{\"reason\":\"x\"}".to_owned()),
    ] {
        let stream = std::net::TcpStream::connect(fixture.server.address).expect("a connection");
        let mut stream = BufReader::new(stream);
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.get_mut().write_all(head.as_bytes()).expect("sent");
        // Only when the key was believed does anybody ask for the body.
        let asked = interlock_testkit::service::read_answer(&mut stream).expect("to go on");
        assert_eq!(asked.status, 100, "{path}: {}", asked.body);
        let revoked = fixture.as_admin("POST", &format!("/keys/{}/revoke", id_of(name)));
        assert_eq!(revoked.status, 200, "{}", revoked.body);
        stream.get_mut().write_all(body.as_bytes()).expect("sent");
        let answer = interlock_testkit::service::read_answer(&mut stream).expect("an answer");
        assert_eq!(answer.status, 401, "{path}: {}", answer.body);
    }
    let shown = fixture.as_admin("GET", &format!("/approvals/{ticket}"));
    assert!(shown.body.contains(r#""status":"pending""#), "{}", shown.body);
    fixture.is_sound();
}

#[test]
fn lost_trust_ends_what_was_asked_before() {
    let fixture = start("");
    let body = r#"{"name":"b","type":"autonomous","principal_id":"p","permissions":{"blocked_tools":["drop_table"]}}"#;
    let agent = register(&mut fixture.server.client(), body).expect("an agent");
    let headers = [("x-agent-token", agent.token.as_str())];
    let ask = |kind: &str, step: u64| {
        let body =
            format!(r#"{{"action":{{"type":"{kind}"}},"context":{{"conversation_id":"c{step}","step_number":1}}}}"#);
        fixture
            .server
            .client()
            .send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body)
            .expect("an answer")
    };
    let (first, second) = (ask("file_write", 1), ask("file_write", 2));
    let client = &mut fixture.server.client();
    let approved = fixture.as_approver(client, "POST", &format!("/approvals/{}/approve", text(&first, "approval_id")));
    assert_eq!(approved.status, 200, "{}", approved.body);
    assert!(ask("drop_table", 3).body.contains("QWED-AGENT-004"));
    let refused = fixture.as_approver(client, "POST", &format!("/approvals/{}/approve", text(&second, "approval_id")));
    assert!(refused.status == 409 && refused.body.contains("INTERLOCK-APPROVAL-004"), "{}", refused.body);
    let shown = client.send("GET", &format!("/approvals/{}", text(&first, "approval_id")), &headers, "");
    assert!(!shown.expect("an answer").body.contains("attestation"), "what cannot be spent is not attested");
    let body = format!(r#"{{"decision_id":"{}","success":true}}"#, text(&first, "decision_id"));
    let spent = client.send("POST", &format!("/agents/{}/executions", agent.id), &headers, &body).expect("an answer");
    assert!(spent.status == 409 && spent.body.contains("INTERLOCK-APPROVAL-004"), "{}", spent.body);
    fixture.is_sound();
}

#[test]
fn evidence_for_trust_cannot_be_farmed_and_is_overtaken_by_a_denial_that_costs_trust() {
    let mut fixture = start("");
    let agent = r#"{"name":"b","type":"supervised","principal_id":"p","permissions":{"blocked_tools":["drop_table"]}}"#;
    fixture.agent = register(&mut fixture.server.client(), agent).expect("an agent");
    let fixture = fixture;
    let headers = [("x-agent-token", fixture.agent.token.as_str())];
    let send = |path: &str, body: &str| {
        let path = format!("/agents/{}/{path}", fixture.agent.id);
        fixture.server.client().send("POST", &path, &headers, body).expect("an answer")
    };
    for step in 1..=30 {
        let body = format!(
            r#"{{"action":{{"type":"calculate","query":"{step}+1"}},"context":{{"conversation_id":"c","step_number":{step}}}}}"#
        );
        let decided = send("verify", &body);
        let report = format!(r#"{{"decision_id":"{}","success":true}}"#, text(&decided, "decision_id"));
        assert_eq!(send("executions", &report).status, 201);
    }
    let asked = send("trust", r#"{"request":"trust_elevation","to_level":2}"#);
    let ticket = text(&asked, "approval_id");
    let client = &mut fixture.server.client();
    let shown = fixture.as_approver(client, "GET", &format!("/approvals/{ticket}"));
    let evidence = r#""rulings":30,"counted":0,"denied":0,"violations":0,"budget_exceeded":0,"executions_succeeded":0"#;
    assert!(shown.body.contains(evidence), "{}", shown.body);
    let denied = r#"{"action":{"type":"drop_table"},"context":{"conversation_id":"d","step_number":1}}"#;
    let denied = send("verify", denied);
    assert!(denied.body.contains("QWED-AGENT-004"), "{}", denied.body);
    let refused = fixture.as_approver(client, "POST", &format!("/approvals/{ticket}/approve"));
    assert!(refused.status == 409 && refused.body.contains("INTERLOCK-APPROVAL-004"), "{}", refused.body);
    let named = format!(r#""stale":"denial {}""#, text(&denied, "decision_id"));
    assert!(refused.body.contains(&named), "{}", refused.body);
    fixture.is_sound();
}

#[test]
fn no_agent_learns_where_in_the_ledger_it_is() {
    let fixture = start("");
    for step in 1..=3 {
        fixture.ask(step);
    }
    let headers = [("x-agent-token", fixture.agent.token.as_str())];
    for path in ["/approvals?limit=1".to_owned(), format!("/agents/{}/activity?limit=1", fixture.agent.id)] {
        let page = fixture.server.client().send("GET", &path, &headers, "").expect("an answer");
        let cursor = text(&page, "next_cursor");
        assert!(cursor.len() == 32 && cursor.bytes().all(|byte| byte.is_ascii_hexdigit()), "{cursor}");
        let next = format!("{path}&cursor={cursor}");
        let next = fixture.server.client().send("GET", &next, &headers, "").expect("an answer");
        assert!(next.status == 200 && next.body != page.body, "{}", next.body);
        let made_up = format!("{path}&cursor={}", "0".repeat(32));
        assert_eq!(fixture.server.client().send("GET", &made_up, &headers, "").expect("an answer").status, 404);
    }
}

#[test]
fn a_migration_needs_a_copy_that_is_one_and_the_old_layout_can_be_audited() {
    let golden = repository().join("crates/interlock-testkit/tests/golden/data-1");
    for obstacle in ["partial", "foreign", "directory"] {
        let scratch = tempfile::tempdir().expect("a directory");
        for name in ["ledger.db", "checkpoint", "ledger.key"] {
            fs::copy(golden.join(name), scratch.path().join(name)).expect("a copy");
        }
        let mut reader = SqliteReader::open(scratch.path()).expect("the old layout is read");
        let report = verify(&mut reader, None, START_MS, &mut |_, _| {}).expect("verified");
        assert_eq!((report.entries, report.findings.len()), (28, 0), "{:?}", report.findings);
        drop(reader);
        let copy = scratch.path().join("ledger-layout-1.db");
        match obstacle {
            "partial" => {
                fs::write(&copy, &fs::read(golden.join("ledger.db")).expect("bytes")[..40_960]).expect("written");
            }
            "foreign" => fs::write(&copy, "not a database at all, and long enough to be looked at").expect("written"),
            _ => fs::create_dir(&copy).expect("a directory"),
        }
        let refused = SqliteStore::open(scratch.path()).err().map(|fault| fault.to_string()).unwrap_or_default();
        assert!(refused.contains("is no copy of this ledger"), "{obstacle}: {refused}");
        // Nothing was changed; without the obstacle it goes on.
        if copy.is_dir() { fs::remove_dir(&copy) } else { fs::remove_file(&copy) }.expect("removed");
        drop(SqliteStore::open(scratch.path()).expect("migrated"));
        let copied = rusqlite::Connection::open(&copy).expect("the copy");
        let count: i64 = copied.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).expect("a count");
        assert_eq!(count, 28);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&copy).expect("a file").permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_clock_that_was_ahead_stops_tickets_for_as_long_as_that_and_says_so() {
    const HOUR_MS: u64 = 3_600_000;
    let fixture = start("");
    let (sender, told) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    fixture.server.ledger.on_clock(move |message| {
        let _ = sender.lock().expect("a sender").send(message.to_owned());
    });
    let show = |ticket: &str| {
        let shown = fixture.as_approver(&mut fixture.server.client(), "GET", &format!("/approvals/{ticket}"));
        text(&shown, "status")
    };
    let approve = |ticket: &str| {
        fixture.as_approver(&mut fixture.server.client(), "POST", &format!("/approvals/{ticket}/approve")).status
    };
    let before = text(&fixture.ask(1), "approval_id");
    fixture.server.clock.advance(HOUR_MS);
    let ahead = text(&fixture.ask(2), "approval_id");
    assert_eq!((show(&before), show(&ahead)), ("expired".to_owned(), "pending".to_owned()));
    fixture.server.clock.set_back(HOUR_MS);
    // What expired stays expired, for whoever looks and for whoever decides.
    assert_eq!((show(&before), approve(&before)), ("expired".to_owned(), 410));
    let frozen = text(&fixture.ask(3), "approval_id");
    assert_eq!(fixture.server.ledger.clock_behind(), HOUR_MS);
    let message = told.recv_timeout(Duration::from_secs(60)).expect("it is told");
    assert!(message.contains("the clock is 3600 s behind the ledger"), "{message}");
    // Time stands still for the hour the clock was ahead, and then goes on: the quarter of an hour that a ticket has
    // begins then, and no later.
    fixture.server.clock.advance(HOUR_MS + 15 * 60_000 - 1);
    assert_eq!((show(&frozen), approve(&ahead)), ("pending".to_owned(), 200));
    fixture.server.clock.advance(1);
    assert_eq!((show(&frozen), approve(&frozen)), ("expired".to_owned(), 410));
    assert_eq!(fixture.server.ledger.clock_behind(), 0);
    let message = told.recv_timeout(Duration::from_secs(60)).expect("it is told");
    assert!(message.contains("has caught up"), "{message}");
    let metrics = fixture.as_admin("GET", "/metrics");
    assert!(metrics.body.contains("interlock_ledger_clock_behind_milliseconds 0"), "{}", metrics.body);
}

#[test]
fn another_place_of_the_servers_own_files_ends_no_ticket() {
    let load = |places: &[&str]| {
        let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
        Bundle::load_for("", &BTreeMap::new(), false, &places).expect("a bundle")
    };
    let scratch = tempfile::tempdir().expect("a directory");
    let start = |places: &[&str]| {
        Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), None, load(places))
    };
    let (agent, approver, ticket) = {
        let server = start(&["/srv/interlock/data", "/srv/interlock/operator.key"]);
        let approver = create_key(&mut server.client(), r#"{"name":"ann","role":"approver"}"#).expect("a key");
        let agent = register(&mut server.client(), r#"{"name":"a","type":"supervised","principal_id":"p"}"#);
        let agent = agent.expect("an agent");
        let body = r#"{"action":{"type":"send_email"},"context":{"conversation_id":"c","step_number":1}}"#;
        let path = format!("/agents/{}/verify", agent.id);
        let asked = server.client().send("POST", &path, &[("x-agent-token", &agent.token)], body).expect("an answer");
        (agent, approver, text(&asked, "approval_id"))
    };
    let server = start(&["/mnt/elsewhere/data", "/mnt/elsewhere/operator.key"]);
    let key = format!("Bearer {approver}");
    let path = format!("/approvals/{ticket}/approve");
    let approved = server.client().send("POST", &path, &[("authorization", &key)], "").expect("an answer");
    assert_eq!(approved.status, 200, "{}", approved.body);
    // Another rule is another bundle, and that is said.
    let body = r#"{"action":{"type":"send_email"},"context":{"conversation_id":"c","step_number":2}}"#;
    let path = format!("/agents/{}/verify", agent.id);
    let asked = server.client().send("POST", &path, &[("x-agent-token", &agent.token)], body).expect("an answer");
    let ticket = text(&asked, "approval_id");
    drop(server);
    let other = Bundle::load_for("doom_loop_guard_required = true", &BTreeMap::new(), false, &[]).expect("a bundle");
    let server = Server::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")), None, other);
    let path = format!("/approvals/{ticket}/approve");
    let refused = server.client().send("POST", &path, &[("authorization", &key)], "").expect("an answer");
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains(r#""details":{"stale":"bundle"}"#), "{}", refused.body);
}
