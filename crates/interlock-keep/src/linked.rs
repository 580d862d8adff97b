//! Large files of a git repository's object store, kept without copying them.
//!
//! Git writes such a file once, under a temporary name, and never again. So a second name for it in the store is as good
//! as a copy, for everything but a program that opens the file and writes into it: that is found by the digest when the
//! file is wanted back. Where the file system can share blocks between files, the second file is one of its own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use interlock_core::Digest;
use rustix::fs::{AtFlags, CWD};
use sha2::{Digest as _, Sha256};

use crate::bytes::hex;
use crate::fault::KeepFault;
use crate::objects::Take;

/// How much is read at a time.
const READ_LEN: usize = 1 << 20;

/// Gives the file `name` of a directory a second name in the store, and returns its digest. `None` if that cannot be done,
/// or if the name stands for another file than `inode` by now.
pub(crate) fn link(linked: &Path, thread: usize, at: BorrowedFd<'_>, name: &[u8], original: &File) -> Option<Digest> {
    let temporary = linked.join(format!("new-{thread}.tmp"));
    let _ = fs::remove_file(&temporary);
    let found = link_or_clone(&temporary, at, name, original).and_then(|()| {
        let second = File::open(&temporary).ok()?;
        digest_of(&second).ok()
    });
    let Some(digest) = found else {
        let _ = fs::remove_file(&temporary);
        return None;
    };
    let place = linked.join(hex(digest));
    // If the store has this inode already, `rename` does nothing and leaves both names.
    let is_named = fs::rename(&temporary, place).is_ok();
    let _ = fs::remove_file(&temporary);
    is_named.then_some(digest)
}

fn link_or_clone(temporary: &Path, at: BorrowedFd<'_>, name: &[u8], original: &File) -> Option<()> {
    if clone(temporary, original).is_some() {
        return Some(());
    }
    let _ = fs::remove_file(temporary);
    rustix::fs::linkat(at, name, CWD, temporary, AtFlags::empty()).ok()?;
    let (second, first) = (fs::symlink_metadata(temporary).ok()?, original.metadata().ok()?);
    ((second.dev(), second.ino()) == (first.dev(), first.ino())).then_some(())
}

#[cfg(target_os = "linux")]
fn clone(temporary: &Path, original: &File) -> Option<()> {
    let clone = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary).ok()?;
    rustix::fs::ioctl_ficlone(clone.as_fd(), original.as_fd()).ok()
}

#[cfg(not(target_os = "linux"))]
fn clone(_temporary: &Path, _original: &File) -> Option<()> {
    None
}

/// Hands over the bytes of a linked file. Whether they are what was kept is known at the end, and said there.
pub(crate) fn each_part(
    linked: &Path,
    digest: Digest,
    size: u64,
    take: &mut Take<'_, KeepFault>,
) -> Result<(), KeepFault> {
    let (file, mut running, mut len) = (open(linked, digest)?, Sha256::new(), 0_u64);
    let mut hashed = |offset: u64, bytes: &[u8]| {
        running.update(bytes);
        len = len.saturating_add(u64::try_from(bytes.len()).unwrap_or(0));
        take(offset, bytes)
    };
    read_through(&file, &mut hashed, |source| KeepFault::read(linked.join(hex(digest)), source))?;
    let is_same = len == size && Digest::from_bytes(running.finalize().into()) == digest;
    if is_same { Ok(()) } else { Err(damaged(digest)) }
}

/// Whether a linked file is still what was kept.
pub(crate) fn check(linked: &Path, digest: Digest, size: u64) -> Result<(), KeepFault> {
    each_part(linked, digest, size, &mut |_, _| Ok(()))
}

fn open(linked: &Path, digest: Digest) -> Result<File, KeepFault> {
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let opened = OpenOptions::new().read(true).custom_flags(no_link).open(linked.join(hex(digest)));
    opened.map_err(|_| damaged(digest))
}

fn damaged(digest: Digest) -> KeepFault {
    KeepFault::damaged(format!("the linked file {} is not what was kept", hex(digest)))
}

fn digest_of(file: &File) -> io::Result<Digest> {
    let mut running = Sha256::new();
    let mut take = |_, bytes: &[u8]| {
        running.update(bytes);
        Ok(())
    };
    read_through(file, &mut take, |source| source)?;
    Ok(Digest::from_bytes(running.finalize().into()))
}

fn read_through<E>(mut file: &File, take: &mut Take<'_, E>, fault: impl Fn(io::Error) -> E) -> Result<(), E> {
    use std::io::Seek;
    file.rewind().map_err(&fault)?;
    let (mut buffer, mut offset) = (vec![0; READ_LEN], 0_u64);
    loop {
        let len = file.read(&mut buffer).map_err(&fault)?;
        let Some(bytes) = buffer.get(..len).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
        take(offset, bytes)?;
        offset = offset.saturating_add(u64::try_from(len).unwrap_or(0));
    }
}
