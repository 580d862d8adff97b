//! Command lines: what does this one do, at worst?
//!
//! A real grammar first, then the effects of each simple command, on every branch. Nothing is run, nothing is looked up
//! on the machine. What is not understood is [`Label::Unknown`].
//!
//! | to find | look in |
//! |---|---|
//! | the grammar of bash | `parse.rs`, `simple.rs`, `compound.rs`, `documents.rs`, `word.rs`, `syntax.rs` |
//! | from words to arguments | `braces.rs`, `values.rs`, `reduce.rs` |
//! | the effects of a script | `walk.rs`, `jobs.rs`, `expand.rs`, `effort.rs` |
//! | builtins of the shell | `builtins.rs` |
//! | commands with a language of their own, wrappers, shells | `special.rs` and the files it names |
//! | subcommands of git | `git.toml`; what no table can tell: `git.rs`, `git_config.rs`, `git_settings.rs` |
//! | who answers for a version | `versions.rs` |
//! | all other commands | `commands.toml`, `table.rs`, `options.rs` |
//! | what a path means | `paths.rs` |
//! | what workflows ask about lines | `judge.rs` |
//! | words, paths and hosts for policy | `words.rs`, `unnamed.rs`, `lists.rs`, `composed.rs`, `printed.rs` |
//!
//! ```
//! use interlock_verifiers::shell::{Label, Setting, classify};
//!
//! let setting = Setting::built_in().expect("the table is sound");
//! assert_eq!(classify("grep -rn 'rm -rf' src | head", &setting).label, Label::ReadOnly);
//! assert_eq!(classify("env nice r''m x", &setting).label, Label::Destructive);
//! ```

mod awk;
mod braces;
mod builtins;
mod composed;
mod compound;
mod cursor;
mod documents;
mod effort;
mod environment;
mod expand;
mod find;
mod git;
mod git_config;
mod git_settings;
mod jobs;
mod judge;
mod lists;
mod options;
mod parse;
mod paths;
mod printed;
mod prose;
mod reduce;
mod sed;
mod shells;
mod simple;
mod special;
mod ssh;
mod syntax;
mod table;
mod tar;
mod unnamed;
mod values;
mod versions;
mod walk;
mod word;
mod words;
mod wrappers;

use core::fmt;
use core::ops::Range;
use std::borrow::Cow;
use std::collections::BTreeSet;

use interlock_core::action::{ActionText, Engine};
use interlock_core::json::quote;

use crate::fuel::Fuel;
use crate::ground::Ground;
use crate::outcome::{Check, Outcome, Risk, Status, Verifier, text_of};

pub use table::Commands;
pub use words::{Change, Reached, SimpleCommand, Touch, Words, covers};

/// The version of this engine. Rises when a text could get another label or other effects.
pub const VERSION: u32 = 1;

/// The longest text that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 262_144;

/// What a command does, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// Reads.
    ReadOnly,
    /// Changes files or settings.
    Write,
    /// Reaches other machines.
    Network,
    /// May do anything: not understood, or runs what cannot be seen here.
    #[default]
    Unknown,
    /// Destroys.
    Destructive,
}

impl Label {
    /// All of them, in order.
    pub const ALL: [Label; 5] = [Label::ReadOnly, Label::Write, Label::Network, Label::Unknown, Label::Destructive];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Label::ReadOnly => "read_only",
            Label::Write => "write",
            Label::Network => "network",
            Label::Unknown => "unknown",
            Label::Destructive => "destructive",
        }
    }

    /// The label with this name.
    pub fn parse(text: &str) -> Option<Label> {
        Label::ALL.into_iter().find(|label| label.as_str() == text)
    }

    /// The risk of an action that does this.
    pub fn risk(self) -> Risk {
        match self {
            Label::ReadOnly => Risk::Low,
            Label::Write => Risk::Medium,
            Label::Network | Label::Unknown => Risk::High,
            Label::Destructive => Risk::Critical,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One thing a line does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Effect {
    /// What.
    pub effect: Label,
    /// The command that does it.
    pub command: String,
    /// Where it stands, in bytes of the text.
    pub span: Range<usize>,
    /// Why it is so.
    pub why: Cow<'static, str>,
}

/// Everything a line does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// The strictest of the effects.
    pub label: Label,
    /// Every part of the line is understood. A line that destroys can have other parts that are not.
    pub understood: bool,
    /// The effects in the order of the text.
    pub effects: Vec<Effect>,
    /// What the analysis takes for granted.
    pub assumes: Vec<&'static str>,
}

/// Which shell reads the line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Executor {
    /// Bash.
    #[default]
    Bash,
    /// Bash or zsh, and nobody knows which: what zsh reads differently is unknown.
    BashOrZsh,
    /// `sh`, dash, zsh, ksh, or one that is not known: what they read differently is unknown.
    Other,
    /// PowerShell, cmd, fish: everything is unknown.
    Foreign,
}

impl Executor {
    /// The shell with this name.
    pub fn named(name: &str) -> Executor {
        match name {
            "bash" => Executor::Bash,
            "bash-or-zsh" => Executor::BashOrZsh,
            "sh" | "dash" | "zsh" | "ksh" | "ash" | "mksh" => Executor::Other,
            _ => Executor::Foreign,
        }
    }
}

/// What a line is judged in.
#[derive(Debug, Clone)]
pub struct Setting {
    /// What is known of commands.
    pub commands: Commands,
    /// Which shell reads the line.
    pub executor: Executor,
    /// What the configuration of git in the working directory makes it run; `None` if nobody looked.
    pub git: Option<GitPrograms>,
    /// Which files of the project choose programs in the working directory; `None` if nobody looked.
    pub choosers: Option<Choosers>,
}

/// What is taken for granted where a program is asked for its version and nobody looked who answers.
pub const AS_INSTALLED: &str = "programs as installed";

/// Files of a project by which version managers run programs that are not among the installed ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choosers {
    /// Those that were found, as they are named in [`CHOOSERS`](interlock_core::places::CHOOSERS).
    pub files: Vec<String>,
    /// The line may be in a directory that is not known.
    pub is_unknown: bool,
}

/// What a configuration of git makes it run, with the settings that say so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitPrograms {
    /// A setting that names a program, whatever git is asked to do.
    pub always: Option<String>,
    /// Hooks that come from the project, or run what does.
    pub hooks: Option<Hooks>,
    /// A setting by which objects that are missing are fetched.
    pub fetches: Option<String>,
    /// Subcommands that are defined there.
    pub aliases: BTreeSet<String>,
}

/// Hooks that may run what lies in the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    /// The setting that names them, or the first of them.
    pub setting: String,
    /// They are where the rule `arms` asks about every writer.
    pub are_guarded: bool,
    /// Which there are; none if it may be any.
    pub present: Option<BTreeSet<String>>,
}

impl Setting {
    /// The built-in table, bash, and no look at git's configuration.
    pub fn built_in() -> Result<Setting, String> {
        Commands::load(None).map(Setting::with)
    }

    /// A table, bash, and no look at git's configuration.
    pub fn with(commands: Commands) -> Setting {
        Setting { commands, executor: Executor::Bash, git: None, choosers: None }
    }
}

/// Judges a line.
pub fn classify(text: &str, setting: &Setting) -> Analysis {
    walk::classify(text, setting, None, &mut Fuel::full()).0
}

/// Judges a line, and lists what policy asks about: its commands, the paths they may touch, the hosts they may reach.
pub fn examine(text: &str, setting: &Setting) -> (Analysis, Words) {
    examine_within(text, setting, &mut Fuel::full())
}

/// The same with so much work; if that does not last, the fuel says so.
pub fn examine_within(text: &str, setting: &Setting, fuel: &mut Fuel) -> (Analysis, Words) {
    let (analysis, words) = walk::classify(text, setting, Some(Box::default()), fuel);
    (analysis, words.map_or_else(Words::default, |words| words.finish()))
}

impl Analysis {
    /// The label and the effects as one line of JSON.
    pub fn to_json(&self) -> String {
        let effects: Vec<String> = self
            .effects
            .iter()
            .map(|found| {
                format!(
                    "{{\"effect\":\"{}\",\"command\":{},\"span\":[{},{}],\"why\":{}}}",
                    found.effect,
                    quote(&found.command),
                    found.span.start,
                    found.span.end,
                    quote(&found.why)
                )
            })
            .collect();
        let assumes: Vec<String> = self.assumes.iter().map(|what| quote(what)).collect();
        let assumes = if assumes.is_empty() { String::new() } else { format!(",\"assumes\":[{}]", assumes.join(",")) };
        format!("{{\"label\":\"{}\",\"effects\":[{}]{assumes}}}", self.label, effects.join(","))
    }

    /// The effect that decides: the first of the strictest.
    pub fn deciding(&self) -> Option<&Effect> {
        self.effects.iter().find(|found| found.effect == self.label)
    }
}

/// The engine for actions: the command line is in `query`, or in `code`.
#[derive(Debug, Clone, Copy)]
pub struct Shell;

impl Verifier for Shell {
    fn engine(&self) -> Engine {
        Engine::Shell
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn verify_within(&self, action: &ActionText<'_>, ground: &Ground, fuel: &mut Fuel) -> Outcome {
        let setting = Setting::with(ground.commands.clone());
        let mut judge = |text: &str| walk::classify(text, &setting, None, fuel).0;
        match (text_of(action.query), text_of(action.code)) {
            (Some(text), None) | (None, Some(text)) => outcome(&judge(text)),
            (Some(query), Some(code)) => {
                // Nobody knows which of the two runs: the worse one counts.
                let label = judge(query).label.max(judge(code).label);
                let why = "a command line in `query` and another in `code`";
                uncertain(label.max(Label::Unknown), why)
            }
            (None, None) => uncertain(Label::Unknown, "no command line in `query` or `code`"),
        }
    }
}

fn outcome(analysis: &Analysis) -> Outcome {
    if !analysis.understood {
        return uncertain(analysis.label, "a part of the line can do anything");
    }
    let understood = Check::passed("understood", "every command on every branch is known");
    Outcome {
        status: Status::Verified,
        risk: Some(analysis.label.risk()),
        checks: vec![understood, destroys_nothing(analysis.label)],
        corrected: None,
        certificate: analysis.to_json(),
        hostile: false,
    }
}

/// Not everything is understood; what is counts for the risk.
fn uncertain(label: Label, why: &str) -> Outcome {
    let mut checks = vec![Check::failed("understood", why)];
    // That nothing is destroyed is not known of a part that can do anything.
    if label == Label::Destructive {
        checks.push(destroys_nothing(label));
    }
    Outcome { risk: Some(label.risk()), ..Outcome::uncertain(checks) }
}

fn destroys_nothing(label: Label) -> Check {
    const NAME: &str = "no_destructive_operations";
    if label == Label::Destructive {
        Check::failed(NAME, "a command destroys")
    } else {
        Check::passed(NAME, "nothing is destroyed")
    }
}
