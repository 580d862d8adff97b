//! What Interlock does once the rules have spoken.
//!
//! | to find | look in |
//! |---|---|
//! | a decision as a token that others can check | [`attestation`] |
//! | what a tool call does, and what the rules say to it | [`call_policy`] |
//! | where a path really leads | [`paths`] |
//! | the order of a state commit | [`commit`] |
//! | what a commit needs of a directory | [`directory`] |
//! | the way of a request: screen, verify, submit | [`gate`] |
//! | the way of a tool call | [`call_gate`] |
//! | deciding and recording in one transaction | [`ledger`] |
//! | coding agents: whose they are, and which project a call belongs to | [`coding_agents`] |
//! | which process is at the other end | [`process`] |
//! | workflows that are registered by id | [`registered`] |
//! | which script the command of a fact runs | [`scripts`] |
//! | the compliance export | [`export`] |
//! | a state commit with intent and outcome on record | [`state_commit`] |
//! | what must hold before a server starts | [`startup`] |
//! | whether an agent could run as the same user | [`reach`] |
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

#[cfg(feature = "ledger")]
mod action_texts;
#[cfg(feature = "ledger")]
pub mod attestation;
#[cfg(feature = "ledger")]
pub mod bound;
#[cfg(feature = "ledger")]
pub mod call_gate;
#[cfg(feature = "ledger")]
pub mod call_policy;
#[cfg(feature = "ledger")]
pub mod choosers;
#[cfg(feature = "ledger")]
pub mod clock;
#[cfg(feature = "ledger")]
pub mod coding_agents;
#[cfg(feature = "ledger")]
pub mod command_lines;
pub mod commit;
pub mod directory;
#[cfg(feature = "ledger")]
pub mod exec_door;
#[cfg(feature = "ledger")]
pub mod export;
#[cfg(feature = "ledger")]
pub mod gate;
#[cfg(feature = "ledger")]
pub mod git_config;
#[cfg(feature = "ledger")]
mod git_hooks;
#[cfg(feature = "ledger")]
mod git_index;
#[cfg(feature = "ledger")]
pub mod keep_door;
#[cfg(feature = "ledger")]
pub mod keeper;
#[cfg(feature = "ledger")]
pub mod kept_calls;
#[cfg(feature = "ledger")]
pub mod ledger;
pub mod paths;
mod platform;
#[cfg(feature = "ledger")]
pub mod process;
pub mod reach;
#[cfg(feature = "ledger")]
pub mod registered;
#[cfg(feature = "ledger")]
pub mod scripts;
#[cfg(feature = "ledger")]
pub mod startup;
#[cfg(feature = "ledger")]
pub mod state_commit;
#[cfg(feature = "ledger")]
pub mod tool_door;
#[cfg(feature = "ledger")]
pub mod undo_door;

pub use commit::{Committed, PreparedCommit, StateFiles};
pub use platform::{HeldDirectory, HeldRoot};
