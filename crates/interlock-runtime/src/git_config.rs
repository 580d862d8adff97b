//! Whether git, run in a directory, would start a program because its configuration names one, and which setting it is.
//!
//! The files are read as git reads them; git itself is not run. Whatever cannot be read or understood counts as naming
//! a program. What the user's own files name is theirs, as long as it cannot be something in the project.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use interlock_verifiers::shell::{GitPrograms, Hooks};

use crate::git_hooks;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// How deep files may include others.
const INCLUDES_MAX: usize = 10;

/// What the configuration in force in a directory makes git run. A directory without a repository has only that of the
/// user and the system.
pub fn programs(directory: &Path) -> GitPrograms {
    programs_for(directory, env::var_os("HOME").map(PathBuf::from).as_deref(), directory)
}

/// The same for a user with this home directory, and a project that is the agent's to write.
pub fn programs_for(directory: &Path, home: Option<&Path>, project: &Path) -> GitPrograms {
    let mut reading = ConfigReader::new(home, Some(project));
    for place in of_the_person(home) {
        reading.file(&place, INCLUDES_MAX, Owner::Person);
    }
    let repository = repository(directory);
    for place in repository.iter().flat_map(|repository| places_in(repository)) {
        reading.file(&place, INCLUDES_MAX, Owner::Repository);
    }
    let mut found = reading.found;
    if let (None, Some(repository)) = (&found.hooks, &repository) {
        found.hooks = git_hooks::of(repository);
    }
    found
}

/// The files of the user and the system.
fn of_the_person(home: Option<&Path>) -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("/etc/gitconfig")];
    let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| home.map(|it| it.join(".config")));
    places.extend(config.map(|config| config.join("git/config")));
    places.extend(home.map(|home| home.join(".gitconfig")));
    places
}

/// The files of one repository that git reads.
fn places_in(repository: &Path) -> [PathBuf; 2] {
    [common(repository).join("config"), repository.join("config.worktree")]
}

/// Where the shared part of a repository is: a linked work tree shares the configuration of the one it belongs to.
pub(crate) fn common(repository: &Path) -> PathBuf {
    let named = read_small(&repository.join("commondir"));
    named.map_or_else(|| repository.to_owned(), |path| repository.join(path.trim()))
}

/// Whether the configuration of this repository alone makes git run or fetch anything.
pub(crate) fn repository_names_programs(repository: &Path, home: Option<&Path>) -> bool {
    let mut reading = ConfigReader::new(home, None);
    places_in(repository).iter().for_each(|place| reading.file(place, INCLUDES_MAX, Owner::Repository));
    reading.found != GitPrograms::default()
}

/// Where a file that stands for a repository says that it is.
pub(crate) fn led_to(file: &Path) -> Option<PathBuf> {
    let text = read_small(file)?;
    let path = text.trim().strip_prefix("gitdir:")?.trim();
    Some(file.parent()?.join(path))
}

/// The text of a plain file; of a pipe, nobody knows when it ends.
fn read_small(path: &Path) -> Option<String> {
    let small = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    small.then(|| fs::read_to_string(path).ok()).flatten()
}

/// The directory of the repository that a directory is in.
pub(crate) fn repository(directory: &Path) -> Option<PathBuf> {
    let start = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    for place in start.ancestors() {
        let git = place.join(".git");
        if git.is_dir() {
            return Some(git);
        }
        if git.exists() {
            return led_to(&git);
        }
        if place.join("HEAD").is_file() && place.join("objects").is_dir() {
            return Some(place.to_owned());
        }
    }
    None
}

/// Whose a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The user's or the machine's: an agent does not write it, and what it names is theirs.
    Person,
    /// The repository's.
    Repository,
}

/// A setting: `[section "kind"]`, `key = value`.
struct Entry<'a> {
    section: &'a str,
    whole: &'a str,
    key: &'a str,
    value: &'a str,
}

/// The files that were read, and what they say.
struct ConfigReader<'a> {
    home: Option<&'a Path>,
    project: Option<PathBuf>,
    seen: BTreeSet<PathBuf>,
    found: GitPrograms,
}

impl<'a> ConfigReader<'a> {
    fn new(home: Option<&'a Path>, project: Option<&Path>) -> ConfigReader<'a> {
        let project = project.map(|project| project.canonicalize().unwrap_or_else(|_| project.to_owned()));
        ConfigReader { home, project, seen: BTreeSet::new(), found: GitPrograms::default() }
    }

    fn file(&mut self, path: &Path, includes: usize, owner: Owner) {
        if path.symlink_metadata().is_err() || !self.seen.insert(path.to_owned()) {
            return;
        }
        // A file in the project is nobody's but the project's.
        let owner = if self.is_in_project(path) { Owner::Repository } else { owner };
        let shown = path.file_name().and_then(|name| name.to_str()).unwrap_or("config").to_owned();
        let Some(text) = read_small(path) else { return self.blame(shown) };
        let (mut section, mut whole) = (String::new(), String::new());
        for line in text.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let mut rest = line;
            if let Some(header) = line.strip_prefix('[') {
                let Some((name, after)) = header.split_once(']') else { return self.blame(shown) };
                section = name.split([' ', '"', '\t', '.']).next().unwrap_or("").to_ascii_lowercase();
                whole = name.split(['"', ' ', '\t']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
                rest = after.trim();
                if rest.is_empty() {
                    continue;
                }
            }
            // A value that goes on in the next line can hide anything; a setting outside of a section is none of git's.
            if rest.ends_with('\\') || section.is_empty() {
                return self.blame(shown);
            }
            let (key, value) = rest.split_once('=').map_or((rest, "true"), |(key, value)| (key.trim(), value.trim()));
            let key = key.to_ascii_lowercase();
            if section == "include" || section == "includeif" {
                self.include(path, value, includes, owner);
            } else {
                let entry = Entry { section: &section, whole: &whole, key: &key, value: value.trim_matches('"') };
                self.entry(path, &entry, owner);
            }
        }
    }

    fn include(&mut self, path: &Path, value: &str, includes: usize, owner: Owner) {
        let value = value.trim_matches('"');
        let included = match (value.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => Some(home.join(rest)),
            (Some(_), None) => None,
            (None, _) => Some(path.parent().unwrap_or(Path::new("/")).join(value)),
        };
        match (includes.checked_sub(1), included) {
            // A file that is not there includes nothing.
            (Some(includes), Some(included)) => self.file(&included, includes, owner),
            (None, _) | (_, None) => self.blame("include.path".to_owned()),
        }
    }

    fn entry(&mut self, path: &Path, entry: &Entry<'_>, owner: Owner) {
        let Entry { section, whole, key, value } = *entry;
        let name = || format!("{whole}.{key}");
        // The tree of a submodule is not around its repository, and git itself says so there.
        let is_submodule = path.to_str().is_some_and(|path| path.contains("/.git/modules/"));
        match (section, key) {
            ("alias", _) => drop(self.found.aliases.insert(alias_of(whole, key))),
            ("core", "hookspath") => self.hooks(name(), value),
            ("core", "worktree") if is_submodule => {}
            ("remote", "promisor") | ("extensions", "partialclone") if !is_off(value) => {
                self.found.fetches.get_or_insert_with(name);
            }
            _ if !names_program(section, key, value) => {}
            _ if owner == Owner::Person && key != "worktree" && !self.may_be_ours(value) => {}
            _ => self.blame(name()),
        }
    }

    /// Hooks that an agent may write, or that run what it writes.
    fn hooks(&mut self, setting: String, value: &str) {
        let place = match (value.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_) | None, _) => PathBuf::from(value),
        };
        if value.is_empty() || place.is_absolute() && self.project.is_some() && !self.is_in_project(&place) {
            return;
        }
        let is_guard = |name: &str| [".husky", ".githooks", ".git"].iter().any(|it| name.eq_ignore_ascii_case(it));
        let names: Vec<&str> = value.split('/').collect();
        let are_guarded = names.iter().any(|name| is_guard(name)) && !names.contains(&"..");
        self.found.hooks.get_or_insert(Hooks { setting, are_guarded, present: None });
    }

    fn blame(&mut self, setting: String) {
        self.found.always.get_or_insert(setting);
    }

    fn is_in_project(&self, path: &Path) -> bool {
        let Some(project) = &self.project else { return false };
        path.canonicalize().is_ok_and(|real| real.starts_with(project)) || path.starts_with(project)
    }

    /// Whether what a setting runs may be in the project: a relative path, a script for an interpreter.
    fn may_be_ours(&self, value: &str) -> bool {
        let mut words = value.split_whitespace();
        let first = words.clone().next().unwrap_or("");
        let name = first.rsplit('/').next().unwrap_or("").trim_start_matches('!');
        let interprets = ["sh", "bash", "zsh", "dash", "env", "node", "ruby", "perl", "npx", "exec", "eval", "."];
        if name.is_empty() || interprets.contains(&name) || name.starts_with("python") {
            return true;
        }
        words.any(|word| {
            let word = word.trim_matches(['\'', '"', '\\']);
            let path = word.rsplit('=').next().unwrap_or("");
            let is_absolute = path.starts_with('/') || path.starts_with("~/");
            path.contains('/') && (!is_absolute || self.is_in_project(Path::new(path)))
        })
    }
}

/// `[alias] x = …` and `[alias "x"] command = …`.
fn alias_of(whole: &str, key: &str) -> String {
    let kind = whole.split_once('.').map(|(_, kind)| kind.to_ascii_lowercase());
    kind.unwrap_or_else(|| key.to_owned())
}

fn is_off(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0" | "" | "\"\"")
}

fn is_on(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1")
}

/// Whether a setting makes git start a program while it reads the repository.
fn names_program(section: &str, key: &str, value: &str) -> bool {
    let off = is_off(value);
    let is_plain = |character: char| character.is_ascii_alphanumeric() || " -_%.".contains(character);
    match (section, key) {
        // Git has a monitor of its own, which a plain yes means.
        ("core", "fsmonitor") => !off && !is_on(value),
        ("core", "pager" | "sshcommand" | "alternaterefscommand" | "gitproxy" | "askpass" | "worktree") => {
            !matches!(value, "cat" | "less" | "") || key == "worktree"
        }
        ("pager", _) => !off && value != "true" && value != "cat" && value != "less",
        ("diff", "external" | "command" | "textconv") => true,
        ("filter", "clean" | "smudge" | "process") => !(value.starts_with("git-lfs ") && value.chars().all(is_plain)),
        ("interactive", "difffilter") => true,
        ("gpg", "program" | "defaultkeycommand") => !off,
        ("log", "showsignature") => !off,
        ("uploadpack" | "trailer", _) => true,
        ("merge", "driver") => true,
        ("tar", "command") => true,
        _ => false,
    }
}
