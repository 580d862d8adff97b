//! A run: where an agent stands in a workflow, and what its calls left behind. It is a row of the ledger: it changes by
//! the functions of `machine.rs` alone, and the audit folds it from the entries again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::Context;
use super::definition::{Outcome, StateId, Workflow};
use super::guard::OBSERVED;
use super::hosts::{HOSTS_LEN, HostSeen};
use super::unseen::Unseen;
use crate::action::{LineToRun, Millis, Trust};
use crate::digest::Digest;
use crate::json::Json;

/// How many finished calls are remembered, to see loops.
pub(super) const WINDOW_LEN: usize = 20;
/// How many calls may be under way.
pub const OPEN_CALLS_MAX: usize = 256;
/// How many calls that their turns left behind are remembered, the newest.
pub const LEFT_CALLS_MAX: usize = 32;
/// How many tools are counted by name; the rest is counted together.
pub(super) const TOOLS_LEN: usize = 64;
/// How many changed files are told by name.
pub(super) const FILES_LEN: usize = 256;
/// How many sessions are remembered.
const SESSIONS_LEN: usize = 64;
/// How long after a call was let run its end is still believed.
pub const CALL_MS_MAX: Millis = 24 * 3_600_000;

/// What is known of an agent that works through a host or a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Rises with whatever the agent could see change.
    pub revision: u64,
    /// Where it stands in a workflow, if it is bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Calls that were let run and are not known to have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenCall>,
    /// The last calls that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<FinishedCall>,
    /// How many calls that could change something were let run.
    pub changes: u64,
    /// What Interlock saw itself.
    pub seen: Seen,
    /// Calls a person agreed to, each for one time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<Grant>,
    /// Calls an operator knows and lets pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowances: Vec<Allowance>,
    /// Why nothing passes until an operator looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<String>,
    /// Until then refusals are only shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Millis>,
    /// Sessions that began in the project, the newest last. They stay with it wherever they go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Commands that a runner started and that are not known to have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub execs: Vec<OpenExec>,
    /// Processes that told of calls or began sessions here, the first of them first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostSeen>,
    /// The undo that is under way in the agent's project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoing: Option<String>,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// `run_` and 32 hexadecimal digits.
    pub run_id: String,
    /// The workflow's name.
    pub name: String,
    /// The SHA-256 of the workflow's canonical text.
    pub workflow: Digest,
    /// The entry that holds that text: the number among the agent's.
    pub started: u64,
    /// Only calls of this session are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The SHA-256 of what the commands of facts ran when it began, by the facts' names. A command that runs something else
    /// now is that of no fact.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scripts: BTreeMap<String, Digest>,
    /// The state.
    pub state: String,
    /// Where the state was last found in the workflow.
    #[serde(skip)]
    pub(super) hint: Hint,
    /// The context. What agents say is in it.
    pub context: Context,
    /// Calls since the last transition.
    pub iterations: u32,
    /// Transitions so far.
    pub transitions: u32,
    /// Files changed since the last transition, by the SHA-256 of their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Digest>,
    /// A transition that waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Parked>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// Where something was found last. It saves looking, means nothing, and so is no part of what is compared.
#[derive(Clone, Copy, Default)]
pub(super) struct Hint(pub(super) Option<StateId>);

impl core::fmt::Debug for Hint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Hint")
    }
}

impl PartialEq for Hint {
    fn eq(&self, _: &Hint) -> bool {
        true
    }
}

impl Eq for Hint {}

/// A transition that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parked {
    /// The ticket.
    pub approval_id: String,
    /// From then on it waits no more.
    pub expires_at: Millis,
    /// The event.
    pub event: String,
    /// What came with it.
    pub data: Context,
    /// Where it leads.
    pub target: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// In a final state.
    Final(Outcome),
    /// An operator stopped it.
    Stopped,
}

/// A call that was let run and is not known to have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenCall {
    /// The host's id for it, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Which host process asked.
    pub process: Digest,
    /// The subagent that made it; none is the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// Tool and input.
    pub fingerprint: Digest,
    /// What it asks for, the same for every event about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gist: Option<Digest>,
    /// The ruling that let it run: the number among the agent's entries.
    pub decision: u64,
    /// When.
    pub at: Millis,
    /// It could change something.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changes: bool,
    /// Its turn ended before it was told to have ended. Most such calls never ran, and nobody will tell; some go on behind
    /// the agent's back, and their end is told in a later turn.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub left: bool,
    /// It was told of by a process that is not known to be the host's own: its end is nothing that was observed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub foreign: bool,
    /// The declared fact it is the command of, and the count of changes when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<(String, u64)>,
    /// What a runner may start for it, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<ExecTicket>,
}

/// The command of a call, which a runner may start once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecTicket {
    /// The decision that let it run.
    pub decision_id: String,
    /// The line, and where it runs.
    pub runs: LineToRun,
    /// The profile it is held to; none if it runs as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Its host runs nothing but what a runner starts: if it ran, the ticket was spent.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_held: bool,
}

/// A command that a runner started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenExec {
    /// `exec_` and 32 hexadecimal digits.
    pub exec_id: String,
    /// Tool and input of its call.
    pub fingerprint: Digest,
    /// When it started.
    pub at: Millis,
    /// It could change something.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changes: bool,
    /// It was not started by the host that asked: what becomes of it is nothing that was observed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub foreign: bool,
    /// The declared fact it is the command of, and the count of changes when its call was let run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<(String, u64)>,
    /// It was started with the ruling that has this number among the agent's entries, and ends with its call at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_hook: Option<u64>,
}

/// A call that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinishedCall {
    /// Tool and input.
    pub fingerprint: Digest,
    /// What came out of it, as it was observed; none if nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Digest>,
    /// It could change something.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changes: bool,
}

/// A call a person agreed to, for one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The ticket.
    pub approval_id: String,
    /// Tool, input and directory: this very call.
    pub fingerprint: Digest,
    /// From then on it counts no more.
    pub expires_at: Millis,
    /// The bundle it was asked under.
    pub bundle: Digest,
    /// How far the agent was trusted when it asked: of one that is trusted less it is no agreement.
    pub trust: Trust,
}

/// A call that an operator knows and lets pass: what is asked of it is answered. It lifts no rule that denies, no limit
/// and no phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// `allow_` and 32 hexadecimal digits.
    pub allowance_id: String,
    /// The decision it was made from.
    pub decision_id: String,
    /// Exactly this call, if no pattern says more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Digest>,
    /// The tool it is about.
    pub tool: String,
    /// Command lines whose commands all match this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Changes of files that match this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The shipped rules it answers for: `secrets`, `arms`, `egress`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifts: Vec<String>,
    /// It counts until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    /// It counts in this session alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// It counts for one call.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub once: bool,
}

impl Allowance {
    /// Whether it counts at a moment, in a session.
    pub fn counts(&self, now: Millis, session: &str) -> bool {
        self.until.is_none_or(|until| now < until) && self.session.as_deref().is_none_or(|own| own == session)
    }
}

/// What Interlock saw itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The last command that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_command: Option<SeenCommand>,
    /// Calls that ended, by tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, SeenTool>,
    /// Files that were changed by calls that name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<String>,
    /// There were more.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub more_files: bool,
    /// Declared commands that ran exactly so, with nothing changed since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, SeenCommand>,
    /// Why those that ran and are not among them are not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unseen: BTreeMap<String, Unseen>,
}

/// A command that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenCommand {
    /// Whether its host calls it a success.
    pub ok: bool,
    /// Its exit code, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The SHA-256 of tool and input.
    pub command_digest: Digest,
}

/// Calls of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenTool {
    /// Whether the last one was a success.
    pub ok: bool,
    /// How many ended.
    pub count: u64,
}

impl Seen {
    /// What guards find under `observed`.
    pub fn to_json(&self) -> Json {
        let object = |members: Vec<(&str, Json)>| {
            Json::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        };
        let command = |seen: &SeenCommand| {
            let exit_code = seen.exit_code.map_or(Json::Null, Json::from);
            let digest = Json::from(&*seen.command_digest.to_string());
            object(vec![("ok", Json::Bool(seen.ok)), ("exit_code", exit_code), ("command_digest", digest)])
        };
        let tool = |seen: &SeenTool| object(vec![("ok", Json::Bool(seen.ok)), ("count", Json::from(seen.count))]);
        // A fact is the exit code of its command, and nothing else of it.
        let fact = |seen: &SeenCommand| seen.exit_code.map_or(Json::Null, Json::from);
        let mut members: BTreeMap<String, Json> =
            self.facts.iter().map(|(name, seen)| (name.clone(), fact(seen))).collect();
        if let Some(last) = &self.last_command {
            members.insert("last_command".to_owned(), command(last));
        }
        let tools = self.tools.iter().map(|(name, seen)| (name.clone(), tool(seen))).collect();
        members.insert("tools".to_owned(), Json::Object(tools));
        let files = self.files_changed.iter().map(|path| Json::from(path.as_str())).collect();
        members.insert("files_changed".to_owned(), Json::Array(files));
        Json::Object(members)
    }
}

impl Run {
    /// The position that holds for a session, if the run has one that is not stopped.
    pub fn position_for(&self, session: &str) -> Option<&Position> {
        self.position.as_ref().filter(|position| {
            position.ended != Some(Ended::Stopped) && position.session.as_deref().is_none_or(|own| own == session)
        })
    }

    /// A session began in the project.
    pub fn bind(&mut self, session: &str) {
        self.sessions.retain(|known| known != session);
        if self.sessions.len() >= SESSIONS_LEN {
            self.sessions.remove(0);
        }
        self.sessions.push(session.to_owned());
    }

    /// A process tells of this run.
    pub fn note_host(&mut self, host: &HostSeen) {
        // Of an earlier start of the machine no process is left.
        self.hosts.retain(|known| known.boot == host.boot);
        if let Some(known) = self.hosts.iter_mut().find(|known| known.process == host.process) {
            *known = host.clone();
            return;
        }
        if self.hosts.len() >= HOSTS_LEN {
            // The first one stays: who is older than it comes of no call.
            self.hosts.remove(1);
        }
        self.hosts.push(host.clone());
    }

    /// The context with what was observed, as the agent may see it.
    pub fn shown_context(&self) -> Json {
        let context = self.position.as_ref().map(|position| &position.context);
        let mut members = context.map(Context::to_map).unwrap_or_default();
        members.insert(OBSERVED.to_owned(), self.seen.to_json());
        Json::Object(members)
    }
}

impl Position {
    /// The beginning of a run.
    pub fn start(workflow: &Workflow, run_id: String, started: u64, session: Option<String>) -> Position {
        let initial = workflow.state(workflow.initial());
        Position {
            run_id,
            name: workflow.id().to_owned(),
            workflow: workflow.digest(),
            started,
            session,
            scripts: BTreeMap::new(),
            state: initial.map(|state| state.name.clone()).unwrap_or_default(),
            hint: Hint(Some(workflow.initial())),
            context: workflow.context().clone(),
            iterations: 0,
            transitions: 0,
            files: Vec::new(),
            parked: None,
            ended: initial.and_then(super::machine::ended_in),
        }
    }

    /// The transition that waits for a person, unless it waited too long.
    pub fn parked_at(&self, now: Millis) -> Option<&Parked> {
        self.parked.as_ref().filter(|parked| now < parked.expires_at)
    }
}
