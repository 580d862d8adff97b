//! Whether an agent may ask for more trust.

use super::agent::{Agent, AgentStatus};
use super::vocabulary::{Millis, Trust};
use crate::bundle::Bundle;
use crate::code::Code;

/// Whether a request for more trust can be put before a person. `from` is the level that the caller believes there is.
pub fn check_trust_request(
    bundle: &Bundle,
    agent: &Agent,
    to: Trust,
    from: Option<Trust>,
    now: Millis,
) -> Result<(), Code> {
    if agent.status == AgentStatus::Suspended {
        return Err(Code::AgentSuspended);
    }
    if to <= agent.trust || from.is_some_and(|level| level != agent.trust) {
        return Err(Code::ApprovalStale);
    }
    if agent.waits_for_trust(now) || agent.open_count(now) >= bundle.open_tickets_max() {
        return Err(Code::ApprovalsOpen);
    }
    Ok(())
}
