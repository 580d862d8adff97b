//! `git config`: which settings it reads, and which it changes.

use super::Effect;
use super::git_settings::names_program;
use super::reduce::Argument;
use super::walk::{Run, Walk};

use Effect::{ReadOnly, Unknown, Write};

/// Options that are followed by a word of their own.
const WITH_VALUE: [&str; 10] =
    ["-f", "--file", "--blob", "--type", "-t", "--default", "--value", "--url", "--comment", "--get-color"];
/// Options by which something is read. The ones with a key are followed by it, which is an operand here.
#[rustfmt::skip]
const READING: [&str; 8] = [
    "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "--get-color", "--get-colorbool",
];
/// Options by which a setting is changed that the first operand names.
const CHANGING: [&str; 5] = ["--unset", "--unset-all", "--add", "--replace-all", "--append"];
/// The verbs of newer versions.
const VERBS: [&str; 7] = ["list", "get", "set", "unset", "rename-section", "remove-section", "edit"];
/// Options that say where, or how values look.
#[rustfmt::skip]
const PLAIN: [&str; 21] = [
    "--global", "--system", "--local", "--worktree", "--bool", "--int", "--bool-or-int", "--bool-or-str", "--path",
    "--expiry-date", "--no-type", "-z", "--null", "--name-only", "--show-names", "--no-show-names", "--show-origin",
    "--show-scope", "--includes", "--no-includes", "--fixed-value",
];
/// Sections without which nothing runs that did not run before.
const PLAIN_SECTIONS: [&str; 8] = ["branch", "remote", "submodule", "user", "color", "advice", "lfs", "gitflow"];

/// What a call is about.
#[derive(Debug, Default)]
struct Given<'a> {
    operands: Vec<&'a Argument>,
    files: Vec<Option<&'a Argument>>,
    /// It reads, whatever else is given.
    reads: bool,
    changes: bool,
    /// The keys of a whole section are changed.
    section: Option<Section>,
    edits: bool,
    /// Options that are not known, abbreviations of others among them.
    has_odd_options: bool,
    may_have_options: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Renamed,
    Removed,
}

impl<'a> Given<'a> {
    fn of(arguments: &'a [Argument]) -> Given<'a> {
        let mut given = Given::default();
        let mut words = arguments.iter();
        while let Some(argument) = words.next() {
            let Some(text) = argument.known_text() else {
                given.may_have_options |= argument.may_be_option || argument.splits;
                given.operands.push(argument);
                break;
            };
            if text.len() < 2 || !text.starts_with('-') {
                let is_verb = given.operands.is_empty() && VERBS.contains(&text);
                given.operands.push(argument);
                if is_verb {
                    continue;
                }
                break;
            }
            let (option, attached) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
            given.reads |= READING.contains(&option);
            given.changes |= CHANGING.contains(&option);
            let is_known = READING.contains(&option) || CHANGING.contains(&option) || PLAIN.contains(&option);
            match option {
                "-e" | "--edit" => given.edits = true,
                "--rename-section" => given.section = Some(Section::Renamed),
                "--remove-section" => given.section = Some(Section::Removed),
                "--all" | "--regexp" => {}
                _ if WITH_VALUE.contains(&option) => {
                    let value = if attached.is_none() { words.next() } else { None };
                    if matches!(option, "-f" | "--file") {
                        given.files.push(value.or(Some(argument)));
                    }
                    // What is written behind a setting could be a line of its own.
                    given.has_odd_options |= option == "--comment";
                    given.may_have_options |= value.is_some_and(|value| value.splits);
                }
                _ => given.has_odd_options |= !is_known,
            }
        }
        // Options end at the first operand: what follows are operands, whatever they look like.
        given.operands.extend(words);
        given
    }

    /// The verb of newer versions; what follows it is left.
    fn take_verb(&mut self) {
        let verb = self.operands.first().and_then(|operand| operand.known_text());
        match verb {
            Some("list" | "get") => self.reads = true,
            Some("edit") => self.edits = true,
            Some("set" | "unset") => self.changes = true,
            Some("rename-section") => self.section = Some(Section::Renamed),
            Some("remove-section") => self.section = Some(Section::Removed),
            Some(_) | None => return,
        }
        self.operands.remove(0);
    }
}

pub(super) fn judge(walk: &mut Walk<'_, '_>, arguments: &[Argument], run: &Run<'_>) -> (Effect, &'static str) {
    let mut given = Given::of(arguments);
    given.take_verb();
    if given.edits {
        return (Unknown, "asks for an editor");
    }
    let changes = given.changes || given.section.is_some();
    if given.has_odd_options {
        return (Unknown, "an option that is not known");
    }
    if !changes && (given.reads || given.operands.len() < 2) {
        if given.may_have_options {
            walk.add(Unknown, "git config", &run.span, "an argument that is not known could be an option");
        }
        return (ReadOnly, "reads settings");
    }
    for file in given.files.iter().flatten() {
        let path = file.known_text().and_then(|text| text.split_once('=')).map(|(_, path)| path);
        let named = path.filter(|_| file.prefix().starts_with('-'));
        let named = named.map(|path| Argument::known(path, file.span.clone()));
        super::programs::arms(walk, named.as_ref().unwrap_or(file), "git config");
    }
    let key = given.operands.first().and_then(|operand| operand.known_text());
    match (given.section, key) {
        // What a harmless section holds can be a program in another one.
        (Some(Section::Renamed), _) => (Unknown, "moves settings to where they can name a program"),
        (Some(Section::Removed), Some(section)) => {
            let kind = section.split('.').next().unwrap_or("").to_ascii_lowercase();
            let plain = PLAIN_SECTIONS.contains(&kind.as_str());
            if plain { (Write, "changes settings") } else { (Unknown, "removes settings that keep programs away") }
        }
        (None, Some(key)) if !names_program(key) && !given.may_have_options => (Write, "changes settings"),
        (Some(Section::Removed) | None, _) => (Unknown, "a setting that can name a program"),
    }
}
