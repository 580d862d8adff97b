//! The project's directory, held by descriptor: whatever is opened lies beneath it, and no link is followed.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::fault::KeepFault;

/// How a directory is opened.
pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// A project, opened once.
#[derive(Debug)]
pub(crate) struct Project {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Project {
    pub(crate) fn open(path: &Path) -> Result<Project, KeepFault> {
        let descriptor = rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(|why| KeepFault::read(path, why))?;
        Ok(Project { path: path.to_owned(), descriptor })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something beneath, as messages name it.
    pub(crate) fn path_of(&self, relative: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(relative))
    }

    /// Fails if the project's path leads to another directory by now.
    pub(crate) fn check_in_place(&self) -> Result<(), KeepFault> {
        let held = rustix::fs::fstat(&self.descriptor).map_err(|why| KeepFault::read(&self.path, why))?;
        match rustix::fs::lstat(&self.path) {
            Ok(found) if is_same(&found, &held) => Ok(()),
            _ => Err(KeepFault::Replaced { project: self.path.clone() }),
        }
    }

    /// Opens a directory beneath; the empty path is the project itself.
    pub(crate) fn open_directory(&self, relative: &[u8]) -> Result<OwnedFd, Errno> {
        let spelled: &[u8] = if relative.is_empty() { b"." } else { relative };
        resolve(self.descriptor.as_fd(), spelled)
    }

    pub(crate) fn stat(&self) -> Result<Stat, KeepFault> {
        rustix::fs::fstat(&self.descriptor).map_err(|why| KeepFault::read(&self.path, why))
    }
}

/// The names in a directory, but for itself and the one above.
#[derive(Debug, Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Names {
    /// Lists a directory that was just opened.
    #[cfg(target_os = "linux")]
    pub(crate) fn list(directory: &OwnedFd) -> Result<Names, Errno> {
        /// No entry is longer than a name of 255 bytes and what goes with it.
        const ROOM_LEN: usize = 1 << 15;
        let (mut names, mut room) = (Names::default(), Vec::with_capacity(ROOM_LEN));
        let mut entries = rustix::fs::RawDir::new(directory, room.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            names.add(entry?.file_name().to_bytes());
        }
        Ok(names)
    }

    /// Lists a directory that was just opened.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn list(directory: &OwnedFd) -> Result<Names, Errno> {
        let mut names = Names::default();
        for entry in rustix::fs::Dir::read_from(directory)? {
            names.add(entry?.file_name().to_bytes());
        }
        Ok(names)
    }

    fn add(&mut self, name: &[u8]) {
        if name != b"." && name != b".." {
            self.bytes.extend_from_slice(name);
            self.ends.push(self.bytes.len());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(at)?)
    }
}

pub(crate) fn is_same(left: &Stat, right: &Stat) -> bool {
    (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino)
}

/// Opens a name of a directory as a file to read, without waiting for anybody at its other end.
pub(crate) fn open_file(directory: BorrowedFd<'_>, name: &[u8]) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::openat(directory, name, flags, Mode::empty()).map(File::from)
}

/// What a name of a directory stands for; links are not followed.
pub(crate) fn stat_name(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(target_os = "linux")]
fn resolve(root: BorrowedFd<'_>, relative: &[u8]) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;

    /// A rename elsewhere makes the kernel give up and ask to be called again.
    const TRIES_MAX: u32 = 64;
    let flags = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    for _ in 0..TRIES_MAX {
        match rustix::fs::openat2(root, relative, DIRECTORY, Mode::empty(), flags) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return resolve_by_name(root, relative),
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn resolve(root: BorrowedFd<'_>, relative: &[u8]) -> Result<OwnedFd, Errno> {
    resolve_by_name(root, relative)
}

/// Opens one name after the other, following no link and entering no other file system.
fn resolve_by_name(root: BorrowedFd<'_>, relative: &[u8]) -> Result<OwnedFd, Errno> {
    let device = rustix::fs::fstat(root)?.st_dev;
    let mut at = rustix::fs::openat(root, ".", DIRECTORY, Mode::empty())?;
    for name in relative.split(|byte| *byte == b'/').filter(|name| *name != b".") {
        if name == b".." {
            return Err(Errno::XDEV);
        }
        at = rustix::fs::openat(&at, name, DIRECTORY, Mode::empty())?;
        if rustix::fs::fstat(&at)?.st_dev != device {
            return Err(Errno::XDEV);
        }
    }
    Ok(at)
}

/// A caller's path as the store spells it: names joined by `/`, empty for the project itself.
pub(crate) fn spelled(path: &Path) -> Result<Vec<u8>, KeepFault> {
    let mut spelled = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => {
                if !spelled.is_empty() {
                    spelled.push(b'/');
                }
                spelled.extend_from_slice(name.as_bytes());
            }
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                return Err(KeepFault::Outside { path: path.to_owned() });
            }
        }
    }
    Ok(spelled)
}

/// A directory's path and a name in it, joined.
pub(crate) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// The directory and the name of a path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => {
            let (directory, rest) = path.split_at_checked(at).unwrap_or((&[], path));
            (directory, rest.get(1..).unwrap_or_default())
        }
        None => (&[], path),
    }
}

/// Whether a path is another or lies beneath it.
pub(crate) fn is_at_or_beneath(path: &[u8], other: &[u8]) -> bool {
    other.is_empty() || path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Permissions as the system takes them.
pub(crate) fn mode_of(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as rustix::fs::RawMode)
}

/// A stored path, as callers see it.
pub(crate) fn shown(path: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path))
}
