//! The decision object: what every surface answers, with the documented keys and nothing else.
//!
//! Success holds the state in canonical form; failure holds exactly `verified, status, error_code, message`.

use super::guard::{VerifiedState, VerifiedTransition};
use crate::digest::Digest;
use crate::json::quote;
use crate::ruling::Denial;

/// What an accepted state proves.
pub const PAYLOAD_PROOF: &str = "The proposed state is strict JSON and matches the schema.";
/// What an accepted transition proves.
pub const TRANSITION_PROOF: &str = "Both states match the schema and the transition keeps every rule.";
/// What a commit proves.
pub const COMMIT_PROOF: &str = "The transition keeps every rule and the proposed state is on disk.";

/// The decision on an accepted state.
pub fn payload(state: &VerifiedState<'_>) -> String {
    format!("{},{}}}", success(PAYLOAD_PROOF, state.proof()), normalized(state))
}

/// The decision on an accepted transition.
pub fn transition(transition: &VerifiedTransition<'_>) -> String {
    format!("{},{}}}", success(TRANSITION_PROOF, transition.proof()), normalized_both(transition))
}

/// The decision on a commit that was carried out.
pub fn committed(transition: &VerifiedTransition<'_>, path: &str) -> String {
    format!(
        "{},{},\"transition_proof_ref\":{},\"committed_path\":{},\"committed_bytes\":{}}}",
        success(COMMIT_PROOF, transition.proposed().digest()),
        normalized_both(transition),
        quote(&transition.proof().to_string()),
        quote(path),
        transition.proposed().canonical().len(),
    )
}

/// The decision on anything that was refused.
pub fn failure(denial: &Denial) -> String {
    format!(
        "{{\"verified\":false,\"status\":\"BLOCKED\",\"error_code\":{},\"message\":{}}}",
        quote(denial.code.as_str()),
        quote(&denial.message)
    )
}

/// The part that every success shares, still open.
fn success(proof: &str, proof_ref: Digest) -> String {
    let proof = quote(proof);
    format!(
        "{{\"verified\":true,\"status\":\"VERIFIED\",\"proof\":{proof},\"proof_ref\":{},\
         \"developer_fields\":{{\"proof_reason\":{proof}}}",
        quote(&proof_ref.to_string())
    )
}

fn normalized(state: &VerifiedState<'_>) -> String {
    format!("\"normalized_state\":{}", state.canonical())
}

fn normalized_both(transition: &VerifiedTransition<'_>) -> String {
    let previous = transition.current().canonical();
    format!("{},\"normalized_previous_state\":{previous}", normalized(transition.proposed()))
}
