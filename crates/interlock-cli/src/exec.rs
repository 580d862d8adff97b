//! `interlock exec`: runs a command line that was judged, held by the kernel to what was decided about it.
//!
//! It asks the daemon, which records the start before it answers, and carries out what is answered; it decides nothing.
//! Whatever goes wrong before the command starts, nothing has run: exit code 126 and one line. Afterwards streams,
//! signals and the exit code are the command's.

mod asked;
mod run;
mod shut_in;

use std::env;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{self, ExitCode};

use clap::Args;
use interlock_core::{Code, Digest, json, visible};
use interlock_runner::Abilities;

use crate::hook::parse_fingerprint;
use crate::serve;

/// The exit code of what was not run, as shells have it.
const NOT_RUN: u8 = 126;
/// The exit code of a program that is not there, as shells have it.
const NOT_FOUND: u8 = 127;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock exec -- npm test
  interlock exec --profile read -c 'grep -r TODO . | sort'

With a ticket it runs the call that was judged, and nothing else. Hosts run it that way; `interlock install HOST` tells them
to. Without one it is a run of your own, held to the profile. Exit codes: the command's; 126 nothing was run.")]
pub(crate) struct ExecArguments {
    /// The ticket of a call that was judged
    #[arg(long, value_name = "TICKET", allow_hyphen_values = true)]
    ticket: Option<String>,
    /// What to hold a run of your own to [default: project]
    #[arg(long, value_name = "NAME", conflicts_with = "ticket")]
    profile: Option<String>,
    /// The project of a run of your own [default: the one you are in]
    #[arg(long, value_name = "DIR", conflicts_with = "ticket")]
    project: Option<PathBuf>,
    /// A command line, for bash
    #[arg(short = 'c', value_name = "LINE", allow_hyphen_values = true)]
    line: Option<String>,
    /// A command and its arguments
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "line")]
    command: Vec<String>,
    /// Say what the kernel can hold commands to here, and run nothing
    #[arg(long, conflicts_with_all = ["line", "command", "ticket", "profile", "project"])]
    probe: bool,
    /// The home of the daemon [default: INTERLOCK_HOME, else ~/.interlock]
    #[arg(long, value_name = "DIR", hide = true)]
    home: Option<PathBuf>,
    /// Believe only the daemon that holds this key
    #[arg(long, value_name = "FINGERPRINT", value_parser = parse_fingerprint, hide = true)]
    daemon: Option<Digest>,
    /// What Claude Code hands to its shell prefix
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, hide = true,
        conflicts_with_all = ["ticket", "profile", "project", "line", "command", "probe"])]
    prefixed: Option<String>,
    /// What a shell runs that reads our script
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, hide = true,
        conflicts_with_all = ["ticket", "profile", "project", "line", "command", "probe", "prefixed"])]
    sourced: Option<String>,
}

/// What the kernel can hold commands to, tried in a process of its own: the caller may have many threads.
pub(crate) fn probe_apart() -> Option<Abilities> {
    let binary = env::current_exe().ok()?;
    let probed = process::Command::new(binary).args(["exec", "--probe"]).output().ok()?;
    let told = probed.status.success().then_some(probed.stdout)?;
    json::from_str(core::str::from_utf8(&told).ok()?.trim()).ok()
}

/// Why nothing was run.
struct NotRun {
    code: Option<Code>,
    /// A code that a newer daemon may have sent.
    told: Option<String>,
    message: String,
    exit: u8,
}

impl NotRun {
    fn new(code: Code, message: impl Into<String>) -> NotRun {
        NotRun { code: Some(code), told: None, message: message.into(), exit: NOT_RUN }
    }

    /// One line for whoever reads the command's error output.
    fn line(&self) -> String {
        let code = self.told.as_deref().or(self.code.map(Code::as_str));
        let code = code.map_or_else(String::new, |code| format!(" {}:", visible(code)));
        format!("interlock exec:{code} {}\n", visible(&self.message))
    }
}

/// Runs what is asked for. It comes back only if nothing was run, or if that was all it was asked to say.
pub(crate) fn run(arguments: &ExecArguments) -> ExitCode {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if arguments.probe {
            return run::probe();
        }
        let home = arguments.home.clone().or_else(serve::home);
        let home = home.ok_or_else(|| NotRun::new(Code::ContainRecord, "neither INTERLOCK_HOME nor HOME is set"))?;
        let asked = asked::of(arguments, &home)?;
        run::run(asked, &home, arguments.daemon)
    }));
    let not_run = match outcome {
        Ok(Ok(code)) => return code,
        Ok(Err(not_run)) => not_run,
        Err(_) => NotRun::new(Code::FaultInternal, "internal fault"),
    };
    // Whether anybody reads it changes nothing.
    let _ = io::stderr().lock().write_all(not_run.line().as_bytes());
    ExitCode::from(not_run.exit)
}
