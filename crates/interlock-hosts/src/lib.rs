//! What the hosts of coding agents say and expect: their events, their answers, their settings files.
//!
//! Pure: bytes and texts in, values and texts out. Nothing here touches files, clocks or the environment, and nothing
//! here decides: an event becomes a [`HostEvent`], whoever judges it says a [`Reply`], and that becomes what the host
//! reads. What is not understood is an error or stands in `Intent::unread`; it is never skipped.
//!
//! | to find | look in |
//! |---|---|
//! | what every host's events become | `event.rs` |
//! | names of events, fields of tools, host by host | `claude_code.rs`, `codex.rs`, `cursor.rs`, `gemini.rs` |
//! | how a table of fields is read | `tools.rs`; patches: `patch.rs`; counting lines: `lines.rs` |
//! | which calls may need no ruling of their own | `pass.rs` |
//! | what a host is answered | `render.rs` |
//! | how a command carries its ticket | `rewrite.rs`; whether a line is at an end: `line_end.rs` |
//! | what a host hands to its shell | `handed.rs` |
//! | what a runner tells in a command's output | `trailer.rs` |
//! | what goes past a host's hooks | `coverage.rs` |
//! | settings files, and how they are edited | [`settings`] |

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

mod claude_code;
mod codex;
mod coverage;
mod cursor;
mod envelope;
mod event;
mod gemini;
mod handed;
mod line_end;
mod mcp;
mod names;
mod pass;
mod patch;
mod render;
mod rewrite;
pub mod settings;
mod shape;
mod tools;
mod trailer;

pub use coverage::{PAST_ALL, Strength, past, strength};
pub use event::{Host, HostEvent, Kind, ToolResult, Unreadable};
pub use handed::{Handed, HandedLine, handed_to_prefix, handed_to_script};
pub use pass::{pass_of, told};
pub use render::{Rendered, Reply, render, render_unreadable};
pub use rewrite::{Rewriting, TICKET_LEN_MAX, TICKET_LEN_MIN, is_ticket, rewritten, taken_off};
pub use shape::{event_names, may_carry, read, recorded_call};
pub use trailer::{Trailer, trailer, trailers};
