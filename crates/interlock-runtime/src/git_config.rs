//! Whether git, run in a directory, would start a program because its configuration names one.
//!
//! The files are read as git reads them; git itself is not run. Whatever cannot be read or understood counts as naming
//! a program.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// How deep files may include others.
const INCLUDES_MAX: usize = 10;

/// Whether the configuration in force in a directory names a program. A directory without a repository has only that of
/// the user and the system.
pub fn names_programs(directory: &Path) -> bool {
    names_programs_for(directory, env::var_os("HOME").map(PathBuf::from).as_deref())
}

/// The same for a user with this home directory.
pub fn names_programs_for(directory: &Path, home: Option<&Path>) -> bool {
    let mut seen = BTreeSet::new();
    let places = places(directory, home);
    places.iter().any(|place| file_names_programs(place, INCLUDES_MAX, home, &mut seen))
}

/// The files that git reads, those that are there.
fn places(directory: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("/etc/gitconfig")];
    let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| home.map(|it| it.join(".config")));
    places.extend(config.map(|config| config.join("git/config")));
    places.extend(home.map(|home| home.join(".gitconfig")));
    places.extend(repository(directory).into_iter().flat_map(|repository| places_in(&repository)));
    places.retain(|place| place.symlink_metadata().is_ok());
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

/// Whether the configuration of this repository alone names a program.
pub(crate) fn repository_names_programs(repository: &Path, home: Option<&Path>) -> bool {
    let mut seen = BTreeSet::new();
    let mut places = places_in(repository).into_iter().filter(|place| place.symlink_metadata().is_ok());
    places.any(|place| file_names_programs(&place, INCLUDES_MAX, home, &mut seen))
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
fn repository(directory: &Path) -> Option<PathBuf> {
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

fn file_names_programs(path: &Path, includes: usize, home: Option<&Path>, seen: &mut BTreeSet<PathBuf>) -> bool {
    if !seen.insert(path.to_owned()) {
        return false;
    }
    let Some(text) = read_small(path) else { return true };
    // The tree of a submodule is not around its repository, and git itself says so there.
    let is_submodule = path.to_str().is_some_and(|path| path.contains("/.git/modules/"));
    let mut section = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let mut rest = line;
        if let Some(header) = line.strip_prefix('[') {
            let Some((name, after)) = header.split_once(']') else { return true };
            section = name.split([' ', '"', '\t']).next().unwrap_or("").to_ascii_lowercase();
            rest = after.trim();
            if rest.is_empty() {
                continue;
            }
        }
        // A value that goes on in the next line can hide anything; a setting outside of a section is none of git's.
        if rest.ends_with('\\') || section.is_empty() {
            return true;
        }
        let (key, value) = rest.split_once('=').map_or((rest, "true"), |(key, value)| (key.trim(), value.trim()));
        let key = key.to_ascii_lowercase();
        if section == "include" || section == "includeif" {
            let Some(includes) = includes.checked_sub(1) else { return true };
            let value = value.trim_matches('"');
            let included = match (value.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                (Some(_), None) => return true,
                (None, _) => path.parent().unwrap_or(Path::new("/")).join(value),
            };
            // A file that is not there includes nothing.
            if included.symlink_metadata().is_ok() && file_names_programs(&included, includes, home, seen) {
                return true;
            }
        } else if key_names_program(&section, &key, value) && !(is_submodule && section == "core" && key == "worktree")
        {
            return true;
        }
    }
    false
}

/// Whether a setting makes git start a program while it reads the repository.
fn key_names_program(section: &str, key: &str, value: &str) -> bool {
    let off = matches!(value.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0" | "" | "\"\"");
    match (section, key) {
        ("core", "fsmonitor") => !off,
        (
            "core",
            "pager" | "sshcommand" | "hookspath" | "alternaterefscommand" | "gitproxy" | "askpass" | "worktree",
        ) => !matches!(value, "cat" | "less" | "") || key == "worktree" || key == "hookspath",
        ("pager", _) => !off && value != "true" && value != "cat" && value != "less",
        ("diff", "external" | "command" | "textconv") => true,
        ("filter", "clean" | "smudge" | "process") => !value.starts_with("git-lfs "),
        ("interactive", "difffilter") => true,
        ("gpg", "program") | ("log", "showsignature") => !off,
        ("uploadpack" | "trailer", _) => true,
        ("merge", "driver") => true,
        _ => false,
    }
}
