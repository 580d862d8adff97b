//! Codex' own sandbox, from within which no runner reaches this server. What a runner would be answered is left for it in the
//! home with the ruling, which is a start on record; how the command ended comes back in its output, with a mark by a
//! secret that was left there too.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

use interlock_core::workflow::CALL_MS_MAX;
use interlock_core::{Code, Digest};
use interlock_hosts::{Host, Trailer};
use interlock_runtime::exec_door::StartComing;
use interlock_runtime::tool_door::{CallAnswer, CallComing, DoorFault, Origin, Place};
use interlock_wire::{ExecEnd, ExecLeft};

use super::Hooks;

/// For how long a runner may use what was left for it: nobody marks it as spent.
const LEFT_MS: u64 = 60_000;
/// How many files are looked at for old ones.
const SWEPT_MAX: usize = 256;

impl Hooks {
    /// Starts the command of a call with its ruling, and leaves for its runner what it would be answered.
    pub(super) fn leave(
        &self,
        origin: &Origin<'_>,
        coming: &CallComing<'_>,
        answer: &CallAnswer,
    ) -> Result<(), DoorFault> {
        let (Some(ticket), Some(call_id), [line]) =
            (&answer.ticket, coming.call_id, coming.call.intent.commands.as_slice())
        else {
            return Ok(());
        };
        if origin.host != Host::Codex.as_str() {
            return Ok(());
        }
        let directory = coming.call.intent.directory.as_deref().unwrap_or(origin.cwd);
        let start = StartComing { ticket, line, directory, process: origin.caller.process, by_hook: true };
        let started = self.started(ticket, self.door.start(&start)?);
        let unknown = |_| DoorFault::Refused(Code::ContainTicket);
        let directory = fs::canonicalize(directory).map_err(unknown)?;
        let left = ExecLeft {
            started,
            line: Digest::of(&[line]),
            directory: Digest::of(&[&directory.to_string_lossy()]),
            call_id: call_id.to_owned(),
            at: self.service.gate.ledger().now(),
            // Where refusals are only shown, nothing is refused for its age.
            lives_ms: if answer.ruled.observed { CALL_MS_MAX } else { LEFT_MS },
            secret: self.door.secret()?,
        };
        let written = write(&self.left(), &ExecLeft::name(ticket), &interlock_wire::write(&left));
        written.map_err(|_| DoorFault::Refused(Code::ContainRecord))
    }

    /// Records how the command of a call ended, if its runner told so in the output: the last word must be its own, and the
    /// only one. Anything else is nobody's word.
    pub(super) fn hear(
        &self,
        origin: &Origin<'_>,
        place: &Place,
        call_id: Option<&str>,
        trailers: &[Trailer],
    ) -> Result<(), DoorFault> {
        if origin.host != Host::Codex.as_str() {
            return Ok(());
        }
        let Some((ticket, exec_id)) = self.door.started_by_hook(origin, place, call_id)? else { return Ok(()) };
        let left = fs::read_to_string(self.left().join(ExecLeft::name(&ticket))).ok();
        let left = left.and_then(|text| interlock_wire::read::<ExecLeft>(&text).ok());
        if let Some(end) = left.and_then(|left| told(trailers, left.secret)).filter(|end| end.exec_id == exec_id) {
            if end.unheld {
                self.unheld.lock().unwrap_or_else(PoisonError::into_inner).insert(place.agent.clone());
            }
            let end = ExecEnd { ticket: Some(ticket.clone()), ..end };
            self.end(end).map_err(|refused| DoorFault::Refused(refused.code))?;
        }
        self.forget_left(&ticket);
        Ok(())
    }

    /// Whether a runner told that nothing can be held where the lines of an agent run.
    pub(super) fn is_unheld(&self, place: &Place) -> bool {
        self.unheld.lock().unwrap_or_else(PoisonError::into_inner).contains(&place.agent)
    }

    pub(super) fn forget_left(&self, ticket: &str) {
        // What stays is swept when it is old.
        let _ = fs::remove_file(self.left().join(ExecLeft::name(ticket)));
    }

    fn left(&self) -> PathBuf {
        self.home.join(ExecLeft::DIRECTORY)
    }
}

/// What was told with this secret, if that was the last word and said once.
fn told(trailers: &[Trailer], secret: Digest) -> Option<ExecEnd> {
    let (last, before) = trailers.split_last()?;
    if before.iter().any(|trailer| trailer.opened(secret).is_some()) {
        return None;
    }
    interlock_wire::read(last.opened(secret)?).ok()
}

fn write(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    sweep(directory);
    let path = directory.join(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let written = file.write_all(text.as_bytes());
    if written.is_err() {
        let _ = fs::remove_file(&path);
    }
    written
}

/// Removes what nobody will ask for any more: the end of a call is believed for so long.
fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.take(SWEPT_MAX).filter_map(Result::ok) {
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > Duration::from_millis(CALL_MS_MAX)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
