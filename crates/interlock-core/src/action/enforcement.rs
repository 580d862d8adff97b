//! Whether what was refused runs all the same. Observe mode and pauses let it, and nothing else does; both are an
//! operator's word, so a recorded ruling can be asked again.

use super::agent::{Agent, Mode};
use super::decide::Ruling;
use super::facts::Evidence;
use super::vocabulary::{Decision, Millis};
use crate::bundle::Bundle;
use crate::code::Code;
use crate::rule::{SELF_RULE, Then};
use crate::workflow::Run;

/// Whether a ruling is only shown, so that the caller may go on whatever it says.
///
/// That covers rulings alone: who may not ask at all is refused in any mode. `run` is what is known of a coding agent's
/// calls.
pub fn is_observed(
    bundle: &Bundle,
    agent: &Agent,
    run: Option<&Run>,
    evidence: Option<&Evidence>,
    ruling: &Ruling,
    now: Millis,
) -> bool {
    if ruling.error.as_ref().is_some_and(|error| error.code == Code::AgentSuspended) {
        return false;
    }
    if bundle.mode() == Mode::Observe {
        return true;
    }
    // The mode of an agent, and a pause, end where a project begins in which refusals hold.
    if is_held(evidence) {
        return false;
    }
    agent.mode == Mode::Observe || run.is_some_and(|run| is_paused(run, evidence, ruling, now))
}

/// Whether refusals of an agent are only shown, whatever it asks.
pub(super) fn only_shows(bundle: &Bundle, agent: &Agent, run: &Run, now: Millis) -> bool {
    let paused = run.paused_until.is_some_and(|until| now < until);
    bundle.mode() == Mode::Observe || agent.mode == Mode::Observe || paused
}

/// Whether a call touches a project in which refusals hold, wherever its session began.
fn is_held(evidence: Option<&Evidence>) -> bool {
    evidence.and_then(|found| found.call.as_deref()).is_some_and(|call| call.held_in.is_some())
}

/// A pause does not cover what protects Interlock itself: a person pauses phases and questions, not the lock on the levers.
fn is_paused(run: &Run, evidence: Option<&Evidence>, ruling: &Ruling, now: Millis) -> bool {
    let touches_us = evidence
        .is_some_and(|found| found.rules == Some(Then::Deny) && found.matched.iter().any(|rule| rule == SELF_RULE));
    run.paused_until.is_some_and(|until| now < until) && ruling.decision != Decision::Approved && !touches_us
}
