//! What a workflow says, with every name resolved: nothing is looked up by name once it is loaded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::{Context, KeyMark};
use super::guard::OBSERVED;
use crate::action::words;
use crate::digest::Digest;
use crate::json::Json;

/// How many transitions a run may make unless the workflow says otherwise.
pub const TRANSITIONS_MAX: u32 = 1_000;

/// A workflow. Fields are open to the reader; everybody else looks.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// Its name.
    pub(crate) id: String,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// The states, in the order of the canonical text: by name.
    pub(crate) states: Vec<State>,
    /// Where a run begins.
    pub(crate) initial: StateId,
    /// What a run knows at first: an object.
    pub(crate) context: Context,
    /// The conditions, named ones first.
    pub(crate) guards: Vec<Guard>,
    /// Commands whose results are observed under a name.
    pub(crate) facts: Vec<Fact>,
    /// What holds once a run is over.
    pub(crate) after_final: AfterFinal,
    /// How many transitions a run may make.
    pub(crate) max_transitions: u32,
    /// The canonical JSON text it was loaded from.
    pub(crate) text: String,
    /// The SHA-256 of that text.
    pub(crate) digest: Digest,
}

/// A state, by its place in the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub(crate) u32);

impl StateId {
    /// Its place among the states, from 0.
    pub fn place(self) -> u32 {
        self.0
    }
}

/// A guard, by its place in the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuardId(pub(crate) u32);

words! {
    /// What holds once a run is over.
    AfterFinal: "`after_final`" {
        /// The limits of phases are lifted; the base policy stays.
        Open = "open",
        /// Every tool is refused.
        Closed = "closed",
    }
}

words! {
    /// How a run ended.
    Outcome: "outcome" {
        /// It did what it was for.
        Success = "success",
        /// It did not.
        Failure = "failure",
    }
}

impl Outcome {
    /// How a run ended in a final state that does not say so.
    pub fn by_name(state: &str) -> Outcome {
        match state {
            "failed" | "failure" | "error" | "cancelled" => Outcome::Failure,
            _ => Outcome::Success,
        }
    }
}

/// Whether a run goes on from a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// It does.
    Active,
    /// It ends there.
    Final(Outcome),
}

/// A phase of work.
#[derive(Debug, Clone)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Whether a run ends here.
    pub kind: StateKind,
    /// The ways out by event, in the order of the canonical text: by name. Of several rows the first whose guards hold
    /// is taken.
    pub on: Vec<(String, Vec<Edge>)>,
    /// The tools that pass; `None` is all.
    pub allowed_tools: Option<Vec<ToolPattern>>,
    /// The tools that do not pass, whatever the other list says.
    pub disallowed_tools: Vec<ToolPattern>,
    /// What the agent is told each turn.
    pub instructions: Option<String>,
    /// How many tool calls before a transition must be made.
    pub max_iterations: Option<u32>,
    /// The commands that shell lines may hold beside read-only ones; `None` is no such list. Words, `*` stands for any
    /// number of further words (at the end) or any part of a word.
    pub allowed_commands: Option<Vec<String>>,
    /// How many lines one edit may change.
    pub max_edit_lines: Option<u32>,
    /// How many different files may be changed before a transition.
    pub max_files_per_state: Option<u32>,
    /// Variables no command may see. A runner enforces it.
    pub blocked_env: Vec<String>,
    /// Variables that commands see with these values. A runner enforces it.
    pub env_overrides: BTreeMap<String, String>,
    /// Entering it needs a person's agreement.
    pub requires_approval: bool,
}

impl State {
    /// The first setting that only a runner can enforce.
    pub fn needs_runner(&self) -> Option<&'static str> {
        let has = [("blocked_env", !self.blocked_env.is_empty()), ("env_overrides", !self.env_overrides.is_empty())];
        has.into_iter().find(|(_, has)| *has).map(|(name, _)| name)
    }
}

/// A way from one state to another.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Where it leads.
    pub target: StateId,
    /// All must hold.
    pub guards: Vec<GuardId>,
    /// Taking it needs a person's agreement.
    pub requires_approval: bool,
    /// What that person is told.
    pub approval_message: Option<String>,
}

/// A condition on the context.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Its name; of one that was written in place, the field and the operator.
    pub name: String,
    /// What is compared.
    pub field: Field,
    /// How the field is compared.
    pub op: Operator,
    /// With what; absent for `exists` and `not_exists` alone.
    pub value: Option<Json>,
    /// Whose word counts.
    pub source: Source,
}

/// Keys from the root of the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    keys: Vec<String>,
    /// Of the first one, at hand for looking it up.
    pub(super) mark: KeyMark,
    /// It looks at what Interlock saw itself.
    pub(super) is_observed: bool,
}

impl From<Vec<String>> for Field {
    fn from(keys: Vec<String>) -> Field {
        let root = keys.first().map_or("", String::as_str);
        Field { mark: KeyMark::of(root), is_observed: root == OBSERVED, keys }
    }
}

impl core::ops::Deref for Field {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.keys
    }
}

words! {
    /// How a field is compared.
    Operator: "operator" {
        /// Equal, numbers by exact value.
        Eq = "eq",
        /// There, and not equal.
        Neq = "neq",
        /// A greater number.
        Gt = "gt",
        /// A number that is not less.
        Gte = "gte",
        /// A lesser number.
        Lt = "lt",
        /// A number that is not greater.
        Lte = "lte",
        /// One of a list.
        In = "in",
        /// A string with this part, or an array with this item.
        Contains = "contains",
        /// There; `null` is not.
        Exists = "exists",
        /// Not there, or `null`.
        NotExists = "not_exists",
    }
}

words! {
    /// Whose word a guard believes.
    Source: "source" {
        /// The context, which agents write.
        Context = "context",
        /// Only what Interlock saw itself, or an operator set.
        Observed = "observed",
    }
}

/// A command whose result is observed: under `observed.NAME` is its exit code, as long as nothing was written since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// The command line, to be run exactly so.
    pub command: String,
}

/// The name of a tool or of a family of tools; a `*` at the end stands for any rest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolPattern {
    /// What was written, without the `*`.
    pub stem: String,
    /// Whether anything may follow.
    pub open: bool,
}

impl ToolPattern {
    /// Reads a pattern: a name, or the beginning of one and a `*`.
    pub fn parse(text: &str) -> Option<ToolPattern> {
        let (stem, open) = match text.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (text, false),
        };
        let plain = !stem.contains(['*', '(', ')']) && !stem.contains(char::is_whitespace);
        (plain && (open || !stem.is_empty())).then(|| ToolPattern { stem: stem.to_owned(), open })
    }

    /// Whether a name matches.
    pub fn matches(&self, name: &str) -> bool {
        if self.open { name.starts_with(&self.stem) } else { name == self.stem }
    }
}

impl core::fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}{}", self.stem, if self.open { "*" } else { "" })
    }
}

impl Workflow {
    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it is for.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The states with their ids, in the order of the canonical text: by name.
    pub fn states(&self) -> impl Iterator<Item = (StateId, &State)> {
        (0_u32..).map(StateId).zip(&self.states)
    }

    /// A state.
    pub fn state(&self, id: StateId) -> Option<&State> {
        self.states.get(usize::try_from(id.0).ok()?)
    }

    /// The state with this name.
    pub fn find(&self, name: &str) -> Option<StateId> {
        // The loader puts them in order of name.
        let found = self.states.binary_search_by(|state| state.name.as_str().cmp(name)).ok();
        let found = found.or_else(|| self.states.iter().position(|state| state.name == name))?;
        u32::try_from(found).ok().map(StateId)
    }

    /// Where a run begins.
    pub fn initial(&self) -> StateId {
        self.initial
    }

    /// What a run knows at first.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// A guard.
    pub fn guard(&self, id: GuardId) -> Option<&Guard> {
        self.guards.get(usize::try_from(id.0).ok()?)
    }

    /// The guards with their ids, named ones first.
    pub fn guards(&self) -> impl Iterator<Item = (GuardId, &Guard)> {
        (0_u32..).map(GuardId).zip(&self.guards)
    }

    /// The guard with this name.
    pub fn guard_named(&self, name: &str) -> Option<&Guard> {
        self.guards.iter().find(|guard| guard.name == name)
    }

    /// Commands whose results are observed.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// What holds once a run is over.
    pub fn after_final(&self) -> AfterFinal {
        self.after_final
    }

    /// The first setting of a state that only a runner can enforce. Where there is none no run is started with it:
    /// whoever wrote it counts on it.
    pub fn needs_runner(&self) -> Option<&'static str> {
        self.states.iter().find_map(State::needs_runner)
    }

    /// How many transitions a run may make.
    pub fn max_transitions(&self) -> u32 {
        self.max_transitions
    }

    /// The canonical JSON text: what the digest covers and the ledger keeps.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of the canonical text.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}
