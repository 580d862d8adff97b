//! Paths of rules: `$.a.b`, object keys only.

use core::fmt;

use crate::display;
use crate::json::{Value, nfc};

/// A path to a value, by object keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePath {
    text: String,
    /// In normal form C.
    keys: Vec<String>,
}

impl RulePath {
    /// Reads `$.a.b`. No brackets, no empty key.
    ///
    /// ```
    /// use interlock_core::transition::RulePath;
    ///
    /// assert!(RulePath::parse("$.agent.id").is_some());
    /// assert!(RulePath::parse("$.tasks[0]").is_none());
    /// assert!(RulePath::parse("$..id").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<RulePath> {
        let keys: Vec<_> = text.strip_prefix("$.")?.split('.').map(|key| nfc(key).into_owned()).collect();
        if keys.iter().any(|key| key.is_empty() || key.contains(['[', ']'])) {
            return None;
        }
        Some(RulePath { text: text.to_owned(), keys })
    }

    /// The value at this path.
    pub fn find<'d>(&self, state: Value<'d>) -> Option<Value<'d>> {
        self.keys.iter().try_fold(state, |value, key| value.get_normalized(key))
    }

    /// The keys, in normal form C.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }
}

impl fmt::Display for RulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(&self.text).fmt(f)
    }
}
