//! What the ledger knows of state files.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ledger::entry::{StateIntent, StateOutcome};
use crate::ruling::Denial;
use crate::state::target;

/// What the ledger knows of a state file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateHead {
    /// The SHA-256 of the state that was committed last.
    pub committed: Option<Digest>,
    /// A commit whose outcome is not known yet.
    pub open: Option<OpenIntent>,
}

/// A commit whose outcome is not known yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenIntent {
    /// Its entry: the number among those of the service.
    #[serde(alias = "index")]
    pub seq: u64,
    /// The SHA-256 of what the file holds if it was carried out.
    pub proposed: Digest,
}

impl StateHead {
    /// Whether a commit from this current state may begin.
    pub fn check(&self, current: Digest) -> Result<(), Denial> {
        if self.open.is_some() {
            return Err(target::refused("another commit of this file is in progress, or its outcome is not known yet"));
        }
        match self.committed {
            Some(committed) if committed != current => Err(target::refused(
                "the claimed current state is not the one that was committed last; read the file again",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// A commit begins.
    pub fn begin(&mut self, intent: &StateIntent, seq: u64) {
        self.open = Some(OpenIntent { seq, proposed: intent.proposed });
    }

    /// A commit ends, the one that began with the service's entry `intent`.
    pub fn end(&mut self, outcome: &StateOutcome, intent: u64) {
        if let Some(open) = self.open.take_if(|open| open.seq == intent)
            && outcome.committed
        {
            self.committed = Some(open.proposed);
        }
    }
}
