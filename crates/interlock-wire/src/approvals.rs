//! Tickets: what waits for a person, and what a person decided.

use interlock_core::json::RawJson;
use serde::{Deserialize, Serialize};

use crate::nullable;

/// A ticket: an action, a transition, or a request for trust.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    pub approval_id: String,
    pub status: String,
    pub kind: String,
    pub agent_id: String,
    pub agent_name: String,
    pub principal_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<RawJson>,
    pub why: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_query: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_intent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<AskedTransition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<AskedTrust>,
    pub opened_at: String,
    pub expires_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub spent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<String>,
}

/// A transition that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedTransition {
    pub run_id: String,
    pub workflow: String,
    pub event: String,
    pub from: String,
    pub to: String,
}

/// More trust that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedTrust {
    pub from_level: u8,
    pub to_level: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    pub evidence: Merits,
}

/// What speaks for an agent, counted from the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merits {
    pub rulings: u64,
    pub counted: u64,
    pub denied: u64,
    pub violations: u64,
    pub budget_exceeded: u64,
    pub executions_succeeded: u64,
    pub executions_failed: u64,
    pub since: String,
    pub cut: bool,
}

/// Tickets, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketPage<T = Ticket> {
    pub approvals: Vec<T>,
    #[serde(deserialize_with = "nullable")]
    pub next_cursor: Option<String>,
}
