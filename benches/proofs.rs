//! What proofs cost on a store of a million entries: after a start, when the tree is hashed for the first time, and then.
//!
//!     cargo bench --bench proofs

use std::time::Instant;

use interlock_core::ledger::{EntryName, Frontier, leaf_hash};
use interlock_runtime::ledger::{BLOCK_LEN, Changes, NewEntry, SqliteStore, Store, TreeCache};
use interlock_testkit::generate::Random;

const ENTRIES: u64 = 1_000_000;
const BATCH: u64 = 10_000;
const PROOFS: u32 = 200;

fn main() {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut store = SqliteStore::open(scratch.path()).expect("a store");
    let mut frontier = Frontier::default();
    // As long as an approval is.
    let filler = "x".repeat(1_300);
    while frontier.size() < ENTRIES {
        let entries: Vec<Vec<u8>> =
            (frontier.size()..frontier.size() + BATCH).map(|index| format!("{index} {filler}").into_bytes()).collect();
        let first = frontier.size() + 1;
        entries.iter().for_each(|entry| frontier.append(leaf_hash(entry)));
        let new = (first..).zip(entries);
        let entries = new.map(|(seq, bytes)| NewEntry { name: EntryName::of_service(seq), bytes }).collect();
        let changes = Changes { entries, frontier: frontier.clone(), ..Changes::default() };
        let mut txn = store.begin().expect("a transaction");
        txn.write(&changes).expect("written");
        txn.commit(changes).expect("committed");
    }
    let mut reader = store.reader().expect("a reader");
    let mut cache = TreeCache::new();
    println!("| proofs of {ENTRIES} entries | figure |\n|---|---|");
    let started = Instant::now();
    let first = cache.inclusion(reader.as_mut(), 123_456, ENTRIES).expect("a proof");
    assert!(first.holds() && first.root == frontier.root());
    println!("| the first one, everything hashed | {:.2} s |", started.elapsed().as_secs_f64());
    for what in ["an entry", "a continuation"] {
        let mut random = Random::new(1);
        let started = Instant::now();
        for _ in 0..PROOFS {
            let number = random.bits() % ENTRIES;
            let proof = match what {
                "an entry" => cache.inclusion(reader.as_mut(), number, ENTRIES),
                _ => cache.consistency(reader.as_mut(), number, ENTRIES - 1),
            };
            assert!(proof.expect("a proof").holds());
        }
        println!("| then, {what} | {:.2} ms |", started.elapsed().as_secs_f64() * 1e3 / f64::from(PROOFS));
    }
    println!("| hashes in memory | {} KB |", cache.covered() / BLOCK_LEN * 32 / 1_000);
}
