//! Which files nobody may leave behind, by their names: what runs later, or chooses what runs.

use core::fmt;
use std::collections::BTreeMap;

use crate::rule::{Pattern, Separator, fold_case};

/// Patterns of paths, filed so that most names are told at once to be none of them.
#[derive(Debug, Default)]
pub struct Armed {
    patterns: Vec<Pattern>,
    /// By the last name of what they match.
    by_name: BTreeMap<String, Vec<usize>>,
    /// By how that name begins and ends.
    by_ends: Vec<(String, String, usize)>,
    /// About everything beneath a directory.
    beneath: Vec<usize>,
    /// Names of directories that patterns speak of.
    directories: Vec<String>,
}

/// A pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadPattern {
    /// As it is written.
    pub pattern: String,
}

impl fmt::Display for UnreadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pattern `{}` cannot be read", self.pattern)
    }
}

impl std::error::Error for UnreadPattern {}

impl Armed {
    /// Reads patterns as they stand in the table of guarded places.
    pub fn load(texts: &[String]) -> Result<Armed, UnreadPattern> {
        let mut armed = Armed::default();
        for text in texts {
            let pattern =
                Pattern::parse(text, Separator::Slash).map_err(|_| UnreadPattern { pattern: text.clone() })?;
            let at = armed.patterns.len();
            let folded = fold_case(text);
            let mut names: Vec<&str> = folded.split('/').collect();
            let last = names.pop().unwrap_or("");
            if last.contains("**") {
                armed.beneath.push(at);
            } else if let (Some((start, _)), Some((_, end))) = (last.split_once('*'), last.rsplit_once('*')) {
                armed.by_ends.push((start.to_owned(), end.to_owned(), at));
            } else {
                armed.by_name.entry(last.to_owned()).or_default().push(at);
            }
            let literal = names.into_iter().filter(|name| !name.is_empty() && !name.contains('*'));
            armed.directories.extend(literal.map(str::to_owned));
            armed.patterns.push(pattern);
        }
        Ok(armed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether everything in a directory is one of them.
    pub fn holds_all_beneath(&self, directory: &str) -> bool {
        let path = fold_case(directory);
        self.beneath.iter().filter_map(|at| self.patterns.get(*at)).any(|pattern| pattern.matches(&path))
    }

    /// Whether a name in a directory is one of them. Both are as they are written.
    pub fn holds(&self, directory: &str, name: &str) -> bool {
        let name = fold_case(name);
        let named = self.by_name.get(&name).into_iter().flatten();
        let ends = |(start, end, _): &&(String, String, usize)| {
            name.starts_with(start) && name.ends_with(end) && name.len() >= start.len().saturating_add(end.len())
        };
        let mut found = named.chain(self.by_ends.iter().filter(ends).map(|(.., at)| at)).peekable();
        if found.peek().is_none() {
            return false;
        }
        let path = format!("{}/{name}", fold_case(directory).trim_end_matches('/'));
        found.filter_map(|at| self.patterns.get(*at)).any(|pattern| pattern.matches(&path))
    }

    /// Whether a pattern speaks of a directory of this name: who moves one there arms what is in it.
    pub fn speaks_of(&self, directory: &str) -> bool {
        let name = fold_case(directory);
        self.directories.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_wherever_they_lie() {
        let texts =
            ["**/.envrc", "**/.husky/**", "**/lefthook.y*ml", "**/.vscode/settings.json", "/p/only", "**/*.pth"];
        let armed = Armed::load(&texts.map(str::to_owned)).expect("patterns");
        for (directory, name, expected) in [
            ("/p", ".envrc", true),
            ("/p/a/b", ".ENVRC", true),
            ("/p", "envrc", false),
            ("/p", "lefthook.yml", true),
            ("/p", "lefthook.y", false),
            ("/p", "lefthook.yaml", true),
            ("/p/.vscode", "settings.json", true),
            ("/p", "settings.json", false),
            ("/p", "only", true),
            ("/q", "only", false),
            ("/p/lib", "x.pth", true),
            ("/p/.husky", "pre-commit", false),
        ] {
            assert_eq!(armed.holds(directory, name), expected, "{directory}/{name}");
        }
        assert!(armed.holds_all_beneath("/p/.husky") && armed.holds_all_beneath("/p/a/.Husky/_"));
        assert!(!armed.holds_all_beneath("/p/husky"));
        assert!(armed.speaks_of(".vscode") && armed.speaks_of(".husky") && !armed.speaks_of("src"));
        assert_eq!(Armed::load(&[String::new()]).err(), Some(UnreadPattern { pattern: String::new() }));
    }
}
