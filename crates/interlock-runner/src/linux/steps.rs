//! What the first process of a new namespace does before the command starts: a list of steps, prepared before.
//!
//! A step knows nothing of bounds. Carrying one out neither allocates nor takes a lock; see `sys::fork`.

use std::ffi::{CStr, CString};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};
use rustix::net::{AddressFamily, SocketType};

use super::sys;

/// A mount that is not attached yet, by its place in the list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) usize);

/// Attributes of mounts.
pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(crate) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(crate) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
pub(crate) const NO_EXEC: u64 = libc::MOUNT_ATTR_NOEXEC;

/// One step.
#[derive(Debug)]
pub(crate) enum Step {
    /// Writes a small text into a file of `/proc`.
    Write { path: CString, text: Vec<u8> },
    /// Brings up the loopback.
    Loopback,
    /// Listens at a port of the loopback and hands the socket to the supervisor.
    Listen { port: u16 },
    /// Takes what lies at a path, with all mounts beneath it, as a mount of its own with these attributes.
    Clone { to: Slot, path: CString, set: u64 },
    /// Makes a new file system.
    Fresh { to: Slot, kind: &'static CStr, options: Vec<(CString, CString)>, set: u64 },
    /// A file system of layers; if there can be none, what lies at another path.
    Layers { to: Slot, options: Vec<(CString, CString)>, instead: CString },
    /// Makes every mount private, read-only, and deaf to set-uid programs.
    SealAll,
    /// Makes what is mounted at a path read-only.
    Seal { path: CString },
    /// Attaches a mount at a path.
    Attach { from: Slot, path: CString },
    /// Makes a directory, unless it is there.
    Directory { path: CString, mode: u32 },
    /// Makes an empty file, unless it is there.
    File { path: CString, mode: u32 },
    /// Makes a symbolic link.
    Link { path: CString, target: CString },
    /// Allows access to what lies at a path now.
    Allow { path: CString, access: u64 },
}

/// What steps work on.
pub(crate) struct Ground<'a> {
    pub(crate) slots: &'a mut [Option<OwnedFd>],
    pub(crate) ruleset: BorrowedFd<'a>,
    pub(crate) channel: BorrowedFd<'a>,
}

/// What the process tells its supervisor, one byte for each kind.
pub(crate) mod told {
    /// With the socket of the proxy.
    pub(crate) const LISTENS: u8 = b'L';
    /// With the descriptor of calls that wait, from the process that becomes the command.
    pub(crate) const STARTS: u8 = b'S';
    /// A cache has no layers and begins empty.
    pub(crate) const NO_LAYERS: u8 = b'O';
    /// From the supervisor: all rules are made.
    pub(crate) const RULED: u8 = b'R';
    /// The command stopped, by the signal that follows.
    pub(crate) const STOPPED: u8 = b'T';
    /// The command ended, and what it left is being ended.
    pub(crate) const ENDING: u8 = b'D';
    /// The command ended, with the status that follows.
    pub(crate) const ENDED: u8 = b'E';
}

impl Step {
    /// Carries the step out.
    pub(crate) fn carry_out(&self, ground: &mut Ground<'_>) -> io::Result<()> {
        match self {
            Step::Write { path, text } => write_text(path, text),
            Step::Loopback => {
                match rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None) {
                    Ok(socket) => sys::loopback_up(socket.as_fd()),
                    // A filter that is around us refuses such sockets: nobody inside could use it.
                    Err(rustix::io::Errno::PERM) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
            Step::Listen { port } => listen(*port, ground.channel),
            Step::Clone { to, path, set } => {
                let tree = clone_tree(path)?;
                // New mounts elsewhere must not show up in it, and nothing in it may lend a user's rights.
                sys::mount_setattr(tree.as_fd(), true, set | NO_SUID, true)?;
                put(ground, *to, tree)
            }
            Step::Fresh { to, kind, options, set } => {
                let mount = fresh(kind, options, *set)?;
                put(ground, *to, mount)
            }
            Step::Layers { to, options, instead } => {
                let mount = match fresh(c"overlay", options, NO_SUID | NO_DEVICES) {
                    Ok(mount) => mount,
                    Err(_) => {
                        tell(ground.channel, told::NO_LAYERS, 0)?;
                        let tree = clone_tree(instead)?;
                        sys::mount_setattr(tree.as_fd(), true, NO_SUID | NO_DEVICES, true)?;
                        tree
                    }
                };
                put(ground, *to, mount)
            }
            Step::SealAll => sys::mount_setattr(place(c"/")?.as_fd(), true, READ_ONLY | NO_SUID, true),
            Step::Seal { path } => sys::mount_setattr(place(path)?.as_fd(), false, READ_ONLY | NO_SUID, false),
            Step::Attach { from, path } => {
                let mount = take(ground, *from)?;
                let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
                Ok(rustix::mount::move_mount(mount.as_fd(), c"", place(path)?.as_fd(), c"", flags)?)
            }
            Step::Directory { path, mode } => {
                made(rustix::fs::mkdirat(CWD, path.as_c_str(), Mode::from_raw_mode(*mode)))
            }
            Step::File { path, mode } => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                made(rustix::fs::openat(CWD, path.as_c_str(), flags, Mode::from_raw_mode(*mode)).map(drop))
            }
            Step::Link { path, target } => made(rustix::fs::symlinkat(target.as_c_str(), CWD, path.as_c_str())),
            Step::Allow { path, access } => sys::landlock_allow(ground.ruleset, place(path)?.as_fd(), *access),
        }
    }

    /// What a person is told was being set up when the step failed.
    pub(crate) fn describe(&self) -> String {
        let shown = |path: &CString| path.to_string_lossy().into_owned();
        match self {
            Step::Write { .. } => "the user namespace".to_owned(),
            Step::Loopback => "the loopback".to_owned(),
            Step::Listen { .. } => "the socket of the proxy".to_owned(),
            Step::Clone { path, .. } => format!("a mount of `{}`", shown(path)),
            Step::Fresh { kind, .. } => format!("a file system `{}`", kind.to_string_lossy()),
            Step::Layers { instead, .. } => format!("the cache in `{}`", shown(instead)),
            Step::SealAll => "read-only mounts".to_owned(),
            Step::Seal { path } | Step::Attach { path, .. } => format!("the mount at `{}`", shown(path)),
            Step::Directory { path, .. } | Step::File { path, .. } | Step::Link { path, .. } => {
                format!("`{}`", shown(path))
            }
            Step::Allow { path, .. } => format!("the rule for `{}`", shown(path)),
        }
    }
}

/// Tells the supervisor something.
pub(crate) fn tell(channel: BorrowedFd<'_>, what: u8, value: i32) -> io::Result<()> {
    let [a, b, c, d] = value.to_le_bytes();
    let bytes = [what, a, b, c, d];
    // Not by `send`, which is `sendto` to the kernel: sandboxes of hosts refuse that one.
    let mut nothing = rustix::net::SendAncillaryBuffer::default();
    let parts = [io::IoSlice::new(&bytes)];
    Ok(rustix::net::sendmsg(channel, &parts, &mut nothing, rustix::net::SendFlags::NOSIGNAL).map(drop)?)
}

/// Waits for the supervisor's word that all rules are made.
pub(crate) fn await_rules(channel: BorrowedFd<'_>) -> io::Result<()> {
    let mut bytes = [0; 5];
    loop {
        return match rustix::io::read(channel, &mut bytes) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => Err(error.into()),
            Ok(5) if bytes.first() == Some(&told::RULED) => Ok(()),
            Ok(_) => Err(io::Error::from_raw_os_error(libc::EPIPE)),
        };
    }
}

/// Hands a descriptor to the supervisor.
pub(crate) fn hand_over(channel: BorrowedFd<'_>, what: u8, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [const { std::mem::MaybeUninit::<u8>::uninit() }; rustix::cmsg_space!(ScmRights(1))];
    let mut extra = rustix::net::SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    if !extra.push(rustix::net::SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    let bytes = [what, 0, 0, 0, 0];
    let parts = [io::IoSlice::new(&bytes)];
    Ok(rustix::net::sendmsg(channel, &parts, &mut extra, rustix::net::SendFlags::NOSIGNAL).map(drop)?)
}

/// Opens a place without following a link anywhere on the way: a link may have been changed since the bound was decided.
pub(crate) fn place(path: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)?)
}

fn clone_tree(path: &CStr) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(place(path)?.as_fd(), c"", flags)?)
}

fn fresh(kind: &CStr, options: &[(CString, CString)], set: u64) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            rustix::mount::fsconfig_set_flag(context.as_fd(), key.as_c_str())?;
        } else {
            rustix::mount::fsconfig_set_string(context.as_fd(), key.as_c_str(), value.as_c_str())?;
        }
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::from_bits_retain(u32::try_from(set).unwrap_or(u32::MAX));
    Ok(rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn write_text(path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::write(&file, text)?;
    if written == text.len() { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EIO)) }
}

fn listen(port: u16, channel: BorrowedFd<'_>) -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::net::bind(&socket, &std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, 128)?;
    hand_over(channel, told::LISTENS, socket.as_fd())
}

/// Something that is there already is as good as made.
fn made(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(rustix::io::Errno::EXIST) => Ok(()),
        other => Ok(other?),
    }
}

fn put(ground: &mut Ground<'_>, to: Slot, mount: OwnedFd) -> io::Result<()> {
    let slot = ground.slots.get_mut(to.0).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    *slot = Some(mount);
    Ok(())
}

fn take(ground: &mut Ground<'_>, from: Slot) -> io::Result<OwnedFd> {
    let taken = ground.slots.get_mut(from.0).and_then(Option::take);
    taken.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}
