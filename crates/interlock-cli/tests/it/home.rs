//! A home of a test's own, and the daemons in it: they end with it, by their process ids.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::LedgerKey;
use interlock_testkit::wait::until;

use crate::serve::{PROGRAM, scratch};
use crate::{path, text};

pub(crate) struct Home {
    scratch: tempfile::TempDir,
}

impl Home {
    /// A user's directory with nothing in it but a repository.
    pub(crate) fn new() -> Home {
        let scratch = scratch();
        fs::create_dir_all(scratch.path().join("repo/.git")).expect("a repository");
        Home { scratch }
    }

    /// The user's directory.
    pub(crate) fn user(&self) -> PathBuf {
        self.scratch.path().canonicalize().expect("a directory")
    }

    /// Interlock's own.
    pub(crate) fn home(&self) -> PathBuf {
        self.user().join(".interlock")
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.user().join("repo")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.user().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.file(name)).ok()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// The command as this user runs it.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir(self.repo()).stdin(Stdio::null());
        command.env("HOME", self.user()).env("PATH", "/usr/bin:/bin").env("NO_COLOR", "1");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(PROGRAM, arguments).output().expect("it runs")
    }

    /// The same, with something to read.
    pub(crate) fn feed(&self, mut command: Command, input: &[u8]) -> Output {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        // One that has seen enough closes the pipe.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        child.wait_with_output().expect("it ends")
    }

    pub(crate) fn hook(&self, more: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(PROGRAM, &["hook", "claude-code"]);
        command.args(more);
        self.feed(command, input)
    }

    /// An event before a file of the repository is read.
    pub(crate) fn event(&self, call: &str) -> Vec<u8> {
        let repo = self.repo();
        format!(
            r#"{{"session_id":"s","transcript_path":"/dev/null","cwd":"{0}","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{{"file_path":"{0}/a"}},"tool_use_id":"{call}"}}"#,
            path(&repo)
        )
        .into_bytes()
    }

    /// The daemons that run for this home.
    pub(crate) fn daemons(&self) -> Vec<u32> {
        daemons_of(&self.home())
    }

    /// Ends the daemon and waits for it.
    pub(crate) fn end_daemons(&self) {
        end_daemons_of(&self.home());
    }

    pub(crate) fn fingerprint(&self) -> String {
        let key = LedgerKey::open(&self.home().join("data"), &SystemEntropy::new()).expect("a key");
        key.fingerprint().to_string()
    }

    /// A request over the socket; the whole answer.
    pub(crate) fn ask(&self, head: &str, body: &str) -> String {
        let (socket, mut stream) = (self.home().join("run/interlock.sock"), None);
        until("a daemon listens", || {
            stream = UnixStream::connect(&socket).ok();
            stream.is_some()
        });
        let mut stream = stream.expect("a daemon");
        let length = body.len();
        let request = format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    pub(crate) fn token(&self) -> String {
        fs::read_to_string(self.home().join("run/token")).expect("a token")
    }

    /// Holds every coding agent to its refusals.
    pub(crate) fn enforce(&self) {
        let listed = self.run(&["agents", "list", "--json"]);
        let ids =
            text(&listed.stdout).split("\"agent_id\":\"").skip(1).map(|rest| rest.split('"').next().expect("an id"));
        for id in ids {
            let output = self.run(&["agents", "enforce", id]);
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.end_daemons();
    }
}

pub(crate) fn daemons_of(home: &Path) -> Vec<u32> {
    let wanted = format!("serve\0--socket-only\0--home\0{}\0", path(home));
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id: &u32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&wanted)
    })
    .collect()
}

pub(crate) fn end_daemons_of(home: &Path) {
    until("its daemons have ended", || {
        let left = daemons_of(home);
        for id in &left {
            let _ = Command::new("kill").args(["-TERM", &id.to_string()]).stderr(Stdio::null()).status();
        }
        left.is_empty()
    });
}
