//! The builtins of the shell: no program runs, but they change what later ones are and see.

use std::collections::BTreeSet;

use super::reduce::Argument;
use super::traits::Language;
use super::walk::{Run, Walk};
use super::{Effect, Executor};

/// The longest name of a directory that is remembered, in bytes.
const DIRECTORY_BYTES_MAX: usize = 1_024;

/// Builtins that read, print, or change nothing but the shell itself.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    "echo", "pwd", "true", "false", ":", "exit", "return", "break", "continue", "shift", "times", "fg", "bg",
    "ulimit", "umask", "dirs", "popd", "type", "caller", "help", "logout", "suspend", "unalias",
];

/// Runs a builtin; false if it is none.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) -> bool {
    if PLAIN.contains(&run.name) {
        harmless(walk, run);
        return true;
    }
    match run.name {
        "cd" | "pushd" => change_directory(walk, run),
        "jobs" => jobs(walk, run),
        "wait" => wait(walk, run),
        "shopt" => shopt(walk, run),
        "test" | "[" => test(walk, run),
        "printf" => printf(walk, run),
        "read" | "mapfile" | "readarray" | "getopts" => reads(walk, run),
        "export" | "declare" | "typeset" | "local" | "readonly" => declares(walk, run),
        "set" => set(walk, run),
        "unset" => {
            walk.forget_functions();
            names(walk, run, run.arguments);
            harmless(walk, run);
        }
        "trap" => trap(walk, run),
        "eval" => eval(walk, run),
        "source" | "." if run.arguments.first().and_then(Argument::known_text) == Some("/dev/stdin") => {
            let executor = walk.executor;
            super::shells::input(walk, run, executor);
        }
        "source" | "." => walk.add(Effect::Unknown, run.name, &run.span, "runs a file in this shell"),
        "exec" => exec(walk, run),
        "command" => command(walk, run),
        "builtin" if run.arguments.first().and_then(Argument::known_text) == Some("--") => {
            walk.run(&run.renamed("builtin", run.arguments.get(1..).unwrap_or_default()));
        }
        "builtin" => match run.arguments.split_first() {
            Some((first, rest)) => match first.known_text() {
                Some(name) if walk.setting.commands.traits(name).speaks(Language::Builtin) => {
                    walk.run(&run.renamed(name, rest));
                }
                Some(_) | None => walk.add(Effect::Unknown, run.name, &run.span, "not a builtin that is known"),
            },
            None => harmless(walk, run),
        },
        "alias" => {
            let defines = |argument: &Argument| argument.known_text().is_none_or(|text| text.contains('='));
            if run.arguments.iter().any(defines) {
                walk.add(Effect::Unknown, run.name, &run.span, "changes what a name means");
            } else {
                harmless(walk, run);
            }
        }
        "hash" if !has_flag(run, 'p') && (walk.executor == Executor::Bash || run.arguments.is_empty()) => {
            harmless(walk, run);
        }
        "enable" if run.arguments.iter().all(|argument| matches!(argument.known_text(), Some("-a" | "-p" | "-s"))) => {
            harmless(walk, run);
        }
        "hash" | "enable" => walk.add(Effect::Unknown, run.name, &run.span, "changes what a name means"),
        "let" => {
            for argument in run.arguments {
                match argument.known_text() {
                    Some(text) => walk.expression_text(text, run.name, &argument.span),
                    None => walk.add(Effect::Unknown, run.name, &argument.span, "text that is evaluated a second time"),
                }
            }
            harmless(walk, run);
        }
        "kill" => kill(walk, run),
        "history" => {
            let changes = |argument: &Argument| argument.known_text().is_none_or(|text| text.starts_with('-'));
            let label = if run.arguments.iter().any(changes) { Effect::Write } else { Effect::ReadOnly };
            walk.add(label, run.name, &run.span, "reads or changes the history");
        }
        "fc" if run.arguments.first().and_then(Argument::known_text) == Some("-l") => harmless(walk, run),
        "complete" | "compopt" if run.arguments.iter().all(|argument| argument.known_text() == Some("-p")) => {
            harmless(walk, run);
        }
        "compgen" if !has_flag(run, 'W') && !has_flag(run, 'C') && !has_flag(run, 'F') => harmless(walk, run),
        "fc" | "bind" | "complete" | "compopt" | "compgen" => {
            walk.add(Effect::Unknown, run.name, &run.span, "runs or evaluates text of its own");
        }
        "disown" => walk.add(Effect::Unknown, run.name, &run.span, "a job that outlives the call"),
        _ => return false,
    }
    true
}

fn harmless(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    walk.add(Effect::ReadOnly, run.name, &run.span, "changes nothing outside of this shell");
}

/// `cd`, `pushd`: what is written from now on is written elsewhere.
fn change_directory(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let is_numbered = |argument: &Argument| {
        let digits = argument.prefix().strip_prefix(['-', '+']).unwrap_or("");
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_operand = |argument: &&Argument| {
        let text = argument.known_text().unwrap_or("");
        !text.starts_with('-') || text == "-"
    };
    let operands = run.arguments.iter().filter(is_operand).count();
    if walk.executor != Executor::Bash && (operands > 1 || run.arguments.iter().any(is_numbered)) {
        walk.add(Effect::Unknown, run.name, &run.span, "zsh goes elsewhere: `cd OLD NEW`, `cd -1`");
    }
    let target = run.arguments.iter().find(|argument| !argument.prefix().starts_with('-'));
    walk.directory = match (target.and_then(Argument::known_text), walk.directory.take()) {
        (Some(path), Some(before)) if !path.starts_with(['/', '~']) => Some(format!("{before}/{path}")),
        (Some(path), _) => Some(path.to_owned()),
        (None, _) => None,
    };
    walk.directory = walk.directory.take().map(|path| match super::paths::normalise(&path) {
        here if here.is_empty() => ".".to_owned(),
        normal => normal,
    });
    // Every file that is written is looked at from there.
    if walk.directory.as_ref().is_some_and(|path| path.len() > DIRECTORY_BYTES_MAX) {
        walk.directory = None;
        walk.add(Effect::Unknown, run.name, &run.span, "a directory with a name that is too long");
    }
    harmless(walk, run);
}

/// `wait -p NAME` sets a variable.
fn wait(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    for (at, argument) in run.arguments.iter().enumerate() {
        let Some((_, attached)) =
            argument.known_text().filter(|text| text.starts_with('-')).and_then(|text| text.split_once('p'))
        else {
            continue;
        };
        let name = match (attached.is_empty(), run.arguments.get(at.saturating_add(1))) {
            (true, Some(next)) => next.clone(),
            (true, None) => Argument::unknown(run.span.clone()),
            (false, _) => Argument::known(attached, argument.span.clone()),
        };
        names(walk, run, &[name]);
    }
    if run.arguments.iter().any(|argument| argument.splits && argument.is_assigned) {
        walk.add(Effect::Unknown, run.name, &run.span, "an argument that is not known could be an option");
    }
    harmless(walk, run);
}

/// Options of the shell: some change which variables programs see, or where `cd` goes.
fn shopt(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let odd = |argument: &Argument| matches!(argument.known_text(), None | Some("allexport" | "keyword"));
    if run.arguments.iter().any(odd) {
        walk.dirty.get_or_insert_with(|| "every variable".to_owned());
    }
    if run.arguments.iter().any(|argument| argument.known_text() == Some("cdable_vars")) {
        walk.add(Effect::Unknown, run.name, &run.span, "a value names the directory");
    }
    harmless(walk, run);
}

/// Whether an option of this letter is there, or may be.
fn has_flag(run: &Run<'_>, letter: char) -> bool {
    run.arguments.iter().any(|argument| match argument.known_text() {
        Some(text) => text.starts_with('-') && text.contains(letter),
        None => argument.may_be_option || argument.prefix().starts_with('-'),
    })
}

/// Arguments that name variables, whose subscripts are evaluated.
fn names(walk: &mut Walk<'_, '_>, run: &Run<'_>, arguments: &[Argument]) {
    for argument in arguments {
        // `a[0]` looks like a pattern for names of files, and is a text all the same.
        let written = argument.known_text().or_else(|| argument.has_glob.then_some(argument.prefix()));
        // The name of a file that a pattern becomes can have a subscript that runs something.
        let is_written = |text: &&str| !text.contains(['*', '?']) && *text == argument.skeleton();
        match written.filter(|text| argument.known_text().is_some() || is_written(text)) {
            Some(text) if text.starts_with('-') => {}
            Some(text) => {
                let name = text.split('=').next().unwrap_or("").trim_end_matches('+').to_owned();
                walk.variable_text(&name, run.name, &argument.span);
                walk.sets(name.split('[').next().unwrap_or(""), &argument.span);
            }
            None => walk.add(Effect::Unknown, run.name, &argument.span, "the name of a variable that is not known"),
        }
    }
}

/// `jobs -x COMMAND …` runs it.
fn jobs(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    for (at, argument) in run.arguments.iter().enumerate() {
        match argument.known_text() {
            Some(text) if text.starts_with('-') && text.contains('x') => {
                let command = run.arguments.get(at.saturating_add(1)..).unwrap_or_default();
                return walk.program(run, command);
            }
            Some(_) => {}
            None => {
                return walk.add(
                    Effect::Unknown,
                    run.name,
                    &run.span,
                    "an argument that is not known could be a command",
                );
            }
        }
    }
    harmless(walk, run);
}

fn test(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    for (at, argument) in run.arguments.iter().enumerate() {
        if matches!(argument.known_text(), Some("-v" | "-R")) {
            let operand = run.arguments.get(at.saturating_add(1));
            match operand.map(|operand| (operand.known_text().unwrap_or(operand.prefix()), operand.skeleton())) {
                Some(("]", _)) => {}
                Some((text, skeleton)) if text == skeleton && !operand.is_some_and(becomes_names) => {
                    walk.variable_text(text, run.name, &run.span);
                }
                Some(_) | None => {
                    walk.add(Effect::Unknown, run.name, &run.span, "text that is evaluated a second time");
                }
            }
        }
    }
    if run.arguments.iter().any(|argument| argument.has_glob && argument.may_become(&["-v", "-R"])) {
        walk.add(Effect::Unknown, run.name, &run.span, "a pattern that can become text that is evaluated");
    }
    // A single word that becomes two can be `-v NAME`.
    let operands: Vec<&Argument> = run.arguments.iter().filter(|argument| argument.known_text() != Some("]")).collect();
    if let [only] = operands.as_slice()
        && only.splits
        && only.is_assigned
    {
        walk.add(Effect::Unknown, run.name, &run.span, "text that is evaluated a second time");
    }
    harmless(walk, run);
}

/// Whether an argument is a pattern, and not only a name with a subscript.
fn becomes_names(argument: &Argument) -> bool {
    argument.has_glob && argument.prefix().contains(['*', '?'])
}

fn printf(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let first = run.arguments.first();
    let names_variable = |first: &Argument| {
        let is_split = first.splits && first.is_assigned && first.prefix().is_empty();
        is_split || first.has_glob && first.may_be_option
    };
    if first.is_some_and(names_variable) {
        walk.add(Effect::Unknown, run.name, &run.span, "an argument that is not known could name a variable");
    }
    if let Some(rest) = first.and_then(Argument::known_text).and_then(|text| text.strip_prefix("-v")) {
        let separate = run.arguments.get(1).cloned();
        let name = match (rest.is_empty(), separate) {
            (true, Some(next)) => next,
            (true, None) => Argument::unknown(run.span.clone()),
            (false, _) => Argument::known(rest, run.span.clone()),
        };
        names(walk, run, &[name]);
    }
    harmless(walk, run);
}

/// `read`, `mapfile`, `getopts`: operands name variables.
fn reads(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let with_value = match run.name {
        "read" => "adinNptu",
        "getopts" => "",
        _ => "dnOsucC",
    };
    if run.name != "read" && run.name != "getopts" && has_flag(run, 'C') {
        return walk.add(Effect::Unknown, run.name, &run.span, "runs a command for what it reads");
    }
    let mut operands = Vec::new();
    let mut arguments = run.arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.known_text() {
            Some(text) if text.len() > 1 && text.starts_with('-') => {
                let takes = text.chars().enumerate().skip(1).find(|(_, letter)| with_value.contains(*letter));
                if let Some((at, letter)) = takes {
                    let attached: String = text.chars().skip(at.saturating_add(1)).collect();
                    let value = if attached.is_empty() {
                        arguments.next().cloned()
                    } else {
                        Some(Argument::known(attached, argument.span.clone()))
                    };
                    if letter == 'a' && run.name == "read" {
                        operands.extend(value);
                    }
                }
            }
            Some(_) | None => operands.push(argument.clone()),
        }
    }
    if run.name == "getopts" {
        operands = operands.into_iter().skip(1).take(1).collect();
    }
    names(walk, run, &operands);
    harmless(walk, run);
}

fn declares(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    // Once for all operands: there can be as many of them as of options.
    let letters: BTreeSet<char> = run
        .arguments
        .iter()
        .filter_map(|argument| argument.known_text().and_then(|text| text.strip_prefix('-')))
        .flat_map(str::chars)
        .collect();
    let flag = |letter: char| letters.contains(&letter);
    if flag('i') {
        return walk.add(Effect::Unknown, run.name, &run.span, "values are evaluated as expressions");
    }
    if flag('n') && run.name != "export" {
        return walk.add(Effect::Unknown, run.name, &run.span, "a variable under another name");
    }
    let operands: Vec<&Argument> =
        run.arguments.iter().filter(|argument| !argument.prefix().starts_with(['-', '+'])).collect();
    let exports = run.name == "export" || flag('x');
    for argument in operands {
        let text = argument.known_text().unwrap_or(argument.prefix());
        let name = text.split('=').next().unwrap_or("").trim_end_matches('+').to_owned();
        if argument.known_text().is_none() && !text.contains('=') {
            walk.add(Effect::Unknown, run.name, &argument.span, "the name of a variable that is not known");
            continue;
        }
        if !flag('f') {
            walk.variable_text(&name, run.name, &argument.span);
        }
        // A text in parentheses becomes the elements of an array, and is expanded for that.
        let value = text.split_once('=').map_or("", |(_, value)| value);
        let is_array = flag('a') || flag('A') || walk.values.is_array(&name);
        let unknown = argument.known_text().is_none() && value.is_empty() && is_array && !argument.is_compound;
        if value.starts_with('(') || unknown {
            walk.add(Effect::Unknown, run.name, &argument.span, "text that is evaluated a second time");
        }
        let bare = name.split('[').next().unwrap_or("").to_owned();
        walk.sets(&bare, &argument.span);
        if exports && !flag('n') && !super::environment::is_allowed(&bare) {
            walk.dirty.get_or_insert(bare);
        }
    }
    harmless(walk, run);
}

fn set(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    for argument in run.arguments {
        match argument.known_text() {
            Some("--") => break,
            Some(text)
                if text == "allexport" || text == "keyword" || text.starts_with('-') && text.contains(['a', 'k']) =>
            {
                walk.dirty.get_or_insert_with(|| "every variable".to_owned());
            }
            Some(_) => {}
            None if argument.may_be_option => {
                walk.dirty.get_or_insert_with(|| "every variable".to_owned());
            }
            None => {}
        }
    }
    harmless(walk, run);
}

fn trap(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let operands: Vec<&Argument> =
        run.arguments.iter().filter(|argument| argument.known_text() != Some("--")).collect();
    let Some(first) = operands.first() else { return harmless(walk, run) };
    match first.known_text() {
        Some("-p" | "-l" | "-P" | "-" | "") => harmless(walk, run),
        // Signals alone reset.
        Some(_) if operands.len() == 1 => harmless(walk, run),
        Some(text) => {
            let (text, span) = (text.to_owned(), first.span.clone());
            walk.text_here(&text, &span);
            harmless(walk, run);
        }
        None => {
            walk.add(Effect::Unknown, run.name, &run.span, "runs text that is not known");
            walk.partly(first.skeleton(), &run.span);
        }
    }
}

fn eval(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let words: Option<Vec<&str>> = run.arguments.iter().map(Argument::known_text).collect();
    // A value may hold anything by then; only what is written out is read.
    let written = run.arguments.iter().all(|argument| argument.text.as_deref() == Some(argument.prefix()));
    match words.filter(|_| written) {
        Some(words) => {
            let text = words.join(" ");
            let text = text.strip_prefix("-- ").unwrap_or(&text).to_owned();
            if let Some(name) = run.sets.iter().find(|name| !super::environment::is_allowed(name)) {
                walk.dirty.get_or_insert_with(|| name.clone());
            }
            walk.forget_functions();
            walk.text_here(&text, &run.span);
            harmless(walk, run);
        }
        None => {
            walk.add(Effect::Unknown, run.name, &run.span, "evaluates text that is not known");
            let skeletons: Vec<&str> = run.arguments.iter().map(Argument::skeleton).collect();
            walk.partly(&skeletons.join(" "), &run.span);
        }
    }
}

fn exec(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let mut rest = run.arguments;
    while let Some((first, others)) = rest.split_first() {
        match first.known_text() {
            Some("-a") => {
                if others.first().is_some_and(|name| name.splits) {
                    return walk.add(
                        Effect::Unknown,
                        run.name,
                        &run.span,
                        "the command is not known before the line runs",
                    );
                }
                rest = others.get(1..).unwrap_or_default();
            }
            Some("-c" | "-l" | "-cl" | "-lc") => rest = others,
            Some(text) if text.starts_with("-a") || text.starts_with("-la") || text.starts_with("-ca") => {
                let separate = matches!(text, "-la" | "-ca");
                rest = if separate { others.get(1..).unwrap_or_default() } else { others };
            }
            Some("--") => {
                rest = others;
                break;
            }
            Some(_) | None => break,
        }
    }
    if rest.is_empty() {
        return harmless(walk, run);
    }
    walk.program(run, rest);
}

fn command(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let mut rest = run.arguments;
    while let Some((first, others)) = rest.split_first() {
        match first.known_text() {
            Some("-p") => rest = others,
            Some("--") => {
                rest = others;
                break;
            }
            Some(text) if text.len() > 1 && text.starts_with('-') => {
                let query =
                    text.chars().skip(1).all(|letter| matches!(letter, 'p' | 'v' | 'V')) && text.contains(['v', 'V']);
                if query {
                    return harmless(walk, run);
                }
                return walk.add(Effect::Unknown, run.name, &run.span, "an option that is not known");
            }
            Some(_) | None => break,
        }
    }
    let Some((first, rest)) = rest.split_first() else { return harmless(walk, run) };
    match first.known_text() {
        Some(name) => walk.run(&run.renamed(name, rest)),
        None => walk.add(Effect::Unknown, run.name, &first.span, "the command is not known before the line runs"),
    }
}

fn kill(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let first = run.arguments.first().and_then(Argument::known_text);
    let second = run.arguments.get(1).and_then(Argument::known_text);
    let queries = matches!(first, Some("-l" | "-L" | "-0" | "--list" | "--table" | "--help" | "--version"))
        || matches!((first, second), (Some("-s" | "-n"), Some("0" | "EXIT")));
    if queries {
        walk.add(Effect::ReadOnly, run.name, &run.span, "asks about signals or processes");
    } else {
        walk.add(Effect::Destructive, run.name, &run.span, "ends processes");
    }
}
