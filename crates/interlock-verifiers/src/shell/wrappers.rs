//! Commands that run other commands: each is peeled by its own grammar, and what it runs is judged.

use super::options::{self, Call};
use super::reduce::{Argument, Partly};
use super::traits::Language;
use super::walk::{Run, Walk};
use super::{Effect, Executor, table};

/// Reads the options of a wrapper, as the table lists them. Hands back its operands and its options; nothing if it is not
/// sure which words are which.
fn own_options<'a>(run: &Run<'_>, arguments: &'a [Argument]) -> Option<(&'a [Argument], Call<'a>)> {
    let call = options::read_until_verb(table::grammar(run.name)?, arguments);
    let operands = call.first_operand.and_then(|at| arguments.get(at..)).unwrap_or_default();
    call.is_sure().then_some((operands, call))
}

fn not_understood(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    walk.add(Effect::Unknown, run.name, &run.span, "an option that is not known");
    // Whatever it runs, a command that destroys is not made harmless by an option in front of it.
    for (at, argument) in run.arguments.iter().enumerate() {
        let plain = argument.known_text().filter(|text| !text.starts_with('-') && !text.contains('='));
        if plain.is_some_and(|name| super::programs::destroys(walk, name)) {
            walk.program(run, run.arguments.get(at..).unwrap_or_default());
            return;
        }
    }
}

fn query(walk: &mut Walk<'_, '_>, run: &Run<'_>, why: &'static str) {
    walk.add(Effect::ReadOnly, run.name, &run.span, why);
}

/// `env [OPTION]… [NAME=VALUE]… [COMMAND …]`
pub(super) fn env(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    // A dash alone empties the environment, as `-i` does.
    let skipped = usize::from(run.arguments.first().and_then(Argument::known_text) == Some("-"));
    let arguments = run.arguments.get(skipped..).unwrap_or_default();
    let Some((mut operands, call)) = own_options(run, arguments) else { return not_understood(walk, run) };
    let mut sets: Vec<String> = run.sets.to_vec();
    if let Some(text) = call.values("-S --split-string").last() {
        let Some(text) = text.filter(|text| !text.contains(['$', '\\', '`', ';', '|', '&', '<', '>', '(', '*'])) else {
            return walk.add(Effect::Unknown, run.name, &run.span, "splits text that is not plain");
        };
        if !operands.iter().all(|operand| operand.known_text().is_some_and(is_plain_word)) {
            return walk.add(Effect::Unknown, run.name, &run.span, "splits text that is not plain");
        }
        let more: Vec<&str> = operands.iter().filter_map(Argument::known_text).collect();
        let whole = format!("env {text} {}", more.join(" "));
        if text.trim_start().starts_with("-S") || text.trim_start().starts_with("-s") {
            return walk.add(Effect::Unknown, run.name, &run.span, "splits text that is not plain");
        }
        let executor = walk.executor;
        return walk.text(whole.trim_end(), &run.span, executor);
    }
    if operands.first().and_then(Argument::known_text) == Some("-") {
        operands = operands.get(1..).unwrap_or_default();
    }
    while let Some((first, others)) = operands.split_first() {
        let name = first.prefix().split_once('=').map(|(name, _)| name.to_owned());
        let Some(name) = name.filter(|name| !name.is_empty()) else { break };
        if first.splits {
            return walk.add(Effect::Unknown, run.name, &run.span, "the command is not known before the line runs");
        }
        sets.push(name);
        operands = others;
    }
    if operands.is_empty() {
        return query(walk, run, "prints the environment");
    }
    let inner = Run { sets: &sets, ..run.renamed(run.name, run.arguments) };
    walk.program(&inner, operands);
}

fn is_plain_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./:=,@%+-".contains(&byte))
}

/// `sudo`, `doas`, `su`: at least unknown, whatever they run.
pub(super) fn privileged(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    walk.add(Effect::Unknown, run.name, &run.span, "runs as another user");
    if run.name == "su" {
        let call = table::grammar(run.name).map(|spec| options::read_until_verb(spec, run.arguments));
        for code in call.iter().flat_map(|call| call.values("-c --command")).flatten() {
            walk.text(code, &run.span, Executor::Other);
        }
        return;
    }
    let Some((mut operands, _)) = own_options(run, run.arguments) else { return not_understood(walk, run) };
    while let Some((first, others)) = operands.split_first() {
        if !first.prefix().contains('=') || first.prefix().starts_with('=') {
            break;
        }
        operands = others;
    }
    walk.program(run, operands);
}

/// `time` as a program: `/usr/bin/time -v CMD`.
pub(super) fn time(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some((operands, call)) = own_options(run, run.arguments) else { return not_understood(walk, run) };
    for value in call.each("-o --output").filter_map(|given| given.value.as_ref()) {
        walk.writes(value, run.name, &run.span);
    }
    walk.program(run, operands);
}

/// `flock FILE CMD …`, `flock FILE -c TEXT`, `flock N`.
pub(super) fn flock(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some((operands, _)) = own_options(run, run.arguments) else { return not_understood(walk, run) };
    let Some((file, command)) = operands.split_first() else { return query(walk, run, "locks nothing") };
    let number = file.known_text().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    if number && command.is_empty() {
        return query(walk, run, "locks an open file");
    }
    walk.writes(file, run.name, &run.span);
    match command.split_first() {
        Some((flag, text)) if matches!(flag.known_text(), Some("-c" | "--command")) => {
            let text =
                text.first().and_then(|text| text.known_text().map(|known| (known.to_owned(), text.span.clone())));
            match text {
                Some((text, span)) => walk.text(&text, &span, Executor::Other),
                None => walk.add(Effect::Unknown, run.name, &run.span, "runs text that is not known"),
            }
        }
        Some(_) => walk.program(run, command),
        None => {}
    }
}

/// `script [-c TEXT] [FILE]`
pub(super) fn script(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some((operands, call)) = own_options(run, run.arguments) else { return not_understood(walk, run) };
    match call.each("-c --command").next().and_then(|given| given.value.as_ref()) {
        Some(value) => match value.known_text() {
            Some(text) => walk.text(text, &value.span, Executor::Other),
            None => walk.add(Effect::Unknown, run.name, &run.span, "runs text that is not known"),
        },
        None => walk.add(Effect::Unknown, run.name, &run.span, "starts a shell"),
    }
    match operands.first() {
        Some(file) => walk.writes(file, run.name, &run.span),
        None => walk.add(Effect::Write, run.name, &run.span, "writes a file"),
    }
}

/// `watch [OPTION]… CMD …`: a shell reads the words, unless `-x` is given.
pub(super) fn watch(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some((operands, call)) = own_options(run, run.arguments) else { return not_understood(walk, run) };
    if call.has("-x --exec") {
        return walk.program(run, operands);
    }
    joined(walk, run, operands, "");
}

/// Words that a shell reads again, joined by blanks.
fn joined(walk: &mut Walk<'_, '_>, run: &Run<'_>, words: &[Argument], placeholder: &str) {
    let known: Option<Vec<&str>> = words.iter().map(Argument::known_text).collect();
    match known {
        Some(known) if known.is_empty() => walk.add(Effect::Unknown, run.name, &run.span, "runs what it reads"),
        Some(known) => {
            let text = known.join(" ");
            let text = if placeholder.is_empty() { text } else { text.replace(placeholder, " ") };
            walk.text(&text, &run.span, Executor::Other);
        }
        None => {
            walk.add(Effect::Unknown, run.name, &run.span, "runs text that is not known");
            let skeletons: Vec<&str> = words.iter().map(Argument::skeleton).collect();
            walk.partly(&skeletons.join(" "), &run.span);
        }
    }
}

/// `xargs [OPTION]… [CMD …]`
pub(super) fn xargs(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some((operands, call)) = own_options(run, run.arguments) else { return not_understood(walk, run) };
    if call.has("--process-slot-var") {
        return walk.add(Effect::Unknown, run.name, &run.span, "sets a variable for the program");
    }
    let placeholder = match call.each("-I -i --replace").next_back().map(|given| &given.value) {
        Some(Some(value)) => match value.known_text() {
            Some(text) => text.to_owned(),
            None => return walk.add(Effect::Unknown, run.name, &run.span, "a placeholder that is not known"),
        },
        Some(None) => "{}".to_owned(),
        None => String::new(),
    };
    if operands.is_empty() {
        return query(walk, run, "prints what it reads");
    }
    if placeholder.is_empty() {
        let mut arguments = operands.to_vec();
        // More than one may follow, and each could be an option.
        arguments.push(Argument::unknown(run.span.clone()));
        arguments.push(Argument::unknown(run.span.clone()));
        return walk.program(run, &arguments);
    }
    let arguments = with_placeholder(walk, run, operands, &placeholder, true);
    walk.program(run, &arguments);
}

/// Arguments in which something that is not known takes the place of a text.
pub(super) fn with_placeholder(
    walk: &mut Walk<'_, '_>,
    run: &Run<'_>,
    operands: &[Argument],
    placeholder: &str,
    may_be_option: bool,
) -> Vec<Argument> {
    let name = operands.first().and_then(Argument::known_text).unwrap_or("");
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_shell = walk.setting.commands.traits(name).speaks(Language::Shell);
    let mut arguments = Vec::new();
    for operand in operands {
        let Some(text) = operand.known_text().filter(|text| text.contains(placeholder)) else {
            arguments.push(operand.clone());
            continue;
        };
        if is_shell && text != placeholder {
            walk.add(Effect::Unknown, run.name, &operand.span, "what it reads becomes code");
            arguments.push(operand.clone());
            continue;
        }
        let prefix = text.split(placeholder).next().unwrap_or("").to_owned();
        let may_be_option = may_be_option && prefix.is_empty();
        let partly = Partly { prefix, skeleton: text.to_owned(), ..Partly::default() };
        let unknown = Argument::unknown(operand.span.clone());
        arguments.push(Argument { partly: Some(Box::new(partly)), may_be_option, splits: false, ..unknown });
    }
    arguments
}

/// `parallel [OPTION]… [CMD …] [::: WORD …]`: a shell reads the words.
pub(super) fn parallel(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some((operands, call)) = own_options(run, run.arguments) else { return not_understood(walk, run) };
    let ends = |argument: &Argument| matches!(argument.known_text(), Some(":::" | "::::" | ":::+" | "::::+"));
    let end = operands.iter().position(ends).unwrap_or(operands.len());
    let command = operands.get(..end).unwrap_or_default();
    if command.is_empty() {
        return walk.add(Effect::Unknown, run.name, &run.span, "runs what it reads");
    }
    if call.has("--dry-run") {
        return query(walk, run, "prints what it would run");
    }
    let whole = command.iter().filter_map(Argument::known_text).collect::<Vec<_>>().join(" ");
    if whole.contains("{=") || command.first().is_some_and(|first| first.prefix().contains('{')) {
        walk.add(Effect::Unknown, run.name, &run.span, "what it reads becomes code");
    }
    joined(walk, run, command, "");
    // What is appended could be an option of the command.
    if let Some((first, others)) = command.split_first()
        && first.known_text().is_some_and(|name| !name.contains(' '))
    {
        let mut arguments = vec![first.clone()];
        arguments.extend(others.iter().cloned());
        arguments.push(Argument::unknown(run.span.clone()));
        walk.program(run, &arguments);
    }
}
