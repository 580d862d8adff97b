//! Operators' keys, and the keys that sign attestations.

use crate::schema::{Object, Schema, answer, level, list, null, one_of, only, text, words};
use crate::words::{AttestationAlgorithm, KeyId, KeyName, Role, Time, TrustLevel};

wire! {
    /// An operator's key, without its secret.
    answer Key [Key::members().without(&["key"])] {
        key_id: String = KeyId,
        /// The key itself: `ilk_` and 64 hexadecimal digits. It is shown here once and stored as a hash only.
        key?: String = text().pattern("^ilk_[0-9a-f]{64}$"),
        /// Whose it is, for people.
        name: String,
        role: String = Role,
        /// The highest trust its agents may have; there for registrars.
        max_trust?: u8 = TrustLevel,
        /// Whether the key still counts.
        status: String = words(["active", "revoked"]),
        created_at: String = Time,
        /// The name of the key it was made with.
        created_by: String,
    }

    /// All keys but the first one (`operator.key`).
    answer KeyList {
        /// Keys, revoked ones too.
        keys: Vec<Key>,
    }

    /// A new key.
    request KeyRequest [one_of([RegistrarKeyRequest.into(), PlainKeyRequest.into()])] {
        name: String = KeyName,
        role: String,
        /// The highest trust its agents may have; absent or null is 1. Written as an integer.
        max_trust?: u8 = level(),
    }

    /// How the new key signs; like the current one if it does not say.
    request RotateRequest {
        alg?: String = words(["ES256", "EdDSA"]),
    }

    /// The key that signs from now on.
    answer RotatedKey {
        /// Its name in the key set.
        kid: String = key_part(),
        alg: String = AttestationAlgorithm,
    }
}

named! {
    /// A key that registers agents.
    RegistrarKeyRequest = KeyRequest::members().titled("Registrar").always("role", "", only("registrar"));

    /// A key without a trust ceiling.
    PlainKeyRequest = KeyRequest::members()
        .titled("Admin or approver")
        .always("role", "", words(["admin", "approver"]))
        .maybe("max_trust", "For registrars only.", null());

    /// A new key with its secret.
    CreatedKey = Key::members().requiring(&["key"]).always("status", "It counts.", only("active"));

    /// Public keys, the one that signs now first. Those before it still verify.
    Jwks = answer().always("keys", "", list(one_of([
        signing_key("EC", "P-256", "ES256").always("y", "", key_part()).into(),
        signing_key("OKP", "Ed25519", "EdDSA").into(),
    ])).max_items(100));
}

fn signing_key(kty: &'static str, crv: &'static str, alg: &'static str) -> Object {
    answer()
        .always("kty", "", only(kty))
        .always("crv", "", only(crv))
        .always("x", "", key_part())
        .always("kid", "The thumbprint of RFC 7638.", key_part())
        .always("alg", "", only(alg))
        .always("use", "", only("sig"))
}

/// 32 bytes as base64url.
fn key_part() -> Schema {
    text().pattern("^[A-Za-z0-9_-]{43}$")
}
