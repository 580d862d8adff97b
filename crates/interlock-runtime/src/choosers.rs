//! Which files of a project say that its tools are programs of its own.
//!
//! `rustup`, `asdf`, `mise`, `pyenv` and their like stand in the place of other programs and run the ones that the nearest
//! such file names, for a version too. A version among the installed ones is harmless; a place in the project is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use interlock_core::places::{CHOOSERS, Chooser};
use interlock_verifiers::shell::Choosers;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 16;

/// What is found from directories upwards. Nothing is run.
pub fn choosers<'d>(directories: impl Iterator<Item = &'d Path>) -> Choosers {
    let whole = |directory: &Path| fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let mut levels: BTreeSet<PathBuf> = BTreeSet::new();
    for directory in directories.map(whole) {
        levels.extend(directory.ancestors().map(Path::to_owned));
    }
    let chooses = |chooser: &&Chooser| levels.iter().any(|level| names_place(chooser, &level.join(chooser.file)));
    let files = CHOOSERS.iter().filter(chooses).map(|chooser| chooser.file.to_owned()).collect();
    Choosers { files, is_unknown: false }
}

/// Whether a file is there and names a program by its place, or may.
fn names_place(chooser: &Chooser, file: &Path) -> bool {
    if file.symlink_metadata().is_err() {
        return false;
    }
    let small = fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    let Some(text) = small.then(|| fs::read_to_string(file).ok()).flatten() else { return true };
    chooser.place_marks.iter().any(|mark| text.contains(mark)) || text.trim_start().starts_with('/')
}
