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
    if left.text == right {
        return true;
    }
    // Plain text is its own normal form, and no other text normalises to ASCII it is not. (One does: U+212A KELVIN
    // SIGN becomes K, so only text that is ASCII on both sides is settled by bytes.)
    if left.text.is_ascii() && right.is_ascii() {
        return false;
    }
    left.nfc() == nfc(right)
}
