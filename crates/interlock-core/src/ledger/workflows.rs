//! Workflows registered under their ids: what is written down about that, and the row that follows. Runs do not look
//! here: each has the text it was started with in its own entry.

use serde::{Deserialize, Serialize};

use crate::action::{Actor, Millis};
use crate::digest::Digest;
use crate::workflow::Workflow;

/// A workflow was registered, or another one under the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowRegistered {
    /// The workflow's own id.
    pub id: String,
    /// The how manieth under this id it is, from 1.
    pub version: u64,
    /// The SHA-256 of its canonical text.
    pub digest: Digest,
    /// Its canonical text.
    pub workflow: String,
    /// Who.
    pub by: Actor,
}

/// The newest workflow under an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowHead {
    /// The id.
    pub id: String,
    /// The how manieth under this id it is, from 1.
    pub version: u64,
    /// The SHA-256 of its canonical text.
    pub digest: Digest,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many states it has.
    pub states: u64,
    /// The entry that has its text: its number among those of the service.
    pub entry: u64,
    /// When it was registered.
    pub registered_at: Millis,
    /// By whom.
    pub by: Actor,
}

impl WorkflowRegistered {
    /// The entry by which a workflow becomes the newest under its id; none if it is that already.
    pub fn after(newest: Option<&WorkflowHead>, workflow: &Workflow, by: Actor) -> Option<WorkflowRegistered> {
        if newest.is_some_and(|newest| newest.digest == workflow.digest()) {
            return None;
        }
        Some(WorkflowRegistered {
            id: workflow.id().to_owned(),
            version: newest.map_or(0, |newest| newest.version).saturating_add(1),
            digest: workflow.digest(),
            workflow: workflow.text().to_owned(),
            by,
        })
    }
}

impl WorkflowHead {
    /// The row a registration yields. `workflow` is the one its text is of.
    pub fn of(registered: &WorkflowRegistered, workflow: &Workflow, at: Millis, seq: u64) -> WorkflowHead {
        WorkflowHead {
            id: registered.id.clone(),
            version: registered.version,
            digest: registered.digest,
            description: workflow.description().map(str::to_owned),
            states: u64::try_from(workflow.states().count()).unwrap_or(u64::MAX),
            entry: seq,
            registered_at: at,
            by: registered.by.clone(),
        }
    }
}
