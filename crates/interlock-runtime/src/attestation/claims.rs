//! Which decisions are attested, and what is said about them. Everything comes from the recorded entry, so saying it
//! again says the same. It knows no keys.

use interlock_core::Digest;
use interlock_core::action::{Decision, Evidence, Risk, Status, Verdict};
use interlock_core::ledger::{Body, Ruled};
use serde::{Deserialize, Serialize};

use crate::clock::hex;
use crate::ledger::Recorded;

/// How long an attestation holds, from the time of its decision on: as long as the answer can be asked for again.
pub const LIFETIME_SECONDS: u64 = 24 * 60 * 60;

/// What an attestation says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Who says it: `did:qwed:node:` and the short name of the ledger.
    pub iss: String,
    /// The fingerprint of the action that may run; for CORRECTED that of the corrected one.
    pub sub: Digest,
    /// When it was decided, in seconds since 1970.
    pub iat: u64,
    /// From when on it no longer holds, in seconds since 1970.
    pub exp: u64,
    /// `att_` and the first 32 digits of the leaf hash.
    pub jti: String,
    /// What the verification yielded.
    pub qwed: QwedClaims,
    /// The agent that asked: `did:qwed:agent:` and its id.
    pub agent: String,
    /// APPROVED or CORRECTED.
    pub decision: Decision,
    /// The decision in the ledger.
    pub decision_id: String,
    /// The hash of its entry, which the ledger's root covers.
    pub leaf_hash: Digest,
    /// What the action may do at worst.
    pub risk_level: Risk,
    /// The bundle it was decided by.
    pub bundle: Digest,
    /// The ticket, if a person approved it; `leaf_hash` is that of the person's decision then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// Who approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

/// What the verification yielded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QwedClaims {
    /// The form of these claims.
    pub version: QwedVersion,
    /// What the verifier found.
    pub result: Status,
    /// The fingerprint of the action as it was asked.
    pub query_hash: Digest,
    /// The digest of the verifier's certificate; without one, that of the evidence as it stands in the entry.
    pub proof_hash: Option<Digest>,
    /// The leaf hash of the agent's entry before this one.
    pub previous_hash: Option<Digest>,
}

/// The forms of claims. A reader refuses others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum QwedVersion {
    /// The only one so far.
    #[serde(rename = "1.0")]
    One,
}

/// Whether an answer must not leave without its attestation: it lets something run that is risky, or one was asked for.
pub fn is_due(ruled: &Ruled) -> bool {
    lets_run(ruled) && is_wanted(ruled)
}

/// Whether what a person approved must not be shown as approved without its attestation.
/// What was corrected has no token: what may run then is not what was asked, and its fingerprint is not on record.
pub fn is_due_once_granted(ruled: &Ruled) -> bool {
    let status = ruled.ruling.verification.as_ref().map(|verification| verification.status);
    ruled.ticket.is_some() && status != Some(Status::Corrected) && is_wanted(ruled)
}

fn is_wanted(ruled: &Ruled) -> bool {
    let risky = ruled.ruling.verification.as_ref().is_some_and(|verification| verification.risk_level >= Risk::High);
    risky || ruled.facts.as_ref().is_some_and(|facts| facts.require_attestation)
}

/// A dry run is answered like the real one and lets nothing run.
fn lets_run(ruled: &Ruled) -> bool {
    ruled.ruling.decision.lets_run() && ruled.facts.as_ref().is_some_and(|facts| !facts.dry_run)
}

impl Claims {
    /// What can be said about a recorded decision; `None` about one that lets nothing run. `corrected` is the
    /// fingerprint of the corrected action: the one that was asked for may not run.
    pub(super) fn of(
        issuer: &str,
        recorded: &Recorded,
        corrected: Option<Digest>,
        previous: Option<Digest>,
    ) -> Option<Claims> {
        let Body::Ruled(ruled) = &recorded.entry.body else { return None };
        let (facts, verification) = (ruled.facts.as_ref()?, ruled.ruling.verification.as_ref()?);
        if !lets_run(ruled) {
            return None;
        }
        let decision = ruled.ruling.decision;
        let sub = match decision {
            Decision::Approved => facts.fingerprint,
            Decision::Corrected => corrected?,
            Decision::Pending | Decision::BudgetExceeded | Decision::Denied => return None,
        };
        let proof_hash = ruled.evidence.as_ref().and_then(proof_of);
        let iat = recorded.entry.at.checked_div(1_000)?;
        Some(Claims {
            iss: issuer.to_owned(),
            sub,
            iat,
            exp: iat.checked_add(LIFETIME_SECONDS)?,
            jti: token_id(recorded.leaf),
            qwed: QwedClaims {
                version: QwedVersion::One,
                result: verification.status,
                query_hash: facts.fingerprint,
                proof_hash,
                previous_hash: previous,
            },
            agent: format!("{AGENT_PREFIX}{}", recorded.entry.agent.as_deref()?),
            decision,
            decision_id: ruled.decision_id.clone(),
            leaf_hash: recorded.leaf,
            risk_level: verification.risk_level,
            bundle: ruled.bundle,
            approval_id: None,
            approved_by: None,
        })
    }

    /// What can be said about a decision that a person approved: `ruled` is its entry, `granted` the person's. It holds as
    /// long as the approval may be spent.
    pub(super) fn of_granted(issuer: &str, ruled: &Recorded, granted: &Recorded) -> Option<Claims> {
        let (Body::Ruled(asked), Body::ApprovalResolved(resolved)) = (&ruled.entry.body, &granted.entry.body) else {
            return None;
        };
        let (facts, verification) = (asked.facts.as_ref()?, asked.ruling.verification.as_ref()?);
        let opened = asked.ticket.as_ref()?;
        if resolved.verdict != Verdict::Approved || opened.approval_id != resolved.approval_id {
            return None;
        }
        let proof_hash = asked.evidence.as_ref().and_then(proof_of);
        let agent = ruled.entry.agent.as_deref().filter(|agent| granted.entry.agent.as_deref() == Some(agent))?;
        Some(Claims {
            iss: issuer.to_owned(),
            sub: facts.fingerprint,
            iat: granted.entry.at.checked_div(1_000)?,
            exp: resolved.expires_at.checked_div(1_000)?,
            jti: token_id(granted.leaf),
            qwed: QwedClaims {
                version: QwedVersion::One,
                result: verification.status,
                query_hash: facts.fingerprint,
                proof_hash,
                previous_hash: Some(ruled.leaf),
            },
            agent: format!("{AGENT_PREFIX}{agent}"),
            decision: Decision::Approved,
            decision_id: asked.decision_id.clone(),
            leaf_hash: granted.leaf,
            risk_level: verification.risk_level,
            bundle: asked.bundle,
            approval_id: Some(resolved.approval_id.clone()),
            approved_by: Some(resolved.by.name.clone()),
        })
    }

    /// The text that is signed.
    pub fn to_json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// What every attestation keeps to, beside the types of its members; otherwise what does not hold.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let holds = [
            (self.iss.starts_with(ISSUER_PREFIX), "`iss` names no node"),
            (self.agent.starts_with(AGENT_PREFIX), "`agent` names no agent"),
            (self.jti == token_id(self.leaf_hash), "`jti` does not follow from `leaf_hash`"),
            (self.decision.lets_run(), "`decision` lets nothing run"),
            (
                self.decision == Decision::Corrected || self.sub == self.qwed.query_hash,
                "`sub` is not the action that was asked for",
            ),
            (self.exp > self.iat, "`exp` is not after `iat`"),
        ];
        holds.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
    }
}

/// The digest of the certificate; without one, that of the evidence.
fn proof_of(evidence: &Evidence) -> Option<Digest> {
    let digest = || serde_json::to_vec(evidence).ok().map(|bytes| Digest::of_bytes(&bytes));
    evidence.certificate.or_else(digest)
}

const ISSUER_PREFIX: &str = "did:qwed:node:";
const AGENT_PREFIX: &str = "did:qwed:agent:";

/// The issuer that a ledger with this origin is: its last part, which is derived from the ledger's key.
pub(super) fn issuer(origin: &str) -> String {
    format!("{ISSUER_PREFIX}{}", origin.rsplit('/').next().unwrap_or_default())
}

fn token_id(leaf: Digest) -> String {
    format!("att_{}", hex(leaf.bytes().first_chunk::<16>().map_or(&[], |bytes| bytes.as_slice())))
}
