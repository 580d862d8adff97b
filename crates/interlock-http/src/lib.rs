//! The service: HTTP in front of the gate. It reads requests strictly, asks the ledger, and renders what was recorded;
//! it decides nothing.
//!
//! | to find | look in |
//! |---|---|
//! | which routes there are | `routes.rs` |
//! | keys, tokens and who may do what | `auth.rs`, `keys.rs` |
//! | tickets, who waits for them, trust, executions | `approvals.rs`, `waits.rs` |
//! | what operators do about agents | `agents.rs` |
//! | what was ruled | `activity.rs` |
//! | checkpoint, entries and proofs | `audit.rs` |
//! | requests to others: operators' commands, webhooks, spans | `client/` |
//! | events to principals | `deliver/` |
//! | how many requests a minute | `rate.rs` |
//! | what takes long: when, for whom and how much of it | `apart.rs`, `turns.rs`, `meter.rs` |
//! | how much of a body is read, and for whom | `body.rs` |
//! | how a request is read, and every way it can be malformed | `request.rs`, `register.rs`, `query.rs` |
//! | how an answer is written | `answer.rs`, `write.rs` |
//! | how much of answers waits to be read | `answers.rs` |
//! | attestations and their keys | `attest.rs` |
//! | logs, traces, request ids | `telemetry/` |
//! | connections, timeouts, stopping | `server.rs` |
//! | certificates and handshakes | `tls.rs` |

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm
)]

mod activity;
mod agents;
mod answer;
mod answers;
mod apart;
mod approvals;
mod attest;
mod audit;
mod auth;
mod body;
pub mod client;
pub mod deliver;
mod history;
pub mod hooks;
mod impatient;
mod keep;
mod keys;
mod meter;
mod metrics;
mod query;
mod rate;
mod register;
mod request;
mod routes;
mod rulings;
mod runs;
mod server;
mod state;
mod telemetry;
mod tls;
mod turns;
mod waits;
mod workflows;
mod write;

pub use meter::FuelMeter;
pub use rate::{Judging, Limiter, RateLimiter, RateLimits, Verdict};
pub use routes::router;
pub use server::{serve, serve_with};
pub use telemetry::Telemetry;
pub use telemetry::export::{Exporter, OtlpUrl, OtlpUrlError};
pub use telemetry::log::{Level, Log, LogFormat};
pub use tls::{Tls, certificate_trouble};
pub use turns::{Turn, Turns};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use interlock_core::Digest;
use interlock_runtime::StateFiles;
use interlock_runtime::attestation::AttestationKeys;
use interlock_runtime::clock::Entropy;
use interlock_runtime::coding_agents::Projects;
use interlock_runtime::gate::Gate;
use interlock_runtime::keeper::Keeper;
use interlock_runtime::ledger::TreeCache;

/// Everything a request may need.
#[derive(Debug)]
pub struct Service {
    gate: Arc<Gate>,
    /// The SHA-256 of the operator's key.
    operator: Digest,
    /// The guards of the bundle, with their commit roots held open.
    files: BTreeMap<String, StateFiles>,
    entropy: Arc<EntropyPort>,
    /// Without keys nothing that needs an attestation is answered as approved.
    attestation: OnceLock<Arc<AttestationKeys>>,
    metrics: metrics::HttpMetrics,
    telemetry: Telemetry,
    /// True once the server stops: nobody waits any longer then.
    stopping: tokio::sync::watch::Sender<bool>,
    rate: Box<dyn Limiter>,
    /// What is counted of deliveries.
    deliveries: OnceLock<Vec<Arc<deliver::DeliveryMetrics>>>,
    /// What proofs remember of the tree.
    tree: Mutex<TreeCache>,
    /// What takes long.
    apart: apart::Apart,
    waits: waits::Waits,
    /// Room for answers that wait to be read.
    answers: answers::Answers,
    /// When it was last told that connections cannot be accepted.
    unaccepted_told: Mutex<Option<Instant>>,
    /// Where coding agents work.
    projects: Arc<Projects>,
    /// What is kept of projects. Without a home nothing is.
    keeper: OnceLock<Arc<Keeper>>,
    /// The home whose runner hosts hand their command lines to. Without it there is no runner.
    home: OnceLock<PathBuf>,
}

/// A source of random bytes that can be shown.
struct EntropyPort(Arc<dyn Entropy>);

impl std::fmt::Debug for EntropyPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EntropyPort")
    }
}

impl Service {
    /// A service in front of a gate, with the limits of its bundle.
    pub fn new(gate: Arc<Gate>, operator_key: &str, entropy: Arc<dyn Entropy>) -> Arc<Service> {
        Service::with_telemetry(gate, operator_key, entropy, Telemetry::default())
    }

    /// A service in front of a gate, with what is told about its requests.
    pub fn with_telemetry(
        gate: Arc<Gate>,
        operator_key: &str,
        entropy: Arc<dyn Entropy>,
        telemetry: Telemetry,
    ) -> Arc<Service> {
        let (limits, apart) = (RateLimits::of(&gate.bundle()), apart::Apart::new(&gate.bundle()));
        Arc::new(Service {
            files: gate
                .bundle()
                .guards()
                .iter()
                .map(|(name, guard)| (name.clone(), StateFiles::new(guard.clone())))
                .collect(),
            gate,
            operator: Digest::of(&[operator_key]),
            entropy: Arc::new(EntropyPort(entropy)),
            attestation: OnceLock::new(),
            metrics: metrics::HttpMetrics::default(),
            telemetry,
            stopping: tokio::sync::watch::Sender::new(false),
            rate: Box::new(RateLimiter::new(limits)),
            apart,
            deliveries: OnceLock::new(),
            tree: Mutex::default(),
            waits: waits::Waits::default(),
            answers: answers::Answers::default(),
            unaccepted_told: Mutex::default(),
            projects: Arc::default(),
            keeper: OnceLock::new(),
            home: OnceLock::new(),
        })
    }

    /// Says in which home the runner of hosts lies. The first given stays.
    pub fn with_home(self: Arc<Self>, home: PathBuf) -> Arc<Service> {
        self.home.get_or_init(|| home);
        self
    }

    /// Shows what is counted of deliveries. The first given stay.
    pub fn with_deliveries(self: Arc<Self>, metrics: Vec<Arc<deliver::DeliveryMetrics>>) -> Arc<Service> {
        self.deliveries.get_or_init(|| metrics);
        self
    }
}
