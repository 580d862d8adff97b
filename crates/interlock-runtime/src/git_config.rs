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
    if let Some(repository) = repository(directory) {
        // A linked work tree shares the configuration of the repository it belongs to.
        let common = fs::read_to_string(repository.join("commondir")).ok();
        let shared = common.map(|path| repository.join(path.trim()));
        places.push(shared.unwrap_or_else(|| repository.clone()).join("config"));
        places.push(repository.join("config.worktree"));
    }
    places.retain(|place| place.symlink_metadata().is_ok());
    places
}

/// The directory of the repository that a directory is in.
fn repository(directory: &Path) -> Option<PathBuf> {
    let start = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    for place in start.ancestors() {
        let git = place.join(".git");
        if git.is_dir() {
            return Some(git);
        }
        if let Ok(text) = fs::read_to_string(&git) {
            let path = text.trim().strip_prefix("gitdir:")?.trim();
            return Some(place.join(path));
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
    let small = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    let Some(text) = small.then(|| fs::read_to_string(path).ok()).flatten() else { return true };
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
        } else if key_names_program(&section, &key, value) {
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
