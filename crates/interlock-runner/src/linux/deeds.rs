//! What becomes of a call that would change a file: the kernel decides, and what it will refuse is written down; or, where
//! the kernel's rules cannot tell a place from what may not be written in it, it is done from here.
//!
//! What is done here is done on what was found here, by descriptor: nothing that the command does to its memory or its
//! names in between changes it. Everything that is not done here the kernel holds; nothing is ever refused here but
//! changes that the kernel's rules do not govern.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Access, AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, XattrFlags};
use rustix::process::Pid;

use super::calls::{self, Change, Deed, Named};
use super::notify::{Refusals, note};
use super::sys::OnExec;

/// How many links are followed, as the kernel has it.
const LINKS_MAX: usize = 40;
/// How often a file is looked for that others make and remove meanwhile.
const TRIES: usize = 8;
/// Where nothing is written down: what is refused there is no file.
const NO_FILES: [&str; 2] = ["/dev", "/proc"];

/// Where a command may write, as it sees it.
#[derive(Debug, Default)]
pub(crate) struct Field {
    /// Places that may be written.
    pub(crate) write: Vec<PathBuf>,
    /// What may not, although it lies there.
    pub(crate) guarded: Vec<PathBuf>,
    /// Set where the kernel's rules do without mounts.
    pub(crate) by_hand: Option<ByHand>,
}

/// What the runner does itself.
#[derive(Debug, Default)]
pub(crate) struct ByHand {
    /// Places of `write` with something guarded in them: the kernel lets the command write nothing there.
    pub(crate) written: Vec<PathBuf>,
    /// Those with something hidden in them: files that were made since are not readable there either.
    pub(crate) read: Vec<PathBuf>,
    /// What is hidden.
    pub(crate) hidden: Vec<PathBuf>,
}

/// Who sees to it that a place is written or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// The kernel lets the command write there.
    Kernel,
    /// It may be written, by the runner.
    Hand,
    /// It may not be written.
    Refused,
}

impl Field {
    fn standing(&self, path: &Path) -> Standing {
        let within = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        if !within(&self.write) || within(&self.guarded) {
            return Standing::Refused;
        }
        match &self.by_hand {
            Some(hand) if within(&hand.written) => Standing::Hand,
            _ => Standing::Kernel,
        }
    }

    /// The same for a name that would lead elsewhere afterwards: what is guarded must not lie beneath it.
    fn standing_of_name(&self, path: &Path) -> Standing {
        match self.guarded.iter().any(|guarded| guarded.starts_with(path)) {
            true => Standing::Refused,
            false => self.standing(path),
        }
    }

    /// Whether a path says by itself that it may be written, if no link is on the way.
    fn is_plainly_written(&self, path: &Path) -> bool {
        !path.components().any(|part| part == Component::ParentDir) && self.standing_of_name(path) != Standing::Refused
    }

    fn is_read_by_hand(&self, path: &Path) -> bool {
        let within = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        self.by_hand.as_ref().is_some_and(|hand| within(&hand.read) && !within(&hand.hidden))
    }
}

/// What is answered to a call.
pub(crate) enum Answered {
    /// The kernel carries it out or refuses it.
    Continue,
    /// It was done.
    Done,
    /// It failed with this number.
    Fails(i32),
    /// It gets this descriptor.
    Opened(OwnedFd, OnExec),
    /// A pipe is to be opened, which may wait for its other side.
    Waits { at: OwnedFd, flags: OFlags },
}

/// A place that was found.
struct Place {
    /// The directory it lies in and its name there; none if it was named by descriptor.
    parent: Option<(OwnedFd, OsString)>,
    /// Where it really lies, as the command sees it.
    path: PathBuf,
    /// What is there, if anything is.
    itself: Option<OwnedFd>,
    /// Whether a slash followed its name.
    is_slashed: bool,
}

/// Answers for files.
pub(crate) struct Deeds {
    pub(crate) field: Field,
    pub(crate) refusals: Refusals,
    /// The root that every process of the command has: none can change it.
    root: OnceLock<OwnedFd>,
}

impl Deeds {
    pub(crate) fn new(field: Field, refusals: Refusals) -> Deeds {
        Deeds { field, refusals, root: OnceLock::new() }
    }

    fn root(&self, asking: &Asking<'_>) -> io::Result<BorrowedFd<'_>> {
        if let Some(root) = self.root.get() {
            return Ok(root.as_fd());
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let path = if self.field.by_hand.is_some() { "/".to_owned() } else { asking.of("root") };
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        asking.check()?;
        Ok(self.root.get_or_init(|| root).as_fd())
    }

    /// What becomes of a call of `task`. `still_waits` says whether what was learnt about that task was about that task.
    /// What cannot be read or found the kernel's rules refuse, if they govern it; if not, it fails here.
    pub(crate) fn consider(&self, task: Pid, call: &libc::seccomp_data, still_waits: impl Fn() -> bool) -> Answered {
        let number = libc::c_long::from(call.nr);
        let asking = Asking { task, still_waits: &still_waits };
        let considered = match calls::read(task, number, call.args) {
            Ok(Some(deed)) if self.is_plain(&asking, &deed) => Ok(Answered::Continue),
            Ok(Some(deed)) => self.answer(&asking, deed),
            Ok(None) => Ok(Answered::Continue),
            Err(error) => Err(error),
        };
        match considered {
            Ok(answered) => answered,
            Err(error) if self.field.by_hand.is_some() && calls::is_change(number) => {
                Answered::Fails(error.raw_os_error().unwrap_or(libc::EPERM))
            }
            Err(_) => Answered::Continue,
        }
    }

    /// Whether a deed says by itself that the kernel lets it pass.
    fn is_plain(&self, asking: &Asking<'_>, deed: &Deed) -> bool {
        let has_link = |path: &Path| {
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let found = self.root(asking).map(|root| rustix::fs::openat2(root, path, flags, Mode::empty(), resolve));
            !matches!(found, Ok(Ok(_) | Err(rustix::io::Errno::NOENT)))
        };
        let is_written = |path: PathBuf| self.field.is_plainly_written(&path) && !has_link(&path);
        let is_plain = |named: &Named| !named.path.is_empty() && whole_path(asking.task, named).is_ok_and(is_written);
        self.field.by_hand.is_none() && named_in(deed).into_iter().all(is_plain)
    }

    fn answer(&self, asking: &Asking<'_>, deed: Deed) -> io::Result<Answered> {
        let done = |result: rustix::io::Result<()>| match result {
            Ok(()) => Answered::Done,
            Err(error) => Answered::Fails(error.raw_os_error()),
        };
        Ok(match deed {
            Deed::Open { at, flags, mode } => return self.open(asking, &at, flags, mode),
            Deed::Change { at, what } => return self.change(asking, &at, &what),
            Deed::MakeDirectory { at, mode } => {
                let place = self.find(asking, &at)?;
                let standing = self.field.standing(&place.path);
                let Some((parent, name)) = self.by_hand(&[(&place, standing, Needs::Nothing)]) else {
                    return Ok(Answered::Continue);
                };
                done(rustix::fs::mkdirat(parent, name, asking.masked(mode)?))
            }
            Deed::MakeNode { at, mode } => {
                let place = self.find(asking, &at)?;
                let kind = FileType::from_raw_mode(mode);
                let is_plain = matches!(kind, FileType::Fifo | FileType::Socket | FileType::RegularFile);
                let Some((parent, name)) = self.by_hand_to(&place, Needs::Nothing).filter(|_| is_plain) else {
                    return Ok(Answered::Continue);
                };
                done(rustix::fs::mknodat(parent, name, kind, asking.masked(Mode::from_raw_mode(mode & 0o7777))?, 0))
            }
            Deed::MakeLink { at, text } => {
                let place = self.find(asking, &at)?;
                let Some((parent, name)) = self.by_hand_to(&place, Needs::Nothing) else {
                    return Ok(Answered::Continue);
                };
                done(rustix::fs::symlinkat(text.as_c_str(), parent, name))
            }
            Deed::Remove { at, is_directory } => {
                let place = self.find(asking, &at)?;
                let Some((parent, name)) = self.by_hand_to(&place, Needs::Something) else {
                    return Ok(Answered::Continue);
                };
                let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                done(rustix::fs::unlinkat(parent, name, flags))
            }
            Deed::Rename { from, to, flags } => {
                let (from, to) = (self.find(asking, &from)?, self.find(asking, &to)?);
                let standing = |place: &Place| self.field.standing_of_name(&place.path);
                let both = [(&from, standing(&from), Needs::Something), (&to, standing(&to), Needs::Either)];
                let Some((parent, name)) = self.by_hand(&both) else {
                    return Ok(Answered::Continue);
                };
                let Some((to_parent, to_name)) = &to.parent else { return Ok(Answered::Continue) };
                done(rustix::fs::renameat_with(parent, name, to_parent, to_name, flags))
            }
            Deed::Link { from, to } => {
                let (from, to) = (self.find(asking, &from)?, self.find(asking, &to)?);
                // What may not be written must not get a name by which it may.
                let both = [
                    (&to, self.field.standing_of_name(&to.path), Needs::Nothing),
                    (&from, self.field.standing(&from.path), Needs::Looking),
                ];
                let Some((parent, name)) = self.by_hand(&both) else {
                    return Ok(Answered::Continue);
                };
                let Some(itself) = &from.itself else { return Ok(Answered::Continue) };
                done(rustix::fs::linkat(CWD, again(itself), parent, name, AtFlags::SYMLINK_FOLLOW))
            }
            Deed::Truncate { at, length } => {
                let place = self.find(asking, &at)?;
                let is_by_hand = self.field.standing(&place.path) == Standing::Hand;
                match place.itself.as_ref().filter(|itself| is_by_hand && kind_of(itself).is_ok_and(FileType::is_file))
                {
                    Some(itself) => {
                        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
                        let opened = rustix::fs::open(again(itself), flags, Mode::empty())?;
                        done(rustix::fs::ftruncate(opened, length))
                    }
                    None => {
                        self.by_hand(&[(&place, self.field.standing(&place.path), Needs::Something)]);
                        Answered::Continue
                    }
                }
            }
        })
    }

    /// The directory and the name of the first place, if this is done here; else what will be refused is written down.
    fn by_hand<'a>(&self, places: &[(&'a Place, Standing, Needs)]) -> Option<(&'a OwnedFd, &'a OsString)> {
        for (place, _, needs) in places.iter().filter(|(_, standing, _)| *standing == Standing::Refused) {
            let is_its_doing = match needs {
                Needs::Something => place.itself.is_some(),
                Needs::Nothing => place.itself.is_none(),
                Needs::Either => true,
                Needs::Looking => false,
            };
            if is_its_doing {
                self.write_down(place, place.parent.is_some());
            }
        }
        let worst = places.iter().map(|(_, standing, _)| *standing).max();
        let (first, ..) = places.first()?;
        let (parent, name) = first.parent.as_ref()?;
        (worst == Some(Standing::Hand)).then_some((parent, name))
    }

    fn by_hand_to<'a>(&self, place: &'a Place, needs: Needs) -> Option<(&'a OwnedFd, &'a OsString)> {
        self.by_hand(&[(place, self.field.standing_of_name(&place.path), needs)])
    }

    fn open(&self, asking: &Asking<'_>, at: &Named, flags: OFlags, mode: Mode) -> io::Result<Answered> {
        let writes = OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC;
        for _ in 0..TRIES {
            let place = self.find(asking, at)?;
            let may = match flags.intersects(writes) {
                _ if flags.contains(OFlags::PATH) => false,
                false => self.field.is_read_by_hand(&place.path),
                true if place.itself.is_none() => {
                    flags.contains(OFlags::CREATE)
                        && !place.is_slashed
                        && self.by_hand_to(&place, Needs::Nothing).is_some()
                }
                true => {
                    let standing = self.field.standing(&place.path);
                    self.by_hand(&[(&place, standing, Needs::Something)]);
                    standing == Standing::Hand
                }
            };
            if !may {
                return Ok(Answered::Continue);
            }
            match self.open_found(asking, place, flags, mode) {
                // Somebody made it since it was looked for.
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) && !flags.contains(OFlags::EXCL) => {}
                Err(error) => return Ok(Answered::Fails(error.raw_os_error().unwrap_or(libc::EACCES))),
                Ok(answered) => return Ok(answered),
            }
        }
        Ok(Answered::Fails(libc::EAGAIN))
    }

    fn open_found(&self, asking: &Asking<'_>, place: Place, flags: OFlags, mode: Mode) -> io::Result<Answered> {
        let on_exec = if flags.contains(OFlags::CLOEXEC) { OnExec::Closes } else { OnExec::Stays };
        let opened = |descriptor| Ok(Answered::Opened(descriptor, on_exec));
        let Some(itself) = place.itself else {
            let Some((parent, name)) = place.parent else { return Ok(Answered::Continue) };
            let flags = flags | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            return opened(rustix::fs::openat(parent, name, flags, asking.masked(mode)?)?);
        };
        if flags.contains(OFlags::CREATE | OFlags::EXCL) {
            return Ok(Answered::Fails(libc::EEXIST));
        }
        let kind = kind_of(&itself)?;
        if kind.is_dir() && flags.contains(OFlags::TMPFILE) {
            return opened(rustix::fs::openat(&itself, ".", flags | OFlags::CLOEXEC, asking.masked(mode)?)?);
        }
        if kind.is_fifo() {
            return Ok(Answered::Waits { at: itself, flags });
        }
        if !kind.is_file() && !kind.is_dir() {
            return Ok(Answered::Continue);
        }
        opened(open_again(itself.as_fd(), flags)?)
    }

    /// Modes, owners, times and attributes: the kernel's rules about places do not govern them.
    fn change(&self, asking: &Asking<'_>, at: &Named, what: &Change) -> io::Result<Answered> {
        let place = self.find(asking, at)?;
        let is_refused = self.field.standing(&place.path) == Standing::Refused;
        if is_refused && place.itself.is_some() {
            self.write_down(&place, false);
        }
        if self.field.by_hand.is_none() {
            return Ok(Answered::Continue);
        }
        let Some(itself) = place.itself.as_ref().filter(|_| !is_refused) else {
            return Ok(Answered::Fails(if is_refused { libc::EPERM } else { libc::ENOENT }));
        };
        apply(itself, what)?;
        Ok(Answered::Done)
    }

    /// Writes down what will be refused, unless it would fail without any bound as well.
    fn write_down(&self, place: &Place, is_name: bool) {
        if !place.path.is_absolute() || NO_FILES.iter().any(|no_file| place.path.starts_with(no_file)) {
            return;
        }
        let checked = if is_name { place.path.parent() } else { Some(place.path.as_path()) };
        let may = |path: &Path| rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
        if checked.is_some_and(may) {
            note(&self.refusals, "write", &place.path);
        }
    }

    /// Finds what a call names. Links are followed from here, so that it is known where they lead.
    fn find(&self, asking: &Asking<'_>, named: &Named) -> io::Result<Place> {
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

/// What must be at a place, or a deed fails without any bound as well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Something,
    Nothing,
    Either,
    /// It is not what the deed would change.
    Looking,
}

/// Who asks.
struct Asking<'a> {
    task: Pid,
    still_waits: &'a dyn Fn() -> bool,
}

impl Asking<'_> {
    fn of(&self, what: &str) -> String {
        format!("/proc/{}/{what}", self.task.as_raw_nonzero())
    }

    /// The number of the task may have gone to another one while it was looked at.
    fn check(&self) -> io::Result<()> {
        if (self.still_waits)() { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EINTR)) }
    }

    /// The mode of a new file, less what the task's mask takes away.
    fn masked(&self, mode: Mode) -> io::Result<Mode> {
        let status = fs::read_to_string(self.of("status"))?;
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        self.check()?;
        let mask = mask.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        Ok(mode & !Mode::from_raw_mode(mask))
    }
}

fn named_in(deed: &Deed) -> Vec<&Named> {
    match deed {
        Deed::Open { at, .. }
        | Deed::MakeDirectory { at, .. }
        | Deed::MakeNode { at, .. }
        | Deed::MakeLink { at, .. }
        | Deed::Remove { at, .. }
        | Deed::Truncate { at, .. }
        | Deed::Change { at, .. } => vec![at],
        Deed::Link { from, to } | Deed::Rename { from, to, .. } => vec![from, to],
    }
}

/// The path from the root on, as it is written.
fn whole_path(task: Pid, named: &Named) -> io::Result<PathBuf> {
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
fn again(place: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", place.as_raw_fd())
}

/// Opens what was found, and nothing else.
pub(crate) fn open_again(place: BorrowedFd<'_>, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags.difference(OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW) | OFlags::CLOEXEC;
    Ok(rustix::fs::open(format!("/proc/self/fd/{}", place.as_raw_fd()), flags, Mode::empty())?)
}

fn kind_of(place: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode))
}

fn apply(itself: &OwnedFd, what: &Change) -> io::Result<()> {
    let is_link = kind_of(itself)?.is_symlink();
    match what {
        Change::Mode(_) if is_link => return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        Change::Mode(mode) => rustix::fs::chmodat(CWD, again(itself), *mode, AtFlags::empty())?,
        Change::Owner { user, group } => {
            let (user, group) = ((*user != u32::MAX).then_some(*user), (*group != u32::MAX).then_some(*group));
            let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
            rustix::fs::chownat(itself, "", user, group, AtFlags::EMPTY_PATH)?;
        }
        Change::Times(times) => rustix::fs::utimensat(itself, "", times, AtFlags::EMPTY_PATH)?,
        Change::SetAttribute { name, value, flags } => {
            rustix::fs::setxattr(again(itself), name.as_c_str(), value, XattrFlags::from_bits_retain(*flags))?;
        }
        Change::RemoveAttribute { name } => rustix::fs::removexattr(again(itself), name.as_c_str())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_guarded_is_neither_written_nor_moved_away() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let by_hand = ByHand { written: paths(&["/p"]), ..ByHand::default() };
        let field = Field {
            write: paths(&["/p", "/t"]),
            guarded: paths(&["/p/.git/hooks", "/p/.envrc"]),
            by_hand: Some(by_hand),
        };
        for (path, standing, of_name) in [
            ("/p/a", Standing::Hand, Standing::Hand),
            ("/p/.git", Standing::Hand, Standing::Refused),
            ("/p/.git/hooks", Standing::Refused, Standing::Refused),
            ("/p/.git/hooks/a", Standing::Refused, Standing::Refused),
            ("/p/.git/hooksome", Standing::Hand, Standing::Hand),
            ("/p/.envrc", Standing::Refused, Standing::Refused),
            ("/p", Standing::Hand, Standing::Refused),
            ("/pp", Standing::Refused, Standing::Refused),
            ("/t/a", Standing::Kernel, Standing::Kernel),
            ("/", Standing::Refused, Standing::Refused),
        ] {
            let path = Path::new(path);
            assert_eq!((field.standing(path), field.standing_of_name(path)), (standing, of_name), "{path:?}");
        }
        assert!(field.is_plainly_written(Path::new("/p/a")));
        assert!(!field.is_plainly_written(Path::new("/p/../etc")) && !field.is_plainly_written(Path::new("/p/.git")));
    }

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
