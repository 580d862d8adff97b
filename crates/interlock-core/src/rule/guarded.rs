//! The rules that are always on: what they say about guarded places.

use std::collections::BTreeSet;

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

/// What these rules say about the paths of an action. `own` are the places of this very server.
pub(super) fn find(identity: &str, subject: &Subject, own: &[String], found: &mut RuleFinding) {
    let writes = WRITES.contains(&identity);
    let mut concerns = BTreeSet::new();
    let certain = subject.paths.iter().map(|path| (path, *path != PathText::Anywhere));
    for (path, is_certain) in certain.chain(subject.mentioned.iter().map(|path| (path, false))) {
        let (text, is_place) = match path {
            PathText::Unresolvable | PathText::Anywhere => {
                concerns.extend(Concern::ALL.map(|concern| (concern, is_certain)));
                continue;
            }
            // A relative path counts as if it began at the root: where it leads is not known here.
            PathText::Absolute(text) | PathText::Floating(text) => (text, true),
            PathText::Word(text) => (text, false),
        };
        concerns.extend(guarding(text, is_place).map(|place| (place.concern, is_certain)));
        if is_place && own.iter().any(|own| is_within(text, own)) {
            concerns.insert((Concern::Own, is_certain));
        }
    }
    for (concern, is_certain) in concerns {
        if writes || concern != Concern::RunsLater {
            let (id, then) = rule_about(concern);
            // What is only spoken of, or may lead anywhere, mostly does not lead to us: a person has to look.
            found.add(if is_certain { then } else { then.min(Then::Ask) }, id);
        }
    }
}
