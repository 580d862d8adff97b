//! The effects of a script: every command on every branch, and whatever runs while words are expanded.

use core::ops::Range;
use std::borrow::Cow;
use std::collections::BTreeMap;

use super::parse::{Parser, parse};
use super::paths::{self, Target};
use super::reduce::{self, Argument};
use super::syntax::{
    Arithmetic, Assignment, Command, CommandKind, ConditionToken, Parameter, Part, Redirect, RedirectKind, Script, Word,
};
use super::values::Values;
use super::{Analysis, Effect, Executor, Label, Setting, TEXT_BYTES_MAX, environment};

/// How deep texts may stand in texts: `bash -c "bash -c …"`.
const TEXT_DEPTH_MAX: u32 = 6;
/// The most commands that are looked at, those of functions at each call.
const FUEL: u32 = 20_000;
/// How deep commands may run commands: `env nice timeout …`, functions that call functions.
const RUN_DEPTH_MAX: u32 = 40;
/// The most effects that are listed.
const EFFECTS_MAX: usize = 2_000;

/// Judges a line.
pub(super) fn classify(text: &str, setting: &Setting) -> Analysis {
    let mut findings = Findings { effects: Vec::new(), assumes: Vec::new(), fuel: FUEL };
    let place = Place { origin: None, executor: setting.executor, depth: 0, dirty: None, values: Values::default() };
    examine(text, place, setting, &mut findings);
    let Findings { mut effects, assumes, .. } = findings;
    effects.sort_by(|left, right| {
        (left.span.start, left.span.end, left.effect).cmp(&(right.span.start, right.span.end, right.effect))
    });
    effects.dedup();
    let label = effects.iter().map(|found| found.effect).max().unwrap_or(Label::ReadOnly);
    Analysis { label, effects, assumes }
}

/// What was found so far, in all texts.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) effects: Vec<Effect>,
    assumes: Vec<&'static str>,
    fuel: u32,
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
        findings.effects.push(Effect {
            effect: Label::Unknown,
            command: String::new(),
            span,
            why: Cow::Owned(why.to_owned()),
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
    let values = values.with(&parsed.script);
    let mut before = dirty;
    loop {
        let kept = findings.effects.len();
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
        };
        walk.script(&parsed.script);
        let defined: Vec<&str> = walk.functions.keys().copied().collect();
        defined.into_iter().for_each(|name| walk.uncalled(name));
        let after = walk.dirty.take();
        // What a later round of a loop exports reaches the commands before it.
        if after == before || before.is_some() {
            return;
        }
        before = after;
        findings.effects.truncate(kept);
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
    pub(super) fn add(&mut self, effect: Label, command: &str, span: &Range<usize>, why: impl Into<Cow<'static, str>>) {
        if self.findings.effects.len() >= EFFECTS_MAX {
            // Too many to list; the strictest still counts.
            let why = Cow::Borrowed("more effects than are listed");
            if let Some(last) = self.findings.effects.last_mut() {
                last.effect = last.effect.max(effect);
                last.why = why;
            }
            return;
        }
        let command = command.to_owned();
        self.findings.effects.push(Effect { effect, command, span: span.clone(), why: why.into() });
    }

    /// Says what is taken for granted.
    pub(super) fn assume(&mut self, what: &'static str) {
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
        self.text_with(text, span, self.executor, self.values.clone());
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
        for list in &script.lists {
            let was_background = self.background;
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
        }
    }

    /// A script that may not run, or runs elsewhere.
    fn aside(&mut self, script: &'s Script) {
        self.conditional = self.conditional.saturating_add(1);
        self.script(script);
        self.conditional = self.conditional.saturating_sub(1);
    }

    fn command(&mut self, command: &'s Command) {
        match self.findings.fuel.checked_sub(1) {
            Some(fuel) => self.findings.fuel = fuel,
            None => return self.add(Label::Unknown, "", &command.span, "too many commands"),
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
                scripts.iter().for_each(|script| self.aside(script));
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
                self.command(body);
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
            return self.add(Label::Unknown, "", &command.span, "braces that make too many words");
        };
        let Some((first, rest)) = arguments.split_first() else { return };
        // The values of variables do not count for the command itself: `x=rm; $x y` is nobody's to read.
        let known = words.first().is_some_and(|word| word.text().is_some());
        let name = first.known_text().filter(|text| known && !first.has_glob && !text.is_empty());
        let Some(name) = name else {
            return self.add(Label::Unknown, "", &first.span, "the command is not known before the line runs");
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
        let Some(fuel) = fuel.filter(|_| self.running < RUN_DEPTH_MAX) else {
            return self.add(Label::Unknown, run.name, &run.span, "commands that run commands, too many or too deep");
        };
        self.findings.fuel = fuel;
        self.running = self.running.saturating_add(1);
        go(self);
        self.running = self.running.saturating_sub(1);
    }

    fn run_here(&mut self, run: &Run<'_>) {
        if run.name.contains('/') {
            return match paths::system_program(run.name) {
                Some(name) => self.external(&run.renamed(&name, run.arguments)),
                None => self.add(Label::Unknown, run.name, &run.span, "a program outside of the system's directories"),
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
            self.add(Label::Unknown, run.name, &run.span, "a function that calls itself");
            return true;
        }
        if let Some(found) = self.functions.get_mut(name) {
            found.called = true;
        }
        if let Some(set) = run.sets.iter().find(|name| !environment::is_allowed(name)) {
            let why = format!("sets `{}` for what the function runs", interlock_core::display(set));
            self.add(Label::Unknown, run.name, &run.span, why);
        }
        self.calling.push(defined.body);
        self.command(defined.body);
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
            self.add(Label::Unknown, run.name, &run.span, why);
        } else if let Some(dirty) = &self.dirty {
            let why = format!("`{}` was set before and reaches the program", interlock_core::display(dirty));
            self.add(Label::Unknown, run.name, &run.span, why);
        }
        super::special::run(self, run);
    }

    /// Reads a text of which not everything is known: a command that destroys still does.
    pub(super) fn partly(&mut self, skeleton: &str, span: &Range<usize>) {
        let kept = self.findings.effects.len();
        self.text(skeleton, span, Executor::Bash);
        let mut at = 0usize;
        self.findings.effects.retain(|found| {
            let keep = at < kept || found.effect == Label::Destructive;
            at = at.saturating_add(1);
            keep
        });
    }

    /// Runs what a wrapper was given: a program with its arguments.
    pub(super) fn program(&mut self, run: &Run<'_>, arguments: &[Argument]) {
        let Some((first, rest)) = arguments.split_first() else { return };
        let Some(name) = first.known_text().filter(|text| !text.is_empty()) else {
            return self.add(Label::Unknown, run.name, &first.span, "the command is not known before the line runs");
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
            return self.add(Label::Unknown, "", span, why);
        }
        if environment::is_exported(name) && !environment::is_allowed(name) {
            self.dirty.get_or_insert_with(|| name.to_owned());
        }
    }

    /// An assignment whose value is an expression, or text that is expanded later.
    fn value_is_evaluated(&mut self, assignment: &Assignment) {
        let is_number = |word: &Word| {
            let text = word.text();
            text.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let harmless = environment::is_integer(&assignment.name) && assignment.values.iter().all(is_number);
        if environment::is_evaluated(&assignment.name) || environment::is_integer(&assignment.name) && !harmless {
            let why = format!("the shell evaluates `{}`", interlock_core::display(&assignment.name));
            self.add(Label::Unknown, "", &assignment.span, why);
        }
    }

    /// The subscript of an array: an expression, unless the array has texts as keys.
    fn subscript(&mut self, name: &str, subscript: &'s Arithmetic) {
        if self.values.is_keyed(name) {
            subscript.parts.iter().for_each(|part| self.part(part, &subscript.span));
        } else {
            self.arithmetic(subscript);
        }
    }

    /// An element of `name=( … )`: `[subscript]=value` has an expression in front.
    fn element(&mut self, word: &Word) {
        let text = reduce::argument(word, self.values);
        let Some(rest) = text.prefix().strip_prefix('[') else { return };
        match rest.split_once("]=") {
            Some((subscript, _)) => self.expression_text(subscript, "", &word.span),
            None => {
                let armed = word.parts.iter().any(|part| match part {
                    Part::Parameter(parameter) => self.values.is_armed(&parameter.name),
                    Part::Command { script, .. } => !reduce::prints_a_number(script),
                    Part::Text { .. } | Part::Arithmetic(_) | Part::Process(_) => false,
                });
                if armed {
                    self.add(Label::Unknown, "", &word.span, "a value is evaluated as an expression");
                }
            }
        }
    }

    fn redirect(&mut self, redirect: &'s Redirect) {
        self.word(&redirect.target);
        if let Some(name) = &redirect.kept_in {
            self.sets(name, &redirect.span);
        }
        let span = &redirect.span;
        let target = reduce::argument(&redirect.target, self.values);
        let duplicates = |text: &str| {
            let digits = text.strip_suffix('-').unwrap_or(text);
            digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        match redirect.kind {
            RedirectKind::HereDocument { .. } | RedirectKind::HereString | RedirectKind::DuplicateInput => {}
            RedirectKind::Input => {
                let socket = |text: &String| paths::is_socket(&paths::normalise(text));
                if target.texts().iter().any(socket) || paths::is_socket(target.prefix()) {
                    self.add(Label::Network, "", span, "opens a connection");
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
        let directory = self.directory.clone();
        let judge = |text: &String| paths::target(text, directory.as_deref());
        let targets: Vec<Target> = target.texts().iter().map(judge).collect();
        let worst = targets.iter().copied().max_by_key(|target| target.effect().0);
        if target.has_glob && (target.prefix().starts_with('.') || target.prefix().contains("/.")) {
            return self.add(Label::Unknown, command, span, "a pattern that may name a file which runs later");
        }
        let (effect, why) = match worst {
            Some(worst) => worst.effect(),
            None => {
                // What is known of it can tell already: `~/.bashrc$x`, `/dev/tcp/$host/80`, `$repository/.git/config`.
                let known = [target.prefix(), target.skeleton()];
                let found = known.map(|text| match paths::target(text, directory.as_deref()) {
                    Target::Stream | Target::File => (Label::Write, "writes a file"),
                    worse @ (Target::Arms(_) | Target::Device | Target::Socket) => worse.effect(),
                });
                found.into_iter().max_by_key(|(effect, _)| *effect).unwrap_or((Label::Write, "writes a file"))
            }
        };
        if effect > Label::ReadOnly {
            self.add(effect, command, span, why);
        }
    }

    /// Whatever runs while a word is expanded.
    fn word(&mut self, word: &'s Word) {
        word.parts.iter().for_each(|part| self.part(part, &word.span));
    }

    fn part(&mut self, part: &'s Part, span: &Range<usize>) {
        match part {
            Part::Text { .. } => {}
            Part::Parameter(parameter) => self.parameter(parameter, span),
            Part::Command { script, .. } | Part::Process(script) => {
                let directory = self.directory.clone();
                self.aside(script);
                self.directory = directory;
            }
            Part::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
        }
    }

    fn parameter(&mut self, parameter: &'s Parameter, span: &Range<usize>) {
        if parameter.evaluated {
            self.add(Label::Unknown, "", span, "a value is expanded once more");
        }
        if parameter.indirect && self.names_anything(&parameter.name) {
            self.add(Label::Unknown, "", span, "a value names what is expanded");
        }
        if let Some(rest) = &parameter.rest {
            self.word(rest);
        }
        if let Some(subscript) = &parameter.subscript {
            self.subscript(&parameter.name, subscript);
        }
        if let Some(offsets) = &parameter.offsets {
            self.arithmetic(offsets);
        }
        if parameter.assigns {
            self.sets(&parameter.name, span);
        }
    }

    /// An expression: what runs in it, and whether the values it names are expressions that run something.
    pub(super) fn arithmetic(&mut self, arithmetic: &'s Arithmetic) {
        arithmetic.parts.iter().for_each(|part| self.part(part, &arithmetic.span));
        self.expression(arithmetic);
    }

    fn expression(&mut self, arithmetic: &Arithmetic) {
        let span = &arithmetic.span;
        if arithmetic.odd {
            return self.add(Label::Unknown, "", span, "an expression that is not plain");
        }
        let parameters = arithmetic.parts.iter().filter_map(|part| match part {
            Part::Parameter(parameter) if !parameter.counts => Some(parameter.name.as_str()),
            Part::Parameter(_) | Part::Text { .. } | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => {
                None
            }
        });
        let names: Vec<&str> = arithmetic.names.iter().map(String::as_str).chain(parameters).collect();
        if names.iter().any(|name| self.values.is_armed(name)) {
            return self.add(Label::Unknown, "", span, "a value is evaluated as an expression");
        }
        if arithmetic.parts.iter().any(prints_anything) {
            return self.add(Label::Unknown, "", span, "output is evaluated as an expression");
        }
        if arithmetic.assigns {
            names.iter().for_each(|name| self.sets(name, span));
        }
    }

    /// Whether the value of a variable could be more than the name of another.
    fn names_anything(&self, name: &str) -> bool {
        let positional = name.bytes().all(|byte| byte.is_ascii_digit());
        let value = self.values.get(if positional { "@" } else { name });
        value.is_some_and(|value| {
            value.any || value.files || !value.texts.iter().all(|text| super::parse::is_name(text))
        })
    }

    /// A variable named in a text: its subscript is an expression.
    pub(super) fn variable_text(&mut self, text: &str, command: &str, span: &Range<usize>) {
        let name = text.split('[').next().unwrap_or("");
        let subscript = text.get(name.len()..).unwrap_or("");
        let inner = subscript.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_name = super::parse::is_name(name) || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        match inner {
            None if is_name && subscript.is_empty() => {}
            Some("@" | "*") if is_name => {}
            Some(inner) if is_name && !self.values.is_keyed(name) => self.expression_text(inner, command, span),
            Some(_) | None => self.add(Label::Unknown, command, span, "text that is evaluated a second time"),
        }
    }

    /// An expression in a text that is known.
    pub(super) fn expression_text(&mut self, text: &str, command: &str, span: &Range<usize>) {
        let closed = format!("{text}))");
        let mut parser = Parser::new(&closed, Some(span.clone()), 0);
        match parser.arithmetic("))") {
            // The shell expanded the word already; what is still an expansion is evaluated a second time.
            Ok(found) if found.parts.is_empty() && parser.cursor.peek().is_none() => self.expression(&found),
            Ok(_) | Err(_) => self.add(Label::Unknown, command, span, "text that is evaluated a second time"),
        }
    }

    fn condition(&mut self, tokens: &'s [ConditionToken], span: &Range<usize>) {
        let words: Vec<Option<&'s Word>> = tokens
            .iter()
            .map(|token| match token {
                ConditionToken::Word(word) => Some(word),
                ConditionToken::Operator(_) => None,
            })
            .collect();
        words.iter().flatten().for_each(|word| self.word(word));
        for (at, word) in words.iter().enumerate() {
            let Some(sign) = word.and_then(Word::bare) else { continue };
            let before = at.checked_sub(1).and_then(|before| words.get(before)).copied().flatten();
            let after = words.get(at.saturating_add(1)).copied().flatten();
            match sign {
                "-v" | "-R" => self.names_variable(after, span),
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                    for operand in [before, after].into_iter().flatten() {
                        self.number_operand(operand, span);
                    }
                }
                _ => {}
            }
        }
    }

    /// An operand that bash evaluates as an expression.
    fn number_operand(&mut self, word: &Word, span: &Range<usize>) {
        match word.text() {
            Some(text) => self.expression_text(&text, "[[", span),
            None => {
                let parameters = word.parts.iter().filter_map(|part| match part {
                    Part::Parameter(parameter) => Some(parameter),
                    Part::Text { .. } | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => None,
                });
                let literal = word.parts.iter().any(|part| match part {
                    Part::Text { text, .. } => text.contains(['[', '$', '`']),
                    Part::Parameter(_) | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => false,
                });
                let armed =
                    parameters.into_iter().any(|parameter| !parameter.counts && self.values.is_armed(&parameter.name))
                        || word.parts.iter().any(prints_anything);
                if armed || literal {
                    self.add(Label::Unknown, "[[", span, "a value is evaluated as an expression");
                }
            }
        }
    }

    /// The operand of `-v`: the name of a variable, whose subscript is evaluated.
    fn names_variable(&mut self, word: Option<&Word>, span: &Range<usize>) {
        match word.and_then(Word::text) {
            Some(text) => self.variable_text(&text, "[[", span),
            None => self.add(Label::Unknown, "[[", span, "text that is evaluated a second time"),
        }
    }
}

/// Output that takes part in an expression, and is not known to be a number.
fn prints_anything(part: &Part) -> bool {
    match part {
        Part::Command { script, .. } => !reduce::prints_a_number(script),
        Part::Text { .. } | Part::Parameter(_) | Part::Arithmetic(_) | Part::Process(_) => false,
    }
}
