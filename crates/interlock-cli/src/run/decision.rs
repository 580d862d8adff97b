//! `interlock decision explain`: why a decision is as it is, and what would change it.

use std::fmt::Write;

use clap::{Args, Subcommand};
use interlock_core::display;
use interlock_wire::{CallDecision, Grounds};

use super::refusals::{Refused, agent_of};
use crate::client::{Answer, Client, ServerArguments, encode};
use crate::prefix::is_whole;
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::{block_of, cell};
use crate::{Fault, Outcome, moment, print};

/// What to do where an id leads to nothing.
pub(super) const SHOWS_IDS: &str = "`interlock review` shows the ids of what was refused";

#[derive(Debug, Subcommand)]
pub(crate) enum DecisionCommand {
    /// Say what a decision rests on: checks in order, rule, evidence, certificate, and what would change it
    Explain(ExplainArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock decision explain dec_1c0d81907c8511dac180148e070a3ac1
  interlock decision explain dec_1c0d81907c8511dac180148e070a3ac1 --json | jq '.grounds.checks'

Exit codes: 0 shown, 1 there is no such decision, 2 usage or fault.")]
pub(crate) struct ExplainArguments {
    /// The decision: refusals end in its id, and `interlock activity` shows all
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    server: ServerArguments,
}

impl DecisionCommand {
    pub(crate) fn wants_json(&self) -> bool {
        let DecisionCommand::Explain(arguments) = self;
        arguments.server.json
    }
}

pub(crate) fn run(command: &DecisionCommand) -> Result<Outcome, Fault> {
    let DecisionCommand::Explain(arguments) = command;
    let client = Client::open_or_start(&arguments.server)?;
    let answer = ask(&client, &arguments.id)?;
    let output = if arguments.server.json { answer.json() } else { text(answer.read()?) };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

/// The decision with that id.
pub(super) fn ask(client: &Client, id: &str) -> Result<Answer, Fault> {
    if !is_whole(id, "dec_") {
        let what = format!("`{}` is not the id of a decision", display(id));
        let next = "an id is `dec_` and 32 digits: refusals end in it, and `interlock review` shows it; a tool as \
                    such cannot be allowed";
        return Err(Fault::new(what).and_then_do(next));
    }
    client.get(&format!("/decisions/{}", encode(id))).map_err(|fault| {
        if fault.code.as_deref() == Some("INTERLOCK-EXECUTION-003") { fault.and_then_do(SHOWS_IDS) } else { fault }
    })
}

fn text(decision: CallDecision) -> String {
    let agent = agent_of(&decision);
    let CallDecision { ruling, grounds, agent_name, .. } = decision;
    let passed = ruling.code.is_none();
    let (colour, mode) = (if passed { GOOD } else { BAD }, if ruling.enforced { "" } else { ", only shown" });
    let mut out = format!(
        "{colour}{}{RESET}{mode}  {FAINT}{} UTC, {}{RESET}\n",
        cell(&ruling.decision, 20),
        moment::short(&ruling.at),
        cell(&agent_name, 80)
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<11} {value}");
    };
    let refused = agent.and_then(|agent| Refused::of(ruling.clone(), &agent));
    if let Some(tool) = ruling.tool.as_ref().or(ruling.action_type.as_ref()) {
        line(
            "asked",
            format!("{}  {}", cell(tool, 40), cell(&refused.as_ref().map(Refused::wanted).unwrap_or_default(), 160)),
        );
    }
    if let Some(code) = &ruling.code {
        line("why", format!("{}: {}", cell(code, 40), cell(ruling.message.as_deref().unwrap_or(""), 240)));
    }
    if !ruling.effects.is_empty() {
        line("does", cell(&ruling.effects.join(", "), 120));
    }
    if !ruling.rules.is_empty() {
        line("rules", cell(&ruling.rules.join(", "), 160));
    }
    grounds_lines(&grounds, &mut line);
    if let Some(changes) = &ruling.changes {
        line("changed", cell(changes, 80));
    }
    if !passed {
        line("to change", way_on(refused.as_ref(), ruling.code.as_deref(), &ruling.decision_id));
    }
    if let Some(input) = ruling.input.as_ref().filter(|_| refused.is_none()) {
        out.push_str(&block_of(input.text(), false).0);
    }
    out
}

fn grounds_lines(grounds: &Grounds, line: &mut impl FnMut(&str, String)) {
    let shown = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), |text| cell(text, 80));
    if grounds.engine.is_some() {
        let risk = shown(&grounds.risk_level);
        line("verified", format!("{} by {}, risk {risk}", shown(&grounds.status), shown(&grounds.engine)));
    }
    for check in &grounds.checks {
        let mark = if check.held { format!("{GOOD}held{RESET}    ") } else { format!("{BAD}not held{RESET}") };
        line("check", format!("{mark} {}", cell(&check.name, 60)));
    }
    if let Some(profile) = &grounds.profile {
        line("held by", format!("profile {}: {}", cell(profile, 40), shown(&grounds.kernel)));
    }
    let rows = [
        ("certificate", &grounds.certificate),
        ("approval", &grounds.approved_by),
        ("allowance", &grounds.allowed_by),
        ("limit", &grounds.limit),
        ("reached", &grounds.current),
    ];
    for (name, value) in rows.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        line(name, cell(value, 80));
    }
    if let Some(trust) = grounds.trust_level {
        line("trust", trust.to_string());
    }
    line("bundle", cell(&grounds.bundle, 80));
}

/// What would change the answer.
fn way_on(refused: Option<&Refused>, code: Option<&str>, id: &str) -> String {
    let page = code.map_or_else(String::new, |code| format!("; `interlock explain {}`", cell(code, 40)));
    match refused.map(Refused::firm) {
        Some(None) => format!("`interlock allow {}` lets exactly this call pass once{page}", cell(id, 60)),
        Some(Some(why)) => format!("no allowance lifts it: {why}{page}"),
        None => format!("what waits for a person is decided with `interlock approvals`{page}"),
    }
}
