//! Reads a schema: `CREATE TABLE` statements, or JSON.

use interlock_core::Cause;
use interlock_core::json::{self, Kind, Limits, Value};
use sqlparser::ast::{CreateTable, ObjectNamePart, Statement};
use sqlparser::parser::Parser;

use super::dialect::Dialect;
use super::lex::scan;
use super::limits::{COLUMNS_MAX, PARSER_DEPTH_MAX, SCHEMA_BYTES_MAX};
use super::rules::{Column, Schema, Table};

/// Reads a schema that is a text.
pub(super) fn read(text: &str, dialect: Option<Dialect>) -> Result<Schema, Cause> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!("the schema is longer than {SCHEMA_BYTES_MAX} bytes").into());
    }
    let schema = if text.trim_start().starts_with('{') {
        let document = json::parse(text, &Limits::CONFIG).map_err(|error| Cause::while_doing("the schema", error))?;
        of_json(document.root())?
    } else {
        of_statements(text, dialect)?
    };
    if schema.is_empty() { Err("the schema has no table".into()) } else { Ok(schema) }
}

/// Reads a schema that is JSON already.
pub(super) fn read_value(value: Value<'_>, dialect: Option<Dialect>) -> Result<Schema, Cause> {
    match value.as_str() {
        Some(text) => read(text.text(), dialect),
        None => {
            let schema = of_json(value)?;
            if schema.is_empty() { Err("the schema has no table".into()) } else { Ok(schema) }
        }
    }
}

/// `{"users": ["id"]}` or `{"tables": {"users": {"columns": ["id"], "sensitive": ["ssn"]}}}`.
fn of_json(value: Value<'_>) -> Result<Schema, Cause> {
    let members = value.as_object().ok_or("the schema is not an object")?;
    let nested = value.get("tables").filter(|tables| tables.kind() == Some(Kind::Object) && members.count() == 1);
    let tables = match nested {
        Some(tables) => tables.as_object().ok_or("the schema is not an object")?,
        None => members,
    };
    let mut schema = Schema::default();
    for (name, table) in tables {
        let name = name.text();
        let columns = match table.kind() {
            Some(Kind::Array) => columns_of(table)?,
            Some(Kind::Object) => {
                let mut columns = columns_of(table.get("columns").ok_or("a table of the schema has no `columns`")?)?;
                if let Some(sensitive) = table.get("sensitive") {
                    for name in names_of(sensitive)? {
                        match columns.iter_mut().find(|column| column.name.eq_ignore_ascii_case(&name)) {
                            Some(column) => column.sensitive = true,
                            None => return Err("a sensitive column of the schema is not among the columns".into()),
                        }
                    }
                }
                columns
            }
            _ => return Err("a table of the schema is neither a list nor an object".into()),
        };
        let mut parts: Vec<String> = name.split('.').map(str::to_lowercase).collect();
        let last = parts.pop().filter(|last| !last.is_empty()).ok_or("a table of the schema has no name")?;
        if !schema.add(&last, Table { qualifiers: parts, columns }) {
            return Err("a table of the schema is there twice".into());
        }
    }
    Ok(schema)
}

/// Columns as names, or as objects with `name` and `sensitive`; or an object whose keys are the names.
fn columns_of(value: Value<'_>) -> Result<Vec<Column>, Cause> {
    if let Some(members) = value.as_object() {
        return Ok(members.map(|(name, _)| Column { name: name.text().to_lowercase(), sensitive: false }).collect());
    }
    let items = value.as_array().ok_or("the columns of the schema are not a list")?;
    if items.len() > COLUMNS_MAX {
        return Err(format!("a table of the schema has more than {COLUMNS_MAX} columns").into());
    }
    let mut columns = Vec::new();
    for item in items {
        let (name, sensitive) = match item.as_str() {
            Some(name) => (name.text(), false),
            None => {
                let name =
                    item.get("name").and_then(|name| name.as_str()).ok_or("a column of the schema has no name")?;
                (name.text(), item.get("sensitive").and_then(|sensitive| sensitive.as_bool()).unwrap_or(false))
            }
        };
        if name.is_empty() {
            return Err("a column of the schema has no name".into());
        }
        columns.push(Column { name: name.to_lowercase(), sensitive });
    }
    Ok(columns)
}

fn names_of(value: Value<'_>) -> Result<Vec<String>, Cause> {
    let items = value.as_array().ok_or("the sensitive columns of the schema are not a list")?;
    items
        .map(|item| item.as_str().map(|name| name.text().to_owned()))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| "a sensitive column of the schema is not a name".into())
}

/// Statements that make tables; what else a schema file holds (indexes, grants) is passed over, but must parse.
fn of_statements(text: &str, dialect: Option<Dialect>) -> Result<Schema, Cause> {
    let mut reason = None;
    for dialect in dialect.map_or_else(|| Dialect::ALL.to_vec(), |dialect| vec![dialect]) {
        match statements_in(text, dialect) {
            Ok(schema) => return Ok(schema),
            Err(why) => reason = reason.or(Some(why)),
        }
    }
    Err(reason.unwrap_or_else(|| "there is no dialect to read the schema in".into()))
}

fn statements_in(text: &str, dialect: Dialect) -> Result<Schema, Cause> {
    let refuse = |at: usize| format!("the schema is not {} at byte {at}", dialect.name());
    let scan = scan(text, dialect, dialect.modes()).map_err(|not_read| match not_read {
        super::lex::NotRead::NotSql { at } | super::lex::NotRead::NotUnderstood { at, what: _ } => refuse(at),
        super::lex::NotRead::Limit { what } => format!("the schema is beyond a limit: {what}"),
    })?;
    let mut parser =
        Parser::new(dialect.grammar()).with_recursion_limit(PARSER_DEPTH_MAX).with_tokens_with_locations(scan.tokens);
    let mut schema = Schema::default();
    loop {
        while parser.consume_token(&sqlparser::tokenizer::Token::SemiColon) {}
        if parser.peek_token_ref().token == sqlparser::tokenizer::Token::EOF {
            return Ok(schema);
        }
        let place = |parser: &Parser<'_>| usize::try_from(parser.peek_token_ref().span.start.column).unwrap_or(0);
        let statement = parser.parse_statement().map_err(|_| refuse(place(&parser)))?;
        if let Statement::CreateTable(create) = &statement {
            add(&mut schema, create)?;
        }
        let next = parser.peek_token_ref();
        if !matches!(next.token, sqlparser::tokenizer::Token::SemiColon | sqlparser::tokenizer::Token::EOF) {
            return Err(refuse(place(&parser)).into());
        }
    }
}

fn add(schema: &mut Schema, create: &CreateTable) -> Result<(), Cause> {
    let mut parts: Vec<String> =
        create.name.0.iter().filter_map(ObjectNamePart::as_ident).map(|part| part.value.to_lowercase()).collect();
    let name = parts.pop().ok_or("a table of the schema has no name")?;
    if create.columns.is_empty() {
        return Err("a table of the schema has no columns".into());
    }
    if create.columns.len() > COLUMNS_MAX {
        return Err(format!("a table of the schema has more than {COLUMNS_MAX} columns").into());
    }
    let columns = create
        .columns
        .iter()
        .map(|column| Column { name: column.name.value.to_lowercase(), sensitive: false })
        .collect();
    if schema.add(&name, Table { qualifiers: parts, columns }) {
        Ok(())
    } else {
        Err("a table of the schema is there twice".into())
    }
}
