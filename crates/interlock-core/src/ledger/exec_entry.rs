//! What is written down about commands that a runner runs: that they start, and how they ended. Nothing else says how a
//! command ended.

use serde::{Deserialize, Serialize};

use crate::action::StartAsked;
use crate::digest::Digest;

/// A runner starts a command. The entry is there before the command is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecStarted {
    /// `exec_` and 32 hexadecimal digits.
    pub exec_id: String,
    /// The decision that let it run.
    pub decision_id: String,
    /// The SHA-256 of the command line.
    pub line: Digest,
    /// The SHA-256 of the directory it runs in.
    pub directory: Digest,
    /// The profile it is held to; none if nothing holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The SHA-256 of the bound that the runner was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Digest>,
    /// It was not started by the host process that asked: what comes of it is no fact.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub foreign: bool,
    /// It was started with the ruling itself, for a runner that a sandbox may keep from asking. The ticket is still good for
    /// one that can ask, which is a start of its own and takes the place of this one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub by_hook: bool,
    /// The snapshot of the project that was taken before it; none if it only reads, or nothing is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

impl ExecStarted {
    /// What was asked.
    pub fn asked(&self) -> StartAsked<'_> {
        StartAsked { decision_id: &self.decision_id, line: self.line, directory: self.directory }
    }
}

/// A command ended, as its runner saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecEnded {
    /// The start it belongs to.
    pub exec_id: String,
    /// Its exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How long it ran.
    pub duration_ms: u64,
    /// What its bound refused, as far as the runner saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Files it made that run later, which were set aside, by their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<String>,
    /// Hosts it reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reached: Vec<String>,
    /// Hosts it was kept from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreached: Vec<String>,
}
