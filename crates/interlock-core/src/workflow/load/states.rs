//! States, and the ways between them.

use core::ops::Range;
use std::collections::BTreeMap;

use super::Limits;
use super::document::{LINE_BYTES_MAX, PROSE_BYTES_MAX};
use super::fields::{Fields, Reader};
use super::guards::GuardTable;
use super::node::{Member, Node, NodeValue};
use super::problem::{Path, quoted};
use crate::workflow::definition::{Edge, GuardId, Outcome, State, StateId, StateKind, ToolPattern};

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

/// The states that were read.
#[derive(Debug)]
pub(super) struct States {
    pub(super) list: Vec<State>,
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
) -> Option<(Vec<&'n str>, States)> {
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
        let mut one = OneState { names: &names, limits, guards: &mut *guards, reader: &mut *reader, astray: false };
        states.list.push(one.read(member, path));
        states.astray.push(one.astray);
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
) -> Option<StateId> {
    let id = |position: usize| u32::try_from(position).ok().map(StateId);
    if let Ok(found) = names.binary_search(&name) {
        return id(found);
    }
    let near = reader.suggester.nearest(name, names.iter().copied());
    let help = near.map(super::suggest::did_you_mean);
    reader.error_with_help(span, path, format!("there is no state {}", quoted(name)), help);
    names.binary_search(&near?).ok().and_then(id)
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
    astray: bool,
}

impl OneState<'_, '_, '_> {
    fn read(&mut self, member: &Member, path: &Path<'_>) -> State {
        let mut state = State {
            name: member.key.clone(),
            kind: StateKind::Active,
            on: Vec::new(),
            allowed_tools: None,
            disallowed_tools: Vec::new(),
            instructions: None,
            max_iterations: None,
            allowed_commands: None,
            max_edit_lines: None,
            max_files_per_state: None,
            blocked_env: Vec::new(),
            env_overrides: BTreeMap::new(),
            requires_approval: false,
        };
        let Some(fields) = self.reader.object(&member.value, path) else {
            self.astray = true;
            return state;
        };
        state.kind = self.kind(&member.key, fields, path);
        match state.kind {
            StateKind::Active => self.reader.known(fields, path, KNOWN_ACTIVE),
            StateKind::Final(_) => self.nothing_of_a_phase(fields, path),
        }
        state.instructions = fields
            .get("instructions")
            .and_then(|node| self.reader.prose(node, &path.key("instructions"), PROSE_BYTES_MAX));
        state.requires_approval = fields
            .get("requires_approval")
            .and_then(|node| self.reader.boolean(node, &path.key("requires_approval")))
            .unwrap_or(false);
        if let Some(node) = fields.get("on") {
            state.on = self.events(node, &path.key("on"));
        }
        state.allowed_tools = fields.get("allowed_tools").map(|node| self.tools(node, &path.key("allowed_tools")));
        state.disallowed_tools = fields
            .get("disallowed_tools")
            .map(|node| self.tools(node, &path.key("disallowed_tools")))
            .unwrap_or_default();
        state.allowed_commands =
            fields.get("allowed_commands").map(|node| self.commands(node, &path.key("allowed_commands")));
        state.max_iterations = self.count(fields, "max_iterations", path);
        state.max_edit_lines = self.count(fields, "max_edit_lines", path);
        state.max_files_per_state = self.count(fields, "max_files_per_state", path);
        self.environment(fields, path, &mut state);
        state
    }

    fn kind(&mut self, name: &str, fields: Fields<'_>, path: &Path<'_>) -> StateKind {
        let is_final = match fields.get("type") {
            None => false,
            Some(node) => {
                let path = &path.key("type");
                match self.reader.string(node, path) {
                    Some("final") => true,
                    Some(_) => {
                        let help = "leave `type` out of a state that is not final".to_owned();
                        self.reader.error_with_help(&node.span, path, "expected `final`", help);
                        false
                    }
                    None => false,
                }
            }
        };
        let outcome = fields.member("outcome");
        if !is_final {
            if let Some(member) = outcome {
                let help = "add `type: final`, or leave `outcome` out".to_owned();
                let message = "only a final state has an outcome";
                self.reader.error_with_help(&member.key_span, &path.key("outcome"), message, help);
            }
            return StateKind::Active;
        }
        let by_name = match name {
            "failed" | "failure" | "error" | "cancelled" => Outcome::Failure,
            _ => Outcome::Success,
        };
        let Some(member) = outcome else { return StateKind::Final(by_name) };
        let path = &path.key("outcome");
        let word = self.reader.string(&member.value, path);
        let said = word.and_then(Outcome::parse);
        if word.is_some() && said.is_none() {
            self.reader.error(&member.value.span, path, "expected `success` or `failure`");
        }
        StateKind::Final(said.unwrap_or(by_name))
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

    fn events(&mut self, node: &Node, path: &Path<'_>) -> Vec<(String, Vec<Edge>)> {
        let Some(fields) = self.reader.object(node, path) else {
            self.astray = true;
            return Vec::new();
        };
        if fields.members.len() > EVENTS_MAX {
            self.reader.error(&node.span, path, format!("more than {EVENTS_MAX} events"));
        }
        let mut events = Vec::new();
        for member in fields.members {
            let path = &path.key(&member.key);
            self.reader.name(&member.key, "an event", &member.key_span, path);
            events.push((member.key.clone(), self.rows(&member.value, path)));
        }
        events
    }

    /// The rows of one event, told of those that are never taken.
    fn rows(&mut self, node: &Node, path: &Path<'_>) -> Vec<Edge> {
        let NodeValue::Array(items) = &node.value else { return self.edge(node, path).into_iter().collect() };
        if items.is_empty() {
            self.reader.error(&node.span, path, "an event needs a target");
            self.astray = true;
        }
        if items.len() > self.limits.rows {
            self.reader.error(&node.span, path, format!("more than {} rows", self.limits.rows));
            self.astray = true;
            return Vec::new();
        }
        let mut rows: Vec<Edge> = Vec::new();
        // Rows without a problem: one with a problem may have lost guards, and says nothing about the others.
        let mut sound: Vec<(usize, Vec<GuardId>)> = Vec::new();
        for (position, item) in items.iter().enumerate() {
            let path = &path.item(position);
            let before = self.reader.problems.errors.count();
            let Some(edge) = self.edge(item, path) else { continue };
            if self.reader.problems.errors.count() == before {
                let first = sound.iter().find(|(_, guards)| guards.iter().all(|guard| edge.guards.contains(guard)));
                if let Some((first, guards)) = first {
                    let why = if guards.is_empty() { "and has no guards" } else { "and asks for nothing more" };
                    let message = format!("this row is never taken: row {first} comes first {why}");
                    self.reader.warn(&item.span, path, message, "rows are tried in order, from row 0".to_owned());
                }
                sound.push((position, edge.guards.clone()));
            }
            rows.push(edge);
        }
        rows
    }

    fn edge(&mut self, node: &Node, path: &Path<'_>) -> Option<Edge> {
        let plain = |target| Edge { target, guards: Vec::new(), requires_approval: false, approval_message: None };
        match &node.value {
            NodeValue::String(name) => self.target(name, node, path).map(plain),
            NodeValue::Object(members) => self.edge_fields(Fields { members, span: &node.span }, path),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Array(_) | NodeValue::Refused => {
                self.reader.wrong_type(node, path, "the name of a state, or an object with `target`");
                self.astray = true;
                None
            }
        }
    }

    fn edge_fields(&mut self, fields: Fields<'_>, path: &Path<'_>) -> Option<Edge> {
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
        let message_path = &path.key("approval_message");
        let approval_message =
            fields.get("approval_message").and_then(|node| self.reader.prose(node, message_path, PROSE_BYTES_MAX));
        if let Some(member) = fields.member("approval_message").filter(|_| !requires_approval) {
            let help = "add `requires_approval: true`, or leave it out".to_owned();
            self.reader.warn(&member.key_span, message_path, "nobody is asked, so nobody reads this", help);
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
        let target = self.target(name, node, path)?;
        Some(Edge { target, guards, requires_approval, approval_message })
    }

    /// `guard` and `guards` together: all must hold.
    fn edge_guards(&mut self, fields: Fields<'_>, path: &Path<'_>) -> Vec<GuardId> {
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
        let mut once = Vec::new();
        guards.into_iter().for_each(|guard| {
            if !once.contains(&guard) {
                once.push(guard);
            }
        });
        once
    }

    fn target(&mut self, name: &str, node: &Node, path: &Path<'_>) -> Option<StateId> {
        let target = resolve(name, self.names, &node.span, path, self.reader);
        self.astray |= target.is_none();
        target
    }

    fn tools(&mut self, node: &Node, path: &Path<'_>) -> Vec<ToolPattern> {
        let mut tools: Vec<ToolPattern> = Vec::new();
        for (position, item) in self.reader.list(node, path, LIST_ITEMS_MAX).unwrap_or_default().iter().enumerate() {
            let path = &path.item(position);
            let Some(text) = self.reader.string(item, path) else { continue };
            let sound = text.len() <= super::NAME_CHARS_MAX && text.chars().all(crate::is_visible);
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
        tools
    }

    fn commands(&mut self, node: &Node, path: &Path<'_>) -> Vec<String> {
        let items = self.reader.list(node, path, LIST_ITEMS_MAX).unwrap_or_default();
        items
            .iter()
            .enumerate()
            .filter_map(|(position, item)| self.reader.line(item, &path.item(position), LINE_BYTES_MAX))
            .collect()
    }

    fn count(&mut self, fields: Fields<'_>, key: &str, path: &Path<'_>) -> Option<u32> {
        fields
            .get(key)
            .and_then(|node| self.reader.count(node, &path.key(key), COUNT_MAX, "leave the field out for no limit"))
    }

    fn environment(&mut self, fields: Fields<'_>, path: &Path<'_>, state: &mut State) {
        if let Some(node) = fields.get("blocked_env") {
            let path = &path.key("blocked_env");
            for (position, item) in self.reader.list(node, path, LIST_ITEMS_MAX).unwrap_or_default().iter().enumerate()
            {
                let path = &path.item(position);
                let Some(name) = self.reader.string(item, path) else { continue };
                self.variable(name, &item.span, path);
                state.blocked_env.push(name.to_owned());
            }
        }
        let Some(node) = fields.get("env_overrides") else { return };
        let path = &path.key("env_overrides");
        let Some(overrides) = self.reader.object(node, path) else { return };
        if overrides.members.len() > LIST_ITEMS_MAX {
            self.reader.error(&node.span, path, format!("more than {LIST_ITEMS_MAX} variables"));
        }
        for member in overrides.members {
            let path = &path.key(&member.key);
            self.variable(&member.key, &member.key_span, path);
            if state.blocked_env.contains(&member.key) {
                let message = format!("{} is blocked and given a value", quoted(&member.key));
                self.reader.error(&member.key_span, path, message);
            }
            let Some(value) = self.reader.string(&member.value, path) else { continue };
            if value.contains('\0') {
                self.reader.error(&member.value.span, path, "no variable can hold a NUL");
            }
            state.env_overrides.insert(member.key.clone(), value.to_owned());
        }
    }

    fn variable(&mut self, name: &str, span: &Range<usize>, path: &Path<'_>) {
        let sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.len() <= super::NAME_CHARS_MAX;
        if !sound {
            let help = "letters, digits and `_`, no digit first".to_owned();
            self.reader.error_with_help(span, path, format!("{} is no name for a variable", quoted(name)), help);
        }
    }
}
