//! The bytes of a file, from the project into the store: whole if they are few, else in pieces, without holes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use interlock_core::Digest;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::fault::KeepFault;
use crate::node::{Content, Piece, write_pieces};
use crate::objects::Objects;
use crate::pack::{Form, NewPack};

/// Longer files are kept in pieces of this length.
pub(crate) const PIECE_LEN: usize = 1 << 20;

/// Where objects go: what the store has already is not stored again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Into<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) pack: &'a NewPack,
}

impl Into<'_> {
    pub(crate) fn put(&self, bytes: &[u8], form: Form) -> Result<Digest, KeepFault> {
        let digest = Digest::of_bytes(bytes);
        if self.objects.place(digest).is_none() {
            self.pack.put(digest, bytes, form)?;
        }
        Ok(digest)
    }
}

/// What came of reading a file.
pub(crate) enum Read {
    /// Its bytes are stored.
    Stored(u64, Content),
    /// It could not be read.
    Failed,
}

/// Stores the bytes of a file, which should be `size` ones. A small one is compressed at once, a large one when the store
/// is pruned.
pub(crate) fn store(file: &File, size: u64, into: Into<'_>, buffer: &mut Vec<u8>) -> Result<Read, KeepFault> {
    buffer.resize(PIECE_LEN.saturating_add(1), 0);
    let Some(len) = read_all(file, buffer, size) else { return Ok(Read::Failed) };
    if let Some(bytes) = buffer.get(..len).filter(|_| len <= PIECE_LEN) {
        let content = Content::Whole(into.put(bytes, Form::Lz4)?);
        return Ok(Read::Stored(u64::try_from(len).unwrap_or(0), content));
    }
    store_pieces(file, into, buffer)
}

/// Reads what is no hole. A piece that is all zeros is left out as well, so that the same bytes give the same pieces
/// however the file system stores them.
fn store_pieces(file: &File, into: Into<'_>, buffer: &mut Vec<u8>) -> Result<Read, KeepFault> {
    let piece_len = u64::try_from(PIECE_LEN).unwrap_or(u64::MAX);
    buffer.resize(PIECE_LEN, 0);
    let (mut pieces, mut at, mut end) = (Vec::new(), 0_u64, 0_u64);
    loop {
        at = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            // Pieces begin at multiples of their length.
            Ok(data) => data.saturating_sub(data.checked_rem(piece_len).unwrap_or(0)).max(at),
            Err(Errno::NXIO) => break,
            // A file system that does not know of holes has none.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(_) => return Ok(Read::Failed),
        };
        let Some(len) = read_full(file, buffer, at) else { return Ok(Read::Failed) };
        let bytes = buffer.get(..len).unwrap_or_default();
        if bytes.iter().any(|byte| *byte != 0) {
            let digest = into.put(bytes, Form::RawFirst)?;
            pieces.push(Piece { offset: at, len: u32::try_from(len).unwrap_or(0), digest });
        }
        end = at.saturating_add(u64::try_from(len).unwrap_or(0));
        if len < PIECE_LEN {
            break;
        }
        at = end;
    }
    let Ok(stat) = rustix::fs::fstat(file) else { return Ok(Read::Failed) };
    // What was added meanwhile beyond the last piece is not in the pieces; the caller sees that the file changed.
    let size = u64::try_from(i128::from(stat.st_size)).unwrap_or(0).max(end);
    Ok(Read::Stored(size, Content::Pieces(into.put(&write_pieces(&pieces), Form::Lz4)?)))
}

/// Reads a file to its end, or fills the buffer. One that gives all of its bytes at once is not asked for more: the caller
/// sees if it grew meanwhile.
fn read_all(file: &File, buffer: &mut [u8], size: u64) -> Option<usize> {
    match file.read_at(buffer, 0) {
        Ok(len) if u64::try_from(len) == Ok(size) => Some(len),
        _ => read_full(file, buffer, 0),
    }
}

/// Fills a buffer from an offset, or reads to the end of the file.
fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> Option<usize> {
    let mut filled = 0_usize;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = offset.checked_add(u64::try_from(filled).ok()?)?;
        match file.read_at(rest, at) {
            Ok(0) => break,
            Ok(len) => filled = filled.checked_add(len)?,
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(filled)
}
