//! A ticket: what waits for a person, and what became of it.
//!
//! It is bound to agent, step, action, bundle and expiry. Whether it may be approved or spent is decided here, anew
//! each time; who may ask is not known here.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::agent::{Agent, AgentStatus};
use super::budget::{Breach, Charge};
use super::context::StepNumber;
use super::facts::ActionName;
use super::vocabulary::{Millis, Risk, Trust, words};
use crate::code::Code;
use crate::digest::Digest;

words! {
    /// What a ticket is about.
    TicketKind: "kind" {
        /// An action that waits.
        Action = "action",
        /// A request for more trust.
        Trust = "trust",
        /// A transition of a workflow.
        Transition = "transition",
    }
}

words! {
    /// Where a ticket stands.
    TicketStatus: "status" {
        /// Nobody decided yet.
        Pending = "pending",
        /// A person said yes.
        Approved = "approved",
        /// A person said no.
        Denied = "denied",
        /// Nobody said anything in time.
        Expired = "expired",
    }
}

words! {
    /// What a person said.
    Verdict: "verdict" {
        /// Yes.
        Approved = "approved",
        /// No.
        Denied = "denied",
    }
}

/// Who did something with a key: its name, and its id unless it is the first one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// For people.
    pub name: String,
    /// The key, if it has an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
}

/// A ticket as an agent's row remembers it while nobody decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenTicket {
    /// Its id.
    pub approval_id: String,
    /// From then on it does not count.
    pub expires_at: Millis,
    /// It asks for trust.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub trust: bool,
}

/// A ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// `appr_` and 32 hexadecimal digits.
    pub approval_id: String,
    /// Whose it is.
    pub agent: String,
    /// The entry that opened it: the number among the agent's.
    pub opened: u64,
    /// When.
    pub opened_at: Millis,
    /// Nothing can be done with it from then on.
    pub expires_at: Millis,
    /// The bundle it was opened under.
    pub bundle: Digest,
    /// What it is about.
    pub subject: TicketSubject,
    /// What a person said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// Its execution was reported.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub spent: bool,
}

/// What a ticket is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TicketSubject {
    /// An action.
    Action(Box<WaitingAction>),
    /// More trust.
    Trust(Box<WaitingTrust>),
    /// A transition of a workflow.
    Transition(Box<WaitingTransition>),
}

/// A transition that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingTransition {
    /// The ruling.
    pub decision_id: String,
    /// The run.
    pub run_id: String,
    /// The workflow's name.
    pub workflow: String,
    /// The event.
    pub event: String,
    /// The state the run is in.
    pub from: String,
    /// The state it would go to.
    pub target: String,
    /// What the workflow tells the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How far the agent was trusted when it asked; before the fifth revision of the rules that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

/// An action that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingAction {
    /// The ruling.
    pub decision_id: String,
    /// The type or tool.
    pub action: ActionName,
    /// The conversation.
    pub conversation: String,
    /// The step it took.
    pub step: StepNumber,
    /// Its fingerprint with the state it was proposed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_state: Option<Digest>,
    /// What it costs if it runs.
    pub charge: Charge,
    /// The risk it was judged by.
    pub risk: Risk,
    /// How far the agent was trusted when it asked.
    pub trust: Trust,
    /// Why a person is asked.
    pub why: String,
    /// It is a tool call: this very one, by tool and input, may be made once a person agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Digest>,
}

/// A request for more trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingTrust {
    /// The level at that moment.
    pub from_level: Trust,
    /// The level that is asked for.
    pub to_level: Trust,
    /// What the ledger says for and against it.
    pub merits: Merits,
    /// Denials and broken limits of the agent by then: before the fifth revision of the rules one more ended the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<u64>,
}

/// What the ledger says about an agent since its trust last changed. Low-risk actions and repetitions do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merits {
    /// Rulings that were looked at.
    pub rulings: u64,
    /// Different actions of medium risk or more that were let run.
    pub counted: u64,
    /// Denials.
    pub denied: u64,
    /// Of these, found wrong by a verifier or blocked by name.
    pub violations: u64,
    /// Broken limits.
    pub budget_exceeded: u64,
    /// Of the counted actions, those reported as successful.
    pub succeeded: u64,
    /// Of the counted actions, those reported as failed.
    pub failed: u64,
    /// The time of the first of them.
    pub since: Millis,
    /// There are more than were looked at.
    pub cut: bool,
    /// The last entry that was looked at: the number among the agent's; before the sixth format of entries, its place in the
    /// tree.
    pub through: u64,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// Yes or no.
    pub verdict: Verdict,
    /// Who.
    pub by: Actor,
    /// When.
    pub at: Millis,
    /// The entry that says so: the number among the agent's.
    pub entry: u64,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why nothing can be done with a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicketRefusal {
    /// A code says it all.
    Code(Code),
    /// What was asked for is not the same any more.
    Stale(Stale),
    /// The budget is spent.
    Budget(Box<Breach>),
}

/// What is not the same any more since a ticket was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    /// Another bundle is in force.
    Bundle,
    /// The agent is trusted otherwise.
    Trust {
        /// How far it was trusted when it asked.
        from: Trust,
        /// How far it is trusted.
        to: Trust,
    },
    /// The agent was refused something, and that cost trust; by the id of that decision.
    Denial(String),
    /// Where the run stands, or a guard that held when the transition was asked for.
    Run,
    /// Denials, as they counted before the fifth revision of the rules.
    Refusals,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stale::Bundle => f.write_str("bundle"),
            Stale::Trust { from, to } => write!(f, "trust {} to {}", u8::from(*from), u8::from(*to)),
            Stale::Denial(decision_id) => write!(f, "denial {decision_id}"),
            Stale::Run => f.write_str("run"),
            Stale::Refusals => f.write_str("denials"),
        }
    }
}

impl Ticket {
    /// Where it stands.
    pub fn status(&self, now: Millis) -> TicketStatus {
        match &self.resolution {
            Some(Resolution { verdict: Verdict::Approved, .. }) => TicketStatus::Approved,
            Some(Resolution { verdict: Verdict::Denied, .. }) => TicketStatus::Denied,
            None if now >= self.expires_at => TicketStatus::Expired,
            None => TicketStatus::Pending,
        }
    }

    /// What it is about.
    pub fn kind(&self) -> TicketKind {
        match self.subject {
            TicketSubject::Action(_) => TicketKind::Action,
            TicketSubject::Trust(_) => TicketKind::Trust,
            TicketSubject::Transition(_) => TicketKind::Transition,
        }
    }

    /// Whether a person may decide now. Saying no is always possible in time; saying yes is decided anew.
    pub fn check_decidable(
        &self,
        verdict: Verdict,
        agent: &Agent,
        bundle: Digest,
        now: Millis,
    ) -> Result<(), TicketRefusal> {
        match self.status(now) {
            TicketStatus::Pending => {}
            TicketStatus::Expired => return Err(TicketRefusal::Code(Code::ApprovalExpired)),
            TicketStatus::Approved | TicketStatus::Denied => return Err(TicketRefusal::Code(Code::ApprovalDecided)),
        }
        if verdict == Verdict::Denied {
            return Ok(());
        }
        self.check_current(agent, bundle)?;
        match &self.subject {
            TicketSubject::Action(action) => {
                let checked = agent.spent.check(&agent.profile.budget, action.charge, now);
                checked.map_err(TicketRefusal::Budget)
            }
            TicketSubject::Trust(trust) => self.check_unspoilt(trust, agent),
            // Whether it can still be made is decided by the machine, on the run as it is then.
            TicketSubject::Transition(_) => Ok(()),
        }
    }

    /// A request for trust ends with a denial that cost trust, and with nothing less: whoever asked for it malformed, dry
    /// or in vain is as trustworthy as before.
    fn check_unspoilt(&self, asked: &WaitingTrust, agent: &Agent) -> Result<(), TicketRefusal> {
        if let Some(cost) = agent.cost.as_ref().filter(|cost| cost.entry > self.opened) {
            return Err(TicketRefusal::Stale(Stale::Denial(cost.decision_id.clone())));
        }
        if asked.from_level != agent.trust {
            return Err(TicketRefusal::Stale(Stale::Trust { from: asked.from_level, to: agent.trust }));
        }
        if asked.refusals.is_some_and(|refusals| refusals != agent.refusals()) {
            return Err(TicketRefusal::Stale(Stale::Refusals));
        }
        Ok(())
    }

    /// Whether an approved action may be spent now: everything is checked again, once.
    pub fn check_spendable(&self, agent: &Agent, bundle: Digest, now: Millis) -> Result<(), TicketRefusal> {
        match self.status(now) {
            TicketStatus::Approved => {}
            TicketStatus::Expired => return Err(TicketRefusal::Code(Code::ApprovalExpired)),
            TicketStatus::Pending | TicketStatus::Denied => {
                return Err(TicketRefusal::Code(Code::ExecutionNotAllowed));
            }
        }
        if self.spent {
            return Err(TicketRefusal::Code(Code::ExecutionReported));
        }
        if now >= self.expires_at {
            return Err(TicketRefusal::Code(Code::ApprovalExpired));
        }
        self.check_current(agent, bundle)
    }

    fn check_current(&self, agent: &Agent, bundle: Digest) -> Result<(), TicketRefusal> {
        if agent.status == AgentStatus::Suspended {
            return Err(TicketRefusal::Code(Code::AgentSuspended));
        }
        if bundle != self.bundle {
            return Err(TicketRefusal::Stale(Stale::Bundle));
        }
        // Whoever has lost trust since is not the one the ruling was about.
        let asked_with = match &self.subject {
            TicketSubject::Action(action) => Some(action.trust),
            TicketSubject::Transition(transition) => transition.trust,
            TicketSubject::Trust(_) => None,
        };
        match asked_with.filter(|trust| agent.trust < *trust) {
            Some(from) => Err(TicketRefusal::Stale(Stale::Trust { from, to: agent.trust })),
            None => Ok(()),
        }
    }
}
