//! The runner against the real kernel: a command behaves as without it, and does not get out.
//!
//! As root each test runs twice: as root, and as a user who owns nothing.

mod arms;
mod behaviour;
mod caches;
mod escapes;
mod labels;
mod narrow;
mod reach;
mod refused;
mod sessions;
mod shut_in;
mod support;
