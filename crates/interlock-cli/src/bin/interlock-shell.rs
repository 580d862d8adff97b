//! The shell prefix of hosts: hands one command line to the runner.

use std::process::ExitCode;

fn main() -> ExitCode {
    interlock_cli::exec::shell()
}
