//! Directories that are open wider than they will be while an undo runs.
//!
//! One that its owner may not write can be neither filled nor moved, so for a while its owner may do everything with it.
//! Which ones these are is noted in the store before they are widened: whoever finds the note of an undo that was cut
//! short narrows them.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::bytes::{Unread, Written};
use crate::fault::KeepFault;
use crate::index::Stamp;
use crate::project::{Project, mode_of};

/// What its owner may do with a directory that is widened: everything.
pub(crate) const OWNER: u32 = 0o700;

/// The directories that one undo widens.
#[derive(Debug)]
pub(crate) struct Widened {
    note: PathBuf,
    directories: Mutex<BTreeMap<Vec<u8>, (u64, u32)>>,
}

impl Widened {
    pub(crate) fn new(store: &Path) -> Widened {
        Widened { note: note_in(store), directories: Mutex::default() }
    }

    /// Notes directories, by path with inode and the permissions they will have, before they are widened.
    pub(crate) fn add(&self, directories: impl IntoIterator<Item = (Vec<u8>, u64, u32)>) -> io::Result<()> {
        let mut known = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        let mut to = Written::default();
        for (path, inode, mode) in directories.into_iter().filter(|(_, _, mode)| mode & OWNER != OWNER) {
            to.u64(inode);
            to.u32(mode);
            to.text(&path);
            known.entry(path).or_insert((inode, mode));
        }
        if to.0.is_empty() {
            return Ok(());
        }
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.note)?.write_all(&to.0)
    }

    /// Narrows them all, the deepest first, and takes the note away.
    pub(crate) fn narrow(self, project: &Project) -> Result<(), KeepFault> {
        let directories = self.directories.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (path, (inode, mode)) in directories.into_iter().rev() {
            // One that is gone, or is another by now, is nobody's to narrow.
            let Ok(directory) = project.open_directory(&path) else { continue };
            let narrowed = rustix::fs::fstat(&directory).and_then(|stat| {
                let found = Stamp::of(&stat);
                let is_wide = found.inode == inode && found.mode & 0o7777 == mode | OWNER;
                if is_wide { rustix::fs::fchmod(&directory, mode_of(mode)) } else { Ok(()) }
            });
            narrowed.map_err(|why| KeepFault::write(project.path_of(&path), why))?;
        }
        match fs::remove_file(&self.note) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(KeepFault::write(&self.note, why)),
            _ => Ok(()),
        }
    }

    /// Narrows what an undo that was cut short has left wide.
    pub(crate) fn narrow_leftovers(store: &Path, project: &Project) -> Result<(), KeepFault> {
        let widened = Widened::new(store);
        let bytes = match fs::read(&widened.note) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(KeepFault::read(&widened.note, why)),
        };
        let mut from = Unread(&bytes);
        // The last one may have been cut short; then it was not widened.
        let mut next = || Some((from.u64()?, from.u32()?, from.text()?.to_vec()));
        while let Some((inode, mode, path)) = next() {
            let mut known = widened.directories.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(path).or_insert((inode, mode));
        }
        widened.narrow(project)
    }
}

fn note_in(store: &Path) -> PathBuf {
    store.join("widened")
}
