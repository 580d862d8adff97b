//! How far Interlock's word goes on this machine: whether an agent could run as the user whose files these are.
//!
//! Decided from three numbers, so that it can be tested: who owns the data directory, who asks, and for whom root asks.
//! Where nothing speaks for a user of its own the answer is the smaller claim.

use std::io;
use std::path::Path;

/// Users from here on are people, by the custom of today's Linux systems.
pub const LOGIN_USER_MIN: u32 = 1000;

/// Whether Interlock has a user of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// An agent may run as the user Interlock's files belong to: it could change them.
    SameUser,
    /// Interlock's files belong to a user of their own, which agents do not run as.
    OwnUser,
}

impl Reach {
    /// As checkpoints and reports have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Reach::SameUser => "same-user",
            Reach::OwnUser => "own-user",
        }
    }

    /// Reads it as checkpoints have it.
    pub fn parse(text: &str) -> Option<Reach> {
        [Reach::SameUser, Reach::OwnUser].into_iter().find(|reach| reach.as_str() == text)
    }
}

/// Decides from the owner of the data directory, the user who asks, and the user who became root to ask (`SUDO_UID`).
///
/// - Somebody other than root asks, and the files are another's: they are out of reach for that user.
/// - The files are a service user's (1 to 999), and it or root asks: nobody logs in as that user.
/// - Everything else is the same user: the files are the asking person's, or a person's, or root's and only root asks.
pub fn reach(owner: u32, asking: u32, behind_root: Option<u32>) -> Reach {
    let person = if asking == 0 { behind_root.unwrap_or(0) } else { asking };
    if person != 0 && person != owner {
        return Reach::OwnUser;
    }
    if (1..LOGIN_USER_MIN).contains(&owner) { Reach::OwnUser } else { Reach::SameUser }
}

/// The user this process acts as.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// How many bytes can still be written where a path is, and how many there are.
pub fn free_bytes(path: &Path) -> io::Result<(u64, u64)> {
    let found = rustix::fs::statvfs(path)?;
    Ok((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}
