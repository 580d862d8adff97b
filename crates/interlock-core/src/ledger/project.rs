//! The rows that follow from entries: one function, which the writer, the audit and a migration call, so that they cannot
//! disagree.
//!
//! A new kind of entry is one more arm of [`Step::body`]: which rows it touches, and what it changes of them. What an
//! entry is decided by is not known here.

mod rulings;
mod runs;
mod state_head;

use std::sync::Arc;

use super::entry::{
    AgentRegistered, ApprovalResolved, Body, Entry, Executed, KeyRevoked, OperatorKey, Ruled, StateIntent,
    StateOutcome, TrustChanged,
};
use super::entry_ref::{EntryRef, NAMES_SINCE};
use super::exec_entry::{ExecEnded, ExecStarted};
use super::keep_entry::{UndoEnded, UndoStarted};
use super::refusals::apply_repeated;
use super::run_entry::{RunSteered, Transitioned};
use super::workflows::{WorkflowHead, WorkflowRegistered};
use crate::action::{Agent, Conversation, Millis, Record, Ticket, TicketSubject, Verdict, decide_end, decide_start};
use crate::workflow::{self, Run, Workflow};

pub(super) use rulings::counted;
pub use runs::{is_of_run, resolve_for_run};
pub use state_head::{OpenIntent, StateHead};

/// Where the rows are kept that entries change. Each is asked for when an entry touches it, and handed over: as it is
/// afterwards it is in the [`Consequences`], changed or not.
pub trait Rows {
    /// Why a row cannot be had.
    type Fault;

    /// An agent.
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, Self::Fault>;
    /// A conversation; a new one is empty.
    fn conversation(&mut self, agent: &str, id: &str) -> Result<Conversation, Self::Fault>;
    /// What is known of a coding agent's calls; nothing at first.
    fn run(&mut self, agent: &str) -> Result<Run, Self::Fault>;
    /// The workflow that the run of an agent is in.
    fn workflow(&mut self, agent: &str, run: &Run) -> Result<Option<Arc<Workflow>>, Self::Fault>;
    /// The workflow that an entry has the text of, if it can be read.
    fn read_workflow(&mut self, text: &str) -> Option<Arc<Workflow>>;
    /// A ticket.
    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, Self::Fault>;
    /// What is known of a state file; nothing at first.
    fn head(&mut self, path: &str) -> Result<StateHead, Self::Fault>;
    /// An operator's key.
    fn key(&mut self, id: &str) -> Result<Option<OperatorKey>, Self::Fault>;
    /// The newest workflow under an id.
    fn registered(&mut self, id: &str) -> Result<Option<WorkflowHead>, Self::Fault>;
    /// How many entries the service has.
    fn of_service(&mut self) -> Result<u64, Self::Fault>;
    /// The number, among the entries of an agent or of the service, of the one at a place in the tree. Only entries of
    /// formats before the sixth speak of places, and nobody writes those any more.
    fn seq_at(&mut self, _agent: Option<&str>, _place: u64) -> Option<u64> {
        None
    }
    /// How many entries an agent had when the ledger had so many; for entries of formats before the sixth as well.
    fn entries_before(&mut self, _agent: &str, _size: u64) -> u64 {
        0
    }
    /// Sees what an entry was decided on, where one is decided, before it changes anything.
    fn before(&mut self, _entry: &Entry, _moment: &Moment<'_>) {}
}

/// What an entry was decided on.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// The conversation; an empty one for what belongs to none.
    pub conversation: &'a Conversation,
    /// What was known of the agent's calls, for what is about those.
    pub run: Option<&'a Run>,
    /// The workflow the run was in.
    pub workflow: Option<&'a Workflow>,
    /// How many entries the agent had when the request came in; of a ruling only.
    pub opened_at: u64,
}

/// What follows from an entry: the rows that it touched, as they are after it, and what must come of it. What few entries
/// touch is boxed: an approval should not carry it about.
#[derive(Debug, Default)]
pub struct Consequences {
    /// The agent.
    pub agent: Option<Agent>,
    /// The conversation that was asked for.
    pub conversation: Option<Conversation>,
    /// It is another than before.
    pub has_conversed: bool,
    /// The run of the agent.
    pub run: Option<Box<Run>>,
    /// The ticket that was asked for.
    pub ticket: Option<Box<Ticket>>,
    /// The ticket that the entry opened.
    pub opened: Option<Box<Ticket>>,
    /// A state file, by its path.
    pub head: Option<Box<(String, StateHead)>>,
    /// An operator's key.
    pub key: Option<Box<OperatorKey>>,
    /// A workflow that is the newest under its id.
    pub workflow: Option<Box<WorkflowHead>>,
    /// How many entries the service has, if this is one of it.
    pub of_service: Option<u64>,
    /// The decision that was reported as carried out: the number of its entry among the agent's.
    pub executed: Option<u64>,
    /// The agent has another token.
    pub has_token: bool,
    /// The agent's texts are removed.
    pub erased: bool,
    /// The entry whose text nobody needs any more: the number among the agent's.
    pub forgotten: Option<u64>,
    /// How trust changes: the next entry of the agent must say so.
    pub trust: Option<TrustChanged>,
    /// Why this entry cannot be, where it stands; nothing if it can.
    pub impossible: Vec<&'static str>,
}

/// When and under which rules an entry was written, and its number among those of its agent or of the service.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    rules: u32,
    at: Millis,
    seq: u64,
}

/// What an entry changes. The rows it does not touch are not asked for. Where it stands in the tree does not matter.
pub fn apply<R: Rows>(entry: &Entry, rows: &mut R) -> Result<Consequences, R::Fault> {
    let stamp = Stamp { rules: entry.rules, at: entry.at, seq: 1 };
    let mut step = Step { entry, stamp, rows, after: Consequences::default() };
    step.body()?;
    Ok(step.after)
}

struct Step<'e, R> {
    entry: &'e Entry,
    stamp: Stamp,
    rows: &'e mut R,
    after: Consequences,
}

impl<'e, R: Rows> Step<'e, R> {
    /// What each kind of entry touches and changes. Every kind is here, and only here.
    fn body(&mut self) -> Result<(), R::Fault> {
        let (entry, at) = (self.entry, self.stamp.at);
        match &entry.body {
            Body::Registered(registered) => self.register(registered),
            Body::Ruled(ruled) => self.of_agent(|step, agent| step.rule(agent, ruled)),
            Body::RefusalsRepeated(repeated) => self.of_agent(|step, agent| {
                repeated.repeats.iter().for_each(|repeat| {
                    step.named(&repeat.entry);
                });
                step.after.trust = apply_repeated(agent, repeated, at, step.stamp.seq);
                Ok(())
            }),
            Body::TrustRequested(requested) => self.of_agent(|step, agent| {
                step.see(agent);
                let mut ticket = rulings::request_trust(agent, requested, step.stamp);
                step.renumber_merits(&mut ticket);
                step.after.opened = Some(Box::new(ticket));
                Ok(())
            }),
            Body::ApprovalResolved(resolved) => self.of_agent(|step, agent| step.resolve(agent, resolved)),
            Body::Executed(executed) => self.of_agent(|step, agent| step.execute(agent, executed)),
            Body::TrustChanged(changed) => self.agent(|agent| {
                agent.trust = changed.to_level;
                agent.record = Record::default();
            }),
            Body::StatusChanged(changed) => self.agent(|agent| agent.status = changed.status),
            Body::ModeChanged(changed) => self.agent(|agent| agent.mode = changed.mode),
            Body::TokenRotated(rotated) => {
                self.after.has_token = true;
                self.agent(|agent| agent.token = rotated.token)
            }
            Body::TextsErased(_) => {
                self.after.erased = true;
                self.agent(|_| {})
            }
            Body::Transitioned(asked) => self.of_agent(|step, agent| step.transition(agent, asked)),
            Body::RunSteered(steered) => self.of_agent(|step, agent| step.steer(agent, steered)),
            Body::RunStarted(started) => {
                let workflow = self.rows.read_workflow(&started.workflow);
                self.check(workflow.is_some(), "its workflow cannot be read");
                self.run(|run, seq| {
                    if let Some(workflow) = workflow {
                        runs::start(run, &workflow, started, seq);
                    }
                })
            }
            Body::CallEnded(told) => {
                let rules = entry.rules;
                self.run(|run, _| runs::end_call(run, told, rules))
            }
            Body::ExecStarted(started) => self.of_agent(|step, agent| step.start_exec(agent, started)),
            Body::ExecEnded(ended) => self.of_agent(|step, _| step.end_exec(ended)),
            Body::UndoStarted(undo) => self.of_agent(|step, _| step.start_undo(undo)),
            Body::UndoEnded(undo) => self.of_agent(|step, _| step.end_undo(undo)),
            Body::Kept(_) | Body::Pruned(_) => self.agent(|_| {}),
            Body::TurnEnded(turn) => self.run(|run, _| workflow::end_turn(run, |open| turn.had(open))),
            Body::SessionBound(bound) => self.run(|run, _| {
                run.bind(&bound.session);
                if let Some(host) = &bound.host {
                    run.note_host(host);
                }
            }),
            Body::AllowanceGiven(given) => self.run(|run, _| run.allowances.push(given.allowance.clone())),
            Body::AllowanceTaken(taken) => {
                self.run(|run, _| run.allowances.retain(|it| it.allowance_id != taken.allowance_id))
            }
            Body::StateIntent(intent) => self.of_service(|step| step.begin_state(intent)),
            Body::StateOutcome(outcome) => self.of_service(|step| step.end_state(outcome)),
            Body::KeyCreated(created) => self.of_service(|step| {
                let known = step.rows.key(&created.key.key_id)?;
                step.check(known.is_none(), "the key was made before");
                step.after.key = Some(Box::new(created.key.clone()));
                Ok(())
            }),
            Body::KeyRevoked(revoked) => self.of_service(|step| step.revoke_key(revoked)),
            Body::WorkflowRegistered(registered) => self.of_service(|step| step.register_workflow(registered)),
            Body::Passed(passed) => {
                let is_sound = !passed.passes.is_empty() && passed.passes.iter().all(|pass| pass.is_sound(at));
                self.check(is_sound, "it counts what cannot have been");
                // Nobody knows whose an event is that cannot be read.
                if entry.agent.is_some() { self.agent(|_| {}) } else { self.of_service(|_| Ok(())) }
            }
            Body::BundleActivated(_) | Body::Unauthenticated(_) | Body::SigningKeyRotated(_) => {
                self.of_service(|_| Ok(()))
            }
        }
    }

    fn check(&mut self, holds: bool, otherwise: &'static str) {
        if !holds {
            self.after.impossible.push(otherwise);
        }
    }

    /// The id of the agent that the entry is about.
    fn agent_id(&self) -> &'e str {
        self.entry.agent.as_deref().unwrap_or("")
    }

    fn register(&mut self, registered: &AgentRegistered) -> Result<(), R::Fault> {
        let id = &registered.profile.agent_id;
        let is_first =
            self.entry.agent.as_ref() == Some(id) && self.entry.agent_seq == Some(1) && self.entry.previous.is_none();
        self.check(is_first, "it is not the first entry of the agent it registers");
        let known = self.rows.agent(id)?;
        self.check(known.is_none(), "the agent was registered before");
        let AgentRegistered { profile, token, trust_level } = registered;
        self.after.agent = Some(Agent::registered(profile.clone(), *token, *trust_level));
        self.after.has_token = true;
        Ok(())
    }

    /// An entry of an agent: it is counted and becomes the last one.
    fn of_agent(&mut self, change: impl FnOnce(&mut Self, &mut Agent) -> Result<(), R::Fault>) -> Result<(), R::Fault> {
        let id = self.agent_id();
        let Some(mut agent) = self.rows.agent(id)? else {
            self.check(false, "its agent was never registered");
            return Ok(());
        };
        self.stamp.seq = agent.entries.saturating_add(1);
        let follows = self.entry.agent_seq == Some(self.stamp.seq) && self.is_after(agent.entries);
        self.check(follows, "it does not follow the agent's entry before it");
        self.check(self.stamp.at >= agent.last_at, "it is older than the agent's entry before it");
        change(self, &mut agent)?;
        agent.entries = self.stamp.seq;
        agent.last_at = agent.last_at.max(self.stamp.at);
        self.after.agent = Some(agent);
        Ok(())
    }

    /// Whether what an entry says of the one before it is right: from the sixth format on its own number says it.
    fn is_after(&mut self, before: u64) -> bool {
        match self.entry.previous {
            Some(place) if self.entry.format < NAMES_SINCE => {
                self.rows.seq_at(Some(self.agent_id()), place) == Some(before)
            }
            Some(_) => false,
            None => self.entry.format >= NAMES_SINCE,
        }
    }

    /// An entry of the service: it is counted. Before the sixth format it does not say its number.
    fn of_service(&mut self, change: impl FnOnce(&mut Self) -> Result<(), R::Fault>) -> Result<(), R::Fault> {
        self.stamp.seq = self.rows.of_service()?.saturating_add(1);
        let said = (self.entry.format >= NAMES_SINCE).then_some(self.stamp.seq);
        let follows = self.entry.agent.is_none() && self.entry.previous.is_none() && self.entry.agent_seq == said;
        self.check(follows, "it does not follow the service's entry before it");
        self.after.of_service = Some(self.stamp.seq);
        change(self)
    }

    /// The number of an entry that this one names, which is an earlier one of the same agent, or of the service.
    fn named(&mut self, named: &EntryRef) -> u64 {
        let found = self.entry.seq_of(named, |agent, place| self.rows.seq_at(agent, place));
        let found = found.filter(|seq| (1..self.stamp.seq).contains(seq));
        self.check(found.is_some(), "it names no earlier entry of the same agent, or of the service");
        found.unwrap_or_default()
    }

    /// How far merits were looked at, as entries before the sixth format say it, by the agent's own numbers.
    fn renumber_merits(&mut self, ticket: &mut Ticket) {
        if let TicketSubject::Trust(asked) = &mut ticket.subject
            && self.entry.format < NAMES_SINCE
        {
            let through = self.rows.seq_at(Some(self.agent_id()), asked.merits.through);
            asked.merits.through = through.unwrap_or_default();
        }
    }

    /// An entry that changes nothing beside its agent.
    fn agent(&mut self, change: impl FnOnce(&mut Agent)) -> Result<(), R::Fault> {
        self.of_agent(|_, agent| {
            change(agent);
            Ok(())
        })
    }

    /// An entry that changes the run of its agent, whatever workflow it is in. The change is told the entry's number.
    fn run(&mut self, change: impl FnOnce(&mut Run, u64)) -> Result<(), R::Fault> {
        self.of_agent(|step, _| {
            let id = step.agent_id();
            let mut run = step.rows.run(id)?;
            change(&mut run, step.stamp.seq);
            step.after.run = Some(Box::new(run));
            Ok(())
        })
    }

    fn rule(&mut self, agent: &mut Agent, ruled: &Ruled) -> Result<(), R::Fault> {
        let (id, facts) = (self.agent_id(), ruled.facts.as_ref());
        let mut conversation = match facts.filter(|facts| facts.call.is_none()) {
            Some(facts) => Some(self.rows.conversation(id, &facts.conversation)?),
            None => None,
        };
        let mut run = match facts.filter(|facts| facts.call.is_some()) {
            Some(_) => Some(self.rows.run(id)?),
            None => None,
        };
        let workflow = match &run {
            Some(run) => self.rows.workflow(id, run)?,
            None => None,
        };
        let (workflow, mut none) = (workflow.as_deref(), Conversation::default());
        let row = conversation.as_mut().unwrap_or(&mut none);
        let opened_at = match facts.map_or(0, |facts| facts.opened_at) {
            size if self.entry.format < NAMES_SINCE => self.rows.entries_before(id, size),
            entries => entries,
        };
        let moment = Moment { agent, conversation: row, run: run.as_ref(), workflow, opened_at };
        self.rows.before(self.entry, &moment);
        if let Some(redeemed) = &ruled.redeemed {
            self.spend(agent, redeemed, "it used up the agreement of a ticket that could not be spent")?;
        }
        if let Some(run) = &mut run {
            runs::rule(run, workflow, ruled, self.stamp);
        }
        rulings::rule(agent, row, ruled, self.stamp, &mut self.after);
        self.after.conversation = conversation;
        self.after.run = run.map(Box::new);
        Ok(())
    }

    /// A ticket is used up.
    fn spend(&mut self, agent: &Agent, approval_id: &str, otherwise: &'static str) -> Result<(), R::Fault> {
        let mut ticket = self.rows.ticket(approval_id)?;
        // The bundle of that moment is not looked up here: a ticket of another one cannot be told from it.
        let spendable = ticket.as_ref().is_some_and(|ticket| {
            ticket.agent == agent.profile.agent_id
                && ticket.check_spendable(agent, ticket.bundle, self.stamp.at).is_ok()
        });
        self.check(spendable, otherwise);
        if let Some(ticket) = &mut ticket {
            ticket.spent = true;
        }
        self.after.ticket = ticket.map(Box::new);
        Ok(())
    }

    fn resolve(&mut self, agent: &mut Agent, resolved: &ApprovalResolved) -> Result<(), R::Fault> {
        self.see(agent);
        let id = self.agent_id();
        let mut ticket = match self.rows.ticket(&resolved.approval_id)? {
            Some(ticket) if ticket.agent == id => ticket,
            other => {
                self.after.ticket = other.map(Box::new);
                self.check(false, "there is no such ticket of this agent");
                return Ok(());
            }
        };
        let opened = self.named(&resolved.opened);
        self.check(opened == ticket.opened, "it names another entry than the one that opened the ticket");
        let decidable = ticket.check_decidable(resolved.verdict, agent, ticket.bundle, self.stamp.at).is_ok();
        self.check(decidable, "this ticket could not be decided on");
        let mut conversation = match &ticket.subject {
            TicketSubject::Action(action) if resolved.verdict == Verdict::Approved && action.call.is_none() => {
                Some(self.rows.conversation(id, &action.conversation)?)
            }
            TicketSubject::Action(_) | TicketSubject::Trust(_) | TicketSubject::Transition(_) => None,
        };
        if is_of_run(&ticket) {
            let mut run = self.rows.run(id)?;
            let workflow = self.rows.workflow(id, &run)?;
            let made = resolve_for_run(&mut run, workflow.as_deref(), &ticket, resolved).is_ok();
            self.check(made, "the transition could not be made at that moment");
            self.after.run = Some(Box::new(run));
        }
        let row = conversation.as_mut();
        self.after.trust =
            rulings::resolve(agent, row.unwrap_or(&mut Conversation::default()), &mut ticket, resolved, self.stamp);
        self.after.has_conversed = conversation.is_some();
        self.after.conversation = conversation;
        self.after.forgotten = Some(ticket.opened);
        self.after.ticket = Some(Box::new(ticket));
        Ok(())
    }

    fn execute(&mut self, agent: &mut Agent, executed: &Executed) -> Result<(), R::Fault> {
        self.see(agent);
        if let Some(approval_id) = &executed.approval_id {
            self.spend(agent, approval_id, "this ticket could not be spent")?;
        }
        agent.spent.charge_more(executed.charge, self.stamp.at);
        self.after.executed = Some(self.named(&executed.decision));
        Ok(())
    }

    fn transition(&mut self, agent: &mut Agent, asked: &Transitioned) -> Result<(), R::Fault> {
        let (mut run, workflow) = self.decided_on(agent)?;
        let name = workflow.as_deref().map_or("", Workflow::id);
        self.after.opened = rulings::transition(agent, asked, name, self.stamp).map(Box::new);
        runs::transition(&mut run, workflow.as_deref(), asked);
        self.after.run = Some(Box::new(run));
        Ok(())
    }

    fn start_exec(&mut self, agent: &Agent, started: &ExecStarted) -> Result<(), R::Fault> {
        let id = self.agent_id();
        let mut run = self.rows.run(id)?;
        let may_start = decide_start(agent, &run, &started.asked(), self.stamp.at);
        let ticket = may_start.as_ref().ok().and_then(|open| open.ticket.as_ref());
        let is_held = ticket.is_some_and(|ticket| ticket.profile == started.profile);
        self.check(is_held, "this command could not be started, or not so");
        runs::start_exec(&mut run, started, self.stamp.at);
        self.after.run = Some(Box::new(run));
        Ok(())
    }

    fn end_exec(&mut self, ended: &ExecEnded) -> Result<(), R::Fault> {
        let id = self.agent_id();
        let mut run = self.rows.run(id)?;
        self.check(decide_end(&run, &ended.exec_id).is_ok(), "it is the end of no command that was started");
        runs::end_exec(&mut run, ended);
        self.after.run = Some(Box::new(run));
        Ok(())
    }

    fn start_undo(&mut self, undo: &UndoStarted) -> Result<(), R::Fault> {
        let mut run = self.rows.run(self.agent_id())?;
        self.check(run.undoing.is_none(), "another undo is under way");
        run.undoing = Some(undo.undo_id.clone());
        self.after.run = Some(Box::new(run));
        Ok(())
    }

    fn end_undo(&mut self, undo: &UndoEnded) -> Result<(), R::Fault> {
        let mut run = self.rows.run(self.agent_id())?;
        self.check(run.undoing.as_ref() == Some(&undo.undo_id), "it is the end of no undo that is under way");
        run.undoing = None;
        // What was observed of the files counts no more.
        run.changes = run.changes.saturating_add(1);
        run.seen.facts.clear();
        self.after.run = Some(Box::new(run));
        Ok(())
    }

    fn steer(&mut self, agent: &Agent, steered: &RunSteered) -> Result<(), R::Fault> {
        let (mut run, workflow) = self.decided_on(agent)?;
        runs::steer(&mut run, workflow.as_deref(), &steered.steer);
        self.after.run = Some(Box::new(run));
        Ok(())
    }

    /// Shows what was decided on the agent alone.
    fn see(&mut self, agent: &Agent) {
        let moment = Moment { agent, conversation: &Conversation::default(), run: None, workflow: None, opened_at: 0 };
        self.rows.before(self.entry, &moment);
    }

    /// The run and the workflow that something about them was decided on.
    fn decided_on(&mut self, agent: &Agent) -> Result<(Run, Option<Arc<Workflow>>), R::Fault> {
        let id = self.agent_id();
        let run = self.rows.run(id)?;
        let (workflow, conversation) = (self.rows.workflow(id, &run)?, &Conversation::default());
        let moment = Moment { agent, conversation, run: Some(&run), workflow: workflow.as_deref(), opened_at: 0 };
        self.rows.before(self.entry, &moment);
        Ok((run, workflow))
    }

    fn begin_state(&mut self, intent: &StateIntent) -> Result<(), R::Fault> {
        let mut head = self.rows.head(&intent.path)?;
        let can_begin = head.check(intent.current).is_ok() && intent.first == head.committed.is_none();
        self.check(can_begin, "this commit could not begin");
        head.begin(intent, self.stamp.seq);
        self.after.head = Some(Box::new((intent.path.clone(), head)));
        Ok(())
    }

    fn end_state(&mut self, outcome: &StateOutcome) -> Result<(), R::Fault> {
        let mut head = self.rows.head(&outcome.path)?;
        let intent = self.named(&outcome.intent);
        let is_open = head.open.as_ref().is_some_and(|open| open.seq == intent);
        self.check(is_open, "it is the outcome of no open intent");
        head.end(outcome, intent);
        self.after.head = Some(Box::new((outcome.path.clone(), head)));
        Ok(())
    }

    fn revoke_key(&mut self, revoked: &KeyRevoked) -> Result<(), R::Fault> {
        let mut key = self.rows.key(&revoked.key_id)?;
        self.check(key.as_ref().is_some_and(|key| !key.revoked), "there is no such key to revoke");
        if let Some(key) = &mut key {
            key.revoked = true;
        }
        self.after.key = key.map(Box::new);
        Ok(())
    }

    fn register_workflow(&mut self, registered: &WorkflowRegistered) -> Result<(), R::Fault> {
        let newest = self.rows.registered(&registered.id)?;
        let Some(workflow) = self.rows.read_workflow(&registered.workflow) else {
            self.after.workflow = newest.map(Box::new);
            self.check(false, "its workflow cannot be read");
            return Ok(());
        };
        let next = WorkflowRegistered::after(newest.as_ref(), &workflow, registered.by.clone());
        self.check(next.as_ref() == Some(registered), "it is not the next workflow under this id");
        self.after.workflow = Some(Box::new(WorkflowHead::of(registered, &workflow, self.stamp.at, self.stamp.seq)));
        Ok(())
    }
}
