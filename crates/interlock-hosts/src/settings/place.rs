//! Where hosts keep their settings, and which hooks belong there.

use interlock_core::places::{HOST_FILES, Holds, HostFile};

use crate::event::Host;

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user's, for all projects.
    User,
    /// One project's.
    Project,
}

/// What the path of a file starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The user's home directory.
    Home,
    /// The project's root.
    Project,
}

/// What of ours a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The hooks.
    Hooks,
    /// The MCP server that lets the agent change its phase.
    Server,
    /// The program to which the host hands its command lines.
    Prefix,
}

/// A settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// What the path starts from.
    pub base: Base,
    /// The path, from there.
    pub path: &'static str,
    /// What it holds of ours.
    pub parts: &'static [Part],
}

impl Place {
    pub(super) fn is_toml(&self) -> bool {
        self.path.ends_with(".toml")
    }
}

/// The files of a host that `install` writes.
pub fn places(host: Host, scope: Scope) -> Vec<Place> {
    let mut places = read_places(host, scope);
    places.retain(|place| !place.parts.is_empty());
    places
}

/// The files of a host that say whether it asks us: those that `install` writes, and others.
pub fn read_places(host: Host, scope: Scope) -> Vec<Place> {
    let base = match scope {
        Scope::User => Base::Home,
        Scope::Project => Base::Project,
    };
    let is_read = |file: &&HostFile| match scope {
        Scope::User => file.in_home,
        Scope::Project => file.in_project,
    };
    let files = HOST_FILES.iter().filter(|file| file.host == host.as_str()).filter(is_read);
    files.map(|file| Place { base, path: file.path, parts: parts(host, file.holds) }).collect()
}

fn parts(host: Host, holds: Holds) -> &'static [Part] {
    match holds {
        Holds::Nothing => &[],
        Holds::Hooks if host == Host::ClaudeCode => &[Part::Hooks, Part::Prefix],
        Holds::Hooks => &[Part::Hooks],
        Holds::Server => &[Part::Server],
        Holds::HooksAndServer => &[Part::Hooks, Part::Server],
    }
}

/// The events a host is asked to tell us of. One name too many makes some versions of Cursor drop the whole file.
pub(super) fn hooked(host: Host) -> &'static [&'static str] {
    match host {
        Host::ClaudeCode => &[
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "UserPromptSubmit",
            "SessionStart",
            "Stop",
            "SubagentStop",
            "ConfigChange",
        ],
        Host::Codex => &["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop", "SubagentStop"],
        Host::Cursor => &[
            "preToolUse",
            "postToolUse",
            "postToolUseFailure",
            "beforeShellExecution",
            "afterShellExecution",
            "beforeMCPExecution",
            "afterMCPExecution",
            "beforeReadFile",
            "afterFileEdit",
            "beforeSubmitPrompt",
            "sessionStart",
            "subagentStart",
            "subagentStop",
            "stop",
        ],
        Host::Gemini => &["BeforeTool", "AfterTool", "BeforeAgent", "SessionStart", "AfterAgent"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::event_names;

    #[test]
    fn every_hooked_event_can_be_read() {
        for host in Host::ALL {
            for name in hooked(host) {
                assert!(event_names(host).any(|known| known == *name), "{host} {name}");
            }
        }
    }
}
