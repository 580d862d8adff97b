//! `interlock exec`: its arguments. What it does lies in the library, beside the shell prefix of hosts.

use std::env;
use std::path::PathBuf;
use std::process::{self, ExitCode};

use clap::Args;
use interlock_cli::exec::{self, Ground, OwnCommand, Wish};
use interlock_core::json;
use interlock_runner::Abilities;

use crate::serve;

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
}

/// What the kernel can hold commands to, tried in a process of its own: the caller may have many threads.
pub(crate) fn probe_apart() -> Option<Abilities> {
    let binary = env::current_exe().ok()?;
    let probed = process::Command::new(binary).args(["exec", "--probe"]).output().ok()?;
    let told = probed.status.success().then_some(probed.stdout)?;
    json::from_str(core::str::from_utf8(&told).ok()?.trim()).ok()
}

/// Runs what is asked for. It comes back only if nothing was run, or if that was all it was asked to say.
pub(crate) fn run(arguments: &ExecArguments) -> ExitCode {
    if arguments.probe {
        return exec::probe();
    }
    let own = OwnCommand {
        ticket: arguments.ticket.clone(),
        profile: arguments.profile.clone(),
        project: arguments.project.clone(),
        line: arguments.line.clone(),
        words: arguments.command.clone(),
    };
    exec::run(&Wish::Own(own), serve::home().as_deref().map(Ground::of).as_ref())
}
