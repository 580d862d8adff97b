//! Percent encoding, undone strictly.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A text with every `%` and its two digits decoded; nothing if a `%` has none, or what comes out is not UTF-8.
///
/// ```
/// use interlock_core::percent_decoded;
///
/// assert_eq!(percent_decoded("a%2Fb").as_deref(), Some("a/b"));
/// assert_eq!(percent_decoded("100%"), None);
/// assert_eq!(percent_decoded("%ff"), None);
/// ```
pub fn percent_decoded(text: &str) -> Option<String> {
    let is_escape = |(_, rest): (usize, &str)| {
        let mut digits = rest.bytes();
        digits.next().is_some_and(|digit| digit.is_ascii_hexdigit())
            && digits.next().is_some_and(|digit| digit.is_ascii_hexdigit())
    };
    let mut escapes = text.split('%').enumerate().skip(1);
    escapes.all(is_escape).then(|| percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)).flatten()
}
