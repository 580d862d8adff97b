//! What `git` touches: which files it writes without naming them, what it reads from a stream, which of its words are
//! paths and which are texts, names or revisions. What is known of a subcommand is in `git.toml`.

use super::options::{Call, has_any, read_until_verb};
use super::reduce::Argument;
use super::table::{git_entry, git_traits, grammar};
use super::traits::Fact;

/// Options whose values are texts.
const TEXTS: [&str; 6] = ["--message", "--author", "--date", "--trailer", "--grep", "--committer"];
/// Files outside of any project that options of `git config` name.
const ELSEWHERE: [(&str, &[&str]); 2] =
    [("--global", &["~/.gitconfig", "~/.config/git/config"]), ("--system", &["/etc/gitconfig"])];

/// The subcommand, and what it is given.
pub(super) fn subcommand(arguments: &[Argument]) -> Option<(&str, &[Argument])> {
    let at = read_until_verb(grammar("git")?, arguments).first_operand?;
    let (name, given) = arguments.get(at..)?.split_first()?;
    Some((name.known_text().unwrap_or(name.prefix()), given))
}

/// The subcommand with what its options say.
fn subcommand_call(arguments: &[Argument]) -> Option<(&str, Call<'_>)> {
    let (name, given) = subcommand(arguments)?;
    Some((name, read_until_verb(git_entry(name)?, given)))
}

/// Whether it writes what a patch, a stream or a made-up tree says: into the files, or into what the next commit and the
/// checkout after it bring there. A merge into a subtree moves what it brings.
pub(super) fn writes_unnamed(arguments: &[Argument]) -> bool {
    let unpacks = |(name, call): (&str, Call<'_>)| match name {
        "hash-object" => makes_tree(&call),
        _ => has_any(arguments, &git_traits(name).unpacks),
    };
    subcommand_call(arguments).is_some_and(unpacks) || has_any(arguments, "*subtree*")
}

/// Whether `hash-object` takes in more than a file: the bytes of a file are what the file is, those of a tree are names,
/// and a checkout writes them.
fn makes_tree(call: &Call<'_>) -> bool {
    let is_odd = call.has_unlisted || call.is_inexact || call.has("--literally");
    is_odd || call.values("-t").any(|kind| kind != Some("blob"))
}

/// Whether it shows what a stream names: `cat-file --batch`, `log --stdin`. Only the sizes are harmless.
pub(super) fn reads_names(arguments: &[Argument]) -> bool {
    subcommand_call(arguments).is_some_and(|(name, call)| call.has(&git_traits(name).lists))
}

/// The files outside of the project that a call changes without naming them.
pub(super) fn elsewhere(arguments: &[Argument]) -> Vec<String> {
    let named = ELSEWHERE.iter().filter(|(option, _)| has_any(arguments, option));
    named.flat_map(|(_, files)| files.iter()).map(|file| (*file).to_owned()).collect()
}

/// Whether the argument at a place is a text, a name or a revision, and no path, whatever it will be.
pub(super) fn is_no_path(arguments: &[Argument], at: usize) -> bool {
    let Some(argument) = arguments.get(at) else { return false };
    // Options before the subcommand are not looked through: then nothing is known of it.
    let traits = git_traits(arguments.first().and_then(Argument::known_text).unwrap_or(""));
    // What becomes several words may become options and paths as well.
    if argument.splits && !traits.is(Fact::Recorded) {
        return false;
    }
    let attached = argument.prefix().split_once('=').is_some_and(|(option, _)| TEXTS.contains(&option));
    let before = at.checked_sub(1).and_then(|before| arguments.get(before)).and_then(Argument::known_text);
    let is_value = before.is_some_and(|option| {
        let letters = option.strip_prefix('-').filter(|rest| !rest.starts_with('-') && is_bundle(rest));
        let ends = |last: &[char]| letters.is_some_and(|letters| letters.ends_with(last));
        TEXTS.contains(&option)
            || ends(&['m']) && traits.is(Fact::TakesMessage)
            || ends(&['b', 'B', 'c', 'C']) && traits.is(Fact::TakesBranch)
    });
    let is_revision = argument.texts().is_empty() && !argument.has_glob && traits.is(Fact::Recorded);
    attached || is_value || is_revision
}

/// `-m`, `-am`
fn is_bundle(letters: &str) -> bool {
    letters.len() <= 3 && letters.bytes().all(|letter| letter.is_ascii_alphabetic())
}

/// A path as git takes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pathspec<'a> {
    pub(super) path: &'a str,
    /// It begins at the top of the tree.
    pub(super) is_top: bool,
}

impl<'a> Pathspec<'a> {
    /// What a word means to git beside itself; nothing if that is all, or if it leaves files out.
    pub(super) fn of(text: &'a str) -> Option<Pathspec<'a>> {
        if text.starts_with('-') {
            return None;
        }
        let Some(magic) = text.strip_prefix(':') else {
            // `HEAD:key`, `'*.pem'`
            let (path, is_top) = text.split_once(':').map_or((text, false), |(_, path)| (path, true));
            let is_hidden = is_top && !path.starts_with("//") || path.contains(['*', '?', '[']);
            return (is_hidden && !path.is_empty()).then_some(Pathspec { path, is_top });
        };
        let (path, is_top, leaves_out) = match magic.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((words, path)) => {
                let mut words = words.split(',').map(str::trim);
                (path, words.clone().any(|word| word == "top"), words.any(|word| word == "exclude"))
            }
            None => {
                let path = magic.trim_start_matches(['/', '!', '^']);
                let signs = magic.get(..magic.len().saturating_sub(path.len())).unwrap_or("");
                (path.strip_prefix(':').unwrap_or(path), signs.contains('/'), signs.contains(['!', '^']))
            }
        };
        (!leaves_out && !path.is_empty()).then_some(Pathspec { path, is_top })
    }
}
