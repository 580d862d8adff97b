//! The ruling on a transition of a workflow that an agent asks for.

use super::agent::{Agent, AgentStatus};
use super::vocabulary::Millis;
use crate::bundle::Bundle;
use crate::code::Code;
use crate::ledger::TransitionOutcome;
use crate::workflow::{Run, Step, TransitionAsked, Workflow, transition};

/// Rules on a transition. Of one that waits for a person, the id of the ticket is left for the caller to draw.
pub fn decide_transition(
    bundle: &Bundle,
    agent: &Agent,
    run: &Run,
    workflow: Option<&Workflow>,
    asked: &TransitionAsked<'_>,
    now: Millis,
) -> TransitionOutcome {
    if agent.status == AgentStatus::Suspended {
        return refused(Code::AgentSuspended);
    }
    let Some((workflow, position)) = workflow.zip(run.position.as_ref()) else { return refused(Code::WorkflowNoRun) };
    let from = position.state.clone();
    match transition(workflow, run, asked, now) {
        Ok(Step::Move { target, .. }) => TransitionOutcome::Moved { from, to: target.to_owned() },
        Ok(Step::Ask { .. }) if agent.open_count(now) >= bundle.open_tickets_max() => refused(Code::ApprovalsOpen),
        Ok(Step::Ask { target, message, .. }) => TransitionOutcome::Parked {
            approval_id: String::new(),
            expires_at: now.saturating_add(bundle.ticket_expiry_ms()),
            from,
            to: target.to_owned(),
            message: message.map(str::to_owned),
        },
        Err(refusal) => {
            TransitionOutcome::Refused { code: refusal.code, message: refusal.message, unmet: refusal.unmet }
        }
    }
}

fn refused(code: Code) -> TransitionOutcome {
    let no_run = "no workflow runs here; a person starts one with `interlock workflow start`";
    let message = if code == Code::WorkflowNoRun { no_run } else { code.title() };
    TransitionOutcome::Refused { code, message: message.to_owned(), unmet: Vec::new() }
}
