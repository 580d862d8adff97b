//! Patterns that name secrets: `--include='.env*'` reads what `.env` holds, and no path in it says so.
//!
//! A pattern counts by what it means, not by what happens to be there: it names a secret if it stands for the name of one
//! and for no ordinary file. `*` and `*.json` stand for ordinary files, `.env*` and `*.pem` do not.

use super::pattern::fold_case;
use crate::places::secret_patterns;

/// The most patterns that one with braces is taken apart into.
const PATTERNS_MAX: usize = 64;
/// The longest pattern that is looked at, in bytes.
const PATTERN_BYTES_MAX: usize = 1024;
/// Names that ordinary files have: a pattern for one of them means no secrets.
#[rustfmt::skip]
const ORDINARY: &[&str] = &[
    "x", "makefile", "main.py", "index.ts", "index.tsx", "app.js", "app.jsx", "lib.rs", "main.go", "main.c", "main.cpp", "main.h",
    "main.java", "main.kt", "main.rb", "main.php", "main.cs", "main.swift", "readme.md", "package.json", "config.json",
    "config.yml", "config.yaml", "cargo.toml", "setup.cfg", "app.conf", "app.ini", "app.properties", "data.csv",
    "data.txt", "data.xml", "data.sql", "data.db", "data.sqlite", "main.tf", "page.html", "page.css", "run.sh",
    "app.log", "yarn.lock", ".gitignore", ".eslintrc", ".github",
];

/// The path of a secret that a pattern for names or paths means, if it means one. The pattern is that of a shell or of a
/// tool that selects files; simple regular expressions are read too.
pub fn secret_by_pattern(pattern: &str) -> Option<String> {
    let is_pattern = pattern.contains(['*', '?', '[', '{', '\\', '^', '$']);
    if !is_pattern || pattern.len() > PATTERN_BYTES_MAX || pattern.starts_with('!') {
        return None;
    }
    let folded = plain(&fold_case(pattern));
    without_braces(&folded).iter().find_map(|pattern| named_by(pattern))
}

/// A regular expression for names as a pattern.
fn plain(pattern: &str) -> String {
    let text = pattern.trim_start_matches('^').trim_end_matches('$');
    text.replace("\\.", "\u{1}").replace(".*", "*").replace(".+", "*").replace('\u{1}', ".").replace('\\', "")
}

/// `*.{pem,key}` as `*.pem` and `*.key`.
fn without_braces(pattern: &str) -> Vec<String> {
    let (mut whole, mut left) = (Vec::new(), vec![pattern.to_owned()]);
    while let Some(pattern) = left.pop() {
        let group = pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
        match group {
            Some((before, (choices, after))) if whole.len().saturating_add(left.len()) < PATTERNS_MAX => {
                left.extend(choices.split(',').map(|choice| format!("{before}{choice}{after}")));
            }
            Some(_) | None => whole.push(pattern),
        }
    }
    whole
}

fn named_by(pattern: &str) -> Option<String> {
    let parts = || pattern.split('/').filter(|part| !matches!(*part, "" | "." | ".." | "*" | "**"));
    secret_patterns().find_map(|place| {
        let place = place.strip_prefix("**/").unwrap_or(place);
        let is_whole = !place.trim_end_matches("/**").contains('/');
        if is_whole && let Some(directory) = place.strip_suffix("/**") {
            let names = parts().any(|part| part == directory || means(part, directory));
            return names.then(|| format!("{directory}/x"));
        }
        // A name stands for itself and for what it leaves open.
        let samples = [place.replace("**", "x").replace('*', ""), place.replace("**", "x").replace('*', "x")];
        let found = |sample: &String| match is_whole {
            true => parts().next_back().is_some_and(|part| means(part, sample)),
            false => pattern.contains('/') && means(pattern, &format!("x/{}", sample.trim_start_matches('/'))),
        };
        samples.into_iter().find(found)
    })
}

/// Whether a pattern stands for a name on purpose: most of the name is in it, and it stands for nothing ordinary.
fn means(pattern: &str, name: &str) -> bool {
    let spelt = pattern.chars().filter(|character| !matches!(character, '*' | '?' | '[' | ']')).count();
    spelt.saturating_mul(2) >= name.chars().count() && may_match(pattern, name) && !names_ordinary_files(pattern)
}

/// Whether a pattern for names stands for ordinary files.
pub fn names_ordinary_files(pattern: &str) -> bool {
    ORDINARY.iter().any(|ordinary| may_match(pattern, ordinary))
}

/// Whether a pattern may stand for a text: `*` for any, `?` and `[…]` for one character, whichever.
fn may_match(pattern: &str, text: &str) -> bool {
    let mut signs = Vec::new();
    let mut left = pattern.chars();
    while let Some(sign) = left.next() {
        if sign != '[' {
            signs.push(sign);
            continue;
        }
        signs.push('?');
        // A `]` that comes first is one of the characters.
        let rest = left.as_str();
        let end = rest.char_indices().skip(1).find(|(_, character)| *character == ']').map(|(at, _)| at);
        let Some(end) = end else { break };
        left = rest.get(end.saturating_add(1)..).unwrap_or("").chars();
    }
    let text: Vec<char> = text.chars().collect();
    // Which beginnings of the text the signs so far stand for.
    let mut reached: Vec<bool> = core::iter::once(true).chain(text.iter().map(|_| false)).collect();
    for sign in signs {
        let mut next = vec![false; reached.len()];
        let mut any = false;
        for (at, to) in next.iter_mut().enumerate() {
            let here = reached.get(at).copied().unwrap_or(false);
            let before = at.checked_sub(1);
            let from = before.and_then(|before| reached.get(before)).copied().unwrap_or(false);
            let character = before.and_then(|before| text.get(before));
            any |= here;
            *to = match sign {
                '*' => any,
                '?' => from,
                sign => from && character == Some(&sign),
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_name_secrets() {
        for pattern in [
            ".env*",
            "*.env",
            ".e?v",
            "[.]env*",
            "**/.env*",
            "config/.env.*",
            "*.pem",
            "*.{pem,key}",
            "id_*",
            "id_rsa*",
            "*/.ssh/*",
            ".s*h/*",
            "*/.aws/cred*",
            "*credentials*",
            ".net*c",
            ".bash_h*",
            "*_history",
            "\\.env$",
            "^\\.env",
            ".*/\\.env.*",
            "*.tfvars",
            "*/gh/hosts.y*ml",
            "*ENV",
            "secrets.*",
        ] {
            assert!(secret_by_pattern(pattern).is_some(), "{pattern}");
        }
    }

    #[test]
    fn patterns_that_name_none() {
        for pattern in [
            "*",
            "**",
            "*.*",
            ".*",
            "*.py",
            "*.ts",
            "*.{ts,tsx}",
            "src/**/*.rs",
            "*.json",
            "*.y*ml",
            "*.toml",
            "test_*",
            "*_test.go",
            "*node*",
            "!.env*",
            "*.md",
            "[a-z]*",
            "?",
            "**/*.sql",
            "*/config/*",
            "*.log",
            ".git*",
            "docs/*",
            "*.lock",
            "*.pyc",
            "__pycache__",
            "*/node_modules/*",
            "*main*",
            "*.txt",
            ".env",
            "Cargo.*",
            "*spec*",
            "a{b",
            "{}",
        ] {
            assert_eq!(secret_by_pattern(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn a_long_pattern_is_not_looked_at() {
        assert!(secret_by_pattern(&format!("{}.env*", "*".repeat(900))).is_some());
        assert_eq!(secret_by_pattern(&format!("{}.env*", "*".repeat(1100))), None);
        assert!(without_braces(&"{a,b}".repeat(100)).len() <= 2 * PATTERNS_MAX);
    }
}
