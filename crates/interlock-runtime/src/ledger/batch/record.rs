//! Recording: an entry becomes rows by `interlock_core::ledger::apply`, and bytes; both go into the overlay together.

use std::sync::Arc;

use interlock_core::Digest;
use interlock_core::action::{Agent, Conversation, Millis, Profile, Ticket};
use interlock_core::ledger::{
    Body, Consequences, Entry, EntryName, OperatorKey, Rows, StateHead, WorkflowHead, apply, leaf_hash,
};
use interlock_core::workflow::{Run, Workflow};

use super::{Answer, Batch, Recorded, Trouble};
use crate::ledger::event::event_of;
use crate::ledger::store::{NewEntry, Outgoing, StoreFault};

/// What a command has read already, so that it need not be read again.
#[derive(Default)]
pub(super) struct Read {
    /// The agent the entry is about; an entry about none has none.
    pub(super) agent: Option<Arc<Agent>>,
    /// The conversation, by agent and id.
    pub(super) conversation: Option<((String, String), Conversation)>,
    pub(super) run: Option<Box<Run>>,
    pub(super) ticket: Option<Box<Ticket>>,
    /// The workflow that the entry has the text of.
    pub(super) workflow: Option<Arc<Workflow>>,
}

impl Read {
    pub(super) fn agent(agent: Arc<Agent>) -> Read {
        Read { agent: Some(agent), ..Read::default() }
    }
}

/// The rows as the batch has left them so far.
struct Overlay<'b, 'a> {
    batch: &'b mut Batch<'a>,
    read: Read,
    /// The conversation that was handed over.
    conversation: Option<(String, String)>,
}

impl Rows for Overlay<'_, '_> {
    type Fault = StoreFault;

    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault> {
        let agent = match self.read.agent.take() {
            Some(agent) => Some(agent),
            None => self.batch.agent(id)?,
        };
        Ok(agent.map(Arc::unwrap_or_clone))
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Conversation, StoreFault> {
        let (key, row) = match self.read.conversation.take() {
            Some(read) => read,
            None => {
                let key = (agent.to_owned(), id.to_owned());
                let row = self.batch.conversation(&key)?;
                (key, row)
            }
        };
        self.conversation = Some(key);
        Ok(row)
    }

    fn run(&mut self, agent: &str) -> Result<Run, StoreFault> {
        self.read.run.take().map_or_else(|| self.batch.run_row(agent), |run| Ok(*run))
    }

    fn workflow(&mut self, agent: &str, run: &Run) -> Result<Option<Arc<Workflow>>, StoreFault> {
        self.batch.workflow_of(agent, run)
    }

    fn read_workflow(&mut self, text: &str) -> Option<Arc<Workflow>> {
        match self.read.workflow.take() {
            Some(workflow) => Some(workflow),
            None => Workflow::from_text(text).ok().map(Arc::new),
        }
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        match self.read.ticket.take() {
            Some(ticket) => Ok(Some(*ticket)),
            None => self.batch.ticket(id),
        }
    }

    fn head(&mut self, path: &str) -> Result<StateHead, StoreFault> {
        self.batch.head(path)
    }

    fn key(&mut self, id: &str) -> Result<Option<OperatorKey>, StoreFault> {
        self.batch.operator_key(id)
    }

    fn registered(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
        self.batch.workflow_head(id)
    }

    fn of_service(&mut self) -> Result<u64, StoreFault> {
        Ok(self.batch.state.of_service)
    }
}

impl Batch<'_> {
    /// Records something about no agent, or the first thing about one.
    pub(super) fn record_alone(&mut self, body: Body) -> Result<Answer, Trouble> {
        self.record(Read::default(), self.state.clock, body)
    }

    /// Records an entry, and the one that has to follow it. The answer is about the first; nothing is recorded unless all
    /// can be.
    pub(super) fn record(&mut self, read: Read, at: Millis, body: Body) -> Result<Answer, Trouble> {
        let profile = read.agent.as_ref().map(|agent| Arc::clone(&agent.profile));
        let name = match (&read.agent, &body) {
            (Some(agent), _) => EntryName::of_agent(&agent.profile.agent_id, agent.entries.saturating_add(1)),
            (None, Body::Registered(new)) => EntryName::of_agent(&new.profile.agent_id, 1),
            (None, _) => EntryName::of_service(self.state.of_service.saturating_add(1)),
        };
        let entry = Entry::new(name.clone(), at, body);
        let index = self.next_index();
        let (mut after, conversation) = self.follow(&entry, read)?;
        let bytes = entry.to_bytes().map_err(|_| Trouble::Internal)?;
        let event = self.event(profile.as_deref(), &entry, index);
        let mut rest = None;
        if let Some(changed) = after.trust.take()
            && let Some(agent) = after.agent.take()
        {
            let next = EntryName::of_agent(&agent.profile.agent_id, agent.entries.saturating_add(1));
            let second = Entry::new(next.clone(), at, Body::TrustChanged(changed));
            after.agent = self.follow(&second, Read::agent(Arc::new(agent)))?.0.agent;
            let bytes = second.to_bytes().map_err(|_| Trouble::Internal)?;
            let event = self.event(profile.as_deref(), &second, index.saturating_add(1));
            rest = Some((NewEntry { name: next, bytes }, event));
        }
        // From here on nothing fails: rows and entries go together.
        let seq = name.seq;
        let leaf = self.push(NewEntry { name, bytes }, at);
        self.outbox.extend(event);
        if let Some((new, event)) = rest {
            self.push(new, at);
            self.outbox.extend(event);
        }
        self.keep(after, conversation, seq);
        Ok(Answer::Recorded(Box::new(Recorded { entry, index, leaf, replayed: false, folded: None, corrected: None })))
    }

    /// What follows from an entry. What an audit would call impossible is not recorded.
    fn follow(&mut self, entry: &Entry, read: Read) -> Result<(Consequences, Option<(String, String)>), Trouble> {
        let mut rows = Overlay { batch: self, read, conversation: None };
        let after = apply(entry, &mut rows)?;
        let conversation = rows.conversation;
        if after.impossible.is_empty() { Ok((after, conversation)) } else { Err(Trouble::Internal) }
    }

    /// The event of an entry, if its agent's principal wants to be told.
    fn event(&self, profile: Option<&Profile>, entry: &Entry, index: u64) -> Option<Outgoing> {
        let told = profile.filter(|profile| self.state.bundle.principals().contains_key(&profile.principal_id))?;
        event_of(self.state.ids, told, entry, index)
    }

    fn push(&mut self, new: NewEntry, at: Millis) -> Digest {
        let leaf = leaf_hash(&new.bytes);
        self.state.frontier.append(leaf);
        self.state.clock = self.state.clock.max(at);
        self.entries.push(new);
        leaf
    }

    /// Puts rows into the overlay as an entry left them, whose number is `seq`.
    fn keep(&mut self, after: Consequences, conversation: Option<(String, String)>, seq: u64) {
        if let (Some(key), Some(row)) = (conversation, after.conversation) {
            let changed = after.has_conversed || self.conversations.get(&key).is_some_and(|(_, changed)| *changed);
            self.conversations.insert(key, (row, changed));
        }
        if let Some(agent) = after.agent {
            let id = &agent.profile.agent_id;
            self.tokens.extend(after.has_token.then(|| (agent.token, id.clone())));
            self.forgotten.extend(after.forgotten.map(|opened| (id.clone(), opened)));
            self.runs.extend(after.run.map(|run| (id.clone(), *run)));
            self.executions.extend(after.executed.map(|decision| ((id.clone(), decision), seq)));
            if after.erased {
                self.forget_texts(id);
            }
            self.agents.insert(id.clone(), (Some(Arc::new(agent)), true));
        }
        let tickets = after.ticket.into_iter().chain(after.opened);
        self.tickets.extend(tickets.map(|ticket| (ticket.approval_id.clone(), *ticket)));
        self.state.of_service = after.of_service.unwrap_or(self.state.of_service);
        self.heads.extend(after.head.map(|head| *head));
        self.keys.extend(after.key.map(|key| (key.key_id.clone(), *key)));
        self.workflows.extend(after.workflow.map(|head| (head.id.clone(), *head)));
    }
}
