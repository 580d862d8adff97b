//! The embedded store: SQLite, write-ahead log, full sync, one writer.
//!
//! The layout is lean on purpose: counters live in the agent's row, the window in the conversation's, the tree's edge in
//! the last entry of each batch, and entries have no index beside their place in the tree. Each more row or index would
//! cost every approval. By their names they are found through blocks of places; the one that an agent is filling lies in
//! its row too. Rows that were committed last are remembered, parsed; one process owns the database, so nobody else changes
//! them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use interlock_core::action::{
    Agent, AgentStatus, Conversation, Millis, Mode, OpenTicket, Profile, Record, Spent, Ticket, Trust, TrustCost,
};
use interlock_core::ledger::{EntryName, Frontier, OperatorKey, StateHead, WorkflowHead};
use interlock_core::workflow::Run;
use interlock_core::{Cause, Digest, json};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::decision_id::mark_of;
use super::layout::{BUSY_TIME_MAX, connect};
use super::store::{Changes, KEPT_MS, KeptAnswer, Left, Outgoing, Reader, Store, StoreFault, Txn};

pub(super) mod blocks;
mod folding;
mod older;
mod reader;

use blocks::OpenBlocks;
use folding::Folding;
pub use reader::SqliteReader;

/// The name of the database in a data directory.
pub const DATABASE_NAME: &str = "ledger.db";

/// How many agents and how many conversations are remembered, parsed.
const REMEMBERED_LEN: usize = 8192;
/// What most rows need, so that one allocation holds them.
const USUAL_ROW_BYTES: usize = 512;
/// Old answers are removed this often.
const KEPT_CLEANING_MS: Millis = 60_000;
/// Texts that nobody needs any more are removed this often.
const TEXTS_CLEANING_MS: Millis = 10_000;

/// The embedded store.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    connection: Connection,
    remembered: Remembered,
    folding: Folding,
    since_tidied: bool,
    commit_time: Duration,
    /// Something was removed that must not stay readable in the log.
    to_purge: bool,
}

/// Rows as last committed.
#[derive(Debug, Default)]
struct Remembered {
    agents: HashMap<String, Arc<Agent>>,
    /// The blocks of places that are being filled.
    blocks: OpenBlocks,
    /// By agent, then by id, so that looking one up makes no key.
    conversations: HashMap<String, HashMap<String, Conversation>>,
    conversations_len: usize,
    /// When old answers were last removed.
    kept_cleaned_at: Millis,
    /// When texts that nobody needs any more were last removed.
    texts_cleaned_at: Millis,
}

impl Remembered {
    /// What a committed batch left behind.
    fn update(&mut self, changes: Changes, blocks: OpenBlocks) {
        if self.agents.len() >= REMEMBERED_LEN {
            self.agents.clear();
            self.blocks.clear();
        }
        self.blocks.extend(blocks);
        if self.conversations_len >= REMEMBERED_LEN {
            self.conversations.clear();
            self.conversations_len = 0;
        }
        for agent in changes.agents {
            self.agents.insert(agent.profile.agent_id.clone(), agent);
        }
        for (agent, id, row) in changes.conversations {
            let known = self.conversations.entry(agent).or_default().insert(id, row);
            self.conversations_len = self.conversations_len.saturating_add(usize::from(known.is_none()));
        }
    }
}

impl From<rusqlite::Error> for StoreFault {
    fn from(error: rusqlite::Error) -> StoreFault {
        let left = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Left::TryAgain,
            Some(_) | None => Left::NotRecorded,
        };
        StoreFault { left, cause: Cause::of(error) }
    }
}

impl SqliteStore {
    /// Opens the database in a directory, creating it if there is none.
    pub fn open(directory: &Path) -> Result<SqliteStore, StoreFault> {
        let path = directory.join(DATABASE_NAME);
        let connection = connect(&path)?;
        Ok(SqliteStore {
            folding: Folding::new(&path),
            path,
            connection,
            remembered: Remembered::default(),
            since_tidied: false,
            commit_time: Duration::ZERO,
            to_purge: false,
        })
    }

    /// The same without a single sync: what it commits is lost with the machine. No door opens a store so; it is there for
    /// a test to show that what looks for the syncs sees when they are missing.
    #[doc(hidden)]
    pub fn open_unsynced(directory: &Path) -> Result<SqliteStore, StoreFault> {
        let store = SqliteStore::open(directory)?;
        store.connection.pragma_update(None, "synchronous", "OFF")?;
        Ok(store)
    }
}

impl Store for SqliteStore {
    fn begin(&mut self) -> Result<Box<dyn Txn + '_>, StoreFault> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.since_tidied = true;
        Ok(Box::new(SqliteTxn {
            connection: &self.connection,
            remembered: &mut self.remembered,
            folding: &mut self.folding,
            commit_time: &mut self.commit_time,
            to_purge: &mut self.to_purge,
            blocks: OpenBlocks::new(),
            open: true,
        }))
    }

    fn reopen(&mut self) -> Result<(), StoreFault> {
        self.remembered = Remembered::default();
        self.connection = connect(&self.path)?;
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreFault> {
        Ok(Box::new(SqliteReader::open_database(&self.path)?))
    }

    fn idle(&mut self) {
        if std::mem::take(&mut self.since_tidied) {
            // Only tidying: what fails here is tried again, and nothing depends on it.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }

    fn purge(&mut self) {
        if self.to_purge {
            // Rulings wait for this thread, so it does not wait for a reader, such as an audit. The first column says
            // whether one was in the way; then it is tried again.
            let _ = self.connection.busy_timeout(Duration::ZERO);
            let busy = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
            let _ = self.connection.busy_timeout(BUSY_TIME_MAX);
            self.to_purge = !matches!(busy, Ok(0));
        }
    }

    fn commit_time(&self) -> Duration {
        self.commit_time
    }
}

struct SqliteTxn<'a> {
    connection: &'a Connection,
    remembered: &'a mut Remembered,
    folding: &'a mut Folding,
    commit_time: &'a mut Duration,
    to_purge: &'a mut bool,
    /// As this transaction leaves them.
    blocks: OpenBlocks,
    open: bool,
}

impl Drop for SqliteTxn<'_> {
    fn drop(&mut self) {
        if self.open {
            // A transaction that cannot be rolled back is gone with its connection, which the writer drops.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

impl Txn for SqliteTxn<'_> {
    fn agent(&mut self, id: &str) -> Result<Option<Arc<Agent>>, StoreFault> {
        match self.remembered.agents.get(id) {
            Some(agent) => Ok(Some(Arc::clone(agent))),
            None => Ok(read_agent(self.connection, id)?.map(Arc::new)),
        }
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
        match self.remembered.conversations.get(agent).and_then(|conversations| conversations.get(id)) {
            Some(row) => Ok(Some(row.clone())),
            None => read_conversation(self.connection, agent, id),
        }
    }

    fn kept(&mut self, agent: &str, key: Digest) -> Result<Option<KeptAnswer>, StoreFault> {
        let select = "SELECT seq, at, corrected FROM kept WHERE agent = ?1 AND key = ?2";
        let mut statement = self.connection.prepare_cached(select)?;
        let row = statement.query_row(params![agent, key.bytes()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get(2)?))
        });
        let Some((seq, at, corrected)) = row.optional()? else { return Ok(None) };
        Ok(Some(KeptAnswer { seq: to_u64(seq)?, at: to_u64(at)?, corrected }))
    }

    fn entry(&mut self, place: u64) -> Result<Option<Vec<u8>>, StoreFault> {
        let mut statement = self.connection.prepare_cached("SELECT bytes FROM entries WHERE number = ?1")?;
        Ok(statement.query_row([to_i64(place)?], |row| row.get(0)).optional()?)
    }

    fn entry_of(&mut self, agent: Option<&str>, seq: u64) -> Result<Option<(u64, Vec<u8>)>, StoreFault> {
        blocks::entry_of(self.connection, agent, seq)
    }

    fn head(&mut self, path: &str) -> Result<Option<StateHead>, StoreFault> {
        let mut statement = self.connection.prepare_cached("SELECT row FROM heads WHERE path = ?1")?;
        let row: Option<String> = statement.query_row([path], |row| row.get(0)).optional()?;
        row.map(|row| from_text(&row)).transpose()
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        read_ticket(self.connection, id)
    }

    fn execution(&mut self, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault> {
        read_execution(self.connection, agent, decision)
    }

    fn key(&mut self, id: &str) -> Result<Option<OperatorKey>, StoreFault> {
        let mut statement = self.connection.prepare_cached("SELECT row FROM operator_keys WHERE id = ?1")?;
        let row: Option<String> = statement.query_row([id], |row| row.get(0)).optional()?;
        row.map(|row| from_text(&row)).transpose()
    }

    fn run(&mut self, agent: &str) -> Result<Option<Run>, StoreFault> {
        read_run(self.connection, agent)
    }

    fn workflow(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
        read_workflow(self.connection, id)
    }

    fn texts_count(&mut self, agent: &str) -> Result<u64, StoreFault> {
        let mut statement = self.connection.prepare_cached("SELECT count(*) FROM texts WHERE agent = ?1")?;
        to_u64(statement.query_row([agent], |row| row.get(0))?)
    }

    fn write(&mut self, changes: &Changes) -> Result<(), StoreFault> {
        let count = u64::try_from(changes.entries.len()).unwrap_or(u64::MAX);
        let first = changes.frontier.size().checked_sub(count);
        let first = first.ok_or_else(|| StoreFault::new("more entries than the tree has leaves"))?;
        let insert = "INSERT INTO entries (number, bytes, frontier) VALUES (?1, ?2, ?3)";
        let mut insert = self.connection.prepare_cached(insert)?;
        let last = to_i64(changes.frontier.size())?.checked_sub(1);
        for (number, new) in (to_i64(first)?..).zip(&changes.entries) {
            let frontier = (Some(number) == last).then(|| changes.frontier.to_bytes());
            insert.execute(params![number, new.bytes, frontier])?;
        }
        self.blocks = blocks::add(self.connection, &mut self.remembered.blocks, &changes.entries, first)?;
        if let Some(block) = self.blocks.get(blocks::SERVICE) {
            blocks::write(self.connection, blocks::SERVICE, block)?;
        }
        let update = "UPDATE agents SET live = ?2, places = ?3 WHERE id = ?1";
        let mut update = self.connection.prepare_cached(update)?;
        for agent in &changes.agents {
            let (id, live) = (&agent.profile.agent_id, to_text(&LiveRow::of(agent))?);
            // A row changes by entries only, so there is a block.
            let block = self.blocks.get(id).filter(|block| block.count() == agent.entries);
            let block = block.ok_or_else(|| StoreFault::new(format!("{id} changed without an entry")))?.to_bytes();
            if update.execute(params![id, live, block])? == 0 {
                let insert = "INSERT INTO agents (id, profile, live, places) VALUES (?1, ?2, ?3, ?4)";
                let mut insert = self.connection.prepare_cached(insert)?;
                insert.execute(params![id, to_text(&*agent.profile)?, live, block])?;
                write_mark(self.connection, id)?;
            }
        }
        let update = "UPDATE conversations SET row = ?3 WHERE agent = ?1 AND id = ?2";
        let mut update = self.connection.prepare_cached(update)?;
        for (agent, id, row) in &changes.conversations {
            // Most go on. In place they cost less than replaced, which removes the row and puts in another.
            let row = to_text(row)?;
            if update.execute(params![agent, id, row])? == 0 {
                let insert = "INSERT INTO conversations (agent, id, row) VALUES (?1, ?2, ?3)";
                self.connection.prepare_cached(insert)?.execute(params![agent, id, row])?;
            }
        }
        for (path, row) in &changes.heads {
            let replace = "INSERT OR REPLACE INTO heads (path, row) VALUES (?1, ?2)";
            self.connection.prepare_cached(replace)?.execute(params![path, to_text(row)?])?;
        }
        self.write_texts(changes)?;
        self.write_kept(changes)?;
        self.write_tickets(changes)?;
        self.write_outbox(changes)
    }

    fn commit(mut self: Box<Self>, changes: Changes) -> Result<(), StoreFault> {
        let start = Instant::now();
        let committed = self.connection.prepare_cached("COMMIT")?.execute([]);
        committed.map_err(|error| StoreFault::from(error).of_commit())?;
        *self.commit_time = start.elapsed();
        self.open = false;
        let rows = changes.agents.len().saturating_add(changes.conversations.len());
        self.folding.committed(rows.saturating_add(changes.entries.len()));
        let blocks = std::mem::take(&mut self.blocks);
        self.remembered.update(changes, blocks);
        Ok(())
    }
}

impl SqliteTxn<'_> {
    /// Tickets, runs, workflows, executions and keys: few, so nothing is done where there are none.
    fn write_tickets(&mut self, changes: &Changes) -> Result<(), StoreFault> {
        for ticket in &changes.tickets {
            write_ticket(self.connection, ticket)?;
        }
        for (agent, run) in &changes.runs {
            let replace = "INSERT OR REPLACE INTO runs (agent, row) VALUES (?1, ?2)";
            self.connection.prepare_cached(replace)?.execute(params![agent, to_text(run)?])?;
        }
        for head in &changes.workflows {
            let replace = "INSERT OR REPLACE INTO workflows (id, row) VALUES (?1, ?2)";
            self.connection.prepare_cached(replace)?.execute(params![head.id, to_text(head)?])?;
        }
        for (token, agent) in &changes.tokens {
            write_token(self.connection, *token, agent)?;
        }
        for (agent, decision, report) in &changes.executions {
            write_execution(self.connection, agent, *decision, *report)?;
        }
        for key in &changes.keys {
            let replace = "INSERT OR REPLACE INTO operator_keys (id, row) VALUES (?1, ?2)";
            self.connection.prepare_cached(replace)?.execute(params![key.key_id, to_text(key)?])?;
        }
        Ok(())
    }

    fn write_texts(&mut self, changes: &Changes) -> Result<(), StoreFault> {
        // Removed first: what came after it in the same batch stays.
        for agent in &changes.erased {
            self.connection.prepare_cached("DELETE FROM texts WHERE agent = ?1")?.execute([agent])?;
            self.connection.prepare_cached("UPDATE kept SET corrected = NULL WHERE agent = ?1")?.execute([agent])?;
        }
        for text in &changes.texts {
            let insert = "INSERT INTO texts (agent, seq, salt, text, until) VALUES (?1, ?2, ?3, ?4, ?5)";
            let until = text.until.map(to_i64).transpose()?;
            let mut insert = self.connection.prepare_cached(insert)?;
            insert.execute(params![text.agent, to_i64(text.seq)?, text.salt, text.text, until])?;
        }
        for (agent, seq) in &changes.forgotten {
            let delete = "DELETE FROM texts WHERE agent = ?1 AND seq = ?2 AND until IS NOT NULL";
            self.connection.prepare_cached(delete)?.execute(params![agent, to_i64(*seq)?])?;
        }
        let mut removed = changes.forgotten.len().saturating_add(changes.erased.len());
        if changes.now >= self.remembered.texts_cleaned_at.saturating_add(TEXTS_CLEANING_MS) {
            let delete = "DELETE FROM texts WHERE until <= ?1";
            let expired = self.connection.prepare_cached(delete)?.execute([to_i64(changes.now)?])?;
            removed = removed.saturating_add(expired);
            self.remembered.texts_cleaned_at = changes.now;
        }
        *self.to_purge |= removed > 0;
        Ok(())
    }

    fn write_outbox(&mut self, changes: &Changes) -> Result<(), StoreFault> {
        for event in &changes.outbox {
            write_event(self.connection, event)?;
        }
        for EntryName { agent, seq } in &changes.delivered {
            let delete = "DELETE FROM outbox WHERE agent = ?1 AND seq = ?2";
            self.connection.prepare_cached(delete)?.execute(params![agent, to_i64(*seq)?])?;
        }
        Ok(())
    }

    fn write_kept(&mut self, changes: &Changes) -> Result<(), StoreFault> {
        let Some(newest) = changes.kept.iter().map(|(_, _, kept)| kept.at).max() else { return Ok(()) };
        let insert = "INSERT OR REPLACE INTO kept (agent, key, seq, at, corrected) VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = self.connection.prepare_cached(insert)?;
        for (agent, key, kept) in &changes.kept {
            let (seq, at) = (to_i64(kept.seq)?, to_i64(kept.at)?);
            insert.execute(params![agent, key.bytes(), seq, at, kept.corrected])?;
        }
        if newest >= self.remembered.kept_cleaned_at.saturating_add(KEPT_CLEANING_MS) {
            // The whole table is looked at, so not too often.
            let old = to_i64(newest.saturating_sub(KEPT_MS))?;
            self.connection.prepare_cached("DELETE FROM kept WHERE at <= ?1")?.execute([old])?;
            self.remembered.kept_cleaned_at = newest;
        }
        Ok(())
    }
}

/// What changes of an agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Live {
    token: Digest,
    status: AgentStatus,
    trust: Trust,
    entries: u64,
    /// The place of its last entry: of layouts before the sixth only.
    #[serde(default)]
    last_index: Option<u64>,
    last_at: Millis,
    spent: Spent,
    #[serde(default = "enforced")]
    mode: Mode,
    #[serde(default)]
    record: Record,
    #[serde(default)]
    open: Vec<OpenTicket>,
    #[serde(default)]
    totals: [u64; 5],
    #[serde(default)]
    cost: Option<TrustCost>,
}

fn enforced() -> Mode {
    Mode::Enforce
}

fn is_enforced(mode: &Mode) -> bool {
    *mode == Mode::Enforce
}

/// The same, on its way into the store.
#[derive(Debug, Serialize)]
pub(super) struct LiveRow<'a> {
    token: Digest,
    status: AgentStatus,
    trust: Trust,
    entries: u64,
    last_at: Millis,
    spent: &'a Spent,
    #[serde(skip_serializing_if = "is_enforced")]
    mode: Mode,
    #[serde(skip_serializing_if = "Record::is_empty")]
    record: &'a Record,
    #[serde(skip_serializing_if = "<[OpenTicket]>::is_empty")]
    open: &'a [OpenTicket],
    totals: [u64; 5],
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<&'a TrustCost>,
}

impl LiveRow<'_> {
    pub(super) fn of(agent: &Agent) -> LiveRow<'_> {
        LiveRow {
            token: agent.token,
            status: agent.status,
            trust: agent.trust,
            entries: agent.entries,
            last_at: agent.last_at,
            spent: &agent.spent,
            mode: agent.mode,
            record: &agent.record,
            open: &agent.open,
            totals: agent.totals,
            cost: agent.cost.as_ref(),
        }
    }
}

/// An agent from its row, and where its last entry stands, as layouts before the sixth have it.
fn agent_of(profile: &str, live: &str) -> Result<(Agent, Option<u64>), StoreFault> {
    let profile: Arc<Profile> = Arc::new(from_text(profile)?);
    let Live { token, status, trust, entries, last_index, last_at, spent, mode, record, open, totals, cost } =
        from_text(live)?;
    let agent = Agent { profile, token, status, trust, entries, last_at, spent, mode, record, open, totals, cost };
    Ok((agent, last_index))
}

pub(super) fn write_token(connection: &Connection, token: Digest, agent: &str) -> Result<(), StoreFault> {
    let replace = "INSERT OR REPLACE INTO tokens (agent, digest) VALUES (?1, ?2)";
    connection.prepare_cached(replace)?.execute(params![agent, token.bytes()])?;
    Ok(())
}

/// By a few bits of its id an agent is found from the ids of its decisions.
pub(super) fn write_mark(connection: &Connection, agent: &str) -> Result<(), StoreFault> {
    let insert = "INSERT OR REPLACE INTO marks (mark, agent) VALUES (?1, ?2)";
    connection.prepare_cached(insert)?.execute(params![mark_of(agent), agent])?;
    Ok(())
}

/// A ticket keeps its number, and a new one gets the next.
pub(super) fn write_ticket(connection: &Connection, ticket: &Ticket) -> Result<(), StoreFault> {
    let (undecided, expires, row) = (ticket.resolution.is_none(), to_i64(ticket.expires_at)?, to_text(ticket)?);
    let update = "UPDATE tickets SET agent = ?2, undecided = ?3, expires = ?4, row = ?5 WHERE id = ?1";
    let values = params![ticket.approval_id, ticket.agent, undecided, expires, row];
    if connection.prepare_cached(update)?.execute(values)? == 0 {
        let insert = "INSERT INTO tickets (id, agent, undecided, expires, row) VALUES (?1, ?2, ?3, ?4, ?5)";
        connection.prepare_cached(insert)?.execute(values)?;
    }
    Ok(())
}

pub(super) fn write_execution(
    connection: &Connection,
    agent: &str,
    decision: u64,
    report: u64,
) -> Result<(), StoreFault> {
    let insert = "INSERT INTO executions (agent, decision, report) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(insert)?.execute(params![agent, to_i64(decision)?, to_i64(report)?])?;
    Ok(())
}

pub(super) fn write_event(connection: &Connection, event: &Outgoing) -> Result<(), StoreFault> {
    let Outgoing { principal, agent, seq, lane, event_id, body, at } = event;
    let insert = "INSERT INTO outbox (agent, seq, principal, lane, event_id, body, at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut insert = connection.prepare_cached(insert)?;
    insert.execute(params![agent, to_i64(*seq)?, principal, lane.number(), event_id, body, to_i64(*at)?])?;
    Ok(())
}

fn read_ticket(connection: &Connection, id: &str) -> Result<Option<Ticket>, StoreFault> {
    let mut statement = connection.prepare_cached("SELECT row FROM tickets WHERE id = ?1")?;
    let row: Option<String> = statement.query_row([id], |row| row.get(0)).optional()?;
    row.map(|row| from_text(&row)).transpose()
}

fn read_run(connection: &Connection, agent: &str) -> Result<Option<Run>, StoreFault> {
    let mut statement = connection.prepare_cached("SELECT row FROM runs WHERE agent = ?1")?;
    let row: Option<String> = statement.query_row([agent], |row| row.get(0)).optional()?;
    row.map(|row| from_text(&row)).transpose()
}

fn read_workflow(connection: &Connection, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
    let mut statement = connection.prepare_cached("SELECT row FROM workflows WHERE id = ?1")?;
    let row: Option<String> = statement.query_row([id], |row| row.get(0)).optional()?;
    row.map(|row| from_text(&row)).transpose()
}

fn read_execution(connection: &Connection, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault> {
    let select = "SELECT report FROM executions WHERE agent = ?1 AND decision = ?2";
    let mut statement = connection.prepare_cached(select)?;
    let report: Option<i64> = statement.query_row(params![agent, to_i64(decision)?], |row| row.get(0)).optional()?;
    report.map(to_u64).transpose()
}

fn read_keys(connection: &Connection) -> Result<Vec<OperatorKey>, StoreFault> {
    let mut select = connection.prepare_cached("SELECT row FROM operator_keys ORDER BY id")?;
    select.query_map([], |row| row.get::<_, String>(0))?.map(|row| from_text(&row?)).collect()
}

fn read_agent(connection: &Connection, id: &str) -> Result<Option<Agent>, StoreFault> {
    let mut statement = connection.prepare_cached("SELECT profile, live FROM agents WHERE id = ?1")?;
    let row = statement.query_row([id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let Some((profile, live)) = row.optional()? else { return Ok(None) };
    agent_of(&profile, &live).map(|(agent, _)| Some(agent))
}

fn read_conversation(connection: &Connection, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
    let mut statement = connection.prepare_cached("SELECT row FROM conversations WHERE agent = ?1 AND id = ?2")?;
    let row: Option<String> = statement.query_row([agent, id], |row| row.get(0)).optional()?;
    row.map(|row| from_text(&row)).transpose()
}

fn read_heads(connection: &Connection) -> Result<Vec<(String, StateHead)>, StoreFault> {
    let mut select = connection.prepare_cached("SELECT path, row FROM heads")?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    rows.map(|row| {
        let (path, row) = row?;
        Ok((path, from_text(&row)?))
    })
    .collect()
}

/// The tree's edge, as the last entry of a batch has it.
fn frontier_of(number: i64, bytes: Option<Vec<u8>>) -> Result<Frontier, StoreFault> {
    let frontier = bytes.and_then(|bytes| Frontier::from_bytes(&bytes));
    let fits =
        frontier.filter(|frontier| to_i64(frontier.size()).is_ok_and(|size| size.checked_sub(1) == Some(number)));
    fits.ok_or_else(|| StoreFault::new(format!("entry {number} ends no batch, or its edge of the tree is damaged")))
}

pub(super) fn to_text<T: Serialize>(value: &T) -> Result<String, StoreFault> {
    json::to_string(value, USUAL_ROW_BYTES).map_err(|error| StoreFault::new(Cause::of(error)))
}

fn from_text<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, StoreFault> {
    json::from_str(text).map_err(|error| StoreFault::while_doing("a row is damaged", error))
}

fn to_i64(number: u64) -> Result<i64, StoreFault> {
    i64::try_from(number).map_err(|error| StoreFault::while_doing("a number of the ledger", error))
}

pub(super) fn to_u64(number: i64) -> Result<u64, StoreFault> {
    u64::try_from(number).map_err(|error| StoreFault::while_doing("a number of the ledger", error))
}
