//! Gemini CLI: its events and the fields of its tools, as 0.61 names them.
//!
//! Names that fields had in earlier versions are not in the table: this version ignores them, so that a call which uses
//! them does something else than it says.

use interlock_core::call::Family;
use interlock_core::json::Value;

use crate::envelope::Envelope;
use crate::shape::{Dialect, Shape};
use crate::tools::Role::{
    Command, Content, Directory, Everywhere, Flag, Inert, Lasting, Names, New, Number, Old, Path, Paths, ReadNames,
    Remark, Root, Sought, Target, Text, Url, UrlsIn,
};
use crate::tools::{Role, Tool};

pub(crate) const DIALECT: Dialect = Dialect {
    events: &[
        ("BeforeTool", Shape::Before),
        ("AfterTool", Shape::After),
        ("BeforeAgent", Shape::Prompt),
        ("SessionStart", Shape::Start),
        ("AfterAgent", Shape::Stop),
        ("BeforeModel", Shape::Notice),
        ("AfterModel", Shape::Notice),
        ("BeforeToolSelection", Shape::Notice),
        ("Notification", Shape::Notice),
        ("PreCompress", Shape::Notice),
        ("SessionEnd", Shape::Notice),
    ],
    tools: TOOLS,
    bookkeeping: &[
        "write_todos",
        "ask_user",
        "enter_plan_mode",
        "exit_plan_mode",
        "update_topic",
        "list_background_processes",
        "read_background_output",
        "complete_task",
    ],
    instructed: &["AfterTool", "BeforeAgent", "SessionStart"],
};

/// The shell, whose failures are no errors of the tool.
const SHELL: &str = "run_shell_command";

const TOOLS: &[Tool] = &[
    // Permissions asked for beside the command are not in the table: they lift the host's sandbox.
    Tool {
        name: SHELL,
        family: Some(Family::Bash),
        needs: &["command"],
        fields: &[
            ("command", Command),
            ("description", Remark),
            ("dir_path", Directory),
            ("is_background", Lasting),
            ("delay_ms", Number),
            WAIT,
        ],
    },
    Tool {
        name: "read_file",
        family: Some(Family::Read),
        needs: &["file_path"],
        fields: &[("file_path", Path), ("start_line", Number), ("end_line", Number), WAIT],
    },
    Tool {
        name: "read_many_files",
        family: Some(Family::Read),
        needs: &["include"],
        fields: &[
            ("include", Paths),
            ("exclude", Inert),
            ("recursive", Flag),
            ("useDefaultExcludes", Flag),
            ("file_filtering_options", Inert),
            WAIT,
        ],
    },
    Tool {
        name: "write_file",
        family: Some(Family::Write),
        needs: &["file_path"],
        fields: &[("file_path", Target), ("content", Content), WAIT],
    },
    Tool {
        name: "replace",
        family: Some(Family::Edit),
        needs: &["file_path"],
        fields: &[
            ("file_path", Sought),
            ("instruction", Text),
            ("old_string", Old),
            ("new_string", New),
            ("allow_multiple", Everywhere),
            WAIT,
        ],
    },
    Tool {
        name: "glob",
        family: Some(Family::Glob),
        needs: &["pattern"],
        fields: &[
            ("pattern", Names),
            ("dir_path", Root),
            ("case_sensitive", Flag),
            ("respect_git_ignore", Flag),
            ("respect_gemini_ignore", Flag),
            WAIT,
        ],
    },
    Tool {
        name: "list_directory",
        family: Some(Family::Glob),
        needs: &["dir_path"],
        fields: &[("dir_path", Root), ("ignore", Inert), ("file_filtering_options", Inert), WAIT],
    },
    Tool { name: "grep_search", family: Some(Family::Grep), needs: &["pattern"], fields: SEARCH },
    Tool { name: "search_file_content", family: Some(Family::Grep), needs: &["pattern"], fields: SEARCH },
    Tool {
        name: "web_fetch",
        family: Some(Family::WebFetch),
        needs: &["prompt", "url"],
        fields: &[("prompt", UrlsIn), ("url", Url), WAIT],
    },
    Tool {
        name: "google_web_search",
        family: Some(Family::WebFetch),
        needs: &["query"],
        fields: &[("query", Text), WAIT],
    },
    // It writes into a file of the host's that later sessions believe.
    Tool { name: "save_memory", family: Some(Family::Write), needs: &["fact"], fields: &[WAIT] },
    Tool {
        name: "invoke_agent",
        family: Some(Family::Agent),
        needs: &["prompt"],
        fields: &[("agent_name", Text), ("prompt", Text), WAIT],
    },
    Tool { name: "list_background_processes", family: None, needs: &[], fields: &[WAIT] },
    Tool {
        name: "read_background_output",
        family: None,
        needs: &[],
        fields: &[("pid", Number), ("lines", Number), ("delay_ms", Number), WAIT],
    },
    // How a subagent hands its result back; which of the two fields it has depends on the agent.
    Tool { name: "complete_task", family: None, needs: &[], fields: &[("report", Inert), ("result", Inert), WAIT] },
    Tool { name: "write_todos", family: None, needs: &[], fields: &[("todos", Inert), WAIT] },
    Tool { name: "ask_user", family: None, needs: &[], fields: &[("questions", Inert), WAIT] },
    Tool { name: "enter_plan_mode", family: None, needs: &[], fields: &[("reason", Text), WAIT] },
    Tool { name: "exit_plan_mode", family: None, needs: &[], fields: &[("plan_filename", Text), WAIT] },
    Tool { name: "get_internal_docs", family: None, needs: &[], fields: &[("path", Text), WAIT] },
    Tool {
        name: "update_topic",
        family: None,
        needs: &[],
        fields: &[("title", Text), ("summary", Text), ("strategic_intent", Text), WAIT],
    },
    Tool {
        name: "read_mcp_resource",
        family: Some(Family::Read),
        needs: &["uri"],
        fields: &[("uri", Url), ("server_name", Text), WAIT],
    },
    Tool { name: "list_mcp_resources", family: None, needs: &[], fields: &[("server_name", Text), WAIT] },
];

/// Whether the call waits for the ones before it; every tool has it.
const WAIT: (&str, Role) = ("wait_for_previous", Flag);

const SEARCH: &[(&str, Role)] = &[
    ("pattern", Text),
    ("dir_path", Root),
    ("include_pattern", ReadNames),
    ("exclude_pattern", Text),
    ("names_only", Flag),
    ("case_sensitive", Flag),
    ("fixed_strings", Flag),
    ("context", Number),
    ("after", Number),
    ("before", Number),
    ("no_ignore", Flag),
    ("max_matches_per_file", Number),
    ("total_max_matches", Number),
    WAIT,
];

/// An error of the tool is a field. A command that fails is none: its code stands in a text for the model only.
pub(crate) fn succeeded(tool: &str, response: Option<Value<'_>>) -> Option<bool> {
    let response = response.map(Envelope)?;
    match response.get("error") {
        Some(_) => Some(false),
        None if tool == SHELL => None,
        None => Some(true),
    }
}
