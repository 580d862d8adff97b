//! All objects of a store: which there are, where each lies, and its bytes, checked.
//!
//! The table of all packs is read when it is first needed. A tree that did not change needs it not at all.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use interlock_core::Digest;

use crate::bytes::{hex, unhex};
use crate::fault::KeepFault;
use crate::index::Stamp;
use crate::node::{Content, Piece, Tree, read_pieces, read_tree};
use crate::pack::{self, Finished, Place};
use crate::walk::now_ns;

/// What takes the parts of a file, each with its offset.
pub(crate) type Take<'a, E> = dyn FnMut(u64, &[u8]) -> Result<(), E> + 'a;

/// The objects of one store.
#[derive(Debug)]
pub(crate) struct Objects {
    packs: PathBuf,
    linked: PathBuf,
    listed: Listing<u64>,
    linked_listed: Listing<Digest>,
    table: OnceLock<Table>,
    opened: Mutex<Option<(u64, Arc<File>)>>,
}

#[derive(Debug, Default)]
struct Table {
    places: HashMap<Digest, Place>,
    damaged: Vec<u64>,
}

impl Objects {
    pub(crate) fn new(store: &Path) -> Objects {
        Objects {
            packs: store.join("packs"),
            linked: store.join("linked"),
            listed: Listing::default(),
            linked_listed: Listing::default(),
            table: OnceLock::new(),
            opened: Mutex::new(None),
        }
    }

    pub(crate) fn packs(&self) -> &Path {
        &self.packs
    }

    pub(crate) fn linked(&self) -> &Path {
        &self.linked
    }

    /// Looks which packs there are: another process may have added some, or taken some away.
    pub(crate) fn refresh(&mut self) -> Result<(), KeepFault> {
        let Some(listed) = self.listed.again(&self.packs, pack::number_of)? else { return Ok(()) };
        let before = std::mem::replace(&mut self.listed.rows, listed);
        if before == self.listed.rows {
            return Ok(());
        }
        let is_there = |packs: &[(u64, u64)], pack: &(u64, u64)| packs.binary_search(pack).is_ok();
        let is_grown = before.iter().all(|pack| is_there(&self.listed.rows, pack));
        let table = if is_grown { self.table.take() } else { None };
        self.table = OnceLock::new();
        if let Some(mut table) = table {
            let added = self.listed.rows.iter().filter(|pack| !is_there(&before, pack));
            added.for_each(|(number, _)| self.load_into(&mut table, *number));
            let _ = self.table.set(table);
        }
        self.opened = Mutex::new(None);
        Ok(())
    }

    /// The linked files there are, by digest, with their lengths.
    pub(crate) fn linked_lens(&mut self) -> Result<&[(Digest, u64)], KeepFault> {
        if let Some(listed) = self.linked_listed.again(&self.linked, unhex)? {
            self.linked_listed.rows = listed;
        }
        Ok(&self.linked_listed.rows)
    }

    /// The packs there are, by number, with their lengths.
    pub(crate) fn listed(&self) -> &[(u64, u64)] {
        &self.listed.rows
    }

    /// Packs whose tables cannot be read.
    pub(crate) fn damaged_packs(&self) -> &[u64] {
        &self.table().damaged
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.listed.rows.last().map_or(1, |(number, _)| number.saturating_add(1))
    }

    /// Takes in a pack that this process has written.
    pub(crate) fn add(&mut self, finished: Finished) {
        self.listed.rows.push((finished.number, finished.len));
        if let Some(table) = self.table.get_mut() {
            table.places.extend(finished.rows);
        }
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let mut table = Table::default();
            self.listed.rows.iter().for_each(|(number, _)| self.load_into(&mut table, *number));
            table
        })
    }

    /// A pack that cannot be read adds nothing: what was in it is stored again, or found missing.
    fn load_into(&self, table: &mut Table, number: u64) {
        let file = File::open(self.packs.join(pack::file_name(number)));
        match file.ok().and_then(|file| pack::read_table(&file, number)) {
            Some(places) => table.places.extend(places),
            None => table.damaged.push(number),
        }
    }

    pub(crate) fn place(&self, digest: Digest) -> Option<Place> {
        self.table().places.get(&digest).copied()
    }

    /// Every object, with its place.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Digest, Place)> {
        self.table().places.iter().map(|(digest, place)| (*digest, *place))
    }

    /// The bytes of an object, checked against its digest.
    pub(crate) fn read(&self, digest: Digest) -> Result<Vec<u8>, KeepFault> {
        let missing = || KeepFault::damaged(format!("object {} is missing", hex(digest)));
        let place = self.place(digest).ok_or_else(missing)?;
        let name = pack::file_name(place.pack);
        let file = self.open_pack(place.pack).map_err(|source| KeepFault::read(self.packs.join(&name), source))?;
        pack::read_object(&file, place, digest)
            .ok_or_else(|| KeepFault::damaged(format!("object {} in `{name}` is not what was stored", hex(digest))))
    }

    fn open_pack(&self, number: u64) -> io::Result<Arc<File>> {
        let mut opened = self.opened.lock().map_err(|_| io::Error::other("another thread failed"))?;
        if let Some((_, file)) = opened.as_ref().filter(|(last, _)| *last == number) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(self.packs.join(pack::file_name(number)))?);
        *opened = Some((number, Arc::clone(&file)));
        Ok(file)
    }

    /// The names of a directory.
    pub(crate) fn tree(&self, digest: Digest) -> Result<Tree, KeepFault> {
        read_tree(&self.read(digest)?).ok_or_else(|| KeepFault::damaged(format!("{} is no directory", hex(digest))))
    }

    /// The pieces of a file.
    pub(crate) fn pieces(&self, digest: Digest, size: u64) -> Result<Vec<Piece>, KeepFault> {
        read_pieces(&self.read(digest)?, size)
            .ok_or_else(|| KeepFault::damaged(format!("{} lists no pieces", hex(digest))))
    }

    /// Hands over the bytes of a file from its beginning to its end, each part with its offset; what is skipped is zero.
    /// Every part is checked before it is handed over, but for linked ones, which are checked as a whole beforehand.
    pub(crate) fn each_part(
        &self,
        size: u64,
        content: Content,
        take: &mut Take<'_, KeepFault>,
    ) -> Result<(), KeepFault> {
        match content {
            Content::Whole(digest) => {
                let bytes = self.read(digest)?;
                if u64::try_from(bytes.len()) != Ok(size) {
                    return Err(KeepFault::damaged(format!("object {} has another length", hex(digest))));
                }
                take(0, &bytes)
            }
            Content::Pieces(digest) => {
                for piece in self.pieces(digest, size)? {
                    let bytes = self.read(piece.digest)?;
                    if u32::try_from(bytes.len()) != Ok(piece.len) {
                        return Err(KeepFault::damaged(format!("object {} has another length", hex(piece.digest))));
                    }
                    take(piece.offset, &bytes)?;
                }
                Ok(())
            }
            Content::Linked(digest) => crate::linked::each_part(&self.linked, digest, size, take),
        }
    }
}

/// The files in a directory of the store by what their names stand for, with their lengths, in order. They are listed again
/// if the directory changed, or may have changed within the tick in which they were listed.
#[derive(Debug)]
struct Listing<N> {
    rows: Vec<(N, u64)>,
    /// What the directory was, and when it was listed.
    as_of: Option<(Stamp, i64)>,
}

impl<N> Default for Listing<N> {
    fn default() -> Listing<N> {
        Listing { rows: Vec::new(), as_of: None }
    }
}

impl<N: Ord> Listing<N> {
    /// The files as they are now; nothing if they are as they were.
    fn again(
        &mut self,
        directory: &Path,
        read: impl Fn(&str) -> Option<N>,
    ) -> Result<Option<Vec<(N, u64)>>, KeepFault> {
        let fault = |source: io::Error| KeepFault::read(directory, source);
        let listed_ns = now_ns();
        let stamp = Stamp::of(&rustix::fs::stat(directory).map_err(|why| fault(why.into()))?);
        if self.as_of.is_some_and(|(known, listed_ns)| known == stamp && stamp.is_settled(listed_ns)) {
            return Ok(None);
        }
        let mut rows = Vec::new();
        for entry in fs::read_dir(directory).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            if let Some(name) = entry.file_name().to_str().and_then(&read) {
                rows.push((name, entry.metadata().map_err(fault)?.len()));
            }
        }
        rows.sort_unstable();
        self.as_of = Some((stamp, listed_ns));
        Ok(Some(rows))
    }
}
