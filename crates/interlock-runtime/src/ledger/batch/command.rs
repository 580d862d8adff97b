//! What the writer is asked to do, and what became of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::action::{
    Actor, Breach, Evidence, Facts, Merits, Mode, PassAsked, PassRuling, Profile, Stale, Trust, Usage, Verdict,
};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{
    AllowanceGiven, AllowanceTaken, Body, CallEndReported, Entry, EntryName, ExecEnded, ExecStarted, Idempotency, Kept,
    KeyRevoked, Likeness, ModeChanged, OperatorKey, Pruned, Role, RunSteered, SessionBound, SigningKeyRotated,
    StateIntent, StateOutcome, StatusChanged, TokenRotated, TurnEnded, UnauthenticatedRequests, UndoEnded, UndoStarted,
};
use interlock_core::workflow::{Context, Workflow};
use interlock_core::{Code, Denial, Digest};

/// What the writer is asked to do.
#[derive(Debug, Clone)]
pub enum Command {
    /// Record a new agent.
    Register {
        /// What was said about it; its time is set by the writer.
        profile: Box<Profile>,
        /// The SHA-256 of its token.
        token: Digest,
        /// How far it is trusted.
        trust: Trust,
        /// Who registers it.
        by: Actor,
    },
    /// Rule on a request.
    Rule(Box<RuleCommand>),
    /// Put a bundle into force, unless it is.
    Activate(Arc<Bundle>),
    /// Record how many requests proved no identity.
    CountUnauthenticated(UnauthenticatedRequests),
    /// Record what was counted and not written out: refusals that are like earlier ones, and what needed no ruling.
    CountRepeats,
    /// Record that a state file is about to be replaced.
    BeginState(StateIntent),
    /// Record what became of that.
    EndState(StateOutcome),
    /// Record what a person decided on a ticket, if it can be decided.
    Resolve {
        /// The ticket.
        approval_id: String,
        /// Yes or no.
        verdict: Verdict,
        /// Who.
        by: Actor,
        /// Why.
        reason: Option<String>,
    },
    /// Open a ticket for more trust.
    RequestTrust(Box<TrustRequest>),
    /// Record that what was let run has run.
    Execute(Box<Execution>),
    /// Record a change of the agent itself.
    Change {
        /// The agent.
        agent: String,
        /// The change.
        change: AgentChange,
    },
    /// Remove the kept texts of an agent.
    EraseTexts {
        /// The agent.
        agent: String,
        /// Who.
        by: Actor,
        /// Why.
        reason: Option<String>,
    },
    /// Record a new key of an operator; its time is set by the writer.
    CreateKey(Box<OperatorKey>),
    /// Record that a key counts no more.
    RevokeKey(KeyRevoked),
    /// Record that attestations are signed by another key.
    RotateSigningKey(SigningKeyRotated),
    /// Register a coding agent at its first call, unless it is known.
    Enrol(Box<Enrolment>),
    /// Rule on a tool call of a coding agent.
    Call(Box<CallCommand>),
    /// Rule on what may go on without a ruling of its own, and count it.
    Pass {
        /// The agent.
        agent: String,
        /// What.
        pass: PassAsked,
    },
    /// Rule on an event that could not be read, and count it.
    PassUnread {
        /// Refusals hold for some coding agent.
        holds: bool,
    },
    /// Count a command that a person runs in a bound.
    PassOwnRun,
    /// Rule on a transition.
    Transition(Box<TransitionCommand>),
    /// Record a change of a run.
    ChangeRun {
        /// The agent.
        agent: String,
        /// The change.
        change: RunChange,
    },
    /// Make a workflow the newest under its id, unless it is.
    RegisterWorkflow {
        /// The workflow.
        workflow: Arc<Workflow>,
        /// Who.
        by: Actor,
    },
    /// These events need no more delivery, by the entries they tell of; nothing is recorded.
    Delivered(Vec<EntryName>),
}

/// A coding agent at its first call.
#[derive(Debug, Clone)]
pub struct Enrolment {
    /// What is known of it; its time is set by the writer.
    pub profile: Box<Profile>,
    /// The SHA-256 of a token that nobody has.
    pub token: Digest,
    /// Whether refusals hold for it.
    pub mode: Mode,
    /// Who enrols it.
    pub by: Actor,
}

/// A tool call of a coding agent.
#[derive(Debug, Clone)]
pub struct CallCommand {
    /// The agent.
    pub agent: String,
    /// What the host told.
    pub facts: Box<Facts>,
    /// What its text yielded.
    pub evidence: Option<Evidence>,
    /// The text, in case it is to be kept.
    pub text: Option<Arc<str>>,
    /// The agents of other hosts that work in the same files: what one writes, all of them find.
    pub beside: Vec<String>,
}

/// A transition an agent asks for.
#[derive(Debug, Clone)]
pub struct TransitionCommand {
    /// The agent.
    pub agent: String,
    /// The event.
    pub event: String,
    /// What it says along with it.
    pub data: Context,
    /// The revision it has seen.
    pub expected_revision: Option<u64>,
}

/// What is known of the place where a run is started.
#[derive(Debug, Clone)]
pub struct StartGround {
    /// A runner runs the command lines of the agent's host.
    pub has_runner: bool,
    /// The SHA-256 of what command lines of facts run there, by the line; none where that cannot be told. A line that is
    /// not here was not looked at.
    pub scripts: BTreeMap<String, Option<Digest>>,
}

/// A change of a run.
#[derive(Debug, Clone)]
pub enum RunChange {
    /// A workflow is put in force.
    Start {
        /// The workflow.
        workflow: Arc<Workflow>,
        /// The new run.
        run_id: String,
        /// Only calls of this session are in it.
        session: Option<String>,
        /// What the daemon found where the run is to be.
        ground: StartGround,
        /// Who.
        by: Actor,
    },
    /// The newest workflow under an id is put in force.
    StartRegistered {
        /// The workflow's id.
        workflow: String,
        /// The new run.
        run_id: String,
        /// Only calls of this session are in it.
        session: Option<String>,
        /// What the daemon found where the run is to be.
        ground: StartGround,
        /// Who.
        by: Actor,
    },
    /// An operator moves, stops, frees or pauses it.
    Steer(RunSteered),
    /// A host tells what became of a call.
    CallEnded {
        /// What was told.
        report: Box<CallEndReported>,
        /// The agents of other hosts that work in the same files.
        beside: Vec<String>,
    },
    /// A host tells that none of its calls is under way.
    TurnEnded(TurnEnded),
    /// A runner starts the command of a call, if it may.
    StartExec(Box<ExecStarted>),
    /// A runner tells how a command ended.
    EndExec(Box<ExecEnded>),
    /// The state of the project was kept for a call.
    Keep(Box<Kept>),
    /// An operator brings back what calls changed.
    StartUndo(Box<UndoStarted>),
    /// How that ended.
    EndUndo {
        /// How.
        ended: Box<UndoEnded>,
        /// The agents of other hosts that work in the same files.
        beside: Vec<String>,
    },
    /// Kept states were dropped.
    Prune(Box<Pruned>),
    /// A session began in the project.
    BindSession(SessionBound),
    /// An operator lets a call pass.
    Allow(Box<AllowanceGiven>),
    /// An operator lets it pass no more.
    Disallow(AllowanceTaken),
}

/// What operators change about an agent.
#[derive(Debug, Clone)]
pub enum AgentChange {
    /// It is suspended or reactivated.
    Status(StatusChanged),
    /// Refusals hold for it, or are only shown.
    Mode(ModeChanged),
    /// It has another token.
    Token(TokenRotated),
}

impl From<AgentChange> for Body {
    fn from(change: AgentChange) -> Body {
        match change {
            AgentChange::Status(changed) => Body::StatusChanged(changed),
            AgentChange::Mode(changed) => Body::ModeChanged(changed),
            AgentChange::Token(rotated) => Body::TokenRotated(rotated),
        }
    }
}

/// A request for more trust.
#[derive(Debug, Clone)]
pub struct TrustRequest {
    /// The agent.
    pub agent: String,
    /// The SHA-256 of the token it came with; none if an operator asks.
    pub token: Option<Digest>,
    /// The operator who asks; none if it is the agent itself.
    pub by: Option<Actor>,
    /// The level that is asked for.
    pub to_level: Trust,
    /// The level the caller believes there is.
    pub from_level: Option<Trust>,
    /// Why, in the caller's words.
    pub justification: Option<String>,
    /// What the ledger says for and against it.
    pub merits: Merits,
}

/// What has run.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The agent.
    pub agent: String,
    /// The SHA-256 of the token it came with.
    pub token: Digest,
    /// The decision that let it run.
    pub decision_id: String,
    /// Whether it succeeded.
    pub success: bool,
    /// The SHA-256 of its result.
    pub result_hash: Option<String>,
    /// What it used.
    pub usage: Usage,
}

/// A request of an agent.
#[derive(Debug, Clone)]
pub struct RuleCommand {
    /// The agent it names.
    pub agent: String,
    /// The SHA-256 of the token it came with.
    pub token: Digest,
    /// What it asks.
    pub request: Request,
    /// Under which key its answer can be asked for again.
    pub idempotency: Option<Idempotency>,
    /// The corrected text that came with the evidence.
    pub corrected: Option<String>,
    /// The text of the request, in case it is to be kept.
    pub text: Option<Arc<str>>,
}

/// What a request asks.
#[derive(Debug, Clone)]
pub enum Request {
    /// A well-formed question.
    Facts {
        /// What the edge read.
        facts: Box<Facts>,
        /// What verifiers found, if they ran.
        evidence: Option<Evidence>,
    },
    /// Something that cannot be asked.
    Malformed {
        /// Why.
        code: Code,
        /// In words.
        message: String,
    },
}

/// What became of a command.
#[derive(Debug, Clone)]
pub enum Answer {
    /// It is on record.
    Recorded(Box<Recorded>),
    /// The text has to be read first, under this bundle.
    NeedsEvidence(Arc<Bundle>),
    /// A state file may not be replaced now.
    Blocked(Box<Denial>),
    /// Refused without an entry: unknown agent, wrong token, key used for another request.
    Refused(Code),
    /// Nothing can be done with a ticket any more: what it was about is not the same.
    Stale(Stale),
    /// A ticket cannot be approved: the budget is spent. It stays as it is.
    BudgetSpent(Box<Breach>),
    /// Done, and nothing had to be recorded.
    Done,
    /// Whether something goes on without a ruling of its own.
    Passed(PassRuling),
    /// Our trouble. Nothing is approved, and nothing is recorded.
    Fault(Code),
    /// The store failed while it was committing: nothing is approved, and whether it is recorded is not known.
    Unknown,
}

/// A recorded entry.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The entry.
    pub entry: Entry,
    /// Where it stands in the tree.
    pub index: u64,
    /// The hash of its bytes.
    pub leaf: Digest,
    /// It was recorded by an earlier request with the same key.
    pub replayed: bool,
    /// In what it is like the one that is on record there, if it is only counted; the ruling is its own.
    pub folded: Option<Likeness>,
    /// The corrected text, if the decision is CORRECTED.
    pub corrected: Option<String>,
}

/// Who asks for a command that needs an operator's key, and which keys will do.
pub(super) fn operator_of(command: &Command) -> Option<(&Actor, &'static [Role])> {
    match command {
        Command::Register { by, .. } => Some((by, &[Role::Registrar, Role::Admin])),
        Command::Resolve { by, .. } => Some((by, &[Role::Approver, Role::Admin])),
        Command::RequestTrust(request) => request.by.as_ref().map(|by| (by, &[Role::Admin][..])),
        Command::Change { change: AgentChange::Status(StatusChanged { by, .. }), .. }
        | Command::Change { change: AgentChange::Mode(ModeChanged { by, .. }), .. }
        | Command::Change { change: AgentChange::Token(TokenRotated { by, .. }), .. }
        | Command::EraseTexts { by, .. }
        | Command::RevokeKey(KeyRevoked { by, .. })
        | Command::RotateSigningKey(SigningKeyRotated { by, .. }) => Some((by, &[Role::Admin])),
        Command::CreateKey(key) => Some((&key.created_by, &[Role::Admin])),
        Command::RegisterWorkflow { by, .. }
        | Command::ChangeRun { change: RunChange::Start { by, .. } | RunChange::StartRegistered { by, .. }, .. }
        | Command::ChangeRun { change: RunChange::Steer(RunSteered { by, .. }), .. }
        | Command::ChangeRun { change: RunChange::Disallow(AllowanceTaken { by, .. }), .. } => {
            Some((by, &[Role::Admin]))
        }
        Command::ChangeRun { change: RunChange::Allow(given), .. } => Some((&given.by, &[Role::Approver, Role::Admin])),
        Command::ChangeRun { change: RunChange::StartUndo(undo), .. } => {
            Some((&undo.by, &[Role::Approver, Role::Admin]))
        }
        Command::ChangeRun { change: RunChange::Prune(pruned), .. } => {
            pruned.by.as_ref().map(|by| (by, &[Role::Approver, Role::Admin][..]))
        }
        Command::Rule(_)
        | Command::Activate(_)
        | Command::CountUnauthenticated(_)
        | Command::CountRepeats
        | Command::BeginState(_)
        | Command::EndState(_)
        | Command::Execute(_)
        | Command::Enrol(_)
        | Command::Call(_)
        | Command::Pass { .. }
        | Command::PassUnread { .. }
        | Command::PassOwnRun
        | Command::Transition(_)
        | Command::ChangeRun {
            change:
                RunChange::CallEnded { .. }
                | RunChange::TurnEnded(_)
                | RunChange::BindSession(_)
                | RunChange::StartExec(_)
                | RunChange::EndExec(_)
                | RunChange::Keep(_)
                | RunChange::EndUndo { .. },
            ..
        }
        | Command::Delivered(_) => None,
    }
}
