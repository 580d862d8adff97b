//! What an attestation costs the edge after the commit: reading the agent's entry before, and signing. And what it costs
//! others to check one.
//!
//!     cargo bench --bench attestation

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use interlock_core::bundle::Bundle;
use interlock_core::ledger::{Entry, leaf_hash};
use interlock_runtime::attestation::{Algorithm, AttestationKeys, verify};
use interlock_runtime::clock::{SystemClock, SystemEntropy};
use interlock_runtime::ledger::{Ledger, Ports, Recorded, SqliteStore};

/// How often each is run; the median counts.
const ROUNDS: usize = 5_000;
const ORIGIN: &str = "interlock/0123456789abcdef";

fn main() {
    let golden = interlock_testkit::repository().join("crates/interlock-testkit/tests/golden/entries-1.jsonl");
    let entries = fs::read_to_string(golden).expect("entries");
    let line = entries.lines().find(|line| line.contains("\"decision\":\"APPROVED\"")).expect("an approval");
    let entry = Entry::from_bytes(line.as_bytes()).expect("an entry");
    let (now, leaf) = (entry.at / 1_000, leaf_hash(line.as_bytes()));
    let recorded = Recorded { entry, index: 2, leaf, replayed: false, corrected: None };

    let scratch = tempfile::tempdir().expect("a directory");
    let ports = Ports {
        store: Box::new(SqliteStore::open(scratch.path()).expect("a store")),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy::new()),
        checkpoint: None,
    };
    let ledger = Ledger::start(ports, Arc::new(Bundle::built_in().expect("a bundle"))).expect("a ledger");

    println!("| measure | p50 | p99 | limit |\n|---|---|---|---|");
    let row = |name: &str, limit: &str, run: &mut dyn FnMut()| {
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                run();
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("| {name} | {:.1} µs | {:.1} µs | {limit} |", times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
    };
    let previous = || leaf_hash(&ledger.entry(0).expect("a store").expect("an entry"));
    row("the entry before", "", &mut || {
        black_box(previous());
    });
    for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
        let (name, keys) = (algorithm.as_str(), AttestationKeys::in_memory(ORIGIN, algorithm).expect("a key"));
        row(&format!("{name}: the entry before, claims, signature"), "60 µs", &mut || {
            black_box(keys.attest(&recorded, None, Some(previous())).expect("a token"));
        });
        let (token, public) = (keys.attest(&recorded, None, None).expect("a token"), keys.jwks());
        row(&format!("{name}: check"), "", &mut || {
            black_box(verify(&token, &public, now).expect("it holds"));
        });
    }
    ledger.stop().expect("stopped");
}
