//! The real directory: every call names a descriptor and one file name.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::root::Origin;
use crate::directory::{Directory, Entry};

/// How much of a file is compared at a time.
const COMPARE_BYTES: usize = 32 * 1024;

/// A directory opened beneath a root.
#[derive(Debug)]
pub struct HeldDirectory {
    descriptor: OwnedFd,
    /// How it was found; a directory that a test opened by path was not found at all.
    origin: Option<Origin>,
}

impl HeldDirectory {
    pub(super) fn new(descriptor: OwnedFd, origin: Option<Origin>) -> HeldDirectory {
        HeldDirectory { descriptor, origin }
    }

    /// Opens a directory by path; for tests, which make their own.
    #[doc(hidden)]
    pub fn open(path: &std::path::Path) -> io::Result<HeldDirectory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(HeldDirectory::new(rustix::fs::open(path, flags, Mode::empty())?, None))
    }

    /// Whether a path leads to this very directory.
    #[cfg(feature = "ledger")]
    pub(crate) fn is_at(&self, path: &std::path::Path) -> bool {
        let (Ok(held), Ok(found)) = (rustix::fs::fstat(&self.descriptor), rustix::fs::stat(path)) else { return false };
        (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)
    }

    /// Another handle to the same directory, with a lock of its own.
    fn reopen(&self) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat(
            &self.descriptor,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?)
    }
}

impl Directory for HeldDirectory {
    type File = File;
    type Lock = HeldLock;

    fn lock(&self, wait: Duration) -> io::Result<Option<HeldLock>> {
        /// Waiting is rare and short: a commit takes one disk sync.
        const PAUSE: Duration = Duration::from_micros(500);
        let descriptor = self.reopen()?;
        let start = Instant::now();
        loop {
            match rustix::fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(HeldLock { descriptor })),
                Err(Errno::WOULDBLOCK) if start.elapsed() >= wait => return Ok(None),
                Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(PAUSE),
                Err(reason) => return Err(reason.into()),
            }
        }
    }

    fn is_in_place(&self) -> io::Result<bool> {
        self.origin.as_ref().map_or(Ok(true), |origin| origin.leads_to(self.descriptor.as_fd()))
    }

    fn compare(&self, name: &str, expected: &[u8]) -> io::Result<Entry> {
        // Without NONBLOCK, opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let descriptor = match rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(descriptor) => descriptor,
            Err(Errno::NOENT) => return Ok(Entry::Absent),
            Err(Errno::LOOP) => return Ok(Entry::Link),
            Err(reason) => {
                return match rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => Ok(Entry::Link),
                    Ok(found) if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile => Ok(Entry::Other),
                    Ok(_) | Err(_) => Err(reason.into()),
                };
            }
        };
        let found = rustix::fs::fstat(&descriptor)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(Entry::Other);
        }
        let as_expected = u64::try_from(found.st_size).ok() == u64::try_from(expected.len()).ok()
            && holds(&mut File::from(descriptor), expected)?;
        Ok(Entry::File { as_expected, mode: Mode::from_raw_mode(found.st_mode).bits() })
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn set_mode(&self, file: &mut File, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(file.as_fd(), Mode::from_bits_truncate(mode))?)
    }

    fn sync_file(&self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.descriptor)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(reason) => Err(reason.into()),
        }
    }
}

/// Whether a file holds these bytes and no more.
fn holds(file: &mut File, expected: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; COMPARE_BYTES.min(expected.len().saturating_add(1))];
    let mut left = expected;
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok(left.is_empty()),
            Ok(count) => count,
            Err(reason) if reason.kind() == io::ErrorKind::Interrupted => continue,
            Err(reason) => return Err(reason),
        };
        match (buffer.get(..count), left.split_at_checked(count)) {
            (Some(read), Some((wanted, rest))) if read == wanted => left = rest,
            _ => return Ok(false),
        }
    }
}

/// Holds a directory's lock through a handle of its own; released when dropped, or when the process ends.
#[derive(Debug)]
pub struct HeldLock {
    descriptor: OwnedFd,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing would do, unless a child process forked meanwhile shares the handle.
        let _ = rustix::fs::flock(&self.descriptor, FlockOperation::Unlock);
    }
}
