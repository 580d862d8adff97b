//! Connections: how many, how slow they may be, and how they end.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use interlock_runtime::startup::room_for_connections;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::Service;
use crate::impatient::Impatient;
use crate::routes::router;
use crate::tls::Tls;

/// How many connections may be open, if the system allows as many files; more wait.
const CONNECTIONS_MAX: usize = 10_000;
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
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why serving ended badly.
#[derive(Debug)]
pub enum ServeFault {
    /// The ledger did not stop cleanly.
    Ledger(String),
}

impl std::fmt::Display for ServeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServeFault::Ledger(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ServeFault {}

/// Serves until `stop` is ready; then finishes what is in progress, and stops the ledger.
pub async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeFault> {
    serve_with(service, Some(listener), None, stop).await
}

/// The same, with TLS if there is a certificate, and without an address if there is no listener.
pub async fn serve_with(
    service: Arc<Service>,
    listener: Option<TcpListener>,
    tls: Option<Tls>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeFault> {
    let routes = router(Arc::clone(&service));
    let warming = tokio::spawn(Arc::clone(&service).warm_tree());
    let ticking = tokio::spawn(async {
        loop {
            tokio::time::sleep(TICK).await;
        }
    });
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(room_for_connections(CONNECTIONS_MAX)));
    let mut http = http1::Builder::new();
    // Answers are small: copied behind their heads they are written by the plainer call, and under TLS in one record.
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_headers(64).writev(false);
    http.max_buf_size(HEAD_BYTES_MAX);
    // Dropped when the server stops: nothing was asked yet in a handshake, so none is waited for.
    let (shaking_hands, stopped) = watch::channel(());
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(listener.as_ref(), &room) => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, permit)) = accepted else {
            // Out of descriptors, most likely; the connections there are go on.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (http, routes, watcher) = (http.clone(), routes.clone(), graceful.watcher());
        let counted = Arc::clone(&service);
        match tls.clone() {
            None => tokio::spawn(async move {
                let connection =
                    http.serve_connection(TokioIo::new(Impatient::new(stream)), TowerToHyperService::new(routes));
                counted.count_connection(watcher.watch(connection)).await;
                drop(permit);
            }),
            Some(tls) => {
                let mut stopped = stopped.clone();
                tokio::spawn(async move {
                    let handshake = tokio::select! {
                        handshake = tls.accept(stream) => handshake,
                        _ = stopped.changed() => return,
                    };
                    let Ok(stream) = handshake else { return };
                    let connection =
                        http.serve_connection(TokioIo::new(Impatient::new(stream)), TowerToHyperService::new(routes));
                    counted.count_connection(watcher.watch(connection)).await;
                    drop(permit);
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
    match stopped {
        Ok(Ok(())) => Ok(()),
        Ok(Err(fault)) => Err(ServeFault::Ledger(fault.0)),
        Err(_) => Err(ServeFault::Ledger("the ledger could not be stopped".to_owned())),
    }
}

impl Service {
    async fn count_connection<T>(&self, connection: impl Future<Output = T>) {
        self.metrics.connections.fetch_add(1, Ordering::Relaxed);
        // A connection that breaks changes nothing: what was submitted is decided on all the same.
        let _ = connection.await;
        self.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn accept(
    listener: Option<&TcpListener>,
    room: &Arc<Semaphore>,
) -> io::Result<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let Some(listener) = listener else { return std::future::pending().await };
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, permit))
}
