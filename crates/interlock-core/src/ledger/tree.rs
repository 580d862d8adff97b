//! The Merkle tree of RFC 6962 over the entries, as far as appending needs it: the roots of its complete subtrees.

use crate::digest::Digest;

/// The hash of an entry.
pub fn leaf_hash(entry: &[u8]) -> Digest {
    Digest::of_node(0, &[entry])
}

pub(super) fn node_hash(left: Digest, right: Digest) -> Digest {
    Digest::of_node(1, &[&left.bytes(), &right.bytes()])
}

/// The right edge of a tree: its size and the roots of its complete subtrees, largest first.
///
/// ```
/// use interlock_core::ledger::{Frontier, leaf_hash};
///
/// let mut frontier = Frontier::default();
/// for entry in ["", "\0", "\x10"] {
///     frontier.append(leaf_hash(entry.as_bytes()));
/// }
/// let root = "sha256:aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77";
/// assert_eq!(frontier.root().to_string(), root);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    roots: Vec<Digest>,
}

impl Frontier {
    /// How many leaves there are.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf.
    pub fn append(&mut self, leaf: Digest) {
        let mut root = leaf;
        // As many complete subtrees merge as the size has one-bits at its end.
        for _ in 0..self.size.trailing_ones() {
            let Some(left) = self.roots.pop() else { break };
            root = node_hash(left, root);
        }
        self.roots.push(root);
        self.size = self.size.saturating_add(1);
    }

    /// The root of the tree.
    pub fn root(&self) -> Digest {
        let merged = self.roots.iter().rev().copied().reduce(|right, left| node_hash(left, right));
        merged.unwrap_or_else(|| Digest::of_bytes(b""))
    }

    /// The frontier as it is stored: the size, then the roots.
    pub fn to_bytes(&self) -> Vec<u8> {
        let roots = self.roots.iter().flat_map(|root| root.bytes());
        self.size.to_be_bytes().into_iter().chain(roots).collect()
    }

    /// Reads a stored frontier.
    pub fn from_bytes(bytes: &[u8]) -> Option<Frontier> {
        let (size, roots) = bytes.split_first_chunk::<8>()?;
        let size = u64::from_be_bytes(*size);
        let chunks = roots.chunks_exact(32);
        if !chunks.remainder().is_empty() {
            return None;
        }
        let roots: Vec<Digest> = chunks.filter_map(|chunk| Some(Digest::from_bytes(chunk.try_into().ok()?))).collect();
        (u32::try_from(roots.len()).ok()? == size.count_ones()).then_some(Frontier { size, roots })
    }
}
