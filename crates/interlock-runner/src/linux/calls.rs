//! What a system call that waits asks for, read once from the registers and the memory of its process.
//!
//! Knows how calls spell their wishes, old and new ones alike, and nothing of places: `deeds.rs` finds those. Whatever the
//! process does to its memory afterwards changes nothing of what was read.

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;

use rustix::fs::{Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::process::Pid;

use super::sys;

/// The longest path that the kernel takes, with its end.
const PATH_MAX: usize = 4096;
/// The longest value of an attribute that the kernel takes.
const ATTRIBUTE_MAX: usize = 65_536;
/// A page: what follows it may not be there.
const PAGE: u64 = 4096;

/// A place as a call names it.
#[derive(Debug)]
pub(crate) struct Named {
    /// From where on; nothing is the working directory.
    pub(crate) base: Option<RawFd>,
    /// The path; empty if the descriptor itself is meant.
    pub(crate) path: Vec<u8>,
    /// Whether a link at its end is followed.
    pub(crate) follows: bool,
}

/// What a call asks for.
#[derive(Debug)]
pub(crate) enum Deed {
    Open { at: Named, flags: OFlags, mode: Mode },
    MakeDirectory { at: Named, mode: Mode },
    MakeNode { at: Named, mode: u32 },
    MakeLink { at: Named, text: CString },
    Link { from: Named, to: Named },
    Rename { from: Named, to: Named, flags: RenameFlags },
    Remove { at: Named, is_directory: bool },
    Truncate { at: Named, length: u64 },
    Change { at: Named, what: Change },
}

/// A change that the kernel's rules about places do not govern.
#[derive(Debug)]
pub(crate) enum Change {
    Mode(Mode),
    Owner { user: u32, group: u32 },
    Times(Timestamps),
    SetAttribute { name: CString, value: Vec<u8>, flags: u32 },
    RemoveAttribute { name: CString },
}

/// Newer than the library's list of calls.
const FCHMODAT2: libc::c_long = 452;
/// Missing in that list for machines that have both.
const RENAMEAT: libc::c_long = if cfg!(target_arch = "x86_64") { 264 } else { 38 };

/// Calls by which names are made and removed, and files are cut.
#[rustfmt::skip]
pub(crate) const NAMES: &[libc::c_long] = &[
    libc::SYS_openat2, libc::SYS_mkdirat, libc::SYS_mknodat, libc::SYS_symlinkat, libc::SYS_linkat, RENAMEAT,
    libc::SYS_renameat2, libc::SYS_unlinkat, libc::SYS_truncate,
];
/// Their old spellings, and that of a call which always writes.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub(crate) const OLD_NAMES: &[libc::c_long] = &[
    libc::SYS_creat, libc::SYS_mkdir, libc::SYS_mknod, libc::SYS_symlink, libc::SYS_link, libc::SYS_rename,
    libc::SYS_unlink, libc::SYS_rmdir,
];
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const OLD_NAMES: &[libc::c_long] = &[];

/// Calls that change what a file is besides its contents.
#[rustfmt::skip]
pub(crate) const CHANGES: &[libc::c_long] = &[
    libc::SYS_fchmod, libc::SYS_fchmodat, FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, libc::SYS_removexattr, libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];
/// Their old spellings.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub(crate) const OLD_CHANGES: &[libc::c_long] = &[
    libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const OLD_CHANGES: &[libc::c_long] = &[];

/// Whether a call is one of those.
pub(crate) fn is_change(number: libc::c_long) -> bool {
    CHANGES.contains(&number) || OLD_CHANGES.contains(&number)
}

/// Reads what a call asks for; nothing if it is none of these.
pub(crate) fn read(task: Pid, number: libc::c_long, arguments: [u64; 6]) -> io::Result<Option<Deed>> {
    let (number, arguments) = modern(number, arguments);
    let [a, b, c, d, e, _] = arguments;
    let memory = Memory { task };
    let by_flags = |flags: u64| !has(flags, libc::AT_SYMLINK_NOFOLLOW);
    let deed = match number {
        libc::SYS_openat => {
            let flags = open_flags(c);
            Deed::Open { at: memory.named(a, b, follows(flags))?, flags, mode: mode(d) }
        }
        libc::SYS_openat2 => {
            let [flags, made, how] = memory.numbers(c)?;
            // Whoever restricts the way to a file knows why; nobody else walks it for them.
            if how != 0 {
                return Ok(None);
            }
            let flags = open_flags(flags);
            Deed::Open { at: memory.named(a, b, follows(flags))?, flags, mode: mode(made) }
        }
        libc::SYS_mkdirat => Deed::MakeDirectory { at: memory.named(a, b, false)?, mode: mode(c) },
        libc::SYS_mknodat => Deed::MakeNode { at: memory.named(a, b, false)?, mode: lower(c) },
        libc::SYS_symlinkat => Deed::MakeLink { text: memory.text(a)?, at: memory.named(b, c, false)? },
        libc::SYS_linkat => {
            Deed::Link { from: memory.named(a, b, has(e, libc::AT_SYMLINK_FOLLOW))?, to: memory.named(c, d, false)? }
        }
        RENAMEAT | libc::SYS_renameat2 => Deed::Rename {
            from: memory.named(a, b, false)?,
            to: memory.named(c, d, false)?,
            flags: RenameFlags::from_bits_retain(if number == RENAMEAT { 0 } else { lower(e) }),
        },
        libc::SYS_unlinkat => Deed::Remove { at: memory.named(a, b, false)?, is_directory: has(c, libc::AT_REMOVEDIR) },
        libc::SYS_truncate => Deed::Truncate { at: memory.named(CWD, a, true)?, length: b },
        _ => {
            let Some((at, what)) = change(&memory, number, arguments, by_flags)? else { return Ok(None) };
            Deed::Change { at, what }
        }
    };
    Ok(Some(deed))
}

/// Changes of what a file is besides its contents.
fn change(
    memory: &Memory,
    number: libc::c_long,
    arguments: [u64; 6],
    by_flags: impl Fn(u64) -> bool,
) -> io::Result<Option<(Named, Change)>> {
    let [a, b, c, d, e, _] = arguments;
    let owner = |user: u64, group: u64| Change::Owner { user: lower(user), group: lower(group) };
    let set = |name: u64, value: u64, length: u64, flags: u64| -> io::Result<Change> {
        let value = memory.bytes(value, length, ATTRIBUTE_MAX)?;
        Ok(Change::SetAttribute { name: memory.text(name)?, value, flags: lower(flags) })
    };
    let unset = |name: u64| -> io::Result<Change> { Ok(Change::RemoveAttribute { name: memory.text(name)? }) };
    Ok(Some(match number {
        libc::SYS_fchmod => (descriptor(a), Change::Mode(mode(b))),
        libc::SYS_fchmodat => (memory.named(a, b, true)?, Change::Mode(mode(c))),
        FCHMODAT2 => (memory.named(a, b, by_flags(d))?, Change::Mode(mode(c))),
        libc::SYS_fchown => (descriptor(a), owner(b, c)),
        libc::SYS_fchownat => (memory.named(a, b, by_flags(e))?, owner(c, d)),
        // Without a path it is about the descriptor.
        libc::SYS_utimensat if b == 0 => (descriptor(a), Change::Times(memory.times(c, 1)?)),
        libc::SYS_utimensat => (memory.named(a, b, by_flags(d))?, Change::Times(memory.times(c, 1)?)),
        libc::SYS_setxattr => (memory.named(CWD, a, true)?, set(b, c, d, e)?),
        libc::SYS_lsetxattr => (memory.named(CWD, a, false)?, set(b, c, d, e)?),
        libc::SYS_fsetxattr => (descriptor(a), set(b, c, d, e)?),
        libc::SYS_removexattr => (memory.named(CWD, a, true)?, unset(b)?),
        libc::SYS_lremovexattr => (memory.named(CWD, a, false)?, unset(b)?),
        libc::SYS_fremovexattr => (descriptor(a), unset(b)?),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat if b == 0 => (descriptor(a), Change::Times(memory.times(c, 1_000)?)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => (memory.named(a, b, true)?, Change::Times(memory.times(c, 1_000)?)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => (memory.named(CWD, a, true)?, Change::Times(memory.seconds(b)?)),
        _ => return Ok(None),
    }))
}

/// The working directory, as calls name it.
const CWD: u64 = libc::AT_FDCWD as u64;

/// The newer spelling of an old call.
#[cfg(target_arch = "x86_64")]
fn modern(number: libc::c_long, [a, b, c, d, e, f]: [u64; 6]) -> (libc::c_long, [u64; 6]) {
    let creates = u64::from((libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC).unsigned_abs());
    let (directory, no_follow) = (libc::AT_REMOVEDIR.unsigned_abs(), libc::AT_SYMLINK_NOFOLLOW.unsigned_abs());
    match number {
        libc::SYS_open => (libc::SYS_openat, [CWD, a, b, c, 0, 0]),
        libc::SYS_creat => (libc::SYS_openat, [CWD, a, creates, b, 0, 0]),
        libc::SYS_mkdir => (libc::SYS_mkdirat, [CWD, a, b, 0, 0, 0]),
        libc::SYS_mknod => (libc::SYS_mknodat, [CWD, a, b, c, 0, 0]),
        libc::SYS_symlink => (libc::SYS_symlinkat, [a, CWD, b, 0, 0, 0]),
        libc::SYS_link => (libc::SYS_linkat, [CWD, a, CWD, b, 0, 0]),
        libc::SYS_rename => (RENAMEAT, [CWD, a, CWD, b, 0, 0]),
        libc::SYS_unlink => (libc::SYS_unlinkat, [CWD, a, 0, 0, 0, 0]),
        libc::SYS_rmdir => (libc::SYS_unlinkat, [CWD, a, u64::from(directory), 0, 0, 0]),
        libc::SYS_chmod => (libc::SYS_fchmodat, [CWD, a, b, 0, 0, 0]),
        libc::SYS_chown => (libc::SYS_fchownat, [CWD, a, b, c, 0, 0]),
        libc::SYS_lchown => (libc::SYS_fchownat, [CWD, a, b, c, u64::from(no_follow), 0]),
        libc::SYS_utimes => (libc::SYS_futimesat, [CWD, a, b, 0, 0, 0]),
        other => (other, [a, b, c, d, e, f]),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn modern(number: libc::c_long, arguments: [u64; 6]) -> (libc::c_long, [u64; 6]) {
    (number, arguments)
}

/// The kernel reads these arguments as 32 bits and ignores the rest.
fn lower(argument: u64) -> u32 {
    u32::try_from(argument & 0xFFFF_FFFF).unwrap_or(0)
}

fn has(argument: u64, flag: libc::c_int) -> bool {
    lower(argument) & flag.unsigned_abs() != 0
}

fn mode(argument: u64) -> Mode {
    Mode::from_raw_mode(lower(argument) & 0o7777)
}

fn open_flags(argument: u64) -> OFlags {
    OFlags::from_bits_retain(lower(argument))
}

fn follows(flags: OFlags) -> bool {
    !flags.contains(OFlags::NOFOLLOW) && !flags.contains(OFlags::CREATE | OFlags::EXCL)
}

fn descriptor(argument: u64) -> Named {
    Named { base: Some(lower(argument).cast_signed()), path: Vec::new(), follows: true }
}

/// The memory of the process that asks.
struct Memory {
    task: Pid,
}

impl Memory {
    fn named(&self, base: u64, path: u64, follows: bool) -> io::Result<Named> {
        let base = lower(base).cast_signed();
        Ok(Named { base: (base != libc::AT_FDCWD).then_some(base), path: self.text(path)?.into_bytes(), follows })
    }

    /// A text up to its NUL. What lies on the next page may not be there.
    fn text(&self, address: u64) -> io::Result<CString> {
        let (mut text, mut at) = (Vec::new(), address);
        while text.len() < PATH_MAX {
            let to_end = PAGE.saturating_sub(at % PAGE);
            let mut part = vec![0; usize::try_from(to_end).unwrap_or(0).min(PATH_MAX)];
            let read = sys::read_memory(self.task, at, &mut part)?;
            let part = part.get(..read).unwrap_or(&[]);
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(part.get(..end).unwrap_or(&[]));
                return CString::new(text).map_err(|_| fault());
            }
            if part.is_empty() {
                return Err(fault());
            }
            text.extend_from_slice(part);
            at = at.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
        }
        Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
    }

    fn bytes(&self, address: u64, length: u64, longest: usize) -> io::Result<Vec<u8>> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > longest {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        let mut bytes = vec![0; length];
        if length > 0 && sys::read_memory(self.task, address, &mut bytes)? != length {
            return Err(fault());
        }
        Ok(bytes)
    }

    fn numbers<const N: usize>(&self, address: u64) -> io::Result<[u64; N]> {
        let length = u64::try_from(N.saturating_mul(8)).unwrap_or(u64::MAX);
        let bytes = self.bytes(address, length, PATH_MAX)?;
        let mut numbers = [0; N];
        for (number, part) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = part.first_chunk().map_or(0, |part| u64::from_ne_bytes(*part));
        }
        Ok(numbers)
    }

    /// Two times, whose smaller part counts units of so many nanoseconds; now, if there are none.
    fn times(&self, address: u64, unit: i64) -> io::Result<Timestamps> {
        if address == 0 {
            return Ok(now());
        }
        let [seconds, part, later_seconds, later_part] = self.numbers(address)?.map(u64::cast_signed);
        let time = |seconds, part: i64| Timespec { tv_sec: seconds, tv_nsec: part.saturating_mul(unit) };
        Ok(Timestamps { last_access: time(seconds, part), last_modification: time(later_seconds, later_part) })
    }

    #[cfg(target_arch = "x86_64")]
    fn seconds(&self, address: u64) -> io::Result<Timestamps> {
        if address == 0 {
            return Ok(now());
        }
        let [access, modification] = self.numbers(address)?.map(u64::cast_signed);
        let time = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
        Ok(Timestamps { last_access: time(access), last_modification: time(modification) })
    }
}

fn now() -> Timestamps {
    let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
    Timestamps { last_access: now, last_modification: now }
}

fn fault() -> io::Error {
    io::Error::from_raw_os_error(libc::EFAULT)
}
