//! Events, read: the shapes they come in, and which of a host's names has which shape.
//!
//! The lists of names are closed. An event that is not in them might stand before an action, so it is unreadable.

use std::collections::BTreeMap;

use interlock_core::Digest;
use interlock_core::call::{Call, McpTool};
use interlock_core::json::{Json, Limits, Value, parse};

use crate::envelope::{self, Envelope};
use crate::event::{Host, HostEvent, Kind, ToolResult, Unreadable};
use crate::tools::{self, Role, Tool};
use crate::{claude_code, codex, cursor, gemini, mcp, rewrite, trailer};

/// What a host says and understands.
pub(crate) struct Dialect {
    /// Its events.
    pub(crate) events: &'static [(&'static str, Shape)],
    /// Its tools.
    pub(crate) tools: &'static [Tool],
    /// Those of them that do nothing outside of the agent.
    pub(crate) bookkeeping: &'static [&'static str],
    /// The events whose answer may carry instructions for the agent.
    pub(crate) instructed: &'static [&'static str],
}

/// What an event looks like.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Before a tool runs.
    Before,
    /// Before a person is asked whether a tool may run, after the event above.
    Permission,
    /// After a tool ran.
    After,
    /// After a tool failed.
    Failed,
    /// A prompt.
    Prompt,
    /// The start of a session.
    Start,
    /// The end of a turn.
    Stop,
    /// The end of a subagent.
    SubagentStop,
    /// A change of settings.
    Config,
    /// Only tells.
    Notice,
    /// An event that Cursor has beside those above.
    Cursor(cursor::Own),
}

/// Reads an event. `script` is the file by which commands of Codex and Gemini CLI carry their tickets, where there is one.
///
/// ```
/// use interlock_hosts::{Host, Kind, read};
///
/// let event = br#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/src","tool_name":"Bash",
///                  "tool_input":{"command":"ls"},"tool_use_id":"t"}"#;
/// let event = read(Host::ClaudeCode, event, None)?;
/// assert!(matches!(event.kind, Kind::BeforeTool { call, .. } if call.intent.commands == ["ls"]));
/// # Ok::<(), interlock_hosts::Unreadable>(())
/// ```
pub fn read(host: Host, bytes: &[u8], script: Option<&str>) -> Result<HostEvent, Unreadable> {
    let document = envelope::parse(bytes)?;
    let event = Envelope(document.root());
    let sent = event.text("hook_event_name")?;
    let dialect = dialect(host);
    let Some(&(name, shape)) = dialect.events.iter().find(|(name, _)| *name == sent) else {
        return Err(Unreadable::new(format!("`hook_event_name` is no event of {host} that is known here")));
    };
    let session = match host {
        Host::ClaudeCode | Host::Codex | Host::Gemini => "session_id",
        Host::Cursor => "conversation_id",
    };
    Ok(HostEvent {
        host,
        name,
        session: event.text(session)?.to_owned(),
        cwd: directory(host, event)?.to_owned(),
        roots: if host == Host::Cursor { cursor::roots(event) } else { Vec::new() },
        subagent: subagent(host, shape, event)?.filter(|id| !id.is_empty()).map(str::to_owned),
        may_ask: may_ask(host, shape, event),
        kind: kind(host, dialect, shape, event, script)?,
    })
}

/// A call that is on record, read as it was when it was judged. A tool of MCP has no family and stays unread, whatever its
/// name.
pub fn recorded_call(host: Host, tool: &str, input: Json) -> Call {
    read_call(dialect(host), tool, input, None)
}

/// A call, read by the tables of its host.
fn read_call(dialect: &Dialect, name: &str, input: Json, server: Option<McpTool>) -> Call {
    let mut call = tools::call(dialect.tools, name, input, server);
    call.bookkeeping = call.mcp.is_none() && dialect.bookkeeping.contains(&name);
    call
}

/// Whether an event of a host is about a call of a tool.
pub(crate) fn is_about_tools(host: Host, event: &str) -> bool {
    let shape = dialect(host).events.iter().find(|(name, _)| *name == event).map(|(_, shape)| shape);
    matches!(shape, Some(Shape::Before | Shape::Permission | Shape::After | Shape::Failed))
}

/// The events of a host that are known here; any other is unreadable.
pub fn event_names(host: Host) -> impl Iterator<Item = &'static str> {
    dialect(host).events.iter().map(|(name, _)| *name)
}

/// What a host says and understands.
pub(crate) fn dialect(host: Host) -> &'static Dialect {
    match host {
        Host::ClaudeCode => &claude_code::DIALECT,
        Host::Codex => &codex::DIALECT,
        Host::Cursor => &cursor::DIALECT,
        Host::Gemini => &gemini::DIALECT,
    }
}

fn directory<'d>(host: Host, event: Envelope<'d>) -> Result<&'d str, Unreadable> {
    match host {
        Host::ClaudeCode | Host::Codex | Host::Gemini => event.text("cwd"),
        Host::Cursor => cursor::directory(event),
    }
}

fn subagent<'d>(host: Host, shape: Shape, event: Envelope<'d>) -> Result<Option<&'d str>, Unreadable> {
    match (host, shape) {
        // At its start a subagent does not act yet: whoever starts it does.
        (Host::Cursor, Shape::Cursor(_)) => Ok(None),
        (Host::Cursor, _) => event.optional_text("subagent_id"),
        (Host::ClaudeCode | Host::Codex | Host::Gemini, _) => event.optional_text("agent_id"),
    }
}

/// Whether the host would put a question to a person.
fn may_ask(host: Host, shape: Shape, event: Envelope<'_>) -> bool {
    match (host, shape) {
        (Host::ClaudeCode, Shape::Before) => {
            let mode = event.optional_text("permission_mode").ok().flatten();
            mode.is_some_and(|mode| ["default", "acceptEdits", "plan"].contains(&mode))
        }
        (Host::Cursor, Shape::Cursor(own)) => own.may_ask(),
        _ => false,
    }
}

fn kind(
    host: Host,
    dialect: &Dialect,
    shape: Shape,
    event: Envelope<'_>,
    script: Option<&str>,
) -> Result<Kind, Unreadable> {
    Ok(match shape {
        Shape::Before | Shape::Permission => {
            let (call, ticket) = call(host, dialect, event, script)?;
            Kind::BeforeTool { call, call_id: call_id(event)?, ticket, echo: matches!(shape, Shape::Permission) }
        }
        Shape::After | Shape::Failed => {
            let failed = matches!(shape, Shape::Failed);
            if failed && event.optional_text("failure_type")? == Some("permission_denied") {
                // It did not run: this is the echo of a refusal.
                return Ok(Kind::Notice);
            }
            let (call, ticket) = call(host, dialect, event, script)?;
            let result = result(host, failed, &call, event);
            Kind::AfterTool { call, call_id: call_id(event)?, ticket, echo: false, result }
        }
        Shape::Prompt => Kind::Prompt,
        Shape::Start => Kind::SessionStart { source: event.optional_text("source")?.map(str::to_owned) },
        Shape::Stop => Kind::Stop { already_active: already_active(host, event) },
        Shape::SubagentStop => Kind::SubagentStop { already_active: already_active(host, event) },
        Shape::Config => Kind::ConfigChange {
            source: event.optional_text("source")?.map(str::to_owned),
            path: event.optional_text("file_path")?.map(str::to_owned),
        },
        Shape::Notice => Kind::Notice,
        Shape::Cursor(own) => own.kind(event)?,
    })
}

fn call_id(event: Envelope<'_>) -> Result<Option<String>, Unreadable> {
    Ok(event.optional_text("tool_use_id")?.map(str::to_owned))
}

/// The call of an event, and the ticket that its command carried.
fn call(
    host: Host,
    dialect: &Dialect,
    event: Envelope<'_>,
    script: Option<&str>,
) -> Result<(Call, Option<String>), Unreadable> {
    let name = event.text("tool_name")?;
    let server = match host {
        Host::ClaudeCode | Host::Codex => mcp::double(name, named_server(event)?),
        Host::Cursor => mcp::nameless(name),
        Host::Gemini => gemini_server(name, event)?,
    };
    let sent = event.must("tool_input")?;
    let mut input = if matches!(host, Host::Cursor) { loosened(sent) } else { Json::of(sent) };
    // A server's tool may be called as one of the host's own; rules that allow the latter do not mean it.
    let posing = server.as_ref().filter(|_| !["mcp_", "MCP:"].iter().any(|prefix| name.starts_with(prefix)));
    let name = posing.map_or_else(|| name.to_owned(), |mcp| format!("mcp__{}__{}", mcp.server, mcp.tool));
    let field = if server.is_none() { command_field(dialect, &name) } else { None };
    let ticket = field.and_then(|field| rewrite::take_off(host, field, &mut input, script));
    Ok((read_call(dialect, &name, input, server), ticket))
}

/// The field of a tool that holds its command line.
fn command_field(dialect: &Dialect, tool: &str) -> Option<&'static str> {
    let tool = dialect.tools.iter().find(|known| known.name == tool)?;
    let is_command = |role: &Role| matches!(role, Role::Command | Role::LastingCommand | Role::CommandOrWords);
    tool.fields.iter().find(|(_, role)| is_command(role)).map(|(name, _)| *name)
}

/// Whether the command of a call can carry a ticket: not on every host, and not behind every line.
pub fn may_carry(host: Host, call: &Call) -> bool {
    const ANY: &str = "0000000000000000";
    carrying(host, call, ANY, "/").is_some()
}

/// The input of a call, its command with a ticket.
pub(crate) fn carrying(host: Host, call: &Call, ticket: &str, script: &str) -> Option<Json> {
    let field = if call.mcp.is_none() { command_field(dialect(host), &call.tool) } else { None };
    rewrite::input(host, field?, &call.input, ticket, script)
}

/// The server that is named beside the tool.
fn named_server(event: Envelope<'_>) -> Result<Option<&str>, Unreadable> {
    event.get("mcp_server").map(|server| Envelope(server).text("name")).transpose()
}

fn gemini_server(name: &str, event: Envelope<'_>) -> Result<Option<McpTool>, Unreadable> {
    let Some(context) = event.get("mcp_context") else { return Ok(mcp::single(name)) };
    let context = Envelope(context);
    Ok(Some(mcp::mcp(context.text("server_name")?, context.text("tool_name")?)))
}

/// An input that some versions send as an object and some as the text of one. Text that is none stays text, which no
/// table understands.
pub(crate) fn loosened(value: Value<'_>) -> Json {
    let inner = value.as_str().and_then(|text| parse(text.text(), &Limits::STATE).ok().map(|d| Json::of(d.root())));
    inner.unwrap_or_else(|| Json::of(value))
}

/// An object of texts.
pub(crate) fn object(members: &[(&str, Option<Json>)]) -> Json {
    let given = |(key, value): &(&str, Option<Json>)| Some(((*key).to_owned(), value.clone()?));
    Json::Object(members.iter().filter_map(given).collect::<BTreeMap<_, _>>())
}

/// Whether the agent goes on already because a hook said so. An event that does not say is taken to: stopping is always
/// possible then.
fn already_active(host: Host, event: Envelope<'_>) -> bool {
    match host {
        Host::ClaudeCode | Host::Codex | Host::Gemini => {
            event.get("stop_hook_active").and_then(|value| value.as_bool()).unwrap_or(true)
        }
        Host::Cursor => event.get("loop_count").is_none_or(|value| value.source() != "0"),
    }
}

/// How the tool ended, from the fields that say so.
fn result(host: Host, failed: bool, call: &Call, event: Envelope<'_>) -> ToolResult {
    let response = response(event, &["tool_response", "tool_output", "error", "error_message"]);
    let (ok, exit_code) = match host {
        _ if failed => (Some(false), None),
        Host::ClaudeCode => (claude_code::succeeded(call, event.get("tool_response")), None),
        Host::Codex => (codex::succeeded(call), None),
        Host::Gemini => (gemini::succeeded(&call.tool, response), None),
        Host::Cursor => cursor::ended(call, event.get("tool_output")),
    };
    let completed = matches!(host, Host::ClaudeCode) && claude_code::completes(&call.tool);
    let (response, trailers) = match response.and_then(|value| value.as_str()) {
        // Of two runs with the same output, what was told differs: loops are seen by the output.
        Some(text) if matches!(host, Host::Codex) && trailer::may_be_in(text.text()) => {
            let (rest, trailers) = trailer::trailers(text.text());
            (Digest::of(&[&rest]), trailers)
        }
        _ => (digest(response), Vec::new()),
    };
    ToolResult { ok, exit_code, response, trailers, repeats_input: !completed }
}

/// Whether a response says that something went wrong, whatever the event that carries it is called.
pub(crate) fn tells_error(response: Envelope<'_>) -> bool {
    let is_set = |key: &str| response.get(key).is_some_and(|value| value.as_bool() != Some(false));
    ["is_error", "isError", "error"].into_iter().any(is_set)
}

/// The first of several members that is there.
pub(crate) fn response<'d>(event: Envelope<'d>, keys: &[&str]) -> Option<Value<'d>> {
    keys.iter().find_map(|key| event.get(key))
}

/// The digest of a member in the bytes it was sent in; of nothing, where there is none.
pub(crate) fn digest(response: Option<Value<'_>>) -> Digest {
    Digest::of(&[response.map_or("", |value| value.source())])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tables_name_each_thing_once() {
        for host in Host::ALL {
            let Dialect { events, tools, bookkeeping, instructed } = dialect(host);
            let names: BTreeSet<_> = events.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), events.len(), "{host}");
            assert!(instructed.iter().all(|name| names.contains(name)), "{host}");
            let names: BTreeSet<_> = tools.iter().map(|tool| tool.name).collect();
            assert_eq!(names.len(), tools.len(), "{host}");
            for name in *bookkeeping {
                let tool = tools.iter().find(|tool| tool.name == *name).expect("a tool of the table");
                assert_eq!((tool.family, tool.needs.len()), (None, 0), "{host} {name}");
            }
            for tool in *tools {
                let fields: BTreeSet<_> = tool.fields.iter().map(|(name, _)| *name).collect();
                assert_eq!(fields.len(), tool.fields.len(), "{host} {}", tool.name);
                // What a tool needs is understood, or on purpose never is.
                let never = ["SlashCommand", "Skill", "save_memory"].contains(&tool.name);
                assert_eq!(tool.needs.iter().any(|name| !fields.contains(name)), never, "{host} {}", tool.name);
            }
        }
    }

    /// Loops are seen by what comes out of calls: what a runner tells in it differs every time.
    #[test]
    fn what_a_runner_tells_is_no_part_of_the_response() {
        let ended = |host, output: &str| {
            let output = interlock_core::json::quote(output);
            let event = format!(
                r#"{{"hook_event_name":"PostToolUse","session_id":"s","cwd":"/src","tool_name":"Bash",
                    "tool_input":{{"command":"ls"}},"tool_use_id":"t","tool_response":{output}}}"#
            );
            let Kind::AfterTool { result, .. } = read(host, event.as_bytes(), None).expect("an event").kind else {
                panic!("another kind")
            };
            (result.response, result.trailers.len())
        };
        let told = |text: &str| format!("a b{}", trailer::trailer(text, Digest::of(&["secret"])));
        let (one, two) = (ended(Host::Codex, &told("one")), ended(Host::Codex, &told("two")));
        assert_eq!((one, one.1), (two, 1));
        assert_ne!(one.0, ended(Host::Codex, "a c\n").0);
        // Nobody else's runner tells so.
        assert_eq!(ended(Host::ClaudeCode, &told("one")).1, 0);
    }

    #[test]
    fn bookkeeping_is_the_host_s_own_and_never_a_server_s() {
        let bookkeeping = |host, tool: &str| recorded_call(host, tool, object(&[])).bookkeeping;
        for tool in ["TodoWrite", "AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "BashOutput", "TaskOutput"] {
            assert!(bookkeeping(Host::ClaudeCode, tool), "{tool}");
        }
        for tool in ["TaskCreate", "TaskUpdate", "ToolSearch", "ListAgents", "ReportFindings"] {
            assert!(bookkeeping(Host::ClaudeCode, tool), "{tool}");
        }
        for tool in ["KillShell", "Task", "Skill", "SlashCommand", "Bash", "Read", "mcp__x__TodoWrite", "todowrite"] {
            assert!(!bookkeeping(Host::ClaudeCode, tool), "{tool}");
        }
        for tool in ["SendMessage", "CronCreate", "ScheduleWakeup", "Workflow", "EnterWorktree", "TaskStop"] {
            assert!(!bookkeeping(Host::ClaudeCode, tool), "{tool}");
        }
        assert!(bookkeeping(Host::Codex, "get_goal") && !bookkeeping(Host::Codex, "spawn_agent"));
        assert!(bookkeeping(Host::Gemini, "complete_task") && !bookkeeping(Host::Gemini, "activate_skill"));
        assert!(bookkeeping(Host::Codex, "update_plan") && !bookkeeping(Host::ClaudeCode, "update_plan"));
        assert!(bookkeeping(Host::Cursor, "TodoWrite"));
        assert!(bookkeeping(Host::Gemini, "write_todos") && !bookkeeping(Host::Gemini, "save_memory"));
        let posing = br#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/src","tool_name":"TodoWrite",
            "tool_input":{},"mcp_server":{"name":"x"}}"#;
        let posing = read(Host::ClaudeCode, posing, None).expect("an event");
        assert!(matches!(posing.kind, Kind::BeforeTool { call, .. } if !call.bookkeeping));
    }
}
