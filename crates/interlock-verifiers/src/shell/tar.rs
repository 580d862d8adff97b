//! `tar`: the mode decides.

use super::options::{self, Call, Given};
use super::reduce::Argument;
use super::walk::{Run, Walk};
use super::{Effect, programs, table};

/// The options that say what is to be done, and the letter that stands for it here.
#[rustfmt::skip]
const MODES: [(&str, char); 18] = [
    ("-c", 'c'), ("--create", 'c'), ("-x", 'x'), ("--extract", 'x'), ("--get", 'x'), ("-t", 't'), ("--list", 't'),
    ("-r", 'r'), ("--append", 'r'), ("-u", 'u'), ("--update", 'u'), ("-A", 'A'), ("--concatenate", 'A'),
    ("--catenate", 'A'), ("-d", 'd'), ("--diff", 'd'), ("--compare", 'd'), ("--delete", 'D'),
];

/// Runs `tar`.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some(call) = programs::own_call(walk, run) else { return };
    let is_quiet = |given: &Given<'_>| {
        let action = given.value.as_ref().and_then(Argument::known_text);
        matches!(action, Some("dot" | "." | "echo" | "bell" | "totals"))
    };
    if !call.each("--checkpoint-action").all(is_quiet) {
        walk.add(Effect::Unknown, run.name, &run.span, "an option that runs a program");
    }
    if call.splits {
        walk.add(Effect::Unknown, run.name, &run.span, "an argument that is not known could be an option");
    }
    let file = call.each("-f --file").filter_map(|given| given.value.as_ref()).next_back();
    let is_stream = file.is_none() || file.and_then(Argument::known_text) == Some("-");
    let remote = |file: &&Argument| file.known_text().unwrap_or(file.prefix()).contains(':');
    if file.filter(remote).is_some() {
        walk.add(Effect::Network, run.name, &run.span, "names another machine");
    }
    match mode(&call) {
        Some('t' | 'd') => walk.add(Effect::ReadOnly, run.name, &run.span, "lists or compares"),
        Some('x') if is_to_stdout(&call) => walk.add(Effect::ReadOnly, run.name, &run.span, "extracts to its output"),
        Some('x') => {
            walk.add(Effect::Write, run.name, &run.span, "extracts files");
            let directories = call.each("-C --directory").filter_map(|given| given.value.as_ref());
            for place in directories.chain(call.operands.iter().copied()) {
                programs::arms(walk, place, run.name);
            }
        }
        Some('c') if is_stream => walk.add(Effect::ReadOnly, run.name, &run.span, "stores to its output"),
        Some('c' | 'r' | 'u' | 'A') => {
            match file {
                Some(file) => walk.writes(file, run.name, &file.span),
                None => walk.add(Effect::Write, run.name, &run.span, "writes an archive"),
            }
            walk.add(Effect::ReadOnly, run.name, &run.span, "stores files");
        }
        // The table says what it does.
        Some('D') => {}
        Some(_) | None => walk.add(Effect::Unknown, run.name, &run.span, "what it is to do is not known"),
    }
}

/// Whether it writes what is in an archive.
pub(super) fn extracts(run: &Run<'_>) -> bool {
    read(run).is_none_or(|call| mode(&call).is_none_or(|mode| mode == 'x') && !is_to_stdout(&call))
}

/// Whether it reads files to store or to compare them.
pub(super) fn stores(run: &Run<'_>) -> bool {
    let stores = |mode: char| matches!(mode, 'c' | 'r' | 'u' | 'A' | 'd');
    read(run).is_none_or(|call| mode(&call).is_none_or(stores))
}

/// Whether it takes the names of files from a list.
pub(super) fn has_list(run: &Run<'_>) -> bool {
    read(run).is_none_or(|call| call.has("-T --files-from"))
}

fn read<'a>(run: &Run<'a>) -> Option<Call<'a>> {
    table::grammar("tar").map(|spec| options::read_until_verb(spec, run.arguments))
}

/// What is to be done: the last word counts.
fn mode(call: &Call<'_>) -> Option<char> {
    let mode = |name: &str| MODES.iter().find(|(option, _)| *option == name).map(|(_, mode)| *mode);
    call.given.iter().rev().find_map(|given| mode(given.name))
}

fn is_to_stdout(call: &Call<'_>) -> bool {
    call.has("-O --to-stdout")
}
