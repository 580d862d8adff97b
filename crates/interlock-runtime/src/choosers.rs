//! Which files of a project say that its tools are programs of its own.
//!
//! `rustup`, `asdf`, `mise`, `pyenv` and their like stand in the place of other programs and run the ones that the nearest
//! such file names, for a version too. A version among the installed ones is harmless; a place in the project is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use interlock_verifiers::shell::{CHOOSING_ANY, Choosers, choosing_files};

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 16;

/// What is found from directories upwards. Nothing is run.
pub fn choosers<'d>(directories: impl Iterator<Item = &'d Path>) -> Choosers {
    let whole = |directory: &Path| fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let mut levels: BTreeSet<PathBuf> = BTreeSet::new();
    for directory in directories.map(whole) {
        levels.extend(directory.ancestors().map(Path::to_owned));
    }
    let chooses = |name: &&str| levels.iter().any(|level| names_place(name, &level.join(name)));
    Choosers { files: choosing_files().filter(chooses).map(str::to_owned).collect(), is_unknown: false }
}

/// Whether a file is there and names a program by its place, or may.
fn names_place(name: &str, file: &Path) -> bool {
    if file.symlink_metadata().is_err() {
        return false;
    }
    let small = fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    let Some(text) = small.then(|| fs::read_to_string(file).ok()).flatten() else { return true };
    // A key can be written with escapes.
    let odd: &[&str] = match name {
        _ if name.starts_with("rust-toolchain") => &["path", "\\"],
        ".tool-versions" => &["path:", "..", "\\"],
        // Paths, settings that source a file or run something, and templates.
        _ if CHOOSING_ANY.contains(&name) => &["path", "..", "\\", "_.", "hooks", "{{"],
        // The name of a directory beneath those of all versions.
        _ => &["..", "\\"],
    };
    odd.iter().any(|odd| text.contains(odd)) || text.trim_start().starts_with('/')
}
