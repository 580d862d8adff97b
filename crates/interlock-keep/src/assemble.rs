//! From what a walk saw to objects: one for each directory, from the leaves to the root.

use crate::content::Into;
use crate::fault::KeepFault;
use crate::index::Seen;
use crate::node::{Kind, Node, write_tree};
use crate::pack::Form;
use crate::project::joined;
use crate::walk::Walked;

/// What a tree amounts to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) nodes: u64,
    pub(crate) bytes: u64,
    pub(crate) left_out: u64,
}

/// Stores every directory that the last walk did not see as it is now, and returns the project's own node.
pub(crate) fn assemble(walked: &mut Walked, before: &Seen, into: Into<'_>) -> Result<(Node, Figures), KeepFault> {
    let mut paths: Vec<Vec<u8>> = walked.seen.directories.keys().cloned().collect();
    // A directory comes before what lies in it, so backwards it comes after.
    paths.sort_unstable_by(|left, right| right.cmp(left));
    let mut figures = Figures::default();
    let mut root = None;
    for path in paths {
        let Some(mut directory) = walked.seen.directories.remove(&path) else { continue };
        directory.names.retain_mut(|seen| {
            if seen.node.is_directory() {
                let beneath = joined(&path, &seen.name);
                match (walked.seen.directories.get(&beneath), walked.not_entered.get(&beneath)) {
                    (Some(entered), _) => seen.node = entered.node.clone(),
                    (None, Some(Some(why))) => seen.node = Node::left_out(*why, true),
                    (None, Some(None) | None) => return false,
                }
            }
            figures.count(&seen.node);
            true
        });
        let bytes = write_tree(directory.names.iter().map(|seen| (&*seen.name, &seen.node)));
        let tree = interlock_core::Digest::of_bytes(&bytes);
        let known = before.directories.get(&path).map(|known| &known.node.kind);
        if known != Some(&Kind::Directory { tree }) {
            into.put(&bytes, Form::Lz4)?;
        }
        directory.node.kind = Kind::Directory { tree };
        if path.is_empty() {
            root = Some(directory.node.clone());
        }
        walked.seen.directories.insert(path, directory);
    }
    root.map(|root| (root, figures)).ok_or_else(|| KeepFault::damaged("a walk without a root"))
}

impl Figures {
    fn count(&mut self, node: &Node) {
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
