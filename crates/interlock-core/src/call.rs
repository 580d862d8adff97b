//! A tool call as a coding agent's host or a gateway tells of it, in terms that are the same for all of them.
//!
//! Whoever speaks a host's protocol makes a [`Call`]; whoever judges it reads no host's field names.

use serde::{Deserialize, Serialize};

use crate::action::{Risk, words};
use crate::digest::Digest;
use crate::json::Json;

words! {
    /// What hosts call differently and means the same. Workflows name tools by these words, or by a host's own.
    Family: "family of tools" {
        /// Reads files.
        Read = "Read",
        /// Searches in files.
        Grep = "Grep",
        /// Finds files by their names.
        Glob = "Glob",
        /// Changes files.
        Edit = "Edit",
        /// Makes or replaces files.
        Write = "Write",
        /// Runs command lines.
        Bash = "Bash",
        /// Fetches from the network, or searches there.
        WebFetch = "WebFetch",
        /// Starts another agent.
        Agent = "Agent",
    }
}

words! {
    /// What a call, or a command line, does: from the mildest to the strictest.
    Effect: "effect" {
        /// Reads.
        ReadOnly = "read_only",
        /// Changes files or settings.
        Write = "write",
        /// Reaches other machines.
        Network = "network",
        /// May do anything: not understood, or runs what cannot be seen.
        Unknown = "unknown",
        /// Destroys.
        Destructive = "destructive",
    }
}

impl Effect {
    /// The risk of what has this effect.
    pub fn risk(self) -> Risk {
        match self {
            Effect::ReadOnly => Risk::Low,
            Effect::Write => Risk::Medium,
            Effect::Network | Effect::Unknown => Risk::High,
            Effect::Destructive => Risk::Critical,
        }
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool, as its host names it.
    pub tool: String,
    /// What kind of tool that is, where the table of its host says so.
    pub family: Option<Family>,
    /// The server and the tool behind it, if it is one of MCP.
    pub mcp: Option<McpTool>,
    /// Its whole input.
    pub input: Json,
    /// What that input asks for.
    pub intent: Intent,
    /// It is one of the host's own tools that do nothing outside of the agent: a list of what to do, a question to the
    /// user, the output of a command that was judged when it was started.
    pub bookkeeping: bool,
}

/// A tool of an MCP server. They are two names, never one joined string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct McpTool {
    /// The server, as the host's settings name it.
    pub server: String,
    /// The tool, as the server names it.
    pub tool: String,
}

/// What a call asks for: whatever a rule could be about. What is not here was not in the input, or is in `unread`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Intent {
    /// Command lines to be run.
    pub commands: Vec<String>,
    /// The directory they are to be run in, where the call names one.
    pub directory: Option<String>,
    /// Files and directories to be read, as the call spells them.
    pub reads: Vec<String>,
    /// Patterns of names of files to be read, as the call spells them, without braces.
    pub patterns: Vec<String>,
    /// Files to be written, changed, moved or deleted, as the call spells them.
    pub writes: Vec<FileChange>,
    /// Those of them for which the host looks elsewhere in the project, if there is no such file: relative paths.
    pub sought: Vec<String>,
    /// Addresses to be reached.
    pub urls: Vec<String>,
    /// The commands go on behind the agent's back once the call is over.
    pub goes_on: bool,
    /// Fields of the input that nobody here knows: what they ask for cannot be told.
    pub unread: Vec<String>,
    /// Fields of the input that are words for people: whatever they say, the same is done.
    pub remarks: Vec<String>,
}

/// A file to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path, as the call spells it.
    pub path: String,
    /// How many lines are written or taken away, where the call alone can tell.
    pub lines: Option<u64>,
    /// All that it will hold, where that is given: what is taken away then depends on what it holds now.
    pub whole: Option<String>,
    /// It is to be deleted, or moved away.
    pub deletes: bool,
}

impl Call {
    /// The SHA-256 of tool and input, without what is said to people about it: the same call has the same.
    pub fn fingerprint(&self) -> Digest {
        let (server, tool) = self.mcp.as_ref().map_or(("", ""), |mcp| (&*mcp.server, &*mcp.tool));
        let name = [&self.tool, server, tool].map(crate::json::quote).join(",");
        let remarks = &self.intent.remarks;
        let asked = match self.input.as_object().filter(|_| !remarks.is_empty()) {
            Some(members) => {
                let kept = members.iter().filter(|(key, _)| !remarks.contains(key));
                Json::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect()).canonical()
            }
            None => self.input.canonical(),
        };
        Digest::of(&["[", &name, ",", &asked, "]"])
    }

    /// The SHA-256 of what it asks for, in whatever form: commands, files, addresses, a tool of MCP, and the directory. Two
    /// events of a host about one call have the same; its input may be told differently in each.
    pub fn gist(&self, cwd: &str) -> Digest {
        let Intent { commands, directory, reads, patterns, writes, sought: _, urls, goes_on: _, unread: _, remarks: _ } =
            &self.intent;
        let reads: Vec<String> = reads.iter().chain(patterns).cloned().collect();
        let texts = |texts: &[String]| Json::Array(texts.iter().map(|text| Json::from(text.as_str())).collect());
        let written: Vec<String> = writes.iter().map(|change| change.path.clone()).collect();
        let mcp =
            self.mcp.as_ref().map_or(Json::Null, |mcp| Json::Array(vec![(&*mcp.tool).into(), self.input.clone()]));
        let names_nothing =
            commands.is_empty() && reads.is_empty() && writes.is_empty() && urls.is_empty() && self.mcp.is_none();
        // Of what names nothing, only the very same input is the same.
        let other =
            if names_nothing { Json::Array(vec![(&*self.tool).into(), self.input.clone()]) } else { Json::Null };
        let place = directory.as_deref().unwrap_or(cwd);
        let parts = vec![texts(commands), texts(&reads), texts(&written), texts(urls), mcp, other, place.into()];
        Digest::of(&[&Json::Array(parts).canonical()])
    }

    /// The names under which rules and workflows may know its tool.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [Some(self.tool.as_str()), self.family.map(Family::as_str)].into_iter().flatten()
    }
}

/// The lines that differ when `old` becomes `new`: those taken away and those written, without what both begin and end
/// with.
///
/// ```
/// use interlock_core::call::lines_changed;
///
/// assert_eq!(lines_changed("a\nb\nc", "a\nB\nc"), 2);
/// assert_eq!(lines_changed("a\nc", "a\nb\nc"), 1);
/// assert_eq!(lines_changed("a\na", "a\na\na"), 1);
/// assert_eq!(lines_changed("", "a\nb"), 2);
/// assert_eq!(lines_changed("a", "a"), 0);
/// assert_eq!(lines_changed("a", "a\n"), 1);
/// ```
pub fn lines_changed(old: &str, new: &str) -> u64 {
    let (old, new) = (pieces(old), pieces(new));
    let before = old.iter().zip(&new).take_while(|(left, right)| left == right).count();
    let (old, new) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(left, right)| left == right).count();
    let left = |lines: &[&str]| u64::try_from(lines.len().saturating_sub(after)).unwrap_or(u64::MAX);
    left(old).saturating_add(left(new))
}

/// The lines, the empty one after a last line's end included: without it, adding that end would change nothing.
fn pieces(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
}
