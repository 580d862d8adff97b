//! What is answered: status, body, and nothing that was not recorded.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::action::{
    ActionText, Agent, BudgetLimits, Decision, Door, Remaining, Ruling, RulingError, Spent, Stale, UsdMicros,
    Verification,
};
use interlock_core::json::{RawJson, quote};
use interlock_core::ledger::Ruled;
use interlock_core::{Code, action::Millis};
use interlock_runtime::ledger::{Answer, Recorded};
use interlock_wire as wire;

use crate::attest::carry;
use crate::telemetry::note;
use crate::write::{Object, time};

/// How many headers most answers have.
const USUAL_HEADERS: usize = 6;

/// A request that gets no ruling.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    code: Code,
    message: String,
    /// Answers of verify and tools say DENIED as well.
    decided: bool,
    status: Option<StatusCode>,
    details: Option<RawJson>,
    /// After how many seconds it is worth trying again, where that is known.
    retry_after: Option<u32>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), decided: false, status: None, details: None, retry_after: None }
    }

    pub(crate) fn unknown_agent() -> Refusal {
        Refusal::of_code(Code::AgentUnknown)
    }

    pub(crate) fn wrong_token() -> Refusal {
        Refusal::of_code(Code::AgentToken)
    }

    /// What is not the same any more since a ticket was opened.
    pub(crate) fn stale(stale: &Stale) -> Refusal {
        let what = stale.to_string();
        let message = format!("{what} changed since this was asked; the agent has to ask again");
        let message = match stale {
            Stale::Denial(decision_id) => {
                format!("{decision_id} cost trust since this was asked; the agent has to ask again")
            }
            Stale::Bundle | Stale::Trust { .. } | Stale::Run | Stale::Refusals => message,
        };
        Refusal::new(Code::ApprovalStale, message).with_details(wire::write(&wire::StaleDetails { stale: what }))
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Refusal {
        Refusal { status: Some(status), ..self }
    }

    /// Figures and the like, as JSON.
    pub(crate) fn with_details(self, details: String) -> Refusal {
        Refusal { details: Some(RawJson::written(details)), ..self }
    }

    pub(crate) fn with_retry_after(self, seconds: u32) -> Refusal {
        Refusal { retry_after: Some(seconds), ..self }
    }

    /// The same, as an answer of verify and tools.
    pub(crate) fn decided(self) -> Refusal {
        Refusal { decided: true, ..self }
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn of_code(code: Code) -> Refusal {
        #[rustfmt::skip]
        let known = [
            (Code::AgentUnknown, "no such agent is registered"),
            (Code::AgentToken, "the agent's token is missing or wrong"),
            (Code::AgentSuspended, "the agent is suspended"),
            (Code::OperatorKeyUnknown, "no such key counts; see GET /keys"),
            (Code::ApprovalDecided, "this approval is decided already; nothing changed"),
            (Code::ApprovalExpired, "this approval has expired; the agent has to ask again"),
            (Code::ApprovalStale, "bundle, trust or denials changed since this was asked; the agent has to ask again"),
            (Code::ApprovalUnknown, "there is no such approval"),
            (Code::ExecutionNotAllowed, "this decision lets nothing run: it was no approval, or nobody approved it yet"),
            (Code::ExecutionReported, "the execution of this decision is reported already"),
            (Code::ExecutionUnknown, "this agent has no such decision"),
            (Code::RequestKeyReused, "this Idempotency-Key was used for another request; use a new one"),
            (Code::FaultBusy, "the server is full or stopping; try again in a moment"),
            (Code::FaultStore, "the ledger is not available; nothing was approved"),
        ];
        let message = known.iter().find(|(known, _)| *known == code).map(|(_, message)| *message);
        let message = message.unwrap_or("an internal fault; nothing was approved");
        Refusal::new(code, message)
    }

    /// The store failed while it was committing.
    pub(crate) fn unknown() -> Refusal {
        let message = "the ledger is not available; nothing was approved, and whether this is on record is not known";
        Refusal::new(Code::FaultStore, message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        note(|note| {
            note.code = Some(self.code.as_str());
            note.decision = if self.decided { Some(Decision::Denied.as_str()) } else { note.decision };
        });
        let error = wire::Error { code: self.code.to_string(), message: self.message, details: self.details };
        let decision = self.decided.then(|| Decision::Denied.to_string());
        let status = self.status.unwrap_or_else(|| status_of(self.code));
        let mut response = json(status, wire::write(&wire::ErrorAnswer { decision, error }));
        if let Some(seconds) = self.retry_after.or((status == StatusCode::SERVICE_UNAVAILABLE).then_some(1)) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    // Room for what most answers get later: the limits and the length.
    *response.headers_mut() = HeaderMap::with_capacity(USUAL_HEADERS);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The status of a code. A ruling is an answer, so it is 200.
fn status_of(code: Code) -> StatusCode {
    match code {
        Code::AgentUnknown
        | Code::RequestRoute
        | Code::OperatorKeyUnknown
        | Code::ApprovalUnknown
        | Code::ExecutionUnknown => StatusCode::NOT_FOUND,
        Code::AgentToken | Code::Operator => StatusCode::UNAUTHORIZED,
        Code::AgentSuspended | Code::OperatorRole => StatusCode::FORBIDDEN,
        Code::ApprovalExpired => StatusCode::GONE,
        Code::ContextMissing
        | Code::ContextStep
        | Code::StateFields
        | Code::StateHash
        | Code::StateSource
        | Code::StateParameters
        | Code::RequestMalformed
        | Code::RequestField
        | Code::ConfigInvalid => StatusCode::BAD_REQUEST,
        Code::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::RequestKeyReused
        | Code::ApprovalDecided
        | Code::ApprovalStale
        | Code::ExecutionNotAllowed
        | Code::ExecutionReported
        | Code::KeepFailed
        | Code::KeepDamaged
        | Code::KeepConflict => StatusCode::CONFLICT,
        Code::RequestSlow => StatusCode::REQUEST_TIMEOUT,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::FaultStore | Code::FaultBusy | Code::LedgerDamaged => StatusCode::SERVICE_UNAVAILABLE,
        Code::FaultInternal => StatusCode::INTERNAL_SERVER_ERROR,
        Code::ContainSetup
        | Code::ContainTicket
        | Code::ContainRecord
        | Code::LoopLength
        | Code::LoopReplay
        | Code::LoopRepetition
        | Code::LoopNoProgress
        | Code::ActionUnknown
        | Code::BudgetCost
        | Code::BudgetRate
        | Code::BudgetTokens
        | Code::ToolNotAllowed
        | Code::VerificationFailed
        | Code::TrustTooLow
        | Code::TrustNeedsApproval
        | Code::ApprovalsOpen
        | Code::WorkflowTool
        | Code::WorkflowEvent
        | Code::WorkflowGuard
        | Code::WorkflowIterations
        | Code::WorkflowRevision
        | Code::WorkflowParked
        | Code::WorkflowNoRun
        | Code::WorkflowFrozen
        | Code::WorkflowLimit
        | Code::WorkflowData
        | Code::ShellEffect
        | Code::StateNotText
        | Code::StateNotJson
        | Code::StateNotInSchema
        | Code::StateNoRules
        | Code::StateCurrentBad
        | Code::StateTransition
        | Code::StateTarget
        | Code::StateWrite
        | Code::EnvironmentLoader
        | Code::EnvironmentFiles
        | Code::EnvironmentClock
        | Code::EnvironmentInUse => StatusCode::OK,
    }
}

/// What the answer needs to know of the request beside the entry.
#[derive(Debug)]
pub(crate) struct AnswerContext<'a> {
    pub(crate) door: Door,
    /// The action, to put a corrected query in; none if there was none to be read.
    pub(crate) action: Option<ActionText<'a>>,
    /// The token that the answer carries.
    pub(crate) attestation: Option<String>,
}

/// What was recorded; anything else is a refusal, and what could not be meant is a fault.
pub(crate) fn recorded(answer: Answer) -> Result<Box<Recorded>, Refusal> {
    match answer {
        Answer::Recorded(recorded) => Ok(recorded),
        Answer::Refused(code) | Answer::Fault(code) => Err(Refusal::of_code(code)),
        Answer::Unknown => Err(Refusal::unknown()),
        Answer::Stale(stale) => Err(Refusal::stale(&stale)),
        Answer::NeedsEvidence(_) | Answer::Blocked(_) | Answer::BudgetSpent(_) | Answer::Passed(_) | Answer::Done => {
            Err(Refusal::of_code(Code::FaultInternal))
        }
    }
}

/// Renders what the writer answered to a request for a ruling.
pub(crate) fn ruling(answer: Answer, asked: &AnswerContext<'_>) -> Response {
    let ruled = recorded(answer).and_then(|recorded| match recorded.entry.body.ruled() {
        Some(ruled) => Ok(recorded_ruling(&recorded, ruled, asked)),
        None => Err(Refusal::of_code(Code::FaultInternal)),
    });
    ruled.unwrap_or_else(|refusal| refusal.decided().into_response())
}

fn recorded_ruling(recorded: &Recorded, ruled: &Ruled, asked: &AnswerContext<'_>) -> Response {
    let Ruling { decision, verification, error, charge: _, remaining } = &ruled.ruling;
    let status = error.as_ref().map_or(StatusCode::OK, |error| status_of(error.code));
    let mut object = Object::answer()
        .text("decision", decision.as_str())
        .text("decision_id", &ruled.decision_id)
        // What consumed nothing lets nothing run; what is only observed stops nothing.
        .raw("enforced", !is_dry_run(ruled) && !ruled.observed)
        .optional_object("verification", verification.as_ref(), verification_object)
        .optional_object("error", error.as_ref(), error_object);
    if let Some(corrected) = corrected_action(recorded, asked) {
        object = object.raw("corrected_action", corrected);
    }
    if let Some(ticket) = &ruled.ticket {
        object = object.text("approval_id", &ticket.approval_id).text("expires_at", &time(ticket.expires_at));
    }
    if ruled.observed {
        object = object.text("mode", "observe");
    }
    if asked.door == Door::Tools {
        object = tool_fields(object, ruled);
    }
    if is_dry_run(ruled) {
        object = object.raw("dry_run", true);
    }
    if recorded.replayed {
        object = object.raw("replayed", true);
    }
    if recorded.folded.is_some() {
        object = object.raw("folded", true);
    }
    let object = object
        .object("budget_remaining", |object| remaining_object(object, remaining))
        .text("leaf_hash", &recorded.leaf.to_string())
        .optional_text("attestation", asked.attestation.as_deref());
    carry(json(status, object.end()), asked.attestation.as_deref())
}

/// The action with its corrected query, as JSON.
pub(crate) fn corrected_action(recorded: &Recorded, asked: &AnswerContext<'_>) -> Option<String> {
    let (corrected, action) = (recorded.corrected.as_ref()?, asked.action?);
    action.query?;
    let rest = [("code", action.code), ("target", action.target), ("parameters", action.parameters)];
    let rest = rest.into_iter().filter_map(|(key, value)| {
        let value = value?;
        // The claim that was wrong does not belong in the corrected action.
        let kept = value.as_object().filter(|_| value.get("expected").is_some()).map(|members| {
            let kept = members.filter(|(key, _)| key.text() != "expected");
            let kept = kept.map(|(key, value)| format!("{}:{}", quote(key.text()), value.source()));
            format!("{{{}}}", kept.collect::<Vec<_>>().join(","))
        });
        Some(format!(",\"{key}\":{}", kept.unwrap_or_else(|| value.source().to_owned())))
    });
    let rest = rest.collect::<String>();
    Some(format!("{{\"type\":{},\"query\":{}{rest}}}", quote(action.kind), quote(corrected)))
}

fn is_dry_run(ruled: &Ruled) -> bool {
    ruled.facts.as_ref().is_some_and(|facts| facts.dry_run)
}

fn tool_fields(object: Object, ruled: &Ruled) -> Object {
    let Ruling { decision, verification, error, .. } = &ruled.ruling;
    let tenths = ruled.facts.as_ref().and_then(|facts| facts.risk_tenths);
    let score =
        tenths.map(|tenths| format!("{}.{}", tenths.checked_div(10).unwrap_or(0), tenths.checked_rem(10).unwrap_or(0)));
    let risk = Object::new()
        .optional("risk_score", score)
        .optional_text("risk_level", verification.as_ref().map(|verification| verification.risk_level.as_str()));
    let passed = verification.iter().flat_map(|verification| &verification.checks_passed);
    object
        .raw("approved", decision.lets_run() && !is_dry_run(ruled))
        .optional_text("blocked_reason", error.as_ref().map(|error| error.message.as_str()))
        .raw("risk_assessment", risk.end())
        .texts("policy_checks", passed.map(AsRef::as_ref))
}

fn verification_object(object: Object, verification: &Verification) -> Object {
    let Verification { status, engine, risk_level, checks_passed, checks_failed } = verification;
    object
        .text("status", status.as_str())
        .text("engine", engine.as_str())
        .text("risk_level", risk_level.as_str())
        .texts("checks_passed", checks_passed.iter().map(AsRef::as_ref))
        .texts("checks_failed", checks_failed.iter().map(AsRef::as_ref))
}

fn error_object(object: Object, error: &RulingError) -> Object {
    object.text("code", error.code.as_str()).text("message", &error.message).optional_object(
        "details",
        error.details.as_ref(),
        |object, details| {
            object
                .raw("limit", &details.limit)
                .raw("current", &details.current)
                .optional_text("reset_at", details.reset_at.map(time).as_deref())
        },
    )
}

/// What is left of a budget.
pub(crate) fn remaining(remaining: &Remaining) -> wire::BudgetRemaining {
    wire::BudgetRemaining {
        daily_cost_usd: remaining.daily_cost_usd.map(dollars),
        hourly_requests: remaining.hourly_requests,
        daily_tokens: remaining.daily_tokens,
    }
}

fn remaining_object(object: Object, remaining: &Remaining) -> Object {
    object
        .limit("daily_cost_usd", remaining.daily_cost_usd)
        .limit("hourly_requests", remaining.hourly_requests)
        .limit("daily_tokens", remaining.daily_tokens)
}

/// An agent; with its token only right after its registration.
pub(crate) fn agent(agent: &Agent, token: Option<&str>) -> wire::Agent {
    let profile = &agent.profile;
    let permissions = &profile.permissions;
    let limits = &profile.budget;
    wire::Agent {
        agent_id: profile.agent_id.clone(),
        agent_token: token.map(str::to_owned),
        did: format!("did:qwed:agent:{}", profile.agent_id),
        name: profile.name.clone(),
        kind: profile.kind.to_string(),
        principal_id: profile.principal_id.clone(),
        description: profile.description.clone(),
        framework: profile.framework.clone(),
        model: profile.model.clone(),
        status: agent.status.to_string(),
        mode: agent.mode.to_string(),
        trust_level: u8::from(agent.trust),
        created_at: time(profile.created_at),
        permissions: wire::Permissions {
            allowed_engines: permissions.allowed_engines.iter().map(ToString::to_string).collect(),
            allowed_tools: permissions.allowed_tools.clone(),
            blocked_tools: permissions.blocked_tools.clone(),
        },
        budget: wire::BudgetLimits {
            max_daily_cost_usd: limits.max_daily_cost_usd.map(dollars),
            max_cost_per_request_usd: limits.max_cost_per_request_usd.map(dollars),
            max_requests_per_hour: limits.max_requests_per_hour,
            max_requests_per_day: limits.max_requests_per_day,
            max_tokens_per_request: limits.max_tokens_per_request,
            max_daily_tokens: limits.max_daily_tokens,
        },
    }
}

/// An exact decimal, as a number.
pub(crate) fn dollars(amount: UsdMicros) -> RawJson {
    RawJson::written(amount.to_string())
}

/// What an agent may spend and has spent.
pub(crate) fn budget(limits: &BudgetLimits, spent: &Spent, now: Millis) -> wire::Budget {
    wire::Budget {
        cost: wire::CostBudget {
            max_daily_usd: limits.max_daily_cost_usd.map(dollars),
            current_daily_usd: dollars(spent.day_cost(now)),
            max_per_request_usd: limits.max_cost_per_request_usd.map(dollars),
        },
        requests: wire::RequestBudget {
            max_per_hour: limits.max_requests_per_hour,
            current_hour: spent.hour_requests(now),
            max_per_day: limits.max_requests_per_day,
            current_day: spent.day_requests(now),
        },
        tokens: wire::TokenBudget {
            max_per_request: limits.max_tokens_per_request,
            max_daily: limits.max_daily_tokens,
            current_daily: spent.day_tokens(now),
        },
    }
}
