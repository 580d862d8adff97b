//! The hooks that lie in a repository, and whether they may run what lies in the project.
//!
//! Only git and a person write what is in a `.git`. But a hook that is there may call a script of the project, or a tool
//! that reads what to do from it, and those the agent writes. A hook is read here and never run: one whose commands are
//! all known, and that runs nothing else, does what its author wrote.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use interlock_core::call::Effect;
use interlock_verifiers::shell::{Hooks, Setting, classify};

use crate::git_config::common;

/// The largest hook that is read, in bytes.
const BYTES_MAX: u64 = 1 << 16;
/// The most files that are looked at; git knows fewer hooks, and its samples are no more. Beyond it there may be any.
const HOOKS_MAX: usize = 64;
/// The shells whose scripts are read.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "ash"];

/// The hooks of a repository that may run what lies in the project, if there are any.
pub(crate) fn of(repository: &Path) -> Option<Hooks> {
    let directory = common(repository).join("hooks");
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        // Git finds hooks by their names, in a directory too that it may not list.
        Err(_) => return Some(any()),
    };
    let mut present = BTreeSet::new();
    for (count, entry) in entries.enumerate() {
        let Some(entry) = entry.ok().filter(|_| count < HOOKS_MAX) else { return Some(any()) };
        let name = entry.file_name().to_string_lossy().into_owned();
        // Git runs what has exactly the name of a hook, and may be run.
        let runs =
            |path: &Path| fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
        if !name.contains('.') && runs(&entry.path()) && may_run_others(&entry.path()) {
            present.insert(name);
        }
    }
    let first = present.first()?;
    Some(Hooks { setting: format!("hooks/{first}"), are_guarded: true, present: Some(present) })
}

/// Hooks of which nobody knows which there are.
fn any() -> Hooks {
    Hooks { setting: "hooks".to_owned(), are_guarded: true, present: None }
}

/// Whether a hook may run more than what it says itself. What cannot be read may do anything.
fn may_run_others(hook: &Path) -> bool {
    // A link leads to a file that somebody else may write.
    let is_plain = hook.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    let Some(text) = is_plain.then(|| fs::read_to_string(hook).ok()).flatten() else { return true };
    if !is_of_shell(&text) {
        return true;
    }
    // `git lfs` is a program of its own, and reads nothing from the project that names another.
    let own: Vec<&str> = text.lines().filter(|line| !is_of_lfs(line)).collect();
    let Ok(setting) = Setting::built_in() else { return true };
    let analysis = classify(&own.join("\n"), &setting);
    !analysis.understood || analysis.causes.iter().any(|found| found.effect == Effect::Unknown)
}

fn is_of_shell(text: &str) -> bool {
    let Some(first) = text.lines().next().and_then(|line| line.strip_prefix("#!")) else { return true };
    let mut words = first.split_whitespace();
    let name = |word: &str| word.rsplit('/').next().unwrap_or("").to_owned();
    let program = match words.next().map(name) {
        Some(env) if env == "env" => words.next().map(name),
        program => program,
    };
    program.is_some_and(|program| SHELLS.contains(&program.as_str())) && words.all(|word| word.starts_with('-'))
}

/// `git lfs pre-push "$@"`, as `git lfs install` writes it.
fn is_of_lfs(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    words.next() == Some("git")
        && words.next() == Some("lfs")
        && words.next().is_some_and(is_word)
        && words.all(|word| word == "\"$@\"")
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn where_hooks_cannot_be_told_there_may_be_any() {
        let repository = env::temp_dir().join(format!("interlock-hooks-{}", std::process::id()));
        let hooks = repository.join("hooks");
        let _ = fs::remove_dir_all(&repository);
        assert_eq!(of(&repository), None, "there is no directory");
        fs::create_dir_all(&hooks).unwrap();
        for number in 0..HOOKS_MAX {
            fs::write(hooks.join(format!("{number}.sample")), "").unwrap();
        }
        assert_eq!(of(&repository), None, "samples are none");
        fs::write(hooks.join("one-more.sample"), "").unwrap();
        assert_eq!(of(&repository), Some(any()), "too many to look at");
        fs::remove_dir_all(&hooks).unwrap();
        fs::write(&hooks, "").unwrap();
        assert_eq!(of(&repository), Some(any()), "a directory that cannot be listed");
        fs::remove_dir_all(&repository).unwrap();
    }
}
