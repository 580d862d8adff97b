//! `interlock workflow check`: load errors, warnings and what the analysis finds, each with its place.

use std::fmt::Write;
use std::ops::Range;

use clap::Args;
use interlock_core::json::quote;
use interlock_core::visible;
use interlock_verifiers::shell::Setting;
use interlock_workflow::{Problem, Severity, analyse, locate};

use super::{Source, judge};
use crate::input::Inputs;
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::{Fault, Outcome, print, snippet};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock workflow check .interlock/workflow.yaml
  interlock workflow check --strict --json workflows/*.yaml

Exit codes: 0 no errors (with --strict: no warnings either), 1 findings, 2 usage or fault.")]
pub(crate) struct CheckArguments {
    /// Workflows: files, `-`, or names of templates
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Let warnings count as errors do
    #[arg(long)]
    strict: bool,
    /// Leave notes out
    #[arg(long)]
    no_notes: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A problem of any kind, with its place in the text.
struct Told {
    severity: Severity,
    name: &'static str,
    path: String,
    span: Range<usize>,
    message: String,
    help: Option<String>,
}

impl Told {
    fn of_problem(severity: Severity, problem: Problem) -> Told {
        let Problem { span, path, message, help, .. } = problem;
        Told { severity, name: "load", path, span, message, help }
    }
}

pub(super) fn run(arguments: &CheckArguments) -> Result<Outcome, Fault> {
    let judge = judge()?;
    let mut inputs = Inputs::default();
    let mut documents = Vec::new();
    let mut failed = false;
    for file in &arguments.files {
        let source = Source::read(&mut inputs, file)?;
        let mut told = examine(&source, &judge);
        told.retain(|told| !(arguments.no_notes && told.severity == Severity::Note));
        failed |= told.iter().any(|told| match told.severity {
            Severity::Error => true,
            Severity::Warning => arguments.strict,
            Severity::Note => false,
        });
        if arguments.json {
            documents.push(json(&source, &told));
        } else {
            print(text(&source, &told).as_bytes())?;
        }
    }
    if arguments.json {
        print(format!("{{\"files\":[{}]}}\n", documents.join(",")).as_bytes())?;
    }
    Ok(if failed { Outcome::Refused } else { Outcome::Clean })
}

fn examine(source: &Source, judge: &Setting) -> Vec<Told> {
    let loaded = match source.parse() {
        Ok(loaded) => loaded,
        Err(problems) => {
            return problems.into_iter().map(|problem| Told::of_problem(Severity::Error, problem)).collect();
        }
    };
    let mut told: Vec<Told> =
        loaded.warnings.into_iter().map(|problem| Told::of_problem(Severity::Warning, problem)).collect();
    let findings = analyse(&loaded.workflow, judge);
    let places: Vec<_> = findings.iter().map(|finding| finding.place.as_slice()).collect();
    let spans = locate(&source.text, source.format, &places);
    told.extend(findings.into_iter().zip(spans).map(|(finding, span)| Told {
        severity: finding.severity,
        name: finding.name,
        path: finding.path(),
        span,
        message: finding.message,
        help: Some(finding.help),
    }));
    told.sort_by_key(|told| (told.severity, told.span.start));
    told
}

fn text(source: &Source, told: &[Told]) -> String {
    let mut out = String::new();
    for told in told {
        let colour = match told.severity {
            Severity::Error | Severity::Warning => BAD,
            Severity::Note => FAINT,
        };
        let _ = writeln!(out, "{colour}{}{RESET} {}: {}", told.severity, told.name, visible(&told.message));
        out.push_str(&snippet::render(&source.name, &source.text, told.span.clone()));
        if let Some(help) = &told.help {
            let _ = writeln!(out, "  {FAINT}help: {}{RESET}", visible(help));
        }
    }
    let count = |severity: Severity| told.iter().filter(|told| told.severity == severity).count();
    let counts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .filter(|severity| count(*severity) > 0)
        .map(|severity| format!("{} {severity}{}", count(severity), if count(severity) == 1 { "" } else { "s" }))
        .collect();
    let _ = if counts.is_empty() {
        writeln!(out, "{GOOD}clean{RESET} {}", source.name)
    } else {
        writeln!(out, "{} in {}", counts.join(", "), source.name)
    };
    out
}

fn json(source: &Source, told: &[Told]) -> String {
    let rows: Vec<String> = told
        .iter()
        .map(|told| {
            let before = source.text.get(..told.span.start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            format!(
                "{{\"severity\":{},\"name\":{},\"path\":{},\"line\":{line},\"column\":{column},\"message\":{},\"help\":{}}}",
                quote(told.severity.as_str()),
                quote(told.name),
                quote(&told.path),
                quote(&told.message),
                told.help.as_ref().map_or_else(|| "null".to_owned(), |help| quote(help))
            )
        })
        .collect();
    format!("{{\"file\":{},\"findings\":[{}]}}", quote(&source.name), rows.join(","))
}
