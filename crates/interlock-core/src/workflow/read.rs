//! Reads the canonical text of a workflow, as entries keep it: a workflow with every name resolved, or nothing.
//!
//! What people write is loaded by the crate `interlock-workflow`, which tells of everything that is wrong with a text
//! and hands what it accepts to this reader: a workflow is built in one place. What is on record stays readable for
//! ever.

use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroU32;
use std::collections::BTreeMap;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::definition::{
    AfterFinal, Edge, Fact, Guard, GuardId, Operator, Outcome, Source, State, StateId, StateKind, TRANSITIONS_MAX,
    ToolPattern, Workflow,
};
use super::guard::{OBSERVED, OBSERVED_ROOTS};
use crate::digest::Digest;
use crate::display::display;
use crate::json::{self, Json, Limits, LoadError, RawJson};

/// The most bytes of the canonical text, where a character may take six times what it takes in YAML.
pub const CANONICAL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most values in a document.
pub const VALUES_MAX: usize = 200_000;
/// A value at this depth is refused; the document has depth 0.
pub const DEPTH_MAX: usize = 32;

const LIMITS: Limits = Limits { bytes: CANONICAL_BYTES_MAX, nodes: VALUES_MAX, depth: DEPTH_MAX, ..Limits::CONFIG };

impl Workflow {
    /// Reads the canonical text of a workflow again: the same workflow, with the same digest.
    ///
    /// ```
    /// use interlock_core::workflow::Workflow;
    ///
    /// let text = r#"{"id":"fix","initial":"work","states":{"done":{"type":"final"},"work":{"on":{"DONE":"done"}}}}"#;
    /// assert_eq!(Workflow::from_text(text)?.text(), text);
    /// assert!(Workflow::from_text(&text.replace(r#""done":{"#, r#""don":{"#)).is_err());
    /// # Ok::<(), interlock_core::json::LoadError>(())
    /// ```
    pub fn from_text(canonical: &str) -> Result<Workflow, LoadError> {
        let document = json::parse(canonical, &LIMITS).map_err(LoadError::Json)?;
        let written = WrittenWorkflow::deserialize(document.root())?;
        written.resolve(json::canonical(document.root()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWorkflow {
    id: String,
    initial: String,
    states: BTreeMap<String, WrittenState>,
    #[serde(default, deserialize_with = "said")]
    description: Option<String>,
    #[serde(default)]
    context: BTreeMap<String, RawJson>,
    #[serde(default)]
    guards: BTreeMap<String, WrittenGuard>,
    #[serde(default)]
    facts: BTreeMap<String, WrittenFact>,
    #[serde(default, deserialize_with = "said")]
    after_final: Option<AfterFinal>,
    #[serde(default, deserialize_with = "said")]
    max_transitions: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "said")]
    format: Option<u32>,
    /// For editors, and for whoever wrote it: covered by the digest and otherwise ignored.
    #[serde(default, rename = "$schema")]
    _schema: Option<RawJson>,
    #[serde(default, rename = "meta")]
    _meta: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenState {
    #[serde(default, rename = "type", deserialize_with = "said")]
    kind: Option<WrittenKind>,
    #[serde(default, deserialize_with = "said")]
    outcome: Option<Outcome>,
    #[serde(default)]
    on: BTreeMap<String, Rows>,
    #[serde(default, deserialize_with = "said")]
    allowed_tools: Option<Vec<String>>,
    #[serde(default)]
    disallowed_tools: Vec<String>,
    #[serde(default, deserialize_with = "said")]
    instructions: Option<String>,
    #[serde(default, deserialize_with = "said")]
    max_iterations: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "said")]
    allowed_commands: Option<Vec<String>>,
    #[serde(default, deserialize_with = "said")]
    max_edit_lines: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "said")]
    max_files_per_state: Option<NonZeroU32>,
    #[serde(default)]
    blocked_env: Vec<String>,
    #[serde(default)]
    env_overrides: BTreeMap<String, String>,
    #[serde(default)]
    requires_approval: bool,
}

#[derive(Deserialize)]
enum WrittenKind {
    #[serde(rename = "final")]
    Final,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEdge {
    target: String,
    #[serde(default, deserialize_with = "said")]
    guard: Option<NameOr<WrittenGuard>>,
    #[serde(default, deserialize_with = "said")]
    guards: Option<Vec<NameOr<WrittenGuard>>>,
    #[serde(default)]
    requires_approval: bool,
    #[serde(default, deserialize_with = "said")]
    approval_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGuard {
    field: String,
    op: Operator,
    #[serde(default, deserialize_with = "said")]
    value: Option<RawJson>,
    #[serde(default, deserialize_with = "said")]
    source: Option<Source>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFact {
    command: String,
}

/// A member that may be left out. `null` is not leaving it out: a list of tools that is `null` must not let all pass.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// The name of something, or the thing itself.
enum NameOr<T> {
    Name(String),
    Whole(T),
}

/// The rows of an event: one, or a list of them.
struct Rows(Vec<NameOr<WrittenEdge>>);

struct OneVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneVisitor<T> {
    type Value = NameOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or an object")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<NameOr<T>, E> {
        Ok(NameOr::Name(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<NameOr<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(NameOr::Whole)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NameOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NameOr<T>, D::Error> {
        deserializer.deserialize_any(OneVisitor(PhantomData))
    }
}

struct RowsVisitor;

impl<'de> Visitor<'de> for RowsVisitor {
    type Value = Rows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, an object, or a list of these")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Rows, E> {
        OneVisitor(PhantomData).visit_str(name).map(|row| Rows(vec![row]))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Rows, A::Error> {
        OneVisitor(PhantomData).visit_map(members).map(|row| Rows(vec![row]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Rows, A::Error> {
        let mut rows = Vec::new();
        while let Some(row) = items.next_element()? {
            rows.push(row);
        }
        if rows.is_empty() { Err(Error::custom("an event needs a target")) } else { Ok(Rows(rows)) }
    }
}

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rows, D::Error> {
        deserializer.deserialize_any(RowsVisitor)
    }
}

impl WrittenWorkflow {
    fn resolve(self, text: String) -> Result<Workflow, LoadError> {
        if self.format.is_some_and(|format| format != 1) {
            return Err(Error::custom("unknown format"));
        }
        if self.context.contains_key(OBSERVED) {
            return Err(Error::custom("`observed` is reserved for what Interlock saw itself"));
        }
        if let Some(name) = self.facts.keys().find(|name| OBSERVED_ROOTS.contains(&name.as_str())) {
            return Err(Error::custom(format_args!("`{name}` is observed anyway and cannot be declared")));
        }
        let context = self.context.into_iter().map(|(key, value)| owned(&value).map(|value| (key, value)));
        let context = context.collect::<Result<BTreeMap<String, Json>, LoadError>>()?;
        let states: Vec<String> = self.states.keys().cloned().collect();
        let named: Vec<String> = self.guards.keys().cloned().collect();
        let guards = self.guards.into_iter().map(|(name, guard)| guard.resolve(Some(name)));
        let mut names = Names { states, named, guards: guards.collect::<Result<_, _>>()? };
        let states = self.states.into_iter().map(|(name, state)| state.resolve(name, &mut names));
        let states = states.collect::<Result<_, LoadError>>()?;
        Ok(Workflow {
            id: self.id,
            description: self.description,
            states,
            initial: names.state(&self.initial)?,
            context: context.into(),
            guards: names.guards,
            facts: self.facts.into_iter().map(|(name, fact)| Fact { name, command: fact.command }).collect(),
            after_final: self.after_final.unwrap_or(AfterFinal::Open),
            max_transitions: self.max_transitions.map_or(TRANSITIONS_MAX, NonZeroU32::get),
            digest: Digest::of(&[&text]),
            text,
        })
    }
}

/// What names stand for, in the order of the text; guards that are written in place are added behind the named ones.
struct Names {
    states: Vec<String>,
    named: Vec<String>,
    guards: Vec<Guard>,
}

impl Names {
    fn state(&self, name: &str) -> Result<StateId, LoadError> {
        place(&self.states, name).map(StateId).ok_or_else(|| unknown("state", name))
    }

    fn guard(&mut self, guard: NameOr<WrittenGuard>) -> Result<GuardId, LoadError> {
        match guard {
            NameOr::Name(name) => place(&self.named, &name).map(GuardId).ok_or_else(|| unknown("guard", &name)),
            NameOr::Whole(guard) => {
                let id = u32::try_from(self.guards.len()).map_err(<LoadError as Error>::custom)?;
                self.guards.push(guard.resolve(None)?);
                Ok(GuardId(id))
            }
        }
    }
}

fn place(names: &[String], name: &str) -> Option<u32> {
    names.binary_search_by(|other| other.as_str().cmp(name)).ok().and_then(|found| u32::try_from(found).ok())
}

fn unknown(what: &str, name: &str) -> LoadError {
    Error::custom(format_args!("there is no {what} `{}`", display(name)))
}

fn owned(value: &RawJson) -> Result<Json, LoadError> {
    json::parse(value.text(), &LIMITS).map(|document| Json::of(document.root())).map_err(LoadError::Json)
}

impl WrittenState {
    fn resolve(self, name: String, names: &mut Names) -> Result<State, LoadError> {
        let kind = match (self.kind, self.outcome) {
            (Some(WrittenKind::Final), outcome) => StateKind::Final(outcome.unwrap_or_else(|| Outcome::by_name(&name))),
            (None, None) => StateKind::Active,
            (None, Some(_)) => return Err(Error::custom("only a final state has an outcome")),
        };
        let mut on = Vec::new();
        for (event, Rows(rows)) in self.on {
            let edges = rows.into_iter().map(|row| row.resolve(names)).collect::<Result<_, _>>()?;
            on.push((event, edges));
        }
        Ok(State {
            name,
            kind,
            on,
            allowed_tools: self.allowed_tools.map(tools).transpose()?,
            disallowed_tools: tools(self.disallowed_tools)?,
            instructions: self.instructions,
            max_iterations: self.max_iterations.map(NonZeroU32::get),
            allowed_commands: self.allowed_commands,
            max_edit_lines: self.max_edit_lines.map(NonZeroU32::get),
            max_files_per_state: self.max_files_per_state.map(NonZeroU32::get),
            blocked_env: self.blocked_env,
            env_overrides: self.env_overrides,
            requires_approval: self.requires_approval,
        })
    }
}

fn tools(names: Vec<String>) -> Result<Vec<ToolPattern>, LoadError> {
    let tool = |name: String| ToolPattern::parse(&name).ok_or_else(|| Error::custom("this is no tool"));
    names.into_iter().map(tool).collect()
}

impl NameOr<WrittenEdge> {
    fn resolve(self, names: &mut Names) -> Result<Edge, LoadError> {
        let edge = match self {
            NameOr::Name(target) => WrittenEdge { target, ..WrittenEdge::default() },
            NameOr::Whole(edge) => edge,
        };
        if edge.guards.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::custom("the list of guards is empty"));
        }
        let mut guards = Vec::new();
        for guard in edge.guard.into_iter().chain(edge.guards.into_iter().flatten()) {
            let id = names.guard(guard)?;
            if !guards.contains(&id) {
                guards.push(id);
            }
        }
        Ok(Edge {
            target: names.state(&edge.target)?,
            guards,
            requires_approval: edge.requires_approval,
            approval_message: edge.approval_message,
        })
    }
}

impl WrittenGuard {
    fn resolve(self, name: Option<String>) -> Result<Guard, LoadError> {
        let field: Vec<String> = self.field.split('.').map(str::to_owned).collect();
        if field.iter().any(|part| part.trim().is_empty()) {
            return Err(Error::custom("a part of the field is empty"));
        }
        let takes_value = !matches!(self.op, Operator::Exists | Operator::NotExists);
        if takes_value != self.value.is_some() {
            return Err(Error::custom(format_args!("`{}` has no value, or one too many", self.op)));
        }
        let observed = field.first().is_some_and(|root| root == OBSERVED);
        Ok(Guard {
            name: name.unwrap_or_else(|| format!("{} {}", self.field, self.op)),
            field: field.into(),
            op: self.op,
            value: self.value.as_ref().map(owned).transpose()?,
            // Nobody but Interlock can write there, so a guard on it believes nobody else, said or not.
            source: if observed { Source::Observed } else { self.source.unwrap_or(Source::Context) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"context":{"n":0},"facts":{"tests":{"command":"make test"}},"guards":{"green":{"field":"observed.tests","op":"eq","value":0}},"id":"fix","initial":"work","states":{"done":{"type":"final"},"work":{"allowed_tools":["Read"],"on":{"DONE":[{"guards":["green",{"field":"n","op":"gte","value":2}],"target":"done"},"work"]}}}}"#;

    #[test]
    fn names_are_resolved() {
        let workflow = Workflow::from_text(TEXT).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(workflow.text(), TEXT);
        let Some(work) = workflow.find("work").and_then(|id| workflow.state(id)) else { unreachable!("it is there") };
        let [(event, rows)] = work.on.as_slice() else { unreachable!("one event") };
        let guards = |edge: &Edge| -> Vec<String> {
            edge.guards.iter().filter_map(|id| workflow.guard(*id)).map(|guard| guard.name.clone()).collect()
        };
        assert_eq!(event, "DONE");
        assert_eq!(rows.iter().map(guards).collect::<Vec<_>>(), [vec!["green", "n gte"], vec![]]);
        assert_eq!(workflow.guard_named("green").map(|guard| guard.source), Some(Source::Observed));
    }

    #[test]
    fn what_only_a_runner_enforces_is_told() {
        let with = TEXT.replace(
            r#""allowed_tools":["Read"],"#,
            r#""allowed_tools":["Read"],"blocked_env":["TOKEN"],"env_overrides":{"CI":"1"},"#,
        );
        let workflow = Workflow::from_text(&with).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(workflow.text(), with);
        assert_eq!(workflow.needs_runner(), Some("blocked_env"));
        let given = with.replace(r#""blocked_env":["TOKEN"],"#, "");
        let needs = |text: &str| Workflow::from_text(text).ok().and_then(|workflow| workflow.needs_runner());
        assert_eq!((needs(&given), needs(TEXT)), (Some("env_overrides"), None));
    }

    #[test]
    fn nothing_is_guessed() {
        for (part, instead) in [
            (r#""initial":"work""#, r#""initial":"wor""#),
            (r#""target":"done""#, r#""target":"don""#),
            (r#"["green","#, r#"["gren","#),
            (r#"["Read"]"#, "null"),
            (r#"["Read"]"#, r#"["Bash(git *)"]"#),
            (r#""type":"final""#, r#""type":"last""#),
            (r#""type":"final""#, r#""outcome":"success""#),
            (r#""op":"eq","value":0"#, r#""op":"eq""#),
            (r#""op":"eq","value":0"#, r#""op":"exists","value":0"#),
            (r#""observed.tests""#, r#""observed..tests""#),
            (r#"{"n":0}"#, r#"{"observed":0}"#),
            (r#"{"tests":{"command""#, r#"{"tools":{"command""#),
            (r#""id":"fix","#, r#""id":"fix","fork":1,"#),
            (r#""id":"fix","#, r#""format":2,"id":"fix","#),
            (r#""id":"fix","#, r#""id":"fix","max_transitions":0,"#),
            (r#"[{"guards""#, r#"[["done"],{"guards""#),
            (r#""on":{"DONE":["#, r#""on":{"NO":[],"DONE":["#),
        ] {
            let text = TEXT.replace(part, instead);
            assert_ne!(text, TEXT, "{part} is there");
            assert!(Workflow::from_text(&text).is_err(), "{text}");
        }
    }
}
