//! One project's kept trees: opening the store, keeping, and reading what was kept.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use interlock_core::Digest;

use crate::assemble::assemble;
use crate::bytes::hex;
use crate::content::Into;
use crate::fault::KeepFault;
use crate::gather::Walked;
use crate::index::{self, Seen, Stamp, StandsOn};
use crate::limits::{LeaveOut, Limits};
use crate::lock::Lock;
use crate::log::{Log, Snapshot, SnapshotId, write_whole};
use crate::named::{Named, walk_named};
use crate::node::{Kind, Node, Why, write_tree};
use crate::objects::Objects;
use crate::pack::{Form, NewPack};
use crate::project::{Project, shown, spelled, split};
use crate::walk::{Ground, walk};

/// What a snapshot is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The whole project.
    All,
    /// These paths beneath the project and what lies beneath them. A path that is not there is kept as not there.
    Paths(Vec<PathBuf>),
}

impl Scope {
    /// What is in either.
    pub(crate) fn and(self, other: Scope) -> Scope {
        match (self, other) {
            (Scope::Paths(mut paths), Scope::Paths(others)) => {
                paths.extend(others);
                Scope::Paths(paths)
            }
            _ => Scope::All,
        }
    }
}

/// The kept trees of one project.
///
/// Several may be open for the same project, in one process or in many: a lock in the store lets one write at a time.
/// One that stays open remembers what the last walk saw, and need not read that again.
#[derive(Debug)]
pub struct Store {
    pub(crate) directory: PathBuf,
    pub(crate) project: Project,
    pub(crate) limits: Limits,
    pub(crate) objects: Objects,
    pub(crate) log: Log,
    /// What the last walk over the whole project saw.
    seen: Option<(Seen, StandsOn)>,
    /// What a walk to named paths saw, if that was the last one.
    partly_seen: Option<Seen>,
    /// How much the index on disk lacks of what walks learned.
    unsaved: u64,
    /// The snapshot of the last plan, if that was the last walk.
    pub(crate) planned: Option<SnapshotId>,
}

/// So many names may be read again after a kill, because the index on disk does not know them. It costs as much to write
/// it as to look at the whole tree.
const UNSAVED_MAX: u64 = 2_000;

/// What a snapshot says about a path: whether it can be brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recoverable {
    /// Nothing was there.
    Absent,
    /// It is kept, and so is all beneath it but for what is regenerable.
    Kept,
    /// It is not kept, and can be made again.
    Regenerable,
    /// It, or something beneath it, is neither.
    NotKept {
        /// The first such path.
        path: PathBuf,
        /// Why.
        why: Why,
    },
    /// The snapshot is about other paths.
    NotAsked,
}

impl Store {
    /// Opens the store of a project in a directory for all stores, and makes it if there is none. The project's path must
    /// have no links in it; what its path leads to is held from here on.
    pub fn open(stores: &Path, project: &Path, limits: Limits) -> Result<Store, KeepFault> {
        let project = Project::open(project)?;
        let directory = stores.join(Store::name_of(project.path()));
        for made in [&directory, &directory.join("packs"), &directory.join("linked")] {
            let builder = &mut fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(made).map_err(|source| KeepFault::write(made, source))?;
        }
        let name = directory.join("project");
        if !name.exists() {
            write_whole(&name, project.path().as_os_str().as_encoded_bytes())?;
        }
        let (objects, log) = (Objects::new(&directory), Log::new(&directory));
        Ok(Store { directory, project, limits, objects, log, seen: None, partly_seen: None, unsaved: 0, planned: None })
    }

    /// The name of the directory that holds the kept trees of a project.
    pub fn name_of(project: &Path) -> String {
        let mut name = hex(Digest::of_bytes(project.as_os_str().as_encoded_bytes()));
        name.truncate(32);
        name
    }

    /// Keeps the project as it is now. When this returns, the snapshot outlives the process.
    ///
    /// If it fails, whatever was kept before is as it was.
    pub fn keep(&mut self, scope: &Scope, leave_out: LeaveOut<'_>, now_ms: u64) -> Result<Snapshot, KeepFault> {
        let _lock = self.lock()?;
        self.keep_locked(scope, leave_out, now_ms)
    }

    /// Keeps the project; the lock is held.
    pub(crate) fn keep_locked(
        &mut self,
        scope: &Scope,
        leave_out: LeaveOut<'_>,
        now_ms: u64,
    ) -> Result<Snapshot, KeepFault> {
        self.project.check_in_place()?;
        self.planned = None;
        let named = match scope {
            Scope::All => None,
            Scope::Paths(paths) => Some(Named::new(paths.iter().map(|path| spelled(path)).collect::<Result<_, _>>()?)),
        };
        let there = self.stands_on()?;
        let last = self.seen.take().or_else(|| index::load(&self.index_path()));
        let mut before =
            last.filter(|(_, stands_on)| stands_on.is_within(&there)).map(|(seen, _)| seen).unwrap_or_default();
        let packs = self.objects.packs().to_owned();
        let (number, max) = (self.objects.next_number(), self.limits.added_bytes_max);
        let pack = NewPack::new(&packs, number, max, self.project.path());
        let kept = self.walk_and_store(&mut before, leave_out, named.as_ref(), &pack);
        let (walked, mut snapshot) = match kept {
            Ok(kept) => kept,
            Err(fault) => {
                // What a walk that got to its end has taken over may stand on what was not stored.
                self.seen = (!before.directories.is_empty()).then_some((before, there));
                return Err(fault);
            }
        };
        if let Some(finished) = pack.finish()? {
            snapshot.stored_bytes = finished.len;
            self.objects.add(finished);
        }
        snapshot.time_ms = now_ms;
        let snapshot = self.log.add(snapshot)?;
        self.remember(walked, before, named.is_some())?;
        Ok(snapshot)
    }

    /// A walk over the whole project takes over what was known before.
    fn walk_and_store(
        &self,
        before: &mut Seen,
        leave_out: LeaveOut<'_>,
        named: Option<&Named>,
        pack: &NewPack,
    ) -> Result<(Walked, Snapshot), KeepFault> {
        let store = fs::metadata(&self.directory).map_err(|source| KeepFault::read(&self.directory, source))?;
        let into = Into { objects: &self.objects, pack };
        let ground = Ground {
            project: &self.project,
            leave_out,
            limits: &self.limits,
            before,
            into,
            device: Stamp::of(&self.project.stat()?).device,
            store: (store.dev(), store.ino()),
        };
        let known_root = before.directories.get(&Vec::new()).map(|known| known.node.clone());
        let mut walked = match named {
            None => {
                let found = walk(&ground, Vec::new())?;
                let mut known = std::mem::take(before);
                found.gathered(|path| known.directories.remove(path))
            }
            Some(named) => walk_named(&ground, named)?,
        };
        let scope = named.map(|named| into.put(&named.write(), Form::Lz4)).transpose()?;
        let (root, figures) = assemble(&mut walked, into)?;
        // The project's own node is an object too: its mode and attributes are kept with it.
        let bytes = write_tree(std::iter::once((&b"project"[..], &root)));
        let is_known = known_root.as_ref() == Some(&root);
        let root = if is_known { Digest::of_bytes(&bytes) } else { into.put(&bytes, Form::Lz4)? };
        let snapshot = Snapshot {
            id: Snapshot::unnamed(),
            number: 0,
            time_ms: 0,
            nodes: figures.nodes,
            bytes: figures.bytes,
            left_out: figures.left_out,
            stored_bytes: 0,
            root,
            scope,
        };
        Ok((walked, snapshot))
    }

    /// Keeps what the walk saw for the next one: in memory, and on disk if it learned much.
    fn remember(&mut self, walked: Walked, before: Seen, is_partial: bool) -> Result<(), KeepFault> {
        let there = self.stands_on()?;
        if is_partial {
            self.seen = Some((before, there));
            self.partly_seen = Some(walked.seen);
            return Ok(());
        }
        self.partly_seen = None;
        self.seen = Some((walked.seen, there));
        self.unsaved = self.unsaved.saturating_add(walked.learned);
        if self.unsaved > UNSAVED_MAX {
            self.save_index();
        }
        Ok(())
    }

    /// Writes the index. Snapshots stand without it; the next walk of another process reads more.
    fn save_index(&mut self) {
        self.unsaved = 0;
        if let Some((seen, stands_on)) = &self.seen
            && index::save(&self.index_path(), seen, stands_on).is_err()
        {
            let _ = fs::remove_file(self.index_path());
        }
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.directory.join("seen")
    }

    /// Forgets what the last walk saw.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
        self.unsaved = 0;
        let _ = fs::remove_file(self.index_path());
    }

    /// What the last walk saw at a path.
    pub(crate) fn last_stamp(&self, path: &[u8]) -> Option<Stamp> {
        let (directory, name) = split(path);
        let seen = self.partly_seen.as_ref().or(self.seen.as_ref().map(|(seen, _)| seen))?;
        seen.directories.get(directory)?.find(name).map(|seen| seen.stamp)
    }

    fn stands_on(&mut self) -> Result<StandsOn, KeepFault> {
        self.objects.refresh()?;
        let linked = self.objects.linked_lens()?.to_vec();
        Ok(StandsOn { packs: self.objects.listed().to_vec(), linked })
    }

    pub(crate) fn lock(&self) -> Result<Lock, KeepFault> {
        Lock::exclusive(&self.directory, self.limits.wait_ms_max)
    }

    /// Nobody takes anything away while this is held.
    pub(crate) fn lock_to_read(&mut self) -> Result<Lock, KeepFault> {
        let lock = Lock::shared(&self.directory, self.limits.wait_ms_max)?;
        self.objects.refresh()?;
        Ok(lock)
    }

    /// All snapshots, oldest first.
    pub fn snapshots(&mut self) -> Result<Vec<Snapshot>, KeepFault> {
        let _lock = self.lock_to_read()?;
        Ok(self.log.read()?.0)
    }

    /// One snapshot.
    pub fn snapshot(&mut self, id: &SnapshotId) -> Result<Snapshot, KeepFault> {
        let _lock = self.lock_to_read()?;
        self.find(id)
    }

    pub(crate) fn find(&self, id: &SnapshotId) -> Result<Snapshot, KeepFault> {
        let found = self.log.read()?.0.into_iter().find(|snapshot| snapshot.id == *id);
        found.ok_or_else(|| KeepFault::NoSuchSnapshot { id: id.to_string() })
    }

    /// The project's own node in a snapshot.
    pub(crate) fn root(&self, snapshot: &Snapshot) -> Result<Node, KeepFault> {
        let mut tree = self.objects.tree(snapshot.root)?;
        let node = tree.pop().map(|(_, node)| node).filter(Node::is_directory);
        node.ok_or_else(|| KeepFault::damaged(format!("the root of snapshot {}", snapshot.id)))
    }

    pub(crate) fn named(&self, snapshot: &Snapshot) -> Result<Option<Named>, KeepFault> {
        let Some(scope) = snapshot.scope else { return Ok(None) };
        let named = Named::read(&self.objects.read(scope)?);
        named.map(Some).ok_or_else(|| KeepFault::damaged(format!("the scope of snapshot {}", snapshot.id)))
    }

    /// What a snapshot holds at a path; nothing if nothing was there. Something left out stands for all beneath it.
    pub fn node(&mut self, id: &SnapshotId, path: &Path) -> Result<Option<Node>, KeepFault> {
        let _lock = self.lock_to_read()?;
        let root = self.root(&self.find(id)?)?;
        self.node_beneath(root, &spelled(path)?)
    }

    pub(crate) fn node_beneath(&self, root: Node, path: &[u8]) -> Result<Option<Node>, KeepFault> {
        let mut at = root;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let tree = match at.kind {
                Kind::Directory { tree } => self.objects.tree(tree)?,
                Kind::LeftOut { .. } => return Ok(Some(at)),
                Kind::File { .. } | Kind::Link { .. } => return Ok(None),
            };
            match tree.into_iter().find(|(known, _)| known == name) {
                Some((_, node)) => at = node,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Whether what a snapshot saw at a path, and beneath it, can be brought back.
    pub fn recoverable(&mut self, id: &SnapshotId, path: &Path) -> Result<Recoverable, KeepFault> {
        let _lock = self.lock_to_read()?;
        let (snapshot, path) = (self.find(id)?, spelled(path)?);
        if self.named(&snapshot)?.is_some_and(|named| named.lies(&path) != crate::named::Lies::Within) {
            return Ok(Recoverable::NotAsked);
        }
        let Some(node) = self.node_beneath(self.root(&snapshot)?, &path)? else { return Ok(Recoverable::Absent) };
        if let Kind::LeftOut { why, .. } = node.kind {
            let path = shown(&path);
            return Ok(if why == Why::Regenerable {
                Recoverable::Regenerable
            } else {
                Recoverable::NotKept { path, why }
            });
        }
        let mut lost = None;
        self.each_left_out(path, node, &mut |path, why| {
            if why != Why::Regenerable && lost.is_none() {
                lost = Some((shown(path), why));
            }
        })?;
        Ok(lost.map_or(Recoverable::Kept, |(path, why)| Recoverable::NotKept { path, why }))
    }

    /// What a snapshot left out, and why, by path.
    pub fn left_out(&mut self, id: &SnapshotId) -> Result<Vec<(PathBuf, Why)>, KeepFault> {
        let _lock = self.lock_to_read()?;
        let root = self.root(&self.find(id)?)?;
        let mut found = Vec::new();
        self.each_left_out(Vec::new(), root, &mut |path, why| found.push((shown(path), why)))?;
        found.sort();
        Ok(found)
    }

    /// What the last walk over the whole project left out, and why, by path: the same as [`Store::left_out`] of its
    /// snapshot, without reading that.
    pub fn last_left_out(&self) -> Vec<(PathBuf, Why)> {
        let directories = self.seen.iter().flat_map(|(seen, _)| &seen.directories);
        let mut found: Vec<(PathBuf, Why)> = directories
            .flat_map(|(path, directory)| directory.names.iter().map(move |name| (path, name)))
            .filter_map(|(path, seen)| match seen.node.kind {
                Kind::LeftOut { why, .. } => Some((shown(&crate::project::joined(path, &seen.name)), why)),
                _ => None,
            })
            .collect();
        found.sort();
        found
    }

    fn each_left_out(&self, path: Vec<u8>, node: Node, tell: &mut dyn FnMut(&[u8], Why)) -> Result<(), KeepFault> {
        let mut open = vec![(path, node)];
        while let Some((path, node)) = open.pop() {
            match node.kind {
                Kind::LeftOut { why, .. } => tell(&path, why),
                Kind::Directory { tree } => {
                    let names = self.objects.tree(tree)?;
                    open.extend(names.into_iter().map(|(name, node)| (crate::project::joined(&path, &name), node)));
                }
                Kind::File { .. } | Kind::Link { .. } => {}
            }
        }
        Ok(())
    }

    /// The bytes of a file that was kept, checked; `None` if the node is no file, or it has more than `bytes_max`.
    pub fn content(&mut self, node: &Node, bytes_max: u64) -> Result<Option<Vec<u8>>, KeepFault> {
        let Kind::File { size, content } = node.kind else { return Ok(None) };
        let Some(len) = usize::try_from(size).ok().filter(|_| size <= bytes_max) else { return Ok(None) };
        let _lock = self.lock_to_read()?;
        let mut bytes = vec![0; len];
        self.objects.each_part(size, content, &mut |offset, part| {
            let at = usize::try_from(offset).unwrap_or(usize::MAX);
            let into = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..part.len()));
            into.ok_or_else(|| KeepFault::damaged("a part beyond the end of a file"))?.copy_from_slice(part);
            Ok(())
        })?;
        Ok(Some(bytes))
    }
}

impl Drop for Store {
    /// What the last walks learned is written down, unless another process is writing just now.
    fn drop(&mut self) {
        if self.unsaved > 0
            && let Ok(_lock) = Lock::exclusive(&self.directory, 0)
        {
            self.save_index();
        }
    }
}
