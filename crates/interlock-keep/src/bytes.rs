//! Numbers, digests and byte strings as the store writes them: little-endian, lengths before contents.
//!
//! Reading trusts nothing: whatever is too short, too long or out of range reads as `None`.

use interlock_core::Digest;

/// What is being written.
#[derive(Debug, Default)]
pub(crate) struct Written(pub(crate) Vec<u8>);

impl Written {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn digest(&mut self, value: Digest) {
        self.0.extend_from_slice(&value.bytes());
    }

    /// A byte string of at most 4 GiB; names, targets and attributes are far shorter.
    pub(crate) fn text(&mut self, value: &[u8]) {
        self.u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.0.extend_from_slice(value);
    }
}

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unread<'a>(pub(crate) &'a [u8]);

impl<'a> Unread<'a> {
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[value]| value)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub(crate) fn digest(&mut self) -> Option<Digest> {
        self.array().map(Digest::from_bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.u32()?).ok()?;
        self.take(len)
    }

    /// `Some` if everything was read.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// The hexadecimal digits of a digest.
pub(crate) fn hex(digest: Digest) -> String {
    digest.to_string().split_off("sha256:".len())
}

/// The digest that hexadecimal digits stand for.
pub(crate) fn unhex(text: &str) -> Option<Digest> {
    interlock_core::unhex(text).map(Digest::from_bytes)
}
