//! The rows that follow from entries. The writer and the audit use the same functions, so they cannot disagree.

use super::entry::{AgentRegistered, Ruled};
use crate::action::{Agent, Conversation, Millis};

/// The agent a registration yields.
pub fn apply_registered(registered: &AgentRegistered, index: u64) -> Agent {
    Agent::registered(registered.profile.clone(), registered.token, registered.trust_level, index)
}

/// What a ruling changes: the agent always, the conversation if a step was taken.
pub fn apply_ruled(agent: &mut Agent, conversation: &mut Conversation, ruled: &Ruled, at: Millis, index: u64) {
    agent.entries = agent.entries.saturating_add(1);
    agent.last_index = index;
    agent.last_at = agent.last_at.max(at);
    let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { return };
    let decision = ruled.ruling.decision;
    if decision.lets_run() {
        agent.spent.charge(ruled.ruling.charge, at);
    }
    if decision.consumes_step() {
        let ran = facts.on_state().filter(|_| decision.lets_run());
        conversation.take(facts.step, facts.fingerprint, ran, index);
    }
}
