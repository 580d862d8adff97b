//! How much work an agent may ask for: fuel per second, with some to spare. It decides whether more is done for an agent
//! before it is done; it does not know what was read.
//!
//! Every agent has an account of what it owes. A little of it is forgiven each moment; who owes more than the spare is
//! refused until enough is forgiven. What a text costs is known only when it was read, so it is charged then, and the last
//! one may go beyond.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// As much as may be spent at once, in seconds of the rate.
const SPARE_SECONDS: u64 = 10;
/// From so many accounts on, those that owe nothing are dropped.
const ACCOUNTS_LEN: usize = 10_000;

/// The accounts of all agents.
#[derive(Debug)]
pub struct FuelMeter {
    per_second: u64,
    accounts: Mutex<HashMap<String, Account>>,
    /// Until when anybody may owe more than the spare. After it nobody's account is looked at.
    owing_until_ms: AtomicU64,
    started: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Account {
    /// In thousandths of a unit, so that no millisecond is lost to rounding.
    owed: u128,
    at_ms: u64,
}

impl FuelMeter {
    /// Accounts that owe nothing yet.
    pub fn new(per_second: u64) -> FuelMeter {
        FuelMeter {
            per_second: per_second.max(1),
            accounts: Mutex::default(),
            owing_until_ms: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// The time, counted from the start, so that a machine's clock that is set forgives nothing.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether more is done for an agent; if not, after how many seconds.
    pub fn check(&self, agent: &str, now_ms: u64) -> Result<(), u32> {
        if now_ms > self.owing_until_ms.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(account) = accounts.get_mut(agent) else { return Ok(()) };
        account.forgive(self.per_second, now_ms);
        let seconds = self.over_ms(account).div_ceil(1_000);
        if seconds > 0 { Err(u32::try_from(seconds).unwrap_or(u32::MAX)) } else { Ok(()) }
    }

    /// Charges an agent for what was done.
    pub fn charge(&self, agent: &str, fuel: u64, now_ms: u64) {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= ACCOUNTS_LEN {
            accounts.retain(|_, account| {
                account.forgive(self.per_second, now_ms);
                account.owed > 0
            });
        }
        let account = accounts.entry(agent.to_owned()).or_insert(Account { owed: 0, at_ms: now_ms });
        account.forgive(self.per_second, now_ms);
        account.owed = account.owed.saturating_add(u128::from(fuel).saturating_mul(1_000));
        let over_ms = self.over_ms(account);
        if over_ms > 0 {
            self.owing_until_ms.fetch_max(now_ms.saturating_add(over_ms), Ordering::AcqRel);
        }
    }

    /// How long it takes until no more is owed than the spare.
    fn over_ms(&self, account: &Account) -> u64 {
        let over = account.owed.saturating_sub(self.spare());
        u64::try_from(over.div_ceil(u128::from(self.per_second))).unwrap_or(u64::MAX)
    }

    fn spare(&self) -> u128 {
        u128::from(self.per_second).saturating_mul(u128::from(SPARE_SECONDS)).saturating_mul(1_000)
    }
}

impl Account {
    /// Forgives what time has forgiven; never back.
    fn forgive(&mut self, per_second: u64, now_ms: u64) {
        let passed = now_ms.saturating_sub(self.at_ms);
        self.at_ms = self.at_ms.max(now_ms);
        self.owed = self.owed.saturating_sub(u128::from(passed).saturating_mul(u128::from(per_second)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_spends_what_is_spare_and_then_as_much_as_is_forgiven() {
        let meter = FuelMeter::new(100);
        assert_eq!(meter.check("a", 0), Ok(()));
        meter.charge("a", 1_000, 0);
        assert_eq!(meter.check("a", 0), Ok(()), "up to the spare");
        meter.charge("a", 250, 0);
        assert_eq!(meter.check("a", 0), Err(3), "beyond it");
        assert_eq!(meter.check("b", 0), Ok(()), "others owe nothing");
        assert_eq!(meter.check("a", 2_499), Err(1));
        assert_eq!(meter.check("a", 2_500), Ok(()), "as long as was said");
        meter.charge("a", 1, 2_500);
        assert_eq!(meter.check("a", 2_500), Err(1));
        assert_eq!(meter.check("a", 2_510), Ok(()));
    }

    #[test]
    fn what_costs_most_is_done_once_and_waited_for() {
        let meter = FuelMeter::new(1);
        meter.charge("a", u64::MAX, 0);
        assert_eq!(meter.check("a", u64::MAX / 2), Err(u32::MAX));
        meter.charge("a", u64::MAX, u64::MAX / 2);
        assert!(meter.check("a", u64::MAX).is_err());
    }

    #[test]
    fn a_clock_that_goes_back_forgives_nothing() {
        let meter = FuelMeter::new(100);
        meter.charge("a", 1_100, 5_000);
        assert_eq!(meter.check("a", 0), Err(1));
        assert_eq!(meter.check("a", 5_999), Err(1));
        assert_eq!(meter.check("a", 6_000), Ok(()));
    }

    #[test]
    fn accounts_that_owe_nothing_are_dropped() {
        let meter = FuelMeter::new(1_000);
        for number in 0..ACCOUNTS_LEN {
            meter.charge(&number.to_string(), 1, 0);
        }
        meter.charge("one more", 1, 1_000);
        assert_eq!(meter.accounts.lock().unwrap().len(), 1);
    }
}
