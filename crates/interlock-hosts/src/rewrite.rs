//! How a command's text carries the ticket it was judged under, host by host, and how the two are told apart again.
//!
//! The line stays readable in the text: hosts apply their user's own rules to what they are given to run. What can be
//! put on can be taken off, and nothing else is: a text from which a ticket was taken off is, to the byte, the one that
//! putting it on gives. Whether a ticket is worth anything is not known here.

use interlock_core::json::Json;
use interlock_core::rule::shell_quoted;

use crate::event::Host;
use crate::line_end::{is_closed, is_enclosed};

/// What the rewriting of a command is worth on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewriting {
    /// The host hands every line to our runner, where its shell prefix is ours: a line that lost its ticket does not run.
    Held,
    /// The host runs the line as it was if the rewriting is lost.
    Advisory,
    /// The host does not let a command be rewritten.
    None,
}

impl Host {
    /// What the rewriting of a command is worth here.
    pub fn rewrites(self) -> Rewriting {
        match self {
            Host::ClaudeCode => Rewriting::Held,
            Host::Codex | Host::Gemini => Rewriting::Advisory,
            Host::Cursor => Rewriting::None,
        }
    }
}

/// The fewest characters of a ticket.
pub const TICKET_LEN_MIN: usize = 16;
/// The most.
pub const TICKET_LEN_MAX: usize = 200;

/// Whether a text is written as tickets are: `[A-Za-z0-9_-]{16,200}`.
pub fn is_ticket(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (TICKET_LEN_MIN..=TICKET_LEN_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}

/// A line with its ticket, as a host is to run it. `script` is the file that Codex and Gemini CLI read it by.
///
/// Nothing, where the two could not be told apart again or the line would do something else: then it cannot be run under
/// a ticket.
///
/// ```
/// use interlock_hosts::{Host, rewritten, taken_off};
///
/// let script = "/opt/interlock/bin/run.sh";
/// let text = rewritten(Host::ClaudeCode, "npm test", "0123456789abcdef", script).unwrap();
/// assert_eq!(text, "npm test\n# interlock:0123456789abcdef");
/// assert_eq!(taken_off(Host::ClaudeCode, &text, Some(script)), Some(("npm test", "0123456789abcdef")));
/// let text = rewritten(Host::Codex, "npm test", "0123456789abcdef", script).unwrap();
/// assert_eq!(text, ". /opt/interlock/bin/run.sh 0123456789abcdef || exit 126; npm test");
/// assert_eq!(rewritten(Host::ClaudeCode, "cat <<EOF", "0123456789abcdef", script), None);
/// ```
pub fn rewritten(host: Host, line: &str, ticket: &str, script: &str) -> Option<String> {
    if !is_ticket(ticket) || !bears(host, line) {
        return None;
    }
    match host {
        Host::ClaudeCode => Some(format!("{line}{MARK}{ticket}")),
        Host::Codex | Host::Gemini => Some(format!("{}{ticket}{}{line}", before_ticket(script)?, behind_ticket(host))),
        Host::Cursor => None,
    }
}

/// Whether a line does the same with a ticket as without one.
fn bears(host: Host, line: &str) -> bool {
    let fits = match host {
        // The ticket stands behind the line.
        Host::ClaudeCode => is_closed(line),
        // The script takes the place of the shell that would run the line.
        Host::Codex => true,
        // The host puts the line between parentheses, after which its shell goes on: what closes them would run there.
        // It cuts off blanks at the end.
        Host::Gemini => is_enclosed(line) && !line.ends_with(|last: char| last.is_whitespace() || last == '\u{feff}'),
        Host::Cursor => false,
    };
    fits && !line.contains('\0')
}

/// The line and the ticket of a text: the last ticket, if it has several. Nothing, where there is none.
///
/// Without the script nothing is taken off a text that names one: whose script it is could not be told, and an agent's
/// own would run unjudged.
pub fn taken_off<'t>(host: Host, text: &'t str, script: Option<&str>) -> Option<(&'t str, &'t str)> {
    let (line, ticket) = match host {
        Host::ClaudeCode => text.rsplit_once(MARK)?,
        Host::Codex | Host::Gemini => {
            let rest = text.strip_prefix(&before_ticket(script?)?)?;
            let (ticket, line) = rest.split_once(behind_ticket(host))?;
            (line, ticket)
        }
        Host::Cursor => return None,
    };
    (is_ticket(ticket) && bears(host, line)).then_some((line, ticket))
}

/// What stands between a line and its ticket: a comment, on a line of its own.
const MARK: &str = "\n# interlock:";

/// What stands between a ticket and its line, where the ticket comes first.
fn behind_ticket(host: Host) -> &'static str {
    match host {
        // A script that is gone ends the shell. Codex' rules still see each command of the line.
        Host::Codex => " || exit 126; ",
        // Here a further command would be one more that the user has to agree to.
        Host::ClaudeCode | Host::Cursor | Host::Gemini => "; ",
    }
}

/// What stands before a ticket that comes first: the script is read, and hands the whole text to the runner.
fn before_ticket(script: &str) -> Option<String> {
    let is_plain = script.starts_with('/') && !script.contains(char::is_control);
    is_plain.then(|| format!(". {} ", shell_quoted(script)))
}

/// An input whose command carries a ticket: all of its other members stay. Nothing, where it cannot.
pub(crate) fn input(host: Host, field: &str, input: &Json, ticket: &str, script: &str) -> Option<Json> {
    let mut members = input.as_object()?.clone();
    let line = rewritten(host, members.get(field)?.as_str()?, ticket, script)?;
    members.insert(field.to_owned(), Json::from(line.as_str()));
    Some(Json::Object(members))
}

/// Takes the ticket off the command of an input.
pub(crate) fn take_off(host: Host, field: &str, input: &mut Json, script: Option<&str>) -> Option<String> {
    let Json::Object(members) = input else { return None };
    let text = members.get(field)?.as_str()?;
    let (line, ticket) = taken_off(host, text, script)?;
    let (line, ticket) = (Json::from(line), ticket.to_owned());
    members.insert(field.to_owned(), line);
    Some(ticket)
}
