//! The control tools: where a run stands, and the event that moves it.

use core::fmt;

use interlock_core::json::{self, Json, Limits, quote};
use interlock_core::ledger::{TransitionOutcome, Transitioned};
use interlock_core::workflow::{Context, Ended, Outcome, State, state_of, ways_out, why_unmet};
use interlock_core::{Cause, Code, display};
use interlock_hosts::Host;
use interlock_runtime::call_gate::Standing;
use interlock_runtime::tool_door::DoorFault;

use super::Hooks;
use crate::write::Object;

/// What a control server asks.
struct ControlAsked {
    project: String,
    request: Request,
}

enum Request {
    GetState,
    Transition { event: String, data: Context, expected_revision: Option<u64> },
}

/// Why a control tool gets no answer.
#[derive(Debug)]
pub(super) enum ControlFault {
    /// What was asked cannot be read.
    Unread(Cause),
    NoDirectory,
    Door(DoorFault),
}

impl fmt::Display for ControlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlFault::Unread(cause) => cause.fmt(f),
            ControlFault::NoDirectory => f.write_str("there is no such directory"),
            ControlFault::Door(fault) => f.write_str(&super::words::fault(fault)),
        }
    }
}

impl Hooks {
    /// Answers a control tool: a JSON object, and whether it is a refusal.
    pub(super) fn control(&self, host: Host, bytes: &[u8]) -> Result<(bool, String), ControlFault> {
        let ControlAsked { project, request } = read(bytes).map_err(ControlFault::Unread)?;
        let place = self.door.place_in(host.as_str(), &project).ok_or(ControlFault::NoDirectory)?;
        let answered = match request {
            Request::GetState => self.door.standing(&place).map(|standing| match &standing.run.position {
                Some(_) => (false, state_object(&standing)),
                None => (true, no_run(&standing)),
            }),
            Request::Transition { event, data, expected_revision } => {
                let made = self.door.transition(host.as_str(), &place, event, data, expected_revision);
                made.and_then(|made| self.door.standing(&place).map(|standing| transition_object(&made, &standing)))
            }
        };
        answered.map_err(ControlFault::Door)
    }
}

/// What a transition led to, and whether it was refused.
fn transition_object(made: &Transitioned, standing: &Standing) -> (bool, String) {
    let state = current(standing);
    match &made.outcome {
        TransitionOutcome::Moved { from, to } => {
            let object = Object::new().raw("transitioned", true).text("from", from).text("to", to);
            (false, told(object, standing, state).end())
        }
        TransitionOutcome::Parked { approval_id, from, to, message, .. } => {
            let object = Object::new()
                .raw("transitioned", false)
                .text("from", from)
                .text("to", to)
                .text("approval_id", approval_id)
                .optional_text("approval_message", message.as_deref());
            (false, told(object, standing, state).end())
        }
        TransitionOutcome::Refused { code, message, unmet } => {
            let why = standing.workflow.as_deref().map(|workflow| why_unmet(workflow, &standing.run, unmet));
            let reason = [message.clone()].into_iter().chain(why.unwrap_or_default()).collect::<Vec<_>>().join("; ");
            let object =
                refusal(*code, &reason, standing).raw("unmet", texts(unmet)).text("decision_id", &made.decision_id);
            (true, object.end())
        }
    }
}

fn current(standing: &Standing) -> Option<&State> {
    let position = standing.run.position.as_ref()?;
    state_of(standing.workflow.as_deref()?, position)
}

fn told(object: Object, standing: &Standing, state: Option<&State>) -> Object {
    object
        .raw("revision", standing.run.revision)
        .optional_text("instructions", state.and_then(|state| state.instructions.as_deref()))
        .raw("allowed_tools", allowed_tools(state))
}

fn texts(list: &[String]) -> String {
    format!("[{}]", list.iter().map(|text| quote(text)).collect::<Vec<_>>().join(","))
}

/// The list of a state; `null` is all.
fn allowed_tools(state: Option<&State>) -> String {
    let tools = state.and_then(|state| state.allowed_tools.as_ref());
    tools.map_or_else(
        || "null".to_owned(),
        |tools| format!("[{}]", tools.iter().map(|tool| quote(&tool.to_string())).collect::<Vec<_>>().join(",")),
    )
}

fn transitions(standing: &Standing) -> String {
    let ways = standing.workflow.as_deref().map(|workflow| ways_out(workflow, &standing.run)).unwrap_or_default();
    let ways = ways.iter().map(|way| {
        Object::new()
            .text("event", &way.event)
            .text("target", &way.target)
            .raw("unmet", texts(&way.unmet))
            .raw("why", texts(&way.why))
            .raw("requires_approval", way.asks)
            .end()
    });
    format!("[{}]", ways.collect::<Vec<_>>().join(","))
}

fn iterations_left(standing: &Standing) -> String {
    let max = current(standing).and_then(|state| state.max_iterations);
    let used = standing.run.position.as_ref().map_or(0, |position| position.iterations);
    max.map_or_else(|| "null".to_owned(), |max| max.saturating_sub(used).to_string())
}

/// Where a run stands.
pub(crate) fn state_object(standing: &Standing) -> String {
    let (Some(position), state) = (&standing.run.position, current(standing)) else { return no_run(standing) };
    let outcome = match &position.ended {
        Some(Ended::Final(outcome)) => Some(Outcome::as_str(*outcome)),
        Some(Ended::Stopped) => Some("stopped"),
        None => None,
    };
    let parked = position.parked.as_ref().map(|parked| parked.approval_id.as_str());
    let object = Object::new()
        .text("run_id", &position.run_id)
        .text("workflow", &position.name)
        .text("state", &position.state)
        .raw("is_final", position.ended.is_some())
        .optional_text("outcome", outcome);
    told(object, standing, state)
        .raw("transitions", transitions(standing))
        .raw("context", standing.run.shown_context().canonical())
        .raw("iterations", position.iterations)
        .raw("iterations_left", iterations_left(standing))
        .optional_text("pending_approval", parked)
        .optional_text("frozen", standing.run.frozen.as_deref())
        .end()
}

fn no_run(standing: &Standing) -> String {
    let message = "no workflow runs here; a person starts one with `interlock workflow start`";
    refusal(Code::WorkflowNoRun, message, standing).end()
}

fn refusal(code: Code, reason: &str, standing: &Standing) -> Object {
    let state = standing.run.position.as_ref().map(|position| position.state.as_str());
    Object::new()
        .text("code", code.as_str())
        .optional_text("state", state)
        .text("reason", reason)
        .raw("allowed_tools", allowed_tools(current(standing)))
        .raw("transitions", transitions(standing))
        .raw("iterations_left", iterations_left(standing))
        .raw("revision", standing.run.revision)
}

fn read(bytes: &[u8]) -> Result<ControlAsked, Cause> {
    let document = json::parse_bytes(bytes, &Limits::STATE).map_err(Cause::of)?;
    let root = document.root();
    let members = root.as_object().ok_or("an object is needed")?;
    for (key, _) in members {
        if !["project", "request"].contains(&key.text()) {
            return Err(format!("there is no member `{}`", display(key.text())).into());
        }
    }
    let project = root.get("project").and_then(|project| project.as_str()).ok_or("`project` is a string")?;
    let request = root.get("request").ok_or("`request` is missing")?;
    let request = match (request.get("get_state"), request.get("transition")) {
        (Some(_), None) => Request::GetState,
        (None, Some(asked)) => {
            let event = asked.get("event").and_then(|event| event.as_str()).ok_or("`event` is a string")?;
            let data = match asked.get("data").map(Json::of) {
                None | Some(Json::Null) => Context::default(),
                Some(Json::Object(members)) => Context::from(members),
                Some(Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_)) => {
                    return Err("`data` is an object".into());
                }
            };
            let expected_revision = match asked.get("expected_revision") {
                None => None,
                Some(number) if matches!(Json::of(number), Json::Null) => None,
                Some(number) => {
                    let number = number.as_number().and_then(|number| number.to_i128());
                    Some(number.and_then(|number| u64::try_from(number).ok()).ok_or("`expected_revision` is a count")?)
                }
            };
            Request::Transition { event: event.text().to_owned(), data, expected_revision }
        }
        (Some(_), Some(_)) | (None, None) => return Err("`get_state` or `transition`, and one of them".into()),
    };
    Ok(ControlAsked { project: project.text().to_owned(), request })
}
