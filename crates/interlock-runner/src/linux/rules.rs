//! Landlock: the second layer beneath the mounts. It holds where a mount falls off, and where a mount holds nothing:
//! pipes and devices are written through read-only mounts.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::filter::Kind;
use super::steps;
use super::sys;
use crate::ContainFault;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// From the first to the last change of a directory: removing, and making each kind of file.
const CHANGE_DIR: u64 = 0x1FF0;
const REFER: u64 = 1 << 13;

/// To read and execute.
pub(crate) const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// To write as well.
pub(crate) const WRITE: u64 = READ | WRITE_FILE | TRUNCATE | CHANGE_DIR | REFER;
/// What a device may be asked besides.
pub(crate) const DEVICE: u64 = READ | WRITE_FILE | TRUNCATE | IOCTL_DEV;
/// What a rule about a file may say.
const OF_FILES: u64 = EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV;

const SCOPED_SOCKETS: u64 = 1;
const SCOPED_SIGNALS: u64 = 1 << 1;

/// How many rules there may be: each costs time, and a directory with more entries than this is no home.
const RULES_MAX: usize = 20_000;

/// The rules of one command.
pub(crate) struct Rules {
    ruleset: OwnedFd,
    handled: u64,
    count: usize,
}

impl Rules {
    /// Rules that allow nothing yet. `scoped` keeps signals and sockets without a path inside as well.
    pub(crate) fn new(abi: u32, scoped: bool) -> Result<Rules, ContainFault> {
        if abi == 0 {
            return Err(ContainFault::of("Landlock")(io::Error::from_raw_os_error(libc::ENOSYS)));
        }
        let mut handled = READ | WRITE_FILE | CHANGE_DIR;
        // What older kernels do not know they do not govern either: the mounts alone hold it there.
        for (since, access) in [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)] {
            handled |= if abi >= since { access } else { 0 };
        }
        let scopes = if abi >= 6 && scoped { SCOPED_SOCKETS | SCOPED_SIGNALS } else { 0 };
        let ruleset = sys::landlock_ruleset(handled, scopes).map_err(ContainFault::of("Landlock"))?;
        Ok(Rules { ruleset, handled, count: 0 })
    }

    /// The filter that goes with them, given what the kernel can do.
    pub(crate) fn filter_kind(abi: u32, scoped: bool) -> Kind {
        if abi >= 6 && scoped { Kind::Scoped } else { Kind::NoGroup }
    }

    /// What of an access the kernel governs here.
    pub(crate) fn governed(&self, access: u64) -> u64 {
        access & self.handled
    }

    /// The same descriptor once more.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.ruleset.try_clone()
    }

    /// The descriptor that the command is held to.
    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.ruleset
    }

    /// Allows access to a place that is open.
    pub(crate) fn allow_open(&mut self, place: BorrowedFd<'_>, access: u64) -> io::Result<()> {
        self.count = self.count.saturating_add(1);
        if self.count > RULES_MAX {
            return Err(io::Error::other("too many entries lie beside what is hidden"));
        }
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
        // A link is no place, and what it leads to has a rule of its own or none.
        if kind.is_symlink() {
            return Ok(());
        }
        let access = if kind.is_dir() { access } else { access & OF_FILES };
        match sys::landlock_allow(self.ruleset.as_fd(), place, self.governed(access)) {
            // Pipes and the like have no place in the tree, and are not governed.
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            other => other,
        }
    }

    /// The streams were handed in by the caller; they can be opened again by their names in `/dev`.
    pub(crate) fn allow_streams(&mut self) -> Result<(), ContainFault> {
        let part = || ContainFault::of("the rule for a stream");
        for stream in [io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd()] {
            let (Ok(stat), Ok(flags)) = (rustix::fs::fstat(stream), rustix::fs::fcntl_getfl(stream)) else { continue };
            let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
            if kind.is_dir() {
                // It would lead into the tree as it is outside.
                return Err(part()(io::Error::from_raw_os_error(libc::EISDIR)));
            }
            if kind.is_socket() && !is_harmless(stream) {
                let source = io::Error::other("it is a socket that can be connected elsewhere");
                return Err(part()(source));
            }
            self.allow_open(stream, of_stream(flags)).map_err(part())?;
        }
        Ok(())
    }

    /// Allows access to a place; nothing if it is not there or is a link.
    pub(crate) fn allow(&mut self, path: &Path, access: u64) -> Result<(), ContainFault> {
        let Ok(text) = CString::new(path.as_os_str().as_bytes()) else { return Ok(()) };
        let Ok(place) = steps::place(&text) else { return Ok(()) };
        self.allow_open(place.as_fd(), access).map_err(ContainFault::of(format!("the rule for `{}`", path.display())))
    }

    /// Allows to read all of the file system but what is in `hidden`. Beside each hidden place its siblings are named one
    /// by one: what is made there later is unreadable, and so is the hidden place if the mount over it falls off. What is
    /// in `known` has rules of its own.
    pub(crate) fn allow_all_but(&mut self, hidden: &[PathBuf], known: &[PathBuf]) -> Result<(), ContainFault> {
        let root = Path::new("/");
        if hidden.is_empty() {
            return self.allow(root, READ);
        }
        self.allow_around(root, &Around::of(hidden, known))
    }

    /// The same beneath one directory.
    pub(crate) fn allow_beneath(&mut self, place: &Path, hidden: &[PathBuf]) -> Result<(), ContainFault> {
        if hidden.iter().any(|one| place.starts_with(one)) {
            return Ok(());
        }
        match hidden.iter().any(|one| one.starts_with(place)) {
            true => self.allow_around(place, &Around::of(hidden, &[])),
            false => self.allow(place, READ),
        }
    }

    fn allow_around(&mut self, directory: &Path, around: &Around<'_>) -> Result<(), ContainFault> {
        self.allow(directory, READ_DIR)?;
        // What cannot be listed from here is not readable inside either.
        let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
        for entry in entries.flatten() {
            let path = entry.path();
            if around.itself.contains(path.as_path()) {
                continue;
            }
            if around.above.contains(path.as_path()) {
                self.allow_around(&path, around)?;
            } else if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.allow(&path, READ)?;
            }
        }
        Ok(())
    }
}

/// What gets no rule for reading.
struct Around<'a> {
    /// What is hidden, or has rules of its own.
    itself: HashSet<&'a Path>,
    /// Directories that something hidden lies beneath.
    above: HashSet<&'a Path>,
}

impl<'a> Around<'a> {
    fn of(hidden: &'a [PathBuf], known: &'a [PathBuf]) -> Around<'a> {
        Around {
            itself: hidden.iter().chain(known).map(PathBuf::as_path).collect(),
            above: hidden.iter().flat_map(|path| path.ancestors().skip(1)).collect(),
        }
    }
}

/// What processes may write about themselves; what is the machine's is read-only by a mount.
pub(crate) const PROC: u64 = READ | WRITE_FILE | TRUNCATE;

/// Whether a socket leads to whom it is connected with, and nowhere else. It was made outside, where other networks are.
fn is_harmless(socket: BorrowedFd<'_>) -> bool {
    use rustix::net::{AddressFamily, SocketType, sockopt};
    let is_local = sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX);
    let kind = sockopt::socket_type(socket);
    let is_stream = matches!(kind, Ok(SocketType::STREAM | SocketType::SEQPACKET));
    is_local && is_stream && rustix::net::getpeername(socket).is_ok()
}

/// What a stream may be opened again for: what it is open for.
fn of_stream(flags: rustix::fs::OFlags) -> u64 {
    let (read, write) = (READ_FILE | IOCTL_DEV, WRITE_FILE | TRUNCATE | IOCTL_DEV);
    match flags & rustix::fs::OFlags::RWMODE {
        rustix::fs::OFlags::RDONLY => read,
        rustix::fs::OFlags::WRONLY => write,
        _ => read | write,
    }
}
