//! What is told about requests to those who run the service: a line in the log, a span in a trace, an id that both and
//! the answer carry. It decides what is told and never sees what is asked: no path, no body, no token comes here.
//!
//! Handlers note what they found while they work; around them, [`observed`] writes it down when the answer is ready.
//! Where neither requests are logged nor spans are sent, none of this is in the way of a request.

pub(crate) mod export;
pub(crate) mod log;
mod queue;
pub(crate) mod trace;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use interlock_core::action::{Decision, Ticket};
use interlock_core::ledger::{Executed, Ruled, TrustRequested};
use interlock_runtime::clock::hex;
use interlock_runtime::ledger::Recorded;

use self::export::Exporter;
use self::log::{Log, RequestLine};
use self::trace::{Span, Times, TraceParent};
use crate::Service;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id a caller may choose.
const REQUEST_ID_BYTES_MAX: usize = 64;
/// The status in the log of a request whose caller left before the answer was ready.
const STATUS_LEFT: u16 = 499;
/// The pattern in the log of a request that no route matched.
const ROUTE_NONE: &str = "none";
/// The pattern of the route that rules on tools.
const ROUTE_TOOLS: &str = "/agents/{id}/tools/{tool}";

/// Where requests are told about.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    /// The log, if there is one.
    pub log: Option<Log>,
    /// Where spans go, if anywhere.
    pub exporter: Option<Exporter>,
}

impl Telemetry {
    /// Whether anything is told about requests.
    pub(crate) fn is_on(&self) -> bool {
        self.exporter.is_some() || self.log.as_ref().is_some_and(Log::has_requests)
    }

    /// Lines and spans dropped so far.
    pub(crate) fn dropped(&self) -> (u64, u64) {
        (self.log.as_ref().map_or(0, Log::dropped), self.exporter.as_ref().map_or(0, Exporter::dropped))
    }

    /// Writes and sends what waits, but takes no longer than this for each.
    pub fn close(&self, within: Duration) {
        if let Some(exporter) = &self.exporter {
            exporter.close(within);
        }
        if let Some(log) = &self.log {
            log.close(within);
        }
    }
}

/// What a handler found out about its request.
#[derive(Debug, Default)]
pub(crate) struct Note {
    /// The agent it is about, which is registered, whoever asked.
    pub(crate) agent_id: Option<String>,
    /// The name of the operator's key it came with.
    pub(crate) by: Option<String>,
    pub(crate) decision: Option<&'static str>,
    pub(crate) decision_id: Option<String>,
    pub(crate) code: Option<&'static str>,
    pub(crate) approval_id: Option<String>,
    pub(crate) traced: Option<Traced>,
}

/// What has a span.
#[derive(Debug)]
pub(crate) enum Traced {
    Ruling {
        decision: Decision,
        /// The action type or tool, if it is one that may be repeated.
        action: Option<String>,
        risk_level: Option<&'static str>,
        enforced: bool,
    },
    Execution {
        success: bool,
    },
}

impl Note {
    /// A ruling was answered.
    pub(crate) fn ruled(&mut self, recorded: &Recorded, ruled: &Ruled) {
        self.agent_id.clone_from(&recorded.entry.agent);
        self.decision = Some(ruled.ruling.decision.as_str());
        self.decision_id = Some(ruled.decision_id.clone());
        self.code = ruled.ruling.error.as_ref().map(|error| error.code.as_str());
        self.approval_id = ruled.ticket.as_ref().map(|ticket| ticket.approval_id.clone());
        // One span a ruling, however often its answer is asked for again.
        self.traced = (!recorded.replayed).then(|| Traced::Ruling {
            decision: ruled.ruling.decision,
            action: ruled.facts.as_ref().map(|facts| facts.action.shown().to_owned()),
            risk_level: ruled.ruling.verification.as_ref().map(|verification| verification.risk_level.as_str()),
            enforced: !ruled.observed && ruled.facts.as_ref().is_none_or(|facts| !facts.dry_run),
        });
    }

    /// A ticket was read or decided on.
    pub(crate) fn asked_about(&mut self, ticket: &Ticket) {
        self.agent_id = Some(ticket.agent.clone());
        self.approval_id = Some(ticket.approval_id.clone());
    }

    /// A request for trust waits for somebody.
    pub(crate) fn trust_requested(&mut self, requested: &TrustRequested) {
        self.decision = Some(Decision::Pending.as_str());
        self.approval_id = Some(requested.approval_id.clone());
    }

    /// An execution was reported.
    pub(crate) fn executed(&mut self, executed: &Executed) {
        self.decision_id = Some(executed.decision_id.clone());
        self.approval_id.clone_from(&executed.approval_id);
        self.traced = Some(Traced::Execution { success: executed.success });
    }
}

tokio::task_local! {
    static NOTE: RefCell<Note>;
}

/// Notes something about the request that is being handled, if anything is told about it.
pub(crate) fn note(write: impl FnOnce(&mut Note)) {
    // Elsewhere than in a handler there is nothing to note it on.
    let _ = NOTE.try_with(|note| {
        if let Ok(mut note) = note.try_borrow_mut() {
            write(&mut note);
        }
    });
}

/// The routes, with what is told about them around, if anything is.
pub(crate) fn observed(routes: Router, service: Arc<Service>) -> Router {
    if service.telemetry.is_on() { routes.layer(from_fn_with_state(service, observe)) } else { routes }
}

async fn observe(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let mut watch = Watch::begin(service, &request);
    let header = HeaderValue::from_str(&watch.request_id);
    let handled = NOTE.scope(RefCell::default(), async {
        let response = next.run(request).await;
        (response, NOTE.try_with(RefCell::take).unwrap_or_default())
    });
    let (mut response, note) = handled.await;
    watch.is_answered = true;
    watch.tell(response.status().as_u16(), &note);
    if let Ok(header) = header {
        response.headers_mut().insert(REQUEST_ID, header);
    }
    response
}

/// A request from its beginning to its end, whichever way it ends.
struct Watch {
    service: Arc<Service>,
    request_id: String,
    method: &'static str,
    route: Option<MatchedPath>,
    parent: Option<TraceParent>,
    began: Instant,
    began_nanos: u64,
    is_answered: bool,
}

impl Watch {
    fn begin(service: Arc<Service>, request: &Request) -> Watch {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Watch {
            request_id: given_id(request.headers()).unwrap_or_else(|| service.new_request_id()),
            method: method_name(request.method()),
            route: request.extensions().get::<MatchedPath>().cloned(),
            parent: service.telemetry.exporter.as_ref().and_then(|_| TraceParent::read(request.headers())),
            began: Instant::now(),
            began_nanos: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            is_answered: false,
            service,
        }
    }

    fn tell(&self, status: u16, note: &Note) {
        let telemetry = &self.service.telemetry;
        let route = self.route.as_ref().map_or(ROUTE_NONE, MatchedPath::as_str);
        let took = self.began.elapsed();
        if let Some(log) = telemetry.log.as_ref().filter(|log| log.has_requests()) {
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            let line = RequestLine { request_id: &self.request_id, method: self.method, route, status, micros };
            log.request(&line, note);
        }
        if let Some(exporter) = &telemetry.exporter {
            let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            let times = Times { began_nanos: self.began_nanos, ended_nanos: self.began_nanos.saturating_add(nanos) };
            if let Some(span) = Span::of(note, self.parent, route == ROUTE_TOOLS, &self.request_id, times) {
                exporter.put(span);
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_answered {
            let status = if std::thread::panicking() { 500 } else { STATUS_LEFT };
            self.tell(status, &Note::default());
        }
    }
}

impl Service {
    /// Notes something about the request that is being handled, if anything is told about requests at all.
    pub(crate) fn note(&self, write: impl FnOnce(&mut Note)) {
        if self.telemetry.is_on() {
            note(write);
        }
    }

    /// 128 random bits; without a source of them the id names nothing, and the request goes on.
    fn new_request_id(&self) -> String {
        let mut random = [0; 16];
        let _ = self.entropy.0.fill(&mut random);
        hex(&random)
    }
}

/// The id a caller chose: 1 to 64 characters of `[A-Za-z0-9_.-]`, once.
fn given_id(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(REQUEST_ID).iter();
    let value = values.next().filter(|_| values.next().is_none())?.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let plain = (1..=REQUEST_ID_BYTES_MAX).contains(&value.len()) && value.iter().all(is_plain);
    plain.then(|| String::from_utf8_lossy(value).into_owned())
}

/// The method, if it is one that anything here answers to.
fn method_name(method: &Method) -> &'static str {
    let known = [
        (Method::GET, "GET"),
        (Method::POST, "POST"),
        (Method::HEAD, "HEAD"),
        (Method::PUT, "PUT"),
        (Method::DELETE, "DELETE"),
        (Method::PATCH, "PATCH"),
        (Method::OPTIONS, "OPTIONS"),
    ];
    known.iter().find(|(known, _)| known == method).map_or("other", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_if_it_can_do_no_harm() {
        let given = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(REQUEST_ID, HeaderValue::from_bytes(value).unwrap());
            }
            given_id(&headers)
        };
        let longest = "a".repeat(REQUEST_ID_BYTES_MAX);
        for good in ["a", "A-z_0.9", &longest] {
            assert_eq!(given(&[good.as_bytes()]).as_deref(), Some(good));
        }
        let longer = format!("{longest}a");
        for bad in [&b""[..], b"a b", b"a\"b", b"a/b", b"a\tb", b"\xff", "é".as_bytes(), longer.as_bytes()] {
            assert_eq!(given(&[bad]), None, "{bad:?}");
        }
        assert_eq!(given(&[]), None);
        assert_eq!(given(&[b"a", b"a"]), None);
    }

    #[test]
    fn nothing_is_noted_outside_of_a_request() {
        note(|_| panic!("there is no request"));
    }
}
