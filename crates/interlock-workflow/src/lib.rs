//! Workflows before an agent runs them: from what a person wrote to a workflow, and what can be said of it beforehand.
//!
//! Nothing here can let anything run: what a call or an event does to a run is decided in `interlock_core`, and a
//! workflow is built by its reader of canonical texts alone. Pure, as the rules are.
//!
//! | to find | look in |
//! |---|---|
//! | JSON, YAML or TOML into a workflow, or everything that is wrong with a text | `load.rs` |
//! | what looks wrong with a workflow that loads | `analysis.rs` |
//! | whether guards can hold together | `satisfy.rs` |
//! | the ways a run can go, the shortest to a place | `ways.rs`, `endings.rs` |
//! | which calls a state lets pass, where unknown code can run | `permits.rs`, `command_set.rs` |
//! | what may be asked about all runs, and the answer | `property.rs`, `proof.rs` |
//! | a run that nobody makes, and tests of a workflow as data | `rehearsal.rs`, `scenario.rs` |
//! | pictures | `graph.rs` |
//! | what somebody may have meant | `suggest.rs` |
//! | workflows to begin with | `templates.rs` |
//! | the shape of the document, for editors | `schema.json` |

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    clippy::float_arithmetic
)]

mod analysis;
mod command_set;
mod endings;
pub mod graph;
mod load;
mod permits;
mod proof;
#[cfg(test)]
mod proof_tests;
mod property;
mod rehearsal;
mod satisfy;
pub mod scenario;
mod suggest;
mod templates;
mod ways;

pub use analysis::{Finding, PlacePart, Severity, analyse};
pub use command_set::CommandSet;
pub use load::{
    COUNT_MAX, EVENTS_MAX, FACTS_MAX, FIELD_PARTS_MAX, Format, GUARDS_MAX, LINE_BYTES_MAX, LIST_ITEMS_MAX, Limits,
    Loaded, NAME_CHARS_MAX, PROBLEMS_MAX, PROSE_BYTES_MAX, Problem, ROW_GUARDS_MAX, ROWS_MAX, STATES_MAX,
    TEXT_BYTES_MAX, TRANSITIONS_CEILING, document, load, locate,
};
pub use permits::Opaque;
pub use proof::{Answer, Proof, prove};
pub use property::{FORMS, Property, PropertyError};
pub use rehearsal::{Done, Rehearsal};
pub use suggest::nearest;
pub use templates::{Template, templates};
pub use ways::{PathStep, path_line};

/// The JSON Schema (draft 2020-12) of a workflow, for editors. It knows shapes; names, reachability and places are the
/// loader's.
pub const SCHEMA: &str = include_str!("schema.json");
