//! The rows that follow from entries. The writer and the audit use the same functions, so they cannot disagree.

use serde::{Deserialize, Serialize};

use super::entry::{
    AgentRegistered, ApprovalResolved, Body, Executed, Ruled, StateIntent, StateOutcome, TicketOpened, TrustChanged,
    TrustRequested,
};
use crate::action::{
    Agent, Conversation, Counted, Facts, Millis, OpenTicket, Record, Resolution, Risk, Ticket, TicketSubject,
    TrustCause, Verdict, WaitingAction, WaitingTrust,
};
use crate::code::Code;
use crate::digest::Digest;
use crate::ruling::Denial;
use crate::state::target;

/// The agent a registration yields.
pub fn apply_registered(registered: &AgentRegistered, index: u64) -> Agent {
    Agent::registered(registered.profile.clone(), registered.token, registered.trust_level, index)
}

/// Every entry of an agent: it is counted and becomes the last one.
fn apply_entry(agent: &mut Agent, at: Millis, index: u64) {
    agent.entries = agent.entries.saturating_add(1);
    agent.last_index = index;
    agent.last_at = agent.last_at.max(at);
}

/// What a ruling leads to, beside what it changes itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Consequences {
    /// The ticket it opens.
    pub ticket: Option<Ticket>,
    /// How trust falls: the next entry of the agent must say so.
    pub trust: Option<TrustChanged>,
    /// The conversation changed.
    pub took_step: bool,
}

/// What a ruling changes: the agent always, the conversation if a step was taken.
pub fn apply_ruled(
    agent: &mut Agent,
    conversation: &mut Conversation,
    ruled: &Ruled,
    rules: u32,
    at: Millis,
    index: u64,
) -> Consequences {
    apply_entry(agent, at, index);
    agent.count(ruled.ruling.decision);
    let mut consequences = Consequences::default();
    let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { return consequences };
    let decision = ruled.ruling.decision;
    if decision.lets_run() {
        agent.spent.charge(ruled.ruling.charge, at);
    }
    if decision.consumes_step() {
        let ran = facts.on_state().filter(|_| decision.lets_run());
        conversation.take(facts.step, facts.fingerprint, ran, index);
        consequences.took_step = true;
    }
    // Before the second revision of the rules there were neither tickets nor falling trust.
    if rules < 2 {
        return consequences;
    }
    if let Some(opened) = &ruled.ticket {
        open_ticket(agent, &opened.approval_id, opened.expires_at, false, at);
        consequences.ticket = Some(ticket_of(agent, ruled, facts, opened, at, index));
    }
    // A suspended agent is not judged any further.
    let code = ruled.ruling.error.as_ref().map(|error| error.code);
    if code != Some(Code::AgentSuspended) {
        let counted = Counted { decision, code, violation: ruled.violation };
        let from_level = agent.trust;
        let fallen = agent.record.count(counted, from_level, at);
        consequences.trust =
            fallen.map(|(to_level, cause)| TrustChanged { from_level, to_level, cause, approval_id: None });
    }
    consequences
}

fn open_ticket(agent: &mut Agent, approval_id: &str, expires_at: Millis, trust: bool, at: Millis) {
    agent.open.retain(|ticket| ticket.expires_at > at);
    agent.open.push(OpenTicket { approval_id: approval_id.to_owned(), expires_at, trust });
}

fn ticket_of(agent: &Agent, ruled: &Ruled, facts: &Facts, opened: &TicketOpened, at: Millis, index: u64) -> Ticket {
    let risk = ruled.ruling.verification.as_ref().map_or(Risk::Critical, |verification| verification.risk_level);
    let why = ruled.ruling.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
    Ticket {
        approval_id: opened.approval_id.clone(),
        agent: agent.profile.agent_id.clone(),
        opened: index,
        opened_at: at,
        expires_at: opened.expires_at,
        bundle: ruled.bundle,
        subject: TicketSubject::Action(Box::new(WaitingAction {
            decision_id: ruled.decision_id.clone(),
            action: facts.action.clone(),
            conversation: facts.conversation.clone(),
            step: facts.step,
            on_state: facts.on_state(),
            charge: opened.charge,
            risk,
            trust: agent.trust,
            why,
        })),
        resolution: None,
        spent: false,
    }
}

/// What a request for trust changes, and the ticket it opens.
pub fn apply_trust_requested(agent: &mut Agent, requested: &TrustRequested, at: Millis, index: u64) -> Ticket {
    apply_entry(agent, at, index);
    open_ticket(agent, &requested.approval_id, requested.expires_at, true, at);
    Ticket {
        approval_id: requested.approval_id.clone(),
        agent: agent.profile.agent_id.clone(),
        opened: index,
        opened_at: at,
        expires_at: requested.expires_at,
        bundle: requested.bundle,
        subject: TicketSubject::Trust(Box::new(WaitingTrust {
            from_level: requested.from_level,
            to_level: requested.to_level,
            merits: requested.merits,
            refusals: agent.refusals(),
        })),
        resolution: None,
        spent: false,
    }
}

/// What a person's decision changes; also how trust rises: the next entry of the agent must say so.
pub fn apply_resolved(
    agent: &mut Agent,
    conversation: &mut Conversation,
    ticket: &mut Ticket,
    resolved: &ApprovalResolved,
    at: Millis,
    index: u64,
) -> Option<TrustChanged> {
    apply_entry(agent, at, index);
    agent.open.retain(|open| open.approval_id != resolved.approval_id && open.expires_at > at);
    let (by, reason) = (resolved.by.clone(), resolved.reason.clone());
    ticket.resolution = Some(Resolution { verdict: resolved.verdict, by, at, entry: index, reason });
    if resolved.verdict == Verdict::Denied {
        return None;
    }
    ticket.expires_at = resolved.expires_at;
    match &ticket.subject {
        TicketSubject::Action(action) => {
            agent.spent.charge(resolved.charge, at);
            if let Some(on_state) = action.on_state {
                conversation.ran(on_state);
            }
            None
        }
        TicketSubject::Trust(trust) => Some(TrustChanged {
            from_level: agent.trust,
            to_level: trust.to_level,
            cause: TrustCause::Elevation,
            approval_id: Some(resolved.approval_id.clone()),
        }),
    }
}

/// What a reported execution changes.
pub fn apply_executed(agent: &mut Agent, ticket: Option<&mut Ticket>, executed: &Executed, at: Millis, index: u64) {
    apply_entry(agent, at, index);
    agent.spent.charge_more(executed.charge, at);
    if let Some(ticket) = ticket {
        ticket.spent = true;
    }
}

/// What the entries about the agent itself change; other kinds change nothing here.
pub fn apply_to_agent(agent: &mut Agent, body: &Body, at: Millis, index: u64) {
    match body {
        Body::TrustChanged(changed) => {
            agent.trust = changed.to_level;
            agent.record = Record::default();
        }
        Body::StatusChanged(changed) => agent.status = changed.status,
        Body::ModeChanged(changed) => agent.mode = changed.mode,
        Body::TokenRotated(rotated) => agent.token = rotated.token,
        Body::TextsErased(_) => {}
        Body::Registered(_)
        | Body::Ruled(_)
        | Body::BundleActivated(_)
        | Body::Unauthenticated(_)
        | Body::StateIntent(_)
        | Body::StateOutcome(_)
        | Body::TrustRequested(_)
        | Body::ApprovalResolved(_)
        | Body::Executed(_)
        | Body::KeyCreated(_)
        | Body::KeyRevoked(_)
        | Body::SigningKeyRotated(_) => return,
    }
    apply_entry(agent, at, index);
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
