//! What no run can reach, and what no run can leave. Guards are ignored: whether they hold is known at run time.

use super::fields::Reader;
use super::problem::{Path, quoted};
use super::states::{Outline, States};

/// Tells of states that cannot be reached from the initial one, and of those from which no final one can be reached.
pub(super) fn check(states: &States<'_>, initial: Option<usize>, reader: &mut Reader) {
    let path = Path::Root.key("states");
    // Where an edge leads to no known state, what lies behind it is not known either.
    let all_known = !states.astray.iter().any(|astray| *astray);
    let onward: Vec<&[usize]> = states.list.iter().map(|state| state.targets.as_slice()).collect();
    if let Some(initial) = initial.filter(|_| all_known) {
        let reached = walk(&onward, [initial]);
        for ((state, span), _) in told(states, &reached) {
            let message = format!("no run can reach the state {}", quoted(state.name));
            let help = "no transition from the initial state leads here, directly or through others".to_owned();
            reader.error_with_help(span, &path.key(state.name), message, help);
        }
    }
    if all_known && !states.list.iter().any(|state| state.is_final) {
        let at = states.span.start..states.span.start.saturating_add(1);
        let help = "a run needs an end: a state with `type: final`".to_owned();
        reader.error_with_help(&at, &path, "no state is final", help);
        return;
    }
    let mut backward: Vec<Vec<usize>> = vec![Vec::new(); states.list.len()];
    for (from, targets) in onward.iter().enumerate() {
        for target in *targets {
            if let Some(sources) = backward.get_mut(*target) {
                sources.push(from);
            }
        }
    }
    let ends = states.list.iter().zip(&states.astray).enumerate();
    let ends = ends.filter(|(_, (state, astray))| state.is_final || **astray).map(|(at, _)| at);
    let backward: Vec<&[usize]> = backward.iter().map(Vec::as_slice).collect();
    let ending = walk(&backward, ends);
    for ((state, span), _) in told(states, &ending) {
        let (message, help) = if state.targets.is_empty() {
            (format!("the state {} has no way out", quoted(state.name)), "add `on`, or `type: final`")
        } else {
            let message = format!("no final state can be reached from the state {}", quoted(state.name));
            (message, "add a transition towards a final state")
        };
        reader.error_with_help(span, &path.key(state.name), message, help.to_owned());
    }
}

/// The states that were not reached, with their places.
fn told<'s>(
    states: &'s States<'s>,
    reached: &'s [bool],
) -> impl Iterator<Item = ((&'s Outline<'s>, &'s core::ops::Range<usize>), &'s bool)> {
    states.list.iter().zip(&states.places).zip(reached).filter(|(_, reached)| !**reached)
}

/// What can be reached from some places, themselves included.
fn walk(edges: &[&[usize]], from: impl IntoIterator<Item = usize>) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut waiting: Vec<usize> = from.into_iter().collect();
    while let Some(at) = waiting.pop() {
        if let Some(seen) = reached.get_mut(at).filter(|seen| !**seen) {
            *seen = true;
            waiting.extend(edges.get(at).copied().unwrap_or_default());
        }
    }
    reached
}
