//! Where runs end, where they go round, and how long they can go on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use interlock_core::workflow::StateId;

use super::ways::{Nothing, PathStep, Way, Ways};

/// How long runs that are not over can go on, `max_transitions` aside.
pub(crate) enum Lasting<'a> {
    /// For ever: the ways to a cycle, and once round it.
    Endless { to: Vec<Way<'a>>, round: Vec<Way<'a>> },
    /// Along no more than these ways.
    Ends(Vec<Way<'a>>),
}

impl<'a> Ways<'a> {
    fn ids(&self) -> impl Iterator<Item = StateId> {
        self.workflow.states().map(|(id, _)| id)
    }

    fn backward(&self) -> BTreeMap<StateId, Vec<StateId>> {
        let mut backward: BTreeMap<StateId, Vec<StateId>> = BTreeMap::new();
        for id in self.ids() {
            for way in self.out(id) {
                backward.entry(way.edge.target).or_default().push(id);
            }
        }
        backward
    }

    /// The states from which a final one can be reached.
    pub(crate) fn finishing(&self) -> BTreeSet<StateId> {
        let backward = self.backward();
        let mut found = BTreeSet::new();
        let mut stack: Vec<StateId> = self.ids().filter(|id| self.is_final(*id)).collect();
        while let Some(at) = stack.pop() {
            if found.insert(at) {
                stack.extend(backward.get(&at).into_iter().flatten());
            }
        }
        found
    }

    /// The states in the order in which a walk in depth leaves them for good: what a state leads to comes first, but
    /// for cycles.
    fn left_in_order(&self, from: impl Iterator<Item = StateId>) -> Vec<StateId> {
        let (mut left, mut seen) = (Vec::new(), BTreeSet::new());
        for id in from {
            let mut stack = vec![(id, false)];
            while let Some((at, done)) = stack.pop() {
                if done {
                    left.push(at);
                } else if seen.insert(at) {
                    stack.push((at, true));
                    stack.extend(self.out(at).iter().map(|way| (way.edge.target, false)));
                }
            }
        }
        left
    }

    /// The sets of states in which each can be reached from each other, where there is a way round.
    pub(crate) fn components(&self) -> Vec<Vec<StateId>> {
        let backward = self.backward();
        let mut taken = BTreeSet::new();
        let mut components = Vec::new();
        for id in self.left_in_order(self.ids()).into_iter().rev() {
            let mut component = Vec::new();
            let mut stack = vec![id];
            while let Some(at) = stack.pop() {
                if taken.insert(at) {
                    component.push(at);
                    stack.extend(backward.get(&at).into_iter().flatten());
                }
            }
            component.sort();
            let to_itself = |id: &StateId| self.out(*id).iter().any(|way| way.edge.target == *id);
            if component.len() > 1 || component.iter().any(to_itself) {
                components.push(component);
            }
        }
        components.sort();
        components
    }

    /// How long a run can go on without reaching a final state.
    pub(crate) fn lasting(&self) -> Lasting<'a> {
        let initial = self.workflow.initial();
        let round: BTreeSet<StateId> = self.components().into_iter().flatten().collect();
        let is_round = |id: StateId| round.contains(&id);
        if let Some(to) = self.shortest(initial, is_round, true) {
            let at = to.last().map_or(initial, |way| way.edge.target);
            let round = self.shortest(at, |id| id == at, false).unwrap_or_default();
            return Lasting::Endless { to, round };
        }
        let mut longest: BTreeMap<StateId, (u32, Option<Way<'a>>)> = BTreeMap::new();
        for id in self.left_in_order(std::iter::once(initial)) {
            let onward = self.out(id).iter().filter(|way| !self.is_final(way.edge.target)).map(|way| {
                let further = longest.get(&way.edge.target).map_or(0, |(length, _)| *length);
                (further.saturating_add(1), Some(*way))
            });
            let best = onward.max_by_key(|(length, _)| *length).unwrap_or((0, None));
            longest.insert(id, best);
        }
        let mut ways = Vec::new();
        let mut at = initial;
        while let Some((_, Some(way))) = longest.get(&at) {
            ways.push(*way);
            at = way.edge.target;
        }
        Lasting::Ends(ways)
    }

    /// The shortest way to a state of a kind; one that is there already counts if `here`.
    fn shortest(&self, from: StateId, wanted: impl Fn(StateId) -> bool, here: bool) -> Option<Vec<Way<'a>>> {
        if here && wanted(from) {
            return Some(Vec::new());
        }
        let mut came_by: BTreeMap<StateId, Way<'a>> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for way in self.out(at) {
                let next = way.edge.target;
                if wanted(next) {
                    let mut path = vec![*way];
                    let mut back = at;
                    while back != from {
                        let way = came_by.get(&back)?;
                        path.push(*way);
                        back = way.from;
                    }
                    path.reverse();
                    return Some(path);
                }
                if next != from && !came_by.contains_key(&next) {
                    came_by.insert(next, *way);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// A run of so many transitions that is not over, if there is one; of a longer one as much as shows the cycle.
    pub(crate) fn unfinished_after(&self, transitions: u32) -> Option<Vec<PathStep>> {
        if self.is_final(self.workflow.initial()) {
            return None;
        }
        let length = usize::try_from(transitions).unwrap_or(usize::MAX);
        let ways = match self.lasting() {
            Lasting::Endless { to, round } => {
                // What is shown of a long run ends where it has gone round, unless the question names a few transitions.
                let once = to.len().saturating_add(round.len());
                let shown = length.min(if length <= ROUND_MAX { length } else { once });
                to.into_iter().chain(round.into_iter().cycle()).take(shown).collect()
            }
            Lasting::Ends(ways) if ways.len() >= length => ways.into_iter().take(length).collect::<Vec<_>>(),
            Lasting::Ends(_) => return None,
        };
        Some(ways.iter().map(|way| self.step(way)).collect())
    }

    /// The longest run, in transitions, if there is no way round: the last of them ends it.
    pub(crate) fn longest(&self) -> Option<usize> {
        if self.is_final(self.workflow.initial()) {
            return Some(0);
        }
        match self.lasting() {
            Lasting::Endless { .. } => None,
            Lasting::Ends(ways) => Some(ways.len().saturating_add(1)),
        }
    }

    /// Every state that a run can enter.
    pub(crate) fn reached(&self) -> BTreeSet<StateId> {
        self.reach(&Nothing).places().map(|(state, _)| state).collect()
    }
}

/// A run of at most so many transitions is shown as a whole, however often it goes round.
const ROUND_MAX: usize = 12;
