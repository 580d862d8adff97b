//! Whether a file of the project says which compiler its tools are.
//!
//! `rustup` stands in the place of `cargo` and `rustc` and runs the ones that the nearest such file names, for a
//! version too.

use std::fs;
use std::path::Path;

/// The files, looked for upwards from where a tool is run.
const FILES: [&str; 2] = ["rust-toolchain.toml", "rust-toolchain"];
/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 16;

/// Whether a toolchain is named by where it is, or may be.
pub(super) fn is_own(directory: &Path) -> bool {
    let files = directory.ancestors().flat_map(|level| FILES.map(|name| level.join(name)));
    let mut found = files.filter(|file| file.symlink_metadata().is_ok());
    found.any(|file| {
        let small = fs::metadata(&file).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
        let text = small.then(|| fs::read_to_string(&file).ok()).flatten();
        // A key can be written with escapes.
        text.is_none_or(|text| text.contains("path") || text.contains('\\'))
    })
}
