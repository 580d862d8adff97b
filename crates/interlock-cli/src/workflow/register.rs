//! `interlock workflow register|list`: workflows put on record under their ids, and which there are.

use clap::Args;
use interlock_core::json::Value;

use super::Source;
use crate::client::{Answer, Client, ServerArguments, with_query};
use crate::input::Inputs;
use crate::style::{FAINT, GOOD, RESET};
use crate::table::{Table, cell, member, scalar};
use crate::{Fault, Outcome, moment, print};

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
    let answer = client.post("/workflows", &format!("{{\"workflow\":{}}}", workflow.text()))?;
    let shown = if arguments.server.json { answer.json() } else { registered_text(&answer)? };
    print(shown.as_bytes())?;
    Ok(Outcome::Clean)
}

fn registered_text(answer: &Answer) -> Result<String, Fault> {
    let document = answer.document()?;
    let workflow = document.root();
    let done = if answer.created { "REGISTERED" } else { "UNCHANGED" };
    Ok(format!(
        "{GOOD}{done}{RESET} {}: version {}, {} states\n  {FAINT}{}{RESET}\n",
        member(workflow, "id", 80),
        member(workflow, "version", 12),
        member(workflow, "states", 12),
        member(workflow, "digest", 80),
    ))
}

pub(super) fn list(arguments: &ListArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let page = [("limit", Some(arguments.limit.to_string())), ("cursor", arguments.cursor.clone())];
    let answer = client.get(&with_query("/workflows", &page))?;
    print(if arguments.server.json { answer.json() } else { list_text(&answer)? }.as_bytes())?;
    Ok(Outcome::Clean)
}

fn list_text(answer: &Answer) -> Result<String, Fault> {
    let document = answer.document()?;
    let workflows = document.root().get("workflows").and_then(|workflows| workflows.as_array());
    let workflows = workflows.ok_or_else(|| Fault::new("the server's answer has no `workflows`"))?;
    if workflows.len() == 0 {
        return Ok("no workflows; register one: interlock workflow register FILE\n".to_owned());
    }
    let mut table = Table::new(&["ID", "VERSION", "STATES", "REGISTERED", "BY", "DIGEST", "DESCRIPTION"]);
    for workflow in workflows {
        table.row(vec![
            member(workflow, "id", 40),
            member(workflow, "version", 12),
            member(workflow, "states", 8),
            time(workflow, "registered_at"),
            member(workflow, "registered_by", 24),
            member(workflow, "digest", 20),
            member(workflow, "description", 48),
        ]);
    }
    let mut out = table.render();
    if let Some(cursor) = scalar(document.root(), "next_cursor") {
        out.push_str(&format!("{FAINT}more: --cursor {}{RESET}\n", cell(&cursor, 140)));
    }
    Ok(out)
}

fn time(object: Value<'_>, key: &str) -> String {
    scalar(object, key).map_or_else(|| "-".to_owned(), |at| cell(&moment::short(&at), 30))
}
