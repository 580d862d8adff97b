//! The door for coding agents: what hosts tell before and after a tool runs, and the two control tools.
//!
//! It is reached over a socket in the home of whoever runs the server, and by nobody else. What a host says is read and
//! answered in its own words by `interlock-hosts`; what may be is decided where everything is decided.
//!
//! | to find | look in |
//! |---|---|
//! | the socket, who may ask, the proof of who answers | `socket.rs` |
//! | an event of a host, from its bytes to the answer | here |
//! | the control tools | `control.rs` |
//! | what an agent is told | `words.rs` |

mod control;
mod socket;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlock_core::action::{ActionContext, ActionName, Agent, CallFacts, Decision, Door, Facts, Mode, StepNumber};
use interlock_core::call::Call;
use interlock_core::json::quote;
use interlock_core::ledger::{Body, CallEndReported, Likeness, Ruled, SessionBound, TurnEnded};
use interlock_core::places::{Concern, PROJECT_SETTINGS, in_home};
use interlock_core::workflow::{HostSeen, OpenCall};
use interlock_core::{Code, Digest};
use interlock_hosts::{Host, HostEvent, Kind, Reply, ToolResult, read, render, render_unreadable};
use interlock_runtime::call_gate::CallAsking;
use interlock_runtime::call_policy::{CallPlace, Executor};
use interlock_runtime::coding_agents::{HostProcesses, Known, Sessions, agent_id, profile, project_of};
use interlock_runtime::gate::Gate;
use interlock_runtime::ledger::{Answer, Command, Enrolment, LedgerKey, Recorded, RunChange, StoreFault};
use interlock_runtime::process::{lineage, remember_parent};
use tokio::sync::Notify;

pub(crate) use control::state_object;
pub use interlock_hosts::Rendered;
pub use socket::{Served, SocketFault, serve_socket};

use crate::Service;

/// The longest name of a tool, a session or a call that is taken.
const NAME_BYTES_MAX: usize = 256;
/// The session of the events with which `interlock doctor` tries hooks.
pub const DOCTOR_SESSION: &str = "interlock-doctor";
/// Where they come from, in a home. Both together make an event a probe: it is recorded for this directory alone.
pub const DOCTOR_PROJECT: &str = "doctor";
/// How long after a call was let run another event about it is still about it.
const ECHO_MS: u64 = 30_000;
/// The name under which hosts know the control server.
const CONTROL_SERVER: &str = "interlock";
/// The prefixes of the control tools.
const CONTROL_PREFIXES: [&str; 2] = ["interlock", "statewright"];

/// The door for coding agents.
pub struct Hooks {
    service: Arc<Service>,
    sessions: Sessions,
    processes: HostProcesses,
    /// Our own files, and the settings of hosts: no agent may touch them.
    own: Vec<String>,
    /// The home directory of the user, for `~`.
    user_home: Option<String>,
    /// Where the user's shell looks for programs.
    on_path: Vec<String>,
    /// Proves who answers.
    key: LedgerKey,
    /// What a caller must know.
    token: Digest,
    /// Told when a caller wants the server to stop.
    stop: Arc<Notify>,
    /// The project that probes of `interlock doctor` belong to, wherever the home lies.
    doctor: PathBuf,
}

/// What is needed to open the door.
pub struct HooksSetup {
    /// The home of this server.
    pub home: PathBuf,
    /// The home directory of the user.
    pub user_home: Option<String>,
    /// Where the user's shell looks for programs.
    pub on_path: Vec<String>,
    /// The SHA-256 of what a caller must know.
    pub token: Digest,
    /// The key that proves who answers.
    pub key: LedgerKey,
    /// Told when a caller wants the server to stop: whoever waits for it stops.
    pub stop: Arc<Notify>,
}

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The host process behind the hook.
    pub process: Digest,
    /// The hook itself, where the system tells.
    pub hook: Option<i32>,
}

impl Hooks {
    /// Opens the door of a service.
    pub fn new(service: Arc<Service>, setup: HooksSetup) -> Result<Hooks, StoreFault> {
        remember_parent();
        let sessions = Sessions::load(service.gate.ledger())?;
        let processes = HostProcesses::load(service.gate.ledger())?;
        let own = own_files(&setup.home, setup.user_home.as_deref());
        let HooksSetup { home, user_home, on_path, token, key, stop } = setup;
        let doctor = home.join(DOCTOR_PROJECT);
        Ok(Hooks { service, sessions, processes, own, user_home, on_path, key, token, stop, doctor })
    }

    fn gate(&self) -> &Arc<Gate> {
        &self.service.gate
    }

    fn submit(&self, command: Command) -> Answer {
        self.gate().ledger().submit_and_wait(command)
    }

    /// Answers an event of a host. It never fails: what goes wrong is the host's refusal.
    pub fn answer(&self, host: Host, bytes: &[u8], pinned: Option<&str>, caller: Caller) -> Rendered {
        let event = match read(host, bytes) {
            Ok(event) => event,
            Err(unreadable) => return self.unreadable(host, &unreadable.reason),
        };
        let reply = self.reply(&event, pinned, caller);
        render(&event, &reply.unwrap_or_else(|trouble| Reply::Deny { reason: words::trouble(&trouble) }))
    }

    /// Answers an event that could not be read: refused, unless nothing is held to refusals yet.
    pub fn unreadable(&self, host: Host, reason: &str) -> Rendered {
        if self.only_observes() {
            let stderr = format!("observe: would be refused, {reason}\n");
            return Rendered { exit: 0, stdout: String::new(), stderr };
        }
        render_unreadable(host, &words::unreadable(reason))
    }

    /// Whether no coding agent of this home is held to refusals yet, of whatever host.
    fn only_observes(&self) -> bool {
        let ledger = self.gate().ledger();
        let mut after = String::new();
        while let Ok(page) = ledger.agents(&after, 256) {
            let Some(last) = page.last() else { return true };
            after.clone_from(&last.profile.agent_id);
            let held = |agent: &Agent| {
                let host = agent.profile.framework.as_deref().and_then(Host::parse);
                host.is_some() && agent.mode == Mode::Enforce
            };
            if page.iter().any(held) {
                return false;
            }
        }
        false
    }

    fn reply(&self, event: &HostEvent, pinned: Option<&str>, caller: Caller) -> Result<Reply, Trouble> {
        if event.session.len() > NAME_BYTES_MAX {
            return Err(Trouble::Unreadable("the session's name is too long"));
        }
        let place = self.place(event, pinned, caller)?;
        let nothing = Reply::Pass { context: None };
        match &event.kind {
            Kind::BeforeTool { call, call_id, echo } => self.before(event, &place, call, call_id, *echo, caller),
            Kind::AfterTool { call, call_id, echo, result } => {
                if !echo && !is_control(event.host, call) && !loads_tools(event.host, call) {
                    self.after(event, &place, call, call_id.as_ref(), result, caller)?;
                }
                Ok(nothing)
            }
            Kind::Prompt | Kind::SessionStart { .. } => {
                self.end_turn(event, &place, caller)?;
                let standing = self.gate().standing(&place.agent)?;
                let mode = self.mode(&place.agent)?;
                Ok(Reply::Pass { context: words::at_turn(&standing, mode, &event.session, &event.kind) })
            }
            Kind::Stop { .. } => {
                self.end_turn(event, &place, caller)?;
                Ok(nothing)
            }
            Kind::SubagentStop { .. } => {
                // Without a name it could be the end of any of them.
                if event.subagent.is_some() {
                    self.end_turn(event, &place, caller)?;
                }
                Ok(nothing)
            }
            Kind::ConfigChange { .. } | Kind::Notice => Ok(nothing),
        }
    }

    fn mode(&self, agent: &str) -> Result<Mode, Trouble> {
        let agent = self.gate().ledger().agent(agent)?;
        let held = agent.is_some_and(|agent| agent.mode == Mode::Enforce);
        let observes = !held || self.gate().bundle().mode() == Mode::Observe;
        Ok(if observes { Mode::Observe } else { Mode::Enforce })
    }

    /// Which agent an event is of: that of the project the host was installed in, that the session began in, or that its
    /// directory belongs to.
    fn place(&self, event: &HostEvent, pinned: Option<&str>, caller: Caller) -> Result<EventPlace, Trouble> {
        let host = event.host.as_str();
        let ledger = self.gate().ledger();
        let known = |path: &str| Known::look_up(ledger, host, path);
        let is_probe = event.session == DOCTOR_SESSION;
        if is_probe && Path::new(&event.cwd) != self.doctor {
            // Nobody gets out of a project by the name of a session.
            return Err(Trouble::Unreadable("the name of the session is reserved"));
        }
        let found = match pinned {
            _ if is_probe => self.doctor.to_str().map(str::to_owned),
            Some(project) => {
                project_of(Path::new(project), |path| if path == project { Known::Enforced } else { Known::No })
            }
            None => {
                // Of a workspace with several directories, one where refusals hold speaks for all.
                let here = || {
                    let at = |directory: &String| project_of(Path::new(directory), known);
                    let held = event.roots.iter().filter_map(at).find(|project| self.holds(host, project));
                    let own = at(&event.cwd);
                    own.filter(|own| held.is_none() || self.holds(host, own)).or(held)
                };
                match self.sessions.project(host, &event.session) {
                    // A session that is only observed and goes into a project where refusals hold is held to them there.
                    Some(bound) => match here().filter(|here| *here != bound && self.holds(host, here)) {
                        Some(stricter) if !self.holds(host, &bound) => Some(stricter),
                        Some(_) | None => Some(bound),
                    },
                    None => here(),
                }
            }
        };
        let project = found.ok_or(Trouble::Unreadable("the directory of the session cannot be found"))?;
        let agent = agent_id(host, &project);
        if ledger.agent(&agent)?.is_none() {
            self.enrol(host, &project)?;
        }
        let seen = if is_probe { None } else { self.newly_seen(&event.kind, caller) };
        let is_new = self.sessions.project(host, &event.session).is_none();
        if is_new || seen.is_some() {
            let bound = SessionBound { session: event.session.clone(), host: seen.clone() };
            self.change(&agent, RunChange::BindSession(bound))?;
        }
        if is_new {
            self.sessions.bind(ledger, host, &event.session, &project)?;
        }
        if let Some(seen) = seen {
            self.processes.note(seen);
        }
        Ok(EventPlace { agent, project })
    }

    /// The process behind an event, if it tells of a call or begins a session and was not known.
    fn newly_seen(&self, kind: &Kind, caller: Caller) -> Option<HostSeen> {
        let begins = match kind {
            Kind::SessionStart { .. } => true,
            Kind::BeforeTool { .. } => false,
            Kind::AfterTool { .. }
            | Kind::Prompt
            | Kind::Stop { .. }
            | Kind::SubagentStop { .. }
            | Kind::ConfigChange { .. }
            | Kind::Notice => return None,
        };
        self.processes.newly_seen(caller.process, begins, || lineage(caller.hook?))
    }

    /// Whether refusals hold for a host in a project.
    fn holds(&self, host: &str, project: &str) -> bool {
        Known::look_up(self.gate().ledger(), host, project) == Known::Enforced
    }

    fn enrol(&self, host: &str, project: &str) -> Result<(), Trouble> {
        let mut random = [0; 32];
        self.service.entropy.0.fill(&mut random).map_err(|_| Trouble::Refused(Code::FaultInternal))?;
        let enrolment = Enrolment {
            profile: Box::new(profile(host, project)),
            token: Digest::of_bytes(&random),
            mode: Mode::Observe,
            by: interlock_core::action::Actor { name: "first call".to_owned(), key_id: None },
        };
        self.note_down(Command::Enrol(Box::new(enrolment)))?;
        self.service.projects.note(host, project);
        Ok(())
    }

    fn change(&self, agent: &str, change: RunChange) -> Result<Option<Box<Recorded>>, Trouble> {
        self.note_down(Command::ChangeRun { agent: agent.to_owned(), change })
    }

    /// What was recorded; nothing if nothing had to be.
    fn note_down(&self, command: Command) -> Result<Option<Box<Recorded>>, Trouble> {
        match self.submit(command) {
            Answer::Recorded(recorded) => Ok(Some(recorded)),
            Answer::Done => Ok(None),
            answer @ (Answer::NeedsEvidence(_)
            | Answer::Blocked(_)
            | Answer::Refused(_)
            | Answer::BudgetSpent(_)
            | Answer::Stale(_)
            | Answer::Fault(_)) => Err(trouble_of(&answer)),
        }
    }

    fn end_turn(&self, event: &HostEvent, place: &EventPlace, caller: Caller) -> Result<(), Trouble> {
        let turn = TurnEnded { process: caller.process, subagent: event.subagent.clone() };
        self.change(&place.agent, RunChange::TurnEnded(turn)).map(drop)
    }

    fn before(
        &self,
        event: &HostEvent,
        place: &EventPlace,
        call: &Call,
        call_id: &Option<String>,
        echo: bool,
        caller: Caller,
    ) -> Result<Reply, Trouble> {
        if is_control(event.host, call) {
            return Ok(match &event.subagent {
                None => Reply::Pass { context: None },
                Some(_) if call.mcp.as_ref().is_some_and(|mcp| mcp.tool.ends_with("_transition")) => {
                    Reply::Deny { reason: words::SUBAGENT.to_owned() }
                }
                Some(_) => Reply::Pass { context: None },
            });
        }
        if loads_tools(event.host, call) {
            return Ok(Reply::Pass { context: None });
        }
        let too_long = |name: &str| name.len() > NAME_BYTES_MAX || name.is_empty();
        if too_long(&call.tool) || call_id.as_deref().is_some_and(too_long) {
            return Err(Trouble::Unreadable("the name of the tool or of the call is empty or too long"));
        }
        // Its other event was judged, and counted, a moment ago; asked again it would be a second call.
        if echo && self.is_under_way(place, call.gist(&event.cwd), caller)? {
            return Ok(Reply::Pass { context: None });
        }
        let facts = self.facts(event, call, call_id, echo, caller)?;
        let project_own = format!("{}/{PROJECT_SETTINGS}", place.project);
        let own: Vec<String> = self.own.iter().cloned().chain([project_own]).collect();
        // Where refusals hold in its own project, they hold for whatever it touches.
        let held = match self.mode(&place.agent)? {
            Mode::Observe => self.service.projects.held(self.gate().ledger(), event.host.as_str())?,
            Mode::Enforce => Vec::new(),
        };
        let asking = CallAsking {
            agent: &place.agent,
            facts,
            held: &held,
            call,
            place: CallPlace {
                cwd: &event.cwd,
                home: self.user_home.as_deref(),
                project: &place.project,
                own: &own,
                on_path: &self.on_path,
                // Hosts take the shell of the user, and nothing in an event says which it is.
                executor: Executor::BashOrZsh,
            },
            text: Some(Arc::from(kept_text(call))),
        };
        let mut answer = self.submit(self.gate().prepare_call(&asking)?);
        if matches!(answer, Answer::NeedsEvidence(_)) {
            answer = self.submit(self.gate().prepare_call(&asking)?);
        }
        let Answer::Recorded(recorded) = answer else { return Err(trouble_of(&answer)) };
        let Body::Ruled(ruled) = &recorded.entry.body else { return Err(Trouble::Refused(Code::FaultInternal)) };
        self.service.metrics.count(ruled.ruling.decision);
        self.answer_ruled(event, place, ruled, recorded.folded != Some(Likeness::Code))
    }

    /// What was judged by this name: of the few tools whose input the host changes itself, nothing else can be compared.
    fn judged(&self, place: &EventPlace, call_id: Option<&String>, caller: Caller) -> Result<Option<Digest>, Trouble> {
        let run = self.gate().standing(&place.agent)?.run;
        let is_it =
            |open: &&OpenCall| call_id.is_some() && open.call_id.as_ref() == call_id && open.process == caller.process;
        Ok(run.open.iter().find(is_it).map(|open| open.fingerprint))
    }

    /// Whether this very call of this host process was let run just now.
    fn is_under_way(&self, place: &EventPlace, gist: Digest, caller: Caller) -> Result<bool, Trouble> {
        let now = self.gate().ledger().now();
        let run = self.gate().standing(&place.agent)?.run;
        let is_new = |at: u64| now.saturating_sub(at) < ECHO_MS;
        let is_it = |open: &OpenCall| {
            !open.left && open.process == caller.process && open.gist == Some(gist) && is_new(open.at)
        };
        Ok(run.open.iter().any(is_it))
    }

    fn answer_ruled(
        &self,
        event: &HostEvent,
        place: &EventPlace,
        ruled: &Ruled,
        is_own: bool,
    ) -> Result<Reply, Trouble> {
        if ruled.ruling.decision.lets_run() || ruled.observed {
            return Ok(Reply::Pass { context: None });
        }
        let standing = self.gate().standing(&place.agent)?;
        let reason = words::refusal(ruled, is_own, &standing, &place.agent, &event.session);
        let may_ask = ruled.ruling.decision == Decision::Pending && self.gate().bundle().host_may_approve();
        Ok(if may_ask { Reply::Ask { reason } } else { Reply::Deny { reason } })
    }

    fn facts(
        &self,
        event: &HostEvent,
        call: &Call,
        call_id: &Option<String>,
        echo: bool,
        caller: Caller,
    ) -> Result<Facts, Trouble> {
        let step = StepNumber::new(1).ok_or(Trouble::Refused(Code::FaultInternal))?;
        let context = ActionContext { conversation: event.session.clone(), step, observed: None };
        let mut facts = Facts::new(Door::Call, ActionName::parse(&call.tool), call.fingerprint(), context);
        facts.opened_at = self.gate().ledger().size();
        // Another event asks about the same call, and that one counts.
        facts.dry_run = echo;
        facts.call = Some(Box::new(CallFacts {
            host: event.host.as_str().to_owned(),
            tool: call.tool.clone(),
            family: call.family,
            session: event.session.clone(),
            process: caller.process,
            place: Some(Digest::of(&[&event.cwd])),
            gist: Some(call.gist(&event.cwd)),
            call_id: call_id.clone(),
            subagent: event.subagent.clone(),
            foreign: !self.processes.began(caller.process),
        }));
        Ok(facts)
    }

    fn after(
        &self,
        event: &HostEvent,
        place: &EventPlace,
        call: &Call,
        call_id: Option<&String>,
        result: &ToolResult,
        caller: Caller,
    ) -> Result<(), Trouble> {
        let files = call.intent.writes.iter().map(|change| change.path.clone()).take(64).collect();
        let judged = if result.repeats_input { None } else { self.judged(place, call_id, caller)? };
        let report = CallEndReported {
            session: event.session.clone(),
            process: caller.process,
            call_id: call_id.cloned(),
            tool: call.tool.clone(),
            fingerprint: judged.unwrap_or_else(|| call.fingerprint()),
            is_command: !call.intent.commands.is_empty(),
            ok: result.ok,
            exit_code: result.exit_code,
            result: Some(result.response),
            files,
        };
        self.change(&place.agent, RunChange::CallEnded(Box::new(report))).map(drop)
    }
}

/// Whose event it is.
struct EventPlace {
    agent: String,
    project: String,
}

/// Why an event cannot be answered as it should be.
#[derive(Debug)]
pub(crate) enum Trouble {
    Unreadable(&'static str),
    Refused(Code),
    Store,
}

impl From<StoreFault> for Trouble {
    fn from(_: StoreFault) -> Trouble {
        Trouble::Store
    }
}

fn trouble_of(answer: &Answer) -> Trouble {
    match answer {
        Answer::Refused(code) | Answer::Fault(code) => Trouble::Refused(*code),
        Answer::Recorded(_)
        | Answer::NeedsEvidence(_)
        | Answer::Blocked(_)
        | Answer::BudgetSpent(_)
        | Answer::Stale(_)
        | Answer::Done => Trouble::Refused(Code::FaultInternal),
    }
}

/// Whether a call is one of the control tools of our own server.
///
/// Cursor names no server, so there the name of the tool has to be enough: without it no agent could leave its phase. A
/// tool of that name of a foreign server passes with it; `docs/hosts.md` says so.
fn is_control(host: Host, call: &Call) -> bool {
    let is_tool = |tool: &str| {
        CONTROL_PREFIXES
            .iter()
            .any(|prefix| tool.strip_prefix(prefix).is_some_and(|rest| rest == "_get_state" || rest == "_transition"))
    };
    let is_ours = |server: &str| server == CONTROL_SERVER || (host == Host::Cursor && server.is_empty());
    call.mcp.as_ref().is_some_and(|mcp| is_ours(&mcp.server) && is_tool(&mcp.tool))
}

/// Whether a call only shows the agent the descriptions of tools.
///
/// Claude Code has those of servers loaded by it before they can be called, so a phase that refused it would have no way
/// out. What is loaded is judged when it is called.
fn loads_tools(host: Host, call: &Call) -> bool {
    host == Host::ClaudeCode && call.tool == "ToolSearch" && call.bookkeeping && call.intent.unread.is_empty()
}

/// What a person would have to decide on.
fn kept_text(call: &Call) -> String {
    format!("{{\"action\":{{\"tool\":{},\"parameters\":{}}}}}", quote(&call.tool), call.input.canonical())
}

/// Our own files and the settings by which hosts call us.
fn own_files(home: &Path, user_home: Option<&str>) -> Vec<String> {
    let mut own = vec![home.to_string_lossy().into_owned()];
    own.extend(user_home.iter().flat_map(|user| in_home(Concern::Own).map(move |path| format!("{user}/{path}"))));
    own
}

#[cfg(test)]
mod tests {
    use interlock_runtime::coding_agents::HOSTS;

    use super::*;

    /// Agents of every host in a project are told of what the others write.
    #[test]
    fn every_host_is_known_as_one_that_others_work_beside() {
        assert_eq!(HOSTS, Host::ALL.map(Host::as_str));
    }

    #[test]
    fn tools_are_loaded_by_the_host_s_own_tool_with_fields_that_are_known() {
        let asked = |host: Host, name: &str, rest: &str| {
            let event = format!(
                r#"{{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/src","tool_name":"{name}",{rest}}}"#
            );
            let Kind::BeforeTool { call, .. } = read(host, event.as_bytes()).expect("an event").kind else {
                panic!("another event")
            };
            loads_tools(host, &call)
        };
        let query = r#""tool_input":{"query":"select:x","max_results":5}"#;
        assert!(asked(Host::ClaudeCode, "ToolSearch", query));
        assert!(!asked(Host::ClaudeCode, "ToolSearch", r#""tool_input":{"query":"x","then":"rm"}"#));
        assert!(!asked(Host::ClaudeCode, "ToolSearch", r#""tool_input":{"query":["x"]}"#));
        assert!(!asked(Host::ClaudeCode, "ToolSearch", &format!(r#"{query},"mcp_server":{{"name":"x"}}"#)));
        assert!(!asked(Host::ClaudeCode, "mcp__x__ToolSearch", query));
        assert!(!asked(Host::ClaudeCode, "TodoWrite", r#""tool_input":{}"#));
        assert!(!asked(Host::Codex, "ToolSearch", query));
    }

    #[test]
    fn control_tools_are_known_by_their_server_where_one_is_told() {
        let asked = |host: Host, tool: &str| {
            let event = format!(
                r#"{{"hook_event_name":"{}","session_id":"s","conversation_id":"s","cwd":"/src","tool_name":"{tool}",
                    "tool_input":{{}}}}"#,
                if host == Host::Cursor { "preToolUse" } else { "PreToolUse" }
            );
            let Kind::BeforeTool { call, .. } = read(host, event.as_bytes()).expect("an event").kind else {
                panic!("another event")
            };
            is_control(host, &call)
        };
        assert!(asked(Host::ClaudeCode, "mcp__interlock__interlock_transition"));
        assert!(!asked(Host::ClaudeCode, "mcp__other__interlock_transition"));
        assert!(!asked(Host::ClaudeCode, "mcp____interlock_transition"));
        assert!(asked(Host::Cursor, "MCP:interlock_transition"));
        assert!(asked(Host::Cursor, "MCP:interlock_get_state"));
        assert!(!asked(Host::Cursor, "MCP:interlock_other"));
        assert!(!asked(Host::Cursor, "interlock_transition"));
    }
}
