//! A conversation between committed steps: which are taken, what was done last, what was done before.

use serde::{Deserialize, Serialize};

use super::context::StepNumber;
use crate::digest::Digest;

/// The last step of a conversation.
pub const STEPS_MAX: u64 = 50;
/// So many identical actions in a row are a loop.
const REPEATS_MAX: u32 = 3;
/// So many identical actions on one state are a loop.
const NO_PROGRESS_MAX: usize = 3;
/// How many actions with their states are remembered.
const WINDOW_LEN: usize = 20;
/// How many rises of the head are remembered.
const RISES_LEN: usize = 8;

/// The committed part of a conversation. It changes only by [`Conversation::take`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// One bit for each taken step.
    taken: u64,
    /// The last times the highest step rose: the step, and how many entries the agent had before the one that raised it.
    rises: Vec<(u64, u64)>,
    /// The last action, and how often it was done in a row.
    last: Option<(Digest, u32)>,
    /// The last actions that ran, each with the state it was proposed in.
    window: Vec<Digest>,
}

impl Conversation {
    /// The highest taken step; 0 if none is.
    pub fn head(&self) -> u64 {
        u64::from(u64::BITS.saturating_sub(self.taken.leading_zeros())).saturating_sub(1)
    }

    /// Whether a step may still be taken by a request that was opened when the agent had `opened_at` entries. A lower step
    /// than the head is free only if it was on its way before the head passed it.
    pub(super) fn is_free(&self, step: StepNumber, opened_at: u64) -> bool {
        let Some(bit) = bit_of(step) else { return false };
        if self.taken & bit != 0 {
            return false;
        }
        if step.get() > self.head() {
            return true;
        }
        let passed = self.rises.iter().find(|(risen, _)| *risen > step.get());
        // With the first remembered rise already above the step, an earlier one may be forgotten.
        let known = self.rises.len() < RISES_LEN || self.rises.first().is_some_and(|(first, _)| *first < step.get());
        known && passed.is_some_and(|(_, entries)| *entries >= opened_at)
    }

    /// How often an action would have been done in a row if it were done now.
    pub(super) fn repeats_with(&self, fingerprint: Digest) -> u32 {
        match self.last {
            Some((last, repeats)) if last == fingerprint => repeats.saturating_add(1),
            Some(_) | None => 1,
        }
    }

    /// How often an action would have run on a state among the last ones.
    pub(super) fn runs_with(&self, on_state: Digest) -> usize {
        self.window.iter().filter(|known| **known == on_state).count().saturating_add(1)
    }

    /// Takes a step: `entries` is how many the agent had before this one, `ran` the fingerprint with its state if it runs.
    pub(crate) fn take(&mut self, step: StepNumber, fingerprint: Digest, ran: Option<Digest>, entries: u64) {
        if step.get() > self.head() {
            if self.rises.len() >= RISES_LEN {
                self.rises.remove(0);
            }
            self.rises.push((step.get(), entries));
        }
        self.taken |= bit_of(step).unwrap_or(0);
        self.last = Some((fingerprint, self.repeats_with(fingerprint)));
        if let Some(ran) = ran {
            self.ran(ran);
        }
    }

    /// The same with other numbers for the entries that raised the highest step: rows of older stores have places in the
    /// tree there.
    #[must_use]
    pub fn renumbered(mut self, mut entries_before: impl FnMut(u64) -> u64) -> Conversation {
        self.rises.iter_mut().for_each(|(_, entries)| *entries = entries_before(*entries));
        self
    }

    /// An action runs in a state: at once, or once a person agreed.
    pub(crate) fn ran(&mut self, on_state: Digest) {
        if self.window.len() >= WINDOW_LEN {
            self.window.remove(0);
        }
        self.window.push(on_state);
    }
}

pub(super) fn is_repetition(repeats: u32) -> bool {
    repeats >= REPEATS_MAX
}

pub(super) fn is_no_progress(runs: usize) -> bool {
    runs >= NO_PROGRESS_MAX
}

/// Steps up to the last one fit in a word.
fn bit_of(step: StepNumber) -> Option<u64> {
    u32::try_from(step.get()).ok().filter(|step| u64::from(*step) <= STEPS_MAX).and_then(|step| 1_u64.checked_shl(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u64) -> StepNumber {
        StepNumber::new(number).unwrap_or_else(|| unreachable!())
    }

    fn taken(steps: &[(u64, u64)]) -> Conversation {
        let mut conversation = Conversation::default();
        for (number, entries) in steps {
            conversation.take(step(*number), Digest::of(&["a"]), None, *entries);
        }
        conversation
    }

    #[test]
    fn a_lower_step_is_free_only_if_it_was_on_its_way() {
        let conversation = taken(&[(1, 10), (3, 20)]);
        assert!(conversation.is_free(step(2), 20), "opened before step 3 was committed");
        assert!(!conversation.is_free(step(2), 21), "opened after it");
        assert!(conversation.is_free(step(4), 21), "above the head");
        assert!(!conversation.is_free(step(3), 0), "taken");
        assert!(!conversation.is_free(step(1), 0), "taken");
    }

    #[test]
    fn what_is_forgotten_counts_as_passed() {
        let rises: Vec<(u64, u64)> = (2..=20).map(|number| (number, number)).collect();
        let conversation = taken(&rises);
        assert!(!conversation.is_free(step(1), 0), "the rise past step 1 is not remembered any more");
    }
}
