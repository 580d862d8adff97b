//! Yardsticks for the benchmarks: what the disk and SQLite can do without us.

use std::fs;
use std::io::{Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

/// The sizes of the rows of an approved calculation, as a ledger has them.
const ENTRY_BYTES: usize = 1_326;
const CONVERSATION_BYTES: usize = 222;
const AGENT_BYTES: usize = 275;
const FRONTIER_BYTES: usize = 280;

fn open(directory: &Path) -> Connection {
    let connection = Connection::open(directory.join("raw.db")).expect("a database");
    connection.pragma_update(None, "journal_mode", "WAL").expect("WAL");
    connection.pragma_update(None, "synchronous", "FULL").expect("full sync");
    connection
        .execute_batch(
            "CREATE TABLE entries (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL, frontier BLOB) STRICT;
             CREATE TABLE agents (id TEXT PRIMARY KEY, live TEXT NOT NULL) STRICT, WITHOUT ROWID;
             CREATE TABLE conversations (agent TEXT, id TEXT, row TEXT, PRIMARY KEY (agent, id)) STRICT, WITHOUT ROWID;",
        )
        .expect("tables");
    connection
}

/// Rows a second when batches of entry, conversation and agents are written, each batch synced.
pub fn raw_sqlite_rate(directory: &Path, batch: usize, time: Duration) -> f64 {
    let connection = open(directory);
    let (entry, row, live) = ("e".repeat(ENTRY_BYTES), "c".repeat(CONVERSATION_BYTES), "l".repeat(AGENT_BYTES));
    let (start, mut number) = (Instant::now(), 0_i64);
    while start.elapsed() < time {
        connection.execute_batch("BEGIN IMMEDIATE").expect("begun");
        for position in 0..batch {
            let frontier = (position + 1 == batch).then_some([0_u8; FRONTIER_BYTES]);
            let mut insert = connection.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3)").expect("a statement");
            insert.execute(params![number, entry.as_bytes(), frontier]).expect("a row");
            let id = format!("bench-data-12345-{position}-{}", number / (50 * 256));
            let replace = "INSERT OR REPLACE INTO conversations VALUES (?1, ?2, ?3)";
            let mut replace = connection.prepare_cached(replace).expect("a statement");
            replace.execute(params![format!("agent_{:032}", position % 16), id, row]).expect("a row");
            number += 1;
        }
        for agent in 0..16 {
            let replace = "INSERT OR REPLACE INTO agents VALUES (?1, ?2)";
            let mut replace = connection.prepare_cached(replace).expect("a statement");
            replace.execute(params![format!("agent_{agent:032}"), live]).expect("a row");
        }
        connection.execute_batch("COMMIT").expect("committed");
    }
    f64::from(i32::try_from(number).expect("not that many")) / start.elapsed().as_secs_f64()
}

/// Commits one entry with its rows, synced, each time it is called.
pub fn one_row_commits(directory: &Path) -> impl FnMut() {
    let connection = open(directory);
    let (entry, row, live) = ("e".repeat(ENTRY_BYTES), "c".repeat(CONVERSATION_BYTES), "l".repeat(AGENT_BYTES));
    let mut number = 0_i64;
    move || {
        connection.execute_batch("BEGIN IMMEDIATE").expect("begun");
        let mut insert = connection.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3)").expect("a statement");
        insert.execute(params![number, entry.as_bytes(), [0_u8; FRONTIER_BYTES]]).expect("a row");
        let replace = "INSERT OR REPLACE INTO conversations VALUES ('agent', 'conversation', ?1)";
        connection.prepare_cached(replace).expect("a statement").execute([&row]).expect("a row");
        let replace = "INSERT OR REPLACE INTO agents VALUES ('agent', ?1)";
        connection.prepare_cached(replace).expect("a statement").execute([&live]).expect("a row");
        connection.execute_batch("COMMIT").expect("committed");
        number += 1;
    }
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
