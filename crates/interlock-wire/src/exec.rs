//! What the runner and the daemon say to each other about a command that is to be run: over the socket of the home, and
//! never over the network, so that no public description has it.

use std::collections::BTreeMap;

use interlock_core::Digest;
use interlock_core::contain::Bound;
use serde::{Deserialize, Serialize};

/// What asks for a start: how much is known of it decides whether it may run without a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecForm {
    /// A command line that a host hands to its shell: it runs with its ticket, or not at all.
    HostLine,
    /// A command of the host's own: a hook in the form of a shell's line, or a server. No agent's call.
    HostOwn,
    /// `interlock exec -- COMMAND`, by a person or as the whole of a judged line.
    Command,
}

/// May this be started? `POST /exec/start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecStart {
    pub form: ExecForm,
    /// The host that started the runner, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// The command line as it was judged: without the host's own words around it, and without the ticket.
    pub line: String,
    /// The working directory, absolute.
    pub directory: String,
    /// The host's session and its id for the call, where the environment tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What a person chose for a run of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// It may: the start is on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecStarted {
    /// `exec_` and 32 hexadecimal digits; empty if it is no agent's call, so that its end is nobody's to tell.
    pub exec_id: String,
    /// The ticket it was started with, by which its end is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// What the kernel is to hold the command to; none while refusals are only shown, and for what a person agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Where files go that were made and run later.
    pub aside: String,
    /// The private directory for temporary files: the session's, so that it outlives the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp: Option<String>,
    /// What to tell the agent if the command fails in its bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_for_more: Option<String>,
    /// Variables that the command does not get, and those that are set for it, held or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_blocked: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_set: BTreeMap<String, String>,
}

/// It ended. `POST /exec/end`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecEnd {
    pub exec_id: String,
    /// The ticket it was started with: it says whose it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// How it ended: one of the two; neither if it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub duration_ms: u64,
    /// What the bound refused, as far as it was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Files that run later and were set aside, by their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<String>,
    /// Hosts that were reached, and those that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reached: Vec<ExecReached>,
    /// It did not begin because the kernel could not hold it there.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unheld: bool,
}

/// What the daemon leaves in its home for a runner that a sandbox may keep from asking: what it would be answered, and for
/// which start. The name of the file follows from the ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecLeft {
    pub started: ExecStarted,
    /// The SHA-256 of the command line, and of the directory it was judged for.
    pub line: Digest,
    pub directory: Digest,
    /// The host's id for the call.
    pub call_id: String,
    /// When it was left, in milliseconds, and for how long it is good.
    pub at: u64,
    pub lives_ms: u64,
    /// With this the runner marks what it tells. Whatever is held to a bound cannot read it.
    pub secret: Digest,
}

impl ExecLeft {
    /// Where such files lie in a home.
    pub const DIRECTORY: &str = "left";

    /// The name of the file for a ticket.
    pub fn name(ticket: &str) -> String {
        Digest::of(&[ticket]).to_string().chars().skip("sha256:".len()).collect()
    }
}

/// A host that a command wanted to reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecReached {
    pub host: String,
    pub allowed: bool,
}
