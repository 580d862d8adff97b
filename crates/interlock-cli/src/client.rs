//! The client of the service: one request, one connection, one answer, within limits.
//!
//! It knows how to find server and key and how to say what went wrong and what to do next. What an answer means is the
//! commands' business; what a key may do is the server's.

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use interlock_core::action::Millis;
use interlock_core::json::{BYTES_MAX, JsonError, LoadError};
use interlock_core::visible;
use interlock_http::client::{self as http, AddressFault, ConnectFault, Head, Request, Stream};
use interlock_runtime::clock::{Clock, SystemClock};
use interlock_wire::{Error, ErrorAnswer, Message, ReasonRequest};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::daemon::Daemon;
use crate::serve::Places;
use crate::{Fault, moment, style};

/// Where a server listens unless it was told otherwise.
const URL: &str = "http://127.0.0.1:7878";
/// How long connecting may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a daemon may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a whole answer may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// How long an answer may take for which a whole project is read or written.
const LONG_TIME_MAX: Duration = Duration::from_secs(600);
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
    /// The body as what the service sends there.
    pub(crate) fn read<T: Message>(&self) -> Result<T, Fault> {
        interlock_wire::read(&self.body).map_err(|error| match error {
            LoadError::Json(error) => not_json(&error),
            LoadError::Shape { .. } => {
                let what = shorten(&visible(&error.to_string()));
                Fault::new(format!("the server's answer is none that this version understands: {what}"))
                    .and_then_do("it may be of another version: `interlock doctor`")
            }
        })
    }

    /// The body for `--json`: the same document, with what would move a cursor or hide written as escapes.
    pub(crate) fn json(&self) -> String {
        inert_json(&self.body)
    }
}

fn not_json(error: &JsonError) -> Fault {
    let next = "check --server: this does not look like an Interlock server";
    Fault::new(format!("the server's answer is not JSON: {error}")).and_then_do(next)
}

impl Client {
    /// The server and key that arguments and environment name.
    pub(crate) fn open(arguments: &ServerArguments) -> Result<Client, Fault> {
        let address = Address::find(arguments.server.as_deref())?;
        let key = Key::find(arguments.key_file.as_deref())?;
        if !address.url.is_encrypted && !address.is_loopback() {
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

    /// The same for what may take long: a whole project is read or written before the answer.
    pub(crate) fn get_patiently(&self, path: &str) -> Result<Answer, Fault> {
        self.send_within("GET", path, None, LONG_TIME_MAX)
    }

    pub(crate) fn post_patiently(&self, path: &str, body: &str) -> Result<Answer, Fault> {
        self.send_within("POST", path, Some(body), LONG_TIME_MAX)
    }

    fn send(&self, method: &str, path: &str, body: Option<&str>) -> Result<Answer, Fault> {
        self.send_within(method, path, body, ANSWER_TIME_MAX)
    }

    fn send_within(&self, method: &str, path: &str, body: Option<&str>, time: Duration) -> Result<Answer, Fault> {
        let deadline = Instant::now() + time;
        let stream = self.connect(deadline)?;
        let broken = |error: io::Error| {
            // Neither goes away by itself, so nobody waits for it.
            if let Some((what, next)) = interlock_http::certificate_trouble(&error) {
                return Fault::new(format!("{} {what}", self.url())).and_then_do(next);
            }
            let what = match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!("did not answer within {} seconds", time.as_secs())
                }
                io::ErrorKind::InvalidData => format!("answered with what is not HTTP: {error}"),
                _ => format!("broke the connection off: {error}"),
            };
            let next = "see that it is an Interlock server and still runs: `interlock doctor`";
            Fault::new(format!("{} {what}", self.url())).and_then_do(next).transient()
        };
        let bearer = self.key.as_ref().map(|key| format!("Bearer {}", key.text));
        let mut headers = vec![("accept", "application/json, text/plain")];
        headers.extend(bearer.as_ref().map(|bearer| ("authorization", bearer.as_str())));
        headers.extend(body.map(|_| ("content-type", "application/json")));
        let target = format!("{}{path}", self.address.prefix());
        let authority = self.address.url.authority.as_str();
        let request = Request { method, target: &target, authority, headers: &headers, body: body.map(str::as_bytes) };
        let answer = http::exchange(stream, &request, BYTES_MAX).and_then(http::Answer::text).map_err(broken)?;
        self.judge(&answer.0, answer.1)
    }

    /// Opens a connection, encrypted if the address says so.
    fn connect(&self, deadline: Instant) -> Result<Box<dyn Stream>, Fault> {
        let unreachable = |error: io::Error| {
            let what = match error.kind() {
                io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it does not answer".to_owned(),
                _ => error.to_string(),
            };
            let next = "start one with `interlock serve`, or name another with --server or INTERLOCK_URL";
            Fault::new(format!("no server at {}: {what}", self.url())).and_then_do(next).transient()
        };
        if let Some(socket) = &self.address.socket {
            return Ok(Box::new(http::connect_unix(socket, deadline).map_err(unreachable)?));
        }
        let connected = http::connect(&self.address.url, self.authorities.as_deref(), CONNECT_TIME_MAX, deadline);
        connected.map_err(|fault| match fault {
            ConnectFault::Unreachable(error) => unreachable(error),
            ConnectFault::Trust(fault) => Fault::with_code(fault.code, fault.message),
        })
    }

    fn judge(&self, head: &Head, body: String) -> Result<Answer, Fault> {
        let status = head.status;
        let now = head.header("date").and_then(moment::parse_http_date).unwrap_or_else(|| SystemClock.now());
        if (200..300).contains(&status) {
            return Ok(Answer { body, created: status == 201, now });
        }
        let (code, message) = match read_error(&body) {
            Some((code, message)) => (Some(code), message),
            None => (None, format!("{} answered {status}, and not as an Interlock server does", self.url())),
        };
        let mut fault = Fault::new(shorten(&message));
        let retry_after = head.header("retry-after").and_then(|seconds| seconds.parse().ok());
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

/// Where a server is.
#[derive(Debug, Clone)]
struct Address {
    /// The socket of this user's daemon, where no server was named.
    socket: Option<PathBuf>,
    url: http::Address,
    shown: String,
}

impl Address {
    fn find(given: Option<&str>) -> Result<Address, Fault> {
        let url = given.map(str::to_owned).or_else(|| variable("INTERLOCK_URL"));
        let socket = crate::serve::home().map(|home| home.join(crate::daemon::SOCKET));
        let socket = socket.filter(|socket| url.is_none() && socket.exists());
        let url = url.unwrap_or_else(|| URL.to_owned());
        let parsed = Address::parse(&url).map_err(|reason| {
            let next = format!("write it as {URL}");
            Fault::new(format!("`{}` is not the URL of a server: {reason}", interlock_core::display(&url)))
                .and_then_do(next)
        })?;
        let shown = socket.as_ref().map(|socket| socket.display().to_string());
        let shown = shown.unwrap_or_else(|| url.trim_end_matches('/').to_owned());
        Ok(Address { socket, url: parsed, shown })
    }

    fn parse(url: &str) -> Result<http::Address, &'static str> {
        let parsed = http::Address::parse(url).map_err(|fault| match fault {
            AddressFault::Characters => "it holds spaces, backslashes or other than ASCII characters",
            AddressFault::Scheme => "it does not begin with http:// or https://",
            AddressFault::User | AddressFault::Fragment => "a user, query or fragment does not belong in it",
            AddressFault::Host => "it names no host",
            AddressFault::Port => "its port is not a number from 1 to 65535",
        })?;
        if parsed.target.contains('?') { Err("a user, query or fragment does not belong in it") } else { Ok(parsed) }
    }

    /// What comes before every path.
    fn prefix(&self) -> &str {
        self.url.target.trim_end_matches('/')
    }

    fn is_loopback(&self) -> bool {
        let host = self.url.host.as_str();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
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

/// Code and message of an error body.
pub(crate) fn read_error(body: &str) -> Option<(String, String)> {
    let ErrorAnswer { error: Error { code, message, .. }, .. } = interlock_wire::read(body).ok()?;
    let is_code = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_code.then_some((code, message))
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

/// Why something is done, as a request says it.
pub(crate) fn reason_body(reason: Option<&str>) -> String {
    interlock_wire::write(&ReasonRequest { reason: reason.map(str::to_owned) })
}
