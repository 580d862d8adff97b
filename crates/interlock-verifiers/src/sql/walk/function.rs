//! Function calls: only those known to be harmless, or named by the operator.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, ListAggOnOverflow,
    ObjectName, WindowType,
};

use super::{Name, RefusedFunction, Walker, last, position};
use crate::sql::dialect::Dialect;
use crate::sql::functions::{Effect, effect_of};
use crate::sql::keywords;

impl<'a> Walker<'a> {
    /// Walks a call; true if its value depends on literals only.
    pub(super) fn function(&mut self, function: &'a Function) -> bool {
        let Function { name, uses_odbc_syntax, parameters, args, within_group, filter, null_treatment: _, over } =
            function;
        self.absent(!uses_odbc_syntax, "an escape of ODBC");
        self.absent(matches!(parameters, FunctionArguments::None), "parameters of a function");
        let effect = self.call(name);
        let mut constant = effect == Some(Effect::Pure);
        // Aggregates, and what the operator named. Without arguments it is the time, chance, or the server's name.
        let word = last(name).map_or("", |name| name.value.as_str());
        let has_arguments = match args {
            FunctionArguments::None => false,
            FunctionArguments::Subquery(_) => true,
            FunctionArguments::List(list) => !list.args.is_empty(),
        };
        let is_own = effect_of(word, self.dialect).is_none();
        let of_server =
            keywords::is_time_or_chance(word) || !(has_arguments || over.is_some() || !within_group.is_empty());
        if is_own || (effect == Some(Effect::Varying) && !of_server) {
            self.meets_data();
        }
        match args {
            FunctionArguments::None => constant = false,
            FunctionArguments::Subquery(query) => {
                self.query(query);
                constant = false;
            }
            FunctionArguments::List(list) => {
                constant &= self.args(name, &list.args) && !list.args.is_empty();
                for clause in &list.clauses {
                    self.clause(clause);
                }
            }
        }
        self.order_exprs(within_group);
        if let Some(filter) = filter {
            self.predicate(filter);
        }
        match over {
            None => {}
            Some(WindowType::NamedWindow(name)) => self.ident(name),
            Some(WindowType::WindowSpec(window)) => self.window(window),
        }
        constant && over.is_none() && within_group.is_empty()
    }

    /// Judges the name of a function.
    pub(super) fn call(&mut self, name: &'a ObjectName) -> Option<Effect> {
        self.found.functions.push(Name::Object(name));
        let effect = self.effect(name);
        match effect {
            Some(Effect::Pure | Effect::Varying) => {}
            Some(Effect::Harmful) | None => {
                let at = last(name).map_or(0, position);
                let harmful = effect == Some(Effect::Harmful);
                self.refuse(RefusedFunction { at, harmful });
            }
        }
        effect
    }

    /// A function that may not be called: the first is kept, and whether any does harm.
    pub(super) fn refuse(&mut self, function: RefusedFunction) {
        let refused = self.found.function.get_or_insert(function);
        refused.harmful |= function.harmful;
    }

    /// What a function is known to do.
    fn effect(&mut self, name: &'a ObjectName) -> Option<Effect> {
        let Some(last) = last(name) else {
            self.unknown("a name that is computed");
            return None;
        };
        let word = last.value.as_str();
        // A name in quotes that is not spelled as the server spells it is another function.
        let spelled = match (last.quote_style, self.dialect) {
            (None, _) => true,
            (Some(_), Dialect::Postgres) => !word.bytes().any(|byte| byte.is_ascii_uppercase()),
            (Some(_), Dialect::Snowflake) => !word.bytes().any(|byte| byte.is_ascii_lowercase()),
            (Some(_), Dialect::Mysql | Dialect::Sqlite | Dialect::Mssql | Dialect::Bigquery) => true,
        };
        if self.rules.allows_function(name) {
            return Some(Effect::Varying);
        }
        let known = effect_of(word, self.dialect);
        if known == Some(Effect::Harmful) {
            return known;
        }
        let builtin = match name.0.as_slice() {
            [_] => true,
            [schema, _] => {
                let schema = schema.as_ident().map_or("", |schema| schema.value.as_str());
                match self.dialect {
                    Dialect::Postgres => schema == "pg_catalog",
                    Dialect::Bigquery => schema.eq_ignore_ascii_case("safe"),
                    Dialect::Mysql | Dialect::Sqlite | Dialect::Mssql | Dialect::Snowflake => false,
                }
            }
            _ => false,
        };
        known.filter(|_| builtin && spelled)
    }

    /// The arguments of a call; true if all are literals.
    pub(super) fn args(&mut self, name: &'a ObjectName, args: &'a [FunctionArg]) -> bool {
        let function = last(name).map_or("", |name| name.value.as_str());
        let takes_parts = keywords::takes_date_part(function);
        let takes_paths = keywords::takes_json_path(function);
        let condition = keywords::is_conditional(function);
        let mut constant = true;
        for (index, arg) in args.iter().enumerate() {
            let arg = match arg {
                FunctionArg::Unnamed(arg) | FunctionArg::Named { name: _, arg, operator: _ } => arg,
                FunctionArg::ExprNamed { name, arg, operator: _ } => {
                    constant &= self.expr(name);
                    arg
                }
            };
            constant &= match arg {
                FunctionArgExpr::Expr(Expr::Identifier(word))
                    if takes_parts && word.quote_style.is_none() && keywords::is_date_part(&word.value) =>
                {
                    true
                }
                FunctionArgExpr::Expr(expr) if condition && index == 0 => {
                    self.predicate(expr);
                    false
                }
                FunctionArgExpr::Expr(expr) => {
                    if let Expr::Value(value) = expr
                        && takes_paths
                    {
                        self.json_path(&value.value);
                    }
                    self.expr(expr)
                }
                FunctionArgExpr::QualifiedWildcard(name) => {
                    self.qualified_star(name, &[]);
                    false
                }
                // `count(*)` reads no column; whatever else takes a star takes all of them.
                FunctionArgExpr::Wildcard => {
                    if !function.eq_ignore_ascii_case("count") && !function.eq_ignore_ascii_case("count_big") {
                        let scope = self.scopes.len().saturating_sub(1);
                        let relations = self.scopes.last().map_or(0, |scope| scope.relations.len());
                        for relation in 0..relations {
                            self.star_of(scope, relation, 0, &[]);
                        }
                    }
                    false
                }
                FunctionArgExpr::WildcardWithOptions(_) => {
                    self.unknown("an option of `*`");
                    false
                }
            };
        }
        constant
    }

    fn clause(&mut self, clause: &'a FunctionArgumentClause) {
        match clause {
            FunctionArgumentClause::IgnoreOrRespectNulls(_)
            | FunctionArgumentClause::Separator(_)
            | FunctionArgumentClause::JsonNullClause(_)
            | FunctionArgumentClause::OnOverflow(
                ListAggOnOverflow::Error | ListAggOnOverflow::Truncate { filler: None, with_count: _ },
            ) => {}
            FunctionArgumentClause::Where(condition) => self.predicate(condition),
            FunctionArgumentClause::OrderBy(exprs) => self.order_exprs(exprs),
            FunctionArgumentClause::Limit(expr) => {
                self.expr(expr);
            }
            FunctionArgumentClause::OnOverflow(ListAggOnOverflow::Truncate { filler: Some(expr), with_count: _ }) => {
                self.expr(expr);
            }
            FunctionArgumentClause::JsonReturningClause(returning) => self.data_type(&returning.data_type),
            FunctionArgumentClause::Having(_) => self.unknown("HAVING in a function"),
        }
    }
}
