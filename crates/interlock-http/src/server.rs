//! Connections: how many, how slow they may be, and how they end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use interlock_runtime::ledger::StopFault;
use interlock_runtime::startup::room_for_connections;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::Service;
use crate::answers::network_of;
use crate::impatient::Impatient;
use crate::routes::router;
use crate::telemetry::log::Level;
use crate::tls::Tls;

/// How many connections may be open, if the system allows as many files; more wait.
const CONNECTIONS_MAX: usize = 10_000;
/// One in so many of them is not for an address that has all the others.
const CONNECTIONS_PART: usize = 10;
/// How long the head of a request may take to arrive.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// The largest head, and the most a connection reads ahead of what was asked for.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// A timer that is always set, and due before the one that each request sets for its head. Without it the runtime would
/// often find none set, and then it wakes itself, by a system call, for each that is.
const TICK: Duration = Duration::from_secs(5);
/// How long requests in progress may take once the server stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);
/// How long to wait after a connection could not be accepted.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often it is told that connections cannot be accepted.
const UNACCEPTED_TOLD_EVERY: Duration = Duration::from_secs(60);
/// The errors of a process, and of a system, that has no descriptor left.
const NO_DESCRIPTOR: [i32; 2] = [24, 23];

/// Serves until `stop` is ready; then finishes what is in progress, and stops the ledger.
pub async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<(), StopFault> {
    serve_with(service, Some(listener), None, stop).await
}

/// The same, with TLS if there is a certificate, and without an address if there is no listener.
pub async fn serve_with(
    service: Arc<Service>,
    listener: Option<TcpListener>,
    tls: Option<Tls>,
    stop: impl Future<Output = ()>,
) -> Result<(), StopFault> {
    let routes = router(Arc::clone(&service));
    let warming = tokio::spawn(Arc::clone(&service).warm_tree());
    let ticking = tokio::spawn(async {
        loop {
            tokio::time::sleep(TICK).await;
        }
    });
    let graceful = GracefulShutdown::new();
    let room = Connections::new(room_for_connections(CONNECTIONS_MAX));
    let mut http = http1::Builder::new();
    // Answers are small: copied behind their heads they are written by the plainer call, and under TLS in one record.
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_headers(64).writev(false);
    http.max_buf_size(HEAD_BYTES_MAX);
    // Dropped when the server stops: nothing was asked yet in a handshake, so none is waited for.
    let (shaking_hands, stopped) = watch::channel(());
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&service, listener.as_ref(), &room) => accepted,
            () = &mut stop => break,
        };
        let (stream, address, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // The connections there are go on.
                service.tell_unaccepted(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (http, watcher, counted) = (http.clone(), graceful.watcher(), Arc::clone(&service));
        let answering = answering(&service, &routes, address);
        match tls.clone() {
            None => tokio::spawn(async move {
                let connection = http.serve_connection(TokioIo::new(Impatient::new(stream)), answering);
                counted.count_connection(watcher.watch(connection)).await;
                drop(place);
            }),
            Some(tls) => {
                let mut stopped = stopped.clone();
                tokio::spawn(async move {
                    let handshake = tokio::select! {
                        handshake = tls.accept(stream) => handshake,
                        _ = stopped.changed() => return,
                    };
                    let Ok(stream) = handshake else { return };
                    let connection = http.serve_connection(TokioIo::new(Impatient::new(stream)), answering);
                    counted.count_connection(watcher.watch(connection)).await;
                    drop(place);
                })
            }
        };
    }
    warming.abort();
    ticking.abort();
    drop(shaking_hands);
    drop(listener);
    service.stopping.send_replace(true);
    let _ = tokio::time::timeout(STOP_TIME_MAX, graceful.shutdown()).await;
    let ledger = service.gate.ledger().clone();
    let stopped = tokio::task::spawn_blocking(move || ledger.stop()).await;
    stopped.unwrap_or(Err(StopFault::Died))
}

/// What answers on a connection of an address: the routes, and a bound on what they leave unread.
fn answering(
    service: &Arc<Service>,
    routes: &Router,
    address: IpAddr,
) -> impl HttpService<Incoming, ResBody = axum::body::Body, Error = Infallible, Future: Send> + use<> {
    let (service, routes) = (Arc::clone(service), TowerToHyperService::new(routes.clone()));
    service_fn(move |request| {
        let (service, answered) = (Arc::clone(&service), routes.call(request));
        async move {
            let response: Response = answered.await?;
            Ok(service.answers.hold(response, address))
        }
    })
}

impl Service {
    async fn count_connection<T>(&self, connection: impl Future<Output = T>) {
        self.metrics.connections.fetch_add(1, Ordering::Relaxed);
        // A connection that breaks changes nothing: what was submitted is decided on all the same.
        let _ = connection.await;
        self.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a connection that could not be accepted, and says so now and then.
    pub(crate) fn tell_unaccepted(&self, error: &io::Error) {
        let advice = match error.raw_os_error() {
            Some(number) if NO_DESCRIPTOR.contains(&number) => {
                "; raise the limit of open files (`ulimit -n`, `LimitNOFILE=`)"
            }
            Some(_) | None => "",
        };
        self.count_unaccepted(|| format!("connections cannot be accepted: {error}{advice}"));
    }

    fn count_unaccepted(&self, message: impl FnOnce() -> String) {
        self.metrics.unaccepted.fetch_add(1, Ordering::Relaxed);
        let mut told = self.unaccepted_told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= UNACCEPTED_TOLD_EVERY) {
            *told = Some(Instant::now());
            if let Some(log) = &self.telemetry.log {
                log.event(Level::Error, "connections_unaccepted", &message(), &[]);
            }
        }
    }
}

/// Room for connections: so many in all, and never all of them for one address.
struct Connections {
    room: Arc<Semaphore>,
    len_max: usize,
    by_network: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// The place of one connection, until it is dropped.
struct Place {
    _permit: OwnedSemaphorePermit,
    network: IpAddr,
    by_network: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Connections {
    fn new(len_max: usize) -> Connections {
        Connections { room: Arc::new(Semaphore::new(len_max)), len_max, by_network: Arc::default() }
    }

    /// A place for a connection of this address; `None` if it has its share.
    fn place(&self, permit: OwnedSemaphorePermit, address: IpAddr) -> Option<Place> {
        let network = network_of(address);
        let share = self.len_max.saturating_sub(self.len_max.checked_div(CONNECTIONS_PART).unwrap_or(0));
        let mut counts = self.by_network.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(&network).copied().unwrap_or(0).checked_add(1).filter(|count| *count <= share)?;
        counts.insert(network, count);
        Some(Place { _permit: permit, network, by_network: Arc::clone(&self.by_network) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.by_network.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.network);
            }
        }
    }
}

async fn accept(
    service: &Service,
    listener: Option<&TcpListener>,
    room: &Connections,
) -> io::Result<(TcpStream, IpAddr, Place)> {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        let permit = match Arc::clone(&room.room).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let open = room.len_max;
                service.count_unaccepted(|| {
                    format!("{open} connections are open and no more fit; raise the limit of open files if that is few")
                });
                Arc::clone(&room.room).acquire_owned().await.map_err(io::Error::other)?
            }
        };
        let (stream, peer) = match listener.accept().await {
            // Somebody left before it was let in.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => continue,
            accepted => accepted?,
        };
        let Some(place) = room.place(permit, peer.ip()) else {
            service.count_unaccepted(|| "one address has nine tenths of all connections and gets no more".to_owned());
            continue;
        };
        // Who has left already is found out by reading.
        let _ = stream.set_nodelay(true);
        return Ok((stream, peer.ip(), place));
    }
}
