//! Conditions that are always true or always false.
//!
//! A part of a condition that is made of literals only says nothing about the data; so does `x = x`. Nobody who means
//! well needs either, and an injected text has one almost always.

use sqlparser::ast::{BinaryOperator, Expr, Function, UnaryOperator, Value};

use super::Walker;
use super::expr::place;
use super::likeness::{
    always_has_row, bare, folded_text, is_call_without_arguments, is_literal, is_named, is_text, only_value,
    plain_arguments,
};

/// How many neighbours a part of a disjunction is compared with.
const NEIGHBOURS_MAX: usize = 8;

impl<'a> Walker<'a> {
    /// A condition: WHERE, HAVING, ON, WHEN and the like.
    pub(super) fn predicate(&mut self, expr: &'a Expr) {
        if !self.deeper() {
            return;
        }
        match expr {
            Expr::Nested(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, expr: inner } => self.predicate(inner),
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => {
                self.connective(expr);
            }
            other => {
                let before = self.data;
                let constant = self.expr(other);
                let without_data = self.data == before && !is_sample(other);
                if constant || without_data || self.is_self_evident(other) {
                    self.tautology(other);
                }
            }
        }
        self.back_up();
    }

    pub(super) fn tautology(&mut self, expr: &Expr) {
        self.found.tautology.get_or_insert(place(expr));
    }

    /// A chain of AND and OR leans to the left and can be long.
    fn connective(&mut self, expr: &'a Expr) {
        let mut expr = expr;
        let mut alternatives: Vec<&Expr> = Vec::new();
        let mut demands: Vec<&Expr> = Vec::new();
        while let Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } = expr {
            self.predicate(right);
            if *op == BinaryOperator::Or {
                self.exhaustive(&demands, &BinaryOperator::And);
                demands.clear();
                alternatives.push(right);
            } else {
                self.exhaustive(&alternatives, &BinaryOperator::Or);
                alternatives.clear();
                demands.push(right);
            }
            expr = left;
        }
        self.predicate(expr);
        alternatives.push(expr);
        demands.push(expr);
        self.exhaustive(&alternatives, &BinaryOperator::Or);
        self.exhaustive(&demands, &BinaryOperator::And);
    }

    /// Whether one part holds exactly when another does not: then one of them always holds, and never both.
    fn exhaustive(&mut self, parts: &[&'a Expr], joined_by: &BinaryOperator) {
        for (index, one) in parts.iter().enumerate() {
            let later = parts.iter().skip(index.saturating_add(1)).take(NEIGHBOURS_MAX);
            for other in later {
                let overlap = *joined_by == BinaryOperator::Or && self.overlap(one, other);
                if overlap || self.are_opposites(one, other) {
                    self.tautology(one);
                    return;
                }
            }
        }
    }

    /// `x <> 1 OR x <> 2`, `x <= 1 OR x >= 1`: one of them always holds, or both.
    fn overlap(&self, one: &Expr, other: &Expr) -> bool {
        use BinaryOperator::{GtEq, LtEq, NotEq};
        match (bare(one), bare(other)) {
            (
                Expr::BinaryOp { left: left_1, op: op_1, right: right_1 },
                Expr::BinaryOp { left: left_2, op: op_2, right: right_2 },
            ) if self.are_same(left_1, left_2, 0) => match (op_1, op_2) {
                (NotEq, NotEq) => is_literal(right_1) && is_literal(right_2) && right_1 != right_2,
                (LtEq, GtEq) | (GtEq, LtEq) => self.are_same(right_1, right_2, 0),
                _ => false,
            },
            _ => false,
        }
    }

    fn are_opposites(&self, one: &Expr, other: &Expr) -> bool {
        let same = |left: &Expr, right: &Expr| self.are_same(left, right, 0);
        match (bare(one), bare(other)) {
            (Expr::IsNull(left), Expr::IsNotNull(right)) | (Expr::IsNotNull(left), Expr::IsNull(right)) => {
                same(left, right)
            }
            (Expr::UnaryOp { op: UnaryOperator::Not, expr: inner }, outer)
            | (outer, Expr::UnaryOp { op: UnaryOperator::Not, expr: inner }) => same(inner, outer),
            (
                Expr::BinaryOp { left: left_1, op: op_1, right: right_1 },
                Expr::BinaryOp { left: left_2, op: op_2, right: right_2 },
            ) => {
                let straight = is_opposite(op_1, op_2) && same(left_1, left_2) && same(right_1, right_2);
                let equality = matches!(op_1, BinaryOperator::Eq | BinaryOperator::NotEq);
                straight || (equality && is_opposite(op_1, op_2) && same(left_1, right_2) && same(right_1, left_2))
            }
            (Expr::IsTrue(left), Expr::IsNotTrue(right))
            | (Expr::IsNotTrue(left), Expr::IsTrue(right))
            | (Expr::IsFalse(left), Expr::IsNotFalse(right))
            | (Expr::IsNotFalse(left), Expr::IsFalse(right))
            | (Expr::IsUnknown(left), Expr::IsNotUnknown(right))
            | (Expr::IsNotUnknown(left), Expr::IsUnknown(right)) => same(left, right),
            (
                Expr::Between { expr: left_1, negated: negated_1, low: low_1, high: high_1 },
                Expr::Between { expr: left_2, negated: negated_2, low: low_2, high: high_2 },
            ) => negated_1 != negated_2 && same(left_1, left_2) && same(low_1, low_2) && same(high_1, high_2),
            (
                Expr::InList { expr: left_1, list: list_1, negated: negated_1 },
                Expr::InList { expr: left_2, list: list_2, negated: negated_2 },
            ) => {
                negated_1 != negated_2
                    && same(left_1, left_2)
                    && list_1.len() == list_2.len()
                    && list_1.iter().zip(list_2).all(|(left, right)| same(left, right))
            }
            (Expr::InList { expr, list, negated }, Expr::BinaryOp { left, op, right })
            | (Expr::BinaryOp { left, op, right }, Expr::InList { expr, list, negated }) => {
                let opposite = if *negated { BinaryOperator::Eq } else { BinaryOperator::NotEq };
                match list.as_slice() {
                    [item] => *op == opposite && same(expr, left) && same(item, right),
                    _ => false,
                }
            }
            (
                Expr::Like { negated: negated_1, expr: left_1, pattern: right_1, .. },
                Expr::Like { negated: negated_2, expr: left_2, pattern: right_2, .. },
            ) => negated_1 != negated_2 && same(left_1, left_2) && same(right_1, right_2),
            _ => false,
        }
    }

    /// A comparison of something with itself, or a pattern that everything matches.
    fn is_self_evident(&self, expr: &Expr) -> bool {
        let same = |left: &Expr, right: &Expr| self.are_same(left, right, 0);
        match expr {
            Expr::BinaryOp { left, op, right } => {
                let matches = is_match(op) && (matches_all(right) || (is_regex(op) && is_text(right, "")));
                let fixed = self.is_fixed(left) && self.is_fixed(right);
                let evident = fixed || same(left, right) || self.is_truth(left, right) || is_size(left, op, right);
                matches || (is_comparison(op) && evident)
            }
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => match bare(right) {
                Expr::Array(array) => array.elem.iter().any(|item| same(left, item)),
                Expr::Tuple(items) => items.iter().any(|item| same(left, item)),
                item => same(left, item),
            },
            Expr::InUnnest { expr, array_expr, negated: _ } => match bare(array_expr) {
                Expr::Array(array) => array.elem.iter().any(|item| same(expr, item)),
                _ => false,
            },
            Expr::InSubquery { expr, subquery, negated: _ } => {
                only_value(subquery).is_some_and(|value| same(expr, value))
            }
            Expr::Exists { subquery, negated: _ } => always_has_row(subquery),
            Expr::Function(function) => matches_everything(function) || is_literal(bare(expr)),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => same(left, right),
            Expr::InList { expr, list, negated: _ } => list.iter().any(|item| same(expr, item)),
            Expr::Between { expr, negated: _, low, high } => same(expr, low) || same(expr, high),
            Expr::Like { expr, pattern, .. }
            | Expr::ILike { expr, pattern, .. }
            | Expr::SimilarTo { expr, pattern, .. } => {
                same(expr, pattern) || matches_all(pattern) || self.surrounds(pattern, expr)
            }
            Expr::RLike { expr, pattern, .. } => same(expr, pattern) || matches_all(pattern) || is_text(pattern, ""),
            // What needs no row is there or not, whatever the row.
            Expr::IsNull(expr) | Expr::IsNotNull(expr) => is_call_without_arguments(expr) || self.is_never_open(expr),
            Expr::Case { operand: _, conditions, else_result: Some(otherwise), .. } => {
                let otherwise = bare(otherwise);
                matches!(otherwise, Expr::Value(_)) && conditions.iter().all(|case| same(&case.result, otherwise))
            }
            _ => false,
        }
    }
}

impl Walker<'_> {
    /// A comparison of a truth value with something that is evident itself: `true = (x = x)`.
    fn is_truth(&self, left: &Expr, right: &Expr) -> bool {
        match (bare(left), bare(right)) {
            (Expr::Value(truth), Expr::BinaryOp { left, op, right })
            | (Expr::BinaryOp { left, op, right }, Expr::Value(truth)) => {
                matches!(truth.value, Value::Boolean(_)) && is_comparison(op) && self.are_same(left, right, 0)
            }
            _ => false,
        }
    }

    /// A pattern made of the text itself: `x LIKE '%' || x || '%'`.
    fn surrounds(&self, pattern: &Expr, text: &Expr) -> bool {
        let mut parts = Vec::new();
        let mut rest = bare(pattern);
        while let Expr::BinaryOp { left, op: BinaryOperator::StringConcat | BinaryOperator::Plus, right } = rest {
            parts.push(&**right);
            rest = bare(left);
        }
        match rest {
            Expr::Function(function) if is_named(function, &["concat"]) => {
                parts.extend(plain_arguments(function).unwrap_or_default());
            }
            other => parts.push(other),
        }
        let (own, other): (Vec<&Expr>, Vec<&Expr>) = parts.into_iter().partition(|part| self.are_same(part, text, 0));
        own.len() == 1 && other.into_iter().all(|part| is_text(bare(part), "%"))
    }

    /// A value that is the same for every row, though it names a column: `x - x`, `x * 0`.
    fn is_fixed(&self, expr: &Expr) -> bool {
        match bare(expr) {
            Expr::BinaryOp { left, op: BinaryOperator::Minus | BinaryOperator::Divide, right } => {
                self.are_same(left, right, 0)
            }
            Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => is_text(left, "0") || is_text(right, "0"),
            other => is_literal(other),
        }
    }

    /// Whether it is known by its form that an expression is NULL, or that it is not.
    fn is_never_open(&self, expr: &Expr) -> bool {
        match bare(expr) {
            Expr::IsNull(_) | Expr::IsNotNull(_) => true,
            Expr::Function(function) => match plain_arguments(function) {
                Some(args) if is_named(function, &["coalesce", "ifnull", "nvl"]) => args.into_iter().any(is_literal),
                Some(args) if is_named(function, &["nullif"]) => match args.as_slice() {
                    [one, other] => self.are_same(one, other, 0),
                    _ => false,
                },
                _ => false,
            },
            other => is_literal(other),
        }
    }
}

/// A length or a number of rows is never less than nothing.
fn is_size(left: &Expr, operator: &BinaryOperator, right: &Expr) -> bool {
    let names =
        ["char_length", "character_length", "count", "count_big", "datalength", "len", "length", "octet_length"];
    match bare(left) {
        Expr::Function(function) => {
            matches!(operator, BinaryOperator::GtEq | BinaryOperator::Lt)
                && is_text(right, "0")
                && is_named(function, &names)
        }
        _ => false,
    }
}

/// A part of the rows by chance: `random() < 0.01`. It says nothing about the data, and is meant so.
fn is_sample(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Lt | BinaryOperator::LtEq, right } => {
            let chance = match bare(left) {
                Expr::Function(function) => is_named(function, &["rand", "random"]),
                _ => false,
            };
            let share = match bare(right) {
                Expr::Value(value) => matches!(&value.value, Value::Number(number, _)
                    if number.starts_with("0.") || number.starts_with('.')),
                _ => false,
            };
            chance && share
        }
        _ => false,
    }
}

/// A call that asks for a pattern which everything matches.
fn matches_everything(function: &Function) -> bool {
    let args = plain_arguments(function).unwrap_or_default();
    match args.as_slice() {
        [pattern, _] if is_named(function, &["glob", "like"]) => matches_all(pattern),
        [_, pattern, ..] if is_named(function, &["regexp_contains", "regexp_like", "rlike"]) => {
            matches_all(pattern) || is_text(pattern, "")
        }
        [_, part] if is_named(function, &["contains", "ends_with", "endswith", "starts_with", "startswith"]) => {
            is_text(part, "")
        }
        [one, other] if is_named(function, &["equal_null"]) => one == other,
        _ => false,
    }
}

fn is_comparison(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
            | BinaryOperator::Spaceship
            | BinaryOperator::PGRegexMatch
            | BinaryOperator::PGLikeMatch
    )
}

fn is_match(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
            | BinaryOperator::PGLikeMatch
            | BinaryOperator::PGILikeMatch
            | BinaryOperator::PGNotLikeMatch
            | BinaryOperator::PGNotILikeMatch
            | BinaryOperator::Regexp
            | BinaryOperator::Glob
    )
}

fn is_regex(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
            | BinaryOperator::Regexp
    )
}

/// Whether the one comparison holds exactly when the other does not.
fn is_opposite(one: &BinaryOperator, other: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!((one, other), (Eq, NotEq) | (NotEq, Eq) | (Lt, GtEq) | (GtEq, Lt) | (Gt, LtEq) | (LtEq, Gt))
}

/// A pattern of LIKE, GLOB or a regular expression that matches everything.
fn matches_all(pattern: &Expr) -> bool {
    match bare(pattern) {
        Expr::Array(patterns) => patterns.elem.iter().any(matches_every_text),
        Expr::Tuple(patterns) => patterns.iter().any(matches_every_text),
        pattern => matches_every_text(pattern),
    }
}

fn matches_every_text(pattern: &Expr) -> bool {
    folded_text(pattern, 0).is_some_and(|text| {
        matches!(text.as_str(), "*" | ".*" | "^" | "$" | "^.*" | ".*$" | "^.*$")
            || (!text.is_empty() && text.bytes().all(|byte| byte == b'%'))
    })
}
