//! `interlock snapshots`: the states that are kept of a project, what is not in them, and dropping them.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use interlock_core::visible;
use interlock_wire::{KeptState, KeptStates, PruneRequest, PrunedStates, write};

use super::{Teller, directory_of};
use crate::client::{Client, ServerArguments, encode, with_query};
use crate::style::{FAINT, GOOD, RESET};
use crate::table::{Table, cell};
use crate::{Fault, Outcome, moment, print};

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotsCommand {
    /// List the kept states of a project
    List(ListArguments),
    /// Show one, and what is not in it
    Show(ShowArguments),
    /// Drop what is beyond the limits of the bundle
    Prune(PruneArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock snapshots list
  interlock snapshots list --project ~/shop --json

Exit codes: 0 done, 1 no coding agent works there, 2 usage or fault.")]
pub(crate) struct ListArguments {
    /// The project, or a directory in it [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock snapshots show snap_5f0c2b9e7d314a86b1c0e4f2a9d86375

Exit codes: 0 done, 1 there is no such state, 2 usage or fault.")]
pub(crate) struct ShowArguments {
    /// The state: `snap_` and 32 digits
    #[arg(value_name = "SNAPSHOT")]
    snapshot: String,
    /// The project, or a directory in it [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock snapshots prune
  interlock snapshots prune --all --yes

Exit codes: 0 done, 1 nobody agreed, 2 usage or fault.")]
pub(crate) struct PruneArguments {
    /// Drop all, but for those of calls that are under way: nothing can be undone then
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// The project, or a directory in it [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArguments,
}

impl SnapshotsCommand {
    fn server(&self) -> &ServerArguments {
        match self {
            SnapshotsCommand::List(arguments) => &arguments.server,
            SnapshotsCommand::Show(arguments) => &arguments.server,
            SnapshotsCommand::Prune(arguments) => &arguments.server,
        }
    }

    pub(crate) fn wants_json(&self) -> bool {
        self.server().json
    }
}

pub(crate) fn run(command: &SnapshotsCommand) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(command.server())?;
    match command {
        SnapshotsCommand::List(arguments) => list(&client, arguments),
        SnapshotsCommand::Show(arguments) => show(&client, arguments),
        SnapshotsCommand::Prune(arguments) => prune(&client, arguments),
    }
}

fn list(client: &Client, arguments: &ListArguments) -> Result<Outcome, Fault> {
    let directory = directory_of(arguments.project.as_deref())?;
    let answer = client.get_patiently(&with_query("/snapshots", &[("directory", Some(directory))]))?;
    if arguments.server.json {
        print(answer.json().as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let kept: KeptStates = answer.read()?;
    let mut table = Table::new(&["SNAPSHOT", "TIME", "FILES", "BYTES", "ADDED", "LEFT OUT"]);
    for state in &kept.states {
        let numbers = [state.nodes, state.bytes, state.stored_bytes, state.left_out].map(|number| number.to_string());
        table.row([cell(&state.snapshot, 40), moment::short(&state.at)].into_iter().chain(numbers).collect());
    }
    let total =
        format!("{FAINT}{}: {} states, {} bytes{RESET}\n", visible(&kept.project), kept.states.len(), kept.bytes);
    print((table.render() + &total).as_bytes())?;
    Ok(Outcome::Clean)
}

fn show(client: &Client, arguments: &ShowArguments) -> Result<Outcome, Fault> {
    let directory = directory_of(arguments.project.as_deref())?;
    let path = format!("/snapshots/{}", encode(&arguments.snapshot));
    let answer = client.get_patiently(&with_query(&path, &[("directory", Some(directory))]))?;
    if arguments.server.json {
        print(answer.json().as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let state: KeptState = answer.read()?;
    let mut text = format!(
        "{} {FAINT}{}{RESET}\n{} files, links and directories, {} bytes; {} bytes were new\n",
        cell(&state.snapshot, 40),
        moment::short(&state.at),
        state.nodes,
        state.bytes,
        state.stored_bytes
    );
    for place in state.places.iter().flatten() {
        let _ = writeln!(text, "not kept  {}  {FAINT}{}{RESET}", visible(&place.path), visible(&place.why));
    }
    print(text.as_bytes())?;
    Ok(Outcome::Clean)
}

fn prune(client: &Client, arguments: &PruneArguments) -> Result<Outcome, Fault> {
    let teller = Teller { json: arguments.server.json };
    if arguments.all && !teller.agrees("Drop all kept states? Nothing can be undone then.", arguments.yes)? {
        return Ok(Outcome::Refused);
    }
    let request =
        PruneRequest { directory: directory_of(arguments.project.as_deref())?, all: arguments.all.then_some(true) };
    let answer = client.post_patiently("/snapshots/prune", &write(&request))?;
    if arguments.server.json {
        print(answer.json().as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let pruned: PrunedStates = answer.read()?;
    let text = format!(
        "{GOOD}DROPPED{RESET} {} states in {}: {} bytes before, {} now\n",
        pruned.snapshots.len(),
        visible(&pruned.project),
        pruned.bytes_before,
        pruned.bytes_after
    );
    print(text.as_bytes())?;
    Ok(Outcome::Clean)
}
