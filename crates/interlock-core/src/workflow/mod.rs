//! Workflows as runs meet them: phases of work, what each allows, and the ways from one to the next. Texts of people, and
//! what can be said of a workflow before anybody runs it, are in `interlock-workflow`.
//!
//! | to find | look in |
//! |---|---|
//! | what a workflow says, every name resolved | `definition.rs` |
//! | the canonical text, as entries keep it, into that | `read.rs` |
//! | what a run knows, whether a guard holds for it | `context.rs`, `guard.rs` |
//! | where an agent stands, and what its calls left behind | `run.rs` |
//! | what a call or an event does to that | `machine.rs` |
//! | why a declared fact is not met | `unseen.rs` |
//! | whose word counts for what was observed | `hosts.rs` |
//! | what is asked of whoever reads command lines | `judge.rs` |

mod context;
mod definition;
mod guard;
mod hosts;
mod judge;
mod machine;
mod read;
mod run;
mod unseen;

pub use context::Context;
pub use definition::{
    AfterFinal, Edge, Fact, Field, Guard, GuardId, Operator, Outcome, Source, State, StateId, StateKind,
    TRANSITIONS_MAX, ToolPattern, Workflow,
};
pub use guard::{OBSERVED, OBSERVED_ROOTS};
pub use hosts::{Forebear, HostSeen, Lineage, check_host};
pub use judge::{CommandJudge, LineJudge, Reach};
pub use machine::{
    CONTEXT_BYTES_MAX, CallAsked, CallBegun, CallEnded, Carried, ExecBegun, MachineRefusal, Step, TransitionAsked,
    WayOut, begin_call, begin_exec, check_call, check_loops, end_call, end_exec, end_turn, may_write, move_to,
    move_to_state, park, resolve_parked, state_of, transition, ways_out,
};
pub use read::{CANONICAL_BYTES_MAX, DEPTH_MAX, VALUES_MAX};
pub use run::{
    Allowance, CALL_MS_MAX, Ended, ExecTicket, FinishedCall, Grant, LEFT_CALLS_MAX, OPEN_CALLS_MAX, OpenCall, OpenExec,
    Parked, Position, Run, Seen, SeenCommand, SeenTool,
};
pub use unseen::{Unseen, why_unmet};
