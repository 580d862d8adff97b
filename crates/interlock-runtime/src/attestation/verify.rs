//! How a token is checked, from public keys and a time alone. It has one spelling for each token: whatever could be
//! read in two ways is refused. Whether the issuer is one to be believed is for whoever chose the keys.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use interlock_core::json::{self, Limits, LoadError};
use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, UnparsedPublicKey, VerificationAlgorithm};

use super::TOKEN_TYPE;
use super::claims::Claims;
use super::jwks::{Algorithm, Jwks};

/// The longest token. Ours have about 1,200 bytes.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// A token that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attested {
    /// The name of the key that signed it.
    pub kid: String,
    /// How that key signs.
    pub algorithm: Algorithm,
    /// What it says.
    pub claims: Claims,
}

/// Why a token does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It is longer than any of ours.
    TooLong,
    /// It is not three parts of canonical base64url with points between them.
    Form(&'static str),
    /// Its header is not the one of an attestation.
    Header(String),
    /// It names no key of the set.
    UnknownKey,
    /// It was not signed with that key, or was changed since.
    Signature,
    /// It says something no attestation says.
    Claims(String),
    /// It was decided after the given time.
    NotYet {
        /// When it was decided, in seconds since 1970.
        iat: u64,
    },
    /// It held until before the given time.
    Expired {
        /// From when on it did not hold, in seconds since 1970.
        exp: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TooLong => write!(f, "a token has at most {TOKEN_BYTES_MAX} bytes"),
            Reason::Form(what) => f.write_str(what),
            Reason::Header(what) => write!(f, "the header: {what}"),
            Reason::UnknownKey => f.write_str("no key of the set has the name in `kid`"),
            Reason::Signature => f.write_str("the signature does not fit"),
            Reason::Claims(what) => write!(f, "the claims: {what}"),
            Reason::NotYet { iat } => write!(f, "it was decided later, at {iat}"),
            Reason::Expired { exp } => write!(f, "it expired at {exp}"),
        }
    }
}

impl std::error::Error for Reason {}

/// Checks a token at a time, in seconds since 1970. Clocks that differ are not made up for.
pub fn verify(token: &str, keys: &Jwks, now: u64) -> Result<Attested, Reason> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Reason::TooLong);
    }
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Reason::Form("a token is three parts with points between them"));
    };
    let (alg, kid) = read_header(&text_of(header)?)?;
    let key = keys.get(&kid).ok_or(Reason::UnknownKey)?;
    // The key says how it signs; the token may only agree.
    if alg != key.algorithm().as_str() {
        return Err(Reason::Header("`alg` is not that of the key".to_owned()));
    }
    let algorithm: &'static dyn VerificationAlgorithm = match key.algorithm() {
        Algorithm::Es256 => &ECDSA_P256_SHA256_FIXED,
        Algorithm::EdDsa => &ED25519,
    };
    let signature = bytes_of(signature)?;
    let signed = [header, ".", payload].concat();
    UnparsedPublicKey::new(algorithm, key.bytes())
        .verify(signed.as_bytes(), &signature)
        .map_err(|_| Reason::Signature)?;
    let claims: Claims = json::from_str(&text_of(payload)?).map_err(|error| Reason::Claims(shape(&error)))?;
    claims.check().map_err(|what| Reason::Claims(what.to_owned()))?;
    if now < claims.iat {
        return Err(Reason::NotYet { iat: claims.iat });
    }
    if now >= claims.exp {
        return Err(Reason::Expired { exp: claims.exp });
    }
    Ok(Attested { kid, algorithm: key.algorithm(), claims })
}

/// `alg` and `kid`. There is nothing else in a header but `typ`: no key, no address of one, nothing critical.
fn read_header(text: &str) -> Result<(String, String), Reason> {
    let refused = |what: &str| Err(Reason::Header(what.to_owned()));
    let document = json::parse(text, &Limits::STATE).map_err(|error| Reason::Header(error.to_string()))?;
    let Some(members) = document.root().as_object() else { return refused("it must be an object") };
    let (mut alg, mut kid, mut typ) = (None, None, None);
    for (key, value) in members {
        let member = match key.text() {
            "alg" => &mut alg,
            "kid" => &mut kid,
            "typ" => &mut typ,
            "crit" => return refused("`crit` asks for what nobody here knows"),
            _ => return refused("it has a member other than `alg`, `kid` and `typ`"),
        };
        let Some(text) = value.as_str() else { return refused("its members must be strings") };
        *member = Some(text.text().to_owned());
    }
    match (alg, kid, typ) {
        (Some(alg), Some(kid), Some(typ)) if typ == TOKEN_TYPE => Ok((alg, kid)),
        (Some(_), Some(_), Some(_)) => refused("`typ` must be `qwed-attestation+jwt`"),
        _ => refused("`alg`, `kid` and `typ` are required"),
    }
}

/// What does not fit, without the values: a token that is no attestation may hold anything.
fn shape(error: &LoadError) -> String {
    match error {
        LoadError::Json(error) => error.to_string(),
        LoadError::Shape { path: Some(path), .. } => format!("`{path}` does not fit"),
        LoadError::Shape { path: None, .. } => "they do not fit".to_owned(),
    }
}

fn bytes_of(part: &str) -> Result<Vec<u8>, Reason> {
    // This engine takes no padding, and no bits beyond the last byte.
    BASE64URL.decode(part).map_err(|_| Reason::Form("a part is not canonical base64url"))
}

fn text_of(part: &str) -> Result<String, Reason> {
    String::from_utf8(bytes_of(part)?).map_err(|_| Reason::Form("a part is not UTF-8"))
}
