//! What a verifier is asked, and what it hands back: the same for every engine.
//!
//! An outcome is evidence, not a ruling: it knows nothing of agents, trust or policy.

use interlock_core::Digest;
use interlock_core::action::{ActionText, Engine};
pub use interlock_core::action::{Risk, Status};

use crate::fuel::Fuel;
use crate::ground::Ground;

/// The version of the evidence's shape.
const EVIDENCE_FORMAT: &str = "1";

/// A pure function from the text of an action to a finding.
pub trait Verifier {
    /// Its name.
    fn engine(&self) -> Engine;

    /// Its version. Rises when a text could get another outcome.
    fn version(&self) -> u32;

    /// Judges an action. What stands in the action is the agent's word and can only tighten; what stands in the ground
    /// is the operator's.
    fn verify(&self, action: &ActionText<'_>, ground: &Ground) -> Outcome {
        self.verify_within(action, ground, &mut Fuel::full())
    }

    /// The same with only so much work. If the fuel fell short, the outcome says nothing.
    fn verify_within(&self, action: &ActionText<'_>, ground: &Ground, fuel: &mut Fuel) -> Outcome;
}

/// What a verifier found.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The finding in one word.
    pub status: Status,
    /// What the action does at worst, where the verifier knows better than the registry. A lower risk than the
    /// registry's is a claim that the certificate proves.
    pub risk: Option<Risk>,
    /// What was checked, in order.
    pub checks: Vec<Check>,
    /// The claim put right; present exactly when the status is [`Status::Corrected`].
    pub corrected: Option<String>,
    /// A JSON object on one line from which a third party can check the finding again; empty exactly when the status is
    /// [`Status::Uncertain`].
    pub certificate: String,
    /// The text is an attack, not a mistake.
    pub hostile: bool,
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

impl Check {
    /// A check that passed.
    pub fn passed(name: &'static str, message: impl Into<String>) -> Check {
        Check { name, passed: true, message: message.into() }
    }

    /// A check that did not.
    pub fn failed(name: &'static str, message: impl Into<String>) -> Check {
        Check { name, passed: false, message: message.into() }
    }
}

impl Outcome {
    /// Nothing is known, for this reason.
    pub fn uncertain(checks: Vec<Check>) -> Outcome {
        Outcome {
            status: Status::Uncertain,
            risk: None,
            checks,
            corrected: None,
            certificate: String::new(),
            hostile: false,
        }
    }

    /// The evidence: one line of JSON that names the engine, the text it judged and the certificate. Its bytes are what
    /// is hashed, so the order of members is fixed by what prints them: sorted here, the engine's own in a certificate.
    pub fn evidence(&self, verifier: &dyn Verifier, action: &ActionText<'_>) -> String {
        self.evidence_on(verifier, interlock_core::action::fingerprint(action))
    }

    /// The SHA-256 of the evidence on the action with this fingerprint, if there is a certificate in it.
    pub fn evidence_digest(&self, verifier: &dyn Verifier, fingerprint: Digest) -> Option<Digest> {
        (!self.certificate.is_empty()).then(|| Digest::of(&[&self.evidence_on(verifier, fingerprint)]))
    }

    fn evidence_on(&self, verifier: &dyn Verifier, subject: Digest) -> String {
        let certificate = if self.certificate.is_empty() { "null" } else { &self.certificate };
        let subject = subject.to_ascii();
        let (subject, version) = (core::str::from_utf8(&subject).unwrap_or_default(), verifier.version().to_string());
        let (quote, risk) = self.risk.map_or(("", "null"), |risk| ("\"", risk.as_str()));
        // Joined and not formatted: every approval of a text needs it.
        [
            "{\"action\":\"",
            subject,
            "\",\"certificate\":",
            certificate,
            ",\"engine\":\"",
            verifier.engine().as_str(),
            "\",\"format\":",
            EVIDENCE_FORMAT,
            ",\"risk\":",
            quote,
            risk,
            quote,
            ",\"status\":\"",
            self.status.as_str(),
            "\",\"version\":",
            &version,
            "}",
        ]
        .concat()
    }
}

/// The text of a member of an action, if it is there and a string.
pub(crate) fn text_of<'a>(value: Option<interlock_core::json::Value<'a>>) -> Option<&'a str> {
    value.and_then(|value| value.as_str()).map(|text| text.text())
}
