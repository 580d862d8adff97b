//! How one entry names another: by whose it is, and by its number among theirs.
//!
//! Entries come in streams: each agent has one, and the service has one for what is about no agent. Numbers in a stream
//! begin with 1 and have no gaps. Where an entry stands in the tree is a property of sealing, which comes after recording:
//! nothing that is recorded rests on it.

use core::fmt;

use serde::{Deserialize, Serialize};

/// From this format on entries name others; before it they said where in the tree those stood.
pub const NAMES_SINCE: u32 = 6;

/// What an entry says of another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EntryRef {
    /// Its name.
    Named(EntryName),
    /// Its place in the tree, as formats before the sixth have it.
    At(u64),
}

/// Names an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryName {
    /// Whose it is; none is the service's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its number among theirs, from 1.
    pub seq: u64,
}

impl EntryName {
    /// An entry of an agent.
    pub fn of_agent(agent: &str, seq: u64) -> EntryName {
        EntryName { agent: Some(agent.to_owned()), seq }
    }

    /// An entry of the service.
    pub fn of_service(seq: u64) -> EntryName {
        EntryName { agent: None, seq }
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.seq, self.agent.as_deref().unwrap_or("the service"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_reference_reads_as_it_was_written() {
        for (named, text) in [
            (EntryRef::At(7), "7"),
            (EntryRef::Named(EntryName::of_agent("agent_a", 3)), r#"{"agent":"agent_a","seq":3}"#),
            (EntryRef::Named(EntryName::of_service(3)), r#"{"seq":3}"#),
        ] {
            assert_eq!(json::to_string(&named, 64).ok().as_deref(), Some(text));
            assert_eq!(json::from_str::<EntryRef>(text).ok(), Some(named));
        }
        for text in ["-1", "\"7\"", "{}", r#"{"agent":"a"}"#, r#"{"seq":1,"index":2}"#, "[1]", "null"] {
            assert!(json::from_str::<EntryRef>(text).is_err(), "{text}");
        }
    }
}
