//! The door for operators: what calls changed, and bringing it back. An undo is on record before it touches anything, and
//! so is how it ended; one that was cut short is settled at the next start.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlock_core::action::{Actor, Millis};
use interlock_core::bundle::Keeping;
use interlock_core::ledger::{UndoEnded, UndoOutcome, UndoStarted};
use interlock_core::{Code, Digest};
use interlock_keep::{
    Bounds, Change, Clash, Content, Fate, KeepFault, Kind, LeaveOut, Node, Plan, Scope, Snapshot, SnapshotId, Store,
    Undo, Undone, Why,
};

use crate::clock::{Entropy, hex};
use crate::coding_agents::{Projects, for_each_run};
use crate::gate::Gate;
use crate::keep_door::pruned_entry;
use crate::keeper::Keeper;
use crate::kept_calls::{KeptCall, UNDO, kept_calls, undone};
use crate::ledger::{Answer, Command, Ledger, RunChange, StoreFault};

/// How far is looked back for the last call, one after the other: an hour, a day.
const LOOKED_BACK_MS: [Millis; 2] = [3_600_000, 86_400_000];

/// Which calls are meant: those of which all is so that is given; without any of it, the last one that changed something
/// and was not undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Which {
    /// This one, or this undo.
    pub call: Option<String>,
    /// Since a time.
    pub since: Option<Millis>,
    /// Of a session.
    pub session: Option<String>,
}

impl Which {
    fn is_last(&self) -> bool {
        *self == Which::default()
    }

    /// Whether a call is meant. An undo is meant only by its own name.
    fn means(&self, call: &KeptCall) -> bool {
        self.call.as_ref().map_or(call.tool != UNDO, |id| call.id == *id)
            && self.since.is_none_or(|since| call.at >= since)
            && self.session.as_ref().is_none_or(|session| call.session == *session)
    }
}

/// Why an operator gets no answer.
#[derive(Debug)]
pub enum UndoFault {
    /// Nobody works in this directory.
    NoProject,
    /// There is no such call, or nothing was kept for it.
    NothingKept,
    /// The tree, or what is kept, is not what the plan was made of.
    PlanChanged,
    /// The store cannot do it.
    Keep(KeepFault),
    /// The ledger cannot do it.
    Refused(Code),
    /// The ledger is not available.
    Store(StoreFault),
}

impl From<KeepFault> for UndoFault {
    fn from(fault: KeepFault) -> UndoFault {
        UndoFault::Keep(fault)
    }
}

impl From<StoreFault> for UndoFault {
    fn from(fault: StoreFault) -> UndoFault {
        UndoFault::Store(fault)
    }
}

/// The door for operators.
pub struct UndoDoor<'a> {
    /// The gate, with the ledger.
    pub gate: &'a Arc<Gate>,
    /// Where coding agents work.
    pub projects: &'a Projects,
    /// The stores.
    pub keeper: &'a Keeper,
    /// For ids.
    pub entropy: &'a dyn Entropy,
}

/// Calls of one project, as they are to be shown or undone.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The project.
    pub project: String,
    /// The calls that are meant, the newest first.
    pub calls: Vec<KeptCall>,
    /// Those that were under way at the same time and are not meant.
    beside: Vec<KeptCall>,
}

/// What an undo would do, or did.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Its SHA-256, by which it is carried out.
    pub digest: Digest,
}

/// An undo that was carried out.
#[derive(Debug)]
pub struct CarriedOut {
    /// By this it can be undone.
    pub undo_id: String,
    /// What was planned.
    pub plan: Plan,
    /// What became of it.
    pub undone: Undone,
}

impl UndoDoor<'_> {
    /// The project that a directory belongs to.
    pub fn project(&self, directory: &Path) -> Result<String, UndoFault> {
        self.projects.above(self.gate.ledger(), directory)?.ok_or(UndoFault::NoProject)
    }

    /// Finds the calls that are meant. One that is named is found wherever the asker is.
    pub fn choose(&self, directory: &Path, which: &Which) -> Result<Chosen, UndoFault> {
        let ledger = self.gate.ledger();
        let (project, since) = match &which.call {
            Some(id) if id.starts_with("dec_") => {
                let found = ledger.ruling(id)?.ok_or(UndoFault::NothingKept)?;
                let agent = found.entry.agent.as_deref().ok_or(UndoFault::NothingKept)?;
                let agent = ledger.agent(agent)?.ok_or(UndoFault::NothingKept)?;
                (agent.profile.description.clone().ok_or(UndoFault::NothingKept)?, Some(found.entry.at))
            }
            Some(_) | None => (self.project(directory)?, which.since),
        };
        let agents = self.projects.agents_in(ledger, &project)?;
        if since.is_some() || which.session.is_some() {
            return self.choose_since(project, &agents, which, since);
        }
        // What is meant is new, most often, and the ledger may be long.
        let now = ledger.now();
        for window in LOOKED_BACK_MS {
            match self.choose_since(project.clone(), &agents, which, Some(now.saturating_sub(window))) {
                Err(UndoFault::NothingKept) => {}
                found => return found,
            }
        }
        self.choose_since(project, &agents, which, None)
    }

    /// Finds the calls that are meant among those since a time.
    fn choose_since(
        &self,
        project: String,
        agents: &[String],
        which: &Which,
        since: Option<Millis>,
    ) -> Result<Chosen, UndoFault> {
        let all = kept_calls(self.gate.ledger(), agents, since)?;
        let undone = undone(&all);
        let is_left = |call: &KeptCall| which.call.is_some() || !undone.contains(&call.id);
        let mut meant: Vec<KeptCall> = all.iter().filter(|call| which.means(call) && is_left(call)).cloned().collect();
        if which.is_last() {
            meant = self.last_of(&project, meant)?;
        }
        if meant.is_empty() {
            return Err(UndoFault::NothingKept);
        }
        let is_beside = |call: &&KeptCall| !meant.contains(call) && meant.iter().any(|one| one.overlaps(call));
        let beside = all.iter().filter(is_beside).cloned().collect();
        Ok(Chosen { project, calls: meant, beside })
    }

    /// The newest of some calls that changed something and is no undo.
    fn last_of(&self, project: &str, calls: Vec<KeptCall>) -> Result<Vec<KeptCall>, UndoFault> {
        self.with(project, |store, leave_out, now| {
            for call in calls {
                let Some((before, after)) = span(store, &call, leave_out, now)? else { continue };
                match store.changes(&before, &after) {
                    Ok(changes) if changes.is_empty() => {}
                    // What was dropped since cannot be undone; what is older may be there.
                    Err(KeepFault::NoSuchSnapshot { .. }) => {}
                    Ok(_) => return Ok(vec![call]),
                    Err(fault) => return Err(fault),
                }
            }
            Ok(Vec::new())
        })
    }

    /// Uses the store of a project.
    pub fn with<T>(
        &self,
        project: &str,
        act: impl FnOnce(&mut Store, LeaveOut<'_>, Millis) -> Result<T, KeepFault>,
    ) -> Result<T, UndoFault> {
        let now = self.gate.ledger().now();
        let keeping = self.keeping();
        Ok(self.keeper.with(Path::new(project), &keeping, |store, leave_out| act(store, leave_out, now))?)
    }

    fn keeping(&self) -> Keeping {
        self.gate.bundle().keeping()
    }

    /// What a call changed, with what `look` makes of each change.
    pub fn changes<T>(
        &self,
        project: &str,
        call: &KeptCall,
        mut look: impl FnMut(&mut Store, &Change) -> Result<T, KeepFault>,
    ) -> Result<Vec<T>, UndoFault> {
        let found = self.with(project, |store, leave_out, now| {
            let Some((before, after)) = span(store, call, leave_out, now)? else { return Ok(None) };
            let changes = store.changes(&before, &after)?;
            changes.iter().map(|change| look(store, change)).collect::<Result<Vec<T>, KeepFault>>().map(Some)
        })?;
        found.ok_or(UndoFault::NothingKept)
    }

    /// What an undo would do.
    pub fn plan(&self, chosen: &Chosen, paths: &[PathBuf]) -> Result<Planned, UndoFault> {
        let planned = self.with(&chosen.project, |store, leave_out, now| plan(store, chosen, paths, leave_out, now))?;
        planned.ok_or(UndoFault::NothingKept)
    }

    /// Carries a plan out, if it still is what was shown.
    pub fn carry_out(
        &self,
        chosen: &Chosen,
        paths: &[PathBuf],
        digest: Digest,
        by: Actor,
    ) -> Result<CarriedOut, UndoFault> {
        let mut random = [0; 16];
        self.entropy.fill(&mut random).map_err(|_| UndoFault::Refused(Code::FaultInternal))?;
        let undo_id = format!("undo_{}", hex(&random));
        let newest = chosen.calls.first().ok_or(UndoFault::NothingKept)?;
        // From the first look to the last word nobody else uses the store.
        self.with(&chosen.project, |store, leave_out, now| {
            let Some(planned) = plan(store, chosen, paths, leave_out, now)? else {
                return Ok(Err(UndoFault::NothingKept));
            };
            if planned.digest != digest {
                return Ok(Err(UndoFault::PlanChanged));
            }
            let started = UndoStarted {
                undo_id: undo_id.clone(),
                undoes: chosen.calls.iter().map(|call| call.id.clone()).collect(),
                plan: planned.digest,
                kept: planned.plan.now.to_string(),
                by,
            };
            if let Err(fault) = self.record(&newest.agent, RunChange::StartUndo(Box::new(started))) {
                return Ok(Err(fault));
            }
            let undone = store.carry_out(&planned.plan, leave_out, now);
            let ended = ended(&undo_id, undone.as_ref());
            if let Err(fault) = self.end(&newest.agent, &chosen.project, ended) {
                return Ok(Err(fault));
            }
            Ok(undone.map(|undone| CarriedOut { undo_id, plan: planned.plan, undone }).map_err(UndoFault::Keep))
        })?
    }

    fn end(&self, agent: &str, project: &str, ended: UndoEnded) -> Result<(), UndoFault> {
        let agents = self.projects.agents_in(self.gate.ledger(), project)?;
        let beside = agents.into_iter().filter(|other| other != agent).collect();
        self.record(agent, RunChange::EndUndo { ended: Box::new(ended), beside })
    }

    fn record(&self, agent: &str, change: RunChange) -> Result<(), UndoFault> {
        let answer = self.gate.ledger().submit_and_wait(Command::ChangeRun { agent: agent.to_owned(), change });
        match answer {
            Answer::Recorded(_) => Ok(()),
            Answer::Refused(code) | Answer::Fault(code) => Err(UndoFault::Refused(code)),
            Answer::Unknown => Err(UndoFault::Refused(Code::FaultStore)),
            Answer::NeedsEvidence(_)
            | Answer::Blocked(_)
            | Answer::BudgetSpent(_)
            | Answer::Stale(_)
            | Answer::Passed(_)
            | Answer::Done => Err(UndoFault::Refused(Code::FaultInternal)),
        }
    }

    /// All kept states of a project, the oldest first, and what they take.
    pub fn snapshots(&self, project: &str) -> Result<(Vec<Snapshot>, u64), UndoFault> {
        self.with(project, |store, _, _| Ok((store.snapshots()?, store.bytes()?)))
    }

    /// One kept state, and what it left out.
    pub fn snapshot(&self, project: &str, id: &SnapshotId) -> Result<(Snapshot, Vec<(PathBuf, Why)>), UndoFault> {
        self.with(project, |store, _, _| Ok((store.snapshot(id)?, store.left_out(id)?)))
    }

    /// Drops kept states of a project: those beyond the limits, or all but those of calls that are under way.
    pub fn prune(&self, project: &str, all: bool, by: Actor) -> Result<interlock_keep::Pruned, UndoFault> {
        let (keeping, now) = (self.keeping(), self.gate.ledger().now());
        let bounds = match all {
            true => Bounds { age_ms_max: 0, bytes_max: 0 },
            false => Bounds { age_ms_max: keeping.age_ms_max, bytes_max: keeping.bytes_max },
        };
        let agents = self.projects.agents_in(self.gate.ledger(), project)?;
        let agent = agents.first().ok_or(UndoFault::NoProject)?;
        // What was made in this very millisecond is as old as any other.
        let now = if all { now.saturating_add(1) } else { now };
        let pruned = self.keeper.prune(Path::new(project), &keeping, &bounds, now)?;
        let entry = interlock_core::ledger::Pruned { by: Some(by), ..pruned_entry(&pruned) };
        self.record(agent, RunChange::Prune(Box::new(entry)))?;
        Ok(pruned)
    }

    /// All projects in which coding agents work.
    pub fn all_projects(&self) -> Result<BTreeSet<String>, UndoFault> {
        Ok(self.projects.all(self.gate.ledger())?)
    }
}

/// The states before and after a call. Of one whose end nobody told, whatever is there now is what it left.
fn span(
    store: &mut Store,
    call: &KeptCall,
    leave_out: LeaveOut<'_>,
    now: Millis,
) -> Result<Option<(SnapshotId, SnapshotId)>, KeepFault> {
    let Some((before, _)) = &call.before else { return Ok(None) };
    let after = match &call.after {
        Some((after, _)) => after.clone(),
        None => store.keep(&Scope::All, leave_out, now)?.id,
    };
    Ok(Some((before.clone(), after)))
}

fn plan(
    store: &mut Store,
    chosen: &Chosen,
    paths: &[PathBuf],
    leave_out: LeaveOut<'_>,
    now: Millis,
) -> Result<Option<Planned>, KeepFault> {
    let mut spans = Vec::new();
    for call in &chosen.calls {
        spans.extend(span(store, call, leave_out, now)?);
    }
    let mut spans = spans.into_iter();
    let Some((before, after)) = spans.next() else { return Ok(None) };
    let both = |call: &KeptCall| Some((call.before.clone()?.0, call.after.clone()?.0));
    let overlapping = chosen.beside.iter().filter_map(both).collect();
    let undo = Undo { before, after, earlier: spans.collect(), overlapping, named: paths.to_vec() };
    let plan = store.plan(&undo, leave_out, now)?;
    let digest = digest_of(&plan);
    Ok(Some(Planned { plan, digest }))
}

/// What a plan does, in one number: whoever agreed to it agreed to this.
fn digest_of(plan: &Plan) -> Digest {
    let mut text = String::new();
    for step in &plan.steps {
        let (path, fate) = (hex(step.path.as_os_str().as_encoded_bytes()), fate_word(step.fate));
        let [before, now] = [&step.before, &step.now].map(|node| node.as_ref().map_or_else(String::new, node_text));
        text.push_str(&format!("{path} {fate} {before} {now}\n"));
    }
    Digest::of(&[&text])
}

fn node_text(node: &Node) -> String {
    let kind = match &node.kind {
        Kind::File { size, content: Content::Whole(digest) | Content::Pieces(digest) | Content::Linked(digest) } => {
            format!("file {size} {digest}")
        }
        Kind::Link { target } => format!("link {}", hex(target)),
        Kind::Directory { .. } => "directory".to_owned(),
        Kind::LeftOut { why, .. } => format!("left out {}", why.word()),
    };
    let xattrs: Vec<String> = node.xattrs.iter().map(|(name, value)| format!("{}={}", hex(name), hex(value))).collect();
    let (user, group) = node.owner;
    format!("{kind} {:o} {user}:{group} {}", node.mode, xattrs.join(","))
}

fn fate_word(fate: Fate) -> &'static str {
    match fate {
        Fate::Restored => "restored",
        Fate::AsBefore => "as before",
        Fate::Clash(Clash::ChangedSince) => "changed since",
        Fate::Clash(Clash::Overlapping) => "overlapping",
        Fate::Clash(Clash::HoldsOthers) => "holds others",
        Fate::NotKept(_) => "not kept",
    }
}

fn ended(undo_id: &str, undone: Result<&Undone, &KeepFault>) -> UndoEnded {
    let paths = undone.map(|undone| undone.paths.as_slice()).unwrap_or_default();
    let count = |is_it: fn(&Fate) -> bool| {
        u64::try_from(paths.iter().filter(|(_, fate)| is_it(fate)).count()).unwrap_or(u64::MAX)
    };
    UndoEnded {
        undo_id: undo_id.to_owned(),
        outcome: if undone.is_ok() { UndoOutcome::Done } else { UndoOutcome::Failed },
        after: undone.ok().map(|undone| undone.after.to_string()),
        restored: count(|fate| *fate == Fate::Restored),
        conflicts: count(|fate| matches!(fate, Fate::Clash(_))),
    }
}

/// Settles every undo that was under way when the service stopped. Returns how many there were.
pub fn settle_open_undos(ledger: &Ledger) -> Result<usize, StoreFault> {
    let (mut open, mut places) = (Vec::new(), Vec::new());
    for_each_run(ledger, |agent, run| {
        open.extend(run.undoing.map(|undo_id| (agent.to_owned(), undo_id)));
        let project = ledger.agent(agent)?.and_then(|row| row.profile.description.clone());
        places.push((agent.to_owned(), project));
        Ok(())
    })?;
    for (agent, undo_id) in &open {
        let project = places.iter().find(|(known, _)| known == agent).and_then(|(_, project)| project.as_ref());
        let is_beside = |(other, there): &&(String, Option<String>)| other != agent && there.as_ref() == project;
        let beside = places.iter().filter(is_beside).map(|(other, _)| other.clone()).collect();
        let ended = UndoEnded {
            undo_id: undo_id.clone(),
            outcome: UndoOutcome::Interrupted,
            after: None,
            restored: 0,
            conflicts: 0,
        };
        let change = RunChange::EndUndo { ended: Box::new(ended), beside };
        let answer = ledger.submit_and_wait(Command::ChangeRun { agent: agent.clone(), change });
        if !matches!(answer, Answer::Recorded(_)) {
            return Err(StoreFault::new("the outcome of an undo could not be recorded"));
        }
    }
    Ok(open.len())
}
