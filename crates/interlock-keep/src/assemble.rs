//! From what a walk saw to objects: one for each directory, from the leaves to the root.
//!
//! A directory in and beneath which nothing changed has the object that it had.

use crate::content::Into;
use crate::fault::KeepFault;
use crate::gather::Walked;
use crate::index::{Figures, SeenDirectory};
use crate::node::{Kind, Node, write_tree};
use crate::pack::Form;
use crate::project::{joined, split};

/// Stores every directory that is not as it was known, and returns the project's own node.
pub(crate) fn assemble(walked: &mut Walked, into: Into<'_>) -> Result<(Node, Figures), KeepFault> {
    walked.touched.extend(walked.not_entered.keys().map(|path| split(path).0.to_vec()));
    // A directory comes before what lies in it, so beneath the last one nothing is left to do.
    while let Some(path) = walked.touched.pop_last() {
        let Some(mut directory) = walked.seen.directories.remove(&path) else { continue };
        directory.names.retain_mut(|seen| {
            if seen.node.is_directory() {
                let beneath = joined(&path, &seen.name);
                match (walked.seen.directories.get(&beneath), walked.not_entered.get(&beneath)) {
                    (Some(entered), _) => seen.node.clone_from(&entered.node),
                    (None, Some(Some(why))) => seen.node = Node::left_out(*why, true),
                    (None, Some(None) | None) => return false,
                }
            }
            true
        });
        store_names(&mut directory, into)?;
        let (parent, name) = split(&path);
        let above = walked.seen.directories.get(parent).filter(|_| !path.is_empty());
        if above.and_then(|above| above.find(name)).is_some_and(|known| known.node != directory.node) {
            walked.touched.insert(parent.to_vec());
        }
        walked.seen.directories.insert(path, directory);
    }
    let mut figures = Figures::default();
    let names = walked.seen.directories.values().flat_map(|directory| &directory.names);
    names.for_each(|seen| figures.count(&seen.node));
    let root = walked.seen.directories.get(&Vec::new()).map(|root| root.node.clone());
    root.map(|root| (root, figures)).ok_or_else(|| KeepFault::damaged("a walk without a root"))
}

/// Stores the object of a directory's names, and notes its digest.
fn store_names(directory: &mut SeenDirectory, into: Into<'_>) -> Result<(), KeepFault> {
    let bytes = write_tree(directory.names.iter().map(|seen| (&*seen.name, &seen.node)));
    let tree = Kind::Directory { tree: interlock_core::Digest::of_bytes(&bytes) };
    if directory.node.kind != tree {
        into.put(&bytes, Form::Lz4)?;
        directory.node.kind = tree;
    }
    Ok(())
}
