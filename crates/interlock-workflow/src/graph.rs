//! A workflow as a picture: Mermaid, DOT and SVG. Pure text; every name in it is escaped and cut, nothing in it runs.

mod svg;

use core::fmt::Write;
use std::collections::BTreeSet;

pub use svg::svg;

use interlock_core::workflow::{AfterFinal, Edge, State, StateId, StateKind, Workflow};
use interlock_core::{is_visible, visible};

/// What is made to stand out: where a run is, and the ways it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Highlight {
    /// The state the run is in.
    pub current: Option<String>,
    /// Ways that were taken: state, event, state.
    pub visited: BTreeSet<(String, String, String)>,
}

/// A way as it is drawn.
struct Arrow<'a> {
    from: StateId,
    to: StateId,
    event: &'a str,
    /// What it asks for.
    guards: Vec<&'a str>,
    approved: bool,
    visited: bool,
}

const NAME_CHARS: usize = 40;
const LABEL_CHARS: usize = 60;

fn arrows<'a>(workflow: &'a Workflow, highlight: &Highlight) -> Vec<Arrow<'a>> {
    let name = |id: StateId| workflow.state(id).map_or("", |state| state.name.as_str());
    let mut found = Vec::new();
    for (from, state) in workflow.states() {
        for (event, rows) in &state.on {
            found.extend(rows.iter().map(|edge| Arrow {
                from,
                to: edge.target,
                event,
                guards: edge.guards.iter().filter_map(|id| workflow.guard(*id)).map(|guard| &*guard.name).collect(),
                approved: asks(workflow, edge),
                visited: highlight.visited.contains(&(state.name.clone(), event.clone(), name(edge.target).to_owned())),
            }));
        }
    }
    found
}

fn asks(workflow: &Workflow, edge: &Edge) -> bool {
    edge.requires_approval || workflow.state(edge.target).is_some_and(|target| target.requires_approval)
}

impl Arrow<'_> {
    fn label(&self) -> String {
        let mut label = cut(self.event, NAME_CHARS);
        if !self.guards.is_empty() {
            let guards: Vec<String> = self.guards.iter().map(|guard| cut(guard, NAME_CHARS)).collect();
            let _ = write!(label, " [{}]", guards.join(", "));
        }
        cut(&label, LABEL_CHARS)
    }
}

/// What a state allows, in a few words.
fn tools(workflow: &Workflow, state: &State) -> String {
    if let StateKind::Final(outcome) = state.kind {
        let after = match workflow.after_final() {
            AfterFinal::Open => "every tool passes",
            AfterFinal::Closed => "no tool passes",
        };
        return format!("final, {outcome}: {after}");
    }
    let mut text = match &state.allowed_tools {
        None => "all tools".to_owned(),
        Some(list) if list.is_empty() => "no tools".to_owned(),
        Some(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    if !state.disallowed_tools.is_empty() {
        let without: Vec<String> = state.disallowed_tools.iter().map(ToString::to_string).collect();
        let _ = write!(text, " but {}", without.join(", "));
    }
    text
}

/// The beginning of a text, on one line and without what would not be seen.
fn cut(text: &str, max: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let mut short: String = plain.chars().take(max).collect();
    if plain.chars().nth(max).is_some() {
        short.push('…');
    }
    if short.chars().all(is_visible) { short } else { visible(&short) }
}

/// As a Mermaid flowchart.
pub fn mermaid(workflow: &Workflow, highlight: &Highlight) -> String {
    let mut out = String::from("flowchart TD\n");
    for (id, state) in workflow.states().map(|(id, state)| (id.place(), state)) {
        let label = format!(
            "\"{}<br/>{}\"",
            mermaid_text(&cut(&state.name, NAME_CHARS)),
            mermaid_text(&cut(&tools(workflow, state), LABEL_CHARS))
        );
        let boxed = match state.kind {
            StateKind::Active if state.requires_approval => format!("{{{{{label}}}}}"),
            StateKind::Active => format!("[{label}]"),
            StateKind::Final(_) => format!("([{label}])"),
        };
        let _ = writeln!(out, "  s{id}{boxed}");
    }
    let initial = workflow.initial().place();
    let _ = writeln!(out, "  start(( )) --> s{initial}");
    // The way from the start is link 0.
    let mut visited = Vec::new();
    for (place, arrow) in (1_u32..).zip(arrows(workflow, highlight)) {
        let asks = if arrow.approved { " (asks)" } else { "" };
        let line = if arrow.approved { "==>" } else { "-->" };
        let label = mermaid_text(&arrow.label());
        let _ = writeln!(out, "  s{} {line}|\"{label}{asks}\"| s{}", arrow.from.place(), arrow.to.place());
        visited.extend(arrow.visited.then(|| place.to_string()));
    }
    let current = highlight.current.as_ref().and_then(|name| workflow.find(name));
    if let Some(current) = current.map(StateId::place) {
        let _ = writeln!(out, "  style s{current} stroke-width:4px");
    }
    if !visited.is_empty() {
        let _ = writeln!(out, "  linkStyle {} stroke-width:4px", visited.join(","));
    }
    out
}

/// Letters, digits and a few signs stay; everything that Mermaid could read as its own becomes a numbered character.
fn mermaid_text(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | ',' | '.' | '_' | '-' | ':' | '…') {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}

/// As a DOT digraph.
pub fn dot(workflow: &Workflow, highlight: &Highlight) -> String {
    let mut out = String::from("digraph workflow {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    out.push_str("  edge [fontname=\"sans-serif\", fontsize=10];\n  start [shape=point];\n");
    for (id, state) in workflow.states().map(|(id, state)| (id.place(), state)) {
        let label = format!(
            "\"{}\\n{}\"",
            dot_text(&cut(&state.name, NAME_CHARS)),
            dot_text(&cut(&tools(workflow, state), LABEL_CHARS))
        );
        let shape = match state.kind {
            StateKind::Active => "",
            StateKind::Final(_) => ", peripheries=2",
        };
        let current = if highlight.current.as_ref() == Some(&state.name) { ", penwidth=3" } else { "" };
        let _ = writeln!(out, "  s{id} [label={label}{shape}{current}];");
    }
    let initial = workflow.initial().place();
    let _ = writeln!(out, "  start -> s{initial};");
    for arrow in arrows(workflow, highlight) {
        let (style, asks) = if arrow.approved { (", style=bold", " (asks)") } else { ("", "") };
        let visited = if arrow.visited { ", penwidth=3" } else { "" };
        let label = dot_text(&arrow.label());
        let _ = writeln!(
            out,
            "  s{} -> s{} [label=\"{label}{asks}\"{style}{visited}];",
            arrow.from.place(),
            arrow.to.place()
        );
    }
    out.push_str("}\n");
    out
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use interlock_core::json::quote;

    use super::*;
    use crate::{Format, Limits, load};

    #[test]
    fn nothing_in_a_name_is_read_as_a_picture_s_own() {
        let hostile = "</text><script>alert(1)</script>\"]; click s0 \\\" %%{init}%% &lt; \u{202e}\n`";
        // No such name loads; what draws does not count on it.
        let text = r#"{"id":"HOSTILE","description":"HOSTILE","initial":"HOSTILE","states":{
            "HOSTILE":{"on":{"HOSTILE":{"target":"end","guard":"HOSTILE"}}},"end":{"type":"final"}},
            "guards":{"HOSTILE":{"field":"x","op":"exists"}}}"#;
        let written = quote(hostile);
        let text = text.replace("\"HOSTILE\"", &written);
        let workflow = Workflow::from_text(&text).expect("it is read");
        let highlight = Highlight { current: Some(hostile.to_owned()), ..Highlight::default() };
        let (drawn, chart) = (svg(&workflow, &highlight), mermaid(&workflow, &highlight));
        assert!(!drawn.contains("<script") && !drawn.contains('\u{202e}'), "{drawn}");
        assert!(!chart.contains("<script") && !chart.contains("click s0 \\") && !chart.contains("%%"), "{chart}");
        let dot = dot(&workflow, &highlight);
        // Every quote of a name has its backslash, and no name ends its string early.
        let inside = dot.replace("\\\\", "").replace("\\\"", "");
        assert!(inside.lines().all(|line| line.matches('"').count() % 2 == 0), "{dot}");
        assert!(!inside.contains("\"]; click"), "{dot}");
    }

    #[test]
    fn where_a_run_is_and_was_stands_out() {
        let text = r#"{"id": "w", "initial": "one", "states": {"one": {"on": {"GO": "end", "STOP": "end"}},
            "end": {"type": "final"}}}"#;
        let workflow = load(text, Format::Json, &Limits::MAX).expect("it loads").workflow;
        let plain = Highlight::default();
        let way = ("one".to_owned(), "GO".to_owned(), "end".to_owned());
        let lit = Highlight { current: Some("end".to_owned()), visited: BTreeSet::from([way]) };
        assert!(!mermaid(&workflow, &plain).contains("stroke-width"));
        let lit_chart = mermaid(&workflow, &lit);
        assert!(lit_chart.contains("linkStyle 1 stroke-width") && lit_chart.contains("style s0 stroke-width"));
        assert_eq!(dot(&workflow, &lit).matches("penwidth=3").count(), 2);
        assert!(svg(&workflow, &lit).contains("the run is here"));
    }
}
