//! The fields of the document itself.

use interlock_core::workflow::{AfterFinal, OBSERVED, OBSERVED_ROOTS, TRANSITIONS_MAX};

use super::fields::{Fields, Reader};
use super::guards::GuardTable;
use super::node::Node;
use super::problem::{Path, quoted};
use super::{Limits, graph, states};

/// The most commands whose results are observed under a name.
pub const FACTS_MAX: usize = 64;
/// The most bytes of a text for people: a description, instructions.
pub const PROSE_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of a command line.
pub const LINE_BYTES_MAX: usize = 4 * 1024;
/// The most that `max_transitions` may say.
pub const TRANSITIONS_CEILING: u32 = 100_000;

#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "$schema", "after_final", "context", "description", "facts", "format", "guards", "id", "initial",
    "max_transitions", "meta", "states",
];

/// Tells of everything that is wrong with a document.
pub(super) fn check(tree: &Node, limits: &Limits, reader: &mut Reader) {
    let path = &Path::Root;
    let Some(top) = reader.object(tree, path) else { return };
    reader.known(top, path, KNOWN);
    editorial(top, reader);
    id(top, reader);
    if let Some(node) = top.get("description") {
        reader.prose(node, &path.key("description"), PROSE_BYTES_MAX);
    }
    after_final(top, reader);
    max_transitions(top, reader);
    context(top, reader);
    let facts = facts(top, reader);
    let mut guards = GuardTable::read(top, facts, reader);
    let states = states::read(top, limits, &mut guards, reader);
    let initial = initial(top, states.as_ref().map(|(names, _)| names.as_slice()), reader);
    if let Some((_, states)) = states {
        graph::check(&states, initial, reader);
        guards.warn_of_unused(reader);
    }
}

fn max_transitions(top: Fields<'_>, reader: &mut Reader) {
    if let Some(node) = top.get("max_transitions") {
        let absent = format!("leave the field out for {TRANSITIONS_MAX}");
        reader.count(node, &Path::Root.key("max_transitions"), TRANSITIONS_CEILING, &absent);
    }
}

/// Fields that nothing reads again: they stay in the canonical text alone.
fn editorial(top: Fields<'_>, reader: &mut Reader) {
    if let Some(node) = top.get("$schema") {
        reader.string(node, &Path::Root.key("$schema"));
    }
    if let Some(node) = top.get("meta") {
        reader.object(node, &Path::Root.key("meta"));
    }
    if let Some(node) = top.get("format") {
        let path = &Path::Root.key("format");
        let number = node.to_json();
        let number = number.as_number().and_then(|number| number.to_i128());
        if number != Some(1) && !node.is_refused() {
            reader.error_with_help(&node.span, path, "unknown format", "the only format so far is 1".to_owned());
        }
    }
}

fn id(top: Fields<'_>, reader: &mut Reader) {
    let path = &Path::Root.key("id");
    let Some(node) = top.get("id") else {
        let help = "give the workflow a name: `id`".to_owned();
        return reader.error_with_help(&start_of(top), &Path::Root, "`id` is missing", help);
    };
    if let Some(id) = reader.string(node, path) {
        reader.name(id, "a workflow", &node.span, path);
    }
}

fn context(top: Fields<'_>, reader: &mut Reader) {
    let path = &Path::Root.key("context");
    let Some(fields) = top.get("context").and_then(|node| reader.object(node, path)) else { return };
    if let Some(member) = fields.member(OBSERVED) {
        reader.error_with_help(
            &member.key_span,
            &path.key(OBSERVED),
            "`observed` is reserved for what Interlock saw itself",
            "choose another name".to_owned(),
        );
    }
}

/// The names of the facts. One with a problem is among them, so that guards on it are not called undefined.
fn facts<'n>(top: Fields<'n>, reader: &mut Reader) -> Vec<&'n str> {
    let path = &Path::Root.key("facts");
    let Some(fields) = top.get("facts").and_then(|node| reader.object(node, path)) else { return Vec::new() };
    if fields.members.len() > FACTS_MAX {
        reader.error(fields.span, path, format!("more than {FACTS_MAX} facts"));
    }
    for member in fields.members {
        let path = &path.key(&member.key);
        fact_name(&member.key, &member.key_span, path, reader);
        let Some(fact) = reader.object(&member.value, path) else { continue };
        reader.known(fact, path, &["command"]);
        match fact.get("command") {
            Some(node) => reader.line(node, &path.key("command"), LINE_BYTES_MAX),
            None => {
                let help = "say which command to observe: `command: \"pytest -q\"`".to_owned();
                reader.error_with_help(&member.key_span, path, "`command` is missing", help);
            }
        }
    }
    fields.members.iter().map(|member| member.key.as_str()).collect()
}

fn fact_name(name: &str, span: &core::ops::Range<usize>, path: &Path<'_>, reader: &mut Reader) {
    let shape = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && name.len() <= super::NAME_CHARS_MAX;
    if OBSERVED_ROOTS.contains(&name) {
        reader.error(span, path, format!("{} is observed anyway and cannot be declared", quoted(name)));
    } else if !shape {
        let help = "lower-case letters, digits and `_`, a letter first".to_owned();
        reader.error_with_help(span, path, format!("{} is no name for a fact", quoted(name)), help);
    }
}

/// The initial state, among those with these names; without names it is only looked whether something is said.
fn initial(top: Fields<'_>, names: Option<&[&str]>, reader: &mut Reader) -> Option<usize> {
    let path = &Path::Root.key("initial");
    let Some(node) = top.get("initial") else {
        let help = "say in which state a run begins: `initial`".to_owned();
        reader.error_with_help(&start_of(top), &Path::Root, "`initial` is missing", help);
        return None;
    };
    let name = reader.string(node, path)?;
    states::resolve(name, names?, &node.span, path, reader)
}

fn after_final(top: Fields<'_>, reader: &mut Reader) {
    let path = &Path::Root.key("after_final");
    let Some(node) = top.get("after_final") else { return };
    if reader.string(node, path).is_some_and(|word| AfterFinal::parse(word).is_none()) {
        let help = "`open` lifts the limits of phases, `closed` refuses every tool".to_owned();
        reader.error_with_help(&node.span, path, "expected `open` or `closed`", help);
    }
}

/// Where something is missing from a whole document: at its first character.
fn start_of(top: Fields<'_>) -> core::ops::Range<usize> {
    top.span.start..top.span.start.saturating_add(1)
}
