//! Which process is at the other end of a socket: the host that started a hook, not the hook itself.
//!
//! A host starts a new hook process for each event, so what is the same from event to event is the hook's parent. Some
//! hosts start hooks through a shell; then it is the shell's parent. An agent that runs the hook from its own shell has
//! that shell in between, and is another process.

use std::fs;
use std::path::Path;

use interlock_core::Digest;

/// The shells hosts start hooks with.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];

/// Names the host process behind a hook with this process id. Where that cannot be told, all are one.
pub fn host_process(hook: i32) -> Digest {
    let parent = parent_of(hook).map(|parent| if is_shell_of_hook(parent) { parent_of(parent) } else { Some(parent) });
    match parent.flatten().and_then(|host| Some((host, started(host)?))) {
        Some((host, started)) => Digest::of(&["process\n", &host.to_string(), "\n", &started]),
        None => Digest::of(&["process\nunknown\n"]),
    }
}

/// The fields of `/proc/PID/stat` after the name, which may hold anything.
fn stat(process: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

fn parent_of(process: i32) -> Option<i32> {
    stat(process)?.get(1)?.parse().ok().filter(|parent| *parent > 1)
}

/// When it started, in ticks since the machine did: a number that is used again has another.
fn started(process: i32) -> Option<String> {
    stat(process)?.get(19).cloned()
}

/// Whether a process is a shell that was started to run a hook and nothing else: `sh -c '… hook HOST …'`.
fn is_shell_of_hook(process: i32) -> bool {
    let Ok(line) = fs::read(Path::new("/proc").join(process.to_string()).join("cmdline")) else { return false };
    let mut words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let (shell, flag, command) = (words.next(), words.next(), words.next());
    let is_shell = shell.is_some_and(|shell| SHELLS.contains(&shell.rsplit('/').next().unwrap_or("")));
    let is_hook = command.is_some_and(|command| {
        let plain = !command.contains([';', '&', '|', '\n', '<', '>', '`', '$', '(']);
        plain && command.contains("interlock") && command.split_whitespace().any(|word| word == "hook")
    });
    is_shell && flag.as_deref() == Some("-c") && is_hook
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_by_its_parent() {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        assert_eq!(host_process(own), host_process(own), "the same twice");
        assert_ne!(host_process(own), host_process(1), "another parent");
    }
}
