//! The command, run as a user runs it.

mod adoption;
mod attest;
mod audit;
mod backup;
mod conformance;
mod doctor;
mod engines;
mod exec;
mod exec_kills;
mod faults;
mod gateway;
mod golden;
mod home;
mod hook;
mod install;
mod operator;
mod recorded;
mod serve;
mod shut_in;
mod stopping;
mod telemetry;
mod tls;
mod undo;
mod usage;
mod whole;
mod workflow;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use interlock_testkit::repository;

/// The binary, with no colours and nothing of the caller's environment that could matter.
fn interlock(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
    command.args(arguments).env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1").current_dir(repository());
    command
}

fn run(arguments: &[&str]) -> Output {
    interlock(arguments).stdin(Stdio::null()).output().expect("the binary runs")
}

fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = interlock(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A child that has seen enough closes the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
