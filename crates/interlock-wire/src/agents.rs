//! Agents, what they may spend, and what operators do about them.

use interlock_core::json::RawJson;

use crate::schema::{COUNT_MAX, DOLLARS_MAX, dollars, level, list, of, one_of, only, text};
use crate::words::{
    AgentId, AgentMode, AgentName, AgentStatus, AgentText, AgentType, AllowedEngine, ApprovalId, PrincipalId, Time,
    ToolNames, TrustLevel,
};

wire! {
    /// An agent as the ledger knows it.
    answer Agent [Agent::members().without(&["agent_token"])] {
        agent_id: String = AgentId,
        /// The agent's token: `qwed_agent_` and 64 hexadecimal digits. It is shown here once and stored as a hash only.
        agent_token?: String = text().pattern("^qwed_agent_[0-9a-f]{64}$"),
        /// The agent's decentralised identifier.
        did: String = text().pattern("^did:qwed:agent:agent_[0-9a-f]{32}$"),
        /// For people.
        name: String,
        kind as "type": String = AgentType,
        /// Who answers for the agent.
        principal_id: String,
        /// For people; absent if none was given.
        description?: String,
        /// For people; absent if none was given.
        framework?: String,
        /// For people; absent if none was given.
        model?: String,
        status: String = AgentStatus,
        mode: String = AgentMode,
        trust_level: u8 = TrustLevel,
        created_at: String = Time,
        permissions: Permissions,
        budget: BudgetLimits,
    }

    /// What the agent may use.
    answer Permissions {
        /// Engines whose actions the agent may ask for.
        allowed_engines: Vec<String> = list(AllowedEngine),
        /// Tools beyond the safe ones that the agent may call.
        allowed_tools: Vec<String>,
        /// Tools and action types that are refused.
        blocked_tools: Vec<String>,
    }

    /// What the agent may spend.
    answer BudgetLimits {
        /// Cost of a UTC day; null is no limit.
        max_daily_cost_usd: RawJson | null = dollars(),
        /// Cost of one request; null is no limit.
        max_cost_per_request_usd: RawJson | null = dollars(),
        /// Requests in any hour; null is no limit.
        max_requests_per_hour: u64 | null,
        /// Requests of a UTC day; null is no limit.
        max_requests_per_day: u64 | null,
        /// Tokens of one request; null is no limit.
        max_tokens_per_request: u64 | null,
        /// Tokens of a UTC day; null is no limit.
        max_daily_tokens: u64 | null,
    }

    /// A page of agents.
    answer AgentPage {
        /// Agents, in the order of their ids.
        agents: Vec<Agent> = list(of::<Agent>()).max_items(1000),
        /// Where the next page begins; null on the last one.
        next_cursor: String | null = text().pattern("^agent_[0-9a-f]{32}$"),
    }

    /// A registration with the agent's own fields beside the others.
    request FlatRegistration [FlatRegistration::members().titled("Flat")] {
        name: String = AgentName,
        kind as "type": String = AgentType,
        principal_id: String = PrincipalId,
        description?: String = AgentText,
        framework?: String = AgentText,
        model?: String = AgentText,
        /// How far the agent is trusted, if not as its type says; above that only for an admin, and never above a
        /// registrar's ceiling. Written as an integer.
        trust_level?: u8 = level(),
        permissions?: RawJson = of::<PermissionsInput>(),
        budget?: RawJson = of::<BudgetInput>(),
    }

    /// A registration with the agent's own fields in `agent`.
    request NestedRegistration [NestedRegistration::members().titled("Nested")] {
        agent: RawJson = AgentOwnFields,
        permissions?: RawJson = of::<PermissionsInput>(),
        budget?: RawJson = of::<BudgetInput>(),
    }

    /// What the agent may use.
    request PermissionsInput [PermissionsInput::members().or_null()] {
        /// Engines whose actions the agent may ask for. Absent or null is math and logic; an empty list is none.
        allowed_engines?: Vec<String> = list(AllowedEngine).max_items(1000),
        /// Tools beyond the safe ones that the agent may call.
        allowed_tools?: Vec<String> = ToolNames,
        /// Tools and action types that are refused, whatever else allows them.
        blocked_tools?: Vec<String> = ToolNames,
    }

    /// What the agent may spend. An absent field has its default, null is no limit.
    request BudgetInput [BudgetInput::members().or_null()] {
        /// Cost of a UTC day; null is no limit. At most six decimal places.
        max_daily_cost_usd?: RawJson = dollars().max(DOLLARS_MAX).or_else(100),
        /// Cost of one request; null is no limit. At most six decimal places.
        max_cost_per_request_usd?: RawJson = dollars().max(DOLLARS_MAX).or_else(1),
        /// Requests in any hour; null is no limit. Written as an integer: `1.0` and `1e2` are refused.
        max_requests_per_hour?: u64 = of::<u64>().max(COUNT_MAX).or_else(1000),
        /// Requests of a UTC day; null is no limit. Written as an integer: `1.0` and `1e2` are refused.
        max_requests_per_day?: u64 = of::<u64>().max(COUNT_MAX).or_else(10000),
        /// Tokens of one request; null is no limit. Written as an integer: `1.0` and `1e2` are refused.
        max_tokens_per_request?: u64 = of::<u64>().max(COUNT_MAX).or_else(4096),
        /// Tokens of a UTC day; absent or null is no limit. Written as an integer: `1.0` and `1e2` are refused.
        max_daily_tokens?: u64 = of::<u64>().max(COUNT_MAX),
    }

    /// Why, for the record.
    request ReasonRequest {
        /// In the operator's words, at most 4096 bytes of UTF-8.
        reason?: String = text().max_length(4096),
    }

    /// What was removed.
    answer ErasedTexts {
        agent_id: String = AgentId,
        /// How many kept texts there were.
        erased: u64,
    }

    /// What an agent may spend and has spent.
    answer Budget {
        /// Money.
        cost: CostBudget = CostBudget::members(),
        /// Requests that were let run.
        requests: RequestBudget = RequestBudget::members(),
        /// Tokens, as agents claim them.
        tokens: TokenBudget = TokenBudget::members(),
    }

    /// Money.
    answer CostBudget {
        /// Limit of a UTC day; null is no limit.
        max_daily_usd: RawJson | null = dollars(),
        /// Spent since midnight, UTC.
        current_daily_usd: RawJson = dollars(),
        /// Limit of one request; null is no limit.
        max_per_request_usd: RawJson | null = dollars(),
    }

    /// Requests that were let run.
    answer RequestBudget {
        /// Limit of any hour; null is no limit.
        max_per_hour: u64 | null,
        /// Requests of the last hour.
        current_hour: u64,
        /// Limit of a UTC day; null is no limit.
        max_per_day: u64 | null,
        /// Requests since midnight, UTC.
        current_day: u64,
    }

    /// Tokens, as agents claim them.
    answer TokenBudget {
        /// Limit of one request; null is no limit.
        max_per_request: u64 | null,
        /// Limit of a UTC day; null is no limit.
        max_daily: u64 | null,
        /// Tokens since midnight, UTC.
        current_daily: u64,
    }

    /// A request for more trust.
    request TrustRequest {
        /// What is asked for.
        request: String = only("trust_elevation"),
        /// The level that is asked for: above the one there is. Written as an integer.
        to_level: u8 = level(),
        /// The level the caller believes there is. Written as an integer.
        from_level?: u8 = level(),
        /// Why, at most 4096 bytes of UTF-8.
        justification?: String = text().max_length(4096),
        /// The agent's token, in place of a header or equal to it.
        agent_token?: String,
    }

    /// A ticket was opened.
    answer TrustAnswer {
        /// A person has to decide.
        decision: String = only("PENDING"),
        approval_id: String = ApprovalId,
        /// Nobody can approve the ticket from then on.
        expires_at: String = Time,
    }
}

named! {
    /// An agent with its token: right after its registration, or with a new one.
    RegisteredAgent = Agent::members().requiring(&["agent_token"]);

    /// What is said about an agent.
    AgentOwnFields = FlatRegistration::members().without(&["permissions", "budget"]);

    /// A new agent, in either form.
    Registration = one_of([of::<FlatRegistration>(), of::<NestedRegistration>()]);
}
