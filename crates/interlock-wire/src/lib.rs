//! Requests and answers of the service as types: written by whoever sends them, read by whoever gets them. Pure, and
//! without a rule: words such as a status stay texts here, and what may be said is the core's to decide.
//!
//! A type and its schema are written once (`shape.rs`); the document that describes the service is made from them and
//! the table of routes. Members stand in the order in which they are written.
//!
//! Answers are read with what they may gain later: a member that is not known is passed over. Requests are read by the
//! service itself, strictly, in `interlock-http`, by the names of members that the types have.
//!
//! | to find | look in |
//! |---|---|
//! | how a type is written, and what a schema says | `shape.rs`, `schema.rs` |
//! | words, ids and numbers | `words.rs` |
//! | requests for rulings, rulings, executions | `rulings.rs` |
//! | what is answered to what gets no ruling | `errors.rs` |
//! | agents, their budgets, what is done about them | `agents.rs` |
//! | tickets | `approvals.rs` |
//! | lists of rulings | `activity.rs` |
//! | keys of operators, and of attestations | `keys.rs` |
//! | entries and proofs | `audit.rs` |
//! | the state guard | `state.rs` |
//! | coding agents: runs, refusals, allowances | `runs.rs` |
//! | workflows by name | `workflows.rs` |
//! | what runner and daemon say to each other | `exec.rs` |
//! | kept states: changes, undo, snapshots | `keep.rs` |
//! | what commands read beside all that | `local.rs` |
//! | the description: routes, parameters, refusals, examples | `document.rs` |

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    clippy::float_arithmetic
)]
#![expect(missing_docs, reason = "members that speak for themselves have no description of their own")]

#[macro_use]
mod shape;

mod activity;
mod agents;
mod approvals;
mod audit;
mod document;
mod errors;
mod exec;
mod keep;
mod keys;
mod local;
mod rulings;
mod runs;
mod schema;
mod state;
mod words;
mod workflows;

pub use activity::{Activity, ActivityPage, ActivitySummary, Repeats, ReportedExecution};
pub use agents::{
    Agent, AgentPage, Budget, BudgetInput, BudgetLimits, CostBudget, ErasedTexts, FlatRegistration, NestedRegistration,
    Permissions, PermissionsInput, ReasonRequest, RequestBudget, TokenBudget, TrustAnswer, TrustRequest,
};
pub use approvals::{AskedTransition, AskedTrust, Merits, Ticket, TicketPage, ToolCall};
pub use audit::{EntryPage, EntryRow, Proof};
pub use document::document;
pub use errors::{Error, ErrorAnswer, LimitFigures, StaleDetails};
pub use exec::{ExecEnd, ExecForm, ExecLeft, ExecReached, ExecStart, ExecStarted};
pub use interlock_core::json::RawJson;
pub use keep::{
    ChangedFile, Changes, KeptState, KeptStates, LeftOutPlace, PruneRequest, PrunedStates, UndoAnswer, UndoRequest,
    UndoStep,
};
pub use keys::{Key, KeyList, KeyRequest, RotateRequest, RotatedKey};
pub use local::{About, HookAnswer, Info, Running};
pub use rulings::{
    Action, BudgetRemaining, Charged, Context, CorrectedAction, ExecutionAnswer, ExecutionRequest, Options,
    RiskAssessment, Ruling, ToolRequest, Usage, Verification, VerifyRequest,
};
pub use runs::{
    AllowRequest, Allowance, CallDecision, DecisionCheck, DisallowRequest, ForceRequest, Grounds, PauseRequest,
    RefusedCall, RefusedCalls, Run, RunEvent, RunHistory, RunPage, RunState, StartRequest, WayOut,
};
pub use state::{DeveloperFields, InlineGuard, StateAnswer, StateRequest};
pub use workflows::{RegisterRequest, RegisteredWorkflow, WorkflowFinding, WorkflowPage};

use interlock_core::json::{self, LoadError};
use serde::{Deserialize, Deserializer, Serialize};

/// The one character of ASCII that needs an escape and has none in plain JSON.
const DELETE: u8 = 0x7f;
/// What most messages need, so that one allocation holds them.
const USUAL_BYTES: usize = 768;

/// A message as JSON, in ASCII: what is not stands as an escape, so that no terminal or log does anything but show it.
/// Nothing here can fail to be written: there is no float, and every key is a text.
pub fn write<T: Serialize + ?Sized>(message: &T) -> String {
    let text = json::to_string(message, USUAL_BYTES).unwrap_or_default();
    if text.bytes().all(|byte| byte < DELETE) { text } else { escaped(&text) }
}

/// The same JSON: beyond ASCII there is nothing but parts of strings.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character < char::from(DELETE) {
            out.push(character);
        } else {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

/// What can be read from JSON.
pub trait Message: for<'de> Deserialize<'de> {}
impl<T: for<'de> Deserialize<'de>> Message for T {}

/// A message from JSON.
pub fn read<T: Message>(text: &str) -> Result<T, LoadError> {
    json::from_str(text)
}

/// A member that is always there, and may be `null`.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_ascii_and_reads_as_it_was() {
        let key =
            KeyRequest { name: "ü \u{202e}\u{1f600}\u{7f}\"".to_owned(), role: "admin".to_owned(), max_trust: None };
        let text = write(&key);
        assert_eq!(text, r#"{"name":"\u00fc \u202e\ud83d\ude00\u007f\"","role":"admin"}"#);
        assert_eq!(read::<KeyRequest>(&text).as_ref(), Ok(&key));
    }

    #[test]
    fn what_is_json_already_stands_as_it_is_and_what_is_not_known_is_passed_over() {
        let text = r#"{"timestamp":"t","success":true,"cost_usd":0.10,"tokens":7}"#;
        let report: ReportedExecution = read(&text.replacen('{', r#"{"later":[1.5],"#, 1)).unwrap();
        assert_eq!(report.cost_usd.text(), "0.10");
        assert_eq!(write(&report), text);
        assert!(read::<ReportedExecution>(r#"{"timestamp":"t"}"#).is_err());
    }
}
