//! Checkpoints to places elsewhere: a webhook, or a file on another disk. Whoever holds one can show that a ledger was
//! cut short or rewritten. Only the newest matters, so nothing is queued: each look takes the newest there is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::action::Millis;
use interlock_core::ledger::EntryName;
use interlock_core::{Cause, Digest};
use interlock_runtime::clock::{Clock, hex};
use interlock_runtime::ledger::Turn;

use super::{Outbox, Outgoing};
use crate::write::{Object, time};

/// The name of the destination that checkpoints go to.
pub const CHECKPOINT_DESTINATION: &str = "checkpoint";

/// Tells the newest checkpoint, a signed note; nothing if there is none.
pub type Newest = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// An outbox that holds the newest checkpoint, at most every so often.
pub struct Checkpoints {
    newest: Newest,
    source: String,
    every: Duration,
    clock: Arc<dyn Clock>,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    waiting: Option<Outgoing>,
    taken: u64,
    taken_at: Option<Millis>,
    last: Option<Digest>,
}

impl Checkpoints {
    /// An outbox for one destination, [`CHECKPOINT_DESTINATION`]. `source` says whose ledger it is, as CloudEvents has it.
    pub fn new(newest: Newest, source: &str, every: Duration, clock: Arc<dyn Clock>) -> Checkpoints {
        Checkpoints { newest, source: source.to_owned(), every, clock, slot: Mutex::default() }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, ids: &[EntryName]) {
        let mut slot = self.slot();
        if slot.waiting.as_ref().is_some_and(|waiting| waiting.ids == ids) {
            slot.waiting = None;
        }
    }

    fn event(&self, id: u64, note: &str, digest: Digest, now: Millis) -> Outgoing {
        let event_id = format!("checkpoint-{}", hex(&digest.bytes()));
        let body = Object::new()
            .text("specversion", "1.0")
            .text("id", &event_id)
            .text("source", &self.source)
            .text("type", "interlock.checkpoint")
            .text("time", &time(now))
            .text("datacontenttype", "text/plain")
            .text("data", note)
            .end();
        // No entry tells of it; the number tells it from the one before.
        let ids = vec![EntryName::of_service(id)];
        Outgoing { ids, destination: CHECKPOINT_DESTINATION.to_owned(), event_id, body, opened_at: now }
    }
}

impl Outbox for Checkpoints {
    fn backlog(&self) -> Result<Vec<(String, u64)>, Cause> {
        let mut slot = self.slot();
        let now = self.clock.now();
        let is_due = slot.taken_at.is_none_or(|at| u128::from(now.saturating_sub(at)) >= self.every.as_millis());
        if slot.waiting.is_none()
            && is_due
            && let Some(note) = (self.newest)()
        {
            let digest = Digest::of(&[&note]);
            if slot.last != Some(digest) {
                slot.taken = slot.taken.saturating_add(1);
                slot.waiting = Some(self.event(slot.taken, &note, digest, now));
                (slot.taken_at, slot.last) = (Some(now), Some(digest));
            }
        }
        Ok(slot.waiting.iter().map(|_| (CHECKPOINT_DESTINATION.to_owned(), 1)).collect())
    }

    fn next(&self, destination: &str, turn: Turn) -> Result<(Turn, Option<Outgoing>), Cause> {
        let waiting = self.slot().waiting.clone();
        Ok((turn, waiting.filter(|event| event.destination == destination)))
    }

    fn older(&self, destination: &str, before: Millis, limit: usize) -> Result<Vec<EntryName>, Cause> {
        let is_asked = |event: &&Outgoing| event.destination == destination && event.opened_at < before;
        Ok(self.slot().waiting.iter().filter(is_asked).flat_map(|event| event.ids.clone()).take(limit).collect())
    }

    fn delivered(&self, ids: &[EntryName]) -> Result<(), Cause> {
        self.settle(ids);
        Ok(())
    }

    fn abandoned(&self, ids: &[EntryName], _reason: &str) -> Result<(), Cause> {
        self.settle(ids);
        Ok(())
    }
}

/// Keeps a file holding the newest checkpoint, written at most every so often. Never returns; `fault` hears of every
/// write that failed, and the next one is tried when its time comes.
pub async fn keep_file(newest: Newest, path: PathBuf, every: Duration, fault: impl Fn(&io::Error) + Send + Sync) {
    let mut last = None;
    loop {
        let (newest, path) = (Arc::clone(&newest), path.clone());
        let written = tokio::task::spawn_blocking(move || match newest() {
            Some(note) if last != Some(Digest::of(&[&note])) => {
                replace_file(&path, &note).map(|()| Some(Digest::of(&[&note])))
            }
            Some(_) | None => Ok(last),
        });
        match written.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(digest) => last = digest,
            Err(error) => fault(&error),
        }
        tokio::time::sleep(every).await;
    }
}

/// Replaces a file: temporary file beside it, sync, rename, sync of the directory. It holds the old text or the new one,
/// and can be read by everybody: a checkpoint is no secret.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(".tmp");
    let temporary = directory.join(temporary);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // It must not be there, so no link that somebody put there is followed.
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(directory)?.sync_all()
}
