//! The few colours there are. `anstream` drops them when the output is no terminal or `NO_COLOR` is set.

pub(crate) const GOOD: &str = "\u{1b}[1;32m";
pub(crate) const BAD: &str = "\u{1b}[1;31m";
pub(crate) const FAINT: &str = "\u{1b}[2m";
pub(crate) const RESET: &str = "\u{1b}[0m";
