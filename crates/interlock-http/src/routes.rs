//! Which routes there are, and what each does in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use interlock_core::action::{Agent, Door};
use interlock_core::ledger::{AgentRegistered, Body as EntryBody, Role};
use interlock_core::{Code, Digest};
use interlock_runtime::clock::hex;
use interlock_runtime::ledger::{Answer, Command};
use interlock_wire::write;
use tokio::sync::oneshot;

use crate::agents::Deed;
use crate::answer::{self, Refusal, json};
use crate::answers::public_document;
use crate::apart::long;
use crate::attest;
use crate::auth::Credentials;
pub(crate) use crate::body::read_body;
use crate::register::Registration;
use crate::request::{Body, malformed};
use crate::rulings::RulingPath;
use crate::runs::RunDeed;
use crate::{Service, activity, agents, approvals, audit, history, keep, keys, runs, telemetry, workflows};

/// All routes.
pub fn router(service: Arc<Service>) -> Router {
    let no_method = async || {
        let refusal = Refusal::new(Code::RequestRoute, "this route does not have this method; see /openapi.json");
        refusal.with_status(StatusCode::METHOD_NOT_ALLOWED)
    };
    // Probes and public documents are not limited, or strangers could cut others off from them. Rulings know their agent
    // before anything else, so they count themselves.
    let unlimited = Router::new()
        .route("/healthz", get(async || text("ok\n")))
        .route("/readyz", get(ready))
        .route("/.well-known/jwks.json", get(attest::jwks))
        .route("/audit/checkpoint", get(audit::checkpoint))
        .route("/openapi.json", get(async || public_document(interlock_wire::document())))
        .route("/agents/{id}/verify", post(verify))
        .route("/agents/{id}/tools/{tool}", post(tool))
        .method_not_allowed_fallback(no_method);
    let limited = Router::new()
        .route("/metrics", get(metrics))
        .route("/agents/register", post(register))
        .route("/agents", get(agents::agents))
        .route("/agents/{id}", get(agent))
        .route("/agents/{id}/budget", get(budget))
        .route("/agents/{id}/activity", get(activity::of_agent))
        .route("/agents/{id}/executions", post(approvals::execution))
        .route("/agents/{id}/trust", post(approvals::trust))
        .route("/agents/{id}/suspend", deed(Deed::Suspend))
        .route("/agents/{id}/complaint", deed(Deed::Complaint))
        .route("/agents/{id}/reactivate", deed(Deed::Reactivate))
        .route("/agents/{id}/observe", deed(Deed::Observe))
        .route("/agents/{id}/enforce", deed(Deed::Enforce))
        .route("/agents/{id}/rotate-token", deed(Deed::RotateToken))
        .route("/agents/{id}/erase", deed(Deed::Erase))
        .route("/activity", get(activity::of_all))
        .route("/approvals", get(approvals::approvals))
        .route("/approvals/{id}", get(approvals::approval))
        .route("/approvals/{id}/approve", post(approvals::approve))
        .route("/approvals/{id}/deny", post(approvals::deny))
        .route("/workflows", get(workflows::workflows).post(workflows::register))
        .route("/workflows/{id}", get(workflows::workflow))
        .route("/runs", get(runs::runs).post(runs::start))
        .route("/runs/{id}", get(runs::run))
        .route("/runs/{id}/refusals", get(runs::refusals))
        .route("/runs/{id}/history", get(history::history))
        .route("/runs/{id}/force", run_deed(RunDeed::Force))
        .route("/runs/{id}/stop", run_deed(RunDeed::Stop))
        .route("/runs/{id}/thaw", run_deed(RunDeed::Thaw))
        .route("/runs/{id}/pause", run_deed(RunDeed::Pause))
        .route("/runs/{id}/allow", run_deed(RunDeed::Allow))
        .route("/runs/{id}/disallow", run_deed(RunDeed::Disallow))
        .route("/decisions/{id}", get(runs::decision))
        .route("/changes", get(keep::changes))
        .route("/undo", post(keep::undo))
        .route("/snapshots", get(keep::snapshots))
        .route("/snapshots/prune", post(keep::prune))
        .route("/snapshots/{id}", get(keep::snapshot))
        .route("/keys", get(keys::keys).post(keys::create))
        .route("/keys/{id}/revoke", post(keys::revoke))
        .route("/audit/entries", get(audit::entries))
        .route("/audit/proof", get(audit::proof))
        .route("/state/verify", post(state_verify))
        .route("/attestation/rotate", post(attest::rotate))
        .method_not_allowed_fallback(no_method)
        .fallback(async || Refusal::new(Code::RequestRoute, "no such route; see /openapi.json"))
        .layer(from_fn_with_state(Arc::clone(&service), crate::rate::limited));
    let routes = limited.merge(unlimited).with_state(Arc::clone(&service));
    // Outermost, so that whatever answers is told about.
    telemetry::observed(routes, service)
}

/// The route of something that is done to an agent.
fn deed(deed: Deed) -> axum::routing::MethodRouter<Arc<Service>> {
    post(async move |State(service): State<Arc<Service>>, path: Parts<String>, request: Request| {
        agents::change(service, deed, path, request).await
    })
}

/// The route of something that is done with a run.
fn run_deed(deed: RunDeed) -> axum::routing::MethodRouter<Arc<Service>> {
    post(async move |State(service): State<Arc<Service>>, path: Parts<String>, request: Request| {
        runs::change(service, deed, path, request).await
    })
}

pub(crate) type Answered = Result<Response, Refusal>;
/// The parts of a path; one that is not UTF-8 names nothing.
pub(crate) type Parts<T> = Result<Path<T>, PathRejection>;

pub(crate) fn parts<T>(path: Parts<T>) -> Result<T, Refusal> {
    path.map(|Path(parts)| parts).map_err(|_| malformed("the path is not UTF-8"))
}

pub(crate) fn text(body: impl Into<HttpBody>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

async fn ready(State(service): State<Arc<Service>>) -> Answered {
    if service.gate.ledger().is_ready() { Ok(text("ready\n")) } else { Err(Refusal::of_code(Code::FaultStore)) }
}

async fn metrics(State(service): State<Arc<Service>>, headers: HeaderMap) -> Answered {
    service.admin(&Credentials::read(&headers))?;
    let rendered = tokio::task::spawn_blocking(move || {
        let deliveries = service.deliveries.get().map(Vec::as_slice).unwrap_or_default();
        service.metrics.render(service.gate.ledger(), &service.telemetry, deliveries, service.apart.waiting())
    });
    Ok(text(rendered.await.map_err(|_| Refusal::of_code(Code::FaultInternal))?))
}

async fn register(State(service): State<Arc<Service>>, request: Request) -> Answered {
    service.count_request();
    let operator = service.operator(&Credentials::read(request.headers()))?.only(&[Role::Registrar, Role::Admin])?;
    let bytes = read_body(request).await?;
    let Registration { mut profile, trust } = Registration::read(&Body::read(&bytes)?, &operator)?;
    let fault = |_| Refusal::of_code(Code::FaultInternal);
    let mut random = [0; 48];
    service.entropy.0.fill(&mut random).map_err(fault)?;
    let (id, token) = random.split_at(16);
    profile.agent_id = format!("agent_{}", hex(id));
    let token = format!("qwed_agent_{}", hex(token));
    let digest = Digest::of(&[&token]);
    let command = Command::Register { profile: Box::new(profile), token: digest, trust, by: operator.actor };
    let recorded = answer::recorded(service.submit(command).await)?;
    let EntryBody::Registered(registered) = &recorded.entry.body else {
        return Err(Refusal::of_code(Code::FaultInternal));
    };
    let AgentRegistered { profile, token: digest, trust_level } = (**registered).clone();
    let agent = Agent::registered(profile, digest, trust_level);
    service.note(|note| note.agent_id = Some(agent.profile.agent_id.clone()));
    Ok(json(StatusCode::CREATED, write(&answer::agent(&agent, Some(&token)))))
}

async fn agent(State(service): State<Arc<Service>>, path: Parts<String>, headers: HeaderMap) -> Answered {
    let agent = service.readable_agent(&parts(path)?, &headers)?;
    Ok(json(StatusCode::OK, write(&answer::agent(&agent, None))))
}

async fn budget(State(service): State<Arc<Service>>, path: Parts<String>, headers: HeaderMap) -> Answered {
    let agent = service.readable_agent(&parts(path)?, &headers)?;
    let now = service.gate.ledger().now().max(agent.last_at);
    Ok(json(StatusCode::OK, write(&answer::budget(&agent.profile.budget, &agent.spent, now))))
}

async fn verify(State(service): State<Arc<Service>>, path: Parts<String>, request: Request) -> Response {
    match parts(path) {
        Ok(id) => service.rule(RulingPath { door: Door::Verify, id, tool: String::new() }, request).await,
        Err(refusal) => refusal.decided().into_response(),
    }
}

async fn tool(State(service): State<Arc<Service>>, path: Parts<(String, String)>, request: Request) -> Response {
    match parts(path) {
        Ok((id, tool)) => service.rule(RulingPath { door: Door::Tools, id, tool }, request).await,
        Err(refusal) => refusal.decided().into_response(),
    }
}

async fn state_verify(State(service): State<Arc<Service>>, request: Request) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(request.headers()))?.asker();
    let bytes = read_body(request).await?;
    let reader = Arc::clone(&service);
    let body = service.read_apart(asker, move |_| reader.verify_state(&Body::read(&bytes)?)).await?;
    Ok(json(StatusCode::OK, body))
}

impl Service {
    pub(crate) fn count_request(&self) {
        self.metrics.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The agent with an id. What is not at hand is read where waiting for the disk holds nobody up.
    pub(crate) fn find_agent(&self, id: &str) -> Result<Option<Arc<Agent>>, Refusal> {
        // No id is longer; what is, is not looked up.
        if id.len() > 64 {
            return Ok(None);
        }
        let ledger = self.gate.ledger();
        let found = match ledger.agent_at_hand(id) {
            Some(agent) => Some(agent),
            None => long(|| ledger.agent(id)).map_err(|_| Refusal::of_code(Code::FaultStore))?,
        };
        self.note(|note| note.agent_id = found.as_ref().map(|agent| agent.profile.agent_id.clone()));
        Ok(found)
    }

    pub(crate) fn readable_agent(&self, id: &str, headers: &HeaderMap) -> Result<Arc<Agent>, Refusal> {
        self.count_request();
        let agent = self.find_agent(id)?;
        let checked = self.check_reader(&Credentials::read(headers), agent.as_deref());
        checked.inspect_err(|refusal| self.count_stranger(refusal))?;
        agent.ok_or_else(Refusal::unknown_agent)
    }

    pub(crate) async fn submit(&self, command: Command) -> Answer {
        let (sender, receiver) = oneshot::channel();
        self.gate.ledger().submit(command, move |answer| {
            // Nobody may be waiting any more; what is recorded is recorded.
            let _ = sender.send(answer);
        });
        receiver.await.unwrap_or(Answer::Fault(Code::FaultInternal))
    }
}

/// Runs what waits for the disk on a thread where that is allowed.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::of_code(Code::FaultInternal))?
}
