//! What a ruling knows of the bound that a call would run in.

use serde::{Deserialize, Serialize};

use super::profile::{Profile, Profiles};
use crate::call::Effect;
use crate::digest::Digest;

/// By what a command is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Namespaces, read-only mounts, Landlock and seccomp: everything a bound says.
    #[default]
    Full,
    /// Landlock and seccomp without namespaces: no network at all, and what the kernel's rules cannot say of a place that
    /// may be written the runner does itself. A bound that needs more is refused.
    Narrow,
    /// Not at all: whatever has a bound does not run.
    None,
}

impl Rung {
    /// Whether this is what bounds meant before there was another.
    pub(super) fn is_full(&self) -> bool {
        *self == Rung::Full
    }
}

/// From which revision on Landlock keeps signals and sockets without a path inside: without namespaces nothing else does.
pub const NARROW_LANDLOCK_MIN: u32 = 6;

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
    /// Without namespaces: the set-up of Landlock and seccomp alone was tried and held.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub narrow: bool,
}

impl Abilities {
    /// By what a command can be held.
    pub fn rung(self) -> Rung {
        match (self.namespaces, self.narrow) {
            (true, _) if self.landlock > 0 && self.seccomp => Rung::Full,
            (_, true) if self.landlock >= NARROW_LANDLOCK_MIN && self.seccomp => Rung::Narrow,
            _ => Rung::None,
        }
    }

    /// Whether any profile can be promised.
    pub fn hold(self) -> bool {
        self.rung() != Rung::None
    }

    /// Whether this profile can be promised. What cannot be is refused, never weakened: Landlock knows ports and no hosts.
    pub fn hold_profile(self, profile: &Profile) -> bool {
        match self.rung() {
            Rung::Full => true,
            Rung::Narrow => profile.connect.is_empty(),
            Rung::None => false,
        }
    }

    /// In words, for certificates and people.
    pub fn shown(self) -> String {
        match self.rung() {
            Rung::Full => format!("namespaces, Landlock {}, seccomp", self.landlock),
            Rung::Narrow => format!("Landlock {}, seccomp", self.landlock),
            Rung::None => "none".to_owned(),
        }
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
    /// All that is writable in the bound is kept before the command starts, can be made again, or is made read-only.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub keeps: bool,
}

impl BoundEvidence {
    /// Whether the bound holds all that a call with these effects may do. What destroys is held only where all that it can
    /// destroy is kept: it lies in the bound.
    pub fn holds(&self, profiles: &Profiles, effects: &[Effect]) -> bool {
        let profile = profiles.get(&self.profile);
        profile.is_some_and(|profile| profile.digest() == self.digest && self.abilities.hold_profile(profile))
            && (self.keeps && !self.advisory || !effects.contains(&Effect::Destructive))
    }

    /// Whether a call with these effects destroys something, and all that it can destroy is kept before it starts.
    pub fn brings_back(&self, effects: &[Effect]) -> bool {
        self.keeps && effects.contains(&Effect::Destructive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_reads_and_is_written_alike() {
        let before = r#"{"namespaces":true,"landlock":7,"seccomp":true}"#;
        let read: Abilities = serde_json::from_str(before).expect("abilities");
        assert_eq!((read.rung(), read.shown().as_str()), (Rung::Full, "namespaces, Landlock 7, seccomp"));
        assert_eq!(serde_json::to_string(&read).expect("text"), before);
        let bound: crate::contain::Bound = serde_json::from_str(r#"{"profile":"read"}"#).expect("a bound");
        assert_eq!(bound.rung, Rung::Full);
        assert!(!serde_json::to_string(&bound).expect("text").contains("rung"));
    }

    #[test]
    fn what_a_rung_cannot_promise_it_does_not_hold() {
        let narrow = |landlock| Abilities { namespaces: false, landlock, seccomp: true, narrow: true };
        assert_eq!([narrow(5), narrow(6), narrow(7)].map(Abilities::rung), [Rung::None, Rung::Narrow, Rung::Narrow]);
        assert_eq!(Abilities { seccomp: false, ..narrow(7) }.rung(), Rung::None);
        assert_eq!(Abilities::default().rung(), Rung::None);
        let hosts = crate::contain::ProfileSource {
            connect: vec!["packages.example.org".to_owned()],
            ..crate::contain::ProfileSource::default()
        };
        let profiles = Profiles::load(&[("build".to_owned(), hosts)].into()).expect("profiles");
        for (name, holds) in [("read", true), ("project", true), ("build", false)] {
            let profile = profiles.get(name).expect("a profile");
            let evidence = BoundEvidence {
                profile: name.to_owned(),
                digest: profile.digest(),
                abilities: narrow(6),
                advisory: false,
                keeps: false,
            };
            assert_eq!(evidence.holds(&profiles, &[Effect::Unknown]), holds, "{name}");
            assert!(Abilities { namespaces: true, ..narrow(6) }.hold_profile(profile), "{name}");
            assert!(!Abilities::default().hold_profile(profile), "{name}");
        }
    }
}
