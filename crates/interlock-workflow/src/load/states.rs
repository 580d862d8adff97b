//! States, and the ways between them.

use core::ops::Range;
use std::collections::BTreeMap;

use interlock_core::workflow::{Outcome, ToolPattern};

use super::Limits;
use super::document::{LINE_BYTES_MAX, PROSE_BYTES_MAX};
use super::fields::{Fields, Reader};
use super::guards::GuardTable;
use super::node::{Member, Node, NodeValue};
use super::problem::{Path, quoted};

/// The most events of one state.
pub const EVENTS_MAX: usize = 256;
/// The most guards of one row.
pub const ROW_GUARDS_MAX: usize = 32;
/// The most items of a list of tools, commands or variables.
pub const LIST_ITEMS_MAX: usize = 1_024;
/// The most that a limit of a state may say.
pub const COUNT_MAX: u32 = 1_000_000;

/// What a final state may say.
const KNOWN_FINAL: &[&str] = &["instructions", "outcome", "requires_approval", "type"];
/// What any other state may say, beside `type` and `outcome`.
#[rustfmt::skip]
const KNOWN_ACTIVE: &[&str] = &[
    "allowed_commands", "allowed_tools", "blocked_env", "disallowed_tools", "env_overrides", "instructions",
    "max_edit_lines", "max_files_per_state", "max_iterations", "on", "outcome", "requires_approval", "type",
];

/// What of a state is needed to see where runs can go.
#[derive(Debug)]
pub(super) struct Outline<'n> {
    pub(super) name: &'n str,
    pub(super) is_final: bool,
    /// Where its ways lead, by place.
    pub(super) targets: Vec<usize>,
}

/// The states that were read.
#[derive(Debug)]
pub(super) struct States<'n> {
    pub(super) list: Vec<Outline<'n>>,
    /// Where each state's name stands.
    pub(super) places: Vec<Range<usize>>,
    /// States with an edge whose target nobody can guess. What they reach is not known.
    pub(super) astray: Vec<bool>,
    /// Where the object of all states stands.
    pub(super) span: Range<usize>,
}

/// Reads the states: their names in order, and what they say. `None` only where an error was told of.
pub(super) fn read<'n>(
    top: Fields<'n>,
    limits: &Limits,
    guards: &mut GuardTable<'n>,
    reader: &mut Reader,
) -> Option<(Vec<&'n str>, States<'n>)> {
    let path = &Path::Root.key("states");
    let Some(node) = top.get("states") else {
        let at = top.span.start..top.span.start.saturating_add(1);
        let help = "say which phases of work there are: `states`".to_owned();
        reader.error_with_help(&at, &Path::Root, "`states` is missing", help);
        return None;
    };
    let fields = reader.object(node, path)?;
    if fields.members.is_empty() {
        reader.error(&node.span, path, "there are no states");
        return None;
    }
    if fields.members.len() > limits.states {
        reader.error(&node.span, path, format!("more than {} states", limits.states));
        return None;
    }
    let names: Vec<&str> = fields.members.iter().map(|member| member.key.as_str()).collect();
    warn_of_case(fields.members, path, reader);
    let mut states = States { list: Vec::new(), places: Vec::new(), astray: Vec::new(), span: node.span.clone() };
    for member in fields.members {
        let path = &path.key(&member.key);
        reader.name(&member.key, "a state", &member.key_span, path);
        let (guards, reader) = (&mut *guards, &mut *reader);
        let mut one = OneState { names: &names, limits, guards, reader, targets: Vec::new(), astray: false };
        let is_final = one.read(member, path);
        states.astray.push(one.astray);
        states.list.push(Outline { name: &member.key, is_final, targets: one.targets });
        states.places.push(member.key_span.clone());
    }
    Some((names, states))
}

/// The state with a name, or the one that was meant: then the problem is told of, and reading goes on with it.
pub(super) fn resolve(
    name: &str,
    names: &[&str],
    span: &Range<usize>,
    path: &Path<'_>,
    reader: &mut Reader,
) -> Option<usize> {
    if let Ok(found) = names.binary_search(&name) {
        return Some(found);
    }
    let near = reader.suggester.nearest(name, names.iter().copied());
    let help = near.map(crate::suggest::did_you_mean);
    reader.error_with_help(span, path, format!("there is no state {}", quoted(name)), help);
    names.binary_search(&near?).ok()
}

fn warn_of_case(members: &[Member], path: &Path<'_>, reader: &mut Reader) {
    let mut seen: BTreeMap<String, &Member> = BTreeMap::new();
    let mut in_order: Vec<&Member> = members.iter().collect();
    in_order.sort_by_key(|member| member.key_span.start);
    for member in in_order {
        match seen.get(&member.key.to_lowercase()) {
            Some(first) => {
                let message = format!("differs from the state {} by case alone", quoted(&first.key));
                reader.warn(&member.key_span, &path.key(&member.key), message, None);
            }
            None => {
                seen.insert(member.key.to_lowercase(), member);
            }
        }
    }
}

/// Reads one state.
struct OneState<'r, 'n, 't> {
    names: &'r [&'n str],
    limits: &'r Limits,
    guards: &'r mut GuardTable<'t>,
    reader: &'r mut Reader,
    targets: Vec<usize>,
    astray: bool,
}

impl OneState<'_, '_, '_> {
    /// Whether the state is final.
    fn read(&mut self, member: &Member, path: &Path<'_>) -> bool {
        let Some(fields) = self.reader.object(&member.value, path) else {
            self.astray = true;
            return false;
        };
        let is_final = self.is_final(fields, path);
        if is_final {
            self.nothing_of_a_phase(fields, path);
        } else {
            self.reader.known(fields, path, KNOWN_ACTIVE);
        }
        if let Some(node) = fields.get("instructions") {
            self.reader.prose(node, &path.key("instructions"), PROSE_BYTES_MAX);
        }
        if let Some(node) = fields.get("requires_approval") {
            self.reader.boolean(node, &path.key("requires_approval"));
        }
        if let Some(node) = fields.get("on") {
            self.events(node, &path.key("on"));
        }
        for key in ["allowed_tools", "disallowed_tools"] {
            if let Some(node) = fields.get(key) {
                self.tools(node, &path.key(key));
            }
        }
        if let Some(node) = fields.get("allowed_commands") {
            self.commands(node, &path.key("allowed_commands"));
        }
        self.environment(fields, path);
        for key in ["max_iterations", "max_edit_lines", "max_files_per_state"] {
            if let Some(node) = fields.get(key) {
                self.reader.count(node, &path.key(key), COUNT_MAX, "leave the field out for no limit");
            }
        }
        is_final
    }

    fn is_final(&mut self, fields: Fields<'_>, path: &Path<'_>) -> bool {
        let is_final = fields.get("type").is_some_and(|node| {
            let path = &path.key("type");
            let word = self.reader.string(node, path);
            if word.is_some_and(|word| word != "final") {
                let help = "leave `type` out of a state that is not final".to_owned();
                self.reader.error_with_help(&node.span, path, "expected `final`", help);
            }
            word == Some("final")
        });
        let Some(outcome) = fields.member("outcome") else { return is_final };
        let path = &path.key("outcome");
        if !is_final {
            let help = "add `type: final`, or leave `outcome` out".to_owned();
            self.reader.error_with_help(&outcome.key_span, path, "only a final state has an outcome", help);
        } else if self.reader.string(&outcome.value, path).is_some_and(|word| Outcome::parse(word).is_none()) {
            self.reader.error(&outcome.value.span, path, "expected `success` or `failure`");
        }
        is_final
    }

    /// In a final state no tool call is judged by phase, so a limit there would be read by nobody.
    fn nothing_of_a_phase(&mut self, fields: Fields<'_>, path: &Path<'_>) {
        let (out_of_place, rest): (Vec<&Member>, Vec<&Member>) = fields.members.iter().partition(|member| {
            KNOWN_ACTIVE.contains(&member.key.as_str()) && !KNOWN_FINAL.contains(&member.key.as_str())
        });
        for member in out_of_place {
            let message = format!("a final state cannot have {}", quoted(&member.key));
            let help = match member.key.as_str() {
                "on" => "a run ends there: drop `on`, or drop `type: final`",
                _ => "what holds after the end is said by `after_final`",
            };
            self.reader.error_with_help(&member.key_span, &path.key(&member.key), message, help.to_owned());
        }
        if rest.iter().any(|member| !KNOWN_FINAL.contains(&member.key.as_str())) {
            let rest: Vec<Member> = rest.into_iter().cloned().collect();
            self.reader.known(Fields { members: &rest, span: fields.span }, path, KNOWN_FINAL);
        }
    }

    fn events(&mut self, node: &Node, path: &Path<'_>) {
        let Some(fields) = self.reader.object(node, path) else {
            self.astray = true;
            return;
        };
        if fields.members.len() > EVENTS_MAX {
            self.reader.error(&node.span, path, format!("more than {EVENTS_MAX} events"));
        }
        for member in fields.members {
            let path = &path.key(&member.key);
            self.reader.name(&member.key, "an event", &member.key_span, path);
            self.rows(&member.value, path);
        }
    }

    /// The rows of one event, told of those that are never taken.
    fn rows(&mut self, node: &Node, path: &Path<'_>) {
        let NodeValue::Array(items) = &node.value else { return drop(self.edge(node, path)) };
        if items.is_empty() {
            self.reader.error(&node.span, path, "an event needs a target");
            self.astray = true;
        }
        if items.len() > self.limits.rows {
            self.reader.error(&node.span, path, format!("more than {} rows", self.limits.rows));
            self.astray = true;
            return;
        }
        // Rows without a problem: one with a problem may have lost guards, and says nothing about the others.
        let mut sound: Vec<(usize, Vec<usize>)> = Vec::new();
        for (position, item) in items.iter().enumerate() {
            let path = &path.item(position);
            let before = self.reader.problems.errors.count();
            let Some(asked) = self.edge(item, path) else { continue };
            if self.reader.problems.errors.count() == before {
                let first = sound.iter().find(|(_, guards)| guards.iter().all(|guard| asked.contains(guard)));
                if let Some((first, guards)) = first {
                    let why = if guards.is_empty() { "and has no guards" } else { "and asks for nothing more" };
                    let message = format!("this row is never taken: row {first} comes first {why}");
                    self.reader.warn(&item.span, path, message, "rows are tried in order, from row 0".to_owned());
                }
                sound.push((position, asked));
            }
        }
    }

    /// The guards that a way asks for; `None` if it leads nowhere.
    fn edge(&mut self, node: &Node, path: &Path<'_>) -> Option<Vec<usize>> {
        match &node.value {
            NodeValue::String(name) => self.target(name, node, path).map(|()| Vec::new()),
            NodeValue::Object(members) => self.edge_fields(Fields { members, span: &node.span }, path),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Array(_) | NodeValue::Refused => {
                self.reader.wrong_type(node, path, "the name of a state, or an object with `target`");
                self.astray = true;
                None
            }
        }
    }

    fn edge_fields(&mut self, fields: Fields<'_>, path: &Path<'_>) -> Option<Vec<usize>> {
        self.reader.known(fields, path, &["approval_message", "guard", "guards", "requires_approval", "target"]);
        if fields.member("fork").is_some() {
            self.astray = true;
            return None;
        }
        let guards = self.edge_guards(fields, path);
        let requires_approval = fields
            .get("requires_approval")
            .and_then(|node| self.reader.boolean(node, &path.key("requires_approval")))
            .unwrap_or(false);
        if let Some(member) = fields.member("approval_message") {
            let path = &path.key("approval_message");
            self.reader.prose(&member.value, path, PROSE_BYTES_MAX);
            if !requires_approval {
                let help = "add `requires_approval: true`, or leave it out".to_owned();
                self.reader.warn(&member.key_span, path, "nobody is asked, so nobody reads this", help);
            }
        }
        let Some(node) = fields.get("target") else {
            let at = fields.span.start..fields.span.start.saturating_add(1);
            let help = "say which state it leads to".to_owned();
            self.reader.error_with_help(&at, path, "`target` is missing", help);
            self.astray = true;
            return None;
        };
        let path = &path.key("target");
        let Some(name) = self.reader.string(node, path) else {
            self.astray = true;
            return None;
        };
        self.target(name, node, path).map(|()| guards)
    }

    /// `guard` and `guards` together: all must hold.
    fn edge_guards(&mut self, fields: Fields<'_>, path: &Path<'_>) -> Vec<usize> {
        let mut guards = Vec::new();
        if let Some(node) = fields.get("guard") {
            guards.extend(self.guards.of_edge(node, &path.key("guard"), self.reader));
        }
        if let Some(node) = fields.get("guards") {
            let path = &path.key("guards");
            for (position, item) in self.reader.list(node, path, ROW_GUARDS_MAX).unwrap_or_default().iter().enumerate()
            {
                guards.extend(self.guards.of_edge(item, &path.item(position), self.reader));
            }
            if matches!(&node.value, NodeValue::Array(items) if items.is_empty()) {
                // Whoever wrote it may have meant that something be checked.
                let help = "leave `guards` out of a transition without conditions".to_owned();
                self.reader.error_with_help(&node.span, path, "the list of guards is empty", help);
            }
        }
        guards
    }

    fn target(&mut self, name: &str, node: &Node, path: &Path<'_>) -> Option<()> {
        let target = resolve(name, self.names, &node.span, path, self.reader);
        self.astray |= target.is_none();
        self.targets.push(target?);
        Some(())
    }

    fn tools(&mut self, node: &Node, path: &Path<'_>) {
        let mut tools: Vec<ToolPattern> = Vec::new();
        for (position, item) in self.reader.list(node, path, LIST_ITEMS_MAX).unwrap_or_default().iter().enumerate() {
            let path = &path.item(position);
            let Some(text) = self.reader.string(item, path) else { continue };
            let sound = text.len() <= super::NAME_CHARS_MAX && text.chars().all(interlock_core::is_visible);
            let Some(tool) = ToolPattern::parse(text).filter(|_| sound) else {
                let help = if text.contains('(') {
                    "name the tool alone and say which commands may run with `allowed_commands`"
                } else if text.trim() != text {
                    "leave the spaces out"
                } else {
                    "a name such as `Read`, or the beginning of one and a star: `mcp__github__*`"
                };
                self.reader.error_with_help(&item.span, path, "this is no tool", help.to_owned());
                continue;
            };
            if tools.contains(&tool) {
                self.reader.warn(&item.span, path, format!("{} stands twice", quoted(text)), None);
                continue;
            }
            tools.push(tool);
        }
    }

    /// Variables that are kept from commands, and variables that are given to them.
    fn environment(&mut self, fields: Fields<'_>, path: &Path<'_>) {
        let mut blocked: Vec<&str> = Vec::new();
        if let Some(node) = fields.get("blocked_env") {
            let path = &path.key("blocked_env");
            let items = self.reader.list(node, path, LIST_ITEMS_MAX).unwrap_or_default();
            for (position, item) in items.iter().enumerate() {
                let path = &path.item(position);
                let Some(name) = self.reader.string(item, path) else { continue };
                self.variable(name, &item.span, path);
                blocked.push(name);
            }
        }
        let Some(node) = fields.get("env_overrides") else { return };
        let path = &path.key("env_overrides");
        let Some(given) = self.reader.object(node, path) else { return };
        if given.members.len() > LIST_ITEMS_MAX {
            self.reader.error(&node.span, path, format!("more than {LIST_ITEMS_MAX} variables"));
        }
        for member in given.members {
            let path = &path.key(&member.key);
            self.variable(&member.key, &member.key_span, path);
            if blocked.contains(&member.key.as_str()) {
                let message = format!("{} is blocked and given a value", quoted(&member.key));
                self.reader.error(&member.key_span, path, message);
            }
            let Some(value) = self.reader.string(&member.value, path) else { continue };
            if value.contains('\0') {
                self.reader.error(&member.value.span, path, "no variable can hold a NUL");
            } else if value.len() > LINE_BYTES_MAX {
                self.reader.error(&member.value.span, path, format!("longer than {LINE_BYTES_MAX} bytes"));
            }
        }
    }

    fn variable(&mut self, name: &str, span: &Range<usize>, path: &Path<'_>) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = name.starts_with(|c: char| is_word(c) && !c.is_ascii_digit()) && name.chars().all(is_word);
        if !is_name || name.len() > super::NAME_CHARS_MAX {
            let help = "letters, digits and `_`, no digit first".to_owned();
            self.reader.error_with_help(span, path, format!("{} is no name for a variable", quoted(name)), help);
        }
    }

    fn commands(&mut self, node: &Node, path: &Path<'_>) {
        for (position, item) in self.reader.list(node, path, LIST_ITEMS_MAX).unwrap_or_default().iter().enumerate() {
            self.reader.line(item, &path.item(position), LINE_BYTES_MAX);
        }
    }
}
