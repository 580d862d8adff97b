//! A walk over a project's tree by two threads.
//!
//! Work is directories by path, and names of a directory that is open. A thread takes the newest work first, so that few
//! directories are open at a time. What one name is, `visit.rs` says.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use rustix::fs::{Dir, Stat};
use rustix::io::Errno;

use crate::content::Into;
use crate::fault::KeepFault;
use crate::index::{Seen, SeenDirectory, SeenName, Stamp};
use crate::limits::{LeaveOut, Limits};
use crate::node::{Kind, Node, Why};
use crate::project::Project;
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

/// What a walk saw, and how much of it is new.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) seen: Seen,
    /// Whether a file was read, or something is there that was not, or is left out now.
    pub(crate) is_changed: bool,
    /// Directories that could not be entered; those that are gone have no reason.
    pub(crate) not_entered: HashMap<Vec<u8>, Option<Why>>,
}

/// A directory that is open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) path: Vec<u8>,
    pub(crate) descriptor: OwnedFd,
}

/// Something to do.
#[derive(Debug)]
pub(crate) enum Work {
    /// Enter a directory.
    Enter(Vec<u8>),
    /// Look at names of a directory.
    Names(Arc<Opened>, Vec<Box<[u8]>>),
    /// Read a large file.
    Large(Arc<Opened>, Box<[u8]>),
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
}

/// Walks over the whole tree, or what lies at or beneath one path.
pub(crate) fn walk(ground: &Ground<'_>, from: Work) -> Result<Walked, KeepFault> {
    let shared = Shared::default();
    if let Ok(mut queue) = shared.queue.lock() {
        queue.work.push(from);
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
        None => Ok(gathered(results, walk_ns)),
    }
}

/// The time as file systems stamp it: that of the last tick.
fn now_ns() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::RealtimeCoarse;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Realtime;
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// What one thread found.
#[derive(Debug, Default)]
struct Found {
    directories: Vec<(Vec<u8>, Stamp, Node)>,
    names: Vec<(Arc<Opened>, Vec<SeenName>)>,
    not_entered: Vec<(Vec<u8>, Option<Why>)>,
    is_changed: bool,
}

fn gathered(results: Vec<Found>, walk_ns: i64) -> Walked {
    let mut walked = Walked { seen: Seen { walk_ns, ..Seen::default() }, ..Walked::default() };
    let mut names = Vec::new();
    for found in results {
        walked.is_changed |= found.is_changed;
        walked.not_entered.extend(found.not_entered);
        names.push(found.names);
        for (path, stamp, node) in found.directories {
            walked.seen.directories.insert(path, SeenDirectory { stamp, node, names: Vec::new() });
        }
    }
    for (opened, more) in names.into_iter().flatten() {
        if let Some(directory) = walked.seen.directories.get_mut(&opened.path) {
            if directory.names.is_empty() {
                directory.names = more;
            } else {
                directory.names.extend(more);
            }
        }
    }
    for directory in walked.seen.directories.values_mut() {
        directory.names.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        directory.names.shrink_to_fit();
    }
    walked
}

fn work_on(ground: &Ground<'_>, shared: &Shared, thread: usize) -> Found {
    let (mut found, mut room) = (Found::default(), Room::default());
    while let Some(work) = next(shared) {
        let mut more = Vec::new();
        let done = do_one(ground, shared, thread, work, &mut found, &mut more, &mut room);
        let Ok(mut queue) = shared.queue.lock() else { return found };
        queue.busy = queue.busy.saturating_sub(1);
        queue.work.append(&mut more);
        if let Err(fault) = done {
            queue.fault.get_or_insert(fault);
        }
        shared.changed.notify_all();
    }
    found
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

fn do_one(
    ground: &Ground<'_>,
    shared: &Shared,
    thread: usize,
    work: Work,
    found: &mut Found,
    more: &mut Vec<Work>,
    room: &mut Room,
) -> Result<(), KeepFault> {
    let (opened, names, is_large) = match work {
        Work::Enter(path) => return enter(ground, shared, path, found, more),
        Work::Names(opened, names) => (opened, names, false),
        Work::Large(opened, name) => (opened, vec![name], true),
    };
    let before = ground.before.directories.get(&opened.path);
    let mut seen = Vec::with_capacity(names.len());
    for name in names {
        let known = before.and_then(|directory| directory.find(&name));
        match visit::visit(ground, thread, &opened, name, known, is_large, room)? {
            Visited::Gone => found.is_changed = true,
            Visited::Large(name) => more.push(Work::Large(Arc::clone(&opened), name)),
            Visited::Seen { name, is_new } => {
                found.is_changed |= is_new;
                if matches!(name.node.kind, Kind::Directory { .. }) {
                    more.push(Work::Enter(crate::project::joined(&opened.path, &name.name)));
                }
                seen.push(name);
            }
        }
    }
    found.names.push((opened, seen));
    Ok(())
}

/// Opens a directory and lists its names.
fn enter(
    ground: &Ground<'_>,
    shared: &Shared,
    path: Vec<u8>,
    found: &mut Found,
    more: &mut Vec<Work>,
) -> Result<(), KeepFault> {
    let before = ground.before.directories.get(&path);
    let (opened, stat, names) = match open_and_list(ground, path.clone()) {
        Ok(listed) => listed,
        // The project itself must be readable.
        Err(why) if path.is_empty() => return Err(KeepFault::read(ground.project.path(), why)),
        Err(why) => {
            found.is_changed |= before.is_some();
            found.not_entered.push((path, why_not(why)));
            return Ok(());
        }
    };
    let count = u64::try_from(names.len()).unwrap_or(u64::MAX);
    if shared.nodes.fetch_add(count, Ordering::Relaxed).saturating_add(count) > ground.limits.nodes_max {
        return Err(KeepFault::TooMany { project: ground.project.path().to_owned(), max: ground.limits.nodes_max });
    }
    let stamp = Stamp::of(&stat);
    let known = before.filter(|known| known.stamp == stamp && stamp.is_settled(ground.before.walk_ns));
    let attributes = match known {
        Some(known) => known.node.xattrs.clone(),
        None => {
            found.is_changed = true;
            xattrs::read(opened.descriptor.as_fd()).unwrap_or_default()
        }
    };
    // Its digest is known when all of its names are.
    let tree = interlock_core::Digest::from_bytes([0; 32]);
    found.directories.push((path, stamp, visit::node_of(&stat, Kind::Directory { tree }, attributes)));
    let mut names = names.into_iter().peekable();
    while names.peek().is_some() {
        more.push(Work::Names(Arc::clone(&opened), names.by_ref().take(NAMES_AT_ONCE).collect()));
    }
    Ok(())
}

type Listed = (Arc<Opened>, Stat, Vec<Box<[u8]>>);

fn open_and_list(ground: &Ground<'_>, path: Vec<u8>) -> Result<Listed, Errno> {
    let descriptor = ground.project.open_directory(&path)?;
    let stat = rustix::fs::fstat(&descriptor)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&descriptor)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.into());
        }
    }
    Ok((Arc::new(Opened { path, descriptor }), stat, names))
}

/// Why a directory was not entered; nothing if it is gone.
fn why_not(why: Errno) -> Option<Why> {
    match why {
        Errno::NOENT => None,
        Errno::XDEV => Some(Why::OtherFileSystem),
        _ => Some(Why::Unreadable),
    }
}
