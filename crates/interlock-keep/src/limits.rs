//! What is kept and what is left out, as the caller says; and every limit, with its name.

use std::path::Path;

/// What the caller leaves out of every snapshot.
#[derive(Clone, Copy)]
pub struct LeaveOut<'a> {
    /// Whether a directory beneath the project can be made again. It is asked about every directory but those in `.git`.
    pub is_regenerable: &'a (dyn Fn(&Path) -> bool + Sync),
    /// Whether a path beneath the project is a place of secrets. It is asked about every name of every walk.
    pub is_secret: &'a (dyn Fn(&Path) -> bool + Sync),
}

impl std::fmt::Debug for LeaveOut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaveOut").finish_non_exhaustive()
    }
}

/// Limits of one project's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files, links and directories in one snapshot; with more nothing is kept.
    pub nodes_max: u64,
    /// Bytes of data in one file; a larger one is left out. Holes count nothing.
    pub file_bytes_max: u64,
    /// Bytes that one snapshot may add to the store; if it takes more, nothing is kept.
    pub added_bytes_max: u64,
    /// How long to wait for another process that uses the store.
    pub wait_ms_max: u64,
    /// From this length on, a file of git's objects is kept as a second name of it, where it cannot share blocks. A
    /// program that writes into such a file changes both; shorter ones are copied.
    pub linked_bytes_min: u64,
}

impl Limits {
    /// What holds unless an operator says otherwise.
    pub const USUAL: Limits = Limits {
        nodes_max: 500_000,
        file_bytes_max: 1 << 30,
        added_bytes_max: 4 << 30,
        wait_ms_max: 30_000,
        linked_bytes_min: 256 << 20,
    };
}

/// What a store may hold when it is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Older snapshots are dropped.
    pub age_ms_max: u64,
    /// The oldest snapshots are dropped until the rest takes no more.
    pub bytes_max: u64,
}

impl Bounds {
    /// What holds unless an operator says otherwise: two weeks, 4 GiB.
    pub const USUAL: Bounds = Bounds { age_ms_max: 14 * 24 * 3_600_000, bytes_max: 4 << 30 };
}
