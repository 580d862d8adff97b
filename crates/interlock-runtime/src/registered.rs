//! Workflows that are registered under their ids: the newest of each, and what looks wrong with it under the bundle in
//! force.

use interlock_core::ledger::WorkflowHead;
use interlock_core::workflow::Workflow;
use interlock_verifiers::shell::Setting;
use interlock_workflow::{Finding, analyse};

use crate::gate::Gate;
use crate::ledger::StoreFault;

impl Gate {
    /// The newest workflow under an id, with its row.
    pub fn registered(&self, id: &str) -> Result<Option<(WorkflowHead, Workflow)>, StoreFault> {
        let Some(head) = self.ledger().workflow(id)? else { return Ok(None) };
        let lost = || {
            StoreFault::new(format!("entry {} of the service has not the workflow that its row speaks of", head.entry))
        };
        let found = self.ledger().entry_of(None, head.entry)?.ok_or_else(lost)?;
        let registered = found.entry.body.workflow_registered().ok_or_else(lost)?;
        let workflow = Workflow::from_text(&registered.workflow).map_err(|_| lost())?;
        // A person decides on what is shown, so it must be what a run would be started with.
        if workflow.digest() != head.digest || workflow.id() != id {
            return Err(lost());
        }
        Ok(Some((head, workflow)))
    }

    /// What looks wrong with a workflow, command lines read as the bundle in force reads them; nothing if the verifiers
    /// refuse it.
    pub fn findings(&self, workflow: &Workflow) -> Option<Vec<Finding>> {
        self.with_ground(|ground| analyse(workflow, &Setting::with(ground.commands.clone())))
    }
}
