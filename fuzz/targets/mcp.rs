//! Any lines, in a session that has batches: no panic; every line that goes out is one line of strict JSON; no call is
//! answered twice or never.
#![no_main]

use interlock_core::json::{self, Limits};
use interlock_mcp::{ControlAnswer, Output, PREFIX, Session};

const OPEN: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Behind a NUL, what the daemon says.
    let (sent, said) = bytes.iter().position(|byte| *byte == 0).map_or((bytes, &[][..]), |at| bytes.split_at(at));
    let said = String::from_utf8_lossy(said.strip_prefix(b"\0").unwrap_or(said));
    let mut session = Session::new(PREFIX, "0").expect("a prefix");
    let mut calls = Vec::new();
    for line in [OPEN].into_iter().chain(sent.split(|byte| *byte == b'\n')) {
        for output in session.receive(line) {
            match output {
                Output::Send(line) => check(&line),
                Output::Call { id, request } => {
                    let text = request.to_json().canonical();
                    assert!(json::parse(&text, &Limits::CONFIG).is_ok(), "a question that is not JSON");
                    calls.push((id, request));
                }
            }
        }
    }
    for (id, request) in calls {
        if let Some(line) = session.answer(id, ControlAnswer::read(&request, &said)) {
            check(&line);
        }
        assert_eq!(session.answer(id, ControlAnswer::read(&request, &said)), None, "answered twice");
    }
    assert!(!session.is_waiting());
});

fn check(line: &str) {
    assert!(!line.contains('\n'), "two lines");
    assert!(json::parse(line, &Limits::CONFIG).is_ok(), "not JSON");
}
