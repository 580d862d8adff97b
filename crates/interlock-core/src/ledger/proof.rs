//! Proofs over the tree of RFC 6962: that an entry is in it, and that a later tree continues an earlier one.
//!
//! Which hashes a proof has, and what it proves, is decided here. Where hashes come from is not known here: whoever
//! makes a proof answers for complete subtrees, and whoever checks one needs nothing but the proof and two roots.

use core::fmt;

use super::tree::node_hash;
use crate::digest::Digest;

/// A complete subtree: `1 << level` leaves, from leaf `index << level` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subtree {
    /// Its height; a leaf has 0.
    pub level: u32,
    /// Which one of its height it is, from the left.
    pub index: u64,
}

/// Why there is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unprovable<F> {
    /// There is no such leaf in a tree of that size, or no such earlier tree.
    OutOfRange,
    /// The root of a subtree could not be had.
    Source(F),
}

impl<F: fmt::Display> fmt::Display for Unprovable<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unprovable::OutOfRange => f.write_str("out of range"),
            Unprovable::Source(fault) => fault.fmt(f),
        }
    }
}

impl<F: fmt::Debug + fmt::Display> std::error::Error for Unprovable<F> {}

/// The hashes that lead from a leaf to the root of a tree of a size, the leaf's neighbour first.
///
/// ```
/// use interlock_core::ledger::{Frontier, leaf_hash, prove_inclusion, verify_inclusion};
///
/// let leaves: Vec<_> = ["a", "b", "c"].iter().map(|entry| leaf_hash(entry.as_bytes())).collect();
/// let mut frontier = Frontier::default();
/// leaves.iter().for_each(|leaf| frontier.append(*leaf));
/// // The third leaf stands alone, so the proof for it is the root over the first two.
/// let mut two = Frontier::default();
/// leaves.iter().take(2).for_each(|leaf| two.append(*leaf));
/// let hashes = prove_inclusion(2, 3, |_subtree| Ok::<_, ()>(two.root()))?;
/// assert_eq!(hashes, [two.root()]);
/// assert!(verify_inclusion(leaves[2], 2, 3, &hashes, frontier.root()));
/// assert!(!verify_inclusion(leaves[1], 2, 3, &hashes, frontier.root()));
/// # Ok::<(), interlock_core::ledger::Unprovable<()>>(())
/// ```
pub fn prove_inclusion<F>(
    index: u64,
    size: u64,
    mut source: impl FnMut(Subtree) -> Result<Digest, F>,
) -> Result<Vec<Digest>, Unprovable<F>> {
    if index >= size {
        return Err(Unprovable::OutOfRange);
    }
    let (mut from, mut to, mut path) = (0_u64, size, Vec::new());
    while let Some(middle) = middle(from, to) {
        if index < middle {
            path.push((middle, to));
            to = middle;
        } else {
            path.push((from, middle));
            from = middle;
        }
    }
    roots(path, &mut source)
}

/// The hashes that lead from the root of a tree of size `old` to the root of one of size `new`.
///
/// From the empty tree, and from a tree to itself, there are none.
pub fn prove_consistency<F>(
    old: u64,
    new: u64,
    mut source: impl FnMut(Subtree) -> Result<Digest, F>,
) -> Result<Vec<Digest>, Unprovable<F>> {
    if old > new {
        return Err(Unprovable::OutOfRange);
    }
    if old == 0 {
        return Ok(Vec::new());
    }
    let (mut from, mut to, mut path) = (0_u64, new, Vec::new());
    while to != old {
        // Between `from < old < to` there is always a middle.
        let Some(middle) = middle(from, to) else { return Err(Unprovable::OutOfRange) };
        if old <= middle {
            path.push((middle, to));
            to = middle;
        } else {
            path.push((from, middle));
            from = middle;
        }
    }
    if from != 0 {
        // Otherwise what is left is the old tree, whose root the other side has.
        path.push((from, to));
    }
    roots(path, &mut source)
}

/// The root of the tree of a size.
pub fn tree_root<F>(size: u64, mut source: impl FnMut(Subtree) -> Result<Digest, F>) -> Result<Digest, F> {
    root_between(0, size, &mut source)
}

/// Whether the hashes prove that a leaf is in the tree with this size and root. As RFC 9162, section 2.1.3.2.
pub fn verify_inclusion(leaf: Digest, index: u64, size: u64, hashes: &[Digest], root: Digest) -> bool {
    let Some(mut last) = size.checked_sub(1).filter(|last| index <= *last) else { return false };
    let mut node = index;
    let mut hash = leaf;
    for sibling in hashes {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            hash = node_hash(*sibling, hash);
            // A node at the right edge stands for itself on every level on which it has no neighbour.
            let lone = if node & 1 == 1 { 0 } else { node.trailing_zeros() };
            (node, last) = (up(node, lone), up(last, lone));
        } else {
            hash = node_hash(hash, *sibling);
        }
        (node, last) = (up(node, 1), up(last, 1));
    }
    last == 0 && hash == root
}

/// Whether the hashes prove that the tree with the old size and root is the beginning of the new one. As RFC 9162,
/// section 2.1.4.2; the empty tree is the beginning of every tree.
pub fn verify_consistency(old_size: u64, old_root: Digest, new_size: u64, new_root: Digest, hashes: &[Digest]) -> bool {
    if old_size > new_size {
        return false;
    }
    if old_size == new_size {
        return hashes.is_empty() && old_root == new_root && (old_size != 0 || old_root == empty_root());
    }
    if old_size == 0 {
        return hashes.is_empty() && old_root == empty_root();
    }
    // A complete old tree is a node of the new one, and its root goes without saying.
    let mut steps = old_size.is_power_of_two().then_some(old_root).into_iter().chain(hashes.iter().copied());
    let Some(first) = steps.next() else { return false };
    let (node, last) = (old_size.saturating_sub(1), new_size.saturating_sub(1));
    let shared = node.trailing_ones();
    let (mut node, mut last) = (up(node, shared), up(last, shared));
    let (mut old, mut new) = (first, first);
    for sibling in steps {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            old = node_hash(sibling, old);
            new = node_hash(sibling, new);
            let lone = if node & 1 == 1 { 0 } else { node.trailing_zeros() };
            (node, last) = (up(node, lone), up(last, lone));
        } else {
            new = node_hash(new, sibling);
        }
        (node, last) = (up(node, 1), up(last, 1));
    }
    last == 0 && old == old_root && new == new_root
}

/// So many levels towards the root. All levels of a tree are fewer than the bits of its size.
fn up(node: u64, levels: u32) -> u64 {
    node.checked_shr(levels).unwrap_or(0)
}

fn empty_root() -> Digest {
    Digest::of_bytes(b"")
}

/// Where RFC 6962 divides the leaves `from..to`: the left part is the largest power of two that is not all of them.
fn middle(from: u64, to: u64) -> Option<u64> {
    let level = to.checked_sub(from)?.checked_sub(1)?.checked_ilog2()?;
    from.checked_add(1_u64.checked_shl(level)?)
}

/// The roots of ranges that were found from the top down, from the bottom up.
fn roots<F>(
    path: Vec<(u64, u64)>,
    source: &mut impl FnMut(Subtree) -> Result<Digest, F>,
) -> Result<Vec<Digest>, Unprovable<F>> {
    let found = path.into_iter().rev().map(|(from, to)| root_between(from, to, source));
    found.collect::<Result<_, F>>().map_err(Unprovable::Source)
}

/// The root over `from..to`, which is a complete subtree or reaches to the right edge: its complete subtrees, largest
/// first, are merged from the right.
fn root_between<F>(from: u64, to: u64, source: &mut impl FnMut(Subtree) -> Result<Digest, F>) -> Result<Digest, F> {
    let (mut start, mut subtrees) = (from, Vec::new());
    while let Some(level) = to.checked_sub(start).and_then(u64::checked_ilog2) {
        subtrees.push(source(Subtree { level, index: up(start, level) })?);
        start = start.saturating_add(1_u64.checked_shl(level).unwrap_or(u64::MAX));
    }
    let merged = subtrees.into_iter().rev().reduce(|right, left| node_hash(left, right));
    Ok(merged.unwrap_or_else(empty_root))
}
