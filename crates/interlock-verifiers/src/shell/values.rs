//! What the variables of a line can hold, as far as the line says it.
//!
//! Without regard to order: a variable can hold whatever is assigned to it anywhere in the line. A name the line does
//! not assign has a value nobody here knows.

use std::collections::{BTreeMap, BTreeSet};

use super::braces;
use super::reduce::may_become_option;
use super::syntax::{Arithmetic, Assignment, Command, CommandKind, ConditionToken, Parameter, Part, Script, Word};

/// The most values that are remembered of one variable.
const VALUES_MAX: usize = 16;
/// The most bytes of all values of one variable.
const VALUES_BYTES_MAX: usize = 4_096;
/// What a variable takes beside its name and its values, in bytes.
const VARIABLE_BYTES: usize = 64;
/// The most texts that are read which the line evaluates.
const TEXTS_MAX: u32 = 16;
/// How often values are handed on from variable to variable.
const ROUNDS_MAX: usize = 8;

/// The values of all variables a line assigns.
#[derive(Debug, Default, Clone)]
pub(super) struct Values {
    known: BTreeMap<String, Value>,
    /// How much all of this is, in bytes.
    size: usize,
    /// How many texts were read that the line evaluates.
    texts: u32,
    /// Which variable got the value of which.
    copies: BTreeSet<(String, String)>,
    /// The functions of the line.
    functions: BTreeSet<String>,
    /// Arrays with texts as keys, whose subscripts are no expressions.
    keyed: BTreeSet<String>,
    /// Arrays of both kinds.
    arrays: BTreeSet<String>,
    /// There is a quoted text in the line that would run something if it were expanded once more.
    pub(super) armed_text: bool,
}

/// What a variable can hold.
#[derive(Debug, Default, Clone)]
pub(super) struct Value {
    /// These texts.
    pub(super) texts: Vec<String>,
    /// Anything.
    pub(super) any: bool,
    /// Names of files.
    pub(super) files: bool,
    /// Those of these patterns; nothing if they are too many to remember.
    pub(super) patterns: Option<Vec<String>>,
    /// Whole numbers.
    pub(super) numbers: bool,
    /// The value of a variable that the line does not assign.
    pub(super) is_inherited: bool,
}

impl Value {
    /// Whether the texts are all there is.
    pub(super) fn is_known(&self) -> bool {
        !self.any && !self.files && !self.numbers && !self.is_inherited
    }

    /// Of more texts than are remembered, or longer ones, it is known that it can be anything.
    fn limit(&mut self) {
        let bytes = sum(self.texts.iter().map(String::len));
        if self.texts.len() > VALUES_MAX || bytes > VALUES_BYTES_MAX {
            self.any = true;
            self.texts.pop();
        }
    }

    /// Adds names of files.
    fn add_files(&mut self, patterns: Vec<String>) {
        let mut all = if self.files { self.patterns.take() } else { Some(Vec::new()) };
        self.files = true;
        if let Some(all) = &mut all {
            all.extend(patterns);
            all.sort();
            all.dedup();
        }
        self.patterns = all.filter(|all| all.len() <= VALUES_MAX);
    }

    /// Adds what another variable can hold; says whether that was new.
    fn merge(&mut self, other: Value) -> bool {
        let known = |value: &Value| value.patterns.as_ref().map(Vec::len);
        let before = (self.texts.len(), self.any, self.files, self.numbers, self.is_inherited, known(self));
        self.any |= other.any;
        for text in other.texts {
            if !self.texts.contains(&text) {
                self.texts.push(text);
                self.limit();
            }
        }
        if other.files {
            self.add_files(other.patterns.clone().unwrap_or_default());
            if other.patterns.is_none() {
                self.patterns = None;
            }
        }
        self.numbers |= other.numbers;
        self.is_inherited |= other.is_inherited;
        before != (self.texts.len(), self.any, self.files, self.numbers, self.is_inherited, known(self))
    }
}

/// Names whose values begin with a letter, a digit or a slash.
const PLAIN: [&str; 17] = [
    "PWD",
    "HOME",
    "OLDPWD",
    "#",
    "?",
    "$",
    "!",
    "LINENO",
    "RANDOM",
    "SECONDS",
    "UID",
    "EUID",
    "PPID",
    "BASHPID",
    "HOSTNAME",
    "USER",
    "EPOCHSECONDS",
];

/// Builtins whose arguments name variables.
const SETTERS: [&str; 8] = ["read", "mapfile", "readarray", "getopts", "printf", "let", "unset", "wait"];

fn sum(amounts: impl Iterator<Item = usize>) -> usize {
    amounts.fold(0, usize::saturating_add)
}

/// Whether a word becomes a whole number, whatever the values are.
fn is_number(word: &Word) -> bool {
    !word.parts.is_empty()
        && word.parts.iter().all(|part| match part {
            Part::Arithmetic(_) => true,
            Part::Command { script, .. } => super::reduce::prints_a_number(script),
            Part::Parameter(parameter) => parameter.counts,
            Part::Text { text, .. } => text.bytes().all(|byte| byte.is_ascii_digit()),
            Part::Process(_) => false,
        })
}

impl Values {
    /// What is known already, and all assignments of a script.
    pub(super) fn with(mut self, script: &Script) -> Values {
        self.functions(script);
        self.script(script);
        self.copy();
        // Words fall apart elsewhere than at blanks: nobody knows into what.
        if self.known.contains_key("IFS") {
            self.known.values_mut().for_each(|value| value.any = true);
        }
        let of = |names: &BTreeSet<String>| sum(names.iter().map(|name| name.len().saturating_add(VARIABLE_BYTES)));
        let variables = self.known.iter().map(|(name, value)| {
            let texts = sum(value.texts.iter().map(String::len));
            texts.saturating_add(name.len()).saturating_add(VARIABLE_BYTES)
        });
        self.size =
            sum([&self.functions, &self.keyed, &self.arrays].into_iter().map(of)).saturating_add(sum(variables));
        self
    }

    /// How much it is to copy, in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// What the positional parameters of a shell can hold that is given these arguments.
    pub(super) fn of_positional(given: &[super::reduce::Argument]) -> Values {
        let mut values = Values::default();
        for argument in given {
            match argument.known_text() {
                Some(text) => values.note("@", |value| value.texts.push(text.to_owned())),
                None => values.note("@", |value| value.any = true),
            }
        }
        values
    }

    /// Hands values on from variable to variable, until nothing changes or it takes too long.
    fn copy(&mut self) {
        let copies = core::mem::take(&mut self.copies);
        for round in 0..=ROUNDS_MAX {
            let mut changed = false;
            for (to, from) in &copies {
                let mut value = self.known.get(from).cloned().unwrap_or_default();
                value.is_inherited |= !self.known.contains_key(from);
                value.any |= round == ROUNDS_MAX;
                let target = self.known.entry(to.clone()).or_default();
                changed |= target.merge(value);
            }
            if !changed {
                return;
            }
        }
    }

    /// Whether the subscripts of an array are texts.
    pub(super) fn is_keyed(&self, name: &str) -> bool {
        self.keyed.contains(name)
    }

    /// Whether a variable is an array.
    pub(super) fn is_array(&self, name: &str) -> bool {
        self.arrays.contains(name) || self.keyed.contains(name)
    }

    /// Whether a parameter without quotes can become several words. Names of files and numbers stay one.
    pub(super) fn splits(&self, parameter: &Parameter) -> bool {
        if parameter.counts {
            return false;
        }
        if parameter.is_list || matches!(parameter.name.as_str(), "@" | "*") {
            return true;
        }
        if parameter.quoted {
            return false;
        }
        let odd = |text: &String| text.contains([' ', '\t', '\n', '*', '?', '[']);
        match self.known.get(&parameter.name).filter(|_| parameter.plain) {
            Some(value) => {
                value.any || value.is_inherited || value.texts.iter().any(odd) || self.known.contains_key("IFS")
            }
            None => !matches!(parameter.name.as_str(), "#" | "?" | "$" | "!" | "UID" | "EUID" | "LINENO" | "SECONDS"),
        }
    }

    /// Whether the value of a variable could run something if it were evaluated as an expression. The value of one
    /// that the line does not assign is the caller's, not the line's.
    pub(super) fn is_armed(&self, name: &str) -> bool {
        let positional = name.bytes().all(|byte| byte.is_ascii_digit()) || matches!(name, "@" | "*");
        let value = self.known.get(if positional { "@" } else { name });
        let Some(value) = value.or_else(|| self.known.get(name)) else { return false };
        let plain = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit() || b" +-*/%()<>=".contains(&byte));
        value.any || value.files || !value.texts.iter().all(plain)
    }

    /// All names of functions, at any depth.
    fn functions(&mut self, script: &Script) {
        for command in script.lists.iter().flat_map(|list| &list.pipelines).flat_map(|pipeline| &pipeline.commands) {
            self.functions_of(command);
        }
    }

    fn functions_of(&mut self, command: &Command) {
        match &command.kind {
            CommandKind::Function { name, body } => {
                self.functions.insert(name.clone());
                self.functions_of(body);
            }
            CommandKind::Group(script) | CommandKind::Subshell(script) => self.functions(script),
            CommandKind::Branches { scripts, .. } => scripts.iter().for_each(|script| self.functions(script)),
            CommandKind::Coprocess { body, .. } => self.functions_of(body),
            CommandKind::Simple { .. } | CommandKind::Arithmetic(_) | CommandKind::Condition(_) => {}
        }
    }

    /// What a variable can hold; nothing if the line does not say.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.known.get(name)
    }

    /// Whether the value of a parameter could begin with a dash, in any of the words it becomes.
    pub(super) fn may_be_option(&self, parameter: &Parameter) -> bool {
        if parameter.counts {
            return false;
        }
        if !parameter.plain {
            return true;
        }
        match self.known.get(&parameter.name) {
            None => !PLAIN.contains(&parameter.name.as_str()),
            Some(value) => {
                let is_option = |word: &str| word.starts_with('-') || !parameter.quoted && may_become_option(word);
                let dashed = |text: &String| text.split_ascii_whitespace().any(is_option);
                let named = |patterns: &Vec<String>| patterns.iter().any(|pattern| may_become_option(pattern));
                let files = || value.files && value.patterns.as_ref().is_none_or(named);
                value.any || value.is_inherited || value.texts.iter().any(dashed) || files()
            }
        }
    }

    fn note(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let value = self.known.entry(name.to_owned()).or_default();
        change(value);
        value.limit();
    }

    fn script(&mut self, script: &Script) {
        for command in script.lists.iter().flat_map(|list| &list.pipelines).flat_map(|pipeline| &pipeline.commands) {
            self.command(command);
        }
    }

    fn command(&mut self, command: &Command) {
        for redirect in &command.redirects {
            self.word(&redirect.target);
        }
        match &command.kind {
            CommandKind::Simple { assignments, words } => {
                // What a line is split at while it is read is not what words are split at.
                let first = words.first().and_then(Word::text);
                let reads = first.is_some_and(|name| {
                    matches!(name.as_str(), "read" | "mapfile" | "readarray") && !self.functions.contains(&name)
                });
                let counts = |assignment: &&Assignment| !reads || assignment.name != "IFS";
                assignments.iter().filter(counts).for_each(|assignment| self.assignment(assignment));
                words.iter().for_each(|word| self.word(word));
                self.setter(words);
                self.declared(assignments, words);
                // What a function or `set` is given are the positional parameters.
                let called = words.first().and_then(Word::text);
                if called.is_some_and(|name| name == "set" || name == "shift" || self.functions.contains(&name)) {
                    words.iter().skip(1).for_each(|word| self.value("@", word));
                }
            }
            CommandKind::Group(script) | CommandKind::Subshell(script) => self.script(script),
            CommandKind::Branches { scripts, words, binds, arithmetic } => {
                words.iter().for_each(|word| self.word(word));
                arithmetic.iter().for_each(|arithmetic| self.arithmetic(arithmetic));
                if let Some(binding) = binds {
                    self.note("REPLY", |value| value.any = true);
                    match &binding.values {
                        Some(values) => values.iter().for_each(|word| self.value(&binding.name, word)),
                        None => self.note(&binding.name, |value| value.any = true),
                    }
                    binding.values.iter().flatten().for_each(|word| self.word(word));
                }
                scripts.iter().for_each(|script| self.script(script));
            }
            CommandKind::Function { body, .. } => self.command(body),
            CommandKind::Coprocess { body, .. } => self.command(body),
            CommandKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            CommandKind::Condition(tokens) => {
                for token in tokens {
                    match token {
                        ConditionToken::Word(word) => {
                            if word.bare() == Some("=~") {
                                self.note("BASH_REMATCH", |value| value.any = true);
                            }
                            self.word(word);
                        }
                        ConditionToken::Operator(_) => {}
                    }
                }
            }
        }
    }

    /// Builtins that give variables new values.
    fn setter(&mut self, words: &[Word]) {
        let Some(name) = words.first().and_then(Word::text) else { return };
        if name == "eval" || name == "trap" {
            // What they evaluate assigns in this shell.
            let texts: Vec<String> = words.iter().skip(1).filter_map(Word::text).collect();
            let text = if name == "eval" { texts.join(" ") } else { texts.first().cloned().unwrap_or_default() };
            self.texts = self.texts.saturating_add(1);
            if self.texts <= TEXTS_MAX
                && let Ok(parsed) = super::parse::parse(&text, Some(0..0), 0)
            {
                self.functions(&parsed.script);
                self.script(&parsed.script);
            }
        }
        let name = if name == "builtin" || name == "command" {
            words.get(1).and_then(Word::text).unwrap_or_default()
        } else {
            name
        };
        if !SETTERS.contains(&name.as_str()) {
            return;
        }
        let setter = name;
        for word in words.iter().skip(1) {
            if let Some(text) = word.text() {
                // `read -aNAME`, `printf -vNAME`, `wait -pNAME`.
                let attached = match setter.as_str() {
                    "read" => 'a',
                    "printf" => 'v',
                    _ => 'p',
                };
                let option = text.strip_prefix('-').and_then(|option| option.split_once(attached));
                let text = option.map_or(text.as_str(), |(_, name)| name);
                let name = text.split(['=', '[', '+']).next().unwrap_or("").to_owned();
                if setter == "let" {
                    self.note(&name, |value| value.numbers = true);
                } else {
                    self.note(&name, |value| value.any = true);
                }
            }
        }
        let name = setter;
        if name == "read" {
            self.note("REPLY", |value| value.any = true);
        }
        if name == "getopts" {
            self.note("OPTARG", |value| value.any = true);
        }
        if matches!(name.as_str(), "mapfile" | "readarray") {
            self.note("MAPFILE", |value| value.any = true);
        }
    }

    /// What `declare` says of the variables it names.
    fn declared(&mut self, assignments: &[Assignment], words: &[Word]) {
        let texts: Vec<String> = words.iter().filter_map(Word::text).collect();
        if !texts.iter().any(|text| matches!(text.as_str(), "declare" | "typeset" | "local" | "readonly" | "export")) {
            return;
        }
        let flag = |letter: char| texts.iter().any(|text| text.starts_with('-') && text.contains(letter));
        // Another name for it, or it itself.
        if texts.iter().any(|text| text.split('=').any(|part| part == "IFS")) {
            self.note("IFS", |value| value.any = true);
        }
        let (keyed, array) = (flag('A'), flag('a'));
        let names = assignments.iter().map(|assignment| assignment.name.clone());
        let names: Vec<String> =
            names.chain(texts.iter().filter(|text| super::parse::is_name(text)).cloned()).collect();
        for name in names {
            if keyed {
                self.keyed.insert(name);
            } else if array {
                self.arrays.insert(name);
            }
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        if assignment.is_array || assignment.subscript.is_some() {
            self.arrays.insert(assignment.name.clone());
        }
        if let Some(subscript) = &assignment.subscript {
            self.arithmetic(subscript);
        }
        if assignment.values.is_empty() {
            self.note(&assignment.name, |value| value.texts.push(String::new()));
        }
        for word in &assignment.values {
            self.word(word);
            if assignment.appends && !assignment.is_array {
                self.note(&assignment.name, |value| value.any = true);
            } else {
                self.value(&assignment.name, word);
            }
        }
    }

    /// One more value of a variable.
    fn value(&mut self, name: &str, word: &Word) {
        // Of what can be anything nothing more can be learned.
        if self.known.get(name).is_some_and(|value| value.any) {
            return;
        }
        let Some(words) = braces::expand(word) else {
            self.note(name, |value| value.any = true);
            return;
        };
        for word in words.iter() {
            let has_glob = super::reduce::has_glob(word);
            match (word.text(), has_glob) {
                (Some(text), false) => self.note(name, |value| value.texts.push(text)),
                (Some(text), true) if !text.starts_with('-') => self.note(name, |value| value.add_files(vec![text])),
                (None, _)
                    if let [Part::Parameter(source)] = word.parts.as_slice()
                        && (source.plain || source.has_default)
                        && !source.indirect =>
                {
                    let positional = source.name.bytes().all(|byte| byte.is_ascii_digit());
                    let from = if positional { "@".to_owned() } else { source.name.clone() };
                    self.copies.insert((name.to_owned(), from));
                    match source.rest.as_ref().map(Word::text) {
                        None => self.note(name, |_| {}),
                        Some(Some(text)) => self.note(name, |value| value.texts.push(text)),
                        Some(None) => self.note(name, |value| value.any = true),
                    }
                }
                (None, _) if is_number(word) => self.note(name, |value| value.numbers = true),
                (Some(_) | None, _) => self.note(name, |value| value.any = true),
            }
        }
    }

    fn word(&mut self, word: &Word) {
        word.parts.iter().for_each(|part| self.part(part));
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Text { text, .. } => self.armed_text |= text.contains("$(") || text.contains('`'),
            Part::Parameter(parameter) => {
                if let Some(rest) = &parameter.rest {
                    self.word(rest);
                }
                for arithmetic in parameter.subscript.iter().chain(&parameter.offsets) {
                    self.arithmetic(arithmetic);
                }
                if parameter.assigns {
                    self.note(&parameter.name, |value| value.any = true);
                }
            }
            Part::Command { script, .. } | Part::Process(script) => self.script(script),
            Part::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
        }
    }

    fn arithmetic(&mut self, arithmetic: &Arithmetic) {
        arithmetic.parts.iter().for_each(|part| self.part(part));
        if arithmetic.assigns {
            // A number, so no option.
            arithmetic.names.iter().for_each(|name| self.note(name, |value| value.numbers = true));
        }
    }
}
