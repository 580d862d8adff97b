//! `interlock workflow`: check a workflow, draw it, prove properties of it, step through it, test it, register it.

mod check;
mod prove;
mod register;
mod rehearse;

use clap::{Args, Subcommand, ValueEnum};
use interlock_core::Code;
use interlock_core::json::quote;
use interlock_core::workflow::Workflow;
use interlock_verifiers::shell::Setting;
use interlock_workflow::graph::{self, Highlight};
use interlock_workflow::{Format, Limits, Loaded, Problem, Template, nearest};

use crate::input::Inputs;
use crate::run::{history, steer};
use crate::{Fault, Outcome, print};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Find everything that is wrong with workflows, with its place
    Check(check::CheckArguments),
    /// Draw a workflow
    Graph(GraphArguments),
    /// Prove properties of all runs, or show a run that breaks them
    Prove(prove::ProveArguments),
    /// Step through a workflow by hand; nothing is run
    Run(rehearse::RunArguments),
    /// Run scenarios against a workflow, for a project's own tests
    Test(rehearse::TestArguments),
    /// List the workflows to begin with, or print one
    Templates(TemplatesArguments),
    /// Print the JSON Schema of a workflow, for editors
    #[command(after_help = "Example: interlock workflow schema > workflow.schema.json")]
    Schema,
    /// Put a workflow on record under its id, as the newest there
    Register(register::RegisterArguments),
    /// List the workflows that are registered
    List(register::ListArguments),
    /// Put a workflow in force for the coding agents of a project
    Start(steer::StartArguments),
    /// Show where the runs of a project stand: state, ways out, what they wait for
    Status(steer::StatusArguments),
    /// Show what happened in a run: transitions, refusals, exit codes, changes, who forced what
    History(history::HistoryArguments),
    /// Put a run into a state, whatever its guards say
    Force(steer::ForceArguments),
    /// End a run; what holds without a workflow holds then
    Stop(steer::SteerArguments),
    /// Let a frozen run go on
    Thaw(steer::SteerArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock workflow graph bugfix --format svg > bugfix.svg
  interlock workflow graph .interlock/workflow.yaml --format dot | dot -Tpng > workflow.png")]
pub(crate) struct GraphArguments {
    /// The workflow: a file, `-`, or the name of a template
    file: String,
    /// What to draw it as
    #[arg(long, value_enum, default_value = "mermaid")]
    format: Picture,
    /// Make this state stand out
    #[arg(long, value_name = "STATE")]
    current: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Picture {
    Mermaid,
    Dot,
    Svg,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock workflow templates bugfix > .interlock/workflow.yaml")]
pub(crate) struct TemplatesArguments {
    /// The template to print; without it, all are listed
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl WorkflowCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            WorkflowCommand::Check(arguments) => arguments.json,
            WorkflowCommand::Prove(arguments) => arguments.json,
            WorkflowCommand::Test(arguments) => arguments.json,
            WorkflowCommand::Templates(arguments) => arguments.json,
            WorkflowCommand::Register(arguments) => arguments.server.json,
            WorkflowCommand::List(arguments) => arguments.server.json,
            WorkflowCommand::Start(arguments) => arguments.server.json,
            WorkflowCommand::Status(arguments) => arguments.server.json,
            WorkflowCommand::History(arguments) => arguments.server.json,
            WorkflowCommand::Force(arguments) => arguments.steer.server.json,
            WorkflowCommand::Stop(arguments) | WorkflowCommand::Thaw(arguments) => arguments.server.json,
            WorkflowCommand::Graph(_) | WorkflowCommand::Run(_) | WorkflowCommand::Schema => false,
        }
    }
}

pub(crate) fn run(command: &WorkflowCommand) -> Result<Outcome, Fault> {
    match command {
        WorkflowCommand::Check(arguments) => check::run(arguments),
        WorkflowCommand::Graph(arguments) => draw(arguments),
        WorkflowCommand::Prove(arguments) => prove::run(arguments),
        WorkflowCommand::Run(arguments) => rehearse::run(arguments),
        WorkflowCommand::Test(arguments) => rehearse::test(arguments),
        WorkflowCommand::Templates(arguments) => templates(arguments),
        WorkflowCommand::Schema => {
            print(interlock_workflow::SCHEMA.as_bytes())?;
            Ok(Outcome::Clean)
        }
        WorkflowCommand::Register(arguments) => register::register(arguments),
        WorkflowCommand::List(arguments) => register::list(arguments),
        WorkflowCommand::Start(arguments) => steer::start(arguments),
        WorkflowCommand::Status(arguments) => steer::status(arguments),
        WorkflowCommand::History(arguments) => history::run(arguments),
        WorkflowCommand::Force(arguments) => steer::force(arguments),
        WorkflowCommand::Stop(arguments) => steer::stop(arguments),
        WorkflowCommand::Thaw(arguments) => steer::thaw(arguments),
    }
}

fn draw(arguments: &GraphArguments) -> Result<Outcome, Fault> {
    let workflow = Source::read(&mut Inputs::default(), &arguments.file)?.load()?;
    if let Some(state) = &arguments.current {
        let names: Vec<&str> = workflow.states().map(|(_, state)| state.name.as_str()).collect();
        if !names.contains(&state.as_str()) {
            return Err(unknown("state", state, &names));
        }
    }
    let highlight = Highlight { current: arguments.current.clone(), ..Highlight::default() };
    let drawn = match arguments.format {
        Picture::Mermaid => graph::mermaid(&workflow, &highlight),
        Picture::Dot => graph::dot(&workflow, &highlight),
        Picture::Svg => graph::svg(&workflow, &highlight),
    };
    print(drawn.as_bytes())?;
    Ok(Outcome::Clean)
}

fn templates(arguments: &TemplatesArguments) -> Result<Outcome, Fault> {
    let all = interlock_workflow::templates();
    let Some(name) = &arguments.name else {
        let rows = all.iter().map(|template| {
            if arguments.json {
                format!("{{\"name\":{},\"summary\":{}}}", quote(template.name), quote(template.summary))
            } else {
                format!("{:<11}{}\n", template.name, template.summary)
            }
        });
        let rows: Vec<String> = rows.collect();
        let list = if arguments.json { format!("{{\"templates\":[{}]}}\n", rows.join(",")) } else { rows.concat() };
        print(list.as_bytes())?;
        return Ok(Outcome::Clean);
    };
    let Some(template) = template(name) else {
        return Err(unknown("template", name, &all.iter().map(|template| template.name).collect::<Vec<_>>()));
    };
    let text = if arguments.json {
        let (name, summary) = (quote(template.name), quote(template.summary));
        format!("{{\"name\":{name},\"summary\":{summary},\"text\":{}}}\n", quote(template.text))
    } else {
        template.text.to_owned()
    };
    print(text.as_bytes())?;
    Ok(Outcome::Clean)
}

/// The built-in table, for command lines; git's configuration is taken for plain.
pub(crate) fn judge() -> Result<Setting, Fault> {
    Setting::built_in().map_err(|cause| Fault::new(cause.to_string()))
}

fn template(name: &str) -> Option<&'static Template> {
    interlock_workflow::templates().iter().find(|template| template.name == name)
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Fault {
    let fault = Fault::new(format!("there is no {what} `{name}`"));
    match nearest(name, known) {
        Some(near) => fault.and_then_do(format!("did you mean `{near}`?")),
        None => fault.and_then_do(format!("there are {}", known.join(", "))),
    }
}

/// The text of a workflow, or of scenarios.
pub(crate) struct Source {
    /// To be shown.
    pub(crate) name: String,
    text: String,
    format: Format,
}

impl Source {
    /// Reads a file, standard input, or a template where no such file is.
    pub(crate) fn read(inputs: &mut Inputs, given: &str) -> Result<Source, Fault> {
        if let Some(template) = template(given).filter(|_| !std::path::Path::new(given).exists()) {
            let name = format!("template {given}");
            return Ok(Source { name, text: template.text.to_owned(), format: template.format });
        }
        let names: Vec<&str> = interlock_workflow::templates().iter().map(|template| template.name).collect();
        let input = inputs.read("FILE", given).map_err(|fault| match nearest(given, &names) {
            Some(near) => fault.and_then_do(format!("did you mean the template `{near}`?")),
            None => fault,
        })?;
        let not_text = |_| Fault::with_code(Code::ConfigInvalid, format!("`{}` is not valid UTF-8", input.name));
        let text = String::from_utf8(input.bytes).map_err(not_text)?;
        // JSON begins with a brace; YAML that does so is JSON too, or nearly.
        let guessed = if text.trim_start().starts_with('{') { Format::Json } else { Format::Yaml };
        let format = Format::of_file_name(given).unwrap_or(guessed);
        Ok(Source { name: input.name, text, format })
    }

    pub(crate) fn parse(&self) -> Result<Loaded, Vec<Problem>> {
        interlock_workflow::load(&self.text, self.format, &Limits::MAX)
    }

    /// The workflow, for a command that is not about its problems.
    pub(crate) fn load(&self) -> Result<Workflow, Fault> {
        self.parse().map(|loaded| loaded.workflow).map_err(|problems| {
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            let more = match problems.len().saturating_sub(1) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let message = format!("`{}` is not a workflow: {first}{more}", self.name);
            let next = format!("interlock workflow check {}", self.name);
            Fault::with_code(Code::ConfigInvalid, message).and_then_do(next)
        })
    }
}
