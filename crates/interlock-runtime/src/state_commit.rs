//! A state commit through the service: file and ledger are two stores, so an intent is recorded, then the file replaced,
//! then the outcome recorded. An intent without an outcome is settled by what the file holds.

use std::fs::{self, File};
use std::io::{self, Read};

use interlock_core::json::BYTES_MAX;
use interlock_core::ledger::{Body, EntryName, EntryRef, StateIntent, StateOutcome};
use interlock_core::state::{StateText, decision};
use interlock_core::{Code, Denial, Digest};

use crate::commit::StateFiles;
use crate::ledger::{Answer, Command, Ledger, StoreFault};

/// Why there is no commit.
#[derive(Debug)]
pub enum CommitRefusal {
    /// It may not be made.
    Blocked(Denial),
    /// Our trouble, before anything was written.
    Fault(Code),
    /// Our trouble, after the file was touched: it holds the old state or the new one, and the next start settles which.
    Unsettled,
    /// Our trouble, before anything was written: whether the intent is on record is not known.
    Unknown,
}

impl From<Denial> for CommitRefusal {
    fn from(denial: Denial) -> CommitRefusal {
        CommitRefusal::Blocked(denial)
    }
}

/// Verifies a transition and commits it, with intent and outcome on record. Returns the decision object.
pub fn commit_recorded(
    ledger: &Ledger,
    guard: &str,
    files: &StateFiles,
    current: StateText<'_>,
    proposed: StateText<'_>,
    path: &str,
) -> Result<String, CommitRefusal> {
    let prepared = files.prepare(current, proposed, path)?;
    // The ledger knows a file by the place that its path leads to, whatever the spelling: `//`, a link, another root.
    let place = prepared.place()?;
    let place = ledger.known_state_file(&place, |other| prepared.is_also_at(other));
    let place = place.map_err(|_| CommitRefusal::Fault(Code::FaultStore))?;
    let path = place.as_str();
    let (before, after) = (prepared.transition().current().digest(), prepared.transition().proposed().digest());
    let intent =
        StateIntent { guard: guard.to_owned(), path: path.to_owned(), current: before, proposed: after, first: false };
    let (begun, first) = match ledger.submit_and_wait(Command::BeginState(intent)) {
        Answer::Recorded(recorded) => {
            let Body::StateIntent(intent) = &recorded.entry.body else {
                return Err(CommitRefusal::Fault(Code::FaultInternal));
            };
            (recorded.entry.agent_seq.unwrap_or_default(), intent.first)
        }
        Answer::Blocked(denial) => return Err(CommitRefusal::Blocked(*denial)),
        Answer::Refused(code) | Answer::Fault(code) => return Err(CommitRefusal::Fault(code)),
        Answer::Unknown => return Err(CommitRefusal::Unknown),
        Answer::NeedsEvidence(_) | Answer::BudgetSpent(_) | Answer::Stale(_) | Answer::Passed(_) | Answer::Done => {
            return Err(CommitRefusal::Fault(Code::FaultInternal));
        }
    };
    let prepared = if first { prepared } else { prepared.of_known_file() };
    let committed = prepared.commit();
    // A write that failed may have happened all the same: the file says.
    let holds = match &committed {
        Ok(_) => true,
        Err(denial) => denial.code == Code::StateWrite && file_digest(path).is_ok_and(|digest| digest == Some(after)),
    };
    let outcome = StateOutcome { intent: of_service(begun), path: path.to_owned(), committed: holds };
    if !matches!(ledger.submit_and_wait(Command::EndState(outcome)), Answer::Recorded(_)) {
        return Err(CommitRefusal::Unsettled);
    }
    let committed = committed?;
    Ok(decision::committed(committed.transition(), committed.path()))
}

/// Settles every intent whose outcome is not known by what its file holds. Returns how many there were.
pub fn settle_open_commits(ledger: &Ledger) -> Result<usize, StoreFault> {
    let open = ledger.open_commits()?;
    for (path, intent) in &open {
        let digest = file_digest(path).map_err(|error| StoreFault::while_doing(path.clone(), error))?;
        let committed = digest == Some(intent.proposed);
        let outcome = StateOutcome { intent: of_service(intent.seq), path: path.clone(), committed };
        if !matches!(ledger.submit_and_wait(Command::EndState(outcome)), Answer::Recorded(_)) {
            return Err(StoreFault::new("the outcome of a state commit could not be recorded"));
        }
    }
    Ok(open.len())
}

fn of_service(seq: u64) -> EntryRef {
    EntryRef::Named(EntryName::of_service(seq))
}

/// The SHA-256 of a file; `None` if there is none. What is no regular file holds no state, and may not end.
fn file_digest(path: &str) -> io::Result<Option<Digest>> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Ok(None),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(Digest::of_bytes(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
