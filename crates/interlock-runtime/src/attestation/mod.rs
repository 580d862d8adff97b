//! Attestations: a decision that lets something run, as a token that others check without asking us.
//!
//! A token is a JWT. Nothing here decides: it repeats what is on record, after the commit, outside the ledger's writer.
//!
//! | to find | look in |
//! |---|---|
//! | which decisions carry one, and what it says | `claims.rs` |
//! | the keys, their file, signing and rotation | `keys.rs` |
//! | the public keys as others read them | `jwks.rs` |
//! | how a token is checked | `verify.rs` |

mod claims;
mod jwks;
mod keys;
mod verify;

pub use claims::{Claims, LIFETIME_SECONDS, QwedClaims, QwedVersion, is_due};
pub use jwks::{Algorithm, Jwks, JwksFault, PublicKey};
pub use keys::{AttestationFault, AttestationKeys, FILE_NAME, KEYS_LEN_MAX, RotationFault};
pub use verify::{Attested, Reason, TOKEN_BYTES_MAX, verify};

/// What `typ` of a token says.
const TOKEN_TYPE: &str = "qwed-attestation+jwt";
