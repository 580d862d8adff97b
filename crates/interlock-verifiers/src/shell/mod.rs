//! Command lines: what does this one do, at worst?
//!
//! A real grammar first, then the effects of each simple command, on every branch. Nothing is run, nothing is looked up
//! on the machine. What is not understood is [`Effect::Unknown`].
//!
//! | to find | look in |
//! |---|---|
//! | **the grammar of bash** | |
//! | commands, pipes, loops, redirects | `parse.rs`, `simple.rs`, `compound.rs`, `documents.rs` (here-documents) |
//! | one word with its quotes and expansions | `word.rs`; as data: `syntax.rs` |
//! | from words to arguments | `braces.rs`, `values.rs` (what variables hold), `reduce.rs` |
//! | **effects** | |
//! | of a script: every command on every branch | `walk.rs`, `jobs.rs`, `expand.rs`; how much work that is: `effort.rs` |
//! | of builtins, and what variables reach | `builtins.rs`, `environment.rs` |
//! | of programs | `programs.rs`: by the table, or by the code for a language |
//! | the table of commands | `commands.toml`, read by `table.rs`, an entry at a time (`built_in.rs`) |
//! | what is known beside effects | `traits.rs` |
//! | options, read by a command's own grammar | `options.rs` |
//! | languages | `sed.rs`, `awk.rs`, `find.rs`, `tar.rs`, `ssh.rs`, `shells.rs`, `wrappers.rs` (`env`, `xargs` …) |
//! | git | `git.toml`, `git.rs`; settings: `git_config.rs`, `git_settings.rs`; what it touches: `git_touches.rs` |
//! | who answers for a version | `versions.rs` |
//! | what it means to write to a path | `paths.rs` |
//! | **what others ask** | |
//! | policy: words, paths and hosts of a line | `policy_words.rs`; what of a runner it needs: `needs.rs` |
//! | paths that the line does not name | `unnamed_files.rs`, `made_names.rs` (put together), `credentials.rs` (printed) |
//! | workflows | `workflow_judge.rs` |
//!
//! ```
//! use interlock_core::call::Effect;
//! use interlock_verifiers::shell::{Setting, classify};
//!
//! let setting = Setting::built_in().expect("the table is sound");
//! assert_eq!(classify("grep -rn 'rm -rf' src | head", &setting).label, Effect::ReadOnly);
//! assert_eq!(classify("env nice r''m x", &setting).label, Effect::Destructive);
//! ```

mod awk;
mod braces;
mod built_in;
mod builtins;
mod compound;
mod credentials;
mod cursor;
mod documents;
mod effort;
mod environment;
mod expand;
mod find;
mod git;
mod git_config;
mod git_settings;
mod git_touches;
mod jobs;
mod made_names;
mod needs;
mod options;
mod parse;
mod paths;
mod policy_words;
mod programs;
mod reduce;
mod sed;
mod shells;
mod simple;
mod ssh;
mod syntax;
mod table;
mod tar;
mod traits;
mod unnamed_files;
mod values;
mod versions;
mod walk;
mod word;
mod workflow_judge;
mod wrappers;

use core::ops::Range;
use std::borrow::Cow;
use std::collections::BTreeSet;

use interlock_core::action::{ActionText, Engine};
use interlock_core::call::Effect;
use interlock_core::json::quote;

use crate::fuel::Fuel;
use crate::ground::Ground;
use crate::outcome::{Check, Outcome, Status, Verifier, text_of};

pub use needs::Needs;
pub use policy_words::{Change, Reached, SimpleCommand, Touch, Words, covers};
pub use table::Commands;

/// The version of this engine. Rises when a text could get another label or other effects.
pub const VERSION: u32 = 1;

/// The longest text that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 262_144;

/// One effect of a line, and the part of the line that causes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The effect.
    pub effect: Effect,
    /// The command that has it; empty if it is no command's.
    pub command: String,
    /// Where that stands, in bytes of the text.
    pub span: Range<usize>,
    /// Why it is so: a sentence for people, which nothing is decided by.
    pub why: Cow<'static, str>,
    /// What outside of the line is to blame, if something is.
    pub blame: Option<GitBlame>,
}

/// A setting of git by which a line does what it does not say, the strictest kind first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GitBlame {
    /// It names a program that git runs.
    Program(String),
    /// It names hooks that git runs.
    Hooks(String),
    /// It names where git fetches objects that are missing.
    Fetch(String),
}

impl GitBlame {
    /// The setting.
    pub fn setting(&self) -> &str {
        match self {
            GitBlame::Program(setting) | GitBlame::Hooks(setting) | GitBlame::Fetch(setting) => setting,
        }
    }

    /// Why it makes a line do what it does not say.
    pub(super) fn why(&self) -> String {
        match self {
            GitBlame::Program(setting) => format!("the repository's configuration names a program: `{setting}`"),
            GitBlame::Hooks(setting) => format!("runs hooks of the project: `{setting}`"),
            GitBlame::Fetch(setting) => format!("fetches objects that are missing: `{setting}`"),
        }
    }
}

/// Everything a line does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// The strictest of the effects.
    pub label: Effect,
    /// Every part of the line is understood. A line that destroys can have other parts that are not.
    pub understood: bool,
    /// The effects with their causes, in the order of the text.
    pub causes: Vec<Cause>,
    /// What the analysis takes for granted.
    pub assumes: Vec<Assumption>,
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

/// What is taken for granted where nobody looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumption {
    /// The configuration of the repository names no programs.
    PlainRepository,
    /// A program that is asked for its version is the installed one.
    AsInstalled,
}

impl Assumption {
    /// The words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Assumption::PlainRepository => "plain repository",
            Assumption::AsInstalled => "programs as installed",
        }
    }
}

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
    pub fn built_in() -> Result<Setting, interlock_core::Cause> {
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
            .causes
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
        let assumes: Vec<String> = self.assumes.iter().map(|what| quote(what.as_str())).collect();
        let assumes = if assumes.is_empty() { String::new() } else { format!(",\"assumes\":[{}]", assumes.join(",")) };
        format!("{{\"label\":\"{}\",\"effects\":[{}]{assumes}}}", self.label, effects.join(","))
    }

    /// The cause of the label: the first of the strictest.
    pub fn deciding(&self) -> Option<&Cause> {
        self.causes.iter().find(|found| found.effect == self.label)
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
                uncertain(label.max(Effect::Unknown), why)
            }
            (None, None) => uncertain(Effect::Unknown, "no command line in `query` or `code`"),
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
fn uncertain(label: Effect, why: &str) -> Outcome {
    let mut checks = vec![Check::failed("understood", why)];
    // That nothing is destroyed is not known of a part that can do anything.
    if label == Effect::Destructive {
        checks.push(destroys_nothing(label));
    }
    Outcome { risk: Some(label.risk()), ..Outcome::uncertain(checks) }
}

fn destroys_nothing(label: Effect) -> Check {
    const NAME: &str = "no_destructive_operations";
    if label == Effect::Destructive {
        Check::failed(NAME, "a command destroys")
    } else {
        Check::passed(NAME, "nothing is destroyed")
    }
}
