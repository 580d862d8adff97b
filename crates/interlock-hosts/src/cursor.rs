//! Cursor: its events and the fields of its tools.
//!
//! Cursor tells of one call several times: `preToolUse` for every tool, and before a shell, a server or a file once
//! more. The latter are echoes here. Of its tools' inputs it documents only the shell's; the rest of the table is what
//! is seen in the wild, and everything else is unread.

use interlock_core::call::{Call, Family};
use interlock_core::json::{Json, Limits, Value, parse};

use crate::envelope::Envelope;
use crate::event::{Kind, ToolResult, Unreadable};
use crate::mcp;
use crate::shape::{Dialect, Shape, digest, loosened, object, response, tells_error};
use crate::tools::Role::{
    Command, Content, Directory, Doomed, Edits, Everywhere, Flag, Inert, Lasting, Names, New, Number, Old, Path, Paths,
    Plain, ReadNames, Remark, Root, Target, Text, Url,
};
use crate::tools::{self, Tool};

pub(crate) const DIALECT: Dialect = Dialect {
    events: &[
        ("preToolUse", Shape::Before),
        ("postToolUse", Shape::After),
        ("postToolUseFailure", Shape::Failed),
        ("beforeShellExecution", Shape::Cursor(Own::BeforeShell)),
        ("afterShellExecution", Shape::Cursor(Own::AfterShell)),
        ("beforeMCPExecution", Shape::Cursor(Own::BeforeServer)),
        ("afterMCPExecution", Shape::Cursor(Own::AfterServer)),
        ("beforeReadFile", Shape::Cursor(Own::BeforeRead)),
        ("afterFileEdit", Shape::Cursor(Own::AfterEdit)),
        ("subagentStart", Shape::Cursor(Own::SubagentStart)),
        ("beforeTabFileRead", Shape::Cursor(Own::BeforeTabRead)),
        ("beforeSubmitPrompt", Shape::Prompt),
        ("sessionStart", Shape::Start),
        ("stop", Shape::Stop),
        ("subagentStop", Shape::SubagentStop),
        ("afterTabFileEdit", Shape::Notice),
        ("afterAgentResponse", Shape::Notice),
        ("afterAgentThought", Shape::Notice),
        ("preCompact", Shape::Notice),
        ("sessionEnd", Shape::Notice),
    ],
    tools: TOOLS,
    bookkeeping: &["TodoWrite"],
    instructed: &["postToolUse", "sessionStart"],
};

/// The events that no other host has.
#[derive(Clone, Copy)]
pub(crate) enum Own {
    BeforeShell,
    AfterShell,
    BeforeServer,
    AfterServer,
    BeforeRead,
    BeforeTabRead,
    AfterEdit,
    SubagentStart,
}

impl Own {
    /// `ask` is put to a person before a shell or a server; elsewhere it is accepted and not enforced.
    pub(crate) fn may_ask(self) -> bool {
        matches!(self, Own::BeforeShell | Own::BeforeServer)
    }

    pub(crate) fn kind(self, event: Envelope<'_>) -> Result<Kind, Unreadable> {
        let call = self.call(event)?;
        let answer = match self {
            Own::AfterShell => "output",
            Own::AfterServer => "result_json",
            Own::AfterEdit => "edits",
            Own::BeforeShell | Own::BeforeServer | Own::BeforeRead | Own::SubagentStart | Own::BeforeTabRead => {
                let echo = !matches!(self, Own::BeforeTabRead);
                return Ok(Kind::BeforeTool { call, call_id: None, ticket: None, echo });
            }
        };
        let ok = if matches!(self, Own::AfterEdit) { Some(true) } else { None };
        let response = digest(response(event, &[answer]));
        let result = ToolResult { ok, exit_code: None, response, trailers: Vec::new(), repeats_input: true };
        Ok(Kind::AfterTool { call, call_id: None, ticket: None, echo: true, result })
    }

    fn call(self, event: Envelope<'_>) -> Result<Call, Unreadable> {
        let own = |key: &str| event.text(key).map(|text| Some(Json::from(text)));
        let may = |key: &str| Ok(event.optional_text(key)?.map(Json::from));
        Ok(match self {
            // The directory is no part of the input: the event afterwards does not repeat it.
            Own::BeforeShell | Own::AfterShell => {
                let mut call = tools::call(TOOLS, "Shell", object(&[("command", own("command")?)]), None);
                call.intent.directory = event.optional_text("cwd")?.filter(|cwd| !cwd.is_empty()).map(str::to_owned);
                call
            }
            Own::BeforeServer | Own::AfterServer => {
                let name = event.text("tool_name")?;
                let input = loosened(event.must("tool_input")?);
                let mut call = tools::call(TOOLS, &format!("MCP:{name}"), input, Some(mcp::mcp("", name)));
                call.intent.urls.extend(event.optional_text("url")?.map(str::to_owned));
                call
            }
            Own::BeforeRead => tools::call(TOOLS, "Read", object(&[("file_path", own("file_path")?)]), None),
            Own::BeforeTabRead => tools::call(TOOLS, "TabRead", object(&[("file_path", own("file_path")?)]), None),
            Own::AfterEdit => {
                let edits = event.get("edits").map(Json::of);
                tools::call(EDITED, "Write", object(&[("file_path", own("file_path")?), ("edits", edits)]), None)
            }
            Own::SubagentStart => {
                let input = object(&[("prompt", may("task")?), ("subagent_type", may("subagent_type")?)]);
                tools::call(TOOLS, "Task", input, None)
            }
        })
    }
}

/// How a tool ended, and with which exit code if it ran a command: from the text of an object, as it is documented. A
/// command without a code that can be read in one way may have ended in any way.
pub(crate) fn ended(call: &Call, output: Option<Value<'_>>) -> (Option<bool>, Option<i64>) {
    let text = output.and_then(|output| output.as_str());
    let document = text.and_then(|text| parse(text.text(), &Limits::STATE).ok());
    let Some(answer) = document.as_ref().map(|document| document.root()) else { return (None, None) };
    if call.family == Some(Family::Bash) {
        let told = answer.get("exitCode").and_then(exit_code);
        let exit_code = told.filter(|code| *code != 0 || !tells_error(Envelope(answer)));
        return (exit_code.map(|code| code == 0), exit_code);
    }
    ((!tells_error(Envelope(answer))).then_some(true), None)
}

/// A whole number in its one spelling.
fn exit_code(value: Value<'_>) -> Option<i64> {
    let code = i64::try_from(value.as_number()?.to_i128()?).ok()?;
    (code.to_string() == value.source()).then_some(code)
}

/// The directory of the event, or the first of the workspace.
pub(crate) fn directory(event: Envelope<'_>) -> Result<&str, Unreadable> {
    if let Some(cwd) = event.optional_text("cwd")?.filter(|cwd| !cwd.is_empty()) {
        return Ok(cwd);
    }
    let first = event.get("workspace_roots").and_then(|roots| roots.as_array()?.next()?.as_str());
    let first = first.map(|root| root.text()).filter(|root| !root.is_empty());
    first.ok_or_else(|| Unreadable::new("neither `cwd` nor `workspace_roots` names a directory"))
}

/// The most directories of a workspace that are looked at.
const ROOTS_MAX: usize = 16;

/// The directories of the workspace, as many as anybody opens at once.
pub(crate) fn roots(event: Envelope<'_>) -> Vec<String> {
    let roots = event.get("workspace_roots").and_then(|roots| roots.as_array());
    let texts = roots.into_iter().flatten().filter_map(|root| root.as_str().map(|root| root.text().to_owned()));
    texts.filter(|root| root.starts_with('/')).take(ROOTS_MAX).collect()
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "Shell",
        family: Some(Family::Bash),
        needs: &["command"],
        fields: &[
            ("command", Command),
            ("working_directory", Directory),
            ("description", Remark),
            ("timeout", Number),
            ("is_background", Lasting),
        ],
    },
    Tool { name: "Read", family: Some(Family::Read), needs: FILE, fields: READ },
    Tool { name: "TabRead", family: Some(Family::Read), needs: FILE, fields: READ },
    Tool {
        name: "Write",
        family: Some(Family::Write),
        needs: FILE,
        fields: &[
            ("file_path", Target),
            ("path", Target),
            ("target_file", Target),
            ("content", Content),
            ("contents", Content),
        ],
    },
    Tool { name: "StrReplace", family: Some(Family::Edit), needs: FILE, fields: REPLACE },
    Tool { name: "Edit", family: Some(Family::Edit), needs: FILE, fields: REPLACE },
    Tool {
        name: "Delete",
        family: Some(Family::Edit),
        needs: FILE,
        fields: &[("file_path", Doomed), ("path", Doomed), ("target_file", Doomed), ("explanation", Remark)],
    },
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
            ("-i", Flag),
            ("-n", Flag),
            ("type", Plain),
            ("head_limit", Number),
            ("offset", Number),
            ("multiline", Flag),
        ],
    },
    Tool {
        name: "Glob",
        family: Some(Family::Glob),
        needs: &["glob_pattern", "pattern"],
        fields: &[("glob_pattern", Names), ("pattern", Names), ("target_directory", Root)],
    },
    Tool {
        name: "LS",
        family: Some(Family::Glob),
        needs: &["target_directory"],
        fields: &[("target_directory", Root), ("ignore_globs", Inert)],
    },
    Tool { name: "ReadLints", family: Some(Family::Read), needs: &["paths"], fields: &[("paths", Paths)] },
    Tool {
        name: "WebFetch",
        family: Some(Family::WebFetch),
        needs: &["url"],
        fields: &[("url", Url), ("prompt", Text)],
    },
    Tool {
        name: "WebSearch",
        family: Some(Family::WebFetch),
        needs: &["search_term", "query"],
        fields: &[("search_term", Text), ("query", Text), ("explanation", Remark)],
    },
    Tool {
        name: "Task",
        family: Some(Family::Agent),
        needs: &["prompt"],
        fields: &[
            ("description", Text),
            ("prompt", Text),
            ("subagent_type", Text),
            ("model", Text),
            ("readonly", Flag),
            ("run_in_background", Flag),
        ],
    },
    Tool { name: "TodoWrite", family: None, needs: &[], fields: &[("todos", Inert), ("merge", Flag)] },
];

/// An edit after it was made.
const EDITED: &[Tool] = &[Tool {
    name: "Write",
    family: Some(Family::Write),
    needs: &["file_path"],
    fields: &[("file_path", Target), ("edits", Edits)],
}];

const FILE: &[&str] = &["file_path", "path", "target_file"];

const READ: &[(&str, tools::Role)] =
    &[("file_path", Path), ("path", Path), ("target_file", Path), ("offset", Number), ("limit", Number)];

const REPLACE: &[(&str, tools::Role)] = &[
    ("file_path", Target),
    ("path", Target),
    ("target_file", Target),
    ("old_string", Old),
    ("new_string", New),
    ("replace_all", Everywhere),
];
