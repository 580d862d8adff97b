//! Sessions from outside.

mod conformance;
mod hostile;

use interlock_core::json::{self, Json, Limits};

/// A line that a session sent: one line, strict JSON, and messages of JSON-RPC.
fn sent(line: &str) -> Json {
    assert!(!line.contains(['\n', '\r']), "a line holds no line break: {line}");
    let document = json::parse(line, &Limits::CONFIG).unwrap_or_else(|error| panic!("{error}: {line}"));
    let message = Json::of(document.root());
    let single = [message.clone()];
    let messages = if let Json::Array(messages) = &message { messages.as_slice() } else { &single };
    for message in messages {
        let members = message.as_object().expect("a message is an object");
        assert_eq!(members.get("jsonrpc").and_then(Json::as_str), Some("2.0"), "{line}");
        assert!(matches!(members.get("id"), Some(Json::Null | Json::String(_) | Json::Number(_))), "{line}");
        assert_eq!(members.len(), 3, "{line}");
        let (result, error) = (members.get("result"), members.get("error"));
        assert!(result.is_some() != error.is_some(), "{line}");
        assert!(error.is_some() || members.get("id") != Some(&Json::Null), "{line}");
    }
    message
}
