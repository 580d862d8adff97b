//! What a verifier hands back, the same for every engine.
//!
//! An outcome is evidence, not a ruling: it knows nothing of agents, trust or policy.

use core::fmt;

/// What a verifier found.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The finding in one word.
    pub status: Status,
    /// What was checked, in order, up to and including the first check that did not pass.
    pub checks: Vec<Check>,
    /// The claim put right; present exactly when the status is [`Status::Corrected`].
    pub corrected: Option<String>,
    /// One line of JSON from which a third party can check the finding again; empty exactly when the status is
    /// [`Status::Uncertain`].
    pub certificate: String,
}

/// The finding in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Proven right.
    Verified,
    /// Proven wrong.
    Failed,
    /// Proven wrong, and the right answer is known.
    Corrected,
    /// Neither proven nor disproven.
    Uncertain,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What it is called, for machines.
    pub name: &'static str,
    /// Whether it passed.
    pub passed: bool,
    /// Why, for people. Holds positions and limits, never the text that was examined.
    pub message: String,
}

impl Status {
    /// The word used in certificates and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Verified => "VERIFIED",
            Status::Failed => "FAILED",
            Status::Corrected => "CORRECTED",
            Status::Uncertain => "UNCERTAIN",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
