//! Why a claim has no values: what stopped the reading or the calculating, and where.
//!
//! It names positions and limits, and never a piece of the text.

use core::fmt;

use super::limits::{
    DEPTH_MAX, EXPONENT_DIGITS_MAX, Limit, PRECISION_BITS_MAX, RESULT_BITS_MAX, TERMS_MAX, TEXT_BYTES_MAX, TOKENS_MAX,
    UNKNOWNS_MAX, VALUE_BITS_MAX, WORK_MAX,
};
use super::{Aim, DECIDED, IN_DOMAIN, NO_DIVISION_BY_ZERO, PARSED, SAME_UNITS, WITHIN_LIMITS};

/// What stopped, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoValue {
    pub(super) reason: Reason,
    pub(super) text: Text,
    /// The byte in that text.
    pub(super) at: usize,
}

/// What stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    NotUnderstood,
    /// A power that is a real number to some readers and a complex one to others.
    RootOfNegative,
    /// A logarithm without a base.
    NoBase,
    /// Something to round that lies in the middle: which way depends on the reader.
    Tie,
    /// A rounded value without digits that say how far.
    NoDigits,
    /// Numbers of different things.
    Units,
    /// Two values that the largest precision does not tell apart.
    Inseparable,
    /// Neither the normal form nor any point decides.
    Undecided,
    /// Equations that are not linear.
    NotLinear,
    DivisionByZero,
    /// A function of something that it has no value for.
    Domain,
    Limit(Limit),
}

/// The text a position is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Query,
    Expected,
}

impl Reason {
    /// Whether there is no value, for certain: that is a proof, where all others are a lack of one.
    pub(super) fn undefined(self) -> Option<&'static str> {
        match self {
            Reason::DivisionByZero => Some("division_by_zero"),
            Reason::Domain => Some("domain"),
            Reason::NotUnderstood
            | Reason::RootOfNegative
            | Reason::NoBase
            | Reason::Tie
            | Reason::NoDigits
            | Reason::Units
            | Reason::Inseparable
            | Reason::Undecided
            | Reason::NotLinear
            | Reason::Limit(_) => None,
        }
    }

    /// The check that does not pass, and the checks that passed before it.
    pub(super) fn checks(self) -> (&'static Aim, &'static [Aim]) {
        match self {
            Reason::NotUnderstood | Reason::RootOfNegative | Reason::NoBase | Reason::Tie | Reason::NoDigits => {
                (&PARSED, &[])
            }
            // Found while reading, before all of the text was understood.
            Reason::Limit(Limit::TextBytes | Limit::Tokens | Limit::Depth | Limit::ExponentDigits) => {
                (&WITHIN_LIMITS, &[])
            }
            Reason::Limit(
                Limit::ValueBits | Limit::ResultBits | Limit::Work | Limit::Terms | Limit::Unknowns | Limit::Argument,
            ) => (&WITHIN_LIMITS, &[PARSED]),
            Reason::Units => (&SAME_UNITS, &[PARSED]),
            Reason::Inseparable | Reason::Undecided | Reason::NotLinear => (&DECIDED, &[PARSED, WITHIN_LIMITS]),
            Reason::DivisionByZero => (&NO_DIVISION_BY_ZERO, &[PARSED, WITHIN_LIMITS]),
            Reason::Domain => (&IN_DOMAIN, &[PARSED, WITHIN_LIMITS]),
        }
    }
}

impl fmt::Display for NoValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::NotUnderstood => formatter.write_str("not understood")?,
            Reason::RootOfNegative => formatter.write_str("a fractional power of a negative number")?,
            Reason::NoBase => formatter.write_str("a logarithm without a base")?,
            Reason::Tie => {
                formatter.write_str("a value in the middle, which is rounded up by some and down by others")?;
            }
            Reason::NoDigits => formatter.write_str("a rounded value without digits that say how far")?,
            Reason::Units => formatter.write_str("different units")?,
            Reason::Inseparable => {
                write!(formatter, "values that {PRECISION_BITS_MAX} bits do not tell apart")?;
            }
            Reason::Undecided => formatter.write_str("neither the normal form nor a point decides")?,
            Reason::NotLinear => formatter.write_str("an equation that is not linear")?,
            Reason::DivisionByZero => formatter.write_str("division by zero")?,
            Reason::Domain => formatter.write_str("a function outside its domain")?,
            Reason::Limit(Limit::TextBytes) => write!(formatter, "more than {TEXT_BYTES_MAX} bytes of text")?,
            Reason::Limit(Limit::Tokens) => write!(formatter, "more than {TOKENS_MAX} numbers and signs")?,
            Reason::Limit(Limit::Depth) => write!(formatter, "more than {DEPTH_MAX} parentheses open")?,
            Reason::Limit(Limit::ExponentDigits) => {
                write!(formatter, "an exponent of more than {EXPONENT_DIGITS_MAX} digits")?;
            }
            Reason::Limit(Limit::ValueBits) => write!(formatter, "a value of more than {VALUE_BITS_MAX} bits")?,
            Reason::Limit(Limit::ResultBits) => write!(formatter, "results of more than {RESULT_BITS_MAX} bits")?,
            Reason::Limit(Limit::Work) => write!(formatter, "more than {WORK_MAX} units of work")?,
            Reason::Limit(Limit::Terms) => write!(formatter, "a polynomial of more than {TERMS_MAX} terms")?,
            Reason::Limit(Limit::Unknowns) => write!(formatter, "more than {UNKNOWNS_MAX} unknowns")?,
            Reason::Limit(Limit::Argument) => formatter.write_str("a function of too large a number")?,
        }
        write!(formatter, " at byte {}", self.at)?;
        match self.text {
            Text::Query => Ok(()),
            Text::Expected => formatter.write_str(" of the expected value"),
        }
    }
}
