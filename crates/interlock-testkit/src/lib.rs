//! What the tests of Interlock share: conformance cases, generators, a reference evaluator, and directories that fail.
//!
//! | to find | look in |
//! |---|---|
//! | how case files are read | [`conformance`] |
//! | how cases of the action gate are read and run | [`gate`] |
//! | how cases of rate limits are read and run | [`rate`] |
//! | how cases of tool calls are read and run | [`calls`] |
//! | how cases of workflows are read and run | [`workflow`] |
//! | a server in this process, and a client for it | [`service`] |
//! | what the disk can do without us | [`load`] |
//! | the writer in worlds that crash | [`simulation`] |
//! | random JSON, schemas and states | [`generate`] |
//! | the slow, obvious meaning of schema and rules | [`reference`] |
//! | directories that fail or record | [`faults`] |
//! | how to wait | [`wait`] |
//! | what holds answers to their types | [`wire`] |
//! | what traces of system calls say | [`trace`] |

pub mod calls;
pub mod conformance;
pub mod faults;
pub mod gate;
pub mod generate;
pub mod load;
pub mod rate;
pub mod reference;
pub mod service;
pub mod simulation;
pub mod trace;
pub mod wait;
pub mod wire;
pub mod workflow;

use std::path::{Path, PathBuf};

/// The top of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
