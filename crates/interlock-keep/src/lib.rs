//! Kept trees: what a project was before a call, what the call changed, and how that is brought back.
//!
//! A [`Store`] holds the trees of one project. [`Store::keep`] makes a [`Snapshot`] of the project, or of named paths;
//! [`Store::changes`] tells two snapshots apart; [`Store::plan`] says what an undo would do, and [`Store::carry_out`] does
//! it; [`Store::prune`] bounds the store. This crate knows neither calls nor rulings nor the ledger: a caller remembers
//! which snapshots belong to which call, and says what is regenerable and where secrets are ([`LeaveOut`]).
//!
//! ```text
//! before a line starts      let before = store.keep(&Scope::All, leave_out, now_ms)?.id;
//! before an edit            let before = store.keep(&Scope::Paths(vec![path]), leave_out, now_ms)?.id;
//! when the call has ended   let after = store.keep(&same_scope, leave_out, now_ms)?.id;
//! may `rm -rf build` run?   store.recoverable(&before, Path::new("build"))?   // Kept, Regenerable, NotKept { path, why }, …
//! `interlock changes`       store.changes(&before, &after)?, and of each node store.content(&node, bytes_max)?
//! `interlock undo`          let plan = store.plan(&Undo { before, after, earlier, overlapping, named }, leave_out, now_ms)?;
//!                           store.carry_out(&plan, leave_out, now_ms)?        // its `kept` and `after` undo the undo
//! `interlock snapshots`     store.snapshots()?, store.left_out(&id)?, store.prune(&bounds, &held, now_ms)?
//! ```
//!
//! Every fault says under which of three codes it is answered ([`KeepFault::kind`]). Until `keep` has returned, nothing may
//! run; if it fails, what was kept before is as it was. The tree as it is now is compared by keeping it: that costs little,
//! and there is one way to look at a tree.
//!
//! # The store
//!
//! | file | what | how it is written |
//! |---|---|---|
//! | `snapshots` | the log: a line for each snapshot, whose id is the digest of the line | added to; replaced by pruning |
//! | `packs/N.pack` | objects, by SHA-256, with a table at the end | once, as a whole, then renamed |
//! | `linked/DIGEST` | large files of `.git/objects`: second names of the project's own files, or clones of them | once |
//! | `seen` | what the last walk saw; worth nothing by itself | as a whole |
//! | `widened` | directories whose permissions an undo widens for a while | added to; gone when it is over |
//! | `lock` | held while somebody writes | |
//! | `project` | the path of the project | once |
//!
//! | to find | look in |
//! |---|---|
//! | what is kept of a name, and how directories become objects | `node.rs`, `assemble.rs` |
//! | which names are looked at, by whom, what is left out, and what stays as it was | `walk.rs`, `visit.rs`, `named.rs`, `gather.rs` |
//! | when a file need not be read again | `index.rs` |
//! | the bytes of a file | `content.rs`; of git's large ones `linked.rs` |
//! | packs, objects, the log, the lock | `pack.rs`, `objects.rs`, `log.rs`, `lock.rs` |
//! | what differs; what an undo would do; doing it | `changes.rs`; `plan.rs`; `restore.rs`, `stage.rs`, `place.rs`, `widened.rs`; the tree it leaves: `graft.rs` |
//! | what is dropped | `prune.rs` |
//! | paths and descriptors | `project.rs` |
//!
//! After a kill nothing that was kept is lost. After a power cut a pack of up to 16 MiB that can be seen is whole, because
//! it is synced before it gets its name. Snapshots of the last half minute may be missing: their line in the log, names of
//! linked files, and the pack of a first snapshot, which is longer. What is missing is found when it is wanted.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice
)]

mod assemble;
mod bytes;
mod changes;
mod content;
mod fault;
mod gather;
mod graft;
mod index;
mod limits;
mod linked;
mod lock;
mod log;
mod named;
mod node;
mod objects;
mod pack;
mod place;
mod plan;
mod project;
mod prune;
mod restore;
mod stage;
mod store;
mod visit;
mod walk;
mod widened;
mod xattrs;

pub use changes::{Change, Way};
pub use fault::{FaultKind, KeepFault};
pub use limits::{Bounds, LeaveOut, Limits};
pub use log::{Snapshot, SnapshotId};
pub use node::{Content, Kind, Node, Why};
pub use plan::{Clash, Fate, Plan, Step, Undo};
pub use prune::Pruned;
pub use restore::Undone;
pub use store::{Recoverable, Scope, Store};
