//! Refusals that many routes share: their statuses, what is said about them, and an example of each.

use std::borrow::Cow;

use interlock_core::Code;

use super::examples::Examples;
use super::{content, header, object, text};
use crate::errors::{BudgetRefusal, DeniedAnswer, ErrorAnswer, StaleRefusal};
use crate::rulings::{RecordedDenial, RecordedToolDenial};
use crate::schema::{Node, Schema, any_of, integer, of, text as string};

/// A refusal.
pub(super) struct Refusal {
    pub(super) key: &'static str,
    pub(super) status: u16,
    form: Form,
    description: &'static str,
    shown: &'static [Example],
}

/// A key, what it is, and the error.
type Example = (&'static str, &'static str, Code, &'static str);

/// What the answer is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    /// Plain, or with what changed meanwhile.
    Stale,
    /// The same, or with the figures of a limit.
    Budget,
    Denied,
    /// Denied, or plain where there is no such path.
    Either,
    OnRecord,
    ToolOnRecord,
    /// On record if it is known who asked, else denied.
    PerhapsOnRecord,
    ToolPerhapsOnRecord,
}
use Form::{Budget, Denied, Either, OnRecord, PerhapsOnRecord, Plain, Stale, ToolOnRecord, ToolPerhapsOnRecord};

impl Form {
    fn schema(self) -> Schema {
        match self {
            Plain => of::<ErrorAnswer>(),
            Stale => any_of([of::<ErrorAnswer>(), StaleRefusal.into()]),
            Budget => any_of([of::<ErrorAnswer>(), BudgetRefusal.into(), StaleRefusal.into()]),
            Denied => DeniedAnswer.into(),
            Either => any_of([DeniedAnswer.into(), of::<ErrorAnswer>()]),
            OnRecord => RecordedDenial.into(),
            ToolOnRecord => RecordedToolDenial.into(),
            PerhapsOnRecord => any_of([RecordedDenial.into(), DeniedAnswer.into()]),
            ToolPerhapsOnRecord => any_of([RecordedToolDenial.into(), DeniedAnswer.into()]),
        }
    }

    /// The answer with this error. What may be on record is in its first example.
    fn example(self, place: usize, code: Code, message: &'static str, examples: &Examples) -> Node {
        let mut error = vec![("code", text(code.as_str())), ("message", text(message))];
        if self == Budget && code == Code::BudgetCost {
            error.push(("details", examples.named("limit_figures")));
        }
        let error = ("error", object(error));
        match self {
            Plain | Stale | Budget => object([error]),
            Denied | Either => object([("decision", text("DENIED")), error]),
            PerhapsOnRecord | ToolPerhapsOnRecord if place > 0 => object([("decision", text("DENIED")), error]),
            OnRecord | PerhapsOnRecord => with(examples.named("recorded_denial"), [error]),
            ToolOnRecord | ToolPerhapsOnRecord => {
                with(examples.named("recorded_tool_denial"), [error, ("blocked_reason", text(message))])
            }
        }
    }
}

fn with(like: Node, members: impl IntoIterator<Item = (&'static str, Node)>) -> Node {
    let Node::Object(mut known) = like else { return like };
    known.extend(members.into_iter().map(|(key, member)| (Cow::from(key), member)));
    Node::Object(known)
}

impl Refusal {
    pub(super) fn node(&self, examples: &Examples) -> Node {
        let shown = self.shown.iter().enumerate().map(|(place, (key, summary, code, message))| {
            let value = self.form.example(place, *code, message, examples);
            (Cow::from(*key), object([("summary", text(summary)), ("value", value)]))
        });
        let content = content("application/json", &self.form.schema(), Some(Node::Object(shown.collect())));
        let mut members = vec![("description", text(self.description))];
        let headers = headers(self.status);
        if !headers.is_empty() {
            members.push(("headers", object(headers)));
        }
        members.push(("content", content));
        object(members)
    }
}

/// What stands in the head of every refusal with a status.
fn headers(status: u16) -> Vec<(&'static str, Node)> {
    let count = |about| header(about, true, integer().min(0));
    match status {
        401 => vec![("WWW-Authenticate", header("How to authenticate.", true, string().with("const", text("Bearer"))))],
        405 => vec![("Allow", header("The methods this path has.", true, string()))],
        429 => vec![
            ("Retry-After", count("Seconds to wait.")),
            (
                "RateLimit-Limit",
                count("How many requests a minute are let in: for this key, or for all together, whichever is nearer."),
            ),
            ("RateLimit-Remaining", count("How many more are let in now.")),
            ("RateLimit-Reset", count("After how many seconds there is room for more.")),
        ],
        503 => {
            vec![("Retry-After", header("Seconds to wait.", true, integer().with("const", Node::Raw("1".to_owned()))))]
        }
        _ => Vec::new(),
    }
}

const fn refusal(
    key: &'static str,
    status: u16,
    form: Form,
    description: &'static str,
    shown: &'static [Example],
) -> Refusal {
    Refusal { key, status, form, description, shown }
}

#[rustfmt::skip]
pub(super) fn refusals() -> Vec<Refusal> {
    vec![
        refusal("BadRequest", 400, Plain,
            "The request is malformed (INTERLOCK-REQUEST-001) or has an unknown field (INTERLOCK-REQUEST-002).", &[
            ("blank", "A required field is missing",
             Code::RequestMalformed, "name is required, a string that is not blank"),
        ]),
        refusal("BadStateRequest", 400, Plain,
            "The request is malformed (INTERLOCK-REQUEST-001), has an unknown field (INTERLOCK-REQUEST-002), or its \
             guard is unknown or invalid (INTERLOCK-CONFIG-001).", &[
            ("guard", "No such guard", Code::ConfigInvalid, "the bundle has no guard `tasks`"),
        ]),
        refusal("BadPath", 400, Plain, "The path is not UTF-8 once its percent escapes are decoded.", &[
            ("path", "The path is not UTF-8", Code::RequestMalformed, "the path is not UTF-8"),
        ]),
        refusal("BadCursor", 400, Plain, "The cursor is none that an answer gave.", &[
            ("cursor", "A cursor that was made up", Code::RequestMalformed, "cursor must be one that an answer gave"),
        ]),
        refusal("BadQuery", 400, Plain,
            "A parameter is malformed (INTERLOCK-REQUEST-001), unknown or repeated (INTERLOCK-REQUEST-002), or the \
             path is not UTF-8.", &[
            ("limit", "A limit out of range", Code::RequestMalformed, "limit must be 1 to 1000"),
        ]),
        refusal("BadVerifyRequest", 400, PerhapsOnRecord,
            "The request cannot be ruled on: INTERLOCK-REQUEST-001 or -002, QWED-AGENT-CTX-001 or -002, \
             QWED-AGENT-STATE-001 to -004. It is on record if the agent was authenticated. So is a path that is not \
             UTF-8.", &[
            ("recorded", "On record", Code::ContextMissing, "context with conversation_id and step_number is required"),
            ("unread", "Not JSON, and nobody known to have asked",
             Code::RequestMalformed, "not strict JSON: the text ends inside a value (line 1 column 9)"),
        ]),
        refusal("BadToolRequest", 400, ToolPerhapsOnRecord,
            "The request cannot be ruled on: INTERLOCK-REQUEST-001 or -002, QWED-AGENT-CTX-001 or -002, \
             QWED-AGENT-STATE-001 to -004. It is on record if the agent was authenticated. So is a path that is not \
             UTF-8.", &[
            ("recorded", "On record", Code::ContextMissing, "context with conversation_id and step_number is required"),
            ("unread", "Not JSON, and nobody known to have asked",
             Code::RequestMalformed, "not strict JSON: the text ends inside a value (line 1 column 9)"),
        ]),
        refusal("NotOperator", 401, Plain, "There is no key, or none that counts (INTERLOCK-AUTH-001).", &[
            ("key", "No key",
             Code::Operator, "this needs the operator's key, as `Authorization: Bearer KEY` or `X-API-Key: KEY`"),
        ]),
        refusal("NotReader", 401, Plain,
            "There is neither an operator's key (INTERLOCK-AUTH-001) nor the agent's token (QWED-AGENT-002).", &[
            ("key", "No credentials",
             Code::Operator, "this needs the operator's key, as `Authorization: Bearer KEY` or `X-API-Key: KEY`"),
            ("token", "A wrong token", Code::AgentToken, "the agent's token is missing or wrong"),
        ]),
        refusal("NotAgent", 401, Denied,
            "The agent's token is missing or wrong, or two that differ were given (QWED-AGENT-002).", &[
            ("token", "A wrong token", Code::AgentToken, "the agent's token is missing or wrong"),
        ]),
        refusal("NotAllowed", 403, Plain, "The key's role does not allow this (INTERLOCK-AUTH-002).", &[
            ("role", "A role that may not", Code::OperatorRole, "this needs a key of the role admin, not approver"),
        ]),
        refusal("NotRegistrar", 403, Plain,
            "The key's role does not allow this, or not with this trust level (INTERLOCK-AUTH-002).", &[
            ("trust", "Above the ceiling",
             Code::OperatorRole, "this key registers agents of this type up to trust level 1"),
        ]),
        refusal("NotItsReader", 403, Plain,
            "The key reads only the agents it registered, and this is another one (INTERLOCK-AUTH-002).", &[
            ("other", "An agent of another registrar",
             Code::OperatorRole, "this key reads only the agents it registered"),
        ]),
        refusal("NotAllowedOrSuspended", 403, Plain,
            "The key's role does not allow this (INTERLOCK-AUTH-002), or the agent is suspended (QWED-AGENT-003).", &[
            ("role", "A role that may not", Code::OperatorRole, "this needs a key of the role admin, not approver"),
            ("suspended", "Suspended", Code::AgentSuspended, "the agent is suspended"),
        ]),
        refusal("AgentSuspended", 403, Plain, "The agent is suspended (QWED-AGENT-003).", &[
            ("suspended", "Suspended", Code::AgentSuspended, "the agent is suspended"),
        ]),
        refusal("NoToken", 401, Plain,
            "The agent's token is missing or wrong, or two that differ were given (QWED-AGENT-002).", &[
            ("token", "A wrong token", Code::AgentToken, "the agent's token is missing or wrong"),
        ]),
        refusal("Suspended", 403, OnRecord, "The agent is suspended (QWED-AGENT-003).", &[
            ("suspended", "Suspended", Code::AgentSuspended, "the agent is suspended"),
        ]),
        refusal("ToolSuspended", 403, ToolOnRecord, "The agent is suspended (QWED-AGENT-003).", &[
            ("suspended", "Suspended", Code::AgentSuspended, "the agent is suspended"),
        ]),
        refusal("NoAgent", 404, Plain,
            "No such agent is registered (QWED-AGENT-001), or the path has an empty part (INTERLOCK-REQUEST-005).", &[
            ("agent", "No such agent", Code::AgentUnknown, "no such agent is registered"),
        ]),
        refusal("NoTicket", 404, Plain,
            "There is no such ticket, or not for this agent (INTERLOCK-APPROVAL-005), or the path has an empty part \
             (INTERLOCK-REQUEST-005).", &[
            ("ticket", "No such ticket", Code::ApprovalUnknown, "there is no such approval"),
        ]),
        refusal("NoKey", 404, Plain,
            "There is no such key, or it is revoked already (INTERLOCK-AUTH-003), or the path has an empty part \
             (INTERLOCK-REQUEST-005).", &[
            ("key", "No such key", Code::OperatorKeyUnknown, "no such key counts; see GET /keys"),
        ]),
        refusal("NoDecision", 404, Plain,
            "No such agent is registered (QWED-AGENT-001), the agent has no such decision (INTERLOCK-EXECUTION-003), \
             or the path has an empty part (INTERLOCK-REQUEST-005).", &[
            ("decision", "No such decision", Code::ExecutionUnknown, "this agent has no such decision"),
        ]),
        refusal("NoAgentOrPage", 404, Plain,
            "No such agent is registered (QWED-AGENT-001), the cursor is none that an answer gave \
             (INTERLOCK-REQUEST-001), or the path has an empty part (INTERLOCK-REQUEST-005).", &[
            ("agent", "No such agent", Code::AgentUnknown, "no such agent is registered"),
            ("cursor", "A cursor of another agent", Code::RequestMalformed, "cursor must be one that an answer gave"),
        ]),
        refusal("NoAgentToRuleOn", 404, Either,
            "No such agent is registered (QWED-AGENT-001), or the path has an empty part (INTERLOCK-REQUEST-005, \
             without a decision).", &[
            ("agent", "No such agent", Code::AgentUnknown, "no such agent is registered"),
        ]),
        refusal("NoMethod", 405, Plain, "The path does not have this method (INTERLOCK-REQUEST-005).", &[
            ("method", "Another method", Code::RequestRoute, "this route does not have this method; see /openapi.json"),
        ]),
        refusal("Slow", 408, Plain, "The body took more than 10 seconds to arrive (INTERLOCK-REQUEST-006).", &[
            ("slow", "A slow body", Code::RequestSlow, "the body took too long to arrive"),
        ]),
        refusal("SlowDenied", 408, PerhapsOnRecord,
            "The body took more than 10 seconds to arrive (INTERLOCK-REQUEST-006). It is on record if a header \
             authenticated the agent.", &[
            ("recorded", "On record", Code::RequestSlow, "the body took too long to arrive"),
            ("slow", "Nobody known to have asked", Code::RequestSlow, "the body took too long to arrive"),
        ]),
        refusal("ToolSlowDenied", 408, ToolPerhapsOnRecord,
            "The body took more than 10 seconds to arrive (INTERLOCK-REQUEST-006). It is on record if a header \
             authenticated the agent.", &[
            ("recorded", "On record", Code::RequestSlow, "the body took too long to arrive"),
            ("slow", "Nobody known to have asked", Code::RequestSlow, "the body took too long to arrive"),
        ]),
        refusal("KeyReused", 409, Denied,
            "The Idempotency-Key was used for another request in the last 24 hours (INTERLOCK-REQUEST-004).", &[
            ("key", "A key used before",
             Code::RequestKeyReused, "this Idempotency-Key was used for another request; use a new one"),
        ]),
        refusal("CannotApprove", 409, Budget,
            "The ticket is decided already (INTERLOCK-APPROVAL-001), bundle or trust changed since it was opened, or \
             for trust something was denied since (INTERLOCK-APPROVAL-004), or the budget is spent \
             (QWED-AGENT-BUDGET-001 to -003, with `details`; the ticket stays pending).", &[
            ("decided", "Decided already", Code::ApprovalDecided, "this approval is decided already; nothing changed"),
            ("stale", "Things have changed",
             Code::ApprovalStale, "bundle, trust or denials changed since this was asked; the agent has to ask again"),
            ("budget", "A limit is reached", Code::BudgetCost, "daily cost: 25.495 of 25.5; the approval stays open"),
        ]),
        refusal("CannotDeny", 409, Plain, "The ticket is decided already (INTERLOCK-APPROVAL-001).", &[
            ("decided", "Decided already", Code::ApprovalDecided, "this approval is decided already; nothing changed"),
        ]),
        refusal("CannotAskForTrust", 409, Plain,
            "The levels do not fit the one there is (INTERLOCK-APPROVAL-004), or a request for trust or too many \
             tickets are open (INTERLOCK-APPROVAL-003).", &[
            ("level", "Not above the level there is",
             Code::ApprovalStale, "to_level must be above the level there is (2), and from_level that level"),
            ("open", "Asked already",
             Code::ApprovalsOpen, "a request for trust is open already, or too many approvals are"),
        ]),
        refusal("CannotReport", 409, Stale,
            "The decision lets nothing run (INTERLOCK-EXECUTION-001), its execution is reported already \
             (INTERLOCK-EXECUTION-002), or the bundle changed since it was approved (INTERLOCK-APPROVAL-004).", &[
            ("pending", "Nobody approved it yet",
             Code::ExecutionNotAllowed,
             "this decision lets nothing run: it was no approval, or nobody approved it yet"),
            ("reported", "Reported already",
             Code::ExecutionReported, "the execution of this decision is reported already"),
        ]),
        refusal("Expired", 410, Plain, "The ticket has expired (INTERLOCK-APPROVAL-002).", &[
            ("expired", "Too late", Code::ApprovalExpired, "this approval has expired; the agent has to ask again"),
        ]),
        refusal("TooLarge", 413, Plain, "The body has more than 1048576 bytes (INTERLOCK-REQUEST-003).", &[
            ("large", "A large body", Code::RequestTooLarge, "a body has at most 1048576 bytes"),
        ]),
        refusal("TooLargeDenied", 413, PerhapsOnRecord,
            "The body has more than 1048576 bytes (INTERLOCK-REQUEST-003). It is on record if a header authenticated \
             the agent.", &[
            ("recorded", "On record", Code::RequestTooLarge, "a body has at most 1048576 bytes"),
            ("large", "Nobody known to have asked", Code::RequestTooLarge, "a body has at most 1048576 bytes"),
        ]),
        refusal("ToolTooLargeDenied", 413, ToolPerhapsOnRecord,
            "The body has more than 1048576 bytes (INTERLOCK-REQUEST-003). It is on record if a header authenticated \
             the agent.", &[
            ("recorded", "On record", Code::RequestTooLarge, "a body has at most 1048576 bytes"),
            ("large", "Nobody known to have asked", Code::RequestTooLarge, "a body has at most 1048576 bytes"),
        ]),
        refusal("TooMany", 429, Plain,
            "Too many requests a minute, or too much work for this agent a second (INTERLOCK-RATE-001). Nothing is \
             recorded.", &[
            ("rate", "Too many", Code::RateLimited, "too many requests a minute; wait as long as Retry-After says"),
        ]),
        refusal("TooManyDenied", 429, Denied,
            "Too many requests a minute, or too much work for this agent a second (INTERLOCK-RATE-001). Nothing is \
             recorded.", &[
            ("rate", "Too many", Code::RateLimited, "too many requests a minute; wait as long as Retry-After says"),
        ]),
        refusal("Fault", 500, Plain, "An internal fault (INTERLOCK-FAULT-001). Nothing was approved.", &[
            ("fault", "A fault", Code::FaultInternal, "an internal fault; nothing was approved"),
        ]),
        refusal("FaultDenied", 500, Denied, "An internal fault (INTERLOCK-FAULT-001). Nothing was approved.", &[
            ("fault", "A fault", Code::FaultInternal, "an internal fault; nothing was approved"),
        ]),
        refusal("Unavailable", 503, Plain,
            "The ledger is not available (INTERLOCK-FAULT-002), or the server is full or stopping \
             (INTERLOCK-FAULT-004).", &[
            ("store", "No ledger", Code::FaultStore, "the ledger is not available; nothing was approved"),
            ("busy", "A full queue", Code::FaultBusy, "the server is full or stopping; try again in a moment"),
        ]),
        refusal("UnavailableDenied", 503, Denied,
            "The ledger is not available (INTERLOCK-FAULT-002), the server is full or stopping (INTERLOCK-FAULT-004), \
             or an attestation that is due could not be issued (INTERLOCK-FAULT-001).", &[
            ("store", "No ledger", Code::FaultStore, "the ledger is not available; nothing was approved"),
            ("busy", "A full queue", Code::FaultBusy, "the server is full or stopping; try again in a moment"),
        ]),
        refusal("NotReady", 503, Plain, "The ledger is not available (INTERLOCK-FAULT-002).", &[
            ("store", "No ledger", Code::FaultStore, "the ledger is not available; nothing was approved"),
        ]),
        refusal("NoGuard", 404, Plain, "The bundle has no guard of this name (INTERLOCK-CONFIG-001).", &[
            ("guard", "No such guard", Code::ConfigInvalid, "the bundle has no guard `tasks`"),
        ]),
        refusal("NoCheckpoint", 503, Plain, "There is no checkpoint yet (INTERLOCK-FAULT-004).", &[
            ("early", "Right after the start",
             Code::FaultBusy, "there is no checkpoint yet; one is written within a second"),
        ]),
        refusal("NoProof", 503, Plain,
            "The ledger is not available (INTERLOCK-FAULT-002), or does not hold what it signed \
             (INTERLOCK-LEDGER-001).", &[
            ("store", "No ledger", Code::FaultStore, "the ledger is not available; nothing was approved"),
        ]),
        refusal("NoEntry", 404, Plain, "There is no such decision (INTERLOCK-REQUEST-001).", &[
            ("decision", "No such decision", Code::RequestMalformed, "there is no such decision"),
        ]),
        refusal("NoRun", 404, Plain,
            "There is no such run or agent (INTERLOCK-WF-007, QWED-AGENT-001), no such decision of it \
             (INTERLOCK-EXECUTION-003), or no such route.", &[
            ("run", "No such run", Code::WorkflowNoRun, "there is no such run"),
        ]),
        refusal("CannotSteer", 409, Plain, "There is nothing to steer: no workflow runs here (INTERLOCK-WF-007).", &[
            ("run", "No workflow", Code::WorkflowNoRun, "no workflow runs here"),
        ]),
        refusal("NothingKept", 404, Plain,
            "Nobody works in this directory, there is no such call, or nothing was kept for it (INTERLOCK-EXECUTION-003), or \
             no such route.", &[
            ("call", "No such call", Code::ExecutionUnknown, "there is no such call, or nothing was kept for it"),
        ]),
        refusal("CannotKeep", 409, Plain,
            "The tree cannot be kept first (INTERLOCK-KEEP-001), the store is damaged (INTERLOCK-KEEP-002), or the tree is \
             not what the plan was made of (INTERLOCK-KEEP-003).", &[
            ("plan", "Changed meanwhile", Code::KeepConflict, "the project changed since the plan was made; look again"),
        ]),
        refusal("NoWorkflow", 404, Plain, "No such workflow is registered (INTERLOCK-WF-007), or no such route.", &[
            ("workflow", "No such workflow", Code::WorkflowNoRun, "no such workflow is registered; see GET /workflows"),
        ]),
        refusal("BadWorkflow", 400, Plain,
            "The workflow cannot be loaded (INTERLOCK-CONFIG-001; the first problem with its place), or the request is \
             malformed (INTERLOCK-REQUEST-001) or has an unknown field (INTERLOCK-REQUEST-002).", &[
            ("workflow", "A way to a state that there is not",
             Code::ConfigInvalid, "the workflow cannot be loaded: states.working.on.DONE: there is no state `don`"),
        ]),
    ]
}
