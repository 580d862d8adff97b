//! Units: whether numbers of the same thing are added and compared.
//!
//! Units take no part in the calculation. A claim whose numbers are right is still not verified if it adds kilometres
//! to metres, or says that euros equal dollars; nothing is converted.

use super::claim::{Claim, Domain, Expression, Operator, StepKind};
use super::lex::Literal;
use super::no_value::{NoValue, Reason};
use super::vocabulary::{Constant, Function, Unit};

/// Checks the units of a claim; one without any passes.
pub(super) fn check(claim: &Claim) -> Result<(), NoValue> {
    if !claim.has(|kind| matches!(kind, StepKind::Unit(_))) {
        return Ok(());
    }
    let mut before = claim.first.fold(&mut Units)?;
    for link in &claim.links {
        let side = link.side.fold(&mut Units)?;
        if !comparable(&before, &side) {
            return Err(link.side.refuse(Reason::Units, link.side.span.start));
        }
        // A side without units says nothing about those that follow.
        if !side.powers.is_empty() || before.powers.is_empty() {
            before = side;
        }
    }
    Ok(())
}

/// A value with the unit that an expression has; `None` where that cannot be written simply.
pub(super) fn measured(side: &Expression, value: &str) -> Option<String> {
    if !side.steps.iter().any(|step| matches!(step.kind, StepKind::Unit(_))) {
        return Some(value.to_owned());
    }
    let dimension = side.fold(&mut Units).ok()?;
    match dimension.powers.as_slice() {
        [] => Some(value.to_owned()),
        [(unit, 1)] => match (unit.sign(), value.strip_prefix('-')) {
            (_, _) if value.contains('/') => {
                Some(unit.spelling()).filter(|word| !word.is_empty()).map(|word| format!("({value}) {word}"))
            }
            (Some(sign), None) => Some(format!("{sign}{value}")),
            (Some(sign), Some(size)) => Some(format!("-{sign}{size}")),
            (None, _) => Some(format!("{value} {}", unit.spelling())),
        },
        _ => None,
    }
}

/// Equal units; or none on one side, as in `15% of $80 = 12`, unless the unit could be taken for an unknown, or the
/// units of that side have cancelled out, as in `$10 / $5`.
fn comparable(left: &Dimension, right: &Dimension) -> bool {
    let plain = |one: &Dimension, other: &Dimension| {
        one.powers.is_empty() && !one.cancelled && other.powers.iter().all(|(unit, _)| !has_letter(*unit))
    };
    left.powers == right.powers || plain(left, right) || plain(right, left)
}

/// Whether a single letter is one of its spellings.
fn has_letter(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::Metre
            | Unit::Gram
            | Unit::Litre
            | Unit::Hour
            | Unit::Second
            | Unit::Watt
            | Unit::Volt
            | Unit::Ampere
            | Unit::Joule
            | Unit::Newton
            | Unit::Byte
    )
}

/// What an expression is a number of.
struct Dimension {
    /// In the order of the units, none with the exponent zero; empty for a plain number.
    powers: Vec<(Unit, i32)>,
    /// The number, where it is one that is written down and small.
    literal: Option<i32>,
    /// Whether units have cancelled out: then it is a plain number, and not one whose unit was left out.
    cancelled: bool,
}

/// The domain of units.
struct Units;

impl Domain for Units {
    type Value = Dimension;

    fn number(&mut self, literal: &Literal<'_>) -> Result<Dimension, Reason> {
        Ok(Dimension { literal: literal.small(), ..Dimension::plain() })
    }

    fn constant(&mut self, _: Constant) -> Result<Dimension, Reason> {
        Ok(Dimension::plain())
    }

    /// What an unknown is a number of is not known.
    fn variable(&mut self, _: &str) -> Result<Dimension, Reason> {
        Err(Reason::Units)
    }

    fn negate(&mut self, operand: Dimension) -> Result<Dimension, Reason> {
        Ok(Dimension { literal: operand.literal.and_then(i32::checked_neg), ..operand })
    }

    fn binary(&mut self, operator: Operator, left: Dimension, right: Dimension) -> Result<Dimension, Reason> {
        match operator {
            Operator::Add | Operator::Subtract | Operator::Modulo => same(vec![left, right]),
            Operator::Multiply => left.times(&right, 1),
            Operator::Divide | Operator::FloorDivide => left.times(&right, -1),
            Operator::Power if left.powers.is_empty() && right.powers.is_empty() => {
                Ok(Dimension { cancelled: left.cancelled || right.cancelled, ..Dimension::plain() })
            }
            Operator::Power => {
                let exponent = right.literal.filter(|_| right.powers.is_empty()).ok_or(Reason::Units)?;
                let power = Dimension { literal: None, ..left };
                Dimension::plain().times(&power, exponent)
            }
        }
    }

    fn call(&mut self, function: Function, operands: Vec<Dimension>) -> Result<Dimension, Reason> {
        match function {
            Function::Abs
            | Function::Min
            | Function::Max
            | Function::Sum
            | Function::Mean
            | Function::Median
            | Function::Floor
            | Function::Ceil => same(operands),
            Function::Round => operands.into_iter().next().ok_or(Reason::NotUnderstood),
            Function::Sqrt
            | Function::Cbrt
            | Function::Factorial
            | Function::Gcd
            | Function::Lcm
            | Function::Mod
            | Function::Exp
            | Function::Ln
            | Function::Log
            | Function::Log10
            | Function::Log2
            | Function::Sin
            | Function::Cos
            | Function::Tan => {
                let plain = operands.iter().all(|operand| operand.powers.is_empty());
                let cancelled = operands.iter().any(|operand| operand.cancelled);
                if plain { Ok(Dimension { cancelled, ..Dimension::plain() }) } else { Err(Reason::Units) }
            }
        }
    }

    fn unit(&mut self, operand: Dimension, powers: &[(Unit, i32)]) -> Result<Dimension, Reason> {
        powers.iter().try_fold(operand, |dimension, power| {
            dimension.times(&Dimension { powers: vec![*power], ..Dimension::plain() }, 1)
        })
    }
}

fn same(operands: Vec<Dimension>) -> Result<Dimension, Reason> {
    let mut operands = operands.into_iter();
    let first = operands.next().ok_or(Reason::NotUnderstood)?;
    let mut cancelled = first.cancelled;
    let same = operands.all(|operand| {
        cancelled |= operand.cancelled;
        operand.powers == first.powers
    });
    if same { Ok(Dimension { literal: None, cancelled, ..first }) } else { Err(Reason::Units) }
}

impl Dimension {
    fn plain() -> Dimension {
        Dimension { powers: Vec::new(), literal: None, cancelled: false }
    }

    /// Multiplied by a power of another.
    fn times(mut self, other: &Dimension, exponent: i32) -> Result<Dimension, Reason> {
        for (unit, power) in &other.powers {
            let power = power.checked_mul(exponent).ok_or(Reason::Units)?;
            match self.powers.binary_search_by_key(unit, |(unit, _)| *unit) {
                Ok(index) => {
                    if let Some((_, sum)) = self.powers.get_mut(index) {
                        *sum = sum.checked_add(power).ok_or(Reason::Units)?;
                    }
                }
                Err(index) => self.powers.insert(index, (*unit, power)),
            }
        }
        let all = self.powers.len();
        self.powers.retain(|(_, power)| *power != 0);
        self.cancelled |= other.cancelled || self.powers.len() < all;
        self.literal = None;
        Ok(self)
    }
}
