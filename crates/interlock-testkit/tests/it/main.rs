//! The tests of core and runtime, in one binary.

mod attestation;
mod bad_requests;
mod bundles;
mod codes;
mod commit;
mod conformance;
mod deliver;
mod description;
#[path = "../../../../examples/state/verify.rs"]
mod example;
mod formats;
mod gate;
mod hostile;
mod kill;
mod manifests;
mod metrics;
mod proofs;
mod properties;
mod races;
mod rate;
mod simulation;
mod state_service;
mod stores;
mod tickets;
mod typed_loading;

#[test]
fn the_shipped_example_runs() {
    example::main();
}
