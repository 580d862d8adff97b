//! Whether a report that something was done belongs to a ruling that let it be done.

use super::agent::{Agent, AgentStatus};
use super::budget::Charge;
use super::ticket::{Ticket, TicketRefusal};
use super::vocabulary::{Decision, Millis};
use crate::code::Code;
use crate::digest::Digest;
use crate::ledger::Ruled;

/// What of a ruling says whether something could be done by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executable {
    /// It let it run at once.
    lets_run: bool,
    /// Whatever it says, the caller could go on.
    observed: bool,
    /// A person was to decide.
    asked: bool,
    /// What it costs.
    charge: Charge,
}

impl Executable {
    /// What of a ruling can be executed.
    ///
    /// Hosts tell of the ends of tool calls, and an agreement to one is spent by the call itself: by a report nothing of
    /// them can be executed, and neither can a dry run or a malformed request.
    pub fn of(ruled: &Ruled) -> Executable {
        let runs = ruled.facts.as_ref().is_some_and(|facts| facts.call.is_none() && !facts.dry_run);
        let charge = ruled.ticket.as_ref().map_or(ruled.ruling.charge, |opened| opened.charge);
        Executable {
            lets_run: runs && ruled.ruling.decision.lets_run(),
            observed: runs && ruled.observed,
            asked: runs && ruled.ruling.decision == Decision::Pending,
            charge,
        }
    }

    /// Whether a report of it can be right at all.
    pub fn is_possible(&self) -> bool {
        self.lets_run || self.observed || self.asked
    }
}

/// What an execution rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionRuling {
    /// It spends the ticket of its ruling.
    pub spends: bool,
    /// What was charged for it, before what it used raises that.
    pub charged: Charge,
}

/// Rules on a report that something was done. `ticket` is the one the ruling opened, `bundle` the one in force.
pub fn decide_execution(
    agent: &Agent,
    executable: Option<Executable>,
    ticket: Option<&Ticket>,
    reported: bool,
    bundle: Digest,
    now: Millis,
) -> Result<ExecutionRuling, TicketRefusal> {
    let refused = |code| Err(TicketRefusal::Code(code));
    if agent.status == AgentStatus::Suspended {
        return refused(Code::AgentSuspended);
    }
    let Some(Executable { lets_run, observed, asked, charge }) = executable else {
        return refused(Code::ExecutionUnknown);
    };
    if reported {
        return refused(Code::ExecutionReported);
    }
    let undecided = ticket.is_some_and(|ticket| ticket.resolution.is_none());
    // In observe mode a refused call may have run all the same; saying so is welcome and spends nothing.
    if observed && (undecided || !lets_run && !asked) {
        return Ok(ExecutionRuling { spends: false, charged: Charge::default() });
    }
    match ticket.filter(|_| asked) {
        Some(ticket) => {
            ticket.check_spendable(agent, bundle, now)?;
            Ok(ExecutionRuling { spends: true, charged: charge })
        }
        None if lets_run => Ok(ExecutionRuling { spends: false, charged: charge }),
        None => refused(Code::ExecutionNotAllowed),
    }
}
