//! Runs a command held to a bound that is written as JSON, for trying things out:
//! `interlock-contain BOUND COMMAND [ARGUMENT…]`, where `-` for the bound holds it to nothing.
//! `interlock-contain --probe` says what this machine can hold a command with.
//!
//! `INTERLOCK_CONTAIN_REPORT` names a file that gets what was seen.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

use interlock_core::contain::Bound;
use interlock_core::json;
use interlock_runner::{ContainFault, Session, Start, run};

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--probe") && arguments.len() == 1 {
        println!("{}", serde_json::to_string_pretty(&interlock_runner::probe()).unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    if arguments.len() < 2 {
        eprintln!("usage: interlock-contain BOUND COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    }
    let written = arguments.remove(0).to_string_lossy().into_owned();
    let bound = match written.as_str() {
        "-" => None,
        text => match json::from_str::<Bound>(text) {
            Ok(bound) => Some(bound),
            Err(error) => {
                eprintln!("the bound cannot be read: {error}");
                return ExitCode::from(2);
            }
        },
    };
    let report = env::var_os("INTERLOCK_CONTAIN_REPORT");
    let mut start = Start {
        program: arguments,
        cwd: env::current_dir().unwrap_or_default(),
        env: env::vars_os().filter(|(name, _)| name != "INTERLOCK_CONTAIN_REPORT").collect(),
        bound,
        ..Start::default()
    };
    start.temp = env::var_os("INTERLOCK_CONTAIN_TEMP").map(Into::into);
    start.aside = env::var_os("INTERLOCK_CONTAIN_ASIDE").map(Into::into);
    // `DIRECTORY:OWNER`
    let session = env::var("INTERLOCK_CONTAIN_SESSION").ok();
    start.session = session
        .as_deref()
        .and_then(|text| text.rsplit_once(':'))
        .and_then(|(directory, owner)| Some(Session { directory: directory.into(), owner: owner.parse().ok()? }));
    match run(&start) {
        Ok(ended) => {
            if let Some(report) = report {
                let _ = fs::write(report, format!("{ended:#?}\n"));
            }
            ended.exit_process()
        }
        Err(fault) => {
            eprintln!("{fault}");
            let missing =
                matches!(&fault, ContainFault::Program { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
            ExitCode::from(if missing { 127 } else { 126 })
        }
    }
}
