//! Containment: what a command may touch while the kernel holds it there.
//!
//! A profile is what an operator writes; a bound is that profile resolved to one call on one machine. Both are decided
//! before the command starts. The runner carries a bound out, or refuses; it widens nothing.

mod armed;
mod bound;
mod evidence;
mod profile;

pub use armed::{Armed, UnreadPattern};
pub use bound::{Bound, Cache, Cover, Reach};
pub use evidence::{Abilities, BoundEvidence, NARROW_LANDLOCK_MIN, Rung};
pub use profile::{BUILD, PROJECT, Profile, ProfileError, ProfileSource, Profiles, READ};
