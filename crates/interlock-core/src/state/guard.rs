//! [`StateGuard`]: frozen configuration, and the two questions it answers without touching anything.

use core::fmt;

use crate::cause::Cause;
use crate::code::Code;
use crate::digest::Digest;
use crate::json::{self, Document, JsonError, JsonErrorKind, Limits, LoadError, RawJson};
use crate::ruling::{Denial, Place, Side};
use crate::schema::{Schema, SchemaError};
use crate::state::target::CommitRoot;
use crate::state::text::{StateText, TextFault};
use crate::transition::{Change, Finding, Rules, RulesError, lint};

/// A schema, transition rules and commit roots, checked once and never changed.
///
/// ```
/// use interlock_core::state::StateGuard;
///
/// let guard = StateGuard::load(
///     r#"{"type": "object", "properties": {"step": {"type": "integer"}}, "required": ["step"]}"#,
///     Some(r#"{"monotonic_integer_paths": ["$.step"]}"#),
///     &[],
/// )?;
/// assert!(guard.verify_transition(r#"{"step": 1}"#, r#"{"step": 2}"#).is_ok());
/// let denial = guard.verify_transition(r#"{"step": 2}"#, r#"{"step": 1}"#).err();
/// assert_eq!(denial.map(|d| d.code.as_str()), Some("QWED-AGENT-STATE-106"));
/// # Ok::<(), interlock_core::state::GuardError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StateGuard {
    schema: Schema,
    rules: Option<Rules>,
    roots: Vec<CommitRoot>,
    limits: Limits,
}

/// Why a guard cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardError {
    /// The schema is not acceptable.
    Schema(SchemaError),
    /// The transition rules are not acceptable.
    Rules(RulesError),
    /// A commit root is not acceptable.
    Root(Cause),
    /// A guard file is not of the documented form.
    File(LoadError),
}

impl fmt::Display for GuardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuardError::Schema(error) => error.fmt(f),
            GuardError::Rules(error) => error.fmt(f),
            GuardError::Root(cause) => cause.fmt(f),
            GuardError::File(error) => write!(f, "Invalid guard file: {error}"),
        }
    }
}

impl std::error::Error for GuardError {}

/// A state that passed the schema. Only a guard makes one.
#[derive(Debug)]
#[must_use]
pub struct VerifiedState<'t> {
    document: Document<'t>,
    /// `{"normalized_state":S}`, the text behind the proof, with the canonical state in it.
    proven: String,
}

const BEFORE: &str = "{\"normalized_state\":";
const AFTER: &str = "}";

impl<'t> VerifiedState<'t> {
    /// The state as it was sent.
    pub fn document(&self) -> &Document<'t> {
        &self.document
    }

    /// The state as it is hashed and written.
    pub fn canonical(&self) -> &str {
        self.proven.get(BEFORE.len()..self.proven.len().saturating_sub(AFTER.len())).unwrap_or("")
    }

    /// The digest of `{"normalized_state":S}`.
    pub fn proof(&self) -> Digest {
        Digest::of_bytes(self.proven.as_bytes())
    }

    /// The digest of the canonical text alone, which is that of a committed file.
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(self.canonical().as_bytes())
    }
}

/// A transition that passed every rule. Only a guard makes one, and only a commit spends it.
#[derive(Debug)]
#[must_use]
pub struct VerifiedTransition<'t> {
    current: VerifiedState<'t>,
    proposed: VerifiedState<'t>,
}

impl<'t> VerifiedTransition<'t> {
    /// The state as it is.
    pub fn current(&self) -> &VerifiedState<'t> {
        &self.current
    }

    /// The state as the agent wants it.
    pub fn proposed(&self) -> &VerifiedState<'t> {
        &self.proposed
    }

    /// The digest of `{"normalized_previous_state":P,"normalized_state":S}`.
    pub fn proof(&self) -> Digest {
        let (previous, state) = (self.current.canonical(), self.proposed.canonical());
        Digest::of(&["{\"normalized_previous_state\":", previous, ",\"normalized_state\":", state, "}"])
    }
}

impl StateGuard {
    /// Builds a guard from the texts of its parts and the paths of its commit roots.
    pub fn load(schema: &str, rules: Option<&str>, roots: &[&str]) -> Result<StateGuard, GuardError> {
        Ok(StateGuard {
            schema: Schema::load(schema).map_err(GuardError::Schema)?,
            rules: rules.map(Rules::load).transpose().map_err(GuardError::Rules)?,
            roots: roots
                .iter()
                .map(|root| CommitRoot::parse(root))
                .collect::<Result<_, _>>()
                .map_err(GuardError::Root)?,
            limits: Limits::STATE,
        })
    }

    /// Builds a guard from JSON alone: like [`load`](StateGuard::load), with the roots as a list of strings.
    pub fn load_json(schema: &str, rules: Option<&str>, roots: Option<&str>) -> Result<StateGuard, GuardError> {
        let Some(roots) = roots else { return StateGuard::load(schema, rules, &[]) };
        let not_strings = || GuardError::Root("allowed_commit_roots must be a list of strings".into());
        let document = json::parse(roots, &Limits::CONFIG).map_err(|error| GuardError::Root(Cause::of(error)))?;
        let items = document.root().as_array().ok_or_else(not_strings)?;
        let roots: Option<Vec<&str>> = items.map(|item| item.as_str().map(|path| path.text())).collect();
        StateGuard::load(schema, rules, &roots.ok_or_else(not_strings)?)
    }

    /// Builds a guard from a guard file: `{"required_schema":…, "transition_rules":…, "allowed_commit_roots":[…]}`.
    pub fn load_file(text: &str) -> Result<StateGuard, GuardError> {
        let file: GuardFile = json::from_str(text).map_err(GuardError::File)?;
        let [rules, roots] =
            [&file.transition_rules, &file.allowed_commit_roots].map(|part| part.as_ref().map(RawJson::text));
        StateGuard::load_json(file.required_schema.text(), rules, roots)
    }

    /// The same guard with lower limits for the states it is given; none is raised.
    #[must_use]
    pub fn with_limits(self, limits: &Limits) -> StateGuard {
        StateGuard { limits: self.limits.lowered_to(limits), ..self }
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The transition rules, if any were given.
    pub fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref()
    }

    /// The directories commits may go to.
    pub fn roots(&self) -> &[CommitRoot] {
        &self.roots
    }

    /// What its author probably did not mean.
    pub fn lint(&self) -> Vec<Finding> {
        self.rules.as_ref().map(|rules| lint(&self.schema, rules)).unwrap_or_default()
    }

    /// Checks a proposed state: 101, 102, 103.
    pub fn verify_payload<'t>(&self, proposed: impl Into<StateText<'t>>) -> Result<VerifiedState<'t>, Denial> {
        self.verify_state(Side::Proposed, proposed.into())
    }

    /// Checks a transition: 104, 105, then the proposed state, then 106.
    pub fn verify_transition<'t>(
        &self,
        current: impl Into<StateText<'t>>,
        proposed: impl Into<StateText<'t>>,
    ) -> Result<VerifiedTransition<'t>, Denial> {
        let Some(rules) = self.rules.as_ref().filter(|rules| !rules.is_empty()) else {
            return Err(Denial::blocked(
                Code::StateNoRules,
                "transition rules are not configured: at least one rule is needed to judge a transition",
            ));
        };
        let current = self.verify_state(Side::Current, current.into()).map_err(current_failed)?;
        let proposed = self.verify_state(Side::Proposed, proposed.into())?;
        let change = Change { current: current.document.root(), proposed: proposed.document.root() };
        if let Err(breach) = rules.check(change) {
            let denial = Denial::blocked(Code::StateTransition, &breach.reason);
            return Err(match breach.at {
                Some((side, value)) => denial.at(Place::of(side, value)),
                None => denial,
            });
        }
        Ok(VerifiedTransition { current, proposed })
    }

    fn verify_state<'t>(&self, side: Side, given: StateText<'t>) -> Result<VerifiedState<'t>, Denial> {
        let document = given.read(&self.limits).map_err(|fault| match fault {
            TextFault::NotText => {
                let reason = format_args!("{} agent state must be a non-empty JSON string", side.name());
                Denial::blocked(Code::StateNotText, reason)
            }
            TextFault::Json(error) => not_json(side, &error),
        })?;
        if let Err(violation) = self.schema.check(document.root()) {
            let place = Place::of(side, violation.value());
            return Err(Denial::blocked(Code::StateNotInSchema, &violation).at(place));
        }
        let proven = json::canonical_between(BEFORE, document.root(), AFTER);
        if !proven.starts_with(BEFORE) {
            return Err(Denial::blocked(Code::FaultInternal, "the canonical text could not be written"));
        }
        if proven.len() > self.limits.bytes.saturating_add(BEFORE.len()).saturating_add(AFTER.len()) {
            // Escapes lengthen a text; what is written must be readable as the current state of the next transition.
            let reason = format_args!("the canonical text of the state has more than {} bytes", self.limits.bytes);
            return Err(Denial::blocked(Code::StateNotJson, reason));
        }
        Ok(VerifiedState { document, proven })
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardFile {
    required_schema: RawJson,
    #[serde(default)]
    transition_rules: Option<RawJson>,
    #[serde(default)]
    allowed_commit_roots: Option<RawJson>,
}

fn not_json(side: Side, error: &JsonError) -> Denial {
    let place = Place::of_error(side, error);
    // Depth is a limit of verification, not of JSON.
    if let JsonErrorKind::TooDeep { path, .. } = &error.kind {
        return Denial::blocked(Code::StateNotInSchema, &error.kind).at(Place { path: Some(path.clone()), ..place });
    }
    Denial::blocked(Code::StateNotJson, format_args!("invalid or ambiguous JSON: {error}")).at(place)
}

fn current_failed(denial: Denial) -> Denial {
    let reason = format_args!("current agent state failed structural verification: {}", denial.reason());
    let wrapped = Denial::blocked(Code::StateCurrentBad, reason);
    Denial { place: denial.place, ..wrapped }
}
