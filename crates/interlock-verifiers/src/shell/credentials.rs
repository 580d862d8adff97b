//! Commands that print credentials, or change the machine, without naming a file. The file that holds it stands for it.

use super::Effect;
use super::options::{self, is_like};
use super::reduce::Argument;
use super::table::Spec;
use super::traits::{Fact, Traits};

/// What stands for the environments of all processes.
const ENVIRONMENTS: &str = "/proc/1/environ";
/// What stands for the machine.
const THE_MACHINE: &str = "/proc/sys";

/// The file that holds what a command prints, if that is a credential.
pub(super) fn printed<'t>(traits: &'t Traits, arguments: &[Argument], spec: Option<&Spec>) -> Option<&'t str> {
    if traits.is(Fact::ShowsProcesses) {
        return spec.is_none_or(|spec| prints_environments(spec, arguments)).then_some(ENVIRONMENTS);
    }
    let prints = |ways: &Vec<String>| ways.iter().any(|words| has_in_order(arguments, words));
    traits.prints.iter().find(|(_, ways)| prints(ways)).map(|(file, _)| file.as_str())
}

/// What a command changes that is no file.
pub(super) fn changed(traits: &Traits, label: Effect) -> Option<&'static str> {
    (traits.is(Fact::Machine) && label > Effect::ReadOnly).then_some(THE_MACHINE)
}

/// Whether words stand among the arguments in this order, with others between them; options in any.
fn has_in_order(arguments: &[Argument], words: &str) -> bool {
    let is = |pattern: &str, text: &str| is_like(pattern, &text.to_ascii_lowercase());
    let mut rest = options::texts(arguments);
    words.split_ascii_whitespace().all(|word| match word.starts_with('-') {
        true => options::texts(arguments).any(|text| is(word, text)),
        false => rest.any(|text| is(word, text)),
    })
}

/// `ps e`, `ps auxe`, `ps -o environ`, and `-E` elsewhere: the environments of processes. The words without a dash are
/// letters too, and those that have an argument have it in the next word.
fn prints_environments(spec: &Spec, arguments: &[Argument]) -> bool {
    let call = options::read_until_verb(spec, arguments);
    let operands = || call.operands.iter().map(|operand| operand.known_text().unwrap_or(operand.prefix()));
    let formats = call.each("-o -O --format").filter_map(|given| given.value.as_ref()).map(Argument::prefix);
    if call.has("-E") || formats.chain(operands()).any(|text| text.contains("environ")) {
        return true;
    }
    let mut words = operands();
    while let Some(word) = words.next() {
        // Behind an `o` is the format, mostly the next word.
        let (letters, format) = word.split_once('o').unwrap_or((word, "-"));
        if matches!(word, "p" | "t" | "U") || format.is_empty() {
            words.next();
        }
        if letters.contains('e') && word.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            return true;
        }
    }
    false
}
