//! Places that nobody may make: where nothing is yet, an empty directory stands as long as a command runs.
//!
//! An empty directory is invisible to version control and useless to who reads a file there. Several commands share one:
//! each holds a lock on it, and the last one takes it away. What a killed runner left is known by its mode and goes with
//! the next.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::plan::is_there;
use crate::ContainFault;

/// How a placeholder is known: a directory that nobody writes, with a bit that means nothing there.
const STANDS: u32 = 0o1500;
/// A directory on the way to one.
const LEADS: u32 = 0o1755;

/// Empty directories that stand for places that nobody may make.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    /// Outermost first.
    held: Vec<(PathBuf, OwnedFd)>,
}

impl Placeholders {
    /// Puts a directory wherever one of `locked` lies beneath one of `write` and is not there.
    pub(crate) fn make(locked: &[PathBuf], write: &[PathBuf]) -> Result<Placeholders, ContainFault> {
        let mut placeholders = Placeholders::default();
        for path in locked {
            let Some(root) = write.iter().find(|root| path.starts_with(root)) else { continue };
            let mut on_the_way: Vec<_> = path.ancestors().take_while(|above| above != root).collect();
            on_the_way.reverse();
            for one in on_the_way {
                let mode = if one == path { STANDS } else { LEADS };
                let held = placeholders.hold(one, mode);
                if !held.map_err(ContainFault::of(format!("the lock on `{}`", path.display())))? {
                    break;
                }
            }
            // A link in its place, or on the way to it, cannot be locked.
            is_there(path)?;
        }
        Ok(placeholders)
    }

    /// Makes one directory unless something else is there. False if it can be neither found nor made.
    fn hold(&mut self, path: &Path, mode: u32) -> io::Result<bool> {
        const TRIES: usize = 16;
        for _ in 0..TRIES {
            match fs::symlink_metadata(path) {
                Ok(found) if !(found.is_dir() && matches!(found.mode() & 0o7777, STANDS | LEADS)) => return Ok(true),
                Ok(_) => {}
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Err(_) => match fs::DirBuilder::new().mode(0o700).create(path) {
                    Ok(()) => {
                        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    // On a mount that is read-only from the beginning nobody can make it.
                    Err(error) if error.raw_os_error() == Some(libc::EROFS) => return Ok(false),
                    // Whoever made the directory unwritable can make it writable again.
                    Err(error) => return Err(error),
                },
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(opened) = rustix::fs::open(path, flags, Mode::empty()) else { continue };
            rustix::fs::flock(&opened, FlockOperation::LockShared)?;
            // Whoever held it before may have taken it away while we waited.
            if rustix::fs::fstat(&opened)?.st_nlink > 0 {
                if !self.held.iter().any(|(known, _)| known == path) {
                    self.held.push((path.to_owned(), opened));
                }
                return Ok(true);
            }
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (path, held) in self.held.drain(..).rev() {
            // Another command still needs it: that one takes it away. A directory that is not empty stays.
            if rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = fs::remove_dir(&path);
            }
        }
    }
}
