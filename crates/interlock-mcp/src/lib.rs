//! Sessions of the Model Context Protocol: lines in, lines and questions out.
//!
//! Nothing here reads or writes anything, and nothing here decides. A [`Session`] reads what a client sends, in either
//! era of the protocol, and turns a call of a control tool into a [`ControlRequest`]. Whoever drives the session asks
//! the daemon, and hands back what that said.
//!
//! | to find | look in |
//! |---|---|
//! | which revisions there are, and what differs | `revision.rs` |
//! | what counts as a message, and its faults | `message.rs` |
//! | methods, batches, calls that wait for an answer | `session.rs` |
//! | the control tools as a client sees them | `tools.rs` |
//! | their arguments, and the daemon's answers | `control.rs` |
//! | what an agent reads | `text.rs` |

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

mod control;
mod message;
mod revision;
mod session;
mod text;
mod tools;

pub use control::{ControlAnswer, ControlFault, ControlRequest};
pub use session::{BATCH_MAX, CALLS_MAX, CallId, LINE_BYTES_MAX, Output, Session};
pub use tools::{PREFIX, PREFIX_BYTES_MAX, PrefixError};
