//! `interlock workflow prove`: properties of all runs, each with an answer and a run that shows it.

use std::fmt::Write;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_core::bundle::Bundle;
use interlock_core::contain::{Profile, Profiles};
use interlock_core::json::quote;
use interlock_core::visible;
use interlock_core::workflow::{CommandJudge, Reach, Workflow};
use interlock_runtime::call_policy::profile_of;
use interlock_verifiers::shell::Setting;
use interlock_workflow::{Answer, Opaque, PathStep, Proof, Property, prove};

use super::{Source, judge};
use crate::input::Inputs;
use crate::serve::{Places, load_bundle};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::{Fault, Outcome, print, snippet};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock workflow prove feature 'Write only after approved'
  interlock workflow prove deploy.yaml 'never deploying before tests_passed' 'no Edit after review'
  interlock workflow prove deploy.yaml --calls 'Bash(git push*) only in releasing'
  interlock workflow prove deploy.yaml --contained 'Bash(git push*) only after approved'

Properties: TOOL only after approved | TOOL only after STATE | STATE only after STATE | never STATE before GUARD |
TOOL only in STATE, STATE | never TOOL in STATE | no TOOL after STATE | always eventually final |
always final within NUMBER. TOOL may be Bash(COMMAND*). See docs/workflows-proofs.md.

Exit codes: 0 all hold, 1 one does not, 2 usage or fault.")]
pub(crate) struct ProveArguments {
    /// The workflow: a file, `-`, or the name of a template
    file: String,
    /// What is to hold in every run
    #[arg(required = true, value_name = "PROPERTY")]
    properties: Vec<String>,
    /// Ask about the calls that Interlock judges only, not about what unknown code could do once it runs
    #[arg(long)]
    calls: bool,
    /// Take it that a runner holds unknown code to the profile it would choose (see docs/runner.md)
    #[arg(long, conflicts_with = "calls")]
    contained: bool,
    /// The bundle whose profiles those are [default: what is shipped]
    #[arg(long, value_name = "DIR", requires = "contained")]
    bundle: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(arguments: &ProveArguments) -> Result<Outcome, Fault> {
    let workflow = Source::read(&mut Inputs::default(), &arguments.file)?.load()?;
    let setting = judge()?;
    let contained = arguments.contained.then(|| Contained::load(&setting, arguments.bundle.as_deref())).transpose()?;
    let judge: &dyn CommandJudge = contained.as_ref().map_or(&setting, |contained| contained);
    let mut properties = Vec::new();
    for text in &arguments.properties {
        properties.push(read(text, &workflow, arguments.json)?);
    }
    let mut failed = false;
    let mut rows = Vec::new();
    for property in &properties {
        let proof = prove(&workflow, property, judge);
        let holds = match &proof.answer {
            Answer::Proven | Answer::Bounded { .. } => true,
            Answer::ProvenForCalls { .. } => arguments.calls,
            Answer::Broken { .. } => false,
        };
        failed |= !holds;
        if arguments.json {
            rows.push(json(property, &proof, holds));
        } else {
            print(text(&workflow, property, &proof, holds).as_bytes())?;
        }
    }
    if arguments.json {
        print(format!("{{\"properties\":[{}]}}\n", rows.join(",")).as_bytes())?;
    }
    Ok(if failed { Outcome::Refused } else { Outcome::Clean })
}

/// Reads command lines where a runner holds unknown code.
struct Contained<'a> {
    setting: &'a Setting,
    profiles: Profiles,
}

impl Contained<'_> {
    fn load<'a>(setting: &'a Setting, bundle: Option<&Path>) -> Result<Contained<'a>, Fault> {
        let bundle = match bundle {
            Some(_) => {
                let loaded = load_bundle(bundle, &Places::find(None)?, &[]);
                loaded.map_err(|fault| Fault::with_code(fault.code, fault.message))?.0
            }
            None => Bundle::built_in().map_err(|error| Fault::new(error.to_string()))?,
        };
        Ok(Contained { setting, profiles: bundle.profiles().clone() })
    }
}

impl CommandJudge for Contained<'_> {
    fn reach(&self, line: &str) -> Reach {
        self.setting.reach(line)
    }

    fn speaks_with_others(&self, line: &str) -> bool {
        self.setting.speaks_with_others(line)
    }

    fn held_to(&self, line: &str) -> Option<&Profile> {
        self.profiles.get(profile_of(line, self.setting)?)
    }
}

fn read(text: &str, workflow: &Workflow, json: bool) -> Result<Property, Fault> {
    Property::parse(text, workflow).map_err(|error| {
        let mut fault = Fault::new(error.message.clone()).and_then_do(error.help.clone());
        if !json {
            let mut err = anstream::stderr().lock();
            let _ = writeln!(err, "{BAD}error:{RESET} {}", visible(&error.message));
            let _ = write!(err, "{}", snippet::render("property", text, error.span));
            let _ = writeln!(err, "  {FAINT}help: {}{RESET}", visible(&error.help));
            fault.said = true;
        }
        fault
    })
}

fn text(workflow: &Workflow, property: &Property, proof: &Proof, holds: bool) -> String {
    let mut out = String::new();
    let (colour, word) = match (&proof.answer, holds) {
        (Answer::Proven, _) => (GOOD, "PROVEN"),
        (Answer::ProvenForCalls { .. }, true) => (GOOD, "PROVEN for calls"),
        (Answer::Bounded { .. }, _) => (GOOD, "BOUNDED"),
        (Answer::ProvenForCalls { .. }, false) => (BAD, "NOT PROVEN"),
        (Answer::Broken { .. }, _) => (BAD, "BROKEN"),
    };
    let _ = writeln!(out, "{colour}{word}{RESET} {}", visible(property.text()));
    match &proof.answer {
        Answer::Proven => {}
        Answer::ProvenForCalls { except } => {
            for (state, what) in except {
                let _ = writeln!(out, "  in `{}` {}", visible(state), visible(&opaque(what)));
            }
            if !holds {
                let _ =
                    writeln!(out, "  {FAINT}it holds for every call that Interlock judges: --calls asks that{RESET}");
            }
        }
        Answer::Bounded { path, .. } => {
            let line = proof.answer.path_line(workflow).unwrap_or_default();
            let _ = writeln!(out, "  not always final: {}{}", visible(&line), needs(path));
        }
        Answer::Broken { path, if_honest, .. } => {
            let line = proof.answer.path_line(workflow).unwrap_or_default();
            let _ = writeln!(out, "  {}{}", visible(&line), needs(path));
            if *if_honest {
                let _ = writeln!(out, "  it would hold if the agent told nothing but the truth");
            }
        }
    }
    for note in &proof.notes {
        let _ = writeln!(out, "  {FAINT}{}{RESET}", visible(note));
    }
    out
}

/// What a path takes for granted.
fn needs(path: &[PathStep]) -> String {
    let mut lines = String::new();
    for step in path {
        let mut asks = Vec::new();
        asks.extend(step.observed.iter().map(|guard| format!("`{guard}` is observed")));
        asks.extend(step.claimed.iter().map(|guard| format!("the agent says what `{guard}` wants to hear")));
        asks.extend(step.approved.then(|| "a person agrees".to_owned()));
        if !asks.is_empty() {
            let line = format!("\n  {FAINT}at {}: {}{RESET}", visible(&step.event), visible(&asks.join(", ")));
            // Once is enough where a run goes round.
            if !lines.contains(&line) {
                lines.push_str(&line);
            }
        }
    }
    lines
}

fn opaque(what: &Opaque) -> String {
    match what {
        Opaque::AnyCommand => "every command line passes, and what it runs can do anything".to_owned(),
        Opaque::AnyTool => "every tool passes that is not refused by name, known here or not".to_owned(),
        Opaque::Command(line) => format!("the command `{line}` is unknown code and can run anything"),
        Opaque::HeldCommand(line, profile) => {
            format!("the command `{line}` is unknown code, and the profile `{profile}` does not keep it from that")
        }
        Opaque::Tool(tool) => format!("the tool `{tool}` is no family known here: a host may call any tool so"),
        Opaque::Server(tool) => format!("the tool `{tool}` is a server's, and what that does with a call is not known"),
    }
}

fn json(property: &Property, proof: &Proof, holds: bool) -> String {
    let list = |items: &[String]| items.iter().map(|item| quote(item)).collect::<Vec<_>>().join(",");
    let steps = |path: &[PathStep]| {
        let rows: Vec<String> = path
            .iter()
            .map(|step| {
                format!(
                    "{{\"from\":{},\"event\":{},\"to\":{},\"claimed\":[{}],\"observed\":[{}],\"approved\":{}}}",
                    quote(&step.from),
                    quote(&step.event),
                    quote(&step.to),
                    list(&step.claimed),
                    list(&step.observed),
                    step.approved
                )
            })
            .collect();
        rows.join(",")
    };
    let (answer, rest) = match &proof.answer {
        Answer::Proven => ("proven", String::new()),
        Answer::ProvenForCalls { except } => {
            let rows: Vec<String> = except
                .iter()
                .map(|(state, what)| format!("{{\"state\":{},\"what\":{}}}", quote(state), quote(&opaque(what))))
                .collect();
            ("proven_for_calls", format!(",\"except\":[{}]", rows.join(",")))
        }
        Answer::Bounded { max_transitions, path } => {
            ("bounded", format!(",\"max_transitions\":{max_transitions},\"path\":[{}]", steps(path)))
        }
        Answer::Broken { path, state, if_honest } => {
            let state = quote(state);
            ("broken", format!(",\"state\":{state},\"if_honest\":{if_honest},\"path\":[{}]", steps(path)))
        }
    };
    let (text, notes) = (quote(property.text()), list(&proof.notes));
    format!("{{\"property\":{text},\"answer\":\"{answer}\",\"holds\":{holds}{rest},\"notes\":[{notes}]}}")
}
