//! `interlock engine`: asks a verifier about a claim or a statement of one's own.

use std::fmt::Write;
use std::fs;

use clap::{Args, ValueEnum};
use interlock_core::action::{ActionText, Risk, Status};
use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Limits, Value, quote};
use interlock_core::{Cause, visible};
use interlock_verifiers::math::Math;
use interlock_verifiers::sql::Sql;
use interlock_verifiers::{Ground, Verifier};

use crate::lines::{each_line, whole_input};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::{Fault, Outcome, print};

/// How much of a certificate is shown to people.
const CERTIFICATE_SHOWN: usize = 200;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EngineName {
    /// Calculations, equations, identities
    Math,
    /// Database statements
    Sql,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock engine math '0.1 + 0.2 = 0.3'
  interlock engine math '2x + 3 = 7 => x = 2' --json
  interlock engine sql 'SELECT id FROM orders WHERE total > 10' --dialect postgres
  interlock engine sql --jsonl < actions.jsonl     each line {\"query\": \"…\", \"parameters\": {…}}

Exit codes: 0 VERIFIED, 1 anything else, 2 usage or fault; with --jsonl always 0.")]
pub(crate) struct EngineArguments {
    /// Which verifier
    engine: EngineName,
    /// The claim or statement; without it, standard input is read
    #[arg(conflicts_with = "jsonl", allow_hyphen_values = true)]
    text: Option<String>,
    /// Read one action a line, {"query": "…", "parameters": {…}}, and print one outcome a line
    #[arg(long)]
    jsonl: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// math: what the text is claimed to equal
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    expected: Option<String>,
    /// sql: postgres, mysql, sqlite, mssql, snowflake or bigquery
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// sql: a file with the tables, as CREATE TABLE statements or JSON
    #[arg(long, value_name = "FILE")]
    schema: Option<String>,
}

impl EngineArguments {
    pub(crate) fn wants_json(&self) -> bool {
        self.json || self.jsonl
    }
}

pub(crate) fn run(arguments: &EngineArguments) -> Result<Outcome, Fault> {
    let verifier: &dyn Verifier = match arguments.engine {
        EngineName::Math => &Math,
        EngineName::Sql => &Sql,
    };
    let bundle = Bundle::built_in().map_err(|error| Fault::new(error.to_string()))?;
    let mut ground = Ground::load(&bundle).map_err(|cause| Fault::new(cause.to_string()))?;
    // What is typed here is the operator's own.
    ground.trusts_action = true;
    if arguments.jsonl {
        let given = written_parameters(arguments)?;
        each_line(|line| {
            let action = read_action(line.root())?;
            if given.is_empty() {
                return Ok(judge(verifier, &ground, &action).to_json());
            }
            let with = with_parameters(&action, &given)?;
            let parameters = json::parse(&with, &Limits::STATE).map_err(Cause::of)?;
            let action = ActionText { parameters: Some(parameters.root()), ..action };
            Ok(judge(verifier, &ground, &action).to_json())
        })?;
        return Ok(Outcome::Clean);
    }
    let text = match &arguments.text {
        Some(text) if text != "-" => text.clone(),
        Some(_) | None => whole_input()?,
    };
    let written = write_action(arguments, &text)?;
    let document = json::parse(&written, &Limits::STATE).map_err(|error| Fault::new(error.to_string()))?;
    let action = read_action(document.root()).map_err(|cause| Fault::new(cause.to_string()))?;
    let found = judge(verifier, &ground, &action);
    if arguments.json {
        print(format!("{}\n", found.to_json()).as_bytes())?;
    } else {
        print(found.show().as_bytes())?;
    }
    Ok(if found.outcome.status == Status::Verified { Outcome::Clean } else { Outcome::Refused })
}

/// The parameters of a line and those of the command. Which of two would count nobody could tell, so a line says
/// nothing else.
fn with_parameters(action: &ActionText<'_>, given: &[(&str, String)]) -> Result<String, Cause> {
    let mut members = Vec::new();
    for (name, value) in action.parameters.and_then(|parameters| parameters.as_object()).into_iter().flatten() {
        let Some((same, text)) = given.iter().find(|(given, _)| *given == name.text()) else {
            members.push(format!("{}:{}", quote(name.text()), value.source()));
            continue;
        };
        if value.as_str().is_none_or(|value| quote(value.text()) != *text) {
            return Err(format!("the line has another `{same}` than the command").into());
        }
    }
    members.extend(given.iter().map(|(name, text)| format!("{}:{text}", quote(name))));
    Ok(format!("{{{}}}", members.join(",")))
}

/// The action that the arguments describe.
fn write_action(arguments: &EngineArguments, text: &str) -> Result<String, Fault> {
    let parameters = written_parameters(arguments)?;
    let parameters: Vec<String> = parameters.iter().map(|(name, text)| format!("{}:{text}", quote(name))).collect();
    Ok(format!("{{\"query\":{},\"parameters\":{{{}}}}}", quote(text), parameters.join(",")))
}

/// The parameters that the command is given, as JSON.
fn written_parameters(arguments: &EngineArguments) -> Result<Vec<(&'static str, String)>, Fault> {
    let mut parameters = Vec::new();
    if let Some(expected) = &arguments.expected {
        parameters.push(("expected", quote(expected)));
    }
    if let Some(dialect) = &arguments.dialect {
        parameters.push(("dialect", quote(dialect)));
    }
    if let Some(path) = &arguments.schema {
        let schema = fs::read_to_string(path);
        let schema = schema.map_err(|reason| Fault::new(format!("cannot read --schema `{path}`: {reason}")))?;
        parameters.push(("schema", quote(&schema)));
    }
    Ok(parameters)
}

/// An action as the service takes it; only `query` is needed here.
fn read_action(value: Value<'_>) -> Result<ActionText<'_>, Cause> {
    let Some(members) = value.as_object() else {
        return Err("a line is an object such as {\"query\": \"…\"}".into());
    };
    let known = ["type", "action_type", "query", "code", "target", "parameters"];
    for (key, _) in members {
        if !known.contains(&key.text()) {
            return Err(format!("an action has no member `{}`", interlock_core::display(key.text())).into());
        }
    }
    let given = |key: &str| value.get(key).filter(|value| value.kind() != Some(json::Kind::Null));
    if given("query").is_none_or(|query| query.as_str().is_none()) {
        return Err("an action needs a text `query`".into());
    }
    if given("parameters").is_some_and(|parameters| parameters.as_object().is_none()) {
        return Err("`parameters` is an object".into());
    }
    let kind = given("type").or_else(|| given("action_type")).and_then(|kind| kind.as_str());
    Ok(ActionText {
        kind: kind.map_or("", |kind| kind.text()),
        query: given("query"),
        code: given("code"),
        target: given("target"),
        parameters: given("parameters"),
    })
}

struct Judgement {
    outcome: interlock_verifiers::Outcome,
    evidence: String,
    risk: Risk,
}

fn judge(verifier: &dyn Verifier, ground: &Ground, action: &ActionText<'_>) -> Judgement {
    let outcome = verifier.verify(action, ground);
    let evidence = outcome.evidence(verifier, action);
    // Where a verifier says nothing, the registry's risk of its engine holds.
    let base = match verifier.engine() {
        interlock_core::action::Engine::Math => Risk::Low,
        _ => Risk::High,
    };
    let risk = outcome.risk.unwrap_or(base);
    Judgement { outcome, evidence, risk }
}

impl Judgement {
    fn to_json(&self) -> String {
        let checks: Vec<String> = self
            .outcome
            .checks
            .iter()
            .map(|check| {
                let (name, message) = (quote(check.name), quote(&check.message));
                format!("{{\"name\":{name},\"passed\":{},\"message\":{message}}}", check.passed)
            })
            .collect();
        let corrected = self.outcome.corrected.as_ref();
        let corrected = corrected.map_or_else(String::new, |text| format!("\"corrected\":{},", quote(text)));
        format!(
            "{{\"status\":\"{}\",\"risk\":\"{}\",\"checks\":[{}],{corrected}\"evidence\":{}}}",
            self.outcome.status,
            self.risk,
            checks.join(","),
            self.evidence
        )
    }

    fn show(&self) -> String {
        let mut out = String::new();
        let colour = if self.outcome.status == Status::Verified { GOOD } else { BAD };
        let _ = writeln!(out, "{colour}{}{RESET}  {FAINT}{} risk{RESET}", self.outcome.status, self.risk);
        if let Some(corrected) = &self.outcome.corrected {
            let _ = writeln!(out, "  {}", visible(corrected));
        }
        for check in &self.outcome.checks {
            let (sign, colour) = if check.passed { ("✓", FAINT) } else { ("✗", BAD) };
            let _ = writeln!(out, "  {colour}{sign}{RESET} {}: {}", check.name, visible(&check.message));
        }
        if !self.outcome.certificate.is_empty() {
            let whole = visible(&self.outcome.certificate);
            let short: String = whole.chars().take(CERTIFICATE_SHOWN).collect();
            let more = if short.len() < whole.len() { "… (--json has all of it)" } else { "" };
            let _ = writeln!(out, "  {FAINT}certificate: {short}{more}{RESET}");
        }
        out
    }
}
