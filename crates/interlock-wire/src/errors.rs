//! Requests that get no ruling, and why.

use interlock_core::Code;
use interlock_core::json::RawJson;

use crate::schema::{answer, dollars, of, only, text, words};
use crate::words::{ErrorCode, Time};

wire! {
    /// A request that was refused.
    answer ErrorAnswer [ErrorAnswer::members().without(&["decision"])] {
        /// Whatever went wrong, the action may not run.
        decision?: String = only("DENIED"),
        error: Error,
    }

    /// Why a request was refused.
    answer Error [Error::members().without(&["details"])] {
        code: String = ErrorCode,
        /// Why, for people.
        message: String,
        /// There for BUDGET_EXCEEDED.
        details?: RawJson = of::<LimitFigures>(),
    }

    /// The figures behind a limit.
    answer LimitFigures {
        /// The limit.
        limit: RawJson = dollars(),
        /// What is used, or asked for where that alone is too much.
        current: RawJson = dollars(),
        /// When the same request could pass; absent if waiting does not help.
        reset_at?: String = Time,
    }

    // What is not the same any more.
    answer StaleDetails {
        /// What changed since the approval was asked for.
        stale: String,
    }
}

named! {
    /// A request for a ruling that was refused and is not on record.
    DeniedAnswer = ErrorAnswer::members().requiring(&["decision"]);

    /// Why the answer is not yes.
    RulingError = Error::members();

    /// What was approved, or was to be, is not the same any more.
    StaleRefusal = answer().always("error", "What changed.", {
        answer()
            .always("code", "Why, for machines.", only(Code::ApprovalStale.as_str()))
            .always("message", "Why, for people.", text())
            .always("details", "", StaleDetails::members())
    });

    /// An approval that the budget does not allow; the ticket stays pending.
    BudgetRefusal = answer().always("error", "Which limit, and its figures.", {
        let codes = [Code::BudgetCost, Code::BudgetRate, Code::BudgetTokens];
        answer()
            .always("code", "Why, for machines.", words(codes.map(Code::as_str)))
            .always("message", "Why, for people.", text())
            .always("details", "", of::<LimitFigures>())
    });
}
