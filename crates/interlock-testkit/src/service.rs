//! A server in this process on a port of its own, and a plain client that hides nothing.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use interlock_core::action::Millis;
use interlock_core::bundle::Bundle;
use interlock_http::Service;
use interlock_runtime::attestation::{Algorithm, AttestationKeys};
use interlock_runtime::clock::{Clock, SystemEntropy};
use interlock_runtime::gate::Gate;
use interlock_runtime::ledger::{CheckpointFile, Ledger, MemoryStore, Ports, Store};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::wait::HANG;

/// The operator's key of every server here.
pub const OPERATOR_KEY: &str = "operator-key-of-the-tests";
/// 2026-11-15T12:00:30Z.
pub const START_MS: Millis = 1_794_744_030_000;

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock at [`START_MS`].
    pub fn new() -> Arc<ManualClock> {
        Arc::new(ManualClock(AtomicU64::new(START_MS)))
    }

    /// Moves it forward.
    pub fn advance(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }

    /// Moves it back.
    pub fn set_back(&self, millis: u64) {
        self.0.fetch_sub(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::SeqCst)
    }
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads"))
}

/// A running server; it stops when dropped.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    /// Its ledger.
    pub ledger: Ledger,
    /// What answers.
    pub service: Arc<Service>,
    stop: Option<oneshot::Sender<()>>,
    stopped: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    /// A server on a store in memory.
    pub fn in_memory(bundle: Bundle) -> Server {
        Server::start(Box::new(MemoryStore::default()), None, bundle)
    }

    /// A server on any store.
    pub fn start(store: Box<dyn Store>, checkpoint: Option<CheckpointFile>, bundle: Bundle) -> Server {
        let keys = AttestationKeys::in_memory("interlock/0123456789abcdef", Algorithm::Es256).expect("a key");
        Server::start_with(store, checkpoint, bundle, Some(Arc::new(keys)))
    }

    /// A server on any store, with these keys for attestations or with none.
    pub fn start_with(
        store: Box<dyn Store>,
        checkpoint: Option<CheckpointFile>,
        bundle: Bundle,
        keys: Option<Arc<AttestationKeys>>,
    ) -> Server {
        let (clock, bundle) = (ManualClock::new(), Arc::new(bundle));
        let entropy = Arc::new(SystemEntropy::new());
        let clock_port: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let ports = Ports { store, clock: clock_port, entropy: Arc::<SystemEntropy>::clone(&entropy) as _, checkpoint };
        let ledger = Ledger::start(ports, Arc::clone(&bundle)).expect("a ledger");
        let gate = Arc::new(Gate::new(ledger.clone(), bundle));
        let mut service = Service::new(gate, OPERATOR_KEY, entropy);
        if let Some(keys) = keys {
            service = service.with_attestation(keys);
        }
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopping) = oneshot::channel();
        let serving = Arc::clone(&service);
        let stopped = runtime().spawn(async move {
            let stop = async {
                let _ = stopping.await;
            };
            interlock_http::serve(serving, listener, stop).await.expect("a clean stop");
        });
        Server { address, clock, ledger, service, stop: Some(stop), stopped: Some(stopped) }
    }

    /// A connection to it.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(stopped) = self.stopped.take() {
            let _ = runtime().block_on(async { tokio::time::timeout(HANG, stopped).await });
        }
    }
}

/// A keep-alive connection.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The head, as it came.
    pub head: String,
    /// The body, as it came.
    pub body: String,
}

impl Client {
    /// A client of an address; it connects when needed.
    pub fn new(address: SocketAddr) -> Client {
        Client { address, stream: None }
    }

    /// Sends a request and reads the answer.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Answer> {
        self.send_bytes(method, path, headers, body.as_bytes())
    }

    /// The same, with a body that need not be text.
    pub fn send_bytes(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_read_timeout(Some(HANG))?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        stream.get_mut().write_all(&bytes)?;
        let answer = read_answer(&mut stream)?;
        if cfg!(debug_assertions) {
            crate::wire::check(method, path, &answer);
        }
        if !answer.head.to_ascii_lowercase().contains("connection: close") {
            self.stream = Some(stream);
        }
        Ok(answer)
    }
}

/// Reads one answer from a connection.
pub fn read_answer(stream: &mut impl BufRead) -> io::Result<Answer> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(Answer { status, head, body: String::from_utf8_lossy(&body).into_owned() })
}
