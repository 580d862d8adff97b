//! `find` and `fd`: the expression decides.

use super::reduce::Argument;
use super::table::Takes;
use super::walk::{Run, Walk};
use super::wrappers::with_placeholder;
use super::{Effect, table};

/// Runs `find`.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some(spec) = table::grammar(run.name) else {
        return walk.add(Effect::Unknown, run.name, &run.span, "options that no table lists");
    };
    // What does more than print.
    let actions = spec.options.iter().filter(|(_, option)| option.does.worst() > Effect::ReadOnly);
    let actions: Vec<&str> = actions.map(|(name, _)| name.as_str()).collect();
    let mut at = 0usize;
    let mut in_paths = true;
    while let Some(argument) = run.arguments.get(at) {
        at = at.saturating_add(1);
        let Some(text) = argument.known_text() else {
            if argument.has_glob && !argument.prefix().starts_with('-') && !argument.may_become(&actions) {
                continue;
            }
            walk.add(Effect::Unknown, run.name, &argument.span, "an argument that is not known could be an action");
            continue;
        };
        let newer = text.len() == 8 && text.starts_with("-newer");
        let is_expression = text.starts_with('-') && text.len() > 1 || matches!(text, "(" | ")" | "!" | ",");
        if in_paths && !is_expression {
            continue;
        }
        let starts_expression =
            !matches!(text, "-H" | "-L" | "-P" | "-D" | "-X" | "-x" | "-s" | "-E") && !text.starts_with("-O");
        in_paths &= !starts_expression;
        let takes = spec.options.get(text).map(|option| option.takes);
        match text {
            "-delete" => walk.add(Effect::Destructive, run.name, &argument.span, "deletes what it finds"),
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                match run.arguments.get(at) {
                    Some(file) => walk.writes(file, run.name, &file.span),
                    None => walk.add(Effect::Write, run.name, &argument.span, "writes a file"),
                }
                at = at.saturating_add(if text == "-fprintf" { 2 } else { 1 });
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = run.arguments.get(at..).unwrap_or_default();
                let end = end_of_command(rest);
                let command = rest.get(..end).unwrap_or_default();
                executes(walk, run, argument, command);
                at = at.saturating_add(end).saturating_add(1);
            }
            _ if newer || takes == Some(Takes::Argument) => {
                let operand = run.arguments.get(at);
                let is_known = |operand: &Argument| {
                    operand.known_text().is_some() || operand.has_glob && !operand.may_become(&actions)
                };
                if operand.is_some_and(|operand| !is_known(operand)) {
                    walk.add(Effect::Unknown, run.name, &argument.span, "an argument that is not known");
                }
                at = at.saturating_add(1);
            }
            "(" | ")" | "!" | "," => {}
            _ if takes == Some(Takes::Nothing) || text.starts_with("-O") => {}
            _ if !is_expression => {
                walk.add(Effect::Unknown, run.name, &argument.span, "a part of the expression that is not known");
            }
            _ => walk.add(Effect::Unknown, run.name, &argument.span, "a test or action that is not known"),
        }
    }
    walk.add(Effect::ReadOnly, run.name, &run.span, "looks for files");
}

/// Where the command of `-exec` ends: at `;`, or at `+` after `{}`.
fn end_of_command(arguments: &[Argument]) -> usize {
    let mut braces = false;
    for (at, argument) in arguments.iter().enumerate() {
        match argument.known_text() {
            Some(";") => return at,
            Some("+") if braces => return at,
            Some(text) => braces = text == "{}",
            None => braces = false,
        }
    }
    arguments.len()
}

fn executes(walk: &mut Walk<'_, '_>, run: &Run<'_>, action: &Argument, command: &[Argument]) {
    if command.is_empty() {
        return walk.add(Effect::Unknown, run.name, &action.span, "a command is missing");
    }
    if command.first().and_then(Argument::known_text).is_some_and(|name| name.contains("{}")) {
        return walk.add(Effect::Unknown, run.name, &action.span, "runs what it finds");
    }
    // What is found begins with the path it was found under, so it is no option.
    let command = with_placeholder(walk, run, command, "{}", false);
    walk.program(run, &command);
}

/// Runs `fd`.
pub(super) fn fd(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let mut at = 0usize;
    while let Some(argument) = run.arguments.get(at) {
        at = at.saturating_add(1);
        let Some(text) = argument.known_text() else {
            if argument.may_be_option {
                walk.add(Effect::Unknown, run.name, &argument.span, "an argument that is not known could be an action");
            }
            continue;
        };
        if text == "--" {
            break;
        }
        let rest = run.arguments.get(at..).unwrap_or_default();
        let long = ["--exec", "--exec-batch"]
            .iter()
            .any(|name| text == *name || text.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
        let short =
            text.starts_with('-') && !text.starts_with("--") && text.contains(['x', 'X']) && !takes_value(run, text);
        if !long && !short {
            continue;
        }
        let attached = text.split_once('=').map(|(_, value)| Argument::known(value, argument.span.clone()));
        let end = rest.iter().position(|argument| argument.known_text() == Some(";")).unwrap_or(rest.len());
        let mut command: Vec<Argument> = attached.into_iter().collect();
        command.extend(rest.get(..end).unwrap_or_default().iter().cloned());
        command.push(Argument::known("{}", argument.span.clone()));
        executes(walk, run, argument, &command);
        at = at.saturating_add(end).saturating_add(1);
    }
    walk.add(Effect::ReadOnly, run.name, &run.span, "looks for files");
}

/// `-e x`: a bundle whose first letter takes the rest for its own.
fn takes_value(run: &Run<'_>, text: &str) -> bool {
    let option = text.get(..2).and_then(|letter| table::grammar(run.name)?.options.get(letter));
    option.is_some_and(|option| option.takes == Takes::Argument)
}
