//! The normal text of a claim, and the certificate.
//!
//! Normal text is what a third party reads: ASCII, Python's operators, one blank around those with two operands, no
//! parentheses but the necessary ones, no separators, `20%` as `20 / 100`. Read again, it is its own normal text.

use super::claim::{Claim, Domain, Level, Operator};
use super::lex::{Literal, Relation};
use super::refusal::{Reason, Refusal};
use crate::outcome::Status;

/// The certificate: one line of canonical JSON.
///
/// `values` has the value of each side, as `n` or `n/d` in lowest terms. Where it ends in `null`, that side divides by
/// zero. Nothing needs escaping: normal text and values are made of digits, signs and blanks.
pub(super) fn certificate(expression: &str, values: &[Option<String>], status: Status) -> String {
    let quoted = values.iter().map(|value| value.as_ref().map_or("null".to_owned(), |value| format!("\"{value}\"")));
    let values = quoted.collect::<Vec<_>>().join(",");
    format!("{{\"expression\":\"{expression}\",\"status\":\"{status}\",\"values\":[{values}]}}")
}

/// The normal text of a claim.
pub(super) fn normal(claim: &Claim) -> Result<String, Refusal> {
    let mut text = claim.first.fold(&mut Normal)?.text;
    for link in &claim.links {
        text.push_str(relation_sign(link.relation));
        text.push_str(&link.side.fold(&mut Normal)?.text);
    }
    Ok(text)
}

/// The domain of texts.
pub(super) struct Normal;

/// A text and how tightly its outermost operator binds.
pub(super) struct Written {
    text: String,
    level: Level,
}

impl Domain for Normal {
    type Value = Written;

    fn number(&mut self, literal: &Literal) -> Result<Written, Reason> {
        let mut text = literal.whole.clone();
        if !literal.fraction.is_empty() {
            text.push('.');
            text.push_str(&literal.fraction);
        }
        if literal.exponent != 0 {
            text.push('e');
            text.push_str(&literal.exponent.to_string());
        }
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::parse::parse;

    fn normal_text(query: &str) -> String {
        parse(query, None).and_then(|claim| normal(&claim)).expect(query)
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
            "((2^3)^2)%", "(-2)^(-2)",
        ];
        for query in queries {
            let text = normal_text(query);
            assert_eq!(normal_text(&text), text);
        }
    }

    #[test]
    fn a_certificate_is_one_line_with_its_keys_in_order() {
        assert_eq!(
            certificate("1 = 1 / 0", &[Some("1".to_owned()), None], Status::Failed),
            r#"{"engine":"math","expression":"1 = 1 / 0","format":1,"status":"FAILED","values":["1",null],"version":1}"#
        );
    }
}
