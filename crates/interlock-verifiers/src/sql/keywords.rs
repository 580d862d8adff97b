//! Words of the dialects, in small tables: reserved ones, types, functions, parts of dates.

/// Words that are no names in Transact-SQL unless quoted; many of them begin a statement, which needs no semicolon
/// before it. `GO` ends a batch for the usual clients.
#[rustfmt::skip]
const MSSQL_RESERVED: &[&str] = &[
    "ADD", "ALL", "ALTER", "AND", "ANY", "AS", "ASC", "AUTHORIZATION", "BACKUP", "BEGIN", "BETWEEN", "BREAK",
    "BROWSE", "BULK", "BY", "CASCADE", "CASE", "CHECK", "CHECKPOINT", "CLOSE", "CLUSTERED", "COALESCE", "COLLATE",
    "COLUMN", "COMMIT", "COMPUTE", "CONSTRAINT", "CONTAINS", "CONTAINSTABLE", "CONTINUE", "CONVERT", "CREATE",
    "CROSS", "CURRENT", "CURSOR", "DATABASE", "DBCC", "DEALLOCATE", "DECLARE", "DEFAULT", "DELETE", "DENY", "DESC",
    "DISK", "DISTINCT", "DISTRIBUTED", "DOUBLE", "DROP", "DUMP", "ELSE", "END", "ERRLVL", "ESCAPE", "EXCEPT", "EXEC",
    "EXECUTE", "EXISTS", "EXIT", "EXTERNAL", "FETCH", "FILE", "FILLFACTOR", "FOR", "FOREIGN", "FREETEXT",
    "FREETEXTTABLE", "FROM", "FULL", "FUNCTION", "GO", "GOTO", "GRANT", "GROUP", "HAVING", "HOLDLOCK", "IDENTITY",
    "IDENTITYCOL", "IDENTITY_INSERT", "IF", "IN", "INDEX", "INNER", "INSERT", "INTERSECT", "INTO", "IS", "JOIN",
    "KEY", "KILL", "LEFT", "LIKE", "LINENO", "LOAD", "MERGE", "NATIONAL", "NOCHECK", "NONCLUSTERED", "NOT", "NULL",
    "NULLIF", "OF", "OFF", "OFFSETS", "ON", "OPEN", "OPENDATASOURCE", "OPENQUERY", "OPENROWSET", "OPENXML", "OPTION",
    "OR", "ORDER", "OUTER", "OVER", "PERCENT", "PIVOT", "PLAN", "PRECISION", "PRIMARY", "PRINT", "PROC", "PROCEDURE",
    "PUBLIC", "RAISERROR", "READ", "READTEXT", "RECONFIGURE", "REFERENCES", "REPLICATION", "RESTORE", "RESTRICT",
    "RETURN", "REVERT", "REVOKE", "RIGHT", "ROLLBACK", "ROWCOUNT", "ROWGUIDCOL", "RULE", "SAVE", "SCHEMA",
    "SECURITYAUDIT", "SELECT", "SEMANTICKEYPHRASETABLE", "SEMANTICSIMILARITYDETAILSTABLE", "SEMANTICSIMILARITYTABLE",
    "SET", "SETUSER", "SHUTDOWN", "SOME", "STATISTICS", "TABLE", "TABLESAMPLE", "TEXTSIZE", "THEN", "THROW", "TO",
    "TOP", "TRAN", "TRANSACTION", "TRIGGER", "TRUNCATE", "TRY_CONVERT", "TSEQUAL", "UNION", "UNIQUE", "UNPIVOT",
    "UPDATE", "UPDATETEXT", "USE", "VALUES", "VARYING", "VIEW", "WAITFOR", "WHEN", "WHERE", "WHILE", "WITH", "WITHIN",
    "WRITETEXT",
];

/// Types of the servers themselves that the parser has no word for.
#[rustfmt::skip]
const BUILTIN_TYPES: &[&str] = &[
    "aclitem", "bignumeric", "bigserial", "bit", "box", "box2d", "bpchar", "byte", "bytes", "char", "cid", "cidr",
    "circle", "citext", "date", "daterange", "datetime2", "datetimeoffset", "fixed", "float", "geography", "geometry",
    "hierarchyid", "hstore", "image", "inet", "int4range", "int8range", "integer", "json", "jsonb", "jsonpath",
    "line", "lseg", "macaddr", "macaddr8", "money", "name", "ntext", "number", "numrange", "object", "oid",
    "oidvector", "path", "pg_lsn", "point", "polygon", "real", "regclass", "regcollation", "regconfig",
    "regdictionary", "regnamespace", "regoper", "regoperator", "regproc", "regprocedure", "regrole", "regtype",
    "rowversion", "serial", "smalldatetime", "smallmoney", "smallserial", "sql_variant", "string", "sysname", "text",
    "tid", "timestamp", "timestamp_ltz", "timestamp_ntz", "timestamp_tz", "timestampltz", "timestampntz",
    "timestamptz", "timetz", "tsquery", "tsrange", "tstzrange", "tsvector", "txid_snapshot", "unique_identifier",
    "uniqueidentifier", "uuid", "varbyte", "variant", "vector", "xid", "xml", "year",
];

/// Functions that take the name of a part of a date, such as `day`, in place of a value.
#[rustfmt::skip]
const TAKE_DATE_PART: &[&str] = &[
    "date_add", "date_diff", "date_part", "date_sub", "date_trunc", "dateadd", "datediff", "datediff_big", "datename",
    "datepart", "datetime_add", "datetime_diff", "datetime_sub", "datetime_trunc", "datetrunc", "last_day",
    "next_day", "time_add", "time_diff", "time_slice", "time_sub", "time_trunc", "timeadd", "timediff",
    "timestamp_add", "timestamp_diff", "timestamp_sub", "timestamp_trunc", "timestampadd", "timestampdiff", "trunc",
];

#[rustfmt::skip]
const DATE_PARTS: &[&str] = &[
    "century", "d", "date", "dateofweek", "day", "dayofmonth", "dayofweek", "dayofyear", "days", "dd", "decade", "dw",
    "dy", "epoch_second", "hh", "hour", "hours", "iso_week", "isoweek", "isoyear", "mcs", "microsecond", "mi",
    "millisecond", "minute", "minutes", "mm", "mon", "month", "months", "ms", "n", "nanosecond", "ns", "q", "qq",
    "quarter", "s", "second", "seconds", "ss", "tz", "w", "week", "weekday", "weeks", "wk", "ww", "y", "year",
    "years", "yy", "yyyy",
];

/// Pragmas of SQLite that only read, without and with an argument.
const READING_PRAGMAS: &[(&str, bool)] = &[
    ("application_id", false),
    ("collation_list", false),
    ("compile_options", false),
    ("data_version", false),
    ("database_list", false),
    ("encoding", false),
    ("foreign_key_list", true),
    ("foreign_keys", false),
    ("freelist_count", false),
    ("function_list", false),
    ("index_info", true),
    ("index_list", true),
    ("index_xinfo", true),
    ("journal_mode", false),
    ("page_count", false),
    ("page_size", false),
    ("schema_version", false),
    ("synchronous", false),
    ("table_info", true),
    ("table_list", false),
    ("table_list", true),
    ("table_xinfo", true),
    ("user_version", false),
];

/// Pragmas of SQLite that can be read as tables without more than reading.
#[rustfmt::skip]
const READING_PRAGMA_TABLES: &[&str] = &[
    "collation_list", "compile_options", "database_list", "foreign_key_list", "function_list", "index_info",
    "index_list", "index_xinfo", "module_list", "pragma_list", "table_info", "table_list", "table_xinfo",
];

/// Functions of PostgreSQL that do something, beside those that `pg_` begins: no column goes by such a name.
#[rustfmt::skip]
const CHANGING: &[&str] = &[
    "crosstab", "dblink", "dblink_connect", "dblink_exec", "dblink_send_query", "lo_close", "lo_creat", "lo_create",
    "lo_export", "lo_get", "lo_import", "lo_open", "lo_put", "lo_truncate", "lo_unlink", "loread", "lowrite",
    "nextval", "query_to_xml", "set_config", "setseed", "setval", "table_to_xml", "ts_rewrite", "ts_stat",
    "txid_current",
];

/// Functions of PostgreSQL that return rows, and what their columns are called.
const ROW_FUNCTIONS: &[(&str, &[&str])] = &[
    ("each", &["key", "value"]),
    ("json_array_elements", &["value"]),
    ("json_array_elements_text", &["value"]),
    ("json_each", &["key", "value"]),
    ("json_each_text", &["key", "value"]),
    ("jsonb_array_elements", &["value"]),
    ("jsonb_array_elements_text", &["value"]),
    ("jsonb_each", &["key", "value"]),
    ("jsonb_each_text", &["key", "value"]),
    ("pg_get_keywords", &["word", "catcode", "barelabel", "catdesc", "baredesc"]),
    ("pg_options_to_table", &["option_name", "option_value"]),
    ("pg_partition_tree", &["relid", "parentrelid", "isleaf", "level"]),
    ("pg_timezone_abbrevs", &["abbrev", "utc_offset", "is_dst"]),
    ("pg_timezone_names", &["name", "abbrev", "utc_offset", "is_dst"]),
];

/// Words that are no names in any dialect unless quoted.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "AND", "AS", "BETWEEN", "CASE", "CREATE", "DISTINCT", "ELSE", "FROM", "GROUP", "HAVING", "IN", "INTO", "IS",
    "NOT", "NULL", "ON", "OR", "ORDER", "SELECT", "THEN", "UNION", "WHEN", "WHERE",
];

/// Words that PostgreSQL takes for syntax where the parser sees a name: `FROM ONLY t`.
#[rustfmt::skip]
const POSTGRES_RESERVED: &[&str] = &[
    "ALL", "ANALYSE", "ANALYZE", "ANY", "ARRAY", "ASC", "ASYMMETRIC", "BOTH", "CAST", "CHECK", "COLLATE", "COLUMN",
    "CONSTRAINT", "DEFAULT", "DEFERRABLE", "DESC", "DO", "END", "EXCEPT", "FETCH", "FOR", "FOREIGN", "GRANT",
    "INITIALLY", "INTERSECT", "LATERAL", "LEADING", "LIMIT", "OFFSET", "ONLY", "PLACING", "PRIMARY", "REFERENCES",
    "RETURNING", "SOME", "SYMMETRIC", "TABLE", "TO", "TRAILING", "UNIQUE", "USING", "VARIADIC", "WINDOW", "WITH",
];

fn is_in(words: &[&str], word: &str) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

pub(super) fn is_reserved_in_mssql(word: &str) -> bool {
    is_in(MSSQL_RESERVED, word)
}

pub(super) fn is_reserved_everywhere(word: &str) -> bool {
    word.len() <= 8 && is_in(RESERVED, word)
}

pub(super) fn is_reserved_in_postgres(word: &str) -> bool {
    word.len() <= 10 && is_in(POSTGRES_RESERVED, word)
}

pub(super) fn is_builtin_type(word: &str) -> bool {
    is_in(BUILTIN_TYPES, word)
}

pub(super) fn takes_date_part(function: &str) -> bool {
    is_in(TAKE_DATE_PART, function)
}

pub(super) fn is_date_part(word: &str) -> bool {
    is_in(DATE_PARTS, word)
}

/// Whether strings given to a function may be the names of members.
pub(super) fn takes_json_path(function: &str) -> bool {
    let begins = |prefix: &str| function.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    begins("json") || is_in(&["get_path", "get", "parse_json", "to_json", "xmlforest"], function)
}

/// Functions of PostgreSQL that take a whole row.
pub(super) fn takes_row(function: &str) -> bool {
    #[rustfmt::skip]
    const TAKE_ROW: &[&str] = &[
        "any_value", "array_agg", "concat", "hash_record", "hstore", "json_agg", "json_agg_strict", "json_array",
        "json_build_array", "jsonb_agg", "jsonb_agg_strict", "jsonb_build_array", "max", "min", "mode",
        "quote_literal", "quote_nullable", "record_out", "record_send", "row_to_json", "to_json", "to_jsonb",
    ];
    is_in(TAKE_ROW, function)
}

/// Functions of time and chance that take a precision or a seed.
pub(super) fn is_time_or_chance(function: &str) -> bool {
    #[rustfmt::skip]
    const NAMES: &[&str] = &[
        "current_time", "current_timestamp", "curtime", "localtime", "localtimestamp", "now", "rand", "random",
        "sysdate", "utc_time", "utc_timestamp",
    ];
    is_in(NAMES, function)
}

/// Whether the first argument of a function is a condition.
pub(super) fn is_conditional(function: &str) -> bool {
    is_in(&["if", "iif", "iff", "likelihood", "likely", "unlikely"], function)
}

/// The columns of a function that returns rows.
pub(super) fn columns_of_function(function: &str) -> Option<&'static [&'static str]> {
    ROW_FUNCTIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(function)).map(|(_, columns)| *columns)
}

/// Whether a name is that of a function of PostgreSQL that is feared even where a column may be meant.
pub(super) fn changes_something(name: &str) -> bool {
    name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("pg_")) || is_in(CHANGING, name)
}

/// Whether a table is a pragma of SQLite that may do more than read.
pub(super) fn is_other_pragma_table(table: &str) -> bool {
    const START: &str = "pragma_";
    let begins = table.get(..START.len()).is_some_and(|start| start.eq_ignore_ascii_case(START));
    begins && !table.get(START.len()..).is_some_and(|name| is_in(READING_PRAGMA_TABLES, name))
}

pub(super) fn is_reading_pragma(name: &str, has_argument: bool) -> bool {
    READING_PRAGMAS.iter().any(|(known, takes)| known.eq_ignore_ascii_case(name) && *takes == has_argument)
}
