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
        let hex = |nibble: u8| nibble.wrapping_add(b'0').wrapping_add(u8::from(nibble > 9).wrapping_mul(b'a' - b'9' - 1));
        let mut text = *b"sha256:----------------------------------------------------------------";
        let (_, digits) = text.split_at_mut(7);
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[hex(byte >> 4), hex(byte & 0xF)]);
        }
        text
    }

    pub(crate) fn bytes(self) -> [u8; 32] {
        self.0
    }
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
