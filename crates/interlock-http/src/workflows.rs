//! Workflows that are registered under their ids: put on record by an admin, listed, read, and started from by name.
//! What a run is started with stays with the run; a newer workflow under the same id counts for new runs.

use std::sync::Arc;

use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::Code;
use interlock_core::json::{Value, nfc, quote};
use interlock_core::ledger::{Body as EntryBody, Role, WorkflowHead, apply_workflow_registered};
use interlock_core::workflow::Workflow;
use interlock_runtime::ledger::Command;
use interlock_workflow::{Finding, Format, Limits, NAME_CHARS_MAX, load};

use crate::Service;
use crate::answer::{Refusal, json, recorded};
use crate::auth::Credentials;
use crate::query::Query;
use crate::request::{Body, malformed, only, present};
use crate::routes::{Answered, Parts, parts, read_body};
use crate::write::{Object, list, time};

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
            let cursor = page.last().filter(|_| full).map(|head| quote(&head.id));
            let shown = page.iter().map(|head| head_object(head).end());
            Ok(Object::new().raw("workflows", list(shown)).limit("next_cursor", cursor).end())
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
            let findings = list(findings.iter().map(finding_object));
            Ok(head_object(&head).raw("findings", findings).raw("workflow", workflow.text()).end())
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
        only(body.root(), &["workflow"])?;
        definition(present(body.root(), "workflow").ok_or_else(|| malformed("workflow is required"))?)
    };
    let workflow = service.read_apart(asker, work).await?;
    let workflow = Arc::new(workflow);
    let command = Command::RegisterWorkflow { workflow: Arc::clone(&workflow), by };
    let recorded = recorded(service.submit(command).await)?;
    let EntryBody::WorkflowRegistered(registered) = &recorded.entry.body else {
        return Err(Refusal::of_code(Code::FaultInternal));
    };
    let head = apply_workflow_registered(registered, &workflow, recorded.entry.at, recorded.index);
    let status = if recorded.replayed { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, head_object(&head).end()))
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
    /// Whether there is a workflow under an id that a run can be started with.
    pub(crate) fn check_registered(&self, id: &str) -> Result<(), Refusal> {
        // No id is longer; what is, is not looked up.
        if id.chars().count() > NAME_CHARS_MAX {
            return Err(unknown_workflow());
        }
        let id = nfc(id);
        let found = self.gate.ledger().workflow(&id).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        found.ok_or_else(unknown_workflow)?;
        // What cannot be read is refused where a run would be started with it.
        let found = self.gate.registered(&id).ok().flatten();
        match found.and_then(|(_, workflow)| workflow.unenforced()) {
            None => Ok(()),
            Some(setting) => {
                let message = format!("nothing enforces `{setting}` yet: register the workflow again without it");
                Err(Refusal::new(Code::ConfigInvalid, message))
            }
        }
    }
}

fn head_object(head: &WorkflowHead) -> Object {
    Object::new()
        .text("id", &head.id)
        .raw("version", head.version)
        .text("digest", &head.digest.to_string())
        .optional_text("description", head.description.as_deref())
        .raw("states", head.states)
        .text("registered_at", &time(head.registered_at))
        .text("registered_by", &head.by.name)
        .raw("entry", head.entry)
}

fn finding_object(finding: &Finding) -> String {
    Object::new()
        .text("severity", finding.severity.as_str())
        .text("name", finding.name)
        .text("path", &finding.path())
        .text("message", &finding.message)
        .text("help", &finding.help)
        .end()
}
