//! The embedded store: SQLite, write-ahead log, full sync, one writer.
//!
//! The layout is lean on purpose: counters live in the agent's row, the window in the conversation's, the tree's edge in
//! the last entry of each batch, and entries have no index beside their number. Each more row or index would cost every
//! approval. Rows that were committed last are remembered, parsed; one process owns the database, so nobody else changes
//! them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlock_core::action::{Agent, AgentStatus, Conversation, Millis, Profile, Spent, Trust};
use interlock_core::ledger::{Frontier, StateHead};
use interlock_core::{Digest, json};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::store::{Changes, KEPT_MS, KeptAnswer, Reader, Rows, Store, StoreFault, Txn};

/// The name of the database in a data directory.
pub const DATABASE_NAME: &str = "ledger.db";

/// The layout this version writes and reads.
const LAYOUT: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE entries (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL, frontier BLOB) STRICT;
    CREATE TABLE agents (id TEXT PRIMARY KEY, profile TEXT NOT NULL, live TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE conversations (agent TEXT NOT NULL, id TEXT NOT NULL, row TEXT NOT NULL, PRIMARY KEY (agent, id))
        STRICT, WITHOUT ROWID;
    CREATE TABLE heads (path TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE kept (agent TEXT NOT NULL, key BLOB NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL,
        corrected TEXT, PRIMARY KEY (agent, key)) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 1;
";

/// How many agents and how many conversations are remembered, parsed.
const REMEMBERED_LEN: usize = 8192;
/// Old answers are removed this often.
const KEPT_CLEANING_MS: Millis = 60_000;
/// How many pages the log may have before it is folded into the database.
const LOG_PAGES: i64 = 1000;

/// The embedded store.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    connection: Connection,
    remembered: Remembered,
    since_tidied: bool,
}

/// Rows as last committed.
#[derive(Debug, Default)]
struct Remembered {
    agents: HashMap<String, Agent>,
    conversations: HashMap<(String, String), Conversation>,
    /// When old answers were last removed.
    kept_cleaned_at: Millis,
}

impl Remembered {
    /// What a committed batch left behind.
    fn update(&mut self, changes: Changes) {
        if self.agents.len() >= REMEMBERED_LEN {
            self.agents.clear();
        }
        if self.conversations.len() >= REMEMBERED_LEN {
            self.conversations.clear();
        }
        for agent in changes.agents {
            self.agents.insert(agent.profile.agent_id.clone(), Agent::clone(&agent));
        }
        for (agent, id, row) in changes.conversations {
            self.conversations.insert((agent, id), row);
        }
    }
}

impl From<rusqlite::Error> for StoreFault {
    fn from(error: rusqlite::Error) -> StoreFault {
        StoreFault(error.to_string())
    }
}

impl SqliteStore {
    /// Opens the database in a directory, creating it if there is none.
    pub fn open(directory: &Path) -> Result<SqliteStore, StoreFault> {
        let path = directory.join(DATABASE_NAME);
        let connection = connect(&path)?;
        Ok(SqliteStore { path, connection, remembered: Remembered::default(), since_tidied: false })
    }
}

fn connect(path: &Path) -> Result<Connection, StoreFault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.set_prepared_statement_cache_capacity(32);
    let layout: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match layout {
        0 => connection.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} COMMIT;"))?,
        LAYOUT => {}
        newer => return Err(StoreFault(format!("layout {newer} is newer than this version reads ({LAYOUT})"))),
    }
    Ok(connection)
}

impl Store for SqliteStore {
    fn begin(&mut self) -> Result<Box<dyn Txn + '_>, StoreFault> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.since_tidied = true;
        Ok(Box::new(SqliteTxn { connection: &self.connection, remembered: &mut self.remembered, open: true }))
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
}

struct SqliteTxn<'a> {
    connection: &'a Connection,
    remembered: &'a mut Remembered,
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
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault> {
        match self.remembered.agents.get(id) {
            Some(agent) => Ok(Some(agent.clone())),
            None => read_agent(self.connection, id),
        }
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
        match self.remembered.conversations.get(&(agent.to_owned(), id.to_owned())) {
            Some(row) => Ok(Some(row.clone())),
            None => read_conversation(self.connection, agent, id),
        }
    }

    fn kept(&mut self, agent: &str, key: Digest) -> Result<Option<KeptAnswer>, StoreFault> {
        let select = "SELECT number, at, corrected FROM kept WHERE agent = ?1 AND key = ?2";
        let mut statement = self.connection.prepare_cached(select)?;
        let row = statement.query_row(params![agent, key.bytes()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get(2)?))
        });
        let Some((index, at, corrected)) = row.optional()? else { return Ok(None) };
        Ok(Some(KeptAnswer { index: to_u64(index)?, at: to_u64(at)?, corrected }))
    }

    fn entry(&mut self, index: u64) -> Result<Option<Vec<u8>>, StoreFault> {
        let mut statement = self.connection.prepare_cached("SELECT bytes FROM entries WHERE number = ?1")?;
        Ok(statement.query_row([to_i64(index)?], |row| row.get(0)).optional()?)
    }

    fn head(&mut self, path: &str) -> Result<Option<StateHead>, StoreFault> {
        let mut statement = self.connection.prepare_cached("SELECT row FROM heads WHERE path = ?1")?;
        let row: Option<String> = statement.query_row([path], |row| row.get(0)).optional()?;
        row.map(|row| from_text(&row)).transpose()
    }

    fn write(&mut self, changes: &Changes) -> Result<(), StoreFault> {
        let count = u64::try_from(changes.entries.len()).unwrap_or(u64::MAX);
        let first = changes.frontier.size().checked_sub(count);
        let first = first.ok_or_else(|| StoreFault("more entries than the tree has leaves".to_owned()))?;
        let insert = "INSERT INTO entries (number, bytes, frontier) VALUES (?1, ?2, ?3)";
        let mut insert = self.connection.prepare_cached(insert)?;
        let last = to_i64(changes.frontier.size())?.checked_sub(1);
        for (number, bytes) in (to_i64(first)?..).zip(&changes.entries) {
            let frontier = (Some(number) == last).then(|| changes.frontier.to_bytes());
            insert.execute(params![number, bytes, frontier])?;
        }
        let update = "UPDATE agents SET live = ?2 WHERE id = ?1";
        let mut update = self.connection.prepare_cached(update)?;
        for agent in &changes.agents {
            let (id, live) = (&agent.profile.agent_id, to_text(&Live::of(agent))?);
            if update.execute(params![id, live])? == 0 {
                let insert = "INSERT INTO agents (id, profile, live) VALUES (?1, ?2, ?3)";
                let mut insert = self.connection.prepare_cached(insert)?;
                insert.execute(params![id, to_text(&*agent.profile)?, live])?;
            }
        }
        let replace = "INSERT OR REPLACE INTO conversations (agent, id, row) VALUES (?1, ?2, ?3)";
        let mut replace = self.connection.prepare_cached(replace)?;
        for (agent, id, row) in &changes.conversations {
            replace.execute(params![agent, id, to_text(row)?])?;
        }
        for (path, row) in &changes.heads {
            let replace = "INSERT OR REPLACE INTO heads (path, row) VALUES (?1, ?2)";
            self.connection.prepare_cached(replace)?.execute(params![path, to_text(row)?])?;
        }
        self.write_kept(changes)?;
        Ok(())
    }

    fn commit(mut self: Box<Self>, changes: Changes) -> Result<(), StoreFault> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.open = false;
        self.remembered.update(changes);
        Ok(())
    }
}

impl SqliteTxn<'_> {
    fn write_kept(&mut self, changes: &Changes) -> Result<(), StoreFault> {
        let Some(newest) = changes.kept.iter().map(|(_, _, kept)| kept.at).max() else { return Ok(()) };
        let insert = "INSERT OR REPLACE INTO kept (agent, key, number, at, corrected) VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut insert = self.connection.prepare_cached(insert)?;
        for (agent, key, kept) in &changes.kept {
            let (number, at) = (to_i64(kept.index)?, to_i64(kept.at)?);
            insert.execute(params![agent, key.bytes(), number, at, kept.corrected])?;
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

/// Reads beside the writer, in this process or another.
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
}

impl SqliteReader {
    /// Opens the database of a data directory for reading; it must exist.
    pub fn open(directory: &Path) -> Result<SqliteReader, StoreFault> {
        SqliteReader::open_database(&directory.join(DATABASE_NAME))
    }

    fn open_database(path: &Path) -> Result<SqliteReader, StoreFault> {
        // Read-only would not do: the shared-memory file of the log must be writable to be joined.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        let layout: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if layout != LAYOUT {
            return Err(StoreFault(format!("layout {layout} is not the one this version reads ({LAYOUT})")));
        }
        Ok(SqliteReader { connection })
    }

    fn head_frontier(&self) -> Result<Frontier, StoreFault> {
        let select = "SELECT number, frontier FROM entries ORDER BY number DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(select)?;
        let row = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        row.map_or_else(|| Ok(Frontier::default()), |(number, bytes)| frontier_of(number, bytes))
    }
}

impl Reader for SqliteReader {
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault> {
        read_agent(&self.connection, id)
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
        read_conversation(&self.connection, agent, id)
    }

    fn entries(&mut self, from: u64, count: usize) -> Result<Vec<Vec<u8>>, StoreFault> {
        let select = "SELECT number, bytes FROM entries WHERE number >= ?1 ORDER BY number LIMIT ?2";
        let mut statement = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = statement
            .query_map(params![to_i64(from)?, limit], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        let mut entries = Vec::new();
        for (expected, row) in (to_i64(from)?..).zip(rows) {
            let (number, bytes) = row?;
            if number != expected {
                return Err(StoreFault(format!("entry {expected} is missing")));
            }
            entries.push(bytes);
        }
        Ok(entries)
    }

    fn head(&mut self) -> Result<Frontier, StoreFault> {
        self.head_frontier()
    }

    fn frontier(&mut self, size: u64) -> Result<Option<Frontier>, StoreFault> {
        let Some(last) = size.checked_sub(1) else { return Ok(Some(Frontier::default())) };
        let mut statement = self.connection.prepare_cached("SELECT frontier FROM entries WHERE number = ?1")?;
        let bytes: Option<Option<Vec<u8>>> = statement.query_row([to_i64(last)?], |row| row.get(0)).optional()?;
        bytes.map(|bytes| frontier_of(to_i64(last)?, bytes)).transpose()
    }

    fn heads(&mut self) -> Result<Vec<(String, StateHead)>, StoreFault> {
        read_heads(&self.connection)
    }

    fn rows(&mut self) -> Result<Rows, StoreFault> {
        let txn = self.connection.unchecked_transaction()?;
        let head = self.head_frontier()?;
        let mut select = txn.prepare("SELECT profile, live FROM agents")?;
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        let agents = select.query_map([], read)?.map(|row| {
            let (profile, live) = row?;
            agent_of(Arc::new(from_text(&profile)?), &live)
        });
        let agents = agents.collect::<Result<Vec<_>, StoreFault>>()?;
        let mut select = txn.prepare("SELECT agent, id, row FROM conversations")?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?));
        let conversations = select.query_map([], read)?.map(|row| {
            let (agent, id, row) = row?;
            Ok((agent, id, from_text(&row)?))
        });
        let conversations = conversations.collect::<Result<Vec<_>, StoreFault>>()?;
        let heads = read_heads(&txn)?;
        Ok(Rows { head, agents, conversations, heads })
    }
}

/// What changes of an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Live {
    token: Digest,
    status: AgentStatus,
    trust: Trust,
    entries: u64,
    last_index: u64,
    last_at: Millis,
    spent: Spent,
}

impl Live {
    fn of(agent: &Agent) -> Live {
        Live {
            token: agent.token,
            status: agent.status,
            trust: agent.trust,
            entries: agent.entries,
            last_index: agent.last_index,
            last_at: agent.last_at,
            spent: agent.spent.clone(),
        }
    }
}

fn agent_of(profile: Arc<Profile>, live: &str) -> Result<Agent, StoreFault> {
    let Live { token, status, trust, entries, last_index, last_at, spent } = from_text(live)?;
    Ok(Agent { profile, token, status, trust, entries, last_index, last_at, spent })
}

fn read_agent(connection: &Connection, id: &str) -> Result<Option<Agent>, StoreFault> {
    let mut statement = connection.prepare_cached("SELECT profile, live FROM agents WHERE id = ?1")?;
    let row = statement.query_row([id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let Some((profile, live)) = row.optional()? else { return Ok(None) };
    agent_of(Arc::new(from_text(&profile)?), &live).map(Some)
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
    fits.ok_or_else(|| StoreFault(format!("entry {number} ends no batch, or its edge of the tree is damaged")))
}

fn to_text<T: Serialize>(value: &T) -> Result<String, StoreFault> {
    serde_json::to_string(value).map_err(|error| StoreFault(error.to_string()))
}

fn from_text<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, StoreFault> {
    json::from_str(text).map_err(|error| StoreFault(format!("a row is damaged: {error}")))
}

fn to_i64(number: u64) -> Result<i64, StoreFault> {
    i64::try_from(number).map_err(|_| StoreFault("a number is out of range".to_owned()))
}

fn to_u64(number: i64) -> Result<u64, StoreFault> {
    u64::try_from(number).map_err(|_| StoreFault("a number is out of range".to_owned()))
}
