//! Text from outside on a terminal: cells that stay in their column, rows that line up, blocks behind a margin.
//!
//! An agent chooses names and arguments. Nothing of them may move the cursor, hide, fill a screen, or look like a
//! column, a line or a hint of ours: characters that do not show are escapes, runs of spaces too, long text is cut and
//! says so, and every line of a block begins with our margin, wrapped lines included.

use std::fmt::Write;

use interlock_core::json::{self, Content, Limits, Value};
use interlock_core::{Digest, is_visible};

use crate::moment;
use crate::style::{FAINT, RESET};

/// The most columns of a line in a block; a terminal that is narrower would wrap it past the margin.
const BLOCK_COLUMNS: usize = 72;
/// The most characters shown of one text in a block, and the most lines of a block, unless all is wanted.
const TEXT_CHARS_MAX: usize = 600;
const BLOCK_LINES_MAX: usize = 40;

/// Rows that line up.
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heads: &[&'static str]) -> Table {
        Table { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// A row of cells that were made with [`cell`] or are ours.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn render(&self) -> String {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
            cells.chain(self.heads.get(column).map(|head| width(head))).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(widest).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for (cell, widest) in cells.zip(&widths) {
                let _ = write!(text, "{cell}{}  ", " ".repeat(widest.saturating_sub(width(cell))));
            }
            text.trim_end().to_owned()
        };
        let mut out = format!("{FAINT}{}{RESET}\n", line(&mut self.heads.iter().copied()));
        for row in &self.rows {
            out.push_str(&line(&mut row.iter().map(String::as_str)));
            out.push('\n');
        }
        out
    }
}

/// A text from outside as a cell of at most so many columns.
pub(crate) fn cell(text: &str, columns_max: usize) -> String {
    let mut out = String::new();
    let (mut columns, mut after_space) = (0, true);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        // A space at an edge or beside another one could pass for the space between columns.
        let is_edge = character == ' ' && (after_space || characters.peek().is_none());
        let shown = escaped(character, is_edge);
        columns += width(&shown);
        if columns > columns_max || (columns == columns_max && characters.peek().is_some()) {
            out.push('…');
            return out;
        }
        after_space = character == ' ';
        out.push_str(&shown);
    }
    if out.is_empty() { "-".to_owned() } else { out }
}

/// A time from outside, as a cell.
pub(crate) fn time(text: &str) -> String {
    cell(&moment::short(text), 30)
}

/// A text that may be missing, as a cell.
pub(crate) fn optional(text: Option<&str>, columns_max: usize) -> String {
    text.map_or_else(|| "-".to_owned(), |text| cell(text, columns_max))
}

/// How to go on where a page ended: `more: --cursor …`.
pub(crate) fn more(word: &str, cursor: Option<&str>) -> String {
    cursor.map_or_else(String::new, |cursor| format!("{FAINT}{word}: --cursor {}{RESET}\n", cell(cursor, 140)))
}

/// A JSON value as a block behind a margin; and whether something was cut. With `full` nothing is.
pub(crate) fn block(value: Value<'_>, full: bool) -> (String, bool) {
    let mut block = Block { lines: Vec::new(), cut: false, full };
    block.value("", value, 0);
    let kept = if full { block.lines.len() } else { BLOCK_LINES_MAX };
    let over = block.lines.len().saturating_sub(kept);
    let mut out = String::new();
    for line in block.lines.iter().take(kept) {
        let _ = writeln!(out, "  {FAINT}│{RESET} {line}");
    }
    if over > 0 {
        let _ = writeln!(out, "  {FAINT}│{RESET} … {over} more lines");
    }
    (out, block.cut || over > 0)
}

/// The same for a text that is JSON; what is not is shown as a string.
pub(crate) fn block_of(text: &str, full: bool) -> (String, bool) {
    let quoted = json::quote(text);
    let document = json::parse(text, &Limits::CONFIG).or_else(|_| json::parse(&quoted, &Limits::CONFIG));
    document.map_or_else(|_| (String::new(), true), |document| block(document.root(), full))
}

struct Block {
    lines: Vec<String>,
    cut: bool,
    full: bool,
}

impl Block {
    fn value(&mut self, name: &str, value: Value<'_>, indent: usize) {
        let name = match name {
            "" | "- " => name.to_owned(),
            name => format!("{name}: "),
        };
        match value.content() {
            Some(Content::Object(members)) if members.len() > 0 => {
                let inner = self.heading(&name, indent);
                for (key, value) in members {
                    self.value(&cell(key.text(), 60), value, inner);
                }
            }
            Some(Content::Array(items)) if items.len() > 0 => {
                let inner = self.heading(&name, indent);
                for item in items {
                    self.value("- ", item, inner);
                }
            }
            Some(Content::String(text)) => self.text(&name, text.text(), indent),
            Some(Content::Number(number)) => self.line(&format!("{name}{}", number.literal()), indent),
            Some(Content::Boolean(truth)) => self.line(&format!("{name}{truth}"), indent),
            Some(Content::Object(_)) => self.line(&format!("{name}{{}}"), indent),
            Some(Content::Array(_)) => self.line(&format!("{name}[]"), indent),
            Some(Content::Null) | None => self.line(&format!("{name}null"), indent),
        }
    }

    /// The line above members or items, and how far these are indented.
    fn heading(&mut self, name: &str, indent: usize) -> usize {
        if name.is_empty() {
            return indent;
        }
        self.line(name.trim_end(), indent);
        indent + 2
    }

    /// A string in quotes, its lines as lines.
    fn text(&mut self, name: &str, text: &str, indent: usize) {
        let shown: String = if self.full { text.to_owned() } else { text.chars().take(TEXT_CHARS_MAX).collect() };
        let cut = shown.len() < text.len();
        let mut lines = shown.split('\n').peekable();
        let mut first = true;
        while let Some(line) = lines.next() {
            let mut out = if first { format!("{name}\"") } else { String::new() };
            for character in line.chars() {
                if matches!(character, '"' | '\\') {
                    out.push('\\');
                }
                out.push_str(&escaped(character, false));
            }
            match (lines.peek().is_some(), cut) {
                (true, _) => out.push_str("\\n"),
                (false, false) => out.push('"'),
                (false, true) => {
                    let _ = write!(out, "… ({} bytes, {})", text.len(), Digest::of(&[text]));
                }
            }
            self.line(&out, if first { indent } else { indent + 2 });
            first = false;
        }
        self.cut |= cut;
    }

    /// One line, or several where it is too long.
    fn line(&mut self, text: &str, indent: usize) {
        let indent = indent.min(BLOCK_COLUMNS / 2);
        let (mut line, mut columns) = (" ".repeat(indent), indent);
        for character in text.chars() {
            let wide = columns_of(character);
            if columns + wide > BLOCK_COLUMNS {
                self.lines.push(std::mem::replace(&mut line, " ".repeat(indent + 2)));
                columns = indent + 2;
            }
            line.push(character);
            columns += wide;
        }
        self.lines.push(line);
    }
}

fn escaped(character: char, always: bool) -> String {
    if !always && is_visible(character) && columns_of(character) > 0 {
        character.to_string()
    } else {
        format!("\\u{{{:x}}}", u32::from(character))
    }
}

/// Columns on a terminal, near enough.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Two for the wide letters of East Asia and pictures, none for marks that sit on the letter before.
fn columns_of(character: char) -> usize {
    match u32::from(character) {
        0x300..=0x36f | 0x483..=0x489 | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
