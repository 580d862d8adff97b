//! The rules of Interlock: pure functions from text and configuration to rulings.
//!
//! Nothing here touches files, clocks, randomness, threads or the environment; the same input gives the same ruling on
//! every machine. Effects are the runtime's.
//!
//! | to find | look in |
//! |---|---|
//! | what counts as JSON, canonical text, limits | [`json`] |
//! | what a state may look like | [`schema`] |
//! | how a state may change | [`transition`] |
//! | the order of the checks, digests, commit plans | [`state`] |
//! | what an agent may do: steps, loops, budgets, trust | [`action`] |
//! | rules on arguments, paths and hosts | [`rule`] |
//! | guarded places; what names of fields tell | [`places`]; [`field_names`] |
//! | tool calls of coding agents, the same for every host | [`call`] |
//! | what a command may touch while the kernel holds it there | [`contain`] |
//! | what an operator configures | [`bundle`] |
//! | entries, their tree, and what follows from them | [`ledger`] |
//! | phases, what each allows, and the ways between them | [`workflow`] |
//! | times as they are written | [`instant`] |
//! | every code | [`code`] |

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    clippy::float_arithmetic
)]

pub mod action;
pub mod bundle;
pub mod call;
mod cause;
pub mod code;
pub mod contain;
mod digest;
mod display;
pub mod field_names;
pub mod instant;
pub mod json;
pub mod ledger;
mod lookalike;
mod percent;
pub mod places;
pub mod rule;
pub mod ruling;
pub mod schema;
pub mod state;
mod text_diff;
pub mod transition;
pub mod workflow;

pub use cause::Cause;
pub use code::Code;
pub use digest::{Digest, unhex};
pub use display::{DISPLAY_CHARS_MAX, Shown, display, inert_json, is_visible, visible};
pub use lookalike::reads_as;
pub use percent::percent_decoded;
pub use ruling::{Denial, Place, Side};
pub use text_diff::unified_diff;
