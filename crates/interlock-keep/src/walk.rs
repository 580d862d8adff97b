//! A walk over a project's tree by two threads.
//!
//! Work is directories by path, and names of a directory that is open. A thread takes the newest work first, so that few
//! directories are open at a time. What one name is, `visit.rs` says; what all of it amounts to, `gather.rs`.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use rustix::fs::Stat;
use rustix::io::Errno;

use crate::content::Into;
use crate::fault::KeepFault;
use crate::gather::{Entered, Found, Part};
use crate::index::{Seen, Stamp};
use crate::limits::{LeaveOut, Limits};
use crate::node::{Kind, Why};
use crate::project::{Names, Project, joined};
use crate::visit::{self, Room, Visited};
use crate::xattrs;

/// How many threads walk.
const THREADS: usize = 2;
/// So many names of one directory are one piece of work.
const NAMES_AT_ONCE: usize = 512;

/// Everything a walk needs to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) project: &'a Project,
    pub(crate) leave_out: LeaveOut<'a>,
    pub(crate) limits: &'a Limits,
    /// What the last walk saw, if that is of use.
    pub(crate) before: &'a Seen,
    pub(crate) into: Into<'a>,
    /// The device of the project.
    pub(crate) device: u64,
    /// Device and inode of the store, which may lie in the project.
    pub(crate) store: (u64, u64),
}

/// A directory that is open, until the last of its names was looked at.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) path: Vec<u8>,
    pub(crate) descriptor: OwnedFd,
    names: Names,
    /// Its number among all that were entered.
    number: usize,
}

impl Opened {
    pub(crate) fn new(path: Vec<u8>, descriptor: OwnedFd) -> Opened {
        Opened { path, descriptor, names: Names::default(), number: 0 }
    }
}

/// Something to do.
#[derive(Debug)]
enum Work {
    /// Enter a directory.
    Enter(Vec<u8>),
    /// Look at names of a directory.
    Names(Arc<Opened>, Range<usize>),
    /// Read a large file.
    Large(Arc<Opened>, usize),
}

#[derive(Debug, Default)]
struct Queue {
    work: Vec<Work>,
    busy: usize,
    fault: Option<KeepFault>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    nodes: AtomicU64,
    entered: AtomicUsize,
}

/// Walks over what lies at or beneath a directory.
pub(crate) fn walk(ground: &Ground<'_>, from: Vec<u8>) -> Result<Found, KeepFault> {
    let shared = Shared::default();
    if let Ok(mut queue) = shared.queue.lock() {
        queue.work.push(Work::Enter(from));
    }
    let walk_ns = now_ns();
    let results: Vec<Found> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let shared = &shared;
                    move || work_on(ground, shared, thread)
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let is_whole = results.len() == THREADS;
    let queue = shared.queue.into_inner().ok().filter(|_| is_whole).unwrap_or_else(|| Queue {
        fault: Some(KeepFault::read(ground.project.path(), std::io::Error::other("a thread failed"))),
        ..Queue::default()
    });
    match queue.fault {
        Some(fault) => Err(fault),
        None => Ok(results.into_iter().fold(Found { walk_ns, ..Found::default() }, Found::and)),
    }
}

/// The time as file systems stamp it: that of the last tick.
pub(crate) fn now_ns() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::RealtimeCoarse;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Realtime;
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

fn work_on(ground: &Ground<'_>, shared: &Shared, thread: usize) -> Found {
    let mut walker =
        Walker { ground, shared, thread, found: Found::default(), more: Vec::new(), room: Room::default() };
    while let Some(work) = next(shared) {
        let done = walker.do_one(work);
        let Ok(mut queue) = shared.queue.lock() else { return walker.found };
        queue.busy = queue.busy.saturating_sub(1);
        queue.work.append(&mut walker.more);
        if let Err(fault) = done {
            queue.fault.get_or_insert(fault);
        }
        shared.changed.notify_all();
    }
    walker.found
}

/// The next piece of work; `None` when there is no more, or something failed.
fn next(shared: &Shared) -> Option<Work> {
    let mut queue = shared.queue.lock().ok()?;
    loop {
        if queue.fault.is_some() {
            return None;
        }
        if let Some(work) = queue.work.pop() {
            queue.busy = queue.busy.saturating_add(1);
            return Some(work);
        }
        if queue.busy == 0 {
            return None;
        }
        queue = shared.changed.wait(queue).ok()?;
    }
}

/// One thread of a walk.
struct Walker<'a> {
    ground: &'a Ground<'a>,
    shared: &'a Shared,
    thread: usize,
    found: Found,
    more: Vec<Work>,
    room: Room,
}

impl Walker<'_> {
    fn do_one(&mut self, work: Work) -> Result<(), KeepFault> {
        match work {
            Work::Enter(path) => self.enter(path),
            Work::Names(opened, names) => self.look(&opened, names, false),
            Work::Large(opened, at) => self.look(&opened, at..at.saturating_add(1), true),
        }
    }

    /// Looks at some names of a directory.
    fn look(&mut self, opened: &Arc<Opened>, range: Range<usize>, is_large: bool) -> Result<(), KeepFault> {
        let before = self.ground.before.directories.get(&opened.path);
        let mut part = Part::default();
        for at in range {
            let Some(name) = opened.names.get(at) else { continue };
            let position = before.and_then(|directory| directory.position(name));
            let known = position.and_then(|at| before?.names.get(at));
            let is_directory =
                match visit::visit(self.ground, self.thread, opened, name, known, is_large, &mut self.room)? {
                    Visited::Gone => continue,
                    Visited::Large => {
                        self.more.push(Work::Large(Arc::clone(opened), at));
                        continue;
                    }
                    Visited::Same => {
                        part.same.extend(position.and_then(|at| u32::try_from(at).ok()));
                        known.is_some_and(|known| known.node.is_directory())
                    }
                    Visited::Other(seen) => {
                        let is_directory = seen.node.is_directory();
                        part.others.push(seen);
                        is_directory
                    }
                };
            if is_directory {
                self.more.push(Work::Enter(joined(&opened.path, name)));
            }
        }
        self.found.files_read = self.found.files_read.saturating_add(std::mem::take(&mut self.room.files_read));
        self.found.parts.push((opened.number, part));
        Ok(())
    }

    /// Opens a directory, lists its names, and looks at the first of them.
    fn enter(&mut self, path: Vec<u8>) -> Result<(), KeepFault> {
        let ground = self.ground;
        let (mut opened, stat) = match open_and_list(ground, path.clone()) {
            Ok(listed) => listed,
            // The project itself must be readable.
            Err(why) if path.is_empty() || is_exhausted(why) => {
                return Err(KeepFault::read(ground.project.path_of(&path), why));
            }
            Err(why) => {
                self.found.not_entered.push((path, why_not(why)));
                return Ok(());
            }
        };
        let names = opened.names.len();
        let count = u64::try_from(names).unwrap_or(u64::MAX);
        if self.shared.nodes.fetch_add(count, Ordering::Relaxed).saturating_add(count) > ground.limits.nodes_max {
            return Err(KeepFault::TooMany { project: ground.project.path().to_owned(), max: ground.limits.nodes_max });
        }
        opened.number = self.shared.entered.fetch_add(1, Ordering::Relaxed);
        let stamp = Stamp::of(&stat);
        let is_known = ground
            .before
            .directories
            .get(&path)
            .is_some_and(|known| known.stamp == stamp && stamp.is_settled(ground.before.walk_ns));
        let node = (!is_known).then(|| {
            let attributes = xattrs::read(opened.descriptor.as_fd()).unwrap_or_default();
            // Its digest is known when all of its names are.
            let tree = interlock_core::Digest::from_bytes([0; 32]);
            visit::node_of(&stat, Kind::Directory { tree }, attributes)
        });
        self.found.entered.push(Entered { number: opened.number, path, stamp, node });
        let opened = Arc::new(opened);
        let mut rest = NAMES_AT_ONCE;
        while rest < names {
            let end = rest.saturating_add(NAMES_AT_ONCE).min(names);
            self.more.push(Work::Names(Arc::clone(&opened), rest..end));
            rest = end;
        }
        self.look(&opened, 0..names.min(NAMES_AT_ONCE), false)
    }
}

fn open_and_list(ground: &Ground<'_>, path: Vec<u8>) -> Result<(Opened, Stat), Errno> {
    let descriptor = ground.project.open_directory(&path)?;
    let stat = rustix::fs::fstat(&descriptor)?;
    let names = Names::list(&descriptor)?;
    Ok((Opened { names, ..Opened::new(path, descriptor) }, stat))
}

/// Whether the system has run out of something: that is no property of what was looked at.
pub(crate) fn is_exhausted(why: Errno) -> bool {
    matches!(why, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// Why a directory was not entered; nothing if it is gone.
fn why_not(why: Errno) -> Option<Why> {
    match why {
        Errno::NOENT => None,
        Errno::XDEV => Some(Why::OtherFileSystem),
        _ => Some(Why::Unreadable),
    }
}
