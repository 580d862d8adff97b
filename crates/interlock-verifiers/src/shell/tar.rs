//! `tar`: the mode decides.

use super::Effect;
use super::reduce::Argument;
use super::walk::{Run, Walk};

/// Options of one letter that have an argument.
const WITH_ARGUMENT: &str = "fCXTbFgHIKLMNVo";
/// Options written out that have an argument and do nothing but read.
#[rustfmt::skip]
const LONG_WITH_ARGUMENT: &[&str] = &[
    "file", "directory", "exclude", "exclude-from", "files-from", "strip-components", "transform", "xform", "owner",
    "group", "mode", "mtime", "format", "label", "blocking-factor", "newer", "newer-mtime", "after-date",
    "wildcards-match", "starting-file", "sort", "exclude-tag", "suffix", "backup", "quoting-style", "level",
    "tape-length", "record-size", "occurrence", "pax-option", "exclude-ignore", "warning",
    "one-top-level", "hole-detection",
];
/// Options written out without an argument that do nothing worse than the mode.
#[rustfmt::skip]
const LONG_ALONE: &[&str] = &[
    "verbose", "gzip", "gunzip", "bzip2", "xz", "lzma", "zstd", "compress", "lzip", "lzop", "auto-compress",
    "preserve-permissions", "same-permissions", "no-same-owner", "same-owner", "no-same-permissions",
    "keep-old-files", "skip-old-files", "overwrite", "wildcards", "no-wildcards", "anchored", "exclude-vcs",
    "no-recursion", "recursion", "dereference", "hard-dereference", "one-file-system", "numeric-owner", "totals",
    "to-stdout", "sparse", "absolute-names", "verify", "utc", "full-time", "block-number", "show-transformed-names",
    "null", "ignore-case", "keep-newer-files", "unlink-first", "recursive-unlink", "touch", "acls", "xattrs",
    "selinux", "delay-directory-restore", "ignore-zeros", "posix", "old-archive", "portability", "no-auto-compress",
    "exclude-vcs-ignores", "checkpoint", "interactive", "confirmation", "exclude-caches", "exclude-backups", "no-overwrite-dir",
    "multi-volume", "seek", "no-seek", "restrict", "ignore-failed-read",
];

/// What a call says.
#[derive(Default)]
struct Call {
    mode: Option<char>,
    files: Vec<Argument>,
    to_stdout: bool,
    not_known: bool,
    runs: bool,
    removes: bool,
    operands: Vec<Argument>,
    directory: Vec<Argument>,
    /// Names of files are taken from a list.
    has_list: bool,
    /// Where the list of names is written.
    indexes: Vec<Argument>,
}

/// Runs `tar`.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let call = read(run);
    if call.runs {
        walk.add(Effect::Unknown, run.name, &run.span, "an option that runs a program");
    }
    if call.not_known {
        walk.add(Effect::Unknown, run.name, &run.span, "an option that is not known");
    }
    if call.removes {
        walk.add(Effect::Destructive, run.name, &run.span, "removes files after it stored them");
    }
    for index in &call.indexes {
        walk.writes(index, run.name, &index.span);
    }
    if call.files.iter().chain(&call.directory).any(|value| value.splits) {
        walk.add(Effect::Unknown, run.name, &run.span, "an argument that is not known could be an option");
    }
    let file = call.files.last();
    let is_stream = file.is_none() || file.and_then(Argument::known_text) == Some("-");
    let remote = |file: &&Argument| file.known_text().unwrap_or(file.prefix()).contains(':');
    if file.filter(remote).is_some() {
        walk.add(Effect::Network, run.name, &run.span, "names another machine");
    }
    match call.mode {
        Some('t' | 'd') => walk.add(Effect::ReadOnly, run.name, &run.span, "lists or compares"),
        Some('x') if call.to_stdout => walk.add(Effect::ReadOnly, run.name, &run.span, "extracts to its output"),
        Some('x') => {
            walk.add(Effect::Write, run.name, &run.span, "extracts files");
            for place in call.directory.iter().chain(&call.operands) {
                super::programs::arms(walk, place, run.name);
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
        Some('D') => walk.add(Effect::Destructive, run.name, &run.span, "deletes from an archive"),
        Some(_) | None => walk.add(Effect::Unknown, run.name, &run.span, "what it is to do is not known"),
    }
}

/// Whether it writes what is in an archive.
pub(super) fn extracts(run: &Run<'_>) -> bool {
    let call = read(run);
    call.mode.is_none_or(|mode| mode == 'x') && !call.to_stdout
}

/// Whether it reads files to store or to compare them.
pub(super) fn stores(run: &Run<'_>) -> bool {
    read(run).mode.is_none_or(|mode| matches!(mode, 'c' | 'r' | 'u' | 'A' | 'd'))
}

/// Whether it takes the names of files from a list.
pub(super) fn has_list(run: &Run<'_>) -> bool {
    read(run).has_list
}

fn read(run: &Run<'_>) -> Call {
    let mut call = Call::default();
    let mut at = 0usize;
    let mut ended = false;
    while let Some(argument) = run.arguments.get(at) {
        let here = at;
        at = at.saturating_add(1);
        let Some(text) = argument.known_text() else {
            call.not_known |=
                !ended && (argument.may_be_option || argument.splits || argument.prefix().starts_with('-'));
            call.operands.push(argument.clone());
            continue;
        };
        if text == "--" {
            ended = true;
            continue;
        }
        if !ended && text.starts_with("--") {
            long(&mut call, run, text, argument, &mut at);
        } else if !ended && text.len() > 1 && text.starts_with('-') {
            letters(&mut call, run, text.get(1..).unwrap_or(""), argument, &mut at, false);
        } else if here == 0 {
            letters(&mut call, run, text, argument, &mut at, true);
        } else {
            call.operands.push(argument.clone());
        }
    }
    call
}

fn letters(call: &mut Call, run: &Run<'_>, text: &str, argument: &Argument, at: &mut usize, old_style: bool) {
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            'c' | 'r' | 't' | 'u' | 'x' | 'A' | 'd' => call.mode = Some(letter),
            'O' => call.to_stdout = true,
            'I' | 'F' => {
                call.runs = true;
                if !old_style && !rest.as_str().is_empty() {
                    return;
                }
                *at = at.saturating_add(1);
            }
            // With the old style every argument is a word of its own; `-o` of GNU has none.
            _ if WITH_ARGUMENT.contains(letter) && letter != 'o' && letter != 'M' => {
                let attached = rest.as_str();
                let value = if old_style || attached.is_empty() {
                    let next = run.arguments.get(*at).cloned();
                    *at = at.saturating_add(1);
                    next
                } else {
                    Some(Argument::known(attached, argument.span.clone()))
                };
                match letter {
                    'f' => call.files.extend(value),
                    'C' => call.directory.extend(value),
                    'T' => call.has_list = true,
                    // What was stored is noted there for the next time.
                    'g' => call.indexes.extend(value),
                    _ => {}
                }
                if !old_style {
                    return;
                }
            }
            'v' | 'z' | 'j' | 'J' | 'Z' | 'a' | 'p' | 'h' | 'l' | 'm' | 'n' | 'o' | 'P' | 'k' | 'w' | 'W' | 'S'
            | 's' | 'i' | 'B' | 'G' | 'R' | 'U' | 'M' => {}
            _ => call.not_known = true,
        }
    }
}

fn long(call: &mut Call, run: &Run<'_>, text: &str, argument: &Argument, at: &mut usize) {
    let text = text.strip_prefix("--").unwrap_or(text);
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let value = value.map(|value| Argument::known(value, argument.span.clone()));
    let mut next = || {
        let next = run.arguments.get(*at).cloned();
        *at = at.saturating_add(1);
        next
    };
    match name {
        "create" => call.mode = Some('c'),
        "extract" | "get" => call.mode = Some('x'),
        "list" => call.mode = Some('t'),
        "append" => call.mode = Some('r'),
        "update" => call.mode = Some('u'),
        "concatenate" | "catenate" => call.mode = Some('A'),
        "diff" | "compare" => call.mode = Some('d'),
        "delete" => call.mode = Some('D'),
        "to-stdout" => call.to_stdout = true,
        "remove-files" => call.removes = true,
        "checkpoint-action" => {
            let value = value.or_else(next);
            let quiet = value
                .as_ref()
                .and_then(Argument::known_text)
                .is_some_and(|text| matches!(text, "dot" | "." | "echo" | "bell" | "totals"));
            call.runs |= !quiet;
        }
        "file" => call.files.extend(value.or_else(next)),
        "directory" => call.directory.extend(value.or_else(next)),
        "index-file" | "listed-incremental" => call.indexes.extend(value.or_else(next)),
        _ if LONG_WITH_ARGUMENT.contains(&name) => {
            if value.is_none() && !matches!(name, "backup" | "one-top-level" | "occurrence") {
                let _ = next();
            }
        }
        _ if LONG_ALONE.contains(&name) => {}
        // An abbreviation of an option that removes is one.
        _ if name.len() > 2 && "remove-files".starts_with(name) => call.removes = true,
        _ if name.len() > 2 && "to-command".starts_with(name) => call.runs = true,
        _ => call.runs = true,
    }
}
