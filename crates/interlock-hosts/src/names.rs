//! Patterns of names in which a search looks: whether one reaches files that the search itself would leave out.

/// Hidden files whose contents open other doors. A search leaves hidden files out, unless a pattern asks for them.
#[rustfmt::skip]
const HIDDEN: &[&str] = &[
    ".env", ".envrc", ".env.local", ".env.development", ".env.production", ".env.staging", ".env.test", ".netrc", ".pgpass",
    ".npmrc", ".pypirc", ".git-credentials", ".vault-token", ".my.cnf", ".htpasswd", ".bash_history", ".zsh_history",
];
const WILD: [char; 5] = ['*', '?', '[', ']', '\\'];

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
                is_wild(&whole) || HIDDEN.contains(&whole.as_str())
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
    first == '*' && HIDDEN.iter().any(|hidden| hidden.ends_with(tail))
}

#[cfg(test)]
mod tests {
    use super::may_find_hidden;

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
