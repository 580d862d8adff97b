//! Commit roots, held by descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use interlock_core::state::CommitTarget;
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::directory::HeldDirectory;
use crate::directory::Directory;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// One commit root. Opened once; from then on its path is not looked at again.
#[derive(Debug)]
pub struct HeldRoot {
    path: String,
    opened: OnceLock<Opened>,
}

#[derive(Debug)]
struct Opened {
    descriptor: Arc<OwnedFd>,
    /// The path without links, which a caller may use as well.
    resolved: Option<String>,
}

/// Why a target's directory could not be opened.
#[derive(Debug)]
pub(crate) enum OpenFault {
    /// The root does not exist.
    RootMissing,
    /// The root's path leads to another directory than the one that is held.
    RootReplaced,
    /// The target's directory does not exist.
    ParentMissing,
    /// A link on the way leads out of the root.
    LeadsOut,
    /// Anything else the system says.
    Other(io::Error),
}

impl HeldRoot {
    /// Opens a root, or leaves it for later if it cannot be opened yet.
    pub fn new(path: &str) -> HeldRoot {
        let root = HeldRoot { path: path.to_owned(), opened: OnceLock::new() };
        let _ = root.opened();
        root
    }

    /// Opens the directory of a target that is spelled beneath this root; `None` if it is not.
    pub(crate) fn open_directory_of(&self, target: &CommitTarget) -> Result<Option<HeldDirectory>, OpenFault> {
        let as_given = target.directory_beneath(&self.path);
        if as_given.is_none() && self.opened.get().is_none() {
            return Ok(None);
        }
        let opened = self.opened()?;
        let resolved = || opened.resolved.as_deref().and_then(|path| target.directory_beneath(path));
        match as_given.or_else(resolved) {
            None => Ok(None),
            Some(directory) => {
                let descriptor = open_beneath(opened.descriptor.as_fd(), &directory)?;
                let origin = Origin { root_path: self.path.clone(), root: Arc::clone(&opened.descriptor), directory };
                let held = HeldDirectory::new(descriptor, Some(origin));
                if held.is_in_place().map_err(OpenFault::Other)? {
                    Ok(Some(held))
                } else {
                    Err(OpenFault::RootReplaced)
                }
            }
        }
    }

    fn opened(&self) -> Result<&Opened, OpenFault> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let descriptor =
            rustix::fs::open(Path::new(&self.path), DIRECTORY, Mode::empty()).map_err(|reason| match reason {
                Errno::NOENT | Errno::NOTDIR => OpenFault::RootMissing,
                other => OpenFault::Other(other.into()),
            })?;
        let resolved = std::fs::canonicalize(&self.path).ok().and_then(|path| path.to_str().map(str::to_owned));
        Ok(self.opened.get_or_init(|| Opened { descriptor: Arc::new(descriptor), resolved }))
    }
}

/// How a directory was found: a path beneath a root.
#[derive(Debug)]
pub(super) struct Origin {
    root_path: String,
    root: Arc<OwnedFd>,
    directory: String,
}

impl Origin {
    /// Whether going the same way again leads to the same directory.
    pub(super) fn leads_to(&self, held: BorrowedFd<'_>) -> io::Result<bool> {
        let root_now = match rustix::fs::stat(Path::new(&self.root_path)) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(false),
            Err(reason) => return Err(reason.into()),
        };
        let directory_now = match resolve(self.root.as_fd(), &self.directory) {
            Ok(descriptor) => rustix::fs::fstat(descriptor)?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP) => return Ok(false),
            Err(reason) => return Err(reason.into()),
        };
        Ok(is_same(&root_now, &rustix::fs::fstat(&self.root)?) && is_same(&directory_now, &rustix::fs::fstat(held)?))
    }
}

fn is_same(left: &Stat, right: &Stat) -> bool {
    (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino)
}

/// Opens a directory beneath a root, never leaving it.
fn open_beneath(root: BorrowedFd<'_>, directory: &str) -> Result<OwnedFd, OpenFault> {
    resolve(root, directory).map_err(|reason| match reason {
        Errno::NOENT | Errno::NOTDIR => OpenFault::ParentMissing,
        Errno::XDEV | Errno::LOOP => OpenFault::LeadsOut,
        other => OpenFault::Other(other.into()),
    })
}

#[cfg(target_os = "linux")]
fn resolve(root: BorrowedFd<'_>, directory: &str) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;

    /// A rename elsewhere makes the kernel give up and ask to be called again.
    const TRIES_MAX: u32 = 64;
    let flags = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES_MAX {
        match rustix::fs::openat2(root, directory, DIRECTORY, Mode::empty(), flags) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return resolve_by_name(root, directory),
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn resolve(root: BorrowedFd<'_>, directory: &str) -> Result<OwnedFd, Errno> {
    resolve_by_name(root, directory)
}

/// Opens one name after the other, following no link.
fn resolve_by_name(root: BorrowedFd<'_>, directory: &str) -> Result<OwnedFd, Errno> {
    let mut at = rustix::fs::openat(root, ".", DIRECTORY, Mode::empty())?;
    for name in directory.split('/').filter(|name| *name != ".") {
        at = rustix::fs::openat(&at, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(at)
}
