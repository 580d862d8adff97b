//! The rows that follow from entries. The writer and the audit use the same functions, so they cannot disagree.

use serde::{Deserialize, Serialize};

use super::entry::{
    AgentRegistered, ApprovalResolved, Body, Executed, Ruled, StateIntent, StateOutcome, TicketOpened, TrustChanged,
    TrustRequested,
};
use super::run_entry::{Steer, TransitionOutcome, Transitioned};
use crate::action::{
    Agent, CallApplied, Conversation, Counted, Facts, Millis, OpenTicket, Record, Resolution, Risk, Ticket,
    TicketSubject, TrustCause, TrustCost, Verdict, WaitingAction, WaitingTransition, WaitingTrust, apply_call,
};
use crate::code::Code;
use crate::digest::Digest;
use crate::rule::{SELF_RULE, Then};
use crate::ruling::Denial;
use crate::state::target;
use crate::workflow::{self, CallEnded, Context, Ended, Grant, Parked, Position, Run, Seen, Workflow};

/// The agent a registration yields.
pub fn apply_registered(registered: &AgentRegistered, index: u64) -> Agent {
    Agent::registered(registered.profile.clone(), registered.token, registered.trust_level, index)
}

/// Every entry of an agent: it is counted and becomes the last one.
pub(super) fn apply_entry(agent: &mut Agent, at: Millis, index: u64) {
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
    agent.count(ruled.ruling.decision, 1);
    let mut consequences = Consequences::default();
    let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { return consequences };
    let decision = ruled.ruling.decision;
    // What a person agreed to was charged then.
    if decision.lets_run() && ruled.redeemed.is_none() {
        agent.spent.charge(ruled.ruling.charge, at);
    }
    // Calls of coding agents have no steps; their run remembers them.
    if decision.consumes_step() && facts.call.is_none() {
        let ran = facts.on_state().filter(|_| decision.lets_run());
        conversation.take(facts.step, facts.seen_as(), ran, index);
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
    if let Some(counted) = counted(ruled, rules) {
        let from_level = agent.trust;
        let fallen = agent.record.count(counted, from_level, at);
        if rules >= 5 && (fallen.is_some() || counted.violation) {
            agent.cost = Some(TrustCost { decision_id: ruled.decision_id.clone(), entry: index });
        }
        consequences.trust =
            fallen.map(|(to_level, cause)| TrustChanged { from_level, to_level, cause, approval_id: None });
    }
    consequences
}

/// What of a ruling counts for trust, if it counts.
pub(super) fn counted(ruled: &Ruled, rules: u32) -> Option<Counted> {
    let facts = ruled.facts.as_ref().filter(|facts| !facts.dry_run)?;
    let code = ruled.ruling.error.as_ref().map(|error| error.code);
    // What a phase does not allow tells an agent where it stands, and what is only shown refuses nothing.
    let is_guidance = facts.call.is_some()
        && (ruled.observed || code.is_some_and(is_of_phase) || rules >= 4 && is_for_a_person(ruled));
    // A suspended agent is not judged any further.
    let counts = code != Some(Code::AgentSuspended) && !is_guidance;
    counts.then_some(Counted { decision: ruled.ruling.decision, code, violation: ruled.violation })
}

fn is_of_phase(code: Code) -> bool {
    code == Code::ShellEffect || code.as_str().starts_with("INTERLOCK-WF-")
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

/// What a ruling on a tool call changes of the run.
pub fn apply_ruled_call(run: &mut Run, workflow: Option<&Workflow>, ruled: &Ruled, at: Millis, index: u64) {
    let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { return };
    let applied = CallApplied {
        decision: ruled.ruling.decision,
        observed: ruled.observed,
        redeemed: ruled.redeemed.as_deref(),
        used: ruled.used.as_deref(),
        at,
        index,
    };
    let found = ruled.evidence.as_ref().and_then(|evidence| evidence.call.as_deref());
    apply_call(run, workflow, facts, found, &applied);
}

/// What a transition changes of the agent, and the ticket it opens.
pub fn apply_transitioned(
    agent: &mut Agent,
    asked: &Transitioned,
    rules: u32,
    at: Millis,
    index: u64,
    workflow: &str,
) -> Option<Ticket> {
    apply_entry(agent, at, index);
    let TransitionOutcome::Parked { approval_id, expires_at, from, to, message } = &asked.outcome else { return None };
    open_ticket(agent, approval_id, *expires_at, false, at);
    Some(Ticket {
        approval_id: approval_id.clone(),
        agent: agent.profile.agent_id.clone(),
        opened: index,
        opened_at: at,
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
            trust: (rules >= 5).then_some(agent.trust),
        })),
        resolution: None,
        spent: false,
    })
}

/// What a transition changes of the run.
pub fn apply_transitioned_run(run: &mut Run, workflow: Option<&Workflow>, asked: &Transitioned) {
    match (&asked.outcome, workflow) {
        (TransitionOutcome::Moved { to, .. }, Some(workflow)) => workflow::move_to(run, workflow, to, &asked.data),
        (TransitionOutcome::Parked { approval_id, expires_at, to, .. }, _) => workflow::park(
            run,
            Parked {
                approval_id: approval_id.clone(),
                expires_at: *expires_at,
                event: asked.event.clone(),
                data: asked.data.clone(),
                target: to.clone(),
            },
        ),
        (TransitionOutcome::Moved { .. } | TransitionOutcome::Refused { .. }, _) => {}
    }
}

/// What a person's decision changes of the run. `Err` if a transition cannot be made any more.
pub fn apply_resolved_run(
    run: &mut Run,
    workflow: Option<&Workflow>,
    ticket: &Ticket,
    resolved: &ApprovalResolved,
) -> Result<(), Code> {
    let agreed = resolved.verdict == Verdict::Approved;
    match &ticket.subject {
        TicketSubject::Transition(_) => {
            let workflow = workflow.ok_or(Code::ApprovalStale)?;
            workflow::resolve_parked(run, workflow, &ticket.approval_id, agreed)
        }
        TicketSubject::Action(action) => {
            if let (Some(fingerprint), true) = (action.call, agreed) {
                let (approval_id, expires_at) = (ticket.approval_id.clone(), resolved.expires_at);
                let (bundle, trust) = (ticket.bundle, action.trust);
                run.granted.push(Grant { approval_id, fingerprint, expires_at, bundle, trust });
            }
            Ok(())
        }
        TicketSubject::Trust(_) => Ok(()),
    }
}

/// What the entries about a run change of it; other kinds change nothing here. `Err` says what froze it.
pub fn apply_to_run(run: &mut Run, workflow: Option<&Workflow>, body: &Body, index: u64) -> Result<(), &'static str> {
    match body {
        Body::RunStarted(started) => {
            if let Some(workflow) = workflow {
                let session = started.session.clone();
                run.position = Some(Position::start(workflow, started.run_id.clone(), index, session));
                run.seen = Seen::default();
                // What this workflow calls by the name of a fact may be another command: of the old ones none counts.
                for open in run.open.iter_mut().filter(|open| open.fact.is_some()) {
                    open.fact = None;
                    open.changes = true;
                }
                run.revision = run.revision.saturating_add(1);
            }
        }
        Body::RunSteered(steered) => steer(run, workflow, &steered.steer),
        Body::CallEnded(told) => {
            let ended = CallEnded {
                call_id: told.call_id.as_deref(),
                process: told.process,
                fingerprint: told.fingerprint,
                tool: &told.tool,
                is_command: told.is_command,
                ok: told.ok,
                exit_code: told.exit_code,
                result: told.result,
                files: &told.files,
            };
            if let Err(reason) = workflow::end_call(run, &ended) {
                run.frozen = Some(reason.to_owned());
                return Err(reason);
            }
        }
        Body::TurnEnded(turn) => workflow::end_turn(run, |open| turn.had(open)),
        Body::SessionBound(bound) => {
            run.bind(&bound.session);
            if let Some(host) = &bound.host {
                run.note_host(host);
            }
        }
        Body::AllowanceGiven(given) => run.allowances.push(given.allowance.clone()),
        Body::AllowanceTaken(taken) => run.allowances.retain(|it| it.allowance_id != taken.allowance_id),
        Body::Registered(_)
        | Body::Ruled(_)
        | Body::BundleActivated(_)
        | Body::Unauthenticated(_)
        | Body::StateIntent(_)
        | Body::StateOutcome(_)
        | Body::TrustRequested(_)
        | Body::ApprovalResolved(_)
        | Body::Executed(_)
        | Body::TrustChanged(_)
        | Body::StatusChanged(_)
        | Body::ModeChanged(_)
        | Body::TokenRotated(_)
        | Body::TextsErased(_)
        | Body::KeyCreated(_)
        | Body::KeyRevoked(_)
        | Body::SigningKeyRotated(_)
        | Body::Transitioned(_)
        | Body::WorkflowRegistered(_)
        | Body::RefusalsRepeated(_)
        | Body::Passed(_) => {}
    }
    Ok(())
}

fn steer(run: &mut Run, workflow: Option<&Workflow>, steer: &Steer) {
    // Where a run stands is as it was when somebody else writes files.
    run.revision = run.revision.saturating_add(u64::from(*steer != Steer::Changed));
    match (steer, workflow) {
        (Steer::Force(to), Some(workflow)) => {
            if let Some(position) = &mut run.position {
                position.parked = None;
                position.ended = None;
            }
            workflow::move_to(run, workflow, to, &Context::default());
        }
        (Steer::Force(_), None) => {}
        (Steer::Stop, _) => {
            if let Some(position) = &mut run.position {
                position.parked = None;
                position.ended = Some(Ended::Stopped);
            }
        }
        (Steer::Thaw, _) => {
            run.frozen = None;
            run.open.clear();
        }
        (Steer::Pause(until), _) => run.paused_until = Some(*until),
        (Steer::Changed, _) => {
            run.changes = run.changes.saturating_add(1);
            run.seen.facts.clear();
        }
    }
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
            call: facts.call.is_some().then(|| facts.agreed_to()),
        })),
        resolution: None,
        spent: false,
    }
}

/// What a request for trust changes, and the ticket it opens.
pub fn apply_trust_requested(
    agent: &mut Agent,
    requested: &TrustRequested,
    rules: u32,
    at: Millis,
    index: u64,
) -> Ticket {
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
            refusals: (rules < 5).then(|| agent.refusals()),
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
        TicketSubject::Transition(_) => None,
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
        Body::TextsErased(_)
        | Body::RunStarted(_)
        | Body::RunSteered(_)
        | Body::CallEnded(_)
        | Body::TurnEnded(_)
        | Body::SessionBound(_)
        | Body::AllowanceGiven(_)
        | Body::AllowanceTaken(_)
        | Body::Passed(_) => {}
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
        | Body::SigningKeyRotated(_)
        | Body::Transitioned(_)
        | Body::WorkflowRegistered(_)
        | Body::RefusalsRepeated(_) => return,
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
