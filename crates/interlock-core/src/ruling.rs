//! What a caller is told when the answer is no.

use core::fmt;
use core::ops::Range;

use crate::code::Code;
use crate::json::{JsonError, Value};

/// A refusal: a value with a code, a reason and a place. It never holds the payload's own values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Why, for machines.
    pub code: Code,
    /// Why, for people. Begins `Blocked: ` when it comes from the state guard.
    pub message: String,
    /// Where in the texts, if the reason has a place there.
    pub place: Option<Place>,
}

/// A place in one of the texts a ruling is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which text.
    pub side: Side,
    /// The path of the value, such as `$.tasks[0].done`; `None` where the text is not JSON.
    pub path: Option<String>,
    /// The bytes of the value in the text.
    pub span: Range<usize>,
}

/// The text a place is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The state as it is.
    Current,
    /// The state as the agent wants it.
    Proposed,
}

impl Side {
    /// The word used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Side::Current => "current",
            Side::Proposed => "proposed",
        }
    }
}

impl Place {
    /// The place of a value.
    pub fn of(side: Side, value: Value<'_>) -> Place {
        Place { side, path: Some(value.path()), span: value.span() }
    }

    /// The place a parser stopped at.
    pub fn of_error(side: Side, error: &JsonError) -> Place {
        Place { side, path: None, span: error.offset..error.offset.saturating_add(1) }
    }
}

impl Denial {
    /// A refusal by the state guard.
    pub fn blocked(code: Code, reason: impl fmt::Display) -> Denial {
        Denial { code, message: format!("Blocked: {reason}"), place: None }
    }

    /// The same refusal with its place.
    #[must_use]
    pub fn at(self, place: Place) -> Denial {
        Denial { place: Some(place), ..self }
    }

    /// The message without `Blocked: `.
    pub fn reason(&self) -> &str {
        self.message.strip_prefix("Blocked: ").unwrap_or(&self.message)
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Denial {}
