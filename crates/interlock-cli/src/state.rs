//! `interlock state`: verify a state, a transition or a commit; lint a guard.

use std::fmt::Write;

use clap::{Args, Subcommand};
use interlock_core::json::quote;
use interlock_core::state::{StateGuard, decision};
use interlock_core::transition::Finding;
use interlock_core::{Code, Denial, Place, Side};
use interlock_runtime::StateFiles;

use crate::input::{Input, Inputs};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::{Fault, Outcome, print, snippet};

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Verify a proposed state, its transition from a current one, and commit it
    Verify(VerifyArguments),
    /// Find rules of a guard that can never hold or that block everything
    Lint(LintArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interlock state verify --guard guard.json --proposed next.json
  interlock state verify --guard guard.json --current now.json --proposed next.json
  interlock state verify --guard guard.json --current now.json --proposed - --commit /srv/state/agent.json

A guard is {\"required_schema\": …, \"transition_rules\": …, \"allowed_commit_roots\": […]}.
Exit codes: 0 verified, 1 blocked, 2 usage or fault.")]
pub(crate) struct VerifyArguments {
    /// The guard: schema, rules and commit roots
    #[arg(long, value_name = "FILE")]
    guard: String,
    /// The state as it is; with it the transition is verified too
    #[arg(long, value_name = "FILE")]
    current: Option<String>,
    /// The state as the agent wants it (`-`: standard input)
    #[arg(long, value_name = "FILE")]
    proposed: String,
    /// Write the proposed state here if everything holds
    #[arg(long, value_name = "PATH", requires = "current")]
    commit: Option<String>,
    /// Print the decision object as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock state lint guard.json

Exit codes: 0 clean, 1 findings, 2 usage or fault.")]
pub(crate) struct LintArguments {
    /// The guard file (`-`: standard input)
    guard: String,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

impl StateCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            StateCommand::Verify(arguments) => arguments.json,
            StateCommand::Lint(arguments) => arguments.json,
        }
    }
}

pub(crate) fn run(command: StateCommand) -> Result<Outcome, Fault> {
    match command {
        StateCommand::Verify(arguments) => verify(&arguments),
        StateCommand::Lint(arguments) => lint(&arguments),
    }
}

fn verify(arguments: &VerifyArguments) -> Result<Outcome, Fault> {
    let mut inputs = Inputs::default();
    let guard = inputs.read("--guard", &arguments.guard)?;
    let current = arguments.current.as_deref().map(|path| inputs.read("--current", path)).transpose()?;
    let proposed = inputs.read("--proposed", &arguments.proposed)?;
    let guard = load_guard(&guard)?;
    let texts = Texts { current, proposed };
    let verdict = texts.judge(guard, arguments.commit.as_deref());
    let (output, outcome) = match (&verdict, arguments.json) {
        (Ok(verified), true) => (format!("{}\n", verified.decision), Outcome::Clean),
        (Ok(verified), false) => (verified.sentence(), Outcome::Clean),
        (Err(denial), true) => (format!("{}\n", decision::failure(denial)), Outcome::Refused),
        (Err(denial), false) => (texts.explain(denial), Outcome::Refused),
    };
    if let Err(fault) = print(output.as_bytes()) {
        let committed = verdict.is_ok_and(|verified| verified.written.is_some());
        let note = if committed { "the state WAS committed, but " } else { "" };
        return Err(Fault::new(format!("{note}{}", fault.message)));
    }
    Ok(outcome)
}

fn load_guard(input: &Input) -> Result<StateGuard, Fault> {
    let fault =
        |reason: String| Fault::with_code(Code::ConfigInvalid, format!("`{}` is not a guard: {reason}", input.name));
    let text = std::str::from_utf8(&input.bytes).map_err(|_| fault("the text is not valid UTF-8".to_owned()))?;
    StateGuard::load_file(text).map_err(|error| fault(error.to_string()))
}

struct Texts {
    current: Option<Input>,
    proposed: Input,
}

struct Verified {
    what: &'static str,
    proof: String,
    written: Option<String>,
    decision: String,
}

impl Texts {
    fn judge(&self, guard: StateGuard, commit: Option<&str>) -> Result<Verified, Denial> {
        let proposed = self.proposed.bytes.as_slice();
        match (&self.current, commit) {
            (None, _) => {
                let state = guard.verify_payload(proposed)?;
                let proof = state.proof().to_string();
                Ok(Verified { what: "state", proof, written: None, decision: decision::payload(&state) })
            }
            (Some(current), None) => {
                let transition = guard.verify_transition(current.bytes.as_slice(), proposed)?;
                let proof = transition.proof().to_string();
                Ok(Verified { what: "transition", proof, written: None, decision: decision::transition(&transition) })
            }
            (Some(current), Some(target)) => {
                let files = StateFiles::new(guard);
                let committed = files.verify_transition_and_commit(current.bytes.as_slice(), proposed, target)?;
                let transition = committed.transition();
                Ok(Verified {
                    what: "transition, committed",
                    proof: transition.proposed().digest().to_string(),
                    written: Some(format!("{} bytes to {}", transition.proposed().canonical().len(), committed.path())),
                    decision: decision::committed(transition, committed.path()),
                })
            }
        }
    }

    /// A refusal for a person: the reason, the place, what to do next.
    fn explain(&self, denial: &Denial) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{BAD}BLOCKED{RESET} {}", denial.code);
        let _ = writeln!(out, "  {}", denial.reason());
        if let Some(place) = &denial.place {
            let _ = write!(out, "{}", self.snippet(place));
        }
        let _ = writeln!(out, "  {FAINT}more: interlock explain {}{RESET}", denial.code);
        out
    }

    fn snippet(&self, place: &Place) -> String {
        let input = match (place.side, &self.current) {
            (Side::Current, Some(current)) => current,
            (Side::Current, None) | (Side::Proposed, _) => &self.proposed,
        };
        match std::str::from_utf8(&input.bytes) {
            Ok(text) => snippet::render(&input.name, text, place.span.clone()),
            Err(_) => String::new(),
        }
    }
}

impl Verified {
    fn sentence(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{GOOD}VERIFIED{RESET} {}", self.what);
        let _ = writeln!(out, "  proof {}", self.proof);
        if let Some(written) = &self.written {
            let _ = writeln!(out, "  wrote {}", interlock_core::display(written));
        }
        out
    }
}

fn lint(arguments: &LintArguments) -> Result<Outcome, Fault> {
    let input = Inputs::default().read("GUARD", &arguments.guard)?;
    let findings = load_guard(&input)?.lint();
    let output = if arguments.json { findings_json(&findings) } else { findings_text(&input.name, &findings) };
    print(output.as_bytes())?;
    Ok(if findings.is_empty() { Outcome::Clean } else { Outcome::Refused })
}

fn findings_json(findings: &[Finding]) -> String {
    let rows: Vec<_> = findings
        .iter()
        .map(|finding| {
            let (rule, message) = (quote(&finding.rule), quote(&finding.message));
            format!("{{\"rule\":{rule},\"message\":{message},\"blocks_always\":{}}}", finding.blocks_always)
        })
        .collect();
    format!("{{\"findings\":[{}]}}\n", rows.join(","))
}

fn findings_text(name: &str, findings: &[Finding]) -> String {
    if findings.is_empty() {
        return format!("{GOOD}clean{RESET} {name}\n");
    }
    let mut out = String::new();
    for finding in findings {
        let level = if finding.blocks_always { "error" } else { "warning" };
        let _ = writeln!(out, "{BAD}{level}{RESET} {}\n  {}", finding.rule, finding.message);
    }
    let _ = writeln!(
        out,
        "{} in {name}",
        if findings.len() == 1 { "1 finding".to_owned() } else { format!("{} findings", findings.len()) }
    );
    out
}
