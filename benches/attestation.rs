//! What an attestation costs the edge after the commit: reading the agent's entry before, and signing. And what it costs
//! others to check one.
//!
//!     cargo bench --bench attestation

mod limits;

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use interlock_core::bundle::Bundle;
use interlock_core::ledger::{Entry, leaf_hash};
use interlock_runtime::attestation::{Algorithm, AttestationKeys, verify};
use interlock_runtime::clock::{SystemClock, SystemEntropy};
use interlock_runtime::ledger::{Ledger, Ports, Recorded, SqliteStore};

/// Contenders run in interleaved rounds, and the least time of a round counts: the machine is shared.
const ROUNDS: usize = 30;
const RUNS: usize = 300;
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

    let previous = || leaf_hash(&ledger.entry(0).expect("a store").expect("an entry"));
    let keys = [Algorithm::Es256, Algorithm::EdDsa]
        .map(|algorithm| AttestationKeys::in_memory(ORIGIN, algorithm).expect("a key"));
    let tokens = keys.each_ref().map(|keys| (keys.attest(&recorded, None, None).expect("a token"), keys.jwks()));
    let sign = |at: usize| drop(black_box(keys[at].attest(&recorded, None, Some(previous())).expect("a token")));
    let check = |at: usize| drop(black_box(verify(&tokens[at].0, &tokens[at].1, now).expect("it holds")));
    let mut contenders: [(&str, bool, &dyn Fn(), f64); 5] = [
        ("the entry before", false, &|| assert!(black_box(previous()) != leaf), f64::MAX),
        ("ES256: the entry before, claims, signature", true, &|| sign(0), f64::MAX),
        ("EdDSA: the entry before, claims, signature", true, &|| sign(1), f64::MAX),
        ("ES256: check", false, &|| check(0), f64::MAX),
        ("EdDSA: check", false, &|| check(1), f64::MAX),
    ];
    for _ in 0..ROUNDS {
        for (_, _, run, least) in &mut contenders {
            let start = Instant::now();
            (0..RUNS).for_each(|_| run());
            *least = least.min(start.elapsed().as_secs_f64() * 1e6 / RUNS as f64);
        }
    }
    println!("| measure | time | limit |\n|---|---|---|");
    for (name, is_limited, _, least) in contenders {
        let limit = if is_limited { limits::judge("attestation-sign", least) } else { String::new() };
        println!("| {name} | {least:.1} µs | {limit} |");
    }
    ledger.stop().expect("stopped");
    limits::end();
}
