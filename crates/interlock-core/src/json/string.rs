//! Strings as they were sent, compared as they are written: after Unicode normalisation (NFC).

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The contents of a string, exactly as sent.
#[derive(Debug, Clone, Copy)]
pub struct Str<'a> {
    text: &'a str,
    /// Printable ASCII without `"` and `\`: already NFC, and needs no escaping.
    plain: bool,
}

impl<'a> Str<'a> {
    #[inline]
    pub(super) fn new(text: &'a str, plain: bool) -> Str<'a> {
        Str { text, plain }
    }

    /// The contents, exactly as sent.
    #[inline]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The contents in normal form C; borrowed when they are in it already.
    #[inline]
    pub fn nfc(&self) -> Cow<'a, str> {
        if self.plain { Cow::Borrowed(self.text) } else { nfc(self.text) }
    }

    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }
}

/// Normal form C of a text; borrowed when it is in it already.
pub fn nfc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

/// Whether two strings are one string after NFC.
pub(crate) fn same_string(left: &Str<'_>, right: &str) -> bool {
    // ASCII is its own normal form. (One side alone would not do: U+212A KELVIN SIGN normalises to K.)
    left.text == right
        || !(left.text.is_ascii() && right.is_ascii()) && may_be_same(left.text, right) && left.nfc() == nfc(right)
}

/// Whether two texts can be one after NFC at all, told by their lengths: normalisation changes the length of a text by
/// less than this factor either way. Saves normalising a long text again and again to compare it with short ones.
pub(super) fn may_be_same(left: &str, right: &str) -> bool {
    const FACTOR: usize = 4;
    left.len() <= right.len().saturating_mul(FACTOR) && right.len() <= left.len().saturating_mul(FACTOR)
}
