//! What a store must do. One suite of tests runs against every adapter.

use std::fmt;
use std::sync::Arc;

use interlock_core::Digest;
use interlock_core::action::{Agent, Conversation, Millis};
use interlock_core::ledger::{Frontier, StateHead};

/// The store failed. Whatever was in progress is not recorded, or turns out to be; it was not answered either way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFault(pub String);

impl fmt::Display for StoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreFault {}

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
}

/// One transaction: reads see its own beginning, writes are there after `commit` or not at all.
pub trait Txn {
    /// An agent.
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault>;
    /// A conversation.
    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault>;
    /// The answer kept under a key.
    fn kept(&mut self, agent: &str, key: Digest) -> Result<Option<KeptAnswer>, StoreFault>;
    /// The bytes of an entry.
    fn entry(&mut self, index: u64) -> Result<Option<Vec<u8>>, StoreFault>;
    /// What is known of a state file.
    fn head(&mut self, path: &str) -> Result<Option<StateHead>, StoreFault>;
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
    /// The frontier of the whole ledger.
    fn head(&mut self) -> Result<Frontier, StoreFault>;
    /// The frontier the ledger had at a size a batch ended with.
    fn frontier(&mut self, size: u64) -> Result<Option<Frontier>, StoreFault>;
    /// The state files.
    fn heads(&mut self) -> Result<Vec<(String, StateHead)>, StoreFault>;
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
}

/// What one batch changes.
#[derive(Debug, Default)]
pub struct Changes {
    /// New entries, in order; the first has the index of the ledger's old size.
    pub entries: Vec<Vec<u8>>,
    /// Agents as they are afterwards.
    pub agents: Vec<Arc<Agent>>,
    /// Conversations as they are afterwards: agent, id, row.
    pub conversations: Vec<(String, String, Conversation)>,
    /// State files as they are afterwards: path, row.
    pub heads: Vec<(String, StateHead)>,
    /// Answers that can be asked for again.
    pub kept: Vec<(String, Digest, KeptAnswer)>,
    /// The tree afterwards.
    pub frontier: Frontier,
}

/// An answer that can be asked for again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The entry it was recorded in.
    pub index: u64,
    /// When.
    pub at: Millis,
    /// The corrected text that came with it; the ledger holds no text.
    pub corrected: Option<String>,
}

/// Answers are kept for a day.
pub(crate) const KEPT_MS: Millis = 86_400_000;
