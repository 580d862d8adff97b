//! What workflows ask of whoever reads command lines. The rules here know no commands: the verifier is handed in.

use crate::call::Effect;
use crate::contain::Profile;

/// What a command line can do, as far as it can be told without running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// It only reads.
    Reads,
    /// It changes files, reaches other machines or destroys, and is known to do nothing else.
    Known,
    /// It runs what cannot be seen here, or is not understood.
    Anything,
}

/// Who knows what commands can do.
pub trait CommandJudge {
    /// What a command line can do, at worst. `"$@"` and `${x}` in it stand for words that nobody knows.
    fn reach(&self, line: &str) -> Reach;

    /// Whether a command line is about another machine: without a network it comes to nothing.
    fn speaks_with_others(&self, _line: &str) -> bool {
        false
    }

    /// What the unknown code of a command line is held to, where it is declared that something holds it.
    fn held_to(&self, _line: &str) -> Option<&Profile> {
        None
    }
}

/// Who knows what a command line does, and whether a state's list covers it.
pub trait LineJudge {
    /// The strictest effect of a line, and whether every command in it is listed, where there is a list.
    fn judge(&self, line: &str, listed: Option<&[String]>, may_write: bool) -> (Effect, Option<bool>);
}
