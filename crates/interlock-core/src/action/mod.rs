//! The action gate: what an agent asks to do, and the one function that answers.
//!
//! The edge turns a request into [`Facts`], verifiers turn its text into [`Evidence`]; [`decide`] sees neither text nor
//! clock, so that a recorded ruling can be decided again.
//!
//! | to find | look in |
//! |---|---|
//! | the order of the checks | `decide.rs` |
//! | trust x risk, verification x risk | `matrix.rs` |
//! | which types are registered, with which engine and risk | `registry.rs` |
//! | steps, replays and loops | `conversation.rs` |
//! | limits and charges | `budget.rs` |
//! | CTX and STATE-001..004 | `context.rs` |

mod agent;
mod budget;
mod context;
mod conversation;
mod decide;
mod facts;
mod matrix;
mod registry;
mod vocabulary;

pub use agent::{Agent, AgentKind, AgentStatus, Permissions, Profile};
pub use budget::{Breach, BudgetLimits, Charge, Remaining, Spent, Usage};
pub use context::{ActionContext, CONVERSATION_BYTES_MAX, ContextFault, Observed, StateSource, StepNumber};
pub use conversation::{Conversation, STEPS_MAX};
pub use decide::{ErrorDetails, Figures, NeedsEvidence, Ruling, RulingError, Verification, decide, screen};
pub use facts::{ActionName, ActionText, Check, Door, Evidence, Facts, fingerprint};
pub use registry::{Category, Registered, Registry, RegistryError};
pub use vocabulary::{Decision, Engine, Millis, Risk, Status, Trust, UsdMicros};
