//! The normal text of a claim.
//!
//! Normal text is what a third party reads: ASCII, Python's operators, one blank around those with two operands, no
//! parentheses but the necessary ones, no separators, no units, `20%` as `20 / 100`. Read again, it is its own normal
//! text.

use super::claim::{Claim, Domain, Level, Operator, Rounding};
use super::lex::{Literal, Relation};
use super::no_value::{NoValue, Reason};
use super::vocabulary::{Constant, Function};

/// The normal text of a claim.
pub(super) fn normal(claim: &Claim) -> Result<String, NoValue> {
    let mut text = claim.first.fold(&mut Normal)?.text;
    for link in &claim.links {
        text.push_str(relation_sign(link.relation));
        text.push_str(&link.side.fold(&mut Normal)?.text);
    }
    match claim.rounding {
        None => {}
        Some(Rounding::DecimalPlaces(digits)) => text.push_str(&format!(" to {digits} dp")),
        Some(Rounding::SignificantFigures(digits)) => text.push_str(&format!(" to {digits} sf")),
    }
    Ok(text)
}

/// The domain of texts.
pub(super) struct Normal;

/// A text and how tightly its outermost operator binds.
pub(super) struct Written {
    pub(super) text: String,
    level: Level,
}

impl Domain for Normal {
    type Value = Written;

    fn number(&mut self, literal: &Literal<'_>) -> Result<Written, Reason> {
        let mut text =
            String::with_capacity(literal.whole.len().saturating_add(literal.fraction.len()).saturating_add(8));
        text.push_str(&literal.whole);
        if !literal.fraction.is_empty() {
            text.push('.');
            text.push_str(literal.fraction);
        }
        if literal.exponent != 0 {
            text.push('e');
            text.push_str(&literal.exponent.to_string());
        }
        Ok(Written { text, level: Level::Atom })
    }

    fn constant(&mut self, constant: Constant) -> Result<Written, Reason> {
        Ok(Written { text: constant.name().to_owned(), level: Level::Atom })
    }

    fn variable(&mut self, name: &str) -> Result<Written, Reason> {
        Ok(Written { text: name.to_owned(), level: Level::Atom })
    }

    fn call(&mut self, function: Function, operands: Vec<Written>) -> Result<Written, Reason> {
        let mut text = format!("{}(", function.name());
        for (index, operand) in operands.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { ", " });
            text.push_str(&operand.text);
        }
        text.push(')');
        Ok(Written { text, level: Level::Atom })
    }

    fn negate(&mut self, operand: Written) -> Result<Written, Reason> {
        Ok(Written { text: format!("-{}", operand.at_least(Level::Power)), level: Level::Sign })
    }

    fn binary(&mut self, operator: Operator, left: Written, right: Written) -> Result<Written, Reason> {
        let level = operator.level();
        // The weakest that may stand on either side without parentheses; equal strength goes left, for powers right.
        let (left_least, right_least) = match level {
            Level::Sum => (Level::Sum, Level::Product),
            Level::Product | Level::Sign => (Level::Product, Level::Sign),
            Level::Power | Level::Atom => (Level::Atom, Level::Sign),
        };
        let mut text = left.at_least(left_least);
        text.push_str(operator_sign(operator));
        text.push_str(&right.at_least(right_least));
        Ok(Written { text, level })
    }
}

impl Written {
    /// The text, in parentheses if it binds more weakly than it must.
    fn at_least(self, least: Level) -> String {
        if self.level < least { format!("({})", self.text) } else { self.text }
    }
}

fn operator_sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => " + ",
        Operator::Subtract => " - ",
        Operator::Multiply => " * ",
        Operator::Divide => " / ",
        Operator::FloorDivide => " // ",
        Operator::Modulo => " % ",
        Operator::Power => " ** ",
    }
}

fn relation_sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => " = ",
        Relation::NotEqual => " != ",
        Relation::Less => " < ",
        Relation::LessOrEqual => " <= ",
        Relation::Greater => " > ",
        Relation::GreaterOrEqual => " >= ",
        Relation::Approximate => " ~= ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::claim::Statement;
    use crate::math::statement::parse;

    fn normal_text(query: &str) -> String {
        match parse(query, None) {
            Ok(Statement::Claim(claim)) => normal(&claim).expect(query),
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn numbers_lose_their_separators_and_keep_their_digits() {
        for (query, expected) in
            [("1,234.50", "1234.50"), (".5", "0.5"), ("1E+05", "1e5"), ("1e-0", "1"), ("2e-3", "2e-3")]
        {
            assert_eq!(normal_text(query), expected);
        }
    }

    #[test]
    fn normal_text_is_a_fixed_point() {
        #[rustfmt::skip]
        let queries = [
            "-(-(2^(3%)))^2*(1-(2-3))/(4/(5*6))", "7 % -3 - -2^-2", "20% + 7 % -3", "1 <= 2 ≠ 3 ÷ (4 % 5)",
            "((2^3)^2)%", "(-2)^(-2)", "80 + 15% - 5%", "2(3 + 4)x²y", "max(1, 200) + 5! = √2 to 3 sf", "$5 + 3% ≈ 5.2",
        ];
        for query in queries {
            let text = normal_text(query);
            assert_eq!(normal_text(&text), text);
        }
    }
}
