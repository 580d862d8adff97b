//! What a ruling knows of the bound that a call would run in.

use serde::{Deserialize, Serialize};

use super::profile::Profiles;
use crate::call::Effect;
use crate::digest::Digest;

/// What the kernel can hold a command to, as the runner found by trying the whole of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abilities {
    /// Namespaces of its own for users, mounts, processes, networks and messages, set up as a profile needs them.
    pub namespaces: bool,
    /// The revision of Landlock; 0 if there is none.
    pub landlock: u32,
    /// Filters for system calls, and somebody who answers for them.
    pub seccomp: bool,
}

impl Abilities {
    /// Whether a profile can be promised. What cannot be is refused, never weakened.
    pub fn hold(self) -> bool {
        self.namespaces && self.landlock > 0 && self.seccomp
    }

    /// In words, for certificates and people.
    pub fn shown(self) -> String {
        if self.hold() { format!("namespaces, Landlock {}, seccomp", self.landlock) } else { "none".to_owned() }
    }
}

/// The bound a call would run in: a profile that gives all it was seen to need, on a kernel that can hold it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundEvidence {
    /// The profile.
    pub profile: String,
    /// Its digest when the call was read.
    pub digest: Digest,
    /// What the kernel can do.
    pub abilities: Abilities,
    /// The host runs the line as it was if what it was told is lost: then nothing holds it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub advisory: bool,
}

impl BoundEvidence {
    /// Whether the bound holds all that a call with these effects may do. What destroys is never only contained: what it
    /// destroys lies in the bound.
    pub fn holds(&self, profiles: &Profiles, effects: &[Effect]) -> bool {
        let profile = profiles.get(&self.profile);
        profile.is_some_and(|profile| profile.digest() == self.digest)
            && self.abilities.hold()
            && !effects.contains(&Effect::Destructive)
    }
}
