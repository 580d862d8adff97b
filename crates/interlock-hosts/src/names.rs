//! Patterns of names in which a search looks: whether one reaches files that the search itself would leave out.
//!
//! A search leaves hidden files out, unless a pattern asks for them.

use interlock_core::places::hidden_secrets;
use interlock_core::rule::names_ordinary_files;

const WILD: [char; 5] = ['*', '?', '[', ']', '\\'];

/// The most words that braces in one pattern may stand for.
const ALTERNATIVES_MAX: usize = 64;

/// A pattern, and what it is taken apart into: at blanks, and at commas that are in no braces.
pub(crate) fn pieces(pattern: &str) -> Vec<String> {
    let is_blank = |character: char| character.is_whitespace() || character == '\u{feff}';
    let mut pieces = vec![pattern.to_owned()];
    for word in pattern.split(is_blank) {
        let braced = word.contains('{') && word.contains('}');
        let parts: Vec<&str> = if braced { vec![word] } else { word.split(',').collect() };
        pieces.extend(parts.into_iter().filter(|part| !part.is_empty() && *part != pattern).map(str::to_owned));
    }
    pieces
}

/// The patterns without braces that one with braces stands for; nothing if they are in doubt, or too many.
pub(crate) fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let (mut waiting, mut found) = (vec![pattern.to_owned()], Vec::new());
    while let Some(pattern) = waiting.pop() {
        let Some((before, rest)) = pattern.split_once('{') else {
            (!pattern.contains('}')).then_some(())?;
            found.push(pattern);
            continue;
        };
        let (list, after) = rest.split_once('}')?;
        // A list in a list, a list of one, and a range are read in more than one way.
        (!list.contains('{') && list.contains(',') && !before.contains('}')).then_some(())?;
        waiting.extend(list.split(',').rev().map(|word| format!("{before}{word}{after}")));
        (waiting.len().saturating_add(found.len()) <= ALTERNATIVES_MAX).then_some(())?;
    }
    Some(found)
}

/// Whether a path stands for others. Lists in parentheses and exclusions are patterns too, which nobody here reads.
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', ']', '(', ')', '!'])
}

/// Whether a text is the name of a kind of files, and nothing that a search could take for more.
pub(crate) fn is_kind(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'-');
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain)
}

/// Whether a pattern that does not name it may stand for such a file.
pub(crate) fn may_find_hidden(pattern: &str) -> bool {
    let pattern = pattern.trim_start_matches('!');
    let (directories, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    if directories.contains(['{', '}']) {
        return true;
    }
    match (last.split_once('{'), last.contains('}')) {
        (None, false) => is_wild(last),
        (Some((before, rest)), true) => match rest.split_once('}') {
            // One list of plain words, the usual form; whatever is more than that may be anything.
            Some((list, after)) if !list.contains('{') && !after.contains(['{', '}']) => list.split(',').any(|word| {
                let whole = format!("{before}{word}{after}");
                is_wild(&whole) || hidden_secrets().any(|hidden| hidden == whole)
            }),
            Some(_) | None => true,
        },
        (None, true) | (Some(_), false) => true,
    }
}

fn is_wild(name: &str) -> bool {
    let Some(first) = name.chars().next() else { return false };
    if !name.contains(WILD) {
        return false;
    }
    if first != '*' && (first == '.' || WILD.contains(&first)) {
        return true;
    }
    let tail = name.rsplit(WILD).next().unwrap_or("");
    let reaches = || hidden_secrets().any(|hidden| hidden.ends_with(tail)) && !names_ordinary_files(name);
    first == '*' && (tail.is_empty() || reaches())
}

#[cfg(test)]
mod tests {
    use super::{alternatives, is_kind, may_find_hidden, pieces};

    #[test]
    fn patterns_are_taken_apart_as_hosts_do() {
        assert_eq!(pieces("*.rs"), ["*.rs"]);
        assert_eq!(pieces("x .env"), ["x .env", "x", ".env"]);
        assert_eq!(pieces("!x,.env"), ["!x,.env", "!x", ".env"]);
        assert_eq!(pieces("a\u{a0}b\n.e*"), ["a\u{a0}b\n.e*", "a", "b", ".e*"]);
        assert_eq!(pieces("*.{ts,tsx} .env"), ["*.{ts,tsx} .env", "*.{ts,tsx}", ".env"]);
        assert_eq!(alternatives("a").as_deref(), Some(["a".to_owned()].as_slice()));
        assert_eq!(alternatives("{a,b}/{c,d}").map(|all| all.join(" ")).as_deref(), Some("a/c a/d b/c b/d"));
        for pattern in ["{a", "a}", "{a}", "{1..3}", "{a,{b,c}}", "}{a,b}", &"{a,b}".repeat(7)] {
            assert_eq!(alternatives(pattern), None, "{pattern}");
        }
        assert!(["py", "c++", "objc-x"].into_iter().all(is_kind));
        assert!(!["", "py -g .env", "-g", "a,b", "a\n", ".env"].into_iter().any(is_kind));
    }

    #[test]
    fn patterns_that_ask_for_hidden_files_are_told_from_those_that_do_not() {
        for pattern in [
            ".e*",
            "{.env,x}",
            "{x,.e*}",
            ".[e]nv",
            ".??v",
            "?env",
            "[.]env",
            "*",
            "**/*",
            "*env",
            "**/.env*",
            "*.{env,x}",
            "a/{b,c}/x",
            "{a,{b,c}}",
            "*.local",
            "\\.env",
        ] {
            assert!(may_find_hidden(pattern), "{pattern}");
        }
        for pattern in
            ["*.rs", "**/*.ts", "*.{ts,tsx}", "src/**/*.py", "Cargo.toml", "test_*.py", "!*.min.js", "docs/*.md"]
        {
            assert!(!may_find_hidden(pattern), "{pattern}");
        }
    }
}
