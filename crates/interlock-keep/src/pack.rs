//! Packs: many objects in one file, with a table at its end.
//!
//! A pack is written once, under a temporary name, and renamed when it is whole; from then on it never changes. So there
//! is no tail to repair after a crash: a pack is there with all its objects, or not at all. The table has a digest of its
//! own, and every object is hashed when it is read.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use interlock_core::Digest;

use crate::bytes::{Unread, Written};
use crate::fault::KeepFault;

const MARK: &[u8; 8] = b"ilkpack1";
/// The place of the table, its length, and its digest.
const TRAILER_LEN: usize = 8 + 8 + 32;
/// One row: digest, offset, stored length, length, form.
const ROW_LEN: usize = 32 + 8 + 4 + 4 + 1;
/// How much is gathered before it is written.
const BUFFER_LEN: usize = 1 << 20;
/// A longer pack is not synced before it gets its name: that would take longer than copying the tree.
const SYNCED_LEN_MAX: u64 = 16 << 20;
/// What is shorter gains nothing by compression.
const COMPRESSED_LEN_MIN: usize = 128;
/// No object is longer: pieces are 1 MiB, and no directory has so many names.
const OBJECT_LEN_MAX: u32 = 1 << 30;

/// How an object's bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are: compressing would not have made them shorter.
    Raw,
    /// As a block of LZ4.
    Lz4,
    /// As they are: nobody has tried yet.
    RawFirst,
}

/// Where an object lies in a pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) pack: u64,
    pub(crate) offset: u64,
    pub(crate) stored_len: u32,
    pub(crate) len: u32,
    pub(crate) form: Form,
}

/// The file name of a pack.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:016x}.pack")
}

/// The number of a pack, by its file name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".pack")?;
    u64::from_str_radix(digits, 16).ok().filter(|number| file_name(*number) == name)
}

/// Reads the table of a pack; `None` if it is damaged.
pub(crate) fn read_table(file: &File, number: u64) -> Option<Vec<(Digest, Place)>> {
    let mut file = file;
    let mut mark = [0; MARK.len()];
    file.read_exact(&mut mark).ok()?;
    let back = i64::try_from(TRAILER_LEN).ok()?.checked_neg()?;
    let trailer_at = file.seek(SeekFrom::End(back)).ok()?;
    let mut trailer = [0; TRAILER_LEN];
    file.read_exact(&mut trailer).ok()?;
    let mut from = Unread(&trailer);
    let (table_at, table_len, digest) = (from.u64()?, from.u64()?, from.digest()?);
    if mark != *MARK || table_at.checked_add(table_len)? != trailer_at {
        return None;
    }
    let mut table = vec![0; usize::try_from(table_len).ok()?];
    file.read_exact_at(&mut table, table_at).ok()?;
    if Digest::of_bytes(&table) != digest {
        return None;
    }
    let mut places = Vec::new();
    for row in table.chunks(ROW_LEN) {
        let mut from = Unread(row);
        let (digest, offset, stored_len, len) = (from.digest()?, from.u64()?, from.u32()?, from.u32()?);
        let form = match from.u8()? {
            0 => Form::Raw,
            1 => Form::Lz4,
            2 => Form::RawFirst,
            _ => return None,
        };
        if offset.checked_add(u64::from(stored_len))? > table_at || len > OBJECT_LEN_MAX {
            return None;
        }
        places.push((digest, Place { pack: number, offset, stored_len, len, form }));
    }
    Some(places)
}

/// Reads an object and checks it against its digest; `None` if it is not what was stored.
pub(crate) fn read_object(file: &File, place: Place, digest: Digest) -> Option<Vec<u8>> {
    let mut stored = vec![0; usize::try_from(place.stored_len).ok()?];
    file.read_exact_at(&mut stored, place.offset).ok()?;
    let bytes = match place.form {
        Form::Raw | Form::RawFirst => stored,
        Form::Lz4 => {
            let mut bytes = vec![0; usize::try_from(place.len).ok()?];
            let len = lz4_flex::block::decompress_into(&stored, &mut bytes).ok()?;
            bytes.truncate(len);
            bytes
        }
    };
    (Digest::of_bytes(&bytes) == digest).then_some(bytes)
}

/// A pack that is being written, by several threads.
#[derive(Debug)]
pub(crate) struct NewPack {
    number: u64,
    temporary: PathBuf,
    path: PathBuf,
    bytes_max: u64,
    project: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<File>>,
    buffer: Vec<u8>,
    written: u64,
    rows: Vec<(Digest, Place)>,
    known: HashSet<Digest>,
}

/// A pack that is in place.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) number: u64,
    pub(crate) len: u64,
    pub(crate) rows: Vec<(Digest, Place)>,
}

impl NewPack {
    /// A pack that will be `number` in a directory. Nothing is written until something is put into it.
    pub(crate) fn new(directory: &Path, number: u64, bytes_max: u64, project: &Path) -> NewPack {
        NewPack {
            number,
            temporary: directory.join("new.tmp"),
            path: directory.join(file_name(number)),
            bytes_max,
            project: project.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Whether an object was put here already.
    pub(crate) fn holds(&self, digest: Digest) -> bool {
        self.state.lock().is_ok_and(|state| state.known.contains(&digest))
    }

    /// Puts an object here, unless it is here already.
    pub(crate) fn put(&self, digest: Digest, bytes: &[u8], wanted: Form) -> Result<(), KeepFault> {
        if self.holds(digest) {
            return Ok(());
        }
        let compressed = match wanted {
            Form::Lz4 => compressed(bytes),
            Form::Raw | Form::RawFirst => None,
        };
        let (stored, form) = match (&compressed, wanted) {
            (Some(shorter), _) => (shorter.as_slice(), Form::Lz4),
            (None, Form::RawFirst) => (bytes, Form::RawFirst),
            (None, Form::Raw | Form::Lz4) => (bytes, Form::Raw),
        };
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).ok().filter(|len| *len <= OBJECT_LEN_MAX);
        let (Some(stored_len), Some(len)) = (len(stored), len(bytes)) else {
            return Err(KeepFault::TooMuch { project: self.project.clone(), max: u64::from(OBJECT_LEN_MAX) });
        };
        let mut state = self.state.lock().map_err(|_| self.poisoned())?;
        if !state.known.insert(digest) {
            return Ok(());
        }
        let is_long = stored.len() >= BUFFER_LEN;
        let (offset, file) =
            if is_long { self.reserve(&mut state, stored_len)? } else { (self.append(&mut state, stored)?, None) };
        state.rows.push((digest, Place { pack: self.number, offset, stored_len, len, form }));
        if state.end() > self.bytes_max {
            return Err(KeepFault::TooMuch { project: self.project.clone(), max: self.bytes_max });
        }
        drop(state);
        // Others may write at the same time.
        file.map_or(Ok(()), |file| file.write_all_at(stored, offset).map_err(|source| self.unwritten(source)))
    }

    /// Leaves room for bytes, and says where.
    fn reserve(&self, state: &mut State, len: u32) -> Result<(u64, Option<Arc<File>>), KeepFault> {
        self.append(state, &[])?;
        self.flush(state)?;
        let offset = state.written;
        state.written = offset.saturating_add(u64::from(len));
        Ok((offset, state.file.clone()))
    }

    fn poisoned(&self) -> KeepFault {
        KeepFault::write(&self.temporary, std::io::Error::other("another thread failed"))
    }

    /// Appends bytes, and says where they are.
    fn append(&self, state: &mut State, bytes: &[u8]) -> Result<u64, KeepFault> {
        if state.file.is_none() {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            state.file = Some(Arc::new(options.open(&self.temporary).map_err(|source| self.unwritten(source))?));
            state.buffer.extend_from_slice(MARK);
        }
        let offset = state.end();
        state.buffer.extend_from_slice(bytes);
        if state.buffer.len() >= BUFFER_LEN {
            self.flush(state)?;
        }
        Ok(offset)
    }

    fn flush(&self, state: &mut State) -> Result<(), KeepFault> {
        if let Some(file) = &state.file {
            file.write_all_at(&state.buffer, state.written).map_err(|source| self.unwritten(source))?;
        }
        state.written = state.end();
        state.buffer.clear();
        Ok(())
    }

    fn unwritten(&self, source: std::io::Error) -> KeepFault {
        KeepFault::write(&self.temporary, source)
    }

    /// Writes the table and gives the pack its name; `None` if nothing was put here.
    ///
    /// A pack of usual length is synced before it has its name: after a power cut, if it can be seen, it is whole.
    pub(crate) fn finish(self) -> Result<Option<Finished>, KeepFault> {
        self.finish_synced(SYNCED_LEN_MAX)
    }

    /// The same, synced unless it is longer.
    pub(crate) fn finish_synced(self, len_max: u64) -> Result<Option<Finished>, KeepFault> {
        let mut state = std::mem::take(&mut *self.state.lock().map_err(|_| self.poisoned())?);
        if state.file.is_none() {
            return Ok(None);
        }
        let mut table = Written::default();
        for (digest, place) in &state.rows {
            table.digest(*digest);
            table.u64(place.offset);
            table.u32(place.stored_len);
            table.u32(place.len);
            table.u8(match place.form {
                Form::Raw => 0,
                Form::Lz4 => 1,
                Form::RawFirst => 2,
            });
        }
        let mut trailer = Written::default();
        let table_len = u64::try_from(table.0.len()).unwrap_or(u64::MAX);
        let table_at = self.append(&mut state, &table.0)?;
        trailer.u64(table_at);
        trailer.u64(table_len);
        trailer.digest(Digest::of_bytes(&table.0));
        self.append(&mut state, &trailer.0)?;
        self.flush(&mut state)?;
        if let Some(file) = state.file.take().filter(|_| state.written <= len_max) {
            file.sync_data().map_err(|source| self.unwritten(source))?;
        }
        std::fs::rename(&self.temporary, &self.path).map_err(|source| KeepFault::write(&self.path, source))?;
        Ok(Some(Finished { number: self.number, len: state.written, rows: std::mem::take(&mut state.rows) }))
    }
}

impl Drop for NewPack {
    fn drop(&mut self) {
        if self.state.get_mut().is_ok_and(|state| state.file.is_some()) {
            // What stays is written over by the next one.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

impl State {
    fn end(&self) -> u64 {
        self.written.saturating_add(u64::try_from(self.buffer.len()).unwrap_or(u64::MAX))
    }
}

/// A block of LZ4, if it is shorter by an eighth at least.
fn compressed(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < COMPRESSED_LEN_MIN {
        return None;
    }
    let block = lz4_flex::block::compress(bytes);
    let gain = bytes.len().checked_sub(block.len())?;
    (gain >= bytes.len().wrapping_shr(3)).then_some(block)
}
