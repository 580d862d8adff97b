//! Whether two expressions always have the same value, by their form.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Query, Select,
    SelectItem, SetExpr, UnaryOperator, Value,
};

use super::scope::same;
use super::{Walker, last};

/// How deep two expressions are compared.
const COMPARED_DEPTH_MAX: u32 = 8;

impl Walker<'_> {
    /// Whether two expressions always have the same value.
    pub(super) fn are_same(&self, one: &Expr, other: &Expr, depth: u32) -> bool {
        if depth > COMPARED_DEPTH_MAX {
            return false;
        }
        let deeper = |left: &Expr, right: &Expr| self.are_same(left, right, depth.saturating_add(1));
        match (bare(one), bare(other)) {
            (Expr::Identifier(one), Expr::Identifier(other)) => same(&one.value, &other.value),
            (Expr::CompoundIdentifier(one), Expr::CompoundIdentifier(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(&one.value, &other.value))
            }
            (Expr::Identifier(column), Expr::CompoundIdentifier(parts))
            | (Expr::CompoundIdentifier(parts), Expr::Identifier(column)) => self.is_only_column(parts, &column.value),
            (Expr::Value(one), Expr::Value(other)) => {
                one.value == other.value && !matches!(one.value, Value::Placeholder(_))
            }
            (Expr::Cast { expr: one, .. }, Expr::Cast { expr: other, .. })
            | (Expr::UnaryOp { expr: one, .. }, Expr::UnaryOp { expr: other, .. }) => deeper(one, other),
            (
                Expr::BinaryOp { left: left_1, op: op_1, right: right_1 },
                Expr::BinaryOp { left: left_2, op: op_2, right: right_2 },
            ) => op_1 == op_2 && deeper(left_1, left_2) && deeper(right_1, right_2),
            (Expr::Function(one), Expr::Function(other)) => match (&one.args, &other.args) {
                (FunctionArguments::None, FunctionArguments::None) => one.name == other.name,
                (FunctionArguments::List(args_1), FunctionArguments::List(args_2)) => {
                    let names = last(&one.name).zip(last(&other.name));
                    names.is_some_and(|(one, other)| same(&one.value, &other.value))
                        && args_1.args.len() == args_2.args.len()
                        && args_1.args.iter().zip(&args_2.args).all(|pair| match pair {
                            (
                                FunctionArg::Unnamed(FunctionArgExpr::Expr(one)),
                                FunctionArg::Unnamed(FunctionArgExpr::Expr(other)),
                            ) => deeper(one, other),
                            (one, other) => one == other,
                        })
                        && one.over == other.over
                        && one.filter == other.filter
                }
                _ => false,
            },
            (Expr::Tuple(one), Expr::Tuple(other)) => alike(one, other, &deeper),
            (Expr::Array(one), Expr::Array(other)) => alike(&one.elem, &other.elem, &deeper),
            // The sides may be spelled alike and still be two parameters: `?`.
            (one, other) => one == other && !matches!(one, Expr::Value(_)) && !one.to_string().contains('?'),
        }
    }

    /// `u.id` and `id` are one column where `u` is all there is.
    fn is_only_column(&self, parts: &[sqlparser::ast::Ident], column: &str) -> bool {
        let [qualifiers @ .., name] = parts else { return false };
        let Some(qualifier) = qualifiers.last() else { return false };
        let only = match self.scopes.as_slice() {
            [scope] => match scope.relations.as_slice() {
                [relation] => same(relation.name, &qualifier.value),
                _ => false,
            },
            _ => false,
        };
        only && same(&name.value, column)
    }
}

fn alike(one: &[Expr], other: &[Expr], are_same: &dyn Fn(&Expr, &Expr) -> bool) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| are_same(one, other))
}

/// An expression without what does not change its value: parentheses, `+ 0`, `* 1`, `|| ''`, a
/// SELECT of nothing else, a choice between the same.
pub(super) fn bare(expr: &Expr) -> &Expr {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Nested(inner)
            | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner }
            | Expr::Collate { expr: inner, .. } => inner,
            Expr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, right } if is_text(right, "0") => {
                left
            }
            Expr::BinaryOp { left, op: BinaryOperator::Plus, right } if is_text(left, "0") => right,
            Expr::BinaryOp { left, op: BinaryOperator::Multiply | BinaryOperator::Divide, right }
                if is_text(right, "1") =>
            {
                left
            }
            Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } if is_text(left, "1") => right,
            Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } if is_text(right, "") => left,
            Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } if is_text(left, "") => right,
            Expr::Subquery(query) => match only_value(query) {
                Some(inner) => inner,
                None => return expr,
            },
            Expr::Function(function) => match one_value(function) {
                Some(inner) => inner,
                None => return expr,
            },
            Expr::Case { conditions, else_result: Some(otherwise), .. }
                if conditions.iter().all(|case| case.result == **otherwise) =>
            {
                otherwise
            }
            _ => return expr,
        };
    }
}

pub(super) fn is_call_without_arguments(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Function(function) => match &function.args {
            FunctionArguments::None => true,
            FunctionArguments::List(list) => list.args.is_empty(),
            FunctionArguments::Subquery(_) => false,
        },
        _ => false,
    }
}

pub(super) fn is_text(expr: &Expr, text: &str) -> bool {
    match expr {
        Expr::Value(value) => matches!(&value.value,
            Value::Number(literal, _) | Value::SingleQuotedString(literal) if literal == text),
        _ => false,
    }
}

/// The SELECT that a query is, if it has neither named queries nor limits.
fn only_select(query: &Query) -> Option<&Select> {
    match query.body.as_ref() {
        SetExpr::Select(select) if query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none() => {
            Some(select)
        }
        _ => None,
    }
}

/// The value of a SELECT that has one and reads no table.
pub(super) fn only_value(query: &Query) -> Option<&Expr> {
    let select = only_select(query)?;
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }]
            if select.from.is_empty() && select.selection.is_none() && select.having.is_none() =>
        {
            Some(expr)
        }
        _ => None,
    }
}

/// An aggregate of everything has one row, whatever there is.
pub(super) fn always_has_row(query: &Query) -> bool {
    let Some(select) = only_select(query) else { return false };
    let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let is_aggregate = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(Expr::Function(function))
        | SelectItem::ExprWithAlias { expr: Expr::Function(function), .. } => {
            function.over.is_none() && is_named(function, &["avg", "count", "max", "min", "sum"])
        }
        _ => false,
    };
    ungrouped && select.having.is_none() && select.projection.iter().any(is_aggregate)
}

/// Whether a function has one of these names.
pub(super) fn is_named(function: &Function, names: &[&str]) -> bool {
    last(&function.name).is_some_and(|name| names.iter().any(|known| name.value.eq_ignore_ascii_case(known)))
}

/// The arguments of a call, if all are plain expressions.
pub(super) fn plain_arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let plain = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

/// `COALESCE(1, x)` is `1`, `COALESCE(x, x)` is `x`, and `IF(x, 1, 1)` is `1`.
fn one_value(function: &Function) -> Option<&Expr> {
    if is_named(function, &["if", "iff", "iif"]) {
        return match plain_arguments(function)?.as_slice() {
            [_, one, other] if one == other => Some(one),
            _ => None,
        };
    }
    if !is_named(function, &["coalesce", "ifnull", "nvl"]) {
        return None;
    }
    let args = plain_arguments(function)?;
    let first = *args.first()?;
    (is_literal(first) || args.iter().all(|arg| *arg == first)).then_some(first)
}

/// A literal that is not NULL.
pub(super) fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_) | Value::Null),
        _ => false,
    }
}

/// A text that is put together from literals.
pub(super) fn folded_text(expr: &Expr, depth: u32) -> Option<String> {
    if depth > COMPARED_DEPTH_MAX {
        return None;
    }
    let deeper = |expr: &Expr| folded_text(expr, depth.saturating_add(1));
    match bare(expr) {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text)
            | Value::NationalStringLiteral(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text) => Some(text.clone()),
            Value::DollarQuotedString(text) => Some(text.value.clone()),
            _ => None,
        },
        Expr::Cast { expr, .. } => deeper(expr),
        Expr::TypedString(typed) => deeper(&Expr::Value(typed.value.clone())),
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat | BinaryOperator::Plus, right } => {
            Some(deeper(left)? + &deeper(right)?)
        }
        Expr::Function(function) if is_named(function, &["concat", "lower", "upper"]) => {
            plain_arguments(function)?.into_iter().map(deeper).collect()
        }
        _ => None,
    }
}
