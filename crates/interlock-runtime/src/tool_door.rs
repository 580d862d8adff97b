//! The door for tool calls: a call comes in, a ruling goes out, an outcome comes back.
//!
//! It knows no host. Whoever carries calls here (a hook, a gateway) is an adapter: it tells who asks, from where and for
//! what, in these types, and says in its own words what came out. What may be is decided in core, in the transaction that
//! records it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlock_core::action::{
    ActionContext, ActionName, Actor, CallFacts, Door, Facts, LineToRun, Mode, PassAsked, PassRuling, StepNumber,
};
use interlock_core::call::{Call, Family};
use interlock_core::json::quote;
use interlock_core::ledger::{Body, CallEndReported, Likeness, Ruled, SessionBound, Transitioned, TurnEnded};
use interlock_core::places::PROJECT_SETTINGS;
use interlock_core::workflow::{Carried, Context, HostSeen, OpenCall};
use interlock_core::{Code, Digest};
use interlock_keep::KeepFault;

use crate::call_gate::{CallAsking, Standing};
use crate::call_policy::{CallPlace, Executor, RunnerGround};
use crate::clock::Entropy;
use crate::coding_agents::{HostProcesses, Known, Projects, Sessions, agent_id, profile, project_of};
use crate::gate::Gate;
use crate::keeper::Keeper;
use crate::ledger::{Answer, Command, Enrolment, RunChange, StoreFault, TransitionCommand};
use crate::paths;
use crate::process::{lineage, remember_parent};

/// The longest name of a tool, a session or a call that is taken.
const NAME_BYTES_MAX: usize = 256;
/// How many files of an ended call are named.
const FILES_MAX: usize = 64;
/// Where kept states of projects lie, in a home.
const KEPT: &str = "kept";
/// The session of the events with which `interlock doctor` tries hooks.
pub const DOCTOR_SESSION: &str = "interlock-doctor";

/// The door for tool calls.
pub struct ToolDoor {
    pub(crate) gate: Arc<Gate>,
    pub(crate) projects: Arc<Projects>,
    pub(crate) entropy: Arc<dyn Entropy>,
    sessions: Sessions,
    processes: HostProcesses,
    pub(crate) ground: DoorGround,
    pub(crate) keeper: Arc<Keeper>,
}

/// What is known of the machine behind the door.
pub struct DoorGround {
    /// Our own files, and the settings of hosts: no agent may touch them.
    pub own: Vec<String>,
    /// The home directory of the user, for `~`.
    pub user_home: Option<String>,
    /// Where the user's shell looks for programs.
    pub on_path: Vec<String>,
    /// The project that probes of `interlock doctor` belong to.
    pub doctor: PathBuf,
    /// The home of this server: what runners need of their own lies in it.
    pub home: PathBuf,
}

/// Who asks, and from where.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The host's name.
    pub host: &'a str,
    /// The session, in the host's word.
    pub session: &'a str,
    /// The directory it is in.
    pub cwd: &'a str,
    /// Further directories of its workspace.
    pub roots: &'a [String],
    /// The project that the host is installed in, where that was written down.
    pub pinned: Option<&'a str>,
    /// The subagent, if it is one.
    pub subagent: Option<&'a str>,
    /// The process that carries the call.
    pub caller: Caller,
    /// The runner that runs command lines there, if one does.
    pub runner: Option<RunnerGround>,
}

/// The process that carries a call.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The host process behind it.
    pub process: Digest,
    /// The carrier itself, where the system tells.
    pub hook: Option<i32>,
}

/// What its coming says of the process behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// A session begins.
    Begins,
    /// A call is about to be made.
    Calls,
    /// Something else is told.
    Tells,
}

/// Whose call it is.
#[derive(Debug, Clone)]
pub struct Place {
    /// The agent: that of this host in this project.
    pub agent: String,
    /// The project.
    pub project: String,
}

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct CallComing<'a> {
    /// The call.
    pub call: &'a Call,
    /// The host's id for it.
    pub call_id: Option<&'a str>,
    /// It is a second event about a call: judged, and not counted.
    pub echo: bool,
}

/// A call that has ended.
#[derive(Debug, Clone, Copy)]
pub struct CallOver<'a> {
    /// The call.
    pub call: &'a Call,
    /// The host's id for it.
    pub call_id: Option<&'a str>,
    /// Whether the host calls it a success.
    pub ok: Option<bool>,
    /// The exit code, where the host tells.
    pub exit_code: Option<i64>,
    /// The SHA-256 of what came out of it.
    pub result: Digest,
    /// The input is told again as it was judged, so that the two can be compared.
    pub repeats_input: bool,
    /// Hosts like this one are told to put a ticket into their commands.
    pub is_carried: bool,
    /// The ticket that its command carried.
    pub ticket: Option<&'a str>,
}

/// A ruling on a call.
#[derive(Debug, Clone)]
pub struct CallAnswer {
    /// The ruling, as it is on record.
    pub ruled: Ruled,
    /// The id of the decision leads to this very call; what is only counted by its code names another one.
    pub is_own: bool,
    /// With this a runner may start the command of the call, once; none if no runner is to run it.
    pub ticket: Option<String>,
}

impl CallAnswer {
    /// Whether the call may be made: it was approved, or refusals are only shown.
    pub fn goes_on(&self) -> bool {
        self.ruled.ruling.decision.lets_run() || self.ruled.observed
    }
}

/// Why there is no ruling. Nothing may go on then.
#[derive(Debug)]
pub enum DoorFault {
    /// What was told cannot be read.
    Unreadable(&'static str),
    /// It was refused without an entry.
    Refused(Code),
    /// The ledger is not available.
    Store(StoreFault),
    /// What the call may change cannot be kept.
    NotKept(KeepFault),
}

impl From<KeepFault> for DoorFault {
    fn from(fault: KeepFault) -> DoorFault {
        DoorFault::NotKept(fault)
    }
}

impl From<StoreFault> for DoorFault {
    fn from(fault: StoreFault) -> DoorFault {
        DoorFault::Store(fault)
    }
}

impl ToolDoor {
    /// Opens the door of a gate.
    pub fn new(
        gate: Arc<Gate>,
        projects: Arc<Projects>,
        entropy: Arc<dyn Entropy>,
        ground: DoorGround,
    ) -> Result<ToolDoor, StoreFault> {
        remember_parent();
        let (sessions, processes) = (Sessions::load(gate.ledger())?, HostProcesses::load(gate.ledger())?);
        let user_home = ground.user_home.as_deref().map(PathBuf::from);
        let keeper = Arc::new(Keeper::new(ground.home.join(KEPT), user_home));
        Ok(ToolDoor { gate, projects, entropy, sessions, processes, ground, keeper })
    }

    /// What is kept of projects.
    pub fn keeper(&self) -> Arc<Keeper> {
        Arc::clone(&self.keeper)
    }

    /// Which agent it is: that of the project the host was installed in, that the session began in, or that its directory
    /// belongs to. One that is new is enrolled, in observe mode.
    pub fn place(&self, origin: &Origin<'_>, arrival: Arrival) -> Result<Place, DoorFault> {
        let Origin { host, session, caller, .. } = *origin;
        if session.len() > NAME_BYTES_MAX {
            return Err(DoorFault::Unreadable("the session's name is too long"));
        }
        let is_probe = session == DOCTOR_SESSION;
        if is_probe && Path::new(origin.cwd) != self.ground.doctor {
            // Nobody gets out of a project by the name of a session.
            return Err(DoorFault::Unreadable("the name of the session is reserved"));
        }
        let found =
            if is_probe { self.ground.doctor.to_str().map(str::to_owned) } else { self.project_of_origin(origin) };
        let project = found.ok_or(DoorFault::Unreadable("the directory of the session cannot be found"))?;
        let place = Place { agent: agent_id(host, &project), project };
        self.enrol_unknown(host, &place)?;
        let seen = if is_probe { None } else { self.newly_seen(arrival, caller) };
        let is_new = self.sessions.project(host, session).is_none();
        if is_new || seen.is_some() {
            let bound = SessionBound { session: session.to_owned(), host: seen.clone() };
            self.change(&place.agent, RunChange::BindSession(bound))?;
        }
        if is_new {
            self.sessions.bind(self.gate.ledger(), host, session, &place.project)?;
        }
        if let Some(seen) = seen {
            self.processes.note(seen);
        }
        Ok(place)
    }

    fn project_of_origin(&self, origin: &Origin<'_>) -> Option<String> {
        let host = origin.host;
        if let Some(project) = origin.pinned {
            return project_of(Path::new(project), |path| if path == project { Known::Enforced } else { Known::No });
        }
        // Of a workspace with several directories, one where refusals hold speaks for all.
        let here = || {
            let at = |directory: &str| project_of(Path::new(directory), |path| self.known(host, path));
            let held = origin.roots.iter().filter_map(|root| at(root)).find(|project| self.holds(host, project));
            let own = at(origin.cwd);
            own.filter(|own| held.is_none() || self.holds(host, own)).or(held)
        };
        let Some(bound) = self.sessions.project(host, origin.session) else { return here() };
        // A session that is only observed and goes into a project where refusals hold is held to them there.
        match here().filter(|here| *here != bound && self.holds(host, here)) {
            Some(stricter) if !self.holds(host, &bound) => Some(stricter),
            Some(_) | None => Some(bound),
        }
    }

    fn known(&self, host: &str, directory: &str) -> Known {
        Known::look_up(self.gate.ledger(), host, directory)
    }

    /// Whether refusals hold for a host in a project.
    fn holds(&self, host: &str, project: &str) -> bool {
        self.known(host, project) == Known::Enforced
    }

    /// Whose directory it is, for what is asked outside of a session. The agent need not be known yet.
    pub fn place_in(&self, host: &str, directory: &str) -> Option<Place> {
        let project = project_of(Path::new(directory), |path| self.known(host, path))?;
        Some(Place { agent: agent_id(host, &project), project })
    }

    pub(crate) fn enrol_unknown(&self, host: &str, place: &Place) -> Result<(), DoorFault> {
        let project = &place.project;
        if self.gate.ledger().agent(&place.agent)?.is_none() {
            let mut random = [0; 32];
            self.entropy.fill(&mut random).map_err(|_| DoorFault::Refused(Code::FaultInternal))?;
            self.note_down(Command::Enrol(Box::new(Enrolment {
                profile: Box::new(profile(host, project)),
                token: Digest::of_bytes(&random),
                mode: Mode::Observe,
                by: Actor { name: "first call".to_owned(), key_id: None },
            })))?;
            self.projects.note(host, project);
        }
        Ok(())
    }

    /// The process behind an event, if it tells of a call or begins a session and was not known.
    fn newly_seen(&self, arrival: Arrival, caller: Caller) -> Option<HostSeen> {
        let begins = match arrival {
            Arrival::Begins => true,
            Arrival::Calls => false,
            Arrival::Tells => return None,
        };
        self.processes.newly_seen(caller.process, begins, || lineage(caller.hook?))
    }

    /// Whether something goes on without a ruling of its own; it is counted.
    pub fn pass(&self, place: &Place, pass: PassAsked) -> Result<PassRuling, DoorFault> {
        let answer = self.submit(Command::Pass { agent: place.agent.clone(), pass });
        let Answer::Passed(ruling) = answer else { return Err(fault_of(&answer)) };
        Ok(ruling)
    }

    /// Whether an event that cannot be read goes on: only while refusals hold nowhere.
    pub fn pass_unread(&self) -> Result<PassRuling, DoorFault> {
        let holds = self.projects.hold_anywhere(self.gate.ledger())?;
        let answer = self.submit(Command::PassUnread { holds });
        let Answer::Passed(ruling) = answer else { return Err(fault_of(&answer)) };
        Ok(ruling)
    }

    /// Rules on a call before it is made.
    pub fn ask(&self, origin: &Origin<'_>, place: &Place, coming: &CallComing<'_>) -> Result<CallAnswer, DoorFault> {
        let Origin { host, cwd, .. } = *origin;
        let CallComing { call, call_id, .. } = *coming;
        let too_long = |name: &str| name.len() > NAME_BYTES_MAX || name.is_empty();
        if too_long(&call.tool) || call_id.is_some_and(too_long) {
            return Err(DoorFault::Unreadable("the name of the tool or of the call is empty or too long"));
        }
        let own = self.ground.own.iter().cloned().chain([format!("{}/{PROJECT_SETTINGS}", place.project)]);
        let own: Vec<String> = own.collect();
        // Where refusals hold in its own project, they hold for whatever it touches.
        let held = match self.mode(place)? {
            Mode::Observe => self.projects.held(self.gate.ledger(), host)?,
            Mode::Enforce => Vec::new(),
        };
        let asking = CallAsking {
            agent: &place.agent,
            facts: self.facts(origin, coming)?,
            held: &held,
            beside: self.projects.beside(self.gate.ledger(), host, &place.project)?,
            call,
            place: CallPlace {
                cwd,
                home: self.ground.user_home.as_deref(),
                project: &place.project,
                own: &own,
                on_path: &self.ground.on_path,
                // Hosts take the shell of the user, and nothing in an event says which it is.
                executor: Executor::BashOrZsh,
                runner: origin.runner.map(|runner| RunnerGround { keeps: self.keeps(&place.project), ..runner }),
            },
            text: Some(Arc::from(kept_text(call))),
        };
        let mut answer = self.submit(self.gate.prepare_call(&asking)?);
        if matches!(answer, Answer::NeedsEvidence(_)) {
            answer = self.submit(self.gate.prepare_call(&asking)?);
        }
        let Answer::Recorded(recorded) = answer else { return Err(fault_of(&answer)) };
        let is_own = recorded.folded != Some(Likeness::Code);
        let ruled = recorded.entry.body.into_ruled().ok_or(DoorFault::Refused(Code::FaultInternal))?;
        let runs = ruled.facts.as_ref().and_then(|facts| facts.call.as_ref()?.runs);
        let goes_on = ruled.ruling.decision.lets_run() || ruled.observed;
        if goes_on && !coming.echo {
            self.keep_before_call(origin, place, coming, &ruled)?;
        }
        let ticket = runs.filter(|_| goes_on && !coming.echo);
        let ticket = ticket.and_then(|_| self.gate.ledger().ticket_for(&ruled.decision_id));
        Ok(CallAnswer { ruled, is_own, ticket })
    }

    fn facts(&self, origin: &Origin<'_>, coming: &CallComing<'_>) -> Result<Facts, DoorFault> {
        let CallComing { call, call_id, echo } = *coming;
        let step = StepNumber::new(1).ok_or(DoorFault::Refused(Code::FaultInternal))?;
        let context = ActionContext { conversation: origin.session.to_owned(), step, observed: None };
        let mut facts = Facts::new(Door::Call, ActionName::parse(&call.tool), call.fingerprint(), context);
        // Another event asks about the same call, and that one counts.
        facts.dry_run = echo;
        facts.call = Some(Box::new(CallFacts {
            host: origin.host.to_owned(),
            tool: call.tool.clone(),
            family: call.family,
            session: origin.session.to_owned(),
            process: origin.caller.process,
            place: Some(Digest::of(&[origin.cwd])),
            gist: Some(call.gist(origin.cwd)),
            call_id: call_id.map(str::to_owned),
            subagent: origin.subagent.map(str::to_owned),
            foreign: !self.processes.began(origin.caller.process),
            runs: origin.runner.and_then(|_| line_to_run(call, origin.cwd, self.ground.user_home.as_deref())),
        }));
        Ok(facts)
    }

    /// Records how a call ended. One that belongs to no judged call freezes the run.
    pub fn end_call(&self, origin: &Origin<'_>, place: &Place, over: &CallOver<'_>) -> Result<(), DoorFault> {
        let CallOver { call, call_id, ok, exit_code, result, repeats_input, is_carried, ticket } = *over;
        let judged = if repeats_input { None } else { self.judged(origin, place, call_id)? };
        let home = self.ground.user_home.as_deref();
        let in_project = |path: &str| paths::from_project(path, origin.cwd, home, &place.project);
        let report = CallEndReported {
            session: origin.session.to_owned(),
            process: origin.caller.process,
            call_id: call_id.map(str::to_owned),
            tool: call.tool.clone(),
            fingerprint: judged.unwrap_or_else(|| call.fingerprint()),
            is_command: !call.intent.commands.is_empty(),
            ok,
            exit_code,
            result: Some(result),
            carried: is_carried.then(|| self.carried(place, ticket)).filter(|_| call.family == Some(Family::Bash)),
            files: call.intent.writes.iter().map(|change| in_project(&change.path)).take(FILES_MAX).collect(),
        };
        let beside = self.projects.beside(self.gate.ledger(), origin.host, &place.project)?;
        let kept = self.kept_for(origin, place, over)?;
        self.change(&place.agent, RunChange::CallEnded { report: Box::new(report), beside })?;
        if let Some((decision_id, scope)) = kept {
            self.keep_after_call(&place.agent, &place.project, decision_id, scope);
        }
        Ok(())
    }

    fn carried(&self, place: &Place, ticket: Option<&str>) -> Carried {
        let Some(ticket) = ticket else { return Carried::Nothing };
        self.gate.ledger().number_of_ticket(&place.agent, ticket).map_or(Carried::Unknown, Carried::Of)
    }

    /// What was judged by this name: of the few tools whose input the host changes itself, nothing else can be compared.
    fn judged(&self, origin: &Origin<'_>, place: &Place, call_id: Option<&str>) -> Result<Option<Digest>, DoorFault> {
        let run = self.standing(place)?.run;
        let is_it = |open: &&OpenCall| {
            call_id.is_some() && open.call_id.as_deref() == call_id && open.process == origin.caller.process
        };
        Ok(run.open.iter().find(is_it).map(|open| open.fingerprint))
    }

    /// No call of this turn is under way any more.
    pub fn end_turn(&self, origin: &Origin<'_>, place: &Place) -> Result<(), DoorFault> {
        let subagent = origin.subagent.map(str::to_owned);
        self.change(&place.agent, RunChange::TurnEnded(TurnEnded { process: origin.caller.process, subagent }))
    }

    /// Rules on a transition that an agent asks for.
    pub fn transition(
        &self,
        host: &str,
        place: &Place,
        event: String,
        data: Context,
        expected_revision: Option<u64>,
    ) -> Result<Transitioned, DoorFault> {
        self.enrol_unknown(host, place)?;
        let command = TransitionCommand { agent: place.agent.clone(), event, data, expected_revision };
        let answer = self.submit(Command::Transition(Box::new(command)));
        let Answer::Recorded(recorded) = answer else { return Err(fault_of(&answer)) };
        let Body::Transitioned(made) = recorded.entry.body else { return Err(DoorFault::Refused(Code::FaultInternal)) };
        Ok(*made)
    }

    /// Where an agent stands, as last committed.
    pub fn standing(&self, place: &Place) -> Result<Standing, DoorFault> {
        Ok(self.gate.standing(&place.agent)?)
    }

    /// Whether refusals hold for an agent.
    pub fn mode(&self, place: &Place) -> Result<Mode, DoorFault> {
        let agent = self.gate.ledger().agent(&place.agent)?;
        let held = agent.is_some_and(|agent| agent.mode == Mode::Enforce);
        let observes = !held || self.gate.bundle().mode() == Mode::Observe;
        Ok(if observes { Mode::Observe } else { Mode::Enforce })
    }

    pub(crate) fn submit(&self, command: Command) -> Answer {
        self.gate.ledger().submit_and_wait(command)
    }

    pub(crate) fn change(&self, agent: &str, change: RunChange) -> Result<(), DoorFault> {
        self.note_down(Command::ChangeRun { agent: agent.to_owned(), change })
    }

    /// Hands a command to the ledger, which takes it before all that is handed to it later, and does not wait for the
    /// disk. What the ledger does not take is refused at once.
    pub(crate) fn hand_in(&self, command: Command) -> Result<(), DoorFault> {
        let (sender, receiver) = std::sync::mpsc::channel();
        // Nobody need be there any more when it is recorded.
        self.gate.ledger().submit(command, move |answer| drop(sender.send(answer)));
        receiver.try_recv().map_or(Ok(()), |answer| noted(&answer))
    }

    fn note_down(&self, command: Command) -> Result<(), DoorFault> {
        noted(&self.submit(command))
    }
}

fn noted(answer: &Answer) -> Result<(), DoorFault> {
    if matches!(answer, Answer::Recorded(_) | Answer::Done) { Ok(()) } else { Err(fault_of(answer)) }
}

pub(crate) fn fault_of(answer: &Answer) -> DoorFault {
    match answer {
        Answer::Refused(code) | Answer::Fault(code) => DoorFault::Refused(*code),
        Answer::Unknown => DoorFault::Refused(Code::FaultStore),
        Answer::Recorded(_)
        | Answer::NeedsEvidence(_)
        | Answer::Blocked(_)
        | Answer::BudgetSpent(_)
        | Answer::Stale(_)
        | Answer::Passed(_)
        | Answer::Done => DoorFault::Refused(Code::FaultInternal),
    }
}

/// The one command line of a call, and where it runs, if a runner can run it.
fn line_to_run(call: &Call, cwd: &str, home: Option<&str>) -> Option<LineToRun> {
    let [line] = call.intent.commands.as_slice() else { return None };
    let directory = paths::resolve(call.intent.directory.as_deref().unwrap_or(cwd), cwd, home);
    Some(LineToRun { line: Digest::of(&[line]), directory: Digest::of(&[directory.known()?]) })
}

/// What a person would have to decide on.
fn kept_text(call: &Call) -> String {
    format!("{{\"action\":{{\"tool\":{},\"parameters\":{}}}}}", quote(&call.tool), call.input.canonical())
}
