//! Workflows: phases of work, what each allows, and the ways from one to the next.
//!
//! | to find | look in |
//! |---|---|
//! | what a workflow says, every name resolved | `definition.rs` |
//! | what looks wrong with a workflow that loads | `analysis.rs` |
//! | pictures | `graph.rs` |
//! | whether guards can hold together | `satisfy.rs` |
//! | the ways a run can go, the shortest to a place | `ways.rs`, `endings.rs` |
//! | which calls a state lets pass, where unknown code can run | `permits.rs`, `command_set.rs` |
//! | what may be asked about all runs, and the answer | `property.rs`, `proof.rs` |
//! | the canonical text into that | `read.rs` |
//! | JSON, YAML or TOML into that, or everything that is wrong with a text | `load.rs` |
//! | what a run knows, whether a guard holds for it | `context.rs`, `guard.rs` |
//! | where an agent stands, and what its calls left behind | `run.rs` |
//! | what a call or an event does to that | `machine.rs` |
//! | whose word counts for what was observed | `hosts.rs` |
//! | a run that nobody makes, and tests of a workflow as data | `rehearsal.rs`, `scenario.rs` |
//! | workflows to begin with | `templates.rs` |
//! | the shape of the document, for editors | `schema.json` |

mod analysis;
mod command_set;
mod context;
mod definition;
mod endings;
pub mod graph;
mod guard;
mod hosts;
mod load;
mod machine;
mod permits;
mod proof;
#[cfg(test)]
mod proof_tests;
mod property;
mod read;
mod rehearsal;
mod run;
mod satisfy;
pub mod scenario;
mod templates;
mod ways;

pub use analysis::{Finding, PlacePart, Severity, analyse};
pub use command_set::CommandSet;
pub use context::Context;
pub use definition::{
    AfterFinal, Edge, Fact, Field, Guard, GuardId, Operator, Outcome, Source, State, StateId, StateKind,
    TRANSITIONS_MAX, ToolPattern, UNENFORCED, Workflow,
};
pub use guard::{OBSERVED, OBSERVED_ROOTS};
pub use hosts::{Forebear, HostSeen, Lineage, check_host};
pub use load::{
    COUNT_MAX, EVENTS_MAX, FACTS_MAX, FIELD_PARTS_MAX, Format, GUARDS_MAX, LINE_BYTES_MAX, LIST_ITEMS_MAX, Limits,
    Loaded, NAME_CHARS_MAX, PROBLEMS_MAX, PROSE_BYTES_MAX, Problem, ROW_GUARDS_MAX, ROWS_MAX, STATES_MAX,
    TEXT_BYTES_MAX, TRANSITIONS_CEILING, document, load, locate,
};
pub use machine::{
    CONTEXT_BYTES_MAX, CallAsked, CallBegun, CallEnded, Refusal, Step, TransitionAsked, WayOut, begin_call, check_call,
    check_loops, end_call, end_turn, may_write, move_to, move_to_state, park, resolve_parked, state_of, transition,
    ways_out,
};
pub use permits::{CommandJudge, Opaque, Reach};
pub use proof::{Answer, Proof, prove};
pub use property::{FORMS, Property, PropertyError, nearest};
pub use read::{CANONICAL_BYTES_MAX, DEPTH_MAX, VALUES_MAX};
pub use rehearsal::{Done, LineJudge, Rehearsal};
pub use run::{
    Allowance, CALL_MS_MAX, Ended, FinishedCall, Grant, LEFT_CALLS_MAX, OPEN_CALLS_MAX, OpenCall, Parked, Position,
    Run, Seen, SeenCommand, SeenTool,
};
pub use templates::{Template, templates};
pub use ways::{PathStep, path_line};

/// The JSON Schema (draft 2020-12) of a workflow, for editors. It knows shapes; names, reachability and places are the
/// loader's.
pub const SCHEMA: &str = include_str!("schema.json");
