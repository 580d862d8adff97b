//! Runs: tool calls of coding agents, transitions, what hosts report, and what operators do with a run. What may be is
//! decided by `interlock_core`; here it is read, recorded and put into rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::action::{
    Actor, CallRuling, CallSnapshot, Conversation, Figures, Mode, PassAsked, PassKind, PassRuling, decide_call,
    decide_end, decide_pass, decide_start, decide_transition, decide_unread, is_observed, is_violation,
};
use interlock_core::ledger::{
    Body, ModeChanged, RULES, RefusalKind, Ruled, RunStarted, RunSteered, Steer, TransitionOutcome, Transitioned,
    WorkflowHead, WorkflowRegistered, leaf_hash,
};
use interlock_core::workflow::{CONTEXT_BYTES_MAX, Run, TransitionAsked, Workflow};
use interlock_core::{Code, Digest};

use super::command::{CallCommand, Enrolment, RunChange, StartGround, TransitionCommand};
use super::refusals::NOBODY;
use super::{Answer, Batch, Read, Recorded, Trouble, digest_of_text};
use crate::ledger::store::{FoundEntry, StoreFault};

/// How many workflows the writer remembers, resolved.
const WORKFLOWS_LEN: usize = 64;

/// The longest event that is looked up; those of workflows are shorter.
const EVENT_BYTES_MAX: usize = 1_024;

/// Workflows by the SHA-256 of their text.
#[derive(Debug, Clone, Default)]
pub struct Workflows(Vec<Arc<Workflow>>);

impl Workflows {
    fn find(&self, digest: Digest) -> Option<Arc<Workflow>> {
        self.0.iter().find(|known| known.digest() == digest).cloned()
    }

    fn add(&mut self, workflow: Arc<Workflow>) {
        if self.0.len() >= WORKFLOWS_LEN {
            self.0.remove(0);
        }
        self.0.push(workflow);
    }
}

impl Batch<'_> {
    /// Registers a coding agent at its first call; one that is known stays as it is.
    pub(super) fn enrol(&mut self, enrolment: Enrolment) -> Result<Answer, Trouble> {
        let id = enrolment.profile.agent_id.clone();
        if self.agent(&id)?.is_some() {
            return Ok(Answer::Done);
        }
        let trust = enrolment.profile.kind.trust();
        let answer = self.register(*enrolment.profile, enrolment.token, trust)?;
        if enrolment.mode == Mode::Observe {
            let (mode, by) = (enrolment.mode, enrolment.by);
            let reason = Some("refusals are only shown until `interlock enforce`".to_owned());
            self.change(&id, Body::ModeChanged(ModeChanged { mode, by, reason }))?;
        }
        Ok(answer)
    }

    pub(super) fn call(&mut self, command: CallCommand) -> Result<Answer, Trouble> {
        let CallCommand { agent: id, facts, evidence, text, beside } = command;
        let Some(agent) = self.agent(&id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        let now = self.state.clock.max(agent.last_at);
        let run = self.run_row(&id)?;
        let workflow = self.workflow_of(&id, &run)?;
        let bundle = Arc::clone(&self.state.bundle);
        let snapshot = CallSnapshot { run: &run, workflow: workflow.as_deref() };
        let Ok(CallRuling { ruling, redeemed, used }) =
            decide_call(&bundle, &agent, snapshot, &facts, evidence.as_ref(), now)
        else {
            return Ok(Answer::NeedsEvidence(bundle));
        };
        let mut ruled = Ruled {
            decision_id: self.decision_id(&agent)?,
            bundle: bundle.digest(),
            violation: is_violation(&bundle, &agent, &facts, evidence.as_ref(), &ruling),
            observed: is_observed(&bundle, &agent, Some(&run), evidence.as_ref(), &ruling, now),
            ticket: self.ticket_of(&facts, &ruling, now)?,
            text: None,
            figures: Some(Figures::read(&agent, &Conversation::default(), &facts, now)),
            facts: Some(*facts),
            evidence,
            ruling,
            idempotency: None,
            redeemed,
            used,
        };
        let kind = RefusalKind::of_ruling(&ruled, agent.trust, RULES);
        if let Some(kind) = &kind {
            let answer = |decision_id| Body::Ruled(Box::new(Ruled { decision_id, ..ruled.clone() }));
            if let Some(recorded) = self.fold_refusal(&agent, kind, answer, now)? {
                return Ok(Answer::Recorded(recorded));
            }
        }
        let seq = agent.entries.saturating_add(1);
        let kept_text = self.keep_text(&id, &ruled, text, None, seq)?;
        ruled.text = kept_text.as_ref().map(digest_of_text);
        let read = Read { agent: Some(agent), run: Some(Box::new(run)), ..Read::default() };
        let answer = self.record(read, now, Body::Ruled(Box::new(ruled)))?;
        if let (Some(kind), Answer::Recorded(recorded)) = (&kind, &answer) {
            self.remember_refusal(&id, kind, recorded, kept_text.as_ref());
        }
        self.texts.extend(kept_text);
        let run = self.runs.get(&id);
        let begun = run.and_then(|run| run.open.iter().find(|open| open.decision == seq));
        let (changes, looks) = begun.map_or((false, false), |open| (open.changes, open.fact.is_some()));
        self.tell_of_changes(&id, changes, looks, &beside)?;
        Ok(answer)
    }

    /// What goes on without a ruling of its own: counted, and the first of its kind on record before it is answered.
    pub(super) fn pass(&mut self, id: &str, asked: PassAsked) -> Result<Answer, Trouble> {
        let Some(agent) = self.agent(id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        let now = self.state.clock.max(agent.last_at);
        let run = self.run_row(id)?;
        let ruling = decide_pass(&self.state.bundle, &agent, &run, asked, now);
        if let PassRuling::Passes(kind) = ruling {
            self.count_pass(id, kind, now)?;
        }
        Ok(Answer::Passed(ruling))
    }

    /// A person runs a command of their own.
    pub(super) fn pass_own_run(&mut self) -> Result<Answer, Trouble> {
        self.count_pass(NOBODY, PassKind::OwnRun, self.state.clock)?;
        Ok(Answer::Passed(PassRuling::Passes(PassKind::OwnRun)))
    }

    pub(super) fn pass_unread(&mut self, holds: bool) -> Result<Answer, Trouble> {
        let ruling = decide_unread(holds);
        if let PassRuling::Passes(kind) = ruling {
            self.count_pass(NOBODY, kind, self.state.clock)?;
        }
        Ok(Answer::Passed(ruling))
    }

    pub(super) fn transition(&mut self, command: TransitionCommand) -> Result<Answer, Trouble> {
        let TransitionCommand { agent: id, event, data, expected_revision } = command;
        // No context takes it, so the ledger does not keep it either.
        if event.len() > EVENT_BYTES_MAX || data.text().len() > CONTEXT_BYTES_MAX {
            return Ok(Answer::Refused(Code::WorkflowData));
        }
        let Some(agent) = self.agent(&id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        let now = self.state.clock.max(agent.last_at);
        let run = self.run_row(&id)?;
        let workflow = self.workflow_of(&id, &run)?;
        let bundle = Arc::clone(&self.state.bundle);
        let question = TransitionAsked { event: &event, data: &data, expected_revision };
        let mut outcome = decide_transition(&bundle, &agent, &run, workflow.as_deref(), &question, now);
        if let TransitionOutcome::Parked { approval_id, .. } = &mut outcome {
            *approval_id = self.approval_id()?;
        }
        let asked = Transitioned {
            decision_id: self.decision_id(&agent)?,
            bundle: bundle.digest(),
            run_id: run.position.as_ref().map(|position| position.run_id.clone()),
            event,
            data,
            expected_revision,
            outcome,
        };
        let kind = RefusalKind::of_transition(&asked, agent.trust);
        if let Some(kind) = &kind {
            let answer = |decision_id| Body::Transitioned(Box::new(Transitioned { decision_id, ..asked.clone() }));
            if let Some(recorded) = self.fold_refusal(&agent, kind, answer, now)? {
                return Ok(Answer::Recorded(recorded));
            }
        }
        let read = Read { agent: Some(agent), run: Some(Box::new(run)), ..Read::default() };
        let answer = self.record(read, now, Body::Transitioned(Box::new(asked)))?;
        if let (Some(kind), Answer::Recorded(recorded)) = (&kind, &answer) {
            self.remember_refusal(&id, kind, recorded, None);
        }
        Ok(answer)
    }

    /// What one agent writes, every agent of the project finds: facts of the others fall, and a command that is to be a
    /// fact while another agent is writing is none.
    fn tell_of_changes(&mut self, id: &str, changes: bool, looks: bool, others: &[String]) -> Result<(), Trouble> {
        let steered = |by: &str| {
            let reason = Some("files of the project are written by another agent".to_owned());
            RunChange::Steer(RunSteered {
                steer: Steer::Changed,
                by: Actor { name: by.to_owned(), key_id: None },
                reason,
            })
        };
        for other in others {
            let run = self.run_row(other)?;
            if changes && (!run.seen.facts.is_empty() || run.open.iter().any(|open| open.fact.is_some())) {
                self.change_run(other, steered(id))?;
            }
            if looks && run.open.iter().any(|open| open.changes && !open.left) {
                self.change_run(id, steered(other))?;
            }
        }
        Ok(())
    }

    /// A workflow is put in force, a run is steered, a host reports, an operator allows.
    pub(super) fn change_run(&mut self, id: &str, change: RunChange) -> Result<Answer, Trouble> {
        let Some(agent) = self.agent(id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        let now = self.state.clock.max(agent.last_at);
        let run = self.run_row(id)?;
        let mut beside = Vec::new();
        let (body, workflow) = match change {
            RunChange::Start { workflow, run_id, session, ground, by } => {
                match started(&workflow, run_id, session, &ground, by) {
                    Ok(body) => (body, Some(workflow)),
                    Err(why) => return Ok(self.unstarted(&why)),
                }
            }
            RunChange::StartRegistered { workflow, run_id, session, ground, by } => {
                let Some(workflow) = self.registered_workflow(&workflow)? else {
                    return Ok(Answer::Refused(Code::WorkflowNoRun));
                };
                match started(&workflow, run_id, session, &ground, by) {
                    Ok(body) => (body, Some(workflow)),
                    Err(why) => return Ok(self.unstarted(&why)),
                }
            }
            RunChange::Steer(steered) => {
                let workflow = self.workflow_of(id, &run)?;
                if !steered.steer.is_possible(workflow.as_deref()) {
                    return Ok(Answer::Refused(Code::RequestMalformed));
                }
                (Body::RunSteered(steered), workflow)
            }
            RunChange::CallEnded { report, beside: others } => {
                beside = others;
                (Body::CallEnded(report), None)
            }
            RunChange::TurnEnded(turn) => {
                // Most turns end with nothing under way.
                if !run.open.iter().any(|open| turn.had(open)) {
                    return Ok(Answer::Done);
                }
                (Body::TurnEnded(turn), None)
            }
            RunChange::StartExec(started) => {
                match decide_start(&agent, &run, &started.asked(), now) {
                    Ok(open) if open.ticket.as_ref().is_some_and(|ticket| ticket.profile == started.profile) => {}
                    Ok(_) => return Ok(Answer::Refused(Code::ContainTicket)),
                    Err(code) => return Ok(Answer::Refused(code)),
                }
                (Body::ExecStarted(started), None)
            }
            RunChange::EndExec(ended) => {
                if let Err(code) = decide_end(&run, &ended.exec_id) {
                    return Ok(Answer::Refused(code));
                }
                (Body::ExecEnded(ended), None)
            }
            RunChange::Keep(kept) => (Body::Kept(kept), None),
            RunChange::Prune(pruned) => (Body::Pruned(pruned), None),
            RunChange::StartUndo(undo) => {
                if run.undoing.is_some() {
                    return Ok(Answer::Refused(Code::KeepConflict));
                }
                (Body::UndoStarted(undo), None)
            }
            RunChange::EndUndo { ended, beside: others } => {
                beside = others;
                (Body::UndoEnded(ended), None)
            }
            RunChange::BindSession(bound) => {
                let is_known = bound.host.as_ref().is_none_or(|host| run.hosts.contains(host));
                if run.sessions.contains(&bound.session) && is_known {
                    return Ok(Answer::Done);
                }
                (Body::SessionBound(bound), None)
            }
            RunChange::Allow(given) => (Body::AllowanceGiven(given), None),
            RunChange::Disallow(taken) => {
                if !run.allowances.iter().any(|known| known.allowance_id == taken.allowance_id) {
                    return Ok(Answer::Refused(Code::RequestRoute));
                }
                (Body::AllowanceTaken(taken), None)
            }
        };
        let writing = |run: &Run| run.open.iter().filter(|open| open.changes).count();
        let (before, ends_call) = (writing(&run), matches!(body, Body::CallEnded(_)));
        let is_undone = matches!(body, Body::UndoEnded(_));
        let read = Read { agent: Some(agent), run: Some(Box::new(run)), workflow: workflow.clone(), ..Read::default() };
        let answer = self.record(read, now, body)?;
        if let Some(workflow) = workflow.filter(|workflow| self.state.workflows.find(workflow.digest()).is_none()) {
            self.state.workflows.add(workflow);
        }
        // What was under way may have written until now.
        let has_written = is_undone || ends_call && self.runs.get(id).is_some_and(|run| writing(run) < before);
        self.tell_of_changes(id, has_written, false, &beside)?;
        Ok(answer)
    }

    fn unstarted(&self, why: &Unstarted) -> Answer {
        match why {
            Unstarted::NoRunner => Answer::Refused(Code::ConfigInvalid),
            Unstarted::Unlooked => Answer::NeedsEvidence(Arc::clone(&self.state.bundle)),
        }
    }

    /// Makes a workflow the newest under its id. One that is that already is answered with its entry.
    pub(super) fn register_workflow(&mut self, workflow: Arc<Workflow>, by: Actor) -> Result<Answer, Trouble> {
        let newest = self.workflow_head(workflow.id())?;
        let registered = match (WorkflowRegistered::after(newest.as_ref(), &workflow, by), newest) {
            (Some(registered), _) => registered,
            (None, Some(newest)) => return self.registration(newest.entry).map(Box::new).map(Answer::Recorded),
            (None, None) => return Err(Trouble::Internal),
        };
        let read = Read { workflow: Some(workflow), ..Read::default() };
        self.record(read, self.state.clock, Body::WorkflowRegistered(Box::new(registered)))
    }

    /// An earlier registration, by its number among the service's entries.
    fn registration(&mut self, seq: u64) -> Result<Recorded, Trouble> {
        let FoundEntry { place: index, entry, bytes } = self.needed_entry(None, seq)?;
        Ok(Recorded { entry, index, leaf: leaf_hash(&bytes), replayed: true, folded: None, corrected: None })
    }

    pub(super) fn workflow_head(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
        match self.workflows.get(id) {
            Some(head) => Ok(Some(head.clone())),
            None => self.txn.workflow(id),
        }
    }

    /// The newest workflow under an id.
    fn registered_workflow(&mut self, id: &str) -> Result<Option<Arc<Workflow>>, Trouble> {
        let Some(head) = self.workflow_head(id)? else { return Ok(None) };
        if let Some(known) = self.state.workflows.find(head.digest).filter(|known| known.id() == id) {
            return Ok(Some(known));
        }
        let Recorded { entry, .. } = self.registration(head.entry)?;
        let registered = entry.body.workflow_registered().ok_or(Trouble::Internal)?;
        let workflow = Workflow::from_text(&registered.workflow).map_err(|_| Trouble::Internal)?;
        // What was asked for, or nothing, whatever a row says.
        if workflow.digest() != head.digest || workflow.id() != id {
            return Err(Trouble::Internal);
        }
        Ok(Some(Arc::new(workflow)))
    }

    pub(super) fn run_row(&mut self, agent: &str) -> Result<Run, StoreFault> {
        match self.runs.get(agent) {
            Some(run) => Ok(run.clone()),
            None => Ok(self.txn.run(agent)?.unwrap_or_default()),
        }
    }

    /// The workflow that the run of an agent is in. One that cannot be read again is none, and then nothing passes.
    pub(super) fn workflow_of(&mut self, agent: &str, run: &Run) -> Result<Option<Arc<Workflow>>, StoreFault> {
        let Some(position) = &run.position else { return Ok(None) };
        if let Some(known) = self.state.workflows.find(position.workflow) {
            return Ok(Some(known));
        }
        let Some(found) = self.entry_of(Some(agent), position.started)? else { return Ok(None) };
        let Body::RunStarted(started) = found.entry.body else { return Ok(None) };
        let Ok(workflow) = Workflow::from_text(&started.workflow) else { return Ok(None) };
        let workflow = Arc::new(workflow);
        self.state.workflows.add(Arc::clone(&workflow));
        Ok(Some(workflow))
    }
}

/// The entry of a run that begins, or why it does not.
fn started(
    workflow: &Workflow,
    run_id: String,
    session: Option<String>,
    ground: &StartGround,
    by: Actor,
) -> Result<Body, Unstarted> {
    // Whoever wrote such a setting counts on it.
    if workflow.needs_runner().is_some() && !ground.has_runner {
        return Err(Unstarted::NoRunner);
    }
    let mut scripts = BTreeMap::new();
    for fact in workflow.facts() {
        let script = ground.scripts.get(&fact.command).ok_or(Unstarted::Unlooked)?;
        scripts.extend(script.map(|script| (fact.name.clone(), script)));
    }
    Ok(Body::RunStarted(Box::new(RunStarted { run_id, workflow: workflow.text().to_owned(), session, scripts, by })))
}

/// Why a run does not begin.
enum Unstarted {
    /// The workflow needs a runner, and there is none.
    NoRunner,
    /// It has facts that nobody looked at: it was registered after somebody did.
    Unlooked,
}
