//! Putting one file in its place, and taking one out, without losing what nobody kept.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use crate::index::Stamp;
use crate::node::Node;
use crate::plan::Clash;
use crate::project::{mode_of, open_file, stat_name};
use crate::xattrs;

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    Done,
    Clashes(Clash),
}

const CLASH: Placed = Placed::Clashes(Clash::ChangedSince);

/// What a walk saw under a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) stamp: Stamp,
    /// The undo touches another name of the same file as well, which changes the change time of this one.
    pub(crate) is_shared: bool,
}

/// Puts a staged file or link in its place. `expected` is what a walk saw there, nothing if nothing was. If `in_place`,
/// what is there is the file that was there before the call, and its other names go back with it.
pub(crate) fn put(
    parent: &OwnedFd,
    name: &[u8],
    staging: &OwnedFd,
    staged: &[u8],
    expected: Option<&Expected>,
    in_place: bool,
) -> Result<Placed, Errno> {
    let Some(expected) = expected else {
        return match rustix::fs::renameat_with(staging, staged, parent, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Placed::Done),
            Err(Errno::EXIST) => Ok(CLASH),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                if stat_name(parent.as_fd(), name).is_ok() {
                    return Ok(CLASH);
                }
                rustix::fs::renameat(staging, staged, parent, name).map(|()| Placed::Done)
            }
            Err(why) => Err(why),
        };
    };
    let now = stat_name(parent.as_fd(), name)?;
    let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if in_place && now.st_nlink > 1 && is_file(&now) && is_file(&stat_name(staging.as_fd(), staged)?) {
        return write_in_place(parent, name, staging, staged, &expected.stamp);
    }
    if !is_untouched(&now, expected) {
        return Ok(CLASH);
    }
    exchange(parent, name, staging, staged, &expected.stamp)
}

/// Swaps what is staged with what is in its place, and back if that is not what was seen there. So a path is never
/// without the one or the other.
fn exchange(
    parent: &OwnedFd,
    name: &[u8],
    staging: &OwnedFd,
    staged: &[u8],
    expected: &Stamp,
) -> Result<Placed, Errno> {
    let swap = || rustix::fs::renameat_with(staging, staged, parent, name, RenameFlags::EXCHANGE);
    match swap() {
        Ok(()) => {}
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            return match remove_expected(parent, name, expected)? {
                Placed::Done => rustix::fs::renameat(staging, staged, parent, name).map(|()| Placed::Done),
                clash => Ok(clash),
            };
        }
        Err(why) => return Err(why),
    }
    let removed = remove_expected(staging, staged, expected)?;
    if removed != Placed::Done {
        swap()?;
    }
    Ok(removed)
}

/// Removes what a walk saw under another name: a file or link that is still the same, or a directory that is empty.
fn remove_expected(directory: &OwnedFd, name: &[u8], expected: &Stamp) -> Result<Placed, Errno> {
    let stat = stat_name(directory.as_fd(), name)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        if !is_expected(&stat, expected) {
            return Ok(CLASH);
        }
        return rustix::fs::unlinkat(directory, name, AtFlags::empty()).map(|()| Placed::Done);
    }
    let found = Stamp::of(&stat);
    if (found.device, found.inode) != (expected.device, expected.inode) {
        return Ok(CLASH);
    }
    match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(Placed::Done),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Placed::Clashes(Clash::HoldsOthers)),
        Err(why) => Err(why),
    }
}

/// Takes a file or link out of its place; back if it is not what was seen there.
pub(crate) fn take_out(
    parent: &OwnedFd,
    name: &[u8],
    staging: &OwnedFd,
    out: &[u8],
    expected: Option<&Expected>,
) -> Result<Placed, Errno> {
    let Some(expected) = expected else { return Ok(CLASH) };
    if !is_untouched(&stat_name(parent.as_fd(), name)?, expected) {
        return Ok(CLASH);
    }
    rustix::fs::renameat(parent, name, staging, out)?;
    let moved = stat_name(staging.as_fd(), out)?;
    if is_expected(&moved, &expected.stamp) {
        // What stays goes with the directory.
        let _ = rustix::fs::unlinkat(staging, out, AtFlags::empty());
        return Ok(Placed::Done);
    }
    match rustix::fs::renameat_with(staging, out, parent, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rustix::fs::renameat(staging, out, parent, name)?,
        other => other?,
    }
    Ok(CLASH)
}

/// Whether nobody touched a file or link since a walk saw it, its attributes included. A directory changes with what lies in
/// it, and a file with other names when the undo takes one of those away.
fn is_untouched(now: &Stat, expected: &Expected) -> bool {
    let is_directory = FileType::from_raw_mode(now.st_mode) == FileType::Directory;
    let is_same = Stamp::of(now) == expected.stamp;
    is_directory || is_same || (expected.is_shared && is_expected(now, &expected.stamp))
}

/// Whether something is what a walk saw. A rename changes the change time, so that is not asked.
fn is_expected(now: &Stat, expected: &Stamp) -> bool {
    Stamp { ctime_ns: expected.ctime_ns, ..Stamp::of(now) } == *expected
}

/// Writes the bytes of a staged file into one that has other names as well, which are to change with it.
fn write_in_place(
    parent: &OwnedFd,
    name: &[u8],
    staging: &OwnedFd,
    staged: &[u8],
    expected: &Stamp,
) -> Result<Placed, Errno> {
    let as_errno = |why: std::io::Error| Errno::from_io_error(&why).unwrap_or(Errno::IO);
    let mut wanted = open_file(staging.as_fd(), staged)?;
    if !is_expected(&stat_name(parent.as_fd(), name)?, expected) {
        // Another of its names may have been restored a moment ago.
        let mut found = open_file(parent.as_fd(), name)?;
        let is_same = is_same_content(&mut wanted, &mut found).map_err(as_errno)?;
        return Ok(if is_same { Placed::Done } else { CLASH });
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut target = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Ok(target) => File::from(target),
        // A file that may not be written is replaced after all.
        Err(Errno::ACCESS | Errno::PERM | Errno::TXTBSY) => return exchange(parent, name, staging, staged, expected),
        Err(why) => return Err(why),
    };
    let opened = Stamp::of(&rustix::fs::fstat(&target)?);
    if (opened.device, opened.inode) != (expected.device, expected.inode) {
        return Ok(CLASH);
    }
    let len = std::io::copy(&mut wanted, &mut target).map_err(as_errno)?;
    target.set_len(len).map_err(as_errno)?;
    let like = rustix::fs::fstat(&wanted)?;
    xattrs::write(&target, &xattrs::read(&wanted)?)?;
    rustix::fs::fchmod(&target, Mode::from_raw_mode(like.st_mode))?;
    Ok(Placed::Done)
}

fn is_same_content(left: &mut File, right: &mut File) -> std::io::Result<bool> {
    let (mut one, mut other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    if left.metadata()?.len() != right.metadata()?.len() {
        return Ok(false);
    }
    loop {
        let len = left.read(&mut one)?;
        let (Some(left_part), Some(right_part)) = (one.get(..len), other.get_mut(..len)) else { return Ok(false) };
        if left_part.is_empty() {
            left.rewind()?;
            return Ok(true);
        }
        right.read_exact(right_part)?;
        if left_part != &*right_part {
            return Ok(false);
        }
    }
}

/// Gives an open file or directory the owner, attributes and permissions of a node. Only a superuser can give a file to
/// another user; without that right the file stays the caller's own.
pub(crate) fn set(file: impl AsFd, node: &Node) -> Result<(), Errno> {
    xattrs::write(&file, &node.xattrs)?;
    set_owner_and_mode(&file, node)
}

/// The same for a file that was just made, and has no attributes.
pub(crate) fn set_new(file: impl AsFd, node: &Node) -> Result<(), Errno> {
    if !node.xattrs.is_empty() {
        xattrs::write(&file, &node.xattrs)?;
    }
    set_owner_and_mode(&file, node)
}

fn set_owner_and_mode(file: impl AsFd, node: &Node) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(&file)?;
    let (user, group) = node.owner;
    let is_owner = (stat.st_uid, stat.st_gid) == node.owner;
    if !is_owner {
        match rustix::fs::fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))) {
            Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
            Err(why) => return Err(why),
        }
    }
    // A change of the owner can take away permissions.
    if is_owner && Stamp::of(&stat).mode & 0o7777 == node.mode {
        return Ok(());
    }
    rustix::fs::fchmod(&file, mode_of(node.mode))
}
