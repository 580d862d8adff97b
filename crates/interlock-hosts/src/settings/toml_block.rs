//! Our server in a file of TOML: a block at its end, between two comments.
//!
//! The first comment says what the block was put after, so that taking it out gives back the text from before.

use super::entries::{array, json, server_words};
use super::{Installed, Problem, Wanted};
use crate::event::Host;

/// Puts the block at the end of a text, or into a new file. The text has none.
pub(super) fn insert(host: Host, text: Option<&str>, wanted: &Wanted) -> Result<String, Problem> {
    let (before, after) = match text {
        None => ("", After::Nothing),
        Some(text) if text.is_empty() || text.ends_with('\n') => (text, After::Line),
        Some(text) => (text, After::OpenLine),
    };
    if table(before)?.get("mcp_servers").and_then(|servers| servers.get("interlock")).is_some() {
        return Err(Problem::NameTaken);
    }
    let joint = if matches!(after, After::OpenLine) { "\n" } else { "" };
    let whole = format!("{before}{joint}{}", block(host, wanted, after));
    // A table written in one line, say, cannot be added to.
    table(&whole).map_err(|_| Problem::Shape("`mcp_servers` is written so that nothing can be added to it"))?;
    Ok(whole)
}

/// Takes the block out; nothing is left if the file was made for it.
pub(super) fn remove(text: &str) -> Result<Option<String>, Problem> {
    table(text)?;
    let Some((before, after, rest)) = split(text)? else { return Ok(Some(text.to_owned())) };
    Ok(match after {
        After::Nothing if before.is_empty() && rest.is_empty() => None,
        // Whoever wrote on behind the block needs the line's end.
        After::OpenLine if rest.is_empty() => Some(before.strip_suffix('\n').unwrap_or(before).to_owned()),
        After::Nothing | After::Line | After::OpenLine => Some([before, rest].concat()),
    })
}

/// Whether a text has the block, and as it is wanted.
pub(super) fn state(host: Host, text: &str, wanted: &Wanted) -> Result<Installed, Problem> {
    let Some((before, after, rest)) = split(text)? else { return Ok(Installed::No) };
    let wanted = [before, &block(host, wanted, after), rest].concat();
    Ok(if wanted == text { Installed::Yes } else { Installed::Other })
}

/// What the block was put after.
#[derive(Clone, Copy)]
enum After {
    /// There was no file.
    Nothing,
    /// A whole line, or an empty file.
    Line,
    /// A line without its end.
    OpenLine,
}

impl After {
    const ALL: [After; 3] = [After::Nothing, After::Line, After::OpenLine];

    fn opening(self) -> &'static str {
        match self {
            After::Nothing => "# interlock: begin, in a file of its own\n",
            After::Line => "# interlock: begin\n",
            After::OpenLine => "# interlock: begin, after a line that was open\n",
        }
    }
}

const HEADER: &str = "[mcp_servers.interlock]\n";
const CLOSING: &str = "# interlock: end\n";

fn block(host: Host, wanted: &Wanted, after: After) -> String {
    let (binary, words) = (json(&wanted.binary), array(&server_words(host, wanted)));
    format!("{}{HEADER}command = {binary}\nargs = {words}\n{CLOSING}", after.opening())
}

/// What stands before the block, what it was put after, and what stands behind it.
fn split(text: &str) -> Result<Option<(&str, After, &str)>, Problem> {
    for after in After::ALL {
        // With the table behind it: a comment that only looks like ours is somebody's.
        let opening = format!("{}{HEADER}", after.opening());
        let at_start = text.starts_with(&opening).then_some(0);
        let after_line = || text.find(&format!("\n{opening}")).map(|at| at.saturating_add(1));
        let Some(start) = at_start.or_else(after_line) else { continue };
        let (before, rest) = text.split_at_checked(start).unwrap_or((text, ""));
        let Some((_, rest)) = rest.split_once(CLOSING) else {
            return Err(Problem::Shape("the comment that ends our block is missing"));
        };
        return Ok(Some((before, after, rest)));
    }
    Ok(None)
}

/// Reads a text as TOML.
pub(super) fn table(text: &str) -> Result<toml::Table, Problem> {
    text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.get(..at).unwrap_or_default().matches('\n').count().saturating_add(1);
        Problem::NotStrict(format!("it is not TOML (line {line})"))
    })
}
