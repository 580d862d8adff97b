//! What one message is: a request, or something that wants no answer; and what is said about one that is neither.
//!
//! Faults say what is wrong and where. They hold none of the text, except names in `display` form.

use std::collections::BTreeMap;

use interlock_core::display;
use interlock_core::json::{Json, JsonError, JsonErrorKind, Kind, Value};

use crate::revision::Revision;

/// The longest id of a request, as it is written.
const ID_BYTES_MAX: usize = 1024;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Who asked: a string or an integer, answered as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(Json);

impl RequestId {
    /// The id, if the value can be one.
    pub(crate) fn read(value: Value<'_>) -> Option<RequestId> {
        let fits = matches!(value.kind(), Some(Kind::String | Kind::Integer)) && value.source().len() <= ID_BYTES_MAX;
        fits.then(|| RequestId(Json::of(value)))
    }
}

/// A message that was understood.
pub(crate) enum Message<'d> {
    Request {
        id: RequestId,
        method: &'d str,
        params: Option<Value<'d>>,
    },
    Notification {
        method: &'d str,
        params: Option<Value<'d>>,
    },
    /// An answer to something that was never asked here.
    Response,
}

/// What is no message: the answer to it.
pub(crate) struct NoMessage {
    pub(crate) answer: String,
}

impl<'d> Message<'d> {
    /// Reads one.
    pub(crate) fn read(value: Value<'d>) -> Result<Message<'d>, NoMessage> {
        let id = value.get("id");
        let known = id.and_then(RequestId::read);
        let malformed = |what: &str| Err(NoMessage { answer: Problem::malformed(what).answer(known.as_ref()) });
        if value.as_object().is_none() {
            return malformed("a message is an object");
        }
        if value.get("jsonrpc").and_then(|version| version.as_str()).map(|version| version.text()) != Some("2.0") {
            return malformed("`jsonrpc` must be \"2.0\"");
        }
        let is_response = value.get("result").is_some() || value.get("error").is_some();
        let Some(method) = value.get("method") else {
            return if is_response { Ok(Message::Response) } else { malformed("`method` is missing") };
        };
        let Some(method) = method.as_str().map(|method| method.text()) else {
            return malformed("`method` must be a string");
        };
        if is_response {
            return malformed("a message is a request or a response, not both");
        }
        let params = value.get("params");
        match (id, known.clone()) {
            (None, _) => Ok(Message::Notification { method, params }),
            (Some(_), Some(id)) => Ok(Message::Request { id, method, params }),
            (Some(_), None) => malformed("`id` must be a string or an integer, and short"),
        }
    }
}

/// The revision that a request names in its `_meta`; `None` if it names none, as legacy requests do not.
pub(crate) fn envelope(params: Option<Value<'_>>) -> Result<Option<Revision>, Problem> {
    let Some(params) = params else { return Ok(None) };
    if params.as_object().is_none() {
        return Err(Problem::invalid("`params` must be an object"));
    }
    let Some(meta) = params.get("_meta") else { return Ok(None) };
    if meta.as_object().is_none() {
        return Err(Problem::invalid("`_meta` must be an object"));
    }
    let Some(wanted) = meta.get(VERSION_KEY) else { return Ok(None) };
    let Some(wanted) = wanted.as_str() else {
        return Err(Problem::invalid(format!("`_meta` must name a revision as a string: `{VERSION_KEY}`")));
    };
    if wanted.text() != Revision::V2026_07_28.as_str() {
        return Err(Problem::unsupported(wanted.text()));
    }
    if meta.get(CAPABILITIES_KEY).is_none_or(|capabilities| capabilities.as_object().is_none()) {
        return Err(Problem::invalid(format!("`_meta` must hold an object `{CAPABILITIES_KEY}`")));
    }
    Ok(Some(Revision::V2026_07_28))
}

/// Why a message gets an error and no result.
pub(crate) struct Problem {
    code: i64,
    message: String,
    data: Option<Json>,
}

impl Problem {
    fn new(code: i64, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), data: None }
    }

    /// The line is no JSON that has one meaning.
    pub(crate) fn unreadable(error: &JsonError) -> Problem {
        // Keys and paths are the sender's text.
        let what = match &error.kind {
            JsonErrorKind::DuplicateKey(_) => "a key stands twice in one object".to_owned(),
            JsonErrorKind::DuplicateNormalizedKey(_) => "two keys of one object are one after NFC".to_owned(),
            JsonErrorKind::TooDeep { limit, .. } => format!("values nest to depth {limit}"),
            kind @ (JsonErrorKind::Expected(_)
            | JsonErrorKind::UnexpectedEnd
            | JsonErrorKind::TrailingText
            | JsonErrorKind::NotUtf8
            | JsonErrorKind::ByteOrderMark
            | JsonErrorKind::NonStandardConstant(_)
            | JsonErrorKind::ControlCharacter
            | JsonErrorKind::BadEscape
            | JsonErrorKind::LoneSurrogate
            | JsonErrorKind::TooManyBytes(_)
            | JsonErrorKind::TooManyNodes(_)
            | JsonErrorKind::TooManyDigits(_)
            | JsonErrorKind::ExponentTooLarge(_)) => kind.to_string(),
        };
        Problem::new(-32700, format!("not JSON with one meaning: {what} (byte {})", error.offset))
    }

    /// It is JSON and no message.
    pub(crate) fn malformed(what: impl Into<String>) -> Problem {
        Problem::new(-32600, what)
    }

    pub(crate) fn no_method(method: &str) -> Problem {
        Problem::new(-32601, format!("there is no method '{}' here", display(method)))
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Problem {
        Problem::new(-32602, what)
    }

    /// A request that names no revision, where no session was opened.
    pub(crate) fn no_revision() -> Problem {
        Problem::invalid(format!(
            "a request must name its revision: `{VERSION_KEY}` and `{CAPABILITIES_KEY}` in `_meta`; clients of earlier \
             revisions open with `initialize`"
        ))
    }

    /// Codes from -32000 to -32019 are ours to give.
    pub(crate) fn busy(waiting_max: usize) -> Problem {
        Problem::new(-32000, format!("{waiting_max} calls wait for an answer already; try again when one has come"))
    }

    fn unsupported(wanted: &str) -> Problem {
        let requested = Json::String(display(wanted).to_string());
        let data = object([("requested", requested), ("supported", Revision::supported())]);
        Problem { data: Some(data), ..Problem::new(-32022, "unsupported protocol version") }
    }

    /// The answer to whoever asked; where that cannot be known, JSON-RPC wants a null.
    pub(crate) fn answer(self, id: Option<&RequestId>) -> String {
        let mut error = vec![("code", Json::from(self.code)), ("message", Json::String(self.message))];
        error.extend(self.data.map(|data| ("data", data)));
        let id = id.map_or(Json::Null, |id| id.0.clone());
        object([("error", object(error)), ("id", id), ("jsonrpc", "2.0".into())]).canonical()
    }
}

/// A result, as a whole answer.
pub(crate) fn answer(id: &RequestId, result: Json) -> String {
    object([("id", id.0.clone()), ("jsonrpc", "2.0".into()), ("result", result)]).canonical()
}

/// An object of these members.
pub(crate) fn object<'k>(members: impl IntoIterator<Item = (&'k str, Json)>) -> Json {
    Json::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<BTreeMap<_, _>>())
}
