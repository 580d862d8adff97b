//! Yardsticks for the benchmarks: what the disk and SQLite can do without us.

use std::fs;
use std::io::{Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, params};

/// The sizes of the rows of an approved calculation, as a ledger has them.
const ENTRY_BYTES: usize = 1_326;
const CONVERSATION_BYTES: usize = 218;
const LIVE_BYTES: usize = 349;
const PROFILE_BYTES: usize = 455;
const FRONTIER_BYTES: usize = 280;
/// How many conversations are under way, of how many agents, and how many steps each has.
const LANES: usize = 256;
const AGENTS: usize = 16;
const STEPS: usize = 50;

/// A database as the ledger has it: the same settings, and of its tables those that an approval writes.
fn open(directory: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(directory.join("raw.db"), flags).expect("a database");
    connection.pragma_update(None, "journal_mode", "WAL").expect("WAL");
    connection.pragma_update(None, "synchronous", "FULL").expect("full sync");
    connection.pragma_update(None, "trusted_schema", false).expect("a setting");
    connection.pragma_update(None, "secure_delete", true).expect("a setting");
    connection.pragma_update(None, "wal_autocheckpoint", 8000).expect("a setting");
    connection
        .execute_batch(
            "CREATE TABLE entries (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL, frontier BLOB) STRICT;
             CREATE TABLE agents (id TEXT PRIMARY KEY, profile TEXT NOT NULL, live TEXT NOT NULL) STRICT, WITHOUT ROWID;
             CREATE TABLE conversations (agent TEXT NOT NULL, id TEXT NOT NULL, row TEXT NOT NULL,
                PRIMARY KEY (agent, id)) STRICT, WITHOUT ROWID;",
        )
        .expect("tables");
    connection
}

/// The rows of approvals, and the statements the ledger writes them by.
struct Rows {
    connection: Connection,
    entry: String,
    conversation: String,
    live: String,
    profile: String,
    written: usize,
}

impl Rows {
    fn new(directory: &Path) -> Rows {
        Rows {
            connection: open(directory),
            entry: "e".repeat(ENTRY_BYTES),
            conversation: "c".repeat(CONVERSATION_BYTES),
            live: "l".repeat(LIVE_BYTES),
            profile: "p".repeat(PROFILE_BYTES),
            written: 0,
        }
    }

    /// Commits so many approvals, one of each lane in turn: an entry and a conversation each, and their agents.
    fn commit(&mut self, batch: usize) {
        let connection = &self.connection;
        connection.prepare_cached("BEGIN IMMEDIATE").expect("a statement").execute([]).expect("begun");
        let insert = "INSERT INTO entries (number, bytes, frontier) VALUES (?1, ?2, ?3)";
        let mut insert = connection.prepare_cached(insert).expect("a statement");
        for position in 0..batch {
            let number = i64::try_from(self.written + position).expect("not that many");
            let frontier = (position + 1 == batch).then_some([0_u8; FRONTIER_BYTES]);
            insert.execute(params![number, self.entry.as_bytes(), frontier]).expect("a row");
        }
        let lanes = (0..batch).map(|position| self.written + position);
        let mut keys: Vec<(String, String)> = lanes.map(|at| (agent(at % AGENTS), conversation(at))).collect();
        // As the ledger does, and two steps of one lane are one row.
        keys.sort();
        keys.dedup();
        let update = "UPDATE agents SET live = ?2 WHERE id = ?1";
        let mut update = connection.prepare_cached(update).expect("a statement");
        for number in 0..AGENTS.min(batch) {
            let id = agent((self.written + number) % AGENTS);
            if update.execute(params![id, self.live]).expect("a row") == 0 {
                let insert = "INSERT INTO agents (id, profile, live) VALUES (?1, ?2, ?3)";
                let mut insert = connection.prepare_cached(insert).expect("a statement");
                insert.execute(params![id, self.profile, self.live]).expect("a row");
            }
        }
        let update = "UPDATE conversations SET row = ?3 WHERE agent = ?1 AND id = ?2";
        let mut update = connection.prepare_cached(update).expect("a statement");
        for (agent, id) in &keys {
            if update.execute(params![agent, id, self.conversation]).expect("a row") == 0 {
                let insert = "INSERT INTO conversations (agent, id, row) VALUES (?1, ?2, ?3)";
                let mut insert = connection.prepare_cached(insert).expect("a statement");
                insert.execute(params![agent, id, self.conversation]).expect("a row");
            }
        }
        connection.prepare_cached("COMMIT").expect("a statement").execute([]).expect("committed");
        self.written += batch;
    }
}

fn agent(number: usize) -> String {
    format!("agent_{number:032}")
}

fn conversation(written: usize) -> String {
    format!("bench-data-12345-0-0-{}-{}", written % LANES, written / (LANES * STEPS))
}

/// Approvals a second when nothing but SQLite writes the rows the ledger writes for them, in batches of this size, each
/// synced.
pub fn raw_sqlite_rate(directory: &Path, batch: usize, time: Duration) -> f64 {
    let (mut rows, start) = (Rows::new(directory), Instant::now());
    while start.elapsed() < time {
        rows.commit(batch);
    }
    rows.written as f64 / start.elapsed().as_secs_f64()
}

/// Commits one entry with its rows, synced, each time it is called.
pub fn one_row_commits(directory: &Path) -> impl FnMut() {
    let mut rows = Rows::new(directory);
    move || rows.commit(1)
}

/// The median time of a small synced write, in milliseconds.
pub fn sync_probe(path: &Path, count: usize) -> f64 {
    let mut file = fs::File::create(path).expect("a file");
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let start = Instant::now();
            file.rewind().expect("a file");
            file.write_all(&[7; 4096]).expect("written");
            file.sync_data().expect("synced");
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let _ = fs::remove_file(path);
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
