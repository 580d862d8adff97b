//! Codex: its events and the fields of its tools. Shells of every kind are `Bash` there.

use interlock_core::call::Family;

use crate::shape::{Dialect, Shape};
use crate::tools::Role::{CommandOrWords, Inert, Path, Text};
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
    bookkeeping: &["update_plan"],
    instructed: &["PostToolUse", "UserPromptSubmit", "SessionStart", "SubagentStart"],
};

const TOOLS: &[Tool] = &[
    Tool {
        name: "Bash",
        family: Some(Family::Bash),
        needs: &["command"],
        fields: &[("command", CommandOrWords), ("description", Text)],
    },
    Tool {
        name: "apply_patch",
        family: Some(Family::Edit),
        needs: &["command", "input"],
        fields: &[("command", Role::Patch), ("input", Role::Patch), ("description", Text)],
    },
    Tool { name: "update_plan", family: None, needs: &[], fields: &[("explanation", Text), ("plan", Inert)] },
    Tool { name: "view_image", family: Some(Family::Read), needs: &["path"], fields: &[("path", Path)] },
];
