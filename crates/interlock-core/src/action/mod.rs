//! The action gate: what an agent asks to do, and the one function that answers.
//!
//! The edge turns a request into [`Facts`], verifiers turn its text into [`Evidence`]; [`decide`] sees neither text nor
//! clock, so that a recorded ruling can be decided again.
//!
//! | to find | look in |
//! |---|---|
//! | the order of the checks | `decide.rs`; for tool calls of coding agents `call.rs` |
//! | trust x risk, verification x risk | `matrix.rs` |
//! | which types are registered, with which engine and risk | `registry.rs` |
//! | steps, replays and loops | `conversation.rs` |
//! | limits and charges | `budget.rs` |
//! | what waits for a person | `ticket.rs` |
//! | whether what was refused runs all the same | `enforcement.rs` |
//! | what goes on without a ruling of its own | `pass.rs` |
//! | transitions, requests for trust, executions | `transition.rs`, `trust_request.rs`, `execution.rs` |
//! | when trust falls by itself | `record.rs` |
//! | CTX and STATE-001..004 | `context.rs` |

mod agent;
mod budget;
mod call;
mod context;
mod conversation;
mod decide;
mod enforcement;
mod exec;
mod execution;
mod facts;
mod matrix;
mod pass;
mod record;
mod registry;
mod ticket;
mod transition;
mod trust_request;
mod vocabulary;

pub use agent::{Agent, AgentKind, AgentStatus, Mode, Permissions, Profile, TrustCost};
pub use budget::{Breach, BudgetLimits, Charge, Remaining, Spent, Usage};
pub use call::{CallApplied, CallRuling, CallSnapshot, apply_call, decide_call};
pub use context::{ActionContext, CONVERSATION_BYTES_MAX, ContextFault, Observed, StateSource, StepNumber};
pub use conversation::{Conversation, STEPS_MAX};
pub use decide::{
    ErrorDetails, Figures, NeedsEvidence, Ruling, RulingError, Verification, decide, is_violation, price_of, screen,
};
pub use enforcement::is_observed;
pub use exec::{StartAsked, TICKET_MS_MAX, decide_end, decide_start};
pub use execution::{Executable, ExecutionRuling, decide_execution};
pub use facts::{
    ActionName, ActionText, CallEvidence, CallFacts, Check, CheckName, Door, Evidence, Facts, LineToRun, PhaseEvidence,
    fingerprint, fingerprints,
};
pub use pass::{PassAsked, PassCount, PassKind, PassRuling, decide_pass, decide_unread};
pub(crate) use record::Counted;
pub use record::{Record, TrustCause};
pub use registry::{Category, Registered, Registry, RegistryError};
pub use ticket::{
    Actor, Merits, OpenTicket, Resolution, Stale, Ticket, TicketKind, TicketRefusal, TicketStatus, TicketSubject,
    Verdict, WaitingAction, WaitingTransition, WaitingTrust,
};
pub use transition::decide_transition;
pub use trust_request::check_trust_request;
pub(crate) use vocabulary::words;
pub use vocabulary::{Decision, Engine, Millis, Risk, Status, Trust, UsdMicros};
