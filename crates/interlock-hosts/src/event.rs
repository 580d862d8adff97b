//! An event of a host, in terms that are the same for all of them.

use core::fmt;

use interlock_core::Digest;
use interlock_core::call::Call;

use crate::trailer::Trailer;

/// A host of coding agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Gemini CLI.
    Gemini,
}

impl Host {
    /// All of them, in order.
    pub const ALL: [Host; 4] = [Host::ClaudeCode, Host::Codex, Host::Cursor, Host::Gemini];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Host::ClaudeCode => "claude-code",
            Host::Codex => "codex",
            Host::Cursor => "cursor",
            Host::Gemini => "gemini",
        }
    }

    /// The host with this name.
    ///
    /// ```
    /// use interlock_hosts::Host;
    ///
    /// assert_eq!(Host::parse("claude-code"), Some(Host::ClaudeCode));
    /// assert_eq!(Host::parse("Claude Code"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Host> {
        Host::ALL.into_iter().find(|host| host.as_str() == text)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event as a host sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEvent {
    /// Who sent it.
    pub host: Host,
    /// Its name, from the closed list of that host.
    pub name: &'static str,
    /// The session or conversation. Subagents share it.
    pub session: String,
    /// The directory the host works in.
    pub cwd: String,
    /// Other directories of the same workspace, where the host has several.
    pub roots: Vec<String>,
    /// The subagent that acts; none is the main one.
    pub subagent: Option<String>,
    /// Whether a question would reach a person: hosts run what they should ask about in their automatic modes.
    pub may_ask: bool,
    /// What happened.
    pub kind: Kind,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A tool is about to run.
    BeforeTool {
        /// What it is asked to do.
        call: Call,
        /// The host's name for this call.
        call_id: Option<String>,
        /// The ticket that its command carried; the command of `call` is the line without it. Whether it is one that was
        /// issued for this call is for whoever judges it.
        ticket: Option<String>,
        /// Another event of the host asks about the same call: judge this one too, but count the call there.
        echo: bool,
    },
    /// A tool ran.
    AfterTool {
        /// What it did, with the input that the host says was executed.
        call: Call,
        /// The host's name for this call.
        call_id: Option<String>,
        /// The ticket that its command carried; the command of `call` is the line without it. Whether it is one that was
        /// issued for this call is for whoever judges it.
        ticket: Option<String>,
        /// Another event of the host tells of the same call: it is the one to be matched with what was judged.
        echo: bool,
        /// How it ended.
        result: ToolResult,
    },
    /// A person, or a command of theirs, gave the agent something to do.
    Prompt,
    /// A session begins or goes on.
    SessionStart {
        /// How it came to begin, in the host's word.
        source: Option<String>,
    },
    /// The agent is done.
    Stop {
        /// It goes on already because a hook said so: saying so again could last for ever.
        already_active: bool,
    },
    /// A subagent is done.
    SubagentStop {
        /// As for [`Kind::Stop`].
        already_active: bool,
    },
    /// Somebody changed the host's settings.
    ConfigChange {
        /// Whose settings, in the host's word.
        source: Option<String>,
        /// The file, where the host names it.
        path: Option<String>,
    },
    /// The host only informs.
    Notice,
}

/// How a call of a tool ended, as far as the host's fields say so. Nothing is read out of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Whether it succeeded.
    pub ok: Option<bool>,
    /// The exit code of the command it ran.
    pub exit_code: Option<i64>,
    /// The SHA-256 of the response, in the bytes it was sent in.
    pub response: Digest,
    /// What runners told in the output of a command, of a host whose sandbox lets them tell in no other way. The response
    /// above is without it.
    pub trailers: Vec<Trailer>,
    /// The event repeats the input as it was judged, so that the two can be compared. Not so for the few tools whose
    /// input the host completes itself.
    pub repeats_input: bool,
}

/// An event that could not be read. It may stand before an action, so it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Why: a place and a rule, never what was sent.
    pub reason: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Unreadable {}

impl Unreadable {
    pub(crate) fn new(reason: impl Into<String>) -> Unreadable {
        Unreadable { reason: reason.into() }
    }
}
