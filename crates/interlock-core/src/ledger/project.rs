//! The rows that follow from entries. The writer and the audit use the same functions, so they cannot disagree.

use serde::{Deserialize, Serialize};

use super::entry::{AgentRegistered, Ruled, StateIntent, StateOutcome};
use crate::action::{Agent, Conversation, Millis};
use crate::digest::Digest;
use crate::ruling::Denial;
use crate::state::target;

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

/// What the ledger knows of a state file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateHead {
    /// The SHA-256 of the state that was committed last.
    pub committed: Option<Digest>,
    /// A commit whose outcome is not known yet.
    pub open: Option<OpenIntent>,
}

/// A commit whose outcome is not known yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenIntent {
    /// Its entry.
    pub index: u64,
    /// The SHA-256 of what the file holds if it was carried out.
    pub proposed: Digest,
}

impl StateHead {
    /// Whether a commit from this current state may begin.
    pub fn check(&self, current: Digest) -> Result<(), Denial> {
        if self.open.is_some() {
            return Err(target::refused("another commit of this file is in progress, or its outcome is not known yet"));
        }
        match self.committed {
            Some(committed) if committed != current => Err(target::refused(
                "the claimed current state is not the one that was committed last; read the file again",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// A commit begins.
    pub fn begin(&mut self, intent: &StateIntent, index: u64) {
        self.open = Some(OpenIntent { index, proposed: intent.proposed });
    }

    /// A commit ends.
    pub fn end(&mut self, outcome: &StateOutcome) {
        if let Some(open) = self.open.take_if(|open| open.index == outcome.intent)
            && outcome.committed
        {
            self.committed = Some(open.proposed);
        }
    }
}
