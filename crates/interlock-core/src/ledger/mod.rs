//! The ledger: entries, the tree over them, and the rows that follow from them.
//!
//! An entry is the bytes that are stored; its leaf is their hash. Rows are what a fold over the entries yields, so that
//! whoever has the entries can check every row, and decide every ruling again.

mod entry;
mod project;
mod proof;
mod proof_text;
mod tree;

pub use entry::{
    AgentRegistered, Body, BundleActivated, Entry, EntryError, EntryKind, FORMAT, Idempotency, RULES, Ruled,
    StateIntent, StateOutcome, UnauthenticatedRequests,
};
pub use project::{OpenIntent, StateHead, apply_registered, apply_ruled};
pub use proof::{
    Subtree, Unprovable, prove_consistency, prove_inclusion, tree_root, verify_consistency, verify_inclusion,
};
pub use proof_text::{Claim, PROOF_FORMAT, Proof, ProofError};
pub use tree::{Frontier, leaf_hash};
