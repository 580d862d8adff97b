//! `interlock trust`: a person reads the workflow of a repository and accepts it, as it is now, by its digest.
//!
//! What counts afterwards is the copy on record. A file that changes changes nothing until it is accepted again.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::Args;
use interlock_core::call::{Effect, Family};
use interlock_core::places::{PROJECT_SETTINGS, WORKFLOW_FILES};
use interlock_core::rule::CommandPattern;
use interlock_core::visible;
use interlock_core::workflow::{StateKind, Workflow};
use interlock_wire::{AllowRequest, Run, write};
use interlock_workflow::analyse;

use super::mode::start_body;
use super::refusals::{Shell, worst};
use super::steer::run_text;
use super::{Agents, Known, ProjectArguments, Teller, agents_json};
use crate::client::{Client, ServerArguments};
use crate::input::Inputs;
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::{Table, cell};
use crate::workflow::{Source, judge};
use crate::{Fault, Outcome, print};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock trust
  interlock trust .interlock/workflow.yaml --allow-commands --yes

Accept what you have read: the agent may have written it. A run of another workflow that is in progress ends.
Exit codes: 0 accepted, 1 refused, or nobody agreed, 2 usage or fault, a workflow that cannot be loaded too.")]
pub(crate) struct TrustArguments {
    /// The workflow [default: the nearest .interlock/workflow.json, .yaml or .toml]
    file: Option<String>,
    #[command(flatten)]
    project: ProjectArguments,
    /// Also allow the commands it names that would be asked about
    #[arg(long)]
    allow_commands: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

pub(crate) fn run(arguments: &TrustArguments) -> Result<Outcome, Fault> {
    let client = Client::open_or_start(&arguments.server)?;
    let file = match &arguments.file {
        Some(file) => file.clone(),
        None => nearest_file(arguments, &Agents::find(&client, &arguments.project)?.project)?,
    };
    let source = Source::read(&mut Inputs::default(), &file)?;
    let workflow = source.load()?;
    let agents = Agents::find_or_enrol(&client, &arguments.project)?;
    let shell = Shell::of_project(&agents.project)?;
    let asked = asked_about(&workflow, &shell);
    let teller = Teller { json: arguments.server.json };
    teller.say(&described(&source, &workflow, &asked, arguments.allow_commands)?)?;
    let standing = standing(&client, &agents, &workflow)?;
    teller.say(&standing.text)?;
    if !teller.agrees("Accept this workflow, as it is now?", arguments.yes)? {
        return Ok(Outcome::Refused);
    }
    let mut bodies = Vec::new();
    for (agent, is_in_force) in agents.list.iter().zip(&standing.in_force) {
        // Starting it again would lose where the run stands.
        let answer = if *is_in_force {
            client.get(&agent.path(""))?
        } else {
            let body = start_body(agent.host.as_str(), &agent.project, Some(workflow.text()), None);
            client.post("/runs", &body)?
        };
        if arguments.allow_commands {
            allow(&client, agent, &asked, &teller)?;
        }
        if !arguments.server.json {
            let done = if *is_in_force { "IN FORCE ALREADY" } else { "ACCEPTED" };
            print(run_text(&answer.read()?, agent, done).as_bytes())?;
        }
        bodies.push(answer.body);
    }
    if arguments.server.json {
        print(agents_json(&agents.project, &bodies).as_bytes())?;
    } else {
        let last = "The accepted copy counts. If the file changes, run `interlock trust` again.";
        print(format!("{FAINT}{last}\nundo: interlock workflow stop{RESET}\n").as_bytes())?;
    }
    Ok(Outcome::Clean)
}

/// The nearest one from here up to the root of the project; what lies above is not the repository's.
fn nearest_file(arguments: &TrustArguments, project: &str) -> Result<String, Fault> {
    let start = match &arguments.project.project {
        Some(directory) => Ok(directory.clone()),
        None => env::current_dir(),
    };
    let start = start.and_then(fs::canonicalize).map_err(|error| Fault::new(format!("no directory: {error}")))?;
    let within = start.ancestors().take_while(|directory| directory.starts_with(project));
    let mut files =
        within.flat_map(|directory| WORKFLOW_FILES.iter().map(|file| directory.join(PROJECT_SETTINGS).join(file)));
    let found = files.find(|path| path.is_file());
    found.as_deref().and_then(Path::to_str).map(str::to_owned).ok_or_else(|| {
        let what = format!("there is no .interlock/workflow.json, .yaml or .toml in {}", visible(project));
        let next = "write one: `interlock workflow templates bugfix > .interlock/workflow.yaml`, or name a file";
        Fault::new(what).and_then_do(next)
    })
}

/// A command that the workflow names and the base policy would ask about.
struct Command {
    /// Where it is named.
    place: String,
    /// The line, or the pattern.
    text: String,
    label: Effect,
    /// The pattern that allows it; nothing if none can.
    pattern: Option<String>,
}

fn asked_about(workflow: &Workflow, shell: &Shell) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut add = |place: String, text: &str, line: &str, pattern: Option<String>| {
        let label = shell.label(line);
        if label >= Effect::Unknown && !found.iter().any(|known| known.text == text) {
            found.push(Command { place, text: text.to_owned(), label, pattern });
        }
    };
    for fact in workflow.facts() {
        add(format!("fact {}", fact.name), &fact.command, &fact.command, exact(&fact.command, shell));
    }
    for (_, state) in workflow.states() {
        for command in state.allowed_commands.iter().flatten() {
            let line = command.trim().strip_suffix(" *").unwrap_or(command);
            let begins = !command.trim_start().starts_with('*') && CommandPattern::parse(command).is_ok();
            add(format!("state {}", state.name), command, line, begins.then(|| command.clone()));
        }
    }
    found
}

/// The pattern for exactly this line, if it is one command of words that stand for themselves.
fn exact(line: &str, shell: &Shell) -> Option<String> {
    let words = shell.words(line);
    let mut commands = worst(&words);
    let (Some(command), None) = (commands.next(), commands.next()) else { return None };
    let known: Option<Vec<&str>> = command.words.iter().map(Option::as_deref).collect();
    let known = known?;
    let stands_for_itself =
        |word: &&str| !word.is_empty() && !word.contains(|it: char| it == '*' || it.is_whitespace());
    if !known.iter().all(stands_for_itself) {
        return None;
    }
    let text = known.join(" ");
    let pattern = CommandPattern::parse(&text).ok()?;
    shell.is_covered(std::slice::from_ref(&words), &pattern).then_some(text)
}

/// What a person has to have read before accepting it.
fn described(source: &Source, workflow: &Workflow, asked: &[Command], allows: bool) -> Result<String, Fault> {
    let mut out = format!("{}  {}\n", visible(&source.name), workflow.digest());
    if let Some(description) = workflow.description() {
        let _ = writeln!(out, "  {}", cell(description, 160));
    }
    let mut table = Table::new(&["STATE", "TOOLS", "CALLS", "LEADS TO"]);
    let (first, others): (Vec<_>, Vec<_>) = workflow.states().partition(|(id, _)| *id == workflow.initial());
    for (_, state) in first.into_iter().chain(others) {
        let tools = match &state.allowed_tools {
            None => "all".to_owned(),
            Some(tools) if tools.is_empty() => "none".to_owned(),
            Some(tools) => tools.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        let mut targets: Vec<String> = Vec::new();
        for edge in state.on.iter().flat_map(|(_, edges)| edges) {
            let target = workflow.state(edge.target).map_or("?", |target| target.name.as_str());
            let target = if edge.requires_approval { format!("{target} (asks)") } else { target.to_owned() };
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        let targets = match &state.kind {
            StateKind::Final(_) => "the end".to_owned(),
            StateKind::Active => targets.join(", "),
        };
        let calls = state.max_iterations.map_or_else(|| "-".to_owned(), |max| max.to_string());
        table.row(vec![cell(&state.name, 30), cell(&tools, 48), calls, cell(&targets, 48)]);
    }
    out.push_str(&table.render());
    for problem in source.parse().map(|loaded| loaded.warnings).unwrap_or_default() {
        let _ = writeln!(out, "{BAD}warning{RESET} load: {}", visible(&problem.to_string()));
    }
    for finding in analyse(workflow, &judge()?) {
        let _ = writeln!(
            out,
            "{BAD}{}{RESET} {}: {}: {}",
            finding.severity,
            finding.name,
            cell(&finding.path(), 60),
            visible(&finding.message)
        );
    }
    if !asked.is_empty() {
        let then = if allows { "which --allow-commands allows" } else { "--allow-commands would allow them" };
        let _ = writeln!(out, "Commands it names that a person would be asked about; {then}:");
    }
    for command in asked {
        let cannot = if command.pattern.is_none() { "  (only once it was refused: `interlock allow ID`)" } else { "" };
        let (text, place) = (cell(&command.text, 80), cell(&command.place, 40));
        let _ = writeln!(out, "  {:<12} {text}  {FAINT}{place}{cannot}{RESET}", command.label.as_str());
    }
    Ok(out)
}

/// What is in force now.
struct Standing {
    text: String,
    /// For each agent, whether this very workflow runs.
    in_force: Vec<bool>,
}

fn standing(client: &Client, agents: &Agents, workflow: &Workflow) -> Result<Standing, Fault> {
    let (mut text, mut in_force) = (String::new(), Vec::new());
    for agent in &agents.list {
        let Run { workflow_digest: digest, run, .. }: Run = client.get(&agent.path(""))?.read()?;
        let (name, run) = (agent.name(), run.filter(|run| !run.is_final));
        let same = digest.as_deref() == Some(workflow.digest().to_string().as_str());
        let _ = match (&run, same) {
            (Some(_), true) => writeln!(text, "{GOOD}the same{RESET} as what is in force for {name}"),
            (Some(run), false) => writeln!(
                text,
                "{BAD}differs{RESET} from what is in force for {name}: {}, in the state {}; that run ends\n  {FAINT}in \
                 force {}{RESET}",
                cell(&run.workflow, 60),
                cell(&run.state, 60),
                cell(digest.as_deref().unwrap_or(""), 80)
            ),
            (None, _) => writeln!(text, "no workflow is in force for {name}"),
        };
        in_force.push(run.is_some() && same);
    }
    Ok(Standing { text, in_force })
}

fn allow(client: &Client, agent: &Known, asked: &[Command], teller: &Teller) -> Result<(), Fault> {
    let run: Run = client.get(&agent.path(""))?.read()?;
    let known: Vec<String> = run.allowances.into_iter().filter_map(|known| known.command).collect();
    for command in asked {
        let Some(pattern) = command.pattern.as_ref().filter(|pattern| !known.contains(pattern)) else { continue };
        let body = AllowRequest {
            tool: Some(Family::Bash.as_str().to_owned()),
            command: Some(pattern.clone()),
            reason: Some("named by the workflow that was accepted".to_owned()),
            ..AllowRequest::default()
        };
        client.post(&agent.path("/allow"), &write(&body))?;
        teller.say(&format!("{GOOD}ALLOWED{RESET} {}: `{}`\n", agent.name(), cell(pattern, 80)))?;
    }
    Ok(())
}
