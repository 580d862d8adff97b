//! What the door keeps of a project around a call: before a command line starts the whole of it, before an edit the named
//! files, and the same again when the end is told. Where refusals hold, what cannot be kept does not run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use interlock_core::Code;
use interlock_core::action::CallEvidence;
use interlock_core::call::{Call, Family};
use interlock_core::ledger::{Kept, KeptAt, Ruled};
use interlock_core::workflow::OpenCall;
use interlock_keep::{KeepFault, Pruned, Scope};

use crate::keeper::Taken;
use crate::ledger::{Command, RunChange};
use crate::paths;
use crate::tool_door::{CallComing, CallOver, DoorFault, Origin, Place, ToolDoor};

impl ToolDoor {
    /// Whether what a call may change in a project is kept.
    pub(crate) fn keeps(&self, project: &str) -> bool {
        self.keeper.covers(Path::new(project), &self.gate.bundle().keeping())
    }

    /// Keeps the state before a call. In observe mode a fault stops nothing, and there is no state then.
    pub(crate) fn keep_before(
        &self,
        project: &str,
        scope: &Scope,
        decision_id: &str,
        observed: bool,
    ) -> Result<Option<Taken>, DoorFault> {
        if !self.keeps(project) {
            return Ok(None);
        }
        let (keeping, now) = (self.gate.bundle().keeping(), self.gate.ledger().now());
        match self.keeper.keep_before(Path::new(project), scope, &keeping, decision_id, now) {
            Ok(taken) => Ok(Some(taken)),
            Err(_) if observed => Ok(None),
            Err(fault) => Err(DoorFault::NotKept(fault)),
        }
    }

    /// Keeps what a call may change that no runner starts: the files that an edit names, or the project.
    pub(crate) fn keep_before_call(
        &self,
        origin: &Origin<'_>,
        place: &Place,
        coming: &CallComing<'_>,
        ruled: &Ruled,
    ) -> Result<(), DoorFault> {
        let Some(scope) = self.scope_of(coming.call, origin.cwd, place, ruled) else { return Ok(()) };
        let taken = self.keep_before(&place.project, &scope, &ruled.decision_id, ruled.observed)?;
        let Some(taken) = taken else { return Ok(()) };
        let kept = kept(&ruled.decision_id, KeptAt::Before, &taken);
        self.change(&place.agent, RunChange::Keep(Box::new(kept)))
    }

    /// What is kept around a call that no runner starts; nothing if there is nothing to keep.
    fn scope_of(&self, call: &Call, cwd: &str, place: &Place, ruled: &Ruled) -> Option<Scope> {
        let facts = ruled.facts.as_ref().and_then(|facts| facts.call.as_deref())?;
        let evidence = ruled.evidence.as_ref().and_then(|evidence| evidence.call.as_deref());
        if !evidence.is_none_or(CallEvidence::changes) {
            return None;
        }
        match call.family {
            Some(Family::Edit | Family::Write) => {
                let home = self.ground.user_home.as_deref();
                let resolved = call.intent.writes.iter().map(|change| paths::resolve(&change.path, cwd, home));
                let in_project = |path: &str| Path::new(path).strip_prefix(&place.project).ok().map(Path::to_owned);
                let named: Vec<PathBuf> = resolved.filter_map(|path| in_project(path.known()?)).collect();
                (!named.is_empty()).then_some(Scope::Paths(named))
            }
            // Before a runner starts a line, it is kept there.
            Some(Family::Bash) => facts.runs.is_none().then_some(Scope::All),
            Some(Family::Read | Family::Grep | Family::Glob | Family::WebFetch | Family::Agent) | None => None,
        }
    }

    /// The call whose end a host tells, and what is kept of it then.
    pub(crate) fn kept_for(
        &self,
        origin: &Origin<'_>,
        place: &Place,
        over: &CallOver<'_>,
    ) -> Result<Option<(String, Scope)>, DoorFault> {
        if !self.keeps(&place.project) {
            return Ok(None);
        }
        let (run, fingerprint) = (self.standing(place)?.run, over.call.fingerprint());
        let is_it = |open: &&OpenCall| {
            let is_named = over.call_id.is_some() && open.call_id.as_deref() == over.call_id;
            open.process == origin.caller.process && (is_named || open.fingerprint == fingerprint)
        };
        let Some(open) = run.open.iter().find(is_it).filter(|open| open.changes) else { return Ok(None) };
        let found = self.gate.ledger().entry_of(Some(&place.agent), open.decision)?;
        let Some(ruled) = found.and_then(|found| found.entry.body.into_ruled()) else { return Ok(None) };
        let scope = self.scope_of(over.call, origin.cwd, place, &ruled);
        Ok(scope.map(|scope| (ruled.decision_id, scope)))
    }

    /// Keeps the state after a call, without holding up whoever told its end. Whoever asks for this project from now on
    /// waits until it is done.
    pub(crate) fn keep_after_call(&self, agent: &str, project: &str, decision_id: String, scope: Scope) {
        let keeping = self.gate.bundle().keeping();
        let project = PathBuf::from(project);
        if !self.keeper.covers(&project, &keeping) {
            return;
        }
        let turn = self.keeper.turn(&project);
        let (keeper, gate, agent) = (Arc::clone(&self.keeper), Arc::clone(&self.gate), agent.to_owned());
        let work = move || {
            let now = gate.ledger().now();
            // What is not kept is missing from the record: an undo then goes by the next state there is.
            let Ok((taken, pruned)) = keeper.keep_after(&turn, &project, &scope, &keeping, &decision_id, now) else {
                return;
            };
            let note =
                |change| drop(gate.ledger().submit_and_wait(Command::ChangeRun { agent: agent.clone(), change }));
            note(RunChange::Keep(Box::new(kept(&decision_id, KeptAt::After, &taken))));
            if let Some(pruned) = pruned {
                note(RunChange::Prune(Box::new(pruned_entry(&pruned))));
            }
        };
        // Without a thread there is no state after it, which stops nothing.
        drop(thread::Builder::new().name("keep".to_owned()).spawn(work));
    }
}

/// The code under which a fault of the store is answered.
pub fn code_of(fault: &KeepFault) -> Code {
    match fault.kind() {
        interlock_keep::FaultKind::CannotKeep => Code::KeepFailed,
        interlock_keep::FaultKind::Damaged => Code::KeepDamaged,
        interlock_keep::FaultKind::Conflict => Code::KeepConflict,
    }
}

/// A fault of the store with all that led to it.
pub fn told(fault: &KeepFault) -> String {
    let mut text = fault.to_string();
    let mut source = std::error::Error::source(fault);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

fn kept(decision_id: &str, moment: KeptAt, taken: &Taken) -> Kept {
    Kept {
        decision_id: decision_id.to_owned(),
        moment,
        snapshot: taken.snapshot.id.to_string(),
        nodes: taken.snapshot.nodes,
        bytes: taken.snapshot.bytes,
        left_out: taken.left_out_kinds(),
    }
}

pub(crate) fn pruned_entry(pruned: &Pruned) -> interlock_core::ledger::Pruned {
    interlock_core::ledger::Pruned {
        snapshots: pruned.dropped.iter().map(ToString::to_string).collect(),
        bytes_before: pruned.bytes_before,
        bytes_after: pruned.bytes_after,
        by: None,
    }
}
