//! What the last walk saw: by it the next one knows which files need not be read again.
//!
//! A file is taken for unchanged if size, times, inode, device and mode are the same, and if its change time is before
//! the walk that read it: what changes after a walk has a later change time, which no program can set. A file whose
//! change time is not before that walk is read again, because it may have changed once more within the same tick. If the
//! clock jumps back, a change still gives a change time that differs from the one that was seen.
//!
//! The index is worth nothing by itself. One that is damaged, or stands on packs that are gone, is not used.

use std::collections::HashMap;
use std::path::Path;

use interlock_core::Digest;
use rustix::fs::Stat;

use crate::bytes::{Unread, Written};
use crate::fault::KeepFault;
use crate::log::write_whole_unsynced;
use crate::node::{Kind, Node};

const MARK: &[u8] = b"ilkseen1";
/// Where a change time has no fraction of a second, the file system may count in units of two seconds.
const COARSE_NS: i64 = 2_000_000_000;

/// What tells that a file was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
    pub(crate) inode: u64,
    pub(crate) device: u64,
    pub(crate) mode: u32,
}

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Stamp {
        let ns = |seconds: i128, fraction: i128| {
            i64::try_from(seconds.saturating_mul(1_000_000_000).saturating_add(fraction)).unwrap_or(i64::MAX)
        };
        Stamp {
            size: u64::try_from(i128::from(stat.st_size)).unwrap_or(u64::MAX),
            mtime_ns: ns(i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec)),
            ctime_ns: ns(i128::from(stat.st_ctime), i128::from(stat.st_ctime_nsec)),
            inode: u64::try_from(i128::from(stat.st_ino)).unwrap_or(u64::MAX),
            device: u64::try_from(i128::from(stat.st_dev)).unwrap_or(u64::MAX),
            mode: u32::try_from(i128::from(stat.st_mode)).unwrap_or(0),
        }
    }

    /// Whether nothing that happened after a walk began could leave this change time.
    pub(crate) fn is_settled(&self, walk_ns: i64) -> bool {
        let unit = if self.ctime_ns.checked_rem(1_000_000_000) == Some(0) { COARSE_NS } else { 0 };
        self.ctime_ns.saturating_add(unit) < walk_ns
    }
}

/// A name that a walk saw.
#[derive(Debug, Clone)]
pub(crate) struct SeenName {
    pub(crate) name: Box<[u8]>,
    pub(crate) stamp: Stamp,
    pub(crate) node: Node,
}

/// A directory that a walk saw. Its own node has the digest of its names once they are all known.
#[derive(Debug, Clone)]
pub(crate) struct SeenDirectory {
    pub(crate) stamp: Stamp,
    pub(crate) node: Node,
    /// In order.
    pub(crate) names: Vec<SeenName>,
}

/// What names amount to, without what lies beneath them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) nodes: u64,
    pub(crate) bytes: u64,
    pub(crate) left_out: u64,
}

/// All that a walk saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// When the walk began, by the clock that file systems use.
    pub(crate) walk_ns: i64,
    /// By path; the project itself is the empty one.
    pub(crate) directories: HashMap<Vec<u8>, SeenDirectory>,
}

impl SeenDirectory {
    pub(crate) fn find(&self, name: &[u8]) -> Option<&SeenName> {
        self.names.get(self.position(name)?)
    }

    /// Where a name stands among the others.
    pub(crate) fn position(&self, name: &[u8]) -> Option<usize> {
        self.names.binary_search_by(|seen| (*seen.name).cmp(name)).ok()
    }

    pub(crate) fn sort(&mut self) {
        self.names.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    }
}

impl Figures {
    pub(crate) fn count(&mut self, node: &Node) {
        match node.kind {
            Kind::LeftOut { .. } => self.left_out = self.left_out.saturating_add(1),
            Kind::File { size, .. } => {
                self.nodes = self.nodes.saturating_add(1);
                self.bytes = self.bytes.saturating_add(size);
            }
            Kind::Link { .. } | Kind::Directory { .. } => self.nodes = self.nodes.saturating_add(1),
        }
    }
}

/// The packs and linked files that must be there for an index to be of use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StandsOn {
    pub(crate) packs: Vec<(u64, u64)>,
    pub(crate) linked: Vec<(Digest, u64)>,
}

impl StandsOn {
    /// Whether all that this names is among what is there.
    pub(crate) fn is_within(&self, there: &StandsOn) -> bool {
        self.packs.iter().all(|pack| there.packs.binary_search(pack).is_ok())
            && self.linked.iter().all(|linked| there.linked.binary_search(linked).is_ok())
    }
}

/// Reads an index; `None` if there is none that can be used.
pub(crate) fn load(path: &Path) -> Option<(Seen, StandsOn)> {
    let bytes = std::fs::read(path).ok()?;
    let (body, digest) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    if Digest::of_bytes(body).bytes() != digest {
        return None;
    }
    let mut from = Unread(body.strip_prefix(MARK)?);
    let mut stands_on = StandsOn::default();
    for _ in 0..from.u64()? {
        stands_on.packs.push((from.u64()?, from.u64()?));
    }
    for _ in 0..from.u64()? {
        stands_on.linked.push((from.digest()?, from.u64()?));
    }
    let mut seen = Seen { walk_ns: from.i64()?, directories: HashMap::new() };
    for _ in 0..from.u64()? {
        let path = from.text()?.to_vec();
        let (stamp, node) = (read_stamp(&mut from)?, Node::read(&mut from)?);
        let mut names = Vec::new();
        for _ in 0..from.u64()? {
            let (name, stamp) = (from.text()?.into(), read_stamp(&mut from)?);
            names.push(SeenName { name, stamp, node: Node::read(&mut from)? });
        }
        seen.directories.insert(path, SeenDirectory { stamp, node, names });
    }
    from.end()?;
    Some((seen, stands_on))
}

/// Writes an index. It is not synced: after a power cut it is whole, or it is not used.
pub(crate) fn save(path: &Path, seen: &Seen, stands_on: &StandsOn) -> Result<(), KeepFault> {
    let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
    let mut to = Written(MARK.to_vec());
    to.u64(count(stands_on.packs.len()));
    for (number, len) in &stands_on.packs {
        to.u64(*number);
        to.u64(*len);
    }
    to.u64(count(stands_on.linked.len()));
    for (digest, len) in &stands_on.linked {
        to.digest(*digest);
        to.u64(*len);
    }
    to.i64(seen.walk_ns);
    to.u64(count(seen.directories.len()));
    for (path, directory) in &seen.directories {
        to.text(path);
        write_stamp(&mut to, &directory.stamp);
        directory.node.write(&mut to);
        to.u64(count(directory.names.len()));
        for name in &directory.names {
            to.text(&name.name);
            write_stamp(&mut to, &name.stamp);
            name.node.write(&mut to);
        }
    }
    let digest = Digest::of_bytes(&to.0);
    to.digest(digest);
    write_whole_unsynced(path, &to.0)
}

fn write_stamp(to: &mut Written, stamp: &Stamp) {
    to.u64(stamp.size);
    to.i64(stamp.mtime_ns);
    to.i64(stamp.ctime_ns);
    to.u64(stamp.inode);
    to.u64(stamp.device);
    to.u32(stamp.mode);
}

fn read_stamp(from: &mut Unread<'_>) -> Option<Stamp> {
    Some(Stamp {
        size: from.u64()?,
        mtime_ns: from.i64()?,
        ctime_ns: from.i64()?,
        inode: from.u64()?,
        device: from.u64()?,
        mode: from.u32()?,
    })
}
