//! What is written down about kept states of a project: that one was taken, that an undo begins and how it ended, and what
//! was dropped. Contents and names of files lie in the store, never here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::Actor;
use crate::digest::Digest;

crate::action::words! {
    /// When a state was taken.
    KeptAt: "moment" {
        /// Before the call changed anything.
        Before = "before",
        /// When its end was told.
        After = "after",
    }
}

/// The state of a project, or of some files of it, was kept for a call. Of a command that a runner starts, the entry of
/// the start names the state before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The decision that let the call run.
    pub decision_id: String,
    /// Before it or after it.
    pub moment: KeptAt,
    /// The snapshot in the store.
    pub snapshot: String,
    /// How many files, links and directories are in it.
    pub nodes: u64,
    /// How many bytes its files have.
    pub bytes: u64,
    /// How many places were left out, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// An operator brings back what calls changed. The entry is there before anything is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoStarted {
    /// `undo_` and 32 hexadecimal digits.
    pub undo_id: String,
    /// The decisions and undos whose changes are taken back, the newest first.
    pub undoes: Vec<String>,
    /// The SHA-256 of the plan that is carried out.
    pub plan: Digest,
    /// The snapshot that was taken before it: by this the undo can be undone.
    pub kept: String,
    /// Who.
    pub by: Actor,
}

crate::action::words! {
    /// What became of an undo.
    UndoOutcome: "outcome" {
        /// All of the plan was carried out, but for what clashes.
        Done = "done",
        /// It ended in the middle: each path is as it was before, or as the plan says.
        Failed = "failed",
        /// The service stopped in the middle: each path is as it was before, or as the plan says.
        Interrupted = "interrupted",
    }
}

/// How an undo ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoEnded {
    /// The undo.
    pub undo_id: String,
    /// What became of it.
    pub outcome: UndoOutcome,
    /// The snapshot after it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many paths are as they were.
    pub restored: u64,
    /// How many paths were left alone because something else changed them.
    pub conflicts: u64,
}

/// Kept states were dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pruned {
    /// The snapshots that are gone.
    pub snapshots: Vec<String>,
    /// What the store took before, in bytes.
    pub bytes_before: u64,
    /// What it takes now.
    pub bytes_after: u64,
    /// Who; none if it was a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}
