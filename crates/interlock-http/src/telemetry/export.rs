//! The exporter: OTLP over HTTP with JSON, from a bounded queue, in batches, on a thread of its own. It decides when to
//! send, when to try again and when to give up; it does not know what a span means.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use interlock_core::Cause;
use interlock_core::json::{self, Limits};

use super::log::{Level, Log};
use super::queue::{Queue, Taken, Taking};
use super::trace::{Span, export_request};

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
pub struct OtlpUrl {
    /// As in the `Host` header.
    authority: String,
    host: String,
    port: u16,
    path: String,
}

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
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

impl FromStr for OtlpUrl {
    type Err = OtlpUrlError;

    fn from_str(text: &str) -> Result<OtlpUrl, OtlpUrlError> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if scheme.as_deref() == Some("https") {
            return Err(OtlpUrlError(
                "https is not supported; run a collector on this machine, give its http address, and let it forward",
            ));
        }
        // What is left goes into the head of a request as it is.
        if text.len() > URL_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OtlpUrlError("an address has at most 1024 visible ASCII characters and no blanks"));
        }
        let rest = text.split_once("://").map(|(_, rest)| rest).filter(|_| scheme.as_deref() == Some("http"));
        let rest =
            rest.ok_or(OtlpUrlError("expected http://HOST:PORT/PATH, such as http://127.0.0.1:4318/v1/traces"))?;
        if rest.contains(['?', '#', '@', '\\']) {
            return Err(OtlpUrlError("an address has no user, query or fragment"));
        }
        let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or(OtlpUrlError("a `[` in the host is not closed"))?,
            None => authority.find(':').and_then(|at| authority.split_at_checked(at)).unwrap_or((authority, "")),
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => digits.parse().ok().filter(|port| *port > 0 && !digits.starts_with('+')),
            None => port.is_empty().then_some(80),
        };
        let port = port.ok_or(OtlpUrlError("the port must be a number from 1 to 65535"))?;
        if host.is_empty() {
            return Err(OtlpUrlError("there is no host"));
        }
        let path = if path.is_empty() { "/v1/traces".to_owned() } else { format!("/{path}") };
        Ok(OtlpUrl { authority: authority.to_owned(), host: host.to_owned(), port, path })
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
    let began = Instant::now();
    let passing = |error: io::Error| Undelivered::Passing(Cause::of(error));
    let mut stream = connect(url).map_err(passing)?;
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nuser-agent: \
         interlock/{}\r\nconnection: close\r\n\r\n",
        url.path,
        url.authority,
        body.len(),
        env!("CARGO_PKG_VERSION")
    );
    let written = write_all(&mut stream, head.as_bytes(), began).and_then(|()| {
        // Whoever answers before everything was read is heard all the same.
        write_all(&mut stream, body.as_bytes(), began)
    });
    let answer = read_answer(&mut stream, began);
    let status = answer.as_deref().ok().and_then(status_of);
    match (status, written, answer) {
        (Some(200..=299), Ok(()), Ok(answer)) => Ok(rejected(&answer)),
        (Some(status @ (429 | 502 | 503 | 504)), _, _) => Err(Undelivered::Passing(format!("status {status}").into())),
        (Some(status), _, _) => Err(Undelivered::Final(format!("status {status}").into())),
        // A slow collector may have it already, and would be slower for getting it twice.
        (None, Err(error), _) | (None, Ok(()), Err(error)) if is_timeout(&error) => {
            Err(Undelivered::Final("it takes too long".into()))
        }
        (None, Err(error), _) | (None, Ok(()), Err(error)) => Err(passing(error)),
        (None, Ok(()), Ok(answer)) if answer.is_empty() => Err(Undelivered::Passing("no answer".into())),
        (None, Ok(()), Ok(_)) => Err(Undelivered::Final("the answer is no HTTP".into())),
    }
}

fn connect(url: &OtlpUrl) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What is left of the time for one delivery.
fn time_left(began: Instant) -> io::Result<Duration> {
    let left = DELIVERY_TIME_MAX.saturating_sub(began.elapsed());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

fn write_all(stream: &mut TcpStream, bytes: &[u8], began: Instant) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        stream.set_write_timeout(Some(time_left(began)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads an answer up to its end as far as that is known, or to the limit.
fn read_answer(stream: &mut TcpStream, began: Instant) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while answer.len() < ANSWER_BYTES_MAX && !is_whole(&answer) {
        stream.set_read_timeout(Some(time_left(began)?))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

/// Head and body of an answer, once its head is whole.
fn split_head(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, rest) = answer.split_at_checked(end)?;
    Some((std::str::from_utf8(head).ok()?, rest.get(4..)?))
}

fn is_whole(answer: &[u8]) -> bool {
    let Some((head, body)) = split_head(answer) else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    length.is_some_and(|length| body.len() >= length)
}

fn status_of(answer: &[u8]) -> Option<u16> {
    let (head, _) = split_head(answer)?;
    let rest = head.strip_prefix("HTTP/1.")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// How many spans an answer says it did not want; one that cannot be read says nothing.
fn rejected(answer: &[u8]) -> u64 {
    let count = || {
        let (_, body) = split_head(answer)?;
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
            assert_eq!((url.to_string().as_str(), url.host.as_str(), url.port), (shown, host, port));
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
        let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let told = |body: &str| rejected(answer(body).as_bytes());
        assert_eq!(told(r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#), 3);
        assert_eq!(told(r#"{"partialSuccess":{"rejectedSpans":2}}"#), 2);
        assert_eq!(told("{}") + told("") + told(r#"{"partialSuccess":{"rejectedSpans":-1}}"#) + told("[["), 0);
        assert!(is_whole(answer("{}").as_bytes()) && !is_whole(b"HTTP/1.1 200 OK\r\n\r\n"));
        assert_eq!(status_of(answer("").as_bytes()), Some(200));
        assert_eq!(status_of(b"SSH-2.0\r\n\r\n"), None);
    }
}
