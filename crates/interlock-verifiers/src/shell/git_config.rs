//! `git config`: which settings it reads, and which it changes.

use super::git_settings::names_program;
use super::options::{self, Call, Given};
use super::reduce::Argument;
use super::table::Spec;
use super::walk::{Run, Walk};
use super::{Effect, table};

use Effect::{ReadOnly, Unknown, Write};

/// The verbs of newer versions.
const VERBS: [&str; 7] = ["list", "get", "set", "unset", "rename-section", "remove-section", "edit"];
/// Options by which something is read.
#[rustfmt::skip]
const READING: [&str; 8] = [
    "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "--get-color", "--get-colorbool",
];
/// Options by which a setting is changed that the first operand names.
const CHANGING: [&str; 5] = ["--unset", "--unset-all", "--add", "--replace-all", "--append"];
/// Sections without which nothing runs that did not run before.
const PLAIN_SECTIONS: [&str; 8] = ["branch", "remote", "submodule", "user", "color", "advice", "lfs", "gitflow"];

/// What a call is about.
#[derive(Debug, Default)]
struct ConfigCall<'a> {
    operands: Vec<&'a Argument>,
    files: Vec<Argument>,
    /// It reads, whatever else is given.
    reads: bool,
    changes: bool,
    /// The keys of a whole section are changed.
    section: Option<Section>,
    edits: bool,
    /// Options that are not known.
    has_odd_options: bool,
    may_have_options: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Renamed,
    Removed,
}

impl<'a> ConfigCall<'a> {
    /// Reads options up to the first operand; behind a verb of newer versions, once more.
    fn of(spec: &'a Spec, arguments: &'a [Argument]) -> ConfigCall<'a> {
        let mut asked = ConfigCall::default();
        let call = options::read_until_verb(spec, arguments);
        let verb = call.operands.first().and_then(|operand| operand.known_text()).filter(|verb| VERBS.contains(verb));
        let behind = verb.and(call.first_operand).and_then(|at| arguments.get(at.saturating_add(1)..));
        asked.add(call);
        if let (Some(verb), Some(behind)) = (verb, behind) {
            asked.add_verb(verb);
            asked.add(options::read_until_verb(spec, behind));
        }
        asked
    }

    fn add(&mut self, call: Call<'a>) {
        let is_several = |operand: &&&Argument| operand.known_text().is_none() && operand.splits;
        self.may_have_options |= call.may_have_options || call.operands.first().filter(is_several).is_some();
        self.has_odd_options |= call.has_unlisted;
        self.operands = call.operands;
        for Given { name, value, .. } in call.given {
            self.reads |= READING.contains(&name);
            self.changes |= CHANGING.contains(&name);
            self.may_have_options |= value.as_ref().is_some_and(|value| value.splits);
            match name {
                "-e" | "--edit" => self.edits = true,
                "--rename-section" => self.section = Some(Section::Renamed),
                "--remove-section" => self.section = Some(Section::Removed),
                "-f" | "--file" => self.files.extend(value),
                // What is written behind a setting could be a line of its own.
                "--comment" => self.has_odd_options = true,
                _ => {}
            }
        }
    }

    fn add_verb(&mut self, verb: &str) {
        match verb {
            "list" | "get" => self.reads = true,
            "edit" => self.edits = true,
            "set" | "unset" => self.changes = true,
            "rename-section" => self.section = Some(Section::Renamed),
            _ => self.section = Some(Section::Removed),
        }
    }
}

pub(super) fn judge(walk: &mut Walk<'_, '_>, arguments: &[Argument], run: &Run<'_>) -> (Effect, &'static str) {
    let Some(spec) = table::git_entry("config") else { return (Unknown, "options that no table lists") };
    let given = ConfigCall::of(spec, arguments);
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
    for file in &given.files {
        super::programs::arms(walk, file, "git config");
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
