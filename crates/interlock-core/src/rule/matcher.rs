//! Which rules are about an action or a call, and what they say of it: one matcher for both doors.
//!
//! A rule that asks or denies counts if it may be about anything in the subject. What one that allows is worth depends on
//! how well the subject is known (`Subject::is_resolved`). In a call, where every path is resolved, it counts for exactly
//! what it certainly is about: it answers the question of a shipped rule for one path, one host or one command, never for
//! what stands beside it. In an action it lists hosts, and no more.

use std::collections::BTreeSet;

use super::guarded::{EGRESS, rule_about, steers_interlock};
use super::index::Via;
use super::pattern::Pattern;
use super::subject::{PathText, ReachedHost, Subject, TouchedPath, UNREADABLE_HOST};
use super::{About, Rule, RuleFinding, Rules, Then};
use crate::call::Effect;
use crate::places::{Concern, guarding, is_example, is_within};

/// One thing in a subject, with the command it belongs to.
#[derive(Debug, Clone, Copy)]
enum Item<'a> {
    Path(&'a TouchedPath),
    Host(&'a ReachedHost),
    Command(usize),
}

impl Rules {
    /// What the rules say about a subject.
    pub(super) fn find_in(&self, subject: &Subject<'_>) -> RuleFinding {
        self.find_among(subject, |consider| self.index.candidates(subject, consider))
    }

    /// What those rules say that are handed out, and the shipped ones.
    pub(super) fn find_among(
        &self,
        subject: &Subject<'_>,
        hand_out: impl FnOnce(&mut dyn FnMut(usize, Via<'_>)),
    ) -> RuleFinding {
        let mut found = RuleFinding::default();
        let mut allowing = BTreeSet::new();
        // Each rule is looked at once for each thing that may meet it, and no more once it is met.
        let mut settled = BTreeSet::new();
        hand_out(&mut |position, via| {
            let Some(rule) = self.rules.get(position).filter(|_| !settled.contains(&position)) else { return };
            if rule.then == Then::Allow {
                settled.insert(position);
                if rule.may_allow(subject) {
                    allowing.insert(position);
                }
            } else if rule.is_met(via, subject) && rule.about.is_about(&subject.identity, rule.then) {
                if matches!(via, Via::Mention(_)) {
                    found.add(rule.then.min(Then::Ask), &rule.id);
                } else {
                    found.add(rule.then, &rule.id);
                    settled.insert(position);
                }
            }
        });
        self.find_shipped(subject, &allowing, &mut found);
        for rule in allowing.iter().filter_map(|position| self.rules.get(*position)) {
            let before = found.known_commands.len();
            if rule.command.is_some() {
                let commands = (0..subject.commands.len()).filter(|at| rule.allows(subject, Item::Command(*at)));
                found.known_commands.extend(commands);
            }
            if found.known_commands.len() > before || rule.allows_all(subject) {
                if subject.is_resolved {
                    found.allowed.push(rule.id.clone());
                }
                found.add(Then::Allow, &rule.id);
            }
        }
        found.finish()
    }

    /// Whatever the shipped rules say, unless a rule of the operator answered it for that very thing.
    fn find_shipped(&self, subject: &Subject<'_>, allowing: &BTreeSet<usize>, found: &mut RuleFinding) {
        let lifted = |id: &str, item: Item<'_>| {
            let mut rules = allowing.iter().filter_map(|position| self.rules.get(*position));
            subject.is_resolved && rules.any(|rule| rule.lifts.contains(&id) && rule.allows(subject, item))
        };
        let touched = subject.paths.iter().map(|path| (path, path.text != PathText::Anywhere));
        for (path, is_certain) in touched.chain(subject.mentioned.iter().map(|path| (path, false))) {
            for concern in subject.concerns(path) {
                let (id, then) = rule_about(concern);
                if !lifted(id, Item::Path(path)) {
                    // What is only spoken of, or may lead anywhere, mostly does not lead to us: a person has to look.
                    found.add(if is_certain { then } else { then.min(Then::Ask) }, id);
                }
            }
        }
        if subject.commands.iter().any(|words| steers_interlock(words)) {
            let (id, then) = rule_about(Concern::Own);
            found.add(then, id);
        }
        // Listed by a rule that is about this very host, not by one that matches another host beside it.
        let is_listed = |host: &ReachedHost| {
            let mut listed = host.name().is_none() && subject.is_registered;
            self.listed_hosts.candidates(&host.host, |position| {
                let rule = allowing.get(&position).and_then(|position| self.rules.get(*position));
                listed |= rule.is_some_and(|rule| rule.allows(subject, Item::Host(host)));
            });
            listed || lifted(EGRESS, Item::Host(host))
        };
        if subject.hosts.iter().any(|host| !is_listed(host)) {
            found.add(Then::Ask, EGRESS);
        }
    }
}

impl Subject<'_> {
    /// What the guarded places are guarded for to which this path leads, or may lead.
    fn concerns(&self, path: &TouchedPath) -> BTreeSet<Concern> {
        let counts = |concern: &Concern| *concern != Concern::RunsLater || path.writes || self.identity.writes();
        let (text, is_place) = match &path.text {
            PathText::Unresolvable | PathText::Anywhere => return Concern::ALL.into_iter().filter(counts).collect(),
            // A relative path counts as if it began at the root: where it leads is not known here.
            PathText::Resolved(text) | PathText::Absolute(text) | PathText::Floating(text) => (text, true),
            PathText::Word(text) => (text, false),
        };
        let is_shown = path.text.resolved().is_some_and(is_example);
        let guarded = guarding(text, is_place).map(|place| place.concern);
        let mut concerns: BTreeSet<Concern> =
            guarded.filter(|concern| *concern != Concern::Secret || !is_shown).collect();
        let is_in = |places: &[String]| is_place && places.iter().any(|place| is_within(text, place));
        let is_above = |places: &[String]| is_place && places.iter().any(|place| is_within(place, text));
        if is_in(&self.own)
            || path.removes && is_above(&self.own_if_removed)
            || path.sweeps && is_above(&self.own_if_swept)
        {
            concerns.insert(Concern::Own);
        }
        // Whoever reads all of it reads the environments of all processes.
        if path.sweeps && is_place && is_within(text, "/proc") {
            concerns.insert(Concern::Secret);
        }
        if is_in(&self.armed) {
            concerns.insert(Concern::RunsLater);
        }
        concerns.retain(counts);
        concerns
    }
}

impl Rule {
    /// Whether a rule that was found by one of its conditions is met, that one by what it was found by.
    fn is_met(&self, via: Via<'_>, subject: &Subject<'_>) -> bool {
        match via {
            Via::Path(path) | Via::Mention(path) => {
                self.path.as_ref().is_some_and(|pattern| self.meets_path(pattern, path))
            }
            Via::Host(host) => {
                self.host.as_ref().is_some_and(|pattern| self.meets_host(pattern, host)) && self.meets_paths(subject)
            }
            Via::Value(value) => {
                self.args.first().is_some_and(|(_, pattern)| pattern.matches(value))
                    && self.meets_arguments(subject, 1)
                    && self.meets_paths(subject)
                    && self.meets_hosts(subject)
            }
            Via::Else => {
                self.meets_commands(subject)
                    && self.meets_arguments(subject, 0)
                    && self.meets_paths(subject)
                    && self.meets_hosts(subject)
            }
        }
    }

    /// Whether a command may be the one it is about. Who is found by another condition has none on commands.
    fn meets_commands(&self, subject: &Subject<'_>) -> bool {
        self.command.as_ref().is_none_or(|pattern| subject.commands.iter().any(|words| pattern.may_be(words)))
    }

    /// Whether the conditions on arguments are met, from this one on: by any value, and for a rule that allows by all.
    fn meets_arguments(&self, subject: &Subject<'_>, first: usize) -> bool {
        self.args.iter().skip(first).all(|(name, pattern)| {
            let mut values = subject.arguments.get(name).into_iter().flatten().peekable();
            match self.then {
                Then::Allow => values.peek().is_some() && values.all(|value| pattern.matches(value)),
                Then::Ask | Then::Deny => values.any(|value| pattern.matches(value)),
            }
        })
    }

    fn meets_paths(&self, subject: &Subject<'_>) -> bool {
        let mut paths = subject.paths.iter().chain(&subject.mentioned);
        self.path.as_ref().is_none_or(|pattern| paths.any(|path| self.meets_path(pattern, path)))
    }

    fn meets_path(&self, pattern: &Pattern, path: &TouchedPath) -> bool {
        // A rule about what is written means the paths that are.
        let means_written = matches!(self.about, About::Effect(Effect::Write | Effect::Destructive));
        if means_written && !path.writes {
            return false;
        }
        match &path.text {
            PathText::Unresolvable | PathText::Anywhere => true,
            PathText::Resolved(path) | PathText::Absolute(path) => pattern.matches(path),
            // Its base is not known here, so a rule about a place on the disk may be about it.
            PathText::Floating(path) => pattern.is_anchored() || pattern.matches(path),
            PathText::Word(path) => !pattern.is_anchored() && pattern.matches(path),
        }
    }

    fn meets_hosts(&self, subject: &Subject<'_>) -> bool {
        let meets = |pattern| subject.hosts.iter().any(|reached| self.meets_host(pattern, &reached.host));
        self.host.as_ref().is_none_or(meets)
    }

    /// A host that nobody can read for certain may be the one a rule objects to, and is none that one allows.
    fn meets_host(&self, pattern: &Pattern, host: &str) -> bool {
        if host == UNREADABLE_HOST { self.then != Then::Allow } else { pattern.matches(host) }
    }

    /// Whether a rule that allows may say so of anything in a subject. Its other conditions are looked at with each thing.
    fn may_allow(&self, subject: &Subject<'_>) -> bool {
        // Where not every path is resolved, that an operator knows a command allows nothing.
        let counts =
            if subject.is_resolved { self.says_something } else { self.command.is_none() && self.meets_paths(subject) };
        counts && self.meets_arguments(subject, 0) && self.about.is_about(&subject.identity, self.then)
    }

    /// Whether a rule that may allow is certainly about one thing in a subject.
    fn allows(&self, subject: &Subject<'_>, item: Item<'_>) -> bool {
        let command = match item {
            Item::Path(path) => path.command,
            Item::Host(host) => host.command,
            Item::Command(at) => Some(at),
        };
        let commanded = self.command.as_ref().is_none_or(|pattern| {
            command.and_then(|at| subject.commands.get(at)).is_some_and(|words| pattern.covers(words))
        });
        let path = self.path.as_ref().is_none_or(|pattern| match item {
            Item::Path(path) => path.text.resolved().is_some_and(|path| pattern.matches(path)),
            // Elsewhere the paths were looked at with the whole.
            Item::Host(host) => !subject.is_resolved && host.name().is_some(),
            Item::Command(_) => {
                let touched = subject.paths.iter().filter(|path| path.command == command);
                matches_all(pattern, touched.map(|path| path.text.resolved()))
            }
        });
        let host = self.host.as_ref().is_none_or(|pattern| match item {
            Item::Host(host) => host.name().is_some_and(|host| pattern.matches(host)),
            Item::Path(_) => false,
            Item::Command(_) => {
                let reached = subject.hosts.iter().filter(|host| host.command == command);
                matches_all(pattern, reached.map(ReachedHost::name))
            }
        });
        commanded && path && host
    }

    /// Whether a rule that may allow is certainly about everything in a subject that it could be about; where not
    /// everything is resolved, whether it is about anything.
    fn allows_all(&self, subject: &Subject<'_>) -> bool {
        if !subject.is_resolved {
            return self.meets_hosts(subject);
        }
        let (paths, hosts, commands) = (&subject.paths, &subject.hosts, &subject.commands);
        let is_command =
            |words: &Vec<Option<String>>| self.command.as_ref().is_none_or(|pattern| pattern.covers(words));
        self.path.as_ref().is_none_or(|pattern| matches_all(pattern, paths.iter().map(|path| path.text.resolved())))
            && self.host.as_ref().is_none_or(|pattern| matches_all(pattern, hosts.iter().map(ReachedHost::name)))
            && (self.command.is_none() || !commands.is_empty() && commands.iter().all(is_command))
    }
}

/// Whether there are texts, all known, and a pattern matches each.
fn matches_all<'t>(pattern: &Pattern, texts: impl Iterator<Item = Option<&'t str>>) -> bool {
    let mut texts = texts.peekable();
    texts.peek().is_some() && texts.all(|text| text.is_some_and(|text| pattern.matches(text)))
}
