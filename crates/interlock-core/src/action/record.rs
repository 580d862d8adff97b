//! What an agent's rulings say about its trust: when it falls by itself.
//!
//! Three things lower it: a security violation by two levels, many denials by one, many broken limits by one. Only
//! authenticated, well-formed requests come here; raising trust is a person's decision and not made here.

use serde::{Deserialize, Serialize};

use super::vocabulary::{Decision, Millis, Trust, words};
use crate::code::Code;

/// How many decisions the rate of denials is taken over.
const WINDOW_LEN: u32 = 50;
/// So many denials among them are not too many: 10 %.
const DENIALS_MAX: u32 = 5;
/// So many broken limits within an hour are abuse.
const BREACHES_MAX: usize = 5;
const HOUR_MS: Millis = 3_600_000;

words! {
    /// Why trust changed.
    TrustCause: "cause" {
        /// A person granted what was asked for.
        Elevation = "elevation",
        /// A blocked tool, or text that was found hostile.
        SecurityViolation = "security_violation",
        /// More than a tenth of the last fifty decisions were denials.
        RepeatedDenials = "repeated_denials",
        /// Five broken limits within an hour.
        BudgetAbuse = "budget_abuse",
    }
}

/// What counts since trust last changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// How many decisions there were, at most as many as are looked at.
    decisions: u32,
    /// The last ones, newest in the lowest bit: set if denied.
    denied: u64,
    /// When limits were broken, oldest first; an hour back at most.
    breaches: Vec<Millis>,
}

/// What of a ruling counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) decision: Decision,
    pub(crate) code: Option<Code>,
    /// A blocked tool, or hostile text.
    pub(crate) violation: bool,
}

impl Record {
    /// Whether nothing counted yet.
    pub fn is_empty(&self) -> bool {
        *self == Record::default()
    }

    /// Counts a ruling, and says what follows for an agent of this trust. The record starts anew with a change.
    pub(crate) fn count(&mut self, ruling: Counted, trust: Trust, at: Millis) -> Option<(Trust, TrustCause)> {
        let denied = ruling.decision == Decision::Denied && ruling.code.is_some_and(counts_as_denial);
        let mask = 1_u64.checked_shl(WINDOW_LEN).map_or(u64::MAX, |bit| bit.saturating_sub(1));
        self.denied = (self.denied << 1 | u64::from(denied)) & mask;
        self.decisions = self.decisions.saturating_add(1).min(WINDOW_LEN);
        if ruling.decision == Decision::BudgetExceeded {
            self.breaches.push(at);
        }
        self.breaches.retain(|breach| breach.saturating_add(HOUR_MS) > at);
        let (levels, cause) = self.due(ruling)?;
        let lowered = u8::from(trust).saturating_sub(levels);
        let lowered = Trust::try_from(lowered).unwrap_or(Trust::Untrusted);
        // At the floor nothing changes, so nothing starts anew either; only the breaches must not pile up.
        if lowered == trust {
            self.breaches.truncate(BREACHES_MAX);
            return None;
        }
        *self = Record::default();
        Some((lowered, cause))
    }

    fn due(&self, ruling: Counted) -> Option<(u8, TrustCause)> {
        if ruling.violation {
            return Some((2, TrustCause::SecurityViolation));
        }
        if self.decisions >= WINDOW_LEN && self.denied.count_ones() > DENIALS_MAX {
            return Some((1, TrustCause::RepeatedDenials));
        }
        (self.breaches.len() >= BREACHES_MAX).then_some((1, TrustCause::BudgetAbuse))
    }
}

/// Denials count from the loops onward; before that nothing was asked yet.
fn counts_as_denial(code: Code) -> bool {
    !matches!(
        code,
        Code::AgentUnknown
            | Code::AgentToken
            | Code::AgentSuspended
            | Code::ContextMissing
            | Code::ContextStep
            | Code::StateFields
            | Code::StateHash
            | Code::StateSource
            | Code::StateParameters
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(denied: bool) -> Counted {
        Counted {
            decision: if denied { Decision::Denied } else { Decision::Approved },
            code: denied.then_some(Code::LoopReplay),
            violation: false,
        }
    }

    #[test]
    fn a_tenth_is_not_too_many_and_one_more_is() {
        for (denials, expected) in [(5, None), (6, Some((Trust::Autonomous, TrustCause::RepeatedDenials)))] {
            let mut record = Record::default();
            let last = (0..50).filter_map(|n| record.count(denied(n < denials), Trust::Trusted, n)).next();
            assert_eq!(last, expected, "{denials} of 50");
        }
        let mut record = Record::default();
        let early = (0..49).filter_map(|n| record.count(denied(true), Trust::Trusted, n)).next();
        assert_eq!(early, None, "49 are too few to tell");
    }

    #[test]
    fn five_broken_limits_within_an_hour() {
        let breach = Counted { decision: Decision::BudgetExceeded, code: Some(Code::BudgetRate), violation: false };
        let mut record = Record::default();
        let spread = (0..5).filter_map(|n| record.count(breach, Trust::Trusted, n * HOUR_MS / 4)).next();
        assert_eq!(spread, None, "the first is an hour ago when the fifth comes");
        let fifth = record.count(breach, Trust::Trusted, HOUR_MS + 1);
        assert_eq!(fifth, Some((Trust::Autonomous, TrustCause::BudgetAbuse)));
        assert!(record.is_empty());
    }

    #[test]
    fn at_the_floor_nothing_changes() {
        let hostile = Counted { decision: Decision::Denied, code: Some(Code::ToolNotAllowed), violation: true };
        assert_eq!(Record::default().count(hostile, Trust::Untrusted, 0), None);
        let fall = Some((Trust::Untrusted, TrustCause::SecurityViolation));
        assert_eq!(Record::default().count(hostile, Trust::Supervised, 0), fall);
    }
}
