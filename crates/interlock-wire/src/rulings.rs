//! Requests for a ruling and what is answered, and executions.

use interlock_core::action::{Risk, StateSource};
use interlock_core::json::RawJson;

use crate::errors::{Error, RulingError};
use crate::schema::{
    COUNT_MAX, DOLLARS_MAX, NOT_BLANK, Object, Schema, dollars, integer, map, null, number, of, one_of, only,
    only_json, text, words,
};
use crate::words::{
    ApprovalId, Attestation, Decision, DecisionId, Digest, Engine, Parameters, RiskLevel, Time, VerificationStatus,
};

wire! {
    /// An action to rule on.
    request VerifyRequest {
        /// The agent; must equal the one in the path.
        agent_id?: String = agent_id(),
        /// The agent's token, in place of a header or equal to it.
        agent_token?: String,
        action: Action,
        context: Context,
        options?: Options,
        usage?: Usage,
    }

    /// A tool call to rule on.
    request ToolRequest {
        /// The agent; must equal the one in the path.
        agent_id?: String = agent_id(),
        /// The agent's token, in place of a header or equal to it.
        agent_token?: String,
        parameters?: RawJson = Parameters,
        /// Why, in the agent's words.
        justification?: String,
        context: Context,
        options?: Options,
        usage?: Usage,
    }

    /// The action to rule on. Exactly one of `type` and `action_type` is a string.
    request Action [one_of([ActionWithType.into(), ActionWithActionType.into()])] {
        /// The action type. One that is not registered is answered with DENIED, QWED-AGENT-ACTION-001.
        kind as "type"?: String,
        /// The action type. One that is not registered is answered with DENIED, QWED-AGENT-ACTION-001.
        action_type?: String,
        /// What is to be calculated, asked or run.
        query?: String,
        /// A program.
        code?: String,
        /// What the action is aimed at.
        target?: String,
        parameters?: RawJson = Parameters,
    }

    /// Where in a conversation the action stands, and the state of the world it was proposed in.
    request Context [one_of([ContextWithoutState.into(), ContextWithState.into()])] {
        /// The conversation: not blank, at most 256 bytes of UTF-8.
        conversation_id: String = text().max_length(256).pattern(NOT_BLANK),
        /// The step of the conversation, written as an integer. A conversation has 50; a higher step is answered with
        /// DENIED, QWED-AGENT-LOOP-001.
        step_number: u64 = integer().min(1),
        /// What the user wanted, in the agent's words.
        user_intent?: String,
        /// The SHA-256 of the state the action was proposed in: 64 lower-case hexadecimal digits.
        pre_action_state_hash?: String = text().length(64).pattern("^[0-9a-f]{64}$"),
        /// How that hash was derived.
        state_source?: String = words(StateSource::ALL.iter().map(|word| word.as_str())),
    }

    /// How the request is to be treated.
    request Options [Options::members().or_null()] {
        /// An approval carries an attestation whatever its risk; without one it is refused with 503.
        require_attestation?: bool,
        /// Risk above this needs a person; it can only tighten.
        risk_threshold?: String = words(Risk::ALL.iter().map(|word| word.as_str())),
        /// Decide, but consume neither step nor budget.
        dry_run?: bool,
    }

    /// What the agent says the action uses.
    request Usage [Usage::members().or_null()] {
        /// What the action costs. The charge is never below the price of its type. At most six decimal places.
        cost_usd?: RawJson = dollars().max(DOLLARS_MAX),
        /// Tokens the action uses. Written as an integer: `1.0` and `1e2` are refused.
        tokens?: u64 = of::<u64>().max(COUNT_MAX),
    }

    /// A ruling on an action. `error` is there unless the decision is APPROVED or CORRECTED.
    answer Ruling [Ruling::members().without(OF_TOOLS)] {
        decision: String = Decision,
        decision_id: String = DecisionId,
        /// Whether the answer is binding; false for a dry run and in observe mode.
        enforced: bool,
        verification?: Verification,
        error?: Error = RulingError,
        corrected_action?: CorrectedAction,
        /// The ticket that a person has to decide on; there for PENDING, unless it is a dry run.
        approval_id?: String = ApprovalId,
        /// Nobody can approve the ticket from then on.
        expires_at?: String = Time,
        /// The agent or the bundle is in observe mode: the caller may go on whatever the decision is. Absent otherwise.
        mode?: String = only("observe"),
        /// Whether the call may run.
        approved?: bool,
        /// The message of `error`, if there is one.
        blocked_reason?: String,
        risk_assessment?: RiskAssessment,
        /// The checks that held.
        policy_checks?: Vec<String>,
        /// Nothing was consumed; absent otherwise.
        dry_run?: bool = only_json(true),
        /// This is the recorded answer to an earlier request with the same Idempotency-Key; absent otherwise.
        replayed?: bool = only_json(true),
        /// Too many refusals of this agent were like this one: it is counted, and `decision_id` and `leaf_hash` are
        /// those of the recorded one that it is like. Absent otherwise.
        folded?: bool = only_json(true),
        budget_remaining: BudgetRemaining,
        /// The hash of the ledger entry that records this ruling.
        leaf_hash: String = Digest,
        attestation?: String = Attestation,
    }

    /// What was verified.
    answer Verification {
        status: String = VerificationStatus,
        engine: String = Engine,
        risk_level: String = RiskLevel,
        /// What held.
        checks_passed: Vec<String>,
        /// What did not.
        checks_failed: Vec<String>,
    }

    /// The action that may run in place of the one that was asked for.
    answer CorrectedAction {
        /// The action type.
        kind as "type": String,
        /// The corrected query.
        query: String,
        /// As it was sent; absent if it was not.
        code?: String,
        /// As it was sent; absent if it was not.
        target?: String,
        /// As they were sent; absent if they were not.
        parameters?: RawJson = map().of_anything(),
    }

    /// What is left after this request.
    answer BudgetRemaining {
        /// Cost of the day; null is no limit.
        daily_cost_usd: RawJson | null = dollars(),
        /// Requests of the hour; null is no limit.
        hourly_requests: u64 | null,
        /// Tokens of the day; null is no limit.
        daily_tokens: u64 | null,
    }

    /// How dangerous the call looks. `risk_level` is there once the call was verified.
    answer RiskAssessment {
        /// Informational, by the sound of name and parameters; one decimal place. Absent if the request was malformed.
        risk_score?: RawJson = number().min("0.2").max(1),
        risk_level?: String = RiskLevel,
    }

    /// What the agent did.
    request ExecutionRequest {
        /// The decision that let it run. Any other text is a decision that does not exist.
        decision_id: String,
        /// Whether it succeeded.
        success: bool,
        /// The SHA-256 of its result: 64 lower-case hexadecimal digits, with or without `sha256:`.
        result_hash?: String = text().pattern("^(sha256:)?[0-9a-f]{64}$"),
        /// What it cost. More than was charged is charged now. At most six decimal places.
        cost_usd?: RawJson = dollars().max(DOLLARS_MAX),
        /// Tokens it used. More than were charged are charged now. Written as an integer: `1.0` and `1e2` are refused.
        tokens?: u64 = of::<u64>().max(COUNT_MAX),
        /// The agent's token, in place of a header or equal to it.
        agent_token?: String,
    }

    /// An execution that is on record.
    answer ExecutionAnswer {
        decision_id: String = DecisionId,
        /// The ticket that was spent; absent if there was none.
        approval_id?: String = ApprovalId,
        /// What was charged beyond what was charged already.
        charged: Charged = Charged::members(),
        budget_remaining: BudgetRemaining,
        /// The hash of the ledger entry that records this execution.
        leaf_hash: String = Digest,
    }

    /// What was charged beyond what was charged already.
    answer Charged {
        /// Cost.
        cost_usd: RawJson = dollars(),
        /// Tokens.
        tokens: u64,
    }
}

named! {
    /// An action with its type in `type`.
    ActionWithType = Action::members()
        .titled("type")
        .requiring(&["type"])
        .maybe("action_type", "The other spelling of `type`; null or absent beside it.", null());

    /// An action with its type in `action_type`.
    ActionWithActionType = Action::members()
        .titled("action_type")
        .requiring(&["action_type"])
        .maybe("type", "The other spelling of `action_type`; null or absent beside it.", null());

    /// A context that says nothing about the state of the world. A server with `doom_loop_guard_required` refuses it
    /// with QWED-AGENT-STATE-001.
    ContextWithoutState = Context::members()
        .titled("Without state")
        .maybe("pre_action_state_hash", "Not given.", null())
        .maybe("state_source", "Not given.", null());

    /// A context with the state of the world.
    ContextWithState = Context::members().titled("With state").requiring(&["pre_action_state_hash", "state_source"]);

    /// A ruling on a tool call. `error` and `blocked_reason` are there unless the decision is APPROVED.
    ToolRuling = Ruling::members()
        .without(&["corrected_action"])
        .requiring(&["approved", "risk_assessment", "policy_checks"]);

    /// A denial that is on record: of a request that could not be read, or of a suspended agent.
    RecordedDenial = denial().without(OF_TOOLS);

    /// A denial of a tool call that is on record: of a request that could not be read, or of a suspended agent.
    RecordedToolDenial = denial().requiring(OF_TOOLS).always("approved", "The call may not run.", only_json(false));
}

/// What only an answer about a tool call has.
const OF_TOOLS: &[&str] = &["approved", "blocked_reason", "risk_assessment", "policy_checks"];

fn denial() -> Object {
    Ruling::members()
        .without(&["verification", "corrected_action", "approval_id", "expires_at", "mode", "attestation"])
        .always("decision", "The action may not run.", only("DENIED"))
        .always("enforced", "Whether the answer is binding; false for a dry run.", of::<bool>())
        .always("error", "", of::<Error>())
}

fn agent_id() -> Schema {
    text().length(38).pattern("^agent_[0-9a-f]{32}$")
}
