//! Workflows that are registered under their ids.

use interlock_core::json::RawJson;
use serde::{Deserialize, Serialize};

use crate::nullable;

/// The newest workflow under an id; asked for alone, with its text and what the analysis finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredWorkflow {
    pub id: String,
    pub version: u64,
    pub digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub states: u64,
    pub registered_at: String,
    pub registered_by: String,
    pub entry: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<WorkflowFinding>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<RawJson>,
}

/// Workflows, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowPage {
    pub workflows: Vec<RegisteredWorkflow>,
    #[serde(deserialize_with = "nullable")]
    pub next_cursor: Option<String>,
}

/// What the analysis finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowFinding {
    pub severity: String,
    pub name: String,
    pub path: String,
    pub message: String,
    pub help: String,
}

/// A workflow to be registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterRequest {
    pub workflow: RawJson,
}
