//! Which names a part of a statement can see, and what they stand for.

use sqlparser::ast::Ident;

use super::{RefusedFunction, Walker, position};
use crate::outcome::Risk;
use crate::sql::dialect::Dialect;
use crate::sql::functions::{Effect, effect_of};
use crate::sql::keywords;
use crate::sql::rules::Table;

/// What one SELECT can see.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    pub(super) relations: Vec<Relation<'a>>,
    /// The names its select list gives.
    pub(super) outputs: Vec<&'a str>,
    /// Its relations cannot be seen from here: the derived table that is walked is not lateral.
    pub(super) hidden: bool,
}

/// Something with columns in a FROM clause.
#[derive(Debug)]
pub(super) struct Relation<'a> {
    /// What it is called here.
    pub(super) name: &'a str,
    /// The table behind it, if it is one.
    pub(super) table: Option<&'a str>,
    pub(super) columns: Columns<'a>,
    /// It is the value of a function.
    pub(super) from_call: bool,
}

/// What is known of the columns of a relation.
#[derive(Debug, Clone)]
pub(super) enum Columns<'a> {
    Unknown,
    Of(&'a Table),
    Named(Vec<&'a str>),
}

/// A query with a name.
#[derive(Debug)]
pub(super) struct Cte<'a> {
    pub(super) name: &'a str,
    pub(super) columns: Columns<'a>,
    /// A table of this name may be meant instead.
    pub(super) maybe_table: bool,
}

impl<'a> Columns<'a> {
    fn has(&self, name: &str) -> bool {
        match self {
            Columns::Unknown => true,
            Columns::Of(table) => table.column(name).is_some(),
            Columns::Named(names) => names.iter().any(|known| same(known, name)),
        }
    }

    /// The names, if they are known.
    pub(super) fn names(&self) -> Option<Vec<&'a str>> {
        match self {
            Columns::Unknown => None,
            Columns::Of(table) => Some(table.columns.iter().map(|column| column.name.as_str()).collect()),
            Columns::Named(names) => Some(names.clone()),
        }
    }

    fn are_unknown(&self) -> bool {
        matches!(self, Columns::Unknown)
    }
}

/// Names are compared without regard to case: that finds more sensitive columns, and a server that minds the case
/// answers an error at worst.
pub(super) fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || (!one.is_ascii() && one.to_lowercase() == other.to_lowercase())
}

impl<'a> Walker<'a> {
    /// A column without a qualifier.
    pub(super) fn bare_column(&mut self, ident: &'a Ident) {
        self.meets_data();
        self.column(ident);
        self.not_reserved(ident);
        let name = ident.value.as_str();
        self.qualified_sensitivity(name, position(ident), None);
        let Some(found) = self.find_bare(name) else {
            if self.rules.schema.is_some() && !is_pseudo_column(self.dialect, name) {
                self.found.unknown_name.get_or_insert(position(ident));
            }
            return;
        };
        if let Bare::WholeRow(scope, relation) = found {
            self.star_of(scope, relation, position(ident), &[]);
        }
    }

    /// Looks for a name from the innermost scope outwards.
    fn find_bare(&self, name: &str) -> Option<Bare> {
        // Without a schema every column may be there; only the name of a relation says more than that.
        let by_name = self.rules.schema.is_some();
        for (index, scope) in self.scopes.iter().enumerate().rev().filter(|(_, scope)| !scope.hidden) {
            let known =
                scope.relations.iter().any(|relation| !relation.columns.are_unknown() && relation.columns.has(name));
            if by_name && (known || scope.outputs.iter().any(|output| same(output, name))) {
                return Some(Bare::Column);
            }
            if let Some(relation) = scope.relations.iter().position(|relation| same(relation.name, name)) {
                return Some(Bare::WholeRow(index, relation));
            }
            if scope.relations.iter().any(|relation| relation.columns.are_unknown()) {
                return Some(Bare::Column);
            }
        }
        None
    }

    /// A column with qualifiers: `u.id`, `public.users.id`, or a field of a structure.
    pub(super) fn qualified_column(&mut self, parts: &'a [Ident]) {
        let [qualifiers @ .., column] = parts else { return };
        let Some(qualifier) = qualifiers.last() else { return };
        self.meets_data();
        // There this moves a sequence on; in MariaDB if it is set to read Oracle's SQL.
        if matches!(self.dialect, Dialect::Snowflake | Dialect::Mysql) && column.value.eq_ignore_ascii_case("nextval") {
            self.raise(Risk::High);
        }
        self.column(column);
        for part in qualifiers {
            self.ident(part);
        }
        let found = self.find_relation(&qualifier.value);
        self.qualified_sensitivity(&column.value, position(column), found);
        if self.dialect == Dialect::Postgres {
            self.may_be_call(column, found);
        }
        // There `u.to_json` is `to_json(u)` if there is no such column.
        if let Some((scope, relation)) = found
            && self.dialect == Dialect::Postgres
            && keywords::takes_row(&column.value)
        {
            self.star_of(scope, relation, position(column), &[]);
        }
        match found.and_then(|at| self.relation(at)) {
            Some(relation) => {
                if !relation.columns.has(&column.value) && !is_pseudo_column(self.dialect, &column.value) {
                    self.found.unknown_name.get_or_insert(position(column));
                }
            }
            // A field of a column that is a structure.
            None => {
                if let Some(first) = parts.first() {
                    self.column(first);
                    let known = matches!(self.find_bare(&first.value), Some(Bare::Column));
                    if self.rules.schema.is_some() && !known {
                        self.found.unknown_name.get_or_insert(position(first));
                    }
                }
            }
        }
    }

    /// In PostgreSQL `x.f` is `f(x)` if `x` has no column `f`. The value of a function in FROM is often no row but a
    /// plain value, which nearly every function takes: `SELECT x.pg_sleep FROM generate_series(1, 9) x`.
    fn may_be_call(&mut self, column: &'a Ident, found: Option<(usize, usize)>) {
        let name = column.value.as_str();
        let (from_call, unknown, has) = match found.and_then(|at| self.relation(at)) {
            Some(relation) => (relation.from_call, relation.columns.are_unknown(), relation.columns.has(name)),
            None => (false, true, true),
        };
        if !unknown && has {
            return;
        }
        let effect = effect_of(name, self.dialect);
        let harmless = matches!(effect, Some(Effect::Pure | Effect::Varying));
        let feared = !harmless && keywords::changes_something(name);
        if from_call && (!unknown || effect.is_some()) {
            self.unknown("a column that may be a function");
        }
        if feared || (from_call && effect == Some(Effect::Harmful)) {
            self.refuse(RefusedFunction { at: position(column), harmful: true });
        }
    }

    pub(super) fn relation(&self, (scope, relation): (usize, usize)) -> Option<&Relation<'a>> {
        self.scopes.get(scope).and_then(|scope| scope.relations.get(relation))
    }

    /// The relation of a name, from the innermost scope outwards.
    pub(super) fn find_relation(&self, name: &str) -> Option<(usize, usize)> {
        self.scopes.iter().enumerate().rev().filter(|(_, scope)| !scope.hidden).find_map(|(index, scope)| {
            let relation = scope.relations.iter().position(|relation| same(relation.name, name))?;
            Some((index, relation))
        })
    }

    /// Columns that are sensitive in one table only: by the operator's word, or by the schema's.
    fn qualified_sensitivity(&mut self, column: &str, at: usize, relation: Option<(usize, usize)>) {
        let hit = match relation.and_then(|place| self.relation(place)) {
            Some(relation) => self.is_sensitive_in(relation, column),
            None => self
                .scopes
                .iter()
                .flat_map(|scope| &scope.relations)
                .any(|relation| self.is_sensitive_in(relation, column)),
        };
        if hit {
            self.found.sensitive.get_or_insert(at);
        }
    }

    fn is_sensitive_in(&self, relation: &Relation<'a>, column: &str) -> bool {
        let listed = relation.table.is_some_and(|table| self.rules.is_sensitive_in(table, column));
        let declared = match &relation.columns {
            Columns::Of(table) => table.column(column).is_some_and(|column| column.sensitive),
            Columns::Unknown | Columns::Named(_) => false,
        };
        listed || declared
    }

    /// All columns of a relation at once, but for those in `except`.
    pub(super) fn star_of(&mut self, scope: usize, relation: usize, at: usize, except: &[&'a str]) {
        let Some(relation) = self.relation((scope, relation)) else { return };
        let excepted = |name: &str| except.iter().any(|known| same(known, name));
        let (sensitive, unknown) = match &relation.columns {
            Columns::Unknown => (relation.table.is_some_and(|table| self.rules.has_sensitive(table, &excepted)), true),
            Columns::Of(table) => {
                let sensitive = table.columns.iter().filter(|column| !excepted(&column.name)).any(|column| {
                    column.sensitive
                        || self.rules.is_sensitive(&column.name)
                        || self.is_sensitive_in(relation, &column.name)
                });
                (sensitive, false)
            }
            Columns::Named(names) => (names.iter().any(|name| !excepted(name) && self.rules.is_sensitive(name)), false),
        };
        self.found.unknown_columns |= unknown;
        if sensitive {
            self.found.sensitive.get_or_insert(at);
        }
    }
}

/// What a name without a qualifier stands for.
enum Bare {
    Column,
    /// A relation as one value: scope and relation.
    WholeRow(usize, usize),
}

/// Columns that every table has.
fn is_pseudo_column(dialect: Dialect, name: &str) -> bool {
    let names: &[&str] = match dialect {
        Dialect::Sqlite => &["rowid", "oid", "_rowid_"],
        Dialect::Postgres => &["ctid", "tableoid"],
        Dialect::Mysql | Dialect::Mssql | Dialect::Snowflake | Dialect::Bigquery => &[],
    };
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}
