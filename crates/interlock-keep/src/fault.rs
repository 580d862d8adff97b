//! What can go wrong, and under which of three codes a caller answers it.

use std::io;
use std::path::PathBuf;

/// Why something was not kept, told or brought back.
#[derive(Debug, thiserror::Error)]
pub enum KeepFault {
    /// The tree has more files and directories than may be kept.
    #[error("`{}` holds more than {max} files and directories, and so many are not kept", project.display())]
    TooMany {
        /// The project.
        project: PathBuf,
        /// The limit.
        max: u64,
    },
    /// One snapshot would store more bytes than it may.
    #[error("what changed in `{}` takes more than {max} bytes, and so many are not kept at once", project.display())]
    TooMuch {
        /// The project.
        project: PathBuf,
        /// The limit.
        max: u64,
    },
    /// A path leads out of the project, or is none.
    #[error("`{}` is no path beneath the project", path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// The project could not be read.
    #[error("could not read `{}`", path.display())]
    Read {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The store or the project could not be written.
    #[error("could not write `{}`", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has held the store for too long.
    #[error("another process has been using the kept trees in `{}` for {waited_ms} ms", store.display())]
    Busy {
        /// The store.
        store: PathBuf,
        /// How long was waited.
        waited_ms: u64,
    },
    /// What the store holds is not what was put there.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// The store was written by a later version.
    #[error("the kept trees in `{}` were written by a later version", store.display())]
    LaterFormat {
        /// The store.
        store: PathBuf,
    },
    /// The project's path leads to another directory than before.
    #[error("`{}` is another directory now", project.display())]
    Replaced {
        /// The project.
        project: PathBuf,
    },
    /// There is no such snapshot: it was dropped, or never was.
    #[error("there is no snapshot `{id}`")]
    NoSuchSnapshot {
        /// The name that was asked for.
        id: String,
    },
}

/// Under which code a fault is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// `INTERLOCK-KEEP-001`: it cannot be kept, so what would change it does not run.
    CannotKeep,
    /// `INTERLOCK-KEEP-002`: the store is damaged; nothing was written.
    Damaged,
    /// `INTERLOCK-KEEP-003`: what is there now is not what was left there.
    Conflict,
}

impl KeepFault {
    /// Under which code a fault is answered.
    pub fn kind(&self) -> FaultKind {
        match self {
            KeepFault::TooMany { .. }
            | KeepFault::TooMuch { .. }
            | KeepFault::Outside { .. }
            | KeepFault::Read { .. }
            | KeepFault::Write { .. }
            | KeepFault::Busy { .. } => FaultKind::CannotKeep,
            // A snapshot that a call names and the store lacks is as lost as one that cannot be read.
            KeepFault::Damaged { .. } | KeepFault::LaterFormat { .. } | KeepFault::NoSuchSnapshot { .. } => {
                FaultKind::Damaged
            }
            KeepFault::Replaced { .. } => FaultKind::Conflict,
        }
    }

    pub(crate) fn damaged(what: impl Into<String>) -> KeepFault {
        KeepFault::Damaged { what: what.into() }
    }

    pub(crate) fn read(path: impl Into<PathBuf>, source: impl Into<io::Error>) -> KeepFault {
        KeepFault::Read { path: path.into(), source: source.into() }
    }

    pub(crate) fn write(path: impl Into<PathBuf>, source: impl Into<io::Error>) -> KeepFault {
        KeepFault::Write { path: path.into(), source: source.into() }
    }
}
