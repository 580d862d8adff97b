//! Proofs from a store: the tree is kept in blocks of 256 leaves, of which only the roots stay in memory.
//!
//! A million entries take 128 KiB. A proof hashes the entries of two blocks again and merges the rest from what is
//! remembered; what the store says is compared with what was remembered, with the head, and with what was signed, so
//! that no proof leaves here for a ledger that was changed. Signing is not known here: a root that was not signed yet
//! is given without a note.

use interlock_core::Digest;
use interlock_core::ledger::{
    Claim, Frontier, Proof, Subtree, Unprovable, leaf_hash, prove_consistency, prove_inclusion, tree_root,
};

use super::checkpoint::SignedCheckpoint;
use super::store::{Reader, StoreFault};

/// How many leaves a block has.
pub const BLOCK_LEN: u64 = 1 << BLOCK_LEVEL;
const BLOCK_LEVEL: u32 = 8;
/// For how many more blocks room is made at a time.
const GROWTH_BLOCKS: usize = 1024;

/// Why there is no proof.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    /// A size was asked for that the ledger has not reached.
    #[error("the ledger has {head} entries, so there is no tree of size {size}")]
    Beyond {
        /// What was asked for.
        size: u64,
        /// How many entries there are.
        head: u64,
    },
    /// There is no such entry in a tree of that size.
    #[error("entry {index} is not among the first {size} entries, which are counted from 0")]
    NoSuchEntry {
        /// What was asked for.
        index: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The entry is not under the signed checkpoint yet.
    #[error(
        "entry {index} is not under the signed checkpoint, which covers {signed} entries; while a server runs it \
         follows within a second, or name a size"
    )]
    NotSigned {
        /// The entry.
        index: u64,
        /// How many entries the checkpoint covers.
        signed: u64,
    },
    /// An older tree cannot be larger than a newer one.
    #[error("the older tree has {old} entries and the newer one {size}")]
    Backwards {
        /// The size of the older tree.
        old: u64,
        /// The size of the newer tree.
        size: u64,
    },
    /// The entries are not those that were hashed, recorded or signed before.
    #[error("{0}")]
    Damaged(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

/// The proof that an entry is in the tree of a size; of the signed checkpoint's, if none is named, or else of all.
///
/// [`Proof::to_json`] of it is what surfaces answer.
pub fn prove_entry(
    cache: &mut TreeCache,
    reader: &mut dyn Reader,
    signed: Option<&SignedCheckpoint>,
    index: u64,
    size: Option<u64>,
) -> Result<Proof, ProofFault> {
    let sealed = sealed(reader, signed)?;
    if let (None, Some(signed)) = (size, sealed.filter(|sealed| index >= *sealed)) {
        return Err(ProofFault::NotSigned { index, signed });
    }
    let size = match size.or(sealed) {
        Some(size) => size,
        None => reader.head()?.size(),
    };
    let proof = cache.inclusion(reader, index, size)?;
    cache.under_checkpoint(proof, signed)
}

/// The proof that the tree of a size continues the one of size `old`; of the signed checkpoint's size, if none is
/// named, or else of all entries.
///
/// [`Proof::to_json`] of it is what surfaces answer.
pub fn prove_continuation(
    cache: &mut TreeCache,
    reader: &mut dyn Reader,
    signed: Option<&SignedCheckpoint>,
    old: u64,
    size: Option<u64>,
) -> Result<Proof, ProofFault> {
    let size = match size.or(sealed(reader, signed)?) {
        Some(size) => size,
        None => reader.head()?.size(),
    };
    let proof = cache.consistency(reader, old, size)?;
    cache.under_checkpoint(proof, signed)
}

/// The size that was signed. The checkpoint was read first, so the store cannot be behind it unless it lost something.
fn sealed(reader: &mut dyn Reader, signed: Option<&SignedCheckpoint>) -> Result<Option<u64>, ProofFault> {
    let Some(size) = signed.map(|signed| signed.checkpoint.size) else { return Ok(None) };
    let head = reader.head()?.size();
    if size > head {
        let reason = format!("the checkpoint covers {size} entries, and the store holds {head}");
        return Err(ProofFault::Damaged(reason));
    }
    Ok(Some(size))
}

/// The roots of the complete blocks of one ledger, as far as they were needed.
#[derive(Debug, Default)]
pub struct TreeCache {
    blocks: Vec<Digest>,
}

impl TreeCache {
    /// Remembers nothing yet.
    pub fn new() -> TreeCache {
        TreeCache::default()
    }

    /// How many entries lie under what is remembered.
    pub fn covered(&self) -> u64 {
        count(self.blocks.len()).saturating_mul(BLOCK_LEN)
    }

    /// Hashes the complete blocks that are not remembered yet, at most so many; whether none is left.
    ///
    /// Proofs do that by themselves. This is for whoever would rather do it beforehand, a little at a time.
    pub fn extend(&mut self, reader: &mut dyn Reader, blocks_max: u64) -> Result<bool, ProofFault> {
        let complete = reader.head()?.size() >> BLOCK_LEVEL;
        let until = complete.min(count(self.blocks.len()).saturating_add(blocks_max));
        self.remember(reader, until)?;
        Ok(until == complete)
    }

    /// The proof that an entry is in the tree of a size, without a note.
    pub fn inclusion(&mut self, reader: &mut dyn Reader, index: u64, size: u64) -> Result<Proof, ProofFault> {
        if index >= size {
            return Err(ProofFault::NoSuchEntry { index, size });
        }
        self.checked(reader, size, &[index >> BLOCK_LEVEL], |tree| {
            let leaf_hash = tree.root_of(Subtree { level: 0, index })?;
            let hashes = prove_inclusion(index, size, |subtree| tree.root_of(subtree));
            Ok((Claim::Inclusion { index, leaf_hash }, hashes))
        })
    }

    /// The proof that the tree of a size continues the one of size `old`, without a note.
    pub fn consistency(&mut self, reader: &mut dyn Reader, old: u64, size: u64) -> Result<Proof, ProofFault> {
        if old > size {
            return Err(ProofFault::Backwards { old, size });
        }
        self.checked(reader, size, &[old >> BLOCK_LEVEL], |tree| {
            let old_root = tree_root(old, |subtree| tree.root_of(subtree))?;
            let hashes = prove_consistency(old, size, |subtree| tree.root_of(subtree));
            Ok((Claim::Consistency { old_size: old, old_root }, hashes))
        })
    }

    /// Puts the note to a proof for its size. Another root than the signed one is no proof.
    fn under_checkpoint(&mut self, mut proof: Proof, signed: Option<&SignedCheckpoint>) -> Result<Proof, ProofFault> {
        let Some(signed) = signed.filter(|signed| signed.checkpoint.size == proof.size) else { return Ok(proof) };
        if signed.checkpoint.root != proof.root {
            let size = proof.size;
            let reason = format!("the first {size} entries do not have the root the checkpoint signed");
            return Err(self.damaged(reason));
        }
        proof.checkpoint = Some(signed.note.clone());
        Ok(proof)
    }

    /// Makes a proof and looks whether it holds, in the tree of a size that has these blocks opened.
    fn checked(
        &mut self,
        reader: &mut dyn Reader,
        size: u64,
        opened: &[u64],
        make: impl FnOnce(&OpenTree<'_>) -> Result<(Claim, Result<Vec<Digest>, Unprovable<ProofFault>>), ProofFault>,
    ) -> Result<Proof, ProofFault> {
        let head = reader.head()?;
        if size > head.size() {
            return Err(ProofFault::Beyond { size, head: head.size() });
        }
        if self.covered() > head.size() {
            return Err(self.damaged(format!("there are {} entries, fewer than there were", head.size())));
        }
        self.remember(reader, size >> BLOCK_LEVEL)?;
        let mut tree = OpenTree { blocks: &self.blocks, opened: Vec::new() };
        let last = size >> BLOCK_LEVEL;
        for block in opened.iter().copied().filter(|block| *block != last).chain([last]) {
            let start = block.saturating_mul(BLOCK_LEN);
            let leaves = leaves(reader, start, size.saturating_sub(start).min(BLOCK_LEN))?;
            let remembered = usize::try_from(block).ok().and_then(|block| self.blocks.get(block));
            let changed =
                remembered.is_some_and(|root| count(leaves.len()) == BLOCK_LEN && root_over(&leaves) != *root);
            if changed {
                let reason = format!("the entries from {start} on are not those that were hashed before");
                return Err(self.damaged(reason));
            }
            tree.opened.push((block, leaves));
        }
        let root = tree_root(size, |subtree| tree.root_of(subtree))?;
        let (claim, hashes) = make(&tree)?;
        let hashes = hashes.map_err(|unprovable| match unprovable {
            Unprovable::OutOfRange => ProofFault::Damaged("there is no such proof".to_owned()),
            Unprovable::Source(fault) => fault,
        })?;
        let proof = Proof { claim, size, root, hashes, checkpoint: None };
        if size == head.size() && root != head.root() {
            return Err(self.damaged("the entries do not have the root of the head".to_owned()));
        }
        if !proof.holds() {
            return Err(self.damaged("the proof does not hold".to_owned()));
        }
        Ok(proof)
    }

    /// Remembers the blocks before an index of blocks, all of which must be complete in the store.
    fn remember(&mut self, reader: &mut dyn Reader, until: u64) -> Result<(), ProofFault> {
        while count(self.blocks.len()) < until {
            let start = count(self.blocks.len()).saturating_mul(BLOCK_LEN);
            let root = root_over(&leaves(reader, start, BLOCK_LEN)?);
            if self.blocks.len() == self.blocks.capacity() {
                self.blocks.reserve_exact(GROWTH_BLOCKS);
            }
            self.blocks.push(root);
        }
        Ok(())
    }

    /// Whatever did not fit is forgotten, so that the next proof begins from the store.
    fn damaged(&mut self, reason: String) -> ProofFault {
        self.blocks = Vec::new();
        ProofFault::Damaged(reason)
    }
}

/// The remembered blocks, and the leaves of those that a proof leads into.
struct OpenTree<'a> {
    blocks: &'a [Digest],
    opened: Vec<(u64, Vec<Digest>)>,
}

impl OpenTree<'_> {
    fn root_of(&self, subtree: Subtree) -> Result<Digest, ProofFault> {
        let Subtree { level, index } = subtree;
        let below = |nodes: &[Digest], first: u64, levels: u32| {
            let (first, len) = (usize::try_from(first).ok()?, 1_usize.checked_shl(levels)?);
            nodes.get(first..first.checked_add(len)?).map(root_over)
        };
        let found = match level.checked_sub(BLOCK_LEVEL) {
            Some(levels) => below(self.blocks, index.checked_shl(levels).unwrap_or(u64::MAX), levels),
            None => {
                let first = index.checked_shl(level).unwrap_or(u64::MAX);
                let opened = self.opened.iter().find(|(block, _)| *block == first >> BLOCK_LEVEL);
                opened.and_then(|(_, leaves)| below(leaves, first & (BLOCK_LEN.saturating_sub(1)), level))
            }
        };
        found.ok_or_else(|| ProofFault::Damaged(format!("the tree has no node {index} on level {level}")))
    }
}

/// The hashes of entries, all of which must be there.
fn leaves(reader: &mut dyn Reader, from: u64, len: u64) -> Result<Vec<Digest>, ProofFault> {
    let entries = reader.entries(from, usize::try_from(len).unwrap_or(usize::MAX))?;
    if count(entries.len()) != len {
        let missing = from.saturating_add(count(entries.len()));
        return Err(ProofFault::Damaged(format!("entry {missing} is missing")));
    }
    Ok(entries.iter().map(|bytes| leaf_hash(bytes)).collect())
}

/// The root over neighbours of one level.
fn root_over(nodes: &[Digest]) -> Digest {
    let mut frontier = Frontier::default();
    nodes.iter().for_each(|node| frontier.append(*node));
    frontier.root()
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
