//! `interlock shell classify`: what a command line does, at worst.

use std::fmt::Write;
use std::fs;

use clap::{Args, Subcommand};
use interlock_core::bundle::ShellSettings;
use interlock_core::call::Effect;
use interlock_core::visible;
use interlock_verifiers::shell::{Analysis, Commands, Executor, Setting, classify};

use crate::lines::each_line;
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::{Fault, Outcome, print, snippet};

#[derive(Debug, Subcommand)]
pub(crate) enum ShellCommand {
    /// Label a command line: read_only, write, network, unknown or destructive
    ///
    /// Nothing is run. The label is the most restrictive effect on any branch; `unknown` is what cannot be judged.
    Classify(ClassifyArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock shell classify 'grep -rn TODO src | head'
  interlock shell classify --json 'env nice rm -rf build'
  interlock shell classify --jsonl < commands.jsonl     each line {\"cmd\": \"…\"}

Exit codes: 0 read_only, 1 anything else, 2 usage or fault; with --jsonl always 0.")]
pub(crate) struct ClassifyArguments {
    /// The command line; `-` reads it from standard input
    #[arg(required_unless_present = "jsonl", conflicts_with = "jsonl", allow_hyphen_values = true)]
    command: Option<String>,
    /// Read one JSON object a line, {"cmd": "…"}, and print one a line
    #[arg(long)]
    jsonl: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Which shell would read the line
    #[arg(long, value_name = "NAME", default_value = "bash")]
    shell: String,
    /// A table of commands beside the built-in one (docs/verifiers/shell-commands.md)
    #[arg(long, value_name = "FILE")]
    commands: Option<String>,
    /// Judge `git` by the configuration it would read in this directory
    #[arg(long, value_name = "DIR")]
    directory: Option<std::path::PathBuf>,
}

impl ShellCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            ShellCommand::Classify(arguments) => arguments.json || arguments.jsonl,
        }
    }
}

pub(crate) fn run(command: &ShellCommand) -> Result<Outcome, Fault> {
    match command {
        ShellCommand::Classify(arguments) => run_classify(arguments),
    }
}

fn run_classify(arguments: &ClassifyArguments) -> Result<Outcome, Fault> {
    let setting = setting(arguments)?;
    if arguments.jsonl {
        each_line(|line| {
            let command = line.root().get("cmd").and_then(|command| command.as_str());
            let command = command.ok_or_else(|| "a line needs a text `cmd`".to_owned())?;
            Ok(classify(command.text(), &setting).to_json())
        })?;
        return Ok(Outcome::Clean);
    }
    let given = arguments.command.as_deref().unwrap_or("-");
    let text = if given == "-" { crate::lines::whole_input()? } else { given.to_owned() };
    let analysis = classify(&text, &setting);
    if arguments.json {
        print(format!("{}\n", analysis.to_json()).as_bytes())?;
    } else {
        print(show(&text, &analysis).as_bytes())?;
    }
    Ok(if analysis.label == Effect::ReadOnly { Outcome::Clean } else { Outcome::Refused })
}

fn setting(arguments: &ClassifyArguments) -> Result<Setting, Fault> {
    let settings = match &arguments.commands {
        None => None,
        Some(path) => {
            let text = fs::read_to_string(path);
            let text = text.map_err(|reason| Fault::new(format!("cannot read --commands `{path}`: {reason}")))?;
            Some(ShellSettings { commands: Some(text), commands_file: None })
        }
    };
    let commands = Commands::load(settings.as_ref()).map_err(|reason| Fault::new(format!("--commands: {reason}")))?;
    let executor = Executor::named(&arguments.shell);
    let directory = arguments.directory.as_deref();
    let git = directory.map(interlock_runtime::git_config::programs);
    let choosers = directory.map(|directory| interlock_runtime::choosers::choosers(core::iter::once(directory)));
    Ok(Setting { executor, git, choosers, ..Setting::with(commands) })
}

/// The label, the part that decides underlined, and every other effect.
fn show(text: &str, analysis: &Analysis) -> String {
    let mut out = String::new();
    let colour = if analysis.label == Effect::ReadOnly { GOOD } else { BAD };
    let _ = writeln!(out, "{colour}{}{RESET}", analysis.label);
    let Some(deciding) = analysis.deciding() else { return out };
    if analysis.label == Effect::ReadOnly {
        let names: Vec<String> = analysis.causes.iter().map(|found| visible(&found.command)).collect();
        let _ = writeln!(out, "  {FAINT}{}{RESET}", names.join(", "));
    } else {
        out.push_str(&snippet::render("command", text, deciding.span.clone()));
        let command =
            if deciding.command.is_empty() { String::new() } else { format!("`{}` ", visible(&deciding.command)) };
        let _ = writeln!(out, "  {command}{}", visible(&deciding.why));
        let others = analysis.causes.iter().filter(|found| *found != deciding && found.effect > Effect::ReadOnly);
        for other in others.take(10) {
            let _ = writeln!(
                out,
                "  {FAINT}also {}: {} {}{RESET}",
                other.effect,
                visible(&other.command),
                visible(&other.why)
            );
        }
    }
    for what in &analysis.assumes {
        let _ = writeln!(out, "  {FAINT}assumes: {}{RESET}", what.as_str());
    }
    out
}
