//! All commands that a pattern stands for: whether those of a question and those of a list have one in common, and
//! lines that stand for all of them. Whether one given command matches a pattern is decided in `rule::CommandPattern`.

/// The commands of a pattern.
///
/// A `*` in a word is any part of that word; as the last word it is any number of further words. In a question
/// (`Bash(git push*)`) a `*` at the very end is both, so that the question is about every line that begins so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSet {
    words: Vec<String>,
    /// Whether further words may follow.
    open: bool,
}

impl CommandSet {
    /// Reads a line of `allowed_commands`.
    pub fn listed(text: &str) -> CommandSet {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let open = words.len() > 1 && words.last().is_some_and(|word| word == "*");
        if open {
            words.pop();
        }
        CommandSet { words, open }
    }

    /// Reads what stands in the parentheses of a question.
    pub fn asked(text: &str) -> CommandSet {
        let mut pattern = CommandSet::listed(text);
        pattern.open |= text.ends_with('*');
        pattern
    }

    /// Whether it names no command at all.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && !self.open
    }

    /// Whether some command of this question is in a list's pattern. In a question that goes on after its words,
    /// options may stand between them: `git -C there push` is a `git push*`.
    pub fn overlaps(&self, listed: &CommandSet) -> bool {
        let mut theirs = listed.words.iter();
        let first = match (self.words.first(), theirs.next()) {
            (Some(mine), Some(theirs)) => words_overlap(mine, theirs),
            (None, _) | (_, None) => true,
        };
        if !self.open {
            let (mine, others) = (self.words.len(), listed.words.len());
            let lengths = mine == others || (mine > others && listed.open);
            return lengths && self.words.iter().zip(&listed.words).all(|(mine, theirs)| words_overlap(mine, theirs));
        }
        let mut after_option = false;
        first
            && self.words.iter().skip(1).all(|mine| {
                for word in theirs.by_ref() {
                    if words_overlap(mine, word) {
                        return true;
                    }
                    let option = word.starts_with(['-', '*']);
                    if !option && !after_option {
                        return false;
                    }
                    after_option = option;
                }
                listed.open
            })
    }

    /// Command lines that stand for all that match: as short as can be, and with words that nobody knows beforehand.
    /// Whoever judges both strictly enough has judged them all.
    pub fn samples(&self) -> Vec<String> {
        let bare = self.words.join(" ");
        if !self.open && !bare.contains('*') {
            return vec![bare];
        }
        let filled = bare.replace('*', "${x}");
        let tail = if self.open { " \"$@\"" } else { "" };
        vec![bare.replace('*', ""), format!("{filled}{tail}")]
    }

    /// The command by its own name, without and with further words.
    pub fn spellings(&self) -> Vec<String> {
        let bare = self.words.join(" ").replace('*', "");
        let longer = self.open.then(|| format!("{bare} \"$@\""));
        [bare].into_iter().chain(longer).collect()
    }
}

/// Whether some word matches both, where `*` is any part of it.
fn words_overlap(left: &str, right: &str) -> bool {
    let left: Vec<char> = left.chars().collect();
    // Invariant: `row[j]` says whether what was read of `left` and the first `j` characters of `right` can be equal.
    let right: Vec<char> = right.chars().collect();
    let mut row = vec![true];
    for c in &right {
        row.push(*c == '*' && row.last() == Some(&true));
    }
    for l in &left {
        let mut next = vec![*l == '*' && row.first() == Some(&true)];
        for (j, r) in right.iter().enumerate() {
            let (left_less, both_less) = (row.get(j.saturating_add(1)) == Some(&true), row.get(j) == Some(&true));
            let right_less = next.last() == Some(&true);
            let stars = (*l == '*' || *r == '*') && (left_less || right_less);
            next.push(stars || (both_less && l == r));
        }
        row = next;
    }
    row.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_patterns_overlap_if_a_command_matches_both() {
        #[rustfmt::skip]
        let cases = [
            ("git push*",  "git push",             true),
            ("git push*",  "git push origin main", true),
            ("git push*",  "git *",                true),
            ("git push*",  "git",                  false),
            ("git push*",  "git pull *",           false),
            ("git push*",  "git pu*",              true),
            ("git push",   "git pu*",              true),
            ("git push x", "git pu*",              false),
            ("git * main", "git push *",           true),
            ("git push*",  "git -C *",             true),
            ("git push*",  "git -C there push",    true),
            ("git push*",  "git -C there pull",    false),
            ("git push*",  "git diff *",           false),
            ("*",          "pytest -q",            true),
            ("pytest",     "*",                    true),
            ("pytest -q",  "*",                    false),
            ("a*c",        "ab*",                  true),
            ("a*c",        "*b",                   false),
            ("npm test",   "npm run *",            false),
        ];
        for (asked, listed, expected) in cases {
            let overlap = CommandSet::asked(asked).overlaps(&CommandSet::listed(listed));
            assert_eq!(overlap, expected, "{asked} and {listed}");
        }
    }

    #[test]
    fn samples_stand_for_all_that_match() {
        assert_eq!(CommandSet::listed("npm test").samples(), ["npm test"]);
        assert_eq!(CommandSet::listed("env *").samples(), ["env", "env \"$@\""]);
        assert_eq!(CommandSet::listed("make t*").samples(), ["make t", "make t${x}"]);
    }
}
