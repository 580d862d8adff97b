//! Which places are guarded, and for what: one table for the rules, the shell verifier, hosts and hooks.
//!
//! A test reads the sources and fails when somebody keeps a second list.

mod table;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::rule::{Pattern, Separator};
pub use table::{
    CACHE_VARIABLES, CHOOSERS, Chooser, HOST_FILES, Holds, HostFile, PROGRAM_DIRECTORIES, PROJECT_SETTINGS,
    REGENERABLE, USER_CACHES, VISIBLE_IN_HOME, WORKFLOW_FILES,
};
use table::{CHOOSES, HOME_DIRECTORIES, PLACES, PROGRAMS, USUAL_SECRETS};

/// What a place is guarded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// Its contents open other doors.
    Secret,
    /// What is written there now runs later, or says what runs.
    RunsLater,
    /// It is Interlock's own, or a setting by which a host asks it.
    Own,
}

impl Concern {
    /// All of them.
    pub const ALL: [Concern; 3] = [Concern::Secret, Concern::RunsLater, Concern::Own];
}

/// A row of the table.
#[derive(Debug)]
pub struct GuardedPlace {
    /// What it is guarded for.
    pub concern: Concern,
    /// What it holds; of what runs later, and of what is ours, what writing it does.
    pub why: &'static str,
    pattern: Pattern,
}

/// The table, filed by a name that is in every path a pattern matches; else by how such a name begins and ends.
struct Table {
    places: Vec<GuardedPlace>,
    by_name: BTreeMap<String, Vec<usize>>,
    by_last: Vec<(String, String, usize)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::load);

impl Table {
    fn load() -> Table {
        let mut table = Table { places: Vec::new(), by_name: BTreeMap::new(), by_last: Vec::new() };
        for (concern, why, patterns) in PLACES {
            patterns.iter().for_each(|pattern| table.add(*concern, why, pattern));
        }
        for directory in PROGRAM_DIRECTORIES {
            table.add(Concern::RunsLater, PROGRAMS, &format!("{directory}/**"));
        }
        for chooser in CHOOSERS {
            table.add(Concern::RunsLater, CHOOSES, &format!("**/{}", chooser.file));
        }
        table
    }

    /// All of them can be read: a test says so.
    fn add(&mut self, concern: Concern, why: &'static str, text: &str) {
        let Ok(pattern) = Pattern::parse(text, Separator::Slash) else { return };
        let at = self.places.len();
        match pattern.whole_name() {
            Some(name) => self.by_name.entry(name).or_default().push(at),
            None => {
                let last = text.rsplit('/').next().unwrap_or(text);
                let (start, end) = (last.split('*').next(), last.rsplit('*').next());
                self.by_last.push((start.unwrap_or("").to_owned(), end.unwrap_or("").to_owned(), at));
            }
        }
        self.places.push(GuardedPlace { concern, why, pattern });
    }
}

/// The rows that are about a path, which begins with a slash and is in lower case. Rows about one place on the disk
/// count if it is known where the path begins.
pub fn guarding(path: &str, is_absolute: bool) -> impl Iterator<Item = &'static GuardedPlace> {
    let table = LazyLock::force(&TABLE);
    let last = path.rsplit('/').next().unwrap_or(path);
    let named = path.split('/').filter_map(move |name| table.by_name.get(name)).flatten();
    let ends = move |(start, end, _): &&(String, String, usize)| last.starts_with(start) && last.ends_with(end);
    let by_last = table.by_last.iter().filter(ends).map(|(_, _, at)| at);
    let is_about =
        move |place: &&GuardedPlace| (is_absolute || !place.pattern.is_anchored()) && place.pattern.matches(path);
    named.chain(by_last).filter_map(move |at| table.places.get(*at)).filter(is_about)
}

/// Places in a user's home directory that are guarded, wherever that is, as paths from there on.
pub fn in_home(concern: Concern) -> impl Iterator<Item = &'static str> {
    let of_hosts = HOST_FILES.iter().filter(move |file| concern == Concern::Own && file.in_home).map(|file| file.path);
    HOME_DIRECTORIES.iter().filter(move |(of, _)| *of == concern).map(|(_, path)| *path).chain(of_hosts)
}

/// The patterns of all places of secrets.
pub(crate) fn secret_patterns() -> impl Iterator<Item = &'static str> {
    fixed_places(Concern::Secret)
}

/// The patterns of all places that are guarded for something.
pub fn fixed_places(concern: Concern) -> impl Iterator<Item = &'static str> {
    PLACES.iter().filter(move |(of, ..)| *of == concern).flat_map(|(.., patterns)| patterns.iter().copied())
}

/// Whether a path is one of a secret, and not there to be shown. It is absolute and in lower case.
pub fn is_guarded_secret(path: &str) -> bool {
    guarding(path, true).any(|place| place.concern == Concern::Secret) && !is_example(path)
}

/// Names of hidden files that are secrets, as far as they are names and not patterns.
pub fn hidden_secrets() -> impl Iterator<Item = &'static str> {
    let names = secret_patterns().filter_map(|pattern| pattern.strip_prefix("**/"));
    names.filter(|name| name.starts_with('.') && !name.contains(['/', '*'])).chain(USUAL_SECRETS.iter().copied())
}

/// Whether a file with the name of a secret is there to be shown. `path` is a real one, in lower case.
pub(crate) fn is_example(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let shown = |kind: &str| matches!(kind, "example" | "sample" | "template" | "dist" | "defaults");
    name.strip_prefix(".env.").or_else(|| name.strip_prefix(".dev.vars.")).is_some_and(shown)
        || name.starts_with("id_") && name.ends_with(".pub")
}

/// Whether a path is a directory, or in it. Both are written out, without `.` and `..`.
pub fn is_within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is this one, or beneath a directory that is written `DIR/**`.
pub fn is_beneath(path: &str, pattern: &str) -> bool {
    match pattern.strip_suffix("/**") {
        Some(directory) => path != directory && is_within(path, directory),
        None => path == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that a pattern stands for.
    fn sample(pattern: &str) -> String {
        format!("/{}", pattern.trim_start_matches("**/").trim_start_matches('/').replace("**", "x").replace('*', "x"))
    }

    #[test]
    fn every_row_can_be_read_and_is_found_for_what_it_stands_for() {
        let rows = PLACES.iter().flat_map(|(concern, _, patterns)| patterns.iter().map(|one| (*concern, *one)));
        let mut count = CHOOSERS.len() + PROGRAM_DIRECTORIES.len();
        for (concern, pattern) in rows {
            count += 1;
            let is_found = |path: &str, is_absolute: bool| guarding(path, is_absolute).any(|it| it.concern == concern);
            let path = sample(pattern);
            assert!(is_found(&path, true), "{pattern}");
            assert!(pattern.starts_with("**/") || pattern.starts_with('/'), "{pattern}");
            assert_eq!(pattern, pattern.to_lowercase(), "case is folded before");
            if pattern.starts_with("**/") {
                assert!(is_found(&format!("/a{path}"), false), "{pattern}");
            }
            if let Some(itself) = path.strip_suffix("/x").filter(|_| pattern.ends_with("/**")) {
                assert!(is_found(itself, true), "{pattern}");
            }
        }
        assert_eq!(TABLE.places.len(), count);
        for chooser in CHOOSERS {
            assert!(guarding(&format!("/p/{}", chooser.file), false).any(|it| it.concern == Concern::RunsLater));
        }
    }

    #[test]
    fn no_row_is_written_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for (concern, _, patterns) in PLACES {
            for pattern in *patterns {
                assert!(seen.insert((concern, pattern)), "{pattern}");
            }
        }
    }

    /// What a host reads in a home directory is ours there; what it reads in a project, a person agrees to at least.
    #[test]
    fn every_file_of_a_host_is_guarded() {
        for file in HOST_FILES {
            assert!(guarding(&format!("/p/{}", file.path), false).any(|it| it.concern != Concern::Secret), "{file:?}");
            assert_eq!(in_home(Concern::Own).any(|path| path == file.path), file.in_home, "{file:?}");
        }
    }

    #[test]
    fn ordinary_files_are_not_guarded() {
        for path in ["/src/main.rs", "/etc/hosts", "/a/package.json", "/a/environment", "/srv/u/notes.txt", "/", "/a"] {
            assert_eq!(guarding(path, true).count(), 0, "{path}");
        }
        // Its base is not known: it is the system's only if it begins at the root.
        assert_eq!(guarding("/etc/crontab.d/x", false).count(), 0);
        assert_eq!(guarding("/etc/profile", false).count(), 0);
        assert_eq!(guarding("/etc/profile", true).count(), 1);
    }

    #[test]
    fn a_directory_holds_itself_and_what_is_in_it() {
        for (path, directory, expected) in [
            ("/a", "/a", true),
            ("/a/b", "/a", true),
            ("/a/b", "/a/", true),
            ("/ab", "/a", false),
            ("/a", "/a/b", false),
            ("/a", "/", true),
        ] {
            assert_eq!(is_within(path, directory), expected, "{path} in {directory}");
        }
    }
}
