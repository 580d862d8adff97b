//! What is written down: one JSON object per event that a later ruling may read.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::entry_ref::{EntryName, EntryRef, NAMES_SINCE};
use super::exec_entry::{ExecEnded, ExecStarted};
use super::keep_entry::{Kept, Pruned, UndoEnded, UndoStarted};
use super::refusals::RefusalsRepeated;
use super::run_entry::{
    AllowanceGiven, AllowanceTaken, CallEndReported, Passed, RunStarted, RunSteered, SessionBound, Transitioned,
    TurnEnded,
};
use super::workflows::WorkflowRegistered;
use crate::action::{
    Actor, AgentStatus, CallEvidence, Charge, Evidence, Facts, Figures, Merits, Millis, Mode, Profile, Ruling, Trust,
    TrustCause, Usage, Verdict,
};
use crate::digest::Digest;
use crate::json;

/// The form of entries. A reader refuses newer ones.
pub const FORMAT: u32 = 7;
/// Rises whenever `decide` may answer differently.
pub const RULES: u32 = 7;

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
    /// The agent it is about; none is the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its number among the entries of that agent, or of the service, from 1, without gaps. Before the sixth format those
    /// of the service have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_seq: Option<u64>,
    /// The place in the tree of that agent's entry before it, before the sixth format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<u64>,
    /// When.
    pub at: Millis,
    /// What.
    pub body: Body,
}

/// Declares every kind of entry once: its name, and what an entry of that kind says.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident($body:ty),)*) => {
        /// The kinds of events.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum EntryKind {
            $($(#[doc = $doc])* $kind,)*
        }

        /// What an entry says.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Body {
            $($(#[doc = $doc])* $kind($body),)*
        }

        impl Body {
            fn kind(&self) -> EntryKind {
                match self {
                    $(Body::$kind(_) => EntryKind::$kind,)*
                }
            }
        }
    };
}

kinds! {
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
    /// An agent's principal, or the agent, asks for more trust.
    TrustRequested(Box<TrustRequested>),
    /// A person decided on a ticket.
    ApprovalResolved(Box<ApprovalResolved>),
    /// What was let run was reported as done.
    Executed(Box<Executed>),
    /// An agent is trusted more or less.
    TrustChanged(TrustChanged),
    /// An agent was suspended or reactivated.
    StatusChanged(StatusChanged),
    /// Refusals hold for an agent, or are only shown.
    ModeChanged(ModeChanged),
    /// An agent got another token.
    TokenRotated(TokenRotated),
    /// The kept texts of an agent were removed.
    TextsErased(TextsErased),
    /// An operator's key was made.
    KeyCreated(KeyCreated),
    /// An operator's key counts no more.
    KeyRevoked(KeyRevoked),
    /// Attestations are signed by another key.
    SigningKeyRotated(SigningKeyRotated),
    /// A workflow was put in force for an agent.
    RunStarted(Box<RunStarted>),
    /// An operator moved, stopped or freed a run.
    RunSteered(RunSteered),
    /// An agent asked for a transition.
    Transitioned(Box<Transitioned>),
    /// A host told what became of a tool call.
    CallEnded(Box<CallEndReported>),
    /// A host told that no call of it is under way any more.
    TurnEnded(TurnEnded),
    /// A session of a host began in the agent's project.
    SessionBound(SessionBound),
    /// An operator lets a call pass.
    AllowanceGiven(Box<AllowanceGiven>),
    /// An operator lets it pass no more.
    AllowanceTaken(AllowanceTaken),
    /// A workflow was registered under its id.
    WorkflowRegistered(Box<WorkflowRegistered>),
    /// Refusals of an agent that are like earlier ones, counted.
    RefusalsRepeated(RefusalsRepeated),
    /// What went on without a ruling of its own, counted.
    Passed(Passed),
    /// A runner starts the command of a call.
    ExecStarted(Box<ExecStarted>),
    /// How a command ended, as its runner saw.
    ExecEnded(Box<ExecEnded>),
    /// The state of a project was kept for a call.
    Kept(Box<Kept>),
    /// An operator brings back what calls changed.
    UndoStarted(Box<UndoStarted>),
    /// How that ended.
    UndoEnded(Box<UndoEnded>),
    /// Kept states were dropped.
    Pruned(Box<Pruned>),
}

impl Body {
    /// The ruling, if it is one.
    pub fn ruled(&self) -> Option<&Ruled> {
        if let Body::Ruled(ruled) = self { Some(ruled) } else { None }
    }

    /// The ruling, if it is one.
    pub fn into_ruled(self) -> Option<Ruled> {
        if let Body::Ruled(ruled) = self { Some(*ruled) } else { None }
    }

    /// What it says of a text that is kept beside it.
    pub fn text(&self) -> Option<Digest> {
        if let Body::TrustRequested(requested) = self {
            return requested.text;
        }
        self.ruled().and_then(|ruled| ruled.text)
    }

    /// The refusals that are counted, if some are.
    pub fn repeated(&self) -> Option<&RefusalsRepeated> {
        if let Body::RefusalsRepeated(repeated) = self { Some(repeated) } else { None }
    }

    /// The id of the decision it is, if it is one.
    pub fn decision_id(&self) -> Option<&str> {
        if let Body::Transitioned(asked) = self {
            return Some(&asked.decision_id);
        }
        self.ruled().map(|ruled| ruled.decision_id.as_str())
    }

    /// The run that was started, if one was.
    pub fn started(&self) -> Option<&RunStarted> {
        if let Body::RunStarted(started) = self { Some(started) } else { None }
    }

    /// The workflow that was registered, if one was.
    pub fn workflow_registered(&self) -> Option<&WorkflowRegistered> {
        if let Body::WorkflowRegistered(registered) = self { Some(registered) } else { None }
    }

    /// The text of the bundle that came into force, if one did.
    pub fn activated(&self) -> Option<&str> {
        if let Body::BundleActivated(bundle) = self { Some(&bundle.text) } else { None }
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
    /// The ticket it opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<TicketOpened>,
    /// The SHA-256 of a salt and the text of the request, if the text is kept beside the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Digest>,
    /// It tells of an attack: a tool blocked by name, or hostile text.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub violation: bool,
    /// It was made in observe mode: the caller may go on whatever it says.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub observed: bool,
    /// The ticket whose agreement a tool call used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redeemed: Option<String>,
    /// The allowance a tool call used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<String>,
}

impl Ruled {
    /// Whether it is a tool call that was let run, or ran all the same, and may have changed something.
    pub fn may_have_changed(&self) -> bool {
        let is_call = self.facts.as_ref().is_some_and(|facts| facts.call.is_some());
        let evidence = self.evidence.as_ref().and_then(|evidence| evidence.call.as_deref());
        let ran = self.ruling.decision.lets_run() || self.observed;
        is_call && ran && evidence.is_none_or(CallEvidence::changes)
    }
}

/// A ticket that a ruling opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TicketOpened {
    /// `appr_` and 32 hexadecimal digits.
    pub approval_id: String,
    /// Nobody may approve it from then on.
    pub expires_at: Millis,
    /// What the action costs if it runs.
    pub charge: Charge,
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
    /// The intent.
    pub intent: EntryRef,
    /// The file, as it was named.
    pub path: String,
    /// Whether the file holds the proposed state.
    pub committed: bool,
}

/// A request for more trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRequested {
    /// `appr_` and 32 hexadecimal digits.
    pub approval_id: String,
    /// Nobody may approve it from then on.
    pub expires_at: Millis,
    /// The bundle in force.
    pub bundle: Digest,
    /// The level there is.
    pub from_level: Trust,
    /// The level that is asked for.
    pub to_level: Trust,
    /// What the ledger says for and against it.
    pub merits: Merits,
    /// The SHA-256 of a salt and the justification, if that is kept beside the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Digest>,
    /// The operator who asked; none if it was the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalResolved {
    /// The ticket.
    pub approval_id: String,
    /// The entry that opened it.
    pub opened: EntryRef,
    /// Yes or no.
    pub verdict: Verdict,
    /// Who.
    pub by: Actor,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Until when an approved action may be spent.
    pub expires_at: Millis,
    /// What is charged for it now.
    pub charge: Charge,
}

/// What was let run was reported as done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executed {
    /// The decision that let it run.
    pub decision_id: String,
    /// Its entry.
    pub decision: EntryRef,
    /// The ticket that was spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// Whether it succeeded, as reported.
    pub success: bool,
    /// The SHA-256 of its result, as reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_hash: Option<String>,
    /// What it used, as reported.
    pub usage: Usage,
    /// What is charged beyond what was charged already.
    pub charge: Charge,
}

/// An agent is trusted more or less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustChanged {
    /// The level there was.
    pub from_level: Trust,
    /// The level there is.
    pub to_level: Trust,
    /// Why.
    pub cause: TrustCause,
    /// The ticket that was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}

/// An agent was suspended or reactivated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusChanged {
    /// What it is now.
    pub status: AgentStatus,
    /// Its principal complained.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub complaint: bool,
    /// Who.
    pub by: Actor,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Refusals hold for an agent, or are only shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeChanged {
    /// What holds now.
    pub mode: Mode,
    /// Who.
    pub by: Actor,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An agent got another token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRotated {
    /// The SHA-256 of the new token.
    pub token: Digest,
    /// Who.
    pub by: Actor,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The kept texts of an agent were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextsErased {
    /// How many there were.
    pub texts: u64,
    /// Who.
    pub by: Actor,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An operator's key; the key itself is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorKey {
    /// `key_` and 32 hexadecimal digits.
    pub key_id: String,
    /// Whose it is, for people.
    pub name: String,
    /// What it may be used for.
    pub role: Role,
    /// The highest trust a registrar's agents may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_trust: Option<Trust>,
    /// The SHA-256 of the key.
    pub digest: Digest,
    /// When it was made.
    pub created_at: Millis,
    /// By whom.
    pub created_by: Actor,
    /// It counts no more.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub revoked: bool,
}

crate::action::words! {
    /// What a key may be used for.
    Role: "role" {
        /// Registers agents up to a trust ceiling, and reads its own.
        Registrar = "registrar",
        /// Decides on tickets, and reads what is needed for that.
        Approver = "approver",
        /// Everything.
        Admin = "admin",
    }
}

/// An operator's key was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyCreated {
    /// The key.
    pub key: OperatorKey,
}

/// An operator's key counts no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRevoked {
    /// The key.
    pub key_id: String,
    /// Who.
    pub by: Actor,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Attestations are signed by another key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningKeyRotated {
    /// The new key's id: the thumbprint of its public part.
    pub kid: String,
    /// `ES256` or `EdDSA`.
    pub alg: String,
    /// Who.
    pub by: Actor,
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
    pub fn new(name: EntryName, at: Millis, body: Body) -> Entry {
        let EntryName { agent, seq } = name;
        Entry { format: FORMAT, rules: RULES, kind: body.kind(), agent, agent_seq: Some(seq), previous: None, at, body }
    }

    /// The number of an entry that this one names, among those of the same agent or of the service; none if it names
    /// anything else. `seq_at` finds numbers by places in the tree, which only formats before the sixth speak of.
    pub fn seq_of(&self, named: &EntryRef, seq_at: impl FnOnce(Option<&str>, u64) -> Option<u64>) -> Option<u64> {
        let is_named = self.format >= NAMES_SINCE;
        match named {
            EntryRef::Named(name) => Some(name.seq).filter(|_| is_named && name.agent == self.agent),
            EntryRef::At(place) if !is_named => seq_at(self.agent.as_deref(), *place),
            EntryRef::At(_) => None,
        }
    }

    /// Whether an entry speaks of the one with this name, which stands at this place in the tree.
    pub fn speaks_of(&self, named: &EntryRef, name: &EntryName, place: u64) -> bool {
        match named {
            EntryRef::Named(named) => self.format >= NAMES_SINCE && named == name,
            EntryRef::At(at) => self.format < NAMES_SINCE && *at == place && self.agent == name.agent,
        }
    }

    /// The bytes that are stored and hashed.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EntryError> {
        let bytes = json::to_bytes(self, USUAL_BYTES).map_err(|error| EntryError::Malformed(error.to_string()))?;
        // What could not be read again must not be written.
        if bytes.len() > json::BYTES_MAX {
            return Err(EntryError::Malformed(format!("it has more than {} bytes", json::BYTES_MAX)));
        }
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
