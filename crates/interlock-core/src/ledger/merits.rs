//! What the ledger says for and against more trust, counted from an agent's entries, newest first.
//!
//! Low-risk actions and repetitions do not count, so a thousand trivial calls buy nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{Body, Entry, Ruled};
use super::entry_ref::{EntryName, EntryRef};
use crate::action::{Decision, Merits, Risk, Verdict};
use crate::code::Code;
use crate::digest::Digest;

/// How many entries are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Counts entries of one agent, newest first, back to the last change of its trust.
#[derive(Debug, Default)]
pub struct MeritsCount {
    merits: Merits,
    different: BTreeSet<Digest>,
    /// Tickets that were approved: the rulings that opened them are met later.
    granted: BTreeSet<EntryRef>,
    /// Executions that were reported, by the ruling that let them run, which is met later too.
    executed: BTreeMap<EntryRef, bool>,
    looked_at: usize,
}

impl MeritsCount {
    /// Counts an entry; `false` if those before it do not matter. Where it stands in the tree counts for what entries
    /// before the sixth format say of it.
    pub fn add(&mut self, entry: &Entry, place: u64) -> bool {
        let seq = entry.agent_seq.unwrap_or_default();
        self.merits.through = self.merits.through.max(seq);
        if self.looked_at >= ENTRIES_MAX {
            self.merits.cut = true;
            return false;
        }
        self.looked_at = self.looked_at.saturating_add(1);
        if matches!(entry.body, Body::TrustChanged(_) | Body::Registered(_)) {
            self.merits.since = entry.at;
            return false;
        }
        if let Body::Ruled(ruled) = &entry.body {
            self.merits.since = entry.at;
            let name = EntryName { agent: entry.agent.clone(), seq };
            self.add_ruling(ruled, &[EntryRef::Named(name), EntryRef::At(place)]);
        } else if let Body::ApprovalResolved(resolved) = &entry.body {
            if resolved.verdict == Verdict::Approved {
                self.granted.insert(resolved.opened.clone());
            }
        } else if let Body::Executed(executed) = &entry.body {
            self.executed.insert(executed.decision.clone(), executed.success);
        } else if let Body::RefusalsRepeated(repeated) = &entry.body {
            self.merits.since = entry.at;
            for repeat in repeated.repeats.iter().filter(|repeat| repeat.counted) {
                self.add_rulings(repeat.decision, repeat.code, repeat.violation, repeat.count);
            }
        }
        true
    }

    /// A ruling, with both ways in which later entries speak of it.
    fn add_ruling(&mut self, ruled: &Ruled, names: &[EntryRef; 2]) {
        let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { return };
        let decision = ruled.ruling.decision;
        self.add_rulings(decision, ruled.ruling.error.as_ref().map(|error| error.code), ruled.violation, 1);
        let ran = decision.lets_run() || names.iter().any(|name| self.granted.contains(name));
        let risk = ruled.ruling.verification.as_ref().map(|verification| verification.risk_level);
        if ran && risk.is_some_and(|risk| risk >= Risk::Medium) && self.different.insert(facts.seen_as()) {
            let (failed, succeeded) = (&mut self.merits.failed, &mut self.merits.succeeded);
            if let Some(success) = names.iter().find_map(|name| self.executed.get(name)) {
                let count = if *success { succeeded } else { failed };
                *count = count.saturating_add(1);
            }
        }
    }

    fn add_rulings(&mut self, decision: Decision, code: Option<Code>, violation: bool, count: u64) {
        let add = |sum: &mut u64| *sum = sum.saturating_add(count);
        add(&mut self.merits.rulings);
        if violation || code == Some(Code::VerificationFailed) {
            add(&mut self.merits.violations);
        }
        match decision {
            Decision::Denied => add(&mut self.merits.denied),
            Decision::BudgetExceeded => add(&mut self.merits.budget_exceeded),
            Decision::Approved | Decision::Corrected | Decision::Pending => {}
        }
    }

    /// What was counted.
    pub fn finish(self) -> Merits {
        Merits { counted: u64::try_from(self.different.len()).unwrap_or(u64::MAX), ..self.merits }
    }
}
