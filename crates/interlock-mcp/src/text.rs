//! What an agent reads: an answer or a refusal in a few lines of text.
//!
//! The same stands beside it as data. Names are shown with escapes for whatever would hide or move text; instructions
//! are the workflow author's, and are given as they are.

use interlock_core::json::Json;
use interlock_core::{Code, visible};

use crate::control::{ControlAnswer, ControlFault};

/// The most names of one list that are written out; the data holds them all.
const NAMES_MAX: usize = 40;

/// The text of an answer.
pub(crate) fn of_answer(answer: &ControlAnswer) -> String {
    match answer {
        ControlAnswer::State(state) => of_state(state),
        ControlAnswer::Transition(transition) => of_transition(transition),
        ControlAnswer::Refusal(refusal) => of_refusal(refusal),
    }
}

/// The text of a fault.
pub(crate) fn of_fault(fault: &ControlFault) -> String {
    let mut lines = vec![match &fault.code {
        Some(code) => format!("Refused ({}): {}.", visible(code), visible(&fault.reason)),
        None => format!("Not done: {}.", visible(&fault.reason)),
    }];
    lines.extend(fault.next.as_deref().map(|next| format!("What to do: {}.", visible(next))));
    lines.join("\n")
}

fn of_state(state: &Json) -> String {
    let mut lines = vec![phase(state)];
    if member(state, "is_final") == Some(&Json::Bool(true)) {
        let outcome = text(state, "outcome").map_or_else(String::new, |outcome| format!(", outcome {outcome}"));
        lines.push(format!("This phase is final{outcome}: the workflow has ended."));
    }
    lines.extend(instructions(state));
    lines.extend(allowed_tools(state));
    lines.extend(transitions(state));
    lines.extend(iterations_left(state));
    lines.extend(approval(state, "pending_approval"));
    lines.join("\n")
}

fn of_transition(transition: &Json) -> String {
    let name = |member: &str| text(transition, member).unwrap_or_default();
    let (from, to, revision) = (name("from"), name("to"), number(transition, "revision").unwrap_or_default());
    let mut lines = Vec::new();
    if member(transition, "transitioned") == Some(&Json::Bool(true)) {
        lines.push(format!("Moved from phase `{from}` to `{to}` (revision {revision})."));
        lines.extend(instructions(transition));
    } else {
        lines.push(format!("Not moved: still in phase `{from}` (revision {revision}), on the way to `{to}`."));
    }
    lines.extend(allowed_tools(transition));
    lines.extend(approval(transition, "approval_id"));
    lines.join("\n")
}

fn of_refusal(refusal: &Json) -> String {
    let code = text(refusal, "code").unwrap_or_default();
    let reason = text(refusal, "reason").unwrap_or_default();
    let mut lines = vec![format!("Refused ({code}): {}.", reason.trim_end_matches('.'))];
    if text(refusal, "state").is_some() {
        lines.push(phase(refusal));
    }
    lines.extend(allowed_tools(refusal));
    lines.extend(transitions(refusal));
    lines.extend(iterations_left(refusal));
    lines.extend(approval(refusal, "pending_approval").or_else(|| approval(refusal, "approval_id")));
    lines.extend(text(refusal, "next").map(|next| format!("What a person can run: {next}")));
    // Only codes that the command knows: a newer daemon may use others.
    if Code::ALL.iter().any(|known| known.as_str() == code) {
        lines.push(format!("A person finds more with `interlock explain {code}`."));
    }
    lines.join("\n")
}

fn phase(of: &Json) -> String {
    let state = text(of, "state").unwrap_or_default();
    let workflow = text(of, "workflow").map_or_else(String::new, |workflow| format!(" of workflow `{workflow}`"));
    let revision = number(of, "revision").map_or_else(String::new, |revision| format!(" (revision {revision})"));
    format!("You are in phase `{state}`{workflow}{revision}.")
}

fn instructions(of: &Json) -> Option<String> {
    let instructions = member(of, "instructions")?.as_str()?.trim();
    (!instructions.is_empty()).then(|| format!("Instructions: {instructions}"))
}

fn allowed_tools(of: &Json) -> Option<String> {
    Some(match member(of, "allowed_tools")? {
        Json::Null => "Allowed tools now: all.".to_owned(),
        Json::Array(tools) if tools.is_empty() => "Allowed tools now: none but the control tools.".to_owned(),
        Json::Array(tools) => format!("Allowed tools now: {}.", names(tools, ", ")),
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => return None,
    })
}

fn transitions(of: &Json) -> Option<String> {
    let Some(Json::Array(ways)) = member(of, "transitions") else { return None };
    if ways.is_empty() {
        return Some("No event leads on from here.".to_owned());
    }
    let mut lines = vec!["Events that lead on:".to_owned()];
    for way in ways.iter().take(NAMES_MAX) {
        let (event, target) = (text(way, "event").unwrap_or_default(), text(way, "target").unwrap_or_default());
        let unmet = match member(way, "unmet") {
            None | Some(Json::Null | Json::Bool(false)) => String::new(),
            Some(Json::Array(unmet)) if unmet.is_empty() => String::new(),
            Some(Json::Array(unmet)) => format!(", not yet: {}", names(unmet, "; ")),
            Some(other @ (Json::Bool(true) | Json::Number(_) | Json::String(_) | Json::Object(_))) => {
                format!(", not yet: {}", shown(other))
            }
        };
        let why = match member(way, "why") {
            Some(Json::Array(why)) if !why.is_empty() => format!(" ({})", names(why, "; ")),
            _ => String::new(),
        };
        lines.push(format!("- `{event}` to `{target}`{unmet}{why}"));
    }
    lines.extend(more(ways.len()).map(|more| format!("- {more}")));
    Some(lines.join("\n"))
}

fn iterations_left(of: &Json) -> Option<String> {
    number(of, "iterations_left").map(|left| format!("Tool calls left in this phase: {left}."))
}

fn approval(of: &Json, name: &str) -> Option<String> {
    let found = member(of, name)?;
    let id = text(of, name).or_else(|| text(found, "approval_id"))?;
    Some(format!(
        "A person has to decide on `{id}`: `interlock approvals show {id}`, then `interlock approvals approve {id}` or \
         `deny`. Until then only reading is allowed."
    ))
}

fn member<'j>(of: &'j Json, name: &str) -> Option<&'j Json> {
    of.as_object()?.get(name)
}

fn text(of: &Json, name: &str) -> Option<String> {
    member(of, name)?.as_str().map(visible)
}

fn number(of: &Json, name: &str) -> Option<String> {
    let found = member(of, name)?;
    matches!(found, Json::Number(_)).then(|| found.canonical())
}

fn names(items: &[Json], between: &str) -> String {
    let mut names: Vec<String> = items.iter().take(NAMES_MAX).map(shown).collect();
    names.extend(more(items.len()));
    names.join(between)
}

fn more(count: usize) -> Option<String> {
    count.checked_sub(NAMES_MAX).filter(|more| *more > 0).map(|more| format!("and {more} more"))
}

fn shown(item: &Json) -> String {
    item.as_str().map_or_else(|| visible(&item.canonical()), visible)
}
