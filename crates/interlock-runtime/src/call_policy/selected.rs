//! Secrets that a command selects by a pattern: `grep -r . --include='.env*'`, `find -name '*.pem' -exec cat {} +`.
//!
//! Which patterns name secrets is told by `interlock_core::rule`; here it is told which words of a command select what it
//! reads. What is left out, and what is only listed, is not read.

use interlock_core::rule::secret_by_pattern;
use interlock_verifiers::shell::{SimpleCommand, Touch, Words};

/// Commands that tell of names, and read nothing that has them.
const LISTING: &[&str] =
    &["ls", "gls", "stat", "tree", "du", "echo", "printf", "test", "[", "locate", "plocate", "basename"];
/// Long options by which names are selected.
const SELECTING: &[&str] = &["include", "glob", "iglob", "file-search-regex"];
/// What begins the options by which names are left out.
const LEAVING_OUT: &[&str] = &["--exclude", "--ignore", "--skip", "--no-"];

/// The secrets that patterns of a line name, with the commands that read them.
pub(crate) fn secrets(words: &Words) -> Vec<(String, Option<usize>)> {
    let command = |touch: &Touch| touch.command.and_then(|at| words.commands.get(at));
    let reads = |touch: &&Touch| !command(touch).is_some_and(lists);
    let named = |touch: &Touch| {
        let pattern = touch.path.as_deref()?;
        let is_left_out = command(touch).is_some_and(|command| leaves_out(command, pattern));
        let secret = secret_by_pattern(pattern).filter(|_| !is_left_out)?;
        Some((secret, touch.command))
    };
    let commands = words.commands.iter().enumerate().filter(|(_, command)| !lists(command));
    let by_option = commands.flat_map(|(at, command)| by_options(command).map(move |secret| (secret, Some(at))));
    words.touches.iter().filter(reads).filter_map(named).chain(by_option).collect()
}

/// What options of a command select. Where a search takes its first word for what is sought, they are no paths to it.
fn by_options(command: &SimpleCommand) -> impl Iterator<Item = String> {
    let name = texts(command).next().map_or("", |name| name.rsplit('/').next().unwrap_or(name));
    let is_search = ["rg", "ug", "ugrep", "ag"].contains(&name);
    let following = texts(command).skip(2).chain([""]);
    texts(command).skip(1).zip(following).filter_map(move |(word, next)| {
        let long = word
            .strip_prefix("--")
            .map(|long| long.split_once('=').map_or((long, next), |(name, value)| (name, value)));
        let pattern = match long {
            Some((name, value)) => SELECTING.contains(&name).then_some(value)?,
            None if is_search && word.starts_with('-') => match word.split_once(['g', 'G'])? {
                (_, "") => next,
                (_, rest) => rest,
            },
            None => return None,
        };
        let is_plain =
            !pattern.is_empty() && !pattern.contains(['*', '?', '[', '{', '\\']) && !pattern.starts_with('!');
        if is_plain { Some(pattern.to_owned()) } else { secret_by_pattern(pattern) }
    })
}

fn texts(command: &SimpleCommand) -> impl Iterator<Item = &str> {
    command.words.iter().map(|word| word.as_deref().unwrap_or(""))
}

/// Whether a command only tells which names there are.
fn lists(command: &SimpleCommand) -> bool {
    let name = texts(command).next().map_or("", |name| name.rsplit('/').next().unwrap_or(name));
    let has = |options: &[&str]| texts(command).skip(1).any(|word| options.contains(&word));
    match name {
        "find" | "gfind" => !has(&["-exec", "-execdir", "-ok", "-okdir", "-delete"]),
        "fd" | "fdfind" => !texts(command).skip(1).any(|word| {
            word.starts_with("--exec") || word.starts_with('-') && !word.starts_with("--") && word.contains(['x', 'X'])
        }),
        "rg" => has(&["--files"]),
        "git" => has(&["ls-files", "ls-tree", "status", "check-ignore"]),
        name => LISTING.contains(&name),
    }
}

/// Whether a pattern of a command says what is left out.
fn leaves_out(command: &SimpleCommand, pattern: &str) -> bool {
    let words: Vec<&str> = texts(command).collect();
    let is_out = |at: usize, word: &str| {
        let before = |count: usize| at.checked_sub(count).and_then(|at| words.get(at)).copied().unwrap_or("");
        let leaves = |word: &str| LEAVING_OUT.iter().any(|option| word.starts_with(option));
        let by_option = leaves(word) || leaves(before(1)) && !before(1).contains('=');
        let is_negated = matches!(before(2), "!" | "-not") && before(1).starts_with('-');
        let is_pruned = words.get(at.saturating_add(1)).is_some_and(|next| *next == "-prune");
        by_option || is_negated || is_pruned || word.trim_start_matches(['-', 'g']).starts_with('!')
    };
    let mut with_it = words.iter().enumerate().filter(|(_, word)| word.ends_with(pattern)).peekable();
    with_it.peek().is_some() && with_it.all(|(at, word)| is_out(at, word))
}
