//! How much work a command makes: paid for before it is done, each time the command is looked at.
//!
//! A command of a function is looked at in every call, and a variable is read wherever it stands, so counting commands
//! alone would allow a short line to ask for a long time.

use super::syntax::{Arithmetic, Command, CommandKind, ConditionToken, Part, Word};
use super::values::Values;

/// How many parts of words are as much work as one command.
const PARTS_PER_COMMAND: usize = 64;
/// How many bytes of a text are as much work as one part of a word.
const BYTES_PER_PART: usize = 16;
/// How many bytes of values are copied for one command.
const COPIED_PER_COMMAND: usize = 4_096;

/// The work of one command, in commands; without that of the commands in it.
pub(super) fn of_command(command: &Command, values: &Values) -> u32 {
    let word = |word: &Word| of_word(word, values);
    let redirects = sum(command.redirects.iter().map(|redirect| word(&redirect.target)));
    let own = match &command.kind {
        CommandKind::Simple { assignments, words } => {
            let assigned = assignments.iter().map(|assignment| {
                let subscript = sum(assignment.subscript.iter().map(|subscript| of_arithmetic(subscript, values)));
                sum(assignment.values.iter().map(word)).saturating_add(subscript).saturating_add(1)
            });
            sum(assigned).saturating_add(sum(words.iter().map(word)))
        }
        CommandKind::Branches { words, binds, arithmetic, .. } => {
            let bound = binds.iter().flat_map(|binding| binding.values.iter().flatten());
            let expressions = sum(arithmetic.iter().map(|arithmetic| of_arithmetic(arithmetic, values)));
            sum(words.iter().chain(bound).map(word)).saturating_add(expressions)
        }
        CommandKind::Arithmetic(arithmetic) => of_arithmetic(arithmetic, values),
        CommandKind::Condition(tokens) => sum(tokens.iter().map(|token| match token {
            ConditionToken::Operator(_) => 1,
            ConditionToken::Word(operand) => word(operand),
        })),
        CommandKind::Group(_)
        | CommandKind::Subshell(_)
        | CommandKind::Function { .. }
        | CommandKind::Coprocess { .. } => 0,
    };
    in_commands(own.saturating_add(redirects), PARTS_PER_COMMAND)
}

/// The work of copying so many bytes, in commands.
pub(super) fn of_copy(bytes: usize) -> u32 {
    in_commands(bytes, COPIED_PER_COMMAND)
}

fn in_commands(amount: usize, unit: usize) -> u32 {
    u32::try_from(amount.checked_div(unit).unwrap_or(amount)).unwrap_or(u32::MAX).saturating_add(1)
}

fn of_word(word: &Word, values: &Values) -> usize {
    sum(word.parts.iter().map(|part| of_part(part, values))).saturating_add(1)
}

fn of_part(part: &Part, values: &Values) -> usize {
    match part {
        Part::Text { text, .. } => of_bytes(text.len()),
        Part::Parameter(parameter) => {
            let rest = sum(parameter.rest.iter().map(|rest| of_word(rest, values)));
            let expressions = parameter.subscript.iter().chain(&parameter.offsets);
            let expressions = sum(expressions.map(|arithmetic| of_arithmetic(arithmetic, values)));
            of_value(&parameter.name, values).saturating_add(rest).saturating_add(expressions)
        }
        Part::Arithmetic(arithmetic) => of_arithmetic(arithmetic, values),
        Part::Command { .. } | Part::Process(_) => 1,
    }
}

fn of_arithmetic(arithmetic: &Arithmetic, values: &Values) -> usize {
    let parts = sum(arithmetic.parts.iter().map(|part| of_part(part, values)));
    sum(arithmetic.names.iter().map(|name| of_value(name, values))).saturating_add(parts)
}

/// Reading a variable is reading all it can hold.
fn of_value(name: &str, values: &Values) -> usize {
    of_bytes(values.get(name).map_or(0, |value| sum(value.texts.iter().map(String::len))))
}

fn of_bytes(bytes: usize) -> usize {
    bytes.checked_div(BYTES_PER_PART).unwrap_or(bytes).saturating_add(1)
}

fn sum(amounts: impl Iterator<Item = usize>) -> usize {
    amounts.fold(0, usize::saturating_add)
}
