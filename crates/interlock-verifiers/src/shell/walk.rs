//! The effects of a script: every command on every branch.

use core::ops::Range;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use super::parse::parse;
use super::paths::{self, Target};
use super::policy_words::Collected;
use super::reduce::{self, Argument};
use super::syntax::{Assignment, Command, CommandKind, Redirect, RedirectKind, Script, Word};
use super::traits::Fact;
use super::values::Values;
use super::{
    Analysis, Assumption, Cause, Effect, Executor, GitBlame, Setting, TEXT_BYTES_MAX, effort, environment, jobs,
};
use crate::fuel::Fuel;

/// How deep texts may stand in texts: `bash -c "bash -c …"`.
const TEXT_DEPTH_MAX: u32 = 6;
/// The most commands that are looked at, those of functions at each call; long ones count for several.
const FUEL: u32 = 20_000;
/// The work of one command, and of one byte, in units of fuel as all engines count it.
const COMMAND_WORK: u64 = 512;
const BYTE_WORK: u64 = 64;
/// How deep commands may run commands: `env nice timeout …`, functions that call functions.
const RUN_DEPTH_MAX: u32 = 40;
/// The most effects that are listed.
const EFFECTS_MAX: usize = 2_000;

/// Judges a line.
pub(super) fn classify(
    text: &str,
    setting: &Setting,
    words: Option<Box<Collected>>,
    given: &mut Fuel,
) -> (Analysis, Option<Box<Collected>>) {
    // Parsing is paid for at once, commands as they are looked at.
    given.pay(BYTE_WORK.saturating_mul(u64::try_from(text.len()).unwrap_or(u64::MAX)));
    let lasts = given.left().checked_div(COMMAND_WORK).and_then(|lasts| u32::try_from(lasts).ok());
    let most = lasts.unwrap_or(FUEL).min(FUEL);
    let mut findings =
        Findings { causes: Vec::new(), assumes: Vec::new(), fuel: most, ran_out: false, words, understood: true };
    let place = Place { origin: None, executor: setting.executor, depth: 0, dirty: None, values: Values::default() };
    examine(text, place, setting, &mut findings);
    let Findings { mut causes, assumes, words, understood, fuel, ran_out } = findings;
    given.pay(COMMAND_WORK.saturating_mul(u64::from(most.saturating_sub(fuel))));
    if ran_out && most < FUEL {
        given.fall_short();
    }
    causes.sort_by(|left, right| {
        (left.span.start, left.span.end, left.effect).cmp(&(right.span.start, right.span.end, right.effect))
    });
    // A text that is walked twice has its effects twice, with others at the same place in between.
    let mut seen = HashSet::new();
    causes.retain(|found| seen.insert(found.clone()));
    let label = causes.iter().map(|found| found.effect).max().unwrap_or(Effect::ReadOnly);
    (Analysis { label, understood, causes, assumes }, words)
}

/// What was found so far, in all texts.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) causes: Vec<Cause>,
    assumes: Vec<Assumption>,
    fuel: u32,
    /// Work was refused because the fuel did not last.
    ran_out: bool,
    /// What policy asks about, if it does.
    pub(super) words: Option<Box<Collected>>,
    /// Nothing was found that can do anything, listed or not.
    understood: bool,
}

/// Where a text stands, and what holds there.
struct Place {
    /// The part of the outer text that it is, if it stands in another text.
    origin: Option<Range<usize>>,
    executor: Executor,
    /// How many texts are around it.
    depth: u32,
    /// The name of a variable that reaches programs.
    dirty: Option<String>,
    /// What variables can hold already.
    values: Values,
}

/// Reads a text and walks it.
fn examine(text: &str, place: Place, setting: &Setting, findings: &mut Findings) {
    let Place { origin, executor, depth, dirty, values } = place;
    let whole = origin.clone().unwrap_or(0..text.len());
    let mut refuse = |why: &str, span: Range<usize>| {
        if let Some(words) = &mut findings.words {
            words.attribute(Effect::Unknown);
        }
        findings.understood = false;
        findings.causes.push(Cause {
            effect: Effect::Unknown,
            command: String::new(),
            span,
            why: Cow::Owned(why.to_owned()),
            blame: None,
        });
    };
    if text.len() > TEXT_BYTES_MAX {
        return refuse("the text is too long to be read", whole);
    }
    if depth > TEXT_DEPTH_MAX {
        return refuse("texts in texts, too deep", whole);
    }
    if executor == Executor::Foreign {
        return refuse("not a shell whose language is read here", whole);
    }
    if text.contains('\0') || text.contains('\r') {
        return refuse("a control character that shells do not agree on", whole);
    }
    let parsed = match parse(text, origin, 0) {
        Ok(parsed) => parsed,
        Err(stop) => {
            let span = if stop.at < whole.end { stop.at..whole.end } else { whole };
            return refuse(&format!("does not parse: {}", stop.why), span);
        }
    };
    if executor == Executor::Other
        && let Some(what) = parsed.only_bash
    {
        refuse(&format!("other shells than bash read this differently: {what}"), whole.clone());
    }
    if executor != Executor::Bash
        && let Some(what) = parsed.not_zsh
    {
        refuse(&format!("zsh reads this differently: {what}"), whole.clone());
    }
    let values = values.with(&parsed.script);
    let mut before = dirty;
    loop {
        let collected = findings.words.as_deref().map(Collected::mark);
        let mut walk = Walk {
            setting,
            executor,
            depth,
            values: &values,
            findings,
            functions: BTreeMap::new(),
            calling: Vec::new(),
            dirty: before.clone(),
            conditional: 0,
            running: 0,
            background: false,
            directory: None,
            repeating: 0,
        };
        walk.script(&parsed.script);
        let defined: Vec<&str> = walk.functions.keys().copied().collect();
        defined.into_iter().for_each(|name| walk.uncalled(name));
        let after = walk.dirty.take();
        // What a later round of a loop exports reaches the commands before it. What the first walk found stays: the
        // fuel may not last for a second one.
        if after == before || before.is_some() {
            return;
        }
        before = after;
        if let (Some(words), Some(mark)) = (&mut findings.words, collected) {
            words.back_to(mark);
        }
    }
}

/// A walk through one text.
pub(super) struct Walk<'s, 'w> {
    pub(super) setting: &'w Setting,
    pub(super) executor: Executor,
    depth: u32,
    pub(super) values: &'w Values,
    pub(super) findings: &'w mut Findings,
    functions: BTreeMap<&'s str, Defined<'s>>,
    /// The bodies of the functions that are being called.
    calling: Vec<&'s Command>,
    /// The name of a variable that reaches programs and may change what they do.
    pub(super) dirty: Option<String>,
    /// How many things around this may not happen, or happen elsewhere.
    conditional: u32,
    /// How many commands run the one that is looked at.
    running: u32,
    /// The command goes on after the line is done.
    pub(super) background: bool,
    /// Where `cd` went.
    pub(super) directory: Option<String>,
    /// How many loops and branches are around this.
    pub(super) repeating: u32,
}

/// What was found before a job in the background.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    causes: usize,
    words: Option<(usize, Effect)>,
}

/// A function of the line.
#[derive(Debug, Clone, Copy)]
struct Defined<'s> {
    body: &'s Command,
    /// It is certain that the name means this function.
    certain: bool,
    called: bool,
}

/// A command about to run: its name is known.
pub(super) struct Run<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a [Argument],
    pub(super) span: Range<usize>,
    /// What its input and outputs are.
    pub(super) redirects: &'a [Redirect],
    /// Names that are set for it.
    pub(super) sets: &'a [String],
    /// Functions do not count.
    pub(super) skips_functions: bool,
}

impl Run<'_> {
    /// The same with another name and other arguments; not a function.
    pub(super) fn renamed<'b>(&'b self, name: &'b str, arguments: &'b [Argument]) -> Run<'b> {
        Run {
            name,
            arguments,
            span: self.span.clone(),
            redirects: self.redirects,
            sets: self.sets,
            skips_functions: true,
        }
    }
}

impl<'s> Walk<'s, '_> {
    /// Lists an effect.
    pub(super) fn add(
        &mut self,
        effect: Effect,
        command: &str,
        span: &Range<usize>,
        why: impl Into<Cow<'static, str>>,
    ) {
        let (command, span, why) = (command.to_owned(), span.clone(), why.into());
        self.add_cause(Cause { effect, command, span, why, blame: None });
    }

    /// Lists an effect that a setting of git is to blame for.
    pub(super) fn blame(&mut self, effect: Effect, command: &str, span: &Range<usize>, blame: GitBlame) {
        let (command, span, why) = (command.to_owned(), span.clone(), Cow::Owned(blame.why()));
        self.add_cause(Cause { effect, command, span, why, blame: Some(blame) });
    }

    fn add_cause(&mut self, cause: Cause) {
        let effect = cause.effect;
        if let Some(words) = &mut self.findings.words {
            words.attribute(effect);
        }
        self.findings.understood &= effect != Effect::Unknown;
        if self.findings.causes.len() >= EFFECTS_MAX {
            // Too many to list; the strictest still counts.
            let why = Cow::Borrowed("more effects than are listed");
            if let Some(last) = self.findings.causes.last_mut() {
                last.effect = last.effect.max(effect);
                (last.why, last.blame) = (why, None);
            }
            return;
        }
        self.findings.causes.push(cause);
    }

    /// Lists what an assignment does to a command: nobody who knows the command knows that.
    fn add_loose(&mut self, run: &Run<'_>, why: String) {
        let current = self.findings.words.as_mut().and_then(|words| words.current.take());
        self.add(Effect::Unknown, run.name, &run.span, why);
        if let Some(words) = &mut self.findings.words {
            words.current = current;
        }
    }

    /// Says what is taken for granted.
    pub(super) fn assume(&mut self, what: Assumption) {
        if !self.findings.assumes.contains(&what) {
            self.findings.assumes.push(what);
        }
    }

    /// Reads a text that a command evaluates.
    pub(super) fn text(&mut self, text: &str, span: &Range<usize>, executor: Executor) {
        self.text_with(text, span, executor, Values::default());
    }

    /// Reads a text that this shell itself evaluates: its variables are the same.
    pub(super) fn text_here(&mut self, text: &str, span: &Range<usize>) {
        if self.pay(effort::of_copy(self.values.size()), span) {
            self.text_with(text, span, self.executor, self.values.clone());
        }
    }

    /// Pays for work, counted in commands; false if there is not enough left.
    fn pay(&mut self, commands: u32, span: &Range<usize>) -> bool {
        let left = self.findings.fuel.checked_sub(commands);
        match left {
            Some(left) => self.findings.fuel = left,
            None => {
                self.findings.ran_out = true;
                self.add(Effect::Unknown, "", span, "too many commands");
            }
        }
        left.is_some()
    }

    /// Reads a text of a shell that is given arguments.
    pub(super) fn text_given(&mut self, text: &str, span: &Range<usize>, executor: Executor, given: &[Argument]) {
        self.text_with(text, span, executor, Values::of_positional(given));
    }

    fn text_with(&mut self, text: &str, span: &Range<usize>, executor: Executor, values: Values) {
        let (origin, depth, dirty) = (Some(span.clone()), self.depth.saturating_add(1), self.dirty.clone());
        examine(text, Place { origin, executor, depth, dirty, values }, self.setting, self.findings);
    }

    pub(super) fn script(&mut self, script: &'s Script) {
        for (at, list) in script.lists.iter().enumerate() {
            let was_background = self.background;
            let job = list.background.then(|| self.begin_job());
            self.background |= list.background;
            self.conditional = self.conditional.saturating_add(u32::from(list.background));
            for (at, pipeline) in list.pipelines.iter().enumerate() {
                let maybe = u32::from(at > 0 || pipeline.commands.len() > 1);
                self.conditional = self.conditional.saturating_add(maybe);
                for command in &pipeline.commands {
                    self.command(command);
                }
                self.conditional = self.conditional.saturating_sub(maybe);
            }
            self.conditional = self.conditional.saturating_sub(u32::from(list.background));
            self.background = was_background;
            if let Some(job) = job {
                let rest = script.lists.get(at.saturating_add(1)..).unwrap_or_default();
                let span = list.pipelines.iter().flat_map(|pipeline| &pipeline.commands).map(|found| &found.span);
                let whole =
                    span.clone().map(|span| span.start).min().unwrap_or(0)..span.map(|s| s.end).max().unwrap_or(0);
                let is_waited_for = self.functions.is_empty() && jobs::is_waited_for(rest);
                self.end_job(job, !is_waited_for, &whole);
            }
        }
    }

    /// Remembers what was found before a job.
    pub(super) fn begin_job(&mut self) -> Job {
        let words = self.findings.words.as_mut().map(|words| words.begin_job());
        Job { causes: self.findings.causes.len(), words }
    }

    /// A job that outlives the line and does more than read may do it at any time.
    pub(super) fn end_job(&mut self, job: Job, outlives: bool, span: &Range<usize>) {
        if let (Some(words), Some(before)) = (&mut self.findings.words, job.words) {
            words.end_job(before, outlives);
        }
        let causes = &mut self.findings.causes;
        let is_full = causes.len() >= EFFECTS_MAX;
        let does_more = is_full || causes.iter().skip(job.causes).any(|found| found.effect > Effect::ReadOnly);
        if !outlives || !does_more {
            return;
        }
        self.findings.understood = false;
        let why = Cow::Borrowed("a job that may go on after the line is done");
        match causes.last_mut().filter(|_| is_full) {
            Some(last) => last.effect = last.effect.max(Effect::Unknown),
            None => {
                let (command, span) = (String::new(), span.clone());
                causes.push(Cause { effect: Effect::Unknown, command, span, why, blame: None });
            }
        }
    }

    /// A script that may not run, or runs elsewhere.
    pub(super) fn aside(&mut self, script: &'s Script) {
        self.conditional = self.conditional.saturating_add(1);
        self.script(script);
        self.conditional = self.conditional.saturating_sub(1);
    }

    fn command(&mut self, command: &'s Command) {
        if !self.pay(effort::of_command(command, self.values), &command.span) {
            return;
        }
        for redirect in &command.redirects {
            self.redirect(redirect);
        }
        match &command.kind {
            CommandKind::Simple { assignments, words } => self.simple(command, assignments, words),
            CommandKind::Group(script) => self.script(script),
            CommandKind::Subshell(script) => {
                let directory = self.directory.clone();
                self.aside(script);
                self.directory = directory;
            }
            CommandKind::Branches { scripts, words, binds, arithmetic } => {
                words.iter().for_each(|word| self.word(word));
                arithmetic.iter().for_each(|arithmetic| self.arithmetic(arithmetic));
                if let Some(binding) = binds {
                    binding.values.iter().flatten().for_each(|word| self.word(word));
                    self.sets(&binding.name, &command.span);
                }
                self.repeating = self.repeating.saturating_add(1);
                scripts.iter().for_each(|script| self.aside(script));
                self.repeating = self.repeating.saturating_sub(1);
            }
            CommandKind::Function { name, body } => {
                self.uncalled(name);
                let certain = self.conditional == 0 && self.calling.is_empty();
                self.functions.insert(name, Defined { body, certain, called: false });
            }
            CommandKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            CommandKind::Condition(tokens) => self.condition(tokens, &command.span),
            CommandKind::Coprocess { body, kept_in } => {
                self.sets(kept_in, &command.span);
                self.conditional = self.conditional.saturating_add(1);
                let job = self.begin_job();
                self.command(body);
                self.end_job(job, !jobs::is_simple(body), &command.span);
                self.conditional = self.conditional.saturating_sub(1);
            }
        }
    }

    fn simple(&mut self, command: &'s Command, assignments: &'s [Assignment], words: &'s [Word]) {
        for assignment in assignments {
            if let Some(subscript) = &assignment.subscript {
                self.subscript(&assignment.name, subscript);
            }
            assignment.values.iter().for_each(|word| self.word(word));
            if assignment.is_array && !self.values.is_keyed(&assignment.name) {
                assignment.values.iter().for_each(|word| self.element(word));
            }
            self.value_is_evaluated(assignment);
        }
        words.iter().for_each(|word| self.word(word));
        let names: Vec<String> = assignments.iter().map(|assignment| assignment.name.clone()).collect();
        if words.is_empty() {
            // Whether a value that is evaluated is a number was looked at above.
            let plain = |name: &&String| !environment::is_integer(name);
            names.iter().filter(plain).for_each(|name| self.sets(name, &command.span));
            return;
        }
        let Some(arguments) = reduce::arguments(words, self.values) else {
            self.collect_unknown(&command.span);
            return self.add(Effect::Unknown, "", &command.span, "too many words, or too long ones");
        };
        // One word with blanks in it is a file that nobody has, but also an option, or a program.
        if self.executor != Executor::Bash {
            let takes_program = |name: String| self.setting.commands.traits(&name).is(Fact::TakesProgram);
            let only_options = words.first().and_then(Word::text).is_some_and(|name| !takes_program(name));
            if words.iter().any(|word| reduce::falls_apart(word, self.values, only_options)) {
                self.add(Effect::Unknown, "", &command.span, "zsh does not split the value of a variable");
            }
        }
        let Some((first, rest)) = arguments.split_first() else { return };
        // The values of variables do not count for the command itself: `x=rm; $x y` is nobody's to read.
        let known = words.first().is_some_and(|word| word.text().is_some());
        let name = first.known_text().filter(|text| known && !first.has_glob && !text.is_empty());
        let Some(name) = name else {
            self.collect_unknown(&command.span);
            return self.add(Effect::Unknown, "", &first.span, "the command is not known before the line runs");
        };
        let run = Run {
            name,
            arguments: rest,
            span: command.span.clone(),
            redirects: &command.redirects,
            sets: &names,
            skips_functions: false,
        };
        self.run(&run);
    }

    /// Runs a command whose name is known.
    pub(super) fn run(&mut self, run: &Run<'_>) {
        self.nested(run, |walk| walk.run_here(run));
    }

    /// Counts a command that another one runs, and goes on if they are not too many or too deep.
    fn nested(&mut self, run: &Run<'_>, go: impl FnOnce(&mut Self)) {
        let fuel = self.findings.fuel.checked_sub(1);
        self.findings.ran_out |= fuel.is_none();
        let Some(fuel) = fuel.filter(|_| self.running < RUN_DEPTH_MAX) else {
            return self.add(Effect::Unknown, run.name, &run.span, "commands that run commands, too many or too deep");
        };
        self.findings.fuel = fuel;
        self.running = self.running.saturating_add(1);
        let outer = self.findings.words.as_mut().map(|words| words.enter(run));
        go(self);
        if let Some(outer) = outer {
            super::policy_words::leave(self, run, outer);
        }
        self.running = self.running.saturating_sub(1);
    }

    /// Lists a command of which not even the name is known.
    fn collect_unknown(&mut self, span: &Range<usize>) {
        if let Some(words) = &mut self.findings.words {
            words.add_unknown(span);
        }
    }

    fn run_here(&mut self, run: &Run<'_>) {
        if run.name.contains('/') {
            return match paths::system_program(run.name) {
                Some(name) => self.external(&run.renamed(&name, run.arguments)),
                None => self.add(Effect::Unknown, run.name, &run.span, "a program outside of the system's directories"),
            };
        }
        if !run.skips_functions && self.function(run) {
            return;
        }
        if super::builtins::run(self, run) {
            return;
        }
        self.external(run);
    }

    /// Calls a function of the line; false if the name means something else, or may.
    fn function(&mut self, run: &Run<'_>) -> bool {
        let Some((name, defined)) = self.functions.get_key_value(run.name).map(|(name, found)| (*name, *found)) else {
            return false;
        };
        if self.is_calling(defined.body) {
            self.add(Effect::Unknown, run.name, &run.span, "a function that calls itself");
            return true;
        }
        if let Some(found) = self.functions.get_mut(name) {
            found.called = true;
        }
        if let Some(set) = run.sets.iter().find(|name| !environment::is_allowed(name)) {
            let why = format!("sets `{}` for what the function runs", interlock_core::display(set));
            self.add_loose(run, why);
        }
        self.calling.push(defined.body);
        // A name says nothing of what a function does: its commands stand for themselves.
        let caller = self.findings.words.as_mut().and_then(|words| words.current.take());
        self.command(defined.body);
        if let Some(words) = &mut self.findings.words {
            words.current = caller;
        }
        self.calling.pop();
        defined.certain
    }

    fn is_calling(&self, body: &Command) -> bool {
        self.calling.iter().any(|called| core::ptr::eq(*called, body))
    }

    /// A function that was not called, and may be later: what it would do is in the line.
    fn uncalled(&mut self, name: &str) {
        let Some(defined) = self.functions.get(name).copied() else { return };
        if !defined.called && !self.is_calling(defined.body) {
            self.calling.push(defined.body);
            self.command(defined.body);
            self.calling.pop();
        }
    }

    /// Runs a program: whatever is in the environment reaches it.
    fn external(&mut self, run: &Run<'_>) {
        if let Some(set) = run.sets.iter().find(|name| !environment::is_allowed(name)) {
            let why = format!("sets `{}` for the program", interlock_core::display(set));
            self.add_loose(run, why);
        } else if let Some(dirty) = &self.dirty {
            let why = format!("`{}` was set before and reaches the program", interlock_core::display(dirty));
            self.add_loose(run, why);
        }
        super::programs::run(self, run);
    }

    /// Reads a text of which not everything is known: a command that destroys still does.
    pub(super) fn partly(&mut self, skeleton: &str, span: &Range<usize>) {
        let (kept, understood) = (self.findings.causes.len(), self.findings.understood);
        let collected = self.findings.words.as_deref().map(Collected::mark);
        self.text(skeleton, span, Executor::Bash);
        self.findings.understood = understood;
        if let (Some(words), Some(mark)) = (&mut self.findings.words, collected) {
            words.back_to(mark);
        }
        let mut at = 0usize;
        self.findings.causes.retain(|found| {
            let keep = at < kept || found.effect == Effect::Destructive;
            at = at.saturating_add(1);
            keep
        });
        let destroys = self.findings.causes.len() > kept;
        if let (Some(words), true) = (&mut self.findings.words, destroys) {
            words.attribute(Effect::Destructive);
        }
    }

    /// Runs what a wrapper was given: a program with its arguments.
    pub(super) fn program(&mut self, run: &Run<'_>, arguments: &[Argument]) {
        let Some((first, rest)) = arguments.split_first() else { return };
        let Some(name) = first.known_text().filter(|text| !text.is_empty()) else {
            return self.add(Effect::Unknown, run.name, &first.span, "the command is not known before the line runs");
        };
        if name.contains('/') {
            return self.run(&run.renamed(name, rest));
        }
        let inner = run.renamed(name, rest);
        self.nested(&inner, |walk| walk.external(&inner));
    }

    /// A function may no longer be what its name means.
    pub(super) fn forget_functions(&mut self) {
        self.functions.values_mut().for_each(|defined| defined.certain = false);
    }

    /// A variable gets a value.
    pub(super) fn sets(&mut self, name: &str, span: &Range<usize>) {
        if environment::is_evaluated(name) || environment::is_integer(name) {
            let why = format!("the shell evaluates `{}`", interlock_core::display(name));
            return self.add(Effect::Unknown, "", span, why);
        }
        if self.executor != Executor::Bash && environment::is_tied(name) {
            let why = format!("`{}` is a part of the environment in zsh", interlock_core::display(name));
            return self.add(Effect::Unknown, "", span, why);
        }
        if environment::is_exported(name) && !environment::is_allowed(name) {
            self.dirty.get_or_insert_with(|| name.to_owned());
        }
    }

    fn redirect(&mut self, redirect: &'s Redirect) {
        self.word(&redirect.target);
        if let Some(name) = &redirect.kept_in {
            self.sets(name, &redirect.span);
        }
        let span = &redirect.span;
        let target = reduce::argument(&redirect.target, self.values);
        if let Some(words) = &mut self.findings.words {
            words.redirect(redirect, &target);
        }
        let duplicates = |text: &str| {
            let digits = text.strip_suffix('-').unwrap_or(text);
            digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        match redirect.kind {
            RedirectKind::HereDocument { .. } | RedirectKind::HereString | RedirectKind::DuplicateInput => {}
            RedirectKind::Input => {
                let socket = |text: &String| paths::is_socket(&paths::normalise(text));
                if target.texts().iter().any(socket) || paths::is_socket(target.prefix()) {
                    self.add(Effect::Network, "", span, "opens a connection");
                }
            }
            RedirectKind::DuplicateOutput if target.known_text().is_some_and(duplicates) => {}
            RedirectKind::DuplicateOutput | RedirectKind::Output | RedirectKind::Both => {
                self.writes(&target, "", span);
            }
        }
    }

    /// Something is written where an argument says.
    pub(super) fn writes(&mut self, target: &Argument, command: &str, span: &Range<usize>) {
        if let Some(words) = &mut self.findings.words {
            words.written(target);
        }
        let directory = self.directory.clone();
        let judge = |text: &String| paths::target(text, directory.as_deref());
        let targets: Vec<Target> = target.texts().iter().map(judge).collect();
        let worst = targets.iter().copied().max_by_key(|target| target.effect().0);
        if target.has_glob && (target.prefix().starts_with('.') || target.prefix().contains("/.")) {
            return self.add(Effect::Unknown, command, span, "a pattern that may name a file which runs later");
        }
        let (effect, why) = match worst {
            Some(worst) => worst.effect(),
            None => {
                // What is known of it can tell already: `~/.bashrc$x`, `/dev/tcp/$host/80`, `$repository/.git/config`.
                let known = [target.prefix(), target.skeleton()];
                let found = known.map(|text| match paths::target(text, directory.as_deref()) {
                    Target::Stream | Target::File => (Effect::Write, "writes a file"),
                    worse @ (Target::Arms(_) | Target::Device | Target::Socket) => worse.effect(),
                });
                found.into_iter().max_by_key(|(effect, _)| *effect).unwrap_or((Effect::Write, "writes a file"))
            }
        };
        if effect > Effect::ReadOnly {
            self.add(effect, command, span, why);
        }
    }

    /// Whether this may be run more than once.
    pub(super) fn may_repeat(&self) -> bool {
        self.repeating > 0 || !self.calling.is_empty() || self.depth > 0
    }
}
