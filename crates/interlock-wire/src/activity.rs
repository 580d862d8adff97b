//! What was ruled.

use interlock_core::json::RawJson;
use serde::{Deserialize, Serialize};

use crate::nullable;

/// A ruling, or refusals that were counted and not written out. Only a page of all agents names the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    pub timestamp: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    pub decision_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_type: Option<String>,
    pub decision: String,
    pub enforced: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<String>,
    pub cost_usd: RawJson,
    pub dry_run: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ReportedExecution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

/// Refusals alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    pub count: u64,
    pub likeness: String,
    pub first_at: String,
    pub last_at: String,
    pub digest: String,
}

/// What an agent reported of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedExecution {
    pub timestamp: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_hash: Option<String>,
    pub cost_usd: RawJson,
    pub tokens: u64,
}

/// How many of which there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivitySummary {
    pub total: u64,
    pub approved: u64,
    pub corrected: u64,
    pub pending: u64,
    pub budget_exceeded: u64,
    pub denied: u64,
    pub complete: bool,
}

/// Rulings, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityPage<T = Activity> {
    pub activities: Vec<T>,
    #[serde(deserialize_with = "nullable")]
    pub next_cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ActivitySummary>,
}
