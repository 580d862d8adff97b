//! Patterns that name secrets: `--include='.env*'` reads what `.env` holds, and no path in it says so.
//!
//! A pattern counts by what it means, not by what happens to be there: it names a secret if it stands for the name of one
//! and for no ordinary file. `*` and `*.json` stand for ordinary files, `.env*` and `*.pem` do not.

use super::pattern::{ShellPattern, fold_case};
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
    spelt.saturating_mul(2) >= name.chars().count()
        && ShellPattern::new(pattern).matches(name)
        && !names_ordinary_files(pattern)
}

/// Whether a pattern for names stands for ordinary files.
pub fn names_ordinary_files(pattern: &str) -> bool {
    let pattern = ShellPattern::new(pattern);
    ORDINARY.iter().any(|ordinary| pattern.matches(ordinary))
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
