//! Why a claim has no values: what stopped the reading or the calculating, and where.
//!
//! A refusal names positions and limits. It never holds a piece of the text.

use core::fmt;

use super::limits::{
    DEPTH_MAX, EXPONENT_DIGITS_MAX, Limit, RESULT_BITS_MAX, TEXT_BYTES_MAX, TOKENS_MAX, VALUE_BITS_MAX, WORK_MAX,
};
use super::{Aim, NO_DIVISION_BY_ZERO, PARSED, WITHIN_LIMITS};

/// What stopped, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) text: Text,
    /// The byte in that text.
    pub(super) at: usize,
}

/// What stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    NotUnderstood,
    /// An exponent that is a fraction: roots are not rational in general.
    ExponentNotInteger,
    DivisionByZero,
    Limit(Limit),
}

/// The text a position is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Query,
    Expected,
}

impl Reason {
    /// The check that does not pass, and the checks that passed before it.
    pub(super) fn checks(self) -> (&'static Aim, &'static [Aim]) {
        match self {
            Reason::NotUnderstood | Reason::ExponentNotInteger => (&PARSED, &[]),
            // Found while reading, before all of the text was understood.
            Reason::Limit(Limit::TextBytes | Limit::Tokens | Limit::Depth | Limit::ExponentDigits) => {
                (&WITHIN_LIMITS, &[])
            }
            Reason::Limit(Limit::ValueBits | Limit::ResultBits | Limit::Work) => (&WITHIN_LIMITS, &[PARSED]),
            Reason::DivisionByZero => (&NO_DIVISION_BY_ZERO, &[PARSED, WITHIN_LIMITS]),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::NotUnderstood => formatter.write_str("not understood")?,
            Reason::ExponentNotInteger => formatter.write_str("the exponent is not an integer")?,
            Reason::DivisionByZero => formatter.write_str("division by zero")?,
            Reason::Limit(Limit::TextBytes) => write!(formatter, "more than {TEXT_BYTES_MAX} bytes of text")?,
            Reason::Limit(Limit::Tokens) => write!(formatter, "more than {TOKENS_MAX} numbers and signs")?,
            Reason::Limit(Limit::Depth) => write!(formatter, "more than {DEPTH_MAX} parentheses open")?,
            Reason::Limit(Limit::ExponentDigits) => {
                write!(formatter, "an exponent of more than {EXPONENT_DIGITS_MAX} digits")?;
            }
            Reason::Limit(Limit::ValueBits) => write!(formatter, "a value of more than {VALUE_BITS_MAX} bits")?,
            Reason::Limit(Limit::ResultBits) => write!(formatter, "results of more than {RESULT_BITS_MAX} bits")?,
            Reason::Limit(Limit::Work) => write!(formatter, "more than {WORK_MAX} units of work")?,
        }
        write!(formatter, " at byte {}", self.at)?;
        match self.text {
            Text::Query => Ok(()),
            Text::Expected => formatter.write_str(" of the expected value"),
        }
    }
}
