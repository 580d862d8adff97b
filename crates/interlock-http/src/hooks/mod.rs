//! The door for coding agents: what hosts tell before and after a tool runs, and the two control tools.
//!
//! It is reached over a socket in the home of whoever runs the server, and by nobody else. What a host says is read and
//! answered in its own words by `interlock-hosts`; what becomes of it, `interlock_runtime::tool_door` tells.
//!
//! | to find | look in |
//! |---|---|
//! | the socket, who may ask, the proof of who answers | `socket.rs` |
//! | an event of a host, from its bytes to the answer | here |
//! | the control tools | `control.rs` |
//! | what runners ask | `exec.rs`; what is left for those that cannot | `left.rs` |
//! | whether a change of settings leaves the runner in its place | `prefix.rs` |
//! | what an agent is told | `words.rs` |

mod control;
mod exec;
mod left;
mod prefix;
mod socket;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use interlock_core::Digest;
use interlock_core::action::{Decision, Mode, PassAsked, PassKind, PassRuling};
use interlock_core::call::{Call, Effect, Family};
use interlock_core::contain::Abilities;
use interlock_core::json::Json;
use interlock_core::ledger::Ruled;
use interlock_core::places::{Concern, in_home};
use interlock_core::rule::shell_quoted;
use interlock_hosts::{
    Host, HostEvent, Kind, Reply, Rewriting, may_carry, pass_of, read, render, render_unreadable, told,
};
use interlock_runtime::call_policy::{RunnerGround, inner_line};
use interlock_runtime::ledger::{LedgerKey, StoreFault};
use interlock_runtime::tool_door::{
    Arrival, CallAnswer, CallComing, CallOver, DoorFault, DoorGround, Origin, Place, ToolDoor,
};
use tokio::sync::Notify;

pub(crate) use control::state_object;
pub use interlock_hosts::Rendered;
pub use interlock_runtime::tool_door::{Caller, DOCTOR_SESSION};
pub use socket::{Served, SocketFault, serve_socket};

use crate::Service;

/// Where the events come from with which `interlock doctor` tries hooks, in a home. Session and directory together make
/// an event a probe: it is recorded for this directory alone.
pub const DOCTOR_PROJECT: &str = "doctor";

/// What a host's shell prefix is, in a home: the one path of the runner.
pub const SHELL_PREFIX: &str = "bin/interlock-shell";
/// What hosts without a prefix read before a line, in a home.
pub const RUN_SCRIPT: &str = "bin/run.sh";

impl Service {
    /// Whether a runner of this home is in its place for a host. Whether it runs a command line, each call tells.
    pub(crate) fn has_runner(&self, host: Host) -> bool {
        let program = match host.rewrites() {
            Rewriting::Held => SHELL_PREFIX,
            Rewriting::Advisory => RUN_SCRIPT,
            Rewriting::None => return false,
        };
        self.home.get().is_some_and(|home| home.join(program).is_file())
    }
}

/// What a hook tells beside the event.
#[derive(Debug, Clone, Copy)]
pub struct HookTold<'a> {
    /// The project that the host is installed in, where that was written down.
    pub pinned: Option<&'a str>,
    /// The shell prefix in force, as the hook's own environment has it.
    pub prefix: Option<&'a str>,
    /// The process that carries the event.
    pub caller: Caller,
}

/// The door for coding agents.
pub struct Hooks {
    service: Arc<Service>,
    door: ToolDoor,
    /// Proves who answers.
    key: LedgerKey,
    /// What a caller must know.
    token: Digest,
    /// Told when a caller wants the server to stop.
    stop: Arc<Notify>,
    /// The home of this server.
    home: PathBuf,
    /// The home directory of the user.
    user_home: Option<String>,
    /// What the kernel can hold command lines to.
    abilities: Abilities,
    /// This program, by its path.
    binary: String,
    /// Agents whose host has a sandbox in which nothing can be held, as a runner there told.
    unheld: Mutex<BTreeSet<String>>,
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
    /// What the kernel can hold command lines to, as the runner found.
    pub abilities: Abilities,
    /// This program, by its path: a line that hands its command to it is the call of that command.
    pub binary: String,
}

impl Hooks {
    /// Opens the door of a service.
    pub fn new(service: Arc<Service>, setup: HooksSetup) -> Result<Hooks, StoreFault> {
        let HooksSetup { home, user_home, on_path, token, key, stop, abilities, binary } = setup;
        let own = own_files(&home, user_home.as_deref());
        let ground = DoorGround {
            own,
            user_home: user_home.clone(),
            on_path,
            doctor: home.join(DOCTOR_PROJECT),
            home: home.clone(),
        };
        let service = service.with_home(home.clone());
        let (gate, projects) = (Arc::clone(&service.gate), Arc::clone(&service.projects));
        let door = ToolDoor::new(gate, projects, Arc::clone(&service.entropy.0), ground)?;
        service.keeper.get_or_init(|| door.keeper());
        Ok(Hooks { service, door, key, token, stop, home, user_home, abilities, binary, unheld: Mutex::default() })
    }

    /// Answers an event of a host. It never fails: what goes wrong is the host's refusal.
    pub fn answer(&self, host: Host, bytes: &[u8], hook: &HookTold<'_>) -> Rendered {
        let event = match read(host, bytes, self.script().to_str()) {
            Ok(event) => self.by_hand(event),
            Err(unreadable) => return self.unreadable(host, &unreadable.reason),
        };
        let reply = self.reply(&event, hook);
        render(&event, &reply.unwrap_or_else(|fault| Reply::Deny { reason: words::fault(&fault) }))
    }

    /// The file by which Codex and Gemini CLI hand command lines to the runner.
    fn script(&self) -> PathBuf {
        self.home.join(RUN_SCRIPT)
    }

    /// The runner that runs the command line of a call, if one does: where the host lets lines be rewritten, and the
    /// runner is in its place there.
    fn runner_of(&self, event: &HostEvent, place: &Place, prefix: Option<&str>) -> Option<RunnerGround> {
        let Kind::BeforeTool { call, .. } = &event.kind else { return None };
        let abilities = self.abilities;
        match event.host.rewrites() {
            Rewriting::Held => {
                let is_ours = prefix.is_some_and(|prefix| self.is_own_prefix(prefix));
                is_ours.then_some(RunnerGround { abilities, advisory: false, keeps: false })
            }
            Rewriting::Advisory => {
                let is_there = self.script().is_file() && may_carry(event.host, call) && !self.is_unheld(place);
                is_there.then_some(RunnerGround { abilities, advisory: true, keeps: false })
            }
            // The line itself hands the command to the runner, and nothing else is in it.
            Rewriting::None => {
                self.is_by_hand(call).then_some(RunnerGround { abilities, advisory: false, keeps: false })
            }
        }
    }

    /// A line that is nothing but `BINARY exec -- COMMAND` is the call of that command, where a host lets nothing be
    /// rewritten.
    fn by_hand(&self, mut event: HostEvent) -> HostEvent {
        if event.host.rewrites() == Rewriting::None
            && let Kind::BeforeTool { call, .. } | Kind::AfterTool { call, .. } = &mut event.kind
            && let [line] = call.intent.commands.as_slice()
            && let Some(inner) = inner_line(line, &self.binary)
        {
            call.intent.commands = vec![inner];
        }
        event
    }

    /// The line that hands the command of a call to the runner, where a host lets nothing be rewritten and the line was
    /// refused because nobody can tell what it does.
    fn line_by_hand(&self, event: &HostEvent, ruled: &Ruled) -> Option<String> {
        let Kind::BeforeTool { call, .. } = &event.kind else { return None };
        let [line] = call.intent.commands.as_slice() else { return None };
        let effects = ruled.evidence.as_ref().and_then(|evidence| Some(&evidence.call.as_ref()?.effects));
        let is_open = effects.is_some_and(|effects| effects.contains(&Effect::Unknown))
            && ruled.ruling.decision == Decision::Pending;
        let may_help = event.host.rewrites() == Rewriting::None && self.abilities.hold() && !self.is_by_hand(call);
        if !is_open || !may_help {
            return None;
        }
        let whole = format!("{} exec -- {line}", shell_quoted(&self.binary));
        let nested = format!("{} exec -- bash -c {}", shell_quoted(&self.binary), shell_quoted(line));
        Some(if inner_line(&whole, &self.binary).is_some() { whole } else { nested })
    }

    /// Whether the command of a call was taken out of such a line.
    fn is_by_hand(&self, call: &Call) -> bool {
        let [line] = call.intent.commands.as_slice() else { return false };
        let given = call.input.as_object().and_then(|members| members.get("command")).and_then(Json::as_str);
        given.and_then(|given| inner_line(given, &self.binary)).as_ref() == Some(line)
    }

    /// Answers an event that could not be read: refused, unless nothing is held to refusals yet.
    pub fn unreadable(&self, host: Host, reason: &str) -> Rendered {
        if let Ok(PassRuling::Passes(_)) = self.door.pass_unread() {
            let stderr = format!("observe: would be refused, {reason}\n");
            return Rendered { exit: 0, stdout: String::new(), stderr };
        }
        render_unreadable(host, &words::unreadable(reason))
    }

    fn reply(&self, event: &HostEvent, hook: &HookTold<'_>) -> Result<Reply, DoorFault> {
        let HookTold { pinned, caller, .. } = *hook;
        let mut origin = Origin {
            host: event.host.as_str(),
            session: &event.session,
            cwd: &event.cwd,
            roots: &event.roots,
            pinned,
            subagent: event.subagent.as_deref(),
            caller,
            runner: None,
        };
        let place = self.door.place(&origin, arrival(&event.kind))?;
        origin.runner = self.runner_of(event, &place, hook.prefix);
        match &event.kind {
            Kind::BeforeTool { call, call_id, echo, .. } => {
                let coming = CallComing { call, call_id: call_id.as_deref(), echo: *echo };
                self.before(event, &origin, &place, &coming)
            }
            Kind::AfterTool { call, call_id, echo, result, ticket } => {
                if *echo || pass_of(event.host, call, false).is_some() {
                    return self.told(&place, Some(PassKind::Ended), None);
                }
                let over = CallOver {
                    call,
                    call_id: call_id.as_deref(),
                    ok: result.ok,
                    exit_code: result.exit_code,
                    result: result.response,
                    repeats_input: result.repeats_input,
                    is_carried: event.host.rewrites() != Rewriting::None,
                    ticket: ticket.as_deref(),
                };
                self.hear(&origin, &place, over.call_id, &result.trailers)?;
                self.door.end_call(&origin, &place, &over)?;
                Ok(Reply::Pass { context: None })
            }
            Kind::Prompt | Kind::SessionStart { .. } => {
                self.door.end_turn(&origin, &place)?;
                let (standing, mode) = (self.door.standing(&place)?, self.door.mode(&place)?);
                self.told(&place, told(&event.kind), words::at_turn(&standing, mode, &event.session, &event.kind))
            }
            // The end of a subagent without a name could be that of any of them.
            Kind::Stop { .. } | Kind::SubagentStop { .. } => {
                if matches!(event.kind, Kind::Stop { .. }) || event.subagent.is_some() {
                    self.door.end_turn(&origin, &place)?;
                }
                self.told(&place, told(&event.kind), None)
            }
            Kind::ConfigChange { source, path } => {
                let passed = self.told(&place, told(&event.kind), None)?;
                let holds = self.door.mode(&place)? == Mode::Enforce;
                let displaces = || self.displaces_prefix(hook.prefix, source.as_deref(), path.as_deref());
                Ok(if holds && displaces() { Reply::Deny { reason: words::DISPLACED.to_owned() } } else { passed })
            }
            Kind::Notice => self.told(&place, told(&event.kind), None),
        }
    }

    /// The answer to an event after which nothing runs.
    fn told(&self, place: &Place, kind: Option<PassKind>, context: Option<String>) -> Result<Reply, DoorFault> {
        let ruling = kind.map(|kind| self.door.pass(place, PassAsked::Told(kind))).transpose()?;
        match ruling {
            Some(PassRuling::Passes(_)) => Ok(Reply::Pass { context }),
            Some(PassRuling::Judged | PassRuling::NotForSubagents) | None => {
                Err(DoorFault::Unreadable("something may run after it that was not judged"))
            }
        }
    }

    fn before(
        &self,
        event: &HostEvent,
        origin: &Origin<'_>,
        place: &Place,
        coming: &CallComing<'_>,
    ) -> Result<Reply, DoorFault> {
        let named = pass_of(event.host, coming.call, event.subagent.is_some());
        // Its other event was judged, and counted, a moment ago; asked again it would be a second call.
        let echo =
            coming.echo.then(|| PassAsked::Echo { process: origin.caller.process, gist: coming.call.gist(origin.cwd) });
        if let Some(asked) = named.or(echo) {
            match self.door.pass(place, asked)? {
                PassRuling::Passes(_) => return Ok(Reply::Pass { context: None }),
                PassRuling::NotForSubagents => return Ok(Reply::Deny { reason: words::SUBAGENT.to_owned() }),
                PassRuling::Judged => {}
            }
        }
        let is_line = coming.call.family == Some(Family::Bash);
        // Its runner starts nothing without a ticket.
        let is_carried = event.host.rewrites() != Rewriting::None;
        if is_line
            && is_carried
            && origin.runner.is_some_and(|runner| !runner.advisory)
            && !may_carry(event.host, coming.call)
        {
            return Ok(Reply::Deny { reason: words::OPEN_LINE.to_owned() });
        }
        let mut answer = self.door.ask(origin, place, coming)?;
        self.service.metrics.count(answer.ruled.ruling.decision);
        match self.leave(origin, coming, &answer) {
            Ok(()) => {}
            // Where refusals are only shown, a line whose runner could not be told anything runs as it is.
            Err(_) if answer.ruled.observed => answer.ticket = None,
            Err(fault) => return Err(fault),
        }
        self.answer_ruled(event, place, &answer)
    }

    fn answer_ruled(&self, event: &HostEvent, place: &Place, answer: &CallAnswer) -> Result<Reply, DoorFault> {
        if answer.goes_on() {
            let script = self.script().to_string_lossy().into_owned();
            let ticket = answer.ticket.as_ref().filter(|_| event.host.rewrites() != Rewriting::None);
            let note = words::recoverable(&answer.ruled);
            let rewrite = |ticket: &String| Reply::Rewrite { ticket: ticket.clone(), script, note };
            return Ok(ticket.map_or(Reply::Pass { context: None }, rewrite));
        }
        let CallAnswer { ruled, is_own, .. } = answer;
        let standing = self.door.standing(place)?;
        let mut reason = words::refusal(ruled, *is_own, &standing, &place.agent, &event.session);
        if let Some(line) = self.line_by_hand(event, ruled) {
            reason.push_str(&words::by_hand(&line));
        }
        let may_ask = ruled.ruling.decision == Decision::Pending && self.service.gate.bundle().host_may_approve();
        Ok(if may_ask { Reply::Ask { reason } } else { Reply::Deny { reason } })
    }
}

/// What an event says of the process behind it.
fn arrival(kind: &Kind) -> Arrival {
    match kind {
        Kind::SessionStart { .. } => Arrival::Begins,
        Kind::BeforeTool { .. } => Arrival::Calls,
        Kind::AfterTool { .. }
        | Kind::Prompt
        | Kind::Stop { .. }
        | Kind::SubagentStop { .. }
        | Kind::ConfigChange { .. }
        | Kind::Notice => Arrival::Tells,
    }
}

/// Our own files and the settings by which hosts call us.
fn own_files(home: &Path, user_home: Option<&str>) -> Vec<String> {
    let mut own = vec![home.to_string_lossy().into_owned()];
    own.extend(user_home.iter().flat_map(|user| in_home(Concern::Own).map(move |path| format!("{user}/{path}"))));
    own
}
