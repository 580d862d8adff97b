//! Lines that nobody means well with: always one error or nothing, never a panic, and never a question to the daemon.

use interlock_core::json::Json;
use interlock_mcp::{LINE_BYTES_MAX, Output, PREFIX, PREFIX_BYTES_MAX, PrefixError, Session};

use crate::sent;

fn open(revision: &str) -> Session {
    let mut session = Session::new(PREFIX, "0").unwrap();
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}"}}}}"#);
    assert_eq!(session.receive(line.as_bytes()).len(), 1);
    session
}

fn codes(outputs: &[Output]) -> Vec<String> {
    let code = |output: &Output| match output {
        Output::Send(line) => {
            let message = sent(line);
            message.at(&["error".to_owned(), "code".to_owned()]).map_or_else(|| "none".to_owned(), Json::canonical)
        }
        Output::Call { .. } => "call".to_owned(),
    };
    outputs.iter().map(code).collect()
}

#[test]
fn hostile_lines_are_answered_with_one_error() {
    let ping = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#);
    let nested = |depth: usize| ping(&format!(r#"{{"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth)));
    let batch = |count: usize| format!("[{}]", vec![ping("{}"); count].join(","));
    let padded = |bytes: usize| {
        let message = ping(r#"{"x":""}"#);
        message.replace(r#""x":""#, &format!(r#""x":"{}"#, "y".repeat(bytes - message.len())))
    };
    #[rustfmt::skip]
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("as long as a line may be", padded(LINE_BYTES_MAX).into(), "none"),
        ("one byte longer", padded(LINE_BYTES_MAX + 1).into(), "-32600"),
        ("50 MB", padded(50_000_000).into(), "-32600"),
        ("50 MB of nothing", vec![b' '; 50_000_000], "-32600"),
        ("nested as deep as allowed", nested(62).into(), "none"),
        ("one deeper", nested(63).into(), "-32700"),
        ("a million brackets", vec![b'['; 1_000_000], "-32700"),
        ("a million objects", br#"{"a":"#.repeat(500_000), "-32700"),
        ("a batch of 10,000", batch(10_000).into(), "-32600"),
        ("a batch of zeros", format!("[{}0]", "0,".repeat(100_000)).into(), "-32600"),
        ("not UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\xffng\"}".to_vec(), "-32700"),
        ("overlong UTF-8", b"{\"a\":\"\xc0\x80\"}".to_vec(), "-32700"),
        ("a NUL", b"{\"jsonrpc\":\"2.0\",\0\"id\":1}".to_vec(), "-32700"),
        ("UTF-16", "{\0}\0".into(), "-32700"),
        ("a byte order mark", format!("\u{feff}{}", ping("{}")).into(), "-32700"),
        ("a key twice", br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#.to_vec(), "-32700"),
        ("a key twice, deep", ping(r#"{"a":{"b":1,"\u0062":2}}"#).into(), "-32700"),
        ("a number without end", format!("{{\"id\":{}}}", "9".repeat(1_000_000)).into(), "-32700"),
        ("200,000 keys", ping(&format!("{{{}\"z\":0}}", (0..200_000).map(|n| format!("\"k{n}\":0,")).collect::<String>())).into(), "none"),
    ];
    for revision in ["2025-03-26", "2025-11-25"] {
        for (name, line, expected) in &cases {
            assert_eq!(codes(&open(revision).receive(line)), [*expected], "{name}, {revision}");
        }
    }
}

#[test]
fn errors_hold_nothing_of_the_line() {
    let secret = "s3cr3t-value";
    let lines = [
        format!(r#"{{"{secret}":1,"{secret}":2}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"{secret}":{}{}}}"#, "[".repeat(80), "]".repeat(80)),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping" {secret}"#),
        format!(r#"{{"jsonrpc":"{secret}","id":1,"method":"ping"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":["{secret}"],"method":"ping"}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"interlock_transition","arguments":{{"event":["{secret}"],"data":{{"k":"{secret}"}}}}}}}}"#
        ),
    ];
    for line in lines {
        let outputs = open("2025-11-25").receive(line.as_bytes());
        let [Output::Send(answer)] = outputs.as_slice() else { panic!("{line}: {outputs:?}") };
        assert!(!answer.contains(secret), "{line}: {answer}");
    }
}

/// Every line that differs from a good one in one byte, or stops early: an answer that can be read, or nothing.
#[test]
fn one_wrong_byte_is_never_worse_than_an_error() {
    let good = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"interlock_transition","arguments":{"event":"e","data":{"a":[1]},"expected_revision":3},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    assert_eq!(codes(&Session::new(PREFIX, "0").unwrap().receive(good)), ["call"]);
    let mut lines: Vec<Vec<u8>> = (0..good.len()).map(|end| good[..end].to_vec()).collect();
    for position in 0..good.len() {
        for byte in [0, b'"', b'\\', b'{', b']', b',', b'0', b' ', b'x', 0x80, 0xff] {
            let mut line = good.to_vec();
            line[position] = byte;
            lines.push(line);
        }
    }
    for line in lines {
        let outputs = Session::new(PREFIX, "0").unwrap().receive(&line);
        assert!(outputs.len() <= 1);
        // Whatever became of a member's name, a call that is made asks for what a call may ask for.
        for output in outputs {
            match output {
                Output::Send(line) => drop(sent(&line)),
                Output::Call { request, .. } => {
                    assert!(request.to_json().as_object().unwrap().contains_key("transition"));
                }
            }
        }
    }
}

#[test]
fn a_prefix_is_a_short_name() {
    let longest = "x".repeat(PREFIX_BYTES_MAX);
    for prefix in ["interlock", "statewright", "a-b_9", &longest] {
        assert!(Session::new(prefix, "0").is_ok(), "{prefix}");
    }
    for prefix in ["", "a b", "a.b", "ä", "a/b", "a\n", &format!("{longest}x")] {
        assert_eq!(Session::new(prefix, "0").err(), Some(PrefixError), "{prefix}");
    }
}
