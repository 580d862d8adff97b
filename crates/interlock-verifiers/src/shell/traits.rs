//! What the table knows of a command beside its effects: who reads it, what its words are, and what it touches without
//! naming it.
//!
//! Of a command that is not listed nothing of this is known, and the strictest holds: every word of it may be a path,
//! whoever asks it for its version may run anything.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The columns of one command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Traits {
    /// The code that reads it.
    pub(super) language: Option<Language>,
    /// What else it is.
    pub(super) is: Vec<Fact>,
    /// It takes its operands away, or changes them with all that is in them.
    pub(super) removes: Option<Removes>,
    /// Its first operand is a program or a pattern, unless an option gives it.
    pub(super) script: Option<Script>,
    /// Which operands are hosts.
    pub(super) hosts: Option<Hosts>,
    /// How it puts together the names of files that it writes.
    pub(super) makes: Option<Makes>,
    /// Options by which it writes under names that the line does not tell.
    pub(super) makes_by: String,
    /// Options that give the suffix of a copy.
    pub(super) suffix: String,
    /// Options by which directories are kept beneath the one that is written to.
    pub(super) keeps: String,
    /// Options by which it reads files that a list names.
    pub(super) lists: String,
    /// Words by which it does: `@list`.
    pub(super) list_words: String,
    /// Words by which it writes files that the line does not name: those in an archive.
    pub(super) unpacks: String,
    /// Words by which it reads all that is in the directories it is given.
    pub(super) sweeps: String,
    /// Options whose values are numbers.
    pub(super) numbers: String,
    /// The words by which it prints a credential, by the file that holds it. Words stand in this order, with others
    /// between them; options in any.
    pub(super) prints: BTreeMap<String, Vec<String>>,
}

impl Traits {
    /// Whether this is said of it.
    pub(super) fn is(&self, fact: Fact) -> bool {
        self.is.contains(&fact)
    }

    /// Whether code reads it as this.
    pub(super) fn speaks(&self, language: Language) -> bool {
        self.language == Some(language)
    }
}

/// A language of its own, which code reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Language {
    Sed,
    Awk,
    Find,
    Fd,
    Tar,
    Dd,
    Socat,
    Ssh,
    Git,
    Env,
    Xargs,
    Parallel,
    Flock,
    Script,
    Watch,
    Time,
    /// `sudo`, `doas`
    Privileged,
    /// Its first word is the command: `busybox`.
    Multicall,
    Shell,
    /// A builtin of the shell.
    Builtin,
}

/// What can be said of a command with a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fact {
    /// Its words are no paths.
    WithoutPaths,
    /// A builtin that is a program as well, and does the same.
    Program,
    /// It takes a program, or a setting for another one, as an operand.
    TakesProgram,
    /// It runs others for what it finds.
    Finds,
    /// It goes through the directory it is in, where it is given none.
    Searches,
    /// What it runs goes on when the line is done.
    Detaches,
    /// It opens an address where others open a file.
    OpensAddresses,
    /// A tool for machines elsewhere, whose verbs stand at any depth.
    Cloud,
    /// It deletes by a method: `-X DELETE`.
    HasMethods,
    /// It changes the machine where it changes anything.
    Machine,
    /// Its options say whether it prints the environments of processes.
    ShowsProcesses,
    /// A subcommand of git that runs hooks as a matter of course.
    Hooked,
    /// One that reads, and writes the index anew where it is out of date: there is a hook for that.
    Indexes,
    /// One that merges, and takes the name of a strategy, which is a program.
    Merges,
    /// One that looks at what is recorded, and at no file.
    Recorded,
    /// One that shows what a stream names.
    Shows,
    /// One that takes a text with `-m`.
    TakesMessage,
    /// One that takes the name of a branch with `-b` and its like.
    TakesBranch,
}

/// What is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Removes {
    Operands,
    /// The last one is where the others go.
    AllButLast,
    /// Empty directories, whatever its effect is.
    Directories,
}

/// What the first operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Script {
    /// It names no files.
    Plain,
    /// It can name files: `r file`, `getline < "file"`.
    NamesFiles,
    /// It can load other files: `import "x" as $x;`.
    Loads,
}

/// Which operands are hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Hosts {
    First,
    Last,
    /// Each is a host or an address.
    All,
    /// Each can be `host:path`.
    InPaths,
}

/// How names of files are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Makes {
    /// Copies in a directory, under the names they have; the originals stay as they are.
    Copies,
    /// The same, and nobody says what happens to the originals.
    Placed,
    /// Links in a directory.
    Links,
    /// Copies on another machine, or from there.
    Transfers,
    /// A file replaced by a compressed one.
    Packed,
    /// A compressed file replaced by what is in it.
    Unpacked,
    /// The name in an address, as `wget` keeps it.
    ByWget,
    /// The same, as `curl` does.
    ByCurl,
    /// A prefix, and letters or numbers behind it.
    Pieces,
    /// The name is in what is decoded.
    Decoded,
}
