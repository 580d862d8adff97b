//! What a call names, found: through links, from where its process stands, as that process sees the tree. Everything about it
//! is held by descriptor from then on.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::process::Pid;

use super::calls::Named;

/// How many links are followed, as the kernel has it.
const LINKS_MAX: usize = 40;

/// A place that was found.
pub(crate) struct Place {
    /// The directory it lies in and its name there; none if it was named by descriptor.
    pub(crate) parent: Option<(OwnedFd, OsString)>,
    /// Where it really lies, as the command sees it.
    pub(crate) path: PathBuf,
    /// What is there, if anything is.
    pub(crate) itself: Option<OwnedFd>,
    /// Whether a slash followed its name.
    pub(crate) is_slashed: bool,
}

/// Finds places.
pub(crate) struct Finder {
    /// Whether the command sees the tree as it is outside.
    is_outside: bool,
    /// The root that every process of the command has: none can change it.
    root: OnceLock<OwnedFd>,
}

impl Finder {
    pub(crate) fn new(is_outside: bool) -> Finder {
        Finder { is_outside, root: OnceLock::new() }
    }

    fn root(&self, asking: &Asking<'_>) -> io::Result<BorrowedFd<'_>> {
        if let Some(root) = self.root.get() {
            return Ok(root.as_fd());
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let path = if self.is_outside { "/".to_owned() } else { asking.of("root") };
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        asking.check()?;
        Ok(self.root.get_or_init(|| root).as_fd())
    }

    /// Whether a link is on the way to a place, or what else keeps it from being where its path says.
    pub(crate) fn has_link(&self, asking: &Asking<'_>, path: &Path) -> bool {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = self.root(asking).map(|root| rustix::fs::openat2(root, path, flags, Mode::empty(), resolve));
        !matches!(found, Ok(Ok(_) | Err(rustix::io::Errno::NOENT)))
    }

    /// Finds what a call names. Links are followed from here, so that it is known where they lead.
    pub(crate) fn find(&self, asking: &Asking<'_>, named: &Named) -> io::Result<Place> {
        let path_flags = OFlags::PATH | OFlags::CLOEXEC;
        if let Some(number) = descriptor_of(named)? {
            let itself = rustix::fs::open(asking.of(&format!("fd/{number}")), path_flags, Mode::empty())?;
            asking.check()?;
            return Ok(Place { parent: None, path: path_of(itself.as_fd())?, itself: Some(itself), is_slashed: false });
        }
        let root = self.root(asking)?;
        let mut path = whole_path(asking.task, named)?;
        asking.check()?;
        let is_slashed = named.path.ends_with(b"/");
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..LINKS_MAX {
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
                // It ends in `..`, or is the root.
                let itself = rustix::fs::openat2(root, &path, path_flags, Mode::empty(), resolve)?;
                return Ok(Place { parent: None, path: path_of(itself.as_fd())?, itself: Some(itself), is_slashed });
            };
            let parent = rustix::fs::openat2(root, above, path_flags | OFlags::DIRECTORY, Mode::empty(), resolve)?;
            let really = path_of(parent.as_fd())?;
            let itself = match rustix::fs::openat(&parent, name, path_flags | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(itself) => Some(itself),
                Err(rustix::io::Errno::NOENT) => None,
                Err(error) => return Err(error.into()),
            };
            let link = itself.as_ref().filter(|_| named.follows || is_slashed);
            let link = link.filter(|itself| kind_of(itself).is_ok_and(FileType::is_symlink));
            match link {
                // What processes link to is not where the text says.
                Some(_) if really.starts_with("/proc") => return Err(io::Error::from_raw_os_error(libc::ELOOP)),
                Some(link) => {
                    let text = rustix::fs::readlinkat(link, "", Vec::new())?;
                    path = really.join(OsString::from_vec(text.into_bytes()));
                }
                None => {
                    let (path, name) = (really.join(name), name.to_owned());
                    return Ok(Place { parent: Some((parent, name)), path, itself, is_slashed });
                }
            }
        }
        Err(io::Error::from_raw_os_error(libc::ELOOP))
    }
}

/// Who asks.
pub(crate) struct Asking<'a> {
    pub(crate) task: Pid,
    pub(crate) still_waits: &'a dyn Fn() -> bool,
}

impl Asking<'_> {
    pub(crate) fn of(&self, what: &str) -> String {
        format!("/proc/{}/{what}", self.task.as_raw_nonzero())
    }

    /// The number of the task may have gone to another one while it was looked at.
    fn check(&self) -> io::Result<()> {
        if (self.still_waits)() { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EINTR)) }
    }

    /// The mode of a new file, less what the task's mask takes away.
    pub(crate) fn masked(&self, mode: Mode) -> io::Result<Mode> {
        let status = fs::read_to_string(self.of("status"))?;
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        self.check()?;
        let mask = mask.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        Ok(mode & !Mode::from_raw_mode(mask))
    }
}
/// The path from the root on, as it is written.
pub(crate) fn whole_path(task: Pid, named: &Named) -> io::Result<PathBuf> {
    let path = PathBuf::from(OsString::from_vec(named.path.clone()));
    if path.is_absolute() {
        return Ok(path);
    }
    let task = task.as_raw_nonzero();
    let base = match named.base {
        Some(number) => fs::read_link(format!("/proc/{task}/fd/{number}"))?,
        None => fs::read_link(format!("/proc/{task}/cwd"))?,
    };
    match base.is_absolute() {
        true => Ok(base.join(path)),
        false => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
    }
}

/// The descriptor that is meant, where one is: by its number, or by a name that every process has for its own.
fn descriptor_of(named: &Named) -> io::Result<Option<RawFd>> {
    if named.path.is_empty() {
        return named.base.map(Some).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT));
    }
    let Ok(text) = std::str::from_utf8(&named.path) else { return Ok(None) };
    let streams = ["/dev/stdin", "/dev/stdout", "/dev/stderr"];
    let stream = (0..).zip(streams).find_map(|(number, name)| (name == text).then_some(number));
    let own = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"];
    let own = own.iter().find_map(|directory| text.strip_prefix(directory)?.parse().ok());
    Ok(stream.or(own).filter(|_| named.follows))
}

fn path_of(place: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

/// The name by which a place that is open can be opened again.
pub(crate) fn again(place: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", place.as_raw_fd())
}

/// Opens what was found, and nothing else.
pub(crate) fn open_again(place: BorrowedFd<'_>, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags.difference(OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW) | OFlags::CLOEXEC;
    Ok(rustix::fs::open(format!("/proc/self/fd/{}", place.as_raw_fd()), flags, Mode::empty())?)
}

pub(crate) fn kind_of(place: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_every_process_has_for_its_own_are_descriptors() {
        let named = |path: &str, follows| Named { base: None, path: path.as_bytes().to_vec(), follows };
        for (path, expected) in
            [("/dev/stdout", Some(1)), ("/proc/self/fd/7", Some(7)), ("/dev/fd/x", None), ("/dev/fd/3/x", None)]
        {
            assert_eq!(descriptor_of(&named(path, true)).expect("an answer"), expected, "{path}");
            assert_eq!(descriptor_of(&named(path, false)).expect("an answer"), None, "{path}");
        }
        assert!(descriptor_of(&named("", true)).is_err());
        let own = Named { base: Some(5), ..named("", true) };
        assert_eq!(descriptor_of(&own).expect("an answer"), Some(5));
    }
}
