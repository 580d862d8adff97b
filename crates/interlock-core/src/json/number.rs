//! JSON numbers, exact at any size, without floats and without allocation.
//!
//! A number stays the literal it was written as. Comparison walks the digits of both literals; printing follows the
//! to-scientific-string form of the General Decimal Arithmetic, so `7.50` keeps its zero and `1e2` is `1E+2`.

use core::cmp::Ordering;
use core::fmt;

/// A number as it stands in a text that the parser accepted.
#[derive(Debug, Clone, Copy)]
pub struct Number<'a> {
    literal: &'a str,
    integer: bool,
}

/// So many places before or after the point are written out where a number is written by its value.
const PLAIN_PLACES_MAX: i64 = 32;

/// A literal taken apart: `(-1)^negative × digits × 10^exponent`, the digits being `whole` then `fraction`.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

/// The size of a canonical text, in the terms of the limits.
pub(super) struct Printed {
    pub(super) digits: usize,
    pub(super) exponent: u32,
}

/// The three ways to print digits with an exponent, as to-scientific-string has them.
#[derive(Clone, Copy)]
enum Layout {
    /// The digits and nothing else.
    Whole,
    /// A point after `point` digits; zeros come first where that is not positive.
    Plain { point: i64 },
    /// One digit, a point, the others, and the exponent of the first.
    Scientific { exponent: i64 },
}

impl Layout {
    fn is_whole(self) -> bool {
        matches!(self, Layout::Whole)
    }
}

impl<'a> Number<'a> {
    /// Invariant: `literal` is a JSON number, an integer or not; only the parser knows.
    #[inline]
    pub(crate) fn new(literal: &'a str, integer: bool) -> Number<'a> {
        Number { literal, integer }
    }

    /// The number as it was written.
    #[inline]
    pub fn literal(&self) -> &'a str {
        self.literal
    }

    /// Whether it was written as a JSON integer: `1` is one, `1.0` and `1e2` are not.
    #[inline]
    pub fn is_integer(&self) -> bool {
        self.integer
    }

    /// The value as an `i128`, if it is a JSON integer that fits.
    pub fn to_i128(&self) -> Option<i128> {
        if self.is_integer() { self.literal.parse().ok() } else { None }
    }

    /// Order by exact value; `1` equals `1.0`.
    pub fn cmp_value(&self, other: &Number<'_>) -> Ordering {
        if self.literal == other.literal {
            return Ordering::Equal;
        }
        let (left, right) = (self.parts(), other.parts());
        match (left.sign(), right.sign()) {
            (a, b) if a != b => a.cmp(&b),
            (Ordering::Equal, _) => Ordering::Equal,
            (Ordering::Less, _) => right.cmp_magnitude(&left),
            (Ordering::Greater, _) => left.cmp_magnitude(&right),
        }
    }

    /// The canonical text of this number.
    pub fn canonical(&self) -> String {
        let mut out = Vec::new();
        self.write_canonical(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Writes the canonical text of this number.
    pub(crate) fn write_canonical(&self, out: &mut Vec<u8>) {
        if self.is_integer() {
            out.extend_from_slice(if self.literal == "-0" { b"0" } else { self.literal.as_bytes() });
            return;
        }
        let parts = self.parts();
        let digits = parts.coefficient();
        let layout = parts.layout(&digits);
        // `-0e0` would print as `-0`, which reads back as the integer 0: the canonical text must be a fixed point.
        if parts.negative && !(layout.is_whole() && parts.sign() == Ordering::Equal) {
            out.push(b'-');
        }
        match layout {
            Layout::Plain { point } if point <= 0 => {
                out.extend_from_slice(b"0.");
                for _ in point..0 {
                    out.push(b'0');
                }
                digits.push_range(out, 0, digits.count);
            }
            Layout::Plain { point } => {
                digits.push_range(out, 0, point);
                out.push(b'.');
                digits.push_range(out, point, digits.count);
            }
            Layout::Whole => digits.push_range(out, 0, digits.count),
            Layout::Scientific { exponent } => {
                digits.push_range(out, 0, 1);
                if digits.count > 1 {
                    out.push(b'.');
                    digits.push_range(out, 1, digits.count);
                }
                out.push(b'E');
                out.push(if exponent < 0 { b'-' } else { b'+' });
                out.extend_from_slice(exponent.unsigned_abs().to_string().as_bytes());
            }
        }
    }

    /// How large the canonical text of a number that is no integer gets.
    pub(super) fn printed(&self) -> Printed {
        let parts = self.parts();
        let digits = parts.coefficient();
        let (count, exponent) = match parts.layout(&digits) {
            Layout::Plain { point } if point <= 0 => (digits.count.saturating_add(1).saturating_sub(point), 0),
            Layout::Plain { .. } | Layout::Whole => (digits.count, 0),
            Layout::Scientific { exponent } => (digits.count, exponent),
        };
        Printed {
            digits: usize::try_from(count).unwrap_or(usize::MAX),
            exponent: u32::try_from(exponent.unsigned_abs()).unwrap_or(u32::MAX),
        }
    }

    /// Writes a text that two numbers share exactly when their values are equal.
    pub(crate) fn write_by_value(&self, out: &mut Vec<u8>) {
        let parts = self.parts();
        if parts.sign() == Ordering::Equal {
            out.push(b'0');
            return;
        }
        if parts.negative {
            out.push(b'-');
        }
        out.extend(parts.significant());
        // The first digit is not zero, so this stops within the number.
        while out.last() == Some(&b'0') {
            out.pop();
        }
        out.push(b'E');
        out.extend_from_slice(parts.adjusted_exponent().to_string().as_bytes());
    }

    /// Writes a text that two numbers share exactly when their values are equal, and that is the usual one where digits
    /// and zeros are few.
    pub(crate) fn write_plain(&self, out: &mut Vec<u8>) {
        let parts = self.parts();
        let exponent = parts.adjusted_exponent();
        if parts.sign() == Ordering::Equal || !(-PLAIN_PLACES_MAX..=PLAIN_PLACES_MAX).contains(&exponent) {
            return self.write_by_value(out);
        }
        if parts.negative {
            out.push(b'-');
        }
        let mut digits: Vec<u8> = parts.significant().collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let zeros = |count: i64| core::iter::repeat_n(b'0', usize::try_from(count).unwrap_or(0));
        let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let whole = exponent.saturating_add(1);
        if whole <= 0 {
            out.extend_from_slice(b"0.");
            out.extend(zeros(whole.saturating_neg()));
            out.extend_from_slice(&digits);
        } else if whole >= count {
            out.extend_from_slice(&digits);
            out.extend(zeros(whole.saturating_sub(count)));
        } else {
            let (before, after) =
                digits.split_at_checked(usize::try_from(whole).unwrap_or(0)).unwrap_or((&digits, &[]));
            out.extend_from_slice(before);
            out.push(b'.');
            out.extend_from_slice(after);
        }
    }

    fn parts(&self) -> Parts<'a> {
        let (negative, rest) = match self.literal.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, self.literal),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            // The parser keeps exponents within ±1,000,000; anything else cannot reach this line.
            Some((mantissa, exponent)) => (mantissa, exponent.parse().unwrap_or(0)),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Parts { negative, whole, fraction, exponent }
    }
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.literal)
    }
}

impl<'a> Parts<'a> {
    /// The digits from the first that is not zero.
    fn significant(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.whole.bytes().chain(self.fraction.bytes()).skip_while(|digit| *digit == b'0')
    }

    /// `Less` for negative, `Equal` for zero, `Greater` for positive.
    fn sign(&self) -> Ordering {
        match (self.significant().next(), self.negative) {
            (None, _) => Ordering::Equal,
            (Some(_), true) => Ordering::Less,
            (Some(_), false) => Ordering::Greater,
        }
    }

    /// The exponent of the first digit that is not zero.
    fn adjusted_exponent(&self) -> i64 {
        let leading_zeros = self.whole.bytes().chain(self.fraction.bytes()).take_while(|digit| *digit == b'0').count();
        let leading_zeros = i64::try_from(leading_zeros).unwrap_or(i64::MAX);
        self.exponent.saturating_add(length(self.whole)).saturating_sub(1).saturating_sub(leading_zeros)
    }

    /// Order of two numbers other than zero, their signs ignored.
    fn cmp_magnitude(&self, other: &Parts<'_>) -> Ordering {
        self.adjusted_exponent().cmp(&other.adjusted_exponent()).then_with(|| {
            let (mut left, mut right) = (self.significant(), other.significant());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return Ordering::Equal,
                    (a, b) => match a.unwrap_or(b'0').cmp(&b.unwrap_or(b'0')) {
                        Ordering::Equal => {}
                        unequal @ (Ordering::Less | Ordering::Greater) => return unequal,
                    },
                }
            }
        })
    }

    fn layout(&self, digits: &Coefficient<'_>) -> Layout {
        let exponent = self.exponent.saturating_sub(length(self.fraction));
        let adjusted = exponent.saturating_add(digits.count).saturating_sub(1);
        match exponent {
            0 => Layout::Whole,
            ..0 if adjusted >= -6 => Layout::Plain { point: digits.count.saturating_add(exponent) },
            _ => Layout::Scientific { exponent: adjusted },
        }
    }

    /// The digits without leading zeros, at least one.
    fn coefficient(&self) -> Coefficient<'a> {
        let whole = self.whole.trim_start_matches('0');
        let fraction = if whole.is_empty() { self.fraction.trim_start_matches('0') } else { self.fraction };
        let (whole, fraction) = if whole.is_empty() && fraction.is_empty() { ("0", "") } else { (whole, fraction) };
        Coefficient { whole, fraction, count: length(whole).saturating_add(length(fraction)) }
    }
}

/// Digits in two pieces, without leading zeros.
struct Coefficient<'a> {
    whole: &'a str,
    fraction: &'a str,
    count: i64,
}

impl Coefficient<'_> {
    /// Appends the digits from `from` up to `to`.
    fn push_range(&self, out: &mut Vec<u8>, from: i64, to: i64) {
        let from = usize::try_from(from).unwrap_or(0);
        let to = usize::try_from(to).unwrap_or(0);
        let middle = self.whole.len();
        let (whole, fraction) = (self.whole.as_bytes(), self.fraction.as_bytes());
        out.extend_from_slice(whole.get(from.min(middle)..to.min(middle)).unwrap_or(&[]));
        out.extend_from_slice(fraction.get(from.saturating_sub(middle)..to.saturating_sub(middle)).unwrap_or(&[]));
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}
