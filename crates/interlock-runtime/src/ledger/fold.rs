//! The rows that follow from the entries, folded with the function the writer uses; and what cannot follow.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use interlock_core::action::{Agent, Conversation, Figures, Ticket};
use interlock_core::ledger::{
    Body, Consequences, Entry, Moment, OperatorKey, RefusalKind, Rows, Ruled, StateHead, TransitionOutcome,
    TrustChanged, WorkflowHead, apply,
};
use interlock_core::workflow::{Run, Workflow};
use interlock_core::{Code, Digest};

use super::batch::{can_be_steered, decide_transition};

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
    /// Tickets by the ruling that opened them; in observe mode one need not be spent.
    opened: HashMap<u64, String>,
    /// Rulings that opened a ticket in observe mode.
    observed: HashSet<u64>,
    /// Refusals that are written out, with whose they are: those that later ones may be like.
    refusals: HashMap<u64, (String, RefusalKind)>,
    /// Changes of trust that the next entry of the agent must be.
    due: HashMap<String, TrustChanged>,
    /// The time of the last entry that is about no agent.
    clock: u64,
}

/// The rows of a fold while an entry is added.
struct Adding<'f, B> {
    fold: &'f mut Fold,
    index: u64,
    /// Sees a ruling with what it was decided on.
    before: Option<B>,
    /// The conversation that was handed over.
    conversation: Option<(String, String)>,
    wrong: Vec<&'static str>,
}

impl<B: FnOnce(&Moment<'_>, &Ruled)> Rows for Adding<'_, B> {
    type Fault = Infallible;

    fn agent(&mut self, id: &str) -> Result<Option<Agent>, Infallible> {
        Ok(self.fold.agents.remove(id))
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Conversation, Infallible> {
        let key = (agent.to_owned(), id.to_owned());
        let row = self.fold.conversations.remove(&key).unwrap_or_default();
        self.conversation = Some(key);
        Ok(row)
    }

    fn run(&mut self, agent: &str) -> Result<Run, Infallible> {
        Ok(self.fold.runs.remove(agent).unwrap_or_default())
    }

    fn workflow(&mut self, run: &Run) -> Result<Option<Arc<Workflow>>, Infallible> {
        let position = run.position.as_ref();
        Ok(position.and_then(|position| self.fold.workflows.get(&position.workflow)).cloned())
    }

    fn read_workflow(&mut self, text: &str) -> Option<Arc<Workflow>> {
        let workflow = Arc::new(Workflow::from_text(text).ok()?);
        self.fold.workflows.insert(workflow.digest(), Arc::clone(&workflow));
        Some(workflow)
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, Infallible> {
        Ok(self.fold.tickets.remove(id))
    }

    fn head(&mut self, path: &str) -> Result<StateHead, Infallible> {
        Ok(self.fold.heads.remove(path).unwrap_or_default())
    }

    fn key(&mut self, id: &str) -> Result<Option<OperatorKey>, Infallible> {
        Ok(self.fold.keys.remove(id))
    }

    fn registered(&mut self, id: &str) -> Result<Option<WorkflowHead>, Infallible> {
        Ok(self.fold.registered.remove(id))
    }

    /// What was decided is decided again.
    fn before(&mut self, entry: &Entry, moment: &Moment<'_>) {
        let agent = moment.agent;
        if let Some(kind) = RefusalKind::of(&entry.body, agent.trust, entry.rules).filter(|_| entry.rules >= 5) {
            self.fold.refusals.insert(self.index, (agent.profile.agent_id.clone(), kind));
        }
        if let Body::Ruled(ruled) = &entry.body {
            let facts = ruled.facts.as_ref();
            let figures = facts.map(|facts| Figures::read(agent, moment.conversation, facts, entry.at));
            if figures.is_some() && ruled.figures != figures {
                self.wrong.push("the figures it was decided on are not those of that moment");
            }
            if let Some(before) = self.before.take() {
                before(moment, ruled);
            }
        }
        if let (Body::Transitioned(asked), Some(run)) = (&entry.body, moment.run)
            && !is_outcome(&decide_transition(agent, run, moment.workflow, asked, entry.at), &asked.outcome)
        {
            self.wrong.push("the transition comes out differently");
        }
        if let Body::RunSteered(steered) = &entry.body
            && !can_be_steered(moment.workflow, &steered.steer)
        {
            self.wrong.push("its workflow has no such state to go on in");
        }
    }
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
        // An agent has its own time, which `apply` looks at: entries of two agents may come in any order.
        if entry.agent.is_none() {
            if entry.at < self.clock {
                wrong("it is older than the entry of the service before it");
            }
            self.clock = self.clock.max(entry.at);
        }
        let mut adding = Adding { fold: self, index, before: Some(before), conversation: None, wrong: Vec::new() };
        let Ok(after) = apply(entry, index, &mut adding);
        let Adding { conversation, wrong: decided_wrong, .. } = adding;
        decided_wrong.iter().chain(&after.impossible).for_each(|reason| wrong(reason));
        self.check_beside_rows(entry, &mut wrong);
        self.keep(entry, index, after, conversation, &mut wrong);
    }

    /// What is said of other entries, which have no rows.
    fn check_beside_rows(&mut self, entry: &Entry, wrong: &mut impl FnMut(&str)) {
        let Some(id) = &entry.agent else { return };
        let changed = if let Body::TrustChanged(changed) = &entry.body { Some(changed) } else { None };
        if self.due.remove(id).as_ref() != changed {
            wrong("trust changed without a cause, or did not change as it had to");
        }
        if let Body::RefusalsRepeated(repeated) = &entry.body {
            for repeat in &repeated.repeats {
                let known = self.refusals.get(&repeat.entry);
                let same = known.is_some_and(|(agent, kind)| agent == id && kind.is_of(repeat));
                if !same || repeat.count == 0 || repeat.first_at > repeat.last_at || repeat.last_at > entry.at {
                    wrong("it counts repeats of something else than a refusal of this agent");
                }
            }
        }
        if let Body::Executed(executed) = &entry.body {
            let opened = self.opened.get(&executed.decision).filter(|_| !self.observed.contains(&executed.decision));
            if opened.is_some_and(|opened| executed.approval_id.as_ref() != Some(opened)) {
                wrong("it spent no ticket, and the decision had opened one");
            }
        }
    }

    /// Puts the rows back as the entry left them.
    fn keep(
        &mut self,
        entry: &Entry,
        index: u64,
        after: Consequences,
        conversation: Option<(String, String)>,
        wrong: &mut impl FnMut(&str),
    ) {
        if let Some(ticket) = after.opened.as_ref().filter(|_| entry.body.ruled().is_some()) {
            self.opened.insert(index, ticket.approval_id.clone());
            if entry.body.ruled().is_some_and(|ruled| ruled.observed) {
                self.observed.insert(index);
            }
        }
        if let Some(decision) = after.executed
            && self.executions.insert(decision, index).is_some()
        {
            wrong("the execution was reported before");
        }
        if let Some(agent) = after.agent {
            let id = &agent.profile.agent_id;
            self.runs.extend(after.run.map(|run| (id.clone(), *run)));
            self.due.extend(after.trust.map(|due| (id.clone(), due)));
            self.agents.insert(id.clone(), agent);
        }
        self.conversations.extend(conversation.zip(after.conversation));
        let tickets = after.ticket.into_iter().chain(after.opened);
        self.tickets.extend(tickets.map(|ticket| (ticket.approval_id.clone(), *ticket)));
        self.heads.extend(after.head.map(|head| *head));
        self.keys.extend(after.key.map(|key| (key.key_id.clone(), *key)));
        self.registered.extend(after.workflow.map(|head| (head.id.clone(), *head)));
    }

    /// What is still missing once every entry was added.
    pub(super) fn finish(&self, mut wrong: impl FnMut(&str)) {
        for id in self.due.keys() {
            wrong(&format!("trust of {id} had to change after its last ruling and did not"));
        }
    }
}

/// Whether a recorded outcome is the one that was decided; ticket and expiry of one that waits were drawn then, and too
/// many open tickets are known to the writer alone.
fn is_outcome(decided: &TransitionOutcome, recorded: &TransitionOutcome) -> bool {
    match (decided, recorded) {
        (TransitionOutcome::Parked { from, to, .. }, TransitionOutcome::Parked { from: was, to: went, .. }) => {
            (from, to) == (was, went)
        }
        (TransitionOutcome::Parked { .. }, TransitionOutcome::Refused { code, .. }) => *code == Code::ApprovalsOpen,
        (decided, recorded) => decided == recorded,
    }
}
