//! The tests of core and runtime, in one binary.

mod codes;
mod commit;
mod conformance;
#[path = "../../../../examples/state/verify.rs"]
mod example;
mod gate;
mod hostile;
mod kill;
mod manifests;
mod properties;
mod simulation;
mod typed_loading;

#[test]
fn the_shipped_example_runs() {
    example::main();
}
