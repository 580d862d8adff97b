//! How the database is laid out, and how an older layout becomes this one: numbered, forward only, in one transaction,
//! with a copy on disk first.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use interlock_core::{Cause, display};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::store::StoreFault;

mod carry;

use carry::carry;

/// The layout this version writes and reads.
pub(super) const LAYOUT: i64 = 6;
/// From this layout on rows speak of entries by their names.
pub(super) const NAMES_LAYOUT: i64 = 6;

const SCHEMA: &str = "
    CREATE TABLE entries (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL, frontier BLOB) STRICT;
    CREATE TABLE agents (id TEXT PRIMARY KEY, profile TEXT NOT NULL, live TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE conversations (agent TEXT NOT NULL, id TEXT NOT NULL, row TEXT NOT NULL, PRIMARY KEY (agent, id))
        STRICT, WITHOUT ROWID;
    CREATE TABLE heads (path TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE kept (agent TEXT NOT NULL, key BLOB NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL,
        corrected TEXT, PRIMARY KEY (agent, key)) STRICT, WITHOUT ROWID;
";

/// What the second layout added.
const SCHEMA_2: &str = "
    CREATE TABLE tickets (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL,
        undecided INTEGER NOT NULL, expires INTEGER NOT NULL, row TEXT NOT NULL) STRICT;
    CREATE INDEX tickets_by_agent ON tickets (agent, number);
    CREATE INDEX tickets_undecided ON tickets (expires) WHERE undecided = 1;
    CREATE TABLE tokens (agent TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE) STRICT, WITHOUT ROWID;
    CREATE TABLE executions (decision INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT;
    CREATE TABLE operator_keys (id TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE texts (agent TEXT NOT NULL, number INTEGER NOT NULL, salt BLOB NOT NULL, text TEXT NOT NULL,
        until INTEGER, PRIMARY KEY (agent, number)) STRICT, WITHOUT ROWID;
    CREATE INDEX texts_until ON texts (until) WHERE until IS NOT NULL;
    CREATE TABLE outbox (id INTEGER PRIMARY KEY, principal TEXT NOT NULL, event_id TEXT NOT NULL, body TEXT NOT NULL,
        at INTEGER NOT NULL) STRICT;
    CREATE INDEX outbox_by_principal ON outbox (principal, id);
    PRAGMA user_version = 2;
";

/// What the third layout added.
const SCHEMA_3: &str = "
    CREATE TABLE runs (agent TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 3;
";

/// What the fourth layout added.
const SCHEMA_4: &str = "
    CREATE TABLE workflows (id TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 4;
";

/// The agent and the lane of an event, from what it says itself.
pub(super) const EVENT_LANE: &str = "json_extract(body, '$.subject'), CASE json_extract(body, '$.type')
    WHEN 'interlock.approval.pending' THEN 0 WHEN 'interlock.verification.failed' THEN 2 ELSE 1 END";

/// What the fifth layout added: events wait by kind and agent. An agent's row may name the denial that cost trust.
const SCHEMA_5: &str = "
    DROP INDEX outbox_by_principal;
    ALTER TABLE outbox ADD COLUMN agent TEXT NOT NULL DEFAULT '';
    ALTER TABLE outbox ADD COLUMN lane INTEGER NOT NULL DEFAULT 1;
    UPDATE outbox SET agent = json_extract(body, '$.subject'), lane = CASE json_extract(body, '$.type')
        WHEN 'interlock.approval.pending' THEN 0 WHEN 'interlock.verification.failed' THEN 2 ELSE 1 END;
    CREATE INDEX outbox_by_lane ON outbox (principal, lane, agent, id);
    PRAGMA user_version = 5;
";

/// What the sixth layout changed: rows speak of entries by their names, and entries are found by them. What waited in the
/// outbox is put back by `carry.rs`.
const SCHEMA_6: &str = "
    ALTER TABLE agents ADD COLUMN places BLOB NOT NULL DEFAULT x'00';
    CREATE TABLE places (agent TEXT NOT NULL, block INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (agent, block))
        STRICT, WITHOUT ROWID;
    CREATE TABLE marks (mark INTEGER NOT NULL, agent TEXT NOT NULL, PRIMARY KEY (mark, agent)) STRICT, WITHOUT ROWID;
    ALTER TABLE kept RENAME COLUMN number TO seq;
    ALTER TABLE texts RENAME COLUMN number TO seq;
    DROP TABLE executions;
    CREATE TABLE executions (agent TEXT NOT NULL, decision INTEGER NOT NULL, report INTEGER NOT NULL,
        PRIMARY KEY (agent, decision)) STRICT, WITHOUT ROWID;
    DROP TABLE outbox;
    CREATE TABLE outbox (agent TEXT NOT NULL, seq INTEGER NOT NULL, principal TEXT NOT NULL, lane INTEGER NOT NULL,
        event_id TEXT NOT NULL, body TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (agent, seq)) STRICT, WITHOUT ROWID;
    CREATE INDEX outbox_by_lane ON outbox (principal, lane, agent, seq);
    PRAGMA user_version = 6;
";

/// What each layout added, from the first on.
const LAYOUTS: [(i64, &str); 6] =
    [(1, SCHEMA), (2, SCHEMA_2), (3, SCHEMA_3), (4, SCHEMA_4), (5, SCHEMA_5), (LAYOUT, SCHEMA_6)];

/// How long a statement waits for another connection.
pub(super) const BUSY_TIME_MAX: Duration = Duration::from_secs(5);
/// How many pages the log may have before the writer folds what is left of it into the database and it begins anew. By
/// then most of it has been folded beside the writer.
const LOG_PAGES: i64 = 8000;

/// Opens a database for writing, making or migrating it if need be.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreFault> {
    make_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIME_MAX)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    nothing_by_itself(&connection)?;
    // What is removed is overwritten: erased texts must not be found in the file.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.set_prepared_statement_cache_capacity(48);
    let layout: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match layout {
        0 => {
            let all = LAYOUTS.map(|(_, schema)| schema).concat();
            connection.execute_batch(&format!("BEGIN IMMEDIATE; {all} COMMIT;"))?;
        }
        LAYOUT => {}
        older @ 1..LAYOUT => {
            if let Some(found) = foreign(&connection, older)?.first() {
                return Err(StoreFault::new(format!("not migrated: {found}")));
            }
            migrate(&connection, path, older)?;
        }
        newer => return Err(StoreFault::new(format!("layout {newer} is newer than this version reads ({LAYOUT})"))),
    }
    Ok(connection)
}

/// Switches off whatever a database could do by itself: its rows are what the writer wrote, and nothing else.
pub(super) fn nothing_by_itself(connection: &Connection) -> Result<(), StoreFault> {
    connection.pragma_update(None, "trusted_schema", false)?;
    for capability in [DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW] {
        connection.set_db_config(capability, false)?;
    }
    Ok(())
}

/// What a database of a layout holds beside that layout's own tables and indexes, lacks, or has otherwise.
pub(super) fn foreign(connection: &Connection, layout: i64) -> Result<Vec<String>, StoreFault> {
    let own = Connection::open_in_memory()?;
    for (_, schema) in LAYOUTS.iter().filter(|(since, _)| *since <= layout) {
        own.execute_batch(schema)?;
    }
    let (mut missing, mut found) = (objects(&own)?, Vec::new());
    for (name, sql) in objects(connection)? {
        let (kind, name_shown) = (name.0.as_str(), display(&name.1).to_string());
        match missing.remove(&name) {
            Some(expected) if expected == sql => {}
            Some(_) => found.push(format!("the {kind} `{name_shown}` is not as this layout has it")),
            None => found.push(format!("the {kind} `{name_shown}` does not belong in a ledger")),
        }
    }
    found.extend(missing.keys().map(|(kind, name)| format!("the {kind} `{name}` is missing")));
    Ok(found)
}

type Objects = BTreeMap<(String, String), (String, Option<String>)>;

/// Everything a database has: kind and name, the table it belongs to and how it was made, without regard to blanks.
fn objects(connection: &Connection) -> Result<Objects, StoreFault> {
    let mut select = connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?;
    let rows = select.query_map([], |row| {
        let sql: Option<String> = row.get(3)?;
        let sql = sql.map(|sql| sql.split_whitespace().collect::<Vec<_>>().join(" "));
        Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, sql)))
    })?;
    Ok(rows.collect::<rusqlite::Result<Objects>>()?)
}

/// The database holds agents' texts: it is its owner's alone, whatever the mask is. SQLite gives its log the same mode.
fn make_private(path: &Path) -> Result<(), StoreFault> {
    let fault = |error: io::Error| StoreFault::while_doing(path.display().to_string(), error);
    match fs::metadata(path) {
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(fault)
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            made.map(drop).map_err(fault)
        }
        Err(error) => Err(fault(error)),
    }
}

/// Brings an older layout to this one: new tables, and all rows as they follow from the entries now. Nothing is changed before the copy is whole and on disk.
fn migrate(connection: &Connection, path: &Path, layout: i64) -> Result<(), StoreFault> {
    let copy = path.with_file_name(format!("ledger-layout-{layout}.db"));
    let last: Option<i64> = connection.query_row("SELECT max(number) FROM entries", [], |row| row.get(0))?;
    if fs::symlink_metadata(&copy).is_ok() {
        is_copy(&copy, layout, last).map_err(|reason| {
            StoreFault::new(format!("{} is no copy of this ledger ({reason}); move it away", copy.display()))
        })?;
    } else {
        make_copy(connection, &copy, layout, last)?;
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    match add_layouts(connection, layout) {
        Ok(()) => Ok(connection.execute_batch("COMMIT")?),
        Err(fault) => {
            // What cannot be rolled back is gone with the connection, which is dropped.
            let _ = connection.execute_batch("ROLLBACK");
            Err(fault)
        }
    }
}

/// What every later layout added, in order.
fn add_layouts(connection: &Connection, layout: i64) -> Result<(), StoreFault> {
    for (since, schema) in LAYOUTS.iter().filter(|(since, _)| *since > layout) {
        if *since == NAMES_LAYOUT {
            carry(connection, schema)?;
        } else {
            connection.execute_batch(schema)?;
        }
    }
    Ok(())
}

/// Makes a copy, under another name until it is whole.
fn make_copy(connection: &Connection, copy: &Path, layout: i64, last: Option<i64>) -> Result<(), StoreFault> {
    let fault = |error: io::Error| StoreFault::while_doing("the copy before the migration", error);
    let partial = copy.with_extension("db.partial");
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault(error)),
        Ok(()) | Err(_) => {}
    }
    make_private(&partial)?;
    let name = partial.to_str().ok_or_else(|| StoreFault::new("the data directory's name is not UTF-8"))?;
    connection.execute("VACUUM INTO ?1", [name])?;
    // Nobody will ask for an old answer there, so the texts that were kept for that do not belong in it.
    let opened = Connection::open(&partial)?;
    opened.execute_batch("UPDATE kept SET corrected = NULL; VACUUM;")?;
    drop(opened);
    File::open(&partial).and_then(|file| file.sync_all()).map_err(fault)?;
    is_copy(&partial, layout, last)
        .map_err(|reason| StoreFault::while_doing("the copy before the migration", reason))?;
    fs::rename(&partial, copy).map_err(fault)?;
    let directory = copy.parent().map_or(Ok(()), |directory| File::open(directory).and_then(|file| file.sync_all()));
    directory.map_err(fault)
}

/// Whether a file is a copy of this layout with as many entries.
fn is_copy(path: &Path, layout: i64, last: Option<i64>) -> Result<(), Cause> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(Cause::of)?;
    let ask = |select: &str| connection.query_row(select, [], |row| row.get::<_, Option<i64>>(0));
    match (ask("PRAGMA user_version"), ask("SELECT max(number) FROM entries")) {
        (Ok(found), Ok(copied)) if found == Some(layout) && copied == last => Ok(()),
        (Ok(found), Ok(_)) if found == Some(layout) => Err("it has other entries".into()),
        (Err(error), _) | (_, Err(error)) => Err(Cause::of(error)),
        (Ok(_), Ok(_)) => Err("it is of another layout".into()),
    }
}
