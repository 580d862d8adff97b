//! Agents, what they may spend, and what operators do about them.

use interlock_core::json::RawJson;
use serde::{Deserialize, Serialize};

use crate::nullable;

/// An agent. Its token is told once, when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    pub did: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub principal_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub status: String,
    pub mode: String,
    pub trust_level: u8,
    pub created_at: String,
    pub permissions: Permissions,
    pub budget: BudgetLimits,
}

/// What an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    pub allowed_engines: Vec<String>,
    pub allowed_tools: Vec<String>,
    pub blocked_tools: Vec<String>,
}

/// What an agent may spend; `null` is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLimits {
    #[serde(deserialize_with = "nullable")]
    pub max_daily_cost_usd: Option<RawJson>,
    #[serde(deserialize_with = "nullable")]
    pub max_cost_per_request_usd: Option<RawJson>,
    #[serde(deserialize_with = "nullable")]
    pub max_requests_per_hour: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub max_requests_per_day: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub max_tokens_per_request: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub max_daily_tokens: Option<u64>,
}

/// Agents, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPage {
    pub agents: Vec<Agent>,
    #[serde(deserialize_with = "nullable")]
    pub next_cursor: Option<String>,
}

/// An agent to be registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlatRegistration {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub principal_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_level: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<RawJson>,
}

/// Why an operator does something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How many texts were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasedTexts {
    pub agent_id: String,
    pub erased: u64,
}

/// What an agent may spend and has spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub cost: CostBudget,
    pub requests: RequestBudget,
    pub tokens: TokenBudget,
}

/// In dollars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostBudget {
    #[serde(deserialize_with = "nullable")]
    pub max_daily_usd: Option<RawJson>,
    pub current_daily_usd: RawJson,
    #[serde(deserialize_with = "nullable")]
    pub max_per_request_usd: Option<RawJson>,
}

/// In requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestBudget {
    #[serde(deserialize_with = "nullable")]
    pub max_per_hour: Option<u64>,
    pub current_hour: u64,
    #[serde(deserialize_with = "nullable")]
    pub max_per_day: Option<u64>,
    pub current_day: u64,
}

/// In tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudget {
    #[serde(deserialize_with = "nullable")]
    pub max_per_request: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub max_daily: Option<u64>,
    pub current_daily: u64,
}

/// An agent asks for more trust.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    pub request: String,
    pub to_level: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_level: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
}

/// It waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustAnswer {
    pub decision: String,
    pub approval_id: String,
    pub expires_at: String,
}
