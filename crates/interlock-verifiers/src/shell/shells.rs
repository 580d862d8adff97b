//! Shells that run a text: one that is known is read, everything else is not.

use super::reduce::Argument;
use super::walk::{Run, Walk};
use super::{Effect, Executor};

/// Options by name that change neither what words become nor what variables reach.
#[rustfmt::skip]
const PLAIN_OPTIONS: &[&str] = &[
    "errexit", "nounset", "pipefail", "xtrace", "verbose", "noclobber", "noglob", "monitor", "posix", "noexec",
    "nullglob", "failglob", "lastpipe", "inherit_errexit", "checkwinsize", "physical", "errtrace", "functrace",
    "braceexpand", "hashall", "notify", "ignoreeof",
];

/// `sh`, `bash` and their relatives: a text is read, everything else is not known.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let executor = Executor::named(if run.name == "rbash" { "bash" } else { run.name });
    let mut command = false;
    let mut checks_only = false;
    let mut reads_input = false;
    let mut at = 0usize;
    while let Some(argument) = run.arguments.get(at) {
        let Some(text) = argument.known_text() else { break };
        if text == "--" || text == "-" {
            at = at.saturating_add(1);
            break;
        }
        if text.len() < 2 || !text.starts_with(['-', '+']) {
            break;
        }
        at = at.saturating_add(1);
        match text {
            "--login" | "--noprofile" | "--norc" | "--posix" | "--verbose" | "--restricted" | "--noediting" => continue,
            _ if text.starts_with("--") => {
                return walk.add(Effect::Unknown, run.name, &run.span, "an option that is not known");
            }
            _ => {}
        }
        for letter in text.chars().skip(1) {
            match letter {
                'c' => command = true,
                'n' => checks_only = text.starts_with('-'),
                's' => reads_input = true,
                'o' | 'O' => {
                    let option = run.arguments.get(at).and_then(Argument::known_text);
                    if !option.is_some_and(|option| PLAIN_OPTIONS.contains(&option)) {
                        walk.add(Effect::Unknown, run.name, &run.span, "an option that changes what words become");
                    }
                    if option == Some("noexec") {
                        checks_only = text.starts_with('-');
                    }
                    if matches!(option, None | Some("allexport" | "keyword")) {
                        return;
                    }
                    at = at.saturating_add(1);
                }
                'e' | 'x' | 'u' | 'l' | 'i' | 'f' | 'v' | 'h' | 'p' | 'B' | 'E' | 'P' | 'T' | 'm' | 'b' | 'C' | 'H' => {
                }
                _ => return walk.add(Effect::Unknown, run.name, &run.span, "an option that is not known"),
            }
        }
    }
    if checks_only {
        // Together with `-v` it prints what it reads.
        let files = run.arguments.get(at..).unwrap_or_default();
        if let Some(words) = &mut walk.findings.words {
            files.iter().filter(|_| !command).for_each(|file| words.read(file));
        }
        return harmless(walk, run, "checks syntax and runs nothing");
    }
    let operand = run.arguments.get(at);
    match (command, operand) {
        (true, Some(text)) => {
            code(walk, run, text, run.arguments.get(at.saturating_add(1)..).unwrap_or_default(), executor);
        }
        (true, None) => harmless(walk, run, "runs nothing"),
        (false, None) => input(walk, run, executor),
        (false, Some(_)) if reads_input => {
            input_given(walk, run, run.arguments.get(at..).unwrap_or_default(), executor);
        }
        (false, Some(file)) => {
            walk.add(Effect::Unknown, run.name, &file.span, "runs a file");
        }
    }
}

/// A text given as argument.
fn code(walk: &mut Walk<'_, '_>, run: &Run<'_>, text: &Argument, given: &[Argument], executor: Executor) {
    let written = text.known_text().filter(|known| *known == text.prefix());
    match written {
        Some(known) => {
            let (known, span) = (known.to_owned(), text.span.clone());
            walk.text_given(&known, &span, executor, given);
            walk.add(Effect::ReadOnly, run.name, &run.span, "runs text that is known");
        }
        None => {
            walk.add(Effect::Unknown, run.name, &text.span, "runs text that is not known");
            walk.partly(text.skeleton(), &text.span);
        }
    }
}

/// A shell that reads its input: a here-document or here-string that is known, else anything.
pub(super) fn input(walk: &mut Walk<'_, '_>, run: &Run<'_>, executor: Executor) {
    input_given(walk, run, &[], executor);
}

fn input_given(walk: &mut Walk<'_, '_>, run: &Run<'_>, given: &[Argument], executor: Executor) {
    use super::syntax::RedirectKind;
    let documents: Vec<_> = run
        .redirects
        .iter()
        .filter(|redirect| match redirect.kind {
            RedirectKind::HereDocument { .. }
            | RedirectKind::HereString
            | RedirectKind::Input
            | RedirectKind::DuplicateInput
            | RedirectKind::Both => redirect.descriptor.is_none_or(|descriptor| descriptor == 0),
            RedirectKind::Output | RedirectKind::DuplicateOutput => false,
        })
        .collect();
    let text = documents
        .last()
        .filter(|redirect| matches!(redirect.kind, RedirectKind::HereDocument { .. } | RedirectKind::HereString));
    match text.and_then(|redirect| redirect.target.text().map(|text| (text, redirect.span.clone()))) {
        Some((text, span)) => {
            walk.text_given(&text, &span, executor, given);
            walk.add(Effect::ReadOnly, run.name, &run.span, "runs text that is known");
        }
        None => {
            walk.add(Effect::Unknown, run.name, &run.span, "runs what it reads");
            if let Some(redirect) = text {
                let target = super::reduce::argument(&redirect.target, walk.values);
                walk.partly(target.skeleton(), &redirect.span);
            }
        }
    }
}

fn harmless(walk: &mut Walk<'_, '_>, run: &Run<'_>, why: &'static str) {
    walk.add(Effect::ReadOnly, run.name, &run.span, why);
}
