//! FROM clauses: tables, derived tables, functions that return tables, and joins.

use sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, JsonTableColumn, ObjectName, TableAlias, TableFactor, TableFunctionArgs,
    TableSample, TableSampleKind, TableSampleQuantity, TableVersion, TableWithJoins, Value,
};

use super::scope::{Columns, Relation, same};
use super::{Name, Walker, last, position};
use crate::outcome::Risk;
use crate::sql::dialect::Dialect;
use crate::sql::functions::effect_of;
use crate::sql::keywords;

impl<'a> Walker<'a> {
    pub(super) fn tables(&mut self, tables: &'a TableWithJoins) {
        let TableWithJoins { relation, joins } = tables;
        self.factor(relation, false);
        for Join { relation, global, join_operator } in joins {
            self.absent(!global, "GLOBAL");
            self.join(relation, join_operator);
        }
    }

    fn join(&mut self, relation: &'a TableFactor, operator: &'a JoinOperator) {
        let before = self.relations();
        let (constraint, lateral) = match operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::StraightJoin(constraint) => (constraint, false),
            JoinOperator::CrossApply | JoinOperator::OuterApply => {
                self.only_in(&[Dialect::Mssql]);
                (&JoinConstraint::None, true)
            }
            JoinOperator::Semi(_)
            | JoinOperator::LeftSemi(_)
            | JoinOperator::RightSemi(_)
            | JoinOperator::Anti(_)
            | JoinOperator::LeftAnti(_)
            | JoinOperator::RightAnti(_)
            | JoinOperator::AsOf { .. }
            | JoinOperator::ArrayJoin
            | JoinOperator::LeftArrayJoin
            | JoinOperator::InnerArrayJoin => {
                self.unknown("a kind of join");
                return;
            }
        };
        self.factor(relation, lateral);
        match constraint {
            JoinConstraint::None => {}
            // The usual way to say that a lateral join has no condition.
            JoinConstraint::On(Expr::Value(value)) if value.value == Value::Boolean(true) => {}
            JoinConstraint::On(condition) => self.predicate(condition),
            JoinConstraint::Using(columns) => {
                for column in columns.iter().filter_map(last) {
                    self.bare_column(column);
                }
            }
            JoinConstraint::Natural => self.natural(before),
        }
    }

    fn relations(&self) -> usize {
        self.scopes.last().map_or(0, |scope| scope.relations.len())
    }

    /// Compares all columns that both sides have; the right side begins at `before`.
    fn natural(&mut self, before: usize) {
        let Some(scope) = self.scopes.last() else { return };
        let names = |relations: &[Relation<'a>]| -> Option<Vec<&'a str>> {
            relations
                .iter()
                .map(|relation| relation.columns.names())
                .collect::<Option<Vec<_>>>()
                .map(|all| all.concat())
        };
        let (left, right) = scope.relations.split_at(before.min(scope.relations.len()));
        let (Some(left), Some(right)) = (names(left), names(right)) else {
            self.found.unknown_columns = true;
            return;
        };
        let shared = left.iter().filter(|name| right.iter().any(|other| same(other, name)));
        if shared.clone().any(|name| self.rules.is_sensitive(name))
            || scope_shares_declared(scope.relations.as_slice(), shared)
        {
            self.found.sensitive.get_or_insert(0);
        }
    }

    fn add(&mut self, relation: Relation<'a>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.relations.push(relation);
        }
    }

    pub(super) fn factor(&mut self, factor: &'a TableFactor, lateral_join: bool) {
        if !self.deeper() {
            return;
        }
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints: _,
            } => {
                self.absent(json_path.is_none(), "a path behind a table");
                for partition in partitions {
                    self.ident(partition);
                }
                self.hints(with_hints);
                match version {
                    None => {}
                    Some(TableVersion::ForSystemTimeAsOf(time)) => {
                        self.expr(time);
                    }
                    Some(_) => self.unknown("a version of a table"),
                }
                self.sample(sample.as_ref());
                match args {
                    None => self.table(name, alias.as_ref()),
                    Some(TableFunctionArgs { args, settings }) => {
                        self.absent(settings.is_none(), "SETTINGS");
                        self.call(name);
                        self.args(name, args);
                        self.function_relation(name, alias.as_ref(), *with_ordinality);
                    }
                }
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                self.sample(sample.as_ref());
                let hides = !(*lateral || lateral_join);
                let outer = self.hide(hides);
                let output = self.query(subquery);
                self.hide(outer);
                self.derived(alias.as_ref(), output.columns);
            }
            TableFactor::TableFunction { expr, alias } => {
                self.expr(expr);
                self.derived(alias.as_ref(), Columns::Unknown);
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                self.call(name);
                self.args(name, args);
                self.function_relation(name, alias.as_ref(), *with_ordinality);
            }
            TableFactor::UNNEST { alias, array_exprs, with_offset: _, with_offset_alias, with_ordinality } => {
                self.exprs(array_exprs);
                let offset = with_offset_alias.as_ref().map(|alias| alias.value.as_str());
                self.unnested(alias.as_ref(), array_exprs.len(), offset, *with_ordinality);
            }
            TableFactor::JsonTable { json_expr, json_path, columns, alias } => {
                self.expr(json_expr);
                self.json_path(&json_path.value);
                let names = self.json_columns(columns);
                self.derived(alias.as_ref(), Columns::Named(names));
            }
            TableFactor::OpenJsonTable { json_expr, json_path, columns, alias } => {
                self.expr(json_expr);
                if let Some(path) = json_path {
                    self.json_path(&path.value);
                }
                let mut names = vec!["key", "value", "type"];
                for column in columns {
                    self.data_type(&column.r#type);
                    self.column(&column.name);
                    if let Some(path) = &column.path {
                        self.json_keys(path);
                    }
                    names.push(column.name.value.as_str());
                }
                self.derived(alias.as_ref(), Columns::Named(names));
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                self.absent(alias.is_none(), "an alias of a join");
                self.tables(table_with_joins);
            }
            TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::UnpivotExpr { .. }
            | TableFactor::MatchRecognize { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::SemanticView { .. } => self.unknown("a kind of table"),
        }
        self.back_up();
    }

    fn hints(&mut self, hints: &'a [Expr]) {
        if !hints.is_empty() {
            self.only_in(&[Dialect::Mssql]);
        }
        for hint in hints {
            self.hint(hint);
        }
    }

    /// The elements of arrays as rows.
    fn unnested(&mut self, alias: Option<&'a TableAlias>, arrays: usize, offset: Option<&'a str>, numbered: bool) {
        let name = alias.map_or("unnest", |alias| alias.name.value.as_str());
        if self.dialect == Dialect::Postgres {
            let one = if arrays == 1 { name } else { "unnest" };
            return self.called(name, alias, vec![one; arrays], numbered);
        }
        let names = ["unnest", "offset", "ordinality", name].into_iter().chain(offset).collect();
        // The fields of structures are columns there.
        let columns = if self.dialect == Dialect::Bigquery { Columns::Unknown } else { Columns::Named(names) };
        self.derived(alias, columns);
    }

    /// The columns that a text of JSON is taken apart into.
    fn json_columns(&mut self, columns: &'a [JsonTableColumn]) -> Vec<&'a str> {
        let mut names = Vec::new();
        for column in columns {
            match column {
                JsonTableColumn::Named(column) => {
                    self.data_type(&column.r#type);
                    self.json_path(&column.path.value);
                    self.column(&column.name);
                    names.push(column.name.value.as_str());
                }
                JsonTableColumn::ForOrdinality(name) => names.push(name.value.as_str()),
                JsonTableColumn::Nested(_) => self.unknown("NESTED PATH"),
            }
        }
        names
    }

    /// Hides the relations of the current scope or shows them; answers how it was.
    fn hide(&mut self, hidden: bool) -> bool {
        self.scopes.last_mut().is_some_and(|scope| core::mem::replace(&mut scope.hidden, hidden))
    }

    /// Hints of Transact-SQL: the ones that only say how to read, and locks.
    fn hint(&mut self, hint: &'a Expr) {
        const READING: [&str; 6] = ["NOLOCK", "READUNCOMMITTED", "READCOMMITTED", "READPAST", "NOEXPAND", "FORCESEEK"];
        match hint {
            Expr::Identifier(name) if READING.iter().any(|known| name.value.eq_ignore_ascii_case(known)) => {}
            Expr::Identifier(_) => self.raise(Risk::High),
            _ => self.unknown("a hint of a table"),
        }
    }

    fn sample(&mut self, sample: Option<&'a TableSampleKind>) {
        let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample else {
            return;
        };
        let TableSample { modifier: _, name: _, quantity, seed: _, bucket, offset } = sample.as_ref();
        self.absent(bucket.is_none() && offset.is_none(), "a kind of sample");
        if let Some(TableSampleQuantity { parenthesized: _, value, unit: _ }) = quantity {
            self.expr(value);
        }
    }

    /// A table, or a named query of that name.
    pub(super) fn table(&mut self, name: &'a ObjectName, alias: Option<&'a TableAlias>) {
        let Some(table) = last(name) else {
            self.unknown("a name that is computed");
            return;
        };
        self.meets_data();
        let parts: Vec<_> = name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str()).collect();
        if parts.len() == 1 {
            self.not_reserved(table);
        }
        let (columns, is_table) = self.columns_of(&parts);
        if is_table {
            self.reads(name);
            // There a pragma can be read as a table, and runs: `FROM pragma_optimize`.
            if self.dialect == Dialect::Sqlite && keywords::is_other_pragma_table(&table.value) {
                self.raise(Risk::Critical);
            }
            let known = matches!(columns, Columns::Of(_));
            if self.rules.schema.is_some() && !known {
                self.found.unknown_name.get_or_insert(position(table));
            }
        } else {
            self.name(name);
        }
        let table_name = is_table.then_some(system_name(&parts).unwrap_or(&table.value));
        let name = alias.map_or(table.value.as_str(), |alias| alias.name.value.as_str());
        self.add(Relation { name, table: table_name, columns, from_call: false });
        if let Some(alias) = alias {
            self.alias(alias);
            if !alias.columns.is_empty() {
                // There these are hints: `FROM t AS x (TABLOCKX)`.
                self.absent(self.dialect != Dialect::Mssql, "a parenthesis behind the alias of a table");
                // The columns are read under names that hide what they are.
                let (scope, relation) = (self.scopes.len().saturating_sub(1), self.relations().saturating_sub(1));
                self.star_of(scope, relation, position(table), &[]);
                self.rename_last(alias);
            }
        }
    }

    /// The columns of a table or named query, and whether it is a table.
    pub(super) fn columns_of(&mut self, parts: &[&'a str]) -> (Columns<'a>, bool) {
        if let [name] = parts
            && let Some(cte) = self.ctes.iter().rev().find(|cte| same(cte.name, name))
        {
            let (columns, maybe_table) = (cte.columns.clone(), cte.maybe_table);
            if maybe_table {
                self.found.reads.push(Name::Word(name));
            }
            return (columns, false);
        }
        let table = self.rules.schema.and_then(|schema| schema.table(parts));
        (table.map_or(Columns::Unknown, Columns::Of), true)
    }

    fn derived(&mut self, alias: Option<&'a TableAlias>, columns: Columns<'a>) {
        let name = alias.map_or("", |alias| alias.name.value.as_str());
        self.add(Relation { name, table: None, columns, from_call: false });
        if let Some(alias) = alias {
            self.alias(alias);
            self.rename_last(alias);
        }
    }

    /// The value of a function of PostgreSQL, with the names its columns have if the alias gives no others.
    fn called(&mut self, name: &'a str, alias: Option<&'a TableAlias>, mut columns: Vec<&'a str>, numbered: bool) {
        if numbered {
            columns.push("ordinality");
        }
        self.add(Relation { name, table: None, columns: Columns::Named(columns), from_call: true });
        if let Some(alias) = alias {
            self.alias(alias);
            self.rename_last(alias);
        }
    }

    fn function_relation(&mut self, function: &'a ObjectName, alias: Option<&'a TableAlias>, numbered: bool) {
        let name = last(function).map_or("", |name| name.value.as_str());
        // What a function of one's own returns is not known.
        if self.dialect == Dialect::Postgres && effect_of(name, self.dialect).is_some() {
            let name = alias.map_or(name, |alias| alias.name.value.as_str());
            let columns = last(function).and_then(|function| keywords::columns_of_function(&function.value));
            self.called(name, alias, columns.map_or_else(|| vec![name], <[&str]>::to_vec), numbered);
            return;
        }
        let columns = if name.eq_ignore_ascii_case("generate_series") {
            let named = alias.map(|alias| alias.name.value.as_str());
            Columns::Named([name, "value", "ordinality"].into_iter().chain(named).collect())
        } else {
            Columns::Unknown
        };
        self.derived(alias, columns);
        if alias.is_none()
            && let Some(relation) = self.scopes.last_mut().and_then(|scope| scope.relations.last_mut())
        {
            relation.name = name;
        }
        if let Some(relation) = self.scopes.last_mut().and_then(|scope| scope.relations.last_mut()) {
            relation.from_call = true;
        }
    }

    fn alias(&mut self, alias: &'a TableAlias) {
        let TableAlias { explicit: _, name, columns, at } = alias;
        self.absent(at.is_none(), "AT");
        self.ident(name);
        for column in columns {
            self.ident(&column.name);
            if let Some(data_type) = &column.data_type {
                self.data_type(data_type);
            }
        }
    }

    fn rename_last(&mut self, alias: &'a TableAlias) {
        let given: Vec<_> = alias.columns.iter().map(|column| column.name.value.as_str()).collect();
        let columns = self.scopes.last().and_then(|scope| scope.relations.last()).map(|last| last.columns.clone());
        let renamed = self.renamed(columns.unwrap_or(Columns::Unknown), &given);
        if let Some(relation) = self.scopes.last_mut().and_then(|scope| scope.relations.last_mut()) {
            relation.columns = renamed;
        }
    }
}

/// The name by which a system table is known here, if the name alone could be anybody's.
fn system_name(parts: &[&str]) -> Option<&'static str> {
    match parts {
        [.., schema, table] if schema.eq_ignore_ascii_case("mysql") && table.eq_ignore_ascii_case("user") => {
            Some("mysql.user")
        }
        _ => None,
    }
}

/// Whether a schema declares one of these columns sensitive in one of these relations.
fn scope_shares_declared<'s>(relations: &[Relation<'_>], shared: impl Iterator<Item = &'s &'s str>) -> bool {
    let declared = |name: &str| {
        relations.iter().any(|relation| match &relation.columns {
            Columns::Of(table) => table.column(name).is_some_and(|column| column.sensitive),
            Columns::Unknown | Columns::Named(_) => false,
        })
    };
    shared.into_iter().any(|name| declared(name))
}
