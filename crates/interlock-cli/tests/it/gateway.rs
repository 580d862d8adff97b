//! The gateway as a host starts it: lines on standard input, lines on standard output, and a daemon that is not there
//! or misbehaves.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use interlock_testkit::repository;
use serde_json::{Value, json};

use crate::{interlock, path, run, run_with_input, text};

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const GET_STATE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"interlock_get_state","arguments":{}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

/// What the gateway of a home answers to these lines.
fn answers(home: &Path, input: &[u8]) -> Vec<Value> {
    let output = run_with_input(&["gateway", "--control-only", "--host", "test", "--home", path(home)], input);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

#[test]
fn without_a_daemon_everything_but_an_answer_is_there() {
    let home = tempfile::tempdir().expect("a directory");
    let answers = answers(
        home.path(),
        &lines(&[OPEN, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, GET_STATE, PING]),
    );
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(answers[0]["result"]["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    // A ping may overtake the daemon.
    let result = &answers.iter().find(|answer| answer["id"] == 1).expect("an answer")["result"];
    assert_eq!(result["isError"], true);
    let said = result["content"][0]["text"].as_str().expect("a text");
    assert!(said.starts_with("Not done: the Interlock daemon does not run at "), "{said}");
    assert!(said.contains("nothing was changed") && said.contains("`interlock doctor`"), "{said}");
    assert_eq!(answers.iter().find(|answer| answer["id"] == "p").expect("an answer")["result"], json!({}));
}

#[test]
fn lines_that_cannot_be_read_end_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let mut input = vec![b'x'; 5 << 20];
    input.extend_from_slice(b"\n\xff\xfe\n\n{\"a\":1,\"a\":2}\r\n");
    // The last line needs no end.
    input.extend_from_slice(PING.as_bytes());
    let answers = answers(home.path(), &input);
    let codes: Vec<&Value> = answers.iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [&json!(-32600), &json!(-32700), &json!(-32700), &Value::Null], "{answers:?}");
    assert_eq!(answers[3]["id"], "p");
}

#[test]
fn a_client_is_answered_before_it_closes_its_end() {
    let home = tempfile::tempdir().expect("a directory");
    let mut gateway = interlock(&["gateway", "--control-only", "--host", "test", "--prefix", "statewright"])
        .env("INTERLOCK_HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut input = gateway.stdin.take().expect("a pipe");
    let mut output = BufReader::new(gateway.stdout.take().expect("a pipe"));
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut answer = String::new();
    for (sent, part) in [(PING, r#""id":"p""#), (list, "statewright_transition"), (OPEN, "2025-11-25")] {
        input.write_all(&lines(&[sent])).expect("written");
        answer.clear();
        output.read_line(&mut answer).expect("read");
        assert!(answer.contains(part), "{answer}");
    }
    drop(input);
    assert!(gateway.wait().expect("it ends").success());
}

#[test]
fn wrong_usage_and_what_is_not_there_yet() {
    let cases: [(&[&str], &str); 6] = [
        (&["gateway"], "is not there yet"),
        (&["gateway", "--host", "test"], "is not there yet"),
        (&["gateway", "--control-only"], "--host"),
        (&["gateway", "--control-only", "--host", "../x"], "small letters"),
        (&["gateway", "--control-only", "--host", "test", "--prefix", "a b"], "a prefix is"),
        (&["gateway", "--control-only", "--host", "test", "--project", "no/such/directory"], "cannot be resolved"),
    ];
    for (arguments, part) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(text(&output.stderr).contains(part), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// Whoever listens where the daemon should: says this and hangs up. Returns what it was asked, and the result.
fn against(said: Vec<u8>) -> (String, Value) {
    let home = tempfile::tempdir().expect("a directory");
    let run = home.path().join("run");
    fs::create_dir(&run).expect("made");
    fs::write(run.join("token"), "token").expect("written");
    let listener = UnixListener::bind(run.join("interlock.sock")).expect("a socket");
    fs::set_permissions(run.join("interlock.sock"), fs::Permissions::from_mode(0o600)).expect("set");
    let peer = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = BufReader::new(stream.try_clone().expect("cloned"));
        let mut asked = String::new();
        while !asked.ends_with("\r\n\r\n") {
            request.read_line(&mut asked).expect("read");
        }
        let length = asked.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        request.read_exact(&mut body).expect("a body");
        // One that has seen enough hangs up first.
        let _ = stream.write_all(&said);
        asked + text(&body)
    });
    let answers = answers(home.path(), &lines(&[OPEN, GET_STATE]));
    assert_eq!(answers.len(), 2, "{answers:?}");
    (peer.join().expect("asked"), answers[1]["result"].clone())
}

#[test]
fn the_daemon_is_asked_about_this_project_and_host_and_its_error_is_told() {
    let body = r#"{"error":{"code":"INTERLOCK-FAULT-002","message":"the store failed"}}"#;
    let (asked, result) = against(format!("HTTP/1.1 503 X\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into());
    assert!(asked.starts_with("POST /control/test HTTP/1.1\r\n"), "{asked}");
    let project = repository().canonicalize().expect("a path");
    let wanted = json!({"project": path(&project), "request": {"get_state": {}}});
    let body = asked.split("\r\n\r\n").nth(1).expect("a body");
    assert_eq!(serde_json::from_str::<Value>(body).expect("JSON"), wanted);
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"], json!({"code": "INTERLOCK-FAULT-002", "reason": "the store failed"}));
}

#[test]
fn a_daemon_that_misbehaves_never_counts_as_a_yes() {
    let whole = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let cases: [(Vec<u8>, &str); 8] = [
        (Vec::new(), "broke the connection off"),
        (b"nonsense\r\n\r\n".to_vec(), "not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec(), "broke the connection off"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_vec(), "larger than any answer"),
        (b"x".repeat(100_000), "it may have been done or not"),
        (whole("yes").into(), "none that this version understands"),
        (whole(r#"{"state":"a","state":"b","revision":1}"#).into(), "none that this version understands"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(), "answered 404"),
    ];
    for (said, part) in cases {
        let shown = String::from_utf8_lossy(&said[..said.len().min(60)]).into_owned();
        let (_, result) = against(said);
        assert_eq!(result["isError"], true, "{shown}");
        let told = result["content"][0]["text"].as_str().expect("a text");
        assert!(told.contains(part), "{shown}: {told}");
    }
}

#[test]
fn a_socket_that_others_may_write_is_not_asked() {
    let home = tempfile::tempdir().expect("a directory");
    let run = home.path().join("run");
    fs::create_dir(&run).expect("made");
    fs::write(run.join("token"), "token").expect("written");
    let socket = run.join("interlock.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).expect("set");
    let answers = answers(home.path(), &lines(&[OPEN, GET_STATE]));
    assert_eq!(answers[1]["result"]["structuredContent"]["code"], "INTERLOCK-ENV-002", "{answers:?}");
}
