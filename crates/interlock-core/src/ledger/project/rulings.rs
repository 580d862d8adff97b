//! What rulings, requests for trust and people's decisions change of agents and tickets.

use super::{Consequences, Stamp};
use crate::action::{
    Agent, Conversation, Counted, Facts, Millis, OpenTicket, Resolution, Risk, Ticket, TicketSubject, TrustCause,
    TrustCost, Verdict, WaitingAction, WaitingTransition, WaitingTrust,
};
use crate::code::Code;
use crate::ledger::entry::{ApprovalResolved, Ruled, TicketOpened, TrustChanged, TrustRequested};
use crate::ledger::run_entry::{TransitionOutcome, Transitioned};
use crate::rule::{SELF_RULE, Then};

/// What a ruling changes: the agent always, the conversation if a step was taken.
pub(super) fn rule(
    agent: &mut Agent,
    conversation: &mut Conversation,
    ruled: &Ruled,
    stamp: Stamp,
    after: &mut Consequences,
) {
    let Stamp { rules, at, seq } = stamp;
    let decision = ruled.ruling.decision;
    agent.count(decision, 1);
    let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { return };
    // What a person agreed to was charged then.
    if decision.lets_run() && ruled.redeemed.is_none() {
        agent.spent.charge(ruled.ruling.charge, at);
    }
    // Calls of coding agents have no steps; their run remembers them.
    if decision.consumes_step() && facts.call.is_none() {
        let ran = facts.on_state().filter(|_| decision.lets_run());
        conversation.take(facts.step, facts.seen_as(), ran, seq.saturating_sub(1));
        after.has_conversed = true;
    }
    // Before the second revision of the rules there were neither tickets nor falling trust.
    if rules < 2 {
        return;
    }
    if let Some(opened) = &ruled.ticket {
        open_ticket(agent, &opened.approval_id, opened.expires_at, false, at);
        after.opened = Some(Box::new(ticket_of(agent, ruled, facts, opened, stamp)));
    }
    if let Some(counted) = counted(ruled, rules) {
        let from_level = agent.trust;
        let fallen = agent.record.count(counted, from_level, at);
        if rules >= 5 && (fallen.is_some() || counted.violation) {
            agent.cost = Some(TrustCost { decision_id: ruled.decision_id.clone(), entry: seq });
        }
        after.trust = fallen.map(|(to_level, cause)| TrustChanged { from_level, to_level, cause, approval_id: None });
    }
}

/// What of a ruling counts for trust, if it counts.
pub(in crate::ledger) fn counted(ruled: &Ruled, rules: u32) -> Option<Counted> {
    let facts = ruled.facts.as_ref().filter(|facts| !facts.dry_run)?;
    let code = ruled.ruling.error.as_ref().map(|error| error.code);
    // What a phase does not allow tells an agent where it stands, and what is only shown refuses nothing.
    let is_guidance = facts.call.is_some()
        && (ruled.observed || code.is_some_and(Code::is_of_phase) || rules >= 4 && is_for_a_person(ruled));
    // A suspended agent is not judged any further.
    let counts = code != Some(Code::AgentSuspended) && !is_guidance;
    counts.then_some(Counted { decision: ruled.ruling.decision, code, violation: ruled.violation })
}

/// Whether a coding agent was refused what a person has to decide: by its level of trust, for open questions, or by a rule
/// of that person. Work goes on beside such refusals, and counting them would lower trust until nothing passes. What
/// reaches for Interlock itself, goes round in circles or breaks a limit counts.
fn is_for_a_person(ruled: &Ruled) -> bool {
    let by_us = ruled.evidence.as_ref().is_some_and(|evidence| evidence.matched.iter().any(|rule| rule == SELF_RULE));
    let by_rule = ruled.evidence.as_ref().is_some_and(|evidence| evidence.rules == Some(Then::Deny));
    !ruled.violation
        && match ruled.ruling.error.as_ref().map(|error| error.code) {
            Some(Code::TrustTooLow | Code::ApprovalsOpen) => true,
            Some(Code::ToolNotAllowed) => by_rule && !by_us,
            Some(_) | None => false,
        }
}

fn open_ticket(agent: &mut Agent, approval_id: &str, expires_at: Millis, trust: bool, at: Millis) {
    agent.open.retain(|ticket| ticket.expires_at > at);
    agent.open.push(OpenTicket { approval_id: approval_id.to_owned(), expires_at, trust });
}

fn ticket_of(agent: &Agent, ruled: &Ruled, facts: &Facts, opened: &TicketOpened, stamp: Stamp) -> Ticket {
    let risk = ruled.ruling.verification.as_ref().map_or(Risk::Critical, |verification| verification.risk_level);
    let why = ruled.ruling.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
    Ticket {
        approval_id: opened.approval_id.clone(),
        agent: agent.profile.agent_id.clone(),
        opened: stamp.seq,
        opened_at: stamp.at,
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
            call: facts.call.is_some().then(|| facts.agreed_to()),
        })),
        resolution: None,
        spent: false,
    }
}

/// The ticket a request for trust opens.
pub(super) fn request_trust(agent: &mut Agent, requested: &TrustRequested, stamp: Stamp) -> Ticket {
    open_ticket(agent, &requested.approval_id, requested.expires_at, true, stamp.at);
    Ticket {
        approval_id: requested.approval_id.clone(),
        agent: agent.profile.agent_id.clone(),
        opened: stamp.seq,
        opened_at: stamp.at,
        expires_at: requested.expires_at,
        bundle: requested.bundle,
        subject: TicketSubject::Trust(Box::new(WaitingTrust {
            from_level: requested.from_level,
            to_level: requested.to_level,
            merits: requested.merits,
            refusals: (stamp.rules < 5).then(|| agent.refusals()),
        })),
        resolution: None,
        spent: false,
    }
}

/// The ticket a transition opens, if it waits for a person.
pub(super) fn transition(agent: &mut Agent, asked: &Transitioned, workflow: &str, stamp: Stamp) -> Option<Ticket> {
    let TransitionOutcome::Parked { approval_id, expires_at, from, to, message } = &asked.outcome else { return None };
    open_ticket(agent, approval_id, *expires_at, false, stamp.at);
    Some(Ticket {
        approval_id: approval_id.clone(),
        agent: agent.profile.agent_id.clone(),
        opened: stamp.seq,
        opened_at: stamp.at,
        expires_at: *expires_at,
        bundle: asked.bundle,
        subject: TicketSubject::Transition(Box::new(WaitingTransition {
            decision_id: asked.decision_id.clone(),
            run_id: asked.run_id.clone().unwrap_or_default(),
            workflow: workflow.to_owned(),
            event: asked.event.clone(),
            from: from.clone(),
            target: to.clone(),
            message: message.clone(),
            trust: (stamp.rules >= 5).then_some(agent.trust),
        })),
        resolution: None,
        spent: false,
    })
}

/// What a person's decision changes; also how trust rises: the next entry of the agent must say so.
pub(super) fn resolve(
    agent: &mut Agent,
    conversation: &mut Conversation,
    ticket: &mut Ticket,
    resolved: &ApprovalResolved,
    stamp: Stamp,
) -> Option<TrustChanged> {
    let Stamp { at, seq, .. } = stamp;
    agent.open.retain(|open| open.approval_id != resolved.approval_id && open.expires_at > at);
    let (by, reason) = (resolved.by.clone(), resolved.reason.clone());
    ticket.resolution = Some(Resolution { verdict: resolved.verdict, by, at, entry: seq, reason });
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
        TicketSubject::Transition(_) => None,
        TicketSubject::Trust(trust) => Some(TrustChanged {
            from_level: agent.trust,
            to_level: trust.to_level,
            cause: TrustCause::Elevation,
            approval_id: Some(resolved.approval_id.clone()),
        }),
    }
}
