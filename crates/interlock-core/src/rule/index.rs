//! Finds the rules that may match without asking each: by what they are about, then by one of their conditions, that by
//! literal text, by how a text begins, by how it ends.

use std::collections::{BTreeMap, BTreeSet};

use super::name::{self, ToolPattern};
use super::pattern::Pattern;
use super::subject::{Identity, PathText, ReachedHost, Subject, TouchedPath, UNREADABLE_HOST};
use super::{About, Rule};
use crate::call::Effect;

/// Rules by what they are about. Those about one tool, one action or one effect are filed by their conditions, too.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleIndex {
    anything: Index,
    by_action: BTreeMap<String, Index>,
    by_effect: BTreeMap<Effect, Index>,
    by_tool: Texts,
    tools: Vec<(ToolPattern, Index)>,
    /// Where among them the patterns are.
    positions: BTreeMap<String, usize>,
}

impl RuleIndex {
    pub(super) fn insert(&mut self, rule: &Rule, position: usize) {
        match &rule.about {
            About::Everything => self.anything.insert(rule, position),
            About::Effect(effect) => self.by_effect.entry(*effect).or_default().insert(rule, position),
            About::Action(name) => self.by_action.entry(name.clone()).or_default().insert(rule, position),
            About::Tool(pattern, registered) => {
                if let Some(name) = registered {
                    self.by_action.entry(name.clone()).or_default().insert(rule, position);
                }
                let next = self.tools.len();
                let at = *self.positions.entry(pattern.text.clone()).or_insert(next);
                if at == next {
                    pattern.insert_into(&mut self.by_tool, at);
                    self.tools.push((pattern.clone(), Index::default()));
                }
                if let Some((_, index)) = self.tools.get_mut(at) {
                    index.insert(rule, position);
                }
            }
        }
    }

    /// Calls back with every rule that may match, some more than once, and with what it was found by.
    pub(super) fn candidates(&self, subject: &Subject<'_>, found: &mut dyn FnMut(usize, Via<'_>)) {
        let mut tools = BTreeSet::new();
        let mut note = |at| tools.extend([at]);
        let (action, effects): (_, &[Effect]) = match subject.identity {
            Identity::Action(name) => {
                name::look_up(&self.by_tool, &[name], None, &mut note);
                (self.by_action.get(name), &[])
            }
            Identity::Call { names, mcp, effects } => {
                name::look_up(&self.by_tool, names, mcp, &mut note);
                (None, effects)
            }
        };
        let tools = tools.into_iter().filter_map(|at| self.tools.get(at)).map(|(_, index)| index);
        let effects = effects.iter().filter_map(|effect| self.by_effect.get(effect));
        for index in action.into_iter().chain(tools).chain(effects).chain([&self.anything]) {
            index.candidates(subject, found);
        }
    }
}

/// The rules of one name, each filed under one of its conditions.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    unconditional: Vec<usize>,
    by_host: Texts,
    by_path: Texts,
    by_argument: BTreeMap<String, Texts>,
    /// By a word that must be in a command.
    by_word: BTreeMap<String, Vec<usize>>,
    /// All with a command, for one of which a word is not known.
    with_command: Vec<usize>,
    /// Those whose command has no word that must be there.
    with_any_command: Vec<usize>,
    /// All that are filed by a host, for a host that may be any.
    with_host: Vec<usize>,
    /// All with a path, for a path that may be any.
    with_path: Vec<usize>,
    /// Those with a path on the disk, for a path whose base is not known.
    with_anchored_path: Vec<usize>,
}

/// What a rule was found by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Via<'a> {
    /// Its only condition may be met by this path.
    Path(&'a TouchedPath),
    /// The same of a path that is only spoken of.
    Mention(&'a TouchedPath),
    /// Its condition on hosts may be met by this one.
    Host(&'a str),
    /// Its first condition on arguments may be met by this value.
    Value(&'a str),
    /// Whatever it says.
    Else,
}

/// Patterns by what is literal in them.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    literal: BTreeMap<String, Vec<usize>>,
    by_prefix: BTreeMap<String, Vec<usize>>,
    prefix_lengths: BTreeSet<usize>,
    by_suffix: BTreeMap<String, Vec<usize>>,
    suffix_lengths: BTreeSet<usize>,
    by_name: BTreeMap<String, Vec<usize>>,
    rest: Vec<usize>,
}

impl Index {
    pub(super) fn insert(&mut self, rule: &Rule, position: usize) {
        if let Some(command) = &rule.command {
            self.with_command.push(position);
            match command.literal_word() {
                Some(word) => self.by_word.entry(word).or_default().push(position),
                None => self.with_any_command.push(position),
            }
        } else if let Some((name, pattern)) = rule.args.first() {
            self.by_argument.entry(name.clone()).or_default().insert(pattern, position);
        } else if let Some(pattern) = &rule.host {
            self.by_host.insert(pattern, position);
            self.with_host.push(position);
        } else if let Some(pattern) = &rule.path {
            self.by_path.insert(pattern, position);
            self.with_path.push(position);
            if pattern.is_anchored() {
                self.with_anchored_path.push(position);
            }
        } else {
            self.unconditional.push(position);
        }
    }

    fn candidates(&self, subject: &Subject<'_>, found: &mut dyn FnMut(usize, Via<'_>)) {
        let mut all = |positions: &[usize], via| positions.iter().for_each(|position| found(*position, via));
        all(&self.unconditional, Via::Else);
        for words in subject.commands.iter() {
            if words.iter().any(Option::is_none) {
                all(&self.with_command, Via::Else);
                continue;
            }
            all(&self.with_any_command, Via::Else);
            for word in words.iter().flatten() {
                all(self.by_word.get(word).map_or(&[], Vec::as_slice), Via::Else);
            }
        }
        for ReachedHost { host, .. } in &subject.hosts {
            if host == UNREADABLE_HOST {
                self.with_host.iter().for_each(|position| found(*position, Via::Host(host)));
            }
            self.by_host.candidates(host, |position| found(position, Via::Host(host)));
        }
        for path in &subject.paths {
            self.path_candidates(&path.text, |position| found(position, Via::Path(path)));
        }
        for path in &subject.mentioned {
            self.path_candidates(&path.text, |position| found(position, Via::Mention(path)));
        }
        for (name, values) in &subject.arguments {
            let Some(texts) = self.by_argument.get(name) else { continue };
            for value in values {
                texts.candidates(value, |position| found(position, Via::Value(value)));
            }
        }
    }

    fn path_candidates(&self, path: &PathText, mut found: impl FnMut(usize)) {
        let text = match path {
            PathText::Unresolvable | PathText::Anywhere => return self.with_path.iter().copied().for_each(found),
            PathText::Floating(text) => {
                self.with_anchored_path.iter().copied().for_each(&mut found);
                text
            }
            PathText::Resolved(text) | PathText::Absolute(text) | PathText::Word(text) => text,
        };
        self.by_path.candidates(text, &mut found);
        // A pattern that ends in `/**` also matches the directory itself, so it is looked for with a slash, too.
        self.by_path.candidates(&format!("{text}/"), &mut found);
    }
}

impl Texts {
    pub(super) fn insert(&mut self, pattern: &Pattern, position: usize) {
        let (prefix, suffix) = (pattern.prefix(), pattern.suffix());
        if pattern.is_literal() {
            self.literal.entry(prefix).or_default().push(position);
        } else if prefix.len() >= suffix.len() && !prefix.is_empty() {
            self.prefix_lengths.insert(prefix.len());
            self.by_prefix.entry(prefix).or_default().push(position);
        } else if !suffix.is_empty() {
            self.suffix_lengths.insert(suffix.len());
            self.by_suffix.entry(suffix).or_default().push(position);
        } else if let Some(name) = pattern.whole_name() {
            self.by_name.entry(name).or_default().push(position);
        } else {
            self.rest.push(position);
        }
    }

    pub(super) fn candidates(&self, text: &str, mut found: impl FnMut(usize)) {
        let mut all = |positions: Option<&Vec<usize>>| positions.into_iter().flatten().copied().for_each(&mut found);
        all(Some(&self.rest));
        all(self.literal.get(text));
        for name in text.split('/') {
            all(self.by_name.get(name));
        }
        for length in &self.prefix_lengths {
            all(text.get(..*length).and_then(|prefix| self.by_prefix.get(prefix)));
        }
        for length in &self.suffix_lengths {
            let start = text.len().checked_sub(*length);
            all(start.and_then(|start| text.get(start..)).and_then(|suffix| self.by_suffix.get(suffix)));
        }
    }
}
