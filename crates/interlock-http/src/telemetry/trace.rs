//! Traces: a span for each ruling and for each reported execution. It decides which trace a span belongs to and what is
//! told of a ruling; it does not know how spans are delivered.
//!
//! A ruling's span has an id that follows from its decision id, so an execution, reported by a later request, names its
//! parent without anybody having kept it. A denial is a span without a child.

use axum::http::HeaderMap;
use interlock_core::action::Decision;
use interlock_core::{Digest, unhex};
use interlock_runtime::clock::hex;

use super::{Note, Traced};
use crate::write::{Object, list};

/// `SPAN_KIND_SERVER`.
const KIND_SERVER: u8 = 2;
/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: u8 = 2;

/// Something that began and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: String,
    began_nanos: u64,
    ended_nanos: u64,
    /// Why it went wrong, if it did.
    error: Option<&'static str>,
    attributes: Vec<(&'static str, Attribute)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Attribute {
    Text(String),
    Flag(bool),
}

/// Where a request says it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceParent {
    trace_id: [u8; 16],
    span_id: [u8; 8],
}

/// When a request began and ended, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) began_nanos: u64,
    pub(crate) ended_nanos: u64,
}

impl TraceParent {
    /// Reads `traceparent`; one that is not valid, or stands twice, is none.
    pub(crate) fn read(headers: &HeaderMap) -> Option<TraceParent> {
        let mut values = headers.get_all("traceparent").iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        TraceParent::parse(value.to_str().ok()?)
    }

    fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.splitn(5, '-');
        let [version] = unhex::<1>(parts.next()?)?;
        let trace_id = unhex::<16>(parts.next()?)?;
        let span_id = unhex::<8>(parts.next()?)?;
        unhex::<1>(parts.next()?)?;
        // Later versions may say more after a dash, the first one may not, and the last number is not a version.
        let is_known = match version {
            0 => parts.next().is_none(),
            0xff => false,
            1..=0xfe => true,
        };
        let is_set = trace_id != [0; 16] && span_id != [0; 8];
        (is_known && is_set).then_some(TraceParent { trace_id, span_id })
    }
}

impl Span {
    /// The span of what a request did, if it did something that has one.
    pub(crate) fn of(
        note: &Note,
        parent: Option<TraceParent>,
        is_tool: bool,
        request_id: &str,
        times: Times,
    ) -> Option<Span> {
        let decision_id = note.decision_id.as_deref()?;
        let mut attributes = vec![("interlock.decision_id", Attribute::Text(decision_id.to_owned()))];
        let mut tell = |key, value: Option<&str>| {
            attributes.extend(value.map(|value| (key, Attribute::Text(value.to_owned()))));
        };
        tell("interlock.agent_id", note.agent_id.as_deref());
        tell("interlock.request_id", Some(request_id));
        tell("interlock.approval_id", note.approval_id.as_deref());
        let trace_id = parent.map_or_else(|| derived_trace(decision_id), |parent| parent.trace_id);
        let (span_id, parent, name, error) = match note.traced.as_ref()? {
            Traced::Ruling { decision, action, risk_level, enforced } => {
                tell("interlock.decision", Some(decision.as_str()));
                tell("interlock.code", note.code);
                tell("interlock.risk_level", *risk_level);
                attributes.push(("interlock.enforced", Attribute::Flag(*enforced)));
                let door = if is_tool { "tool" } else { "verify" };
                let name = action.as_ref().map_or_else(|| door.to_owned(), |action| format!("{door} {action}"));
                let error = match decision {
                    Decision::Denied | Decision::BudgetExceeded => Some(note.code.unwrap_or("denied")),
                    Decision::Approved | Decision::Pending | Decision::Corrected => None,
                };
                (derived_span(decision_id), parent.map(|parent| parent.span_id), name, error)
            }
            Traced::Execution { success } => {
                attributes.push(("interlock.success", Attribute::Flag(*success)));
                let error = (!success).then_some("the execution failed");
                let own = first(Digest::of(&["execution\n", decision_id]));
                (own, Some(derived_span(decision_id)), "execution".to_owned(), error)
            }
        };
        let Times { began_nanos, ended_nanos } = times;
        Some(Span { trace_id, span_id, parent, name, began_nanos, ended_nanos, error, attributes })
    }

    fn json(&self) -> String {
        let attributes = self.attributes.iter().map(|(key, value)| attribute(key, value));
        let object = Object::answer()
            .text("traceId", &hex(&self.trace_id))
            .text("spanId", &hex(&self.span_id))
            .optional_text("parentSpanId", self.parent.map(|parent| hex(&parent)).as_deref())
            .text("name", &self.name)
            .raw("kind", KIND_SERVER)
            .text("startTimeUnixNano", &self.began_nanos.to_string())
            .text("endTimeUnixNano", &self.ended_nanos.to_string())
            .raw("attributes", list(attributes));
        object
            .optional_object("status", self.error, |object, error| {
                object.raw("code", STATUS_ERROR).text("message", error)
            })
            .end()
    }
}

/// Spans as the body of an OTLP request, in JSON.
pub(crate) fn export_request(spans: &[Span]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let about = [("service.name", "interlock"), ("service.version", version)];
    let about = about.into_iter().map(|(key, value)| attribute(key, &Attribute::Text(value.to_owned())));
    let scope = Object::new()
        .object("scope", |object| object.text("name", "interlock").text("version", version))
        .raw("spans", list(spans.iter().map(Span::json)));
    let resource = Object::new()
        .object("resource", |object| object.raw("attributes", list(about)))
        .raw("scopeSpans", list([scope.end()].into_iter()));
    Object::new().raw("resourceSpans", list([resource.end()].into_iter())).end()
}

fn attribute(key: &str, value: &Attribute) -> String {
    let object = Object::new().text("key", key);
    let object = object.object("value", |object| match value {
        Attribute::Text(text) => object.text("stringValue", text),
        Attribute::Flag(flag) => object.raw("boolValue", flag),
    });
    object.end()
}

fn derived_span(decision_id: &str) -> [u8; 8] {
    first(Digest::of(&[decision_id]))
}

fn derived_trace(decision_id: &str) -> [u8; 16] {
    first(Digest::of(&["trace\n", decision_id]))
}

/// The first bytes of a digest.
fn first<const N: usize>(digest: Digest) -> [u8; N] {
    digest.bytes().first_chunk().copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_taken_whole_or_not_at_all() {
        const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        const SPAN: &str = "00f067aa0ba902b7";
        let parsed = TraceParent::parse(&format!("00-{TRACE}-{SPAN}-01")).unwrap();
        assert_eq!((hex(&parsed.trace_id), hex(&parsed.span_id)), (TRACE.to_owned(), SPAN.to_owned()));
        for good in [format!("00-{TRACE}-{SPAN}-00"), format!("01-{TRACE}-{SPAN}-01-more-of-it")] {
            assert!(TraceParent::parse(&good).is_some(), "{good}");
        }
        for bad in [
            String::new(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}0-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!(" 00-{TRACE}-{SPAN}-01"),
            format!("00-{}é-{SPAN}-01", "a".repeat(30)),
        ] {
            assert!(TraceParent::parse(&bad).is_none(), "{bad}");
        }
    }
}
