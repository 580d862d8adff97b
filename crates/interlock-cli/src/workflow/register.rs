//! `interlock workflow register|list`: workflows put on record under their ids, and which there are.

use clap::Args;
use interlock_wire::{RawJson, RegisterRequest, RegisteredWorkflow, WorkflowPage, write};

use super::Source;
use crate::client::{Answer, Client, ServerArguments, with_query};
use crate::input::Inputs;
use crate::style::{FAINT, GOOD, RESET};
use crate::table::{Table, cell, more, optional, time};
use crate::{Fault, Outcome, print};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock workflow register .interlock/workflow.yaml
  interlock workflow start fix --registered

It is registered under its own id, as the newest there. Runs in progress keep the one they were started with.
Exit codes: 0 it is the newest now, 1 refused, 2 usage or fault, a workflow that cannot be loaded too.")]
pub(crate) struct RegisterArguments {
    /// The workflow: a file, `-`, or the name of a template
    #[arg(value_name = "FILE|TEMPLATE")]
    file: String,
    #[command(flatten)]
    pub(super) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock workflow list --json | jq -r '.workflows[] | .id + \" \" + .digest'

Exit codes: 0 listed, 1 refused, 2 usage or fault.")]
pub(crate) struct ListArguments {
    /// How many, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
    /// Go on where a page ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerArguments,
}

pub(super) fn register(arguments: &RegisterArguments) -> Result<Outcome, Fault> {
    let workflow = Source::read(&mut Inputs::default(), &arguments.file)?.load()?;
    let client = Client::open_or_start(&arguments.server)?;
    let answer = client
        .post("/workflows", &write(&RegisterRequest { workflow: RawJson::written(workflow.text().to_owned()) }))?;
    let shown = if arguments.server.json { answer.json() } else { registered_text(&answer)? };
    print(shown.as_bytes())?;
    Ok(Outcome::Clean)
}

fn registered_text(answer: &Answer) -> Result<String, Fault> {
    let workflow: RegisteredWorkflow = answer.read()?;
    let done = if answer.created { "REGISTERED" } else { "UNCHANGED" };
    let (version, states) = (workflow.version, workflow.states);
    let (id, digest) = (cell(&workflow.id, 80), cell(&workflow.digest, 80));
    Ok(format!("{GOOD}{done}{RESET} {id}: version {version}, {states} states\n  {FAINT}{digest}{RESET}\n"))
}

pub(super) fn list(arguments: &ListArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let page = [("limit", Some(arguments.limit.to_string())), ("cursor", arguments.cursor.clone())];
    let answer = client.get(&with_query("/workflows", &page))?;
    print(if arguments.server.json { answer.json() } else { list_text(&answer)? }.as_bytes())?;
    Ok(Outcome::Clean)
}

fn list_text(answer: &Answer) -> Result<String, Fault> {
    let page: WorkflowPage = answer.read()?;
    if page.workflows.is_empty() {
        return Ok("no workflows; register one: interlock workflow register FILE\n".to_owned());
    }
    let mut table = Table::new(&["ID", "VERSION", "STATES", "REGISTERED", "BY", "DIGEST", "DESCRIPTION"]);
    for workflow in &page.workflows {
        table.row(vec![
            cell(&workflow.id, 40),
            workflow.version.to_string(),
            workflow.states.to_string(),
            time(&workflow.registered_at),
            cell(&workflow.registered_by, 24),
            cell(&workflow.digest, 20),
            optional(workflow.description.as_deref(), 48),
        ]);
    }
    Ok(table.render() + &more("more", page.next_cursor.as_deref()))
}
