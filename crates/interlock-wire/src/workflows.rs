//! Workflows that are registered under their ids.

use interlock_core::json::RawJson;

use crate::schema::{integer, list, map, of, text, words};
use crate::words::{Digest, Time, WorkflowId};

wire! {
    /// The newest workflow under an id, without its text.
    answer RegisteredWorkflow [RegisteredWorkflow::members().without(&["findings", "workflow"])] {
        id: String = WorkflowId,
        /// The how manieth under this id it is, from 1.
        version: u64 = integer().min(1),
        /// The SHA-256 of its canonical text.
        digest: String = Digest,
        /// What it is for; absent if it does not say.
        description?: String,
        /// How many states it has.
        states: u64 = integer().min(1),
        registered_at: String = Time,
        /// The name of the key it was registered with.
        registered_by: String,
        /// The index of its entry in the ledger.
        entry: u64,
        /// What looks wrong with it, errors first.
        findings?: Vec<WorkflowFinding>,
        /// The workflow; its bytes are the canonical text.
        workflow?: RawJson = map(),
    }

    /// A page of workflows.
    answer WorkflowPage {
        /// In the order of their ids.
        workflows: Vec<RegisteredWorkflow> = list(of::<RegisteredWorkflow>()).max_items(1000),
        /// Where the next page begins; null on the last one.
        next_cursor: String | null = text().max_length(128),
    }

    /// Something that is, or looks, wrong with a workflow that loads; see docs/workflows-proofs.md.
    answer WorkflowFinding {
        severity: String = words(["error", "warning", "note"]),
        /// The kind of finding.
        name: String,
        /// The place in the workflow.
        path: String,
        message: String,
        /// What to do about it.
        help: String,
    }

    // A workflow to be registered.
    request RegisterRequest {
        /// A workflow as JSON; see docs/workflows.md. Its `id` is what it is registered under.
        workflow: RawJson = map(),
    }
}

named! {
    /// The newest workflow under an id.
    Workflow = RegisteredWorkflow::members().requiring(&["findings", "workflow"]);
}
