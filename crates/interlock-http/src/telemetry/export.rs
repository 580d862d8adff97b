//! The exporter: OTLP over HTTP with JSON, from a bounded queue, in batches, on a thread of its own. It decides when to
//! send, when to try again and when to give up; it does not know what a span means.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use interlock_core::Cause;
use interlock_core::json::{self, Limits};

use super::log::{Level, Log};
use super::queue::{Queue, Taken, Taking};
use super::trace::{Span, export_request};
use crate::client::{self, Address, AddressFault, ConnectFault, Request};

/// How many spans may wait; more are dropped.
const QUEUE_LEN: usize = 4096;
/// How many spans one request carries.
const BATCH_LEN: usize = 256;
/// How long the first span of a batch waits for others.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// How long connecting may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// How long one delivery may take, connecting included.
const DELIVERY_TIME_MAX: Duration = Duration::from_secs(5);
/// How long to wait before a batch is tried again; each time once.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// How often a pause looks whether the server stops.
const PAUSE_STEP: Duration = Duration::from_millis(50);
/// The most of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest address of a collector.
const URL_BYTES_MAX: usize = 1_024;

/// Where spans are sent: `http://host:4318/v1/traces`.
///
/// ```
/// let url: interlock_http::OtlpUrl = "http://127.0.0.1:4318".parse().unwrap();
/// assert_eq!(url.to_string(), "http://127.0.0.1:4318/v1/traces");
/// assert!("https://127.0.0.1:4318".parse::<interlock_http::OtlpUrl>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpUrl(Address);

/// Why an address is none that spans can be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpUrlError(&'static str);

impl fmt::Display for OtlpUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for OtlpUrlError {}

impl fmt::Display for OtlpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.0.authority, self.0.target)
    }
}

impl FromStr for OtlpUrl {
    type Err = OtlpUrlError;

    fn from_str(text: &str) -> Result<OtlpUrl, OtlpUrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(OtlpUrlError("an address has at most 1024 characters"));
        }
        let mut address = Address::parse(text).map_err(|fault| {
            OtlpUrlError(match fault {
                AddressFault::Characters => "an address has visible ASCII characters, no blanks and no backslashes",
                AddressFault::Scheme => "expected http://HOST:PORT/PATH, such as http://127.0.0.1:4318/v1/traces",
                AddressFault::User | AddressFault::Fragment => "an address has no user, query or fragment",
                AddressFault::Host => "there is no host",
                AddressFault::Port => "the port must be a number from 1 to 65535",
            })
        })?;
        if address.is_encrypted {
            return Err(OtlpUrlError(
                "https is not supported; run a collector on this machine, give its http address, and let it forward",
            ));
        }
        if address.target.contains('?') {
            return Err(OtlpUrlError("an address has no user, query or fragment"));
        }
        if matches!(address.target.as_str(), "" | "/") {
            "/v1/traces".clone_into(&mut address.target);
        }
        Ok(OtlpUrl(address))
    }
}

/// Where spans go; its clones send to the same place.
#[derive(Debug, Clone)]
pub struct Exporter {
    queue: Arc<Queue<Span>>,
}

impl Exporter {
    /// Starts sending. Trouble with the collector is said once in the log when it begins and once when it is over.
    pub fn start(url: OtlpUrl, log: Option<Log>) -> io::Result<Exporter> {
        let queue = Queue::start("otlp", QUEUE_LEN, move |spans| export(spans, &url, log.as_ref()))?;
        Ok(Exporter { queue: Arc::new(queue) })
    }

    pub(crate) fn put(&self, span: Span) {
        self.queue.put(span);
    }

    /// How many spans were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Sends what waits, but takes no longer than this.
    pub fn close(&self, within: Duration) {
        self.queue.close(within);
    }
}

/// Why a batch did not arrive.
enum Undelivered {
    /// It can be tried again.
    Passing(Cause),
    /// It would not help.
    Final(Cause),
}

fn export(spans: &Taking<Span>, url: &OtlpUrl, log: Option<&Log>) {
    let mut failing = false;
    let mut open = true;
    while open {
        let mut batch = Vec::new();
        match spans.next() {
            Taken::One(span) => batch.push(span),
            Taken::Nothing | Taken::End => return,
        }
        let began = Instant::now();
        while batch.len() < BATCH_LEN {
            match spans.next_within(BATCH_TIME.saturating_sub(began.elapsed())) {
                Taken::One(span) => batch.push(span),
                Taken::Nothing => break,
                Taken::End => {
                    open = false;
                    break;
                }
            }
        }
        let sent = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let (dropped, trouble) = match deliver(spans, url, &export_request(&batch)) {
            Ok(rejected) => (rejected.min(sent), None),
            Err(trouble) => (sent, Some(trouble)),
        };
        spans.count_dropped(dropped);
        if let Some(log) = log.filter(|_| failing != trouble.is_some()) {
            match &trouble {
                Some(trouble) => {
                    let message = format!("the collector does not take spans, they are dropped: {trouble}");
                    log.event(Level::Warn, "otlp_failing", &message, &[]);
                }
                None => log.event(Level::Info, "otlp_delivering", "the collector takes spans again", &[]),
            }
        }
        failing = trouble.is_some();
    }
}

/// Delivers a batch, trying again where that is worth it. Returns how many spans the collector did not want.
fn deliver(spans: &Taking<Span>, url: &OtlpUrl, body: &str) -> Result<u64, Cause> {
    let mut pauses = RETRY_PAUSES.into_iter();
    loop {
        let trouble = match post(url, body) {
            Ok(rejected) => return Ok(rejected),
            Err(Undelivered::Final(trouble)) => return Err(trouble),
            Err(Undelivered::Passing(trouble)) => trouble,
        };
        let Some(pause) = pauses.next() else { return Err(trouble) };
        let began = Instant::now();
        while began.elapsed() < pause {
            if spans.is_closing() {
                return Err(trouble);
            }
            thread::sleep(PAUSE_STEP);
        }
    }
}

fn post(url: &OtlpUrl, body: &str) -> Result<u64, Undelivered> {
    let deadline = Instant::now().checked_add(DELIVERY_TIME_MAX).unwrap_or_else(Instant::now);
    let stream = client::connect(&url.0, None, CONNECT_TIME_MAX, deadline).map_err(|fault| match fault {
        ConnectFault::Unreachable(error) => Undelivered::Passing(Cause::of(error)),
        ConnectFault::Trust(fault) => Undelivered::Final(fault.message.into()),
    })?;
    let Address { authority, target, .. } = &url.0;
    let headers = [("content-type", "application/json")];
    let request = Request { method: "POST", target, authority, headers: &headers, body: Some(body.as_bytes()) };
    let answer = client::exchange(stream, &request, ANSWER_BYTES_MAX).map_err(|error| {
        let is = |kind: io::ErrorKind| error.kind() == kind;
        // A slow collector may have it already, and would be slower for getting it twice.
        if is(io::ErrorKind::TimedOut) || is(io::ErrorKind::WouldBlock) {
            Undelivered::Final("it takes too long".into())
        } else if is(io::ErrorKind::InvalidData) {
            Undelivered::Final("the answer is no HTTP".into())
        } else if is(io::ErrorKind::UnexpectedEof) {
            Undelivered::Passing("no answer".into())
        } else {
            Undelivered::Passing(Cause::of(error))
        }
    })?;
    match answer.head.status {
        200..=299 => Ok(rejected(&answer.body.unwrap_or_default())),
        status @ (429 | 502 | 503 | 504) => Err(Undelivered::Passing(format!("status {status}").into())),
        status => Err(Undelivered::Final(format!("status {status}").into())),
    }
}

/// How many spans an answer says it did not want; one that cannot be read says nothing.
fn rejected(body: &[u8]) -> u64 {
    let count = || {
        let document = json::parse_bytes(body, &Limits::STATE).ok()?;
        let count = document.root().get("partialSuccess")?.get("rejectedSpans")?;
        let number = count.as_number().map(|number| number.literal().to_owned());
        let text = number.or_else(|| count.as_str().map(|text| text.text().to_owned()))?;
        text.parse().ok()
    };
    count().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::trace::Times;
    use super::super::{Note, Traced};
    use super::*;

    #[test]
    fn addresses() {
        for (text, shown, host, port) in [
            ("http://h:4318/v1/traces", "http://h:4318/v1/traces", "h", 4318),
            ("HTTP://h", "http://h/v1/traces", "h", 80),
            ("http://h/", "http://h/v1/traces", "h", 80),
            ("http://[::1]:4318/x/y", "http://[::1]:4318/x/y", "::1", 4318),
            ("http://[::1]", "http://[::1]/v1/traces", "::1", 80),
        ] {
            let url: OtlpUrl = text.parse().unwrap();
            assert_eq!((url.to_string().as_str(), url.0.host.as_str(), url.0.port), (shown, host, port));
        }
        for text in [
            "",
            "h:4318",
            "ftp://h",
            "http://",
            "http://:4318/",
            "http://h:0",
            "http://h:65536",
            "http://h:+80",
            "http://h:",
            "http://h:a",
            "http://::1:4318",
            "http://[::1",
            "http://[::1]4318",
            "http://u:p@h:4318",
            "http://h/a?b",
            "http://h/a#b",
            "http://h/a b",
            "http://h/a\r\nx: y",
            "http://hé/",
            "http://h\\a",
        ] {
            assert!(text.parse::<OtlpUrl>().is_err(), "{text}");
        }
        assert!(OtlpUrl::from_str(&format!("http://h/{}", "a".repeat(1_015))).is_ok());
        assert!(OtlpUrl::from_str(&format!("http://h/{}", "a".repeat(1_016))).is_err());
        let refused = "https://h:4318/v1/traces".parse::<OtlpUrl>().unwrap_err().to_string();
        assert!(refused.starts_with("https is not supported"), "{refused}");
    }

    #[test]
    fn a_queue_that_is_full_drops_and_counts() {
        // It takes connections, as the system does for it, and never answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
        let exporter = Exporter::start(url, None).unwrap();
        let note = Note {
            decision_id: Some("dec_1".to_owned()),
            traced: Some(Traced::Execution { success: true }),
            ..Note::default()
        };
        let span = Span::of(&note, None, false, "r", Times { began_nanos: 1, ended_nanos: 2 }).unwrap();
        const MORE: usize = 1_000;
        for _ in 0..QUEUE_LEN + BATCH_LEN + MORE {
            exporter.put(span.clone());
        }
        // The thread has at most one batch in its hands.
        let dropped = usize::try_from(exporter.dropped()).unwrap();
        assert!((MORE..=MORE + BATCH_LEN).contains(&dropped), "{dropped}");
        exporter.close(Duration::from_millis(50));
    }

    #[test]
    fn answers() {
        let told = |body: &str| rejected(body.as_bytes());
        assert_eq!(told(r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#), 3);
        assert_eq!(told(r#"{"partialSuccess":{"rejectedSpans":2}}"#), 2);
        assert_eq!(told("{}") + told("") + told(r#"{"partialSuccess":{"rejectedSpans":-1}}"#) + told("[["), 0);
    }
}
