//! Requests that nobody should send: each gets a 4xx with a code, and consumes nothing.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use interlock_core::bundle::Bundle;
use interlock_testkit::gate::{TestAgent, register};
use interlock_testkit::service::{Answer, OPERATOR_KEY, Server, read_answer};

fn start() -> (Server, TestAgent) {
    let server = Server::in_memory(Bundle::built_in().expect("a bundle"));
    let agent = register(&mut server.client(), r#"{"name":"a","type":"supervised","principal_id":"p"}"#);
    (server, agent.expect("an agent"))
}

const CONTEXT: &str = r#""context":{"conversation_id":"c","step_number":1}"#;

/// The step must still be free, and nothing charged.
fn nothing_was_consumed(server: &Server, agent: &TestAgent) {
    let mut client = server.client();
    let headers = [("x-agent-token", agent.token.as_str())];
    let budget = client.send("GET", &format!("/agents/{}/budget", agent.id), &headers, "").expect("an answer");
    assert!(budget.body.contains(r#""current_hour":0"#), "{}", budget.body);
    let body = format!(r#"{{"action":{{"type":"calculate","query":"1+1"}},{CONTEXT}}}"#);
    let answer = client.send("POST", &format!("/agents/{}/verify", agent.id), &headers, &body).expect("an answer");
    assert!(answer.body.contains("APPROVED"), "{}", answer.body);
}

fn has_code(answer: &Answer, status: u16, code: &str) {
    assert!(answer.status == status && answer.body.contains(code), "{} {}", answer.status, answer.body);
    assert!(answer.head.contains("application/json"), "{}", answer.head);
}

#[test]
fn bodies() {
    let (server, agent) = start();
    let deep = format!(
        r#"{{"action":{{"type":"calculate","parameters":{{"a":{}1{}}}}},{CONTEXT}}}"#,
        "[".repeat(70),
        "]".repeat(70)
    );
    let huge = format!(r#"{{"action":{{"type":"calculate","query":"{}"}},{CONTEXT}}}"#, "1".repeat(1 << 20));
    let wide = format!(r#"{{"action":{{"type":"calculate","parameters":{{"a":[{}1]}}}}}}"#, "1,".repeat(400_000));
    let cases: Vec<(Vec<u8>, u16, &str)> = vec![
        (b"".to_vec(), 400, "INTERLOCK-REQUEST-001"),
        (b"{".to_vec(), 400, "INTERLOCK-REQUEST-001"),
        (b"[]".to_vec(), 400, "INTERLOCK-REQUEST-001"),
        (b"null".to_vec(), 400, "INTERLOCK-REQUEST-001"),
        (b"\xff\xfe{}".to_vec(), 400, "INTERLOCK-REQUEST-001"),
        (b"\xef\xbb\xbf{}".to_vec(), 400, "INTERLOCK-REQUEST-001"),
        (deep.into_bytes(), 400, "INTERLOCK-REQUEST-001"),
        (huge.into_bytes(), 413, "INTERLOCK-REQUEST-003"),
        (wide.into_bytes(), 400, "QWED-AGENT-CTX-001"),
    ];
    for (body, status, code) in cases {
        let mut client = server.client();
        let headers = [("x-agent-token", agent.token.as_str())];
        let answer = client.send_bytes("POST", &format!("/agents/{}/verify", agent.id), &headers, &body);
        has_code(&answer.expect("an answer"), status, code);
    }
    nothing_was_consumed(&server, &agent);
}

#[test]
fn paths_and_headers() {
    let (server, agent) = start();
    let mut client = server.client();
    let long = "a".repeat(5_000);
    let body = format!(r#"{{"action":{{"type":"calculate","query":"1+1"}},{CONTEXT}}}"#);
    let token = ("x-agent-token", agent.token.as_str());
    for (method, path, headers, status, code) in [
        ("POST", format!("/agents/{long}/verify"), vec![token], 404, "QWED-AGENT-001"),
        ("POST", "/agents/%FF/verify".to_owned(), vec![token], 400, "INTERLOCK-REQUEST-001"),
        ("POST", "/agents/%00/verify".to_owned(), vec![token], 404, "QWED-AGENT-001"),
        ("GET", format!("/agents/{}/verify", agent.id), vec![token], 405, "INTERLOCK-REQUEST-005"),
        ("POST", "/nowhere".to_owned(), vec![token], 404, "INTERLOCK-REQUEST-005"),
        ("POST", format!("/agents/{}/verify", agent.id), vec![], 401, "QWED-AGENT-002"),
        ("POST", format!("/agents/{}/verify", agent.id), vec![("x-agent-token", "t\u{f6}ken")], 401, "QWED-AGENT-002"),
        ("POST", format!("/agents/{}/verify", agent.id), vec![("authorization", "Basic abc")], 401, "QWED-AGENT-002"),
        ("POST", format!("/agents/{}/verify", agent.id), vec![("authorization", "")], 401, "QWED-AGENT-002"),
        (
            "POST",
            format!("/agents/{}/verify", agent.id),
            vec![token, ("idempotency-key", "")],
            400,
            "INTERLOCK-REQUEST-001",
        ),
        (
            "POST",
            format!("/agents/{}/verify", agent.id),
            vec![token, ("idempotency-key", &long)],
            400,
            "INTERLOCK-REQUEST-001",
        ),
        ("GET", format!("/agents/{}/activity?limit=0", agent.id), vec![token], 400, "INTERLOCK-REQUEST-001"),
        ("GET", format!("/agents/{}/activity?limit=1001", agent.id), vec![token], 400, "INTERLOCK-REQUEST-001"),
        ("GET", format!("/agents/{}/activity?cursor=99999", agent.id), vec![token], 400, "INTERLOCK-REQUEST-001"),
        (
            "GET",
            format!("/agents/{}/activity?cursor={}", agent.id, "0".repeat(32)),
            vec![token],
            404,
            "INTERLOCK-REQUEST-001",
        ),
        ("GET", format!("/agents/{}/activity?page=2", agent.id), vec![token], 400, "INTERLOCK-REQUEST-002"),
        ("GET", "/metrics".to_owned(), vec![], 401, "INTERLOCK-AUTH-001"),
        ("GET", "/metrics".to_owned(), vec![token], 401, "INTERLOCK-AUTH-001"),
        ("POST", "/agents/register".to_owned(), vec![("x-api-key", "wrong")], 401, "INTERLOCK-AUTH-001"),
    ] {
        let sent = if method == "GET" { "" } else { &body };
        let answer =
            client.send(method, &path, &headers, sent).unwrap_or_else(|error| panic!("{method} {path:.60}: {error}"));
        has_code(&answer, status, code);
    }
    nothing_was_consumed(&server, &agent);
}

#[test]
fn another_agents_cursor_shows_nothing() {
    let (server, agent) = start();
    let other = register(&mut server.client(), r#"{"name":"b","type":"supervised","principal_id":"p"}"#).expect("one");
    nothing_was_consumed(&server, &agent);
    for step in 2..=3 {
        let body = format!(
            r#"{{"action":{{"type":"calculate","query":"{step}+1"}},"context":{{"conversation_id":"x","step_number":{step}}}}}"#
        );
        let path = format!("/agents/{}/verify", agent.id);
        server.client().send("POST", &path, &[("x-agent-token", &agent.token)], &body).expect("an answer");
    }
    let path = format!("/agents/{}/activity?limit=1", agent.id);
    let page = server.client().send("GET", &path, &[("x-agent-token", &agent.token)], "").expect("an answer");
    let cursor =
        page.body.split("\"next_cursor\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a cursor");
    let path = format!("/agents/{}/activity?cursor={cursor}", other.id);
    let answer = server.client().send("GET", &path, &[("x-agent-token", &other.token)], "").expect("an answer");
    assert_eq!(answer.status, 404, "{}", answer.body);
    assert!(!answer.body.contains(&agent.id) && !answer.body.contains("calculate"), "{}", answer.body);
}

#[test]
fn slow_clients_are_let_go() {
    let (server, agent) = start();
    let start = Instant::now();
    let head = format!("POST /agents/{}/verify HTTP/1.1\r\nhost: x\r\nx-agent-token: {}\r\n", agent.id, agent.token);
    let mut slow_head = TcpStream::connect(server.address).expect("a connection");
    slow_head.write_all(head.as_bytes()).expect("sent");
    let mut slow_body = TcpStream::connect(server.address).expect("a connection");
    slow_body.write_all(format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).expect("sent");
    for stream in [&slow_head, &slow_body] {
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    }
    let answer = read_answer(&mut BufReader::new(slow_body)).expect("an answer");
    has_code(&answer, 408, "INTERLOCK-REQUEST-006");
    // A head that never ends is not worth an answer; the connection is closed.
    let ended = read_answer(&mut BufReader::new(slow_head));
    assert!(ended.as_ref().is_err() || ended.as_ref().is_ok_and(|answer| answer.status == 408), "{ended:?}");
    assert!(start.elapsed() < Duration::from_secs(18), "it took {:?}", start.elapsed());
    nothing_was_consumed(&server, &agent);
}

#[test]
fn a_secret_that_stands_twice_is_one_secret() {
    let (server, agent) = start();
    let other = register(&mut server.client(), r#"{"name":"b","type":"supervised","principal_id":"p"}"#).expect("one");
    let (own, foreign) = (agent.token.as_str(), other.token.as_str());
    let (own_bearer, foreign_bearer) = (format!("Bearer {own}"), format!("Bearer {foreign}"));
    let (key, key_bearer) = (OPERATOR_KEY, format!("Bearer {OPERATOR_KEY}"));
    let (verify, body) = (
        format!("/agents/{}/verify", agent.id),
        format!(r#"{{"action":{{"type":"calculate","query":"1+1"}},{CONTEXT},"options":{{"dry_run":true}}}}"#),
    );
    let record = format!("/agents/{}", agent.id);
    type Headers<'a> = Vec<(&'a str, &'a str)>;
    #[rustfmt::skip]
    let cases: [(&str, &str, Headers<'_>, u16); 15] = [
        ("POST", &verify, vec![("x-agent-token", own), ("x-agent-token", foreign)], 401),
        ("POST", &verify, vec![("x-agent-token", foreign), ("x-agent-token", own)], 401),
        ("POST", &verify, vec![("x-agent-token", own), ("x-agent-token", "")], 401),
        ("POST", &verify, vec![("authorization", &own_bearer), ("authorization", &foreign_bearer)], 401),
        ("POST", &verify, vec![("authorization", &own_bearer), ("authorization", "Basic eDp5")], 401),
        ("POST", &verify, vec![("x-agent-token", own), ("authorization", &foreign_bearer)], 401),
        ("POST", &verify, vec![("x-agent-token", own), ("idempotency-key", "a"), ("idempotency-key", "b")], 400),
        ("POST", &verify, vec![("x-agent-token", own), ("x-agent-token", own)], 200),
        ("POST", &verify, vec![("authorization", &own_bearer), ("authorization", &own_bearer)], 200),
        ("GET", &record, vec![("x-agent-token", own), ("x-agent-token", foreign)], 401),
        ("GET", "/agents", vec![("x-api-key", key), ("x-api-key", "other")], 401),
        ("GET", "/agents", vec![("x-api-key", "other"), ("x-api-key", key)], 401),
        ("GET", "/agents", vec![("authorization", &key_bearer), ("authorization", &own_bearer)], 401),
        ("GET", "/agents", vec![("x-api-key", key), ("x-api-key", key)], 200),
        ("GET", "/agents", vec![("authorization", &key_bearer), ("x-api-key", key)], 200),
    ];
    for (method, path, headers, status) in cases {
        let sent = if method == "GET" { "" } else { body.as_str() };
        let answer = server.client().send(method, path, &headers, sent).expect("an answer");
        assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.body);
    }
    nothing_was_consumed(&server, &agent);
}

/// A request that never ends: its head, and a part of the body it speaks of.
fn begin(server: &Server, path: &str, headers: &str, length: usize, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(8))).expect("a socket");
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(&vec![b' '; sent]).expect("sent");
    stream
}

/// Asks until the answer has this status; for what happens a moment later.
fn until(status: u16, mut ask: impl FnMut() -> Answer) -> Answer {
    let start = Instant::now();
    loop {
        let answer = ask();
        if answer.status == status {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(8), "{} {}", answer.status, answer.body);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn bodies_of_nobody_known_have_little_room() {
    let (server, agent) = start();
    let verify = format!("/agents/{}/verify", agent.id);
    let ask = |step: u32, padding: usize, in_header: bool| {
        let token = if in_header { String::new() } else { format!(r#","agent_token":"{}""#, agent.token) };
        let body = format!(
            r#"{{"action":{{"type":"calculate","query":"1+{step}"}},"context":{{"conversation_id":"r{step}","step_number":1}}{token}{}}}"#,
            " ".repeat(padding)
        );
        let header = [("x-agent-token", agent.token.as_str())];
        server.client().send("POST", &verify, if in_header { &header } else { &[] }, &body).expect("an answer")
    };
    // A token in a large body counts while there is room.
    has_code(&ask(1, 900_000, false), 200, "APPROVED");
    // 32 MiB in units of 16 KiB, the first of each body free: 32 times 63 units, and once 32.
    let mut waiting: Vec<TcpStream> = (0..32).map(|_| begin(&server, &verify, "", 1 << 20, (1 << 20) - 1)).collect();
    waiting.push(begin(&server, &verify, "", 1 << 20, 33 * 16 * 1024));
    let mut step = 1;
    let mut next = |padding, in_header| {
        step += 1;
        ask(step, padding, in_header)
    };
    // One that found no room for its rest has given up all of it: another takes its place, unit by unit.
    let full = until(503, || {
        waiting.push(begin(&server, &verify, "", 40_000, 30_000));
        next(20_000, false)
    });
    has_code(&full, 503, "INTERLOCK-FAULT-004");
    assert!(full.head.to_ascii_lowercase().contains("retry-after"), "{}", full.head);
    // Small ones pass all the same, and so does whoever says at once who it is.
    has_code(&next(10_000, false), 200, "APPROVED");
    has_code(&next(900_000, true), 200, "APPROVED");
    drop(waiting);
    has_code(&until(200, || next(20_000, false)), 200, "APPROVED");
}

#[test]
fn large_bodies_of_nobody_known_are_counted_before_they_are_there() {
    let bundle = "format = 1\n[limits]\nrequests_per_minute_per_key = 3\n";
    let server = Server::in_memory(Bundle::load(bundle, &std::collections::BTreeMap::new(), false).expect("a bundle"));
    let agent = register(&mut server.client(), r#"{"name":"a","type":"supervised","principal_id":"p"}"#);
    let verify = format!("/agents/{}/verify", agent.expect("an agent").id);
    let _waiting: Vec<TcpStream> = (0..3).map(|_| begin(&server, &verify, "", 40_000, 30_000)).collect();
    std::thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    let refused = read_answer(&mut BufReader::new(begin(&server, &verify, "", 40_000, 30_000))).expect("an answer");
    has_code(&refused, 429, "INTERLOCK-RATE-001");
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
}

#[test]
fn a_wrong_token_is_refused_before_the_body() {
    let (server, agent) = start();
    for route in ["verify", "tools/send_email", "trust", "executions"] {
        let path = format!("/agents/{}/{route}", agent.id);
        for headers in ["x-agent-token: wrong\r\n", "authorization: Bearer wrong\r\n"] {
            let start = Instant::now();
            let stream = begin(&server, &path, headers, 100_000, 10);
            has_code(&read_answer(&mut BufReader::new(stream)).expect("an answer"), 401, "QWED-AGENT-002");
            assert!(start.elapsed() < Duration::from_secs(5), "{route} took {:?}", start.elapsed());
        }
    }
}

#[test]
fn heads_have_an_end() {
    let (server, agent) = start();
    let long = "a".repeat(100_000);
    let headers = [("x-agent-token", agent.token.as_str()), ("x-long", &long)];
    // The connection is closed on what was not read, so that the answer may be lost on the way.
    let answer = server.client().send("GET", &format!("/agents/{}", agent.id), &headers, "");
    assert!(answer.as_ref().map_or(true, |answer| answer.status == 431), "{answer:?}");
    nothing_was_consumed(&server, &agent);
}
