//! Which repository git finds from each directory a line may run it in.
//!
//! The configuration and the hooks of a repository name programs. Beneath a `.git` only git writes, because the rule
//! `arms` asks about anyone else. Any other directory with the right files in it is a repository too, and those files
//! are the agent's to write: what git does there, nobody can tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use interlock_core::call::Effect;
use interlock_core::rule::CallPath;
use interlock_verifiers::shell::{Change, SimpleCommand, Words};

use super::CallPlace;
use super::place::{Directories, Places};
use crate::paths::{self, Resolved};
use crate::{git_config, git_hooks, git_index};

/// How deep repositories in repositories are looked at.
const LINKS_DEPTH_MAX: usize = 8;
/// How often it is worked out for one call where git may be run.
const LOOKS_MAX: usize = 64;
/// Commands that run others where they are themselves, as far as their options are looked at below.
#[rustfmt::skip]
const STAYING: &[&str] = &[
    "timeout", "gtimeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "command", "builtin", "exec", "eval",
    "env", "xargs", "find", "gfind", "fd", "fdfind", "bash", "sh", "dash", "zsh", "ksh", "ash", "chrt", "taskset",
];
/// Those of them that put words into what they run.
const FILLING: &[&str] = &["xargs", "find", "gfind", "fd", "fdfind"];
/// Commands that write, and bring nothing into a directory but empty files and what they name.
const PLAIN_WRITERS: &[&str] = &[
    "mkdir", "rmdir", "touch", "rm", "unlink", "chmod", "chown", "chgrp", "sed", "gsed", "tee", "truncate", "cd",
    "pushd",
];
/// Subcommands of git that bring no files into a tree.
#[rustfmt::skip]
const TREELESS: &[&str] = &[
    "add", "stage", "commit", "tag", "branch", "push", "fetch", "config", "rm", "notes", "remote", "reset", "gc",
    "update-ref", "symbolic-ref", "pack-refs", "prune", "reflog", "commit-graph", "repack", "maintenance", "clean",
];
/// Options of git that are followed by a word of their own.
const WITH_VALUE: [&str; 6] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--attr-source"];

/// The positions, among the commands of all lines, of those that run git in a repository that is not known.
pub(super) fn foreign(
    lines: &[Words],
    start: &Resolved,
    place: &CallPlace<'_>,
    places: &Places<'_>,
) -> BTreeSet<usize> {
    let all: Vec<&SimpleCommand> = lines.iter().flat_map(|words| &words.commands).collect();
    let mut found = BTreeSet::new();
    if !all.iter().any(|command| is_git(command)) {
        return found;
    }
    let mut looking = Looking::new(place, places, &all, start);
    let mut first = 0usize;
    for words in lines {
        looking.directories.clear();
        for (at, command) in words.commands.iter().enumerate().filter(|(_, command)| is_git(command)) {
            let position = first.saturating_add(at);
            if !looking.is_ours(words, at, command, position, start) {
                found.insert(position);
            }
        }
        first = first.saturating_add(words.commands.len());
    }
    found
}

fn name(command: &SimpleCommand) -> Option<&str> {
    command.words.first().and_then(Option::as_deref)
}

fn is_git(command: &SimpleCommand) -> bool {
    name(command).is_some_and(|name| name == "git" || name.starts_with("git-"))
}

/// What git finds from a directory.
#[derive(Debug, Clone)]
struct FoundRepository {
    is_ours: bool,
    /// The repository, or the file that leads to it.
    git: Option<PathBuf>,
    /// The directories it looked into before it came to a `.git`.
    levels: Vec<String>,
}

struct Looking<'a> {
    place: &'a CallPlace<'a>,
    places: &'a Places<'a>,
    all: &'a [&'a SimpleCommand],
    /// The project's own repository, where it is neither in a `.git` nor in the project.
    own: Vec<PathBuf>,
    /// The repository of the directory in which the lines start.
    here: Option<PathBuf>,
    directories: BTreeMap<Vec<Option<String>>, Directories>,
    found: BTreeMap<String, FoundRepository>,
    repositories: BTreeMap<PathBuf, bool>,
}

impl<'a> Looking<'a> {
    fn new(
        place: &'a CallPlace<'a>,
        places: &'a Places<'a>,
        all: &'a [&'a SimpleCommand],
        start: &Resolved,
    ) -> Looking<'a> {
        let own = own_repository(place);
        let here = start.known().and_then(|start| git_config::repository(Path::new(start)));
        let here = here.and_then(|here| here.canonicalize().ok());
        let (directories, found, repositories) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Looking { place, places, all, own, here, directories, found, repositories }
    }

    /// Whether a command runs git in a repository whose files only git writes, wherever it may be run.
    fn is_ours(
        &mut self,
        words: &Words,
        at: usize,
        command: &SimpleCommand,
        position: usize,
        start: &Resolved,
    ) -> bool {
        let options = GitOptions::of(command);
        if matches!(options.subcommand, Some("version" | "help")) {
            return true;
        }
        let Some(around) = around(words, at, &options) else { return false };
        let Some(directories) = self.directories(words, &around, start) else { return false };
        directories.iter().all(|directory| match options.repository {
            Some(None) => false,
            Some(Some(named)) => {
                let resolved = paths::resolve(named, directory, self.place.home);
                let is_ours =
                    |path: &str| self.is_trusted(Path::new(path)) && !self.runs_hooks(command, Path::new(path));
                resolved.known().is_some_and(is_ours)
            }
            None => {
                let found = self.find(directory);
                let runs_hooks = found.git.as_ref().is_some_and(|git| self.runs_hooks(command, git));
                let becomes = |level: &String| self.may_become_repository(level, position);
                found.is_ours && !runs_hooks && !found.levels.iter().any(becomes)
            }
        })
    }

    /// The directories a command may be run in, with the options of those that run it.
    fn directories(&mut self, words: &Words, around: &[usize], start: &Resolved) -> Directories {
        let applies = |change: &Change| change.by.is_none_or(|by| around.contains(&by));
        let changes: Vec<Option<String>> =
            words.changes.iter().filter(|change| applies(change)).map(|change| change.to.clone()).collect();
        if let Some(known) = self.directories.get(&changes) {
            return known.clone();
        }
        if self.directories.len() >= LOOKS_MAX || returns_elsewhere(words) {
            return None;
        }
        let directories = self.places.directories_of(words, start, applies);
        self.directories.insert(changes, directories.clone());
        directories
    }

    /// Looks upwards from a directory, as git does.
    fn find(&mut self, directory: &str) -> FoundRepository {
        if let Some(known) = self.found.get(directory) {
            return known.clone();
        }
        let mut found = FoundRepository { is_ours: true, git: None, levels: Vec::new() };
        let mut is_level = true;
        for level in Path::new(directory).ancestors() {
            let git = level.join(".git");
            if git.symlink_metadata().is_ok() {
                is_level = false;
                // One that is not whole, git passes over.
                if !git.is_dir() || is_repository(&git) {
                    found.is_ours &= self.is_trusted(&git);
                    found.git = Some(git);
                    break;
                }
            }
            if is_repository(level) {
                found.is_ours &= self.is_trusted(level);
                found.git = Some(level.to_owned());
                break;
            }
            if is_level {
                found.levels.extend(level.to_str().map(str::to_owned));
            }
        }
        self.found.insert(directory.to_owned(), found.clone());
        found
    }

    /// Whether a command may run hooks of another repository that run what lies around it. What those of the starting
    /// directory do is looked at for each subcommand.
    fn runs_hooks(&self, command: &SimpleCommand, git: &Path) -> bool {
        if command.label == Effect::ReadOnly {
            return false;
        }
        let led = if git.is_file() { git_config::led_to(git) } else { Some(git.to_owned()) };
        let real = led.and_then(|led| led.canonicalize().ok());
        real.is_some_and(|real| self.here.as_ref() != Some(&real) && git_hooks::of(&real).is_some())
    }

    /// Whether only git writes what is in a repository, and its configuration names no program.
    fn is_trusted(&mut self, git: &Path) -> bool {
        if let Some(known) = self.repositories.get(git) {
            return *known;
        }
        let trusted = self.look(git, LINKS_DEPTH_MAX);
        self.repositories.insert(git.to_owned(), trusted);
        trusted
    }

    fn look(&self, git: &Path, depth: usize) -> bool {
        let led = if git.is_file() { git_config::led_to(git) } else { Some(git.to_owned()) };
        let Some(led) = led else { return false };
        let Ok(real) = led.canonicalize() else {
            // One that git itself is yet to make is empty.
            return git.symlink_metadata().is_err() && is_within_git(git);
        };
        let home = self.place.home.map(Path::new);
        let parts = [real.clone(), git_config::common(&real)];
        let is_safe =
            |part: &PathBuf| part.canonicalize().is_ok_and(|part| is_within_git(&part) || self.own.contains(&part));
        let is_configured_here = self.here.as_ref() == Some(&real);
        // What the one of the starting directory says is looked at for each subcommand.
        parts.iter().all(is_safe)
            && (is_configured_here || !git_config::repository_names_programs(&real, home))
            && self.has_plain_links(git, &real, depth)
    }

    /// Whether git finds only such repositories in the tree around this one, into which it goes on its own.
    fn has_plain_links(&self, git: &Path, real: &Path, depth: usize) -> bool {
        let Some(links) = git_index::links(real) else { return false };
        let Some(depth) = depth.checked_sub(1) else { return links.is_empty() };
        let Some(tree) = git.parent().filter(|_| links.len() <= git_index::LINKS_MAX) else { return links.is_empty() };
        let inner = links.iter().map(|link| tree.join(link).join(".git"));
        inner.filter(|inner| inner.symlink_metadata().is_ok()).all(|inner| self.look(&inner, depth))
    }

    /// Whether something else in the call may put a repository into a directory, or make one of it.
    fn may_become_repository(&self, level: &str, position: usize) -> bool {
        let brings_trees = |(at, command): (usize, &&SimpleCommand)| at != position && brings_tree(command);
        self.all.iter().enumerate().any(brings_trees)
            || self.places.written().any(|touched| self.puts_into(touched, level))
    }

    fn puts_into(&self, touched: &CallPath, level: &str) -> bool {
        let Some(path) = touched.path.as_deref() else { return false };
        let command = touched.command.and_then(|at| self.all.get(at));
        // Words of git are mostly no paths; what it brings is looked at as a whole.
        if command.is_some_and(|command| is_git(command)) {
            return false;
        }
        let below = path.strip_prefix(level.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
        let part = below.and_then(|below| below.split('/').next()).unwrap_or("");
        if ["HEAD", "objects", "refs", "commondir"].iter().any(|name| part.eq_ignore_ascii_case(name)) {
            return true;
        }
        let Some(command) = command else { return false };
        let known = name(command).unwrap_or("");
        if PLAIN_WRITERS.contains(&known) {
            return false;
        }
        // Without options these copy files into a directory, none below it.
        let has_options =
            command.words.iter().skip(1).any(|word| word.as_deref().is_none_or(|word| word.starts_with('-')));
        let is_shallow = matches!(known, "cp" | "install") && !has_options;
        path == level || !is_shallow && Path::new(level).starts_with(path)
    }
}

/// Where the project's repository is, if a file or a link says that it is elsewhere.
fn own_repository(place: &CallPlace<'_>) -> Vec<PathBuf> {
    let Ok(project) = Path::new(place.project).canonicalize() else { return Vec::new() };
    let git = project.ancestors().map(|level| level.join(".git")).find(|git| git.symlink_metadata().is_ok());
    let led = git.and_then(|git| if git.is_file() { git_config::led_to(&git) } else { Some(git) });
    let Some(real) = led.and_then(|led| led.canonicalize().ok()) else { return Vec::new() };
    let parts = [git_config::common(&real), real];
    let real = parts.iter().filter_map(|part| part.canonicalize().ok());
    real.filter(|part| !part.starts_with(&project)).collect()
}

fn is_within_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

/// Whether git would take a directory for a repository.
fn is_repository(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// What stands between `git` and its subcommand.
#[derive(Debug)]
struct GitOptions<'a> {
    /// The repository that an option names; `Some(None)` if it is not known.
    repository: Option<Option<&'a str>>,
    /// An option says where to run, or which repository is meant.
    names_place: bool,
    subcommand: Option<&'a str>,
}

impl<'a> GitOptions<'a> {
    fn of(command: &'a SimpleCommand) -> GitOptions<'a> {
        let mut options = GitOptions { repository: None, names_place: false, subcommand: None };
        let mut words = command.words.iter().skip(1);
        while let Some(word) = words.next() {
            let Some(word) = word.as_deref() else {
                // It may be one that names a place.
                options.names_place = true;
                break;
            };
            if !word.starts_with('-') {
                options.subcommand = Some(word);
                break;
            }
            let (option, attached) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
            options.names_place |= matches!(option, "-C" | "--git-dir" | "--work-tree" | "--bare");
            let value = match attached {
                Some(value) => Some(value),
                None if WITH_VALUE.contains(&word) => words.next().and_then(Option::as_deref),
                None => None,
            };
            if option == "--git-dir" {
                options.repository = Some(value);
            }
        }
        options
    }
}

/// The command and those that run it, if all of them stay where they are or say where they go.
fn around(words: &Words, at: usize, options: &GitOptions<'_>) -> Option<Vec<usize>> {
    let mut around = vec![at];
    let mut outer = words.commands.get(at)?.within;
    while let Some(position) = outer {
        let command = words.commands.get(position)?;
        let name = name(command)?;
        if !STAYING.contains(&name) || FILLING.contains(&name) && options.names_place {
            return None;
        }
        let goes = |word: &Option<String>| {
            let Some(word) = word.as_deref() else { return FILLING.contains(&name) || name == "env" };
            match name {
                "env" => {
                    let is_bundle = word.starts_with('-') && !word.starts_with("--") && word.contains(['C', 'S']);
                    let is_long = word.starts_with("--c") && word != "--chdir" && !word.starts_with("--chdir=");
                    is_bundle && word != "-C" || is_long || word.starts_with("--s")
                }
                "find" | "gfind" => matches!(word, "-execdir" | "-okdir"),
                "fd" | "fdfind" => word.starts_with("-C") && word != "-C" || word.starts_with("--base"),
                _ => false,
            }
        };
        let own = own_words(command, words.commands.get(*around.last()?)?);
        if own.iter().any(goes) {
            return None;
        }
        around.push(position);
        // What runs a command stands before it.
        outer = command.within.filter(|next| *next < position);
    }
    Some(around)
}

/// The words of a command without those of what it runs.
fn own_words<'a>(command: &'a SimpleCommand, inner: &SimpleCommand) -> &'a [Option<String>] {
    let handed_on = if command.words.ends_with(&inner.words) { inner.words.len() } else { 0 };
    command.words.get(..command.words.len().saturating_sub(handed_on)).unwrap_or_default()
}

/// Whether a line goes back to where the shell was before it, which nobody knows.
fn returns_elsewhere(words: &Words) -> bool {
    let moves = |command: &&SimpleCommand| matches!(name(command), Some("cd" | "pushd" | "popd" | "chdir"));
    let operand = |command: &SimpleCommand| command.words.get(1).cloned().flatten().unwrap_or_default();
    let turns = |command: &SimpleCommand| {
        name(command) == Some("pushd") && (operand(command).is_empty() || operand(command).starts_with(['+', '-']))
    };
    let first = words.commands.iter().find(moves);
    first.is_some_and(|first| name(first) == Some("popd") || operand(first) == "-") || words.commands.iter().any(turns)
}

/// Whether a command of git may bring directories into a tree.
fn brings_tree(command: &SimpleCommand) -> bool {
    if !is_git(command) || command.label == Effect::ReadOnly {
        return false;
    }
    let subcommand = GitOptions::of(command).subcommand.unwrap_or("");
    let after = command.words.iter().skip_while(|word| word.as_deref() != Some(subcommand)).skip(1);
    let mut after = after.map(|word| word.as_deref().unwrap_or("-"));
    match subcommand {
        // Without options, what it makes is a `.git`.
        "init" => after.any(|word| word.starts_with('-') && !matches!(word, "-q" | "--quiet" | "-b")),
        "reset" => after.any(|word| word.starts_with("--")),
        "checkout" | "switch" => {
            // A new branch, from here.
            let words: Vec<&str> = after.collect();
            !matches!(words.as_slice(), ["-b" | "-c", branch] if !branch.starts_with('-'))
        }
        known => !TREELESS.contains(&known),
    }
}
