//! How a request for a ruling is read. Every field is known, every value has its type; whatever does not fit is refused
//! with a code, and nothing is consumed.

use interlock_core::action::{
    ActionContext, ActionName, ActionText, Door, Facts, Risk, Usage, UsdMicros, fingerprints,
};
use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Content, Document, JsonError, JsonErrorKind, Limits, Value};
use interlock_core::{Code, Digest, display};
use interlock_wire as wire;

use crate::answer::Refusal;

/// A body as it was read.
#[derive(Debug)]
pub(crate) struct Body<'t> {
    document: Document<'t>,
}

/// A request, with the text that verifiers will read.
#[derive(Debug)]
pub(crate) struct Question<'d> {
    pub(crate) facts: Facts,
    pub(crate) action: ActionText<'d>,
}

impl<'t> Body<'t> {
    /// Reads a body that must be a JSON object.
    pub(crate) fn read(bytes: &'t [u8]) -> Result<Body<'t>, Refusal> {
        let document = json::parse_bytes(bytes, &Limits::STATE).map_err(|error| not_json(bytes, &error))?;
        if document.root().as_object().is_none() {
            return Err(malformed("the body must be a JSON object"));
        }
        Ok(Body { document })
    }

    /// Reads a body that may be absent.
    pub(crate) fn read_optional(bytes: &'t [u8]) -> Result<Option<Body<'t>>, Refusal> {
        if bytes.is_empty() { Ok(None) } else { Body::read(bytes).map(Some) }
    }

    /// What a person would have to decide on: the action, and what was said about it.
    pub(crate) fn kept_text(&self, door: Door, tool: &str) -> String {
        let root = self.root();
        let mut text = String::with_capacity(256);
        text.push_str("{\"action\":");
        match door {
            Door::Verify => text.push_str(root.get("action").map_or("null", |action| action.source())),
            Door::Tools | Door::Call => {
                text.push_str("{\"tool\":");
                text.push_str(&json::quote(tool));
                text.push_str(",\"parameters\":");
                text.push_str(root.get("parameters").map_or("null", |parameters| parameters.source()));
                text.push('}');
            }
        }
        let intent = root.get("context").and_then(|context| context.get("user_intent"));
        for (key, value) in [("user_intent", intent), ("justification", root.get("justification"))] {
            if let Some(value) = value {
                text.push_str(",\"");
                text.push_str(key);
                text.push_str("\":");
                text.push_str(value.source());
            }
        }
        text.push('}');
        text
    }

    pub(crate) fn root(&self) -> Value<'_> {
        self.document.root()
    }

    /// The SHA-256 of the token in the body.
    pub(crate) fn agent_token(&self) -> Option<Digest> {
        self.root().get("agent_token")?.as_str().map(|token| Digest::of(&[token.text()]))
    }

    /// The SHA-256 of what is asked, however it is spelled. The token is not part of it: it may be rotated meanwhile.
    pub(crate) fn digest(&self, path: &str) -> Digest {
        let asked = self.root().members_in_canonical_order().filter(|(key, _)| key.text() != "agent_token");
        let asked: Vec<String> =
            asked.map(|(key, value)| format!("{}:{}", json::quote(key.text()), json::canonical(value))).collect();
        Digest::of(&[path, "\n", &asked.join(",")])
    }

    /// Reads `POST /agents/:id/verify`.
    pub(crate) fn verify<'d>(&'d self, agent: &str, bundle: &Bundle) -> Result<Question<'d>, Refusal> {
        let root = self.root();
        only(root, wire::VerifyRequest::MEMBERS)?;
        check_agent(root, agent)?;
        let action = required_object(root, "action")?;
        only(action, wire::Action::MEMBERS)?;
        let kind = match (present(action, "type"), present(action, "action_type")) {
            (Some(kind), None) | (None, Some(kind)) => kind,
            (Some(_), Some(_)) => return Err(malformed("action has both `type` and `action_type`")),
            (None, None) => return Err(malformed("action.type is required")),
        };
        let kind = kind.as_str().ok_or_else(|| malformed("action.type must be a string"))?.text();
        let text = ActionText {
            kind,
            query: text_or_null(action, "query")?,
            code: text_or_null(action, "code")?,
            target: text_or_null(action, "target")?,
            parameters: object_or_null(action, "parameters")?,
        };
        self.question(Door::Verify, kind, text, bundle)
    }

    /// Reads `POST /agents/:id/tools/:tool`.
    pub(crate) fn tool<'d>(&'d self, agent: &str, tool: &'d str, bundle: &Bundle) -> Result<Question<'d>, Refusal> {
        let root = self.root();
        only(root, wire::ToolRequest::MEMBERS)?;
        check_agent(root, agent)?;
        text_or_null(root, "justification")?;
        let parameters = object_or_null(root, "parameters")?;
        let text = ActionText { kind: tool, query: None, code: None, target: None, parameters };
        let mut question = self.question(Door::Tools, tool, text, bundle)?;
        question.facts.risk_tenths = Some(risk_tenths(tool, parameters));
        Ok(question)
    }

    fn question<'d>(
        &'d self,
        door: Door,
        kind: &str,
        action: ActionText<'d>,
        bundle: &Bundle,
    ) -> Result<Question<'d>, Refusal> {
        let root = self.root();
        let context = self.context(bundle)?;
        let (fingerprint, likeness) = fingerprints(&action, bundle.registry().identity(kind));
        let mut facts = Facts::new(door, ActionName::parse(kind), fingerprint, context);
        facts.likeness = likeness;
        if let Some(options) = object_or_null(root, "options")? {
            only(options, wire::Options::MEMBERS)?;
            facts.require_attestation = boolean(options, "require_attestation")?;
            facts.dry_run = boolean(options, "dry_run")?;
            facts.risk_threshold = match text_or_null(options, "risk_threshold")?.and_then(|word| word.as_str()) {
                Some(word) => Some(
                    Risk::parse(word.text())
                        .ok_or_else(|| malformed("options.risk_threshold must be low, medium, high or critical"))?,
                ),
                None => None,
            };
        }
        if let Some(usage) = object_or_null(root, "usage")? {
            only(usage, wire::Usage::MEMBERS)?;
            facts.usage = Usage {
                cost_usd: dollars(usage, "cost_usd")?.unwrap_or_default(),
                tokens: count(usage, "tokens")?.unwrap_or(0),
            };
        }
        Ok(Question { facts, action })
    }

    fn context(&self, bundle: &Bundle) -> Result<ActionContext, Refusal> {
        let context = present(self.root(), "context");
        if let Some(context) = context {
            if context.as_object().is_none() {
                return Err(malformed("context must be an object"));
            }
            only(context, wire::Context::MEMBERS)?;
            text_or_null(context, "conversation_id")?;
            text_or_null(context, "user_intent")?;
        }
        ActionContext::parse(context, bundle.observed_required())
            .map_err(|fault| Refusal::new(fault.code, fault.message))
    }
}

/// Informational: 0.2, more for names and parameters that sound dangerous, at most 1.0. In tenths.
fn risk_tenths(tool: &str, parameters: Option<Value<'_>>) -> u8 {
    let tool = tool.to_lowercase();
    let names = |words: [&str; 2]| words.iter().any(|word| tool.contains(word));
    let text = parameters.map(|parameters| parameters.source().to_lowercase()).unwrap_or_default();
    let mentions = text.contains("database") || text.contains("admin");
    let mut tenths = 2_u8;
    for (holds, more) in [(names(["delete", "drop"]), 5), (names(["money", "payment"]), 4), (mentions, 2)] {
        if holds {
            tenths = tenths.saturating_add(more);
        }
    }
    tenths.min(10)
}

pub(crate) fn malformed(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::RequestMalformed, message)
}

/// A member that is there and not null.
pub(crate) fn present<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).filter(|value| !matches!(value.content(), Some(Content::Null)))
}

/// Refuses members that nobody reads.
pub(crate) fn only(object: Value<'_>, known: &[&str]) -> Result<(), Refusal> {
    for (key, _) in object.as_object().into_iter().flatten() {
        if !known.contains(&key.text()) {
            let message = format!("unknown field `{}`; known are {}", display(key.text()), known.join(", "));
            return Err(Refusal::new(Code::RequestField, message));
        }
    }
    Ok(())
}

pub(crate) fn required_object<'d>(object: Value<'d>, key: &str) -> Result<Value<'d>, Refusal> {
    object_or_null(object, key)?.ok_or_else(|| malformed(format!("{key} is required")))
}

pub(crate) fn object_or_null<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Refusal> {
    match present(object, key) {
        Some(value) if value.as_object().is_none() => Err(malformed(format!("{key} must be an object"))),
        value => Ok(value),
    }
}

pub(crate) fn text_or_null<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Refusal> {
    match present(object, key) {
        Some(value) if value.as_str().is_none() => Err(malformed(format!("{key} must be a string"))),
        value => Ok(value),
    }
}

pub(crate) fn boolean(object: Value<'_>, key: &str) -> Result<bool, Refusal> {
    match present(object, key) {
        Some(value) => value.as_bool().ok_or_else(|| malformed(format!("{key} must be true or false"))),
        None => Ok(false),
    }
}

/// The longest reason or justification.
const REASON_BYTES_MAX: usize = 4_096;

/// Why, in somebody's words.
pub(crate) fn reason(object: Value<'_>, key: &str) -> Result<Option<String>, Refusal> {
    let text = text_or_null(object, key)?.and_then(|text| text.as_str()).map(|text| text.text().to_owned());
    match text {
        Some(text) if text.len() > REASON_BYTES_MAX => {
            Err(malformed(format!("{key} has more than {REASON_BYTES_MAX} bytes")))
        }
        text => Ok(text),
    }
}

/// The body of something that is done for a reason, if one is given.
pub(crate) fn read_reason(bytes: &[u8]) -> Result<Option<String>, Refusal> {
    let Some(body) = Body::read_optional(bytes)? else { return Ok(None) };
    only(body.root(), wire::ReasonRequest::MEMBERS)?;
    reason(body.root(), "reason")
}

/// A number of dollars with at most six places.
pub(crate) fn dollars(object: Value<'_>, key: &str) -> Result<Option<UsdMicros>, Refusal> {
    let Some(value) = present(object, key) else { return Ok(None) };
    let amount = value.as_number().and_then(|number| UsdMicros::parse(number.literal()));
    let refused = || malformed(format!("{key} must be a number of dollars, 0 or more, with at most six places"));
    amount.map(Some).ok_or_else(refused)
}

/// An integer of 0 or more.
pub(crate) fn count(object: Value<'_>, key: &str) -> Result<Option<u64>, Refusal> {
    const COUNT_MAX: u64 = 1 << 53;
    let Some(value) = present(object, key) else { return Ok(None) };
    let number = value.as_number().filter(json::Number::is_integer).and_then(|number| number.to_i128());
    let count = number.and_then(|number| u64::try_from(number).ok()).filter(|count| *count <= COUNT_MAX);
    count.map(Some).ok_or_else(|| malformed(format!("{key} must be an integer, 0 or more")))
}

fn check_agent(root: Value<'_>, agent: &str) -> Result<(), Refusal> {
    text_or_null(root, "agent_token")?;
    match text_or_null(root, "agent_id")?.and_then(|id| id.as_str()) {
        Some(id) if id.text() != agent => Err(malformed("agent_id is not the agent of this path")),
        Some(_) | None => Ok(()),
    }
}

/// A text that is no JSON is malformed; but a value among the parameters that two readers could read differently is
/// STATE-004, as documented.
fn not_json(bytes: &[u8], error: &JsonError) -> Refusal {
    let ambiguous = matches!(
        error.kind,
        JsonErrorKind::NonStandardConstant(_)
            | JsonErrorKind::TooManyDigits(_)
            | JsonErrorKind::ExponentTooLarge(_)
            | JsonErrorKind::LoneSurrogate
            | JsonErrorKind::DuplicateKey(_)
            | JsonErrorKind::DuplicateNormalizedKey(_)
    );
    if ambiguous && is_in_parameters(bytes, error.offset) {
        let message = format!("action parameters must be deterministic JSON values: {error}");
        return Refusal::new(Code::StateParameters, message);
    }
    malformed(format!("not strict JSON: {error}"))
}

/// Whether a place in a text that is sound up to there lies in `parameters`, of the action or of a tool call.
fn is_in_parameters(bytes: &[u8], offset: usize) -> bool {
    let mut open: Vec<String> = Vec::new();
    let (mut key, mut text, mut in_text, mut escaped) = (String::new(), String::new(), false, false);
    for byte in bytes.iter().take(offset) {
        let character = char::from(*byte);
        match (in_text, character) {
            (true, _) if escaped => {
                escaped = false;
                text.push(character);
            }
            (true, '\\') => escaped = true,
            (true, '"') => in_text = false,
            (true, _) => text.push(character),
            (false, '"') => {
                in_text = true;
                text.clear();
            }
            (false, ':') => key.clone_from(&text),
            (false, '{' | '[') => open.push(std::mem::take(&mut key)),
            (false, '}' | ']') => key = open.pop().unwrap_or_default(),
            (false, ',') if open.len() <= 2 => key.clear(),
            (false, _) => {}
        }
    }
    let path: Vec<&str> = open.iter().map(String::as_str).skip(1).chain([key.as_str()]).collect();
    matches!(path.as_slice(), ["action", "parameters", ..] | ["parameters", ..])
}
