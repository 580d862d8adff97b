//! What a host is answered: an exit code and two texts, in the way that host reads them.
//!
//! Hosts go on when a hook fails, so a refusal is said in every way at once: the exit code 2, a reason on the error
//! output (one host ignores a refusal without), and the host's own words on the output. An allowed call is answered
//! with nothing, or with its command rewritten to carry its ticket. A host's `allow` would skip what its user is asked. It
//! is said to Codex alone, and only with the rewriting, which Codex drops without it; it still asks its user there.

use std::collections::BTreeMap;

use interlock_core::json::Json;

use crate::event::{Host, HostEvent, Kind};
use crate::shape::{carrying, dialect};

/// What is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Go on.
    Pass {
        /// Instructions for the agent, where the event has room for them.
        context: Option<String>,
    },
    /// Go on, with the command carrying this ticket. Where it cannot, it may not happen.
    Rewrite {
        /// The ticket.
        ticket: String,
        /// The file by which Codex and Gemini CLI hand a command to the runner.
        script: String,
        /// What the person at the host should know of it, where the host shows that to nobody else.
        note: Option<String>,
    },
    /// This may not happen.
    Deny {
        /// Why, for the agent and its user.
        reason: String,
    },
    /// A person at the host is to decide. Where none would be asked, it may not happen.
    Ask {
        /// Why, for that person.
        reason: String,
    },
    /// The agent wants to stop, and has more to do. Elsewhere than at a stop it changes nothing, and lets nothing run.
    Continue {
        /// What there is to do.
        reason: String,
    },
}

/// What the process says to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its exit code: 0 or 2, nothing else.
    pub exit: u8,
    /// Its output.
    pub stdout: String,
    /// Its error output.
    pub stderr: String,
}

/// The answer to an event.
///
/// ```
/// # use interlock_hosts::{Host, Reply, read, render};
/// # let event = br#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/src","tool_name":"Bash",
/// #                  "tool_input":{"command":"ls"},"tool_use_id":"t"}"#;
/// # let event = read(Host::ClaudeCode, event, None)?;
/// let passed = render(&event, &Reply::Pass { context: None });
/// assert_eq!((passed.exit, passed.stdout.as_str()), (0, ""));
/// let denied = render(&event, &Reply::Deny { reason: "not in this phase".to_owned() });
/// assert_eq!((denied.exit, denied.stderr.as_str()), (2, "not in this phase\n"));
/// # Ok::<(), interlock_hosts::Unreadable>(())
/// ```
pub fn render(event: &HostEvent, reply: &Reply) -> Rendered {
    match (reply, &event.kind) {
        (Reply::Pass { .. }, Kind::BeforeTool { .. }) => Rendered::silent(),
        (Reply::Pass { context }, _) => context.as_deref().map_or_else(Rendered::silent, |text| told(event, text)),
        // A refusal of a stop would be an order to go on, for ever.
        (
            Reply::Deny { .. } | Reply::Ask { .. } | Reply::Rewrite { .. },
            Kind::Stop { .. } | Kind::SubagentStop { .. },
        ) => Rendered::silent(),
        (Reply::Rewrite { ticket, script, note }, kind) => {
            carried(event, kind, ticket, script, note.as_deref()).unwrap_or_else(|| denied(event, UNCARRIED))
        }
        (Reply::Deny { reason }, _) => denied(event, reason),
        (Reply::Ask { reason }, Kind::BeforeTool { .. }) if event.may_ask => asked(event, reason),
        (Reply::Ask { reason }, _) => denied(event, reason),
        (Reply::Continue { reason }, Kind::Stop { already_active } | Kind::SubagentStop { already_active }) => {
            if *already_active {
                Rendered::silent()
            } else {
                continued(event, reason)
            }
        }
        (Reply::Continue { reason }, Kind::BeforeTool { .. }) => denied(event, reason),
        (Reply::Continue { .. }, _) => Rendered::silent(),
    }
}

/// The answer to an event that could not be read: a refusal that every event of the host would understand.
pub fn render_unreadable(host: Host, reason: &str) -> Rendered {
    let reason = stated(reason);
    let stdout = match host {
        // Their words depend on the event; the exit code does not.
        Host::ClaudeCode | Host::Codex => String::new(),
        Host::Cursor => line(&[
            ("permission", text("deny")),
            ("continue", Json::Bool(false)),
            ("user_message", text(&reason)),
            ("agent_message", text(&reason)),
        ]),
        Host::Gemini => line(&[("decision", text("deny")), ("reason", text(&reason))]),
    };
    Rendered { exit: EXIT_DENY, stdout, stderr: format!("{reason}\n") }
}

/// The code all hosts read as a refusal; of every other they say that the hook failed.
const EXIT_DENY: u8 = 2;

impl Rendered {
    fn silent() -> Rendered {
        Rendered { exit: 0, stdout: String::new(), stderr: String::new() }
    }

    fn said(stdout: String) -> Rendered {
        Rendered { exit: 0, stdout, stderr: String::new() }
    }
}

/// Instructions for the agent, where the event has room for them.
fn told(event: &HostEvent, context: &str) -> Rendered {
    if context.trim().is_empty() || !dialect(event.host).instructed.contains(&event.name) {
        return Rendered::silent();
    }
    Rendered::said(match event.host {
        Host::ClaudeCode | Host::Codex | Host::Gemini => specific(event, &[("additionalContext", text(context))]),
        Host::Cursor => line(&[("additional_context", text(context))]),
    })
}

/// Why a call does not run whose ticket has no place.
const UNCARRIED: &str = "Interlock refused this: the command cannot carry its ticket";

/// The command with its ticket, at the event that asks about it first. A command that has one gets no second.
fn carried(event: &HostEvent, kind: &Kind, ticket: &str, script: &str, note: Option<&str>) -> Option<Rendered> {
    let Kind::BeforeTool { call, ticket: None, echo: false, .. } = kind else { return None };
    let input = carrying(event.host, call, ticket, script)?;
    Some(Rendered::said(match event.host {
        Host::ClaudeCode => {
            let mut parts = vec![("hookSpecificOutput", for_event(event, &[("updatedInput", input)]))];
            parts.extend(note.map(|note| ("systemMessage", text(note))));
            line(&parts)
        }
        Host::Codex => specific(event, &[("permissionDecision", text("allow")), ("updatedInput", input)]),
        Host::Gemini => specific(event, &[("tool_input", input)]),
        Host::Cursor => return None,
    }))
}

fn denied(event: &HostEvent, reason: &str) -> Rendered {
    let reason = stated(reason);
    let stdout = match event.host {
        Host::ClaudeCode | Host::Codex => match &event.kind {
            Kind::BeforeTool { .. } if event.name == "PermissionRequest" => {
                let decision = members(&[("behavior", text("deny")), ("message", text(&reason))]);
                specific(event, &[("decision", decision)])
            }
            Kind::BeforeTool { .. } => {
                specific(event, &[("permissionDecision", text("deny")), ("permissionDecisionReason", text(&reason))])
            }
            Kind::AfterTool { .. } | Kind::Prompt | Kind::ConfigChange { .. } => blocked(&reason),
            // They cannot be refused; the reason is shown.
            Kind::SessionStart { .. } | Kind::Stop { .. } | Kind::SubagentStop { .. } | Kind::Notice => String::new(),
        },
        Host::Cursor => match &event.kind {
            Kind::BeforeTool { .. } => {
                line(&[("permission", text("deny")), ("user_message", text(&reason)), ("agent_message", text(&reason))])
            }
            Kind::Prompt => line(&[("continue", Json::Bool(false)), ("user_message", text(&reason))]),
            Kind::AfterTool { .. }
            | Kind::SessionStart { .. }
            | Kind::Stop { .. }
            | Kind::SubagentStop { .. }
            | Kind::ConfigChange { .. }
            | Kind::Notice => String::new(),
        },
        Host::Gemini => line(&[("decision", text("deny")), ("reason", text(&reason))]),
    };
    Rendered { exit: EXIT_DENY, stdout, stderr: format!("{reason}\n") }
}

/// A question for a person, on the hosts that put one.
fn asked(event: &HostEvent, reason: &str) -> Rendered {
    let reason = stated(reason);
    match event.host {
        Host::ClaudeCode => Rendered::said(specific(
            event,
            &[("permissionDecision", text("ask")), ("permissionDecisionReason", text(&reason))],
        )),
        Host::Cursor => Rendered::said(line(&[
            ("permission", text("ask")),
            ("user_message", text(&reason)),
            ("agent_message", text(&reason)),
        ])),
        Host::Codex | Host::Gemini => denied(event, &reason),
    }
}

/// More to do, said at a stop.
fn continued(event: &HostEvent, reason: &str) -> Rendered {
    let reason = stated(reason);
    let stdout = match event.host {
        Host::ClaudeCode | Host::Codex => blocked(&reason),
        Host::Gemini => line(&[("decision", text("deny")), ("reason", text(&reason))]),
        // A refusal would end it there; what goes on is a message of its own.
        Host::Cursor => return Rendered::said(line(&[("followup_message", text(&reason))])),
    };
    Rendered { exit: EXIT_DENY, stdout, stderr: format!("{reason}\n") }
}

/// A reason that says something: without one, a refusal is ignored.
fn stated(reason: &str) -> String {
    let reason = reason.trim();
    if reason.is_empty() { "refused by Interlock".to_owned() } else { reason.to_owned() }
}

fn blocked(reason: &str) -> String {
    line(&[("decision", text("block")), ("reason", text(reason))])
}

/// The object for one event that Claude Code, Codex and Gemini CLI have in common.
fn specific(event: &HostEvent, parts: &[(&str, Json)]) -> String {
    line(&[("hookSpecificOutput", for_event(event, parts))])
}

fn for_event(event: &HostEvent, parts: &[(&str, Json)]) -> Json {
    let mut parts = parts.to_vec();
    parts.push(("hookEventName", text(event.name)));
    members(&parts)
}

fn line(parts: &[(&str, Json)]) -> String {
    let mut line = members(parts).canonical();
    line.push('\n');
    line
}

fn members(parts: &[(&str, Json)]) -> Json {
    Json::Object(parts.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<BTreeMap<_, _>>())
}

fn text(text: &str) -> Json {
    Json::from(text)
}
