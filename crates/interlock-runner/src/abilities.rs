//! What this machine can hold a command with, tried and not guessed.

use interlock_core::contain::Rung;
use serde::{Deserialize, Serialize};

/// What this machine can hold a command with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abilities {
    /// The best by which commands can be held here.
    pub rung: Rung,
    /// The version of Landlock's interface; zero without it.
    pub landlock_abi: u32,
    /// Whether a command ran inside namespaces of its own with all mounts set up.
    pub namespaces: bool,
    /// Whether the filter of system calls can be installed.
    pub seccomp: bool,
    /// Whether the kernel asks the runner before a connection to a socket.
    pub notifier: bool,
    /// Whether a cache can be read from the user's directory and written to the project's. Else it begins empty.
    pub overlay: bool,
    /// What failed on the way to the best of all, if anything did.
    pub missing: Option<String>,
    /// What a person may do about it.
    pub advice: Option<String>,
}
