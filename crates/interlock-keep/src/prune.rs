//! Dropping old snapshots, and then whatever no snapshot needs.
//!
//! The order makes every moment safe to die in: first the log without the dropped snapshots takes the place of the old
//! one, then what the rest needs of a pack is written to a new one and synced, and only then the old pack goes. What is
//! left over by a crash is found and taken away the next time.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};

use interlock_core::Digest;

use crate::bytes::hex;
use crate::fault::KeepFault;
use crate::limits::Bounds;
use crate::log::{Snapshot, SnapshotId};
use crate::node::{Content, Kind};
use crate::pack::{self, Form, NewPack, Place};
use crate::store::Store;

/// Packs below this length are joined.
const SMALL_PACK_LEN: u64 = 4 << 20;
/// So many small packs may be there.
const SMALL_PACKS_MAX: usize = 16;

/// What pruning did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// The snapshots that are gone.
    pub dropped: Vec<SnapshotId>,
    /// Snapshots of which something is missing or damaged. They stay until they are too old.
    pub damaged: Vec<SnapshotId>,
    /// What the store took before.
    pub bytes_before: u64,
    /// What it takes now.
    pub bytes_after: u64,
}

/// Everything that some snapshots need.
#[derive(Debug, Default)]
struct Needed {
    objects: HashSet<Digest>,
    linked: HashSet<Digest>,
}

/// What one snapshot needs that the ones before it did not.
#[derive(Debug, Default)]
struct Added {
    objects: Vec<Digest>,
    linked: Vec<Digest>,
    bytes: u64,
    is_damaged: bool,
}

impl Store {
    /// Drops snapshots that are too old, and the oldest ones until the rest fits; then what nobody needs. Those to `hold`
    /// stay: calls that are running need them.
    pub fn prune(&mut self, bounds: &Bounds, hold: &[SnapshotId], now_ms: u64) -> Result<Pruned, KeepFault> {
        let _lock = self.lock()?;
        self.objects.refresh()?;
        let bytes_before = self.bytes()?;
        let snapshots = self.log.read()?.0;
        let linked_lens: HashMap<Digest, u64> = self.linked_lens()?;
        let (mut needed, mut bytes) = (Needed::default(), 0_u64);
        let (mut remaining, mut dropped, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
        for snapshot in snapshots.into_iter().rev() {
            let is_old = now_ms.saturating_sub(snapshot.time_ms) > bounds.age_ms_max;
            let is_full = bytes > bounds.bytes_max;
            let is_held = hold.contains(&snapshot.id);
            if !is_held && (is_old || is_full) {
                dropped.push(snapshot.id);
                continue;
            }
            let added = self.needs(&snapshot, &mut needed, &linked_lens);
            bytes = bytes.saturating_add(added.bytes);
            if !is_held && bytes > bounds.bytes_max {
                added.objects.iter().for_each(|digest| _ = needed.objects.remove(digest));
                added.linked.iter().for_each(|digest| _ = needed.linked.remove(digest));
                dropped.push(snapshot.id);
                continue;
            }
            if added.is_damaged {
                damaged.push(snapshot.id.clone());
            }
            remaining.push(snapshot);
        }
        remaining.reverse();
        dropped.reverse();
        if !dropped.is_empty() {
            self.log.replace(&remaining)?;
        }
        self.sweep(&needed)?;
        Ok(Pruned { dropped, damaged, bytes_before, bytes_after: self.bytes()? })
    }

    /// How many bytes the packs and linked files have.
    pub fn bytes(&mut self) -> Result<u64, KeepFault> {
        self.objects.refresh()?;
        let linked = self.linked_lens()?;
        let packs = self.objects.listed().iter().map(|(_, len)| *len);
        Ok(packs.chain(linked.into_values()).fold(0, u64::saturating_add))
    }

    fn linked_lens(&mut self) -> Result<HashMap<Digest, u64>, KeepFault> {
        Ok(self.objects.linked_lens()?.iter().copied().collect())
    }

    /// Adds what a snapshot needs to what others need.
    fn needs(&self, snapshot: &Snapshot, needed: &mut Needed, linked_lens: &HashMap<Digest, u64>) -> Added {
        let mut added = Added::default();
        if let Some(scope) = snapshot.scope {
            self.need(scope, needed, &mut added);
        }
        let mut trees = vec![snapshot.root];
        while let Some(tree) = trees.pop() {
            if !self.need(tree, needed, &mut added) {
                continue;
            }
            let Ok(names) = self.objects.tree(tree) else {
                added.is_damaged = true;
                continue;
            };
            for (_, node) in names {
                match node.kind {
                    Kind::Directory { tree } => trees.push(tree),
                    Kind::File { content: Content::Whole(digest), .. } => _ = self.need(digest, needed, &mut added),
                    Kind::File { content: Content::Pieces(digest), size } => {
                        if self.need(digest, needed, &mut added) {
                            let pieces = self.objects.pieces(digest, size);
                            added.is_damaged |= pieces.is_err();
                            pieces
                                .into_iter()
                                .flatten()
                                .for_each(|piece| _ = self.need(piece.digest, needed, &mut added));
                        }
                    }
                    Kind::File { content: Content::Linked(digest), .. } => {
                        if needed.linked.insert(digest) {
                            added.linked.push(digest);
                            added.is_damaged |= !linked_lens.contains_key(&digest);
                            added.bytes = added.bytes.saturating_add(linked_lens.get(&digest).copied().unwrap_or(0));
                        }
                    }
                    Kind::Link { .. } | Kind::LeftOut { .. } => {}
                }
            }
        }
        added
    }

    /// Adds one object; whether it was not among them.
    fn need(&self, digest: Digest, needed: &mut Needed, added: &mut Added) -> bool {
        let is_new = needed.objects.insert(digest);
        if is_new {
            added.objects.push(digest);
            match self.objects.place(digest) {
                Some(place) => added.bytes = added.bytes.saturating_add(u64::from(place.stored_len)),
                None => added.is_damaged = true,
            }
        }
        is_new
    }

    /// Takes away what is not needed, and joins small packs.
    fn sweep(&mut self, needed: &Needed) -> Result<(), KeepFault> {
        let mut of_pack: BTreeMap<u64, Vec<(Digest, Place)>> = BTreeMap::new();
        for (digest, place) in self.objects.places().filter(|(digest, _)| needed.objects.contains(digest)) {
            of_pack.entry(place.pack).or_default().push((digest, place));
        }
        let is_unneeded = |digest: &Digest| !needed.linked.contains(digest);
        let linked: Vec<Digest> = self.linked_lens()?.into_keys().filter(is_unneeded).collect();
        let going = self.packs_to_rewrite(&of_pack);
        if going.is_empty() && linked.is_empty() {
            return Ok(());
        }
        // What the last walk saw stands on what goes now.
        self.forget();
        let gone = self.rewrite(&going, &mut of_pack)?;
        let directory = self.objects.packs().to_owned();
        for number in gone {
            let path = directory.join(pack::file_name(number));
            fs::remove_file(&path).map_err(|source| KeepFault::write(&path, source))?;
        }
        for digest in linked {
            let path = self.objects.linked().join(hex(digest));
            fs::remove_file(&path).map_err(|source| KeepFault::write(&path, source))?;
        }
        self.objects.refresh()
    }

    /// Packs of which little is needed, that are small among many, or that hold what nobody has tried to compress. One
    /// whose table cannot be read stays: what is in it might be rescued by hand.
    fn packs_to_rewrite(&self, of_pack: &BTreeMap<u64, Vec<(Digest, Place)>>) -> BTreeSet<u64> {
        let damaged = self.objects.damaged_packs();
        let whole: Vec<(u64, u64)> =
            self.objects.listed().iter().filter(|(number, _)| !damaged.contains(number)).copied().collect();
        let small: Vec<u64> =
            whole.iter().filter(|(_, len)| *len < SMALL_PACK_LEN).map(|(number, _)| *number).collect();
        let mut going: BTreeSet<u64> = whole
            .iter()
            .filter(|(number, len)| {
                let objects = of_pack.get(number).map(Vec::as_slice).unwrap_or_default();
                let used =
                    objects.iter().fold(0, |sum: u64, (_, place)| sum.saturating_add(u64::from(place.stored_len)));
                let is_untried = objects.iter().any(|(_, place)| place.form == Form::RawFirst);
                is_untried || used.saturating_mul(2) < *len
            })
            .map(|(number, _)| *number)
            .collect();
        if small.len() > SMALL_PACKS_MAX {
            going.extend(small);
        }
        going
    }

    /// Writes what is needed of some packs to a new one; returns which of them can go.
    fn rewrite(
        &mut self,
        going: &BTreeSet<u64>,
        of_pack: &mut BTreeMap<u64, Vec<(Digest, Place)>>,
    ) -> Result<Vec<u64>, KeepFault> {
        let directory = self.objects.packs().to_owned();
        let new = NewPack::new(&directory, self.objects.next_number(), u64::MAX, self.project.path());
        let mut gone = Vec::new();
        for number in going {
            let mut objects = of_pack.remove(number).unwrap_or_default();
            objects.sort_unstable_by_key(|(_, place)| place.offset);
            let mut is_whole = true;
            for (digest, _) in objects {
                match self.objects.read(digest) {
                    Ok(bytes) => new.put(digest, &bytes, Form::Lz4)?,
                    // A pack with a damaged object stays: the others in it are still good.
                    Err(_) => is_whole = false,
                }
            }
            if is_whole {
                gone.push(*number);
            }
        }
        if let Some(finished) = new.finish_synced(u64::MAX)? {
            self.objects.add(finished);
        }
        let synced = File::open(&directory).and_then(|opened| opened.sync_all());
        synced.map_err(|source| KeepFault::write(&directory, source))?;
        Ok(gone)
    }
}
