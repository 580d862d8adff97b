//! The keys that attestations are signed with: the last one signs, those before it still verify. They live in one file
//! of the data directory; a file that is damaged or that others could have changed is a fault, never a reason to make a
//! new key. What is signed is not decided here.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use interlock_core::json;
use interlock_core::{Cause, Code, Digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::TOKEN_TYPE;
use super::claims::{Claims, issuer};
use super::jwks::{Algorithm, Jwks, PublicKey};
use crate::ledger::{Recorded, write_new};
use crate::startup::StartupFault;

/// The name of the file in a data directory.
pub const FILE_NAME: &str = "attestation.keys";
/// How many keys are kept. A rotation beyond drops the oldest: being able to rotate matters more than a key so old.
pub const KEYS_LEN_MAX: usize = 100;

const TEMPORARY_NAME: &str = ".attestation.keys.tmp";
/// The form of the file. A reader refuses newer ones.
const FORMAT: u32 = 1;
/// The largest file; a hundred keys need a tenth of it.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The keys of a node.
pub struct AttestationKeys {
    issuer: String,
    /// Where the file is; keys in memory have none.
    directory: Option<PathBuf>,
    /// The last one signs.
    keys: RwLock<Arc<Vec<Arc<SigningKey>>>>,
    /// One rotation at a time.
    rotation: Mutex<()>,
    random: SystemRandom,
}

impl fmt::Debug for AttestationKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttestationKeys").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Why there is no attestation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttestationFault {
    /// The decision lets nothing run, or what may run is not known.
    NothingRuns,
    /// It could not be signed.
    Signing,
}

impl fmt::Display for AttestationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttestationFault::NothingRuns => "the decision lets nothing run",
            AttestationFault::Signing => "the attestation could not be signed",
        })
    }
}

impl std::error::Error for AttestationFault {}

/// Why there is no new key. The current one goes on signing.
#[derive(Debug)]
pub enum RotationFault {
    /// The key could not be made.
    Generate,
    /// The file could not be replaced.
    Write(io::Error),
}

impl fmt::Display for RotationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RotationFault::Generate => f.write_str("a new key could not be made"),
            RotationFault::Write(_) => write!(f, "{FILE_NAME} could not be replaced"),
        }
    }
}

impl std::error::Error for RotationFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RotationFault::Write(error) => Some(error),
            RotationFault::Generate => None,
        }
    }
}

impl AttestationKeys {
    /// Reads the keys of a data directory, making the first one if there is no file. `origin` names the ledger. The
    /// caller holds the directory alone.
    pub fn open(directory: &Path, origin: &str) -> Result<AttestationKeys, StartupFault> {
        let failed = |what: &dyn fmt::Display| StartupFault {
            code: Code::FaultStore,
            message: format!("{} cannot be used: {what}", directory.join(FILE_NAME).display()),
        };
        let random = SystemRandom::new();
        let keys = match read_keys(directory, true)? {
            Some(keys) => {
                // Left by a crash; it may hold a key that never signed.
                remove_if_there(&directory.join(TEMPORARY_NAME)).map_err(|error| failed(&error))?;
                keys
            }
            None => {
                let first = SigningKey::generate(Algorithm::Es256, &random).map(Arc::new);
                let keys = vec![first.ok_or_else(|| failed(&RotationFault::Generate))?];
                replace_file(directory, &keys).map_err(|error| failed(&error))?;
                keys
            }
        };
        Ok(AttestationKeys::with_keys(keys, Some(directory.to_owned()), origin))
    }

    /// One new key that is kept nowhere.
    pub fn in_memory(origin: &str, algorithm: Algorithm) -> Result<AttestationKeys, RotationFault> {
        let key = SigningKey::generate(algorithm, &SystemRandom::new()).ok_or(RotationFault::Generate)?;
        Ok(AttestationKeys::with_keys(vec![Arc::new(key)], None, origin))
    }

    /// The public parts of the keys of a data directory, beside a running server or without one; `None` if it has none.
    pub fn read_public(directory: &Path) -> Result<Option<Jwks>, StartupFault> {
        Ok(read_keys(directory, false)?.map(|keys| public_of(&keys)))
    }

    fn with_keys(keys: Vec<Arc<SigningKey>>, directory: Option<PathBuf>, origin: &str) -> AttestationKeys {
        AttestationKeys {
            issuer: issuer(origin),
            directory,
            keys: RwLock::new(Arc::new(keys)),
            rotation: Mutex::default(),
            random: SystemRandom::new(),
        }
    }

    /// Signs what is on record about a decision. `corrected` is the fingerprint of the corrected action, which a
    /// CORRECTED decision needs; `previous` the leaf hash of the agent's entry before it.
    pub fn attest(
        &self,
        recorded: &Recorded,
        corrected: Option<Digest>,
        previous: Option<Digest>,
    ) -> Result<String, AttestationFault> {
        let claims = Claims::of(&self.issuer, recorded, corrected, previous).ok_or(AttestationFault::NothingRuns)?;
        self.sign(&claims).ok_or(AttestationFault::Signing)
    }

    /// Signs what is on record about a decision that a person approved: its own entry, and the person's.
    pub fn attest_granted(&self, ruled: &Recorded, granted: &Recorded) -> Result<String, AttestationFault> {
        let claims = Claims::of_granted(&self.issuer, ruled, granted).ok_or(AttestationFault::NothingRuns)?;
        self.sign(&claims).ok_or(AttestationFault::Signing)
    }

    fn sign(&self, claims: &Claims) -> Option<String> {
        let keys = self.all();
        let key = keys.last()?;
        let payload = claims.to_json()?;
        let mut token = String::with_capacity(payload.len().saturating_mul(2));
        token.push_str(&key.header);
        token.push('.');
        BASE64URL.encode_string(payload, &mut token);
        let signature = key.sign(token.as_bytes(), &self.random)?;
        token.push('.');
        BASE64URL.encode_string(signature, &mut token);
        Some(token)
    }

    /// Makes a new key that signs from now on; without an algorithm, one like the current. The file is on disk before
    /// the key signs, so every token can be verified after a crash.
    pub fn rotate(&self, algorithm: Option<Algorithm>) -> Result<PublicKey, RotationFault> {
        let _one_at_a_time = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys = Vec::clone(&self.all());
        keys.drain(..keys.len().saturating_add(1).saturating_sub(KEYS_LEN_MAX));
        let current = keys.last().map(|key| key.public.algorithm());
        let algorithm = algorithm.or(current).unwrap_or(Algorithm::Es256);
        let key = SigningKey::generate(algorithm, &self.random).ok_or(RotationFault::Generate)?;
        let public = key.public.clone();
        keys.push(Arc::new(key));
        if let Some(directory) = &self.directory {
            replace_file(directory, &keys).map_err(RotationFault::Write)?;
        }
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        Ok(public)
    }

    /// The public keys, the one that signs now first.
    pub fn jwks(&self) -> Jwks {
        public_of(&self.all())
    }

    /// Who signs: `did:qwed:node:` and the short name of the ledger.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    fn all(&self) -> Arc<Vec<Arc<SigningKey>>> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn public_of(keys: &[Arc<SigningKey>]) -> Jwks {
    Jwks::new(keys.iter().rev().map(|key| key.public.clone()).collect())
}

/// A key with its secret.
struct SigningKey {
    pair: Pair,
    public: PublicKey,
    /// As it is stored.
    pkcs8: Vec<u8>,
    /// The first part of every token it signs.
    header: String,
}

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    fn generate(algorithm: Algorithm, random: &SystemRandom) -> Option<SigningKey> {
        let pkcs8 = match algorithm {
            Algorithm::Es256 => EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, random),
            Algorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(random),
        };
        SigningKey::load(algorithm, pkcs8.ok()?.as_ref(), random)
    }

    /// Reads a stored key; the provider refuses one whose parts do not belong together.
    fn load(algorithm: Algorithm, pkcs8: &[u8], random: &SystemRandom) -> Option<SigningKey> {
        let pair = match algorithm {
            Algorithm::Es256 => {
                Pair::P256(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, random).ok()?)
            }
            Algorithm::EdDsa => Pair::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8).ok()?),
        };
        let public = match &pair {
            Pair::P256(pair) => PublicKey::new(algorithm, pair.public_key().as_ref())?,
            Pair::Ed25519(pair) => PublicKey::new(algorithm, pair.public_key().as_ref())?,
        };
        let (name, kid) = (algorithm.as_str(), public.kid());
        let header = format!("{{\"alg\":\"{name}\",\"kid\":\"{kid}\",\"typ\":\"{TOKEN_TYPE}\"}}");
        let header = BASE64URL.encode(header);
        Some(SigningKey { pair, public, pkcs8: pkcs8.to_vec(), header })
    }

    fn sign(&self, message: &[u8], random: &SystemRandom) -> Option<Vec<u8>> {
        let signature = match &self.pair {
            Pair::P256(pair) => pair.sign(random, message).ok()?,
            Pair::Ed25519(pair) => pair.sign(message),
        };
        Some(signature.as_ref().to_vec())
    }

    fn line(&self) -> Option<String> {
        let (alg, kid) = (self.public.algorithm(), self.public.kid().to_owned());
        serde_json::to_string(&Line { format: FORMAT, alg, kid, pkcs8: BASE64URL.encode(&self.pkcs8) }).ok()
    }
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    format: u32,
    alg: Algorithm,
    kid: String,
    pkcs8: String,
}

/// Reads the file; `None` if there is none. `own` asks that it is this user's alone.
fn read_keys(directory: &Path, own: bool) -> Result<Option<Vec<Arc<SigningKey>>>, StartupFault> {
    let path = directory.join(FILE_NAME);
    let refused =
        |code: Code, what: &dyn fmt::Display| StartupFault { code, message: format!("{} {what}", path.display()) };
    // A link is not followed, and a pipe is not waited for.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(Code::EnvironmentFiles, &format_args!("cannot be opened: {error}"))),
    };
    let failed = |error: io::Error| refused(Code::FaultStore, &format_args!("cannot be read: {error}"));
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(refused(Code::EnvironmentFiles, &"is no file"));
    }
    if own && found.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused(Code::EnvironmentFiles, &"belongs to another user; make it yours alone (chown)"));
    }
    if own && found.mode() & 0o077 != 0 {
        let what = "can be read or written by others; make it yours alone (chmod 600) and rotate the key";
        return Err(refused(Code::EnvironmentFiles, &what));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    let text =
        String::from_utf8(bytes).ok().filter(|text| u64::try_from(text.len()).is_ok_and(|n| n <= FILE_BYTES_MAX));
    let keys = text.ok_or_else(|| "it is no text, or too long".into()).and_then(|text| load_keys(&text));
    let damaged = |what: Cause| {
        let advice = "put a copy back, or remove it to have a new key made (earlier attestations then fail)";
        refused(Code::EnvironmentFiles, &format_args!("is damaged, {what}; {advice}"))
    };
    keys.map(Some).map_err(damaged)
}

fn load_keys(text: &str) -> Result<Vec<Arc<SigningKey>>, Cause> {
    let lines = text.strip_suffix('\n').ok_or("its last line has no end")?;
    let random = SystemRandom::new();
    let mut keys: Vec<Arc<SigningKey>> = Vec::new();
    for (position, line) in lines.split('\n').enumerate() {
        let number = position.saturating_add(1);
        if number > KEYS_LEN_MAX {
            return Err(format!("it has more than {KEYS_LEN_MAX} keys").into());
        }
        // The reason is not repeated: it could hold a part of the secret.
        let read: Line = json::from_str(line).map_err(|_| format!("line {number} is no key"))?;
        if read.format > FORMAT {
            let format = read.format;
            return Err(format!("line {number} has format {format}, newer than this version reads ({FORMAT})").into());
        }
        let pkcs8 = BASE64URL.decode(&read.pkcs8).ok();
        let key = pkcs8.and_then(|pkcs8| SigningKey::load(read.alg, &pkcs8, &random));
        // A key has one spelling, so that a changed byte shows wherever it is.
        let key = key.filter(|key| key.line().as_deref() == Some(line));
        let key = key.ok_or_else(|| format!("line {number} is no key"))?;
        if keys.iter().any(|other| other.public == key.public) {
            return Err(format!("line {number} is there twice").into());
        }
        keys.push(Arc::new(key));
    }
    Ok(keys)
}

/// Replaces the file: temporary file, sync, rename, sync of the directory.
fn replace_file(directory: &Path, keys: &[Arc<SigningKey>]) -> io::Result<()> {
    let mut text = String::new();
    for key in keys {
        text.push_str(&key.line().ok_or_else(|| io::Error::other("a key cannot be written"))?);
        text.push('\n');
    }
    let temporary = directory.join(TEMPORARY_NAME);
    remove_if_there(&temporary)?;
    write_new(&temporary, text.as_bytes())?;
    fs::rename(&temporary, directory.join(FILE_NAME))?;
    File::open(directory)?.sync_all()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
