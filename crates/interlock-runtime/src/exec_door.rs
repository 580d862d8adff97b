//! The door for runners: a command is to be started, and what comes back is the bound the kernel is to hold it to; later
//! its end is told. A start is on record before it is answered. An end is answered once it is sure to be recorded before
//! whatever is told later: the runner need not wait for the disk, and an end that is lost meets no fact.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use interlock_core::action::{CallEvidence, PassAsked, PassRuling, PhaseEvidence, decide_start};
use interlock_core::call::Effect;
use interlock_core::contain::{Bound, Rung};
use interlock_core::ledger::{Entry, ExecEnded, ExecStarted};
use interlock_core::workflow::{ExecTicket, OpenCall};
use interlock_core::{Code, Digest};
use interlock_keep::Scope;
use interlock_verifiers::shell::{Setting, examine};

use crate::bound::{BoundGround, bound_of, temporary_of};
use crate::call_gate::Standing;
use crate::clock::hex;
use crate::coding_agents::{Known, project_of};
use crate::keeper::Taken;
use crate::ledger::{Answer, Command, RunChange};
use crate::paths;
use crate::tool_door::{DoorFault, Origin, Place, ToolDoor, fault_of};

/// How many runs are looked through for a call that is to start.
const RUNS_MAX: usize = 1_000;

/// A command that a runner is about to start, with its ticket.
#[derive(Debug, Clone, Copy)]
pub struct StartComing<'a> {
    /// The ticket.
    pub ticket: &'a str,
    /// The command line, as it was judged.
    pub line: &'a str,
    /// The directory it would run in.
    pub directory: &'a str,
    /// The host process behind the runner.
    pub process: Digest,
    /// It starts with the ruling, for a runner that a sandbox may keep from asking.
    pub by_hook: bool,
}

/// A command that may start.
#[derive(Debug, Clone)]
pub struct StartAnswer {
    /// By what its end is told.
    pub exec_id: String,
    /// The decision that let it run.
    pub decision_id: String,
    /// What the kernel is to hold it to; none if it runs as it is.
    pub bound: Option<Bound>,
    /// The directory for temporary files of its session.
    pub temp: Option<PathBuf>,
    /// Variables that the phase takes away.
    pub env_blocked: Vec<String>,
    /// Variables that the phase sets.
    pub env_set: Vec<(String, String)>,
}

impl ToolDoor {
    /// Lets a runner start the command of a call that was judged, once.
    pub fn start(&self, coming: &StartComing<'_>) -> Result<StartAnswer, DoorFault> {
        let ledger = self.gate.ledger();
        let unknown = || DoorFault::Refused(Code::ContainTicket);
        let (decision_id, entry) = self.judged_by(coming.ticket)?;
        let agent = entry.agent.clone().ok_or_else(unknown)?;
        let row = ledger.agent(&agent)?.ok_or_else(unknown)?;
        let standing = self.gate.standing(&agent)?;
        let directory = std::fs::canonicalize(coming.directory).map_err(|_| unknown())?;
        let directory = directory.to_str().ok_or_else(unknown)?;
        let mut started = ExecStarted {
            exec_id: self.exec_id()?,
            decision_id: decision_id.clone(),
            line: Digest::of(&[coming.line]),
            directory: Digest::of(&[directory]),
            profile: None,
            bound: None,
            foreign: false,
            by_hook: coming.by_hook,
            kept: None,
        };
        let open = decide_start(&row, &standing.run, &started.asked(), ledger.now()).map_err(DoorFault::Refused)?;
        started.profile = open.ticket.as_ref().and_then(|ticket| ticket.profile.clone());
        // What nothing holds could read the secret that the runner tells by, and tell in its place.
        let may_be_forged = coming.by_hook && started.profile.is_none();
        started.foreign = open.foreign || open.process != coming.process || may_be_forged;
        let facts = entry.body.ruled().and_then(|ruled| ruled.facts.as_ref()?.call.as_deref());
        let evidence = entry.body.ruled().and_then(|ruled| ruled.evidence.as_ref()?.call.as_deref());
        let project = row.profile.description.clone().unwrap_or_else(|| directory.to_owned());
        let session = facts.map(|call| call.session.clone()).unwrap_or_default();
        let effects = evidence.map(|found| found.effects.as_slice()).unwrap_or_default();
        let named = self.named_in(coming.line, directory);
        let observed = entry.body.ruled().is_some_and(|ruled| ruled.observed);
        let changes = evidence.is_none_or(CallEvidence::changes);
        let kept = match changes {
            true => self.keep_before(&project, &Scope::All, &decision_id, observed)?,
            false => None,
        };
        let held = evidence.and_then(|found| found.bound.as_ref());
        // It was approved because what it may destroy is kept.
        if changes && held.is_some_and(|bound| bound.keeps) && !observed && kept.is_none() {
            return Err(DoorFault::Refused(Code::KeepFailed));
        }
        started.kept = kept.as_ref().map(|taken| taken.snapshot.id.to_string());
        let rung = held.map(|bound| bound.abilities.rung()).unwrap_or_default();
        let wanted = Wanted { project: &project, named: &named, effects, rung, kept: kept.as_ref() };
        let bound = started.profile.as_deref().map(|name| self.bound(name, &wanted)).transpose()?;
        let temp = match &bound {
            Some(_) => {
                Some(temporary_of(&self.ground.home, &session).map_err(|_| DoorFault::Refused(Code::ContainSetup))?)
            }
            None => None,
        };
        started.bound = bound.as_ref().and_then(digest_of);
        let judged_in = evidence.and_then(|found| found.phase.as_ref()).filter(|_| !observed);
        let (env_blocked, env_set) = phase_environment(&standing, judged_in)?;
        let exec_id = started.exec_id.clone();
        self.change(&agent, RunChange::StartExec(Box::new(started)))?;
        Ok(StartAnswer { exec_id, decision_id, bound, temp, env_blocked, env_set })
    }

    /// The ticket of a call whose command was started with the ruling and is not known to have ended, and by what its end
    /// is told.
    pub fn started_by_hook(
        &self,
        origin: &Origin<'_>,
        place: &Place,
        call_id: Option<&str>,
    ) -> Result<Option<(String, String)>, DoorFault> {
        let run = self.standing(place)?.run;
        let is_it = |open: &&OpenCall| {
            call_id.is_some() && open.call_id.as_deref() == call_id && open.process == origin.caller.process
        };
        let started = run.open.iter().filter(is_it).find_map(|open| {
            let exec = run.execs.iter().find(|exec| exec.by_hook == Some(open.decision))?;
            let ticket = self.gate.ledger().ticket_for(&open.ticket.as_ref()?.decision_id)?;
            Some((ticket, exec.exec_id.clone()))
        });
        Ok(started)
    }

    /// Hands in how a command ended that was started with a ticket.
    pub fn end_exec(&self, ticket: &str, ended: ExecEnded) -> Result<(), DoorFault> {
        let (decision_id, entry) = self.judged_by(ticket)?;
        let evidence = entry.body.ruled().and_then(|ruled| ruled.evidence.as_ref()?.call.as_deref());
        let changes = evidence.is_none_or(CallEvidence::changes);
        let agent = entry.agent.ok_or(DoorFault::Refused(Code::ContainTicket))?;
        self.hand_in(Command::ChangeRun { agent: agent.clone(), change: RunChange::EndExec(Box::new(ended)) })?;
        let row = self.gate.ledger().agent(&agent)?;
        if let Some(project) = row.as_ref().and_then(|row| row.profile.description.as_deref()).filter(|_| changes) {
            self.keep_after_call(&agent, project, decision_id, Scope::All);
        }
        Ok(())
    }

    /// The decision that a ticket is for, and its entry.
    fn judged_by(&self, ticket: &str) -> Result<(String, Entry), DoorFault> {
        let unknown = || DoorFault::Refused(Code::ContainTicket);
        let decision_id = self.gate.ledger().decision_of(ticket).ok_or_else(unknown)?;
        let entry = self.gate.ledger().ruling(&decision_id)?.ok_or_else(unknown)?.entry;
        Ok((decision_id, entry))
    }

    /// Whether a runner may start something that no agent's call is, or that has no ticket.
    pub fn start_without(&self, host: &str, directory: &str, asked: PassAsked) -> Result<PassRuling, DoorFault> {
        let place = self.place_in(host, directory);
        let place = place.ok_or(DoorFault::Unreadable("the directory of the command cannot be found"))?;
        // A host starts its servers before its first event may have come in.
        self.enrol_unknown(host, &place)?;
        self.pass(&place, asked)
    }

    /// The ticket of the one call that was judged for this line in this directory and has not started; none if there is
    /// none. Of several nobody could tell which is meant.
    pub fn only_open(&self, line: &str, directory: &str) -> Result<Option<String>, DoorFault> {
        let unknown = || DoorFault::Refused(Code::ContainTicket);
        let directory = std::fs::canonicalize(directory).map_err(|_| unknown())?;
        let (line, directory) = (Digest::of(&[line]), Digest::of(&[directory.to_str().ok_or_else(unknown)?]));
        let mut found: Vec<String> = Vec::new();
        for (_, run) in self.gate.ledger().runs("", RUNS_MAX)? {
            let tickets = run.open.iter().filter_map(|open| open.ticket.as_ref());
            let is_it = |ticket: &&ExecTicket| ticket.runs.line == line && ticket.runs.directory == directory;
            found.extend(tickets.filter(is_it).map(|ticket| ticket.decision_id.clone()));
        }
        match found.as_slice() {
            [] => Ok(None),
            [only] => Ok(self.gate.ledger().ticket_for(only)),
            _ => Err(unknown()),
        }
    }

    /// Counts a command that a person runs, and says what the kernel is to hold it to. It meets no fact.
    pub fn start_own(
        &self,
        profile: &str,
        directory: &str,
        project: Option<&str>,
        rung: Rung,
    ) -> Result<Bound, DoorFault> {
        let project = match project {
            Some(project) => project.to_owned(),
            None => project_of(Path::new(directory), |_| Known::No)
                .ok_or(DoorFault::Unreadable("the directory of the command cannot be found"))?,
        };
        let wanted = Wanted { project: &project, named: &[], effects: &[Effect::Unknown], rung, kept: None };
        let bound = self.bound(profile, &wanted)?;
        let answer = self.submit(Command::PassOwnRun);
        if matches!(answer, Answer::Passed(PassRuling::Passes(_))) { Ok(bound) } else { Err(fault_of(&answer)) }
    }

    /// The bound of a profile, here and now.
    fn bound(&self, profile: &str, wanted: &Wanted<'_>) -> Result<Bound, DoorFault> {
        let Wanted { project, named, effects, rung, kept } = *wanted;
        let bundle = self.gate.bundle();
        let profile = bundle.profiles().get(profile).ok_or(DoorFault::Refused(Code::ContainSetup))?;
        let own = self.own_places(project);
        let ground = BoundGround {
            project: Path::new(project),
            user_home: self.ground.user_home.as_deref().map(Path::new),
            home: &self.ground.home,
            own: &own,
            on_path: &self.ground.on_path,
            named,
            effects,
            rung,
            kept,
        };
        // Where the guarded places cannot all be found, nothing can promise that they are out of reach.
        bound_of(profile, &ground).map_err(|_| DoorFault::Refused(Code::ContainSetup))
    }

    /// The paths that a line names, resolved: every word of its commands that is one, wherever it leads.
    fn named_in(&self, line: &str, directory: &str) -> Vec<String> {
        let setting = self.gate.with_ground(|ground| Setting::with(ground.commands.clone()));
        let Some(setting) = setting else { return Vec::new() };
        let (_, words) = examine(line, &setting);
        let home = self.ground.user_home.as_deref();
        let all = words.commands.iter().flat_map(|command| command.words.iter().flatten());
        let places = all.flat_map(|word| [Some(word.as_str()), word.split_once('=').map(|(_, value)| value)]).flatten();
        let touched = words.touches.iter().filter_map(|touch| touch.path.as_deref());
        let is_path = |text: &&str| text.starts_with(['/', '~', '.']) || text.contains('/');
        let found = places
            .chain(touched)
            .filter(is_path)
            .filter_map(|text| paths::resolve(text, directory, home).known().map(str::to_owned));
        found.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn own_places(&self, project: &str) -> Vec<String> {
        let settings = format!("{project}/{}", interlock_core::places::PROJECT_SETTINGS);
        self.ground.own.iter().cloned().chain([settings]).collect()
    }

    /// A secret for one call.
    pub fn secret(&self) -> Result<Digest, DoorFault> {
        let mut random = [0; 32];
        self.entropy.fill(&mut random).map_err(|_| DoorFault::Refused(Code::FaultInternal))?;
        Ok(Digest::from_bytes(random))
    }

    fn exec_id(&self) -> Result<String, DoorFault> {
        let mut random = [0; 16];
        self.entropy.fill(&mut random).map_err(|_| DoorFault::Refused(Code::FaultInternal))?;
        Ok(format!("exec_{}", hex(&random)))
    }
}

/// What a bound is wanted for.
struct Wanted<'a> {
    project: &'a str,
    /// What the line names.
    named: &'a [String],
    effects: &'a [Effect],
    /// By what it was decided that the command is held.
    rung: Rung,
    /// The state that was kept before.
    kept: Option<&'a Taken>,
}

/// Names of variables to take away, and variables to set.
type Environment = (Vec<String>, Vec<(String, String)>);

/// What the phase that a call was judged in says of variables. The run may be in another one by now, which might give to
/// this command what its own keeps from it.
fn phase_environment(standing: &Standing, judged_in: Option<&PhaseEvidence>) -> Result<Environment, DoorFault> {
    let Some(phase) = judged_in else { return Ok((Vec::new(), Vec::new())) };
    let workflow = standing.workflow.as_deref().filter(|workflow| workflow.digest() == phase.workflow);
    let state = workflow.and_then(|workflow| workflow.state(workflow.find(&phase.state)?));
    // Another workflow was put in force meanwhile: what this phase said cannot be read any more.
    let state = state.ok_or(DoorFault::Refused(Code::ContainTicket))?;
    let set = state.env_overrides.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    Ok((state.blocked_env.clone(), set))
}

fn digest_of(bound: &Bound) -> Option<Digest> {
    serde_json::to_vec(bound).ok().map(|text| Digest::of_bytes(&text))
}
