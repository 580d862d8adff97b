//! The two control tools as a client sees them.
//!
//! They declare no `outputSchema`: a refusal has another shape than an answer, and clients check the one against the
//! other's schema.

use core::fmt;

use interlock_core::json::Json;

use crate::message::object;
use crate::revision::Revision;

/// How the tools' names begin unless someone wants otherwise.
pub const PREFIX: &str = "interlock";
/// The longest prefix: some clients refuse names over 64 bytes, and put the server's name before ours.
pub const PREFIX_BYTES_MAX: usize = 24;

/// A prefix that names of tools cannot begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixError;

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a prefix is 1 to {PREFIX_BYTES_MAX} letters, digits, `_` and `-`")
    }
}

impl std::error::Error for PrefixError {}

/// A control tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    GetState,
    Transition,
}

/// The tools under their names.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    get_state: String,
    transition: String,
}

impl Tools {
    pub(crate) fn new(prefix: &str) -> Result<Tools, PrefixError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if prefix.is_empty() || prefix.len() > PREFIX_BYTES_MAX || !prefix.bytes().all(fits) {
            return Err(PrefixError);
        }
        Ok(Tools { get_state: format!("{prefix}_get_state"), transition: format!("{prefix}_transition") })
    }

    pub(crate) fn find(&self, name: &str) -> Option<Tool> {
        [Tool::GetState, Tool::Transition].into_iter().find(|tool| self.name(*tool) == name)
    }

    pub(crate) fn name(&self, tool: Tool) -> &str {
        match tool {
            Tool::GetState => &self.get_state,
            Tool::Transition => &self.transition,
        }
    }

    /// Both, always in this order.
    pub(crate) fn list(&self, revision: Revision) -> Json {
        Json::Array(vec![self.define(Tool::GetState, revision), self.define(Tool::Transition, revision)])
    }

    /// What a client may tell its model about the server.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "Your work is divided into phases, and each allows some tools. `{}` says which phase this is and what it \
             allows; `{}` moves on to the next. When a tool is refused, the refusal names what is allowed now and which \
             event leads where: do that instead of trying the same call again.",
            self.get_state, self.transition
        )
    }

    fn define(&self, tool: Tool, revision: Revision) -> Json {
        let mut members = vec![
            ("name", Json::from(self.name(tool))),
            ("description", Json::String(self.description(tool))),
            ("inputSchema", input_schema(tool)),
        ];
        if revision.has_structure() {
            members.push(("title", title(tool).into()));
        }
        if revision.has_annotations() {
            members.push(("annotations", annotations(tool)));
        }
        object(members)
    }

    fn description(&self, tool: Tool) -> String {
        match tool {
            Tool::GetState => format!(
                "Shows the phase you are in: its instructions, the tools it allows (null: all of them), and the events \
                 that lead to other phases with what each still needs. Call it at the start of your work and whenever \
                 a tool was refused. It changes nothing. To move on, call {}.",
                self.transition
            ),
            Tool::Transition => format!(
                "Moves to another phase by an event that {} lists. `data` holds facts for the checks on the way; it is \
                 kept only if the move succeeds. With `expected_revision` the move is refused if something changed \
                 since you looked. A refusal changes nothing and names what is missing and what is allowed now. Some \
                 moves wait for a person; the answer then has an `approval_id`.",
                self.get_state
            ),
        }
    }
}

fn title(tool: Tool) -> &'static str {
    match tool {
        Tool::GetState => "Show the phase",
        Tool::Transition => "Move to another phase",
    }
}

fn input_schema(tool: Tool) -> Json {
    let typed = |kind: &str, description: &str| vec![("type", kind.into()), ("description", description.into())];
    let mut schema = vec![("type", Json::from("object")), ("additionalProperties", Json::Bool(false))];
    match tool {
        Tool::GetState => schema.push(("properties", object([]))),
        Tool::Transition => {
            let mut event = typed("string", "The event, as the list of transitions names it");
            event
                .extend([("minLength", Json::from(1_u64)), ("maxLength", Json::from(crate::control::EVENT_CHARS_MAX))]);
            let data = typed("object", "Facts that the checks on this way ask for");
            let mut revision = typed("integer", "The revision you looked at");
            revision.push(("minimum", Json::from(0_u64)));
            let properties =
                [("event", object(event)), ("data", object(data)), ("expected_revision", object(revision))];
            schema.push(("properties", object(properties)));
            schema.push(("required", Json::Array(vec!["event".into()])));
        }
    }
    object(schema)
}

fn annotations(tool: Tool) -> Json {
    let hint = |name, value| (name, Json::Bool(value));
    object(match tool {
        Tool::GetState => {
            vec![hint("readOnlyHint", true), hint("idempotentHint", true), hint("openWorldHint", false)]
        }
        // It replaces the phase, and `data` replaces what the context held: that is more than adding.
        Tool::Transition => vec![
            hint("readOnlyHint", false),
            hint("destructiveHint", true),
            hint("idempotentHint", false),
            hint("openWorldHint", false),
        ],
    })
}
