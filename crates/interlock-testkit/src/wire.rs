//! Every answer that a test gets is held to its wire type: read as that and written again, it is the same text. So what
//! is written by hand, for speed or because it is the core's, cannot part from what the document says.

use std::sync::OnceLock;

use interlock_core::json::{self, Limits};
use interlock_wire::{self as wire, Message};
use serde::Serialize;

use crate::service::Answer;

/// Looks at every answer as well, where a test wants that.
pub static LOOK: OnceLock<fn(method: &str, path: &str, answer: &Answer)> = OnceLock::new();

/// Panics if an answer is not what its type writes.
pub fn check(method: &str, path: &str, answer: &Answer) {
    if !answer.head.to_ascii_lowercase().contains("content-type: application/json") {
        return;
    }
    if let Err(reason) = same_by(method, path, answer) {
        panic!("{method} {path}: {} {}\n{reason}", answer.status, answer.body);
    }
    if let Some(look) = LOOK.get() {
        look(method, path, answer);
    }
}

fn same_by(method: &str, path: &str, answer: &Answer) -> Result<(), String> {
    let body = answer.body.as_str();
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let is_ruling = matches!(parts[..], ["agents", _, "verify"] | ["agents", _, "tools", _]);
    if is_ruling && body.contains("\"decision_id\":") {
        return same::<wire::Ruling>(body);
    }
    if answer.status >= 400 {
        return same::<wire::ErrorAnswer>(body);
    }
    match (method, &parts[..]) {
        ("GET", ["agents"]) => same::<wire::AgentPage>(body),
        ("GET", ["agents", _, "budget"]) => same::<wire::Budget>(body),
        ("GET", ["agents", _, "activity"] | ["activity"]) => same::<wire::ActivityPage>(body),
        (_, ["agents", _, "executions"]) => same::<wire::ExecutionAnswer>(body),
        (_, ["agents", _, "trust"]) => same::<wire::TrustAnswer>(body),
        (_, ["agents", _, "erase"]) => same::<wire::ErasedTexts>(body),
        (_, ["agents", ..]) => same::<wire::Agent>(body),
        ("GET", ["approvals"]) => same::<wire::TicketPage>(body),
        (_, ["approvals", ..]) => same::<wire::Ticket>(body),
        ("GET", ["keys"]) => same::<wire::KeyList>(body),
        (_, ["keys", ..]) => same::<wire::Key>(body),
        (_, ["audit", "entries"]) => same::<wire::EntryPage>(body),
        (_, ["audit", "proof"]) => same::<wire::Proof>(body),
        (_, ["state", "verify"]) => same::<wire::StateAnswer>(body),
        (_, ["attestation", "rotate"]) => same::<wire::RotatedKey>(body),
        ("GET", ["workflows"]) => same::<wire::WorkflowPage>(body),
        (_, ["workflows", ..]) => same::<wire::RegisteredWorkflow>(body),
        ("GET", ["runs"]) => same::<wire::RunPage>(body),
        (_, ["runs", _, "refusals"]) => same::<wire::RefusedCalls>(body),
        (_, ["runs", _, "allow"]) => same::<wire::Allowance>(body),
        (_, ["runs", _, "history"]) => same::<wire::RunHistory>(body),
        (_, ["runs", ..]) => same::<wire::Run>(body),
        (_, ["decisions", _]) => same::<wire::CallDecision>(body),
        (_, ["openapi.json"] | [".well-known", "jwks.json"]) => Ok(()),
        _ => Err("an answer without a wire type".to_owned()),
    }
}

/// The same text; or, where a part stands as an agent wrote it or in another order, the same value.
fn same<T: Message + Serialize>(body: &str) -> Result<(), String> {
    let read: T = wire::read(body).map_err(|error| error.to_string())?;
    let written = wire::write(&read);
    let value = |text: &str| {
        let document = json::parse(text, &Limits::CONFIG).map_err(|error| error.to_string())?;
        Ok::<_, String>(json::canonical(document.root()))
    };
    // A proof is written as its file is, whose members stand by its kind.
    let is_other = body.contains("\"corrected_action\":") || body.contains("\"hashes\":");
    if written == body || (is_other && value(&written)? == value(body)?) { Ok(()) } else { Err(written) }
}
