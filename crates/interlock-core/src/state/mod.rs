//! The state guard: in which order a state, a transition and a commit are checked, and what success is worth.
//!
//! | step | code | decided in |
//! |---|---|---|
//! | the text is there | 101 | `text.rs` |
//! | strict JSON | 102 (depth: 103) | [`crate::json`] |
//! | schema | 103 | [`crate::schema`] |
//! | there are rules | 104 | `guard.rs` |
//! | the current state passes 101-103 | 105 | `guard.rs` |
//! | transition rules | 106 | [`crate::transition`] |
//! | the commit target | 107 | [`target`] (its spelling), runtime (the file system) |
//! | the write | 108 | runtime |

pub mod decision;
mod guard;
pub mod target;
mod text;

pub use guard::{GuardError, StateGuard, VerifiedState, VerifiedTransition};
pub use target::{CommitRoot, CommitTarget};
pub use text::StateText;
