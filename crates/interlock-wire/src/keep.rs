//! Kept states: what calls changed, and bringing it back.

use crate::schema::{integer, list, of, text, words};
use crate::words::{Digest, Time};

wire! {
    /// A path that a call changed.
    answer ChangedFile {
        /// Beneath the project; `.` is the project's own directory.
        path: String,
        /// In which ways it is not as it was.
        ways: Vec<String> = list(words(["added", "removed", "kind", "content", "target", "mode", "owner", "xattrs"])),
        /// What it was.
        before?: String,
        /// What it is.
        after?: String,
        /// How its lines changed, as a unified diff; absent if it is no text, or too long.
        diff?: String,
        /// Why there is no diff.
        no_diff?: String,
    }

    /// What a call changed in its project.
    answer Changes {
        project: String,
        /// The decision, or the undo.
        call: String,
        at: String = Time,
        tool: String,
        session: String,
        /// Nobody told its end: this is what changed since it began.
        is_open: bool,
        /// The snapshot before it.
        before: String,
        /// The snapshot after it.
        after?: String,
        files: Vec<ChangedFile> = list(of::<ChangedFile>()),
    }

    // An undo.
    request UndoRequest {
        /// A directory of the project, absolute.
        directory: String = text().max_length(4096).pattern(r"^/[^\u0000]*$"),
        /// A decision or an undo. What is given together must all be so; without any of these three it is the last call.
        call?: String,
        /// All calls since then, in milliseconds since 1970; a time such as `2026-11-15T12:00:00Z` is read as well.
        since?: String = text().pattern("^[0-9]{1,15}$"),
        /// All calls of a session.
        session?: String,
        /// Only these paths, absolute or from the project's directory on, conflicts or not.
        paths?: Vec<String>,
        /// The plan that is to be carried out, as an answer gave it; without it nothing is done.
        plan?: String = Digest,
    }

    /// What becomes of one path.
    answer UndoStep {
        path: String,
        /// `create` brings back what is gone, `remove` takes away what was made, `restore` puts back what was changed;
        /// the others leave it alone.
        fate: String = words(["create", "restore", "remove", "as_before", "conflict", "not_kept"]),
        /// Why it is left alone.
        why?: String,
    }

    /// What an undo does, or did.
    answer UndoAnswer {
        project: String,
        /// The decisions and undos that are undone, the newest first.
        calls: Vec<String>,
        /// The SHA-256 of the plan.
        plan: String = Digest,
        steps: Vec<UndoStep> = list(of::<UndoStep>()),
        /// How many paths are created, restored or removed.
        restored: u64,
        /// How many are left alone because something else changed them.
        conflicts: u64,
        /// It was done: by this id it can be undone.
        undo_id?: String = text().pattern("^undo_[0-9a-f]{32}$"),
    }

    /// A kept state.
    answer KeptState {
        snapshot: String = text().pattern("^snap_[0-9a-f]{32}$"),
        at: String = Time,
        /// Files, links and directories in it.
        nodes: u64,
        /// Bytes of its files.
        bytes: u64,
        /// What it added to the store, in bytes.
        stored_bytes: u64,
        /// How many places are not in it.
        left_out: u64,
        /// Which, and why; only of one state.
        places?: Vec<LeftOutPlace>,
    }

    /// A place that is not in a kept state.
    answer LeftOutPlace {
        path: String,
        why: String,
    }

    /// The kept states of a project, the oldest first.
    answer KeptStates {
        project: String,
        /// What the store takes, in bytes.
        bytes: u64,
        states: Vec<KeptState> = list(of::<KeptState>()),
    }

    // What is to be dropped.
    request PruneRequest {
        /// A directory of the project, absolute.
        directory: String = text().max_length(4096).pattern(r"^/[^\u0000]*$"),
        /// Not only what is beyond the limits of the bundle.
        all?: bool,
    }

    /// What was dropped.
    answer PrunedStates {
        project: String,
        snapshots: Vec<String>,
        bytes_before: u64 = integer().min(0),
        bytes_after: u64 = integer().min(0),
    }
}
