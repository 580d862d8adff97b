//! Parameters that routes take: in the path, in the query, and in a header.

use crate::schema::{Node, Schema, any_of, integer, text, words};
use crate::words::{AgentId, ApprovalId, DecisionId, KeyId, WorkflowId};

use super::{object, text as word};

const AGENT: &str = "agent_5f0c2b9e7d314a86b1c0e4f2a9d86375";

/// A parameter under its key.
pub(super) struct Parameter(&'static str, Vec<(&'static str, Node)>);

/// All of them, by key.
pub(super) fn parameters() -> Vec<(&'static str, Node)> {
    table().into_iter().map(|Parameter(key, members)| (key, object(members))).collect()
}

#[rustfmt::skip]
fn table() -> Vec<Parameter> {
    vec![
        path("AgentId", "id", "The agent. Any other text is an agent that does not exist.", AgentId),
        path("ApprovalId", "id", "The ticket. Any other text is a ticket that does not exist.", ApprovalId),
        path("KeyId", "id", "The key. Any other text is a key that does not exist.", KeyId),
        path("Tool", "tool",
            "The tool. One that is unknown is answered with DENIED, QWED-AGENT-004.",
            text().min_length(1)),
        header("IdempotencyKey", "Idempotency-Key",
            "1 to 255 bytes of the caller's choice. The same key with the same request within 24 hours gets the \
             recorded answer, with `replayed`.",
            text().min_length(1).max_length(255)),
        query("Limit", "limit", "How many rows the page may have.", integer().min(1).max(1000).or_else(100)),
        query("Cursor", "cursor",
            "`next_cursor` of an earlier answer about this agent; any other is refused with 404.",
            text().pattern("^[0-9a-f]{32}$")),
        query("PageCursor", "cursor",
            "`next_cursor` of an earlier answer to the same question; any other is refused with 404.",
            text().pattern("^[0-9a-f]{32}$")),
        query("EntryCursor", "cursor",
            "`next_cursor` of an earlier answer: the index of the next entry.",
            text().pattern("^[0-9]{1,16}$")),
        query("AgentCursor", "cursor",
            "`next_cursor` of an earlier answer: agents with an id after this one.",
            AgentId),
        query("From", "from",
            "Only what happened at or after this time, 1970 or later; a `+` in it is written `%2B`. Not after `to`.",
            moment()),
        query("To", "to",
            "Only what happened before this time, 1970 or later; a `+` in it is written `%2B`.",
            moment()),
        query("Status", "status",
            "Only tickets that stand there.",
            words(["pending", "approved", "denied", "expired", "all"]).or_else("\"all\"")),
        query("TicketsOf", "agent", "Only tickets of this agent.", AgentId),
        query("Wait", "wait",
            "How many seconds to wait, at most, for a ticket that is pending to be decided or to expire.",
            integer().min(0).max(60).or_else(0)),
        query("FromIndex", "from",
            "The index of the first entry.",
            index().or_else(0)),
        path("RunId", "id", "The run, or the agent it is of.", text().min_length(1).max_length(128)).showing(AGENT),
        path("DecisionId", "id", "The decision.", DecisionId),
        query("Directory", "directory", "A directory of the project, absolute.",
            text().max_length(4096).pattern(r"^/[^\u0000]*$")).required(),
        query("KeptCall", "call", "A decision or an undo.", text().min_length(1)),
        query("Stat", "stat", "`true` leaves the diffs out.", words(["true", "false"])),
        path("SnapshotId", "id", "The kept state.", text().min_length(1).max_length(128))
            .showing("snap_5f0c2b9e7d314a86b1c0e4f2a9d86375"),
        path("WorkflowId", "id", "The workflow. Any other text is a workflow that is not registered.", WorkflowId),
        query("WorkflowCursor", "cursor",
            "`next_cursor` of an earlier answer: workflows with an id after this one.",
            WorkflowId),
        query("Index", "index", "The index of an entry.", index()),
        query("Decision", "decision",
            "The decision whose entry it is. Any other text is a decision that does not exist.",
            text()),
        query("OldSize", "old", "The size of an older tree.", index()),
        query("TreeSize", "size",
            "The size of the tree to prove it in; the signed one unless given.",
            index()),
    ]
}

impl Parameter {
    fn of(
        place: &'static str,
        key: &'static str,
        name: &'static str,
        description: &'static str,
        schema: impl Into<Schema>,
    ) -> Parameter {
        let required = Node::Raw((place == "path").to_string());
        let (name, place, description) = (word(name), word(place), word(description));
        let schema = schema.into().node();
        let members = [("name", name), ("in", place), ("required", required), ("description", description)];
        Parameter(key, members.into_iter().chain([("schema", schema)]).collect())
    }

    /// It may not be left out.
    fn required(mut self) -> Parameter {
        for (name, value) in &mut self.1 {
            if *name == "required" {
                *value = Node::Raw("true".to_owned());
            }
        }
        self
    }

    fn showing(mut self, example: &'static str) -> Parameter {
        self.1.push(("example", word(example)));
        self
    }
}

fn path(key: &'static str, name: &'static str, description: &'static str, schema: impl Into<Schema>) -> Parameter {
    Parameter::of("path", key, name, description, schema)
}

fn query(key: &'static str, name: &'static str, description: &'static str, schema: impl Into<Schema>) -> Parameter {
    Parameter::of("query", key, name, description, schema)
}

fn header(key: &'static str, name: &'static str, description: &'static str, schema: impl Into<Schema>) -> Parameter {
    Parameter::of("header", key, name, description, schema)
}

/// The place of an entry, or the size of a tree.
fn index() -> Schema {
    integer().min(0).max(9_999_999_999_999_999_u64)
}

/// A time, in any of its spellings.
fn moment() -> Schema {
    any_of([
        text().format("date-time").titled("A time"),
        text().format("date").titled("A day"),
        text().pattern("^[0-9]{1,15}$").titled("Milliseconds since 1970"),
    ])
}
