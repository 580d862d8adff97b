//! Programs that are asked for their version or for help: who answers, the program or what a file of the project chose.
//!
//! Version managers stand in the place of other programs and run the one that a file in the directory, or above it, names.
//! One of the installed ones is a program like any other; one in the project is not.

use std::sync::Arc;

use interlock_core::places::{CHOOSERS, Chooser};

use super::reduce::Argument;
use super::table::Spec;
use super::walk::{Run, Walk};
use super::{Assumption, Effect};

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
    let chooses = |chooser: &&Chooser| chooser.programs.contains(&plain);
    let is_chosen = CHOOSERS.iter().any(|chooser| chooses(&chooser));
    let Some(found) = &walk.setting.choosers else {
        walk.assume(Assumption::AsInstalled);
        return true;
    };
    let is_there = |chooser: &&Chooser| found.files.iter().any(|file| file == chooser.file);
    let by_file = CHOOSERS.iter().filter(|chooser| chooser.programs.is_empty() || chooses(chooser)).find(is_there);
    let by_file = by_file.map(|chooser| format!("`{}` says which program this is", chooser.file));
    let by_line = || {
        // A line that writes may bring such a file.
        let writes = walk.findings.causes.iter().any(|found| found.effect > Effect::ReadOnly);
        (is_chosen && (writes || found.is_unknown)).then(|| "a file may say which program this is".to_owned())
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
