//! The ledger: one writer decides and records in one transaction, then answers.
//!
//! | to find | look in |
//! |---|---|
//! | what happens to a command, in order | `batch.rs` and below it |
//! | the thread around it, the queue, the answers | `writer.rs` |
//! | what a store must do | `store.rs`; `memory.rs` and `sqlite.rs` do it, the latter with `layout.rs` |
//! | what is checked before the first command | `recovery.rs` |
//! | the signed checkpoint file | `checkpoint.rs`; reading it with the public key, `note.rs` |
//! | proofs about the tree | `proofs.rs` |
//! | checking and deciding again from the entries | `audit.rs`, `fold.rs` |
//! | what principals are told | `event.rs` |
//! | how a decision is found by its id | `decision_id.rs` |
//! | copies that can be relied on | `backup.rs` |

mod audit;
mod backup;
mod batch;
mod checkpoint;
mod decision_id;
mod event;
mod fold;
mod layout;
mod memory;
mod note;
mod outbox;
mod places;
mod proofs;
mod recovery;
mod sqlite;
mod store;
mod writer;

pub use audit::{AuditReport, Difference, Progress, Replay, replay, verify, verify_with_key};
pub use backup::{BackupFault, BackupReport, MANIFEST_NAME, Manifest, ManifestFile, RestoreReport, back_up, restore};
pub use batch::{
    AgentChange, Answer, CallCommand, Command, Enrolment, Execution, Published, Recorded, Refusals, Request,
    RuleCommand, RunChange, StartGround, State, TransitionCommand, TrustRequest, Workflows, run_batch,
};
pub(crate) use checkpoint::write_new;
pub use checkpoint::{Checkpoint, CheckpointFile, LedgerKey, SignedCheckpoint, is_proven};
pub use decision_id::DecisionIds;
pub use memory::MemoryStore;
pub use note::{NOTE_BYTES_MAX, NoteVerifier};
pub use outbox::{Parcel, Turn};
pub use places::Places;
pub use proofs::{BLOCK_LEN, ProofFault, TreeCache, prove_continuation, prove_entry};
pub use recovery::{RecoveryFault, recover};
pub use sqlite::{DATABASE_NAME, SqliteReader, SqliteStore};
pub use store::{
    Changes, FoundEntry, KeptAnswer, KeptText, Lane, Left, NewEntry, Outgoing, Reader, Rows, Store, StoreFault,
    TicketQuery, Txn, find_entry,
};
pub use writer::{Ledger, LedgerMetrics, Ports, QUEUE_LEN, StopFault, TicketWait};
