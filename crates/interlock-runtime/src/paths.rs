//! Where a path really leads: links of every part that exists are followed, `..` is taken as the file system takes it.
//!
//! What cannot be told for certain is [`Resolved::Unresolvable`]. Nothing is opened, nothing is changed; directories are
//! listed only for patterns. A path is looked at once, before it is used: what changes in between is not seen here.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::Path;

use interlock_core::json::nfc;
use interlock_core::percent_decoded;
use interlock_core::rule::ShellPattern;

use crate::platform::{self, Looked};

/// The longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 4_096;
/// The longest name in a path, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// The most links that are followed for one path.
pub const LINKS_MAX: u32 = 40;
/// The most names in a path, those of its links counted.
const NAMES_MAX: u32 = 2_048;
/// The most names that are read of directories for one pattern.
pub const GLOB_ENTRIES_MAX: usize = 20_000;
/// The most paths that one pattern may stand for.
pub const GLOB_PATHS_MAX: usize = 1_024;
/// The most files of our own that are compared with a file of several names.
const OWN_FILES_MAX: usize = 4_096;
/// How deep directories of our own are looked into.
const OWN_DEPTH_MAX: usize = 6;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolved {
    /// Here: absolute, without links, `.` and `..`.
    Known(String),
    /// It may lead anywhere.
    Unresolvable,
}

impl Resolved {
    /// The path, if it is known.
    pub fn known(&self) -> Option<&str> {
        match self {
            Resolved::Known(path) => Some(path),
            Resolved::Unresolvable => None,
        }
    }
}

/// What a part of a path that is not there stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A plain file or directory that is yet to be made.
    Plain,
    /// Anything: the same call may make a link of it.
    Anything,
}

/// What relative paths and `~` start from.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// The working directory: absolute.
    pub cwd: &'a str,
    /// The home directory of the agent's user.
    pub home: Option<&'a str>,
    /// What parts that are not there stand for.
    pub missing: Missing,
}

/// Resolves a path as a tool or a shell would be given it.
pub fn resolve(text: &str, cwd: &str, home: Option<&str>) -> Resolved {
    resolve_from(text, Base { cwd, home, missing: Missing::Plain })
}

/// A path as workflows write it: from the project's directory where it lies in the project, else absolute. Hosts spell one
/// file in either way.
pub fn from_project(text: &str, cwd: &str, home: Option<&str>, project: &str) -> String {
    match resolve(text, cwd, home) {
        Resolved::Known(path) => {
            let beneath = path.strip_prefix(project.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
            beneath.map_or_else(|| path.clone(), str::to_owned)
        }
        Resolved::Unresolvable => text.to_owned(),
    }
}

/// The same, with what is to be thought of missing parts.
pub fn resolve_from(text: &str, base: Base<'_>) -> Resolved {
    let known = absolute(text, base).and_then(|path| walk(&path, base));
    known.map_or(Resolved::Unresolvable, Resolved::Known)
}

/// The path without `.` and `..`, as a shell reckons where `cd` goes: by the names alone, links unseen. It may hold links.
pub fn by_name(text: &str, base: Base<'_>) -> Option<String> {
    let path = absolute(text, base)?;
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// Everywhere a path may lead that a tool of a host is given. Hosts cut off blanks around it, fold `..` by the names
/// alone before the file system sees a link, write it in one Unicode form, cut off an `@` with which people mention files,
/// decode `%2e`, and know `~` and `file:` or take them for names; which of these, and in which version, nobody can tell.
/// One that is plainly written leads to one place.
pub fn readings(text: &str, base: Base<'_>) -> BTreeSet<Resolved> {
    let forms: [fn(&str) -> String; 4] = [
        |text| text.trim_matches(is_blank).to_owned(),
        |text| nfc(text).into_owned(),
        |text| text.strip_prefix('@').map_or(text, |rest| rest.trim_start_matches(['/', '\\'])).to_owned(),
        |text| percent_decoded(text).unwrap_or_else(|| text.to_owned()),
    ];
    let mut texts = BTreeSet::from([text.to_owned()]);
    for form in forms {
        let others: Vec<String> = texts.iter().map(|text| form(text)).collect();
        texts.extend(others);
    }
    // Where nothing is called so, such a name is a plain one.
    let is_name = |text: &&String| {
        let first = text.split('/').next().unwrap_or_default();
        platform::look(Path::new(&format!("{}/{first}", base.cwd))) != Looked::Missing
    };
    let is_special = |text: &&String| text.starts_with('~') || strip_scheme(text).is_some();
    let as_names = texts.iter().filter(is_special).filter(is_name).map(|text| format!("./{text}"));
    let as_names: Vec<String> = as_names.collect();
    texts.extend(as_names);
    let both = |text: &String| {
        let folded = by_name(text, base).map_or(Resolved::Unresolvable, |path| resolve_from(&path, base));
        [resolve_from(text, base), folded]
    };
    texts.iter().flat_map(both).collect()
}

/// What a host may cut off at the ends of a path: blanks of every alphabet, ends of lines, and the mark of an encoding.
fn is_blank(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

/// What a pattern for names of files stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// Every path it stands for now. One entry that is [`Resolved::Unresolvable`] if they are too many to tell.
    pub found: Vec<Resolved>,
    /// The directories it looks into: what comes to be there before it is used is found as well.
    pub looked_into: Vec<Resolved>,
}

/// Looks up what a pattern for names of files stands for now.
pub fn expand(pattern: &str, base: Base<'_>) -> Expansion {
    let all = |paths: BTreeSet<String>| paths.into_iter().map(Resolved::Known).collect();
    match absolute(pattern, base).and_then(|path| matching(&path, base)) {
        Some((found, looked_into)) => Expansion { found: all(found), looked_into: all(looked_into) },
        None => Expansion { found: vec![Resolved::Unresolvable], looked_into: Vec::new() },
    }
}

/// Looks up what a pattern of a host's tool stands for now: as above, but `**` is any number of directories, a star stands
/// for hidden names too, and neither case nor blanks at the ends count. Links to directories are not walked through.
pub fn expand_deep(pattern: &str, base: Base<'_>) -> Vec<Resolved> {
    let found =
        readings_of_pattern(pattern, base).into_iter().map(|path| deep(&path, base)).collect::<Option<Vec<_>>>();
    match found {
        Some(found) => found.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().map(Resolved::Known).collect(),
        None => vec![Resolved::Unresolvable],
    }
}

/// The absolute forms of a pattern: with `..` as the file system takes it, and folded by the names alone.
fn readings_of_pattern(pattern: &str, base: Base<'_>) -> BTreeSet<String> {
    let pattern = pattern.trim_matches(is_blank);
    [absolute(pattern, base), by_name(pattern, base)].into_iter().flatten().collect()
}

/// The paths that an absolute pattern stands for; nothing if they are too many to tell, or it says more than is read here.
fn deep(pattern: &str, base: Base<'_>) -> Option<BTreeSet<String>> {
    // Braces are taken apart before; what is left of them, and lists in parentheses, may stand for any name.
    if pattern.contains(['{', '}', '(', ')', '\\', '!']) {
        return None;
    }
    let mut entries = GLOB_ENTRIES_MAX;
    let mut open = BTreeSet::from(["/".to_owned()]);
    for name in pattern.split('/').filter(|name| !name.is_empty() && *name != ".") {
        open = match name {
            "**" => beneath(open, &mut entries)?,
            _ if is_pattern(name) => named_in(&open, name, &mut entries, base)?,
            plain => {
                let here = open.iter().map(|directory| walk(&format!("{directory}/{plain}"), base));
                let here = here.collect::<Option<BTreeSet<_>>>()?;
                let other_case =
                    if plain == ".." { BTreeSet::new() } else { named_in(&open, plain, &mut entries, base)? };
                here.into_iter().chain(other_case).collect()
            }
        };
    }
    (open.len() <= GLOB_PATHS_MAX).then_some(open)
}

/// What in some directories has a name that matches.
fn named_in(open: &BTreeSet<String>, pattern: &str, entries: &mut usize, base: Base<'_>) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let names = ShellPattern::new(pattern);
    for directory in open {
        let listed = match platform::names_in(Path::new(directory), *entries) {
            Ok(listed) => listed.unwrap_or_default(),
            // Nobody finds a name by its other case where names cannot be listed.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_pattern(pattern) => Vec::new(),
            Err(_) => return None,
        };
        *entries = entries.checked_sub(listed.len())?;
        for entry in listed.iter().filter(|entry| names.matches(entry)) {
            found.insert(walk(&format!("{directory}/{entry}"), base)?);
        }
    }
    Some(found)
}

/// These directories and all beneath them, links left out, and every file in them.
fn beneath(open: BTreeSet<String>, entries: &mut usize) -> Option<BTreeSet<String>> {
    let mut waiting: Vec<String> = open.into_iter().collect();
    let mut found = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        let Some(listed) = platform::names_in(Path::new(&path), *entries).ok()? else {
            found.insert(path);
            continue;
        };
        *entries = entries.checked_sub(listed.len())?;
        for entry in listed {
            let path = format!("{}/{entry}", path.trim_end_matches('/'));
            match platform::look(Path::new(&path)) {
                Looked::Plain => waiting.push(path),
                Looked::Link(_) | Looked::Missing => {}
                Looked::Unknown => return None,
            }
        }
        found.insert(path);
    }
    Some(found)
}

/// A path from the root on; links and `..` are still in it.
fn absolute(text: &str, base: Base<'_>) -> Option<String> {
    if text.len() > PATH_BYTES_MAX || text.contains('\0') {
        return None;
    }
    let from_address;
    let text = match strip_scheme(text) {
        Some(rest) => {
            from_address = decode(rest)?;
            from_address.as_str()
        }
        None => text,
    };
    if text.starts_with('/') {
        return Some(text.to_owned());
    }
    if let Some(rest) = text.strip_prefix('~') {
        let (user, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let home = match user {
            "" => base.home?.to_owned(),
            "+" => base.cwd.to_owned(),
            user => platform::home_of(user)?,
        };
        return home.starts_with('/').then(|| format!("{home}/{rest}"));
    }
    base.cwd.starts_with('/').then(|| format!("{}/{text}", base.cwd))
}

/// What follows `file:` in an address.
fn strip_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    scheme.eq_ignore_ascii_case("file").then_some(rest).filter(|rest| rest.starts_with('/'))
}

/// The path of a `file:` address; nothing if it names another host.
fn decode(rest: &str) -> Option<String> {
    let path = match rest.strip_prefix("//") {
        Some(with_host) => {
            let (host, _) = with_host.split_once('/')?;
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return None;
            }
            with_host.get(host.len()..)?
        }
        None => rest,
    };
    percent_decoded(path.split(['?', '#']).next()?).filter(|path| !path.contains('\0'))
}

/// A path on its way through the file system.
struct Way {
    /// Where it is now: real, without links.
    at: Vec<String>,
    links: u32,
    names: u32,
    /// What is before this does not exist.
    is_missing: bool,
}

impl Way {
    fn start() -> Way {
        Way { at: Vec::new(), links: LINKS_MAX, names: NAMES_MAX, is_missing: false }
    }

    fn path(&self) -> String {
        format!("/{}", self.at.join("/"))
    }

    /// Takes one name, and pushes what a link stands for in front of the names that are left.
    fn step(&mut self, name: String, left: &mut VecDeque<String>, base: Base<'_>) -> Option<()> {
        self.names = self.names.checked_sub(1)?;
        match name.as_str() {
            "" | "." => return Some(()),
            ".." => {
                if self.is_missing && base.missing == Missing::Anything {
                    return None;
                }
                self.at.pop();
                // What is above something that is not there may be there.
                self.is_missing &= platform::look(Path::new(&self.path())) == Looked::Missing;
                return Some(());
            }
            _ => {}
        }
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        if let Some(alias) = self.alias(&name, left, base) {
            return alias;
        }
        if self.is_missing {
            if base.missing == Missing::Anything {
                return None;
            }
            self.at.push(name);
            return Some(());
        }
        self.at.push(name);
        match platform::look(Path::new(&self.path())) {
            Looked::Plain => Some(()),
            Looked::Missing => {
                self.is_missing = true;
                Some(())
            }
            Looked::Link(target) => self.follow(&target, left),
            Looked::Unknown => None,
        }
    }

    fn follow(&mut self, target: &str, left: &mut VecDeque<String>) -> Option<()> {
        self.links = self.links.checked_sub(1)?;
        self.at.pop();
        if target.starts_with('/') {
            self.at.clear();
        }
        for name in target.rsplit('/') {
            left.push_front(name.to_owned());
        }
        Some(())
    }

    /// Names under which the system shows things of a process: they mean something else to another process. `None` if
    /// it is none of these, `Some(None)` if it cannot be told what it means.
    fn alias(&mut self, name: &str, left: &mut VecDeque<String>, base: Base<'_>) -> Option<Option<()>> {
        let at: Vec<&str> = self.at.iter().map(String::as_str).collect();
        let mut to = |way: &mut Way, path: &str| {
            way.at.push(name.to_owned());
            way.follow(path, left)
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match (at.as_slice(), name) {
            (["dev"], "fd") => Some(to(self, "/proc/self/fd")),
            (["dev"], "stdin") => Some(to(self, "/proc/self/fd/0")),
            (["dev"], "stdout") => Some(to(self, "/proc/self/fd/1")),
            (["dev"], "stderr") => Some(to(self, "/proc/self/fd/2")),
            (["proc"], "self" | "thread-self") => {
                self.at.push("self".to_owned());
                Some(Some(()))
            }
            (["proc", "self"], "root") => Some(to(self, "/")),
            (["proc", "self"], "cwd") => Some(to(self, base.cwd)),
            (["proc", "self"], "fd") => {
                // An open file has no path of its own; what opened it named one. Beneath it is anything.
                let number = left.iter().find(|name| !name.is_empty() && *name != ".").cloned();
                let is_last = left.iter().filter(|name| !name.is_empty() && *name != ".").count() == 1;
                let Some(stream) = number.filter(|number| is_last && is_number(number)) else { return Some(None) };
                left.clear();
                self.at = vec!["dev".to_owned(), "fd".to_owned(), stream];
                self.is_missing = true;
                Some(Some(()))
            }
            (["proc", "self"], "exe" | "task" | "map_files" | "ns" | "mem") => Some(None),
            (["proc", process], "root" | "cwd") if is_number(process) => {
                self.at.push(name.to_owned());
                match platform::look(Path::new(&self.path())) {
                    Looked::Link(target) => Some(self.follow(&target, left)),
                    Looked::Plain | Looked::Missing | Looked::Unknown => Some(None),
                }
            }
            (["proc", process], "fd" | "exe" | "task" | "map_files" | "ns" | "mem") if is_number(process) => Some(None),
            _ => None,
        }
    }
}

fn names_of(path: &str) -> VecDeque<String> {
    path.split('/').map(str::to_owned).collect()
}

fn walk(path: &str, base: Base<'_>) -> Option<String> {
    let mut way = Way::start();
    let mut left = names_of(path);
    while let Some(name) = left.pop_front() {
        way.step(name, &mut left, base)?;
    }
    let path = way.path();
    (path.len() <= PATH_BYTES_MAX).then_some(path)
}

/// The paths a pattern stands for, and the directories it looks into.
fn matching(pattern: &str, base: Base<'_>) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let mut entries = GLOB_ENTRIES_MAX;
    let mut looked_into = BTreeSet::new();
    let mut open = BTreeSet::from(["/".to_owned()]);
    let names: Vec<&str> = pattern.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let mut names = names.into_iter().peekable();
    let mut plain = String::new();
    while let Some(name) = names.next() {
        if !is_pattern(name) {
            // Plain names up to the next pattern are resolved at once.
            plain.push('/');
            plain.push_str(name);
            if names.peek().is_some_and(|next| !is_pattern(next)) {
                continue;
            }
            let resolved = open.iter().map(|directory| walk(&format!("{directory}{plain}"), base));
            open = resolved.collect::<Option<_>>()?;
            plain.clear();
            continue;
        }
        let mut next = BTreeSet::new();
        let matching = ShellPattern::new(name);
        // A dot at the beginning has to be written out.
        let matches = |entry: &&String| (!entry.starts_with('.') || name.starts_with('.')) && matching.matches(entry);
        for directory in &open {
            looked_into.insert(directory.clone());
            let listed = platform::names_in(Path::new(directory), entries);
            let Some(listed) = listed.ok()? else { continue };
            entries = entries.checked_sub(listed.len())?;
            for entry in listed.iter().filter(matches) {
                next.insert(walk(&format!("{directory}/{entry}"), base)?);
                if next.len() > GLOB_PATHS_MAX {
                    return None;
                }
            }
        }
        open = next;
    }
    (open.len().saturating_add(looked_into.len()) <= GLOB_PATHS_MAX).then_some((open, looked_into))
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// The file among our own that a path is another name of.
pub fn own_alias(path: &str, own: &[String]) -> Option<String> {
    let (identity, names) = platform::identity(Path::new(path))?;
    if names < 2 {
        return None;
    }
    let mut left = OWN_FILES_MAX;
    let mut open: Vec<(String, usize)> = own.iter().map(|place| (place.clone(), OWN_DEPTH_MAX)).collect();
    while let Some((place, depth)) = open.pop() {
        if let Some((other, _)) = platform::identity(Path::new(&place)) {
            if other == identity {
                return Some(place);
            }
        } else if let Some(depth) = depth.checked_sub(1)
            && let Ok(Some(names)) = platform::names_in(Path::new(&place), left)
        {
            left = left.saturating_sub(names.len());
            open.extend(names.iter().map(|name| (format!("{place}/{name}"), depth)));
        }
    }
    None
}
