//! Commands that print credentials, or change the machine, without naming a file. The file that holds it stands for it.

use super::Effect;
use super::options::{self, is_like};
use super::reduce::Argument;
use super::traits::{Fact, Traits};

/// Options of `ps` that have a value.
const PS_WITH_VALUE: [&str; 18] = [
    "-C", "-p", "-u", "-U", "-g", "-G", "-t", "-q", "-s", "p", "t", "U", "--pid", "--ppid", "--user", "--sort",
    "--tty", "--group",
];

/// What stands for the environments of all processes.
const ENVIRONMENTS: &str = "/proc/1/environ";
/// What stands for the machine.
const THE_MACHINE: &str = "/proc/sys";

/// The file that holds what a command prints, if that is a credential.
pub(super) fn printed<'t>(traits: &'t Traits, arguments: &[Argument]) -> Option<&'t str> {
    if traits.is(Fact::ShowsProcesses) {
        return prints_environments(arguments).then_some(ENVIRONMENTS);
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

/// `ps e`, `ps auxe`, `ps -o environ`, and `-E` elsewhere: the environments of processes.
fn prints_environments(arguments: &[Argument]) -> bool {
    let mut words = options::texts(arguments);
    while let Some(word) = words.next() {
        if word.contains("environ") {
            return true;
        }
        if PS_WITH_VALUE.contains(&word) {
            words.next();
            continue;
        }
        let is_bundle = !word.is_empty() && word.bytes().all(|letter| letter.is_ascii_alphabetic());
        // Behind an `o` in a bundle is the format, mostly the next word.
        let letters = word.split('o').next().unwrap_or("");
        let is_apple = word.starts_with('-') && !word.starts_with("--") && word.contains('E');
        if is_apple || is_bundle && letters.contains('e') {
            return true;
        }
        if is_bundle && word.ends_with('o') || word.starts_with('-') && word.ends_with('o') {
            let format = words.next().unwrap_or("");
            if format.contains("environ") {
                return true;
            }
        }
    }
    false
}
