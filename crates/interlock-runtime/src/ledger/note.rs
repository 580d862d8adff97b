//! Signed notes as anybody reads them: with the public key alone, in the forms of C2SP signed-note and tlog-checkpoint.
//!
//! Signing is not known here; see `checkpoint.rs`. Nor is it decided here whether a key may be believed: whoever has it
//! from the operator knows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use interlock_core::Digest;
use ring::signature::{ED25519, UnparsedPublicKey};

use super::checkpoint::Checkpoint;
use crate::clock::hex;

/// The signature type of Ed25519 in signed notes.
const NOTE_ED25519: u8 = 1;
/// The longest note that is read; a checkpoint with a signature has some 200 bytes.
pub const NOTE_BYTES_MAX: usize = 64 * 1024;
/// The most signatures a note may have.
const SIGNATURES_MAX: usize = 100;
/// The longest name of a key.
const NAME_BYTES_MAX: usize = 256;

/// A public key with its name, as it is handed to whoever checks notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteVerifier {
    name: String,
    key: [u8; 32],
}

impl NoteVerifier {
    /// A verifier of what a key signs under a name.
    pub(super) fn new(name: String, key: [u8; 32]) -> NoteVerifier {
        NoteVerifier { name, key }
    }

    /// Reads `name+hash+base64`, as it is printed; `None` if it is not that, or the hash is not of this name and key.
    ///
    /// ```
    /// use interlock_runtime::ledger::{LedgerKey, NoteVerifier};
    ///
    /// let text = LedgerKey::from_seed(&[1; 32])?.verifier().to_string();
    /// let verifier = NoteVerifier::parse(&text);
    /// assert_eq!(verifier.map(|verifier| verifier.to_string()), Some(text));
    /// assert_eq!(NoteVerifier::parse("example.com/log+00000000+AQ=="), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn parse(text: &str) -> Option<NoteVerifier> {
        let (name, rest) = text.split_once('+')?;
        // The base64 may hold a plus, the others cannot.
        let (hash, key) = rest.split_once('+')?;
        let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_whitespace);
        let bytes = BASE64.decode(key).ok().filter(|_| is_name)?;
        let (kind, key) = bytes.split_first()?;
        let key: [u8; 32] = key.try_into().ok().filter(|_| *kind == NOTE_ED25519)?;
        let verifier = NoteVerifier { name: name.to_owned(), key };
        (hex(&verifier.hash()) == hash).then_some(verifier)
    }

    /// The name the key signs under, which is the origin of its checkpoints.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes of a hash over name, type and key, by which signatures name their key.
    pub(super) fn hash(&self) -> [u8; 4] {
        let text = [self.name.as_bytes(), b"\n", &[NOTE_ED25519], &self.key].concat();
        Digest::of_bytes(&text).bytes().first_chunk().copied().unwrap_or_default()
    }

    /// Reads a checkpoint that this key signed; `None` if it did not, or the note is not of the form.
    ///
    /// Signatures of other keys may stand beside it. The first one that names this key decides.
    pub fn open(&self, note: &str) -> Option<Checkpoint> {
        if note.len() > NOTE_BYTES_MAX || note.bytes().any(|byte| byte < b' ' && byte != b'\n') {
            return None;
        }
        let (body, signatures) = note.rsplit_once("\n\n")?;
        let body = format!("{body}\n");
        let lines: Vec<&str> = signatures.strip_suffix('\n')?.split('\n').collect();
        if lines.len() > SIGNATURES_MAX {
            return None;
        }
        let mut own = None;
        for line in lines {
            let (name, signed) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
            let signed = BASE64.decode(signed).ok()?;
            let (hash, signature) = signed.split_first_chunk::<4>()?;
            if own.is_none() && name == self.name && *hash == self.hash() {
                own = Some(signature.to_vec());
            }
        }
        UnparsedPublicKey::new(&ED25519, self.key).verify(body.as_bytes(), &own?).ok()?;
        let mut lines = body.lines();
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        // Blank lines after that would be another way to end the text.
        if origin != self.name || lines.any(str::is_empty) {
            return None;
        }
        let root = Digest::from_bytes(BASE64.decode(root).ok()?.try_into().ok()?);
        let size = size.parse::<u64>().ok().filter(|number| number.to_string() == size)?;
        Some(Checkpoint { size, root })
    }
}

impl std::fmt::Display for NoteVerifier {
    /// The verifier key text of C2SP signed-note.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = [[NOTE_ED25519].as_slice(), &self.key].concat();
        write!(f, "{}+{}+{}", self.name, hex(&self.hash()), BASE64.encode(key))
    }
}
