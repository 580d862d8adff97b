//! The client of the service: one request, one connection, one answer, within limits.
//!
//! It knows how to find server and key and how to say what went wrong and what to do next. What an answer means is the
//! commands' business; what a key may do is the server's.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use interlock_core::action::Millis;
use interlock_core::json::{self, BYTES_MAX, Document, Limits, Value, quote};
use interlock_core::visible;
use interlock_runtime::clock::{Clock, SystemClock};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::daemon::Daemon;
use crate::serve::Places;
use crate::timed::{Timed, connect_unix};
use crate::{Fault, moment, style};

/// Where a server listens unless it was told otherwise.
const URL: &str = "http://127.0.0.1:7878";
/// How long connecting may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a daemon may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a whole answer may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// The most bytes before a body.
const HEAD_BYTES_MAX: u64 = 32 * 1024;
/// The largest key file.
const KEY_BYTES_MAX: u64 = 4096;
/// How much of a server's message is shown.
const MESSAGE_CHARS_MAX: usize = 600;

/// Which server, with which key, and how to print what it says.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArguments {
    /// The server [default: INTERLOCK_URL, else http://127.0.0.1:7878]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    server: Option<String>,
    /// File with the key [default: INTERLOCK_OPERATOR_KEY, INTERLOCK_API_KEY, else the operator.key of `serve`]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    key_file: Option<PathBuf>,
    /// File with certificates of authorities to believe beside the machine's own [default: INTERLOCK_CA_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    ca_file: Option<PathBuf>,
    /// Print the server's JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A server and the key to use there.
pub(crate) struct Client {
    address: Address,
    key: Option<Key>,
    authorities: Option<PathBuf>,
}

struct Key {
    text: String,
    from: String,
}

/// An answer that is not an error.
pub(crate) struct Answer {
    /// The body, as it came.
    pub(crate) body: String,
    /// Something new was made.
    pub(crate) created: bool,
    /// The server's time, or ours if it did not say.
    pub(crate) now: Millis,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn document(&self) -> Result<Document<'_>, Fault> {
        json::parse(&self.body, &Limits::CONFIG).map_err(|error| {
            let next = "check --server: this does not look like an Interlock server";
            Fault::new(format!("the server's answer is not JSON: {error}")).and_then_do(next)
        })
    }

    /// The body for `--json`: the same document, with what would move a cursor or hide written as escapes.
    pub(crate) fn json(&self) -> String {
        inert_json(&self.body)
    }
}

impl Client {
    /// The server and key that arguments and environment name.
    pub(crate) fn open(arguments: &ServerArguments) -> Result<Client, Fault> {
        let address = Address::find(arguments.server.as_deref())?;
        let key = Key::find(arguments.key_file.as_deref())?;
        if !address.is_encrypted && !address.is_loopback() {
            let _ = writeln!(
                anstream::stderr(),
                "{}note:{} {} is not this machine, and http:// sends the key so that others on the way can read it",
                style::FAINT,
                style::RESET,
                visible(&address.shown)
            );
        }
        let authorities = arguments.ca_file.clone().or_else(|| variable("INTERLOCK_CA_FILE").map(PathBuf::from));
        Ok(Client { address, key: Some(key), authorities })
    }

    /// The same; where no server is named, this user's own daemon, which is started unless it runs.
    pub(crate) fn open_or_start(arguments: &ServerArguments) -> Result<Client, Fault> {
        if arguments.server.is_none() && variable("INTERLOCK_URL").is_none() {
            let home = crate::serve::home().ok_or_else(|| Fault::new("neither INTERLOCK_HOME nor HOME is set"))?;
            let home = std::path::absolute(home).map_err(|error| Fault::new(error.to_string()))?;
            Daemon::of(&home).ensure(Instant::now() + START_TIME_MAX)?;
        }
        Client::open(arguments)
    }

    /// The server alone, for the routes that are open to everyone.
    pub(crate) fn without_key(server: Option<&str>) -> Result<Client, Fault> {
        let authorities = variable("INTERLOCK_CA_FILE").map(PathBuf::from);
        Ok(Client { address: Address::find(server)?, key: None, authorities })
    }

    /// Where it is, safe to show.
    pub(crate) fn url(&self) -> String {
        visible(&self.address.shown)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, Fault> {
        self.send("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Result<Answer, Fault> {
        self.send("POST", path, Some(body))
    }

    fn send(&self, method: &str, path: &str, body: Option<&str>) -> Result<Answer, Fault> {
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        let mut stream = connect(&self.address, self.authorities.as_deref(), deadline)?;
        let broken = |error: io::Error| {
            // Neither goes away by itself, so nobody waits for it.
            if let Some((what, next)) = interlock_http::certificate_trouble(&error) {
                return Fault::new(format!("{} {what}", self.url())).and_then_do(next);
            }
            let what = match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!("did not answer within {} seconds", ANSWER_TIME_MAX.as_secs())
                }
                io::ErrorKind::InvalidData => format!("answered with what is not HTTP: {error}"),
                _ => format!("broke the connection off: {error}"),
            };
            let next = "see that it is an Interlock server and still runs: `interlock doctor`";
            Fault::new(format!("{} {what}", self.url())).and_then_do(next).transient()
        };
        let request = self.request(method, path, body);
        stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).map_err(broken)?;
        let raw = RawAnswer::read(&mut BufReader::new(stream)).map_err(broken)?;
        self.judge(raw)
    }

    fn request(&self, method: &str, path: &str, body: Option<&str>) -> String {
        let Address { prefix, authority, .. } = &self.address;
        let mut request = format!(
            "{method} {prefix}{path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\
             user-agent: interlock/{}\r\naccept: application/json, text/plain\r\n",
            env!("CARGO_PKG_VERSION")
        );
        if let Some(key) = &self.key {
            request.push_str(&format!("authorization: Bearer {}\r\n", key.text));
        }
        if let Some(body) = body {
            request.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        request.push_str(body.unwrap_or(""));
        request
    }

    fn judge(&self, raw: RawAnswer) -> Result<Answer, Fault> {
        let RawAnswer { status, date, retry_after, body, .. } = raw;
        let now = date.unwrap_or_else(|| SystemClock.now());
        if (200..300).contains(&status) {
            return Ok(Answer { body, created: status == 201, now });
        }
        let (code, message) = match read_error(&body) {
            Some((code, message)) => (Some(code), message),
            None => (None, format!("{} answered {status}, and not as an Interlock server does", self.url())),
        };
        let mut fault = Fault::new(shorten(&message));
        let next = self.next_step(status, code.as_deref(), retry_after);
        if let Some(next) = next {
            fault = fault.and_then_do(next);
        }
        if matches!(status, 429 | 500..=599) {
            fault = fault.transient();
        }
        // Understood and refused is an answer; everything else is a fault of ours, of the key or of the server.
        if matches!(status, 403 | 404 | 409 | 410) && code.is_some() {
            fault = fault.refused();
        }
        if let Some(code) = code {
            fault.code = Some(code);
            fault.document = Some(inert_json(&body));
        }
        Err(fault)
    }

    /// What to do about a refusal.
    fn next_step(&self, status: u16, code: Option<&str>, retry_after: Option<u64>) -> Option<String> {
        let from = self.key.as_ref().map_or("", |key| key.from.as_str());
        let next = match code {
            // An agent's routes take its token too, and miss that.
            Some(_) if status == 401 => format!(
                "the key from {} is not one of this server's; use --key-file with the operator.key that `interlock \
                 serve` named at its start",
                visible(from)
            ),
            Some("INTERLOCK-AUTH-002") => format!(
                "the key from {} has a role that may not do this; ask an admin for a key that may \
                 (`interlock keys create`) and name it with --key-file",
                visible(from)
            ),
            Some("INTERLOCK-AUTH-003") => "`interlock keys list` shows the keys there are".to_owned(),
            Some("INTERLOCK-APPROVAL-001") => "`interlock approvals show ID` says who decided and how".to_owned(),
            Some("INTERLOCK-APPROVAL-002") => "nothing was approved; the agent has to ask again".to_owned(),
            Some("INTERLOCK-APPROVAL-004") => {
                "rules or trust changed since it was asked; deny it, and the agent asks again under the new ones"
                    .to_owned()
            }
            Some("INTERLOCK-APPROVAL-005") => "`interlock approvals list --status all` shows the ids".to_owned(),
            Some("QWED-AGENT-001") => "`interlock agents list` shows the ids".to_owned(),
            Some("QWED-AGENT-003") => "`interlock agents reactivate ID` lifts a suspension".to_owned(),
            Some("INTERLOCK-REQUEST-005") => {
                "this server does not know the request; it may be older than this command: `interlock doctor`"
                    .to_owned()
            }
            Some("INTERLOCK-RATE-001") | Some("INTERLOCK-FAULT-004") => {
                format!("try again in {} s", retry_after.unwrap_or(1))
            }
            Some(code) => format!("more: interlock explain {}", visible(code)),
            None if (300..400).contains(&status) => "give the URL it redirects to with --server".to_owned(),
            None => "check --server".to_owned(),
        };
        Some(next)
    }
}

/// Opens a connection, encrypted if the address says so.
fn connect(address: &Address, authorities: Option<&Path>, deadline: Instant) -> Result<Box<dyn Stream>, Fault> {
    let unreachable = |error: io::Error| {
        let what = match error.kind() {
            io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it does not answer".to_owned(),
            _ => error.to_string(),
        };
        let next = "start one with `interlock serve`, or name another with --server or INTERLOCK_URL";
        Fault::new(format!("no server at {}: {what}", visible(&address.shown))).and_then_do(next).transient()
    };
    if let Some(socket) = &address.socket {
        return Ok(Box::new(connect_unix(socket, deadline).map_err(unreachable)?));
    }
    let mut failed = io::Error::other("the name has no address");
    for candidate in (address.host.as_str(), address.port).to_socket_addrs().map_err(unreachable)? {
        match TcpStream::connect_timeout(&candidate, CONNECT_TIME_MAX) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                let stream = Timed { stream, deadline };
                if !address.is_encrypted {
                    return Ok(Box::new(stream));
                }
                let encrypted = interlock_http::encrypted(stream, &address.host, authorities);
                return Ok(Box::new(encrypted.map_err(|fault| Fault::with_code(fault.code, fault.message))?));
            }
            Err(error) => failed = error,
        }
    }
    Err(unreachable(failed))
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A URL, taken apart.
#[derive(Debug, Clone)]
struct Address {
    /// The socket of this user's daemon, where no server was named.
    socket: Option<PathBuf>,
    is_encrypted: bool,
    host: String,
    port: u16,
    /// As the `host` header wants it.
    authority: String,
    /// What comes before every path.
    prefix: String,
    shown: String,
}

impl Address {
    fn find(given: Option<&str>) -> Result<Address, Fault> {
        let url = given.map(str::to_owned).or_else(|| variable("INTERLOCK_URL"));
        let socket = crate::serve::home().map(|home| home.join(crate::daemon::SOCKET));
        if let (None, Some(socket)) = (&url, socket.filter(|socket| socket.exists())) {
            let shown = socket.display().to_string();
            let parsed = Address::parse(URL).map_err(Fault::new)?;
            return Ok(Address { socket: Some(socket), shown, ..parsed });
        }
        let url = url.unwrap_or_else(|| URL.to_owned());
        Address::parse(&url).map_err(|reason| {
            let next = format!("write it as {URL}");
            Fault::new(format!("`{}` is not the URL of a server: {reason}", interlock_core::display(&url)))
                .and_then_do(next)
        })
    }

    fn parse(url: &str) -> Result<Address, &'static str> {
        if url.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err("it holds spaces or other than ASCII characters");
        }
        let (scheme, rest) = url.split_once("://").ok_or("it does not begin with http://")?;
        let is_encrypted = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err("it does not begin with http:// or https://"),
        };
        if rest.contains(['?', '#', '@', '\\']) {
            return Err("a user, query or fragment does not belong in it");
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or("a `]` is missing")?;
                (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or("a `:` is missing")?) })
            }
            None => authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() || (host.contains(':') && !authority.starts_with('[')) {
            return Err("it names no host");
        }
        let port = match port {
            Some(port) => {
                port.parse().ok().filter(|port| *port != 0).ok_or("its port is not a number from 1 to 65535")?
            }
            None if is_encrypted => 443,
            None => 80,
        };
        Ok(Address {
            socket: None,
            is_encrypted,
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            prefix: path.trim_end_matches('/').to_owned(),
            shown: url.trim_end_matches('/').to_owned(),
        })
    }

    fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl Key {
    fn find(file: Option<&std::path::Path>) -> Result<Key, Fault> {
        let (text, from) = match file {
            Some(path) => (read_key(path)?, path.display().to_string()),
            None => match ["INTERLOCK_OPERATOR_KEY", "INTERLOCK_API_KEY"]
                .into_iter()
                .find_map(|name| Some((variable(name)?, name.to_owned())))
            {
                Some(found) => found,
                None => {
                    let path = Places::find(None)?.key;
                    (read_key(&path)?, path.display().to_string())
                }
            },
        };
        let text = text.trim().to_owned();
        // Anything else could not stand in a header.
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(
                Fault::new(format!("{} holds no key", visible(&from))).and_then_do("name a file with --key-file")
            );
        }
        Ok(Key { text, from })
    }
}

fn read_key(path: &std::path::Path) -> Result<String, Fault> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(KEY_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| {
        let next = "name the operator.key of your server with --key-file, or set INTERLOCK_OPERATOR_KEY";
        Fault::new(format!("no key: {} cannot be read: {error}", path.display())).and_then_do(next)
    })?;
    Ok(text)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// An answer before anyone judged it.
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    date: Option<Millis>,
    retry_after: Option<u64>,
    /// The proof of who answered, from a daemon.
    pub(crate) proof: Option<String>,
    /// Its version, from a daemon.
    pub(crate) version: Option<String>,
    pub(crate) body: String,
}

impl RawAnswer {
    pub(crate) fn read(stream: &mut impl BufRead) -> io::Result<RawAnswer> {
        let mut head = Head::read(stream)?;
        // Interim answers come before the one that counts.
        while (100..200).contains(&head.status) {
            head = Head::read(stream)?;
        }
        let body = if head.is_chunked {
            read_chunks(stream)?
        } else {
            let mut body = Vec::new();
            let limit = head.length.unwrap_or(u64::try_from(BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1));
            if limit > u64::try_from(BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1) {
                return Err(too_large());
            }
            stream.take(limit).read_to_end(&mut body)?;
            if head.length.is_some_and(|length| u64::try_from(body.len()).ok() != Some(length)) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            body
        };
        if body.len() > BYTES_MAX {
            return Err(too_large());
        }
        let body = String::from_utf8(body).map_err(|_| invalid("the body is not UTF-8"))?;
        let Head { status, date, retry_after, proof, version, .. } = head;
        Ok(RawAnswer { status, date, retry_after, proof, version, body })
    }
}

#[derive(Default)]
struct Head {
    status: u16,
    length: Option<u64>,
    is_chunked: bool,
    date: Option<Millis>,
    retry_after: Option<u64>,
    proof: Option<String>,
    version: Option<String>,
}

impl Head {
    fn read(stream: &mut impl BufRead) -> io::Result<Head> {
        let mut lines = stream.take(HEAD_BYTES_MAX);
        let first = read_line(&mut lines)?;
        let mut words = first.splitn(3, ' ');
        let version = words.next().unwrap_or("");
        let status = words.next().and_then(|status| status.parse().ok()).filter(|status| (100..600).contains(status));
        let Some(status) = status.filter(|_| version.starts_with("HTTP/1.")) else {
            return Err(invalid("the first line is no status line"));
        };
        let mut head = Head { status, ..Head::default() };
        loop {
            let line = read_line(&mut lines)?;
            if line.is_empty() {
                return Ok(head);
            }
            let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header has no name"))?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    let length = value.parse().map_err(|_| invalid("content-length is not a number"))?;
                    if head.length.replace(length).is_some_and(|other| other != length) {
                        return Err(invalid("there are two lengths"));
                    }
                }
                "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => head.is_chunked = true,
                "transfer-encoding" => return Err(invalid("its transfer-encoding is not chunked")),
                "date" => head.date = moment::parse_http_date(value),
                "retry-after" => head.retry_after = value.parse().ok(),
                "x-interlock-proof" => head.proof = Some(value.to_owned()),
                "x-interlock-version" => head.version = Some(value.to_owned()),
                _ => {}
            }
        }
    }
}

fn read_line(lines: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let end = line.strip_suffix('\n').ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(end.strip_suffix('\r').unwrap_or(end).to_owned())
}

fn read_chunks(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(&mut stream.take(HEAD_BYTES_MAX))?;
        let digits = line.split(';').next().unwrap_or("").trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| invalid("a chunk has no size"))?;
        if size == 0 {
            // Whatever trails is of no interest; the connection ends here.
            return Ok(body);
        }
        let before = body.len();
        if size.saturating_add(u64::try_from(before).unwrap_or(u64::MAX)) > u64::try_from(BYTES_MAX).unwrap_or(u64::MAX)
        {
            return Err(too_large());
        }
        stream.take(size).read_to_end(&mut body)?;
        if u64::try_from(body.len().saturating_sub(before)).ok() != Some(size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !read_line(&mut stream.take(HEAD_BYTES_MAX))?.is_empty() {
            return Err(invalid("a chunk is longer than it says"));
        }
    }
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn too_large() -> io::Error {
    invalid("the body is larger than any answer of Interlock")
}

/// Code and message of an error body.
pub(crate) fn read_error(body: &str) -> Option<(String, String)> {
    let document = json::parse(body, &Limits::CONFIG).ok()?;
    let error = document.root().get("error")?;
    let text = |value: Option<Value<'_>>| value?.as_str().map(|text| text.text().to_owned());
    let code = text(error.get("code"))?;
    let is_code = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_code.then_some((code, text(error.get("message")).unwrap_or_default()))
}

pub(crate) fn shorten(message: &str) -> String {
    let mut short: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
    if message.chars().nth(MESSAGE_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}

/// The same JSON for a terminal, with a line break at its end.
pub(crate) fn inert_json(text: &str) -> String {
    interlock_core::inert_json(text.trim_end()) + "\n"
}

/// One part of a path, or a value in a query: only letters, digits and `-._~` stand for themselves.
pub(crate) fn encode(text: &str) -> String {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, ENCODED).to_string()
}

/// A path with the parameters that have a value.
pub(crate) fn with_query(path: &str, parameters: &[(&str, Option<String>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", encode(value.as_deref()?))));
    let query = given.collect::<Vec<_>>().join("&");
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// `{"reason":…}`, or `{}`.
pub(crate) fn reason_body(reason: Option<&str>) -> String {
    reason.map_or_else(|| "{}".to_owned(), |reason| format!("{{\"reason\":{}}}", quote(reason)))
}
