//! Folds the write-ahead log into the database on a thread of its own, while the writer goes on.
//!
//! Done by the writer within a commit, reading and writing hundreds of pages and syncing the database holds up every
//! answer behind it. SQLite shows others only commits that are synced, so nothing is folded in before it is durable. It
//! only tidies: what fails here is tried again, and whatever is left the writer does itself once the log is long.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, OpenFlags};

/// After how many written rows the log is folded. Fewer would write the same pages more often: the rows of an agent and
/// of a conversation change with every ruling.
const ROWS: usize = 4096;

/// The thread, from when it is first needed.
#[derive(Debug)]
pub(super) struct Folding {
    path: PathBuf,
    rows: usize,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Folding {
    pub(super) fn new(path: &Path) -> Folding {
        Folding { path: path.to_owned(), rows: 0, thread: None }
    }

    /// So many rows are committed. Waits for nothing.
    pub(super) fn committed(&mut self, rows: usize) {
        self.rows = self.rows.saturating_add(rows);
        if self.rows < ROWS {
            return;
        }
        self.rows = 0;
        if self.thread.is_none() {
            let ((notices, noticed), path) = (sync_channel(1), self.path.clone());
            let spawned = thread::Builder::new().name("folding".to_owned()).spawn(move || fold(&path, &noticed));
            self.thread = spawned.ok().map(|thread| (notices, thread));
        }
        if let Some((notices, _)) = &self.thread {
            // One that waits already stands for this one too.
            let _ = notices.try_send(());
        }
    }
}

impl Drop for Folding {
    fn drop(&mut self) {
        if let Some((notices, thread)) = self.thread.take() {
            drop(notices);
            let _ = thread.join();
        }
    }
}

fn fold(path: &Path, noticed: &Receiver<()>) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags)
        .and_then(|connection| connection.pragma_update(None, "synchronous", "FULL").map(|()| connection));
    let Ok(connection) = opened else { return };
    while let Ok(()) = noticed.recv() {
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// How many rows are in the database without its log.
    fn folded(directory: &Path) -> i64 {
        let alone = directory.join("alone.db");
        fs::copy(directory.join("some.db"), &alone).expect("a copy");
        let connection = Connection::open(&alone).expect("a database");
        connection.query_row("SELECT count(*) FROM rows", [], |row| row.get(0)).unwrap_or(0)
    }

    #[test]
    fn what_the_writer_left_in_the_log_is_folded_beside_it() {
        let directory = std::env::temp_dir().join(format!("interlock-folding-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("some.db");
        let writer = Connection::open(&path).expect("a database");
        writer.pragma_update(None, "journal_mode", "WAL").expect("a log");
        writer.pragma_update(None, "wal_autocheckpoint", 0).expect("a log that stays");
        writer.execute_batch("CREATE TABLE rows (number INTEGER); INSERT INTO rows VALUES (1), (2)").expect("rows");
        let mut folding = Folding::new(&path);
        folding.committed(ROWS - 1);
        assert!(folding.thread.is_none(), "too early");
        assert_eq!(folded(&directory), 0);
        folding.committed(1);
        while folded(&directory) < 2 {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(folded(&directory), 2);
        // It ends with its store, whether or not it has something to do.
        folding.committed(ROWS);
        drop(folding);
        drop(writer);
        fs::remove_dir_all(&directory).expect("removed");
    }
}
