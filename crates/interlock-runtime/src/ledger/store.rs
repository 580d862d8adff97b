//! What a store must do. One suite of tests runs against every adapter.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::action::{Agent, Conversation, Millis, Ticket};
use interlock_core::ledger::{
    Entry, EntryError, EntryName, Frontier, NAMES_SINCE, OperatorKey, StateHead, WorkflowHead,
};
use interlock_core::workflow::Run;
use interlock_core::{Cause, Digest};

use super::places::Places;

/// The store failed: what that means for what was in progress, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct StoreFault {
    /// What became of it.
    pub left: Left,
    /// Why.
    #[source]
    pub cause: Cause,
}

/// What a store that failed has made of what was in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It is not recorded.
    NotRecorded,
    /// It is not recorded, and the same may succeed in a moment: another connection was in the way.
    TryAgain,
    /// The commit was under way: whether it is recorded, nobody knows before the store has been read again.
    Unknown,
}

impl StoreFault {
    /// Nothing is recorded, and trying again does not help by itself.
    pub fn new(cause: impl Into<Cause>) -> StoreFault {
        StoreFault { left: Left::NotRecorded, cause: cause.into() }
    }

    /// The same with the error beneath it.
    pub fn while_doing(words: impl Into<Cow<'static, str>>, source: impl Error + Send + Sync + 'static) -> StoreFault {
        StoreFault::new(Cause::while_doing(words, source))
    }

    /// The commit itself failed. Only where another connection was in the way nothing can have been written.
    #[must_use]
    pub fn of_commit(self) -> StoreFault {
        let left = match self.left {
            Left::TryAgain => Left::TryAgain,
            Left::NotRecorded | Left::Unknown => Left::Unknown,
        };
        StoreFault { left, ..self }
    }
}

impl From<EntryError> for StoreFault {
    fn from(error: EntryError) -> StoreFault {
        StoreFault::new(Cause::of(error))
    }
}

/// An entry that was found by its name.
#[derive(Debug, Clone)]
pub struct FoundEntry {
    /// Where it stands in the tree.
    pub place: u64,
    /// The entry.
    pub entry: Entry,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl FoundEntry {
    /// Reads what a store found under a name. It must say itself that it is that one.
    pub(super) fn read(
        agent: Option<&str>,
        seq: u64,
        found: Option<(u64, Vec<u8>)>,
    ) -> Result<Option<FoundEntry>, StoreFault> {
        let Some((place, bytes)) = found else { return Ok(None) };
        let entry = Entry::from_bytes(&bytes)?;
        // Before the sixth format those of the service do not say their number.
        let is_told = entry.agent.is_some() || entry.format >= NAMES_SINCE;
        if entry.agent.as_deref() != agent || (is_told && entry.agent_seq != Some(seq)) {
            let name = EntryName { agent: agent.map(str::to_owned), seq };
            return Err(StoreFault::new(format!("entry {place} is not entry {name}")));
        }
        Ok(Some(FoundEntry { place, entry, bytes }))
    }
}

/// An entry by its name.
pub fn find_entry(reader: &mut dyn Reader, agent: Option<&str>, seq: u64) -> Result<Option<FoundEntry>, StoreFault> {
    FoundEntry::read(agent, seq, reader.entry_of(agent, seq)?)
}

/// Where entries and rows are kept. One writer at a time.
pub trait Store: Send {
    /// Begins the one transaction of a batch.
    fn begin(&mut self) -> Result<Box<dyn Txn + '_>, StoreFault>;

    /// Drops whatever handle there is and opens a fresh one.
    fn reopen(&mut self) -> Result<(), StoreFault>;

    /// A way to read beside the writer.
    fn reader(&self) -> Result<Box<dyn Reader>, StoreFault>;

    /// A moment without work: tidy up.
    fn idle(&mut self) {}

    /// Called about once a second, busy or not: what was removed must not stay readable in the files.
    fn purge(&mut self) {}

    /// How long the last commit took, the disk included; nothing without a disk.
    fn commit_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// One transaction: reads see its own beginning, writes are there after `commit` or not at all.
pub trait Txn {
    /// An agent.
    fn agent(&mut self, id: &str) -> Result<Option<Arc<Agent>>, StoreFault>;
    /// A conversation.
    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault>;
    /// The answer kept under a key.
    fn kept(&mut self, agent: &str, key: Digest) -> Result<Option<KeptAnswer>, StoreFault>;
    /// The bytes of an entry, by its place in the tree.
    fn entry(&mut self, place: u64) -> Result<Option<Vec<u8>>, StoreFault>;
    /// An entry by its name: its place in the tree, and its bytes.
    fn entry_of(&mut self, agent: Option<&str>, seq: u64) -> Result<Option<(u64, Vec<u8>)>, StoreFault>;
    /// What is known of a state file.
    fn head(&mut self, path: &str) -> Result<Option<StateHead>, StoreFault>;
    /// A ticket.
    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault>;
    /// The entry of an agent that reported the execution of a decision, which is its entry `decision`.
    fn execution(&mut self, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault>;
    /// An operator's key.
    fn key(&mut self, id: &str) -> Result<Option<OperatorKey>, StoreFault>;
    /// What is known of a coding agent's calls.
    fn run(&mut self, agent: &str) -> Result<Option<Run>, StoreFault>;
    /// The newest workflow under an id.
    fn workflow(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault>;
    /// How many texts of an agent are kept.
    fn texts_count(&mut self, agent: &str) -> Result<u64, StoreFault>;
    /// Writes everything a batch changed.
    fn write(&mut self, changes: &Changes) -> Result<(), StoreFault>;
    /// Returns once everything is durable; the changes are those that were written.
    fn commit(self: Box<Self>, changes: Changes) -> Result<(), StoreFault>;
}

/// Reads committed state, each call a short transaction of its own.
pub trait Reader: Send {
    /// An agent.
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault>;
    /// A conversation.
    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault>;
    /// Entries from an index on, at most so many.
    fn entries(&mut self, from: u64, count: usize) -> Result<Vec<Vec<u8>>, StoreFault>;
    /// An entry by its name: its place in the tree, and its bytes.
    fn entry_of(&mut self, agent: Option<&str>, seq: u64) -> Result<Option<(u64, Vec<u8>)>, StoreFault>;
    /// How many entries the service has.
    fn of_service(&mut self) -> Result<u64, StoreFault>;
    /// The agents with this mark, by which ids of decisions lead to them.
    fn agents_marked(&mut self, mark: u32) -> Result<Vec<String>, StoreFault>;
    /// The frontier of the whole ledger.
    fn head(&mut self) -> Result<Frontier, StoreFault>;
    /// The frontier the ledger had at a size a batch ended with.
    fn frontier(&mut self, size: u64) -> Result<Option<Frontier>, StoreFault>;
    /// The state files.
    fn heads(&mut self) -> Result<Vec<(String, StateHead)>, StoreFault>;
    /// Agents by id, after one of them, at most so many.
    fn agents(&mut self, after: &str, count: usize) -> Result<Vec<Agent>, StoreFault>;
    /// The id of the agent whose token has this SHA-256.
    fn agent_by_token(&mut self, token: Digest) -> Result<Option<String>, StoreFault>;
    /// A ticket.
    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault>;
    /// Tickets, newest first, at most so many, each with its number in this store.
    fn tickets(&mut self, query: &TicketQuery, count: usize) -> Result<Vec<(u64, Ticket)>, StoreFault>;
    /// The entry of an agent that reported the execution of a decision, which is its entry `decision`.
    fn execution(&mut self, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault>;
    /// The operators' keys, revoked ones too.
    fn keys(&mut self) -> Result<Vec<OperatorKey>, StoreFault>;
    /// What is known of a coding agent's calls.
    fn run(&mut self, agent: &str) -> Result<Option<Run>, StoreFault>;
    /// Runs by agent, after one of them, at most so many.
    fn runs(&mut self, after: &str, count: usize) -> Result<Vec<(String, Run)>, StoreFault>;
    /// The newest workflow under an id.
    fn workflow(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault>;
    /// The newest workflows by id, after one of them, at most so many.
    fn workflows(&mut self, after: &str, count: usize) -> Result<Vec<WorkflowHead>, StoreFault>;
    /// Texts that are kept, after one of them (agent, number of the entry), at most so many.
    fn texts(&mut self, after: (&str, u64), count: usize) -> Result<Vec<KeptText>, StoreFault>;
    /// The text that is kept beside an entry.
    fn text(&mut self, agent: &str, seq: u64) -> Result<Option<KeptText>, StoreFault>;
    /// The next agent of a principal, by id, after one of them, about which events wait in a lane.
    fn told_agent(&mut self, principal: &str, lane: Lane, after: &str) -> Result<Option<String>, StoreFault>;
    /// Events about an agent that wait in a lane of its principal's, oldest first, at most so many.
    fn outbox(&mut self, principal: &str, lane: Lane, agent: &str, count: usize) -> Result<Vec<Outgoing>, StoreFault>;
    /// Events that have waited for a principal since before a moment, oldest first, at most so many.
    fn outbox_before(&mut self, principal: &str, at: Millis, count: usize) -> Result<Vec<EntryName>, StoreFault>;
    /// How many events wait, by principal, for those that have any.
    fn backlog(&mut self) -> Result<Vec<(String, u64)>, StoreFault>;
    /// Events that wait for their delivery to anybody, after one of them (agent, number of the entry), at most so many.
    fn events(&mut self, after: (&str, u64), count: usize) -> Result<Vec<Outgoing>, StoreFault>;
    /// Answers that are kept, after one of them (agent, key), at most so many.
    fn kept(&mut self, after: (&str, Digest), count: usize) -> Result<Vec<(String, Digest, KeptAnswer)>, StoreFault>;
    /// What the store holds beside what it should, or lacks: tables, indexes, whatever acts by itself. Empty if nothing.
    fn foreign(&mut self) -> Result<Vec<String>, StoreFault>;
    /// Every row with the frontier they belong to, for an audit.
    fn rows(&mut self) -> Result<Rows, StoreFault>;
}

/// All rows of one moment.
#[derive(Debug)]
pub struct Rows {
    /// The ledger they follow from.
    pub head: Frontier,
    /// The agents.
    pub agents: Vec<Agent>,
    /// The conversations: agent, id, row.
    pub conversations: Vec<(String, String, Conversation)>,
    /// The state files: path, row.
    pub heads: Vec<(String, StateHead)>,
    /// The tickets.
    pub tickets: Vec<Ticket>,
    /// Executions: agent, the decision's entry, the report's.
    pub executions: Vec<(String, u64, u64)>,
    /// The operators' keys.
    pub keys: Vec<OperatorKey>,
    /// The runs, by agent.
    pub runs: Vec<(String, Run)>,
    /// The newest workflows, by id.
    pub workflows: Vec<(String, WorkflowHead)>,
    /// Whose token has which SHA-256.
    pub tokens: Vec<(String, Digest)>,
    /// Where the entries stand, by their names.
    pub places: Places,
    /// Rows that are found by what they do not say themselves.
    pub misfiled: Vec<String>,
    /// The agents' rows are of the first layout, which counted no totals.
    pub without_totals: bool,
}

/// Which tickets are asked for.
#[derive(Debug, Clone, Default)]
pub struct TicketQuery {
    /// Only those with a lower number in this store: what was opened later has a higher one.
    pub before: Option<u64>,
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only those nobody decided on, expired ones included.
    pub undecided: bool,
    /// Only those that expire after this.
    pub expires_after: Option<Millis>,
}

/// A text of an agent, kept beside the ledger; the entry holds only the SHA-256 of salt and text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptText {
    /// Whose it is.
    pub agent: String,
    /// The entry it belongs to: the number among the agent's.
    pub seq: u64,
    /// Drawn for this text alone, so that a short one cannot be guessed from the entry.
    pub salt: [u8; 16],
    /// The text.
    pub text: String,
    /// It is forgotten then; `None` is never.
    pub until: Option<Millis>,
}

/// What kind of event it is: those of one lane wait for each other, agent by agent in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// A person has to decide.
    Waiting,
    /// Something happened.
    Told,
    /// Something was found wrong; an agent can bring that about as often as it likes.
    Failed,
}

impl Lane {
    /// All, the most urgent first.
    pub const ALL: [Lane; 3] = [Lane::Waiting, Lane::Told, Lane::Failed];

    /// As rows have it.
    pub(super) fn number(self) -> i64 {
        match self {
            Lane::Waiting => 0,
            Lane::Told => 1,
            Lane::Failed => 2,
        }
    }

    /// Reads it from a row.
    pub(super) fn of_number(number: i64) -> Result<Lane, StoreFault> {
        let known = Lane::ALL.into_iter().find(|lane| lane.number() == number);
        known.ok_or_else(|| StoreFault::new(format!("there is no lane {number}")))
    }
}

/// An event on its way to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The principal, as the bundle names it.
    pub principal: String,
    /// The agent it is about.
    pub agent: String,
    /// The entry it tells of: the number among the agent's. Events about an agent in a lane are sent in this order.
    pub seq: u64,
    /// With what it waits.
    pub lane: Lane,
    /// The event's own id.
    pub event_id: String,
    /// The event, a CloudEvents JSON object.
    pub body: String,
    /// When it happened.
    pub at: Millis,
}

impl Outgoing {
    /// The entry it tells of.
    pub fn name(&self) -> EntryName {
        EntryName::of_agent(&self.agent, self.seq)
    }
}

/// A new entry.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// Its name.
    pub name: EntryName,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What one batch changes.
#[derive(Debug, Default)]
pub struct Changes {
    /// New entries, in order; the place of the first is the ledger's old size.
    pub entries: Vec<NewEntry>,
    /// Agents as they are afterwards.
    pub agents: Vec<Arc<Agent>>,
    /// Conversations as they are afterwards: agent, id, row.
    pub conversations: Vec<(String, String, Conversation)>,
    /// State files as they are afterwards: path, row.
    pub heads: Vec<(String, StateHead)>,
    /// Agents that have a new token: its SHA-256, and the agent.
    pub tokens: Vec<(Digest, String)>,
    /// Tickets as they are afterwards.
    pub tickets: Vec<Ticket>,
    /// Executions: agent, the decision's entry, the report's.
    pub executions: Vec<(String, u64, u64)>,
    /// Operators' keys as they are afterwards.
    pub keys: Vec<OperatorKey>,
    /// Runs as they are afterwards, by agent.
    pub runs: Vec<(String, Run)>,
    /// Workflows that are the newest under their ids now.
    pub workflows: Vec<WorkflowHead>,
    /// Texts that are kept.
    pub texts: Vec<KeptText>,
    /// Texts that nobody needs any more, unless they are kept for ever: agent, entry.
    pub forgotten: Vec<(String, u64)>,
    /// Agents whose texts are removed.
    pub erased: Vec<String>,
    /// Events to be delivered.
    pub outbox: Vec<Outgoing>,
    /// Events that need no more delivery, by the entries they tell of.
    pub delivered: Vec<EntryName>,
    /// The time of the batch.
    pub now: Millis,
    /// Answers that can be asked for again.
    pub kept: Vec<(String, Digest, KeptAnswer)>,
    /// The tree afterwards.
    pub frontier: Frontier,
}

/// An answer that can be asked for again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The entry it was recorded in: the number among the agent's.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// The corrected text that came with it, sealed; the ledger holds no text.
    pub corrected: Option<String>,
}

/// Answers are kept for a day.
pub(crate) const KEPT_MS: Millis = 86_400_000;
