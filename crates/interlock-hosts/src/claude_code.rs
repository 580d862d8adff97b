//! Claude Code: its events and the fields of its tools, as its published types name them (agent SDK 0.3.325).

use interlock_core::call::{Call, Family};
use interlock_core::json::{Json, Value};

use crate::envelope::Envelope;
use crate::shape::{Dialect, Shape, tells_error};
use crate::tools::Role::{
    CellMode, Command, Content, Edits, Everywhere, Flag, Inert, Lasting, LastingCommand, Names, New, Number, Off, Old,
    Path, Plain, ReadNames, Remark, Root, Target, Text, Url, Word,
};
use crate::tools::Tool;

pub(crate) const DIALECT: Dialect = Dialect {
    events: &[
        ("PreToolUse", Shape::Before),
        ("PermissionRequest", Shape::Permission),
        ("PostToolUse", Shape::After),
        ("PostToolUseFailure", Shape::Failed),
        ("UserPromptSubmit", Shape::Prompt),
        ("UserPromptExpansion", Shape::Prompt),
        ("SessionStart", Shape::Start),
        ("Stop", Shape::Stop),
        ("SubagentStop", Shape::SubagentStop),
        ("ConfigChange", Shape::Config),
        ("CwdChanged", Shape::Notice),
        ("DirectoryAdded", Shape::Notice),
        ("Elicitation", Shape::Notice),
        ("ElicitationResult", Shape::Notice),
        ("FileChanged", Shape::Notice),
        ("InstructionsLoaded", Shape::Notice),
        ("MessageDisplay", Shape::Notice),
        ("Notification", Shape::Notice),
        ("PermissionDenied", Shape::Notice),
        ("PostCompact", Shape::Notice),
        ("PostModelSwitch", Shape::Notice),
        ("PostToolBatch", Shape::Notice),
        ("PreCompact", Shape::Notice),
        ("PreModelSwitch", Shape::Notice),
        ("SessionEnd", Shape::Notice),
        ("Setup", Shape::Notice),
        ("StopFailure", Shape::Notice),
        ("SubagentStart", Shape::Notice),
        ("TaskCompleted", Shape::Notice),
        ("TaskCreated", Shape::Notice),
        ("TeammateIdle", Shape::Notice),
        ("WorktreeCreate", Shape::Notice),
        ("WorktreeRemove", Shape::Notice),
    ],
    tools: TOOLS,
    bookkeeping: &[
        "TodoWrite",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "AskUserQuestion",
        "EnterPlanMode",
        "ExitPlanMode",
        "BashOutput",
        "TaskOutput",
        "CronList",
        "ListAgents",
        "ReportFindings",
        "ToolSearch",
    ],
    instructed: &[
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "UserPromptExpansion",
        "SessionStart",
        "SubagentStart",
        "Setup",
    ],
};

/// What is not here is unknown: the scheduling, publishing and remote tools reach where no rule of ours looks, and what
/// PowerShell is told is not a shell's line.
const TOOLS: &[Tool] = &[
    Tool {
        name: "Bash",
        family: Some(Family::Bash),
        needs: &["command"],
        fields: &[
            ("command", Command),
            ("timeout", Number),
            ("description", Remark),
            ("run_in_background", Lasting),
            ("dangerouslyDisableSandbox", Off),
        ],
    },
    Tool {
        name: "Monitor",
        family: Some(Family::Bash),
        needs: &["command"],
        fields: &[("command", LastingCommand), ("timeout_ms", Number), ("description", Remark)],
    },
    Tool { name: "BashOutput", family: None, needs: &[], fields: OUTPUT },
    Tool { name: "TaskOutput", family: None, needs: &[], fields: OUTPUT },
    Tool { name: "KillShell", family: None, needs: &[], fields: STOP },
    Tool { name: "KillBash", family: None, needs: &[], fields: STOP },
    Tool { name: "TaskStop", family: None, needs: &[], fields: STOP },
    Tool {
        name: "Read",
        family: Some(Family::Read),
        needs: &["file_path"],
        fields: &[("file_path", Path), ("offset", Number), ("limit", Number), ("pages", Text), ("allow_large", Flag)],
    },
    Tool {
        name: "Write",
        family: Some(Family::Write),
        needs: &["file_path"],
        fields: &[("file_path", Target), ("content", Content)],
    },
    Tool {
        name: "Edit",
        family: Some(Family::Edit),
        needs: &["file_path"],
        fields: &[("file_path", Target), ("old_string", Old), ("new_string", New), ("replace_all", Everywhere)],
    },
    Tool {
        name: "MultiEdit",
        family: Some(Family::Edit),
        needs: &["file_path"],
        fields: &[("file_path", Target), ("edits", Edits)],
    },
    Tool {
        name: "NotebookEdit",
        family: Some(Family::Edit),
        needs: &["notebook_path"],
        fields: &[
            ("notebook_path", Target),
            ("cell_id", Text),
            ("cell_number", Number),
            ("new_source", New),
            ("cell_type", Text),
            ("edit_mode", CellMode),
        ],
    },
    Tool {
        name: "Glob",
        family: Some(Family::Glob),
        needs: &["pattern"],
        fields: &[("pattern", Names), ("path", Root)],
    },
    Tool { name: "LS", family: Some(Family::Glob), needs: &["path"], fields: &[("path", Root), ("ignore", Inert)] },
    Tool {
        name: "Grep",
        family: Some(Family::Grep),
        needs: &["pattern"],
        fields: &[
            ("pattern", Text),
            ("path", Root),
            ("glob", ReadNames),
            ("output_mode", Text),
            ("-A", Number),
            ("-B", Number),
            ("-C", Number),
            ("context", Number),
            ("-n", Flag),
            ("-i", Flag),
            ("-o", Flag),
            ("type", Plain),
            ("head_limit", Number),
            ("offset", Number),
            ("multiline", Flag),
        ],
    },
    Tool {
        name: "WebFetch",
        family: Some(Family::WebFetch),
        needs: &["url"],
        fields: &[("url", Url), ("prompt", Text), ("offset", Number)],
    },
    Tool {
        name: "WebSearch",
        family: Some(Family::WebFetch),
        needs: &["query"],
        fields: &[("query", Text), ("allowed_domains", Inert), ("blocked_domains", Inert)],
    },
    Tool { name: "Task", family: Some(Family::Agent), needs: &["prompt"], fields: AGENT },
    Tool { name: "Agent", family: Some(Family::Agent), needs: &["prompt"], fields: AGENT },
    Tool { name: "TodoWrite", family: None, needs: &[], fields: &[("todos", Inert)] },
    Tool {
        name: "TaskCreate",
        family: None,
        needs: &[],
        fields: &[("subject", Text), ("description", Text), ("activeForm", Text), ("metadata", Inert)],
    },
    Tool { name: "TaskGet", family: None, needs: &[], fields: &[("taskId", Text)] },
    Tool { name: "TaskList", family: None, needs: &[], fields: &[] },
    Tool {
        name: "TaskUpdate",
        family: None,
        needs: &[],
        fields: &[
            ("taskId", Text),
            ("subject", Text),
            ("description", Text),
            ("activeForm", Text),
            ("status", Text),
            ("addBlocks", Inert),
            ("addBlockedBy", Inert),
            ("owner", Text),
            ("metadata", Inert),
        ],
    },
    Tool { name: "CronList", family: None, needs: &[], fields: &[] },
    Tool { name: "ListAgents", family: None, needs: &[], fields: &[("channel", Text), ("q", Text)] },
    Tool { name: "ReportFindings", family: None, needs: &[], fields: &[("level", Text), ("findings", Inert)] },
    Tool { name: "ToolSearch", family: None, needs: &[], fields: &[("query", Text), ("max_results", Number)] },
    Tool { name: "EnterPlanMode", family: None, needs: &[], fields: &[] },
    Tool {
        name: "AskUserQuestion",
        family: None,
        needs: &[],
        fields: &[("questions", Inert), ("answers", Inert), ("annotations", Inert), ("metadata", Inert)],
    },
    // Permissions it asks for are the host's; every call they cover still comes here.
    Tool {
        name: "ExitPlanMode",
        family: None,
        needs: &[],
        fields: &[("plan", Text), ("planFilePath", Text), ("allowedPrompts", Inert)],
    },
    // Both load texts that may run commands before the agent sees them: which, nobody can tell from a name.
    Tool { name: "SlashCommand", family: None, needs: &["command"], fields: &[] },
    Tool { name: "Skill", family: None, needs: &["skill"], fields: &[] },
    Tool { name: "ListMcpResourcesTool", family: None, needs: &[], fields: &[("server", Text)] },
    Tool {
        name: "ReadMcpResourceTool",
        family: Some(Family::Read),
        needs: &["uri"],
        fields: &[("server", Text), ("uri", Url)],
    },
    Tool {
        name: "ReadMcpResourceDirTool",
        family: Some(Family::Read),
        needs: &["uri"],
        fields: &[("server", Text), ("uri", Url)],
    },
];

const OUTPUT: &[(&str, crate::tools::Role)] = &[
    ("bash_id", Text),
    ("task_id", Text),
    ("filter", Text),
    ("block", Flag),
    ("timeout", Number),
    ("wait_up_to", Number),
];

const STOP: &[(&str, crate::tools::Role)] = &[("shell_id", Text), ("task_id", Text)];

/// A subagent's calls come here one by one, except those of one that runs on another machine.
const AGENT: &[(&str, crate::tools::Role)] = &[
    ("description", Text),
    ("prompt", Text),
    ("subagent_type", Text),
    ("model", Text),
    ("effort", Text),
    ("run_in_background", Flag),
    ("name", Text),
    ("team_name", Text),
    ("mode", Word(&["default", "plan", "acceptEdits"])),
    ("isolation", Word(&["worktree"])),
];

/// Whether the host itself adds to the input of a tool: a person's answers and the text of a plan before it runs, other
/// names for the fields of a message where hooks are asked. What is told to have run then is not what was judged, and
/// nothing is wrong.
pub(crate) fn completes(tool: &str) -> bool {
    ["AskUserQuestion", "ExitPlanMode", "SendMessage"].contains(&tool)
}

/// The event after a success is another than the one after a failure; but a command may have been stopped, may still
/// run, or may have ended with a code that the host does not count as a failure. So only the known shape of a call that
/// is over and went well is a success; of any other nobody can tell.
pub(crate) fn succeeded(call: &Call, response: Option<Value<'_>>) -> Option<bool> {
    let value = response?;
    let response = Envelope(value);
    let is_command = ["Bash", "Monitor"].contains(&call.tool.as_str());
    if is_command && response.get("interrupted").and_then(|value| value.as_bool()) == Some(true) {
        return Some(false);
    }
    let went_well = if is_command { is_over(response) && !runs_on(&call.input) } else { is_answer(value) };
    (went_well && !tells_error(response)).then_some(true)
}

/// Whether a command has ended, and not in a way that the host explains.
fn is_over(response: Envelope<'_>) -> bool {
    let is_text = |key: &str| response.get(key).is_some_and(|value| value.as_str().is_some());
    let is_zero = |key: &str| response.get(key).is_none_or(|code| code.source() == "0");
    // What says nothing about how it ended. Any other field that holds something may say that it did not, or not well.
    let silent = [
        "stdout",
        "stderr",
        "interrupted",
        "isImage",
        "noOutputExpected",
        "exit_code",
        "exitCode",
        "rawOutputPath",
        "persistedOutputPath",
        "persistedOutputSize",
        "structuredContent",
    ];
    let is_absent = |value: Value<'_>| matches!(value.source(), "null" | "false");
    let mut members = response.0.as_object().into_iter().flatten();
    is_text("stdout")
        && is_text("stderr")
        && response.get("interrupted").and_then(|value| value.as_bool()) == Some(false)
        && ["exit_code", "exitCode"].into_iter().all(is_zero)
        && members.all(|(key, value)| silent.contains(&key.text()) || is_absent(value))
}

/// Whether a command was to go on behind the agent's back.
fn runs_on(input: &Json) -> bool {
    let asked = input.as_object().and_then(|members| members.get("run_in_background"));
    !matches!(asked, None | Some(Json::Null | Json::Bool(false)))
}

/// Whether a response is of a kind that tools give.
fn is_answer(response: Value<'_>) -> bool {
    response.as_object().is_some() || response.as_str().is_some()
}
