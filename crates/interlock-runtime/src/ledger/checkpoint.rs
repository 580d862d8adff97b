//! The checkpoint: size and root of the ledger, signed, in a file of its own.
//!
//! A database can lose acknowledged rows to a damaged log and call itself sound. The file says how far it had come; at
//! start the database must have come as far. The form is the C2SP tlog-checkpoint, signed as a note with Ed25519.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use interlock_core::Digest;
use interlock_core::ledger::Frontier;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::note::NoteVerifier;
use super::sqlite::{DATABASE_NAME, SqliteReader};
use super::store::Reader;
use crate::clock::{Entropy, hex};
use crate::reach::Reach;

/// The name of the file in a data directory.
const FILE_NAME: &str = "checkpoint";
const KEY_NAME: &str = "ledger.key";

/// The key a ledger signs its checkpoints with.
pub struct LedgerKey {
    pair: Ed25519KeyPair,
    verifier: NoteVerifier,
    /// Derived from the key, for the ids of decisions.
    id_secret: Digest,
    /// Every checkpoint says what the log covers: whoever can write as this user can replace log, key and checkpoint
    /// together.
    reach: Reach,
}

impl std::fmt::Debug for LedgerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LedgerKey").field("origin", &self.origin()).finish_non_exhaustive()
    }
}

impl LedgerKey {
    /// Reads the key of a data directory, making one if there is none.
    pub fn open(directory: &Path, entropy: &dyn Entropy) -> io::Result<LedgerKey> {
        let path = directory.join(KEY_NAME);
        let seed = match fs::read_to_string(&path) {
            Ok(text) => unhex(text.trim()).ok_or_else(|| io::Error::other("ledger.key is damaged"))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Another key would hide that the first is gone: everything would look as if somebody else had signed.
                if is_used(directory) {
                    return Err(io::Error::other("there is a ledger, and its ledger.key is gone; restore it"));
                }
                let mut seed = [0; 32];
                entropy.fill(&mut seed)?;
                write_new(&path, format!("{}\n", hex(&seed)).as_bytes())?;
                seed
            }
            Err(error) => return Err(error),
        };
        LedgerKey::from_seed(&seed)
    }

    /// A key from its seed.
    pub fn from_seed(seed: &[u8; 32]) -> io::Result<LedgerKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| io::Error::other("ledger.key is no key"))?;
        let public = pair.public_key().as_ref();
        let short = Digest::of_bytes(public).bytes();
        let origin = format!("interlock/{}", hex(short.get(..8).unwrap_or_default()));
        let public = public.try_into().map_err(|_| io::Error::other("ledger.key is no key"))?;
        let id_secret = Digest::of_bytes(&[b"decision ids\n".as_slice(), seed].concat());
        Ok(LedgerKey { pair, verifier: NoteVerifier::new(origin, public), id_secret, reach: Reach::SameUser })
    }

    /// Names the ledger: derived from its key.
    pub fn origin(&self) -> &str {
        self.verifier.name()
    }

    /// The same key, for a ledger whose files are this far from agents.
    #[must_use]
    pub fn with_reach(self, reach: Reach) -> LedgerKey {
        LedgerKey { reach, ..self }
    }

    pub(super) fn id_secret(&self) -> Digest {
        self.id_secret
    }

    /// What anybody needs to check its checkpoints.
    pub fn verifier(&self) -> &NoteVerifier {
        &self.verifier
    }

    /// Signs a checkpoint.
    pub fn sign(&self, frontier: &Frontier) -> String {
        self.sign_body(&body_of(self.origin(), frontier.size(), frontier.root(), self.reach))
    }

    /// Signs a checkpoint that continues an earlier one, with the reach that one speaks of.
    pub fn sign_after(&self, earlier: &SignedCheckpoint, frontier: &Frontier) -> SignedCheckpoint {
        let reach = earlier.note.lines().nth(REACH_LINE).and_then(Reach::parse).unwrap_or(Reach::SameUser);
        let body = body_of(self.origin(), frontier.size(), frontier.root(), reach);
        let checkpoint = Checkpoint { size: frontier.size(), root: frontier.root() };
        SignedCheckpoint { note: self.sign_body(&body), checkpoint }
    }

    fn sign_body(&self, body: &str) -> String {
        let signature = self.pair.sign(body.as_bytes());
        let signed = [self.verifier.hash().as_slice(), signature.as_ref()].concat();
        format!("{body}\n\u{2014} {} {}\n", self.origin(), BASE64.encode(signed))
    }

    /// The SHA-256 of the public key: what others pin.
    pub fn fingerprint(&self) -> Digest {
        Digest::of_bytes(self.pair.public_key().as_ref())
    }

    /// Proves to whoever asked with this challenge that the holder of the key gave this answer.
    pub fn prove(&self, challenge: &str, answer: &[u8]) -> String {
        let signature = self.pair.sign(proven(challenge, answer).as_bytes());
        format!("{}.{}", BASE64.encode(self.pair.public_key().as_ref()), BASE64.encode(signature.as_ref()))
    }

    /// Reads a checkpoint that this key signed.
    pub fn open_note(&self, note: &str) -> Option<Checkpoint> {
        self.verifier.open(note)
    }
}

/// Whether a directory holds something that was signed, or whatever cannot be told from that.
fn is_used(directory: &Path) -> bool {
    if directory.join(FILE_NAME).exists() {
        return true;
    }
    if fs::metadata(directory.join(DATABASE_NAME)).map_or(true, |found| found.len() == 0) {
        return false;
    }
    let head = SqliteReader::open(directory).and_then(|mut reader| reader.head());
    head.map_or(true, |head| head.size() > 0)
}

/// What is signed to prove who answered.
fn proven(challenge: &str, answer: &[u8]) -> String {
    format!("interlock daemon\n{challenge}\n{}\n", Digest::of_bytes(answer))
}

/// Whether the holder of a key gave this answer to this challenge.
pub fn is_proven(fingerprint: Digest, challenge: &str, answer: &[u8], proof: &str) -> bool {
    let parts = proof
        .split_once('.')
        .and_then(|(key, signature)| Some((BASE64.decode(key.trim()).ok()?, BASE64.decode(signature.trim()).ok()?)));
    let Some((key, signature)) = parts else { return false };
    let verifier = UnparsedPublicKey::new(&ED25519, &key);
    Digest::of_bytes(&key).same_as(fingerprint)
        && verifier.verify(proven(challenge, answer).as_bytes(), &signature).is_ok()
}

/// Which line of a note says how far the server is out of an agent's reach.
const REACH_LINE: usize = 3;

fn body_of(origin: &str, size: u64, root: Digest, reach: Reach) -> String {
    format!("{origin}\n{size}\n{}\n{}\n", BASE64.encode(root.bytes()), reach.as_str())
}

/// What a checkpoint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// How many entries there were.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
}

/// A checkpoint with the note it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    /// The whole signed note.
    pub note: String,
    /// What it says.
    pub checkpoint: Checkpoint,
}

/// The file in a data directory.
#[derive(Debug)]
pub struct CheckpointFile {
    directory: PathBuf,
    key: LedgerKey,
}

impl CheckpointFile {
    /// The file of a data directory, whether it exists or not.
    pub fn new(directory: &Path, key: LedgerKey) -> CheckpointFile {
        CheckpointFile { directory: directory.to_owned(), key }
    }

    /// The key it is signed with.
    pub fn key(&self) -> &LedgerKey {
        &self.key
    }

    /// What the file says; `None` if there is no file. A file that is not signed by the key is an error.
    pub fn read(&self) -> io::Result<Option<Checkpoint>> {
        Ok(self.read_signed()?.map(|signed| signed.checkpoint))
    }

    /// The same, with the note itself.
    pub fn read_signed(&self) -> io::Result<Option<SignedCheckpoint>> {
        match fs::read_to_string(self.directory.join(FILE_NAME)) {
            Ok(note) => {
                let foreign = || io::Error::other("the checkpoint is not signed by this ledger's key");
                let checkpoint = self.key.open_note(&note).ok_or_else(foreign)?;
                Ok(Some(SignedCheckpoint { note, checkpoint }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file: temporary file, sync, rename, sync of the directory. Returns what it says.
    pub fn write(&self, frontier: &Frontier) -> io::Result<SignedCheckpoint> {
        let (temporary, path) = (self.directory.join(".checkpoint.tmp"), self.directory.join(FILE_NAME));
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let note = self.key.sign(frontier);
        write_new(&temporary, note.as_bytes())?;
        fs::rename(&temporary, &path)?;
        File::open(&self.directory)?.sync_all()?;
        Ok(SignedCheckpoint { note, checkpoint: Checkpoint { size: frontier.size(), root: frontier.root() } })
    }
}

/// Writes a file that must not exist, for its owner only, and returns once it is on disk.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // Half a key would be in the way once there is room again.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    Digest::parse(&format!("sha256:{text}")).map(Digest::bytes)
}
