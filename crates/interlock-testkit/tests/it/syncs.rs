//! That the check for syncs before answers sees when there are none.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use interlock_testkit::trace::{SYNC_OPTIONS, answers_come_after_syncs};

/// Built beside the tests, as every example is.
fn twenty_approvals() -> PathBuf {
    let test = env::current_exe().expect("this test");
    let built = test.parent().and_then(|deps| deps.parent()).expect("the directory of the build");
    built.join("examples/twenty_approvals")
}

fn trace_of(how: &str) -> String {
    let scratch = tempfile::tempdir().expect("a directory");
    let log = scratch.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-o"]).arg(&log).args(SYNC_OPTIONS).arg(twenty_approvals()).arg(scratch.path()).arg(how);
    let ended = command.output().expect("strace");
    assert!(ended.status.success(), "{how}: {}", String::from_utf8_lossy(&ended.stderr));
    fs::read_to_string(log).expect("a trace")
}

#[test]
fn a_store_that_does_not_sync_is_found_out() {
    assert_eq!(answers_come_after_syncs(&trace_of("synced")), Ok(20));
    let unsynced = answers_come_after_syncs(&trace_of("unsynced"));
    assert!(unsynced.as_ref().is_err_and(|found| found.contains("before it was on the disk")), "{unsynced:?}");
}
