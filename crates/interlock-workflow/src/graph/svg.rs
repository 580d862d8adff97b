//! SVG with a layout of its own: states stand in columns by their distance from the first, ways leave to the right, and
//! those that lead back run below everything. No script, no style from elsewhere, no link.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "coordinates are i64 and grow with states (10,000 at most) and rows (64 of 256 events): far from its end"
)]

use core::fmt::Write;
use std::collections::{BTreeMap, VecDeque};

use interlock_core::workflow::{State, StateId, StateKind, Workflow};

use super::{Arrow, Highlight, arrows, cut, tools};

const BOX: i64 = 220;
const GAP: i64 = 230;
const MARGIN: i64 = 24;
const TITLE: i64 = 44;
const PORT: i64 = 20;
const BOX_HEIGHT_MIN: i64 = 64;
const BETWEEN: i64 = 28;
const LANE: i64 = 12;
const TEXT_CHARS: usize = 32;
const LABEL_CHARS: usize = 30;

struct Placed<'a> {
    state: &'a State,
    column: i64,
    x: i64,
    y: i64,
    height: i64,
}

/// As an SVG document.
pub fn svg(workflow: &Workflow, highlight: &Highlight) -> String {
    let arrows = arrows(workflow, highlight);
    let boxes = layout(workflow, &arrows);
    let bottom = boxes.values().map(|placed| placed.y + placed.height).max().unwrap_or(TITLE) + BETWEEN;
    let columns = boxes.values().map(|placed| placed.column + 1).max().unwrap_or(1);
    let mut body = String::new();
    let mut lanes = 0;
    let mut ports: BTreeMap<StateId, i64> = BTreeMap::new();
    for arrow in &arrows {
        let (Some(from), Some(to)) = (boxes.get(&arrow.from), boxes.get(&arrow.to)) else { continue };
        let port = ports.entry(arrow.from).or_insert(0);
        let y = from.y + 30 + *port * PORT;
        *port += 1;
        let back = to.column <= from.column && arrow.from != arrow.to;
        let path = if arrow.from == arrow.to {
            let x = from.x + BOX;
            format!("M{x},{y} h24 v10 h-24")
        } else if back {
            lanes += 1;
            back_path(from, to, y, bottom, lanes)
        } else {
            forward_path(from, to, y)
        };
        draw_arrow(&mut body, arrow, from, to, &path, y);
    }
    for (id, placed) in &boxes {
        let current = highlight.current.as_ref() == Some(&placed.state.name);
        draw_box(&mut body, workflow, placed, *id == workflow.initial(), current);
    }
    let width = MARGIN * 2 + columns * BOX + columns * GAP;
    let height = bottom + (lanes + 2) * LANE;
    page(workflow, highlight, &body, width, height)
}

fn page(workflow: &Workflow, highlight: &Highlight, body: &str, width: i64, height: i64) -> String {
    let name = escape(&cut(workflow.id(), TEXT_CHARS * 2));
    let current = highlight
        .current
        .as_ref()
        .map_or_else(String::new, |state| format!(" The run is in {}.", escape(&cut(state, TEXT_CHARS * 2))));
    let said = escape(&cut(workflow.description().unwrap_or("A workflow."), 200));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title id=\"title\">{name}</title>\n<desc id=\"desc\">{said}{current}</desc>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#555\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"28\" font-size=\"16\" font-weight=\"bold\" fill=\"#111\">{name}</text>\n{body}</svg>\n"
    )
}

/// Columns by distance from the first state; in a column the order of the text.
fn layout<'a>(workflow: &'a Workflow, arrows: &[Arrow<'_>]) -> BTreeMap<StateId, Placed<'a>> {
    let mut column: BTreeMap<StateId, i64> = BTreeMap::from([(workflow.initial(), 0)]);
    let mut onward: BTreeMap<StateId, Vec<StateId>> = BTreeMap::new();
    let mut ways: BTreeMap<StateId, i64> = BTreeMap::new();
    for arrow in arrows {
        onward.entry(arrow.from).or_default().push(arrow.to);
        *ways.entry(arrow.from).or_insert(0) += 1;
    }
    let mut queue = VecDeque::from([workflow.initial()]);
    while let Some(at) = queue.pop_front() {
        let next = column.get(&at).copied().unwrap_or(0) + 1;
        for target in onward.get(&at).into_iter().flatten() {
            if !column.contains_key(target) {
                column.insert(*target, next);
                queue.push_back(*target);
            }
        }
    }
    let mut below: BTreeMap<i64, i64> = BTreeMap::new();
    let mut boxes = BTreeMap::new();
    for (id, state) in workflow.states() {
        let column = column.get(&id).copied().unwrap_or(0);
        let y = below.entry(column).or_insert(TITLE);
        let height = BOX_HEIGHT_MIN.max(24 + ways.get(&id).copied().unwrap_or(0) * PORT);
        boxes.insert(id, Placed { state, column, x: MARGIN + column * (BOX + GAP), y: *y, height });
        *y += height + BETWEEN;
    }
    boxes
}

fn forward_path(from: &Placed<'_>, to: &Placed<'_>, y: i64) -> String {
    let (x, to_x, to_y) = (from.x + BOX, to.x, to.y + to.height / 2);
    let (bend, land) = (x + GAP - 60, to_x - 60);
    format!("M{x},{y} H{bend} C{},{y} {land},{to_y} {to_x},{to_y}", bend + 40)
}

fn back_path(from: &Placed<'_>, to: &Placed<'_>, y: i64, bottom: i64, lane: i64) -> String {
    let (x, down) = (from.x + BOX, bottom + lane * LANE);
    let side = x + GAP - 20 - (lane % 4) * 8;
    let (up, to_y) = (to.x + 20 + (lane % 10) * 18, to.y + to.height);
    format!("M{x},{y} H{side} V{down} H{up} V{to_y}")
}

fn draw_arrow(out: &mut String, arrow: &Arrow<'_>, from: &Placed<'_>, to: &Placed<'_>, path: &str, y: i64) {
    let width = if arrow.visited { 3 } else { 1 };
    let colour = if arrow.visited { "#0b61c4" } else { "#555" };
    let dash = if arrow.approved { " stroke-dasharray=\"6 3\"" } else { "" };
    let asks = if arrow.approved { "✋ " } else { "" };
    let asked = if arrow.approved { ", a person is asked" } else { "" };
    let (name, target) = (escape(&cut(&from.state.name, 80)), escape(&cut(&to.state.name, 80)));
    let whole = escape(&arrow.label());
    let x = from.x + BOX + if arrow.from == arrow.to { 30 } else { 8 };
    let label = escape(&cut(&arrow.label(), LABEL_CHARS));
    let _ = writeln!(
        out,
        "<g><title>{name} to {target}: {whole}{asked}</title>\
         <path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash} marker-end=\"url(#tip)\"/>\
         <text x=\"{x}\" y=\"{}\" font-size=\"11\" fill=\"#111\" stroke=\"#fff\" stroke-width=\"3\" \
         paint-order=\"stroke\">{asks}{label}</text></g>",
        y - 4
    );
}

fn draw_box(out: &mut String, workflow: &Workflow, placed: &Placed<'_>, initial: bool, current: bool) {
    let Placed { state, x, y, height, .. } = placed;
    let (fill, stroke) = match state.kind {
        _ if current => ("#dbeafe", "#0b61c4"),
        StateKind::Active => ("#f6f6f6", "#333"),
        StateKind::Final(_) => ("#e9f5e9", "#2b6a2b"),
    };
    let width = if current { 3 } else { 1 };
    let tools = tools(workflow, state);
    let mut notes = Vec::new();
    notes.extend(initial.then_some("first"));
    notes.extend(current.then_some("the run is here"));
    notes.extend(state.requires_approval.then_some("entering asks a person"));
    let limit = state.max_iterations.map(|max| format!("{max} calls"));
    notes.extend(limit.as_deref());
    let notes = escape(&cut(&notes.join(" · "), TEXT_CHARS + 6));
    let (name, tools_short) = (escape(&cut(&state.name, TEXT_CHARS - 6)), escape(&cut(&tools, TEXT_CHARS)));
    let whole = escape(&cut(&format!("{}: {tools}", state.name), 400));
    let text_x = x + 10;
    let _ = writeln!(
        out,
        "<g><title>{whole}</title><rect x=\"{x}\" y=\"{y}\" width=\"{BOX}\" height=\"{height}\" rx=\"6\" \
         fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>\
         <text x=\"{text_x}\" y=\"{}\" font-size=\"14\" font-weight=\"bold\" fill=\"#111\">{name}</text>\
         <text x=\"{text_x}\" y=\"{}\" fill=\"#333\">{tools_short}</text>\
         <text x=\"{text_x}\" y=\"{}\" font-size=\"11\" fill=\"#555\">{notes}</text></g>",
        y + 20,
        y + 38,
        y + 54
    );
}

/// Text that is nothing but text in SVG, in elements and in attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
