//! A line of a text with the part that matters underlined.
//!
//! Long lines are cut around that part, and every character is shown through the same rule as elsewhere: what would
//! move the cursor or hide is printed as an escape.

use std::fmt::Write;
use std::ops::Range;

use interlock_core::visible;

use crate::style::{BAD, FAINT, RESET};

/// The most characters shown before, and of, the underlined part.
const BEFORE_MAX: usize = 48;
const MARKED_MAX: usize = 40;
const AFTER_MAX: usize = 32;

/// Renders `name:line:column`, the line, and an underline below `span`.
pub(crate) fn render(name: &str, text: &str, span: Range<usize>) -> String {
    let start = floor_char_boundary(text, span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    let end = floor_char_boundary(text, span.end).clamp(start, line_end);
    let line_number = text[..start].matches('\n').count() + 1;
    let column = text[line_start..start].chars().count() + 1;

    let before = tail(&text[line_start..start], BEFORE_MAX);
    let marked = head(&text[start..end], MARKED_MAX);
    let after = head(&text[end..line_end], AFTER_MAX);
    let underline = "^".repeat(width(&marked).max(1));
    let gutter = line_number.to_string();
    let margin = " ".repeat(gutter.len());

    let mut out = String::new();
    let _ = writeln!(out, "  {FAINT}{margin}┌─{RESET} {name}:{line_number}:{column}");
    let _ = writeln!(out, "  {FAINT}{gutter} │{RESET} {before}{marked}{after}");
    let _ = writeln!(out, "  {FAINT}{margin} │{RESET} {}{BAD}{underline}{RESET}", " ".repeat(width(&before)));
    out
}

fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

fn head(text: &str, max: usize) -> String {
    let mut shown = shown(&text.chars().take(max).collect::<String>());
    if text.chars().nth(max).is_some() {
        shown.push('…');
    }
    shown
}

fn tail(text: &str, max: usize) -> String {
    let cut = text.chars().count().saturating_sub(max);
    let shown = shown(&text.chars().skip(cut).collect::<String>());
    if cut > 0 { format!("…{shown}") } else { shown }
}

fn shown(text: &str) -> String {
    visible(&text.replace('\t', "  "))
}

/// Columns on a terminal, near enough: one for each character.
fn width(text: &str) -> usize {
    text.chars().count()
}
