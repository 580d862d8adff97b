//! The context of an action: conversation, step, and the state of the world it was proposed in.

use serde::{Deserialize, Serialize};

use super::vocabulary::words;
use crate::code::Code;
use crate::json::{Content, Value};

/// The longest conversation id.
pub const CONVERSATION_BYTES_MAX: usize = 256;

/// A step of a conversation, 1 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepNumber(u64);

impl StepNumber {
    /// A step from a number of its own; zero is none.
    pub fn new(step: u64) -> Option<StepNumber> {
        (step > 0).then_some(StepNumber(step))
    }

    /// Reads a step; integers beyond any conversation are steps too, and too many.
    fn parse(value: Value<'_>) -> Result<StepNumber, ContextFault> {
        let invalid = || ContextFault::new(Code::ContextStep, "step_number must be an integer >= 1");
        let Some(Content::Number(number)) = value.content() else { return Err(invalid()) };
        if !number.is_integer() || number.literal().starts_with('-') {
            return Err(invalid());
        }
        let step = number.to_i128().map_or(u64::MAX, |step| u64::try_from(step).unwrap_or(u64::MAX));
        StepNumber::new(step).ok_or_else(invalid)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

words! {
    /// How a state hash was derived.
    StateSource: "state source" {
        /// A directory listing or tree hash.
        FileTree = "file_tree",
        /// A database checksum.
        DbSnapshot = "db_snapshot",
        /// The conversation so far.
        ConversationDigest = "conversation_digest",
        /// A Git tree object.
        GitTree = "git_tree",
        /// Anything else the caller hashes.
        Custom = "custom",
    }
}

/// The state of the world an action was proposed in: hash and source, both or neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// 64 lower-case hexadecimal digits.
    pub hash: String,
    /// How it was derived.
    pub source: StateSource,
}

/// Where in a conversation an action stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionContext {
    /// The conversation.
    pub conversation: String,
    /// The step.
    pub step: StepNumber,
    /// The state of the world, if it was given.
    pub observed: Option<Observed>,
}

/// Why a context is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFault {
    /// CTX-001, CTX-002 or STATE-001 to STATE-003.
    pub code: Code,
    /// What is wrong.
    pub message: &'static str,
}

impl ContextFault {
    fn new(code: Code, message: &'static str) -> ContextFault {
        ContextFault { code, message }
    }
}

impl ActionContext {
    /// Reads the known fields of a context; the caller refuses unknown ones.
    pub fn parse(context: Option<Value<'_>>, observed_required: bool) -> Result<ActionContext, ContextFault> {
        let missing = |message| ContextFault::new(Code::ContextMissing, message);
        let field = |name| {
            context
                .and_then(|context| context.get(name))
                .filter(|value| !matches!(value.content(), Some(Content::Null)))
        };
        if context.is_none_or(|context| context.as_object().is_none()) {
            return Err(missing("context with conversation_id and step_number is required"));
        }
        let conversation = field("conversation_id").and_then(|id| id.as_str()).map(|id| id.text()).unwrap_or("");
        if conversation.trim().is_empty() || conversation.len() > CONVERSATION_BYTES_MAX {
            return Err(missing("conversation_id must be a non-blank string of at most 256 bytes"));
        }
        let step = field("step_number").ok_or_else(|| missing("step_number is required"))?;
        let step = StepNumber::parse(step)?;
        let observed = observed(field("pre_action_state_hash"), field("state_source"), observed_required)?;
        Ok(ActionContext { conversation: conversation.to_owned(), step, observed })
    }
}

fn observed(
    hash: Option<Value<'_>>,
    source: Option<Value<'_>>,
    required: bool,
) -> Result<Option<Observed>, ContextFault> {
    let (hash, source) = match (hash, source) {
        (Some(hash), Some(source)) => (hash, source),
        (None, None) if !required => return Ok(None),
        (None, None) => {
            return Err(ContextFault::new(
                Code::StateFields,
                "pre_action_state_hash and state_source are required by this server",
            ));
        }
        (Some(_), None) | (None, Some(_)) => {
            return Err(ContextFault::new(
                Code::StateFields,
                "pre_action_state_hash and state_source must be provided together",
            ));
        }
    };
    let hash = hash.as_str().map(|hash| hash.text().to_owned()).filter(|hash| is_hash(hash));
    let hash = hash.ok_or_else(|| {
        ContextFault::new(Code::StateHash, "pre_action_state_hash must be 64 lower-case hexadecimal digits")
    })?;
    let source = source.as_str().and_then(|source| StateSource::parse(source.text())).ok_or_else(|| {
        ContextFault::new(
            Code::StateSource,
            "state_source must be one of file_tree, db_snapshot, conversation_digest, git_tree, custom",
        )
    })?;
    Ok(Some(Observed { hash, source }))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
