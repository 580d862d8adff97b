//! The rules that are always on: what they say about guarded places.

use super::Then;
use super::pattern::fold_case;
use crate::places::Concern;

/// The name of what asks about hosts that are not listed.
pub(super) const EGRESS: &str = "egress";
/// The name of what asks about files whose contents open other doors.
const SECRETS_RULE: &str = "secrets";
/// The name of what asks about writing what runs later.
const ARMS_RULE: &str = "arms";
/// The name of what refuses to touch Interlock itself.
pub const SELF_RULE: &str = "self";
/// What a rule of an operator can answer beforehand.
pub(super) const LIFTABLE: [&str; 3] = [SECRETS_RULE, ARMS_RULE, EGRESS];

/// Whether a rule is one of those that are always there.
pub fn is_shipped(id: &str) -> bool {
    LIFTABLE.contains(&id) || id == SELF_RULE
}

/// The name of the rule about such places, and what it says.
pub(super) fn rule_about(concern: Concern) -> (&'static str, Then) {
    match concern {
        Concern::Secret => (SECRETS_RULE, Then::Ask),
        Concern::RunsLater => (ARMS_RULE, Then::Ask),
        Concern::Own => (SELF_RULE, Then::Deny),
    }
}

/// What an agent may ask of `interlock` itself: it looks at texts and changes nothing. Everything else is a lever, and
/// levers are for people.
const HARMLESS: [&str; 9] = ["shell", "engine", "explain", "completions", "help", "--help", "-h", "--version", "-V"];

/// Whether a command is `interlock` with anything but a question.
pub(super) fn steers_interlock(words: &[Option<String>]) -> bool {
    let Some(Some(program)) = words.first() else { return false };
    let is_interlock = fold_case(program.rsplit('/').next().unwrap_or("")) == "interlock";
    let sub = words.get(1).and_then(Option::as_deref);
    let checks = sub == Some("workflow")
        && words
            .get(2)
            .and_then(Option::as_deref)
            .is_some_and(|word| ["check", "graph", "prove", "test", "schema", "templates", "status"].contains(&word));
    is_interlock && !checks && !sub.is_some_and(|word| HARMLESS.contains(&word))
}
