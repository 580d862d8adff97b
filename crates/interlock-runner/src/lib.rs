//! The runner: a command held by the kernel to a bound that was decided before.
//!
//! It takes a [`Bound`](interlock_core::contain::Bound) and a command, and carries the bound out or refuses; it decides
//! nothing and widens nothing. It knows neither tickets nor rulings nor hosts. When [`run`] returns a fault, nothing has
//! run.
//!
//! | to find | look in |
//! |---|---|
//! | what a caller hands in and gets back | `start.rs` |
//! | which mounts, rules and filters follow from a bound | `linux/{plan,rules,filter,locked}.rs` |
//! | the same without namespaces | `linux/narrow.rs` |
//! | what is done, or written down, of calls that change files | `linux/{calls,found,field,deeds}.rs` |
//! | what the new process does before the command, in order | `linux/{steps,child}.rs` |
//! | signals, ends, streams | `linux/supervise.rs` |
//! | calls that share namespaces | `linux/session.rs` |
//! | which sockets by path may be reached | `linux/notify.rs` |
//! | files that nobody may leave behind | `linux/arms.rs` |
//! | hosts by name | `linux/{hosts,proxy}.rs` |
//! | every use of `unsafe` | `linux/sys.rs` |

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice
)]

mod abilities;
mod fault;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod start;

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(not(target_os = "linux"))]
use other as platform;

pub use abilities::Abilities;
pub use fault::ContainFault;
pub use interlock_core::contain::Rung;
pub use platform::{end_session, probe, run};
pub use start::{Ended, How, Reached, Refusal, Session, SetAside, Start, temporary_inside};
