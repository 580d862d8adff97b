//! Queries: SELECT, VALUES, TABLE, set operations and what belongs to them.

use sqlparser::ast::{
    Cte as CteNode, Distinct, ExceptSelectItem, ExcludeSelectItem, Expr, Fetch, ForClause, GroupByExpr,
    GroupByWithModifier, LimitClause, NamedWindowDefinition, NamedWindowExpr, ObjectName, Offset, OrderBy, OrderByExpr,
    OrderByKind, OrderByOptions, OrderBySort, Query, Select, SelectFlavor, SelectInto, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetQuantifier, Top, TopQuantity, Values, WildcardAdditionalOptions,
    WindowSpec, With,
};
use sqlparser::ast::{WindowFrame, WindowFrameBound};

use super::scope::{Columns, Cte, Relation, Scope};
use super::{Name, Walker, last, position};
use crate::outcome::Risk;
use crate::sql::dialect::Dialect;

/// What a query hands to what stands around it.
pub(super) struct Output<'a> {
    pub(super) columns: Columns<'a>,
    /// It reads nothing: it is made of literals only.
    pub(super) constant: bool,
}

impl Output<'_> {
    const UNKNOWN: Output<'static> = Output { columns: Columns::Unknown, constant: false };
}

impl<'a> Walker<'a> {
    pub(super) fn query(&mut self, query: &'a Query) -> Output<'a> {
        if !self.deeper() {
            return Output::UNKNOWN;
        }
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        self.absent(settings.is_none(), "SETTINGS");
        self.absent(format_clause.is_none(), "FORMAT");
        self.absent(pipe_operators.is_empty(), "a pipe");
        match for_clause {
            None => {}
            Some(ForClause::Json { .. } | ForClause::Xml { .. }) => self.only_in(&[Dialect::Mssql]),
            Some(ForClause::Browse) => self.unknown("FOR BROWSE"),
        }
        let visible = self.ctes.len();
        if let Some(with) = with {
            self.with(with);
        }
        let output = match body.as_ref() {
            SetExpr::Select(select) => self.select(select, order_by.as_ref()),
            SetExpr::Query(_)
            | SetExpr::SetOperation { .. }
            | SetExpr::Values(_)
            | SetExpr::Insert(_)
            | SetExpr::Update(_)
            | SetExpr::Delete(_)
            | SetExpr::Merge(_)
            | SetExpr::Table(_) => {
                let output = self.set_expr(body);
                if let Some(order_by) = order_by {
                    let relation =
                        Relation { name: "", table: None, columns: output.columns.clone(), from_call: false };
                    self.scopes.push(Scope { relations: vec![relation], ..Scope::default() });
                    self.order_by(order_by);
                    self.scopes.pop();
                }
                output
            }
        };
        if let Some(limit) = limit_clause {
            self.limit(limit);
        }
        if let Some(Fetch { with_ties: _, percent: _, quantity: Some(quantity) }) = fetch {
            self.expr(quantity);
        }
        if !locks.is_empty() {
            self.raise(Risk::High);
            for name in locks.iter().filter_map(|lock| lock.of.as_ref()) {
                self.name(name);
            }
        }
        self.ctes.truncate(visible);
        self.back_up();
        output
    }

    fn with(&mut self, with: &'a With) {
        let With { with_token: _, recursive, cte_tables } = with;
        for cte in cte_tables {
            let CteNode { alias, query, from, materialized: _, closing_paren_token: _ } = cte;
            self.absent(from.is_none(), "FROM after a named query");
            self.absent(alias.at.is_none(), "AT");
            self.ident(&alias.name);
            let name = alias.name.value.as_str();
            let given: Vec<_> = alias.columns.iter().map(|column| column.name.value.as_str()).collect();
            // These need no keyword to let a query name itself, and a table of that name may be meant as well.
            let may_recur = *recursive || matches!(self.dialect, Dialect::Mssql | Dialect::Snowflake);
            if may_recur {
                let columns = if given.is_empty() { Columns::Unknown } else { Columns::Named(given.clone()) };
                self.ctes.push(Cte { name, columns, maybe_table: !*recursive });
            }
            let output = self.query(query);
            if may_recur {
                self.ctes.pop();
            }
            let columns = self.renamed(output.columns, &given);
            self.ctes.push(Cte { name, columns, maybe_table: false });
        }
    }

    /// Columns with the first of them renamed.
    pub(super) fn renamed(&self, columns: Columns<'a>, given: &[&'a str]) -> Columns<'a> {
        if given.is_empty() {
            return columns;
        }
        let rest = columns.names().unwrap_or_default();
        Columns::Named(given.iter().copied().chain(rest.into_iter().skip(given.len())).collect())
    }

    /// Operands of set operations and what may stand in their place.
    pub(super) fn set_expr(&mut self, body: &'a SetExpr) -> Output<'a> {
        // A long chain leans to the left.
        let mut body = body;
        let mut constant = true;
        while let SetExpr::SetOperation { left, op: _, set_quantifier, right } = body {
            match set_quantifier {
                SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None => {}
                SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
                    self.unknown("BY NAME");
                }
            }
            if !self.deeper() {
                return Output::UNKNOWN;
            }
            constant &= self.set_expr(right).constant;
            self.back_up();
            body = left;
        }
        let output = match body {
            SetExpr::Select(select) => self.select(select, None),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => self.values(values),
            // The parser passes over two tokens behind the name.
            SetExpr::Table(_) => {
                self.unknown("TABLE inside a statement");
                Output::UNKNOWN
            }
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => {
                self.statement(statement);
                Output::UNKNOWN
            }
            SetExpr::SetOperation { .. } => Output::UNKNOWN,
        };
        Output { columns: output.columns, constant: output.constant && constant }
    }

    fn values(&mut self, values: &'a Values) -> Output<'a> {
        let Values { explicit_row: _, value_keyword: _, rows } = values;
        let mut constant = true;
        for row in rows {
            for value in &row.content {
                constant &= self.expr(value);
            }
        }
        Output { columns: Columns::Unknown, constant }
    }

    /// A SELECT; the ORDER BY of its query sees what it sees.
    fn select(&mut self, select: &'a Select, order_by: Option<&'a OrderBy>) -> Output<'a> {
        if !self.deeper() {
            return Output::UNKNOWN;
        }
        let Select {
            select_token: _,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode: _,
            flavor,
        } = select;
        self.absent(optimizer_hints.is_empty(), "a hint");
        self.absent(select_modifiers.is_none(), "a modifier of SELECT");
        self.absent(exclude.is_none(), "EXCLUDE");
        self.absent(lateral_views.is_empty(), "LATERAL VIEW");
        self.absent(prewhere.is_none(), "PREWHERE");
        self.absent(connect_by.is_empty(), "CONNECT BY");
        let sorted = cluster_by.is_empty() && distribute_by.is_empty() && sort_by.is_empty();
        self.absent(sorted, "CLUSTER BY, DISTRIBUTE BY or SORT BY");
        match flavor {
            SelectFlavor::Standard => {}
            SelectFlavor::FromFirst | SelectFlavor::FromFirstNoSelect => self.unknown("FROM before SELECT"),
        }
        if let Some(into) = into {
            self.into(into);
        }
        self.scopes.push(Scope::default());
        for tables in from {
            self.tables(tables);
        }
        let columns = self.outputs(projection);
        let mut constant = from.is_empty();
        for item in projection {
            constant &= self.select_item(item);
            // There an item sees the names of those before it.
            if self.dialect == Dialect::Snowflake {
                self.name_output(item);
            }
        }
        match distinct {
            None | Some(Distinct::All | Distinct::Distinct) => {}
            Some(Distinct::On(exprs)) => self.exprs(exprs),
        }
        if top.is_some() && !matches!(self.dialect, Dialect::Mssql | Dialect::Snowflake) {
            self.unknown("`TOP` in a dialect that has none");
        }
        if let Some(Top { with_ties: _, percent: _, quantity: Some(TopQuantity::Expr(quantity)) }) = top {
            self.expr(quantity);
        }
        if let Some(selection) = selection {
            self.predicate(selection);
        }
        for item in projection {
            self.name_output(item);
        }
        self.group_by(group_by);
        for predicate in [having, qualify].into_iter().flatten() {
            self.predicate(predicate);
        }
        for NamedWindowDefinition(name, window) in named_window {
            self.ident(name);
            match window {
                NamedWindowExpr::NamedWindow(name) => self.ident(name),
                NamedWindowExpr::WindowSpec(window) => self.window(window),
            }
        }
        if let Some(order_by) = order_by {
            self.order_by(order_by);
        }
        self.scopes.pop();
        self.back_up();
        Output { columns, constant }
    }

    fn into(&mut self, into: &'a SelectInto) {
        let SelectInto { temporary: _, unlogged: _, table: _, targets } = into;
        self.raise(Risk::High);
        for target in targets {
            match target {
                Expr::Identifier(name) => {
                    self.ident(name);
                    self.found.writes.push(Name::Word(&name.value));
                }
                Expr::CompoundIdentifier(parts) => self.found.writes.push(Name::Parts(parts)),
                _ => self.unknown("the target of INTO"),
            }
        }
    }

    /// One item of a select list; whether it is made of literals only.
    pub(super) fn select_item(&mut self, item: &'a SelectItem) -> bool {
        match item {
            SelectItem::UnnamedExpr(expr) => self.expr(expr),
            SelectItem::ExprWithAlias { expr, alias } => {
                // A string is a name here in some dialects; it names only the output. In PostgreSQL what stands before
                // it is a type, which may be one of one's own.
                if alias.quote_style != Some('\'') {
                    self.ident(alias);
                } else if self.dialect == Dialect::Postgres {
                    self.unknown("a string behind a name");
                }
                self.expr(expr)
            }
            SelectItem::ExprWithAliases { .. } => {
                self.unknown("several aliases");
                false
            }
            SelectItem::Wildcard(options) => {
                let except = self.except(options);
                let at = usize::try_from(options.wildcard_token.0.span.start.column).unwrap_or(0).saturating_sub(1);
                let scope = self.scopes.len().saturating_sub(1);
                let relations = self.scopes.last().map_or(0, |scope| scope.relations.len());
                for relation in 0..relations {
                    self.star_of(scope, relation, at, &except);
                }
                false
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                let except = self.except(options);
                self.qualified_star(name, &except);
                false
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), options) => {
                self.except(options);
                self.expr(expr);
                self.found.unknown_columns = true;
                false
            }
        }
    }

    /// `t.*`.
    pub(super) fn qualified_star(&mut self, name: &'a ObjectName, except: &[&'a str]) {
        self.meets_data();
        self.name(name);
        let Some(table) = last(name) else { return };
        match self.find_relation(&table.value) {
            Some((scope, relation)) => self.star_of(scope, relation, position(table), except),
            // All fields of a structure.
            None => {
                self.found.unknown_columns = true;
                self.column(table);
                if self.rules.schema.is_some() {
                    self.found.unknown_name.get_or_insert(position(table));
                }
            }
        }
    }

    /// The columns that a star leaves out.
    fn except(&mut self, options: &'a WildcardAdditionalOptions) -> Vec<&'a str> {
        let WildcardAdditionalOptions {
            wildcard_token: _,
            opt_ilike,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        let plain = opt_ilike.is_none() && opt_replace.is_none() && opt_rename.is_none() && opt_alias.is_none();
        self.absent(plain, "an option of `*`");
        let mut names = Vec::new();
        if let Some(ExceptSelectItem { first_element, additional_elements }) = opt_except {
            names.push(first_element.value.as_str());
            names.extend(additional_elements.iter().map(|name| name.value.as_str()));
        }
        match opt_exclude {
            None => {}
            Some(ExcludeSelectItem::Single(name)) => names.extend(last(name).map(|name| name.value.as_str())),
            Some(ExcludeSelectItem::Multiple(list)) => {
                names.extend(list.iter().filter_map(last).map(|name| name.value.as_str()));
            }
        }
        names
    }

    /// Lets later clauses see the name that an item of the select list gives. Only a schema asks for it.
    fn name_output(&mut self, item: &'a SelectItem) {
        let name = match item {
            SelectItem::ExprWithAlias { expr: _, alias } => alias.value.as_str(),
            SelectItem::UnnamedExpr(Expr::Function(function)) => last(&function.name).map_or("", |name| &name.value),
            _ => return,
        };
        if let Some(scope) = self.scopes.last_mut()
            && self.rules.schema.is_some()
        {
            scope.outputs.push(name);
        }
    }

    /// What a select list calls its columns. Only a schema asks for it.
    pub(super) fn outputs(&mut self, projection: &'a [SelectItem]) -> Columns<'a> {
        if self.rules.schema.is_none() {
            return Columns::Unknown;
        }
        let mut names = Vec::new();
        let mut known = true;
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expr) => names.push(output_name(expr)),
                SelectItem::ExprWithAlias { expr: _, alias } => names.push(alias.value.as_str()),
                SelectItem::ExprWithAliases { .. } => known = false,
                SelectItem::Wildcard(_) => {
                    for relation in self.scopes.last().into_iter().flat_map(|scope| &scope.relations) {
                        match relation.columns.names() {
                            Some(more) => names.extend(more),
                            None => known = false,
                        }
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let relation = last(name).and_then(|name| self.find_relation(&name.value));
                    match relation.and_then(|place| self.relation(place)).and_then(|relation| relation.columns.names())
                    {
                        Some(more) => names.extend(more),
                        None => known = false,
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _) => known = false,
            }
        }
        if known { Columns::Named(names) } else { Columns::Unknown }
    }

    fn group_by(&mut self, group_by: &'a GroupByExpr) {
        let modifiers = match group_by {
            GroupByExpr::All(modifiers) => modifiers,
            GroupByExpr::Expressions(exprs, modifiers) => {
                self.exprs(exprs);
                modifiers
            }
        };
        for modifier in modifiers {
            match modifier {
                GroupByWithModifier::Rollup | GroupByWithModifier::Cube | GroupByWithModifier::Totals => {}
                GroupByWithModifier::GroupingSets(sets) => {
                    self.expr(sets);
                }
            }
        }
    }

    fn order_by(&mut self, order_by: &'a OrderBy) {
        let OrderBy { kind, interpolate } = order_by;
        self.absent(interpolate.is_none(), "INTERPOLATE");
        match kind {
            OrderByKind::All(options) => self.order_options(options),
            OrderByKind::Expressions(exprs) => self.order_exprs(exprs),
        }
    }

    pub(super) fn order_exprs(&mut self, exprs: &'a [OrderByExpr]) {
        for OrderByExpr { expr, options, with_fill } in exprs {
            self.absent(with_fill.is_none(), "WITH FILL");
            self.order_options(options);
            self.expr(expr);
        }
    }

    fn order_options(&mut self, options: &OrderByOptions) {
        match options.sort {
            None | Some(OrderBySort::Asc | OrderBySort::Desc) => {}
            Some(OrderBySort::Using(_)) => self.unknown("ORDER BY USING"),
        }
    }

    fn limit(&mut self, limit: &'a LimitClause) {
        match limit {
            LimitClause::LimitOffset { limit, offset, limit_by } => {
                self.absent(limit_by.is_empty(), "LIMIT BY");
                if let Some(limit) = limit {
                    self.expr(limit);
                }
                if let Some(Offset { value, rows: _ }) = offset {
                    self.expr(value);
                }
            }
            LimitClause::OffsetCommaLimit { offset, limit } => {
                self.expr(offset);
                self.expr(limit);
            }
        }
    }

    pub(super) fn window(&mut self, window: &'a WindowSpec) {
        let WindowSpec { window_name, partition_by, order_by, window_frame } = window;
        if let Some(name) = window_name {
            self.ident(name);
        }
        self.exprs(partition_by);
        self.order_exprs(order_by);
        if let Some(WindowFrame { units: _, start_bound, end_bound }) = window_frame {
            for bound in [Some(start_bound), end_bound.as_ref()].into_iter().flatten() {
                match bound {
                    WindowFrameBound::CurrentRow
                    | WindowFrameBound::Preceding(None)
                    | WindowFrameBound::Following(None) => {}
                    WindowFrameBound::Preceding(Some(expr)) | WindowFrameBound::Following(Some(expr)) => {
                        self.expr(expr);
                    }
                }
            }
        }
    }
}

/// What a server calls an output without an alias; empty where that is not worth knowing.
fn output_name(expr: &Expr) -> &str {
    match expr {
        Expr::Identifier(name) => &name.value,
        Expr::CompoundIdentifier(parts) => parts.last().map_or("", |name| name.value.as_str()),
        Expr::Function(function) => last(&function.name).map_or("", |name| name.value.as_str()),
        Expr::Cast { expr, .. } => match expr.as_ref() {
            Expr::Identifier(name) => &name.value,
            Expr::CompoundIdentifier(parts) => parts.last().map_or("", |name| name.value.as_str()),
            _ => "",
        },
        _ => "",
    }
}
