//! Why a command was not started. Whatever stands here, nothing has run.

use std::io;

use thiserror::Error;

/// Why a command was not started.
#[derive(Debug, Error)]
pub enum ContainFault {
    /// This system has nothing that could hold a command.
    #[error("commands cannot be contained on this system")]
    Unsupported,
    /// A path of the bound cannot be taken as it is written.
    #[error("`{path}` of the bound cannot be used: {why}")]
    Bound {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Without namespaces the bound cannot be held.
    #[error("without user namespaces {what}")]
    Narrow {
        /// What cannot.
        what: String,
    },
    /// A part of the set-up failed.
    #[error("could not set up {part}: {source}")]
    SetUp {
        /// What was being set up.
        part: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The command itself could not be started.
    #[error("could not start `{program}`: {source}")]
    Program {
        /// Its name as it was given.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl ContainFault {
    /// A part of the set-up that failed.
    pub(crate) fn of(part: impl Into<String>) -> impl FnOnce(io::Error) -> ContainFault {
        let part = part.into();
        move |source| ContainFault::SetUp { part, source }
    }
}
