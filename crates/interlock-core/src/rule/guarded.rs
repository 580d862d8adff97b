//! The rules that are always on: what they say about guarded places.

use std::collections::BTreeSet;

use super::pattern::fold_case;
use super::subject::{PathText, Subject};
use super::{RuleFinding, Then};
use crate::places::{Concern, guarding, is_within};

/// The name of what asks about hosts that are not listed.
pub(super) const EGRESS: &str = "egress";
/// The name of what asks about files whose contents open other doors.
pub(super) const SECRETS_RULE: &str = "secrets";
/// The name of what asks about writing what runs later.
pub(super) const ARMS_RULE: &str = "arms";
/// The name of what refuses to touch Interlock itself.
pub const SELF_RULE: &str = "self";
/// What a rule of an operator can answer beforehand.
pub(super) const LIFTABLE: [&str; 3] = [SECRETS_RULE, ARMS_RULE, EGRESS];

/// The actions that write files.
const WRITES: [&str; 2] = ["file_write", "file_delete"];

/// The name of the rule about such places, and what it says.
pub(super) fn rule_about(concern: Concern) -> (&'static str, Then) {
    match concern {
        Concern::Secret => (SECRETS_RULE, Then::Ask),
        Concern::RunsLater => (ARMS_RULE, Then::Ask),
        Concern::Own => (SELF_RULE, Then::Deny),
    }
}

/// What these rules say about an action. `own` are the places of this very server.
pub(super) fn find(identity: &str, subject: &Subject, own: &[String], found: &mut RuleFinding) {
    let writes = WRITES.contains(&identity);
    let mut concerns = BTreeSet::new();
    let certain = subject.paths.iter().map(|path| (path, *path != PathText::Anywhere));
    for (path, is_certain) in certain.chain(subject.mentioned.iter().map(|path| (path, false))) {
        let mut counts = |concern: Concern| {
            if concern != Concern::RunsLater || writes || subject.written.contains(path) {
                concerns.insert((concern, is_certain));
            }
        };
        let (text, is_place) = match path {
            PathText::Unresolvable | PathText::Anywhere => {
                Concern::ALL.into_iter().for_each(counts);
                continue;
            }
            // A relative path counts as if it began at the root: where it leads is not known here.
            PathText::Absolute(text) | PathText::Floating(text) => (text, true),
            PathText::Word(text) => (text, false),
        };
        guarding(text, is_place).for_each(|place| counts(place.concern));
        let holds_own = || subject.taken_whole.contains(path) && own.iter().any(|own| is_within(own, text));
        if is_place && (own.iter().any(|own| is_within(text, own)) || holds_own()) {
            counts(Concern::Own);
        }
    }
    if subject.commands.iter().any(|words| steers_interlock(words)) {
        concerns.insert((Concern::Own, true));
    }
    for (concern, is_certain) in concerns {
        let (id, then) = rule_about(concern);
        // What is only spoken of, or may lead anywhere, mostly does not lead to us: a person has to look.
        found.add(if is_certain { then } else { then.min(Then::Ask) }, id);
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
