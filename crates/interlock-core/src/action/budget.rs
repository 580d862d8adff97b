//! Budgets: integers, checked and charged in one place.

use serde::{Deserialize, Serialize};

use super::vocabulary::{Millis, UsdMicros};
use crate::code::Code;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;
/// A minute counts for an hour after it ends, so that no hour holds more than the limit.
const MINUTES_KEPT: u64 = 60;

/// What an agent may spend; `None` is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetLimits {
    /// Cost of a UTC day.
    pub max_daily_cost_usd: Option<UsdMicros>,
    /// Cost of one request.
    pub max_cost_per_request_usd: Option<UsdMicros>,
    /// Requests in any hour.
    pub max_requests_per_hour: Option<u64>,
    /// Requests of a UTC day.
    pub max_requests_per_day: Option<u64>,
    /// Tokens of one request.
    pub max_tokens_per_request: Option<u64>,
    /// Tokens of a UTC day.
    pub max_daily_tokens: Option<u64>,
}

impl Default for BudgetLimits {
    fn default() -> BudgetLimits {
        BudgetLimits {
            max_daily_cost_usd: Some(UsdMicros(100_000_000)),
            max_cost_per_request_usd: Some(UsdMicros(1_000_000)),
            max_requests_per_hour: Some(1_000),
            max_requests_per_day: Some(10_000),
            max_tokens_per_request: Some(4_096),
            max_daily_tokens: None,
        }
    }
}

impl BudgetLimits {
    /// The first limit that is above its default, or gone, if any is.
    pub fn loosens(&self) -> Option<&'static str> {
        let micros = |limit: Option<UsdMicros>| limit.map(|limit| limit.0);
        // No limit is above every limit.
        let rows = |limits: &BudgetLimits| {
            [
                ("max_daily_cost_usd", micros(limits.max_daily_cost_usd)),
                ("max_cost_per_request_usd", micros(limits.max_cost_per_request_usd)),
                ("max_requests_per_hour", limits.max_requests_per_hour),
                ("max_requests_per_day", limits.max_requests_per_day),
                ("max_tokens_per_request", limits.max_tokens_per_request),
                ("max_daily_tokens", limits.max_daily_tokens),
            ]
        };
        let looser = rows(self).into_iter().zip(rows(&BudgetLimits::default()));
        looser
            .filter_map(|((name, own), (_, default))| {
                default.is_some_and(|default| own.is_none_or(|own| own > default)).then_some(name)
            })
            .next()
    }
}

/// What an agent says an action uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Cost.
    pub cost_usd: UsdMicros,
    /// Tokens.
    pub tokens: u64,
}

/// What an action is charged: never less than its price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// Cost.
    pub cost_usd: UsdMicros,
    /// Tokens.
    pub tokens: u64,
}

impl Charge {
    /// The larger of price and claim.
    pub fn of(price: UsdMicros, claim: Usage) -> Charge {
        Charge { cost_usd: price.max(claim.cost_usd), tokens: claim.tokens }
    }

    /// What a reported usage adds to it; a report never lowers anything.
    pub fn raised_by(self, reported: Usage) -> Charge {
        Charge {
            cost_usd: UsdMicros(reported.cost_usd.0.saturating_sub(self.cost_usd.0)),
            tokens: reported.tokens.saturating_sub(self.tokens),
        }
    }
}

/// What an agent has spent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// The UTC day the daily figures belong to.
    day: u64,
    day_cost: UsdMicros,
    day_requests: u64,
    day_tokens: u64,
    /// Requests by minute, oldest first; minutes without any are left out.
    minutes: Vec<(u64, u64)>,
}

/// A limit that would be broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// BUDGET-001, -002 or -003.
    pub code: Code,
    /// Which limit, in words.
    pub what: &'static str,
    /// The limit, as it is shown.
    pub limit: String,
    /// What is used already, as it is shown.
    pub current: String,
    /// When the same request could pass; `None` if waiting does not help.
    pub reset_at: Option<Millis>,
}

/// What is left; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remaining {
    /// Cost of the day.
    pub daily_cost_usd: Option<UsdMicros>,
    /// Requests of the hour.
    pub hourly_requests: Option<u64>,
    /// Tokens of the day.
    pub daily_tokens: Option<u64>,
}

impl Spent {
    /// Cost since midnight, UTC.
    pub fn day_cost(&self, now: Millis) -> UsdMicros {
        if self.is_today(now) { self.day_cost } else { UsdMicros(0) }
    }

    /// Requests since midnight, UTC.
    pub fn day_requests(&self, now: Millis) -> u64 {
        if self.is_today(now) { self.day_requests } else { 0 }
    }

    /// Tokens since midnight, UTC.
    pub fn day_tokens(&self, now: Millis) -> u64 {
        if self.is_today(now) { self.day_tokens } else { 0 }
    }

    /// Requests in the last hour; the minute the hour begins in counts whole.
    pub fn hour_requests(&self, now: Millis) -> u64 {
        self.live_minutes(now).fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    fn is_today(&self, now: Millis) -> bool {
        day_of(now) == self.day
    }

    fn live_minutes(&self, now: Millis) -> impl Iterator<Item = (u64, u64)> {
        let oldest = minute_of(now).saturating_sub(MINUTES_KEPT);
        self.minutes.iter().copied().filter(move |(minute, _)| *minute >= oldest)
    }

    /// Cost first, then requests, then tokens.
    pub(super) fn check(&self, limits: &BudgetLimits, charge: Charge, now: Millis) -> Result<(), Box<Breach>> {
        let usd = |micros: u64| UsdMicros(micros).to_string();
        let count = |number: u64| number.to_string();
        let tomorrow = Some(day_of(now).saturating_add(1).saturating_mul(DAY_MS));
        let next_minute =
            |(minute, _): (u64, u64)| minute.saturating_add(MINUTES_KEPT).saturating_add(1).saturating_mul(MINUTE_MS);
        let next_hour = self.live_minutes(now).next().map(next_minute);
        let cost = charge.cost_usd.0;
        let micros = |limit: Option<UsdMicros>| limit.map(|limit| limit.0);
        type Row<'a> = (Code, &'static str, Option<u64>, u64, u64, &'a dyn Fn(u64) -> String, Option<Millis>);
        #[rustfmt::skip]
        let rows: [Row<'_>; 6] = [
            (Code::BudgetCost, "cost of a request", micros(limits.max_cost_per_request_usd), cost, 0, &usd, None),
            (Code::BudgetCost, "daily cost", micros(limits.max_daily_cost_usd), self.day_cost(now).0, cost, &usd, tomorrow),
            (Code::BudgetRate, "requests per hour", limits.max_requests_per_hour, self.hour_requests(now), 1, &count, next_hour),
            (Code::BudgetRate, "requests per day", limits.max_requests_per_day, self.day_requests(now), 1, &count, tomorrow),
            (Code::BudgetTokens, "tokens of a request", limits.max_tokens_per_request, charge.tokens, 0, &count, None),
            (Code::BudgetTokens, "daily tokens", limits.max_daily_tokens, self.day_tokens(now), charge.tokens, &count, tomorrow),
        ];
        for (code, what, limit, current, more, shown, reset_at) in rows {
            let Some(limit) = limit else { continue };
            // A sum that does not fit is above any limit.
            if current.checked_add(more).is_none_or(|sum| sum > limit) {
                // What can never fit is not helped by waiting.
                let reset_at = reset_at.filter(|_| more <= limit);
                let (limit, current) = (shown(limit), shown(current));
                return Err(Box::new(Breach { code, what, limit, current, reset_at }));
            }
        }
        Ok(())
    }

    pub(crate) fn charge(&mut self, charge: Charge, now: Millis) {
        if !self.is_today(now) {
            *self = Spent { day: day_of(now), minutes: core::mem::take(&mut self.minutes), ..Spent::default() };
        }
        self.day_cost = UsdMicros(self.day_cost.0.saturating_add(charge.cost_usd.0));
        self.day_requests = self.day_requests.saturating_add(1);
        self.day_tokens = self.day_tokens.saturating_add(charge.tokens);
        let minute = minute_of(now);
        let oldest = minute.saturating_sub(MINUTES_KEPT);
        self.minutes.retain(|(minute, _)| *minute >= oldest);
        match self.minutes.last_mut() {
            Some((last, count)) if *last == minute => *count = count.saturating_add(1),
            Some(_) | None => self.minutes.push((minute, 1)),
        }
    }

    /// What an execution cost beyond what it was charged for: no request of its own.
    pub(crate) fn charge_more(&mut self, more: Charge, now: Millis) {
        if !self.is_today(now) {
            *self = Spent { day: day_of(now), minutes: core::mem::take(&mut self.minutes), ..Spent::default() };
        }
        self.day_cost = UsdMicros(self.day_cost.0.saturating_add(more.cost_usd.0));
        self.day_tokens = self.day_tokens.saturating_add(more.tokens);
    }

    /// What is left of the limits.
    pub fn remaining(&self, limits: &BudgetLimits, now: Millis) -> Remaining {
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
        Remaining {
            daily_cost_usd: left(limits.max_daily_cost_usd.map(|usd| usd.0), self.day_cost(now).0).map(UsdMicros),
            hourly_requests: left(limits.max_requests_per_hour, self.hour_requests(now)),
            daily_tokens: left(limits.max_daily_tokens, self.day_tokens(now)),
        }
    }
}

fn minute_of(now: Millis) -> u64 {
    now.checked_div(MINUTE_MS).unwrap_or(0)
}

fn day_of(now: Millis) -> u64 {
    now.checked_div(DAY_MS).unwrap_or(0)
}
