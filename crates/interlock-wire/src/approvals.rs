//! Tickets: what waits for a person, and what a person decided.

use interlock_core::action::TicketStatus;
use interlock_core::json::RawJson;

use crate::rulings::Action;
use crate::schema::{Object, any_of, dollars, integer, list, of, one_of, only, text, words};
use crate::words::{AgentId, ApprovalId, Attestation, DecisionId, Parameters, RiskLevel, Time, TrustLevel};

wire! {
    /// What waits for a person, and what became of it.
    answer Ticket [one_of([ActionTicket.into(), TrustTicket.into(), TransitionTicket.into()])] {
        approval_id: String = ApprovalId,
        /// Where the ticket stands.
        status: String = words(TicketStatus::ALL.iter().map(|status| status.as_str())),
        /// What the ticket is about.
        kind: String,
        agent_id: String = AgentId,
        /// The agent's name, for people.
        agent_name: String,
        /// Who answers for the agent.
        principal_id: String,
        decision_id?: String = DecisionId,
        /// The action type or tool, or `(not shown)` if it is no plain name.
        action_type?: String,
        /// The conversation.
        conversation_id?: String,
        /// The step it took.
        step_number?: u64 = integer().min(1),
        risk_level?: String = RiskLevel,
        /// What approving charges.
        cost_usd?: RawJson = dollars(),
        /// Why a person is asked.
        why: String,
        /// What the agent wants to do, as it sent it. Only for operators, and only while texts are kept.
        action?: RawJson = any_of([of::<Action>(), of::<ToolCall>()]),
        /// The right form of the query, if the verifier knows it; that is what may run. For operators, while it is
        /// kept.
        corrected_query?: String,
        /// What the user wanted, in the agent's words. Only for operators, and only while texts are kept.
        user_intent?: String,
        /// Why, in the agent's words. Only for operators, and only while texts are kept.
        justification?: String,
        /// What is asked for.
        transition?: AskedTransition = AskedTransition::members(),
        /// What is asked for.
        trust?: AskedTrust = AskedTrust::members(),
        /// When it was asked.
        opened_at: String = Time,
        /// Nothing can be done with the ticket from then on; approving it begins the time anew.
        expires_at: String = Time,
        /// The name of the key that decided; absent while nobody did.
        decided_by?: String,
        /// When; absent while nobody decided.
        decided_at?: String = Time,
        /// Why, in the words of whoever decided; absent if nothing was said.
        reason?: String,
        /// Whether its execution was reported; nothing more can be done with it then.
        spent: bool,
        /// The command that shows what was changed by the call that used up the agreement.
        changes?: String,
        attestation?: String = Attestation,
    }

    /// A tool call as it was asked for.
    answer ToolCall [ToolCall::members().titled("tool")] {
        /// The tool.
        tool: String,
        parameters: RawJson = Parameters,
    }

    /// What is asked for.
    answer AskedTransition {
        run_id: String,
        workflow: String,
        event: String,
        from: String,
        to: String,
    }

    /// What is asked for.
    answer AskedTrust {
        /// The level at that time.
        from_level: u8 = TrustLevel,
        /// The level that is asked for.
        to_level: u8 = TrustLevel,
        /// Why, in the words of whoever asked. Only for operators, and only while texts are kept.
        justification?: String,
        evidence: Merits,
    }

    /// What the ledger says about the agent since its trust last changed.
    answer Merits {
        /// Rulings that were looked at.
        rulings: u64,
        /// Different actions of medium risk or more that were let run.
        counted: u64,
        /// Denials.
        denied: u64,
        /// Of these, found wrong by a verifier or blocked by name.
        violations: u64,
        /// Broken limits.
        budget_exceeded: u64,
        /// Executions that were reported as successful.
        executions_succeeded: u64,
        /// Executions that were reported as failed.
        executions_failed: u64,
        /// The time of the first ruling that was looked at.
        since: String = Time,
        /// Whether there are more than were looked at.
        cut: bool,
    }

    /// A page of tickets.
    answer TicketPage<T = Ticket> {
        /// Tickets, newest first.
        approvals: Vec<T> = list(of::<Ticket>()).max_items(1000),
        /// Where the next page begins; null on the last one.
        next_cursor: String | null = text().pattern("^[0-9a-f]{32}$"),
    }
}

named! {
    /// An action that waits, or waited, for a person.
    ActionTicket = form("Action", "action")
        .without(&["transition", "trust"])
        .requiring(&["decision_id", "action_type", "conversation_id", "step_number", "risk_level", "cost_usd"]);

    /// A request for more trust that waits, or waited, for a person.
    TrustTicket = form("Trust", "trust")
        .without(OF_ACTIONS)
        .without(&["decision_id", "transition"])
        .requiring(&["trust"]);

    /// A transition of a workflow that waits, or waited, for a person.
    TransitionTicket = form("Transition", "transition")
        .without(OF_ACTIONS)
        .without(&["trust"])
        .requiring(&["transition"]);
}

/// What only a ticket about an action has, beside its decision.
#[rustfmt::skip]
const OF_ACTIONS: &[&str] = &[
    "action_type", "conversation_id", "step_number", "risk_level", "cost_usd", "action", "corrected_query",
    "user_intent", "justification", "changes", "attestation",
];

fn form(title: &'static str, kind: &'static str) -> Object {
    Ticket::members().titled(title).always("kind", "What the ticket is about.", only(kind))
}
