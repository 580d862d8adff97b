//! Workflows that are registered under their ids: put on record by an admin, listed, read, and started from by name.
//! What a run is started with stays with the run; a newer workflow under the same id counts for new runs.

use std::sync::Arc;

use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::Code;
use interlock_core::json::{RawJson, Value, nfc};
use interlock_core::ledger::{Body as EntryBody, Role, WorkflowHead};
use interlock_core::workflow::Workflow;
use interlock_hosts::{Host, Rewriting};
use interlock_runtime::ledger::Command;
use interlock_wire::{RegisterRequest, RegisteredWorkflow, WorkflowFinding, WorkflowPage, write};
use interlock_workflow::{Finding, Format, Limits, NAME_CHARS_MAX, load};

use crate::Service;
use crate::answer::{Refusal, json, recorded};
use crate::auth::Credentials;
use crate::query::Query;
use crate::request::{Body, malformed, only, present};
use crate::routes::{Answered, Parts, parts, read_body};
use crate::write::time;

/// `GET /workflows`: the newest under each id.
pub(crate) async fn workflows(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(&headers))?.asker();
    let query = Query::read(query.as_deref(), &["limit", "cursor"])?;
    let (limit, after) = (query.limit()?, query.workflow_cursor()?.unwrap_or("").to_owned());
    let body = Arc::clone(&service)
        .read_apart(asker, move |_| {
            // One more says whether there is a next page.
            let page = service.gate.ledger().workflows(&after, limit.saturating_add(1));
            let mut page = page.map_err(|_| Refusal::of_code(Code::FaultStore))?;
            let full = page.len() > limit;
            page.truncate(limit);
            let next_cursor = page.last().filter(|_| full).map(|head| head.id.clone());
            let workflows = page.iter().map(|head| service.shown(head)).collect::<Result<Vec<_>, Refusal>>()?;
            Ok(write(&WorkflowPage { workflows, next_cursor }))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// `GET /workflows/:id`: the newest under an id, with what the analysis finds.
pub(crate) async fn workflow(State(service): State<Arc<Service>>, path: Parts<String>, headers: HeaderMap) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(&headers))?.asker();
    let id = parts(path)?;
    let body = Arc::clone(&service)
        .read_apart(asker, move |_| {
            let found = service.gate.registered(&nfc(&id)).map_err(|_| Refusal::of_code(Code::FaultStore))?;
            let (head, workflow) = found.ok_or_else(unknown_workflow)?;
            let findings = service.gate.findings(&workflow).ok_or_else(|| Refusal::of_code(Code::FaultInternal))?;
            let findings = Some(findings.iter().map(finding).collect());
            let workflow = Some(RawJson::written(workflow.text().to_owned()));
            Ok(write(&RegisteredWorkflow { findings, workflow, ..service.shown(&head)? }))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// `POST /workflows`: a workflow becomes the newest under its id, if it is not that already.
pub(crate) async fn register(State(service): State<Arc<Service>>, request: Request) -> Answered {
    service.count_request();
    let operator = service.operator(&Credentials::read(request.headers()))?.only(&[Role::Admin])?;
    let (asker, by) = (operator.asker(), operator.actor);
    let bytes = read_body(request).await?;
    let work = move |_: &mut usize| {
        let body = Body::read(&bytes)?;
        only(body.root(), RegisterRequest::MEMBERS)?;
        definition(present(body.root(), "workflow").ok_or_else(|| malformed("workflow is required"))?)
    };
    let workflow = service.read_apart(asker, work).await?;
    let workflow = Arc::new(workflow);
    let command = Command::RegisterWorkflow { workflow: Arc::clone(&workflow), by };
    let recorded = recorded(service.submit(command).await)?;
    let EntryBody::WorkflowRegistered(registered) = &recorded.entry.body else {
        return Err(Refusal::of_code(Code::FaultInternal));
    };
    let head = WorkflowHead::of(registered, &workflow, recorded.entry.at, 0);
    let status = if recorded.replayed { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, write(&shown(&head, recorded.index))))
}

/// A workflow as a request has it, or the first problem with it.
pub(crate) fn definition(written: Value<'_>) -> Result<Workflow, Refusal> {
    let loaded = load(written.source(), Format::Json, &Limits::MAX);
    loaded.map(|loaded| loaded.workflow).map_err(|problems| {
        let first =
            problems.first().map_or_else(String::new, |problem| format!("{}: {}", problem.path, problem.message));
        Refusal::new(Code::ConfigInvalid, format!("the workflow cannot be loaded: {first}"))
    })
}

pub(crate) fn unknown_workflow() -> Refusal {
    let message = "no such workflow is registered; see GET /workflows";
    Refusal::new(Code::WorkflowNoRun, message).with_status(StatusCode::NOT_FOUND)
}

impl Service {
    fn shown(&self, head: &WorkflowHead) -> Result<RegisteredWorkflow, Refusal> {
        let found = self.gate.ledger().entry_of(None, head.entry).ok().flatten();
        let found = found.ok_or_else(|| Refusal::of_code(Code::FaultStore))?;
        Ok(shown(head, found.place))
    }

    /// Whether there is a workflow under an id that a run can be started with.
    pub(crate) fn check_registered(&self, id: &str, host: Host) -> Result<(), Refusal> {
        // No id is longer; what is, is not looked up.
        if id.chars().count() > NAME_CHARS_MAX {
            return Err(unknown_workflow());
        }
        let id = nfc(id);
        let found = self.gate.ledger().workflow(&id).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        found.ok_or_else(unknown_workflow)?;
        // What cannot be read is refused where a run would be started with it.
        let found = self.gate.registered(&id).ok().flatten();
        found.map_or(Ok(()), |(_, workflow)| self.check_runner(&workflow, host))
    }

    /// Whether a host has the runner that a workflow needs.
    pub(crate) fn check_runner(&self, workflow: &Workflow, host: Host) -> Result<(), Refusal> {
        match workflow.needs_runner().filter(|_| !self.has_runner(host)) {
            None => Ok(()),
            Some(setting) => Err(no_runner(&format!("`{setting}`"), host)),
        }
    }
}

/// A workflow that needs a runner where there is none.
pub(crate) fn no_runner(setting: &str, host: Host) -> Refusal {
    let remedy = match host.rewrites() {
        Rewriting::Held | Rewriting::Advisory => format!("`interlock install {host}` puts it in its place"),
        Rewriting::None => "this host lets no command line be handed to one, so leave the setting out".to_owned(),
    };
    let message = format!("the workflow has {setting}, which a runner enforces, and {host} has none here: {remedy}");
    Refusal::new(Code::ConfigInvalid, message)
}

/// A workflow as it is told; its entry by its place in the tree, by which a proof is asked for.
fn shown(head: &WorkflowHead, place: u64) -> RegisteredWorkflow {
    RegisteredWorkflow {
        id: head.id.clone(),
        version: head.version,
        digest: head.digest.to_string(),
        description: head.description.clone(),
        states: head.states,
        registered_at: time(head.registered_at),
        registered_by: head.by.name.clone(),
        entry: place,
        findings: None,
        workflow: None,
    }
}

fn finding(finding: &Finding) -> WorkflowFinding {
    WorkflowFinding {
        severity: finding.severity.to_string(),
        name: finding.name.to_owned(),
        path: finding.path(),
        message: finding.message.clone(),
        help: finding.help.clone(),
    }
}
