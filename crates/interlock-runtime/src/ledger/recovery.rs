//! What is checked before the first command, and again after a store fault: that the store holds what was signed.

use std::error::Error;
use std::io;
use std::sync::Arc;

use interlock_core::action::Millis;
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{Entry, Frontier, leaf_hash};
use interlock_core::{Cause, Digest};

use super::batch::{Refusals, State, Workflows};
use super::checkpoint::CheckpointFile;
use super::decision_id::DecisionIds;
use super::store::{Reader, StoreFault};

/// How far the clock may be behind the last entry.
pub(super) const CLOCK_BEHIND_MAX_MS: Millis = 5_000;
/// How many entries are read at a time.
const PAGE: usize = 4096;

/// Why a ledger cannot be continued.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryFault {
    /// The store does not hold what the checkpoint says, or what its own head says.
    #[error(transparent)]
    Damaged(Cause),
    /// The clock is behind the ledger.
    #[error("the clock is {} ms behind the last entry; set it right before starting", last.saturating_sub(*now))]
    Clock {
        /// The time of the last entry.
        last: Millis,
        /// The time now.
        now: Millis,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The checkpoint cannot be read or written.
    #[error("checkpoint: {0}")]
    Checkpoint(#[source] io::Error),
}

impl RecoveryFault {
    /// What cannot be read as it must be.
    pub fn damaged(cause: impl Error + Send + Sync + 'static) -> RecoveryFault {
        RecoveryFault::Damaged(Cause::of(cause))
    }
}

/// Reads the state the writer continues from: the checkpoint must be in the store, and everything after it hash to the
/// store's head. `bundle` is at hand in case the ledger rests on it, or on none yet.
pub fn recover(
    reader: &mut dyn Reader,
    checkpoint: Option<&CheckpointFile>,
    bundle: &Arc<Bundle>,
    now: Millis,
) -> Result<State, RecoveryFault> {
    // Before anything is believed or written: a trigger would have a hand in both.
    if let Some(found) = reader.foreign()?.first() {
        return Err(RecoveryFault::Damaged(found.clone().into()));
    }
    let head = reader.head()?;
    let sealed = match checkpoint {
        None => Frontier::default(),
        Some(file) => match file.read().map_err(RecoveryFault::Checkpoint)? {
            Some(checkpoint) => {
                let missing = || {
                    let (size, held) = (checkpoint.size, head.size());
                    let reason = format!("the checkpoint covers {size} entries, and the store holds {held} without it");
                    RecoveryFault::Damaged(reason.into())
                };
                let sealed = reader.frontier(checkpoint.size)?.ok_or_else(missing)?;
                if sealed.root() != checkpoint.root || sealed.size() > head.size() {
                    return Err(missing());
                }
                sealed
            }
            None if head.size() == 0 => {
                file.write(&head).map_err(RecoveryFault::Checkpoint)?;
                Frontier::default()
            }
            None => {
                return Err(RecoveryFault::Damaged("there are entries, and the checkpoint file is gone".into()));
            }
        },
    };
    let (rehashed, last) = rehash(reader, sealed, head.size())?;
    if rehashed != head {
        return Err(RecoveryFault::Damaged("the entries after the checkpoint do not hash to the head".into()));
    }
    let last = match last {
        Some(last) => last,
        None => last_time(reader, head.size())?,
    };
    if now.saturating_add(CLOCK_BEHIND_MAX_MS) < last {
        return Err(RecoveryFault::Clock { last, now });
    }
    let bundle = bundle_in_force(reader, head.size(), bundle)?;
    // A store without a key is gone with the process, and its ids with it.
    let secret = checkpoint.map_or_else(|| Digest::of(&["decision ids"]), |file| file.key().id_secret());
    Ok(State {
        frontier: head,
        of_service: reader.of_service()?,
        clock: last,
        bundle,
        ids: DecisionIds::new(secret),
        workflows: Workflows::default(),
        refusals: Refusals::default(),
    })
}

/// Appends the entries after a frontier to it; also the time of the last of them.
fn rehash(
    reader: &mut dyn Reader,
    mut frontier: Frontier,
    size: u64,
) -> Result<(Frontier, Option<Millis>), RecoveryFault> {
    let mut last = None;
    while frontier.size() < size {
        let left = usize::try_from(size.saturating_sub(frontier.size())).unwrap_or(PAGE);
        let page = reader.entries(frontier.size(), PAGE.min(left))?;
        if page.is_empty() {
            let reason = format!("entry {} is missing", frontier.size());
            return Err(RecoveryFault::Damaged(reason.into()));
        }
        for bytes in &page {
            frontier.append(leaf_hash(bytes));
        }
        last = page.last().map(|bytes| time_of(bytes)).transpose()?;
    }
    Ok((frontier, last))
}

fn last_time(reader: &mut dyn Reader, size: u64) -> Result<Millis, RecoveryFault> {
    let Some(index) = size.checked_sub(1) else { return Ok(0) };
    let page = reader.entries(index, 1)?;
    page.first().map_or_else(|| Err(RecoveryFault::Damaged("the last entry is missing".into())), |b| time_of(b))
}

fn time_of(bytes: &[u8]) -> Result<Millis, RecoveryFault> {
    Entry::from_bytes(bytes).map(|entry| entry.at).map_err(RecoveryFault::damaged)
}

/// The bundle the ledger says is in force; `known` if that is it, or if the ledger names none.
fn bundle_in_force(reader: &mut dyn Reader, size: u64, known: &Arc<Bundle>) -> Result<Arc<Bundle>, RecoveryFault> {
    let Some(digest) = digest_in_force(reader, size)?.filter(|digest| *digest != known.digest()) else {
        return Ok(Arc::clone(known));
    };
    // Rare: another bundle than the one at hand. Its text is in the entry that put it into force.
    let mut index = 0;
    while index < size {
        let page = reader.entries(index, PAGE)?;
        if page.is_empty() {
            break;
        }
        for bytes in &page {
            index = index.saturating_add(1);
            let Some(activated) = activation(bytes)? else { continue };
            let bundle = Bundle::from_text(&activated).map_err(RecoveryFault::damaged)?;
            if bundle.digest() == digest {
                return Ok(Arc::new(bundle));
            }
        }
    }
    Err(RecoveryFault::Damaged("the bundle in force was never put into force".into()))
}

/// The text of a bundle, if an entry puts one into force.
fn activation(bytes: &[u8]) -> Result<Option<String>, RecoveryFault> {
    const KIND: &[u8] = br#""kind":"bundle_activated""#;
    if !bytes.windows(KIND.len()).take(64).any(|window| window == KIND) {
        return Ok(None);
    }
    let entry = Entry::from_bytes(bytes).map_err(RecoveryFault::damaged)?;
    Ok(entry.body.activated().map(str::to_owned))
}

/// The digest of the bundle the last entries rest on.
fn digest_in_force(reader: &mut dyn Reader, size: u64) -> Result<Option<Digest>, RecoveryFault> {
    let mut end = size;
    while end > 0 {
        let from = end.saturating_sub(u64::try_from(PAGE).unwrap_or(1));
        let count = usize::try_from(end.saturating_sub(from)).unwrap_or(PAGE);
        for bytes in reader.entries(from, count)?.iter().rev() {
            let entry = Entry::from_bytes(bytes).map_err(RecoveryFault::damaged)?;
            if let Some(text) = entry.body.activated() {
                let bundle = Bundle::from_text(text).map_err(RecoveryFault::damaged)?;
                return Ok(Some(bundle.digest()));
            }
            if let Some(ruled) = entry.body.ruled() {
                return Ok(Some(ruled.bundle));
            }
        }
        end = from;
    }
    Ok(None)
}
