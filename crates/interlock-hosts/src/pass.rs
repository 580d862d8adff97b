//! Calls that hosts tell of and that need no ruling of their own, as far as their names say so. Whether they go on is
//! decided by `interlock_core::action::decide_pass`.

use interlock_core::action::{PassAsked, PassKind};
use interlock_core::call::Call;

use crate::event::{Host, Kind};

/// The name under which hosts know the control server.
const CONTROL_SERVER: &str = "interlock";
/// The prefixes of the control tools.
const CONTROL_PREFIXES: [&str; 2] = ["interlock", "statewright"];

/// What an event is after which nothing runs; of calls and their ends it says nothing.
pub fn told(kind: &Kind) -> Option<PassKind> {
    match kind {
        Kind::BeforeTool { .. } | Kind::AfterTool { .. } => None,
        Kind::Prompt => Some(PassKind::Prompt),
        Kind::SessionStart { .. } => Some(PassKind::SessionStart),
        Kind::Stop { .. } | Kind::SubagentStop { .. } => Some(PassKind::Stop),
        Kind::ConfigChange { .. } => Some(PassKind::ConfigChange),
        Kind::Notice => Some(PassKind::Notice),
    }
}

/// What a call is that may need no ruling of its own.
pub fn pass_of(host: Host, call: &Call, subagent: bool) -> Option<PassAsked> {
    if loads_tools(host, call) {
        return Some(PassAsked::LoadTools);
    }
    control_tool(host, call).map(|tool| PassAsked::Control { transition: tool == "_transition", subagent })
}

/// Which of the control tools of our own server a call is, without its prefix.
///
/// Cursor names no server, so there the name of the tool has to be enough: without it no agent could leave its phase. A
/// tool of that name of a foreign server passes with it; `docs/hosts.md` says so.
fn control_tool(host: Host, call: &Call) -> Option<&str> {
    let mcp = call.mcp.as_ref()?;
    let is_ours = mcp.server == CONTROL_SERVER || (host == Host::Cursor && mcp.server.is_empty());
    let tool = CONTROL_PREFIXES.iter().find_map(|prefix| mcp.tool.strip_prefix(prefix))?;
    (is_ours && ["_get_state", "_transition"].contains(&tool)).then_some(tool)
}

/// Whether a call only shows the agent the descriptions of tools.
///
/// Claude Code has those of servers loaded by it before they can be called, so a phase that refused it would have no way
/// out. What is loaded is judged when it is called.
fn loads_tools(host: Host, call: &Call) -> bool {
    host == Host::ClaudeCode && call.tool == "ToolSearch" && call.bookkeeping && call.intent.unread.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    fn call(host: Host, event: &str) -> Call {
        let Kind::BeforeTool { call, .. } = read(host, event.as_bytes(), None).expect("an event").kind else {
            panic!("another event")
        };
        call
    }

    #[test]
    fn tools_are_loaded_by_the_host_s_own_tool_with_fields_that_are_known() {
        let asked = |host: Host, name: &str, rest: &str| {
            let event = format!(
                r#"{{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/src","tool_name":"{name}",{rest}}}"#
            );
            pass_of(host, &call(host, &event), false) == Some(PassAsked::LoadTools)
        };
        let query = r#""tool_input":{"query":"select:x","max_results":5}"#;
        assert!(asked(Host::ClaudeCode, "ToolSearch", query));
        assert!(!asked(Host::ClaudeCode, "ToolSearch", r#""tool_input":{"query":"x","then":"rm"}"#));
        assert!(!asked(Host::ClaudeCode, "ToolSearch", r#""tool_input":{"query":["x"]}"#));
        assert!(!asked(Host::ClaudeCode, "ToolSearch", &format!(r#"{query},"mcp_server":{{"name":"x"}}"#)));
        assert!(!asked(Host::ClaudeCode, "mcp__x__ToolSearch", query));
        assert!(!asked(Host::ClaudeCode, "TodoWrite", r#""tool_input":{}"#));
        assert!(!asked(Host::Codex, "ToolSearch", query));
    }

    #[test]
    fn control_tools_are_known_by_their_server_where_one_is_told() {
        let asked = |host: Host, tool: &str| {
            let event = format!(
                r#"{{"hook_event_name":"{}","session_id":"s","conversation_id":"s","cwd":"/src","tool_name":"{tool}",
                    "tool_input":{{}}}}"#,
                if host == Host::Cursor { "preToolUse" } else { "PreToolUse" }
            );
            match pass_of(host, &call(host, &event), true) {
                Some(PassAsked::Control { transition, subagent: true }) => Some(transition),
                Some(other) => panic!("{other:?}"),
                None => None,
            }
        };
        assert_eq!(asked(Host::ClaudeCode, "mcp__interlock__interlock_transition"), Some(true));
        assert_eq!(asked(Host::ClaudeCode, "mcp__interlock__statewright_get_state"), Some(false));
        assert_eq!(asked(Host::ClaudeCode, "mcp__other__interlock_transition"), None);
        assert_eq!(asked(Host::ClaudeCode, "mcp____interlock_transition"), None);
        assert_eq!(asked(Host::Cursor, "MCP:interlock_transition"), Some(true));
        assert_eq!(asked(Host::Cursor, "MCP:interlock_get_state"), Some(false));
        assert_eq!(asked(Host::Cursor, "MCP:interlock_other"), None);
        assert_eq!(asked(Host::Cursor, "interlock_transition"), None);
    }
}
