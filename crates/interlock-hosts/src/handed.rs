//! What a host hands to its shell, taken apart: the host's own words, and the command line of the agent in them.
//!
//! The forms are closed, as the hosts of `docs/hosts.md` were seen to write them. What is in none of them is not run.

use crate::event::Host;
use crate::rewrite::taken_off;

/// What a text is that a host hands to its shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handed {
    /// An agent's command line.
    Line(HandedLine),
    /// A command of the host's own: a hook that is a shell's line, or a server.
    Own,
    /// None of the forms that are known.
    Unknown,
}

/// An agent's command line, and what is to be run for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedLine {
    /// Whose form it is.
    pub host: Host,
    /// The line, without its ticket.
    pub line: String,
    /// The ticket, if it carries one.
    pub ticket: Option<String>,
    /// The file in which the host finds the directory that the line ended in.
    pub directory_file: Option<String>,
    /// What is to be run, up to the name of that file, or all of it.
    text: String,
}

impl HandedLine {
    /// What a shell is to run, with this file for the directory it ends in.
    pub fn text(&self, directory_file: &str) -> String {
        match self.directory_file {
            Some(_) => format!("{}{}", self.text, quoted(directory_file)),
            None => self.text.clone(),
        }
    }
}

/// What Claude Code hands to its shell prefix: one text. `is_own` says that the variables are those of a hook or a server.
///
/// ```
/// use interlock_hosts::{Handed, handed_to_prefix};
///
/// let text = "eval 'ls\n# interlock:0123456789abcdef' < /dev/null && pwd -P >| /tmp/claude-00aa-cwd";
/// let Handed::Line(handed) = handed_to_prefix(text, false) else { panic!() };
/// assert_eq!((handed.line.as_str(), handed.ticket.as_deref()), ("ls", Some("0123456789abcdef")));
/// assert_eq!(handed_to_prefix("python3 server.py", true), Handed::Own);
/// assert_eq!(handed_to_prefix("python3 server.py", false), Handed::Unknown);
/// ```
pub fn handed_to_prefix(text: &str, is_own: bool) -> Handed {
    if let Some(line) = claude_code(text) {
        return Handed::Line(line);
    }
    // A form of a line that is not known here must not pass for something else.
    let is_like_a_line = text.contains(DIRECTORY) || text.starts_with(SOURCE) || text.contains(EVAL);
    if is_own && !is_like_a_line { Handed::Own } else { Handed::Unknown }
}

/// What a shell of Codex or Gemini CLI is running that reads the script: all of its text.
pub fn handed_to_script(text: &str, script: &str) -> Handed {
    let line = |host: Host, text: &str, before: &str| {
        let (line, ticket) = taken_off(host, text, Some(script))?;
        Some(Handed::Line(HandedLine {
            host,
            line: line.to_owned(),
            ticket: Some(ticket.to_owned()),
            directory_file: None,
            text: format!("{before}{line}"),
        }))
    };
    let gemini = || line(Host::Gemini, gemini(text)?, GEMINI_OPTIONS);
    gemini().or_else(|| line(Host::Codex, text, "")).unwrap_or(Handed::Unknown)
}

const SOURCE: &str = "source ";
const EVAL: &str = "eval ";
const DIRECTORY: &str = " && pwd -P >| ";
/// Behind each of the host's own commands before the line.
const WHATEVER: &str = " || true && ";
const SILENT: &str = " >/dev/null 2>&1";
const GEMINI_OPTIONS: &str = "shopt -u promptvars nullglob extglob nocaseglob dotglob; ";

/// `(source FILE 2>/dev/null || true && )? ({ … } >/dev/null 2>&1 || true && )* eval LINE( < /dev/null)? && pwd -P >| FILE`
fn claude_code(text: &str) -> Option<HandedLine> {
    let mut rest = text;
    if let Some(after) = rest.strip_prefix(SOURCE) {
        let (_, after) = word(after)?;
        rest = after.strip_prefix(" 2>/dev/null")?.strip_prefix(WHATEVER)?;
    }
    while let Some(after) = rest.strip_prefix("{ ") {
        rest = block(after)?.strip_prefix(SILENT)?.strip_prefix(WHATEVER)?;
    }
    let (carried, after) = word(rest.strip_prefix(EVAL)?)?;
    let after = after.strip_prefix(" < /dev/null").unwrap_or(after);
    let named = after.strip_prefix(DIRECTORY)?;
    let (directory_file, "") = word(named)? else { return None };
    let host = Host::ClaudeCode;
    let (line, ticket) = match taken_off(host, &carried, None) {
        Some((line, ticket)) => (line.to_owned(), Some(ticket.to_owned())),
        None => (carried, None),
    };
    let is_file = directory_file.starts_with('/');
    let text = text.strip_suffix(named)?.to_owned();
    is_file.then_some(HandedLine { host, line, ticket, directory_file: Some(directory_file), text })
}

/// What stands behind a block of the host's own: builtins with plain or quoted words, up to ` }`.
fn block(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.strip_prefix("\\builtin")?;
        while let Some((_, after)) = rest.strip_prefix(' ').and_then(word) {
            rest = after;
        }
        rest = match rest.strip_prefix(" || ") {
            Some(after) => after,
            None => match rest.strip_prefix("; }") {
                Some(after) => return Some(after),
                None => rest.strip_prefix("; ")?,
            },
        };
    }
}

/// The line between the words that Gemini CLI puts around it.
fn gemini(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(GEMINI_OPTIONS)?.strip_prefix("_bgpids_file=")?;
    let (_, rest) = word(rest)?;
    let rest = rest.strip_prefix("\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\n")?;
    rest.strip_suffix("\n)\n__code=$?\nexit $__code")
}

/// A word as hosts write it, and what stands behind it: plain, or in single quotes with `'"'"'` for one.
fn word(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('\'') else {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(byte);
        let length = text.bytes().take_while(is_plain).count();
        let (plain, rest) = text.split_at_checked(length)?;
        return (!plain.is_empty()).then(|| (plain.to_owned(), rest));
    };
    let mut word = String::new();
    loop {
        let (quoted, after) = rest.split_once('\'')?;
        word.push_str(quoted);
        match after.strip_prefix("\"'\"'") {
            Some(after) => {
                word.push('\'');
                rest = after;
            }
            None => return Some((word, after)),
        }
    }
}

/// A word as hosts write it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::rewritten;

    const TICKET: &str = "AAAABBBBCCCCDDDD";
    const SCRIPT: &str = "/srv/it's/.interlock/bin/run.sh";
    /// As Claude Code 2.1.325 writes it, for a user whose shell has functions of these names.
    const BEFORE: &str = "source '/srv/it'\"'\"'s/.claude/shell-snapshots/snapshot-bash-1-a.sh' 2>/dev/null || true && \
        { \\builtin shopt -u extglob || \\builtin setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL NO_BRACE_CCL \
        NO_MAGIC_EQUAL_SUBST; } >/dev/null 2>&1 || true && { \\builtin unalias -- 'which'; \\builtin unset -f -- 'which'; } \
        >/dev/null 2>&1 || true && ";

    fn line(handed: Handed) -> HandedLine {
        let Handed::Line(line) = handed else { panic!("{handed:?}") };
        line
    }

    #[test]
    fn a_line_of_claude_code_is_found_in_the_host_s_words() {
        for (agent, input) in [
            ("ls", " < /dev/null"),
            ("echo \"it's\" 'a b'\n\necho $'x' !x", " < /dev/null"),
            ("cat <<EOF\nhello ' && pwd -P >| /tmp/x\nEOF", ""),
            ("' && pwd -P >| /tmp/x # '", ""),
        ] {
            let carried = rewritten(Host::ClaudeCode, agent, TICKET, SCRIPT).unwrap();
            for before in [BEFORE, ""] {
                let text = format!("{before}eval {}{input} && pwd -P >| /tmp/claude-817a-cwd", quoted(&carried));
                let found = line(handed_to_prefix(&text, false));
                assert_eq!((found.line.as_str(), found.ticket.as_deref()), (agent, Some(TICKET)));
                assert_eq!(found.directory_file.as_deref(), Some("/tmp/claude-817a-cwd"));
                assert_eq!(found.text("/tmp/it's"), text.replace("/tmp/claude-817a-cwd", "'/tmp/it'\"'\"'s'"));
            }
        }
        let without = line(handed_to_prefix("eval true && pwd -P >| '/t mp/claude-817a-cwd'", false));
        assert_eq!((without.line.as_str(), without.ticket), ("true", None));
    }

    #[test]
    fn what_is_like_a_line_passes_for_nothing_else() {
        let fine = format!("{BEFORE}eval 'ls' < /dev/null && pwd -P >| /tmp/claude-817a-cwd");
        assert!(matches!(handed_to_prefix(&fine, true), Handed::Line(_)));
        for text in [
            format!("{fine}; rm x"),
            format!("{fine} "),
            format!("rm x; {fine}"),
            fine.replacen("eval 'ls'", "eval 'ls' 'rm x'", 1),
            fine.replacen("eval 'ls'", "eval \"ls\"", 1),
            fine.replacen("eval 'ls'", "eval 'ls", 1),
            fine.replacen("eval 'ls'", "eval", 1),
            fine.replacen("< /dev/null", "< /etc/passwd", 1),
            fine.replacen("-- 'which'", "-- $(rm x)", 1),
            fine.replacen("\\builtin unalias", "rm", 1),
            fine.replacen("|| true && eval", "; rm x; eval", 1),
            fine.replacen("/tmp/claude-817a-cwd", "claude-817a-cwd", 1),
            fine.replacen("/tmp/claude-817a-cwd", "$(rm x)", 1),
            "source /a.sh && ls".to_owned(),
        ] {
            for is_own in [true, false] {
                assert_eq!(handed_to_prefix(&text, is_own), Handed::Unknown, "{text}");
            }
        }
        assert_eq!(handed_to_prefix("python3 -c 'import sys' 'a b'", true), Handed::Own);
    }

    #[test]
    fn lines_of_codex_and_gemini_are_found_by_their_script() {
        for agent in ["ls # x", "cat <<EOF\n)\n__code=$?\nexit $__code\nEOF", "echo ' a'"] {
            let codex = rewritten(Host::Codex, agent, TICKET, SCRIPT).unwrap();
            let found = line(handed_to_script(&codex, SCRIPT));
            assert_eq!((found.host, found.line.as_str()), (Host::Codex, agent));
            assert_eq!(found.text("/x"), agent);
            let gemini = rewritten(Host::Gemini, agent, TICKET, SCRIPT).unwrap();
            let text = format!(
                "{GEMINI_OPTIONS}_bgpids_file='/t mp/gemini-shell-a/bgpids.tmp'\n(\n  trap 'jobs -p > \"$_bgpids_file\"' \
                 EXIT\n{gemini}\n)\n__code=$?\nexit $__code"
            );
            let found = line(handed_to_script(&text, SCRIPT));
            assert_eq!((found.host, found.line.as_str(), found.ticket.as_deref()), (Host::Gemini, agent, Some(TICKET)));
            assert_eq!(found.text("/x"), format!("{GEMINI_OPTIONS}{agent}"));
            for other in [format!("{text} "), format!("rm x; {text}"), text.replacen("trap", "rm", 1)] {
                assert_eq!(handed_to_script(&other, SCRIPT), Handed::Unknown);
            }
            assert_eq!(handed_to_script(&text, "/other"), Handed::Unknown);
            assert_eq!(handed_to_script(agent, SCRIPT), Handed::Unknown);
        }
    }
}
