//! The table of routes: what each is for, who may ask, what it takes, and what it answers.

use super::examples::Shown;
use super::{Description, header};
use crate::activity::{ActivityPage, ServiceActivityPage};
use crate::agents::{
    Agent as AgentAnswer, AgentPage, Budget, ErasedTexts, ReasonRequest, RegisteredAgent, Registration, TrustAnswer,
    TrustRequest,
};
use crate::approvals::{Ticket, TicketPage};
use crate::audit::{EntryPage, Proof};
use crate::keep::{Changes, KeptState, KeptStates, PruneRequest, PrunedStates, UndoAnswer, UndoRequest};
use crate::keys::{CreatedKey, Jwks, Key, KeyList, KeyRequest, RotateRequest, RotatedKey};
use crate::rulings::{ExecutionAnswer, ExecutionRequest, Ruling, ToolRequest, ToolRuling, VerifyRequest};
use crate::runs::{
    AllowRequest, Allowance, CallDecision, DisallowRequest, ForceRequest, PauseRequest, RefusedCalls, Run, RunHistory,
    RunPage, StartRequest,
};
use crate::schema::{Node, Schema, of, text};
use crate::state::{StateAnswer, StateRequest};
use crate::words::Attestation;
use crate::workflows::{RegisterRequest, RegisteredWorkflow, Workflow, WorkflowPage};

/// A route.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) operation: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) by: Who,
    pub(super) parameters: &'static [&'static str],
    pub(super) body: Option<Body>,
    pub(super) answers: Vec<Answer>,
    /// Their keys, with a status where it is not the usual one.
    pub(super) refusals: Vec<(Option<u16>, &'static str)>,
}

/// What a request brings.
pub(super) struct Body {
    pub(super) required: bool,
    pub(super) schema: Schema,
    pub(super) shown: &'static [Shown],
}

/// What is answered if nothing is refused.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) media: &'static str,
    pub(super) schema: Schema,
    pub(super) shown: &'static [Shown],
    pub(super) headers: Vec<(&'static str, Node)>,
    pub(super) links: Vec<Link>,
}

/// Where an answer leads.
pub(super) struct Link {
    pub(super) key: &'static str,
    pub(super) operation: &'static str,
    pub(super) description: &'static str,
    /// Where the answer has the id that the path needs.
    pub(super) id: &'static str,
    /// Id and token go into the body as well.
    pub(super) with_token: bool,
}

/// Who may ask.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Everybody,
    Operator,
    /// An operator, or the agent it is about.
    Reader,
    Agent,
    /// The agent, whose token may stand in the body.
    Asker,
}
use Who::{Agent, Asker, Everybody, Operator, Reader};

impl Who {
    /// Ways to prove it; each is enough.
    pub(super) fn credentials(self) -> &'static [&'static [&'static str]] {
        match self {
            Everybody => &[],
            Operator => &[&["operatorBearer"], &["operatorKey"]],
            Reader => &[&["operatorBearer"], &["operatorKey"], &["agentToken"], &["agentBearer"]],
            Agent => &[&["agentToken"], &["agentBearer"]],
            Asker => &[&["agentToken"], &["agentBearer"], &[]],
        }
    }
}

/// What whoever has no key of the right role meets.
const OPERATOR: &[&str] = &["NotOperator", "NotAllowed"];
/// What a request with a body can meet.
const BODY: &[&str] = &["Slow", "TooLarge", "Fault", "Unavailable"];

/// Why an operator does it, or not.
const REASONS: &[Shown] =
    &[("reason", "With a reason", "reason_request.reason"), ("empty", "Without", "reason_request.empty")];

fn get(path: &'static str, operation: &'static str) -> Route {
    Route {
        method: "get",
        path,
        operation,
        tag: "",
        summary: "",
        description: "",
        by: Everybody,
        parameters: &[],
        body: None,
        answers: Vec::new(),
        refusals: vec![(None, "NoMethod"), (None, "TooMany")],
    }
}

fn post(path: &'static str, operation: &'static str) -> Route {
    Route { method: "post", ..get(path, operation) }
}

/// Something that an operator does about an agent.
fn agent_deed(path: &'static str, operation: &'static str) -> Route {
    let refusals = post(path, operation).refuses(&["BadRequest", "NoAgent"]).refuses(OPERATOR).refuses(BODY);
    refusals.by(Operator).takes(&["AgentId"]).may_give_a_reason()
}

/// Something that an operator does about a run.
fn run_deed(path: &'static str, operation: &'static str) -> Route {
    let refusals = post(path, operation).refuses(&["BadRequest", "NoRun"]).refuses(OPERATOR).refuses(BODY);
    refusals.by(Operator).takes(&["RunId"])
}

impl Route {
    fn says(self, summary: &'static str, description: &'static str) -> Route {
        Route { summary, description, ..self }
    }

    fn by(self, by: Who) -> Route {
        Route { by, ..self }
    }

    fn takes(self, parameters: &'static [&'static str]) -> Route {
        Route { parameters, ..self }
    }

    fn reads(self, schema: impl Into<Schema>, shown: &'static [Shown]) -> Route {
        Route { body: Some(Body { required: true, schema: schema.into(), shown }), ..self }
    }

    fn may_read(self, schema: impl Into<Schema>, shown: &'static [Shown]) -> Route {
        Route { body: Some(Body { required: false, schema: schema.into(), shown }), ..self }
    }

    fn may_give_a_reason(self) -> Route {
        self.may_read(of::<ReasonRequest>(), REASONS)
    }

    fn answers(
        mut self,
        status: u16,
        description: &'static str,
        schema: impl Into<Schema>,
        shown: &'static [Shown],
    ) -> Route {
        let (media, schema) = ("application/json", schema.into());
        self.answers.push(Answer { status, description, media, schema, shown, headers: Vec::new(), links: Vec::new() });
        self
    }

    fn answers_text(mut self, description: &'static str, shown: &'static [Shown]) -> Route {
        self = self.answers(200, description, text(), shown);
        if let Some(answer) = self.answers.last_mut() {
            answer.media = "text/plain";
        }
        self
    }

    fn attested(mut self) -> Route {
        if let Some(answer) = self.answers.last_mut() {
            let about = "The attestation of the body, if it has one.";
            answer.headers.push(("QWED-Attestation", header(about, false, Attestation)));
        }
        self
    }

    fn leads_to(
        mut self,
        key: &'static str,
        operation: &'static str,
        description: &'static str,
        id: &'static str,
    ) -> Route {
        if let Some(answer) = self.answers.last_mut() {
            answer.links.push(Link { key, operation, description, id, with_token: false });
        }
        self
    }

    fn leads_to_own(
        mut self,
        key: &'static str,
        operation: &'static str,
        description: &'static str,
        id: &'static str,
    ) -> Route {
        self = self.leads_to(key, operation, description, id);
        if let Some(link) = self.answers.last_mut().and_then(|answer| answer.links.last_mut()) {
            link.with_token = true;
        }
        self
    }

    /// The limit of requests a minute does not hold here.
    fn unlimited(mut self) -> Route {
        self.refusals.retain(|(_, key)| *key != "TooMany");
        self
    }

    fn refuses(mut self, keys: &[&'static str]) -> Route {
        self.refusals.extend(keys.iter().map(|key| (None, *key)));
        self
    }

    fn refuses_at(mut self, status: u16, key: &'static str) -> Route {
        self.refusals.push((Some(status), key));
        self
    }
}

/// All routes.
pub(super) fn routes() -> Vec<Route> {
    let tagged = [
        ("service", service()),
        ("agents", agents()),
        ("rulings", rulings()),
        ("approvals", approvals()),
        ("keys", keys()),
        ("audit", audit()),
        ("state", state()),
        ("attestation", attestation()),
        ("workflows", workflows()),
        ("runs", runs()),
    ];
    tagged.into_iter().flat_map(|(tag, routes)| routes.into_iter().map(move |route| Route { tag, ..route })).collect()
}

#[rustfmt::skip]
fn service() -> Vec<Route> {
    vec![
        get("/healthz", "getHealth")
            .says("Whether the process runs", "Answers as long as the process does. It says nothing about the ledger.")
            .by(Everybody)
            .answers_text("It runs.", &[("text", "The whole answer", "health")])
            .unlimited(),
        get("/readyz", "getReadiness")
            .says("Whether requests are accepted", "Answers 200 as long as the ledger can record.")
            .by(Everybody)
            .answers_text("The ledger accepts commands.", &[("text", "The whole answer", "readiness")])
            .unlimited()
            .refuses(&["NotReady"]),
        get("/metrics", "getMetrics")
            .says("Figures for Prometheus",
                "Counters and gauges of service and ledger, in Prometheus' text form 0.0.4. For admins.")
            .by(Operator)
            .answers_text("The figures.", &[("ready", "One of the figures", "metrics")])
            .refuses(OPERATOR),
        get("/openapi.json", "getDescription")
            .says("This document", "The description of the service, as OpenAPI 3.1.")
            .by(Everybody)
            .answers(200, "This document.", Description, &[]),
    ]
}

#[rustfmt::skip]
fn agents() -> Vec<Route> {
    vec![
        post("/agents/register", "registerAgent")
            .says("Register an agent",
                "Records a new agent and answers with its id and token. The agent's own fields stand at the top or in \
                 `agent`. For admins and registrars; a registrar gives no more than the default permissions and \
                 budget.")
            .by(Operator)
            .reads(Registration, &[
                ("flat", "Flat, with limits of its own", "registration.flat"),
                ("nested", "Nested, with all defaults", "registration.nested"),
            ])
            .answers(201, "The agent is registered. Its token is shown here and never again.", RegisteredAgent, &[
                ("registered", "A registered agent", "registered_agent"),
            ])
            .leads_to("agent", "getAgent", "The agent's record.", "/agent_id")
            .leads_to("budget", "getBudget", "The agent's budget.", "/agent_id")
            .leads_to("activity", "listActivity", "The agent's rulings.", "/agent_id")
            .leads_to_own("verify", "verifyAction",
                "Ask for a ruling; the token may go into the body, beside action and context.", "/agent_id")
            .leads_to_own("tool", "callTool",
                "Ask for a tool call; the token may go into the body, beside parameters and context.", "/agent_id")
            .leads_to("suspend", "suspendAgent", "Suspend the agent.", "/agent_id")
            .leads_to("trust", "requestTrust", "Ask for more trust.", "/agent_id")
            .refuses(&["BadRequest", "NotOperator", "NotRegistrar"])
            .refuses(BODY),
        get("/agents", "listAgents")
            .says("List agents",
                "All agents in the order of their ids, in pages; for a registrar those it registered. A page may have \
                 fewer than `limit` agents and still not be the last.")
            .by(Operator)
            .takes(&["Limit", "AgentCursor"])
            .answers(200, "A page of agents.", of::<AgentPage>(), &[("page", "The only page", "agent_page")])
            .refuses(&["BadQuery", "NotOperator", "Fault", "NotReady"]),
        get("/agents/{id}", "getAgent")
            .says("Read an agent",
                "The agent's record, without its token. An admin and an approver may read every agent, a registrar \
                 those it registered, an agent itself.")
            .by(Reader)
            .takes(&["AgentId"])
            .answers(200, "The agent.", of::<AgentAnswer>(), &[("agent", "An agent", "agent")])
            .refuses(&["BadPath", "NotReader", "NotItsReader", "NoAgent", "NotReady"]),
        get("/agents/{id}/budget", "getBudget")
            .says("Read an agent's budget",
                "What the agent may spend and has spent. An admin and an approver may read every agent's, a registrar \
                 that of those it registered, an agent its own.")
            .by(Reader)
            .takes(&["AgentId"])
            .answers(200, "The budget.", of::<Budget>(), &[("budget", "A budget", "budget")])
            .refuses(&["BadPath", "NotReader", "NotItsReader", "NoAgent", "NotReady"]),
        get("/agents/{id}/activity", "listActivity")
            .says("List an agent's rulings",
                "Rulings on the agent's requests, newest first, in pages. An admin and an approver may read every \
                 agent's, a registrar those of agents it registered, an agent its own.")
            .by(Reader)
            .takes(&["AgentId", "Limit", "Cursor", "From", "To"])
            .answers(200, "A page of rulings.", of::<ActivityPage>(), &[("page", "The only page", "activity_page")])
            .refuses(&["BadQuery", "NotReader", "NotItsReader", "NoAgentOrPage", "Fault", "NotReady"]),
        agent_deed("/agents/{id}/suspend", "suspendAgent")
            .says("Suspend an agent",
                "Whatever the agent asks from now on is refused with QWED-AGENT-003, and what was approved can no \
                 longer be used. For admins.")
            .answers(200, "The agent.", of::<AgentAnswer>(), &[("agent", "Suspended", "agent.suspended")]),
        agent_deed("/agents/{id}/complaint", "complainAboutAgent")
            .says("Record a complaint",
                "Suspends the agent because its principal complained; the record says so. For admins.")
            .answers(200, "The agent.", of::<AgentAnswer>(), &[("agent", "Suspended", "agent.suspended")]),
        agent_deed("/agents/{id}/reactivate", "reactivateAgent")
            .says("Reactivate an agent", "Ends a suspension. For admins.")
            .answers(200, "The agent.", of::<AgentAnswer>(), &[("agent", "Active", "agent")]),
        agent_deed("/agents/{id}/observe", "observeAgent")
            .says("Only observe an agent",
                "Rulings stay what they are, but are not binding for this agent: answers have `enforced` false and \
                 `mode` `observe`. For admins.")
            .answers(200, "The agent.", of::<AgentAnswer>(), &[("agent", "Observed", "agent.observed")]),
        agent_deed("/agents/{id}/enforce", "enforceAgent")
            .says("Enforce rulings again", "Ends observe mode for this agent. For admins.")
            .answers(200, "The agent.", of::<AgentAnswer>(), &[("agent", "Enforced", "agent")]),
        agent_deed("/agents/{id}/rotate-token", "rotateToken")
            .says("Give an agent a new token", "The old token counts no more. For admins.")
            .answers(200, "The agent with its new token, which is shown here and never again.", RegisteredAgent, &[
                ("agent", "A new token", "registered_agent"),
            ]),
        agent_deed("/agents/{id}/erase", "eraseTexts")
            .says("Erase an agent's kept texts",
                "Removes the texts that are kept of this agent's requests. The ledger has only salted hashes of them, \
                 so it verifies as before. For admins.")
            .answers(200, "What was removed.", of::<ErasedTexts>(), &[("erased", "Three texts", "erased_texts")]),
        get("/activity", "listAllActivity")
            .says("List all rulings",
                "Rulings on the requests of all agents, newest first, in pages. A page may have fewer than `limit` \
                 rulings and still not be the last. For admins and approvers.")
            .by(Operator)
            .takes(&["Limit", "PageCursor", "From", "To"])
            .answers(200, "A page of rulings.", ServiceActivityPage, &[
                ("page", "The only page", "service_activity_page"),
            ])
            .refuses(&["BadQuery", "Fault", "NotReady"])
            .refuses(OPERATOR)
            .refuses_at(404, "BadCursor"),
    ]
}

#[rustfmt::skip]
fn rulings() -> Vec<Route> {
    vec![
        post("/agents/{id}/verify", "verifyAction")
            .says("Ask for a ruling on an action",
                "Rules on an action and records the ruling; every decision, BUDGET_EXCEEDED and DENIED too, is \
                 answered with 200. The token comes in a header or as `agent_token` in the body. PENDING opens a \
                 ticket: `approval_id` names it until `expires_at`.")
            .by(Asker)
            .takes(&["AgentId", "IdempotencyKey"])
            .reads(of::<VerifyRequest>(), &[
                ("calculation", "A calculation", "verify_request.calculation"),
                ("tool", "A governed action on a known state, as a dry run", "verify_request.tool"),
            ])
            .answers(200, "The ruling.", of::<Ruling>(), &[
                ("approved", "Approved", "ruling.approved"),
                ("corrected", "Approved in a corrected form", "ruling.corrected"),
                ("pending", "A person has to agree", "ruling.pending"),
                ("unknown", "An action type without a meaning", "ruling.unknown"),
                ("budget", "A limit is reached", "ruling.budget"),
                ("replayed", "The recorded answer once more", "ruling.replayed"),
                ("observed", "In observe mode", "ruling.observed"),
            ])
            .attested()
            .refuses(&[
                "BadVerifyRequest", "NotAgent", "Suspended", "NoAgentToRuleOn", "SlowDenied", "KeyReused",
                "TooLargeDenied", "TooManyDenied", "FaultDenied", "UnavailableDenied",
            ]),
        post("/agents/{id}/tools/{tool}", "callTool")
            .says("Ask for a ruling on a tool call",
                "Rules on a tool call as on an action: safe and allowed tools are approved, dangerous ones need a \
                 person, unknown ones are denied. The tool is not run here. PENDING opens a ticket as with an action.")
            .by(Asker)
            .takes(&["AgentId", "Tool", "IdempotencyKey"])
            .reads(of::<ToolRequest>(), &[("search", "A safe tool", "tool_request")])
            .answers(200, "The ruling.", ToolRuling, &[
                ("approved", "Approved", "tool_ruling.approved"),
                ("unknown", "An unknown tool", "tool_ruling.unknown"),
            ])
            .attested()
            .refuses(&[
                "BadToolRequest", "NotAgent", "ToolSuspended", "NoAgentToRuleOn", "ToolSlowDenied", "KeyReused",
                "ToolTooLargeDenied", "TooManyDenied", "FaultDenied", "UnavailableDenied",
            ]),
    ]
}

#[rustfmt::skip]
fn approvals() -> Vec<Route> {
    vec![
        post("/agents/{id}/executions", "reportExecution")
            .says("Report what was done",
                "Records that an action which was let run has run, once, and charges what it cost beyond what was \
                 charged. After a person's yes this has to come before the ticket expires; then ticket, agent and \
                 bundle are checked again. Only for the agent itself, with its token in a header.")
            .by(Agent)
            .takes(&["AgentId"])
            .reads(of::<ExecutionRequest>(), &[
                ("success", "It worked", "execution_request.success"),
                ("failure", "It did not", "execution_request.failure"),
            ])
            .answers(201, "The report is on record.", of::<ExecutionAnswer>(), &[
                ("plain", "After an approval", "execution_answer.plain"),
                ("ticket", "After a person's yes", "execution_answer.ticket"),
            ])
            .refuses(&["BadRequest", "NoToken", "AgentSuspended", "NoDecision", "CannotReport", "Expired"])
            .refuses(BODY),
        post("/agents/{id}/trust", "requestTrust")
            .says("Ask for more trust",
                "Opens a ticket for a higher trust level, with what the ledger says for and against it. For the agent \
                 itself, with its token in a header, and for admins.")
            .by(Reader)
            .takes(&["AgentId"])
            .reads(of::<TrustRequest>(), &[("elevation", "From 1 to 2", "trust_request")])
            .answers(202, "A person has to decide.", of::<TrustAnswer>(), &[("pending", "A ticket", "trust_answer")])
            .refuses(&["BadRequest", "NoToken", "NotAllowedOrSuspended", "NoAgent", "CannotAskForTrust"])
            .refuses(BODY),
        get("/approvals", "listApprovals")
            .says("List tickets",
                "Tickets, newest first, in pages. A page may have fewer than `limit` tickets and still not be the \
                 last. An admin and an approver see all, a registrar those of the agents it registered, an agent its \
                 own.")
            .by(Reader)
            .takes(&["Status", "TicketsOf", "Limit", "PageCursor"])
            .answers(200, "A page of tickets.", of::<TicketPage>(), &[("page", "The only page", "ticket_page")])
            .refuses(&["BadQuery", "NotReader", "NotItsReader", "NoAgentOrPage", "Fault", "NotReady"]),
        get("/approvals/{id}", "getApproval")
            .says("Read a ticket, or wait for it",
                "A ticket; with `wait` as soon as it is decided, or as it stands when the time is over. For admins, \
                 approvers, the registrar of its agent, and the agent itself, for which the agent's texts are left \
                 out.")
            .by(Reader)
            .takes(&["ApprovalId", "Wait"])
            .answers(200, "The ticket.", of::<Ticket>(), &[
                ("action", "An action that waits", "ticket.action"),
                ("trust", "A request for trust", "ticket.trust"),
                ("approved", "Approved", "ticket.approved"),
            ])
            .refuses(&["BadQuery", "NotReader", "NotItsReader", "NoTicket", "Fault", "NotReady"]),
        post("/approvals/{id}/approve", "approve")
            .says("Say yes",
                "Approves a ticket that is pending. Everything is checked again: agent, bundle, trust and budget. An \
                 action is charged now and may run until the ticket's new `expires_at`; trust is raised at once. For \
                 admins and approvers.")
            .by(Operator)
            .takes(&["ApprovalId"])
            .may_give_a_reason()
            .answers(200, "The ticket.", of::<Ticket>(), &[("approved", "Approved", "ticket.approved")])
            .refuses(&["BadRequest", "NotOperator", "NotAllowedOrSuspended", "NoTicket", "CannotApprove", "Expired"])
            .refuses(BODY),
        post("/approvals/{id}/deny", "deny")
            .says("Say no", "Denies a ticket that is pending. For admins and approvers.")
            .by(Operator)
            .takes(&["ApprovalId"])
            .may_give_a_reason()
            .answers(200, "The ticket.", of::<Ticket>(), &[("denied", "Denied", "ticket.denied")])
            .refuses(&["BadRequest", "NoTicket", "CannotDeny", "Expired"])
            .refuses(OPERATOR)
            .refuses(BODY),
    ]
}

#[rustfmt::skip]
fn keys() -> Vec<Route> {
    vec![
        get("/keys", "listKeys")
            .says("List keys", "All keys but the first one, without their secrets. For admins.")
            .by(Operator)
            .answers(200, "The keys.", of::<KeyList>(), &[("keys", "Two keys", "key_list")])
            .refuses(&["NotReady"])
            .refuses(OPERATOR),
        post("/keys", "createKey")
            .says("Make a key", "Makes a key of a role. For admins.")
            .by(Operator)
            .reads(of::<KeyRequest>(), &[
                ("approver", "An approver", "key_request.approver"),
                ("registrar", "A registrar with a ceiling", "key_request.registrar"),
            ])
            .answers(201, "The key. Its secret is shown here and never again.", CreatedKey, &[
                ("key", "An approver's key", "created_key"),
            ])
            .leads_to("revoke", "revokeKey", "Revoke the key.", "/key_id")
            .refuses(&["BadRequest"])
            .refuses(OPERATOR)
            .refuses(BODY),
        post("/keys/{id}/revoke", "revokeKey")
            .says("Revoke a key",
                "The key counts no more, from the next request on. What was done with it stays done. For admins.")
            .by(Operator)
            .takes(&["KeyId"])
            .may_give_a_reason()
            .answers(200, "The key.", of::<Key>(), &[("key", "Revoked", "key")])
            .refuses(&["BadRequest", "NoKey"])
            .refuses(OPERATOR)
            .refuses(BODY),
    ]
}

#[rustfmt::skip]
fn audit() -> Vec<Route> {
    vec![
        get("/audit/checkpoint", "getCheckpoint")
            .says("Read the signed checkpoint",
                "The size and the root of the ledger's tree, as it was last signed (at most about a second ago): a \
                 C2SP signed note. Whoever keeps it can tell later whether anything before it was changed.")
            .by(Everybody)
            .answers_text("The checkpoint.", &[("note", "A ledger of one entry", "checkpoint")])
            .refuses(&["NoCheckpoint"]),
        get("/audit/entries", "listEntries")
            .says("Read the ledger",
                "Entries from an index on, oldest first, in pages. `cursor` counts before `from`. For admins.")
            .by(Operator)
            .takes(&["FromIndex", "Limit", "EntryCursor"])
            .answers(200, "A page of the ledger.", of::<EntryPage>(), &[("page", "The only page", "entry_page")])
            .refuses(&["BadQuery", "Fault", "NotReady"])
            .refuses(OPERATOR),
        get("/audit/proof", "getProof")
            .says("Prove an entry, or the past",
                "Proves that an entry (`index`, or `decision`) is in the ledger, or that the ledger continues what it \
                 was at a size (`old`). Exactly one of the three is given. For admins.")
            .by(Operator)
            .takes(&["Index", "Decision", "OldSize", "TreeSize"])
            .answers(200, "The proof.", of::<Proof>(), &[
                ("entry", "An entry", "proof.entry"),
                ("past", "A continuation", "proof.past"),
            ])
            .refuses(&["BadQuery", "NoEntry", "Fault", "NoProof"])
            .refuses(OPERATOR),
    ]
}

#[rustfmt::skip]
fn state() -> Vec<Route> {
    vec![
        post("/state/verify", "verifyState")
            .says("Check a state or a transition",
                "Checks a proposed state, or a transition from a current one, with a guard of the bundle or of the \
                 request. With a target_path the state is committed as well. BLOCKED is answered with 200. For \
                 admins.")
            .by(Operator)
            .reads(of::<StateRequest>(), &[
                ("transition", "A transition", "state_request.transition"),
                ("state", "A state alone", "state_request.state"),
            ])
            .answers(200, "What the guard says.", of::<StateAnswer>(), &[
                ("transition", "A transition that keeps every rule", "state_answer.transition"),
                ("state", "A state that matches its schema", "state_answer.state"),
                ("blocked", "A transition that breaks a rule", "state_answer.blocked"),
            ])
            .refuses(&["BadStateRequest", "NoGuard"])
            .refuses(OPERATOR)
            .refuses(BODY),
    ]
}

#[rustfmt::skip]
fn attestation() -> Vec<Route> {
    vec![
        get("/.well-known/jwks.json", "getAttestationKeys")
            .says("The keys that attestations are checked with",
                "The public keys as a JSON Web Key Set (RFC 7517): the one that signs now, and those before it.")
            .by(Everybody)
            .answers(200, "The keys.", Jwks, &[("one", "One key", "jwks")]),
        post("/attestation/rotate", "rotateAttestationKey")
            .says("Sign with a new key",
                "Makes a new key that signs from now on. Attestations of the keys before it still verify; the last \
                 100 keys are kept. For admins.")
            .by(Operator)
            .may_read(of::<RotateRequest>(), &[
                ("same", "One like the current", "reason_request.empty"),
                ("edwards", "An Ed25519 key", "rotate_request.edwards"),
            ])
            .answers(200, "The new key.", of::<RotatedKey>(), &[("rotated", "An Ed25519 key", "rotated_key")])
            .refuses(&["BadRequest"])
            .refuses(OPERATOR)
            .refuses(BODY),
    ]
}

#[rustfmt::skip]
fn workflows() -> Vec<Route> {
    vec![
        get("/workflows", "listWorkflows")
            .says("List workflows", "The newest workflow under each id, in the order of the ids. For admins.")
            .by(Operator)
            .takes(&["Limit", "WorkflowCursor"])
            .answers(200, "The workflows.", of::<WorkflowPage>(), &[("it", "One", "workflow_page")])
            .refuses(&["BadCursor", "NotReady"])
            .refuses(OPERATOR),
        post("/workflows", "registerWorkflow")
            .says("Register a workflow",
                "Makes a workflow the newest under its id. New runs that name the id are started with it; runs that \
                 are in progress keep theirs. The newest one sent again is answered with 200, and nothing is \
                 recorded. For admins.")
            .by(Operator)
            .reads(of::<RegisterRequest>(), &[("it", "A small one", "register_request")])
            .answers(200, "It was the newest already.", of::<RegisteredWorkflow>(), &[
                ("again", "The same again", "registered_workflow"),
            ])
            .answers(201, "It is the newest now.", of::<RegisteredWorkflow>(), &[
                ("it", "The first under its id", "registered_workflow"),
            ])
            .leads_to("get", "getWorkflow", "Read it with what the analysis finds.", "/id")
            .refuses(&["BadWorkflow"])
            .refuses(OPERATOR)
            .refuses(BODY),
        get("/workflows/{id}", "getWorkflow")
            .says("Read a workflow",
                "The newest workflow under an id, and what looks wrong with it under the bundle in force. For admins.")
            .by(Operator)
            .takes(&["WorkflowId"])
            .answers(200, "The workflow.", Workflow, &[("it", "With a finding", "workflow")])
            .refuses(&["BadPath", "NoWorkflow", "Fault", "NotReady"])
            .refuses(OPERATOR),
    ]
}

#[rustfmt::skip]
fn runs() -> Vec<Route> {
    vec![
        get("/runs", "listRuns")
            .says("List coding agents", "Every coding agent, with where it stands. For admins.")
            .by(Operator)
            .takes(&["Limit", "AgentCursor"])
            .answers(200, "The agents.", of::<RunPage>(), &[("it", "One", "run_page")])
            .refuses(&["BadCursor", "NotReady"])
            .refuses(OPERATOR),
        post("/runs", "startRun")
            .says("Start a workflow",
                "Makes the agent of a host in a project known, and puts a workflow in force for it: one that is \
                 written out, or the newest that is registered under an id. For admins.")
            .by(Operator)
            .reads(of::<StartRequest>(), &[
                ("it", "So", "start_request.it"),
                ("registered", "With a registered workflow", "start_request.registered"),
            ])
            .answers(201, "Where it stands.", of::<Run>(), &[("it", "In its first phase", "run")])
            .refuses(&["BadWorkflow", "NoWorkflow"])
            .refuses(OPERATOR)
            .refuses(BODY),
        get("/runs/{id}", "getRun")
            .says("Where a coding agent stands", "By the id of the run or of the agent. For admins.")
            .by(Operator)
            .takes(&["RunId"])
            .answers(200, "Where it stands.", of::<Run>(), &[("it", "A run", "run")])
            .refuses(&["BadPath", "NoRun", "NotReady"])
            .refuses(OPERATOR),
        get("/runs/{id}/refusals", "listRefusals")
            .says("What was refused",
                "Calls that were refused, or would have been in observe mode, newest first; and how many passed. For \
                 admins.")
            .by(Operator)
            .takes(&["RunId", "Limit"])
            .answers(200, "The calls.", of::<RefusedCalls>(), &[("it", "One", "refused_calls")])
            .refuses(&["BadQuery", "NoRun", "NotReady"])
            .refuses(OPERATOR),
        get("/runs/{id}/history", "readHistory")
            .says("What happened in a run",
                "Transitions with what the agent said, refusals, calls, commands with their exit codes, what a person \
                 decided or forced: oldest first, by the id of the run or of the agent. An earlier run of an agent has its \
                 own id. For admins.")
            .by(Operator)
            .takes(&["RunId", "Limit", "Cursor"])
            .answers(200, "What happened.", of::<RunHistory>(), &[("it", "A transition", "run_history")])
            .refuses(&["BadQuery", "BadCursor", "NoRun", "Fault", "NotReady"])
            .refuses(OPERATOR),
        get("/decisions/{id}", "readDecision")
            .says("One decision",
                "A decision on an action or on a tool call, by its id, whose it was and what it rests on. For approvers and \
                 admins.")
            .by(Operator)
            .takes(&["DecisionId"])
            .answers(200, "The decision.", of::<CallDecision>(), &[("it", "One", "call_decision")])
            .refuses(&["BadPath", "NoDecision", "NotReady"])
            .refuses(OPERATOR),
        run_deed("/runs/{id}/force", "forceRun")
            .says("Move a run", "The run goes on in this state, whatever its edges say. For admins.")
            .reads(of::<ForceRequest>(), &[("it", "So", "force_request")])
            .answers(200, "Where it stands.", of::<Run>(), &[("it", "Afterwards", "run")])
            .refuses(&["CannotSteer"]),
        run_deed("/runs/{id}/stop", "stopRun")
            .says("Stop a run", "The workflow holds no more; the base policy does. For admins.")
            .may_read(of::<ReasonRequest>(), &[("it", "So", "reason_request.looked")])
            .answers(200, "Where it stands.", of::<Run>(), &[("it", "Afterwards", "run")]),
        run_deed("/runs/{id}/thaw", "thawRun")
            .says("Free a frozen run", "What froze it was looked at. For admins.")
            .may_read(of::<ReasonRequest>(), &[("it", "So", "reason_request.looked")])
            .answers(200, "Where it stands.", of::<Run>(), &[("it", "Afterwards", "run")]),
        run_deed("/runs/{id}/pause", "pauseRun")
            .says("Pause refusals", "Until then refusals are recorded and only shown. For admins.")
            .reads(of::<PauseRequest>(), &[("it", "So", "pause_request")])
            .answers(200, "Where it stands.", of::<Run>(), &[("it", "Afterwards", "run")]),
        run_deed("/runs/{id}/allow", "allowCall")
            .says("Let a call pass",
                "Exactly the call of a decision, or what a pattern says; never a tool as a whole. It lifts no rule \
                 that denies, no limit and no phase. For approvers and admins.")
            .reads(of::<AllowRequest>(), &[("it", "So", "allow_request")])
            .answers(201, "What passes.", of::<Allowance>(), &[("it", "Exactly one call", "allowance")]),
        run_deed("/runs/{id}/disallow", "disallowCall")
            .says("Let it pass no more", "For admins.")
            .reads(of::<DisallowRequest>(), &[("it", "So", "disallow_request")])
            .answers(200, "Where it stands.", of::<Run>(), &[("it", "Afterwards", "run")]),
        get("/changes", "readChanges")
            .says("What a call changed",
                "What the kept states before and after a call say that it changed in its project; without a call, the \
                 last one that changed something and was not undone. For approvers and admins.")
            .by(Operator)
            .takes(&["Directory", "KeptCall", "Stat"])
            .answers(200, "The changes.", of::<Changes>(), &[("it", "One file", "changes")])
            .refuses(&["BadQuery", "NothingKept", "CannotKeep", "Fault", "NotReady"])
            .refuses(OPERATOR),
        post("/undo", "undoCalls")
            .says("Undo what calls changed",
                "Without `plan` it says what an undo would do, and does nothing. With the plan of such an answer it does \
                 that, if it still would be the same; the undo is on record before anything is written. What changed \
                 since, or was changed by calls that ran meanwhile, is left alone unless `paths` names it. For approvers \
                 and admins.")
            .by(Operator)
            .reads(of::<UndoRequest>(), &[("it", "So", "undo_request")])
            .answers(200, "The plan, or what was done.", of::<UndoAnswer>(), &[("it", "Done", "undo_answer")])
            .refuses(&["BadRequest", "NothingKept", "CannotKeep"])
            .refuses(OPERATOR)
            .refuses(BODY),
        get("/snapshots", "listSnapshots")
            .says("Kept states of a project", "The oldest first. For approvers and admins.")
            .by(Operator)
            .takes(&["Directory"])
            .answers(200, "The states.", of::<KeptStates>(), &[("it", "One", "kept_states")])
            .refuses(&["BadQuery", "NothingKept", "CannotKeep", "Fault", "NotReady"])
            .refuses(OPERATOR),
        get("/snapshots/{id}", "readSnapshot")
            .says("One kept state", "With what is not in it, and why. For approvers and admins.")
            .by(Operator)
            .takes(&["SnapshotId", "Directory"])
            .answers(200, "The state.", of::<KeptState>(), &[("it", "One", "kept_state")])
            .refuses(&["BadQuery", "NothingKept", "CannotKeep", "Fault", "NotReady"])
            .refuses(OPERATOR),
        post("/snapshots/prune", "pruneSnapshots")
            .says("Drop kept states",
                "Those beyond the limits of the bundle, or all but those of calls that are under way. For approvers and \
                 admins.")
            .by(Operator)
            .reads(of::<PruneRequest>(), &[("it", "So", "prune_request")])
            .answers(200, "What was dropped.", of::<PrunedStates>(), &[("it", "One", "pruned_states")])
            .refuses(&["BadRequest", "NothingKept", "CannotKeep"])
            .refuses(OPERATOR)
            .refuses(BODY),
    ]
}
