//! The rows that follow from the entries, folded with the same functions the writer uses; and what cannot follow.

use std::collections::HashMap;
use std::sync::Arc;

use interlock_core::Digest;
use interlock_core::action::{
    Agent, Conversation, Executable, Figures, Ticket, TicketSubject, Verdict, check_trust_request, decide_execution,
    decide_transition, is_observed,
};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{
    Body, Entry, OperatorKey, RefusalKind, Ruled, StateHead, TransitionOutcome, TrustChanged, WorkflowHead,
    WorkflowRegistered, apply_executed, apply_registered, apply_repeated, apply_resolved, apply_resolved_run,
    apply_ruled, apply_ruled_call, apply_to_agent, apply_to_run, apply_transitioned, apply_transitioned_run,
    apply_trust_requested, apply_workflow_registered,
};
use interlock_core::workflow::{Run, Workflow};

/// What a ruling was decided on.
pub(super) struct Moment<'a> {
    /// The bundle it was decided under, if it was ever in force.
    pub(super) bundle: Option<&'a Bundle>,
    pub(super) agent: &'a Agent,
    pub(super) conversation: &'a Conversation,
    /// What was known of the agent's calls; of tool calls only.
    pub(super) run: Option<&'a Run>,
    pub(super) workflow: Option<&'a Workflow>,
}

/// The rows that follow from the entries so far.
#[derive(Default)]
pub(super) struct Fold {
    pub(super) agents: HashMap<String, Agent>,
    pub(super) conversations: HashMap<(String, String), Conversation>,
    pub(super) heads: HashMap<String, StateHead>,
    pub(super) tickets: HashMap<String, Ticket>,
    pub(super) executions: HashMap<u64, u64>,
    pub(super) keys: HashMap<String, OperatorKey>,
    pub(super) runs: HashMap<String, Run>,
    /// The newest workflow under each id.
    pub(super) registered: HashMap<String, WorkflowHead>,
    /// Workflows by the SHA-256 of their text.
    workflows: HashMap<Digest, Arc<Workflow>>,
    /// Bundles that were put into force.
    bundles: HashMap<Digest, Arc<Bundle>>,
    /// The one in force.
    in_force: Option<Arc<Bundle>>,
    /// Rulings by which something can be executed, with the tickets that some of them opened.
    executable: HashMap<u64, (Executable, Option<String>)>,
    /// Refusals that are written out, with whose they are: those that later ones may be like.
    refusals: HashMap<u64, (String, RefusalKind)>,
    /// Changes of trust that the next entry of the agent must be.
    due: HashMap<String, TrustChanged>,
    clock: u64,
}

impl Fold {
    /// Adds an entry. `before` sees a ruling with what it was decided on; `wrong` is told what cannot be.
    pub(super) fn add(
        &mut self,
        entry: &Entry,
        index: u64,
        before: impl FnOnce(&Moment<'_>, &Ruled),
        mut wrong: impl FnMut(&str),
    ) {
        if entry.at < self.clock {
            wrong("it is older than the entry before it");
        }
        self.clock = self.clock.max(entry.at);
        match &entry.body {
            Body::Registered(registered) => {
                let id = &registered.profile.agent_id;
                if entry.agent.as_ref() != Some(id) || entry.agent_seq != Some(1) || entry.previous.is_some() {
                    wrong("it is not the first entry of the agent it registers");
                }
                if self.agents.insert(id.clone(), apply_registered(registered, index)).is_some() {
                    wrong("the agent was registered before");
                }
            }
            Body::Ruled(_)
            | Body::TrustRequested(_)
            | Body::ApprovalResolved(_)
            | Body::Executed(_)
            | Body::TrustChanged(_)
            | Body::StatusChanged(_)
            | Body::ModeChanged(_)
            | Body::TokenRotated(_)
            | Body::TextsErased(_)
            | Body::RunStarted(_)
            | Body::RunSteered(_)
            | Body::Transitioned(_)
            | Body::CallEnded(_)
            | Body::TurnEnded(_)
            | Body::SessionBound(_)
            | Body::AllowanceGiven(_)
            | Body::AllowanceTaken(_)
            | Body::RefusalsRepeated(_) => self.add_to_agent(entry, index, before, wrong),
            Body::StateIntent(intent) => {
                let head = self.heads.entry(intent.path.clone()).or_default();
                if head.check(intent.current).is_err() || intent.first != head.committed.is_none() {
                    wrong("this commit could not begin");
                }
                head.begin(intent, index);
            }
            Body::StateOutcome(outcome) => {
                let head = self.heads.entry(outcome.path.clone()).or_default();
                if head.open.as_ref().map(|open| open.index) != Some(outcome.intent) {
                    wrong("it is the outcome of no open intent");
                }
                head.end(outcome);
            }
            Body::KeyCreated(created) => {
                if self.keys.insert(created.key.key_id.clone(), created.key.clone()).is_some() {
                    wrong("the key was made before");
                }
            }
            Body::KeyRevoked(revoked) => match self.keys.get_mut(&revoked.key_id) {
                Some(key) if !key.revoked => key.revoked = true,
                Some(_) | None => wrong("there is no such key to revoke"),
            },
            Body::WorkflowRegistered(registered) => self.add_workflow(registered, entry.at, index, wrong),
            Body::BundleActivated(activated) => match Bundle::from_text(&activated.text).map(Arc::new) {
                Ok(bundle) => {
                    self.bundles.insert(bundle.digest(), Arc::clone(&bundle));
                    self.in_force = Some(bundle);
                }
                Err(error) => wrong(&error.to_string()),
            },
            Body::Passed(passed) => {
                if passed.passes.is_empty() || !passed.passes.iter().all(|pass| pass.is_sound(entry.at)) {
                    wrong("it counts what cannot have been");
                }
                if entry.agent.is_some() {
                    self.add_to_agent(entry, index, before, wrong);
                }
            }
            Body::Unauthenticated(_) | Body::SigningKeyRotated(_) => {}
        }
    }

    fn add_workflow(&mut self, registered: &WorkflowRegistered, at: u64, index: u64, mut wrong: impl FnMut(&str)) {
        let Ok(workflow) = Workflow::from_text(&registered.workflow) else {
            return wrong("its workflow cannot be read");
        };
        let newest = self.registered.get(&registered.id);
        if WorkflowRegistered::after(newest, &workflow, registered.by.clone()).as_ref() != Some(registered) {
            wrong("it is not the next workflow under this id");
        }
        let head = apply_workflow_registered(registered, &workflow, at, index);
        self.registered.insert(registered.id.clone(), head);
    }

    fn add_to_agent(
        &mut self,
        entry: &Entry,
        index: u64,
        before: impl FnOnce(&Moment<'_>, &Ruled),
        mut wrong: impl FnMut(&str),
    ) {
        let id = entry.agent.as_deref().unwrap_or("");
        let Some(agent) = self.agents.get_mut(id) else { return wrong("its agent was never registered") };
        let expected = (Some(agent.entries.saturating_add(1)), Some(agent.last_index));
        if (entry.agent_seq, entry.previous) != expected {
            wrong("it does not follow the agent's entry before it");
        }
        let due = self.due.remove(id);
        let changed = if let Body::TrustChanged(changed) = &entry.body { Some(changed) } else { None };
        if due.as_ref() != changed {
            wrong("trust changed without a cause, or did not change as it had to");
        }
        let at = entry.at;
        if let Some(kind) = RefusalKind::of(&entry.body, agent.trust, entry.rules).filter(|_| entry.rules >= 5) {
            self.refusals.insert(index, (id.to_owned(), kind));
        }
        let due = match &entry.body {
            Body::RefusalsRepeated(repeated) => {
                for repeat in &repeated.repeats {
                    let known = self.refusals.get(&repeat.entry);
                    let same = known.is_some_and(|(agent, kind)| agent == id && kind.is_of(repeat));
                    if !same || repeat.count == 0 || repeat.first_at > repeat.last_at || repeat.last_at > at {
                        wrong("it counts repeats of something else than a refusal of this agent");
                    }
                }
                apply_repeated(agent, repeated, at, index)
            }
            Body::Ruled(ruled) => {
                let mut none = Conversation::default();
                let conversation = match &ruled.facts {
                    Some(facts) if facts.call.is_some() => {
                        if ruled.figures != Some(Figures::read(agent, &none, facts, at)) {
                            wrong("the figures it was decided on are not those of that moment");
                        }
                        &mut none
                    }
                    Some(facts) => {
                        let key = (id.to_owned(), facts.conversation.clone());
                        let conversation = self.conversations.entry(key).or_default();
                        if ruled.figures != Some(Figures::read(agent, conversation, facts, at)) {
                            wrong("the figures it was decided on are not those of that moment");
                        }
                        conversation
                    }
                    None => &mut none,
                };
                let is_call = ruled.facts.as_ref().is_some_and(|facts| facts.call.is_some());
                let mut run = is_call.then(|| self.runs.entry(id.to_owned()).or_default());
                let position = run.as_ref().and_then(|run| run.position.as_ref());
                let workflow = position.and_then(|position| self.workflows.get(&position.workflow)).cloned();
                let workflow = workflow.as_deref();
                let bundle = self.bundles.get(&ruled.bundle).cloned();
                let bundle = bundle.as_deref();
                before(&Moment { bundle, agent, conversation, run: run.as_deref(), workflow }, ruled);
                let evidence = ruled.evidence.as_ref();
                let observed = ruled.facts.is_some()
                    && bundle.is_some_and(|it| is_observed(it, agent, run.as_deref(), evidence, &ruled.ruling, at));
                if observed != ruled.observed {
                    wrong("whether it holds or is only shown comes out differently");
                }
                if let Some(run) = &mut run {
                    apply_ruled_call(run, workflow, ruled, at, index);
                }
                if let Some(redeemed) = &ruled.redeemed {
                    match self.tickets.get_mut(redeemed).filter(|ticket| ticket.agent == id && !ticket.spent) {
                        Some(ticket) if ticket.check_spendable(agent, ticket.bundle, at).is_ok() => ticket.spent = true,
                        Some(_) | None => wrong("it used up the agreement of a ticket that could not be spent"),
                    }
                }
                let consequences = apply_ruled(agent, conversation, ruled, entry.rules, at, index);
                let opened = consequences.ticket.as_ref().map(|ticket| ticket.approval_id.clone());
                self.tickets.extend(consequences.ticket.map(|ticket| (ticket.approval_id.clone(), ticket)));
                let executable = Executable::of(ruled);
                if executable.is_possible() {
                    self.executable.insert(index, (executable, opened));
                }
                consequences.trust
            }
            Body::TrustRequested(requested) => {
                let asked = self.bundles.get(&requested.bundle).map(|bundle| {
                    check_trust_request(bundle, agent, requested.to_level, Some(requested.from_level), at)
                });
                if asked != Some(Ok(())) {
                    wrong("more trust could not be asked for then");
                }
                let ticket = apply_trust_requested(agent, requested, entry.rules, at, index);
                self.tickets.insert(ticket.approval_id.clone(), ticket);
                None
            }
            Body::ApprovalResolved(resolved) => {
                let Some(ticket) = self.tickets.get_mut(&resolved.approval_id).filter(|ticket| ticket.agent == id)
                else {
                    return wrong("there is no such ticket of this agent");
                };
                let bundle = self.in_force.as_ref().map_or(ticket.bundle, |bundle| bundle.digest());
                if ticket.check_decidable(resolved.verdict, agent, bundle, at).is_err() {
                    wrong("this ticket could not be decided on");
                }
                let mut none = Conversation::default();
                let conversation = match &ticket.subject {
                    TicketSubject::Action(action) if resolved.verdict == Verdict::Approved && action.call.is_none() => {
                        self.conversations.entry((id.to_owned(), action.conversation.clone())).or_default()
                    }
                    TicketSubject::Action(_) | TicketSubject::Trust(_) | TicketSubject::Transition(_) => &mut none,
                };
                let of_run = match &ticket.subject {
                    TicketSubject::Action(action) => action.call.is_some(),
                    TicketSubject::Transition(_) => true,
                    TicketSubject::Trust(_) => false,
                };
                if of_run {
                    let run = self.runs.entry(id.to_owned()).or_default();
                    let position = run.position.as_ref();
                    let workflow = position.and_then(|position| self.workflows.get(&position.workflow)).cloned();
                    if apply_resolved_run(run, workflow.as_deref(), ticket, resolved).is_err() {
                        wrong("the transition could not be made at that moment");
                    }
                }
                apply_resolved(agent, conversation, ticket, resolved, at, index)
            }
            Body::Executed(executed) => {
                let found = self.executable.remove(&executed.decision);
                let opened = found.as_ref().and_then(|(_, opened)| opened.as_ref());
                let ticket = opened.and_then(|opened| self.tickets.get_mut(opened)).filter(|ticket| ticket.agent == id);
                let bundle = self.in_force.as_ref().map_or(Digest::of(&[]), |bundle| bundle.digest());
                let reported = self.executions.contains_key(&executed.decision);
                let executable = found.map(|(executable, _)| executable);
                let ruling = decide_execution(agent, executable, ticket.as_deref(), reported, bundle, at);
                let spent = ticket.filter(|_| ruling.as_ref().is_ok_and(|ruling| ruling.spends));
                let charge = ruling.map(|ruling| ruling.charged.raised_by(executed.usage));
                if charge != Ok(executed.charge) {
                    wrong("this execution could not be reported then, or cost something else");
                }
                if spent.as_ref().map(|ticket| &ticket.approval_id) != executed.approval_id.as_ref() {
                    wrong("it spent another ticket than the one its decision had opened");
                }
                apply_executed(agent, spent, executed, at, index);
                self.executions.insert(executed.decision, index);
                None
            }
            Body::Transitioned(asked) => {
                let run = self.runs.entry(id.to_owned()).or_default();
                let position = run.position.as_ref();
                let workflow = position.and_then(|position| self.workflows.get(&position.workflow)).cloned();
                let decided = self
                    .bundles
                    .get(&asked.bundle)
                    .map(|bundle| decide_transition(bundle, agent, run, workflow.as_deref(), &asked.asked(), at));
                if !decided.is_some_and(|decided| is_outcome(decided, &asked.outcome)) {
                    wrong("the transition comes out differently");
                }
                let name = workflow.as_deref().map_or("", Workflow::id);
                if let Some(ticket) = apply_transitioned(agent, asked, entry.rules, at, index, name) {
                    self.tickets.insert(ticket.approval_id.clone(), ticket);
                }
                apply_transitioned_run(run, workflow.as_deref(), asked);
                None
            }
            body @ (Body::RunStarted(_)
            | Body::RunSteered(_)
            | Body::CallEnded(_)
            | Body::TurnEnded(_)
            | Body::SessionBound(_)
            | Body::AllowanceGiven(_)
            | Body::AllowanceTaken(_)) => {
                let run = self.runs.entry(id.to_owned()).or_default();
                let workflow = if let Body::RunStarted(started) = body {
                    let read = Workflow::from_text(&started.workflow).ok().map(Arc::new);
                    match &read {
                        Some(workflow) => drop(self.workflows.insert(workflow.digest(), Arc::clone(workflow))),
                        None => wrong("its workflow cannot be read"),
                    }
                    read
                } else {
                    let position = run.position.as_ref();
                    position.and_then(|position| self.workflows.get(&position.workflow)).cloned()
                };
                if let Body::RunSteered(steered) = body
                    && !steered.steer.is_possible(workflow.as_deref())
                {
                    wrong("its workflow has no such state to go on in");
                }
                apply_to_agent(agent, body, at, index);
                // What froze it is in the row.
                let _ = apply_to_run(run, workflow.as_deref(), body, index);
                None
            }
            body @ (Body::TrustChanged(_)
            | Body::Passed(_)
            | Body::StatusChanged(_)
            | Body::ModeChanged(_)
            | Body::TokenRotated(_)
            | Body::TextsErased(_)
            | Body::Registered(_)
            | Body::BundleActivated(_)
            | Body::Unauthenticated(_)
            | Body::StateIntent(_)
            | Body::StateOutcome(_)
            | Body::KeyCreated(_)
            | Body::KeyRevoked(_)
            | Body::SigningKeyRotated(_)
            | Body::WorkflowRegistered(_)) => {
                apply_to_agent(agent, body, at, index);
                None
            }
        };
        if let Some(due) = due {
            self.due.insert(id.to_owned(), due);
        }
    }

    /// What is still missing once every entry was added.
    pub(super) fn finish(&self, mut wrong: impl FnMut(&str)) {
        for id in self.due.keys() {
            wrong(&format!("trust of {id} had to change after its last ruling and did not"));
        }
    }
}

/// Whether a recorded outcome is the one that was decided; the id of a ticket was drawn then.
fn is_outcome(mut decided: TransitionOutcome, recorded: &TransitionOutcome) -> bool {
    if let (TransitionOutcome::Parked { approval_id, .. }, TransitionOutcome::Parked { approval_id: drawn, .. }) =
        (&mut decided, recorded)
    {
        approval_id.clone_from(drawn);
    }
    decided == *recorded
}
