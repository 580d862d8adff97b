//! Programs that are asked for their version or for help: who answers, the program or what a file of the project chose.
//!
//! Version managers stand in the place of other programs and run the one that a file in the directory, or above it, names.
//! One of the installed ones is a program like any other; one in the project is not.

use std::sync::Arc;

use super::reduce::Argument;
use super::table::Spec;
use super::walk::{Run, Walk};
use super::{Assumption, Effect};

/// Files by which programs are chosen, and which: `python3.12` counts as `python`.
#[rustfmt::skip]
const CHOSEN: &[(&[&str], &[&str])] = &[
    (&["rust-toolchain.toml", "rust-toolchain"], &["cargo", "rustc", "rustdoc", "rustfmt", "rustup"]),
    (&[".python-version"],                       &["python", "pypy", "pip"]),
    (&[".node-version"],                         &["node", "nodejs", "npm", "npx", "tsc"]),
    (&[".ruby-version"],                         &["ruby", "gem"]),
    (&[".java-version"],                         &["java", "javac", "javap", "jshell", "jar"]),
    (&[".perl-version"],                         &["perl"]),
    (&[".php-version"],                          &["php"]),
    (&[".lua-version"],                          &["lua", "luajit"]),
];
/// Files by which any program can be chosen.
pub const CHOOSING_ANY: &[&str] = &[
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    ".rtx.toml",
    "mise/config.toml",
    ".mise/config.toml",
    ".config/mise.toml",
    ".config/mise/config.toml",
];

/// All files by which programs are chosen, looked for upwards from where a program is run.
pub fn choosing_files() -> impl Iterator<Item = &'static str> {
    CHOSEN.iter().flat_map(|(files, _)| files.iter()).chain(CHOOSING_ANY).copied()
}

/// Whether a program is asked for its version or for help, and for nothing else.
pub(super) fn is_asked(arguments: &[Argument], entries: &[Arc<Spec>]) -> bool {
    let [only] = arguments else { return false };
    match only.known_text() {
        Some("--version" | "--help") => true,
        Some(text) => entries.iter().any(|spec| spec.version.iter().any(|version| version == text)),
        None => false,
    }
}

/// Whether such a program runs nothing of the project to answer.
pub(super) fn answers(walk: &mut Walk<'_, '_>, run: &Run<'_>, entries: &[Arc<Spec>]) -> bool {
    if entries.iter().all(|spec| spec.effect != Effect::Unknown) {
        return true;
    }
    // All others of that kind may load what the project names: plugins, wrappers, another version of themselves.
    if !walk.setting.commands.answers(run.name) {
        return false;
    }
    let plain = run.name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let own = CHOSEN.iter().find(|(_, programs)| programs.contains(&plain)).map(|(files, _)| *files);
    let Some(found) = &walk.setting.choosers else {
        walk.assume(Assumption::AsInstalled);
        return true;
    };
    let chooses =
        |file: &&String| CHOOSING_ANY.contains(&file.as_str()) || own.is_some_and(|own| own.contains(&file.as_str()));
    let by_file = found.files.iter().find(chooses).map(|file| format!("`{file}` says which program this is"));
    let by_line = || {
        // A line that writes may bring such a file.
        let writes = walk.findings.causes.iter().any(|found| found.effect > Effect::ReadOnly);
        (own.is_some() && (writes || found.is_unknown)).then(|| "a file may say which program this is".to_owned())
    };
    match by_file.or_else(by_line) {
        Some(why) => {
            walk.add(Effect::Unknown, run.name, &run.span, why);
            false
        }
        None => {
            if walk.directory.is_some() {
                walk.assume(Assumption::AsInstalled);
            }
            true
        }
    }
}
