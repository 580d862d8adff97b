//! Commit roots, held by descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use interlock_core::state::CommitTarget;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::directory::HeldDirectory;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// One commit root. Opened once; from then on its path is not looked at again.
#[derive(Debug)]
pub struct HeldRoot {
    path: String,
    opened: OnceLock<Opened>,
}

#[derive(Debug)]
struct Opened {
    descriptor: OwnedFd,
    /// The path without links, which a caller may use as well.
    resolved: Option<String>,
}

/// Why a target's directory could not be opened.
#[derive(Debug)]
pub(crate) enum OpenFault {
    /// The root does not exist.
    RootMissing,
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
            Some(directory) => Ok(Some(HeldDirectory::new(open_beneath(opened.descriptor.as_fd(), &directory)?))),
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
        Ok(self.opened.get_or_init(|| Opened { descriptor, resolved }))
    }
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
