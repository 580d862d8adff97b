//! The paths of a call, resolved: those of a command line against every directory the line may be in.

use std::collections::BTreeSet;
use std::path::Path;

use interlock_core::rule::{CallPath, secret_by_pattern};
use interlock_verifiers::shell::{Change, SimpleCommand, Touch, Words};

use super::{CallPlace, selected};
use crate::command_lines::leads_nowhere;
use crate::paths::{self, Base, Expansion, Missing, Resolved};

/// The most paths of one call.
const PATHS_MAX: usize = 4_096;
/// How much may be looked up for one call; one more path may lead anywhere.
const LOOKS_MAX: u32 = 8_192;
/// What a pattern costs of it, which lists directories.
const GLOB_LOOKS: u32 = 256;
/// The most directories a line may be in.
const DIRECTORIES_MAX: usize = 16;
/// How often a change of the directory is tried that may happen again.
const ROUNDS_MAX: usize = 16;
/// Commands that make another name for what is there.
const ALIASING: [&str; 3] = ["ln", "link", "mount"];

/// The paths found so far.
#[derive(Debug)]
pub(super) struct Places<'a> {
    place: &'a CallPlace<'a>,
    found: BTreeSet<CallPath>,
    looks: u32,
}

/// The directories a line may be in; `None` if it may be any.
pub(super) type Directories = Option<Vec<String>>;

impl<'a> Places<'a> {
    pub(super) fn new(place: &'a CallPlace<'a>) -> Places<'a> {
        Places { place, found: BTreeSet::new(), looks: LOOKS_MAX }
    }

    /// A path that is read or written.
    pub(super) fn add(&mut self, resolved: Resolved, writes: bool, command: Option<usize>) {
        self.insert(resolved, &CallPath { path: None, writes, removes: false, sweeps: false, command });
    }

    /// A path with what is done to it.
    pub(super) fn insert(&mut self, resolved: Resolved, how: &CallPath) {
        let path = match resolved {
            Resolved::Known(path) if self.found.len() < PATHS_MAX => Some(path),
            Resolved::Known(_) | Resolved::Unresolvable => None,
        };
        // More than are kept are one that may lead anywhere.
        let full = self.found.len() >= PATHS_MAX;
        let (writes, command) = if full { (true, None) } else { (how.writes, how.command) };
        self.found.insert(CallPath { path, writes, command, removes: how.removes, sweeps: how.sweeps });
    }

    /// A path that a tool of a host is given, wherever it may lead.
    pub(super) fn insert_readings(&mut self, text: &str, base: Base<'_>, how: &CallPath) {
        let Some(looks) = self.looks.checked_sub(1) else { return self.insert(Resolved::Unresolvable, how) };
        self.looks = looks;
        paths::readings(text, base).into_iter().for_each(|path| self.insert(path, how));
    }

    /// A pattern that a tool of a host is given: what it stands for now, and what is called so.
    pub(super) fn insert_pattern(&mut self, pattern: &str, base: Base<'_>, how: &CallPath) {
        self.insert_found(pattern, base, how);
        self.insert_readings(pattern, base, how);
    }

    /// A pattern for files that a tool of a host reads: the secret that it names, whether it is there or not.
    pub(super) fn insert_secret(&mut self, pattern: &str, base: Base<'_>, how: &CallPath) {
        if let Some(secret) = secret_by_pattern(pattern) {
            self.insert(paths::resolve_from(&secret, base), how);
        }
    }

    /// A path for which a host looks in the project if nothing is there: whatever ends so.
    pub(super) fn insert_sought(&mut self, path: &str, base: Base<'_>, how: &CallPath) {
        let is_there = |reading: &Resolved| reading.known().is_some_and(|path| Path::new(path).exists());
        if paths::readings(path, base).iter().any(is_there) {
            return;
        }
        let name = path.trim().trim_start_matches(['@', '/', '\\', '.']);
        // Of more than a name the beginning may be the end of another.
        let beginning = if name.contains('/') { "*" } else { "" };
        let root = self.place.project.trim_end_matches('/');
        self.insert_found(&format!("{root}/**/{beginning}{name}"), base, how);
        self.insert_found(&format!("{root}/**/{beginning}.{name}"), base, how);
    }

    fn insert_found(&mut self, pattern: &str, base: Base<'_>, how: &CallPath) {
        let Some(looks) = self.looks.checked_sub(GLOB_LOOKS) else { return self.insert(Resolved::Unresolvable, how) };
        self.looks = looks;
        paths::expand_deep(pattern, base).into_iter().for_each(|path| self.insert(path, how));
    }

    /// The paths of a line that starts in a directory.
    pub(super) fn add_line(
        &mut self,
        words: &Words,
        start: &Resolved,
        of_all: impl Fn(Option<usize>) -> Option<usize>,
    ) {
        let first = |name: &&str| {
            words.commands.iter().any(|command| command.words.first().and_then(Option::as_deref) == Some(*name))
        };
        let missing = missing_in(words);
        let directories = self.directories(words, start, missing);
        let globs_are_plain = !first(&"shopt");
        for touch in &words.touches {
            self.touch(touch, directories.as_deref(), missing, globs_are_plain, of_all(touch.command));
        }
        for (secret, command) in selected::secrets(words) {
            let at = directories.as_deref().and_then(|all| all.first()).map_or("", |at| at.trim_end_matches('/'));
            let path = if secret.starts_with('/') { secret } else { format!("{at}/{secret}") };
            self.add(Resolved::Known(path), false, of_all(command));
        }
    }

    fn touch(
        &mut self,
        touch: &Touch,
        directories: Option<&[String]>,
        missing: Missing,
        globs_are_plain: bool,
        command: Option<usize>,
    ) {
        let (writes, removes, sweeps) = (touch.writes, touch.removes, touch.sweeps);
        let how = CallPath { path: None, writes, removes, sweeps, command };
        let Some(text) = &touch.path else { return self.insert(Resolved::Unresolvable, &how) };
        if leads_nowhere(text) {
            return;
        }
        let is_absolute = text.starts_with('/');
        let nowhere = [String::from("/")];
        let directories = match directories {
            Some(directories) => directories,
            // From the root on, it does not matter where the line is.
            None if is_absolute => &nowhere,
            None => return self.insert(Resolved::Unresolvable, &how),
        };
        for cwd in directories {
            let base = Base { cwd, home: self.place.home, missing };
            match self.looks.checked_sub(if touch.is_glob { GLOB_LOOKS } else { 1 }) {
                Some(looks) => self.looks = looks,
                None => return self.insert(Resolved::Unresolvable, &how),
            }
            if touch.is_glob {
                if !globs_are_plain {
                    self.insert(Resolved::Unresolvable, &how);
                    continue;
                }
                let Expansion { found, looked_into } = paths::expand(text, base);
                found.into_iter().for_each(|path| self.insert(path, &how));
                // What is in them is taken away, they are not.
                let around = CallPath { removes: false, ..how.clone() };
                looked_into.into_iter().for_each(|path| self.insert(path, &around));
                continue;
            }
            self.insert(paths::resolve_from(text, base), &how);
            // In quotes, `~` is a name like any other.
            if text.starts_with('~') {
                let base = Base { missing: Missing::Plain, ..base };
                self.insert(paths::resolve_from(&format!("./{text}"), base), &how);
            }
        }
    }

    /// What is written.
    pub(super) fn written(&self) -> impl Iterator<Item = &CallPath> {
        self.found.iter().filter(|touched| touched.writes)
    }

    /// The directories in which a line may run one of its commands: options of others lead it nowhere.
    pub(super) fn directories_of(
        &self,
        words: &Words,
        start: &Resolved,
        applies: impl Fn(&Change) -> bool,
    ) -> Directories {
        let changes = words.changes.iter().filter(|change| applies(change)).cloned().collect();
        self.directories(&Words { changes, ..Words::default() }, start, missing_in(words))
    }

    /// Every directory a line may be in.
    fn directories(&self, words: &Words, start: &Resolved, missing: Missing) -> Directories {
        let mut directories = vec![start.known()?.to_owned()];
        let repeats = words.changes.iter().any(|change| change.repeats);
        for _ in 0..if repeats { ROUNDS_MAX } else { 1 } {
            let before = directories.len();
            for change in &words.changes {
                let to = change.to.as_deref()?;
                for at in directories.clone() {
                    let base = Base { cwd: &at, home: self.place.home, missing };
                    // Where the path leads; and where a shell goes, to which `..` takes back what stands before it.
                    let next = paths::resolve_from(to, base).known()?.to_owned();
                    let by_name = paths::by_name(to, base).filter(|_| change.by.is_none());
                    for next in core::iter::once(next).chain(by_name) {
                        if !directories.contains(&next) {
                            directories.push(next);
                        }
                    }
                }
                if directories.len() > DIRECTORIES_MAX {
                    return None;
                }
            }
            if directories.len() == before {
                return Some(directories);
            }
        }
        (!repeats).then_some(directories)
    }

    /// Where a file has several names, and one of them is ours, that one counts as well.
    pub(super) fn add_aliases(&mut self, own: &[String]) {
        let aliases: Vec<CallPath> = self
            .found
            .iter()
            .filter_map(|touched| {
                let alias = touched.path.as_deref().and_then(|path| paths::own_alias(path, own))?;
                Some(CallPath { path: Some(alias), ..touched.clone() })
            })
            .collect();
        self.found.extend(aliases);
    }

    pub(super) fn finish(self) -> Vec<CallPath> {
        self.found.into_iter().collect()
    }
}

/// What parts of paths that are not there stand for in a line.
fn missing_in(words: &Words) -> Missing {
    let name = |command: &SimpleCommand| command.words.first().cloned().flatten();
    let is_aliasing = |name: String| ALIASING.contains(&name.as_str());
    if words.commands.iter().filter_map(name).any(is_aliasing) { Missing::Anything } else { Missing::Plain }
}
