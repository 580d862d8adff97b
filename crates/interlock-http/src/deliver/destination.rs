//! A destination of webhooks: an address and a secret, checked once when the bundle is loaded. Events are signed as
//! [Standard Webhooks](https://www.standardwebhooks.com) has it, so any of its libraries can verify them.
//!
//! `http` is allowed beside `https`, because a receiver may be on the same machine or behind a tunnel. A signature keeps
//! an event from being forged or changed, not from being read: where others can listen, use `https`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use ring::hmac;
use rustls_pki_types::ServerName;

/// How many destinations there may be.
const DESTINATIONS_MAX: usize = 1_000;
/// The longest address.
const URL_BYTES_MAX: usize = 2_048;
/// The shortest secret, as Standard Webhooks asks for.
const SECRET_BYTES_MIN: usize = 24;
const NO_ADDRESS: &str = "`webhook` is not an address such as https://example.com/hook";
/// What a secret written in base64 begins with.
const SECRET_PREFIX: &str = "whsec_";

/// Where webhooks may go, by name. Nothing is ever sent anywhere else.
#[derive(Debug, Clone, Default)]
pub struct Destinations {
    pub(super) known: BTreeMap<String, Destination>,
    pub(super) authorities: Option<PathBuf>,
}

/// Why a destination is refused. The message does not repeat the address, which may hold a secret of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationError(String);

impl fmt::Display for DestinationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DestinationError {}

impl DestinationError {
    /// The same, with the part of the bundle it is about.
    pub(super) fn of(self, part: &str) -> DestinationError {
        DestinationError(format!("{part}: {}", self.0))
    }
}

impl Destinations {
    /// Adds one. A name stands for one destination.
    pub fn add(&mut self, name: &str, destination: Destination) -> Result<(), DestinationError> {
        if self.known.len() >= DESTINATIONS_MAX {
            return Err(DestinationError(format!("there may be {DESTINATIONS_MAX} webhooks at most")));
        }
        if self.known.insert(name.to_owned(), destination).is_some() {
            return Err(DestinationError("two webhooks have the same name".to_owned()));
        }
        Ok(())
    }

    /// Has certificates believed that an authority of this PEM file signed, beside those the machine believes.
    pub fn also_trust(&mut self, authorities: &Path) {
        self.authorities = Some(authorities.to_owned());
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

/// An address and the key that events to it are signed with.
#[derive(Clone)]
pub struct Destination {
    pub(super) host: String,
    pub(super) port: u16,
    /// The name its certificate must have; nothing for `http`.
    pub(super) certified: Option<ServerName<'static>>,
    /// What goes into the `host` header.
    pub(super) authority: HeaderValue,
    /// Path and query.
    pub(super) target: Uri,
    key: hmac::Key,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The path may be a secret.
        write!(f, "Destination({}:{})", self.host, self.port)
    }
}

impl Destination {
    /// Reads an address, `https://host[:port]/path?query` or the same with `http`, and a secret: `whsec_` and base64,
    /// or any other text as it is, at least 24 bytes.
    pub fn parse(url: &str, secret: &str) -> Result<Destination, DestinationError> {
        let refused = |what: &str| DestinationError(what.to_owned());
        if url.len() > URL_BYTES_MAX {
            return Err(DestinationError(format!("`webhook` has {URL_BYTES_MAX} bytes at most")));
        }
        let uri: Uri = url.parse().map_err(|_| refused(NO_ADDRESS))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(refused("`webhook` must begin with https:// or http://")),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| refused("`webhook` has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("`webhook` must not hold a user or password; use the secret, or the path"));
        }
        if url.contains('#') {
            return Err(refused("`webhook` must not have a fragment"));
        }
        let rest = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        let port = match (rest, authority.port_u16()) {
            ("", _) => {
                if is_https {
                    443
                } else {
                    80
                }
            }
            (_, Some(port)) if port > 0 => port,
            (_, Some(_) | None) => return Err(refused("`webhook` has a port that is none")),
        };
        // An address of IPv6 stands in brackets in a URL, and nowhere else.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let certified = match is_https {
            true => Some(ServerName::try_from(host.clone()).map_err(|_| refused("`webhook` has a host that is none"))?),
            false => None,
        };
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        Ok(Destination {
            host,
            port,
            certified,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| refused(NO_ADDRESS))?,
            target: target.parse().map_err(|_| refused(NO_ADDRESS))?,
            key: key(secret)?,
        })
    }

    /// `v1,` and the base64 of the HMAC-SHA256 of `id.timestamp.body`.
    pub(super) fn sign(&self, id: &str, timestamp: &str, body: &str) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        for piece in [id, ".", timestamp, ".", body] {
            context.update(piece.as_bytes());
        }
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

fn key(secret: &str) -> Result<hmac::Key, DestinationError> {
    let refused = |what: &str| DestinationError(what.to_owned());
    let bytes = match secret.strip_prefix(SECRET_PREFIX) {
        Some(text) => STANDARD.decode(text).map_err(|_| refused("what follows `whsec_` in `secret` must be base64"))?,
        None => secret.as_bytes().to_vec(),
    };
    if bytes.len() < SECRET_BYTES_MIN {
        return Err(DestinationError(format!("`secret` must have {SECRET_BYTES_MIN} bytes at least")));
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}
