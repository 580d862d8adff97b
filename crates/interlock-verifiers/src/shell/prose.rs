//! Arguments that are texts, names or revisions, and no paths, also where nobody knows what they will be.

use super::reduce::Argument;

/// Verbs of git that look at what is recorded, and at no file.
#[rustfmt::skip]
const RECORDED: &[&str] = &[
    "log", "show", "rev-list", "rev-parse", "shortlog", "describe", "merge-base", "name-rev", "cherry", "whatchanged",
];
/// Options of git whose values are texts.
const TEXTS: [&str; 6] = ["--message", "--author", "--date", "--trailer", "--grep", "--committer"];
/// Verbs of git that take a text with `-m`.
const WITH_MESSAGE: [&str; 8] = ["commit", "tag", "stash", "merge", "notes", "push", "save", "create"];
/// Verbs of git that take the name of a branch with `-b` and its like.
const WITH_BRANCH: [&str; 2] = ["checkout", "switch"];

/// Whether the argument at a place is no path, whatever it will be.
pub(super) fn is_no_path(name: &str, arguments: &[Argument], at: usize) -> bool {
    let Some(argument) = arguments.get(at) else { return false };
    let before = at.checked_sub(1).and_then(|before| arguments.get(before)).and_then(Argument::known_text);
    if matches!(name, "head" | "tail") {
        return !argument.splits && before.is_some_and(|option| matches!(option, "-n" | "-c" | "--lines" | "--bytes"));
    }
    if name != "git" {
        return false;
    }
    // What becomes several words may become options and paths as well.
    if argument.splits && !is_verb(arguments, RECORDED) {
        return false;
    }
    let attached = argument.prefix().split_once('=').is_some_and(|(option, _)| TEXTS.contains(&option));
    let is_value = before.is_some_and(|option| {
        let letters = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let ends = |letter: char| letters.is_some_and(|letters| letters.ends_with(letter) && is_bundle(letters));
        TEXTS.contains(&option)
            || ends('m') && is_verb(arguments, &WITH_MESSAGE)
            || (ends('b') || ends('B') || ends('c') || ends('C')) && is_verb(arguments, &WITH_BRANCH)
    });
    let is_revision = argument.texts().is_empty() && !argument.has_glob && is_verb(arguments, RECORDED);
    attached || is_value || is_revision
}

/// `-m`, `-am`
fn is_bundle(letters: &str) -> bool {
    letters.len() <= 3 && letters.bytes().all(|letter| letter.is_ascii_alphabetic())
}

/// Whether the verb of git is one of these. Options before it are not looked through: then it is none.
fn is_verb(arguments: &[Argument], verbs: &[&str]) -> bool {
    arguments.first().and_then(Argument::known_text).is_some_and(|verb| verbs.contains(&verb))
}
