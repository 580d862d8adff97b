//! What commands touch beyond the words they name: archives and patches write what is in them, and whoever goes through
//! a directory reads all that is in it.

use super::Effect;
use super::reduce::Argument;
use super::walk::Run;
use super::{options, table, tar};

/// Options of git before its verb that have an argument.
const GIT_WITH_ARGUMENT: [&str; 7] =
    ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env"];

/// Verbs of git that write what a patch, a stream or a made-up tree says: into the files, or into what the next commit and
/// the checkout after it bring there.
const GIT_UNNAMED: [&str; 10] = [
    "apply",
    "am",
    "fast-import",
    "quiltimport",
    "update-index",
    "read-tree",
    "mktree",
    "commit-tree",
    "checkout-index",
    "subtree",
];

/// Verbs of git that take in objects as they come: a tree among them can have any name in it, and a checkout writes it.
const GIT_OBJECTS: [&str; 4] = ["unpack-objects", "index-pack", "mktag", "replace"];

/// Whether a verb of git takes in objects that were made elsewhere, or puts one in the place of another.
fn takes_objects(verb: &str, arguments: &[Argument]) -> bool {
    match verb {
        // The bytes of a file are what the file is; those of a tree are names.
        "hash-object" => {
            let mut words = texts(arguments);
            let typed = |text: &str| text.len() > 1 && text.starts_with("-t") && !text.starts_with("--");
            while let Some(text) = words.next() {
                let kind = match text {
                    "-t" => words.next().unwrap_or(""),
                    _ if typed(text) => text.get(2..).unwrap_or(""),
                    _ if text.starts_with('-') && !text.starts_with("--") && text.contains('t') => "",
                    _ if text.starts_with("--l") => "",
                    _ => continue,
                };
                if kind != "blob" {
                    return true;
                }
            }
            false
        }
        "bundle" => texts(arguments).any(|text| text == "unbundle"),
        _ => GIT_OBJECTS.contains(&verb),
    }
}

/// The texts of arguments, as far as they are known.
pub(super) fn texts(arguments: &[Argument]) -> impl Iterator<Item = &str> {
    arguments.iter().map(|argument| argument.known_text().unwrap_or(argument.prefix()))
}

fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

/// Whether options of one letter are among the arguments, alone or in a bundle; or long ones that begin so.
fn has_option(arguments: &[Argument], letters: &[char], long: &[&str]) -> bool {
    texts(arguments).any(|text| match text.strip_prefix("--") {
        Some(name) => long.iter().any(|long| name.starts_with(long)),
        None => is_option(text) && text.contains(letters),
    })
}

/// The verb of git.
fn git_verb(arguments: &[Argument]) -> Option<&str> {
    let mut words = texts(arguments);
    while let Some(word) = words.next() {
        if GIT_WITH_ARGUMENT.contains(&word) {
            words.next();
        } else if !is_option(word) {
            return Some(word);
        }
    }
    None
}

/// Whether a command writes files that the line does not name.
pub(super) fn writes_unnamed(name: &str, run: &Run<'_>, label: Effect) -> bool {
    let arguments = run.arguments;
    let writes = match name {
        "patch" | "gpatch" | "unzip" => true,
        "tar" | "gtar" | "bsdtar" => tar::extracts(run),
        // A merge into a subtree moves what it brings.
        "git" => {
            git_verb(arguments).is_some_and(|verb| GIT_UNNAMED.contains(&verb) || takes_objects(verb, arguments))
                || texts(arguments).any(|text| text.contains("subtree"))
        }
        "cpio" => has_option(arguments, &['i', 'p'], &["e", "pa"]),
        "pax" => has_option(arguments, &['r'], &[]),
        "ar" => texts(arguments).next().is_some_and(|mode| mode.contains('x')),
        "7z" | "7za" | "7zr" | "7zz" | "p7zip" | "unrar" | "rar" => {
            texts(arguments).find(|text| !is_option(text)).is_some_and(|verb| matches!(verb, "x" | "e"))
        }
        _ => false,
    };
    writes && label > Effect::ReadOnly
}

/// Whether a command reads all that is in the directories it is given.
pub(super) fn sweeps(name: &str, run: &Run<'_>) -> bool {
    let arguments = run.arguments;
    match name {
        "grep" | "egrep" | "fgrep" | "zgrep" | "ggrep" => {
            has_option(arguments, &['r', 'R', 'd'], &["r", "d"]) || texts(arguments).any(|text| text == "recurse")
        }
        "rgrep" | "rg" | "ag" | "ack" | "ugrep" | "ug" | "zip" | "rsync" => true,
        "find" | "gfind" => {
            texts(arguments).any(|text| ["-exec", "-ok", "-fprint"].iter().any(|action| text.starts_with(action)))
        }
        "fd" | "fdfind" => has_option(arguments, &['x', 'X'], &["exec"]),
        "tar" | "gtar" | "bsdtar" => tar::stores(run),
        "cp" | "gcp" => has_option(arguments, &['r', 'R', 'a'], &["r", "a"]),
        "scp" => has_option(arguments, &['r'], &[]),
        "diff" | "gdiff" => has_option(arguments, &['r'], &["r"]),
        "pax" => has_option(arguments, &['w'], &[]),
        "7z" | "7za" | "7zr" | "7zz" | "p7zip" => texts(arguments).any(|text| matches!(text, "a" | "u")),
        "git" => texts(arguments).any(|text| text == "--no-index"),
        _ => false,
    }
}

/// Whether a command that goes through directories is given none, and takes the one it is in.
pub(super) fn sweeps_here(name: &str, arguments: &[Argument], spec: Option<&table::Spec>, has_script: bool) -> bool {
    match name {
        "find" | "gfind" => texts(arguments).next().is_none_or(|first| first.starts_with(['-', '(', '!'])),
        "grep" | "egrep" | "fgrep" | "zgrep" | "ggrep" | "rgrep" | "rg" | "ag" | "ack" | "ugrep" | "ug" | "fd"
        | "fdfind" => {
            let operands = spec.map_or(0, |spec| options::read_until_verb(spec, arguments).operands.len());
            operands <= usize::from(!has_script)
        }
        _ => false,
    }
}

/// The argument that a copy is written to, if it can be told: it is the only one that is not read.
pub(super) fn destination(name: &str, arguments: &[Argument]) -> Option<usize> {
    let last = || arguments.iter().rposition(|argument| !is_option(argument.prefix()));
    match name {
        "cp" | "gcp" => {
            let is_odd = |argument: &Argument| argument.splits || argument.known_text() == Some("--");
            let moves_it = has_option(arguments, &['t', 'S'], &["t", "s"]);
            let is_plain = !moves_it && !arguments.iter().any(is_odd);
            is_plain.then(last).flatten()
        }
        "rsync" | "scp" => last().filter(|at| at.saturating_add(1) == arguments.len()),
        _ => None,
    }
}
