//! The tests of core and runtime, in one binary.

mod addresses;
mod attestation;
mod bad_requests;
mod bundles;
mod calls;
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
mod isolation;
mod kill;
mod limits;
mod manifests;
mod metrics;
mod names;
mod paths;
mod places;
mod proofs;
mod properties;
mod races;
mod rate;
mod refusals;
mod runs;
mod simulation;
mod state_service;
mod stopping;
mod stores;
mod syncs;
mod tickets;
mod tool_door;
mod typed_loading;
mod wire;
mod workflow_commands;
mod workflow_load;
mod workflow_machine;
mod workflows;
mod yes;

#[test]
fn the_shipped_example_runs() {
    example::main();
}
