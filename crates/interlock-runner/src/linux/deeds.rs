//! What becomes of a call that would change a file: the kernel decides, and what it will refuse is written down; or, where
//! the kernel's rules cannot tell a place from what may not be written in it, it is done from here.
//!
//! What is done here is done on what was found here, by descriptor: nothing that the command does to its memory or its
//! names in between changes it. Everything that is not done here the kernel holds; nothing is ever refused here but
//! changes that the kernel's rules do not govern.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::process::Pid;

use super::calls::{self, Change, Deed, Named};
use super::field::{Field, Standing};
use super::found::{Asking, Finder, Place, again, kind_of, open_again, whole_path};
use super::notify::{Refusals, note};
use super::sys::OnExec;

/// How often a file is looked for that others make and remove meanwhile.
const TRIES: usize = 8;
/// Where nothing is written down: what is refused there is no file.
const NO_FILES: [&str; 2] = ["/dev", "/proc"];
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
/// Answers for files.
pub(crate) struct Deeds {
    pub(crate) field: Field,
    pub(crate) refusals: Refusals,
    finder: Finder,
}

impl Deeds {
    pub(crate) fn new(field: Field, refusals: Refusals) -> Deeds {
        let finder = Finder::new(field.by_hand.is_some());
        Deeds { field, refusals, finder }
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
        let is_written = |path: PathBuf| self.field.is_plainly_written(&path) && !self.finder.has_link(asking, &path);
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
                let place = self.finder.find(asking, &at)?;
                let standing = self.field.standing(&place.path);
                let Some((parent, name)) = self.by_hand(&[(&place, standing, Needs::Nothing)]) else {
                    return Ok(Answered::Continue);
                };
                done(rustix::fs::mkdirat(parent, name, asking.masked(mode)?))
            }
            Deed::MakeNode { at, mode } => {
                let place = self.finder.find(asking, &at)?;
                let kind = FileType::from_raw_mode(mode);
                let is_plain = matches!(kind, FileType::Fifo | FileType::Socket | FileType::RegularFile);
                let Some((parent, name)) = self.by_hand_to(&place, Needs::Nothing).filter(|_| is_plain) else {
                    return Ok(Answered::Continue);
                };
                done(rustix::fs::mknodat(parent, name, kind, asking.masked(Mode::from_raw_mode(mode & 0o7777))?, 0))
            }
            Deed::MakeLink { at, text } => {
                let place = self.finder.find(asking, &at)?;
                let Some((parent, name)) = self.by_hand_to(&place, Needs::Nothing) else {
                    return Ok(Answered::Continue);
                };
                done(rustix::fs::symlinkat(text.as_c_str(), parent, name))
            }
            Deed::Remove { at, is_directory } => {
                let place = self.finder.find(asking, &at)?;
                let Some((parent, name)) = self.by_hand_to(&place, Needs::Something) else {
                    return Ok(Answered::Continue);
                };
                let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                done(rustix::fs::unlinkat(parent, name, flags))
            }
            Deed::Rename { from, to, flags } => {
                let (from, to) = (self.finder.find(asking, &from)?, self.finder.find(asking, &to)?);
                let standing = |place: &Place| self.field.standing_of_name(&place.path);
                let both = [(&from, standing(&from), Needs::Something), (&to, standing(&to), Needs::Either)];
                let Some((parent, name)) = self.by_hand(&both) else {
                    return Ok(Answered::Continue);
                };
                let Some((to_parent, to_name)) = &to.parent else { return Ok(Answered::Continue) };
                done(rustix::fs::renameat_with(parent, name, to_parent, to_name, flags))
            }
            Deed::Link { from, to } => {
                let (from, to) = (self.finder.find(asking, &from)?, self.finder.find(asking, &to)?);
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
                let place = self.finder.find(asking, &at)?;
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
            let place = self.finder.find(asking, at)?;
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
        let place = self.finder.find(asking, at)?;
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
