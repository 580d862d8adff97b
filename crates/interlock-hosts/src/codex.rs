//! Codex: its events and the fields of its tools, as 0.166 sends them. Shells of every kind are `Bash` there, with the
//! directory of the command as that of the event.

use interlock_core::call::{Call, Family};

use crate::shape::{Dialect, Shape};
use crate::tools::Role::{CommandOrWords, Flag, Inert, Number, Path, Remark, Text, Url};
use crate::tools::{Role, Tool};

pub(crate) const DIALECT: Dialect = Dialect {
    events: &[
        ("PreToolUse", Shape::Before),
        ("PermissionRequest", Shape::Permission),
        ("PostToolUse", Shape::After),
        ("UserPromptSubmit", Shape::Prompt),
        ("SessionStart", Shape::Start),
        ("Stop", Shape::Stop),
        ("SubagentStop", Shape::SubagentStop),
        ("SubagentStart", Shape::Notice),
        ("PreCompact", Shape::Notice),
        ("PostCompact", Shape::Notice),
        ("Interrupt", Shape::Notice),
        ("SessionEnd", Shape::Notice),
    ],
    tools: TOOLS,
    bookkeeping: &["update_plan", "get_goal", "create_goal", "update_goal", "request_user_input", "wait_agent"],
    instructed: &["PostToolUse", "UserPromptSubmit", "SessionStart", "SubagentStart"],
};

/// The tool that changes files.
const PATCH: &str = "apply_patch";

const TOOLS: &[Tool] = &[
    Tool {
        name: "Bash",
        family: Some(Family::Bash),
        needs: &["command"],
        fields: &[("command", CommandOrWords), ("description", Remark)],
    },
    Tool {
        name: PATCH,
        family: Some(Family::Edit),
        needs: &["command", "input"],
        fields: &[("command", Role::Patch), ("input", Role::Patch), ("description", Remark)],
    },
    Tool { name: "update_plan", family: None, needs: &[], fields: &[("explanation", Text), ("plan", Inert)] },
    Tool {
        name: "view_image",
        family: Some(Family::Read),
        needs: &["path"],
        fields: &[("path", Path), ("detail", Text)],
    },
    Tool { name: "get_goal", family: None, needs: &[], fields: &[] },
    Tool { name: "create_goal", family: None, needs: &[], fields: &[("objective", Text), ("token_budget", Number)] },
    Tool { name: "update_goal", family: None, needs: &[], fields: &[("status", Text)] },
    Tool { name: "request_user_input", family: None, needs: &[], fields: &[("questions", Inert)] },
    // Things handed over besides a text (`items`) may name files: they stay unread. A subagent's calls come here.
    Tool {
        name: "spawn_agent",
        family: Some(Family::Agent),
        needs: &["message"],
        fields: &[
            ("message", Text),
            ("agent_type", Text),
            ("fork_context", Flag),
            ("model", Text),
            ("reasoning_effort", Text),
        ],
    },
    Tool { name: "wait_agent", family: None, needs: &[], fields: &[("targets", Inert), ("timeout_ms", Number)] },
    Tool { name: "list_mcp_resources", family: None, needs: &[], fields: &[("server", Text), ("cursor", Text)] },
    Tool {
        name: "list_mcp_resource_templates",
        family: None,
        needs: &[],
        fields: &[("server", Text), ("cursor", Text)],
    },
    Tool {
        name: "read_mcp_resource",
        family: Some(Family::Read),
        needs: &["uri"],
        fields: &[("server", Text), ("uri", Url)],
    },
];

/// A patch that cannot be made, or fails while it is, has no event afterwards: one that is told of was made. Of a command
/// that failed the host tells in the same way as of one that did not.
pub(crate) fn succeeded(call: &Call) -> Option<bool> {
    (call.tool == PATCH).then_some(true)
}
