//! Why a text is not JSON we accept, and where.

use core::fmt;

use crate::display::display;

/// A refusal by the parser: what is wrong, and the byte at which it was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Byte offset into the text.
    pub offset: usize,
    /// One-based line of `offset`.
    pub line: usize,
    /// One-based column of `offset`, in characters.
    pub column: usize,
}

/// The ways a text can be refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonErrorKind {
    /// Something other than what the grammar allows here.
    Expected(&'static str),
    /// The text stops inside a value.
    UnexpectedEnd,
    /// Something follows the value.
    TrailingText,
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The text begins with a byte order mark.
    ByteOrderMark,
    /// `NaN`, `Infinity` or `-Infinity`.
    NonStandardConstant(&'static str),
    /// An unescaped control character inside a string.
    ControlCharacter,
    /// A backslash followed by something JSON does not define.
    BadEscape,
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// A key that stands twice in one object.
    DuplicateKey(String),
    /// Two keys of one object that are one key after Unicode normalisation (NFC).
    DuplicateNormalizedKey(String),
    /// More bytes than the limit.
    TooManyBytes(usize),
    /// More values than the limit.
    TooManyNodes(usize),
    /// A number with more digits than the limit.
    TooManyDigits(usize),
    /// A number whose exponent is beyond the limit.
    ExponentTooLarge(u32),
    /// A value at or below the depth limit. Only a text that is sound in every other way is refused for this.
    TooDeep {
        /// The limit.
        limit: usize,
        /// The path of the first value that is too deep.
        path: String,
    },
}

impl fmt::Display for JsonErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonErrorKind::Expected(what) => write!(f, "expected {what}"),
            JsonErrorKind::UnexpectedEnd => f.write_str("the text ends inside a value"),
            JsonErrorKind::TrailingText => f.write_str("text follows the JSON value"),
            JsonErrorKind::NotUtf8 => f.write_str("the text is not valid UTF-8"),
            JsonErrorKind::ByteOrderMark => f.write_str("the text begins with a byte order mark"),
            JsonErrorKind::NonStandardConstant(name) => write!(f, "Non-standard JSON constant {name} is not allowed"),
            JsonErrorKind::ControlCharacter => f.write_str("a control character in a string must be escaped"),
            JsonErrorKind::BadEscape => f.write_str("unknown escape in a string"),
            JsonErrorKind::LoneSurrogate => f.write_str("half of a surrogate pair in a string"),
            JsonErrorKind::DuplicateKey(key) => write!(f, "Duplicate key '{}' is not allowed", display(key)),
            JsonErrorKind::DuplicateNormalizedKey(key) => {
                write!(f, "Duplicate object key '{}' after Unicode normalisation", display(key))
            }
            JsonErrorKind::TooManyBytes(max) => write!(f, "the text has more than {max} bytes"),
            JsonErrorKind::TooManyNodes(max) => write!(f, "the text has more than {max} values"),
            JsonErrorKind::TooManyDigits(max) => write!(f, "a number has more than {max} digits"),
            JsonErrorKind::ExponentTooLarge(max) => write!(f, "a number has an exponent beyond {max}"),
            JsonErrorKind::TooDeep { limit, path } => write!(f, "{path} exceeds maximum validation depth ({limit})"),
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {} column {})", self.kind, self.line, self.column)
    }
}

impl std::error::Error for JsonError {}

impl JsonError {
    /// An error at a byte of `text`, with its line and column worked out.
    pub(crate) fn at(kind: JsonErrorKind, text: &[u8], offset: usize) -> JsonError {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline.saturating_add(1));
        let line = before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1);
        // Continuation bytes (10xxxxxx) are the inside of a character.
        let characters = before.iter().skip(line_start).filter(|byte| **byte & 0xC0 != 0x80).count();
        JsonError { kind, offset, line, column: characters.saturating_add(1) }
    }
}
