//! Command lines, as a shell's grammar reads them elsewhere, and patterns for the simple commands in them: whole words, and
//! further words only where the pattern ends in `*`.

use super::call::{CallHost, CallPath};
use super::pattern::{Pattern, Separator};
use crate::cause::Cause;

/// What a command line names. Core reads no shell: whoever asks for a ruling brings the reader along.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    /// The words of its simple commands; `None` where a word is not known.
    pub commands: Vec<Vec<Option<String>>>,
    /// The paths that it may touch, as they are written.
    pub paths: Vec<CallPath>,
    /// The hosts that it may reach.
    pub hosts: Vec<CallHost>,
    /// Every part of it is understood.
    pub is_understood: bool,
}

/// A text as one word of a command line, in quotes where a shell would read something else.
pub fn shell_quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The words of a line that is quoted as [`shell_quoted`] quotes, one blank between them; nothing if it is written in any
/// other way. So no shell reads it differently.
///
/// ```
/// use interlock_core::rule::shell_words;
///
/// assert_eq!(shell_words("make 'a b' 'it'\\''s'"), Some(vec!["make".to_owned(), "a b".to_owned(), "it's".to_owned()]));
/// assert_eq!(shell_words("ls *.rs"), None);
/// assert_eq!(shell_words("a; b"), None);
/// ```
pub fn shell_words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' => words.extend(word.take()),
            '\'' => {
                let inner = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        quoted => inner.push(quoted),
                    }
                }
            }
            '\\' => match rest.next()? {
                '\'' => word.get_or_insert_default().push('\''),
                _ => return None,
            },
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    let quoted: Vec<String> = words.iter().map(|word| shell_quoted(word)).collect();
    (quoted.join(" ") == line).then_some(words)
}

/// The most words a pattern may have.
const WORDS_MAX: usize = 64;

/// A pattern for the words of a simple command, as rules and workflows write it: `git push *`, `npm run test:*`.
///
/// Each word stands for one word; a `*` in it for any text within that word. A last word that is `*` alone stands for
/// any further words, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<Pattern>,
    /// Further words may follow.
    is_open: bool,
}

impl CommandPattern {
    /// Reads a pattern, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<CommandPattern, Cause> {
        let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
        let is_open = words.len() > 1 && words.last() == Some(&"*");
        if is_open {
            words.pop();
        }
        if words.is_empty() {
            return Err("command: an empty pattern can never match".into());
        }
        if words.len() > WORDS_MAX {
            return Err(format!("command: at most {WORDS_MAX} words").into());
        }
        let words = words.into_iter().map(|word| Pattern::parse(word, Separator::None));
        let words = words.collect::<Result<_, _>>().map_err(|error| Cause::while_doing("command", error))?;
        Ok(CommandPattern { words, is_open })
    }

    /// Whether a command is certainly one of these: every word is known, and none is left over.
    pub fn covers(&self, words: &[Option<String>]) -> bool {
        let long_enough = words.len() == self.words.len() || self.is_open && words.len() > self.words.len();
        long_enough
            && words.iter().all(Option::is_some)
            && self.words.iter().zip(words).all(|(pattern, word)| word.as_ref().is_some_and(|w| pattern.matches(w)))
    }

    /// Whether a command may be one of these: words that are not known may be any, and where further words may follow
    /// they may stand in between as well, as options do (`git -C there push`).
    pub fn may_be(&self, words: &[Option<String>]) -> bool {
        let fits = |pattern: &Pattern, word: &Option<String>| word.as_ref().is_none_or(|word| pattern.matches(word));
        // A word that is not known may become several.
        let is_open = self.is_open || words.iter().any(Option::is_none);
        if !is_open {
            return words.len() == self.words.len() && self.words.iter().zip(words).all(|(p, word)| fits(p, word));
        }
        let (Some((first, rest)), Some((name, others))) = (self.words.split_first(), words.split_first()) else {
            return false;
        };
        if !fits(first, name) {
            return false;
        }
        if words.iter().any(Option::is_none) {
            // What it becomes may be whatever is missing; what is known must not contradict a first word.
            return true;
        }
        let mut others = others.iter();
        rest.iter().all(|pattern| others.any(|word| fits(pattern, word)))
    }

    /// How many words it gives, beside the `*` at its end.
    pub fn fixed_words(&self) -> usize {
        self.words.len()
    }

    /// A word that every command it covers has in it.
    pub(super) fn literal_word(&self) -> Option<String> {
        self.words.iter().rev().find(|word| word.is_literal()).map(Pattern::prefix)
    }

    pub(super) fn matches_everything(&self) -> bool {
        self.words.iter().all(Pattern::matches_everything)
    }
}

#[cfg(test)]
mod tests {
    use super::CommandPattern;

    fn words(text: &str) -> Vec<Option<String>> {
        text.split(' ').map(|word| (word != "?").then(|| word.to_owned())).collect()
    }

    #[test]
    fn whole_words_count_and_further_ones_only_through_a_star() {
        // pattern, command, certainly, perhaps
        for (pattern, command, covers, may_be) in [
            ("git status", "git status", true, true),
            ("git status", "git status -s", false, false),
            ("git status", "git statusx", false, false),
            ("git status *", "git status", true, true),
            ("git status *", "git status -s .", true, true),
            ("git push *", "git -C there push", false, true),
            ("git push *", "git commit -m x", false, false),
            ("npm run test:*", "npm run test:unit", true, true),
            ("npm run test:*", "npm run test:unit --watch", false, false),
            ("npm run *", "npm run", true, true),
            ("* --version", "node --version", true, true),
            ("* --version", "rm -rf", false, false),
            ("pytest *", "?", false, true),
            ("pytest *", "pytest ?", false, true),
            ("pytest", "pytest ?", false, true),
            ("pytest *", "rm ?", false, false),
            ("*", "ls", true, true),
            ("*", "ls -l", false, false),
        ] {
            let (read, words) = (CommandPattern::parse(pattern).expect(pattern), words(command));
            assert_eq!((read.covers(&words), read.may_be(&words)), (covers, may_be), "`{pattern}` and `{command}`");
        }
        assert!(CommandPattern::parse("  ").is_err());
        assert!(CommandPattern::parse(&"a ".repeat(65)).is_err());
        assert!(CommandPattern::parse(&"a ".repeat(64)).is_ok());
    }
}
