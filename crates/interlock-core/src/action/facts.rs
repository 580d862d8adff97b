//! What `decide` sees of a request: facts from its edge, evidence from its text.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::budget::Usage;
use super::context::{ActionContext, Observed, StepNumber};
use super::vocabulary::{Engine, Risk, Status, words};
use crate::call::{Effect, Family};
use crate::contain::{BoundEvidence, READ};
use crate::digest::Digest;
use crate::json::{self, Value};
use crate::rule::Then;

words! {
    /// Which way a request came in.
    Door: "door" {
        /// `POST /agents/:id/verify`.
        Verify = "verify",
        /// `POST /agents/:id/tools/:tool`.
        Tools = "tools",
        /// A tool call, told by a coding agent's host or a gateway.
        Call = "call",
    }
}

/// The longest action type or tool name that is repeated in answers.
const NAME_BYTES_MAX: usize = 64;

/// The name of an action type or a tool, if it is one that may be repeated; anything else is registered nowhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionName(Option<String>);

impl ActionName {
    /// Reads a name: `[A-Za-z0-9_.:-]{1,64}`.
    pub fn parse(text: &str) -> ActionName {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-');
        let plain = !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(is_plain);
        ActionName(plain.then(|| text.to_owned()))
    }

    /// The name, if it is a plain one.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The name, or words in its place.
    pub fn shown(&self) -> &str {
        self.0.as_deref().unwrap_or("(not shown)")
    }
}

/// What the text of most actions fits in, so that one allocation holds it.
const USUAL_BYTES: usize = 256;

/// The parts of an action that its fingerprint covers.
#[derive(Debug, Clone, Copy)]
pub struct ActionText<'a> {
    /// The type.
    pub kind: &'a str,
    /// `query`, a string or null.
    pub query: Option<Value<'a>>,
    /// `code`, a string or null.
    pub code: Option<Value<'a>>,
    /// `target`, a string or null.
    pub target: Option<Value<'a>>,
    /// `parameters`, an object or null.
    pub parameters: Option<Value<'a>>,
}

/// The SHA-256 of the canonical text of `{action_type,code,parameters,query,target}`.
pub fn fingerprint(action: &ActionText<'_>) -> Digest {
    Digest::of_bytes(&text_of(action.kind, action, json::append_canonical))
}

/// The fingerprint, and the one by which loops are seen if that is another: an alias is the type it stands for, `1.0` is
/// `1`, blanks at the ends of a string do not count, and what is empty is absent. `identity` is the one name of the type.
pub fn fingerprints(action: &ActionText<'_>, identity: &str) -> (Digest, Option<Digest>) {
    let text = text_of(action.kind, action, json::append_canonical);
    let alike = text_of(identity, &action.without_empty(), json::append_alike);
    (Digest::of_bytes(&text), (alike != text).then(|| Digest::of_bytes(&alike)))
}

fn text_of(kind: &str, action: &ActionText<'_>, append: fn(&mut Vec<u8>, Value<'_>)) -> Vec<u8> {
    let ActionText { query, code, target, parameters, .. } = *action;
    let mut text = Vec::with_capacity(USUAL_BYTES);
    text.extend_from_slice(b"{\"action_type\":");
    json::append_quoted(&mut text, kind);
    for (key, value) in [("code", code), ("parameters", parameters), ("query", query), ("target", target)] {
        text.extend_from_slice(b",\"");
        text.extend_from_slice(key.as_bytes());
        text.extend_from_slice(b"\":");
        match value {
            Some(value) => append(&mut text, value),
            None => text.extend_from_slice(b"null"),
        }
    }
    text.push(b'}');
    text
}

impl<'a> ActionText<'a> {
    fn without_empty(&self) -> ActionText<'a> {
        let filled = |value: &Value<'a>| {
            value.as_str().is_none_or(|text| !text.text().trim().is_empty())
                && value.as_object().is_none_or(|mut members| members.next().is_some())
        };
        let ActionText { kind, query, code, target, parameters } = *self;
        ActionText {
            kind,
            query: query.filter(filled),
            code: code.filter(filled),
            target: target.filter(filled),
            parameters: parameters.filter(filled),
        }
    }
}

/// What the edge read from a well-formed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Which way it came in.
    pub door: Door,
    /// The action type or tool.
    pub action: ActionName,
    /// The action's fingerprint.
    pub fingerprint: Digest,
    /// The fingerprint by which loops are seen, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likeness: Option<Digest>,
    /// The conversation.
    pub conversation: String,
    /// The step.
    pub step: StepNumber,
    /// The state of the world it was proposed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// What it says it uses.
    pub usage: Usage,
    /// Risk above this needs a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_threshold: Option<Risk>,
    /// An attestation was asked for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub require_attestation: bool,
    /// Nothing is to be consumed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// Tenths of the informational risk score; of the tools door only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_tenths: Option<u8>,
    /// How many entries the agent had when the request came in; before the sixth format of entries, how many the ledger had.
    pub opened_at: u64,
    /// The call; of the call door only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<CallFacts>>,
}

/// What a host or gateway tells of a tool call, beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFacts {
    /// Who tells.
    pub host: String,
    /// The tool, as the host names it.
    pub tool: String,
    /// What kind of tool that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// The session.
    pub session: String,
    /// Which host process tells.
    pub process: Digest,
    /// The SHA-256 of the directory it is made in, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Digest>,
    /// The SHA-256 of what it asks for, the same for every event of a host about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gist: Option<Digest>,
    /// The host's id for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The agent that this agent started and that makes the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The process that tells is not known to be the host's own: what becomes of the call is nothing that was observed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub foreign: bool,
    /// The command line that a runner is to run, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<LineToRun>,
}

/// A command line that a runner is to run, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineToRun {
    /// The SHA-256 of the line.
    pub line: Digest,
    /// The SHA-256 of the directory it runs in, links resolved.
    pub directory: Digest,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Facts {
    /// Facts of a plain request; the caller sets the rest.
    pub fn new(door: Door, action: ActionName, fingerprint: Digest, context: ActionContext) -> Facts {
        Facts {
            door,
            action,
            fingerprint,
            likeness: None,
            conversation: context.conversation,
            step: context.step,
            observed: context.observed,
            usage: Usage::default(),
            risk_threshold: None,
            require_attestation: false,
            dry_run: false,
            risk_tenths: None,
            opened_at: 0,
            call: None,
        }
    }

    /// What a person agrees to: tool, input, and the directory it is made in. Of what is no tool call, its fingerprint.
    pub fn agreed_to(&self) -> Digest {
        match self.call.as_deref() {
            Some(CallFacts { place: Some(place), .. }) => {
                Digest::of(&[&self.fingerprint.to_string(), "\n", &place.to_string()])
            }
            Some(_) | None => self.fingerprint,
        }
    }

    /// By what the same action is known again, however it is spelled.
    pub fn seen_as(&self) -> Digest {
        self.likeness.unwrap_or(self.fingerprint)
    }

    /// The same bound to the state of the world, if that was given; its source does not count.
    pub(crate) fn on_state(&self) -> Option<Digest> {
        let observed = self.observed.as_ref()?;
        Some(Digest::of(&[&self.seen_as().to_string(), ":", &observed.hash]))
    }
}

/// One thing a verifier looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name.
    pub name: CheckName,
    /// Whether it held.
    pub passed: bool,
}

/// What was looked at. In entries and answers it is one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckName {
    /// A verifier's own word, or read from an entry.
    Word(Cow<'static, str>),
    /// What this setting of git does.
    GitSetting(String),
}

impl CheckName {
    /// How the word for a setting of git begins.
    const GIT_SETTING: &'static str = "git_setting:";

    /// The word for it.
    pub fn word(&self) -> Cow<'static, str> {
        match self {
            CheckName::Word(word) => word.clone(),
            CheckName::GitSetting(setting) => format!("{}{setting}", CheckName::GIT_SETTING).into(),
        }
    }
}

impl From<&'static str> for CheckName {
    fn from(word: &'static str) -> CheckName {
        CheckName::Word(word.into())
    }
}

impl Serialize for CheckName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CheckName::Word(word) => serializer.serialize_str(word),
            CheckName::GitSetting(_) => serializer.serialize_str(&self.word()),
        }
    }
}

impl<'de> Deserialize<'de> for CheckName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CheckName, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(match word.strip_prefix(CheckName::GIT_SETTING) {
            Some(setting) => CheckName::GitSetting(setting.to_owned()),
            None => CheckName::Word(word.into()),
        })
    }
}

/// What reading the text of an action yielded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The bundle whose rules were asked.
    pub bundle: Digest,
    /// What verified it.
    pub engine: Engine,
    /// The revision of that engine.
    pub version: u32,
    /// What it found.
    pub status: Status,
    /// The risk, where the engine knows better than the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// What it looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// The strictest of the argument rules that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Then>,
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<String>,
    /// The SHA-256 of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Digest>,
    /// The text is an attack, not a mistake.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hostile: bool,
    /// What a tool call does; of the call door only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<CallEvidence>>,
}

/// What reading the text of a tool call yielded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallEvidence {
    /// Everything it does.
    pub effects: Vec<Effect>,
    /// The strictest thing its command lines do; none if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<Effect>,
    /// Lines it changes.
    #[serde(default)]
    pub edit_lines: u64,
    /// Files it changes, by the SHA-256 of their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Digest>,
    /// Rules of the bundle by which the operator knows this call, or a command of it; risk and status account for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_by: Vec<String>,
    /// Allowances it matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowances: Vec<String>,
    /// What of it depends on the phase it was read in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PhaseEvidence>,
    /// A project in which refusals hold and whose files the call touches, wherever its session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_in: Option<String>,
    /// The bound it would run in; the rules were asked about that bound then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundEvidence>,
}

/// What a call is in one phase of one workflow. In another it has to be read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseEvidence {
    /// The SHA-256 of the workflow's text.
    pub workflow: Digest,
    /// The state.
    pub state: String,
    /// Whether every command is one the state lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<bool>,
    /// The declared fact it is the command of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<String>,
    /// The declared fact it would be the command of, if the script that it runs were the one the run began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub altered: Option<String>,
}

impl CallEvidence {
    /// Whether it could change something here. A command that reaches other machines may bring something back (`git pull`);
    /// a tool that only fetches does not. What does nothing that anybody could name may do anything.
    pub fn changes(&self) -> bool {
        if self.bound.as_ref().is_some_and(|bound| bound.profile == READ) {
            return false;
        }
        let harmless = |effect: &Effect| match effect {
            Effect::ReadOnly => true,
            Effect::Network => self.shell.is_none(),
            Effect::Write | Effect::Unknown | Effect::Destructive => false,
        };
        self.effects.is_empty() || !self.effects.iter().all(harmless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_bring_something_back_changes_something() {
        let does = |effects: &[Effect], shell| {
            CallEvidence { effects: effects.to_vec(), shell, ..CallEvidence::default() }.changes()
        };
        assert!(!does(&[Effect::ReadOnly], Some(Effect::ReadOnly)), "`ls`");
        assert!(!does(&[Effect::Network], None), "a tool that fetches");
        assert!(does(&[Effect::Network], Some(Effect::Network)), "`git pull`");
        assert!(does(&[Effect::Write], None), "an edit");
        assert!(does(&[Effect::ReadOnly, Effect::Unknown], Some(Effect::Unknown)));
        assert!(does(&[], None), "nobody knows what it does");
    }
}
