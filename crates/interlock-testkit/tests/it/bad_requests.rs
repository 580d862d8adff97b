//! Requests that nobody should send: each gets a 4xx with a code, and consumes nothing.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use interlock_core::bundle::Bundle;
use interlock_testkit::gate::{TestAgent, register};
use interlock_testkit::service::{Answer, Server, read_answer};

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
