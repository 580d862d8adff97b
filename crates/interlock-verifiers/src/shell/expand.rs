//! Whatever runs while words are expanded and expressions are evaluated.

use core::ops::Range;

use super::parse::Parser;
use super::reduce;
use super::syntax::{Arithmetic, Assignment, ConditionToken, Parameter, Part, Script, Word};
use super::walk::Walk;
use super::{Effect, environment, jobs};

impl<'s> Walk<'s, '_> {
    /// An assignment whose value is an expression, or text that is expanded later.
    pub(super) fn value_is_evaluated(&mut self, assignment: &Assignment) {
        let is_number = |word: &Word| {
            let text = word.text();
            text.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let harmless = environment::is_integer(&assignment.name) && assignment.values.iter().all(is_number);
        if environment::is_evaluated(&assignment.name) || environment::is_integer(&assignment.name) && !harmless {
            let why = format!("the shell evaluates `{}`", interlock_core::display(&assignment.name));
            self.add(Effect::Unknown, "", &assignment.span, why);
        }
    }

    /// The subscript of an array: an expression, unless the array has texts as keys.
    pub(super) fn subscript(&mut self, name: &str, subscript: &'s Arithmetic) {
        if self.values.is_keyed(name) {
            subscript.parts.iter().for_each(|part| self.part(part, &subscript.span));
        } else {
            self.arithmetic(subscript);
        }
    }

    /// An element of `name=( … )`: `[subscript]=value` has an expression in front.
    pub(super) fn element(&mut self, word: &Word) {
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
                    self.add(Effect::Unknown, "", &word.span, "a value is evaluated as an expression");
                }
            }
        }
    }

    /// Whatever runs while a word is expanded.
    pub(super) fn word(&mut self, word: &'s Word) {
        word.parts.iter().for_each(|part| self.part(part, &word.span));
    }

    pub(super) fn part(&mut self, part: &'s Part, span: &Range<usize>) {
        match part {
            Part::Text { .. } => {}
            Part::Parameter(parameter) => self.parameter(parameter, span),
            Part::Command { script, .. } => self.elsewhere(script),
            Part::Process(script) => {
                let job = self.begin_job();
                self.elsewhere(script);
                self.end_job(job, !jobs::is_one_command(script), span);
            }
            Part::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
        }
    }

    /// In a shell of its own: where it goes, the line does not.
    fn elsewhere(&mut self, script: &'s Script) {
        let directory = self.directory.clone();
        self.aside(script);
        self.directory = directory;
    }

    pub(super) fn parameter(&mut self, parameter: &'s Parameter, span: &Range<usize>) {
        if parameter.evaluated {
            self.add(Effect::Unknown, "", span, "a value is expanded once more");
        }
        if parameter.indirect && self.names_anything(&parameter.name) {
            self.add(Effect::Unknown, "", span, "a value names what is expanded");
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

    pub(super) fn expression(&mut self, arithmetic: &Arithmetic) {
        let span = &arithmetic.span;
        if arithmetic.odd {
            return self.add(Effect::Unknown, "", span, "an expression that is not plain");
        }
        let parameters = arithmetic.parts.iter().filter_map(|part| match part {
            Part::Parameter(parameter) if !parameter.counts => Some(parameter.name.as_str()),
            Part::Parameter(_) | Part::Text { .. } | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => {
                None
            }
        });
        let names: Vec<&str> = arithmetic.names.iter().map(String::as_str).chain(parameters).collect();
        if names.iter().any(|name| self.values.is_armed(name)) {
            return self.add(Effect::Unknown, "", span, "a value is evaluated as an expression");
        }
        if arithmetic.parts.iter().any(prints_anything) {
            return self.add(Effect::Unknown, "", span, "output is evaluated as an expression");
        }
        if arithmetic.assigns {
            names.iter().for_each(|name| self.sets(name, span));
        }
    }

    /// Whether the value of a variable could be more than the name of another.
    pub(super) fn names_anything(&self, name: &str) -> bool {
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
            Some(_) | None => self.add(Effect::Unknown, command, span, "text that is evaluated a second time"),
        }
    }

    /// An expression in a text that is known.
    pub(super) fn expression_text(&mut self, text: &str, command: &str, span: &Range<usize>) {
        let closed = format!("{text}))");
        let mut parser = Parser::new(&closed, Some(span.clone()), 0);
        match parser.arithmetic("))") {
            // The shell expanded the word already; what is still an expansion is evaluated a second time.
            Ok(found) if found.parts.is_empty() && parser.cursor.peek().is_none() => self.expression(&found),
            Ok(_) | Err(_) => self.add(Effect::Unknown, command, span, "text that is evaluated a second time"),
        }
    }

    pub(super) fn condition(&mut self, tokens: &'s [ConditionToken], span: &Range<usize>) {
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
    pub(super) fn number_operand(&mut self, word: &Word, span: &Range<usize>) {
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
                    self.add(Effect::Unknown, "[[", span, "a value is evaluated as an expression");
                }
            }
        }
    }

    /// The operand of `-v`: the name of a variable, whose subscript is evaluated.
    pub(super) fn names_variable(&mut self, word: Option<&Word>, span: &Range<usize>) {
        match word.and_then(Word::text) {
            Some(text) => self.variable_text(&text, "[[", span),
            None => self.add(Effect::Unknown, "[[", span, "text that is evaluated a second time"),
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
