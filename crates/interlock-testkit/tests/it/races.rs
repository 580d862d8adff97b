//! Many at once: one winner per step, no limit exceeded, and nobody who hangs up changes anything.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Barrier};
use std::thread;

use interlock_core::bundle::Bundle;
use interlock_runtime::ledger::SqliteStore;
use interlock_testkit::gate::{TestAgent, register};
use interlock_testkit::service::{Answer, Client, Server};
use interlock_testkit::wait::until;

struct Fixture {
    server: Server,
    _scratch: tempfile::TempDir,
}

fn start() -> Fixture {
    let scratch = tempfile::tempdir().expect("a directory");
    let store = Box::new(SqliteStore::open(scratch.path()).expect("a store"));
    let server = Server::start(store, None, Bundle::built_in().expect("a bundle"));
    Fixture { server, _scratch: scratch }
}

fn verify(client: &mut Client, agent: &TestAgent, conversation: &str, step: u64, query: &str) -> Answer {
    let body = body(conversation, step, query);
    let headers = [("x-agent-token", agent.token.as_str())];
    client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body).expect("an answer")
}

fn body(conversation: &str, step: u64, query: &str) -> String {
    format!(
        r#"{{"action":{{"type":"calculate","query":"{query}"}},"context":{{"conversation_id":"{conversation}","step_number":{step}}}}}"#
    )
}

/// Answers of many threads that start together.
fn together(
    fixture: &Fixture,
    count: usize,
    ask: impl Fn(&mut Client, usize) -> Answer + Send + Sync + 'static,
) -> Vec<Answer> {
    let (barrier, ask) = (Arc::new(Barrier::new(count)), Arc::new(ask));
    let threads: Vec<_> = (0..count)
        .map(|number| {
            let (mut client, barrier, ask) = (fixture.server.client(), Arc::clone(&barrier), Arc::clone(&ask));
            thread::spawn(move || {
                barrier.wait();
                ask(&mut client, number)
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
}

fn count(answers: &[Answer], what: &str) -> usize {
    answers.iter().filter(|answer| answer.body.contains(what)).count()
}

#[test]
fn one_step_has_one_winner() {
    let fixture = start();
    for round in 0..5 {
        // Whoever comes too late is denied, and enough denials cost trust: each round has an agent of its own.
        let agent = register(&mut fixture.server.client(), r#"{"name":"a","type":"supervised","principal_id":"p"}"#);
        let agent = agent.expect("an agent");
        let answers = together(&fixture, 64, move |client, number| {
            verify(client, &agent, &format!("c{round}"), 1, &format!("{number}+1"))
        });
        let others: Vec<&str> =
            answers.iter().map(|answer| answer.body.as_str()).filter(|body| !body.contains("LOOP-002")).collect();
        assert_eq!(count(&answers, r#""decision":"APPROVED""#), 1, "{others:?}");
        assert_eq!(count(&answers, "QWED-AGENT-LOOP-002"), 63);
    }
}

#[test]
fn a_limit_of_n_approves_n() {
    let fixture = start();
    let body = r#"{"name":"a","type":"supervised","principal_id":"p","budget":{"max_requests_per_hour":16}}"#;
    let agent = register(&mut fixture.server.client(), body).expect("an agent");
    let asked = agent.clone();
    let answers = together(&fixture, 64, move |client, number| verify(client, &asked, &format!("c{number}"), 1, "1+1"));
    assert_eq!(count(&answers, r#""decision":"APPROVED""#), 16);
    assert_eq!(count(&answers, "QWED-AGENT-BUDGET-002"), 48);
    let headers = [("x-agent-token", agent.token.as_str())];
    let path = format!("/agents/{}/budget", agent.id);
    let budget = fixture.server.client().send("GET", &path, &headers, "").expect("an answer");
    assert!(budget.body.contains(r#""current_hour":16"#), "{}", budget.body);
}

#[test]
fn a_higher_step_does_not_cut_off_one_that_is_on_its_way() {
    let fixture = start();
    for round in 0..20 {
        // One agent a round: many refusals would cost it its trust.
        let agent = register(&mut fixture.server.client(), r#"{"name":"a","type":"supervised","principal_id":"p"}"#);
        let agent = agent.expect("an agent");
        let asked = agent.clone();
        let answers = together(&fixture, 8, move |client, number| {
            let step = u64::try_from(number).expect("small") + 1;
            verify(client, &asked, &format!("c{round}"), step, &format!("{number}+1"))
        });
        // Whatever was opened after a higher step was committed is out of order; what was opened before is not.
        let approved = count(&answers, r#""decision":"APPROVED""#);
        assert!(approved >= 1 && approved + count(&answers, "QWED-AGENT-LOOP-002") == 8, "{answers:?}");
        let next = verify(&mut fixture.server.client(), &agent, &format!("c{round}"), 9, "9+9");
        assert!(next.body.contains("APPROVED"), "{}", next.body);
        let late = verify(&mut fixture.server.client(), &agent, &format!("c{round}"), 5, "5+5");
        assert!(late.body.contains("QWED-AGENT-LOOP-002"), "{}", late.body);
    }
}

#[test]
fn who_hangs_up_changes_nothing() {
    let fixture = start();
    let mut client = fixture.server.client();
    // Who is faster differs from round to round; what holds does not.
    for _ in 0..10 {
        let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
        let send = |conversation: &str, cut: usize| {
            let body = body(conversation, 1, "1+1");
            let request = format!(
                "POST /agents/{}/verify HTTP/1.1\r\nhost: x\r\nx-agent-token: {}\r\ncontent-length: {}\r\n\r\n{body}",
                agent.id,
                agent.token,
                body.len()
            );
            let mut stream = TcpStream::connect(fixture.server.address).expect("a connection");
            stream.write_all(&request.as_bytes()[..request.len() - cut]).expect("sent");
            drop(stream);
        };
        // A request that never was complete leaves its step free.
        send("half", 10);
        // A complete one is decided or was never submitted, depending on who was faster; never half of each.
        send("whole", 0);
        let first = verify(&mut client, &agent, "whole", 1, "1+1").body;
        assert!(first.contains("QWED-AGENT-LOOP-002") || first.contains("APPROVED"), "{first}");
        assert!(verify(&mut client, &agent, "whole", 1, "1+1").body.contains("QWED-AGENT-LOOP-002"));
        assert!(verify(&mut client, &agent, "half", 1, "1+1").body.contains("APPROVED"));
        let headers = [("x-agent-token", agent.token.as_str())];
        let budget = client.send("GET", &format!("/agents/{}/budget", agent.id), &headers, "").expect("an answer");
        assert!(budget.body.contains(r#""current_hour":2"#), "{}", budget.body);
    }
}

/// Calculations that take long are read beside one another as far as there is room, and a short one waits for none of
/// them. The ledger says which was decided first; how long anything took is not asked. Whoever is slow to send the short
/// one has shown nothing and sends it again beside others: with one queue for all it would never be among the first.
#[test]
fn long_texts_hold_nobody_up() {
    const LONG: usize = 8;
    let fixture = start();
    let mut client = fixture.server.client();
    let body = r#"{"name":"a","type":"supervised","principal_id":"p"}"#;
    let terms: Vec<String> = (3..300).map(|number| format!("exp({number})")).collect();
    let query = Arc::new(format!("{} = 1 to 100 dp", terms.join("+")));
    let is_first = |round: usize| {
        let mut agent = || register(&mut client, body).expect("an agent");
        let (busy, other) = (agent(), agent());
        let begun = fixture.server.ledger.size();
        let threads: Vec<_> = (0..LONG)
            .map(|number| {
                let (mut client, busy, query) = (fixture.server.client(), busy.clone(), Arc::clone(&query));
                thread::spawn(move || verify(&mut client, &busy, &format!("long-{round}-{number}"), 1, &query))
            })
            .collect();
        // One is decided, so the others are being read or wait.
        until("a long one is decided", || fixture.server.ledger.size() > begun);
        let short = verify(&mut client, &other, "short", 1, "2+2");
        assert!(short.body.contains("\"APPROVED\""), "{}", short.body);
        let decided = usize::try_from(fixture.server.ledger.size() - begun).expect("small");
        for thread in threads {
            assert_eq!(thread.join().expect("a thread").status, 200);
        }
        // The short one itself, and not much more than half of the long ones.
        decided <= 1 + LONG / 2 + 1
    };
    assert!((0..20).any(is_first), "a short text waited for long ones, twenty times over");
}
