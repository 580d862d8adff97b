//! The ways a run can go: every edge that some data and some observed facts let it take, and the shortest to a place.
//!
//! What an agent says about itself restricts nothing here: it can say whatever a guard wants to hear. Facts that
//! Interlock observes may turn out either way.

use std::collections::{BTreeMap, VecDeque};

use interlock_core::workflow::{Edge, State, StateId, StateKind, Workflow};

use super::satisfy::{Fuel, row_can_be_taken};

/// An edge that can be taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) from: StateId,
    pub(crate) event: &'a str,
    pub(crate) edge: &'a Edge,
    /// Whether a person must agree, because the edge or its target says so.
    pub(crate) approved: bool,
}

/// Every edge of a workflow that can be taken, by the state it leaves.
#[derive(Debug)]
pub(crate) struct Ways<'a> {
    pub(crate) workflow: &'a Workflow,
    from: BTreeMap<StateId, Vec<Way<'a>>>,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStep {
    /// The state that is left.
    pub from: String,
    /// The event.
    pub event: String,
    /// The state that is entered.
    pub to: String,
    /// Guards that an agent satisfies with what it says.
    pub claimed: Vec<String>,
    /// Guards that must be observed to hold.
    pub observed: Vec<String>,
    /// Whether a person must agree.
    pub approved: bool,
}

/// What a run remembers for one property: a flag that a way may raise, and that stays up.
pub(crate) trait Memory {
    /// The flag at the start.
    fn at_start(&self, state: StateId) -> bool;
    /// The flag after a way, from what it was before.
    fn after(&self, before: bool, way: &Way<'_>) -> bool;
}

/// A place in the search: a state and the flag.
pub(crate) type Place = (StateId, bool);

/// All places that can be reached, each with the way that reached it first.
#[derive(Debug)]
pub(crate) struct Reached<'a> {
    order: Vec<Place>,
    came_by: BTreeMap<Place, (Place, Way<'a>)>,
}

impl<'a> Ways<'a> {
    pub(crate) fn of(workflow: &'a Workflow) -> Ways<'a> {
        let mut from = BTreeMap::new();
        let mut fuel = Fuel::FULL;
        for (id, state) in workflow.states() {
            from.insert(id, ways_out(workflow, id, state, &mut fuel));
        }
        Ways { workflow, from }
    }

    pub(crate) fn out(&self, state: StateId) -> &[Way<'a>] {
        self.from.get(&state).map_or(&[], Vec::as_slice)
    }

    /// Whether a run is over in this state.
    pub(crate) fn is_final(&self, state: StateId) -> bool {
        self.workflow.state(state).is_some_and(|state| matches!(state.kind, StateKind::Final(_)))
    }

    pub(crate) fn name(&self, state: StateId) -> &'a str {
        self.workflow.state(state).map_or("", |state| state.name.as_str())
    }

    /// Every place within the transitions a run may make, nearest first.
    pub(crate) fn reach(&self, memory: &dyn Memory) -> Reached<'a> {
        let start = (self.workflow.initial(), memory.at_start(self.workflow.initial()));
        let mut found = Reached { order: vec![start], came_by: BTreeMap::new() };
        let mut queue = VecDeque::from([(start, 0_u32)]);
        while let Some((place, made)) = queue.pop_front() {
            if made >= self.workflow.max_transitions() {
                continue;
            }
            for way in self.out(place.0) {
                let next = (way.edge.target, memory.after(place.1, way));
                if next == start || found.came_by.contains_key(&next) {
                    continue;
                }
                found.came_by.insert(next, (place, *way));
                found.order.push(next);
                queue.push_back((next, made.saturating_add(1)));
            }
        }
        found
    }

    /// A way in words.
    pub(crate) fn step(&self, way: &Way<'_>) -> PathStep {
        let guards = || way.edge.guards.iter().filter_map(|id| self.workflow.guard(*id));
        PathStep {
            from: self.name(way.from).to_owned(),
            event: way.event.to_owned(),
            to: self.name(way.edge.target).to_owned(),
            claimed: guards().filter(|guard| !guard.is_observed()).map(|guard| guard.name.clone()).collect(),
            observed: guards().filter(|guard| guard.is_observed()).map(|guard| guard.name.clone()).collect(),
            approved: way.approved,
        }
    }
}

fn ways_out<'a>(workflow: &'a Workflow, from: StateId, state: &'a State, fuel: &mut Fuel) -> Vec<Way<'a>> {
    let mut ways = Vec::new();
    // A run that is over goes nowhere, whatever its last state says.
    if matches!(state.kind, StateKind::Final(_)) {
        return ways;
    }
    for (event, rows) in &state.on {
        for (place, edge) in rows.iter().enumerate() {
            if row_can_be_taken(workflow, rows, place, fuel) {
                let target = workflow.state(edge.target);
                let approved = edge.requires_approval || target.is_some_and(|target| target.requires_approval);
                ways.push(Way { from, event, edge, approved });
            }
        }
    }
    ways
}

impl<'a> Reached<'a> {
    /// The places, nearest first.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.order.iter().copied()
    }

    /// The steps from the start to a place that was reached.
    pub(crate) fn path(&self, ways: &Ways<'a>, to: Place) -> Vec<PathStep> {
        let mut steps = Vec::new();
        let mut at = to;
        // Each step back leads to a place that was found earlier, so this ends at the start.
        while let Some((before, way)) = self.came_by.get(&at) {
            steps.push(ways.step(way));
            at = *before;
        }
        steps.reverse();
        steps
    }
}

/// A path in one line: `planning -READY-> implementing -DONE-> done`.
pub fn path_line(start: &str, steps: &[PathStep]) -> String {
    let mut line = start.to_owned();
    for step in steps {
        line.push_str(&format!(" -{}-> {}", step.event, step.to));
    }
    line
}

/// Remembers nothing.
pub(crate) struct Nothing;

impl Memory for Nothing {
    fn at_start(&self, _: StateId) -> bool {
        false
    }

    fn after(&self, before: bool, _: &Way<'_>) -> bool {
        before
    }
}
