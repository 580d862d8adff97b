//! What a caller hands in, and what it gets back.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use interlock_core::contain::{Bound, Rung};

/// Where temporary files go inside namespaces.
pub(crate) const TEMPORARY: &str = "/tmp";

/// Where a held command finds the private directory for temporary files: without namespaces, where it really is.
pub fn temporary_inside(rung: Rung, temporary: &Path) -> PathBuf {
    if rung == Rung::Full { PathBuf::from(TEMPORARY) } else { temporary.to_owned() }
}

/// How many refusals, hosts and files an end names; those beyond are counted.
pub(crate) const NAMED_MAX: usize = 64;

/// A command and what it is held to.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The program and its arguments. A name without a slash is looked for in `PATH` of `env`.
    pub program: Vec<OsString>,
    /// The directory it begins in.
    pub cwd: PathBuf,
    /// Its variables, before the bound takes some away and adds others.
    pub env: Vec<(OsString, OsString)>,
    /// What it is held to. Without one it runs as it would by itself, and is only watched.
    pub bound: Option<Bound>,
    /// A directory that is the private one for temporary files, so that it outlives the call. Without one that directory
    /// is in memory and ends with the call.
    pub temp: Option<PathBuf>,
    /// Where files go that nobody may leave behind. Without one they stay where they are and are reported.
    pub aside: Option<PathBuf>,
    /// The session that a held command belongs to. Without one it has namespaces of its own.
    pub session: Option<Session>,
}

/// A session: its calls share processes, network and ipc, as long as its owner lives.
#[derive(Debug, Clone)]
pub struct Session {
    /// Where it is written down which process holds the namespaces. No command may reach it: it must be hidden by every
    /// bound.
    pub directory: PathBuf,
    /// The process whose end ends the session: the host.
    pub owner: u32,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// With a code from 0 to 255.
    Exit(i32),
    /// By a signal.
    Signal(i32),
}

/// What was seen of a command that ran.
#[derive(Debug, Clone)]
pub struct Ended {
    /// How it ended.
    pub how: How,
    /// How long it ran.
    pub duration: Duration,
    /// What was seen of refused attempts, each once.
    pub refusals: Vec<Refusal>,
    /// Files that it may not leave behind.
    pub set_aside: Vec<SetAside>,
    /// Hosts that it asked for.
    pub reached: Vec<Reached>,
    /// What could not be had as the bound says and was made narrower.
    pub notes: Vec<String>,
}

/// An attempt that was refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// What it tried: `write`, `connect`.
    pub attempt: &'static str,
    /// On what.
    pub target: String,
}

/// A file that was made or changed, and that runs or chooses what runs later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where it was made.
    pub path: String,
    /// Where it is now; nowhere else if nothing was handed in to put it.
    pub kept: Option<PathBuf>,
}

/// A host that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// Its name, or its address if there was none.
    pub host: String,
    /// Whether the bound allows it.
    pub allowed: bool,
}
