//! What was ruled.

use interlock_core::json::RawJson;
use interlock_core::ledger::Likeness;

use crate::schema::{any, dollars, integer, list, of, text};
use crate::words::{
    AgentId, ApprovalId, Decision, DecisionId, Digest, Engine, ErrorCode, RiskLevel, Time, VerificationStatus,
};

wire! {
    /// One ruling. `engine`, `status` and `risk_level` are there if a verifier was asked, `code` if the answer was not
    /// yes, `approval_id` if it opened a ticket, `execution` once that was reported, `repeats` if it tells of rulings
    /// that were counted and not written out.
    answer Activity [Activity::members().without(&["agent_id"])] {
        timestamp: String = Time,
        agent_id?: String = AgentId,
        decision_id: String = DecisionId,
        /// The action type or tool, or `(not shown)` if it is no plain name; absent if the request was malformed.
        action_type?: String,
        decision: String = Decision,
        /// Whether the answer was binding; false for a dry run and in observe mode.
        enforced: bool,
        code?: String = ErrorCode,
        approval_id?: String = ApprovalId,
        /// The conversation; absent if the request was malformed.
        conversation_id?: String,
        /// The step; absent if the request was malformed.
        step_number?: u64 = integer().min(1),
        engine?: String = Engine,
        status?: String = VerificationStatus,
        risk_level?: String = RiskLevel,
        /// What the action was charged, or would have been in a dry run.
        cost_usd: RawJson = dollars(),
        /// Whether nothing was to be consumed.
        dry_run: bool,
        execution?: ReportedExecution,
        repeats?: Repeats,
        /// The command that shows what it changed: of a coding agent's call that ran and may have changed something.
        changes?: String,
    }

    /// Refusals that were like the one with this `decision_id`, counted in one entry: all of them asked for the same
    /// (`equal`), or were refused for the same reason (`code`).
    answer Repeats {
        count: u64 = integer().min(1),
        likeness: String = any().one_of(Likeness::ALL.iter().map(|word| word.as_str())),
        first_at: String = Time,
        last_at: String = Time,
        /// The fingerprint that all of them have, or a digest over the fingerprints of each.
        digest: String = Digest,
    }

    /// What became of an action, in the agent's words.
    answer ReportedExecution {
        /// When it was reported.
        timestamp: String = Time,
        /// Whether it succeeded.
        success: bool,
        /// The SHA-256 of its result; absent if none was given.
        result_hash?: String = text().pattern("^(sha256:)?[0-9a-f]{64}$"),
        /// What it cost.
        cost_usd: RawJson = dollars(),
        /// Tokens it used.
        tokens: u64,
    }

    /// How many rulings of each kind there are, on all pages.
    answer ActivitySummary {
        /// All of them.
        total: u64,
        /// APPROVED.
        approved: u64,
        /// CORRECTED.
        corrected: u64,
        /// PENDING.
        pending: u64,
        /// BUDGET_EXCEEDED.
        budget_exceeded: u64,
        /// DENIED.
        denied: u64,
        /// False if there are more than one request looks at.
        complete: bool,
    }

    /// A page of rulings.
    answer ActivityPage<T = Activity> {
        /// Rulings, newest first.
        activities: Vec<T> = list(of::<Activity>()).max_items(1000),
        /// Where the next page begins; null on the last one.
        next_cursor: String | null = text().pattern("^[0-9a-f]{32}$"),
        /// There unless a cursor was given.
        summary?: ActivitySummary,
    }
}

named! {
    /// One ruling with the agent it is about. What is there when is as in Activity.
    ServiceActivity = Activity::members().requiring(&["agent_id"]);

    /// A page of rulings of all agents.
    ServiceActivityPage = {
        let activities = list(ServiceActivity).max_items(1000);
        ActivityPage::<Activity>::members().always("activities", "Rulings, newest first.", activities)
    };
}
