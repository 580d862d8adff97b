//! How much work a claim may ask for, and the account that is kept of it.
//!
//! Every limit is counted in units of the input or of the arithmetic, so that reaching one does not depend on the
//! machine. Reaching one proves nothing about the claim: the outcome is uncertain.

use super::no_value::Reason;

/// The longest text, in bytes; the query and the expected value each.
pub const TEXT_BYTES_MAX: usize = 16_384;
/// The most numbers, operators, parentheses and relations in one text.
pub const TOKENS_MAX: usize = 8_000;
/// The most parentheses open at the same time. The parser recurses no deeper.
pub const DEPTH_MAX: usize = 100;
/// The longest exponent of a number such as `1e3`, in digits without leading zeros. Any longer one is far over
/// [`VALUE_BITS_MAX`].
pub const EXPONENT_DIGITS_MAX: usize = 6;
/// The largest numerator or denominator, in bits, of any value on the way to the result.
pub const VALUE_BITS_MAX: u64 = 65_536;
/// The most bits in the values of all sides of a claim together. Bounds the certificate.
pub const RESULT_BITS_MAX: u64 = 262_144;
/// The most work for one claim, in operations on words of 64 bits. Bounds the time: sizes alone would allow a thousand
/// divisions of fractions with numbers of the largest size.
pub const WORK_MAX: u64 = 1 << 28;
/// The most equations, and the most conclusions, in a system.
pub const STATEMENTS_MAX: usize = 64;
/// The most unknowns, and functions that stand for one, in a claim.
pub const UNKNOWNS_MAX: usize = 64;
/// The most terms of a polynomial.
pub const TERMS_MAX: usize = 4_096;
/// The most digits that something is said to be rounded to.
pub const ROUNDING_DIGITS_MAX: u32 = 1_000;
/// The bits after the point of irrational values, step by step until they can be told apart.
pub(super) const PRECISION_BITS: [u32; 4] = [64, 256, 1_024, 4_096];
/// The last of these steps.
pub const PRECISION_BITS_MAX: u32 = 4_096;
/// The largest operand of `exp`, and the largest integer part of an operand of `sin`, `cos` and `tan` in bits.
pub(super) const ARGUMENT_MAX: u32 = 4_096;

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    TextBytes,
    Tokens,
    Depth,
    ExponentDigits,
    ValueBits,
    ResultBits,
    Work,
    Terms,
    Unknowns,
    Argument,
}

/// What is left to spend on one claim.
#[derive(Debug)]
pub(super) struct Fuel {
    work: u64,
    result_bits: u64,
    /// How much work there was at first, at most [`WORK_MAX`].
    given: u64,
    fell_short: bool,
}

impl Fuel {
    /// The full amount, for one claim.
    pub(super) fn full() -> Fuel {
        Fuel::of(WORK_MAX)
    }

    /// The full amount, or as much work of it as is given.
    pub(super) fn of(work: u64) -> Fuel {
        let given = work.min(WORK_MAX);
        Fuel { work: given, result_bits: RESULT_BITS_MAX, given, fell_short: false }
    }

    /// How much work was done.
    pub(super) fn spent(&self) -> u64 {
        self.given.saturating_sub(self.work)
    }

    /// Whether more work was asked for than was given, where the full amount might have been enough. It stays so: who
    /// was refused may have gone another way, which the full amount would not.
    pub(super) fn fell_short(&self) -> bool {
        self.fell_short
    }

    /// Pays for work before it is done.
    pub(super) fn spend_work(&mut self, work: u64) -> Result<(), Reason> {
        let Some(left) = self.work.checked_sub(work) else {
            self.fell_short |= self.given < WORK_MAX;
            return Err(Reason::Limit(Limit::Work));
        };
        self.work = left;
        Ok(())
    }

    /// Pays for a value that will stand in the certificate, and for printing it.
    pub(super) fn spend_result(&mut self, bits: u64) -> Result<(), Reason> {
        self.result_bits = self.result_bits.checked_sub(bits).ok_or(Reason::Limit(Limit::ResultBits))?;
        Ok(())
    }
}

/// The size check of every value: passes up to [`VALUE_BITS_MAX`].
pub(super) fn check_bits(bits: u64) -> Result<(), Reason> {
    if bits > VALUE_BITS_MAX { Err(Reason::Limit(Limit::ValueBits)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_largest_size_passes_and_one_bit_more_does_not() {
        assert_eq!(check_bits(VALUE_BITS_MAX), Ok(()));
        assert_eq!(check_bits(VALUE_BITS_MAX + 1), Err(Reason::Limit(Limit::ValueBits)));
    }

    #[test]
    fn fuel_can_be_spent_to_the_last_unit_and_no_further() {
        let mut fuel = Fuel::full();
        assert_eq!(fuel.spend_work(WORK_MAX), Ok(()));
        assert_eq!(fuel.spend_work(0), Ok(()));
        assert_eq!(fuel.spend_work(1), Err(Reason::Limit(Limit::Work)));
        assert_eq!(fuel.spend_result(RESULT_BITS_MAX), Ok(()));
        assert_eq!(fuel.spend_result(1), Err(Reason::Limit(Limit::ResultBits)));
    }

    #[test]
    fn a_payment_that_is_refused_costs_nothing() {
        let mut fuel = Fuel::full();
        assert_eq!(fuel.spend_work(u64::MAX), Err(Reason::Limit(Limit::Work)));
        assert_eq!(fuel.spend_work(WORK_MAX), Ok(()));
    }
}
