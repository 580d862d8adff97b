//! Tickets: who reads them, who decides on them, and the requests for trust and reports of executions around them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::action::{
    Agent, Breach, Decision, Merits, Ticket, TicketStatus, TicketSubject, Trust, Usage, Verdict, WaitingTransition,
    check_trust_request,
};
use interlock_core::json::{self, Limits, RawJson};
use interlock_core::ledger::{Body as EntryBody, Role};
use interlock_core::{Code, Digest};
use interlock_runtime::ledger::{Answer, Command, Execution, TicketQuery, TrustRequest};
use interlock_wire as wire;
use tokio::sync::oneshot;

use crate::Service;
use crate::answer::{Refusal, dollars as in_dollars, json as answer_json, recorded, remaining as left};
use crate::apart::{Asker, long};
use crate::attest::carry;
use crate::auth::{Credentials, Operator, ReadsAs};
use crate::body::{Received, read_body, read_unproven};
use crate::keep::changes_of;
use crate::query::Query;
use crate::request::{Body, boolean, count, dollars, malformed, only, read_reason, reason, text_or_null};
use crate::routes::{Answered, Parts, blocking, parts};
use crate::write::time;

/// The longest a request may wait for a ticket, in seconds.
const WAIT_SECONDS_MAX: u64 = 60;
/// How many tickets one request looks at.
const LOOKED_AT_MAX: usize = 10_000;

pub(crate) async fn approvals(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let credentials = Credentials::read(&headers);
    let query = Query::read(query.as_deref(), &["status", "agent", "limit", "cursor"])?;
    let asked_for = query.text("agent").map(str::to_owned);
    let (agent, reader) = match (asked_for, service.operator(&credentials)) {
        (None, Ok(operator)) => (None, Reader::Operator(operator)),
        (None, Err(refusal)) => {
            let Some(token) = credentials.agent_token(None) else { return Err(refusal) };
            let agent = long(|| service.gate.ledger().agent_by_token(token));
            let agent = agent.map_err(|_| Refusal::of_code(Code::FaultStore))?;
            // A bearer token may have been meant as a key.
            let agent = agent.ok_or_else(|| if credentials.is_agent() { Refusal::wrong_token() } else { refusal })?;
            (Some(agent.profile.agent_id.clone()), Reader::Agent)
        }
        (Some(id), operator) => {
            let found = service.find_agent(&id)?;
            let reading = service.check_reader(&credentials, found.as_deref())?;
            found.ok_or_else(Refusal::unknown_agent)?;
            match (reading, operator) {
                (ReadsAs::Operator, Ok(operator)) => (Some(id), Reader::Operator(operator)),
                (ReadsAs::Operator, Err(refusal)) => return Err(refusal),
                (ReadsAs::Agent, _) => (Some(id), Reader::Agent),
            }
        }
    };
    let status = match query.text("status") {
        None | Some("all") => None,
        Some(word) => Some(
            TicketStatus::parse(word)
                .ok_or_else(|| malformed("status must be pending, approved, denied, expired or all"))?,
        ),
    };
    let (limit, before) = (query.limit()?, query.hidden_cursor(service.gate.ledger(), None)?);
    let asker = match (&reader, &agent) {
        (Reader::Operator(operator), _) => operator.asker(),
        (Reader::Agent, Some(agent)) => Asker::Agent(agent.clone()),
        (Reader::Agent, None) => Asker::Stranger,
    };
    let lister = Arc::clone(&service);
    let work = move |_: &mut usize| lister.list_tickets(agent, status, limit, before, &reader);
    let body = service.read_apart(asker, work).await?;
    Ok(answer_json(StatusCode::OK, body))
}

pub(crate) async fn approval(
    State(service): State<Arc<Service>>,
    path: Parts<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let (id, credentials) = (parts(path)?, Credentials::read(&headers));
    let query = Query::read(query.as_deref(), &["wait"])?;
    let wait = query.number("wait")?.unwrap_or(0);
    if wait > WAIT_SECONDS_MAX {
        return Err(malformed(format!("wait must be 0 to {WAIT_SECONDS_MAX} seconds")));
    }
    let (sender, changed) = oneshot::channel();
    let ledger = service.gate.ledger();
    // Waiting begins before reading, so that nothing is missed in between.
    let waiting = ledger.wait_for_ticket(&id, move || {
        let _ = sender.send(());
    });
    let (ticket, reading) = long(|| service.readable_ticket(&id, &credentials))?;
    let now = ledger.now();
    let place = (reading == ReadsAs::Agent).then(|| service.waits.enter(&ticket.agent));
    if wait > 0 && ticket.status(now) == TicketStatus::Pending && !matches!(place, Some(None)) {
        let left = Duration::from_millis(ticket.expires_at.saturating_sub(now).saturating_add(1));
        let mut stopping = service.stopping.subscribe();
        tokio::select! {
            _ = changed => {}
            () = tokio::time::sleep(Duration::from_secs(wait).min(left)) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }
    drop(place);
    drop(waiting);
    blocking(move || {
        // Key or token may have been taken away meanwhile.
        let (ticket, reading) = service.readable_ticket(&id, &credentials)?;
        service.answer_ticket(&ticket, reading)
    })
    .await
}

pub(crate) async fn approve(State(service): State<Arc<Service>>, path: Parts<String>, request: Request) -> Answered {
    service.resolve(parts(path)?, Verdict::Approved, request).await
}

pub(crate) async fn deny(State(service): State<Arc<Service>>, path: Parts<String>, request: Request) -> Answered {
    service.resolve(parts(path)?, Verdict::Denied, request).await
}

pub(crate) async fn trust(State(service): State<Arc<Service>>, path: Parts<String>, request: Request) -> Answered {
    service.count_request();
    let (id, credentials) = (parts(path)?, Credentials::read(request.headers()));
    let agent = service.find_agent(&id)?;
    let by = match service.operator(&credentials) {
        Ok(operator) => Some(operator.only(&[Role::Admin])?.actor),
        Err(_) => None,
    };
    let agent = agent.ok_or_else(|| service.stranger(Refusal::unknown_agent()))?;
    let bytes = match &by {
        Some(_) => read_body(request).await?,
        None => service.read_own(&agent, &credentials, request).await?,
    };
    let body = Body::read(&bytes)?;
    let token = match &by {
        Some(_) => None,
        None => Some(service.own_token(&agent, &credentials, &body)?),
    };
    let (to_level, from_level, justification) = read_trust(&body)?;
    service.check_trust_request(&agent, to_level, from_level)?;
    let asker = service.reader_of(&agent, &credentials);
    let merits = service.merits(asker, Arc::clone(&agent)).await?;
    let request = TrustRequest { agent: id, token, by, to_level, from_level, justification, merits };
    let answer = service.submit(Command::RequestTrust(Box::new(request))).await;
    let recorded = recorded(answer).map_err(|refusal| refused_trust(refusal, &agent))?;
    let EntryBody::TrustRequested(requested) = &recorded.entry.body else {
        return Err(Refusal::of_code(Code::FaultInternal));
    };
    service.note(|note| note.trust_requested(requested));
    let body = wire::TrustAnswer {
        decision: Decision::Pending.to_string(),
        approval_id: requested.approval_id.clone(),
        expires_at: time(requested.expires_at),
    };
    Ok(answer_json(StatusCode::ACCEPTED, wire::write(&body)))
}

/// Two codes mean something else here than where a ticket is decided on.
fn refused_trust(refusal: Refusal, agent: &Agent) -> Refusal {
    if refusal.code() == Code::ApprovalStale {
        let level = u8::from(agent.trust);
        let message = format!("to_level must be above the level there is ({level}), and from_level that level");
        return Refusal::new(Code::ApprovalStale, message);
    }
    if refusal.code() == Code::ApprovalsOpen {
        let message = "a request for trust is open already, or too many approvals are";
        return Refusal::new(Code::ApprovalsOpen, message).with_status(StatusCode::CONFLICT);
    }
    refusal
}

fn read_trust(body: &Body<'_>) -> Result<(Trust, Option<Trust>, Option<String>), Refusal> {
    let root = body.root();
    only(root, wire::TrustRequest::MEMBERS)?;
    text_or_null(root, "agent_token")?;
    let word = text_or_null(root, "request")?.and_then(|word| word.as_str()).map(|word| word.text().to_owned());
    if word.as_deref() != Some("trust_elevation") {
        return Err(malformed("request must be \"trust_elevation\""));
    }
    let level = |key: &str| -> Result<Option<Trust>, Refusal> {
        let refused = || malformed(format!("{key} must be 0, 1, 2 or 3"));
        let Some(level) = count(root, key).map_err(|_| refused())? else { return Ok(None) };
        let level = u8::try_from(level).ok().and_then(|level| Trust::try_from(level).ok());
        level.map(Some).ok_or_else(refused)
    };
    let to_level = level("to_level")?.ok_or_else(|| malformed("to_level is required"))?;
    Ok((to_level, level("from_level")?, reason(root, "justification")?))
}

pub(crate) async fn execution(State(service): State<Arc<Service>>, path: Parts<String>, request: Request) -> Answered {
    service.count_request();
    let (id, credentials) = (parts(path)?, Credentials::read(request.headers()));
    let agent = service.find_agent(&id)?.ok_or_else(|| service.stranger(Refusal::unknown_agent()))?;
    let bytes = service.read_own(&agent, &credentials, request).await?;
    let body = Body::read(&bytes)?;
    let token = service.own_token(&agent, &credentials, &body)?;
    let execution = read_execution(&body, id, token)?;
    let recorded = recorded(service.submit(Command::Execute(Box::new(execution))).await)?;
    let EntryBody::Executed(executed) = &recorded.entry.body else {
        return Err(Refusal::of_code(Code::FaultInternal));
    };
    service.note(|note| note.executed(executed));
    let agent = service.find_agent(&agent.profile.agent_id)?.unwrap_or(agent);
    let remaining = agent.spent.remaining(&agent.profile.budget, recorded.entry.at);
    let body = wire::ExecutionAnswer {
        decision_id: executed.decision_id.clone(),
        approval_id: executed.approval_id.clone(),
        charged: wire::Charged { cost_usd: in_dollars(executed.charge.cost_usd), tokens: executed.charge.tokens },
        budget_remaining: left(&remaining),
        leaf_hash: recorded.leaf.to_string(),
    };
    Ok(answer_json(StatusCode::CREATED, wire::write(&body)))
}

fn read_execution(body: &Body<'_>, agent: String, token: Digest) -> Result<Execution, Refusal> {
    let root = body.root();
    only(root, wire::ExecutionRequest::MEMBERS)?;
    text_or_null(root, "agent_token")?;
    let text = |key: &str| -> Result<Option<String>, Refusal> {
        Ok(text_or_null(root, key)?.and_then(|text| text.as_str()).map(|text| text.text().to_owned()))
    };
    let decision_id = text("decision_id")?.ok_or_else(|| malformed("decision_id is required"))?;
    if root.get("success").and_then(|value| value.as_bool()).is_none() {
        return Err(malformed("success is required, true or false"));
    }
    let is_hash = |hash: &String| {
        let digits = hash.strip_prefix("sha256:").unwrap_or(hash);
        digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let result_hash = text("result_hash")?;
    if result_hash.as_ref().is_some_and(|hash| !is_hash(hash)) {
        return Err(malformed("result_hash must be 64 lower-case hexadecimal digits, with or without `sha256:`"));
    }
    Ok(Execution {
        agent,
        token,
        decision_id,
        success: boolean(root, "success")?,
        result_hash,
        usage: Usage {
            cost_usd: dollars(root, "cost_usd")?.unwrap_or_default(),
            tokens: count(root, "tokens")?.unwrap_or(0),
        },
    })
}

/// Who lists tickets.
enum Reader {
    Agent,
    Operator(Operator),
}

impl Service {
    /// A refusal of somebody who proved no identity, counted.
    fn stranger(&self, refusal: Refusal) -> Refusal {
        self.count_stranger(&refusal);
        refusal
    }

    /// The body of an agent's request. A token in the headers is compared before anything of the body is read.
    async fn read_own(&self, agent: &Agent, credentials: &Credentials, request: Request) -> Result<Received, Refusal> {
        if !credentials.names_agent() {
            return read_unproven(request, None).await;
        }
        match credentials.agent_token(None).filter(|token| agent.has_token(*token)) {
            Some(_) => read_body(request).await,
            None => Err(self.stranger(Refusal::wrong_token())),
        }
    }

    /// The agent's own token, in the headers or in the body.
    fn own_token(&self, agent: &Agent, credentials: &Credentials, body: &Body<'_>) -> Result<Digest, Refusal> {
        let token = credentials.agent_token(body.agent_token()).filter(|token| agent.has_token(*token));
        token.ok_or_else(|| self.stranger(Refusal::wrong_token()))
    }

    /// What is refused anyway is refused before anything is counted for it.
    fn check_trust_request(&self, agent: &Agent, to_level: Trust, from_level: Option<Trust>) -> Result<(), Refusal> {
        let now = self.gate.ledger().now();
        let checked = check_trust_request(&self.gate.bundle(), agent, to_level, from_level, now);
        checked.map_err(|code| refused_trust(Refusal::of_code(code), agent))
    }

    /// Counting may read every ruling there was.
    async fn merits(self: &Arc<Self>, asker: Asker, agent: Arc<Agent>) -> Result<Merits, Refusal> {
        let service = Arc::clone(self);
        let work = move |read: &mut usize| {
            let rulings = agent.totals.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
            *read = usize::try_from(rulings).unwrap_or(LOOKED_AT_MAX).min(LOOKED_AT_MAX);
            service.gate.ledger().merits(&agent).map_err(|_| Refusal::of_code(Code::FaultStore))
        };
        self.read_apart(asker, work).await
    }

    async fn resolve(self: &Arc<Self>, id: String, verdict: Verdict, request: Request) -> Answered {
        self.count_request();
        let operator = self.operator(&Credentials::read(request.headers()))?;
        let by = operator.only(&[Role::Approver, Role::Admin])?.actor;
        let bytes = read_body(request).await?;
        let reason = read_reason(&bytes)?;
        let approval_id = long(|| self.ticket(&id))?.approval_id;
        let command = Command::Resolve { approval_id, verdict, by, reason };
        let answer = self.submit(command).await;
        if let Answer::BudgetSpent(breach) = &answer {
            return Err(budget_spent(breach));
        }
        recorded(answer)?;
        let service = Arc::clone(self);
        blocking(move || {
            let ticket = service.ticket(&id)?;
            service.answer_ticket(&ticket, ReadsAs::Operator)
        })
        .await
    }

    pub(crate) fn ticket(&self, id: &str) -> Result<Ticket, Refusal> {
        // No id is longer; what is, is not looked up.
        if id.len() > 64 {
            return Err(Refusal::of_code(Code::ApprovalUnknown));
        }
        let found = self.gate.ledger().ticket(id).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        if let Some(ticket) = &found {
            self.note(|note| note.asked_about(ticket));
        }
        found.ok_or_else(|| Refusal::of_code(Code::ApprovalUnknown))
    }

    /// A ticket for an operator, or for the agent whose it is; for other agents there is none.
    fn readable_ticket(&self, id: &str, credentials: &Credentials) -> Result<(Ticket, ReadsAs), Refusal> {
        let operator = self.operator(credentials);
        if let Err(refusal) = &operator {
            let token = credentials.agent_token(None).ok_or_else(|| refusal.clone())?;
            let asking = self.gate.ledger().agent_by_token(token).map_err(|_| Refusal::of_code(Code::FaultStore))?;
            let asking = asking.ok_or_else(Refusal::wrong_token)?;
            let own = self.ticket(id)?;
            let is_own = own.agent == asking.profile.agent_id;
            return if is_own { Ok((own, ReadsAs::Agent)) } else { Err(Refusal::of_code(Code::ApprovalUnknown)) };
        }
        let ticket = self.ticket(id)?;
        let agent = self.find_agent(&ticket.agent)?;
        self.check_reader(credentials, agent.as_deref()).map(|reading| (ticket, reading))
    }

    fn list_tickets(
        &self,
        agent: Option<String>,
        status: Option<TicketStatus>,
        limit: usize,
        before: Option<u64>,
        reader: &Reader,
    ) -> Result<String, Refusal> {
        let undecided = matches!(status, Some(TicketStatus::Pending | TicketStatus::Expired));
        let expires_after = (status == Some(TicketStatus::Pending)).then(|| self.gate.ledger().now());
        let mut query = TicketQuery { before, agent, undecided, expires_after };
        let (mut shown, mut looked_at, mut next) = (Vec::new(), 0_usize, None);
        let ledger = self.gate.ledger();
        'pages: loop {
            let page = ledger.tickets(&query, limit).map_err(|_| Refusal::of_code(Code::FaultStore))?;
            let full = page.len() == limit;
            let now = ledger.now();
            for (number, ticket) in page {
                looked_at = looked_at.saturating_add(1);
                let reading = self.reading_of(&ticket, reader)?;
                let wanted = reading.filter(|_| status.is_none_or(|status| ticket.status(now) == status));
                if looked_at > LOOKED_AT_MAX || (wanted.is_some() && shown.len() == limit) {
                    next = query.before;
                    break 'pages;
                }
                query.before = Some(number);
                if let Some(reading) = wanted {
                    shown.push(self.show_ticket(&ticket, reading)?);
                }
            }
            if !full {
                break;
            }
        }
        let next_cursor = next.map(|number| ledger.hide_number(None, number));
        Ok(wire::write(&wire::TicketPage { approvals: shown, next_cursor }))
    }

    /// As whom somebody reads a ticket in a list, if at all.
    fn reading_of(&self, ticket: &Ticket, reader: &Reader) -> Result<Option<ReadsAs>, Refusal> {
        match reader {
            Reader::Agent => Ok(Some(ReadsAs::Agent)),
            Reader::Operator(operator) => {
                let agent = self.find_agent(&ticket.agent)?;
                Ok(agent.filter(|agent| operator.may_read(agent)).map(|_| ReadsAs::Operator))
            }
        }
    }

    /// A ticket, with its attestation if one is due.
    fn answer_ticket(&self, ticket: &Ticket, reading: ReadsAs) -> Answered {
        let token = self.attest_ticket(ticket)?;
        let (attestation, changes) = (token.clone(), self.changes_by(ticket)?);
        let shown = wire::Ticket { attestation, changes, ..self.show_ticket(ticket, reading)? };
        Ok(carry(answer_json(StatusCode::OK, wire::write(&shown)), token.as_deref()))
    }

    /// The command that shows what was changed by the call that used up a ticket's agreement.
    fn changes_by(&self, ticket: &Ticket) -> Result<Option<String>, Refusal> {
        let fault = |_| Refusal::of_code(Code::FaultStore);
        let (ledger, agent) = (self.gate.ledger(), self.find_agent(&ticket.agent)?);
        let Some(newest) = agent.map(|agent| agent.entries).filter(|_| ticket.spent) else { return Ok(None) };
        for seq in (ticket.opened..=newest).take(LOOKED_AT_MAX) {
            let Some(found) = ledger.entry_of(Some(&ticket.agent), seq).map_err(fault)? else { continue };
            let ruled = found.entry.body.ruled();
            if let Some(ruled) = ruled.filter(|ruled| ruled.redeemed.as_ref() == Some(&ticket.approval_id)) {
                return Ok(changes_of(ruled));
            }
        }
        Ok(None)
    }

    /// A ticket as it is told; the agent's own words only to operators.
    fn show_ticket(&self, ticket: &Ticket, reading: ReadsAs) -> Result<wire::Ticket, Refusal> {
        let ledger = self.gate.ledger();
        let agent = self.find_agent(&ticket.agent)?;
        let profile = agent.as_ref().map(|agent| &agent.profile);
        let kept = match reading {
            ReadsAs::Operator => {
                ledger.text(&ticket.agent, ticket.opened).map_err(|_| Refusal::of_code(Code::FaultStore))?
            }
            ReadsAs::Agent => None,
        };
        let kept = kept.map(|kept| kept.text);
        let resolution = ticket.resolution.as_ref();
        let mut shown = wire::Ticket {
            approval_id: ticket.approval_id.clone(),
            status: ticket.status(ledger.now()).to_string(),
            kind: ticket.kind().to_string(),
            agent_id: ticket.agent.clone(),
            agent_name: profile.map(|profile| profile.name.clone()).unwrap_or_default(),
            principal_id: profile.map(|profile| profile.principal_id.clone()).unwrap_or_default(),
            opened_at: time(ticket.opened_at),
            expires_at: time(ticket.expires_at),
            decided_by: resolution.map(|resolution| resolution.by.name.clone()),
            decided_at: resolution.map(|resolution| time(resolution.at)),
            reason: resolution.and_then(|resolution| resolution.reason.clone()),
            spent: ticket.spent,
            ..wire::Ticket::default()
        };
        match &ticket.subject {
            TicketSubject::Action(action) => {
                shown.decision_id = Some(action.decision_id.clone());
                shown.action_type = Some(action.action.shown().to_owned());
                shown.conversation_id = Some(action.conversation.clone());
                shown.step_number = Some(action.step.get());
                shown.risk_level = Some(action.risk.to_string());
                shown.cost_usd = Some(in_dollars(action.charge.cost_usd));
                shown.why.clone_from(&action.why);
                if let Some(text) = &kept {
                    add_request(&mut shown, text);
                }
            }
            TicketSubject::Transition(waiting) => {
                let WaitingTransition { decision_id, run_id, workflow, event, from, target, message, .. } = &**waiting;
                let why = message.as_deref().unwrap_or("the workflow asks for a person before this transition");
                shown.decision_id = Some(decision_id.clone());
                why.clone_into(&mut shown.why);
                shown.transition = Some(wire::AskedTransition {
                    run_id: run_id.clone(),
                    workflow: workflow.clone(),
                    event: event.clone(),
                    from: from.clone(),
                    to: target.clone(),
                });
            }
            TicketSubject::Trust(trust) => {
                let merits = &trust.merits;
                "the agent asks for more trust".clone_into(&mut shown.why);
                shown.trust = Some(wire::AskedTrust {
                    from_level: u8::from(trust.from_level),
                    to_level: u8::from(trust.to_level),
                    justification: kept,
                    evidence: wire::Merits {
                        rulings: merits.rulings,
                        counted: merits.counted,
                        denied: merits.denied,
                        violations: merits.violations,
                        budget_exceeded: merits.budget_exceeded,
                        executions_succeeded: merits.succeeded,
                        executions_failed: merits.failed,
                        since: time(merits.since),
                        cut: merits.cut,
                    },
                });
            }
        }
        Ok(shown)
    }
}

/// The action, the intent and the justification, from the kept text.
fn add_request(ticket: &mut wire::Ticket, text: &str) {
    let Ok(document) = json::parse(text, &Limits::STATE) else { return };
    let root = document.root();
    let member = |key: &str| root.get(key).and_then(|value| value.as_str()).map(|text| text.text().to_owned());
    ticket.action = root.get("action").map(|action| RawJson::written(action.source().to_owned()));
    ticket.corrected_query = member("corrected");
    ticket.user_intent = member("user_intent");
    ticket.justification = member("justification");
}

fn budget_spent(breach: &Breach) -> Refusal {
    let Breach { code, what, limit, current, reset_at } = breach;
    let number = |number: &String| RawJson::written(number.clone());
    let details = wire::LimitFigures { limit: number(limit), current: number(current), reset_at: reset_at.map(time) };
    Refusal::new(*code, format!("{what}: {current} of {limit}; the approval stays open"))
        .with_status(StatusCode::CONFLICT)
        .with_details(wire::write(&details))
}
