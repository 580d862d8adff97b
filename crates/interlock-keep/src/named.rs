//! Snapshots of named paths: those, what lies beneath them, and the directories on the way.

use std::os::fd::AsFd;

use rustix::io::Errno;

use crate::bytes::{Unread, Written};
use crate::fault::KeepFault;
use crate::gather::Walked;
use crate::index::{SeenDirectory, SeenName, Stamp};
use crate::node::Kind;
use crate::project::{is_at_or_beneath, joined, shown};
use crate::visit::{self, Room, Visited};
use crate::walk::{Ground, Opened, walk};
use crate::xattrs;

const SCOPE_MARK: &[u8] = b"scope 1\n";

/// Paths that a snapshot is about, in order and none beneath another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named(pub(crate) Vec<Vec<u8>>);

/// How a path lies to named ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lies {
    /// At or beneath one of them.
    Within,
    /// On the way to one of them.
    Above,
    /// Elsewhere.
    Beside,
}

impl Named {
    pub(crate) fn new(mut paths: Vec<Vec<u8>>) -> Named {
        paths.sort_unstable();
        let mut named: Vec<Vec<u8>> = Vec::new();
        for path in paths {
            if !named.iter().any(|other| is_at_or_beneath(&path, other)) {
                named.push(path);
            }
        }
        Named(named)
    }

    pub(crate) fn lies(&self, path: &[u8]) -> Lies {
        if self.0.iter().any(|named| is_at_or_beneath(path, named)) {
            Lies::Within
        } else if self.0.iter().any(|named| is_at_or_beneath(named, path)) {
            Lies::Above
        } else {
            Lies::Beside
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut to = Written(SCOPE_MARK.to_vec());
        self.0.iter().for_each(|path| to.text(path));
        to.0
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Named> {
        let mut from = Unread(bytes.strip_prefix(SCOPE_MARK)?);
        let mut paths = Vec::new();
        while from.end().is_none() {
            paths.push(from.text()?.to_vec());
        }
        Some(Named(paths))
    }
}

/// Walks to every named path and over what lies beneath it. A name that is not there is simply not seen.
pub(crate) fn walk_named(ground: &Ground<'_>, named: &Named) -> Result<Walked, KeepFault> {
    let mut walked = Walked::default();
    enter(ground, &mut walked, Vec::new())?;
    for path in &named.0 {
        if path.is_empty() {
            return walk_beneath(ground, Vec::new());
        }
        walk_to(ground, &mut walked, path)?;
    }
    for directory in walked.seen.directories.values_mut() {
        directory.sort();
        directory.names.dedup_by(|left, right| left.name == right.name);
    }
    Ok(walked)
}

/// Walks over what lies beneath a directory. What was known of it stays known.
fn walk_beneath(ground: &Ground<'_>, path: Vec<u8>) -> Result<Walked, KeepFault> {
    Ok(walk(ground, path)?.gathered(|path| ground.before.directories.get(path).cloned()))
}

/// Goes down one name after the other; what is left out on the way ends it.
fn walk_to(ground: &Ground<'_>, walked: &mut Walked, path: &[u8]) -> Result<(), KeepFault> {
    let mut at: Vec<u8> = Vec::new();
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let Some(opened) = enter(ground, walked, at.clone())? else { return Ok(()) };
        let Some(seen) = look(ground, &opened, name)? else { return Ok(()) };
        let is_directory = matches!(seen.node.kind, Kind::Directory { .. });
        if let Some(directory) = walked.seen.directories.get_mut(&at) {
            directory.names.push(seen);
        }
        at = joined(&at, name);
        if !is_directory {
            return Ok(());
        }
        if names.peek().is_none() {
            let beneath = walk_beneath(ground, at.clone())?;
            walked.not_entered.extend(beneath.not_entered);
            walked.touched.extend(beneath.touched);
            walked.seen.directories.extend(beneath.seen.directories);
        }
    }
    Ok(())
}

fn look(ground: &Ground<'_>, opened: &Opened, name: &[u8]) -> Result<Option<SeenName>, KeepFault> {
    let mut room = Room::default();
    for is_large in [false, true] {
        match visit::visit(ground, 0, opened, name, None, is_large, &mut room)? {
            Visited::Gone => return Ok(None),
            Visited::Other(seen) => return Ok(Some(seen)),
            Visited::Large | Visited::Same => {}
        }
    }
    Ok(None)
}

/// Opens a directory on the way, and notes what it is.
fn enter(ground: &Ground<'_>, walked: &mut Walked, path: Vec<u8>) -> Result<Option<Opened>, KeepFault> {
    let fault = |why: Errno| KeepFault::read(ground.project.path_of(&path), why);
    let descriptor = match ground.project.open_directory(&path) {
        Ok(descriptor) => descriptor,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(KeepFault::Outside { path: shown(&path) }),
        Err(why) => return Err(fault(why)),
    };
    let stat = rustix::fs::fstat(&descriptor).map_err(fault)?;
    if !walked.seen.directories.contains_key(&path) {
        let tree = interlock_core::Digest::from_bytes([0; 32]);
        let attributes = xattrs::read(descriptor.as_fd()).map_err(fault)?;
        let node = visit::node_of(&stat, Kind::Directory { tree }, attributes);
        let seen = SeenDirectory { stamp: Stamp::of(&stat), node, names: Vec::new() };
        walked.seen.directories.insert(path.clone(), seen);
        walked.touched.insert(path.clone());
    }
    Ok(Some(Opened::new(path, descriptor)))
}
