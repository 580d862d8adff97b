//! What is written down: one JSON object per event that a later ruling may read.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::action::{Evidence, Facts, Figures, Millis, Profile, Ruling, Trust};
use crate::digest::Digest;
use crate::json;

/// The form of entries. A reader refuses newer ones.
pub const FORMAT: u32 = 1;
/// Rises whenever `decide` may answer differently.
pub const RULES: u32 = 1;

/// What most entries need, so that one allocation holds them.
const USUAL_BYTES: usize = 1536;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The form of this entry.
    pub format: u32,
    /// The revision of the rules it was decided by.
    pub rules: u32,
    /// What kind of event it is; says the same as the body.
    pub kind: EntryKind,
    /// The agent it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The how manieth entry of that agent it is, from 1, without gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_seq: Option<u64>,
    /// The index of that agent's entry before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<u64>,
    /// When.
    pub at: Millis,
    /// What.
    pub body: Body,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// An agent was registered.
    Registered,
    /// A request was ruled on.
    Ruled,
    /// A bundle came into force.
    BundleActivated,
    /// Requests that proved no identity, counted.
    Unauthenticated,
    /// A state file is about to be replaced.
    StateIntent,
    /// What became of that.
    StateOutcome,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// An agent was registered.
    Registered(Box<AgentRegistered>),
    /// A request was ruled on.
    Ruled(Box<Ruled>),
    /// A bundle came into force.
    BundleActivated(BundleActivated),
    /// Requests that proved no identity, counted.
    Unauthenticated(UnauthenticatedRequests),
    /// A state file is about to be replaced.
    StateIntent(StateIntent),
    /// What became of that.
    StateOutcome(StateOutcome),
}

impl Body {
    fn kind(&self) -> EntryKind {
        match self {
            Body::Registered(_) => EntryKind::Registered,
            Body::Ruled(_) => EntryKind::Ruled,
            Body::BundleActivated(_) => EntryKind::BundleActivated,
            Body::Unauthenticated(_) => EntryKind::Unauthenticated,
            Body::StateIntent(_) => EntryKind::StateIntent,
            Body::StateOutcome(_) => EntryKind::StateOutcome,
        }
    }
}

/// A new agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRegistered {
    /// What was said about it.
    pub profile: Profile,
    /// The SHA-256 of its token.
    pub token: Digest,
    /// How far it is trusted.
    pub trust_level: Trust,
}

/// A ruling with everything it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruled {
    /// `dec_` and 32 hexadecimal digits.
    pub decision_id: String,
    /// The bundle in force.
    pub bundle: Digest,
    /// What was asked; absent if the request was malformed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// What its text yielded, if it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What was read of agent and conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// The ruling.
    pub ruling: Ruling,
    /// Under which key the answer can be asked for again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
}

/// A request that may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    /// The SHA-256 of the key.
    pub key: Digest,
    /// The SHA-256 of the request.
    pub request: Digest,
}

/// A bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleActivated {
    /// Its canonical text.
    pub text: String,
}

/// Noise: requests that named an unknown agent or had a wrong token, since the last such entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnauthenticatedRequests {
    /// Requests for agents that do not exist.
    pub unknown_agent: u64,
    /// Requests with a missing or wrong token.
    pub wrong_token: u64,
}

/// A verified transition of a state file, before anything is written: file and ledger are two stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateIntent {
    /// The guard that verified it.
    pub guard: String,
    /// The file, as it was named.
    pub path: String,
    /// The SHA-256 of the current state.
    pub current: Digest,
    /// The SHA-256 of the proposed state, which is that of the file afterwards.
    pub proposed: Digest,
    /// No state was committed to this file before.
    pub first: bool,
}

/// What became of an intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateOutcome {
    /// The index of the intent.
    pub intent: u64,
    /// The file, as it was named.
    pub path: String,
    /// Whether the file holds the proposed state.
    pub committed: bool,
}

/// Why bytes are no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryError {
    /// Written by a newer version.
    Newer(u32),
    /// Not of the form.
    Malformed(String),
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryError::Newer(format) => write!(f, "format {format} is newer than this version reads ({FORMAT})"),
            EntryError::Malformed(reason) => write!(f, "not an entry: {reason}"),
        }
    }
}

impl std::error::Error for EntryError {}

impl Entry {
    /// An entry of this version.
    pub fn new(agent: Option<(&str, u64, Option<u64>)>, at: Millis, body: Body) -> Entry {
        Entry {
            format: FORMAT,
            rules: RULES,
            kind: body.kind(),
            agent: agent.map(|(id, _, _)| id.to_owned()),
            agent_seq: agent.map(|(_, seq, _)| seq),
            previous: agent.and_then(|(_, _, previous)| previous),
            at,
            body,
        }
    }

    /// The bytes that are stored and hashed.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EntryError> {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut bytes, self).map_err(|error| EntryError::Malformed(error.to_string()))?;
        Ok(bytes)
    }

    /// Reads stored bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Entry, EntryError> {
        let malformed = |reason: &dyn fmt::Display| EntryError::Malformed(reason.to_string());
        let text = core::str::from_utf8(bytes).map_err(|error| malformed(&error))?;
        let entry: Entry = json::from_str(text).map_err(|error| malformed(&error))?;
        if entry.format > FORMAT || entry.rules > RULES {
            return Err(EntryError::Newer(entry.format.max(entry.rules)));
        }
        if entry.kind != entry.body.kind() {
            return Err(EntryError::Malformed("kind and body differ".to_owned()));
        }
        Ok(entry)
    }
}
