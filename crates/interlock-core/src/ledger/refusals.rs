//! Refusals that charge nothing, and when two of one agent are the same: repeats beyond a bound are counted in one entry
//! instead of being written out, so that what costs an agent nothing costs nobody's disk.
//!
//! Which ones are written out is the writer's to choose and leaves no trace in any ruling. What is counted says here how
//! it counts for totals and trust, so that every row still follows from the entries.

use serde::{Deserialize, Serialize};

use super::entry::{Body, Ruled, TrustChanged};
use super::entry_ref::{EntryName, EntryRef};
use super::project::counted;
use super::run_entry::{TransitionOutcome, Transitioned};
use crate::action::{Agent, Counted, Decision, Millis, Trust, TrustCost, words};
use crate::code::Code;
use crate::digest::Digest;

/// So many equal decisions fill whatever is looked at for trust; more of them change nothing there.
const COUNTED_MAX: u64 = 50;

words! {
    /// In what refusals are alike.
    Likeness: "likeness" {
        /// The same was asked and refused for the same reason.
        Equal = "equal",
        /// They were refused for the same reason.
        Code = "code",
    }
}

/// What there is to say of a refusal, however often it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalKind {
    /// The decision; a dry run may have been approved.
    pub decision: Decision,
    /// Its code.
    pub code: Option<Code>,
    /// It counts for trust.
    pub counted: bool,
    /// It tells of an attack.
    pub violation: bool,
    /// Nothing was to be consumed.
    pub dry_run: bool,
    /// It was made in observe mode.
    pub observed: bool,
    /// It refused a transition, which is no ruling.
    pub transition: bool,
    /// What was asked: the fingerprint, or the reason why nothing could be.
    pub shape: Digest,
    /// Bundle, trust and door.
    ground: Digest,
}

impl RefusalKind {
    /// What there is to say of an entry; `None` if it is none of those that are free.
    pub fn of(body: &Body, trust: Trust, rules: u32) -> Option<RefusalKind> {
        if let Body::Transitioned(asked) = body {
            return RefusalKind::of_transition(asked, trust);
        }
        body.ruled().and_then(|ruled| RefusalKind::of_ruling(ruled, trust, rules))
    }

    /// The same of a ruling: whatever charges nothing, takes no step and opens nothing. A tool call that runs all the same
    /// is not refused.
    pub fn of_ruling(ruled: &Ruled, trust: Trust, rules: u32) -> Option<RefusalKind> {
        let facts = ruled.facts.as_ref();
        let (is_call, dry_run) = (facts.is_some_and(|facts| facts.call.is_some()), facts.is_some_and(|it| it.dry_run));
        let decision = ruled.ruling.decision;
        let refused = matches!(decision, Decision::Denied | Decision::BudgetExceeded);
        let runs = is_call && ruled.observed && !dry_run;
        if !(refused || dry_run) || runs || ruled.ticket.is_some() || ruled.redeemed.is_some() || ruled.used.is_some() {
            return None;
        }
        let error = ruled.ruling.error.as_ref();
        let shape = match facts {
            // A person allows a call where it is made.
            Some(facts) if facts.call.is_some() => facts.agreed_to(),
            Some(facts) => facts.seen_as(),
            None => Digest::of(&[error.map_or("", |error| &error.message)]),
        };
        let door = facts.map_or("", |facts| facts.door.as_str());
        Some(RefusalKind {
            decision,
            code: error.map(|error| error.code),
            counted: counted(ruled, rules).is_some(),
            violation: ruled.violation,
            dry_run,
            observed: ruled.observed,
            transition: false,
            shape,
            ground: ground(ruled.bundle, trust, door),
        })
    }

    /// The same of a transition.
    pub fn of_transition(asked: &Transitioned, trust: Trust) -> Option<RefusalKind> {
        let TransitionOutcome::Refused { code, .. } = &asked.outcome else { return None };
        Some(RefusalKind {
            decision: Decision::Denied,
            code: Some(*code),
            counted: false,
            violation: false,
            dry_run: false,
            observed: false,
            transition: true,
            shape: Digest::of(&[&asked.event, "\n", &asked.data.text()]),
            ground: ground(asked.bundle, trust, "transition"),
        })
    }

    /// What all refusals have in common that are alike in this way.
    pub fn key(&self, likeness: Likeness) -> Digest {
        let marks =
            [self.counted, self.violation, self.dry_run, self.observed].map(|mark| if mark { '1' } else { '0' });
        let marks: String = marks.into_iter().collect();
        let code = self.code.map_or("", |code| code.as_str());
        let shape = match likeness {
            Likeness::Equal => self.shape.to_string(),
            Likeness::Code => String::new(),
        };
        let ground = self.ground.to_string();
        Digest::of(&[self.decision.as_str(), "\n", code, "\n", &marks, "\n", &ground, "\n", &shape])
    }

    /// Whether a recorded count is about refusals of this kind.
    pub fn is_of(&self, repeat: &Repeat) -> bool {
        (self.decision, self.code, self.counted, self.violation)
            == (repeat.decision, repeat.code, repeat.counted, repeat.violation)
            && (self.dry_run, self.observed, self.transition) == (repeat.dry_run, repeat.observed, repeat.transition)
    }

    /// The first of those that are counted and not written out.
    pub fn first_repeat(&self, decision_id: String, entry: EntryName, likeness: Likeness, at: Millis) -> Repeat {
        Repeat {
            decision_id,
            entry: EntryRef::Named(entry),
            likeness,
            decision: self.decision,
            code: self.code,
            counted: self.counted,
            violation: self.violation,
            dry_run: self.dry_run,
            observed: self.observed,
            transition: self.transition,
            count: 1,
            first_at: at,
            last_at: at,
            digest: self.shape,
        }
    }
}

fn ground(bundle: Digest, trust: Trust, door: &str) -> Digest {
    Digest::of(&[&bundle.to_string(), "\n", &u8::from(trust).to_string(), "\n", door])
}

/// Refusals of an agent that were counted and not written out, since the last such entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusalsRepeated {
    /// By what they are alike in.
    pub repeats: Vec<Repeat>,
}

impl RefusalsRepeated {
    /// Those of them that are rulings.
    pub fn rulings(&self) -> impl Iterator<Item = &Repeat> {
        self.repeats.iter().filter(|repeat| !repeat.transition)
    }
}

/// Refusals that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// The decision that their answers named.
    pub decision_id: String,
    /// Its entry, which is written out.
    pub entry: EntryRef,
    /// In what they are like it.
    pub likeness: Likeness,
    /// What was decided.
    pub decision: Decision,
    /// The code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Each counts for trust.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub counted: bool,
    /// Each tells of an attack.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub violation: bool,
    /// Nothing was to be consumed by any.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub dry_run: bool,
    /// They were made in observe mode.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub observed: bool,
    /// They refused a transition, which is no ruling.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub transition: bool,
    /// How many there were.
    pub count: u64,
    /// When the first came.
    pub first_at: Millis,
    /// When the last came.
    pub last_at: Millis,
    /// What they asked for: of one its fingerprint, of each further one the SHA-256 of what was here and its own, unless
    /// all are the same.
    pub digest: Digest,
}

impl Repeat {
    /// One more.
    pub fn add(&mut self, kind: &RefusalKind, at: Millis) {
        self.count = self.count.saturating_add(1);
        self.last_at = self.last_at.max(at);
        if self.likeness == Likeness::Code {
            self.digest = Digest::of(&[&self.digest.to_string(), &kind.shape.to_string()]);
        }
    }
}

/// What counted refusals change of the agent, and how trust falls: the next entry of the agent must say so then. They are
/// said in the agent's entry `seq`.
pub fn apply_repeated(agent: &mut Agent, repeated: &RefusalsRepeated, at: Millis, seq: u64) -> Option<TrustChanged> {
    let (from_level, mut fallen) = (agent.trust, None);
    for repeat in &repeated.repeats {
        if !repeat.transition {
            agent.count(repeat.decision, repeat.count);
        }
        if !repeat.counted || fallen.is_some() {
            continue;
        }
        let one = Counted { decision: repeat.decision, code: repeat.code, violation: repeat.violation };
        for _ in 0..repeat.count.min(COUNTED_MAX) {
            fallen = agent.record.count(one, from_level, at);
            if fallen.is_some() {
                break;
            }
        }
        if fallen.is_some() || repeat.violation {
            agent.cost = Some(TrustCost { decision_id: repeat.decision_id.clone(), entry: seq });
        }
    }
    fallen.map(|(to_level, cause)| TrustChanged { from_level, to_level, cause, approval_id: None })
}
