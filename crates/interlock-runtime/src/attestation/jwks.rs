//! Public keys, as a JSON Web Key Set: written for others, and read as strictly as everything else. It holds nothing
//! secret and checks no tokens.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use interlock_core::Digest;
use interlock_core::json::{self, quote};
use serde::{Deserialize, Serialize};

use super::keys::KEYS_LEN_MAX;

/// How a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256; signatures are `r` and `s`, 32 bytes each.
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl Algorithm {
    /// The name in tokens and keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Es256 => "ES256",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    /// The algorithm with this name.
    pub fn parse(text: &str) -> Option<Algorithm> {
        [Algorithm::Es256, Algorithm::EdDsa].into_iter().find(|algorithm| algorithm.as_str() == text)
    }
}

/// One public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    kid: String,
    coordinates: Coordinates,
}

/// The bytes of a public key, as its algorithm has them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Coordinates {
    P256 { x: [u8; 32], y: [u8; 32] },
    Ed25519 { x: [u8; 32] },
}

impl PublicKey {
    /// A key from the bytes that the provider gives: an uncompressed point, or the 32 bytes of Ed25519.
    pub(super) fn new(algorithm: Algorithm, bytes: &[u8]) -> Option<PublicKey> {
        let coordinates = match algorithm {
            Algorithm::Es256 => {
                let (x, y) = bytes.strip_prefix(&[4])?.split_first_chunk::<32>()?;
                Coordinates::P256 { x: *x, y: y.try_into().ok()? }
            }
            Algorithm::EdDsa => Coordinates::Ed25519 { x: bytes.try_into().ok()? },
        };
        Some(PublicKey { kid: coordinates.thumbprint(), coordinates })
    }

    /// Its name: the thumbprint of RFC 7638.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// How it signs. A token cannot choose another way.
    pub fn algorithm(&self) -> Algorithm {
        match self.coordinates {
            Coordinates::P256 { .. } => Algorithm::Es256,
            Coordinates::Ed25519 { .. } => Algorithm::EdDsa,
        }
    }

    /// The bytes that the provider takes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match &self.coordinates {
            Coordinates::P256 { x, y } => [&[4], x.as_slice(), y.as_slice()].concat(),
            Coordinates::Ed25519 { x } => x.to_vec(),
        }
    }

    fn to_json(&self) -> String {
        let members = self.coordinates.members();
        let (members, kid, algorithm) = (members.trim_end_matches('}'), quote(&self.kid), self.algorithm().as_str());
        format!("{members},\"kid\":{kid},\"alg\":\"{algorithm}\",\"use\":\"sig\"}}")
    }
}

impl Coordinates {
    /// The members that RFC 7638 hashes, in its order: by name, without spaces.
    fn members(&self) -> String {
        match self {
            Coordinates::P256 { x, y } => {
                let (x, y) = (BASE64URL.encode(x), BASE64URL.encode(y));
                format!("{{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"{x}\",\"y\":\"{y}\"}}")
            }
            Coordinates::Ed25519 { x } => {
                format!("{{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"{}\"}}", BASE64URL.encode(x))
            }
        }
    }

    fn thumbprint(&self) -> String {
        BASE64URL.encode(Digest::of(&[&self.members()]).bytes())
    }
}

/// Public keys, the one that signs now first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jwks {
    keys: Vec<PublicKey>,
}

/// Why a text is no key set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwksFault(String);

impl fmt::Display for JwksFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JwksFault {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJwks {
    keys: Vec<RawJwk>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJwk {
    kty: String,
    crv: String,
    x: String,
    #[serde(default)]
    y: Option<String>,
    kid: String,
    alg: Algorithm,
    r#use: String,
}

impl Jwks {
    pub(super) fn new(keys: Vec<PublicKey>) -> Jwks {
        Jwks { keys }
    }

    /// Reads a key set of ours. One with a private key in it, or with members nobody here knows, is refused.
    pub fn parse(text: &str) -> Result<Jwks, JwksFault> {
        let raw: RawJwks = json::from_str(text).map_err(|error| JwksFault(error.to_string()))?;
        if raw.keys.len() > KEYS_LEN_MAX {
            return Err(JwksFault(format!("a key set has at most {KEYS_LEN_MAX} keys")));
        }
        let mut keys: Vec<PublicKey> = Vec::with_capacity(raw.keys.len());
        for (position, raw) in raw.keys.iter().enumerate() {
            let wrong = |what: &str| JwksFault(format!("key {position}: {what}"));
            let key = raw.load().map_err(wrong)?;
            if keys.iter().any(|other| other.kid == key.kid) {
                return Err(wrong("it is there twice"));
            }
            keys.push(key);
        }
        Ok(Jwks { keys })
    }

    /// The text that is published.
    pub fn to_json(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(PublicKey::to_json).collect();
        format!("{{\"keys\":[{}]}}", keys.join(","))
    }

    /// The keys, the one that signs now first.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// The key with this name.
    pub fn get(&self, kid: &str) -> Option<&PublicKey> {
        self.keys.iter().find(|key| key.kid == kid)
    }
}

impl RawJwk {
    fn load(&self) -> Result<PublicKey, &'static str> {
        let bytes = |text: &str| BASE64URL.decode(text).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let x = bytes(&self.x).ok_or("`x` must be 32 bytes in base64url")?;
        let coordinates = match (self.alg, self.kty.as_str(), self.crv.as_str(), &self.y) {
            (Algorithm::Es256, "EC", "P-256", Some(y)) => {
                Coordinates::P256 { x, y: bytes(y).ok_or("`y` must be 32 bytes in base64url")? }
            }
            (Algorithm::EdDsa, "OKP", "Ed25519", None) => Coordinates::Ed25519 { x },
            _ => return Err("it must be ES256 on P-256 with `x` and `y`, or EdDSA on Ed25519 with `x`"),
        };
        if self.r#use != "sig" {
            return Err("`use` must be `sig`");
        }
        if coordinates.thumbprint() != self.kid {
            return Err("`kid` is not its thumbprint");
        }
        Ok(PublicKey { kid: self.kid.clone(), coordinates })
    }
}
