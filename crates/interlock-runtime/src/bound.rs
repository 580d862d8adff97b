//! The bound of one call on this machine: which places of it are guarded, which are caches, what of the home directory is
//! there. Looks at the disk; changes nothing but directories of our own.
//!
//! A guarded place that cannot be looked for is no bound at all: the command does not run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use interlock_core::Digest;
use interlock_core::call::Effect;
use interlock_core::contain::{Bound, Cache, Cover, Profile, Reach, Rung};
use interlock_core::places::{
    Concern, REGENERABLE, USER_CACHES, VISIBLE_IN_HOME, fixed_places, is_guarded_secret, is_within,
};
use interlock_core::rule::ShellPattern;

use interlock_keep::Why;

use crate::call_policy::TEMPORARY;
use crate::git_index;
use crate::keeper::Taken;
use crate::paths::{self, Base, Missing, Resolved};

/// The most files and directories of a project that are looked at for names of secrets.
const LOOKED_AT_MAX: usize = 200_000;
/// What git takes its configuration from as soon as it is there.
const OF_GIT: [&str; 2] = ["**/.git/commondir", "**/.git/info/attributes"];
/// The most guarded places of one kind.
const PLACES_MAX: usize = 4_096;

/// What a bound is made for.
#[derive(Debug, Clone, Copy)]
pub struct BoundGround<'a> {
    /// The root of the project.
    pub project: &'a Path,
    /// The home directory of the user.
    pub user_home: Option<&'a Path>,
    /// Our own home: caches of projects and temporary files of sessions lie in it.
    pub home: &'a Path,
    /// Our own files, and the settings of hosts.
    pub own: &'a [String],
    /// Where the user's shell looks for programs.
    pub on_path: &'a [String],
    /// What the line names, resolved: it is there, even among temporary files.
    pub named: &'a [String],
    /// What the line was judged to do.
    pub effects: &'a [Effect],
    /// By what it was decided that the command is held.
    pub rung: Rung,
    /// The state that was kept before, if one was: what is not in it is not written.
    pub kept: Option<&'a Taken>,
}

/// The bound of a call.
pub fn bound_of(profile: &Profile, ground: &BoundGround<'_>) -> io::Result<Bound> {
    let project = fs::canonicalize(ground.project)?;
    let is_unknown = ground.effects.contains(&Effect::Unknown);
    let mut hidden: BTreeSet<PathBuf> = ground.own.iter().map(PathBuf::from).collect();
    if let Some(home) = ground.user_home {
        hidden.extend(guarded_in(home, Concern::Secret)?);
    }
    // Processes, what they leave while the machine runs, and temporary files are another's there anyway.
    let is_masked = |rest: &&str| ["proc/", "run/", "var/run/", "tmp/"].iter().any(|mask| rest.starts_with(mask));
    let anchored = fixed_places(Concern::Secret).filter_map(|pattern| pattern.strip_prefix('/'));
    for rest in anchored.filter(|rest| !is_masked(rest)) {
        hidden.extend(expanded(Path::new("/"), rest)?);
    }
    hidden.extend(secrets_in(&project)?);
    let write: Vec<PathBuf> =
        profile.write.iter().filter_map(|place| placed(place, &project, ground.user_home)).collect();
    let mut locked = if write.is_empty() { BTreeSet::new() } else { locked_in(&project, is_unknown, ground.kept)? };
    locked.retain(|place| !hidden.iter().any(|hidden| place.starts_with(hidden)));
    if hidden.len() > PLACES_MAX || locked.len() > PLACES_MAX {
        return Err(io::Error::other("there are too many guarded places"));
    }
    // A line that is understood reads what it names, and the rules were asked about that.
    let covers = match ground.user_home.filter(|_| is_unknown) {
        Some(home) => cover_of(home, profile, ground, &project, &hidden)?,
        None => None,
    };
    let reach = if profile.connect.is_empty() { Reach::Nothing } else { Reach::Hosts(profile.connect.clone()) };
    Ok(Bound {
        profile: profile.name.clone(),
        rung: ground.rung,
        write: texts(write)?,
        armed: if profile.write.is_empty() { Vec::new() } else { armed(is_unknown && ground.kept.is_some()) },
        locked: texts(locked)?,
        hidden: texts(outermost(hidden))?,
        covers: covers.into_iter().collect(),
        visible: named_where_nothing_is(ground),
        reach,
        caches: caches_of(ground, &project)?,
        env_blocked: Vec::new(),
        env_set: profile.env.clone(),
    })
}

/// Those that lie in none of the others: behind a place that is hidden there is nothing left to hide.
fn outermost(places: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    // What lies beneath a place comes after it, with nothing but the like between them.
    for place in places {
        if !kept.last().is_some_and(|above| place.starts_with(above)) {
            kept.push(place);
        }
    }
    kept
}

fn texts(paths: impl IntoIterator<Item = PathBuf>) -> io::Result<Vec<String>> {
    let text = |path: PathBuf| path.into_os_string().into_string().map_err(|_| io::Error::other("a path is not text"));
    paths.into_iter().map(text).collect()
}

/// A place of a profile on this machine.
fn placed(place: &str, project: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(rest) = place.strip_prefix("~/") {
        return Some(home?.join(rest));
    }
    Some(if place == "." { project.to_owned() } else { project.join(place) })
}

/// The places beneath a directory that are guarded wherever they lie, as far as they are there: one level of patterns. Of a
/// directory that cannot be listed nobody can tell.
fn guarded_in(directory: &Path, concern: Concern) -> io::Result<BTreeSet<PathBuf>> {
    // Listed once. The table is in lower case, and names on the disk may not be.
    let mut names: Vec<(String, String, bool)> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push((name.to_lowercase(), name, entry.file_type()?.is_symlink()));
        }
    }
    let mut found = BTreeSet::new();
    for rest in fixed_places(concern).filter_map(|pattern| pattern.strip_prefix("**/")) {
        let rest = rest.strip_suffix("/**").unwrap_or(rest);
        let (first, more) = rest.split_once('/').map_or((rest, None), |(first, more)| (first, Some(more)));
        let pattern = first.contains('*').then(|| ShellPattern::new(first));
        let is_meant = |lower: &str| pattern.as_ref().map_or(lower == first, |pattern| pattern.matches(lower));
        for (_, name, is_link) in names.iter().filter(|(lower, ..)| is_meant(lower)) {
            match more {
                Some(more) => found.extend(expanded(directory, &format!("{name}/{more}"))?),
                // What a pattern means is what a link of such a name leads to.
                None if *is_link && pattern.is_some() => found.extend([led_to(directory, name)?]),
                None => found.extend([directory.join(name)]),
            }
        }
    }
    Ok(found)
}

/// Where a link leads, even if nothing is there.
fn led_to(directory: &Path, name: &str) -> io::Result<PathBuf> {
    let directory = directory.to_str().ok_or_else(|| io::Error::other("a directory is not text"))?;
    let found = paths::resolve(&format!("{directory}/{name}"), directory, None);
    found.known().map(PathBuf::from).ok_or_else(|| io::Error::other("nobody can tell where a link leads"))
}

/// What of a pattern is there, beneath a directory.
fn expanded(directory: &Path, rest: &str) -> io::Result<Vec<PathBuf>> {
    let rest = rest.strip_suffix("/**").unwrap_or(rest);
    let directory = directory.to_str().ok_or_else(|| io::Error::other("a directory is not text"))?;
    if !rest.contains('*') {
        let path = Path::new(directory).join(rest);
        return Ok(path.symlink_metadata().is_ok().then_some(path).into_iter().collect());
    }
    let base = Base { cwd: directory, home: None, missing: Missing::Plain };
    let found = paths::expand(rest, base).found;
    let known = |found| match found {
        Resolved::Known(path) => Ok(PathBuf::from(path)),
        Resolved::Unresolvable => Err(io::Error::other("there are too many guarded places to tell")),
    };
    found.into_iter().map(known).collect()
}

/// Files of a project that have the name of a secret. What is committed is none: whoever has the project has it.
fn secrets_in(project: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let (mut open, mut left) = (vec![project.to_owned()], LOOKED_AT_MAX);
    while let Some(directory) = open.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            // What this user cannot read, no command of theirs can.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            left = left.checked_sub(1).ok_or_else(|| io::Error::other("the project has too many files to look at"))?;
            let path = entry.path();
            if path.to_str().is_some_and(|path| is_guarded_secret(&path.to_lowercase())) {
                found.insert(path);
            } else if entry.file_type()?.is_dir() && !is_regenerable(&entry.file_name()) {
                open.push(path);
            }
        }
    }
    if found.is_empty() {
        return Ok(found);
    }
    let tracked = git_index::tracked(&project.join(".git"), |name| {
        name.to_str().is_some_and(|name| is_guarded_secret(&format!("/{}", name.to_lowercase())))
    });
    for name in tracked {
        found.remove(&project.join(name));
    }
    Ok(found)
}

fn is_regenerable(name: &OsStr) -> bool {
    name == ".git" || name.to_str().is_some_and(|name| REGENERABLE.contains(&name))
}

/// Names of files that run later, wherever they lie. What git and packages hold is guarded otherwise, or made anew.
fn armed(opens_git: bool) -> Vec<String> {
    let is_made_anew = |pattern: &str| pattern.split('/').any(|name| name == ".git" || REGENERABLE.contains(&name));
    let named = fixed_places(Concern::RunsLater).chain(fixed_places(Concern::Own));
    let named = named.filter(|pattern| pattern.starts_with("**/") && !is_made_anew(pattern));
    let of_git = OF_GIT.iter().copied().filter(|_| opens_git);
    named.chain(of_git).map(str::to_owned).collect()
}

/// Places of a project that run later, as far as they are there, and those that could not be brought back. Of a line that
/// nobody understood, all of git's, unless it is kept.
fn locked_in(project: &Path, is_unknown: bool, kept: Option<&Taken>) -> io::Result<BTreeSet<PathBuf>> {
    let mut locked = guarded_in(project, Concern::RunsLater)?;
    locked.extend(guarded_in(project, Concern::Own)?);
    let git = project.join(".git");
    // What packages put there is made anew with them.
    let is_made_anew = |path: &PathBuf| {
        let inside = path.strip_prefix(project).ok();
        inside.is_some_and(|inside| inside.iter().any(|name| name != ".git" && is_regenerable(name)))
    };
    locked.retain(|path| *path != git && !is_made_anew(path));
    let is_open = kept.is_some_and(|_| is_plain_repository(&git));
    if is_unknown && !is_open {
        locked.insert(git);
    } else {
        let runs = ["hooks", "config", "config.worktree", "info/attributes", "commondir"].map(|name| git.join(name));
        locked.extend(runs.into_iter().filter(|path| path.symlink_metadata().is_ok()));
    }
    let left_out = kept.into_iter().flat_map(|taken| &taken.left_out);
    let lost = left_out.filter(|(_, why)| *why != Why::Regenerable).map(|(path, _)| project.join(path));
    locked.extend(lost);
    Ok(locked)
}

/// Whether all of a repository that says what git runs is in the usual places. Where there are more of them, in
/// submodules or other work trees, code that nobody understood does not write in it.
fn is_plain_repository(git: &Path) -> bool {
    let is_there = |name: &str| git.join(name).symlink_metadata().is_ok();
    let is_directory = git.symlink_metadata().is_ok_and(|found| found.is_dir());
    is_directory
        && ["hooks", "config"].into_iter().all(is_there)
        && !["modules", "worktrees", "commondir"].into_iter().any(is_there)
}

/// What of the home directory is there for code that nobody understood: hidden entries that are no secrets, directories
/// of programs and packages, and the project.
fn cover_of(
    home: &Path,
    profile: &Profile,
    ground: &BoundGround<'_>,
    project: &Path,
    hidden: &BTreeSet<PathBuf>,
) -> io::Result<Option<Cover>> {
    let home = fs::canonicalize(home)?;
    // A home directory that is the project, or in it, is the project's to show.
    if home.starts_with(project) || home == Path::new("/") {
        return Ok(None);
    }
    let is_dotted = |name: &OsStr| name.as_encoded_bytes().first() == Some(&b'.');
    let named = |name: &OsStr| name.to_str().is_some_and(|name| VISIBLE_IN_HOME.contains(&name));
    let entries = fs::read_dir(&home)?.filter_map(Result::ok);
    let mut visible: BTreeSet<PathBuf> = entries
        .filter(|entry| is_dotted(&entry.file_name()) || named(&entry.file_name()))
        .map(|entry| entry.path())
        .collect();
    visible.retain(|path| !hidden.contains(path));
    let listed = profile.read.iter().filter_map(|place| placed(place, project, Some(&home)));
    let programs = ground.on_path.iter().map(PathBuf::from);
    let more =
        listed.chain(programs).chain([project.to_owned()]).filter(|path| path.starts_with(&home) && path.exists());
    visible.extend(more);
    // What lies in one that is there is there with it.
    let all: Vec<PathBuf> = visible.into_iter().collect();
    let outer = |path: &&PathBuf| !all.iter().any(|other| other != *path && path.starts_with(other));
    let visible = texts(all.iter().filter(outer).cloned())?;
    let directory = home.to_str().ok_or_else(|| io::Error::other("the home directory is not text"))?.to_owned();
    Ok(Some(Cover { directory, visible }))
}

/// What a line names where otherwise nothing is: among temporary files, which are a session's own, and in the home
/// directory. What is hidden stays hidden.
fn named_where_nothing_is(ground: &BoundGround<'_>) -> Vec<String> {
    let is_temporary = |path: &str| TEMPORARY.iter().any(|directory| is_within(path, directory) && path != *directory);
    let home = ground.user_home.and_then(Path::to_str);
    let is_at_home = |path: &str| home.is_some_and(|home| is_within(path, home) && path != home);
    let is_there = |path: &&String| (is_temporary(path) || is_at_home(path)) && Path::new(path).exists();
    ground.named.iter().filter(is_there).take(PLACES_MAX).cloned().collect()
}

/// Directories that commands write to and that are not the project's: each project has its own.
fn caches_of(ground: &BoundGround<'_>, project: &Path) -> io::Result<Vec<Cache>> {
    let project_text = project.to_string_lossy();
    let mut caches = Vec::new();
    let mut add = |directory: PathBuf, own: PathBuf| -> io::Result<()> {
        let in_project = is_within(&directory.to_string_lossy(), &project_text);
        if directory.is_dir() && !in_project && !project.starts_with(&directory) {
            fs::create_dir_all(&own)?;
            let [directory, own] = [directory, own].map(|path| path.to_string_lossy().into_owned());
            caches.push(Cache { directory, own });
        }
        Ok(())
    };
    let of_project = ground.home.join("caches").join(short(&project_text));
    if let Some(home) = ground.user_home {
        // What its package manager would make in the user's home directory, it cannot make there.
        let needed = [(".cache", "."), (".npm", "package.json"), ("go/pkg", "go.mod")];
        for (place, _) in needed.iter().filter(|(_, file)| project.join(file).exists()) {
            fs::create_dir_all(home.join(place))?;
        }
        for (number, place) in USER_CACHES.iter().enumerate() {
            add(home.join(place), of_project.join(number.to_string()))?;
        }
    }
    Ok(caches)
}

/// The directory for a session's temporary files. Calls of a session share it, and other sessions do not see it.
pub fn temporary_of(home: &Path, session: &str) -> io::Result<PathBuf> {
    let directory = home.join("tmp").join(short(session));
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory)
}

/// A name for something of ours that belongs to a text.
fn short(text: &str) -> String {
    Digest::of(&[text]).to_string().chars().skip("sha256:".len()).take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_hidden_place_is_not_hidden_twice() {
        let places = ["/a/.codex", "/a/.codex/config.toml", "/a/.codex-other", "/a/.codex/b/c", "/a/b"];
        let kept = outermost(places.iter().map(PathBuf::from).collect());
        assert_eq!(kept, ["/a/.codex", "/a/.codex-other", "/a/b"].map(PathBuf::from));
    }

    #[test]
    fn a_directory_that_cannot_be_listed_is_no_bound() {
        let missing = std::env::temp_dir().join(format!("interlock-bound-{}", std::process::id()));
        assert!(guarded_in(&missing, Concern::Secret).is_err());
        assert!(locked_in(&missing, true, None).is_err());
        fs::create_dir_all(missing.join(".ssh")).expect("made");
        for name in ["Server.PEM", ".old.key", "led", "id_x"] {
            fs::write(missing.join(name), "").expect("written");
        }
        std::os::unix::fs::symlink("led", missing.join("id_rsa")).expect("linked");
        let found = guarded_in(&missing, Concern::Secret).expect("listed");
        let meant = [".old.key", ".ssh", "Server.PEM", "led"].map(|name| missing.join(name));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), meant);
        fs::remove_dir_all(&missing).expect("removed");
    }
}
