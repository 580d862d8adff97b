//! Statements that write rows or make tables.

use sqlparser::ast::{
    AlterTable, Assignment, AssignmentTarget, ColumnDef, ColumnOption, ConflictTarget, CreateIndex, CreateTable,
    CreateTableOptions, CreateView, Delete, DoUpdate, Expr, FromTable, IndexColumn, Insert, InsertAliases, Merge,
    MergeAction, MergeClause, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, MergeUpdateKind, ObjectName,
    OnConflict, OnConflictAction, OnInsert, OutputClause, SelectItem, TableConstraint, TableFactor, TableObject,
    TableWithJoins, Update, UpdateTableFromKind,
};

use super::scope::{Relation, Scope};
use super::{Name, Walker, last, position};
use crate::outcome::Risk;

impl<'a> Walker<'a> {
    pub(super) fn insert(&mut self, insert: &'a Insert) -> &'static str {
        let Insert {
            insert_token: _,
            optimizer_hints,
            or,
            ignore: _,
            into: _,
            table,
            table_alias,
            columns,
            overwrite,
            source,
            assignments,
            partitioned,
            after_columns,
            has_table_keyword: _,
            on,
            returning,
            output,
            replace_into,
            priority: _,
            insert_alias,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        self.absent(optimizer_hints.is_empty(), "a hint");
        self.absent(!overwrite, "OVERWRITE");
        self.absent(partitioned.is_none() && after_columns.is_empty(), "PARTITION");
        self.absent(settings.is_none() && format_clause.is_none(), "SETTINGS or FORMAT");
        let single = multi_table_insert_type.is_none()
            && multi_table_into_clauses.is_empty()
            && multi_table_when_clauses.is_empty()
            && multi_table_else_clause.is_none();
        self.absent(single, "INSERT into several tables");
        // REPLACE deletes the row that is in its way.
        let replaces = *replace_into || matches!(or, Some(sqlparser::ast::SqliteOnConflict::Replace));
        self.raise(if replaces { Risk::Critical } else { Risk::High });
        // The rows come from a query that does not see the table.
        if let Some(source) = source {
            self.query(source);
        }
        let TableObject::TableName(name) = table else {
            self.unknown("what is inserted into");
            return "insert";
        };
        self.scopes.push(Scope::default());
        self.target(name, table_alias.as_ref().map(|alias| alias.alias.value.as_str()), Risk::High);
        for column in columns.iter().filter_map(last) {
            self.bare_column(column);
        }
        self.also_called("excluded");
        if let Some(InsertAliases { row_alias, col_aliases }) = insert_alias {
            self.absent(col_aliases.is_none(), "aliases of columns");
            if let Some(alias) = last(row_alias) {
                self.also_called(&alias.value);
            }
        }
        self.assignments(assignments);
        match on {
            None => {}
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => self.assignments(assignments),
            Some(OnInsert::OnConflict(OnConflict { conflict_target, action })) => {
                match conflict_target {
                    None => {}
                    Some(ConflictTarget::Columns(columns)) => {
                        for column in columns {
                            self.bare_column(column);
                        }
                    }
                    Some(ConflictTarget::OnConstraint(name)) => self.name(name),
                }
                match action {
                    OnConflictAction::DoNothing => {}
                    OnConflictAction::DoUpdate(DoUpdate { assignments, selection }) => {
                        self.assignments(assignments);
                        if let Some(selection) = selection {
                            self.predicate(selection);
                        }
                    }
                }
            }
            Some(_) => self.unknown("what follows ON"),
        }
        self.returning(returning.as_deref(), output.as_ref());
        self.scopes.pop();
        if replaces { "replace" } else { "insert" }
    }

    pub(super) fn update(&mut self, update: &'a Update) -> &'static str {
        let Update {
            update_token: _,
            optimizer_hints,
            table,
            assignments,
            from,
            selection,
            returning,
            output,
            or,
            order_by,
            limit,
        } = update;
        self.absent(optimizer_hints.is_empty(), "a hint");
        let risk = if selection.is_none() { Risk::Critical } else { Risk::High };
        let replaces = matches!(or, Some(sqlparser::ast::SqliteOnConflict::Replace));
        self.raise(if replaces { Risk::Critical } else { risk });
        self.scopes.push(Scope::default());
        self.written(table);
        match from {
            None => {}
            Some(UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables)) => {
                for tables in tables {
                    self.tables(tables);
                }
            }
        }
        self.assignments(assignments);
        if let Some(selection) = selection {
            self.predicate(selection);
        }
        self.order_exprs(order_by);
        if let Some(limit) = limit {
            self.expr(limit);
        }
        self.returning(returning.as_deref(), output.as_ref());
        self.scopes.pop();
        "update"
    }

    pub(super) fn delete(&mut self, delete: &'a Delete) -> &'static str {
        let Delete {
            delete_token: _,
            optimizer_hints,
            tables,
            from,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
        } = delete;
        self.absent(optimizer_hints.is_empty(), "a hint");
        self.raise(if selection.is_none() { Risk::Critical } else { Risk::High });
        self.scopes.push(Scope::default());
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
        for (index, source) in from.iter().enumerate() {
            // With a list of tables before FROM, those are written and the rest is read.
            if tables.is_empty() && index == 0 {
                self.written(source);
            } else {
                self.tables(source);
            }
        }
        for table in tables {
            self.found.writes.push(Name::Object(table));
        }
        for source in using.iter().flatten() {
            self.tables(source);
        }
        if let Some(selection) = selection {
            self.predicate(selection);
        }
        self.order_exprs(order_by);
        if let Some(limit) = limit {
            self.expr(limit);
        }
        self.returning(returning.as_deref(), output.as_ref());
        self.scopes.pop();
        "delete"
    }

    pub(super) fn merge(&mut self, merge: &'a Merge) -> &'static str {
        let Merge { merge_token: _, optimizer_hints, into: _, table, source, on, clauses, output } = merge;
        self.absent(optimizer_hints.is_empty(), "a hint");
        self.raise(Risk::High);
        self.scopes.push(Scope::default());
        self.written_factor(table);
        self.factor(source, false);
        self.predicate(on);
        for MergeClause { when_token: _, clause_kind: _, predicate, action } in clauses {
            if let Some(predicate) = predicate {
                self.predicate(predicate);
            }
            match action {
                MergeAction::Insert(MergeInsertExpr {
                    insert_token: _,
                    columns,
                    kind_token: _,
                    kind,
                    insert_predicate,
                }) => {
                    for column in columns.iter().filter_map(last) {
                        self.bare_column(column);
                    }
                    match kind {
                        MergeInsertKind::Values(values) => {
                            for row in &values.rows {
                                self.exprs(&row.content);
                            }
                        }
                        MergeInsertKind::Row | MergeInsertKind::Wildcard => {}
                    }
                    if let Some(predicate) = insert_predicate {
                        self.predicate(predicate);
                    }
                }
                MergeAction::Update(MergeUpdateExpr { update_token: _, kind, update_predicate, delete_predicate }) => {
                    match kind {
                        MergeUpdateKind::Set(assignments) => self.assignments(assignments),
                        MergeUpdateKind::Wildcard => {}
                    }
                    for predicate in [update_predicate, delete_predicate].into_iter().flatten() {
                        self.predicate(predicate);
                    }
                }
                MergeAction::Delete { .. } | MergeAction::DoNothing { .. } => {}
            }
        }
        self.returning(None, output.as_ref());
        self.scopes.pop();
        "merge"
    }

    /// The table a statement writes, as the first relation of the scope.
    fn target(&mut self, name: &'a ObjectName, alias: Option<&'a str>, risk: Risk) {
        let Some(table) = last(name) else {
            self.unknown("a name that is computed");
            return;
        };
        self.writes(name, risk);
        let parts: Vec<_> = name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str()).collect();
        let schema = self.rules.schema;
        let columns = match schema.and_then(|schema| schema.table(&parts)) {
            Some(table) => super::scope::Columns::Of(table),
            None => super::scope::Columns::Unknown,
        };
        if schema.is_some() && matches!(columns, super::scope::Columns::Unknown) {
            self.found.unknown_name.get_or_insert(position(table));
        }
        let name = alias.unwrap_or(&table.value);
        let relation = Relation { name, table: Some(&table.value), columns, from_call: false };
        if let Some(scope) = self.scopes.last_mut() {
            scope.relations.push(relation);
        }
    }

    /// The first relation under another name as well.
    fn also_called(&mut self, name: &'a str) {
        if let Some(scope) = self.scopes.last_mut()
            && let Some(Relation { name: _, table, columns, from_call: _ }) = scope.relations.first()
        {
            let relation = Relation { name, table: *table, columns: columns.clone(), from_call: false };
            scope.relations.push(relation);
        }
    }

    fn written(&mut self, tables: &'a TableWithJoins) {
        // In a join any of the tables may be written.
        let single = tables.joins.is_empty();
        if single {
            self.written_factor(&tables.relation);
        } else {
            self.tables(tables);
            if let TableFactor::Table { name, .. } = &tables.relation {
                self.found.writes.push(Name::Object(name));
            }
        }
    }

    fn written_factor(&mut self, factor: &'a TableFactor) {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints: _,
                version: None,
                with_ordinality: false,
                partitions: _,
                json_path: None,
                sample: None,
                index_hints: _,
            } => {
                let alias = alias.as_ref().map(|alias| alias.name.value.as_str());
                self.target(name, alias, Risk::High);
            }
            _ => self.unknown("what is written"),
        }
    }

    fn assignments(&mut self, assignments: &'a [Assignment]) {
        for Assignment { target, value } in assignments {
            match target {
                AssignmentTarget::ColumnName(name) => self.assigned(name),
                AssignmentTarget::Tuple(names) => {
                    for name in names {
                        self.assigned(name);
                    }
                }
            }
            self.expr(value);
        }
    }

    fn assigned(&mut self, name: &'a ObjectName) {
        match last(name) {
            Some(column) if column.value.starts_with('@') => self.unknown("an assignment to a variable"),
            Some(column) => self.bare_column(column),
            None => self.unknown("a name that is computed"),
        }
    }

    fn returning(&mut self, returning: Option<&'a [SelectItem]>, output: Option<&'a OutputClause>) {
        for item in returning.unwrap_or_default() {
            self.select_item(item);
        }
        match output {
            None => {}
            Some(OutputClause::Output { output_token: _, select_items, into_table }) => {
                self.absent(into_table.is_none(), "OUTPUT INTO");
                self.also_called("inserted");
                self.also_called("deleted");
                for item in select_items {
                    self.select_item(item);
                }
            }
            Some(OutputClause::Returning { returning_token: _, select_items }) => {
                for item in select_items {
                    self.select_item(item);
                }
            }
        }
    }

    /// The tables are new, so their columns are no columns that are read.
    pub(super) fn create_table(&mut self, create: &'a CreateTable) -> &'static str {
        self.writes(&create.name, if create.or_replace { Risk::Critical } else { Risk::High });
        let plain = !create.external
            && !create.dynamic
            && !create.iceberg
            && !create.snapshot
            && create.hive_formats.is_none()
            && create.file_format.is_none()
            && create.location.is_none()
            && create.version.is_none()
            && create.with_connection.is_none()
            && create.base_location.is_none()
            && create.external_volume.is_none()
            && create.catalog.is_none()
            && create.target_lag.is_none()
            && create.on_cluster.is_none();
        self.absent(plain, "a kind of table");
        match &create.table_options {
            CreateTableOptions::None | CreateTableOptions::With(_) => {}
            // A table that stands for one of another server, or lies elsewhere in the file system.
            CreateTableOptions::Plain(options) => {
                let options = options.iter().map(|option| option.to_string().to_ascii_uppercase());
                let far = ["FEDERATED", "CONNECT", "DIRECTORY"];
                if options.into_iter().any(|option| far.iter().any(|word| option.contains(word))) {
                    self.raise(Risk::Critical);
                }
            }
            CreateTableOptions::Options(_) | CreateTableOptions::TableProperties(_) => {
                self.unknown("options of a table");
            }
        }
        if let Some(query) = &create.query {
            self.query(query);
        }
        if let Some(clone) = &create.clone {
            self.found.reads.push(Name::Object(clone));
        }
        self.scopes.push(Scope::default());
        let columns = create.columns.iter().map(|column| column.name.value.as_str()).collect();
        let columns = super::scope::Columns::Named(columns);
        let relation = Relation { name: "", table: None, columns, from_call: false };
        if let Some(scope) = self.scopes.last_mut() {
            scope.relations.push(relation);
        }
        for column in &create.columns {
            self.column_def(column);
        }
        for constraint in &create.constraints {
            match constraint {
                TableConstraint::Check(check) => self.unconditioned(&check.expr),
                TableConstraint::Unique(_)
                | TableConstraint::PrimaryKey(_)
                | TableConstraint::ForeignKey(_)
                | TableConstraint::Index(_)
                | TableConstraint::FulltextOrSpatial(_) => {}
                TableConstraint::PrimaryKeyUsingIndex(_)
                | TableConstraint::UniqueUsingIndex(_)
                | TableConstraint::Exclude(_) => self.unknown("a constraint"),
            }
        }
        self.scopes.pop();
        "create_table"
    }

    /// A check of a new column: a condition on data to come, under names that mean nothing yet.
    fn unconditioned(&mut self, expr: &'a Expr) {
        let sensitive = self.found.sensitive;
        self.expr(expr);
        self.found.sensitive = sensitive;
    }

    fn column_def(&mut self, column: &'a ColumnDef) {
        let ColumnDef { name, data_type, options } = column;
        self.ident(name);
        self.defined_type(data_type);
        for option in options {
            match &option.option {
                ColumnOption::Null
                | ColumnOption::NotNull
                | ColumnOption::PrimaryKey(_)
                | ColumnOption::Unique(_)
                | ColumnOption::ForeignKey(_)
                | ColumnOption::CharacterSet(_)
                | ColumnOption::Collation(_)
                | ColumnOption::Comment(_)
                | ColumnOption::DialectSpecific(_)
                | ColumnOption::Identity(_)
                | ColumnOption::Generated { generation_expr: None, .. } => {}
                ColumnOption::Default(expr)
                | ColumnOption::OnUpdate(expr)
                | ColumnOption::Generated { generation_expr: Some(expr), .. } => self.unconditioned(expr),
                ColumnOption::Check(check) => self.unconditioned(&check.expr),
                _ => self.unknown("an option of a column"),
            }
        }
    }

    /// A column may have a type of one's own: nothing runs when it is made.
    fn defined_type(&mut self, data_type: &'a sqlparser::ast::DataType) {
        if !matches!(data_type, sqlparser::ast::DataType::Custom(..)) {
            self.data_type(data_type);
        }
    }

    pub(super) fn create_view(&mut self, create: &'a CreateView) -> &'static str {
        let risk = if create.or_replace || create.or_alter { Risk::Critical } else { Risk::High };
        self.writes(&create.name, risk);
        let plain =
            create.to.is_none() && matches!(create.options, CreateTableOptions::None | CreateTableOptions::With(_));
        self.absent(plain, "options of a view");
        self.query(&create.query);
        "create_view"
    }

    pub(super) fn create_index(&mut self, create: &'a CreateIndex) -> &'static str {
        self.writes(&create.table_name, Risk::High);
        self.absent(create.alter_options.is_empty(), "options of an index");
        for IndexColumn { column, operator_class: _ } in &create.columns {
            self.unconditioned(&column.expr);
        }
        if let Some(predicate) = &create.predicate {
            self.unconditioned(predicate);
        }
        "create_index"
    }

    /// Always critical, whatever the operation; new columns may call functions.
    pub(super) fn alter_table(&mut self, alter: &'a AlterTable) -> &'static str {
        use sqlparser::ast::AlterTableOperation;
        self.writes(&alter.name, Risk::Critical);
        for operation in &alter.operations {
            if let AlterTableOperation::AddColumn { column_def, .. } = operation {
                self.column_def(column_def);
            }
        }
        "alter_table"
    }
}
