//! The tree after an undo: the tree before it, with what the undo restored.
//!
//! It is made from objects and not by a walk, so that it differs from the tree before the undo by what the undo did and
//! nothing else: what a person changed meanwhile, somewhere else, is not the undo's, and undoing the undo leaves it alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::content::Into;
use crate::fault::KeepFault;
use crate::log::Snapshot;
use crate::node::{Kind, Node, Tree, write_tree};
use crate::pack::{Form, NewPack};
use crate::plan::{Fate, Planned};
use crate::project::{joined, split};
use crate::store::Store;

/// What is other than in a tree.
struct Edits<'a> {
    /// By path; nothing where something went.
    nodes: BTreeMap<&'a [u8], Option<&'a Node>>,
    /// Names of directories in which, or beneath which, something is other.
    names: BTreeMap<&'a [u8], BTreeSet<&'a [u8]>>,
}

impl<'a> Edits<'a> {
    fn new(steps: &'a [Planned]) -> Edits<'a> {
        let mut edits = Edits { nodes: BTreeMap::new(), names: BTreeMap::new() };
        for step in steps.iter().filter(|step| step.fate == Fate::Restored) {
            edits.nodes.insert(&step.path, step.before.as_ref());
            let mut path: &[u8] = &step.path;
            while !path.is_empty() {
                let (directory, name) = split(path);
                if !edits.names.entry(directory).or_default().insert(name) {
                    break;
                }
                path = directory;
            }
        }
        edits
    }
}

impl Store {
    /// Records the tree that an undo has left; the lock is held.
    pub(crate) fn keep_grafted(
        &mut self,
        kept: &Snapshot,
        steps: &[Planned],
        now_ms: u64,
    ) -> Result<Snapshot, KeepFault> {
        let packs = self.objects.packs().to_owned();
        let pack = NewPack::new(&packs, self.objects.next_number(), self.limits.added_bytes_max, self.project.path());
        let into = Into { objects: &self.objects, pack: &pack };
        let edits = Edits::new(steps);
        let root = self.graft(&[], Some(&self.root(kept)?), &edits, into)?;
        let root = root.ok_or_else(|| KeepFault::damaged(format!("the root of snapshot {}", kept.id)))?;
        let root = into.put(&write_tree(std::iter::once((&b"project"[..], &root))), Form::Lz4)?;
        let mut snapshot = Snapshot { root, time_ms: now_ms, stored_bytes: 0, ..kept.clone() };
        for step in steps.iter().filter(|step| step.fate == Fate::Restored) {
            let (came, went) = (size_of(step.before.as_ref()), size_of(step.now.as_ref()));
            snapshot.nodes = snapshot.nodes.saturating_add(came.0).saturating_sub(went.0);
            snapshot.bytes = snapshot.bytes.saturating_add(came.1).saturating_sub(went.1);
        }
        if let Some(finished) = pack.finish()? {
            snapshot.stored_bytes = finished.len;
            self.objects.add(finished);
        }
        self.log.add(snapshot)
    }

    /// A node with what is other in and beneath it.
    fn graft(
        &self,
        path: &[u8],
        now: Option<&Node>,
        edits: &Edits<'_>,
        into: Into<'_>,
    ) -> Result<Option<Node>, KeepFault> {
        let wanted = edits.nodes.get(path).copied().unwrap_or(now);
        let Some(wanted) = wanted.filter(|node| node.is_directory()) else { return Ok(wanted.cloned()) };
        let mut names: BTreeMap<Vec<u8>, Node> =
            now.map_or(Ok(Tree::new()), |now| self.names_of(now))?.into_iter().collect();
        for name in edits.names.get(path).into_iter().flatten() {
            match self.graft(&joined(path, name), names.get(*name), edits, into)? {
                Some(node) => _ = names.insert(name.to_vec(), node),
                None => _ = names.remove(*name),
            }
        }
        let tree = into.put(&write_tree(names.iter().map(|(name, node)| (name.as_slice(), node))), Form::Lz4)?;
        Ok(Some(Node { kind: Kind::Directory { tree }, ..wanted.clone() }))
    }
}

/// One and its bytes, for something that is kept.
fn size_of(node: Option<&Node>) -> (u64, u64) {
    match node.map(|node| &node.kind) {
        Some(Kind::File { size, .. }) => (1, *size),
        Some(Kind::Link { .. } | Kind::Directory { .. }) => (1, 0),
        Some(Kind::LeftOut { .. }) | None => (0, 0),
    }
}
