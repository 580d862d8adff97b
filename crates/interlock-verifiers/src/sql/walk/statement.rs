//! Kinds of statements: what each does at worst.

use sqlparser::ast::{
    CopySource, DescribeAlias, Function, Grant, ObjectName, ObjectType, Revoke, ShowStatementFilter,
    ShowStatementFilterPosition, ShowStatementOptions, Statement, Truncate, UtilityOption, VacuumStatement, Value,
};

use super::{Name, Walker};
use crate::outcome::Risk;
use crate::sql::dialect::Dialect;
use crate::sql::keywords;

impl<'a> Walker<'a> {
    /// Walks a statement and says what kind it is.
    pub(super) fn statement(&mut self, statement: &'a Statement) -> &'static str {
        if !self.deeper() {
            return "unknown";
        }
        let kind = match statement {
            Statement::Query(query) => {
                self.query(query);
                query_kind(query)
            }
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            Statement::Merge(merge) => self.merge(merge),
            Statement::CreateTable(create) => self.create_table(create),
            Statement::CreateView(create) => self.create_view(create),
            Statement::CreateIndex(create) => self.create_index(create),
            Statement::Explain {
                describe_alias,
                analyze: _,
                verbose: _,
                query_plan,
                estimate: _,
                statement,
                format: _,
                options,
            } => {
                use Dialect::{Mysql, Postgres, Snowflake, Sqlite};
                self.only_in(match (describe_alias, query_plan) {
                    (_, true) => &[Sqlite],
                    (DescribeAlias::Explain, false) => &[Postgres, Mysql, Sqlite, Snowflake],
                    (DescribeAlias::Describe | DescribeAlias::Desc, false) => &[Mysql],
                });
                for UtilityOption { name, arg } in options.iter().flatten() {
                    self.ident(name);
                    // `ANALYZE` or `ANALYZE off`: a word, not a column.
                    self.absent(arg.as_ref().is_none_or(is_plain_option), "an option of EXPLAIN");
                }
                // With ANALYZE the statement runs; without, nothing is lost by judging it as if it did.
                self.statement(statement);
                "explain"
            }
            Statement::ExplainTable { describe_alias: _, hive_format, has_table_keyword: _, table_name } => {
                self.only_in(&[Dialect::Mysql, Dialect::Snowflake]);
                self.absent(hive_format.is_none(), "a format of DESCRIBE");
                self.table_named(table_name);
                "describe"
            }
            _ => match self.show(statement).or_else(|| self.administrative(statement)) {
                Some(kind) => kind,
                None => {
                    self.unknown("a kind of statement");
                    self.raise(Risk::Critical);
                    "unknown"
                }
            },
        };
        self.back_up();
        kind
    }

    /// What other dialects do not have. SQL Server runs a procedure if it does not know the first word of a statement.
    pub(super) fn only_in(&mut self, dialects: &[Dialect]) {
        if !dialects.contains(&self.dialect) {
            self.found.misread.get_or_insert(0);
        }
    }

    /// Statements that show what there is.
    fn show(&mut self, statement: &'a Statement) -> Option<&'static str> {
        match statement {
            Statement::ShowTables { show_options, .. }
            | Statement::ShowViews { show_options, .. }
            | Statement::ShowSchemas { show_options, .. }
            | Statement::ShowDatabases { show_options, .. }
            | Statement::ShowColumns { show_options, .. } => self.show_options(show_options),
            Statement::ShowVariable { variable: _ } => {
                // The words are names of settings; what else a server may understand by SHOW is not listed.
                self.absent(self.dialect == Dialect::Postgres, "a kind of SHOW");
            }
            Statement::ShowStatus { filter, .. }
            | Statement::ShowVariables { filter, .. }
            | Statement::ShowCollation { filter }
            | Statement::ShowFunctions { filter } => self.show_filter(filter.as_ref()),
            Statement::ShowCreate { obj_type: _, obj_name } => self.name(obj_name),
            Statement::ShowCharset(charset) => self.show_filter(charset.filter.as_ref()),
            Statement::ShowProcessList { full: _ } => {}
            _ => return None,
        }
        self.only_in(match statement {
            Statement::ShowVariable { .. } => &[Dialect::Postgres, Dialect::Mysql, Dialect::Snowflake],
            _ => &[Dialect::Mysql, Dialect::Snowflake],
        });
        Some("show")
    }

    fn show_options(&mut self, options: &'a ShowStatementOptions) {
        let ShowStatementOptions { show_in, starts_with: _, limit, limit_from: _, filter_position } = options;
        if let Some(name) = show_in.as_ref().and_then(|place| place.parent_name.as_ref()) {
            self.name(name);
        }
        if let Some(limit) = limit {
            self.expr(limit);
        }
        match filter_position {
            None => {}
            Some(ShowStatementFilterPosition::Infix(filter) | ShowStatementFilterPosition::Suffix(filter)) => {
                self.show_filter(Some(filter));
            }
        }
    }

    fn show_filter(&mut self, filter: Option<&'a ShowStatementFilter>) {
        match filter {
            None
            | Some(ShowStatementFilter::Like(_) | ShowStatementFilter::ILike(_) | ShowStatementFilter::NoKeyword(_)) => {
            }
            Some(ShowStatementFilter::Where(condition)) => self.predicate(condition),
        }
    }

    fn table_named(&mut self, name: &'a ObjectName) {
        self.scopes.push(super::Scope::default());
        self.table(name, None);
        self.scopes.pop();
    }

    /// Statements that destroy, or rule over others.
    fn administrative(&mut self, statement: &'a Statement) -> Option<&'static str> {
        let kind = match statement {
            Statement::Drop { object_type, names, .. } => {
                for name in names {
                    self.found.writes.push(Name::Object(name));
                }
                drop_kind(*object_type)
            }
            Statement::Truncate(Truncate { table_names, .. }) => {
                for target in table_names {
                    self.found.writes.push(Name::Object(&target.name));
                }
                "truncate"
            }
            Statement::AlterTable(alter) => self.alter_table(alter),
            Statement::Copy { source, .. } => {
                match source {
                    CopySource::Table { table_name, columns } => {
                        for column in columns {
                            self.column(column);
                        }
                        if columns.is_empty() {
                            self.found.unknown_columns = true;
                        }
                        self.found.reads.push(Name::Object(table_name));
                    }
                    CopySource::Query(query) => {
                        self.query(query);
                    }
                }
                "copy"
            }
            Statement::Call(function) => {
                self.procedure(function);
                "call"
            }
            Statement::Execute { name, parameters, immediate, into, using, .. } => {
                self.absent(!immediate && into.is_empty() && using.is_empty(), "EXECUTE IMMEDIATE");
                self.exprs(parameters);
                match name {
                    Some(name) => self.procedure_name(name),
                    None => self.unknown("EXECUTE of a text"),
                }
                "execute"
            }
            Statement::Prepare { name: _, data_types: _, statement } => {
                self.statement(statement);
                "prepare"
            }
            Statement::Pragma { name, value, is_eq } => {
                return Some(self.pragma(name, value.as_ref().map(|v| &v.value), *is_eq));
            }
            Statement::Grant(Grant { .. }) => "grant",
            Statement::Revoke(Revoke { .. }) => "revoke",
            Statement::Deny(_) => "deny",
            Statement::Set(_) => "set",
            Statement::Reset(_) => "reset",
            Statement::Use(_) => "use",
            Statement::Vacuum(VacuumStatement { .. }) => "vacuum",
            Statement::Analyze(_) => "analyze",
            Statement::AttachDatabase { .. } | Statement::AttachDuckDBDatabase { .. } => "attach",
            Statement::DetachDuckDBDatabase { .. } => "detach",
            Statement::Kill { .. } => "kill",
            Statement::Flush { .. } => "flush",
            Statement::Discard { .. } => "discard",
            Statement::Lock(_) | Statement::LockTables { .. } => "lock",
            Statement::UnlockTables => "unlock",
            Statement::Load { .. } | Statement::LoadData { .. } => "load",
            Statement::Install { .. } => "install",
            Statement::Deallocate { .. } => "deallocate",
            Statement::LISTEN { .. } => "listen",
            Statement::UNLISTEN { .. } => "unlisten",
            Statement::NOTIFY { .. } => "notify",
            Statement::StartTransaction { statements, exception, .. } => {
                self.absent(statements.is_empty() && exception.is_none(), "a block");
                "begin"
            }
            Statement::Commit { .. } => "commit",
            Statement::Rollback { .. } => "rollback",
            Statement::Savepoint { .. } => "savepoint",
            Statement::ReleaseSavepoint { .. } => "release_savepoint",
            Statement::RenameTable(tables) => {
                for table in tables {
                    self.found.writes.push(Name::Object(&table.old_name));
                }
                "rename_table"
            }
            Statement::Comment { .. } => "comment",
            Statement::CreateFunction(_) => "create_function",
            Statement::CreateProcedure { .. } => "create_procedure",
            Statement::CreateTrigger(_) => "create_trigger",
            Statement::CreateExtension(_) => "create_extension",
            Statement::CreateRole(_) => "create_role",
            Statement::CreateUser(_) => "create_user",
            Statement::CreateSchema { .. } => "create_schema",
            Statement::CreateDatabase { .. } => "create_database",
            Statement::CreateVirtualTable { .. } => "create_virtual_table",
            Statement::CreateSequence { .. } => "create_sequence",
            Statement::CreateType { .. } => "create_type",
            Statement::CreateDomain(_) => "create_domain",
            Statement::CreatePolicy(_) => "create_policy",
            Statement::CreateServer(_) => "create_server",
            Statement::AlterRole { .. } => "alter_role",
            Statement::AlterUser(_) => "alter_user",
            Statement::AlterIndex { .. } => "alter_index",
            Statement::AlterSchema(_) => "alter_schema",
            Statement::AlterFunction(_) => "alter_function",
            Statement::AlterType(_) => "alter_type",
            Statement::AlterPolicy(_) => "alter_policy",
            Statement::AlterView { query, .. } => {
                self.query(query);
                "alter_view"
            }
            Statement::DropFunction(_) => "drop_function",
            Statement::DropProcedure { .. } => "drop_procedure",
            Statement::DropTrigger(_) => "drop_trigger",
            Statement::DropExtension(_) => "drop_extension",
            Statement::DropPolicy(_) => "drop_policy",
            Statement::DropDomain(_) => "drop_domain",
            _ => return None,
        };
        self.raise(Risk::Critical);
        Some(kind)
    }

    /// A procedure may do anything, which its risk says already; the harmful ones are refused by name.
    fn procedure(&mut self, function: &'a Function) {
        self.procedure_name(&function.name);
        if let sqlparser::ast::FunctionArguments::List(list) = &function.args {
            self.args(&function.name, &list.args);
        }
    }

    fn procedure_name(&mut self, name: &'a ObjectName) {
        let before = self.found.function;
        self.call(name);
        if self.found.function.is_some_and(|function| !function.harmful) {
            self.found.function = before;
        }
    }

    fn pragma(&mut self, name: &'a ObjectName, value: Option<&'a Value>, is_assignment: bool) -> &'static str {
        self.only_in(&[Dialect::Sqlite]);
        let word = super::last(name).map_or("", |name| name.value.as_str());
        let reads = !is_assignment && keywords::is_reading_pragma(word, value.is_some());
        self.raise(if reads { Risk::Low } else { Risk::Critical });
        "pragma"
    }
}

fn query_kind(query: &sqlparser::ast::Query) -> &'static str {
    use sqlparser::ast::SetExpr;
    match query.body.as_ref() {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::SetOperation { .. } => "select",
        SetExpr::Values(_) => "values",
        SetExpr::Table(_) => "table",
        SetExpr::Insert(_) => "insert",
        SetExpr::Update(_) => "update",
        SetExpr::Delete(_) => "delete",
        SetExpr::Merge(_) => "merge",
    }
}

fn drop_kind(object_type: ObjectType) -> &'static str {
    match object_type {
        ObjectType::Table => "drop_table",
        ObjectType::View | ObjectType::MaterializedView => "drop_view",
        ObjectType::Index => "drop_index",
        ObjectType::Schema => "drop_schema",
        ObjectType::Database => "drop_database",
        ObjectType::Role => "drop_role",
        ObjectType::User => "drop_user",
        ObjectType::Sequence => "drop_sequence",
        ObjectType::Type => "drop_type",
        ObjectType::Collation | ObjectType::Stage | ObjectType::Stream | ObjectType::Warehouse => "drop",
    }
}

/// A word or a literal, as options have it.
fn is_plain_option(arg: &sqlparser::ast::Expr) -> bool {
    use sqlparser::ast::Expr;
    matches!(arg, Expr::Identifier(_) | Expr::Value(_))
}
