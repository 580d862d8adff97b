//! What policy asks about a line beside its effects: the words of its commands, the paths they may touch, the hosts
//! they may reach, the directories it may be in.
//!
//! Collected during the walk and only when asked for. Too much rather than too little: a word that could be a path is
//! one. What is not known before the line runs is `None`.

use core::ops::Range;

use interlock_core::rule::{CommandPattern, hosts_in};

use super::git_touches::{self, Pathspec};
use super::needs::Needs;
use super::reduce::Argument;
use super::syntax::{Redirect, RedirectKind};
use super::table::{Spec, UNLISTED};
use super::traits::{Fact, Hosts, Language, Makes, Removes, Script, Traits};
use super::walk::{Run, Walk};
use super::{Commands, Effect, Setting, credentials, examine, made_names, options, paths, table, unnamed_files};

/// The most commands that are listed.
pub(super) const COMMANDS_MAX: usize = 1_024;
/// The most paths that are listed.
const TOUCHES_MAX: usize = 1_024;
/// The most hosts that are listed.
const HOSTS_MAX: usize = 128;
/// The most directories that are listed.
const CHANGES_MAX: usize = 32;

/// What policy asks about a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// Every simple command, on every branch, in nested shells, substitutions and wrappers too.
    pub commands: Vec<SimpleCommand>,
    /// Every path that may be touched.
    pub touches: Vec<Touch>,
    /// Every host that may be reached.
    pub hosts: Vec<Reached>,
    /// Every change of the directory, in the order of the text.
    pub changes: Vec<Change>,
    /// The strictest effect that is no command's: of redirects, assignments and expressions.
    pub loose: Effect,
}

impl Default for Words {
    /// Nothing is listed, and so nobody knows what was done.
    fn default() -> Words {
        let (commands, touches, hosts, changes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Words { commands, touches, hosts, changes, loose: Effect::Unknown }
    }
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words, without quotes; a pattern for names of files stands as it is written. `None` if not known.
    pub words: Vec<Option<String>>,
    /// What it does itself; what it runs is listed as a command of its own.
    pub label: Effect,
    /// Where it stands, in bytes of the text.
    pub span: Range<usize>,
    /// The command that runs it, by its position: `timeout`, `bash -c`.
    pub within: Option<usize>,
    /// What it needs of what a runner gives.
    pub needs: Needs,
    /// It makes of many files many others, whatever program of that name it is.
    pub copies_many: bool,
}

/// A path that may be touched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Touch {
    /// The path as it is written; `None` if it is not known.
    pub path: Option<String>,
    /// It is a pattern for names of files.
    pub is_glob: bool,
    /// It is written, or may be.
    pub writes: bool,
    /// It is taken away, moved or changed with all that is in it.
    pub removes: bool,
    /// All that is in it is read.
    pub sweeps: bool,
    /// The command that touches it, by its position.
    pub command: Option<usize>,
}

/// A host that may be reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// Its name; `None` if it is not known.
    pub host: Option<String>,
    /// The command that reaches it, by its position.
    pub command: Option<usize>,
}

/// A change of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where to; `None` if it is not known.
    pub to: Option<String>,
    /// It may happen more than once.
    pub repeats: bool,
    /// The command whose option it is, by its position; nothing for `cd` and its like.
    pub by: Option<usize>,
}

/// Whether patterns cover a line: each simple command matches one or reads only, and what is no command's own (redirects,
/// assignments, substitutions) reads only, or writes where writing is allowed. A command that runs others is covered as
/// a whole, or if it reads only itself and what it runs is covered.
///
/// A pattern means the directory that the agent is in: a line that goes elsewhere is covered only as far as it reads.
/// And one that ends in `*` means more of the same: it covers no command that does worse than its first words alone.
pub fn covers(
    words: &Words,
    patterns: &[CommandPattern],
    writes_allowed: bool,
    setting: &Setting,
) -> Result<(), &'static str> {
    let free = if writes_allowed { Effect::Write } else { Effect::ReadOnly };
    if words.loose > free {
        return Err("a redirect, an assignment or an expression does what no pattern can cover");
    }
    let matches = |at: usize| {
        let Some(command) = words.commands.get(at) else { return false };
        patterns.iter().any(|pattern| pattern.covers(&command.words) && words.means(pattern, at, setting))
    };
    if words.rest(matches) > Effect::ReadOnly {
        return Err("a command matches no pattern and does more than read");
    }
    Ok(())
}

impl Words {
    /// Whether a command that a pattern matches is one that it means.
    fn means(&self, pattern: &CommandPattern, at: usize, setting: &Setting) -> bool {
        let Some(command) = self.commands.get(at) else { return false };
        let runs = |inner: &&SimpleCommand| inner.within == Some(at);
        let finds = |name: &str| setting.commands.traits(name).is(Fact::Finds);
        let is_finder = command.words.first().and_then(Option::as_deref).is_some_and(finds);
        // What is done to what is found, the command itself does.
        let inner = self.commands.iter().filter(runs).filter(|_| is_finder).map(|inner| inner.label);
        let label = inner.fold(command.label, Effect::max);
        if label == Effect::ReadOnly {
            return true;
        }
        let fixed = pattern.fixed_words();
        // A directory that the pattern itself names is meant.
        let is_named = |change: &Change| change.by == Some(at) && fixed == command.words.len();
        if !self.changes.iter().all(is_named) {
            return false;
        }
        if fixed == command.words.len() {
            return true;
        }
        let quote = |word: &Option<String>| word.as_ref().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
        let stem: Option<Vec<String>> = command.words.iter().take(fixed).map(quote).collect();
        stem.is_some_and(|stem| label <= examine(&stem.join(" "), setting).0.label)
    }

    /// Which commands are known, with all that those run.
    pub fn known(&self, is_known: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut known: Vec<bool> = Vec::with_capacity(self.commands.len());
        for (at, command) in self.commands.iter().enumerate() {
            // What runs a command stands before it.
            let by_outer = command.within.and_then(|outer| known.get(outer)).copied().unwrap_or(false);
            known.push(by_outer || is_known(at));
        }
        known
    }

    /// The strictest effect of the commands that are left if some are known, with all that those run.
    pub fn rest(&self, is_known: impl Fn(usize) -> bool) -> Effect {
        let known = self.known(is_known);
        let left = self.commands.iter().zip(known).filter(|(_, known)| !known).map(|(command, _)| command.label);
        left.max().unwrap_or(Effect::ReadOnly)
    }
}

/// What was collected so far.
#[derive(Debug, Default)]
pub(super) struct Collected {
    words: Started,
    /// The command that is being looked at.
    pub(super) current: Option<usize>,
    /// What is touched now is taken away.
    removes: bool,
    /// All that is in what is touched now is read.
    sweeps: bool,
}

/// The words before anything was found: no effect at all.
#[derive(Debug)]
struct Started(Words);

impl Default for Started {
    fn default() -> Started {
        Started(Words { loose: Effect::ReadOnly, ..Words::default() })
    }
}

/// How much was collected at some moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    commands: usize,
    touches: usize,
    hosts: usize,
    changes: usize,
}

impl Collected {
    pub(super) fn mark(&self) -> Mark {
        let words = &self.words.0;
        let (commands, touches) = (words.commands.len(), words.touches.len());
        Mark { commands, touches, hosts: words.hosts.len(), changes: words.changes.len() }
    }

    /// Forgets what was collected since.
    pub(super) fn back_to(&mut self, mark: Mark) {
        let words = &mut self.words.0;
        words.commands.truncate(mark.commands);
        words.touches.truncate(mark.touches);
        words.hosts.truncate(mark.hosts);
        words.changes.truncate(mark.changes);
    }

    pub(super) fn finish(mut self) -> Words {
        let words = &mut self.words.0;
        words.touches.sort();
        words.touches.dedup();
        words.hosts.sort();
        words.hosts.dedup();
        self.words.0
    }

    /// Notes an effect as that of the current command, or of none.
    pub(super) fn attribute(&mut self, effect: Effect) {
        let words = &mut self.words.0;
        let label = self.current.and_then(|at| words.commands.get_mut(at)).map(|command| &mut command.label);
        let label = label.unwrap_or(&mut words.loose);
        *label = (*label).max(effect);
    }

    /// A job begins that may outlive the line: what is no command's is counted apart.
    pub(super) fn begin_job(&mut self) -> (usize, Effect) {
        let words = &mut self.words.0;
        (words.commands.len(), core::mem::replace(&mut words.loose, Effect::ReadOnly))
    }

    /// Such a job ends: if it does outlive the line, whatever in it does more than read is not known.
    pub(super) fn end_job(&mut self, (first, before): (usize, Effect), outlives: bool) {
        let words = &mut self.words.0;
        let worse =
            |label: Effect| if outlives && label > Effect::ReadOnly { label.max(Effect::Unknown) } else { label };
        words.loose = before.max(worse(words.loose));
        words.commands.iter_mut().skip(first).for_each(|command| command.label = worse(command.label));
    }

    /// A command begins; hands back the one around it.
    pub(super) fn enter(&mut self, run: &Run<'_>) -> Option<usize> {
        let name = paths::system_program(run.name).unwrap_or_else(|| run.name.to_owned());
        let words = core::iter::once(Some(name)).chain(run.arguments.iter().map(word)).collect();
        let outer = self.current;
        self.begin(words, &run.span);
        outer
    }

    fn begin(&mut self, words: Vec<Option<String>>, span: &Range<usize>) {
        let collected = &mut self.words.0;
        if collected.commands.len() >= COMMANDS_MAX {
            // Too many to list: what they do is nobody's to cover.
            self.current = None;
            collected.loose = collected.loose.max(Effect::Unknown);
            self.touch(None, false, true);
            self.reach(None);
            return;
        }
        let within = self.current;
        self.current = Some(collected.commands.len());
        let (label, needs) = (Effect::ReadOnly, Needs::Project);
        collected.commands.push(SimpleCommand { words, label, span: span.clone(), within, needs, copies_many: false });
    }

    /// A command of which not even the name is known.
    pub(super) fn add_unknown(&mut self, span: &Range<usize>) {
        let outer = self.current;
        self.begin(vec![None], span);
        self.attribute(Effect::Unknown);
        self.touch(None, false, true);
        self.current = outer;
    }

    fn touch(&mut self, path: Option<String>, is_glob: bool, writes: bool) {
        let words = &mut self.words.0;
        let touch = Touch { path, is_glob, writes, removes: self.removes, sweeps: self.sweeps, command: self.current };
        if words.touches.len() < TOUCHES_MAX {
            words.touches.push(touch);
        } else if words.touches.len() == TOUCHES_MAX {
            let (writes, sweeps, removes) = (true, false, false);
            words.touches.push(Touch { path: None, is_glob: false, writes, removes, sweeps, command: None });
        }
    }

    fn reach(&mut self, host: Option<String>) {
        let words = &mut self.words.0;
        if words.hosts.len() < HOSTS_MAX {
            words.hosts.push(Reached { host, command: self.current });
        } else if words.hosts.len() == HOSTS_MAX {
            words.hosts.push(Reached { host: None, command: None });
        }
    }

    fn change(&mut self, to: Option<String>, repeats: bool, by: Option<usize>) {
        let words = &mut self.words.0;
        if words.changes.len() < CHANGES_MAX {
            words.changes.push(Change { to, repeats, by });
        } else if words.changes.len() == CHANGES_MAX {
            words.changes.push(Change { to: None, repeats: true, by: None });
        }
    }

    /// Where a redirect leads.
    pub(super) fn redirect(&mut self, redirect: &Redirect, target: &Argument) {
        let duplicates = |text: &str| text.strip_suffix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
        let writes = match redirect.kind {
            RedirectKind::HereDocument { .. } | RedirectKind::HereString | RedirectKind::DuplicateInput => return,
            RedirectKind::Input => false,
            RedirectKind::DuplicateOutput if target.known_text().is_some_and(duplicates) => return,
            RedirectKind::DuplicateOutput | RedirectKind::Output | RedirectKind::Both => true,
        };
        let socket = |text: &str| {
            let plain = paths::normalise(text);
            let rest = plain.strip_prefix("/dev/tcp/").or_else(|| plain.strip_prefix("/dev/udp/"));
            rest.map(|rest| rest.split('/').next().unwrap_or("").to_owned())
        };
        if paths::is_socket(&paths::normalise(target.prefix())) || target.texts().iter().any(|t| socket(t).is_some()) {
            let host = target.known_text().and_then(socket).filter(|host| !host.is_empty());
            return self.reach(host.map(|host| host.to_ascii_lowercase()));
        }
        // Redirects are no command's: what covers a command does not cover them.
        let current = self.current.take();
        self.argument(target, writes);
        self.current = current;
    }

    /// An argument that may be a path.
    fn argument(&mut self, argument: &Argument, writes: bool) {
        if argument.has_glob {
            let whole = argument.skeleton();
            // Parts that are not known cannot be looked up beside a pattern.
            let plain = whole == argument.prefix() || is_below_home(argument);
            if plain && argument.prefix().contains("**") {
                self.deep(argument.prefix(), writes);
            }
            return self.touch(plain.then(|| argument.prefix().to_owned()), plain, writes);
        }
        if let Some(partly) = argument.partly.as_ref().filter(|partly| !partly.names.is_empty()) {
            return partly.names.iter().for_each(|name| self.touch(Some(name.clone()), true, writes));
        }
        if argument.texts().is_empty() {
            let home = is_below_home(argument).then(|| argument.prefix().to_owned());
            return self.touch(home, false, writes);
        }
        for text in argument.texts() {
            self.texts(text, writes);
        }
    }

    /// A pattern for names at any depth, which some shells read so, and all if they are told to.
    fn deep(&mut self, pattern: &str, writes: bool) {
        let (before, after) = pattern.split_once("**").unwrap_or((pattern, ""));
        let after = after.trim_start_matches('*');
        for level in 0..DEEP_LEVELS {
            let path = match after.strip_prefix('/') {
                Some(rest) => format!("{before}{}{rest}", "*/".repeat(level)),
                None => format!("{before}{}*{after}", "*/".repeat(level)),
            };
            self.touch(Some(path.replace("**", "*")), true, writes);
        }
    }

    /// The paths in a word of git that are hidden from everybody else: `:(top).env`, `:/.env`, `'.e*'`, `HEAD:key`.
    fn pathspec(&mut self, argument: &Argument, writes: bool) {
        for text in argument.texts() {
            let Some(found) = Pathspec::of(text) else { continue };
            let is_glob = found.path.contains(['*', '?', '[']);
            let (_, name) = found.path.rsplit_once('/').unwrap_or(("", found.path));
            // The top of the tree is above here, or here. A pattern for whatever is there means the tree as a whole.
            let is_wide = is_glob && name.starts_with(['*', '?', '[']);
            let levels = if found.is_top && !is_wide { TOP_LEVELS } else { 1 };
            let is_narrow = name.contains(|letter: char| letter.is_ascii_alphanumeric());
            for level in 0..levels {
                let path = format!("{}{}", "../".repeat(level), found.path);
                if is_glob && is_narrow {
                    // A pattern of git means hidden names too.
                    let (directory, name) = path.rsplit_once('/').unwrap_or((".", &path));
                    self.touch(Some(format!("{directory}/.{name}")), true, writes);
                }
                self.touch(Some(path), is_glob, writes);
            }
        }
    }

    /// A program in an argument: every word in it that looks like a path is one.
    fn script(&mut self, argument: &Argument, writes: bool) {
        let is_between = |character: char| character.is_whitespace() || "\"';{}()<>,".contains(character);
        for text in argument.texts() {
            let words = text.split(is_between).filter(|word| word.contains(['/', '.', '~']));
            words.for_each(|word| self.touch(Some(word.to_owned()), false, writes));
        }
    }

    /// A file that a command writes, wherever it is named.
    pub(super) fn written(&mut self, target: &Argument) {
        if !paths::is_socket(&paths::normalise(target.prefix())) {
            self.argument(target, true);
        }
    }

    /// A file that a command reads, wherever it is named.
    pub(super) fn read(&mut self, source: &Argument) {
        self.argument(source, false);
    }

    /// A known argument: as a path, and in every form in which a path hides in it.
    fn texts(&mut self, text: &str, writes: bool) {
        let mut add = |path: &str| {
            if !path.is_empty() {
                self.touch(Some(path.to_owned()), false, writes);
            }
        };
        let value = match text.strip_prefix('-') {
            None => {
                add(text);
                text.split_once('=').map(|(_, value)| value)
            }
            Some(option) if option.starts_with('-') => option.split_once('=').map(|(_, value)| value),
            // `-Cdir`, `-I/usr/include`
            Some(option) => {
                let mut letters = option.chars();
                letters.next();
                Some(letters.as_str())
            }
        };
        if let Some(value) = value {
            add(value);
        }
        for part in [Some(text), value].into_iter().flatten() {
            // `-d @file`, `field=@file`, `field=<file`
            if let Some((_, file)) = part.split_once(['@', '<']) {
                add(file);
            }
            // `/here:/there`, `host:path`
            if part.contains(':') && !part.contains("://") {
                part.split(':').filter(|piece| piece.contains(['/', '~', '.'])).for_each(&mut add);
            }
        }
    }
}

/// How deep a pattern for any depth is followed.
const DEEP_LEVELS: usize = 6;
/// How far above the directory of a command the top of its tree is looked for.
const TOP_LEVELS: usize = 8;

/// Whether an argument is `$HOME` and then text that is known.
pub(super) fn is_below_home(argument: &Argument) -> bool {
    let (prefix, skeleton) = (argument.prefix().strip_prefix('~'), argument.skeleton().strip_prefix('x'));
    prefix.is_some() && prefix == skeleton
}

/// A word as policy sees it.
fn word(argument: &Argument) -> Option<String> {
    let beginning = argument.prefix();
    // A pattern that begins with a plain character becomes no option.
    let plain_glob = argument.has_glob
        && beginning == argument.skeleton()
        && !beginning.starts_with(['-', '+', '*', '?', '['])
        && !beginning.is_empty();
    if plain_glob { Some(beginning.to_owned()) } else { argument.known_text().map(str::to_owned) }
}

/// A command was looked at: lists its paths and hosts, now that it is known what it does.
pub(super) fn leave(walk: &mut Walk<'_, '_>, run: &Run<'_>, outer: Option<usize>) {
    let name = run.name.rsplit('/').next().unwrap_or(run.name);
    let commands = &walk.setting.commands;
    let spec = commands.get(name).into_iter().flatten().next().cloned();
    let repeats = walk.may_repeat();
    let Some(words) = &mut walk.findings.words else { return };
    let left = LeftCommand::new(&words.words.0, run, outer, (words.current, name), commands);
    let (label, traits) = (left.label, left.traits);
    if let Some(command) = words.current.and_then(|at| words.words.0.commands.get_mut(at)) {
        command.needs = Needs::of(commands, name, run.arguments);
        command.copies_many = traits.copies_many();
    }
    change_directory(words, run, name, (traits, repeats));
    if name != run.name {
        words.touch(Some(run.name.to_owned()), false, false);
    }
    let runs_text = left.reading.speaks(Language::Shell);
    if !left.reading.is(Fact::WithoutPaths) && !runs_text {
        list_paths(words, run, &left, spec.as_deref());
    } else if runs_text && label > Effect::ReadOnly {
        // A script file.
        let known = run.arguments.iter().filter(|argument| argument.known_text().is_some());
        known.for_each(|it| words.argument(it, false));
    }
    if let Some(file) = credentials::printed(traits, run.arguments, table::grammar(name)) {
        words.touch(Some(file.to_owned()), false, false);
    }
    if let Some(file) = credentials::changed(traits, label) {
        words.touch(Some(file.to_owned()), false, true);
    }
    if label > Effect::Write {
        let before = words.words.0.hosts.len();
        hosts(words, run, traits, spec.as_deref());
        if label == Effect::Network && words.words.0.hosts.len() == before {
            words.reach(None);
        }
    }
    words.current = outer;
}

/// A command that was looked at.
struct LeftCommand<'w> {
    traits: &'w Traits,
    /// What its words are read by: a program outside of the system's directories is none that the table means.
    reading: &'w Traits,
    is_listed: bool,
    /// The options that it has, if they are listed.
    grammar: Option<&'static Spec>,
    /// What it does itself.
    label: Effect,
    /// What it does, with what it runs for what it finds: that is beneath where it looks, so it is done there.
    worst: Effect,
    /// It is run for what another one finds.
    is_found: bool,
    /// How many of its arguments are its own: the last words of a wrapper are those of what it runs, which lists them
    /// itself.
    own: usize,
}

impl<'w> LeftCommand<'w> {
    fn new(
        words: &Words,
        run: &Run<'_>,
        outer: Option<usize>,
        (at, name): (Option<usize>, &str),
        commands: &'w Commands,
    ) -> LeftCommand<'w> {
        let traits = commands.traits(name);
        let is_foreign = run.name.contains('/') && paths::system_program(run.name).is_none();
        let is_listed = !is_foreign && commands.lists(name);
        let reading = if is_foreign { &UNLISTED } else { traits };
        let current = at.and_then(|at| words.commands.get(at));
        let label = current.map_or(Effect::Unknown, |found| found.label);
        let name_of = |at: usize| words.commands.get(at).and_then(|found| found.words.first()?.as_deref());
        let is_found = outer.and_then(name_of).is_some_and(|name| commands.traits(name).is(Fact::Finds));
        let first = at.unwrap_or(usize::MAX);
        let inner = || words.commands.iter().skip(first).filter(|found| found.within == at && at.is_some());
        let worst = inner().map(|found| found.label).max().filter(|_| traits.is(Fact::Finds));
        let whole = current.map_or(&[][..], |found| &found.words);
        let handed_on = inner().filter(|inner| whole.len() > inner.words.len() && whole.ends_with(&inner.words));
        let handed_on = handed_on.map(|inner| inner.words.len()).max().unwrap_or(0);
        let own = run.arguments.len().saturating_sub(handed_on);
        let worst = worst.map_or(label, |inner| inner.max(label));
        LeftCommand { traits, reading, is_listed, grammar: table::grammar(name), label, worst, is_found, own }
    }
}

/// Lists the paths that a command may touch.
fn list_paths(words: &mut Collected, run: &Run<'_>, left: &LeftCommand<'_>, spec: Option<&Spec>) {
    let LeftCommand { reading: traits, worst, is_listed, .. } = *left;
    let removes = traits.removes.is_some() || traits.is(Fact::Finds) && worst == Effect::Destructive;
    let has_script = traits.script.is_none() || gives_script(run.arguments);
    let mut skips_script = !has_script;
    // What nobody knows may read all that is in the directories it is given.
    let sweeps = !is_listed || unnamed_files::sweeps(traits, run);
    let destination = unnamed_files::destination(traits, run.arguments);
    let takes_away = traits.removes == Some(Removes::Directories) || removes && worst == Effect::Destructive;
    for (at, argument) in run.arguments.iter().take(left.own).enumerate() {
        let is_last = at.saturating_add(1) == run.arguments.len();
        words.removes = removes && !(traits.removes == Some(Removes::AllButLast) && is_last);
        words.sweeps = sweeps && destination != Some(at);
        if skips_script && !options::is_option(argument.prefix()) && !argument.splits {
            skips_script = false;
            if traits.script == Some(Script::NamesFiles) {
                // What a program writes is listed where it is read.
                words.script(argument, worst > Effect::Write);
            }
            continue;
        }
        // What is found is beneath where it is looked for, and read there. What it is called is not known: whoever
        // writes it, or goes on from it, may touch anything. What a variable holds is not found.
        let is_written = matches!(worst, Effect::Write | Effect::Destructive) && !takes_away;
        if left.is_found && !is_written && argument.texts().is_empty() && argument.skeleton() == "{}" {
            continue;
        }
        if is_no_path(traits, run.arguments, at) {
            continue;
        }
        // Of what is copied, only the last one is written.
        let is_copy = traits.makes == Some(Makes::Copies);
        let is_source = is_copy && destination.is_some_and(|last| at != last) && worst == Effect::Write;
        words.argument(argument, worst > Effect::ReadOnly && !is_source);
        if traits.speaks(Language::Git) {
            words.pathspec(argument, worst > Effect::ReadOnly);
        }
    }
    words.removes = false;
    words.sweeps = sweeps;
    if sweeps && unnamed_files::sweeps_here(traits, run.arguments, spec, has_script) {
        words.touch(Some(".".to_owned()), false, false);
    }
    words.sweeps = false;
    if unnamed_files::writes_unnamed(traits, run, worst) {
        words.touch(None, false, true);
    }
    if unnamed_files::reads_unnamed(traits, run, left.grammar) {
        words.touch(None, false, false);
    }
    let made = made_names::writes(traits, run.arguments, left.grammar, worst);
    made.paths.into_iter().for_each(|path| words.touch(Some(path), false, true));
    if made.is_unknown {
        words.touch(None, false, true);
    }
}

/// Whether the argument at a place is no path, whatever it will be.
fn is_no_path(traits: &Traits, arguments: &[Argument], at: usize) -> bool {
    if traits.speaks(Language::Git) {
        return git_touches::is_no_path(arguments, at);
    }
    let before = at.checked_sub(1).and_then(|before| arguments.get(before)).and_then(Argument::known_text);
    let is_number = before.is_some_and(|option| traits.numbers.split_ascii_whitespace().any(|listed| listed == option));
    is_number && arguments.get(at).is_some_and(|argument| !argument.splits)
}

/// `cd`, `pushd`, and options that mean the same for one command.
fn change_directory(words: &mut Collected, run: &Run<'_>, name: &str, (traits, repeats): (&Traits, bool)) {
    if traits.is(Fact::Finds) && run.arguments.iter().any(|it| matches!(it.prefix(), "-execdir" | "-okdir")) {
        // Where something is found.
        words.change(None, repeats, None);
    }
    let is_first = words.words.0.changes.iter().all(|change| change.by.is_some());
    if name == "popd" && is_first {
        return words.change(None, repeats, None);
    }
    if matches!(name, "cd" | "pushd" | "chdir") {
        let mut targets = run
            .arguments
            .iter()
            .filter(|argument| !argument.known_text().is_some_and(|text| text.starts_with('-') && text.len() > 1));
        return match targets.next() {
            None => words.change(Some("~".to_owned()), repeats, None),
            // Back to where the line was before; what was before the line, nobody knows.
            Some(target) if target.known_text() == Some("-") => {
                if is_first {
                    words.change(None, repeats, None);
                }
            }
            Some(target) => words.change(target.known_text().map(str::to_owned), repeats, None),
        };
    }
    let by = words.current;
    for (at, argument) in run.arguments.iter().enumerate() {
        let Some(text) = argument.known_text() else { continue };
        let next = || run.arguments.get(at.saturating_add(1));
        if matches!(text, "-C" | "--directory" | "--chdir" | "--cwd" | "--work-tree") {
            if let Some(next) = next() {
                words.change(next.known_text().map(str::to_owned), repeats, by);
            }
        } else if let Some(attached) = text.strip_prefix("-C").filter(|attached| attached.contains(['/', '.', '~'])) {
            words.change(Some(attached.to_owned()), repeats, by);
        } else if let Some((option, value)) = text.split_once('=')
            && matches!(option, "--directory" | "--chdir" | "--cwd" | "--work-tree")
        {
            words.change(Some(value.to_owned()), repeats, by);
        }
    }
}

/// Whether an option holds what would otherwise be the first operand.
fn gives_script(arguments: &[Argument]) -> bool {
    arguments.iter().any(|argument| {
        let text = argument.prefix();
        let long = ["--regexp", "--file", "--expression", "--from-file"].iter().any(|option| text.starts_with(option));
        long || text.starts_with('-') && !text.starts_with("--") && text.contains(['e', 'f'])
    })
}

fn hosts(words: &mut Collected, run: &Run<'_>, traits: &Traits, spec: Option<&Spec>) {
    for argument in run.arguments {
        for text in argument.texts() {
            if text.contains(':') {
                hosts_in(text, false).into_iter().for_each(|host| words.reach(host));
            }
        }
        if argument.texts().is_empty() && argument.prefix().contains("://") {
            words.reach(None);
        }
    }
    if traits.hosts == Some(Hosts::InPaths) {
        for argument in run.arguments {
            let text = argument.known_text().filter(|text| !text.contains("://"));
            let Some((host, _)) = text.and_then(|text| text.split_once(':')) else { continue };
            if !host.contains('/') && !host.is_empty() && !host.starts_with('-') {
                let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                hosts_in(host, true).into_iter().for_each(|host| words.reach(host));
            }
        }
    }
    let Some(spec) = spec else { return };
    let call = options::read_until_verb(spec, run.arguments);
    let operands: &[&Argument] = match traits.hosts {
        Some(Hosts::First) => call.operands.get(..1).unwrap_or_default(),
        Some(Hosts::Last) => call.operands.last().map(core::slice::from_ref).unwrap_or_default(),
        Some(Hosts::All) => &call.operands,
        Some(Hosts::InPaths) | None => &[],
    };
    for operand in operands {
        match operand.known_text() {
            Some(text) if text.contains("://") => {}
            Some(text) => hosts_in(text, true).into_iter().for_each(|host| words.reach(host)),
            None => words.reach(None),
        }
    }
}
