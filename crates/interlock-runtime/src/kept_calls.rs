//! Which kept states belong to which call: read from the entries of the agents of a project, the newest first. There is no
//! table of its own; the ledger says it all.

use std::collections::BTreeMap;

use interlock_core::action::Millis;
use interlock_core::ledger::{Body, Entry, KeptAt, UndoOutcome};
use interlock_keep::SnapshotId;

use crate::ledger::{Ledger, StoreFault};

/// How many entries of an agent are looked through.
const LOOKED_AT_MAX: usize = 200_000;
/// How many more, for what began before the time that was asked for and ended after it.
const BEFORE_MAX: usize = 2_000;

/// What an undo is called among tools.
pub const UNDO: &str = "undo";

/// A call, or an undo, that has kept states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptCall {
    /// `dec_…`, or `undo_…`.
    pub id: String,
    /// The agent whose call it is; of an undo, the one whose newest call was undone.
    pub agent: String,
    /// When it was let run.
    pub at: Millis,
    /// Its session.
    pub session: String,
    /// The tool; [`UNDO`] for an undo.
    pub tool: String,
    /// The state before it, and when that was taken.
    pub before: Option<(SnapshotId, Millis)>,
    /// The state after it, and when that was taken.
    pub after: Option<(SnapshotId, Millis)>,
    /// What it undoes, if it is an undo.
    pub undoes: Vec<String>,
    /// It did.
    pub has_undone: bool,
}

impl KeptCall {
    /// Whether another was under way at the same time.
    pub fn overlaps(&self, other: &KeptCall) -> bool {
        let span = |call: &KeptCall| {
            let from = call.before.as_ref().map_or(call.at, |(_, at)| *at);
            (from, call.after.as_ref().map_or(Millis::MAX, |(_, at)| *at))
        };
        let ((from, to), (other_from, other_to)) = (span(self), span(other));
        self.id != other.id && from <= other_to && other_from <= to
    }
}

/// The calls with kept states of some agents, the newest first, back to a time.
pub fn kept_calls(ledger: &Ledger, agents: &[String], since: Option<Millis>) -> Result<Vec<KeptCall>, StoreFault> {
    let mut found = Vec::new();
    for agent in agents {
        let mut looking = Looking { agent, found: BTreeMap::new() };
        looking.back(ledger, since)?;
        found.extend(looking.found.into_values().filter(|call| call.before.is_some()));
    }
    found.sort_by(|one, other| (other.at, &other.id).cmp(&(one.at, &one.id)));
    Ok(found)
}

/// Those of some calls and undos that were undone, by undos that were not undone themselves.
pub fn undone(calls: &[KeptCall]) -> Vec<String> {
    let mut undone: Vec<String> = Vec::new();
    // The newest first: an undo that was undone has undone nothing.
    for call in calls {
        if call.has_undone && !undone.contains(&call.id) {
            undone.extend(call.undoes.iter().cloned());
        }
    }
    undone
}

/// Going back through the entries of one agent.
struct Looking<'a> {
    agent: &'a str,
    found: BTreeMap<String, KeptCall>,
}

impl Looking<'_> {
    fn back(&mut self, ledger: &Ledger, since: Option<Millis>) -> Result<(), StoreFault> {
        let Some(agent) = ledger.agent(self.agent)? else { return Ok(()) };
        let (mut seq, mut looked_at, mut beyond) = (agent.entries, 0_usize, 0_usize);
        while seq > 0 && looked_at < LOOKED_AT_MAX {
            let Some(found) = ledger.entry_of(Some(self.agent), seq)? else { return Ok(()) };
            looked_at = looked_at.saturating_add(1);
            if since.is_some_and(|since| found.entry.at < since) {
                beyond = beyond.saturating_add(1);
                // What is older counts only as the beginning of what is known already.
                let is_whole = |call: &KeptCall| call.before.is_some() && !call.tool.is_empty();
                if beyond > BEFORE_MAX || self.found.values().all(is_whole) {
                    return Ok(());
                }
            }
            self.note(&found.entry, beyond > 0);
            seq = seq.saturating_sub(1);
        }
        Ok(())
    }

    fn note(&mut self, entry: &Entry, only_known: bool) {
        let at = entry.at;
        let snapshot = |id: &str| SnapshotId::parse(id).map(|id| (id, at));
        let body = &entry.body;
        if let Body::Kept(kept) = body
            && let Some(call) = self.call(&kept.decision_id, only_known)
        {
            match kept.moment {
                KeptAt::Before => call.before = snapshot(&kept.snapshot),
                KeptAt::After => call.after = snapshot(&kept.snapshot),
            }
        } else if let Body::ExecStarted(started) = body
            && let Some(kept) = &started.kept
            && let Some(call) = self.call(&started.decision_id, only_known)
        {
            call.before = snapshot(kept);
        } else if let Body::Ruled(ruled) = body
            && let Some(facts) = ruled.facts.as_ref().and_then(|facts| facts.call.as_deref())
            && let Some(call) = self.call(&ruled.decision_id, true)
        {
            call.at = at;
            call.session.clone_from(&facts.session);
            call.tool.clone_from(&facts.tool);
        } else if let Body::UndoEnded(undo) = body
            && let Some(call) = self.call(&undo.undo_id, only_known)
        {
            call.after = undo.after.as_deref().and_then(snapshot);
            // What was cut short has undone some of it: whoever wants the rest asks again.
            call.has_undone = undo.outcome == UndoOutcome::Done;
        } else if let Body::UndoStarted(undo) = body
            && let Some(call) = self.call(&undo.undo_id, only_known)
        {
            call.at = at;
            call.tool = UNDO.to_owned();
            call.before = snapshot(&undo.kept);
            call.undoes.clone_from(&undo.undoes);
        }
    }

    /// A call by its id, new unless only those are wanted that are known.
    fn call(&mut self, id: &str, only_known: bool) -> Option<&mut KeptCall> {
        if only_known && !self.found.contains_key(id) {
            return None;
        }
        let new = || KeptCall { id: id.to_owned(), agent: self.agent.to_owned(), ..KeptCall::default() };
        Some(self.found.entry(id.to_owned()).or_insert_with(new))
    }
}
