//! What goes on without a ruling of its own: a closed table, and the one function that says yes to it.
//!
//! Hosts tell of more than tool calls that have to be judged. Our own control tools are judged where they arrive, a second
//! event about a call is about what was judged already, and after most other events nothing runs. Whatever is not in this
//! table is judged as a tool call.

use serde::{Deserialize, Serialize};

use super::agent::{Agent, AgentStatus};
use super::enforcement::only_shows;
use super::vocabulary::{Millis, words};
use crate::bundle::Bundle;
use crate::digest::Digest;
use crate::workflow::{OpenCall, Run};

/// How long after a call was let run another event about it is still about it.
const ECHO_MS: Millis = 30_000;

words! {
    /// What goes on without a ruling of its own.
    PassKind: "kind of pass" {
        /// The control tool that shows where a run stands: it changes nothing.
        GetState = "get_state",
        /// The control tool that asks for a transition, which is ruled on when it arrives.
        Transition = "transition",
        /// The host shows the agent what tools there are. What is loaded is judged when it is called.
        LoadTools = "load_tools",
        /// A second event about a call that was let run a moment ago.
        Echo = "echo",
        /// A call that passed by this table has ended.
        Ended = "ended",
        /// A person gave the agent something to do.
        Prompt = "prompt",
        /// A session begins or goes on.
        SessionStart = "session_start",
        /// The agent, or a subagent, is done.
        Stop = "stop",
        /// Somebody changed the host's settings.
        ConfigChange = "config_change",
        /// The host only informs.
        Notice = "notice",
        /// An event that could not be read, where refusals hold nowhere yet.
        Unread = "unread",
        /// A command of the host's own is started by its runner: a hook, or a server.
        HostCommand = "host_command",
        /// A command line is started without a ticket, where refusals are only shown.
        Unticketed = "unticketed",
        /// A person runs a command of their own in a bound: no agent's.
        OwnRun = "own_run",
    }
}

impl PassKind {
    /// Whether it goes on even if nobody can be asked: after these nothing runs, and an agent that may not stop would go
    /// on for ever.
    pub fn goes_on_unasked(self) -> bool {
        match self {
            PassKind::Stop | PassKind::Notice => true,
            PassKind::GetState
            | PassKind::Transition
            | PassKind::LoadTools
            | PassKind::Echo
            | PassKind::Ended
            | PassKind::Prompt
            | PassKind::SessionStart
            | PassKind::ConfigChange
            | PassKind::Unread
            | PassKind::HostCommand
            | PassKind::Unticketed
            | PassKind::OwnRun => false,
        }
    }
}

/// What a host tells that may go on without a ruling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassAsked {
    /// One of our own control tools is about to be called.
    Control {
        /// It asks for a transition.
        transition: bool,
        /// By a subagent.
        subagent: bool,
    },
    /// The host is about to show the agent what tools there are.
    LoadTools,
    /// A second event about a call, before it runs.
    Echo {
        /// The host process that tells.
        process: Digest,
        /// What the call asks for.
        gist: Digest,
    },
    /// An event after which nothing runs.
    Told(PassKind),
    /// A runner is about to start a command of the host's own.
    HostCommand,
    /// A runner is about to start a command line that has no ticket.
    Unticketed,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassRuling {
    /// It goes on, and is counted.
    Passes(PassKind),
    /// It is judged as a tool call; what cannot be, is refused.
    Judged,
    /// Subagents do not move the run of their agent.
    NotForSubagents,
}

/// Rules on what may go on without a ruling of its own.
pub fn decide_pass(bundle: &Bundle, agent: &Agent, run: &Run, asked: PassAsked, now: Millis) -> PassRuling {
    let may_ask = agent.status == AgentStatus::Active;
    match asked {
        PassAsked::Control { transition: true, subagent: true } => PassRuling::NotForSubagents,
        // Where nothing passes any more, the agent may still look why.
        PassAsked::Control { transition: false, .. } if may_ask => PassRuling::Passes(PassKind::GetState),
        PassAsked::Control { transition: true, .. } if may_ask => PassRuling::Passes(PassKind::Transition),
        PassAsked::LoadTools if may_ask && run.frozen.is_none() => PassRuling::Passes(PassKind::LoadTools),
        PassAsked::Echo { process, gist } if may_ask && run.frozen.is_none() => {
            let is_it = |open: &OpenCall| {
                !open.left
                    && open.process == process
                    && open.gist == Some(gist)
                    && now.saturating_sub(open.at) < ECHO_MS
            };
            if run.open.iter().any(is_it) { PassRuling::Passes(PassKind::Echo) } else { PassRuling::Judged }
        }
        PassAsked::HostCommand if may_ask => PassRuling::Passes(PassKind::HostCommand),
        // As for rulings: an operator's word lets it, and nothing else does.
        PassAsked::Unticketed if may_ask && only_shows(bundle, agent, run, now) => {
            PassRuling::Passes(PassKind::Unticketed)
        }
        PassAsked::Control { .. }
        | PassAsked::LoadTools
        | PassAsked::Echo { .. }
        | PassAsked::HostCommand
        | PassAsked::Unticketed => PassRuling::Judged,
        PassAsked::Told(kind) => match kind {
            PassKind::Ended
            | PassKind::Prompt
            | PassKind::SessionStart
            | PassKind::Stop
            | PassKind::ConfigChange
            | PassKind::Notice => PassRuling::Passes(kind),
            // Something runs after these, so being told of them is not enough.
            PassKind::GetState
            | PassKind::Transition
            | PassKind::LoadTools
            | PassKind::Echo
            | PassKind::Unread
            | PassKind::HostCommand
            | PassKind::Unticketed
            | PassKind::OwnRun => PassRuling::Judged,
        },
    }
}

/// Rules on an event that could not be read, so that nobody knows whose it is. `holds` says that refusals hold for some
/// coding agent.
pub fn decide_unread(holds: bool) -> PassRuling {
    if holds { PassRuling::Judged } else { PassRuling::Passes(PassKind::Unread) }
}

/// How often something went on without a ruling of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassCount {
    /// What.
    pub kind: PassKind,
    /// How often since the entry before that counts it.
    pub count: u64,
    /// When the first came.
    pub first_at: Millis,
    /// When the last came.
    pub last_at: Millis,
}

impl PassCount {
    /// The first one.
    pub fn first(kind: PassKind, at: Millis) -> PassCount {
        PassCount { kind, count: 1, first_at: at, last_at: at }
    }

    /// One more.
    pub fn add(&mut self, at: Millis) {
        self.count = self.count.saturating_add(1);
        self.last_at = self.last_at.max(at);
    }

    /// Whether it can have been counted by then.
    pub fn is_sound(&self, at: Millis) -> bool {
        self.count > 0 && self.first_at <= self.last_at && self.last_at <= at
    }
}
