//! `interlock explain`: the page of a code, the same text as under `docs/errors/`.

use std::fmt::Write;

use clap::Args;
use interlock_core::Code;
use interlock_core::json::quote;

use crate::{Fault, Outcome, print};

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock explain QWED-AGENT-STATE-106")]
pub(crate) struct ExplainArguments {
    /// The code; without it, all codes are listed
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The pages, built in. A new code does not compile without its page.
fn page(code: Code) -> &'static str {
    macro_rules! page {
        ($name:literal) => {
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors/", $name, ".md"))
        };
    }
    match code {
        Code::AgentUnknown => page!("QWED-AGENT-001"),
        Code::AgentToken => page!("QWED-AGENT-002"),
        Code::AgentSuspended => page!("QWED-AGENT-003"),
        Code::ContextMissing => page!("QWED-AGENT-CTX-001"),
        Code::ContextStep => page!("QWED-AGENT-CTX-002"),
        Code::StateFields => page!("QWED-AGENT-STATE-001"),
        Code::StateHash => page!("QWED-AGENT-STATE-002"),
        Code::StateSource => page!("QWED-AGENT-STATE-003"),
        Code::StateParameters => page!("QWED-AGENT-STATE-004"),
        Code::LoopLength => page!("QWED-AGENT-LOOP-001"),
        Code::LoopReplay => page!("QWED-AGENT-LOOP-002"),
        Code::LoopRepetition => page!("QWED-AGENT-LOOP-003"),
        Code::LoopNoProgress => page!("QWED-AGENT-LOOP-004"),
        Code::ActionUnknown => page!("QWED-AGENT-ACTION-001"),
        Code::BudgetCost => page!("QWED-AGENT-BUDGET-001"),
        Code::BudgetRate => page!("QWED-AGENT-BUDGET-002"),
        Code::BudgetTokens => page!("QWED-AGENT-BUDGET-003"),
        Code::ToolNotAllowed => page!("QWED-AGENT-004"),
        Code::VerificationFailed => page!("QWED-AGENT-005"),
        Code::TrustTooLow => page!("QWED-AGENT-TRUST-001"),
        Code::TrustNeedsApproval => page!("QWED-AGENT-TRUST-002"),
        Code::StateNotText => page!("QWED-AGENT-STATE-101"),
        Code::StateNotJson => page!("QWED-AGENT-STATE-102"),
        Code::StateNotInSchema => page!("QWED-AGENT-STATE-103"),
        Code::StateNoRules => page!("QWED-AGENT-STATE-104"),
        Code::StateCurrentBad => page!("QWED-AGENT-STATE-105"),
        Code::StateTransition => page!("QWED-AGENT-STATE-106"),
        Code::StateTarget => page!("QWED-AGENT-STATE-107"),
        Code::StateWrite => page!("QWED-AGENT-STATE-108"),
        Code::ConfigInvalid => page!("INTERLOCK-CONFIG-001"),
        Code::RequestMalformed => page!("INTERLOCK-REQUEST-001"),
        Code::RequestField => page!("INTERLOCK-REQUEST-002"),
        Code::RequestTooLarge => page!("INTERLOCK-REQUEST-003"),
        Code::RequestKeyReused => page!("INTERLOCK-REQUEST-004"),
        Code::RequestRoute => page!("INTERLOCK-REQUEST-005"),
        Code::RequestSlow => page!("INTERLOCK-REQUEST-006"),
        Code::Operator => page!("INTERLOCK-AUTH-001"),
        Code::OperatorRole => page!("INTERLOCK-AUTH-002"),
        Code::OperatorKeyUnknown => page!("INTERLOCK-AUTH-003"),
        Code::ApprovalDecided => page!("INTERLOCK-APPROVAL-001"),
        Code::ApprovalExpired => page!("INTERLOCK-APPROVAL-002"),
        Code::ApprovalsOpen => page!("INTERLOCK-APPROVAL-003"),
        Code::ApprovalStale => page!("INTERLOCK-APPROVAL-004"),
        Code::ApprovalUnknown => page!("INTERLOCK-APPROVAL-005"),
        Code::WorkflowTool => page!("INTERLOCK-WF-001"),
        Code::WorkflowEvent => page!("INTERLOCK-WF-002"),
        Code::WorkflowGuard => page!("INTERLOCK-WF-003"),
        Code::WorkflowIterations => page!("INTERLOCK-WF-004"),
        Code::WorkflowRevision => page!("INTERLOCK-WF-005"),
        Code::WorkflowParked => page!("INTERLOCK-WF-006"),
        Code::WorkflowNoRun => page!("INTERLOCK-WF-007"),
        Code::WorkflowFrozen => page!("INTERLOCK-WF-008"),
        Code::WorkflowLimit => page!("INTERLOCK-WF-009"),
        Code::WorkflowData => page!("INTERLOCK-WF-010"),
        Code::ShellEffect => page!("INTERLOCK-SHELL-001"),
        Code::ContainSetup => page!("INTERLOCK-CONTAIN-001"),
        Code::ContainTicket => page!("INTERLOCK-CONTAIN-002"),
        Code::ContainRecord => page!("INTERLOCK-CONTAIN-003"),
        Code::KeepFailed => page!("INTERLOCK-KEEP-001"),
        Code::KeepDamaged => page!("INTERLOCK-KEEP-002"),
        Code::KeepConflict => page!("INTERLOCK-KEEP-003"),
        Code::ExecutionNotAllowed => page!("INTERLOCK-EXECUTION-001"),
        Code::ExecutionReported => page!("INTERLOCK-EXECUTION-002"),
        Code::ExecutionUnknown => page!("INTERLOCK-EXECUTION-003"),
        Code::RateLimited => page!("INTERLOCK-RATE-001"),
        Code::EnvironmentLoader => page!("INTERLOCK-ENV-001"),
        Code::EnvironmentFiles => page!("INTERLOCK-ENV-002"),
        Code::EnvironmentClock => page!("INTERLOCK-ENV-003"),
        Code::EnvironmentInUse => page!("INTERLOCK-ENV-004"),
        Code::LedgerDamaged => page!("INTERLOCK-LEDGER-001"),
        Code::FaultStore => page!("INTERLOCK-FAULT-002"),
        Code::FaultBusy => page!("INTERLOCK-FAULT-004"),
        Code::FaultInternal => page!("INTERLOCK-FAULT-001"),
    }
}

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Outcome, Fault> {
    let Some(text) = &arguments.code else {
        print(list(arguments.json).as_bytes())?;
        return Ok(Outcome::Clean);
    };
    let Some(code) = find(text) else {
        return Err(Fault::new(format!(
            "`{}` is not a code of Interlock; `interlock explain` lists them all",
            interlock_core::display(text)
        )));
    };
    let output = if arguments.json {
        format!(
            "{{\"code\":{},\"title\":{},\"page\":{}}}\n",
            quote(code.as_str()),
            quote(code.title()),
            quote(page(code))
        )
    } else {
        page(code).to_owned()
    };
    print(output.as_bytes())?;
    Ok(Outcome::Clean)
}

/// The code with this spelling, or the only one that ends in it: `106` will do.
fn find(text: &str) -> Option<Code> {
    let ending = format!("-{}", text.to_ascii_uppercase());
    let mut candidates = Code::ALL.iter().copied().filter(|code| code.as_str().ends_with(&ending));
    match (Code::parse(text), candidates.next(), candidates.next()) {
        (Some(code), _, _) => Some(code),
        (None, Some(code), None) => Some(code),
        (None, _, _) => None,
    }
}

fn list(json: bool) -> String {
    let mut out = String::new();
    if json {
        let rows: Vec<_> = Code::ALL
            .iter()
            .map(|code| format!("{{\"code\":{},\"title\":{}}}", quote(code.as_str()), quote(code.title())))
            .collect();
        let _ = writeln!(out, "{{\"codes\":[{}]}}", rows.join(","));
        return out;
    }
    for code in Code::ALL {
        let _ = writeln!(out, "{:<23} {}", code.as_str(), code.title());
    }
    out
}
