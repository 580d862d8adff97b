//! The ledger: entries, the tree over them, and the rows that follow from them.
//!
//! An entry is the bytes that are stored; its leaf is their hash. Rows are what a fold over the entries yields, so that
//! whoever has the entries can check every row, and decide every ruling again.

mod entry;
mod entry_ref;
mod exec_entry;
mod keep_entry;
mod merits;
mod project;
mod proof;
mod proof_text;
mod refusals;
mod run_entry;
mod tree;
mod workflows;

pub use entry::{
    AgentRegistered, ApprovalResolved, Body, BundleActivated, Entry, EntryError, EntryKind, Executed, FORMAT,
    Idempotency, KeyCreated, KeyRevoked, ModeChanged, OperatorKey, RULES, Role, Ruled, SigningKeyRotated, StateIntent,
    StateOutcome, StatusChanged, TextsErased, TicketOpened, TokenRotated, TrustChanged, TrustRequested,
    UnauthenticatedRequests,
};
pub use entry_ref::{EntryName, EntryRef, NAMES_SINCE};
pub use exec_entry::{ExecEnded, ExecStarted};
pub use keep_entry::{Kept, KeptAt, Pruned, UndoEnded, UndoOutcome, UndoStarted};
pub use merits::MeritsCount;
pub use project::{Consequences, Moment, OpenIntent, Rows, StateHead, apply, is_of_run, resolve_for_run};
pub use proof::{
    Subtree, Unprovable, prove_consistency, prove_inclusion, tree_root, verify_consistency, verify_inclusion,
};
pub use proof_text::{Claim, PROOF_FORMAT, Proof, ProofError};
pub use refusals::{Likeness, RefusalKind, RefusalsRepeated, Repeat, apply_repeated};
pub use run_entry::{
    AllowanceGiven, AllowanceTaken, CallEndReported, Passed, RunStarted, RunSteered, SessionBound, Steer,
    TransitionOutcome, Transitioned, TurnEnded,
};
pub use tree::{Frontier, leaf_hash};
pub use workflows::{WorkflowHead, WorkflowRegistered};
