//! Files and links as they will be, made in a directory of their own before anything of the project is touched.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::bytes::hex;
use crate::fault::KeepFault;
use crate::linked;
use crate::log::SnapshotId;
use crate::node::{Content, Kind, Node};
use crate::objects::Objects;
use crate::place;
use crate::plan::{Fate, Planned};
use crate::project::{DIRECTORY, mode_of};
use crate::restore::STAGING;
use crate::store::Store;
use crate::widened::OWNER;

/// How many threads fill the directory.
const THREADS: usize = 2;

/// The directory, open.
#[derive(Debug)]
pub(crate) struct Staging {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Staging {
    /// Makes the directory and everything that the steps need. If an object is missing or damaged, nothing else happened.
    pub(crate) fn fill(store: &Store, kept: &SnapshotId, steps: &[Planned]) -> Result<Staging, KeepFault> {
        let project = &store.project;
        let name = [STAGING, kept.as_str().as_bytes()].concat();
        let path = project.path_of(&name);
        let made = project.open_directory(b"").and_then(|root| rustix::fs::mkdirat(root, &*name, Mode::RWXU));
        made.map_err(|why| KeepFault::write(&path, why))?;
        let descriptor = project.open_directory(&name).map_err(|why| KeepFault::write(&path, why))?;
        let staging = Staging { descriptor, path };
        let wanted: Vec<(usize, &Node)> = steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.fate == Fate::Restored)
            .filter_map(|(at, step)| Some((at, step.before.as_ref()?, step.now.as_ref())))
            // A directory that is there stays, and only its permissions may change.
            .filter(|(_, before, now)| !(before.is_directory() && now.is_some_and(Node::is_directory)))
            .map(|(at, before, _)| (at, before))
            .collect();
        let filled = staging.fill_by_threads(&store.objects, &wanted);
        match filled {
            Ok(()) => Ok(staging),
            Err(fault) => {
                staging.remove()?;
                Err(fault)
            }
        }
    }

    fn fill_by_threads(&self, objects: &Objects, wanted: &[(usize, &Node)]) -> Result<(), KeepFault> {
        let fill = |share: usize| {
            wanted
                .iter()
                .skip(share)
                .step_by(THREADS)
                .try_for_each(|(at, node)| self.make(objects, Staging::name_of(*at).as_bytes(), node))
        };
        let failed = || Err(KeepFault::write(&self.path, std::io::Error::other("a thread failed")));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|share| scope.spawn(move || fill(share))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| failed()))
        })
    }

    /// The name of what a step needs.
    pub(crate) fn name_of(step: usize) -> String {
        step.to_string()
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Removes the directory with all that is left in it.
    pub(crate) fn remove(self) -> Result<(), KeepFault> {
        std::fs::remove_dir_all(&self.path).map_err(|source| KeepFault::write(&self.path, source))
    }

    fn make(&self, objects: &Objects, name: &[u8], node: &Node) -> Result<(), KeepFault> {
        let unwritten = |why: Errno| KeepFault::write(&self.path, why);
        match &node.kind {
            Kind::File { size, content } => self.make_file(objects, name, node, *size, *content),
            Kind::Link { target } => rustix::fs::symlinkat(&**target, &self.descriptor, name).map_err(unwritten),
            Kind::Directory { .. } => {
                // One that its owner may not write could be neither moved nor filled; that bit is taken away at the end.
                let open = Node { mode: node.mode | OWNER, ..node.clone() };
                rustix::fs::mkdirat(&self.descriptor, name, Mode::RWXU).map_err(unwritten)?;
                let made = rustix::fs::openat(&self.descriptor, name, DIRECTORY, Mode::empty()).map_err(unwritten)?;
                place::set(made, &open).map_err(unwritten)
            }
            Kind::LeftOut { .. } => Ok(()),
        }
    }

    fn make_file(
        &self,
        objects: &Objects,
        name: &[u8],
        node: &Node,
        size: u64,
        content: Content,
    ) -> Result<(), KeepFault> {
        if let Content::Linked(digest) = content {
            let path = objects.linked().join(hex(digest));
            // What has the file's own mode is the file itself; a copy of the store's own is not given away.
            let is_itself = path.symlink_metadata().is_ok_and(|found| found.mode() & 0o7777 == node.mode);
            if is_itself {
                linked::check(objects.linked(), digest, size)?;
                if rustix::fs::linkat(CWD, &path, &self.descriptor, name, AtFlags::empty()).is_ok() {
                    return Ok(());
                }
            }
        }
        let unwritten = |why: Errno| KeepFault::write(&self.path, why);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // Nobody else can enter this directory, so the file may have its permissions from the beginning.
        let made = rustix::fs::openat(&self.descriptor, name, flags, mode_of(node.mode & 0o777)).map_err(unwritten)?;
        let file = File::from(made);
        objects.each_part(size, content, &mut |offset, bytes| {
            file.write_all_at(bytes, offset).map_err(|source| KeepFault::write(&self.path, source))
        })?;
        // What lies in no part is a hole.
        if !matches!(content, Content::Whole(_)) {
            file.set_len(size).map_err(|source| KeepFault::write(&self.path, source))?;
        }
        place::set_new(file.as_fd(), node).map_err(unwritten)
    }
}
