//! Which routes there are, and what each does in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use interlock_core::action::{Agent, Door};
use interlock_core::ledger::{Body as EntryBody, Entry, Idempotency};
use interlock_core::{Code, Digest};
use interlock_runtime::clock::hex;
use interlock_runtime::gate::{Asking, Gate};
use interlock_runtime::ledger::{Answer, Command, Request as LedgerRequest, RuleCommand};
use tokio::sync::oneshot;

use crate::Service;
use crate::answer::{self, Asked, Refusal, json};
use crate::auth::Credentials;
use crate::register::Registration;
use crate::request::{Body, Question, malformed};

/// The description of the service.
pub const OPENAPI: &str = include_str!("openapi.json");

/// The largest body.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// How long a body may take to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest Idempotency-Key.
const KEY_BYTES_MAX: usize = 255;
/// How many activities a page has, unless asked otherwise, and at most.
const PAGE_LEN: usize = 100;
const PAGE_LEN_MAX: usize = 1_000;

/// All routes.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/healthz", get(async || text("ok\n")))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(async || json(StatusCode::OK, OPENAPI.to_owned())))
        .route("/agents/register", post(register))
        .route("/agents/{id}", get(agent))
        .route("/agents/{id}/budget", get(budget))
        .route("/agents/{id}/activity", get(activity))
        .route("/agents/{id}/verify", post(verify))
        .route("/agents/{id}/tools/{tool}", post(tool))
        .route("/state/verify", post(state_verify))
        .method_not_allowed_fallback(async || {
            let refusal = Refusal::new(Code::RequestRoute, "this route does not have this method; see /openapi.json");
            refusal.with_status(StatusCode::METHOD_NOT_ALLOWED)
        })
        .fallback(async || Refusal::new(Code::RequestRoute, "no such route; see /openapi.json"))
        .layer(from_fn_with_state(Arc::clone(&service), crate::rate::limited))
        .with_state(service)
}

type Answered = Result<Response, Refusal>;
/// The parts of a path; one that is not UTF-8 names nothing.
type Parts<T> = Result<Path<T>, PathRejection>;

fn parts<T>(path: Parts<T>) -> Result<T, Refusal> {
    path.map(|Path(parts)| parts).map_err(|_| malformed("the path is not UTF-8"))
}

fn text(body: impl Into<HttpBody>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

async fn ready(State(service): State<Arc<Service>>) -> Answered {
    if service.gate.ledger().is_ready() { Ok(text("ready\n")) } else { Err(Refusal::of_code(Code::FaultStore)) }
}

async fn metrics(State(service): State<Arc<Service>>, headers: HeaderMap) -> Answered {
    service.check_operator(&Credentials::read(&headers))?;
    Ok(text(service.metrics.render(service.gate.ledger())))
}

async fn register(State(service): State<Arc<Service>>, request: Request) -> Answered {
    service.count_request();
    service.check_operator(&Credentials::read(request.headers()))?;
    let bytes = read_body(request).await?;
    let Registration { mut profile, trust } = Registration::read(&Body::read(&bytes)?)?;
    let fault = |_| Refusal::of_code(Code::FaultInternal);
    let mut random = [0; 48];
    service.entropy.0.fill(&mut random).map_err(fault)?;
    let (id, token) = random.split_at(16);
    profile.agent_id = format!("agent_{}", hex(id));
    let token = format!("qwed_agent_{}", hex(token));
    let command = Command::Register { profile: Box::new(profile), token: Digest::of(&[&token]), trust };
    match service.submit(command).await {
        Answer::Recorded(recorded) => match recorded.entry.body {
            EntryBody::Registered(registered) => {
                let agent = interlock_core::ledger::apply_registered(&registered, 0);
                Ok(json(StatusCode::CREATED, answer::agent(&agent, Some(&token))))
            }
            EntryBody::Ruled(_)
            | EntryBody::BundleActivated(_)
            | EntryBody::Unauthenticated(_)
            | EntryBody::StateIntent(_)
            | EntryBody::StateOutcome(_) => Err(Refusal::of_code(Code::FaultInternal)),
        },
        Answer::Refused(code) | Answer::Fault(code) => Err(Refusal::of_code(code)),
        Answer::NeedsEvidence(_) | Answer::Blocked(_) => Err(Refusal::of_code(Code::FaultInternal)),
    }
}

async fn agent(State(service): State<Arc<Service>>, path: Parts<String>, headers: HeaderMap) -> Answered {
    let agent = service.readable_agent(&parts(path)?, &headers)?;
    Ok(json(StatusCode::OK, answer::agent(&agent, None)))
}

async fn budget(State(service): State<Arc<Service>>, path: Parts<String>, headers: HeaderMap) -> Answered {
    let agent = service.readable_agent(&parts(path)?, &headers)?;
    let now = service.gate.ledger().now().max(agent.last_at);
    Ok(json(StatusCode::OK, answer::budget(&agent.profile.budget, &agent.spent, now)))
}

async fn activity(
    State(service): State<Arc<Service>>,
    path: Parts<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    let agent = service.readable_agent(&parts(path)?, &headers)?;
    let (limit, cursor) = page(query.as_deref().unwrap_or(""))?;
    let read = tokio::task::spawn_blocking(move || service.activities(&agent, limit, cursor));
    let (entries, next) = read.await.map_err(|_| Refusal::of_code(Code::FaultInternal))??;
    Ok(json(StatusCode::OK, answer::activities(&entries, next)))
}

/// `limit` and `cursor` of a query.
fn page(query: &str) -> Result<(usize, Option<u64>), Refusal> {
    let (mut limit, mut cursor) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("limit", value)) if limit.is_none() => {
                let asked = value.parse().ok().filter(|limit| (1..=PAGE_LEN_MAX).contains(limit));
                limit = Some(asked.ok_or_else(|| malformed(format!("limit must be 1 to {PAGE_LEN_MAX}")))?);
            }
            Some(("cursor", value)) if cursor.is_none() => {
                let asked = value.parse().ok();
                cursor = Some(asked.ok_or_else(|| malformed("cursor must be one that an answer gave"))?);
            }
            _ => {
                return Err(Refusal::new(Code::RequestField, "unknown or repeated parameter; known are limit, cursor"));
            }
        }
    }
    Ok((limit.unwrap_or(PAGE_LEN), cursor))
}

async fn verify(State(service): State<Arc<Service>>, path: Parts<String>, request: Request) -> Response {
    match parts(path) {
        Ok(id) => service.rule(Door::Verify, id, String::new(), request).await,
        Err(refusal) => refusal.decided().into_response(),
    }
}

async fn tool(State(service): State<Arc<Service>>, path: Parts<(String, String)>, request: Request) -> Response {
    match parts(path) {
        Ok((id, tool)) => service.rule(Door::Tools, id, tool, request).await,
        Err(refusal) => refusal.decided().into_response(),
    }
}

async fn state_verify(State(service): State<Arc<Service>>, request: Request) -> Answered {
    service.count_request();
    service.check_operator(&Credentials::read(request.headers()))?;
    let bytes = read_body(request).await?;
    let verified = tokio::task::spawn_blocking(move || service.verify_state(&Body::read(&bytes)?));
    let body = verified.await.map_err(|_| Refusal::of_code(Code::FaultInternal))??;
    Ok(json(StatusCode::OK, body))
}

impl Service {
    fn count_request(&self) {
        self.metrics.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn find_agent(&self, id: &str) -> Result<Option<Arc<Agent>>, Refusal> {
        // No id is longer; what is, is not looked up.
        if id.len() > 64 {
            return Ok(None);
        }
        self.gate.ledger().agent(id).map_err(|_| Refusal::of_code(Code::FaultStore))
    }

    fn readable_agent(&self, id: &str, headers: &HeaderMap) -> Result<Arc<Agent>, Refusal> {
        self.count_request();
        let agent = self.find_agent(id)?;
        self.check_reader(&Credentials::read(headers), agent.as_deref())?;
        agent.ok_or_else(Refusal::unknown_agent)
    }

    async fn submit(&self, command: Command) -> Answer {
        let (sender, receiver) = oneshot::channel();
        self.gate.ledger().submit(command, move |answer| {
            // Nobody may be waiting any more; what is recorded is recorded.
            let _ = sender.send(answer);
        });
        receiver.await.unwrap_or(Answer::Fault(Code::FaultInternal))
    }

    /// Rulings of an agent, newest first, from its last entry or from a cursor on.
    fn activities(
        &self,
        agent: &Agent,
        limit: usize,
        cursor: Option<u64>,
    ) -> Result<(Vec<Entry>, Option<u64>), Refusal> {
        let cipher = cursor_cipher(agent);
        let (mut entries, mut next) = (Vec::new(), Some(cursor.map_or(agent.last_index, |cursor| cursor ^ cipher)));
        while let Some(index) = next.filter(|_| entries.len() < limit) {
            let found = self.gate.ledger().entry(index).map_err(|_| Refusal::of_code(Code::FaultStore))?;
            let entry = found.and_then(|bytes| Entry::from_bytes(&bytes).ok());
            let own = entry.filter(|entry| entry.agent.as_deref() == Some(&agent.profile.agent_id));
            // A cursor is a number, so it may be made up.
            let entry = own.ok_or_else(|| {
                malformed("cursor must be one that an answer gave").with_status(StatusCode::NOT_FOUND)
            })?;
            next = entry.previous;
            if matches!(entry.body, EntryBody::Ruled(_)) {
                entries.push(entry);
            }
        }
        // The first entry is the registration, which is no ruling.
        let next = next.filter(|index| *index > 0 && !self.is_registration(*index));
        Ok((entries, next.map(|index| index ^ cipher)))
    }

    fn is_registration(&self, index: u64) -> bool {
        let entry = self.gate.ledger().entry(index).ok().flatten();
        let entry = entry.and_then(|bytes| Entry::from_bytes(&bytes).ok());
        entry.is_some_and(|entry| matches!(entry.body, EntryBody::Registered(_)))
    }

    /// A ruling: authenticate, read, screen, verify, submit, render.
    async fn rule(&self, door: Door, id: String, tool: String, request: Request) -> Response {
        self.count_request();
        let response = self.try_rule(door, &id, &tool, request).await;
        response.unwrap_or_else(|refusal| {
            if matches!(refusal.code(), Code::AgentUnknown | Code::AgentToken) {
                self.gate.ledger().count_unauthenticated(refusal.code());
            }
            refusal.decided().into_response()
        })
    }

    async fn try_rule(&self, door: Door, id: &str, tool: &str, request: Request) -> Answered {
        let agent = self.find_agent(id)?.ok_or_else(Refusal::unknown_agent)?;
        let credentials = Credentials::read(request.headers());
        let opened_at = self.gate.ledger().size();
        // Header credentials are checked before the body is read.
        if credentials.names_agent() {
            let token = credentials.agent_token(None).filter(|token| agent.has_token(*token));
            token.ok_or_else(Refusal::wrong_token)?;
        }
        let key = idempotency_key(request.headers());
        let path = request.uri().path().to_owned();
        let bytes = read_body(request).await;
        let body = match bytes.as_ref().map_err(Refusal::clone).and_then(|bytes| Body::read(bytes)) {
            Ok(body) => body,
            // Without a token in the headers nobody is known to have asked.
            Err(refusal) => {
                return match credentials.agent_token(None) {
                    Some(token) => Ok(self.record_malformed(&agent, token, &refusal, door).await),
                    None => Err(refusal),
                };
            }
        };
        let token = credentials.agent_token(body.agent_token()).filter(|token| agent.has_token(*token));
        let token = token.ok_or_else(Refusal::wrong_token)?;
        let bundle = self.gate.bundle();
        let read = key.and_then(|key| {
            let question = match door {
                Door::Verify => body.verify(id, &bundle),
                Door::Tools => body.tool(id, tool, &bundle),
            };
            question.map(|question| (question, key))
        });
        let (Question { mut facts, action }, key) = match read {
            Ok(read) => read,
            Err(refusal) => return Ok(self.record_malformed(&agent, token, &refusal, door).await),
        };
        facts.opened_at = opened_at;
        let idempotency = key.map(|key| Idempotency { key, request: body.digest(&path) });
        let reservation = if facts.dry_run { None } else { self.gate.reserve(&facts, id) };
        if reservation.is_none() && !facts.dry_run && idempotency.is_none() {
            let refusal = Refusal::new(Code::LoopReplay, "this step is being decided on for another request");
            return Ok(self.record_malformed(&agent, token, &refusal, door).await);
        }
        let asked = Asked { door, around_query: around_query(&action) };
        let asking = Asking { agent: &agent, token, facts, action, idempotency };
        let command = self.gate.prepare(&asking);
        let mut answer = self.submit(command).await;
        if let Answer::NeedsEvidence(bundle) = &answer {
            let command = self.gate.prepare_again(&asking, bundle);
            answer = self.submit(command).await;
            if matches!(answer, Answer::NeedsEvidence(_)) {
                answer = Gate::without_evidence();
            }
        }
        drop(reservation);
        self.count_decision(&answer);
        Ok(answer::ruling(answer, &asked))
    }

    /// Every request of an authenticated agent is on record, one that cannot be asked too.
    async fn record_malformed(&self, agent: &Agent, token: Digest, refusal: &Refusal, door: Door) -> Response {
        let (code, message) = (refusal.code(), refusal.message().to_owned());
        let command = Command::Rule(Box::new(RuleCommand {
            agent: agent.profile.agent_id.clone(),
            token,
            request: LedgerRequest::Malformed { code, message },
            idempotency: None,
            corrected: None,
        }));
        let answer = self.submit(command).await;
        self.count_decision(&answer);
        answer::ruling(answer, &Asked { door, around_query: None })
    }

    fn count_decision(&self, answer: &Answer) {
        if let Answer::Recorded(recorded) = answer
            && let EntryBody::Ruled(ruled) = &recorded.entry.body
        {
            self.metrics.count(ruled.ruling.decision);
        }
    }
}

/// An index in the ledger is nobody's business but the operator's, so cursors hide it.
fn cursor_cipher(agent: &Agent) -> u64 {
    let digest = Digest::of(&["cursor", &agent.token.to_string()]).bytes();
    // At most 2^53, so that every reader of JSON keeps it whole.
    digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes) >> 11)
}

/// The action as JSON around its query, to put a corrected one in.
fn around_query(action: &interlock_core::action::ActionText<'_>) -> Option<(String, String)> {
    action.query?;
    let kind = interlock_core::json::quote(action.kind);
    let rest = [("code", action.code), ("target", action.target), ("parameters", action.parameters)];
    let rest = rest.into_iter().filter_map(|(key, value)| {
        let value = value?;
        // The claim that was wrong does not belong in the corrected action.
        let kept = value.as_object().filter(|_| value.get("expected").is_some()).map(|members| {
            let kept = members.filter(|(key, _)| key.text() != "expected");
            let kept =
                kept.map(|(key, value)| format!("{}:{}", interlock_core::json::quote(key.text()), value.source()));
            format!("{{{}}}", kept.collect::<Vec<_>>().join(","))
        });
        Some(format!(",\"{key}\":{}", kept.unwrap_or_else(|| value.source().to_owned())))
    });
    Some((format!("{{\"type\":{kind},\"query\":"), format!("{}}}", rest.collect::<String>())))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<Digest>, Refusal> {
    match headers.get("idempotency-key").map(HeaderValue::as_bytes) {
        None => Ok(None),
        Some(key) if key.is_empty() || key.len() > KEY_BYTES_MAX => {
            Err(malformed(format!("Idempotency-Key has 1 to {KEY_BYTES_MAX} bytes")))
        }
        Some(key) => Ok(Some(Digest::of_bytes(key))),
    }
}

async fn read_body(request: Request) -> Result<Bytes, Refusal> {
    let limited = Limited::new(request.into_body(), BODY_BYTES_MAX);
    match tokio::time::timeout(BODY_TIME_MAX, limited.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Refusal::new(Code::RequestTooLarge, format!("a body has at most {BODY_BYTES_MAX} bytes")))
        }
        Ok(Err(_)) => Err(malformed("the body could not be read")),
        Err(_) => Err(Refusal::new(Code::RequestSlow, "the body took too long to arrive")),
    }
}
