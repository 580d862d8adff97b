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
use ring::hmac;
use rustls_pki_types::ServerName;

use crate::client::{Address, AddressFault};

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
    pub(super) address: Address,
    /// The name its certificate must have; nothing for `http`.
    pub(super) certified: Option<ServerName<'static>>,
    /// Path and query.
    pub(super) target: String,
    key: hmac::Key,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The path may be a secret.
        write!(f, "Destination({}:{})", self.address.host, self.address.port)
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
        let address = Address::parse(url).map_err(|fault| match fault {
            AddressFault::Characters | AddressFault::Host => refused(NO_ADDRESS),
            AddressFault::Scheme => refused(&format!("{NO_ADDRESS}: it must begin with https:// or http://")),
            AddressFault::User => refused("`webhook` must not hold a user or password; use the secret, or the path"),
            AddressFault::Fragment => refused("`webhook` must not have a fragment"),
            AddressFault::Port => refused("`webhook` has a port that is none"),
        })?;
        let certified = match address.is_encrypted {
            true => {
                let name = ServerName::try_from(address.host.clone());
                Some(name.map_err(|_| refused("`webhook` has a host that is none"))?)
            }
            false => None,
        };
        let target = if address.target.starts_with('/') { String::new() } else { "/".to_owned() } + &address.target;
        Ok(Destination { address, certified, target, key: key(secret)? })
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
