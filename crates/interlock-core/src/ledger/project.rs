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
use super::exec_entry::{ExecEnded, ExecStarted};
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
    /// The workflow a run is in.
    fn workflow(&mut self, run: &Run) -> Result<Option<Arc<Workflow>>, Self::Fault>;
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
    /// The entry of the decision that was reported as carried out.
    pub executed: Option<u64>,
    /// The agent has another token.
    pub has_token: bool,
    /// The agent's texts are removed.
    pub erased: bool,
    /// The entry whose text nobody needs any more.
    pub forgotten: Option<u64>,
    /// How trust changes: the next entry of the agent must say so.
    pub trust: Option<TrustChanged>,
    /// Why this entry cannot be, where it stands; nothing if it can.
    pub impossible: Vec<&'static str>,
}

/// When and under which rules an entry was written, and where it stands.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    rules: u32,
    at: Millis,
    index: u64,
}

/// What an entry changes. The rows it does not touch are not asked for.
pub fn apply<R: Rows>(entry: &Entry, index: u64, rows: &mut R) -> Result<Consequences, R::Fault> {
    let stamp = Stamp { rules: entry.rules, at: entry.at, index };
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
        let (entry, Stamp { at, index, .. }) = (self.entry, self.stamp);
        match &entry.body {
            Body::Registered(registered) => self.register(registered),
            Body::Ruled(ruled) => self.of_agent(|step, agent| step.rule(agent, ruled)),
            Body::RefusalsRepeated(repeated) => self.of_agent(|step, agent| {
                step.after.trust = apply_repeated(agent, repeated, at, index);
                Ok(())
            }),
            Body::TrustRequested(requested) => self.of_agent(|step, agent| {
                step.see(agent);
                step.after.opened = Some(Box::new(rulings::request_trust(agent, requested, step.stamp)));
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
                self.run(|run| {
                    if let Some(workflow) = workflow {
                        runs::start(run, &workflow, started, index);
                    }
                })
            }
            Body::CallEnded(told) => {
                let rules = entry.rules;
                self.run(|run| runs::end_call(run, told, rules))
            }
            Body::ExecStarted(started) => self.of_agent(|step, agent| step.start_exec(agent, started)),
            Body::ExecEnded(ended) => self.of_agent(|step, _| step.end_exec(ended)),
            Body::TurnEnded(turn) => self.run(|run| workflow::end_turn(run, |open| turn.had(open))),
            Body::SessionBound(bound) => self.run(|run| {
                run.bind(&bound.session);
                if let Some(host) = &bound.host {
                    run.note_host(host);
                }
            }),
            Body::AllowanceGiven(given) => self.run(|run| run.allowances.push(given.allowance.clone())),
            Body::AllowanceTaken(taken) => {
                self.run(|run| run.allowances.retain(|it| it.allowance_id != taken.allowance_id))
            }
            Body::StateIntent(intent) => self.begin_state(intent),
            Body::StateOutcome(outcome) => self.end_state(outcome),
            Body::KeyCreated(created) => {
                let known = self.rows.key(&created.key.key_id)?;
                self.check(known.is_none(), "the key was made before");
                self.after.key = Some(Box::new(created.key.clone()));
                Ok(())
            }
            Body::KeyRevoked(revoked) => self.revoke_key(revoked),
            Body::WorkflowRegistered(registered) => self.register_workflow(registered),
            Body::Passed(passed) => {
                let is_sound = !passed.passes.is_empty() && passed.passes.iter().all(|pass| pass.is_sound(at));
                self.check(is_sound, "it counts what cannot have been");
                // Nobody knows whose an event is that cannot be read.
                if entry.agent.is_some() { self.agent(|_| {}) } else { Ok(()) }
            }
            Body::BundleActivated(_) | Body::Unauthenticated(_) | Body::SigningKeyRotated(_) => Ok(()),
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
        self.after.agent = Some(Agent::registered(profile.clone(), *token, *trust_level, self.stamp.index));
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
        let expected = (Some(agent.entries.saturating_add(1)), Some(agent.last_index));
        let follows = (self.entry.agent_seq, self.entry.previous) == expected;
        self.check(follows, "it does not follow the agent's entry before it");
        self.check(self.stamp.at >= agent.last_at, "it is older than the agent's entry before it");
        change(self, &mut agent)?;
        agent.entries = agent.entries.saturating_add(1);
        agent.last_index = self.stamp.index;
        agent.last_at = agent.last_at.max(self.stamp.at);
        self.after.agent = Some(agent);
        Ok(())
    }

    /// An entry that changes nothing beside its agent.
    fn agent(&mut self, change: impl FnOnce(&mut Agent)) -> Result<(), R::Fault> {
        self.of_agent(|_, agent| {
            change(agent);
            Ok(())
        })
    }

    /// An entry that changes the run of its agent, whatever workflow it is in.
    fn run(&mut self, change: impl FnOnce(&mut Run)) -> Result<(), R::Fault> {
        self.of_agent(|step, _| {
            let id = step.agent_id();
            let mut run = step.rows.run(id)?;
            change(&mut run);
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
            Some(run) => self.rows.workflow(run)?,
            None => None,
        };
        let (workflow, mut none) = (workflow.as_deref(), Conversation::default());
        let row = conversation.as_mut().unwrap_or(&mut none);
        self.rows.before(self.entry, &Moment { agent, conversation: row, run: run.as_ref(), workflow });
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
            let workflow = self.rows.workflow(&run)?;
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
        self.after.executed = Some(executed.decision);
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

    fn steer(&mut self, agent: &Agent, steered: &RunSteered) -> Result<(), R::Fault> {
        let (mut run, workflow) = self.decided_on(agent)?;
        runs::steer(&mut run, workflow.as_deref(), &steered.steer);
        self.after.run = Some(Box::new(run));
        Ok(())
    }

    /// Shows what was decided on the agent alone.
    fn see(&mut self, agent: &Agent) {
        let moment = Moment { agent, conversation: &Conversation::default(), run: None, workflow: None };
        self.rows.before(self.entry, &moment);
    }

    /// The run and the workflow that something about them was decided on.
    fn decided_on(&mut self, agent: &Agent) -> Result<(Run, Option<Arc<Workflow>>), R::Fault> {
        let id = self.agent_id();
        let run = self.rows.run(id)?;
        let (workflow, conversation) = (self.rows.workflow(&run)?, &Conversation::default());
        let moment = Moment { agent, conversation, run: Some(&run), workflow: workflow.as_deref() };
        self.rows.before(self.entry, &moment);
        Ok((run, workflow))
    }

    fn begin_state(&mut self, intent: &StateIntent) -> Result<(), R::Fault> {
        let mut head = self.rows.head(&intent.path)?;
        let can_begin = head.check(intent.current).is_ok() && intent.first == head.committed.is_none();
        self.check(can_begin, "this commit could not begin");
        head.begin(intent, self.stamp.index);
        self.after.head = Some(Box::new((intent.path.clone(), head)));
        Ok(())
    }

    fn end_state(&mut self, outcome: &StateOutcome) -> Result<(), R::Fault> {
        let mut head = self.rows.head(&outcome.path)?;
        let is_open = head.open.as_ref().is_some_and(|open| open.index == outcome.intent);
        self.check(is_open, "it is the outcome of no open intent");
        head.end(outcome);
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
        self.after.workflow = Some(Box::new(WorkflowHead::of(registered, &workflow, self.stamp.at, self.stamp.index)));
        Ok(())
    }
}
