//! Which calls a state lets pass, and through which of them unknown code can run.
//!
//! This is about all calls there could be, not about one: a pattern passes if some call that matches it does.

use interlock_core::call::Family;
use interlock_core::contain::Profile;
use interlock_core::workflow::{AfterFinal, CommandJudge, Reach, State, StateKind, ToolPattern, Workflow};

use super::command_set::CommandSet;
use super::property::Target;

/// How hosts begin the names of tools of MCP servers.
pub(crate) const MCP: &str = "mcp__";

/// What can do more than the call says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Opaque {
    /// Every command line passes.
    AnyCommand,
    /// Every tool passes that is not refused by name.
    AnyTool,
    /// A command of `allowed_commands` that runs unknown code.
    Command(String),
    /// A command of `allowed_commands` that runs unknown code, and the profile that holds it but lets it do this.
    HeldCommand(String, String),
    /// A tool that is no family known here: a host may use the name for anything.
    Tool(String),
    /// A tool of an MCP server: what the server does with a call is not known here.
    Server(String),
}

/// What a state lets pass of shell lines.
pub(crate) enum ShellLines<'a> {
    None,
    ReadOnly,
    Listed(&'a [String]),
    All,
}

/// A state together with what holds in it once a run is over.
pub(crate) struct Permits<'a> {
    state: &'a State,
    after_final: AfterFinal,
    judge: &'a dyn CommandJudge,
}

impl<'a> Permits<'a> {
    pub(crate) fn new(workflow: &Workflow, state: &'a State, judge: &'a dyn CommandJudge) -> Permits<'a> {
        Permits { state, after_final: workflow.after_final(), judge }
    }

    /// Whether some call of this kind passes.
    pub(crate) fn passes(&self, target: &Target) -> bool {
        match target {
            Target::Tool(pattern) => self.tool_passes(pattern),
            Target::Command(asked) => match self.shell_lines() {
                ShellLines::None => false,
                ShellLines::All => true,
                ShellLines::ReadOnly => self.reach(asked) == Reach::Reads,
                ShellLines::Listed(listed) => {
                    self.reach(asked) == Reach::Reads
                        || listed.iter().any(|line| CommandSet::listed(line).overlaps(asked))
                }
            },
        }
    }

    /// What the state lets pass that can do more than the call says.
    pub(crate) fn opaque(&self, target: &Target) -> Vec<Opaque> {
        let mut found = Vec::new();
        match self.shell_lines() {
            ShellLines::None | ShellLines::ReadOnly => {}
            ShellLines::All => found.push(Opaque::AnyCommand),
            ShellLines::Listed(_) => {
                let free = self.unknown_code().filter(|line| self.kept_off_by(line, target).is_none());
                found.extend(free.map(|line| match self.held_to(line) {
                    Some(profile) => Opaque::HeldCommand(line.clone(), profile.name.clone()),
                    None => Opaque::Command(line.clone()),
                }));
            }
        }
        match &self.state.allowed_tools {
            _ if self.is_over() => {}
            None => found.push(Opaque::AnyTool),
            Some(allowed) => {
                let named = allowed.iter().filter(|pattern| self.tool_passes(pattern));
                found.extend(named.filter_map(|pattern| opaque_tool(pattern, target)));
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// The commands of `allowed_commands` that run unknown code, and the profiles that keep it from what is asked about.
    pub(crate) fn kept_off(&self, target: &Target) -> Vec<(&'a String, &'a Profile)> {
        self.unknown_code().filter_map(|line| Some((line, self.kept_off_by(line, target)?))).collect()
    }

    fn unknown_code(&self) -> impl Iterator<Item = &'a String> {
        let listed = match self.shell_lines() {
            ShellLines::Listed(listed) => listed,
            ShellLines::None | ShellLines::ReadOnly | ShellLines::All => &[],
        };
        listed.iter().filter(|line| self.reach(&CommandSet::listed(line)) == Reach::Anything)
    }

    /// The profile that keeps the unknown code of a listed command from what is asked about, if one does.
    fn kept_off_by(&self, line: &str, target: &Target) -> Option<&'a Profile> {
        self.held_to(line).filter(|profile| self.is_beyond(target, profile))
    }

    /// The profile that a listed command is held to, if it is the same however the command is spelt.
    fn held_to(&self, line: &str) -> Option<&'a Profile> {
        let samples = CommandSet::listed(line).samples();
        let mut held = samples.iter().map(|sample| self.judge.held_to(sample));
        let first = held.next()??;
        held.all(|other| other == Some(first)).then_some(first)
    }

    /// Whether what is asked about comes to nothing in a profile. What is done in the project, unknown code can do there.
    fn is_beyond(&self, target: &Target, profile: &Profile) -> bool {
        let (reaches, writes) = (!profile.connect.is_empty(), !profile.write.is_empty());
        match target {
            Target::Command(asked) => {
                !reaches && asked.spellings().iter().all(|line| self.judge.speaks_with_others(line))
            }
            Target::Tool(tool) => match Family::parse(&tool.stem).filter(|_| !tool.open) {
                Some(Family::WebFetch | Family::Agent) => !reaches,
                Some(Family::Edit | Family::Write) => !writes,
                Some(Family::Read | Family::Grep | Family::Glob | Family::Bash) => false,
                None => !reaches && !writes,
            },
        }
    }

    /// Which shell lines pass.
    pub(crate) fn shell_lines(&self) -> ShellLines<'a> {
        if !self.family_passes(Family::Bash) {
            return ShellLines::None;
        }
        if self.is_over() {
            return ShellLines::All;
        }
        match &self.state.allowed_commands {
            Some(listed) => ShellLines::Listed(listed),
            None if self.family_passes(Family::Write) || self.family_passes(Family::Edit) => ShellLines::All,
            None => ShellLines::ReadOnly,
        }
    }

    /// Whether calls of a family pass, under its own name.
    pub(crate) fn family_passes(&self, family: Family) -> bool {
        self.tool_passes(&ToolPattern { stem: family.as_str().to_owned(), open: false })
    }

    fn is_over(&self) -> bool {
        matches!(self.state.kind, StateKind::Final(_))
    }

    /// What the commands of a pattern can do, at worst.
    pub(crate) fn reach(&self, pattern: &CommandSet) -> Reach {
        pattern.samples().iter().map(|line| self.judge.reach(line)).max().unwrap_or(Reach::Anything)
    }

    fn tool_passes(&self, asked: &ToolPattern) -> bool {
        if self.is_over() {
            return self.after_final == AfterFinal::Open;
        }
        let refused = |names: &ToolPattern| self.state.disallowed_tools.iter().any(|pattern| covers(pattern, names));
        match &self.state.allowed_tools {
            None => !refused(asked),
            Some(allowed) => allowed.iter().filter_map(|pattern| common(pattern, asked)).any(|names| !refused(&names)),
        }
    }
}

/// The names that match both patterns, as one pattern.
pub(crate) fn common(left: &ToolPattern, right: &ToolPattern) -> Option<ToolPattern> {
    if covers(left, right) {
        Some(right.clone())
    } else if covers(right, left) {
        Some(left.clone())
    } else {
        None
    }
}

/// Whether every name that matches the second matches the first. Names have no end of letters to choose from, so a list
/// of narrower patterns never covers a wider one.
pub(crate) fn covers(wide: &ToolPattern, narrow: &ToolPattern) -> bool {
    wide.matches(&narrow.stem) && (wide.open || !narrow.open)
}

/// Why a pattern that a state allows may let through more than its name says, seen from a question.
fn opaque_tool(allowed: &ToolPattern, asked: &Target) -> Option<Opaque> {
    let text = allowed.to_string();
    if allowed.stem.starts_with(MCP) {
        return Some(Opaque::Server(text));
    }
    let is_family = !allowed.open && Family::parse(&allowed.stem).is_some();
    match asked {
        // A question about a host's own name: any family may be what the host calls so.
        Target::Tool(tool) if Family::parse(&tool.stem).is_none() && !tool.stem.starts_with(MCP) => {
            Some(Opaque::Tool(text))
        }
        Target::Tool(_) | Target::Command(_) => (!is_family).then_some(Opaque::Tool(text)),
    }
}
