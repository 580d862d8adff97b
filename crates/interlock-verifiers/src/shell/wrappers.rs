//! Commands that run other commands: each is peeled by its own grammar, and what it runs is judged.

use super::reduce::{Argument, Partly};
use super::shells::is_shell;
use super::walk::{Run, Walk};
use super::{Effect, Executor};

/// The options of a wrapper that have an argument, and those that have none; of one letter or written out.
struct Grammar {
    with_argument: &'static [&'static str],
    without: &'static [&'static str],
}

/// An option that was given, with its argument.
type Given = (String, Option<Argument>);

/// Skips the options of a wrapper. Hands back where its operands begin, and the options with their arguments; nothing
/// if there is one that is not known.
fn skip_options(arguments: &[Argument], grammar: &Grammar) -> Option<(usize, Vec<Given>)> {
    let mut found = Vec::new();
    let mut at = 0usize;
    while let Some(argument) = arguments.get(at) {
        let text = match argument.known_text() {
            Some(text) => text,
            None if argument.splits => return None,
            None if argument.prefix().starts_with("--") && argument.prefix().contains('=') => argument.prefix(),
            None if argument.may_be_option => return None,
            None => break,
        };
        if text == "--" {
            at = at.saturating_add(1);
            break;
        }
        if text.len() < 2 || !text.starts_with('-') {
            break;
        }
        at = at.saturating_add(1);
        if text.starts_with("--") {
            let (name, attached) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let attached = attached.map(|value| match argument.known_text() {
                Some(_) => Argument::known(value, argument.span.clone()),
                None => Argument::unknown(argument.span.clone()),
            });
            if grammar.with_argument.contains(&name) {
                let value = match attached {
                    Some(value) => Some(value),
                    None => {
                        let next = arguments.get(at).cloned();
                        at = at.saturating_add(1);
                        next
                    }
                };
                found.push((name.to_owned(), value));
            } else if grammar.without.contains(&name) {
                found.push((name.to_owned(), attached));
            } else {
                return None;
            }
            continue;
        }
        let mut letters = text.get(1..).unwrap_or("").chars();
        while let Some(letter) = letters.next() {
            let option = format!("-{letter}");
            if grammar.with_argument.contains(&option.as_str()) {
                let attached = letters.as_str();
                let value = if attached.is_empty() {
                    let next = arguments.get(at).cloned();
                    at = at.saturating_add(1);
                    next
                } else {
                    Some(Argument::known(attached, argument.span.clone()))
                };
                found.push((option, value));
                break;
            }
            if !grammar.without.contains(&option.as_str()) {
                return None;
            }
            found.push((option, None));
        }
    }
    // A value that becomes several words is the command.
    let splits = |(_, value): &Given| value.as_ref().is_some_and(|value| value.splits);
    (!found.iter().any(splits)).then_some((at, found))
}

fn rest(arguments: &[Argument], at: usize) -> &[Argument] {
    arguments.get(at..).unwrap_or_default()
}

fn not_understood(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    walk.add(Effect::Unknown, run.name, &run.span, "an option that is not known");
    // Whatever it runs, a command that destroys is not made harmless by an option in front of it.
    for (at, argument) in run.arguments.iter().enumerate() {
        let plain = argument.known_text().filter(|text| !text.starts_with('-') && !text.contains('='));
        if plain.is_some_and(|name| super::special::destroys(walk, name)) {
            walk.program(run, rest(run.arguments, at));
            return;
        }
    }
}

fn query(walk: &mut Walk<'_, '_>, run: &Run<'_>, why: &'static str) {
    walk.add(Effect::ReadOnly, run.name, &run.span, why);
}

/// `env [OPTION]… [NAME=VALUE]… [COMMAND …]`
pub(super) fn env(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let grammar = Grammar {
        with_argument: &["-u", "--unset", "-C", "--chdir", "-S", "--split-string", "-a", "--argv0"],
        without: &[
            "-i",
            "--ignore-environment",
            "-0",
            "--null",
            "-v",
            "--debug",
            "--block-signal",
            "--default-signal",
            "--ignore-signal",
            "--list-signal-handling",
        ],
    };
    // A dash alone empties the environment, as `-i` does.
    let skipped = usize::from(run.arguments.first().and_then(Argument::known_text) == Some("-"));
    let arguments = rest(run.arguments, skipped);
    let Some((at, options)) = skip_options(arguments, &grammar) else { return not_understood(walk, run) };
    let split = options.iter().rev().find(|(name, _)| name == "-S" || name == "--split-string");
    let mut sets: Vec<String> = run.sets.to_vec();
    if let Some((_, value)) = split {
        let text = value.as_ref().and_then(Argument::known_text);
        let Some(text) = text.filter(|text| !text.contains(['$', '\\', '`', ';', '|', '&', '<', '>', '(', '*'])) else {
            return walk.add(Effect::Unknown, run.name, &run.span, "splits text that is not plain");
        };
        let operands = rest(arguments, at);
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
    let mut operands = rest(arguments, at);
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
    let grammar = match run.name {
        "doas" => Grammar { with_argument: &["-u", "-C", "-a"], without: &["-n", "-s", "-L"] },
        _ => Grammar {
            with_argument: &[
                "-u",
                "--user",
                "-g",
                "--group",
                "-h",
                "--host",
                "-p",
                "--prompt",
                "-C",
                "--close-from",
                "-r",
                "--role",
                "-t",
                "--type",
                "-T",
                "--command-timeout",
                "-U",
                "--other-user",
                "-D",
                "--chdir",
                "-R",
                "--chroot",
            ],
            without: &[
                "-A",
                "-b",
                "-E",
                "-H",
                "-i",
                "-k",
                "-K",
                "-l",
                "-n",
                "-P",
                "-S",
                "-s",
                "-v",
                "-e",
                "-B",
                "-N",
                "--askpass",
                "--background",
                "--preserve-env",
                "--set-home",
                "--login",
                "--non-interactive",
                "--stdin",
                "--shell",
                "--validate",
                "--list",
                "--reset-timestamp",
                "--remove-timestamp",
                "--edit",
            ],
        },
    };
    if run.name == "su" {
        // Its options may stand behind the name of the user.
        let texts = run.arguments.iter().map(|argument| argument.known_text().unwrap_or(""));
        let mut next_is_code = false;
        for text in texts {
            let attached = text.strip_prefix("--command=");
            if let Some(code) = attached.or(next_is_code.then_some(text)) {
                walk.text(code, &run.span, Executor::Other);
            }
            let short = text.starts_with('-') && !text.starts_with("--") && text.ends_with('c');
            next_is_code = short || text == "--command";
        }
        return;
    }
    let Some((at, _)) = skip_options(run.arguments, &grammar) else { return not_understood(walk, run) };
    let mut operands = rest(run.arguments, at);
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
    let grammar = Grammar {
        with_argument: &["-o", "--output", "-f", "--format"],
        without: &["-a", "--append", "-p", "--portability", "-v", "--verbose", "-q", "--quiet", "-l", "-h"],
    };
    let Some((at, options)) = skip_options(run.arguments, &grammar) else { return not_understood(walk, run) };
    for (name, value) in &options {
        if let (true, Some(value)) = (name == "-o" || name == "--output", value) {
            walk.writes(value, run.name, &run.span);
        }
    }
    walk.program(run, rest(run.arguments, at));
}

/// `flock FILE CMD …`, `flock FILE -c TEXT`, `flock N`.
pub(super) fn flock(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let grammar = Grammar {
        with_argument: &["-w", "--wait", "--timeout", "-E", "--conflict-exit-code"],
        without: &[
            "-s",
            "--shared",
            "-x",
            "-e",
            "--exclusive",
            "-u",
            "--unlock",
            "-n",
            "--nb",
            "--nonblock",
            "-o",
            "--close",
            "-F",
            "--no-fork",
            "--verbose",
        ],
    };
    let Some((at, _)) = skip_options(run.arguments, &grammar) else { return not_understood(walk, run) };
    let operands = rest(run.arguments, at);
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
    let grammar = Grammar {
        with_argument: &["-c", "--command", "-E", "--echo", "-o", "--output-limit", "-m", "--logging-format"],
        without: &["-a", "--append", "-e", "--return", "-f", "--flush", "-q", "--quiet", "--force"],
    };
    let Some((at, options)) = skip_options(run.arguments, &grammar) else { return not_understood(walk, run) };
    let command = options.iter().find(|(name, _)| name == "-c" || name == "--command");
    match command.and_then(|(_, value)| value.as_ref()) {
        Some(value) => match value.known_text() {
            Some(text) => walk.text(text, &value.span, Executor::Other),
            None => walk.add(Effect::Unknown, run.name, &run.span, "runs text that is not known"),
        },
        None => walk.add(Effect::Unknown, run.name, &run.span, "starts a shell"),
    }
    match rest(run.arguments, at).first() {
        Some(file) => walk.writes(file, run.name, &run.span),
        None => walk.add(Effect::Write, run.name, &run.span, "writes a file"),
    }
}

/// `watch [OPTION]… CMD …`: a shell reads the words, unless `-x` is given.
pub(super) fn watch(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let grammar = Grammar {
        with_argument: &["-n", "--interval", "-q", "--equexit", "-s", "--shotsdir"],
        without: &[
            "-b",
            "--beep",
            "-c",
            "--color",
            "-C",
            "--no-color",
            "-d",
            "--differences",
            "-e",
            "--errexit",
            "-g",
            "--chgexit",
            "-p",
            "--precise",
            "-r",
            "--no-rerun",
            "-t",
            "--no-title",
            "-w",
            "--no-wrap",
            "-x",
            "--exec",
        ],
    };
    let Some((at, options)) = skip_options(run.arguments, &grammar) else { return not_understood(walk, run) };
    let operands = rest(run.arguments, at);
    if options.iter().any(|(name, _)| name == "-x" || name == "--exec") {
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
    let grammar = Grammar {
        with_argument: &[
            "-a",
            "--arg-file",
            "-d",
            "--delimiter",
            "-E",
            "-I",
            "-L",
            "--max-lines",
            "-n",
            "--max-args",
            "-P",
            "--max-procs",
            "-s",
            "--max-chars",
            "--process-slot-var",
            "-J",
            "-R",
            "-S",
        ],
        without: &[
            "-0",
            "--null",
            "-e",
            "--eof",
            "-i",
            "--replace",
            "-l",
            "-o",
            "--open-tty",
            "-p",
            "--interactive",
            "-r",
            "--no-run-if-empty",
            "-t",
            "--verbose",
            "-x",
            "--exit",
            "--show-limits",
        ],
    };
    let Some((at, options)) = skip_options(run.arguments, &grammar) else { return not_understood(walk, run) };
    let named = |names: [&str; 3]| options.iter().rev().find(|(name, _)| names.contains(&name.as_str()));
    if named(["--process-slot-var", "", ""]).is_some() {
        return walk.add(Effect::Unknown, run.name, &run.span, "sets a variable for the program");
    }
    let placeholder = match named(["-I", "-i", "--replace"]) {
        Some((_, Some(value))) => match value.known_text() {
            Some(text) => text.to_owned(),
            None => return walk.add(Effect::Unknown, run.name, &run.span, "a placeholder that is not known"),
        },
        Some((_, None)) => "{}".to_owned(),
        None => String::new(),
    };
    let operands = rest(run.arguments, at);
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
    let is_shell = operands.first().and_then(Argument::known_text).is_some_and(is_shell);
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
    let grammar = Grammar {
        with_argument: &[
            "-j",
            "--jobs",
            "-P",
            "--max-procs",
            "-a",
            "--arg-file",
            "-I",
            "-n",
            "--max-args",
            "-N",
            "-L",
            "--delay",
            "-d",
            "--delimiter",
            "-C",
            "--colsep",
            "--timeout",
            "--retries",
            "--max-replace-args",
        ],
        without: &[
            "-k",
            "--keep-order",
            "-0",
            "--null",
            "-v",
            "--verbose",
            "-t",
            "--will-cite",
            "--bar",
            "--progress",
            "-u",
            "--ungroup",
            "--group",
            "--line-buffer",
            "--lb",
            "--tag",
            "-X",
            "-m",
            "-q",
            "--quote",
            "--eta",
            "-r",
            "--no-run-if-empty",
            "--dry-run",
        ],
    };
    let Some((at, options)) = skip_options(run.arguments, &grammar) else { return not_understood(walk, run) };
    let operands = rest(run.arguments, at);
    let ends = |argument: &Argument| matches!(argument.known_text(), Some(":::" | "::::" | ":::+" | "::::+"));
    let end = operands.iter().position(ends).unwrap_or(operands.len());
    let command = operands.get(..end).unwrap_or_default();
    if command.is_empty() {
        return walk.add(Effect::Unknown, run.name, &run.span, "runs what it reads");
    }
    if options.iter().any(|(name, _)| name == "--dry-run") {
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
