//! What is counted instead of written out, and said once a minute in one entry.
//!
//! Refusals that are like earlier ones of the agent, beyond a bound: their answers name the one they are like, and each
//! counts for trust; as soon as trust falls by them, they are said at once. What counts as alike is decided by
//! `interlock_core::ledger::RefusalKind`.
//!
//! What goes on without a ruling of its own: the first of its kind in an hour is on record before it is answered. What
//! that may be is decided by `interlock_core::action::decide_pass`.
//!
//! What is remembered here is not in the store: after a start an agent begins anew, and counts that no entry says yet are
//! lost with the process, as those of requests without an identity are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::Digest;
use interlock_core::action::{Agent, Millis, PassCount, PassKind};
use interlock_core::ledger::{
    Body, Entry, EntryName, EntryRef, Likeness, Passed, RefusalKind, RefusalsRepeated, Repeat, apply_repeated,
};

use super::{Answer, Batch, Read, Recorded, Trouble};
use crate::ledger::store::KeptText;

/// How long it is remembered what an agent was refused.
const WINDOW_MS: Millis = 3_600_000;
/// So many equal refusals are written out in that time.
const EQUAL_MAX: u32 = 10;
/// So many bytes of refusals are written out in that time, with the texts that are kept; then only the first of each code.
const BYTES_MAX: u64 = 1 << 20;
/// So many different refusals are told apart; of others only the code is.
const KINDS_MAX: usize = 64;
/// So many different ones are counted in one entry; further ones are counted by their code.
const EQUAL_COUNTED_MAX: usize = 16;
/// Whose event it is if nobody knows.
pub(super) const NOBODY: &str = "";
/// Of so many agents it is remembered.
const AGENTS_MAX: usize = 4_096;

/// What agents were refused of late, and what went on without a ruling.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<BTreeMap<String, AgentRefusals>>);

/// What one agent was refused of late.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentRefusals {
    since: Millis,
    /// How much of it was written out.
    bytes: u64,
    known: BTreeMap<Digest, Known>,
    /// What no entry counts yet.
    waiting: Vec<Repeat>,
    /// What went on without a ruling and is on record.
    passed: BTreeSet<PassKind>,
    /// The same, which no entry counts yet.
    passes: Vec<PassCount>,
}

/// A refusal that was written out.
#[derive(Debug, Clone)]
struct Known {
    times: u32,
    decision_id: String,
    name: EntryName,
    /// Where it stands in the tree.
    place: u64,
    leaf: Digest,
}

impl Known {
    fn is_of(&self, repeat: &Repeat) -> bool {
        matches!(&repeat.entry, EntryRef::Named(name) if *name == self.name)
    }
}

impl Refusals {
    /// Whether there is something to count that no entry says yet.
    pub fn are_waiting(&self) -> bool {
        self.0.values().any(AgentRefusals::are_waiting)
    }

    /// What a batch has changed.
    pub(super) fn update(&mut self, changed: BTreeMap<String, AgentRefusals>, now: Millis) {
        if changed.is_empty() {
            return;
        }
        let agents = Arc::make_mut(&mut self.0);
        agents.extend(changed);
        if agents.len() > AGENTS_MAX {
            agents.retain(|_, refused| refused.are_waiting() || refused.is_open(now));
        }
        while agents.len() > AGENTS_MAX {
            let idle = agents.iter().filter(|(_, refused)| !refused.are_waiting());
            let Some((oldest, _)) = idle.min_by_key(|(_, refused)| refused.since) else { return };
            let oldest = oldest.clone();
            agents.remove(&oldest);
        }
    }
}

impl AgentRefusals {
    fn are_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.passes.is_empty()
    }

    fn is_open(&self, now: Millis) -> bool {
        now < self.since.saturating_add(WINDOW_MS)
    }

    /// What a further refusal is like, if it need not be written out.
    fn like(&self, kind: &RefusalKind) -> Option<(Likeness, &Known)> {
        let equal = self.known.get(&kind.key(Likeness::Equal)).filter(|known| known.times >= EQUAL_MAX);
        let counted = |known: &Known| {
            self.waiting.iter().any(|repeat| known.is_of(repeat))
                || self.waiting.iter().filter(|repeat| repeat.likeness == Likeness::Equal).count() < EQUAL_COUNTED_MAX
        };
        if let Some(known) = equal.filter(|known| counted(known)) {
            return Some((Likeness::Equal, known));
        }
        let full = equal.is_some() || self.bytes >= BYTES_MAX;
        self.known.get(&kind.key(Likeness::Code)).filter(|_| full).map(|known| (Likeness::Code, known))
    }
}

impl Batch<'_> {
    fn refusals(&self, agent: &str, now: Millis) -> AgentRefusals {
        let known = self.refused.get(agent).or_else(|| self.state.refusals.0.get(agent));
        match known {
            Some(known) if known.is_open(now) => known.clone(),
            // What waits is counted whenever it began.
            Some(AgentRefusals { waiting, passes, .. }) => AgentRefusals {
                since: now,
                waiting: waiting.clone(),
                passes: passes.clone(),
                ..AgentRefusals::default()
            },
            None => AgentRefusals { since: now, ..AgentRefusals::default() },
        }
    }

    /// The answer to a refusal that is like earlier ones; `None` if it has to be written out. The entry it speaks of is on
    /// record, what is answered is this ruling's own.
    pub(super) fn fold_refusal(
        &mut self,
        agent: &Arc<Agent>,
        kind: &RefusalKind,
        answer: impl FnOnce(String) -> Body,
        now: Millis,
    ) -> Result<Option<Box<Recorded>>, Trouble> {
        let id = &agent.profile.agent_id;
        let mut refused = self.refusals(id, now);
        let Some((likeness, known)) = refused.like(kind) else { return Ok(None) };
        let known = known.clone();
        match refused.waiting.iter_mut().find(|repeat| known.is_of(repeat) && repeat.likeness == likeness) {
            Some(repeat) => repeat.add(kind, now),
            None => {
                let (id, name) = (known.decision_id.clone(), known.name.clone());
                refused.waiting.push(kind.first_repeat(id, name, likeness, now));
            }
        }
        let Known { decision_id, place: index, leaf, .. } = known;
        let costs = kind.counted && {
            let repeats = refused.waiting.clone();
            apply_repeated(&mut Agent::clone(agent), &RefusalsRepeated { repeats }, now, 0).is_some()
        };
        let entry = Entry::new(EntryName::of_agent(id, agent.entries), now, answer(decision_id));
        self.refused.insert(id.clone(), refused);
        if costs {
            self.count_repeats_of(&id.clone())?;
        }
        Ok(Some(Box::new(Recorded { entry, index, leaf, replayed: false, folded: Some(likeness), corrected: None })))
    }

    /// Remembers a refusal that was written out.
    pub(super) fn remember_refusal(
        &mut self,
        agent: &str,
        kind: &RefusalKind,
        recorded: &Recorded,
        text: Option<&KeptText>,
    ) {
        let mut refused = self.refusals(agent, recorded.entry.at);
        let bytes = self.entry_len(recorded.index).saturating_add(text.map_or(0, |text| text.text.len()));
        refused.bytes = refused.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        let id = recorded.entry.body.decision_id().unwrap_or_default();
        for likeness in [Likeness::Equal, Likeness::Code] {
            let key = kind.key(likeness);
            if refused.known.len() >= KINDS_MAX && likeness == Likeness::Equal && !refused.known.contains_key(&key) {
                continue;
            }
            let known = refused.known.entry(key).or_insert_with(|| Known {
                times: 0,
                decision_id: id.to_owned(),
                name: EntryName::of_agent(agent, recorded.entry.agent_seq.unwrap_or_default()),
                place: recorded.index,
                leaf: recorded.leaf,
            });
            known.times = known.times.saturating_add(1);
        }
        self.refused.insert(agent.to_owned(), refused);
    }

    /// The size of an entry of this batch.
    fn entry_len(&self, index: u64) -> usize {
        let at = index.checked_sub(self.first_index).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.entries.get(at)).map_or(0, |new| new.bytes.len())
    }

    /// Counts what went on without a ruling of its own.
    pub(super) fn count_pass(&mut self, id: &str, kind: PassKind, now: Millis) -> Result<(), Trouble> {
        let mut counted = self.refusals(id, now);
        match counted.passes.iter_mut().find(|pass| pass.kind == kind) {
            Some(pass) => pass.add(now),
            None => counted.passes.push(PassCount::first(kind, now)),
        }
        if !counted.passed.contains(&kind) {
            return self.record_passes(id, counted);
        }
        self.refused.insert(id.to_owned(), counted);
        Ok(())
    }

    /// Puts into an entry what went on without a ruling. Only what is on record counts as such.
    fn record_passes(&mut self, id: &str, mut counted: AgentRefusals) -> Result<(), Trouble> {
        let passes = std::mem::take(&mut counted.passes);
        if passes.is_empty() {
            return Ok(());
        }
        let agent = if id == NOBODY { None } else { Some(self.agent(id)?.ok_or(Trouble::Internal)?) };
        let now = self.state.clock.max(agent.as_ref().map_or(0, |agent| agent.last_at));
        counted.passed.extend(passes.iter().map(|pass| pass.kind));
        self.record(Read { agent, ..Read::default() }, now, Body::Passed(Passed { passes }))?;
        self.refused.insert(id.to_owned(), counted);
        Ok(())
    }

    /// Puts into entries what was counted and not written out so far.
    pub(super) fn count_repeats(&mut self) -> Result<Answer, Trouble> {
        let known = self.state.refusals.0.iter().chain(&self.refused);
        let waiting = known.filter(|(_, refused)| refused.are_waiting()).map(|(agent, _)| agent.clone());
        let mut agents: Vec<String> = waiting.collect();
        agents.sort();
        agents.dedup();
        for agent in agents {
            if agent != NOBODY {
                self.count_repeats_of(&agent)?;
            }
            let counted = self.refusals(&agent, self.state.clock);
            self.record_passes(&agent, counted)?;
        }
        Ok(Answer::Done)
    }

    fn count_repeats_of(&mut self, id: &str) -> Result<(), Trouble> {
        let Some(agent) = self.agent(id)? else { return Err(Trouble::Internal) };
        let now = self.state.clock.max(agent.last_at);
        let mut refused = self.refusals(id, now);
        let repeats = std::mem::take(&mut refused.waiting);
        if repeats.is_empty() {
            return Ok(());
        }
        let repeated = RefusalsRepeated { repeats };
        self.record(Read::agent(agent), now, Body::RefusalsRepeated(repeated))?;
        self.refused.insert(id.to_owned(), refused);
        Ok(())
    }
}
