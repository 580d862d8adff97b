//! What is written down about the runs of coding agents: workflows in force, transitions, ends of calls, allowances. The
//! calls themselves are rulings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::{Actor, Millis, PassCount};
use crate::code::Code;
use crate::digest::Digest;
use crate::workflow::{Allowance, Carried, Context, HostSeen, OpenCall, TransitionAsked, Workflow};

/// A workflow was put in force for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// `run_` and 32 hexadecimal digits.
    pub run_id: String,
    /// The workflow's canonical text.
    pub workflow: String,
    /// Only calls of this session are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The SHA-256 of what the commands of facts ran then, by the facts' names, where that could be told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scripts: BTreeMap<String, Digest>,
    /// Who.
    pub by: Actor,
}

/// What an operator does with a run, or the writer in its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steer {
    /// It goes on in this state, whatever the edges say.
    Force(String),
    /// It is over.
    Stop,
    /// What froze it was looked at.
    Thaw,
    /// Refusals hold again from then on; until then they are only shown.
    Pause(Millis),
    /// Another agent of the same project changes files: what was observed of them counts no more.
    Changed,
}

impl Steer {
    /// Whether a run may be steered so: a state that its workflow does not have is none to go on in.
    pub fn is_possible(&self, workflow: Option<&Workflow>) -> bool {
        match self {
            Steer::Force(state) => workflow.is_some_and(|workflow| workflow.find(state).is_some()),
            Steer::Stop | Steer::Thaw | Steer::Pause(_) | Steer::Changed => true,
        }
    }
}

/// An operator moved, stopped or freed a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSteered {
    /// What.
    pub steer: Steer,
    /// Who.
    pub by: Actor,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An agent asked for a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transitioned {
    /// `dec_` and 32 hexadecimal digits.
    pub decision_id: String,
    /// The bundle in force.
    pub bundle: Digest,
    /// The run; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The event.
    pub event: String,
    /// What came with it: a canonical JSON object. The rationale is in it.
    pub data: Context,
    /// The revision the agent had seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<u64>,
    /// What became of it.
    pub outcome: TransitionOutcome,
}

impl Transitioned {
    /// What was asked.
    pub fn asked(&self) -> TransitionAsked<'_> {
        TransitionAsked { event: &self.event, data: &self.data, expected_revision: self.expected_revision }
    }
}

/// What became of a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransitionOutcome {
    /// It was made.
    Moved {
        /// The state before.
        from: String,
        /// The state after.
        to: String,
    },
    /// It waits for a person.
    Parked {
        /// The ticket.
        approval_id: String,
        /// From then on it waits no more.
        expires_at: Millis,
        /// The state before.
        from: String,
        /// The state it leads to.
        to: String,
        /// What the workflow tells the person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// It was refused.
    Refused {
        /// Why.
        code: Code,
        /// In words.
        message: String,
        /// Guards that did not hold.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unmet: Vec<String>,
    },
}

/// A host told what became of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallEndReported {
    /// The session.
    pub session: String,
    /// Which host process tells.
    pub process: Digest,
    /// The host's id for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tool, as the host names it.
    pub tool: String,
    /// Tool and input, as they were executed.
    pub fingerprint: Digest,
    /// It ran a command line.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_command: bool,
    /// Whether the host calls it a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The exit code, where the host tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// What came out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Digest>,
    /// The ticket that its command carried, where hosts are told to put one there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// Files it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A host told that no call of one of its agents is under way any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnEnded {
    /// Which host process tells.
    pub process: Digest,
    /// Of which subagent; none is the main agent. Each has turns of its own: subagents go on when the main agent's ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

impl TurnEnded {
    /// Whether a call was one of that turn.
    pub fn had(&self, open: &OpenCall) -> bool {
        !open.left && open.process == self.process && open.subagent == self.subagent
    }
}

/// A session of a host began in the agent's project, and stays with it wherever it goes; or another process speaks for
/// it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionBound {
    /// The session.
    pub session: String,
    /// The process that speaks for it, if it was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSeen>,
}

/// An operator lets a call pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowanceGiven {
    /// What passes.
    pub allowance: Allowance,
    /// Who.
    pub by: Actor,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An operator lets it pass no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowanceTaken {
    /// What passed.
    pub allowance_id: String,
    /// Who.
    pub by: Actor,
}

/// What went on without a ruling of its own since the last such entry. The first of its kind is written down before it is
/// answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    /// By what it was.
    pub passes: Vec<PassCount>,
}
