//! What the programs `interlock` and `interlock-shell` share: the way to the daemon, and the start of what was judged.
//!
//! `interlock-shell` starts with every command line of an agent, so nothing here reads arguments, tables or settings.

pub mod daemon;
pub mod exec;
mod fault;
pub mod version;

pub use fault::Fault;
