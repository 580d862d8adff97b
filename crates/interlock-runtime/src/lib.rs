//! What Interlock does once the rules have spoken.
//!
//! | to find | look in |
//! |---|---|
//! | the order of a state commit | [`commit`] |
//! | what a commit needs of a directory | [`directory`] |
//! | system calls | `platform` |

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm
)]

pub mod commit;
pub mod directory;
mod platform;

pub use commit::{Committed, PreparedCommit, StateFiles};
pub use platform::{HeldDirectory, HeldRoot};
