//! Which process is at the other end of a socket: the host that started a hook, not the hook itself; and what it comes
//! from.
//!
//! A host starts a new hook process for each event, so what is the same from event to event is the hook's parent. Some
//! hosts start hooks through a shell; then it is the shell's parent. An agent that runs the hook from its own shell has
//! that shell in between, and is another process. What this means is decided in `interlock_core::workflow`.

use std::fs;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use interlock_core::Digest;
use interlock_core::workflow::{Forebear, HostSeen, Lineage};

/// The shells hosts start hooks with.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];
/// The most processes that one is followed up through.
const FOREBEARS_MAX: usize = 128;
/// The process that takes in orphans, wherever there is no nearer one.
const INIT: i32 = 1;
/// The name of a service manager, which takes in the orphans of those it started.
const SERVICE_MANAGER: &str = "systemd";

/// Names the host process behind a hook with this process id. Where that cannot be told, all are one.
pub fn host_process(hook: i32) -> Digest {
    match host_of(hook) {
        Some((_, host)) => host.name,
        None => Digest::of(&["process\nunknown\n"]),
    }
}

/// Names the host process behind a runner: it started the runner itself, or the one shell whose line has the runner's
/// ticket in it.
pub fn runner_process(runner: i32, ticket: Option<&str>) -> Digest {
    let is_shell = |process: i32| ticket.is_some_and(|ticket| is_shell_of_line(process, ticket));
    match behind(runner, is_shell) {
        Some((_, host)) => host.name,
        None => Digest::of(&["process\nunknown\n"]),
    }
}

/// The host process behind a hook, and what it comes from. Nothing where the system does not tell.
pub fn lineage(hook: i32) -> Option<Lineage> {
    let (number, first) = host_of(hook)?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let group = fs::read_to_string(of_process(number).join("cgroup")).unwrap_or_default();
    let host = HostSeen {
        process: first.name,
        started: first.started,
        boot: Digest::of(&["boot\n", boot.trim()]),
        group: Digest::of(&["group\n", &group]),
        began: false,
    };
    let (mut above, mut below) = (Vec::new(), first);
    while below.parent > 0 && above.len() < FOREBEARS_MAX {
        let parent = Process::look_up(below.parent)?;
        above.push(Forebear {
            process: parent.name,
            started: parent.started,
            adopts: takes_in_orphans(below.parent, &parent) && !below.holds_terminal_of(&parent),
        });
        below = parent;
    }
    // Whoever has no parent here was started elsewhere; the first process of all was not.
    let from_outside = below.parent == 0 && below.number != INIT;
    Some(Lineage { host, above, from_outside })
}

/// Remembers who started this process, to see later who takes in orphans here. Called at start.
pub fn remember_parent() {
    FIRST_PARENT.get_or_init(parent_id);
}

static FIRST_PARENT: OnceLock<u32> = OnceLock::new();

/// Whether a process takes in those whose parents are gone: the first one, a service manager, and whoever took us in.
fn takes_in_orphans(number: i32, process: &Process) -> bool {
    let ours = parent_id();
    let took_us_in = FIRST_PARENT.get().is_some_and(|first| *first != ours) && i32::try_from(ours) == Ok(number);
    number == INIT || process.is_service_manager || took_us_in
}

/// What the system tells of a process.
struct Process {
    number: i32,
    /// Number and start: a number that is used again has another start.
    name: Digest,
    /// Nought if it has none here.
    parent: i32,
    group: String,
    session: String,
    terminal: String,
    /// The group that has the terminal.
    foreground: String,
    started: u64,
    is_service_manager: bool,
}

impl Process {
    fn look_up(number: i32) -> Option<Process> {
        let text = fs::read_to_string(of_process(number).join("stat")).ok()?;
        // The name may hold anything.
        let (before, fields) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |at: usize| fields.get(at).map(|field| (*field).to_owned());
        let started = field(19)?;
        Some(Process {
            number,
            name: Digest::of(&["process\n", &number.to_string(), "\n", &started]),
            parent: field(1)?.parse().ok()?,
            group: field(2)?,
            session: field(3)?,
            terminal: field(4)?,
            foreground: field(5)?,
            started: started.parse().ok()?,
            is_service_manager: before.split_once('(').is_some_and(|(_, name)| name == SERVICE_MANAGER),
        })
    }

    /// Whether it works in the foreground of its parent's own terminal, as what a person starts in a shell does.
    fn holds_terminal_of(&self, parent: &Process) -> bool {
        let same = self.session == parent.session && self.terminal == parent.terminal;
        same && self.terminal != "0" && self.foreground == self.group
    }
}

fn of_process(number: i32) -> PathBuf {
    Path::new("/proc").join(number.to_string())
}

/// The host behind a hook. The first process of all is none: orphans of calls become its children.
fn host_of(hook: i32) -> Option<(i32, Process)> {
    behind(hook, is_shell_of_hook)
}

/// The process that started another, itself or through one shell of the kind that is meant.
fn behind(number: i32, is_shell: impl Fn(i32) -> bool) -> Option<(i32, Process)> {
    let parent = |number: i32| Some(Process::look_up(number)?.parent).filter(|parent| *parent > INIT);
    let first = parent(number)?;
    let number = if is_shell(first) { parent(first)? } else { first };
    Some((number, Process::look_up(number)?))
}

/// Whether a process is a shell that was started to run a hook and nothing else: `sh -c '… hook HOST …'`.
fn is_shell_of_hook(process: i32) -> bool {
    shell_line(process).is_some_and(|command| {
        let plain = !command.contains([';', '&', '|', '\n', '<', '>', '`', '$', '(']);
        plain && command.contains("interlock") && command.split_whitespace().any(|word| word == "hook")
    })
}

/// Whether a process is a shell that was started to run the line with this ticket.
fn is_shell_of_line(process: i32, ticket: &str) -> bool {
    shell_line(process).is_some_and(|command| command.split([' ', ';', '\n']).any(|word| word == ticket))
}

/// What a shell was started to run: `sh -c LINE`.
fn shell_line(process: i32) -> Option<String> {
    let line = fs::read(of_process(process).join("cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let (shell, flag, command) = (words.next()?, words.next()?, words.next()?);
    let is_shell = SHELLS.contains(&shell.rsplit('/').next().unwrap_or(""));
    (is_shell && flag == "-c").then_some(command)
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

    #[test]
    fn a_runner_is_followed_through_the_shell_of_its_line() {
        let (ticket, own) = ("AAAABBBBCCCCDDDD", i32::try_from(std::process::id()).unwrap_or(0));
        let line = format!("( : . /run.sh {ticket}; echo; cat\n); exit 0");
        let mut shell = std::process::Command::new("bash");
        let shell = shell.args(["-c", &line]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().expect("bash");
        // It is what it is called once it has said something.
        let said = std::io::Read::read(shell.stdout.as_mut().expect("a pipe"), &mut [0; 1]);
        assert_eq!(said.ok(), Some(1));
        let number = i32::try_from(shell.id()).expect("a number");
        assert!(is_shell_of_line(number, ticket));
        assert!(!is_shell_of_line(number, "AAAABBBBCCCCDDD") && !is_shell_of_hook(number));
        let through = behind(number, |_| false).map(|(_, process)| process.name);
        assert_eq!(through, Process::look_up(own).map(|process| process.name));
        drop(shell.stdin.take());
        shell.wait().expect("it ends");
        assert_eq!(runner_process(own, None), host_process(own));
    }

    #[test]
    fn a_process_is_followed_up_to_the_first_one() {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let line = lineage(own).expect("who started this test");
        assert_eq!(line.host.process, host_process(own));
        assert!(line.above.iter().all(|above| above.started <= line.host.started), "parents are older: {line:?}");
        let parent = i32::try_from(parent_id()).expect("a number");
        let above = Process::look_up(parent).expect("a process").parent;
        let expected = Process::look_up(above).map(|process| process.name);
        assert_eq!(line.above.first().map(|above| above.process), expected);
    }
}
