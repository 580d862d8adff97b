//! The tests of core and runtime, in one binary.

mod codes;
mod commit;
mod conformance;
mod hostile;
mod kill;
mod manifests;
mod properties;
mod typed_loading;
