//! One name of a directory: what it is, whether it is kept, and its bytes if they are not known yet.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::content::{self, PIECE_LEN, Read};
use crate::fault::KeepFault;
use crate::index::{SeenName, Stamp};
use crate::node::{Content, Kind, Node, Why};
use crate::project::{joined, open_file, stat_name};
use crate::restore::STAGING;
use crate::walk::{Ground, Opened, is_exhausted};
use crate::xattrs::{self, Xattrs};

/// A file that changes while it is read is read again, so often at most.
const READS_MAX: u32 = 3;

/// Room that a thread uses again for every name.
#[derive(Debug, Default)]
pub(crate) struct Room {
    bytes: Vec<u8>,
    path: Vec<u8>,
    /// How many files were read.
    pub(crate) files_read: u64,
}

/// What came of a name.
pub(crate) enum Visited {
    /// It is gone by now.
    Gone,
    /// It is a large file that has to be read, which is work of its own.
    Large,
    /// It is what was known.
    Same,
    /// It is something else, or was not known.
    Other(SeenName),
}

/// Looks at a name, whose last stamp and node may be known.
pub(crate) fn visit(
    ground: &Ground<'_>,
    thread: usize,
    opened: &Opened,
    name: &[u8],
    known: Option<&SeenName>,
    is_large: bool,
    room: &mut Room,
) -> Result<Visited, KeepFault> {
    let stat = match stat_name(opened.descriptor.as_fd(), name) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Visited::Gone),
        // Where nothing can be asked about a name, the project answers for the device.
        Err(_) => return Ok(left(name, &ground.project.stat()?, Why::Unreadable, false, known)),
    };
    let stamp = Stamp::of(&stat);
    let file_type = FileType::from_raw_mode(stat.st_mode);
    let is_directory = file_type == FileType::Directory;
    if let Some(why) = left_out(ground, opened, name, &stamp, is_directory, &mut room.path) {
        return Ok(left(name, &stat, why, is_directory, known));
    }
    let is_settled = stamp.is_settled(ground.before.walk_ns);
    match file_type {
        FileType::Directory => {
            // It is entered in any case, and its own node comes from there.
            let is_same_inode =
                |known: &SeenName| (known.stamp.device, known.stamp.inode) == (stamp.device, stamp.inode);
            if known.is_some_and(|known| known.node.is_directory() && is_same_inode(known)) {
                return Ok(Visited::Same);
            }
            let tree = interlock_core::Digest::from_bytes([0; 32]);
            let node = node_of(&stat, Kind::Directory { tree }, Xattrs::new());
            Ok(Visited::Other(SeenName { name: name.into(), stamp, node }))
        }
        FileType::RegularFile | FileType::Symlink
            if known.is_some_and(|known| is_settled && known.stamp == stamp && !known.node.is_left_out()) =>
        {
            Ok(Visited::Same)
        }
        FileType::Symlink => match rustix::fs::readlinkat(&opened.descriptor, name, Vec::new()) {
            Ok(target) => {
                let kind = Kind::Link { target: target.into_bytes() };
                Ok(seen(name, stamp, node_of(&stat, kind, Xattrs::new()), known))
            }
            Err(Errno::NOENT | Errno::INVAL) => Ok(Visited::Gone),
            Err(_) => Ok(left(name, &stat, Why::Unreadable, false, known)),
        },
        FileType::RegularFile => {
            if !is_large && stamp.size > u64::try_from(PIECE_LEN).unwrap_or(u64::MAX) {
                return Ok(Visited::Large);
            }
            visit_file(ground, thread, opened, name, known, room)
        }
        _ => Ok(left(name, &stat, Why::Special, false, known)),
    }
}

/// What was seen of a file or link.
fn seen(name: &[u8], stamp: Stamp, node: Node, known: Option<&SeenName>) -> Visited {
    match known {
        Some(known) if known.node == node && known.stamp == stamp => Visited::Same,
        _ => Visited::Other(SeenName { name: name.into(), stamp, node }),
    }
}

/// Something that is left out. Its stamp is of no use to anybody.
fn left(name: &[u8], stat: &Stat, why: Why, is_directory: bool, known: Option<&SeenName>) -> Visited {
    let node = Node::left_out(why, is_directory);
    match known {
        Some(known) if known.node == node => Visited::Same,
        _ => Visited::Other(SeenName { name: name.into(), stamp: Stamp::of(stat), node }),
    }
}

/// Why a name is left out before it is looked into.
fn left_out(
    ground: &Ground<'_>,
    opened: &Opened,
    name: &[u8],
    stamp: &Stamp,
    is_directory: bool,
    path: &mut Vec<u8>,
) -> Option<Why> {
    path.clear();
    path.extend_from_slice(&opened.path);
    if !opened.path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    if is_directory {
        if (stamp.device, stamp.inode) == ground.store || (opened.path.is_empty() && name.starts_with(STAGING)) {
            return Some(Why::Own);
        }
        if stamp.device != ground.device {
            return Some(Why::OtherFileSystem);
        }
        if !is_in_git(path) && (ground.leave_out.is_regenerable)(Path::new(OsStr::from_bytes(path))) {
            return Some(Why::Regenerable);
        }
    }
    (ground.leave_out.is_secret)(Path::new(OsStr::from_bytes(path))).then_some(Why::Secret)
}

/// Whether a path lies in a repository's own directory: a branch may be called `target`.
fn is_in_git(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|name| name == b".git")
}

/// Whether a path lies among the objects of a repository, which git writes once and never changes.
pub(crate) fn is_git_object(path: &[u8]) -> bool {
    let mut names = path.split(|byte| *byte == b'/');
    names.any(|name| name == b".git") && names.any(|name| name == b"objects")
}

/// Reads a file into the store.
fn visit_file(
    ground: &Ground<'_>,
    thread: usize,
    opened: &Opened,
    name: &[u8],
    known: Option<&SeenName>,
    room: &mut Room,
) -> Result<Visited, KeepFault> {
    let unreadable = || match stat_name(opened.descriptor.as_fd(), name) {
        Ok(stat) => Ok(left(name, &stat, Why::Unreadable, false, known)),
        Err(_) => Ok(Visited::Gone),
    };
    let file = match open_file(opened.descriptor.as_fd(), name) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Visited::Gone),
        Err(why) if is_exhausted(why) => {
            return Err(KeepFault::read(ground.project.path_of(&joined(&opened.path, name)), why));
        }
        Err(_) => return unreadable(),
    };
    let Ok(mut stat) = rustix::fs::fstat(&file) else { return unreadable() };
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(left(name, &stat, Why::Special, false, known));
    }
    room.files_read = room.files_read.saturating_add(1);
    if Stamp::of(&stat).size >= ground.limits.linked_bytes_min && is_git_object(&joined(&opened.path, name)) {
        let linked = ground.into.objects.linked();
        if let Some(digest) = crate::linked::link(linked, thread, opened.descriptor.as_fd(), name, &file) {
            // Its second name has changed its times.
            let Ok(stat) = rustix::fs::fstat(&file) else { return unreadable() };
            let size = Stamp::of(&stat).size;
            return stored(name, &file, &stat, Kind::File { size, content: Content::Linked(digest) }, known);
        }
    }
    if data_bytes(&stat) > ground.limits.file_bytes_max {
        return Ok(left(name, &stat, Why::TooLarge, false, known));
    }
    let mut last = None;
    for _ in 0..READS_MAX {
        last = match content::store(&file, Stamp::of(&stat).size, ground.into, &mut room.bytes)? {
            Read::Stored(size, content) => Some((size, content)),
            Read::Failed => None,
        };
        let Ok(after) = rustix::fs::fstat(&file) else { break };
        let is_steady = Stamp::of(&stat) == Stamp::of(&after);
        stat = after;
        if is_steady || last.is_none() {
            break;
        }
    }
    let Some((size, content)) = last else { return unreadable() };
    stored(name, &file, &stat, Kind::File { size, content }, known)
}

/// A file that is in the store now, as it was when the last of it was read.
fn stored(name: &[u8], file: &File, stat: &Stat, kind: Kind, known: Option<&SeenName>) -> Result<Visited, KeepFault> {
    let Ok(attributes) = xattrs::read(file) else { return Ok(Visited::Gone) };
    Ok(seen(name, Stamp::of(stat), node_of(stat, kind, attributes), known))
}

/// How many bytes of a file are no hole.
fn data_bytes(stat: &Stat) -> u64 {
    let blocks = u64::try_from(i128::from(stat.st_blocks)).unwrap_or(u64::MAX);
    Stamp::of(stat).size.min(blocks.saturating_mul(512))
}

pub(crate) fn node_of(stat: &Stat, kind: Kind, xattrs: Xattrs) -> Node {
    let mode = match kind {
        // A link has no permissions of its own.
        Kind::Link { .. } => 0,
        _ => Stamp::of(stat).mode & 0o7777,
    };
    let has_names = matches!(kind, Kind::File { .. }) && stat.st_nlink > 1;
    let inode = has_names.then(|| Stamp::of(stat).inode);
    Node { kind, mode, owner: (stat.st_uid, stat.st_gid), xattrs, inode }
}
