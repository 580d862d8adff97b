//! Committing a state: target, verdict, lock, compare, write, sync, rename, sync.
//!
//! A crash at any point leaves the old file or the new one. The temporary file has one name per directory and is
//! written under the directory's lock, so whoever commits next removes what a crash left behind.

use std::io;
use std::time::Duration;

use interlock_core::state::{CommitTarget, StateGuard, StateText, VerifiedTransition, target};
use interlock_core::{Code, Denial, Digest, display};

use crate::directory::{Directory, Entry};
use crate::platform::{HeldDirectory, HeldRoot, OpenFault};

/// The one temporary name in a directory; it does not end in `.json`, so no target can have it.
pub const TEMPORARY_NAME: &str = ".interlock-commit.tmp";

/// How long a commit waits for another one in the same directory.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

const MOVED: &str = "the commit root or the directory of target_path was moved or replaced; build the guard again";

/// The permission bits of a file that did not exist before.
const NEW_FILE_MODE: u32 = 0o600;

/// A guard with its commit roots held open.
#[derive(Debug)]
pub struct StateFiles {
    guard: StateGuard,
    roots: Vec<HeldRoot>,
}

/// A transition that passed every rule, and the directory it may be written to. Nothing has happened yet.
#[derive(Debug)]
#[must_use]
pub struct PreparedCommit<'t, D: Directory = HeldDirectory> {
    target: CommitTarget,
    directory: D,
    transition: VerifiedTransition<'t>,
    /// The file was there before, so it may not be absent.
    must_exist: bool,
}

/// A state that is on disk.
#[derive(Debug)]
pub struct Committed<'t> {
    target: CommitTarget,
    transition: VerifiedTransition<'t>,
}

impl<'t> Committed<'t> {
    /// The target as it was given.
    pub fn path(&self) -> &str {
        self.target.path()
    }

    /// The transition that led to it; the file holds the canonical text of its proposed state.
    pub fn transition(&self) -> &VerifiedTransition<'t> {
        &self.transition
    }
}

impl StateFiles {
    /// Holds the guard's roots open. A root that does not exist yet is opened by the first commit that needs it.
    pub fn new(guard: StateGuard) -> StateFiles {
        let roots = guard.roots().iter().map(|root| HeldRoot::new(root.path())).collect();
        StateFiles { guard, roots }
    }

    /// The guard.
    pub fn guard(&self) -> &StateGuard {
        &self.guard
    }

    /// Verifies a transition and writes the proposed state, or does nothing: 107, then the transition's own checks,
    /// then 107 if the file is not what the caller says, then 108.
    pub fn verify_transition_and_commit<'t>(
        &self,
        current: impl Into<StateText<'t>>,
        proposed: impl Into<StateText<'t>>,
        target_path: &str,
    ) -> Result<Committed<'t>, Denial> {
        self.prepare(current, proposed, target_path)?.commit()
    }

    /// The part of a commit that only looks. The surfaces call [`verify_transition_and_commit`] or, where they must
    /// build their answer first, this and [`PreparedCommit::commit`] right after it.
    ///
    /// [`verify_transition_and_commit`]: StateFiles::verify_transition_and_commit
    pub fn prepare<'t>(
        &self,
        current: impl Into<StateText<'t>>,
        proposed: impl Into<StateText<'t>>,
        target_path: &str,
    ) -> Result<PreparedCommit<'t>, Denial> {
        let (target, directory) = self.open_target(target_path)?;
        let transition = self.guard.verify_transition(current, proposed)?;
        Ok(PreparedCommit { target, directory, transition, must_exist: false })
    }

    /// Finds the root a target is beneath and opens the target's directory without leaving it.
    fn open_target(&self, target_path: &str) -> Result<(CommitTarget, HeldDirectory), Denial> {
        if self.roots.is_empty() {
            return Err(target::refused("no allowed_commit_roots are configured, so nothing can be committed"));
        }
        let target = CommitTarget::parse(target_path)?;
        let mut fault = None;
        for root in &self.roots {
            match root.open_directory_of(&target) {
                Ok(Some(directory)) => {
                    check_entry(directory.compare(target.file_name(), &[]))?;
                    return Ok((target, directory));
                }
                Ok(None) => {}
                Err(reason) => fault = fault.or(Some(reason)),
            }
        }
        Err(target::refused(match fault {
            None => "target_path is outside the configured commit roots".to_owned(),
            Some(OpenFault::RootMissing) => "the commit root of target_path does not exist".to_owned(),
            Some(OpenFault::RootReplaced) => MOVED.to_owned(),
            Some(OpenFault::ParentMissing) => "the parent directory of target_path must already exist".to_owned(),
            Some(OpenFault::LeadsOut) => {
                "target_path leads out of its commit root through a link (an absolute link counts as leading out)"
                    .to_owned()
            }
            Some(OpenFault::Other(reason)) => {
                format!("the parent directory of target_path cannot be opened: {}", kind_of(&reason))
            }
        }))
    }
}

/// What the ledger asks, which knows files by their place.
#[cfg(feature = "ledger")]
impl PreparedCommit<'_> {
    /// The place that the target leads to: its directory without links, and its name. Every spelling of a target has
    /// the same one.
    pub(crate) fn place(&self) -> Result<String, Denial> {
        use std::path::Path;
        let directory = Path::new(self.target.path()).parent().unwrap_or_else(|| Path::new("/"));
        let real = std::fs::canonicalize(directory).ok().filter(|real| self.directory.is_at(real));
        let real = real.ok_or_else(|| target::refused(MOVED))?;
        let real = real.to_str().ok_or_else(|| target::refused("the directory of target_path has no name in UTF-8"))?;
        Ok(format!("{}/{}", real.trim_end_matches('/'), self.target.file_name()))
    }

    /// Whether another path of a file with this name is one of this very file.
    pub(crate) fn is_also_at(&self, path: &str) -> bool {
        std::path::Path::new(path).parent().is_some_and(|directory| self.directory.is_at(directory))
    }
}

impl<'t, D: Directory> PreparedCommit<'t, D> {
    /// Prepares a commit in any directory, for tests that fail, record or kill.
    #[doc(hidden)]
    pub fn in_directory(directory: D, target: CommitTarget, transition: VerifiedTransition<'t>) -> Self {
        PreparedCommit { target, directory, transition, must_exist: false }
    }

    /// The same commit of a file that is known to exist: if it vanished, that is 107.
    pub fn of_known_file(self) -> Self {
        PreparedCommit { must_exist: true, ..self }
    }

    /// The transition about to be committed.
    pub fn transition(&self) -> &VerifiedTransition<'t> {
        &self.transition
    }

    /// Compares and swaps. An error after the rename may leave the new state in place, never less than a whole one.
    pub fn commit(self) -> Result<Committed<'t>, Denial> {
        self.compare_and_swap()?;
        Ok(Committed { target: self.target, transition: self.transition })
    }

    fn compare_and_swap(&self) -> Result<(), Denial> {
        let name = self.target.file_name();
        let _lock = match self.directory.lock(LOCK_WAIT_MAX) {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                let seconds = LOCK_WAIT_MAX.as_secs();
                return Err(write_failed(format_args!("another commit held the directory for {seconds} seconds")));
            }
            Err(reason) => {
                return Err(write_failed(format_args!("the directory cannot be locked: {}", kind_of(&reason))));
            }
        };
        if !self.directory.is_in_place().unwrap_or(false) {
            return Err(target::refused(MOVED));
        }
        let mode = self.check_head(name)?;
        let state = self.transition.proposed().canonical();
        self.replace(name, state.as_bytes(), mode)
            .map_err(|(step, reason)| write_failed(format_args!("{step} failed: {}", kind_of(&reason))))?;
        // What is acknowledged must be found at the path it was asked for.
        if !self.directory.is_in_place().unwrap_or(false) {
            return Err(write_failed(format_args!("{MOVED} (the new state may be in the directory that was moved)")));
        }
        Ok(())
    }

    /// Under the lock: the file must hold what the caller says is the current state. Returns its mode.
    fn check_head(&self, name: &str) -> Result<u32, Denial> {
        let claimed = self.transition.current().canonical().as_bytes();
        match check_entry(self.directory.compare(name, claimed))? {
            None if self.must_exist => {
                Err(target::refused("the file at target_path is gone, though a state was committed to it"))
            }
            None => Ok(NEW_FILE_MODE),
            Some((true, mode)) => Ok(mode),
            Some((false, _)) => Err(target::refused(format_args!(
                "the file at target_path does not hold the canonical text of the claimed current state ({}); \
                 read it again and propose a transition from what it holds",
                Digest::of_bytes(claimed)
            ))),
        }
    }

    fn replace(&self, name: &str, state: &[u8], mode: u32) -> Result<(), (&'static str, io::Error)> {
        let step = |what: &'static str| move |reason: io::Error| (what, reason);
        let written = self.write_temporary(state, mode);
        let renamed = written
            .and_then(|()| self.directory.rename(TEMPORARY_NAME, name).map_err(step("renaming the temporary file")));
        if let Err(fault) = renamed {
            // The next commit removes it if this does not.
            let _ = self.directory.remove(TEMPORARY_NAME);
            return Err(fault);
        }
        // Only now is the rename sure to survive a power cut; before that nothing may be acknowledged.
        self.directory.sync().map_err(step("syncing the directory (the new state may be in place)"))
    }

    fn write_temporary(&self, state: &[u8], mode: u32) -> Result<(), (&'static str, io::Error)> {
        let step = |what: &'static str| move |reason: io::Error| (what, reason);
        let created = match self.directory.create(TEMPORARY_NAME) {
            // Whatever has the name is left from a commit that died: we hold the lock.
            Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => {
                self.directory.remove(TEMPORARY_NAME).map_err(step("removing an old temporary file"))?;
                self.directory.create(TEMPORARY_NAME)
            }
            created => created,
        };
        let mut file = created.map_err(step("creating the temporary file"))?;
        self.directory.write(&mut file, state).map_err(step("writing the temporary file"))?;
        // Always: a new file has lost what the process's mask takes away.
        self.directory.set_mode(&mut file, mode).map_err(step("setting the mode of the temporary file"))?;
        self.directory.sync_file(&mut file).map_err(step("syncing the temporary file"))
    }
}

/// What may stand at the target's name: nothing, or a regular file (whether it is as expected, and its mode).
fn check_entry(entry: io::Result<Entry>) -> Result<Option<(bool, u32)>, Denial> {
    match entry {
        Ok(Entry::Absent) => Ok(None),
        Ok(Entry::File { as_expected, mode }) => Ok(Some((as_expected, mode))),
        Ok(Entry::Link) => Err(target::refused("target_path is a symbolic link")),
        Ok(Entry::Other) => Err(target::refused("target_path is not a regular file")),
        Err(reason) => Err(target::refused(format_args!("target_path cannot be read: {}", kind_of(&reason)))),
    }
}

fn write_failed(reason: std::fmt::Arguments<'_>) -> Denial {
    Denial::blocked(Code::StateWrite, format_args!("the state could not be written: {reason}"))
}

/// The system's words for an error, without paths.
fn kind_of(reason: &io::Error) -> String {
    display(&reason.to_string()).to_string()
}
