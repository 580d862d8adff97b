//! What a host's hooks cover, as `docs/hosts.md` says: whether a failing hook stops the tool, and what goes past.

use crate::event::Host;

/// Whether a host stops when its hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// A hook that is missing, crashes or takes too long stops the tool.
    Enforcing,
    /// The tool runs when the hook fails: refusals hold as long as the hook answers.
    Advisory,
}

impl Strength {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Strength::Enforcing => "enforcing",
            Strength::Advisory => "advisory",
        }
    }
}

/// Whether a host stops when its hook fails.
pub fn strength(host: Host) -> Strength {
    match host {
        Host::ClaudeCode | Host::Cursor => Strength::Enforcing,
        Host::Codex | Host::Gemini => Strength::Advisory,
    }
}

/// What goes past the hooks of every host.
pub const PAST_ALL: &[&str] = &[
    "files a person mentions (`@file`), attaches or pastes: no tool reads them",
    "what a command, an MCP server or a background task does after it was let run",
    "other hooks that rewrite an input: all of them run at once, on the input as it was. An input after the tool that is \
     not the one judged before it stops the run",
];

/// What goes past the hooks of this host, besides that.
pub fn past(host: Host) -> &'static [&'static str] {
    match host {
        Host::ClaudeCode => &[
            "commands in the text of slash commands and skills, before the agent sees it. The call that loads them is \
             one whose effect cannot be told",
            "agents on other machines (`isolation: \"remote\"`): unread, so the rules see it",
            "`disableAllHooks`, and an administrator's `allowManagedHooksOnly`",
        ],
        Host::Codex => &[
            "hooks nobody accepted: each must be accepted in `/hooks`, by its exact text, and until then the tool runs \
             without a word. A new binary path, home or daemon is a new text. A project's hooks count only where the \
             project is trusted",
            "tools that ask no hook: what is typed into a command that still runs (`write_stdin`), the search for \
             tools, and search on the web",
            "a refusal without a reason, `ask`, and `allow` on its own: the tool runs. Interlock sends none of them",
        ],
        Host::Cursor => &[
            "completions (`Tab`): their reads and edits have events of their own, which are not installed",
            "a name of an event that a version does not know: it may drop the whole file. Interlock needs one with \
             `preToolUse`",
            "a tool of a foreign MCP server that is named like a control tool (`interlock_transition`, \
             `interlock_get_state`): Cursor tells no server, so the name alone lets it pass",
            "`ask` at `preToolUse` is accepted and not enforced: refused instead",
        ],
        Host::Gemini => &[
            "`hooksConfig.enabled: false`, `hooksConfig.disabled`, and folders that are not trusted",
            "anything on the output that is not JSON is shown and the tool runs. Interlock prints JSON or nothing",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(host: Host) -> &'static str {
        match host {
            Host::ClaudeCode => "Claude Code",
            Host::Codex => "Codex",
            Host::Cursor => "Cursor",
            Host::Gemini => "Gemini CLI",
        }
    }

    /// The page and this file say the same, row for row.
    #[test]
    fn the_page_says_the_same() {
        let page = include_str!("../../../docs/hosts.md");
        let section = page.split("## What goes past hooks").nth(1).unwrap().split("\n\n").nth(1).unwrap();
        let mut rows: Vec<(String, String)> = Vec::new();
        for line in section.lines().skip(2) {
            let cells: Vec<_> =
                line.trim_matches('|').splitn(2, " | ").map(|cell| cell.trim().replace("**", "")).collect();
            rows.push((cells[0].clone(), cells[1].clone()));
        }
        let mut own: Vec<(String, String)> =
            PAST_ALL.iter().map(|text| ("all".to_owned(), (*text).to_owned())).collect();
        for host in Host::ALL {
            own.extend(past(host).iter().map(|text| (name(host).to_owned(), (*text).to_owned())));
        }
        assert_eq!(rows, own);
        let so_it_is = page.lines().find(|line| line.starts_with("| so it is |")).unwrap();
        let cells: Vec<_> = so_it_is.trim_matches('|').split('|').map(str::trim).skip(1).collect();
        for (host, cell) in Host::ALL.into_iter().zip(cells) {
            assert!(cell.starts_with(strength(host).as_str()), "{host}: {cell}");
        }
    }
}
