//! The real binary on a disk that fails: the system calls themselves are made to fail, one after the other.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::{path, text};

const OLD: &str = r#"{"n":1}"#;

struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new(pad: usize) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let guard = format!(
            r#"{{"required_schema": {{"type": "object", "properties": {{"n": {{"type": "integer"}}, "pad": {{"type": "string"}}}}}},
                "transition_rules": {{"monotonic_integer_paths": ["$.n"]}}, "allowed_commit_roots": ["{}"]}}"#,
            path(root)
        );
        let write = |name: &str, text: &str| fs::write(root.join(name), text).expect("written");
        write("guard", &guard);
        write("current", OLD);
        write("state.json", OLD);
        write("proposed", &format!(r#"{{"n":2,"pad":"{}"}}"#, "x".repeat(pad)));
        World { directory }
    }

    fn file(&self, name: &str) -> String {
        path(&self.directory.path().join(name)).to_owned()
    }

    fn contents(&self) -> String {
        fs::read_to_string(self.file("state.json")).expect("a state")
    }

    /// The commit as shell words.
    fn command(&self) -> String {
        format!(
            "{} state verify --json --guard {} --current {} --proposed {} --commit {}",
            env!("CARGO_BIN_EXE_interlock"),
            self.file("guard"),
            self.file("current"),
            self.file("proposed"),
            self.file("state.json")
        )
    }

    fn run(&self, before: &str) -> Output {
        Command::new("bash").args(["-c", &format!("{before} {}", self.command())]).output().expect("bash")
    }

    fn litter(&self) -> bool {
        fs::read_dir(self.directory.path())
            .expect("a directory")
            .any(|entry| entry.expect("an entry").file_name().to_string_lossy().contains("interlock"))
    }
}

#[test]
fn a_full_disk_is_a_denial_and_the_old_state_stays() {
    // A limit on the size of files stands in for the end of the disk: the write stops in the middle.
    let world = World::new(20_000);
    let output = world.run("trap '' XFSZ; ulimit -f 4;");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("QWED-AGENT-STATE-108"), "{}", text(&output.stdout));
    assert_eq!(world.contents(), OLD);
    assert!(!world.litter());
    assert_eq!(world.run("").status.code(), Some(0));
}

#[test]
fn every_system_call_that_fails_is_a_denial() {
    // Which calls a commit makes, in the words of the kernel, and what must come out when one fails.
    let calls = [
        ("openat2", "EACCES", "107"),
        ("flock", "ENOLCK", "108"),
        ("write", "ENOSPC", "108"),
        ("write", "EIO", "108"),
        ("fchmod", "EPERM", "108"),
        ("fsync", "EIO", "108"),
        ("renameat", "EIO", "108"),
    ];
    for (call, error, code) in calls {
        let world = World::new(50);
        // A mode of its own makes the commit set it.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
        fs::set_permissions(world.file("state.json"), mode).expect("a mode");
        let trace = world.file("trace");
        let inject = format!("strace -qq -f -o {trace} -e trace={call} -e inject={call}:error={error}:when=1");
        let output = world.run(&inject);
        let traced = fs::read_to_string(Path::new(&trace)).unwrap_or_default();
        assert!(traced.contains("INJECTED"), "{call} was never called: {traced} {}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{call}: {}{}", text(&output.stdout), text(&output.stderr));
        let expected = format!("QWED-AGENT-STATE-{code}");
        assert!(text(&output.stdout).contains(&expected), "{call}: {}", text(&output.stdout));
        assert_eq!(world.contents(), OLD, "{call}");
        assert!(!world.litter(), "{call} left something behind");
        assert_eq!(world.run("").status.code(), Some(0), "the commit after {call} failed");
    }
}

#[test]
fn a_failed_directory_sync_is_not_acknowledged() {
    let world = World::new(50);
    let output = world.run("strace -qq -f -o /dev/null -e trace=fsync -e inject=fsync:error=EIO:when=2");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("QWED-AGENT-STATE-108"), "{}", text(&output.stdout));
    assert!(world.contents().starts_with(r#"{"n":2,"#), "the rename happened before the sync");
}

#[test]
fn the_sync_comes_before_the_rename_and_the_answer_last() {
    let world = World::new(50);
    let trace = world.file("trace");
    let output = world.run(&format!("strace -qq -f -o {trace} -e trace=flock,fsync,renameat,write"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let traced = fs::read_to_string(&trace).expect("a trace");
    let calls: Vec<&str> = traced
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .filter_map(|call| call.split('(').next())
        .filter(|call| ["flock", "fsync", "renameat", "write"].contains(call))
        .collect();
    assert_eq!(calls, ["flock", "write", "fsync", "renameat", "fsync", "flock", "write"], "{traced}");
}

#[test]
fn an_answer_that_cannot_be_written_is_said_on_standard_error() {
    let world = World::new(50);
    let output = Command::new("bash").args(["-c", &format!("{} > /dev/full", world.command())]).output().expect("bash");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the state WAS committed"), "{}", text(&output.stderr));
    assert!(world.contents().starts_with(r#"{"n":2,"#));
}
