//! What the index of git says of a work tree: which directories are repositories of their own, and which files are kept.
//!
//! Git goes into each of those repositories to show a status, and takes their configuration for its own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The largest index that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// The most links that are listed.
pub(crate) const LINKS_MAX: usize = 256;
/// The mode of an entry that is a repository.
const LINK: u32 = 0o160_000;
/// What stands before the name of an entry, with names of 20 bytes for objects: times, device, mode, owner, size.
const BEFORE_OBJECT: usize = 40;
const MODE_AT: usize = 24;

/// The paths of the repositories in a tree; nothing if the index cannot be read.
pub(crate) fn links(repository: &Path) -> Option<Vec<String>> {
    let links = entries(repository, |mode, _| mode == LINK)?;
    links.into_iter().take(LINKS_MAX.saturating_add(1)).map(|name| String::from_utf8(name).ok()).collect()
}

/// The files with certain names that a tree's repository keeps; none if the index cannot be read.
pub(crate) fn tracked(repository: &Path, is_wanted: impl Fn(&OsStr) -> bool) -> Vec<PathBuf> {
    let wanted = entries(repository, |mode, name| mode != LINK && is_wanted(OsStr::from_bytes(name)));
    wanted.unwrap_or_default().into_iter().map(|name| PathBuf::from(OsString::from_vec(name))).collect()
}

/// The names of some entries.
fn entries(repository: &Path, is_wanted: impl Fn(u32, &[u8]) -> bool) -> Option<Vec<Vec<u8>>> {
    let path = repository.join("index");
    if path.symlink_metadata().is_err() {
        return Some(Vec::new());
    }
    let small = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    let bytes = small.then(|| fs::read(&path).ok()).flatten()?;
    // The configuration says how long names of objects are; an index of the other kind does not parse.
    [20, 32].into_iter().find_map(|object| entries_in(&bytes, object, &is_wanted))
}

fn entries_in(bytes: &[u8], object: usize, is_wanted: impl Fn(u32, &[u8]) -> bool) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.take(4)? != b"DIRC" {
        return None;
    }
    let version = reader.number()?;
    let count = reader.number()?;
    let mut wanted = Vec::new();
    let mut name: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = reader.at;
        let fixed = reader.take(BEFORE_OBJECT)?;
        let mode = number_in(fixed.get(MODE_AT..)?)?;
        reader.take(object)?;
        let flags = reader.take(2)?.first().copied()?;
        if version >= 3 && flags & 0x40 != 0 {
            reader.take(2)?;
        }
        if version == 4 {
            let dropped = reader.variable()?;
            name.truncate(name.len().checked_sub(dropped)?);
            name.extend_from_slice(reader.text()?);
        } else {
            name = reader.text()?.to_vec();
            // One to eight zeros, until the length is a multiple of eight.
            let length = reader.at.checked_sub(start)?;
            reader.take(length.next_multiple_of(8).checked_sub(length)?)?;
        }
        if is_wanted(mode, &name) {
            wanted.push(name.clone());
        }
    }
    // An index in two parts has the rest elsewhere.
    let rest = bytes.get(reader.at..)?;
    (!rest.starts_with(b"link") && (2..=4).contains(&version)).then_some(wanted)
}

fn number_in(bytes: &[u8]) -> Option<u32> {
    let four: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    Some(u32::from_be_bytes(four))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4).and_then(number_in)
    }

    /// A text with the zero that ends it.
    fn text(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        self.at = self.at.checked_add(length)?.checked_add(1)?;
        rest.get(..length)
    }

    /// A number of several bytes, as packs have them for offsets.
    fn variable(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?.first().copied()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?.first().copied()?;
            value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links_of(bytes: &[u8], object: usize) -> Option<Vec<String>> {
        let links = entries_in(bytes, object, |mode, _| mode == LINK)?;
        links.into_iter().map(|name| String::from_utf8(name).ok()).collect()
    }

    fn entry(mode: u32, name: &str) -> Vec<u8> {
        let mut bytes = vec![0; MODE_AT];
        bytes.extend(mode.to_be_bytes());
        bytes.resize(BEFORE_OBJECT + 20, 0);
        bytes.extend([0, u8::try_from(name.len()).expect("short")]);
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn repositories_in_a_tree_are_listed() {
        let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x03".to_vec();
        bytes.extend(entry(0o100_644, "README.md"));
        bytes.extend(entry(LINK, "sub/c"));
        bytes.extend(entry(0o100_755, "x.sh"));
        assert_eq!(links_of(&bytes, 20), Some(vec!["sub/c".to_owned()]));
        assert_eq!(links_of(bytes.get(..40).expect("longer"), 20), None);
        bytes.extend(b"link");
        assert_eq!(links_of(&bytes, 20), None);
    }
}
