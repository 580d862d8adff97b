//! Whether a runner may start a command: only what was judged, as it was judged, where it was judged, and once.

use super::agent::{Agent, AgentStatus};
use super::vocabulary::Millis;
use crate::code::Code;
use crate::digest::Digest;
use crate::workflow::{OpenCall, Run};

/// How long after a call was let run its command may start. A person may have to answer the host's own question first.
pub const TICKET_MS_MAX: Millis = 3_600_000;

/// What a runner is about to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartAsked<'a> {
    /// The decision that the ticket names.
    pub decision_id: &'a str,
    /// The SHA-256 of the command line.
    pub line: Digest,
    /// The SHA-256 of the directory it would run in.
    pub directory: Digest,
}

/// Rules on a start: the call whose command it is, or why nothing may start.
pub fn decide_start<'r>(
    agent: &Agent,
    run: &'r Run,
    asked: &StartAsked<'_>,
    now: Millis,
) -> Result<&'r OpenCall, Code> {
    if agent.status == AgentStatus::Suspended {
        return Err(Code::AgentSuspended);
    }
    if run.frozen.is_some() {
        return Err(Code::WorkflowFrozen);
    }
    let is_it = |open: &&OpenCall| {
        open.ticket.as_ref().is_some_and(|ticket| {
            ticket.decision_id == asked.decision_id
                && ticket.runs.line == asked.line
                && ticket.runs.directory == asked.directory
        })
    };
    let open = run.open.iter().find(is_it).ok_or(Code::ContainTicket)?;
    if now >= open.at.saturating_add(TICKET_MS_MAX) {
        return Err(Code::ContainTicket);
    }
    Ok(open)
}

/// Whether an end that a runner reports is that of a command it started.
pub fn decide_end(run: &Run, exec_id: &str) -> Result<(), Code> {
    let is_known = run.execs.iter().any(|exec| exec.exec_id == exec_id);
    if is_known { Ok(()) } else { Err(Code::ContainTicket) }
}
