//! A registered agent: what was said about it, and what it has done since.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::budget::{BudgetLimits, Spent};
use super::record::Record;
use super::ticket::OpenTicket;
use super::vocabulary::{Decision, Engine, Millis, Trust, words};
use crate::digest::Digest;

words! {
    /// What kind of agent it is; sets its trust.
    AgentKind: "agent type" {
        /// Low risk alone.
        Supervised = "supervised",
        /// Most actions alone.
        Autonomous = "autonomous",
        /// Full autonomy.
        Trusted = "trusted",
    }
}

impl AgentKind {
    /// The trust an agent of this kind starts with.
    pub fn trust(self) -> Trust {
        match self {
            AgentKind::Supervised => Trust::Supervised,
            AgentKind::Autonomous => Trust::Autonomous,
            AgentKind::Trusted => Trust::Trusted,
        }
    }
}

words! {
    /// Whether an agent may ask at all.
    AgentStatus: "status" {
        /// It may.
        Active = "active",
        /// It may not, until an operator says so.
        Suspended = "suspended",
    }
}

words! {
    /// Whether a refusal holds.
    Mode: "mode" {
        /// It does.
        Enforce = "enforce",
        /// It is made, recorded and shown, and the caller may go on.
        Observe = "observe",
    }
}

/// What an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// Verification engines; tools are not among them.
    pub allowed_engines: Vec<Engine>,
    /// Tools beyond the safe ones, at the tools door.
    pub allowed_tools: Vec<String>,
    /// Tools and action types that are refused, whatever else allows them.
    pub blocked_tools: Vec<String>,
}

impl Default for Permissions {
    fn default() -> Permissions {
        Permissions {
            allowed_engines: vec![Engine::Math, Engine::Logic],
            allowed_tools: Vec::new(),
            blocked_tools: Vec::new(),
        }
    }
}

impl Permissions {
    /// What they give beyond the defaults, if anything; what they take away is nobody's concern.
    ///
    /// A tool that the bundle calls safe today counts too: in the list it would stay allowed when the bundle no longer
    /// does, and its aliases would be allowed with it.
    pub fn loosens(&self) -> Option<&'static str> {
        let defaults = Permissions::default();
        if !self.allowed_engines.iter().all(|engine| defaults.allowed_engines.contains(engine)) {
            return Some("allowed_engines");
        }
        (!self.allowed_tools.is_empty()).then_some("allowed_tools")
    }
}

/// What was said about an agent when it was registered. It changes by entries of their own only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// `agent_` and 32 hexadecimal digits.
    pub agent_id: String,
    /// For people.
    pub name: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: AgentKind,
    /// Who answers for it.
    pub principal_id: String,
    /// For people.
    pub description: Option<String>,
    /// For people.
    pub framework: Option<String>,
    /// For people.
    pub model: Option<String>,
    /// What it may use.
    pub permissions: Permissions,
    /// What it may spend.
    pub budget: BudgetLimits,
    /// When it was registered.
    pub created_at: Millis,
    /// The key it was registered with; none if it was the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_by: Option<String>,
}

/// An agent as the ledger knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// What was said about it.
    pub profile: Arc<Profile>,
    /// The SHA-256 of its token.
    pub token: Digest,
    /// Whether it may ask.
    pub status: AgentStatus,
    /// How far it is trusted.
    pub trust: Trust,
    /// How many entries it has, which is the number of its last one.
    pub entries: u64,
    /// The time of its last entry.
    pub last_at: Millis,
    /// What it has spent.
    pub spent: Spent,
    /// Whether refusals hold for it.
    pub mode: Mode,
    /// What counts for and against its trust.
    pub record: Record,
    /// What waits for a person, with what expired meanwhile.
    pub open: Vec<OpenTicket>,
    /// How many rulings it got, in the order of [`Decision::ALL`].
    pub totals: [u64; 5],
    /// The last denial that cost trust, or would have if there had been any.
    pub cost: Option<TrustCost>,
}

/// A denial that cost trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustCost {
    /// The decision.
    pub decision_id: String,
    /// The entry by which it counted: the number among the agent's.
    pub entry: u64,
}

impl Agent {
    /// An agent as it is right after its registration.
    pub fn registered(profile: Profile, token: Digest, trust: Trust) -> Agent {
        Agent {
            token,
            status: AgentStatus::Active,
            trust,
            entries: 1,
            last_at: profile.created_at,
            spent: Spent::default(),
            mode: Mode::Enforce,
            record: Record::default(),
            open: Vec::new(),
            totals: [0; 5],
            cost: None,
            profile: Arc::new(profile),
        }
    }

    /// How many tickets wait for a person.
    pub fn open_count(&self, now: Millis) -> usize {
        self.open.iter().filter(|ticket| ticket.expires_at > now).count()
    }

    /// How often it was denied or broke a limit.
    pub fn refusals(&self) -> u64 {
        let counted = Decision::ALL.iter().zip(self.totals);
        let refused = counted.filter(|(decision, _)| matches!(decision, Decision::Denied | Decision::BudgetExceeded));
        refused.fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// Whether a request for trust waits for a person.
    pub fn waits_for_trust(&self, now: Millis) -> bool {
        self.open.iter().any(|ticket| ticket.trust && ticket.expires_at > now)
    }

    /// Counts rulings.
    pub(crate) fn count(&mut self, decision: Decision, count: u64) {
        let known = Decision::ALL.iter().zip(&mut self.totals).find(|(known, _)| **known == decision);
        if let Some((_, total)) = known {
            *total = total.saturating_add(count);
        }
    }

    /// Whether this is the agent's token, compared in constant time.
    pub fn has_token(&self, digest: Digest) -> bool {
        digest.same_as(self.token)
    }
}
