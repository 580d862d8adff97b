//! A proof as it is handed over: one JSON object that is read strictly and checked without the ledger.
//!
//! Whether anybody signed the root is not decided here; that is for whoever has the public key.

use core::fmt;

use serde::Deserialize;

use super::proof::{verify_consistency, verify_inclusion};
use crate::digest::Digest;
use crate::json;

/// The form of proofs. A reader refuses newer ones.
pub const PROOF_FORMAT: u32 = 1;
/// More hashes than a proof over any tree has.
const HASHES_MAX: usize = 128;

/// A proof about the tree with this size and root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// What it claims.
    pub claim: Claim,
    /// How many entries the tree has.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
    /// What leads there.
    pub hashes: Vec<Digest>,
    /// The signed note for this size and root, if there is one.
    pub checkpoint: Option<String>,
}

/// What a proof claims of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// An entry is in it.
    Inclusion {
        /// Where.
        index: u64,
        /// The hash of the entry.
        leaf_hash: Digest,
    },
    /// It continues an earlier tree.
    Consistency {
        /// How many entries that one had.
        old_size: u64,
        /// The root over them.
        old_root: Digest,
    },
}

/// Why a text is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofError {
    /// Written by a newer version.
    Newer(u32),
    /// Not of the form.
    Malformed(String),
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProofError::Newer(format) => {
                write!(f, "format {format} is not the one this version reads ({PROOF_FORMAT})")
            }
            ProofError::Malformed(reason) => write!(f, "not a proof: {reason}"),
        }
    }
}

impl std::error::Error for ProofError {}

/// Both kinds at once; which fields belong together is decided afterwards.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProof {
    format: u32,
    kind: String,
    size: u64,
    root: Digest,
    hashes: Vec<Digest>,
    index: Option<u64>,
    leaf_hash: Option<Digest>,
    old_size: Option<u64>,
    old_root: Option<Digest>,
    checkpoint: Option<String>,
}

impl Proof {
    /// Reads a proof: all fields of its kind and no others.
    ///
    /// ```
    /// use interlock_core::ledger::{Claim, Proof, leaf_hash};
    ///
    /// let leaf = leaf_hash(b"the only entry");
    /// let claim = Claim::Inclusion { index: 0, leaf_hash: leaf };
    /// let proof = Proof { claim, size: 1, root: leaf, hashes: Vec::new(), checkpoint: None };
    /// assert!(proof.holds());
    /// assert_eq!(Proof::parse(&proof.to_json()), Ok(proof));
    /// ```
    pub fn parse(text: &str) -> Result<Proof, ProofError> {
        let malformed = |reason: &dyn fmt::Display| ProofError::Malformed(reason.to_string());
        let raw: RawProof = json::from_str(text).map_err(|error| malformed(&error))?;
        if raw.format != PROOF_FORMAT {
            return Err(ProofError::Newer(raw.format));
        }
        if raw.hashes.len() > HASHES_MAX {
            return Err(malformed(&format_args!("no proof has more than {HASHES_MAX} hashes")));
        }
        let claim = match (raw.kind.as_str(), raw.index, raw.leaf_hash, raw.old_size, raw.old_root) {
            ("inclusion", Some(index), Some(leaf_hash), None, None) => Claim::Inclusion { index, leaf_hash },
            ("inclusion", ..) => return Err(malformed(&"an inclusion proof has index and leaf_hash, and no old tree")),
            ("consistency", None, None, Some(old_size), Some(old_root)) => Claim::Consistency { old_size, old_root },
            ("consistency", ..) => {
                return Err(malformed(&"a consistency proof has old_size and old_root, and no leaf"));
            }
            _ => return Err(malformed(&"`kind` is neither `inclusion` nor `consistency`")),
        };
        Ok(Proof { claim, size: raw.size, root: raw.root, hashes: raw.hashes, checkpoint: raw.checkpoint })
    }

    /// The proof as one line of JSON.
    pub fn to_json(&self) -> String {
        let hashes: Vec<String> = self.hashes.iter().map(|hash| format!("\"{hash}\"")).collect();
        let hashes = hashes.join(",");
        let (size, root) = (self.size, self.root);
        let middle = match self.claim {
            Claim::Inclusion { index, leaf_hash } => format!(
                "\"inclusion\",\"index\":{index},\"size\":{size},\"leaf_hash\":\"{leaf_hash}\",\"hashes\":[{hashes}],\
                 \"root\":\"{root}\""
            ),
            Claim::Consistency { old_size, old_root } => format!(
                "\"consistency\",\"old_size\":{old_size},\"old_root\":\"{old_root}\",\"size\":{size},\
                 \"root\":\"{root}\",\"hashes\":[{hashes}]"
            ),
        };
        let note = self.checkpoint.as_deref().map(json::quote);
        let note = note.map_or_else(String::new, |note| format!(",\"checkpoint\":{note}"));
        format!("{{\"format\":{PROOF_FORMAT},\"kind\":{middle}{note}}}")
    }

    /// Whether its hashes lead where it says. That the root is the one somebody signed is another question.
    pub fn holds(&self) -> bool {
        match self.claim {
            Claim::Inclusion { index, leaf_hash } => {
                verify_inclusion(leaf_hash, index, self.size, &self.hashes, self.root)
            }
            Claim::Consistency { old_size, old_root } => {
                verify_consistency(old_size, old_root, self.size, self.root, &self.hashes)
            }
        }
    }
}
