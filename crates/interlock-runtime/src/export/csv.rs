//! Rows as RFC 4180, for programs that would rather calculate than read.
//!
//! Agents choose names, conversations and more, and a spreadsheet runs what begins like a formula. No cell here does:
//! such a text gets an apostrophe in front. What would hide or move other text is shown as escapes, and what is very
//! long is cut.

use interlock_core::{display, visible};

use super::row::{COLUMNS, Cell, Row};

/// Longer texts are cut to what [`display`] shows of them.
const CELL_CHARS_MAX: usize = 1_000;

/// The first line.
pub(super) fn header() -> String {
    line_of(COLUMNS.iter().map(|(name, _)| (*name).to_owned()))
}

/// A row.
pub(super) fn line(row: &Row<'_>) -> String {
    line_of(COLUMNS.iter().map(|(_, column)| match column(row) {
        Cell::Text(text) => cell(&text),
        Cell::Plain(value) => value,
        Cell::Empty => String::new(),
    }))
}

fn line_of(cells: impl Iterator<Item = String>) -> String {
    let quoted: Vec<String> = cells.map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
    quoted.join(",") + "\r\n"
}

/// A text that shows what it says and is never taken for a formula.
fn cell(text: &str) -> String {
    let long = text.chars().nth(CELL_CHARS_MAX).is_some();
    let shown = if long { display(text).to_string() } else { visible(text) };
    if is_formula(text) || is_formula(&shown) { format!("'{shown}") } else { shown }
}

/// Whether a spreadsheet could take a text for a formula, once it has dropped spaces and quotes before it.
fn is_formula(text: &str) -> bool {
    let ignored = |c: char| matches!(c, ' ' | '\u{a0}' | '\u{3000}' | '\u{feff}' | '"' | '\'' | '`' | '\\');
    let first = text.trim_start_matches(ignored).chars().next();
    // East Asian input has wide forms of the same signs.
    first.is_some_and(|c| matches!(c, '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '＝' | '＋' | '－' | '＠'))
}

#[cfg(test)]
mod tests {
    use super::{cell, line_of};

    #[test]
    fn nothing_begins_like_a_formula() {
        for text in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            " =1",
            "\"=1",
            "' =1",
            "  \" '@x",
            "\u{feff}=1",
            "\u{a0}=1",
            "＝1",
            "－1",
            "\\=1",
            "=cmd|' /C calc'!A0",
        ] {
            let shown = cell(text);
            assert!(shown.starts_with('\''), "{text:?} became {shown:?}");
        }
        for text in ["", "a=1", "1-2", "agent", "{}", "(=1)", "é", "\u{200b}x"] {
            assert!(!cell(text).starts_with('\''), "{text:?}");
        }
    }

    #[test]
    fn hidden_and_long_text_is_shown() {
        assert_eq!(cell("a\u{202e}b\u{200b}c\u{7}\r\n"), "a\\u{202e}b\\u{200b}c\\u{7}\\u{d}\\u{a}");
        assert_eq!(cell(&"x".repeat(1_000)), "x".repeat(1_000));
        let cut = cell(&"x".repeat(90_000));
        assert!(cut.starts_with("xxx") && cut.contains("(90000 bytes, sha256:") && cut.len() < 200, "{cut}");
        assert!(cell(&"=".repeat(90_000)).starts_with("'=="));
    }

    #[test]
    fn lines_are_of_the_form() {
        let cells = ["a", "b,c", "d\"e", ""].into_iter().map(str::to_owned);
        assert_eq!(line_of(cells), "\"a\",\"b,c\",\"d\"\"e\",\"\"\r\n");
    }
}
