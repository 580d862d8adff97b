//! The socket of the door: who may come in, and how they know who answers.
//!
//! The directory and the socket are their owner's alone; whoever connects must be the same user, and know the token of
//! this run of the server. Every answer is signed over the caller's challenge, so that nobody else can pose as the server.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path as UrlPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Limited};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use interlock_core::json::quote;
use interlock_core::{Code, Digest, percent_decoded};
use interlock_hosts::{Host, render_unreadable};
use interlock_runtime::process::{host_process, runner_process};
use interlock_wire::ExecStart;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::exec::ExecRefused;
use super::{Caller, HookTold, Hooks, Rendered};
use crate::answer::json;
use crate::routes::router;
use crate::server::ACCEPT_PAUSE;

/// The largest event. Hosts send whole files.
const EVENT_BYTES_MAX: usize = 17 * 1024 * 1024;
/// How long an event may take to arrive.
const EVENT_TIME_MAX: Duration = Duration::from_secs(10);
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a server that stops waits for answers under way.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);
/// How many events are worked on at a time; more wait.
const EVENTS_MAX: usize = 256;
const TOKEN: &str = "x-interlock-token";
const CHALLENGE: &str = "x-interlock-challenge";
const PROOF: &str = "x-interlock-proof";
const PROJECT: &str = "x-interlock-project";
/// The shell prefix of the host, as the hook's environment has it.
const PREFIX: &str = "x-interlock-prefix";
/// Why a hook could not carry the event itself.
const UNREAD: &str = "x-interlock-unread";
/// The version of the server, in every answer: a newer hook puts a newer server in its place.
const VERSION: &str = "x-interlock-version";
/// The longest challenge.
const CHALLENGE_BYTES_MAX: usize = 128;

/// Why the socket cannot be opened.
#[derive(Debug)]
pub enum SocketFault {
    /// The directory is not its owner's alone.
    Directory(PathBuf),
    /// The system says no.
    System(PathBuf, io::Error),
}

impl fmt::Display for SocketFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketFault::Directory(path) => {
                write!(f, "{} must be a directory that only its owner can use", path.display())
            }
            SocketFault::System(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for SocketFault {}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
struct Peer {
    process: Option<i32>,
}

/// A socket that is served.
pub struct Served(JoinHandle<()>);

impl Served {
    /// Waits until those who were being answered when the service stopped have their answers.
    pub async fn end(self) {
        // It ends by itself, or panicked: then there is nobody left to wait for.
        let _ = self.0.await;
    }
}

/// Opens the socket and serves until the service stops. What was there before belonged to a server that is gone: this one
/// holds the data directory.
pub fn serve_socket(hooks: Arc<Hooks>, path: &Path) -> Result<Served, SocketFault> {
    let system = |error| SocketFault::System(path.to_owned(), error);
    let directory = path.parent().ok_or_else(|| SocketFault::Directory(path.to_owned()))?;
    make_private(directory)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(system(error)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(system)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(system)?;
    let owner = fs::metadata(directory).map_err(system)?.uid();
    Ok(Served(tokio::spawn(accept_all(hooks, listener, owner))))
}

fn make_private(directory: &Path) -> Result<(), SocketFault> {
    let system = |error| SocketFault::System(directory.to_owned(), error);
    match fs::create_dir(directory) {
        Ok(()) => fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).map_err(system)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(system(error)),
    }
    let found = fs::symlink_metadata(directory).map_err(system)?;
    if !found.is_dir() || found.permissions().mode() & 0o077 != 0 {
        return Err(SocketFault::Directory(directory.to_owned()));
    }
    Ok(())
}

async fn accept_all(hooks: Arc<Hooks>, listener: UnixListener, owner: u32) {
    let routes = Router::new()
        .route("/hook/{host}", post(hook))
        .route("/control/{host}", post(control))
        .route("/exec/start", post(exec_start))
        .route("/exec/end", post(exec_end))
        .route("/daemon", get(daemon))
        .route("/daemon/stop", post(stop))
        .with_state(Arc::clone(&hooks))
        .merge(router(Arc::clone(&hooks.service)))
        .layer(map_response(with_version));
    let room = Arc::new(Semaphore::new(EVENTS_MAX));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_headers(64);
    let graceful = GracefulShutdown::new();
    let mut stopping = hooks.service.stopping.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Whether it stops, not whether that is news: it may have been told before this task ran for the first time.
            _ = stopping.wait_for(|stopping| *stopping) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                hooks.service.tell_unaccepted(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(peer) = peer_of(&stream, owner) else { continue };
        let (http, room, watcher) = (http.clone(), Arc::clone(&room), graceful.watcher());
        let routes = routes.clone().layer(Extension(peer));
        tokio::spawn(async move {
            let Ok(_permit) = room.acquire_owned().await else { return };
            // A connection that breaks changes nothing: what was submitted is decided on all the same.
            let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
            let _ = watcher.watch(connection).await;
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_TIME_MAX, graceful.shutdown()).await;
}

/// Who connected, if it is the owner of the socket or the super-user.
fn peer_of(stream: &UnixStream, owner: u32) -> Option<Peer> {
    let found = stream.peer_cred().ok()?;
    (found.uid() == owner || found.uid() == 0).then_some(Peer { process: found.pid() })
}

impl Hooks {
    fn knows(&self, headers: &HeaderMap) -> bool {
        let given = || headers.get_all(TOKEN).iter().map(HeaderValue::as_bytes).map(Digest::of_bytes);
        given().next().is_some() && given().all(|given| given.same_as(self.token))
    }

    /// The answer with the proof that it is ours.
    fn proven(&self, headers: &HeaderMap, status: StatusCode, body: String) -> Response {
        let challenge = headers.get(CHALLENGE).and_then(|value| value.to_str().ok());
        let challenge = challenge.filter(|challenge| challenge.len() <= CHALLENGE_BYTES_MAX);
        let proof = challenge.map(|challenge| self.key.prove(challenge, body.as_bytes()));
        let mut response = json(status, body);
        if let Some(proof) = proof.and_then(|proof| HeaderValue::from_str(&proof).ok()) {
            response.headers_mut().insert(PROOF, proof);
        }
        response
    }
}

async fn with_version(mut response: Response) -> Response {
    response.headers_mut().insert(VERSION, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    response
}

async fn read_event(request: Request) -> Result<Bytes, &'static str> {
    let limited = Limited::new(request.into_body(), EVENT_BYTES_MAX);
    match tokio::time::timeout(EVENT_TIME_MAX, limited.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err("it is too large, or broke off"),
        Err(_) => Err("it took too long to arrive"),
    }
}

async fn hook(
    State(hooks): State<Arc<Hooks>>,
    Extension(peer): Extension<Peer>,
    UrlPath(host): UrlPath<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let Some(host) = Host::parse(&host) else {
        return hooks.proven(&headers, StatusCode::NOT_FOUND, "{\"error\":{\"message\":\"no such host\"}}".to_owned());
    };
    if !hooks.knows(&headers) {
        let refused = render_unreadable(host, "Interlock: the hook does not know the token of this server");
        return hooks.proven(&headers, StatusCode::UNAUTHORIZED, rendered(&refused));
    }
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).and_then(percent_decoded);
    let (project, unread, prefix) = (header(PROJECT), header(UNREAD), header(PREFIX));
    let answered = match read_event(request).await {
        Ok(_) if unread.is_some() => {
            let (hooks, reason) = (Arc::clone(&hooks), unread.unwrap_or_default());
            let answered = tokio::task::spawn_blocking(move || hooks.unreadable(host, &reason)).await;
            answered.unwrap_or_else(|_| render_unreadable(host, "Interlock had an internal fault, so this is refused"))
        }
        Err(reason) => render_unreadable(host, &format!("Interlock refused this event: {reason}")),
        Ok(bytes) => {
            let hooks = Arc::clone(&hooks);
            let work = move || {
                let process = peer.process.map_or_else(|| host_process(0), host_process);
                let caller = Caller { process, hook: peer.process };
                hooks.answer(host, &bytes, &HookTold { pinned: project.as_deref(), prefix: prefix.as_deref(), caller })
            };
            // A panic is a refusal.
            let answered = tokio::task::spawn_blocking(work).await;
            answered.unwrap_or_else(|_| render_unreadable(host, "Interlock had an internal fault, so this is refused"))
        }
    };
    hooks.proven(&headers, StatusCode::OK, rendered(&answered))
}

fn rendered(answer: &Rendered) -> String {
    format!("{{\"exit\":{},\"stdout\":{},\"stderr\":{}}}", answer.exit, quote(&answer.stdout), quote(&answer.stderr))
}

async fn control(State(hooks): State<Arc<Hooks>>, UrlPath(host): UrlPath<String>, request: Request) -> Response {
    let headers = request.headers().clone();
    let refused = |message: &str| format!("{{\"error\":{{\"message\":{}}}}}", quote(message));
    let Some(host) = Host::parse(&host) else {
        return hooks.proven(&headers, StatusCode::NOT_FOUND, refused("no such host"));
    };
    if !hooks.knows(&headers) {
        return hooks.proven(&headers, StatusCode::UNAUTHORIZED, refused("the token is missing or wrong"));
    }
    let bytes = match read_event(request).await {
        Ok(bytes) => bytes,
        Err(reason) => return hooks.proven(&headers, StatusCode::BAD_REQUEST, refused(reason)),
    };
    let answering = Arc::clone(&hooks);
    let answered = tokio::task::spawn_blocking(move || answering.control(host, &bytes)).await;
    let (status, body) = match answered {
        Ok(Ok((false, body))) => (StatusCode::OK, body),
        Ok(Ok((true, body))) => (StatusCode::OK, body),
        Ok(Err(fault)) => (StatusCode::BAD_REQUEST, refused(&fault.to_string())),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, refused("internal fault; nothing was changed")),
    };
    hooks.proven(&headers, status, body)
}

/// A runner asks whether a command may start.
async fn exec_start(State(hooks): State<Arc<Hooks>>, Extension(peer): Extension<Peer>, request: Request) -> Response {
    let start = move |hooks: &Hooks, asked: ExecStart| {
        let process = runner_process(peer.process.unwrap_or(0), asked.ticket.as_deref());
        let caller = Caller { process, hook: peer.process };
        hooks.start(&asked, caller).map(|started| interlock_wire::write(&started))
    };
    exec(hooks, request, start).await
}

/// A runner tells how a command ended.
async fn exec_end(State(hooks): State<Arc<Hooks>>, request: Request) -> Response {
    exec(hooks, request, |hooks, told| hooks.end(told).map(|()| "{}".to_owned())).await
}

/// Answers a runner; whatever goes wrong is a refusal.
async fn exec<T: interlock_wire::Message + Send + 'static>(
    hooks: Arc<Hooks>,
    request: Request,
    act: impl FnOnce(&Hooks, T) -> Result<String, ExecRefused> + Send + 'static,
) -> Response {
    let headers = request.headers().clone();
    let refused = |code: Code, message: &str| {
        format!("{{\"error\":{{\"code\":{},\"message\":{}}}}}", quote(code.as_str()), quote(message))
    };
    if !hooks.knows(&headers) {
        let body = refused(Code::ContainTicket, "the token is missing or wrong");
        return hooks.proven(&headers, StatusCode::UNAUTHORIZED, body);
    }
    let read = match read_event(request).await {
        Ok(bytes) => core::str::from_utf8(&bytes).ok().and_then(|text| interlock_wire::read::<T>(text).ok()),
        Err(_) => None,
    };
    let Some(message) = read else {
        let body = refused(Code::RequestMalformed, "this is not what a runner asks");
        return hooks.proven(&headers, StatusCode::BAD_REQUEST, body);
    };
    let acting = Arc::clone(&hooks);
    let answered = tokio::task::spawn_blocking(move || act(&acting, message)).await;
    let (status, body) = match answered {
        Ok(Ok(body)) => (StatusCode::OK, body),
        Ok(Err(refusal)) => (StatusCode::FORBIDDEN, refused(refusal.code, &refusal.message)),
        Err(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, refused(Code::FaultInternal, "internal fault; nothing may start"))
        }
    };
    hooks.proven(&headers, status, body)
}

async fn daemon(State(hooks): State<Arc<Hooks>>, headers: HeaderMap) -> Response {
    let body = format!(
        "{{\"version\":{},\"fingerprint\":{},\"process\":{}}}",
        quote(env!("CARGO_PKG_VERSION")),
        quote(&hooks.key.fingerprint().to_string()),
        std::process::id()
    );
    hooks.proven(&headers, StatusCode::OK, body)
}

/// Stops the server, if it is the process the caller means: by now another may have taken its place.
async fn stop(State(hooks): State<Arc<Hooks>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let refused = |message: &str| format!("{{\"error\":{{\"message\":{}}}}}", quote(message));
    if !hooks.knows(&headers) {
        return hooks.proven(&headers, StatusCode::UNAUTHORIZED, refused("the token is missing or wrong"));
    }
    let meant = match read_event(request).await {
        Ok(bytes) => core::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse::<u32>().ok()),
        Err(reason) => return hooks.proven(&headers, StatusCode::BAD_REQUEST, refused(reason)),
    };
    if meant != Some(std::process::id()) {
        return hooks.proven(&headers, StatusCode::CONFLICT, refused("this is not the process that was meant"));
    }
    hooks.stop.notify_one();
    hooks.proven(&headers, StatusCode::OK, "{\"stopping\":true}".to_owned())
}
