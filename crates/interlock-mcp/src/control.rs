//! What a control tool asks of the daemon, and what the daemon may answer.

use std::collections::BTreeMap;

use interlock_core::json::{self, Json, Limits, Value};
use interlock_core::{Code, display};

use crate::message::object;
use crate::tools::Tool;

/// The longest name of an event.
pub(crate) const EVENT_CHARS_MAX: u64 = 128;

/// Gemini CLI offers this flag with each tool of every server, as if it were the server's, and sends it on: whether the
/// call waits for those before it. It asks for nothing here.
const HOST_S_OWN: &str = "wait_for_previous";

/// A question for the daemon. Its arguments have been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRequest {
    /// Where does the run stand?
    GetState,
    /// May it move on?
    Transition {
        /// The event that leads there.
        event: String,
        /// What the agent claims.
        data: Option<BTreeMap<String, Json>>,
        /// The revision that the agent has seen.
        expected_revision: Option<u64>,
    },
}

impl ControlRequest {
    /// The question as the daemon reads it: `{"get_state":{}}` or `{"transition":{…}}`.
    pub fn to_json(&self) -> Json {
        match self {
            ControlRequest::GetState => object([("get_state", object([]))]),
            ControlRequest::Transition { event, data, expected_revision } => {
                let mut members = vec![("event", Json::from(event.as_str()))];
                members.extend(data.clone().map(|data| ("data", Json::Object(data))));
                members.extend(expected_revision.map(|revision| ("expected_revision", Json::from(revision))));
                object([("transition", object(members))])
            }
        }
    }

    /// Reads a call's arguments, an object or nothing at all.
    pub(crate) fn read(tool: Tool, arguments: Option<Value<'_>>) -> Result<ControlRequest, ControlFault> {
        let known: &[&str] = match tool {
            Tool::GetState => &[],
            Tool::Transition => &["event", "data", "expected_revision"],
        };
        let mut members = arguments.and_then(|arguments| arguments.as_object()).into_iter().flatten();
        let is_host_s = |key: &str, value: Value<'_>| key == HOST_S_OWN && value.as_bool().is_some();
        if let Some((key, _)) =
            members.find(|(key, value)| !known.contains(&key.text()) && !is_host_s(key.text(), *value))
        {
            let takes = if known.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", list(known)) };
            let reason = format!("there is no argument '{}'; {takes}", display(key.text()));
            return Err(ControlFault::of(Code::RequestField, reason));
        }
        let argument = |name: &str| arguments.and_then(|arguments| arguments.get(name));
        match tool {
            Tool::GetState => Ok(ControlRequest::GetState),
            Tool::Transition => Ok(ControlRequest::Transition {
                event: read_event(argument("event"))?,
                data: argument("data").map(read_data).transpose()?,
                expected_revision: argument("expected_revision").map(read_revision).transpose()?,
            }),
        }
    }
}

fn malformed(what: impl Into<String>) -> ControlFault {
    ControlFault::of(Code::RequestMalformed, what)
}

fn read_event(event: Option<Value<'_>>) -> Result<String, ControlFault> {
    let Some(event) = event else { return Err(malformed("`event` is missing")) };
    let Some(event) = event.as_str() else { return Err(malformed("`event` must be a string")) };
    let chars = u64::try_from(event.text().chars().count()).unwrap_or(u64::MAX);
    if chars == 0 || chars > EVENT_CHARS_MAX {
        return Err(malformed(format!("`event` must have 1 to {EVENT_CHARS_MAX} characters")));
    }
    Ok(event.text().to_owned())
}

fn read_data(data: Value<'_>) -> Result<BTreeMap<String, Json>, ControlFault> {
    match Json::of(data) {
        Json::Object(members) => Ok(members),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            Err(malformed("`data` must be an object"))
        }
    }
}

fn read_revision(revision: Value<'_>) -> Result<u64, ControlFault> {
    let integer = revision.as_number().filter(json::Number::is_integer).and_then(|number| number.to_i128());
    let whole = integer.and_then(|integer| u64::try_from(integer).ok());
    whole.ok_or_else(|| malformed("`expected_revision` must be an integer, 0 or more"))
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What the daemon said. Each holds the members that its shape must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlAnswer {
    /// Where the run stands: at least `state` and `revision`.
    State(Json),
    /// Where it went, or what it waits for: at least `transitioned`, `from`, `to` and `revision`.
    Transition(Json),
    /// No: at least `code` and `reason`.
    Refusal(Json),
}

impl ControlAnswer {
    /// Reads the daemon's answer to this request.
    pub fn read(request: &ControlRequest, text: &str) -> Result<ControlAnswer, ControlFault> {
        let strange = || {
            ControlFault::new("the daemon's answer is none that this version understands")
                .and_then_do("ask a person to run `interlock doctor`: daemon and gateway may be of different versions")
        };
        let document = json::parse(text, &Limits::CONFIG).map_err(|_| strange())?;
        let root = document.root();
        let has_text = |name: &str| root.get(name).is_some_and(|value| value.as_str().is_some());
        let has_revision = || root.get("revision").is_some_and(|revision| read_revision(revision).is_ok());
        let answer = Json::of(root);
        if root.get("code").is_some() {
            return if has_text("code") && has_text("reason") {
                Ok(ControlAnswer::Refusal(answer))
            } else {
                Err(strange())
            };
        }
        match request {
            ControlRequest::GetState if has_text("state") && has_revision() => Ok(ControlAnswer::State(answer)),
            ControlRequest::Transition { .. }
                if root.get("transitioned").is_some_and(|value| value.as_bool().is_some())
                    && has_text("from")
                    && has_text("to")
                    && has_revision() =>
            {
                Ok(ControlAnswer::Transition(answer))
            }
            ControlRequest::GetState | ControlRequest::Transition { .. } => Err(strange()),
        }
    }
}

/// Why there is no answer: our trouble, or arguments that make no question. It never counts as a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlFault {
    /// A code, where there is one.
    pub code: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub next: Option<String>,
}

impl ControlFault {
    /// A fault that has no code.
    pub fn new(reason: impl Into<String>) -> ControlFault {
        ControlFault { code: None, reason: reason.into(), next: None }
    }

    /// The same with what to do about it.
    pub fn and_then_do(self, next: impl Into<String>) -> ControlFault {
        ControlFault { next: Some(next.into()), ..self }
    }

    fn of(code: Code, reason: impl Into<String>) -> ControlFault {
        ControlFault { code: Some(code.as_str().to_owned()), ..ControlFault::new(reason) }
    }

    pub(crate) fn to_json(&self) -> Json {
        let mut members = vec![("reason", Json::from(self.reason.as_str()))];
        members.extend(self.code.as_deref().map(|code| ("code", Json::from(code))));
        members.extend(self.next.as_deref().map(|next| ("next", Json::from(next))));
        object(members)
    }
}
