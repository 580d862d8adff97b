//! One exchange with a receiver: connect, send, read the head of the answer. A receiver is not trusted: everything it
//! sends has a limit, nothing of it is kept, and it cannot send this client anywhere else.

use std::error::Error;
use std::io;
use std::time::Duration;

use interlock_core::Cause;
use interlock_runtime::startup::StartupFault;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::{Destination, Destinations, Outgoing, Schedule};
use crate::client::{HEAD_BYTES_MAX, Head, Request};
use crate::tls::trust;

/// How much of an answer's body is read, to be polite; none of it is kept.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// What became of an attempt.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The receiver has it.
    Delivered,
    /// Trying again would change nothing.
    Refused(String),
    /// It may go better another time.
    Failed(String),
}

/// Sends events.
#[derive(Clone)]
pub(super) struct Client {
    tls: Option<TlsConnector>,
    connect_time_max: Duration,
    exchange_time_max: Duration,
}

impl Client {
    pub(super) fn new(destinations: &Destinations, schedule: Schedule) -> Result<Client, StartupFault> {
        let Schedule { connect_time_max, exchange_time_max, .. } = schedule;
        let needs_tls = destinations.known.values().any(|destination| destination.certified.is_some());
        let tls = if needs_tls { Some(connector(destinations)?) } else { None };
        Ok(Client { tls, connect_time_max, exchange_time_max })
    }

    /// Makes one attempt.
    pub(super) async fn send(&self, destination: &Destination, event: &Outgoing, now_seconds: u64) -> Outcome {
        let Ok(request) = request(destination, event, now_seconds) else {
            return Outcome::Refused("the event's id does not fit into a header".to_owned());
        };
        let deadline = Instant::now().checked_add(self.exchange_time_max).unwrap_or_else(Instant::now);
        let exchange = timeout_at(deadline, self.exchange(destination, &request));
        let Ok(answered) = exchange.await else {
            return Outcome::Failed(format!("no answer within {:?}", self.exchange_time_max));
        };
        let (head, rest) = match answered {
            Ok(answer) => answer,
            Err(cause) => return Outcome::Failed(cause.to_string()),
        };
        // The status has decided; a body that breaks, stalls or never ends changes nothing.
        let _ = timeout_at(deadline, rest.drain(&head)).await;
        match head.status {
            200..=299 => Outcome::Delivered,
            410 => Outcome::Refused("the receiver answered 410: it wants no more events".to_owned()),
            status @ 300..=399 => {
                Outcome::Failed(format!("the receiver answered {status}; redirects are not followed"))
            }
            status => Outcome::Failed(format!("the receiver answered {status}")),
        }
    }

    async fn exchange(&self, to: &Destination, request: &[u8]) -> Result<(Head, Rest), Cause> {
        let address = (to.address.host.as_str(), to.address.port);
        let connected = timeout(self.connect_time_max, TcpStream::connect(address)).await;
        let connected =
            connected.map_err(|_| format!("no connection within {:?}", self.connect_time_max)).map_err(Cause::from)?;
        let stream = connected.map_err(broken("connecting"))?;
        let _ = stream.set_nodelay(true);
        match (&to.certified, &self.tls) {
            (None, _) => speak(Box::new(stream), request).await.map_err(broken("the exchange")),
            (Some(name), Some(tls)) => {
                let stream = tls.connect(name.clone(), stream).await.map_err(broken("the TLS handshake"))?;
                speak(Box::new(stream), request).await.map_err(broken("the exchange"))
            }
            (Some(_), None) => Err("there is no trust to speak TLS with".into()),
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// What is behind the head of an answer: bytes that came with it, and the connection.
struct Rest {
    bytes: Vec<u8>,
    stream: Box<dyn Stream>,
}

async fn speak(mut stream: Box<dyn Stream>, request: &[u8]) -> io::Result<(Head, Rest)> {
    let sent = match stream.write_all(request).await {
        Ok(()) => stream.flush().await,
        broken @ Err(_) => broken,
    };
    let (mut bytes, mut looking) = (Vec::new(), HeadEnd::default());
    loop {
        if let Some(end) = looking.find(&bytes) {
            let rest = bytes.split_off(end);
            let head = Head::read(&mut bytes.as_slice());
            match head {
                Ok(head) => return Ok((head, Rest { bytes: rest, stream })),
                // An interim answer: the one that counts comes behind it.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    (bytes, looking) = (rest, HeadEnd::default());
                }
                Err(error) => return Err(error),
            }
            continue;
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the head is too long"));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            // Whoever answers before everything was read is heard all the same; this one did not answer.
            return Err(sent.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

/// Looks for the first empty line, at every byte once.
#[derive(Default)]
struct HeadEnd {
    line: usize,
    looked: usize,
}

impl HeadEnd {
    fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(at) = bytes.get(self.looked..)?.iter().position(|byte| *byte == b'\n') {
            let end = self.looked.saturating_add(at).saturating_add(1);
            let line = bytes.get(self.line..end)?;
            (self.line, self.looked) = (end, end);
            if matches!(line, b"\n" | b"\r\n") {
                return Some(end);
            }
        }
        self.looked = bytes.len();
        None
    }
}

impl Rest {
    /// Reads the body to its end, as far as that is known and within a limit, and lets the connection go.
    async fn drain(mut self, head: &Head) {
        let length = head.length().ok().flatten().and_then(|length| usize::try_from(length).ok());
        loop {
            let is_last = self.bytes.ends_with(b"0\r\n\r\n") && head.is_chunked().is_ok_and(|chunked| chunked);
            let is_whole = length.is_some_and(|length| self.bytes.len() >= length) || is_last;
            if is_whole || self.bytes.len() >= BODY_BYTES_MAX {
                return;
            }
            match self.stream.read_buf(&mut self.bytes).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

fn broken<E: Error + Send + Sync + 'static>(what: &'static str) -> impl Fn(E) -> Cause {
    move |error| Cause::while_doing(format!("{what} failed"), error)
}

fn request(to: &Destination, event: &Outgoing, now_seconds: u64) -> io::Result<Vec<u8>> {
    let timestamp = now_seconds.to_string();
    let signature = to.sign(&event.event_id, &timestamp, &event.body);
    let headers = [
        ("content-type", "application/cloudevents+json"),
        ("webhook-id", event.event_id.as_str()),
        ("webhook-timestamp", &timestamp),
        ("webhook-signature", &signature),
    ];
    let (target, authority) = (to.target.as_str(), to.address.authority.as_str());
    Request { method: "POST", target, authority, headers: &headers, body: Some(event.body.as_bytes()) }.bytes()
}

fn connector(destinations: &Destinations) -> Result<TlsConnector, StartupFault> {
    Ok(TlsConnector::from(trust(destinations.authorities.as_deref())?))
}
