//! The server and the tool behind a host's one name for both.

use interlock_core::call::McpTool;

/// `mcp__server__tool`, as Claude Code and Codex write it.
///
/// The joined name does not say where the server's ends, so the server named beside it counts; without one, names of
/// servers are taken to have no `__`.
pub(crate) fn double(tool_name: &str, server: Option<&str>) -> Option<McpTool> {
    let Some(rest) = tool_name.strip_prefix("mcp__") else {
        // A name without the prefix, from a server all the same.
        return server.map(|server| mcp(server, tool_name));
    };
    let Some(server) = server else {
        let (server, tool) = rest.split_once("__").unwrap_or(("", rest));
        return Some(mcp(server, tool));
    };
    let prefix: String = server.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let tool = rest.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix("__"));
    Some(mcp(server, tool.unwrap_or_else(|| rest.split_once("__").map_or(rest, |(_, tool)| tool))))
}

/// `mcp_server_tool`, as Gemini CLI writes it; the host itself takes names of servers to have no `_`.
pub(crate) fn single(tool_name: &str) -> Option<McpTool> {
    let rest = tool_name.strip_prefix("mcp_")?;
    let (server, tool) = rest.split_once('_').unwrap_or(("", rest));
    Some(mcp(server, tool))
}

/// `MCP:tool`, as Cursor writes it. Nobody says which server: it has no name here.
pub(crate) fn nameless(tool_name: &str) -> Option<McpTool> {
    tool_name.strip_prefix("MCP:").map(|tool| mcp("", tool))
}

pub(crate) fn mcp(server: &str, tool: &str) -> McpTool {
    McpTool { server: server.to_owned(), tool: tool.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_named_beside_the_tool_counts() {
        assert_eq!(double("mcp__a__b__c", None), Some(mcp("a", "b__c")));
        assert_eq!(double("mcp__a__b__c", Some("a__b")), Some(mcp("a__b", "c")));
        assert_eq!(double("mcp__my_server__go", Some("my server")), Some(mcp("my server", "go")));
        assert_eq!(double("mcp__x__go", Some("other")), Some(mcp("other", "go")));
        assert_eq!(double("go", Some("other")), Some(mcp("other", "go")));
        assert_eq!(double("Bash", None), None);
        assert_eq!(single("mcp_git_log_all"), Some(mcp("git", "log_all")));
        assert_eq!(nameless("MCP:query"), Some(mcp("", "query")));
    }
}
