//! One exchange with a receiver: connect, send, read the head of the answer. A receiver is not trusted: everything it
//! sends has a limit, nothing of it is kept, and it cannot send this client anywhere else.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use interlock_core::Cause;
use interlock_runtime::startup::StartupFault;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::{Destination, Destinations, Outgoing, Schedule};
use crate::tls::trust;

/// How much of an answer's body is read, to be polite; none of it is kept.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How many headers an answer may have.
const HEADERS_MAX: usize = 100;

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
        let exchange = timeout_at(deadline, self.exchange(destination, request));
        let Ok(answered) = exchange.await else {
            return Outcome::Failed(format!("no answer within {:?}", self.exchange_time_max));
        };
        let (_connection, answer) = match answered {
            Ok(answer) => answer,
            Err(cause) => return Outcome::Failed(cause.to_string()),
        };
        let status = answer.status();
        // The status has decided; a body that breaks, stalls or never ends changes nothing.
        let _ = timeout_at(deadline, drain(answer.into_body())).await;
        match status {
            status if status.is_success() => Outcome::Delivered,
            StatusCode::GONE => Outcome::Refused("the receiver answered 410: it wants no more events".to_owned()),
            status if status.is_redirection() => {
                Outcome::Failed(format!("the receiver answered {}; redirects are not followed", status.as_u16()))
            }
            status => Outcome::Failed(format!("the receiver answered {}", status.as_u16())),
        }
    }

    async fn exchange(&self, to: &Destination, request: Request<Full<Bytes>>) -> Result<Answered, Cause> {
        let connected = timeout(self.connect_time_max, TcpStream::connect((to.host.as_str(), to.port))).await;
        let connected =
            connected.map_err(|_| format!("no connection within {:?}", self.connect_time_max)).map_err(Cause::from)?;
        let stream = connected.map_err(broken("connecting"))?;
        let _ = stream.set_nodelay(true);
        match (&to.certified, &self.tls) {
            (None, _) => speak(stream, request).await,
            (Some(name), Some(tls)) => {
                let stream = tls.connect(name.clone(), stream).await.map_err(broken("the TLS handshake"))?;
                speak(stream, request).await
            }
            (Some(_), None) => Err("there is no trust to speak TLS with".into()),
        }
    }
}

/// An answer, and the connection it comes over.
type Answered = (Driven, Response<Incoming>);

/// A connection that ends when nobody waits for it any more.
struct Driven(JoinHandle<()>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn speak<S>(stream: S, request: Request<Full<Bytes>>) -> impl Future<Output = Result<Answered, Cause>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX).max_header_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    async move {
        let spoken = builder.handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = spoken.map_err(broken("the connection"))?;
        let driven = Driven(tokio::spawn(async move {
            // What goes wrong is told to whoever waits for the answer.
            let _ = connection.await;
        }));
        let answer = sender.send_request(request).await.map_err(broken("the exchange"))?;
        Ok((driven, answer))
    }
}

fn broken<E: Error + Send + Sync + 'static>(what: &'static str) -> impl Fn(E) -> Cause {
    move |error| Cause::while_doing(format!("{what} failed"), error)
}

async fn drain(mut body: Incoming) {
    let mut left = BODY_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        left = left.saturating_sub(frame.data_ref().map_or(1, Bytes::len));
        if left == 0 {
            return;
        }
    }
}

fn request(to: &Destination, event: &Outgoing, now_seconds: u64) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let timestamp = now_seconds.to_string();
    let signature = to.sign(&event.event_id, &timestamp, &event.body);
    Request::builder()
        .method(Method::POST)
        .uri(to.target.clone())
        .header(HOST, &to.authority)
        .header(CONNECTION, HeaderValue::from_static("close"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/cloudevents+json"))
        .header(USER_AGENT, HeaderValue::from_static(concat!("interlock/", env!("CARGO_PKG_VERSION"))))
        .header("webhook-id", &event.event_id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", signature)
        .body(Full::new(Bytes::from(event.body.clone())))
}

fn connector(destinations: &Destinations) -> Result<TlsConnector, StartupFault> {
    Ok(TlsConnector::from(trust(destinations.authorities.as_deref())?))
}
