//! What the ledger says for and against more trust, counted from an agent's entries, newest first.
//!
//! Low-risk actions and repetitions do not count, so a thousand trivial calls buy nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{Body, Entry};
use crate::action::{Decision, Merits, Risk, Verdict};
use crate::digest::Digest;

/// How many entries are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Counts entries of one agent, newest first, back to the last change of its trust.
#[derive(Debug, Default)]
pub struct MeritsCount {
    merits: Merits,
    different: BTreeSet<Digest>,
    /// Tickets that were approved: the rulings that opened them are met later.
    granted: BTreeSet<u64>,
    /// Executions that were reported, by the ruling that let them run, which is met later too.
    executed: BTreeMap<u64, bool>,
    looked_at: usize,
}

impl MeritsCount {
    /// Counts the entry with this index; `false` if those before it do not matter.
    pub fn add(&mut self, entry: &Entry, index: u64) -> bool {
        self.merits.through = self.merits.through.max(index);
        if self.looked_at >= ENTRIES_MAX {
            self.merits.cut = true;
            return false;
        }
        self.looked_at = self.looked_at.saturating_add(1);
        let add = |count: &mut u64| *count = count.saturating_add(1);
        match &entry.body {
            Body::TrustChanged(_) => {
                self.merits.since = entry.at;
                return false;
            }
            Body::Registered(_) => {
                self.merits.since = entry.at;
                return false;
            }
            Body::Ruled(ruled) => {
                self.merits.since = entry.at;
                let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { return true };
                add(&mut self.merits.rulings);
                let decision = ruled.ruling.decision;
                if ruled.violation
                    || ruled.ruling.error.as_ref().is_some_and(|e| e.code == crate::Code::VerificationFailed)
                {
                    add(&mut self.merits.violations);
                }
                match decision {
                    Decision::Denied => add(&mut self.merits.denied),
                    Decision::BudgetExceeded => add(&mut self.merits.budget_exceeded),
                    Decision::Approved | Decision::Corrected | Decision::Pending => {}
                }
                let ran = decision.lets_run() || self.granted.contains(&index);
                let risk = ruled.ruling.verification.as_ref().map(|verification| verification.risk_level);
                if ran && risk.is_some_and(|risk| risk >= Risk::Medium) && self.different.insert(facts.seen_as()) {
                    match self.executed.get(&index) {
                        Some(true) => add(&mut self.merits.succeeded),
                        Some(false) => add(&mut self.merits.failed),
                        None => {}
                    }
                }
            }
            Body::ApprovalResolved(resolved) => {
                if resolved.verdict == Verdict::Approved {
                    self.granted.insert(resolved.opened);
                }
            }
            Body::Executed(executed) => {
                self.executed.insert(executed.decision, executed.success);
            }
            Body::BundleActivated(_)
            | Body::Unauthenticated(_)
            | Body::StateIntent(_)
            | Body::StateOutcome(_)
            | Body::TrustRequested(_)
            | Body::StatusChanged(_)
            | Body::ModeChanged(_)
            | Body::TokenRotated(_)
            | Body::TextsErased(_)
            | Body::KeyCreated(_)
            | Body::KeyRevoked(_)
            | Body::SigningKeyRotated(_)
            | Body::RunStarted(_)
            | Body::RunSteered(_)
            | Body::Transitioned(_)
            | Body::CallEnded(_)
            | Body::TurnEnded(_)
            | Body::SessionBound(_)
            | Body::AllowanceGiven(_)
            | Body::AllowanceTaken(_)
            | Body::WorkflowRegistered(_)
            | Body::Passed(_) => {}
            Body::RefusalsRepeated(repeated) => {
                self.merits.since = entry.at;
                for repeat in repeated.repeats.iter().filter(|repeat| repeat.counted) {
                    let add = |count: &mut u64| *count = count.saturating_add(repeat.count);
                    add(&mut self.merits.rulings);
                    if repeat.violation || repeat.code == Some(crate::Code::VerificationFailed) {
                        add(&mut self.merits.violations);
                    }
                    match repeat.decision {
                        Decision::Denied => add(&mut self.merits.denied),
                        Decision::BudgetExceeded => add(&mut self.merits.budget_exceeded),
                        Decision::Approved | Decision::Corrected | Decision::Pending => {}
                    }
                }
            }
        }
        true
    }

    /// What was counted.
    pub fn finish(self) -> Merits {
        Merits { counted: u64::try_from(self.different.len()).unwrap_or(u64::MAX), ..self.merits }
    }
}
