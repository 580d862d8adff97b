//! Coding agents: where each stands, what was refused, what operators do about it.

use interlock_core::action::Door;
use interlock_core::json::RawJson;

use crate::schema::{Schema, any, dollars, integer, list, map, null, of, one_of, text, words};
use crate::words::{AgentId, AgentMode, Decision, DecisionId, Digest, HostName, Time, WorkflowId};

/// What can happen in a run.
const EVENTS: [&str; 19] = [
    "started",
    "moved",
    "waits",
    "refused",
    "answered",
    "forced",
    "stopped",
    "thawed",
    "paused",
    "changed_elsewhere",
    "call",
    "repeated",
    "command_started",
    "command_ended",
    "call_ended",
    "allowed",
    "disallowed",
    "mode",
    "undone",
];

wire! {
    /// A coding agent and where it stands.
    open Run<T = RunState> {
        agent_id: String = AgentId,
        agent_name: String,
        host?: String,
        project?: String,
        mode: String = AgentMode,
        paused_until?: String = Time,
        frozen?: String,
        open_calls: u64,
        allowances: Vec<Allowance>,
        /// The SHA-256 of the workflow in force.
        workflow_digest?: String = text().example(WORKFLOW_DIGEST),
        run: T | null = one_of([of::<RunState>(), null()]),
    }

    /// Where a run stands; the same as the control tool `get_state` says.
    open RunState {
        run_id: String,
        workflow: String,
        state: String,
        is_final: bool,
        outcome?: String = words(["success", "failure", "stopped"]),
        revision: u64,
        instructions?: String,
        /// `null` is all.
        allowed_tools: Vec<String> | null,
        transitions: Vec<WayOut> = list(WayOut::members()),
        context: RawJson = map(),
        iterations: u64,
        iterations_left: u64 | null = integer(),
        pending_approval?: String,
        frozen?: String,
    }

    // A way out of a state.
    open WayOut {
        event: String,
        target: String,
        unmet: Vec<String>,
        /// Why guards on commands of facts are not met, one line each.
        why: Vec<String>,
        requires_approval: bool,
    }

    /// A call that an operator lets pass.
    open Allowance {
        allowance_id: String = text().pattern("^allow_[0-9a-f]{32}$"),
        /// The decision it was made from; empty if it was made from a pattern.
        decision_id: String,
        tool: String,
        /// Exactly the call of that decision.
        exact: bool,
        command?: String,
        path?: String,
        /// Shipped rules it answers for.
        lifts: Vec<String>,
        until?: String = Time,
        session?: String,
        once: bool,
    }

    // Coding agents, by id.
    open RunPage<T = Run> {
        runs: Vec<T> = list(of::<Run>()),
        next_cursor: String | null,
    }

    // A ruling on a tool call; asked for by its id, on an action at the gate too.
    open RefusedCall [RefusedCall::members().without(OF_ACTIONS)] {
        decision_id: String = DecisionId,
        at: String = Time,
        decision: String = Decision,
        enforced: bool,
        tool?: String,
        session?: String,
        code?: String,
        message?: String,
        effects: Vec<String>,
        rules: Vec<String>,
        approval_id?: String,
        /// The command that shows what it changed, if it ran and may have changed something.
        changes?: String,
        /// The input, as long as its text is kept.
        input?: RawJson,
        door?: String = any().one_of([Door::Verify, Door::Tools].map(Door::as_str)),
        action_type?: String,
        conversation_id?: String,
        step_number?: u64 = integer().min(1),
        dry_run?: bool,
        action_hash?: String = Digest,
        engine?: String,
        status?: String,
        risk_level?: String,
        cost_usd?: RawJson = dollars(),
    }

    // What was refused, or would have been, newest first.
    open RefusedCalls {
        refusals: Vec<RefusedCall>,
        passed: u64,
    }

    /// Something that happened in a run: one entry of the ledger.
    open RunEvent {
        at: String = Time,
        kind: String = words(EVENTS),
        /// The operator who did it.
        by?: String,
        reason?: String,
        /// The event of a transition.
        event?: String,
        from?: String,
        to?: String,
        /// What the agent said with a transition; its claim.
        data?: RawJson = map(),
        /// Why a transition was refused.
        code?: String,
        message?: String,
        /// Guards that did not hold.
        unmet?: Vec<String>,
        decision_id?: String = DecisionId,
        approval_id?: String,
        until?: String = Time,
        call?: RefusedCall,
        /// The declared fact that the call is the command of.
        fact?: String,
        /// The start of a command, and its end.
        exec_id?: String,
        /// The profile that held it.
        profile?: String,
        exit_code?: i64 = integer(),
        signal?: i64 = integer(),
        duration_ms?: u64,
        /// What its profile refused, and hosts it was kept from.
        refused?: Vec<String>,
        /// Whether the host calls it a success; its word.
        ok?: bool,
        undo_id?: String,
        count?: u64,
    }

    /// What happened in a run, oldest first.
    open RunHistory {
        agent_id: String = AgentId,
        agent_name: String,
        host?: String,
        project?: String,
        /// `null`, where no workflow was put in force: then it is what the agent did since it is known.
        run_id: String | null,
        workflow?: String,
        events: Vec<RunEvent>,
        next_cursor: String | null,
    }

    /// A decision, whose it was, and what it rests on.
    open CallDecision {
        agent_id: String = AgentId,
        agent_name: String,
        host?: String,
        project?: String,
        ruling: RefusedCall = RulingAtAnyDoor,
        grounds: Grounds,
    }

    /// What a decision rests on.
    open Grounds {
        /// The SHA-256 of the bundle in force.
        bundle: String = Digest,
        /// How far the agent was trusted then.
        trust_level?: u64 = integer().min(0).max(3),
        engine?: String,
        status?: String,
        risk_level?: String,
        /// What was looked at, in order; the last one that did not hold decided.
        checks: Vec<DecisionCheck>,
        /// The SHA-256 of the certificate, where something was proven.
        certificate?: String = Digest,
        /// The profile that the command is held to.
        profile?: String,
        /// What the kernel can do to hold it.
        kernel?: String,
        /// The approval that it used up.
        approved_by?: String,
        /// The allowance that it used up.
        allowed_by?: String,
        /// The figures behind a limit.
        limit?: String,
        current?: String,
    }

    /// Something that was looked at.
    open DecisionCheck {
        name: String,
        held: bool,
    }

    // A coding agent is made known, and a workflow put in force.
    request StartRequest {
        host: String = HostName,
        /// The root of the project, links resolved.
        project: String = text().max_length(4096).pattern(r"^/[^\u0000]*$"),
        /// A workflow as JSON (see docs/workflows.md), or the id of a registered one. Without it the agent is only made
        /// known.
        workflow?: RawJson = one_of([
            map().titled("Written out"), Schema::from(WorkflowId).titled("Registered"), null(),
        ]),
        /// Only calls of this session are in the run.
        session?: String = text().max_length(256),
    }

    // A run is put into a state.
    request ForceRequest {
        state: String = text().min_length(1),
        reason?: String = reason(),
    }

    // Refusals are only shown for a while.
    request PauseRequest {
        seconds: u64 = integer().min(0).max(28_800),
        reason?: String = reason(),
    }

    /// What passes: the very call of a decision, or what a pattern says.
    request AllowRequest {
        decision_id?: String,
        tool?: String,
        /// Words of a command; a last `*` stands for more.
        command?: String,
        /// A file, or a directory and `/**`.
        path?: String,
        seconds?: u64 = integer().min(0).max(31_536_000),
        session?: String,
        once?: bool,
        reason?: String = reason(),
    }

    // An allowance is taken back.
    request DisallowRequest {
        allowance_id: String = text().min_length(1),
    }
}

named! {
    /// Of a tool call its tool, session and input; of an action its type, conversation, step and verification.
    RulingAtAnyDoor = RefusedCall::members();
}

const WORKFLOW_DIGEST: &str = "sha256:33b3276dfda3038c5a3e05018e57695987843e856307d56ec11ed8718455ec91";

/// What only a ruling on an action has.
#[rustfmt::skip]
const OF_ACTIONS: &[&str] = &[
    "door", "action_type", "conversation_id", "step_number", "dry_run", "action_hash", "engine", "status", "risk_level",
    "cost_usd",
];

/// Why, as everywhere.
fn reason() -> Schema {
    Schema::reference_to_member("#/components/schemas/ReasonRequest/properties/reason")
}
