//! Deciding a property over all runs.
//!
//! A run is any sequence of edges that some data and some observed facts allow, of at most `max_transitions` steps; in
//! every state it may make every call that the state lets pass. A property asks about one thing in the past, so states
//! together with one flag are all there is to search, and the search is exact. What an operator does by hand (forcing a
//! run into a state, setting facts) is no part of a run.

use std::collections::BTreeSet;

use interlock_core::contain::Profile;
use interlock_core::workflow::{CommandJudge, Guard, StateId, Workflow};

use super::permits::{Opaque, Permits};
use super::property::{Form, Mark, Property, Target, Thing};
use super::ways::{Memory, PathStep, Place, Reached, Way, Ways, path_line};

/// What became of a property.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The answer.
    pub answer: Answer,
    /// What it rests on, or what else is worth knowing, in sentences.
    pub notes: Vec<String>,
}

/// The answer to a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It holds in every run.
    Proven,
    /// It holds for the calls that Interlock judges; what these let in can do anything.
    ProvenForCalls {
        /// By state.
        except: Vec<(String, Opaque)>,
    },
    /// Every run stops, but not always in a final state.
    Bounded {
        /// After so many transitions.
        max_transitions: u32,
        /// How a run can go on that long; at most once round.
        path: Vec<PathStep>,
    },
    /// It does not hold.
    Broken {
        /// A shortest run that shows it; empty if the first state does.
        path: Vec<PathStep>,
        /// The state where it breaks.
        state: String,
        /// Whether it would hold if agents said nothing but the truth.
        if_honest: bool,
    },
}

/// Decides a property.
pub fn prove(workflow: &Workflow, property: &Property, judge: &dyn CommandJudge) -> Proof {
    let search = Search { ways: Ways::of(workflow), workflow, judge };
    match &property.form {
        Form::EventuallyFinal => search.eventually_final(),
        Form::FinalWithin(limit) => search.final_within(*limit),
        Form::NotBefore(thing, mark) => search.after_mark(thing, mark, Marked::Entered),
        Form::OnlyAfter(thing, mark) => search.after_mark(thing, mark, Marked::Left),
        Form::OnlyIn(target, states) => {
            search.calls(target, &After { mark: None, marked: Marked::Left, honest: false }, |(state, _)| {
                !states.contains(&state)
            })
        }
        Form::NeverIn(target, states) => {
            search.calls(target, &After { mark: None, marked: Marked::Left, honest: false }, |(state, _)| {
                states.contains(&state)
            })
        }
        Form::NoneAfter(target, state) => {
            let left = After { mark: Some(&Mark::State(*state)), marked: Marked::Left, honest: false };
            search.calls(target, &left, |(_, flag)| flag)
        }
    }
}

struct Search<'a> {
    ways: Ways<'a>,
    workflow: &'a Workflow,
    judge: &'a dyn CommandJudge,
}

/// When a state that is a mark counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marked {
    Entered,
    Left,
}

/// Raises the flag when a mark is passed.
struct After<'a> {
    mark: Option<&'a Mark>,
    marked: Marked,
    /// Whether a guard on an agent's word counts as if it were true.
    honest: bool,
}

/// [`After`] with the guards of the workflow at hand.
struct Remember<'a> {
    after: &'a After<'a>,
    workflow: &'a Workflow,
}

impl Memory for Remember<'_> {
    fn at_start(&self, state: StateId) -> bool {
        self.after.marked == Marked::Entered && self.after.mark == Some(&Mark::State(state))
    }

    fn after(&self, before: bool, way: &Way<'_>) -> bool {
        let passed = match (self.after.mark, self.after.marked) {
            (None, _) => false,
            (Some(Mark::Approved), _) => way.approved,
            (Some(Mark::State(state)), Marked::Entered) => way.edge.target == *state,
            (Some(Mark::State(state)), Marked::Left) => way.from == *state,
            (Some(Mark::Guard(name)), _) => {
                let mut guards = way.edge.guards.iter().filter_map(|id| self.workflow.guard(*id));
                guards.any(|guard| guard.name == *name && (self.after.honest || guard.is_observed()))
            }
        };
        before || passed
    }
}

impl<'a> Search<'a> {
    fn reach(&self, after: &After<'_>) -> Reached<'a> {
        self.ways.reach(&Remember { after, workflow: self.workflow })
    }

    /// That a thing happens nowhere before a mark.
    fn after_mark(&self, thing: &Thing, mark: &Mark, marked: Marked) -> Proof {
        let decide = |honest: bool| {
            let after = After { mark: Some(mark), marked, honest };
            match thing {
                Thing::Call(target) => self.calls(target, &after, |(_, flag)| !flag),
                Thing::State(state) => {
                    let reached = self.reach(&after);
                    let broken = reached.places().find(|place| *place == (*state, false));
                    broken.map_or_else(|| self.proven(), |place| self.broken(&reached, place))
                }
            }
        };
        let mut proof = decide(false);
        if let (Answer::Broken { if_honest, .. }, Mark::Guard(name)) = (&mut proof.answer, mark) {
            let claimed = self.workflow.guards().any(|(_, guard)| guard.name == *name && !guard.is_observed());
            *if_honest = claimed && !matches!(decide(true).answer, Answer::Broken { .. });
            if claimed {
                proof.notes.push(format!(
                    "guard `{name}` believes what the agent says; with `\"source\": \"observed\"` it would not"
                ));
            }
        }
        proof
    }

    /// That a call passes in no place of a kind.
    fn calls(&self, target: &Target, after: &After<'_>, forbidden: impl Fn(Place) -> bool) -> Proof {
        let reached = self.reach(after);
        let permits =
            |place: &Place| self.workflow.state(place.0).map(|state| Permits::new(self.workflow, state, self.judge));
        let places: Vec<Place> = reached.places().filter(|place| forbidden(*place)).collect();
        let passing = places.iter().find(|place| permits(place).is_some_and(|permits| permits.passes(target)));
        if let Some(place) = passing {
            let mut proof = self.broken(&reached, *place);
            if self.ways.is_final(place.0) {
                let name = self.ways.name(place.0);
                proof.notes.push(format!(
                    "`{name}` is final and `after_final` is `open`: every tool passes there; `closed` refuses them all"
                ));
            }
            return proof;
        }
        let (mut except, mut held) = (Vec::new(), BTreeSet::new());
        for (place, permits) in places.iter().filter_map(|place| Some((place, permits(place)?))) {
            except.extend(permits.opaque(target).into_iter().map(|what| (self.ways.name(place.0).to_owned(), what)));
            held.extend(permits.kept_off(target).into_iter().map(|(line, profile)| held_line(line, profile)));
        }
        // A state can be there twice, with the flag up and down.
        except.sort();
        except.dedup();
        let mut proof = self.proven();
        if !except.is_empty() {
            proof.answer = Answer::ProvenForCalls { except };
        }
        proof.notes.extend(held);
        if matches!(target, Target::Command(_)) {
            proof.notes.push("command lines that only read pass wherever `Bash` does, and are not counted".to_owned());
        }
        proof
    }

    /// That runs end: in a final state, or at least at all.
    fn eventually_final(&self) -> Proof {
        let reached = self.ways.reach(&super::ways::Nothing);
        let finishing = self.ways.finishing();
        if let Some(stuck) = reached.places().find(|place| !finishing.contains(&place.0)) {
            let mut proof = self.broken(&reached, stuck);
            proof.notes.push(format!("from `{}` no final state can be reached", self.ways.name(stuck.0)));
            return proof;
        }
        let max_transitions = self.workflow.max_transitions();
        let mut proof = self.proven();
        match self.ways.unfinished_after(max_transitions) {
            Some(path) => {
                proof.answer = Answer::Bounded { max_transitions, path };
                proof.notes.push(format!(
                    "every run makes at most {max_transitions} transitions (`max_transitions`); one that has made them \
                     all without reaching a final state stays where it is until a person ends it"
                ));
            }
            None => {
                let longest = self.ways.longest().unwrap_or_default();
                proof.notes.push(format!(
                    "there is no cycle: a run that goes on is in a final state after at most {longest} transitions"
                ));
            }
        }
        self.note_stalls(&reached, &mut proof.notes);
        proof
    }

    /// Where a run can stand still although nothing is wrong.
    fn note_stalls(&self, reached: &Reached<'_>, notes: &mut Vec<String>) {
        let (mut waiting, mut toolless, mut unlimited) = (Vec::new(), Vec::new(), Vec::new());
        for (id, _) in reached.places().filter(|place| !self.ways.is_final(place.0)) {
            let Some(state) = self.workflow.state(id) else { continue };
            let free = self.ways.out(id).iter().any(|way| {
                let guards = way.edge.guards.iter().filter_map(|id| self.workflow.guard(*id));
                !way.approved && !guards.into_iter().any(Guard::is_observed)
            });
            if !free {
                waiting.push(state.name.as_str());
            }
            if state.allowed_tools.as_ref().is_some_and(Vec::is_empty) {
                toolless.push(state.name.as_str());
            } else if state.max_iterations.is_none() {
                unlimited.push(state.name.as_str());
            }
        }
        for (states, what) in [
            (waiting, "every way on waits for a person or for an observed fact"),
            (toolless, "no tool passes: an agent that makes no transition stands still"),
            (unlimited, "nothing presses for a transition: there is no `max_iterations`"),
        ] {
            let named: Vec<String> = states.iter().take(8).map(|name| format!("`{name}`")).collect();
            let more = match states.len().saturating_sub(named.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            if !named.is_empty() {
                notes.push(format!("in {}{more} {what}", named.join(", ")));
            }
        }
    }

    fn final_within(&self, limit: u32) -> Proof {
        match self.ways.unfinished_after(limit.min(self.workflow.max_transitions())) {
            None => self.proven(),
            Some(path) => {
                let state = path.last().map_or_else(|| self.ways.name(self.workflow.initial()), |step| &step.to);
                let state = state.to_owned();
                Proof { answer: Answer::Broken { path, state, if_honest: false }, notes: Vec::new() }
            }
        }
    }

    fn proven(&self) -> Proof {
        Proof { answer: Answer::Proven, notes: Vec::new() }
    }

    fn broken(&self, reached: &Reached<'a>, place: Place) -> Proof {
        let path = reached.path(&self.ways, place);
        let answer = Answer::Broken { path, state: self.ways.name(place.0).to_owned(), if_honest: false };
        Proof { answer, notes: Vec::new() }
    }
}

/// What a proof takes for granted about unknown code.
fn held_line(line: &str, profile: &Profile) -> String {
    let (name, digest) = (&profile.name, profile.digest());
    format!("`{line}` is unknown code, held to the profile `{name}` ({digest}) where a runner runs it")
}

impl Answer {
    /// The path of a run in one line, from the first state.
    pub fn path_line(&self, workflow: &Workflow) -> Option<String> {
        let start = workflow.state(workflow.initial()).map_or("", |state| state.name.as_str());
        match self {
            Answer::Bounded { path, .. } | Answer::Broken { path, .. } => Some(path_line(start, path)),
            Answer::Proven | Answer::ProvenForCalls { .. } => None,
        }
    }
}
