//! SHA-256, spelled `sha256:<hex>`.

use core::fmt;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of several pieces, as if they were one.
    ///
    /// ```
    /// let whole = interlock_core::Digest::of(&["{}"]);
    /// assert_eq!(whole, interlock_core::Digest::of(&["{", "}"]));
    /// assert!(whole.to_string().starts_with("sha256:44136fa355b3678a"));
    /// ```
    pub fn of(pieces: &[&str]) -> Digest {
        let mut running = Running::new();
        for piece in pieces {
            running.update(piece);
        }
        running.finish()
    }

    /// The digest of bytes that need not be text.
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The spelling of the digest, without allocating.
    pub fn to_ascii(self) -> [u8; 71] {
        let hex =
            |nibble: u8| nibble.wrapping_add(b'0').wrapping_add(u8::from(nibble > 9).wrapping_mul(b'a' - b'9' - 1));
        let mut text = *b"sha256:----------------------------------------------------------------";
        let (_, digits) = text.split_at_mut(7);
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[hex(byte >> 4), hex(byte & 0xF)]);
        }
        text
    }

    /// Reads the spelling of a digest.
    ///
    /// ```
    /// let digest = interlock_core::Digest::of(&["{}"]);
    /// assert_eq!(interlock_core::Digest::parse(&digest.to_string()), Some(digest));
    /// ```
    pub fn parse(text: &str) -> Option<Digest> {
        text.strip_prefix("sha256:").and_then(unhex).map(Digest)
    }

    /// A digest that was computed elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// The digest of a prefix byte and two digests or one text: the two kinds of nodes of a Merkle tree.
    pub(crate) fn of_node(prefix: u8, pieces: &[&[u8]]) -> Digest {
        let mut running = Sha256::new();
        running.update([prefix]);
        for piece in pieces {
            running.update(piece);
        }
        Digest(running.finalize().into())
    }

    /// Whether two digests are the same, in a time that tells nothing about where they differ.
    pub fn same_as(self, other: Digest) -> bool {
        let differing = self.0.iter().zip(other.0).fold(0, |sum, (left, right)| sum | (left ^ right));
        core::hint::black_box(differing) == 0
    }

    /// What shows that whoever knows this secret said a text. The secret comes before a digest of fixed length, so that no
    /// other text has a mark that follows from this one.
    pub fn mark(self, pieces: &[&str]) -> Digest {
        Digest::of_bytes(&[self.bytes(), Digest::of(pieces).bytes()].concat())
    }

    /// The digest's bytes.
    pub fn bytes(self) -> [u8; 32] {
        self.0
    }
}

/// The bytes that lower-case hexadecimal digits stand for, exactly so many.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
        b'a'..=b'f' => Some(digit.wrapping_sub(b'a').wrapping_add(10)),
        _ => None,
    };
    if text.len() != N.checked_mul(2)? {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

/// A digest of text that comes in pieces.
pub(crate) struct Running(Sha256);

impl Running {
    pub(crate) fn new() -> Running {
        Running(Sha256::new())
    }

    pub(crate) fn update(&mut self, piece: &str) {
        self.0.update(piece.as_bytes());
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(core::str::from_utf8(&self.to_ascii()).unwrap_or_default())
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(core::str::from_utf8(&self.to_ascii()).unwrap_or_default())
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Digest::parse(&text).ok_or_else(|| serde::de::Error::custom("expected `sha256:` and 64 hexadecimal digits"))
    }
}
