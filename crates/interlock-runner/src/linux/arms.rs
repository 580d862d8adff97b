//! Files that a command may not leave behind, because they run later or choose what runs: found by their names when it
//! has ended, and set aside.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use interlock_core::contain::{Armed, Bound};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, Stat};

use super::steps;
use crate::SetAside;
use crate::start::NAMED_MAX;

/// How many entries are looked at. A project with more is searched in part, and that is said.
const ENTRIES_MAX: usize = 2_000_000;
/// How deep.
const DEPTH_MAX: usize = 256;

/// When a command started, by both clocks.
pub(crate) struct Began {
    clock: Duration,
    at: Instant,
}

/// What a search came to.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) set_aside: Vec<SetAside>,
    pub(crate) notes: Vec<String>,
}

impl Began {
    /// Now, by the clock that times of files come from: it stands still between two ticks.
    pub(crate) fn now() -> Began {
        let tick = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        let seconds = u64::try_from(tick.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(tick.tv_nsec).unwrap_or(0);
        Began { clock: Duration::new(seconds, nanoseconds), at: Instant::now() }
    }

    /// From when on a file counts as changed. If somebody has set the clock back meanwhile, from before that.
    fn threshold(&self) -> Duration {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // Both clocks are read one after the other; that must not look like a clock that was set back.
        let slack = Duration::from_millis(500);
        let by_now = now.saturating_sub(self.at.elapsed());
        if by_now.saturating_add(slack) < self.clock { by_now.saturating_sub(slack) } else { self.clock }
    }
}

/// Searches writable places for armed files that were made or changed since, and moves them to `aside`.
pub(crate) fn search(bound: &Bound, armed: &Armed, began: &Began, aside: Option<&Path>) -> Found {
    let locked = bound.locked.iter().map(Path::new).collect();
    let mut search = Search { armed, locked, since: began.threshold(), aside, entries: 0, found: Found::default() };
    if !armed.is_empty() {
        for root in &bound.write {
            search.directory(Path::new(root), false, false, 0);
        }
    }
    search.found
}

struct Search<'a> {
    armed: &'a Armed,
    /// Nobody could make anything in there.
    locked: HashSet<&'a Path>,
    since: Duration,
    aside: Option<&'a Path>,
    entries: usize,
    found: Found,
}

impl Search<'_> {
    /// `all` if everything in it is armed; `moved` if it was moved there since, with all that is in it.
    fn directory(&mut self, path: &Path, all: bool, moved: bool, depth: usize) {
        let text = path.to_string_lossy().into_owned();
        let all = all || self.armed.holds_all_beneath(&text);
        // A directory that nobody may list was made so by the command or belongs to somebody else.
        let Ok(entries) = fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            self.entries = self.entries.saturating_add(1);
            if self.entries > ENTRIES_MAX || depth > DEPTH_MAX {
                let note = "not every file could be searched for what runs later".to_owned();
                if !self.found.notes.contains(&note) {
                    self.found.notes.push(note);
                }
                return;
            }
            let (name, inside) = (entry.file_name(), entry.path());
            let shown = name.to_string_lossy();
            if self.locked.contains(inside.as_path()) {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let moved = moved || self.armed.speaks_of(&shown) && self.was_moved(&inside);
                self.directory(&inside, all, moved, depth.saturating_add(1));
            } else if all || self.armed.holds(&text, &shown) {
                self.consider(path, &name, moved);
            }
        }
    }

    fn is_since(&self, seconds: i64, nanoseconds: u64) -> bool {
        let nanoseconds = u32::try_from(nanoseconds).unwrap_or(0);
        Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds) >= self.since
    }

    /// Moving a directory changes it and not its list of entries, and nothing in it.
    fn was_moved(&self, path: &Path) -> bool {
        let Ok(stat) = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        self.is_since(stat.st_ctime, stat.st_ctime_nsec) && !self.is_since(stat.st_mtime, stat.st_mtime_nsec)
    }

    fn consider(&mut self, directory: &Path, name: &OsStr, moved: bool) {
        // By descriptor, and through no link: another command may be at work in the same place.
        let Ok(text) = std::ffi::CString::new(directory.as_os_str().as_bytes()) else { return };
        let Ok(parent) = steps::place(&text) else { return };
        let Ok(stat) = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if !moved && !self.is_since(stat.st_ctime, stat.st_ctime_nsec) {
            return;
        }
        let path = directory.join(name).to_string_lossy().into_owned();
        let kept = self.aside.and_then(|aside| match set_aside(&parent, name, &stat, aside) {
            Ok(kept) => Some(kept),
            Err(error) => {
                self.found.notes.push(format!("`{path}` could not be set aside: {error}"));
                None
            }
        });
        if self.found.set_aside.len() < NAMED_MAX {
            self.found.set_aside.push(SetAside { path, kept });
        } else if self.found.set_aside.len() == NAMED_MAX {
            self.found.notes.push(format!("more than {NAMED_MAX} files were set aside"));
        }
    }
}

/// Moves a file to a new name in `aside`.
fn set_aside(parent: &OwnedFd, name: &OsStr, stat: &Stat, aside: &Path) -> io::Result<PathBuf> {
    const NAMES_MAX: u32 = 100_000;
    fs::create_dir_all(aside)?;
    for number in 0..NAMES_MAX {
        let mut kept = std::ffi::OsString::from(format!("{number}-"));
        kept.push(name);
        let to = aside.join(kept);
        match rustix::fs::renameat_with(parent, name, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(to),
            Err(rustix::io::Errno::EXIST) => {}
            Err(rustix::io::Errno::XDEV) => {
                copy(parent, name, stat, &to)?;
                rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
                return Ok(to);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EEXIST))
}

/// To another file system: what a link says, or what a file holds.
fn copy(parent: &OwnedFd, name: &OsStr, stat: &Stat, to: &Path) -> io::Result<()> {
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    if kind.is_symlink() {
        let target = rustix::fs::readlinkat(parent.as_fd(), name, Vec::new())?;
        return std::os::unix::fs::symlink(OsStr::from_bytes(target.to_bytes()), to);
    }
    if !kind.is_file() {
        return Err(io::Error::from_raw_os_error(libc::EXDEV));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut from = fs::File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
    let mut into = fs::File::options().write(true).create_new(true).open(to)?;
    io::copy(&mut from, &mut into).map(drop)
}
