//! How large a JSON text may be.
//!
//! Every limit is a named constant and a field that an operator can lower; nothing can raise one above its ceiling,
//! because the tree addresses text and nodes with 32-bit offsets and readers recurse to the depth allowed here.

/// The most bytes a text may have.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most values (not counting object keys) a text may hold.
pub const NODES_MAX: usize = 1_000_000;
/// The most digits a number may be written with, its exponent not counted.
pub const DIGITS_MAX: usize = 4_096;
/// The largest magnitude of a number's written exponent.
pub const EXPONENT_MAX: u32 = 1_000_000;
/// A value at this depth is refused in a state (the root has depth 0).
pub const STATE_DEPTH_MAX: usize = 64;
/// A value at this depth is refused in a configuration text. A schema needs two levels for each level of state.
pub const CONFIG_DEPTH_MAX: usize = 192;

/// The limits one text is read under. Lower them with struct update syntax; values above the ceilings are ignored.
///
/// ```
/// use interlock_core::json::{self, Limits};
///
/// let small = Limits { bytes: 64, ..Limits::STATE };
/// assert!(json::parse(r#"{"note": "short"}"#, &small).is_ok());
/// assert!(json::parse(&format!("\"{}\"", "x".repeat(64)), &small).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text.
    pub bytes: usize,
    /// Values of every kind, at every depth.
    pub nodes: usize,
    /// Digits of one number.
    pub digits: usize,
    /// Magnitude of one number's exponent.
    pub exponent: u32,
    /// The first depth that is refused.
    pub depth: usize,
}

impl Limits {
    /// For agent states and everything else an agent sends.
    pub const STATE: Limits = Limits {
        bytes: BYTES_MAX,
        nodes: NODES_MAX,
        digits: DIGITS_MAX,
        exponent: EXPONENT_MAX,
        depth: STATE_DEPTH_MAX,
    };

    /// For schemas, rules and other files an operator writes.
    pub const CONFIG: Limits = Limits { depth: CONFIG_DEPTH_MAX, ..Limits::STATE };

    /// The lower of two limits, field by field.
    pub(crate) fn lowered_to(&self, other: &Limits) -> Limits {
        Limits {
            bytes: self.bytes.min(other.bytes),
            nodes: self.nodes.min(other.nodes),
            digits: self.digits.min(other.digits),
            exponent: self.exponent.min(other.exponent),
            depth: self.depth.min(other.depth),
        }
    }

    /// These limits with every field brought down to its ceiling.
    pub(crate) fn capped(&self) -> Limits {
        self.lowered_to(&Limits::CONFIG)
    }
}
