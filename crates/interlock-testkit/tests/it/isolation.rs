//! What takes long holds up nobody else: shown by who is answered while every turn is taken, not by how long it takes.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use interlock_core::bundle::Bundle;
use interlock_http::Turn;
use interlock_testkit::gate::{TestAgent, register};
use interlock_testkit::service::{Answer, Client, OPERATOR_KEY, Server};

const ADMIN: [(&str, &str); 1] = [("x-api-key", OPERATOR_KEY)];
/// A short text that is much work, and one that is little.
const MUCH: &str = "3000! = 3000!";
const LITTLE: &str = "2 + 2 = 4";
/// How many requests of one agent may wait.
const WAITING_MAX: usize = 32;

fn server(bundle: &str) -> Server {
    Server::in_memory(Bundle::load(bundle, &BTreeMap::new(), false).expect("a bundle"))
}

fn agent(server: &Server, name: &str) -> TestAgent {
    let body = format!(r#"{{"name":"{name}","type":"supervised","principal_id":"p"}}"#);
    register(&mut server.client(), &body).expect("an agent")
}

fn calculate(client: &mut Client, agent: &TestAgent, query: &str, step: usize, dry_run: bool) -> Answer {
    let body = format!(
        r#"{{"action":{{"type":"calculate","query":"{query}"}},"context":{{"conversation_id":"c{step}","step_number":1}},
            "options":{{"dry_run":{dry_run}}}}}"#
    );
    let token = [("x-agent-token", agent.token.as_str())];
    client.send("POST", &format!("/agents/{}/verify", agent.id), &token, &body).expect("an answer")
}

/// Does something beside the test; its answer comes through the channel.
fn beside(work: impl FnOnce() -> Answer + Send + 'static) -> Receiver<Answer> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let _ = sender.send(work());
    });
    receiver
}

fn taken(server: &Server) -> Vec<Turn> {
    std::iter::from_fn(|| server.service.agents_turns().try_take()).collect()
}

/// Waits until so many requests wait for a turn.
fn until_waiting(server: &Server, count: usize) {
    while server.service.agents_turns().waiting() != count {
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn everybody_goes_on_while_an_agents_work_waits() {
    let server = server("");
    let [busy, other, bad] = ["busy", "other", "bad"].map(|name| agent(&server, name));
    let (mut client, held) = (server.client(), taken(&server));
    assert!(!held.is_empty());
    // Short and much work, a dry run of the same, long and little work, and a look at a long history.
    let long = format!("{}1", "0 + ".repeat(2_000));
    let address = server.address;
    let waiting: Vec<_> = [(MUCH.to_owned(), false), (MUCH.to_owned(), true), (long, false)]
        .into_iter()
        .enumerate()
        .map(|(step, (query, dry_run))| {
            let busy = busy.clone();
            beside(move || calculate(&mut Client::new(address), &busy, &query, step, dry_run))
        })
        .collect();
    let reading = {
        let (path, token) = (format!("/agents/{}/activity?from=2020-01-01T00:00:00Z", busy.id), busy.token.clone());
        beside(move || Client::new(address).send("GET", &path, &[("x-agent-token", &token)], "").expect("an answer"))
    };
    until_waiting(&server, 4);

    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(client.send("GET", path, &[], "").expect("an answer").status, 200, "{path}");
    }
    for path in ["/agents", "/activity?from=2020-01-01T00:00:00Z", "/approvals", "/metrics", "/audit/entries", "/runs"]
    {
        assert_eq!(client.send("GET", path, &ADMIN, "").expect("an answer").status, 200, "{path}");
    }
    let suspended = client.send("POST", &format!("/agents/{}/suspend", bad.id), &ADMIN, "").expect("an answer");
    assert_eq!(suspended.status, 200, "{}", suspended.body);
    for step in 0..10 {
        let answer = calculate(&mut client, &other, LITTLE, step, false);
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
        // The same agent's little requests do not wait for its large ones either.
        let answer = calculate(&mut client, &busy, LITTLE, 100 + step, false);
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
    }
    for answer in waiting.iter().chain([&reading]) {
        assert!(matches!(answer.try_recv(), Err(TryRecvError::Empty)), "it was answered without a turn");
    }
    drop(held);
    for answer in waiting {
        let answer = answer.recv().expect("an answer");
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
    }
    assert_eq!(reading.recv().expect("an answer").status, 200);
    assert_eq!(server.service.agents_turns().waiting(), 0);
}

#[test]
fn an_agent_has_only_so_many_requests_waiting_and_leaves_room_for_others() {
    let server = server("");
    let [busy, calm] = ["busy", "calm"].map(|name| agent(&server, name));
    let (held, address) = (taken(&server), server.address);
    let ask = |agent: &TestAgent, step: usize| {
        let agent = agent.clone();
        beside(move || calculate(&mut Client::new(address), &agent, MUCH, step, true))
    };
    let waiting: Vec<_> = (0..WAITING_MAX)
        .map(|step| {
            let asked = ask(&busy, step);
            until_waiting(&server, step + 1);
            asked
        })
        .collect();
    let size = server.ledger.size();
    let refused = calculate(&mut server.client(), &busy, MUCH, WAITING_MAX, false);
    assert_eq!(refused.status, 429, "{}", refused.body);
    assert!(
        refused.body.starts_with(r#"{"decision":"DENIED","error":{"code":"INTERLOCK-RATE-001""#),
        "{}",
        refused.body
    );
    assert!(refused.head.to_ascii_lowercase().contains("\nretry-after: 1\r\n"), "{}", refused.head);
    assert_eq!(server.ledger.size(), size, "what is refused is not recorded");
    // Another agent still gets a place. In which order they are served is shown beside the turns themselves.
    let theirs = ask(&calm, 0);
    until_waiting(&server, WAITING_MAX + 1);
    drop(held);
    for answer in waiting.into_iter().chain([theirs]) {
        assert!(answer.recv().expect("an answer").body.contains("APPROVED"));
    }
}

#[test]
fn work_is_metered_and_little_requests_are_free() {
    // Ten units to spare, and one more each second: one large request, then none for a long time.
    let server = server("[limits]\nfuel_per_second_per_agent = 1\n");
    let [busy, other] = ["busy", "other"].map(|name| agent(&server, name));
    let mut client = server.client();
    let first = calculate(&mut client, &busy, MUCH, 0, true);
    assert!(first.body.contains("APPROVED"), "{}", first.body);
    let size = server.ledger.size();
    let long = format!("{}1", "0 + ".repeat(2_000));
    for (step, (query, dry_run)) in [(MUCH, true), (MUCH, false), (long.as_str(), false)].into_iter().enumerate() {
        let refused = calculate(&mut client, &busy, query, step, dry_run);
        assert_eq!(refused.status, 429, "{}", refused.body);
        assert!(refused.body.contains("INTERLOCK-RATE-001"), "{}", refused.body);
        let head = refused.head.to_ascii_lowercase();
        let wait = head.lines().find_map(|line| line.strip_prefix("retry-after: ")).expect("how long");
        assert!(wait.trim().parse::<u32>().expect("seconds") > 60, "{}", refused.head);
    }
    let path = format!("/agents/{}/activity", busy.id);
    let token = [("x-agent-token", busy.token.as_str())];
    assert_eq!(client.send("GET", &path, &token, "").expect("an answer").status, 429);
    assert_eq!(server.ledger.size(), size, "what is refused is not recorded");
    for step in 0..5 {
        let answer = calculate(&mut client, &busy, LITTLE, 10 + step, false);
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
    }
    // Others have accounts of their own, and operators none.
    assert!(calculate(&mut client, &other, MUCH, 0, false).body.contains("APPROVED"));
    for _ in 0..3 {
        assert_eq!(client.send("GET", &path, &ADMIN, "").expect("an answer").status, 200);
    }
}
