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
    /// Verbs by which it needs more than any profile of the runner gives.
    pub(super) beyond_by: String,
    /// The option that names a module to run, which is mostly a command of its own.
    pub(super) module: String,
    /// Modules by which it fetches packages, and which are no commands.
    pub(super) packages_by: String,
    /// The words by which it prints a credential, by the file that holds it. Words stand in this order, with others
    /// between them; options in any.
    pub(super) prints: BTreeMap<String, Vec<String>>,
}

impl Traits {
    /// Whether this is said of it.
    pub(super) fn is(&self, fact: Fact) -> bool {
        self.is.contains(&fact)
    }

    /// Whether it makes of many files many others.
    pub(super) fn copies_many(&self) -> bool {
        self.is(Fact::CopiesMany)
            || matches!(self.makes, Some(Makes::Copies | Makes::Placed | Makes::Links | Makes::Transfers))
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
    /// It makes of many files many others; so does all that `makes` copies.
    CopiesMany,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::table::Commands;
    use crate::shell::{Effect, Needs, Setting, Words, examine};

    /// Named by no table.
    const UNLISTED: &str = "frobnicate";

    fn judged(arguments: &str) -> (Effect, Words) {
        let (analysis, words) =
            examine(&format!("{UNLISTED} {arguments}"), &Setting::built_in().expect("the table is sound"));
        (analysis.label, words)
    }

    /// Every column, by name: whoever adds one says here what holds where nothing is known.
    #[test]
    fn of_an_unlisted_command_every_column_says_the_strictest() {
        let table = Commands::load(None).expect("the table is sound");
        let Traits {
            language,
            is,
            removes,
            script,
            hosts,
            makes,
            makes_by,
            suffix,
            keeps,
            lists,
            list_words,
            unpacks,
            sweeps,
            numbers,
            beyond_by,
            module,
            packages_by,
            prints,
        } = table.traits(UNLISTED).clone();
        // No code and no word makes it milder, no operand is a script, a number or a host instead of a path.
        assert!(language.is_none() && is.is_empty() && script.is_none() && hosts.is_none() && numbers.is_empty());
        // These tell more of a command whose effect may be mild. Without them it is `unknown`, whatever is said to it.
        assert!(removes.is_none() && makes.is_none() && prints.is_empty());
        assert!([makes_by, suffix, keeps, lists, list_words, unpacks, sweeps].iter().all(String::is_empty));
        // A profile gives it no packages, and no verb of it is known.
        assert!([beyond_by, module, packages_by].iter().all(String::is_empty));
        assert_eq!(table.needs(UNLISTED), Needs::Project);
        assert!(!table.answers(UNLISTED) && table.get(UNLISTED).iter().all(Option::is_none));
        for arguments in ["", "--version", "--help", "-n", "--dry-run", "-t x", "list", "status", "-- a", "@a", "-r ."]
        {
            assert_eq!(judged(arguments).0, Effect::Unknown, "{arguments}");
        }
    }

    /// The name of a program in the project says nothing of it.
    #[test]
    fn a_program_outside_of_the_systems_directories_is_unlisted() {
        let setting = Setting::built_in().expect("the table is sound");
        for line in ["./echo secret", "bin/test secret", "/opt/x/kill secret", "~/bin/frobnicate secret"] {
            let (_, words) = examine(line, &setting);
            let touched = words.touches.iter().find(|touch| touch.path.as_deref() == Some("secret"));
            assert!(touched.is_some_and(|touch| touch.writes && touch.sweeps), "{line}: {:?}", words.touches);
        }
        let (_, words) = examine("/bin/echo secret", &setting);
        assert!(words.touches.iter().all(|touch| touch.path.as_deref() != Some("secret")), "{:?}", words.touches);
    }

    #[test]
    fn every_word_of_an_unlisted_command_is_a_path_that_it_writes() {
        let (_, words) = judged("first b/c -n 5 --out=d @e https://x.example/f");
        for path in ["first", "b/c", "5", "d", "@e", "e"] {
            let touched = words.touches.iter().find(|touch| touch.path.as_deref() == Some(path));
            assert!(touched.is_some_and(|touch| touch.writes && touch.sweeps), "{path}: {:?}", words.touches);
        }
        assert!(words.hosts.iter().any(|reached| reached.host.as_deref() == Some("x.example")), "{:?}", words.hosts);
    }
}
