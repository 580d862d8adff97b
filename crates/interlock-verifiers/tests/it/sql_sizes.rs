//! The SQL engine on texts made to be large, deep or slow.

use interlock_core::action::ActionText;
use interlock_core::json::{self, Limits, quote};
use interlock_verifiers::sql::{Databases, Sql, TEXT_BYTES_MAX};
use interlock_verifiers::{Ground, Outcome, Status, Verifier};

fn ask(text: &str, dialect: &str) -> Outcome {
    let source = format!("{{\"query\":{},\"parameters\":{{\"dialect\":{}}}}}", quote(text), quote(dialect));
    let document = json::parse(&source, &Limits::STATE).unwrap();
    let action = ActionText {
        kind: "execute_sql",
        query: document.root().get("query"),
        code: None,
        target: None,
        parameters: document.root().get("parameters"),
    };
    let databases = Databases::load(None).unwrap();
    let commands = interlock_verifiers::shell::Commands::load(None).unwrap();
    Sql.verify(&action, &Ground { databases, commands, trusts_action: true })
}

/// `before`, then `unit` as often as asked, then `middle`, then `close` as often, then `after`.
type Shape = (&'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    ("SELECT ", "(", "1", ")", ""),
    ("SELECT ", "((", "1", "))", ""),
    ("SELECT ", "(", "", "", ""),
    ("SELECT ", "(((;", "1", ")))", ""),
    ("SELECT ", "(SELECT ", "1", ")", ""),
    ("SELECT * FROM ", "(SELECT * FROM ", "t", ") x", ""),
    ("SELECT * FROM ", "(SELECT * FROM ", "t", "", ""),
    ("SELECT * FROM ", "(", "t", ")", ""),
    ("SELECT * FROM ", "(", "t", " JOIN u ON a = b)", ""),
    ("SELECT * FROM ", "((", "t", ") JOIN u)", ""),
    ("SELECT * FROM a ", "JOIN b ON a.x = b.x ", "", "", ""),
    ("SELECT * FROM a ", "JOIN (b ", "", ")", ""),
    ("SELECT * FROM a", ", LATERAL (SELECT 1 FROM a", "", ") l", ""),
    ("SELECT ", "CASE WHEN a THEN ", "1", " END", ""),
    ("SELECT ", "CASE ", "1", "", ""),
    ("SELECT ", "CASE WHEN ", "a", " THEN 1 END", ""),
    ("SELECT ", "NOT ", "a", "", ""),
    ("SELECT ", "- ", "1", "", ""),
    ("SELECT ", "+ ", "1", "", ""),
    ("SELECT ", "~", "1", "", ""),
    ("SELECT ", "!", "1", "", ""),
    ("SELECT ", "@", "1", "", ""),
    ("SELECT ", "a.", "b", "", ""),
    ("SELECT ", "a+", "b", "", ""),
    ("SELECT * FROM t WHERE ", "a = 1 AND ", "b = 2", "", ""),
    ("SELECT * FROM t WHERE ", "a = 1 OR ", "b = 2", "", ""),
    ("SELECT * FROM t WHERE ", "a AND ", "b", "", ""),
    ("SELECT * FROM t WHERE ", "a OR b AND ", "b", "", ""),
    ("SELECT * FROM t WHERE ", "(a OR ", "b", ")", ""),
    ("SELECT * FROM t WHERE ", "NOT (a = ", "b", ")", ""),
    ("SELECT * FROM t WHERE a", " IS NULL", "", "", ""),
    ("SELECT a", "::int", "", "", ""),
    ("SELECT a", " COLLATE c", "", "", ""),
    ("SELECT a", " AT TIME ZONE 'x'", "", "", ""),
    ("SELECT a", "[1]", "", "", ""),
    ("SELECT a", "[", "1", "]", ""),
    ("SELECT ", "[", "1", "]", ""),
    ("SELECT ARRAY", "[", "1", "]", ""),
    ("SELECT ", "ARRAY[", "1", "]", ""),
    ("SELECT ", "{", "1", "}", ""),
    ("SELECT ", "{fn f(", "1", ")}", ""),
    ("SELECT ", "f(", "1", ")", ""),
    ("SELECT ", "f(a, ", "1", ")", ""),
    ("SELECT ", "f(a => ", "1", ")", ""),
    ("SELECT ", "IF(a, ", "1", ", 2)", ""),
    ("SELECT ", "CAST(", "1", " AS int)", ""),
    ("SELECT ", "EXISTS (SELECT ", "1", ")", ""),
    ("SELECT ", "INTERVAL ", "1", "", ""),
    ("SELECT ", "INTERVAL (", "1", ")", ""),
    ("SELECT ", "EXTRACT(day FROM ", "d", ")", ""),
    ("SELECT ", "SUBSTRING(", "d", " FROM 1)", ""),
    ("SELECT ", "TRIM(", "d", ")", ""),
    ("SELECT ", "x -> ", "y", "", ""),
    ("SELECT ", "(x) -> ", "y", "", ""),
    ("SELECT ", "(x, y) -> ", "y", "", ""),
    ("SELECT ", "STRUCT(", "y", ")", ""),
    ("SELECT CAST(a AS ", "ARRAY<", "INT64", ">", ")"),
    ("SELECT CAST(a AS ", "STRUCT<a ", "INT64", ">", ")"),
    ("SELECT 1", " UNION SELECT 1", "", "", ""),
    ("SELECT 1", " UNION ALL (SELECT 1", "", ")", ""),
    ("", "(SELECT 1 UNION ", "SELECT 2", ")", ""),
    ("", "(", "SELECT 2", ")", ""),
    ("WITH ", "a AS (SELECT 1), ", "b AS (SELECT 2)", "", " SELECT * FROM b"),
    ("", "WITH a AS (", "SELECT 1", ") SELECT * FROM a", ""),
    ("WITH RECURSIVE ", "a AS (WITH RECURSIVE ", "b AS (SELECT 1)", " SELECT 1)", " SELECT 1"),
    ("SELECT * FROM t WHERE a IN (", "1, ", "2", "", ")"),
    ("SELECT * FROM t WHERE a IN ", "(SELECT b FROM t WHERE a IN ", "(1)", ")", ""),
    ("SELECT * FROM t WHERE a BETWEEN ", "1 AND 2 BETWEEN ", "1 AND 2", "", ""),
    ("SELECT * FROM t WHERE a LIKE ", "'x' LIKE ", "'y'", "", ""),
    ("SELECT * FROM t WHERE a = ANY (", "ARRAY[", "1", "]", ")"),
    ("INSERT INTO t VALUES ", "(1, 2), ", "(3, 4)", "", ""),
    ("EXPLAIN ", "EXPLAIN ", "SELECT 1", "", ""),
    ("EXPLAIN ANALYZE ", "EXPLAIN ANALYZE ", "SELECT 1", "", ""),
    ("PREPARE p AS ", "PREPARE p AS ", "SELECT 1", "", ""),
    ("", "BEGIN ", "SELECT 1", " END", ""),
    ("", "IF a THEN ", "SELECT 1", " END IF", ""),
    ("CREATE TABLE t (a int DEFAULT ", "(", "1", ")", ")"),
    ("CREATE TABLE t (a ", "ARRAY<", "int", ">", ")"),
    ("CREATE TABLE ", "a.", "b", "", " (x int)"),
    ("SELECT '", "''", "", "", "'"),
    ("SELECT ", "'", "", "", ""),
    ("SELECT ", "\"", "", "", ""),
    ("SELECT ", "`", "", "", ""),
    ("SELECT ", "$", "", "", ""),
    ("SELECT ", "$a$", "", "", ""),
    ("SELECT ", "$$", "", "", ""),
    ("SELECT ", "/*", "", "*/", " 1"),
    ("SELECT ", "/**/", "", "", "1"),
    ("SELECT 1 ", "--", "", "", ""),
    ("SELECT 1", ";", "", "", ""),
    ("", "SELECT 1;", "", "", ""),
    ("SELECT ", "\\", "", "", ""),
    ("SELECT '", "\\'", "", "", "'"),
    ("SELECT ", "1e", "1", "", ""),
    ("SELECT ", "1.", "1", "", ""),
    ("SELECT ", "||", "1", "", ""),
    ("SELECT 1 ", "|| 1 ", "", "", ""),
    ("SELECT ", "a b ", "", "", ""),
    ("SELECT ", "a AS b, ", "c", "", ""),
    ("SELECT ", "* , ", "c", "", ""),
    ("SELECT ", "a.*, ", "c", "", ""),
    ("SELECT a, ", "OVER (PARTITION BY ", "a", ")", ""),
    ("SELECT ", "sum(a) OVER (ORDER BY ", "a", ")", " FROM t"),
    ("SELECT a FROM t ORDER BY ", "a, ", "a", "", ""),
    ("SELECT a FROM t GROUP BY ", "GROUPING SETS (", "a", ")", ""),
    ("SELECT a FROM t GROUP BY ", "ROLLUP (", "a", ")", ""),
    ("", "\u{feff}", "SELECT 1", "", ""),
    ("SELECT ", "\u{a0}", "1", "", ""),
    ("SELECT ", "é", "", "", ""),
    ("SELECT ", ":", "a", "", ""),
    ("SELECT ", ":a", "", "", ""),
    ("SELECT ", "?", "", "", ""),
    ("SELECT ", "x:y[", "1", "]", ""),
    ("SELECT ", "MAP {", "1", ": 2}", ""),
    ("SELECT ", "not a.not b.", "c", "", ""),
    ("SELECT ", "date ", "'x'", "", ""),
    ("SELECT ", "if ", "a", "", ""),
    ("SELECT ", "f(if ", "a", "", ""),
    ("SELECT ", "f((", "a", "", ""),
    ("SELECT ", "case case ", "a", "", ""),
    ("SELECT ", "current_date(", "a", "", ""),
    ("SELECT ", "a in (", "b", ")", ""),
    ("SELECT ", "a in (select b from c where ", "b", ")", ""),
    ("SELECT ", "prior ", "b", "", ""),
    ("SELECT ", "b'", "", "", ""),
    ("SELECT * FROM f(", "f(", "1", ")", ")"),
    ("SELECT * FROM TABLE(", "f(", "1", ")", ")"),
    ("SELECT * FROM t PIVOT(", "sum(", "a", ")", " FOR b IN (1))"),
    ("MERGE INTO t USING s ON a = b ", "WHEN MATCHED THEN DELETE ", "", "", ""),
    ("GRANT ", "a, ", "b", "", " TO c"),
    ("SET a = ", "(", "1", ")", ""),
    ("CALL f(", "f(", "1", ")", ")"),
    ("EXEC f ", "@a = 1, ", "@b = 2", "", ""),
];

const DIALECTS: [&str; 7] = ["postgres", "mysql", "sqlite", "mssql", "snowflake", "bigquery", "generic"];

fn text(shape: &Shape, count: usize) -> String {
    let (before, unit, middle, close, after) = shape;
    [*before, &unit.repeat(count), middle, &close.repeat(count), after].concat()
}

/// Threads of a server have 2 MiB; this leaves a quarter of it to whoever calls.
const STACK_BYTES: usize = 3 * 512 * 1024;

#[test]
fn every_shape_is_answered_on_a_small_stack() {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(try_all_shapes).unwrap();
    thread.join().unwrap();
}

fn try_all_shapes() {
    for shape in SHAPES {
        for count in [3, 12, 20, 31, 33, 60, 240, 900, 2_000, 10_000] {
            let text = text(shape, count);
            if text.len() > TEXT_BYTES_MAX {
                continue;
            }
            for dialect in DIALECTS {
                // An exponential case would take years.
                let outcome = ask(&text, dialect);
                assert!(!outcome.checks.is_empty(), "{shape:?} {count} {dialect}");
            }
        }
    }
}

#[test]
fn ten_thousand_levels_are_never_verified() {
    for (before, unit, middle, close, after) in SHAPES {
        let deep = !close.is_empty() && unit.contains(['(', '[', '{']);
        let text = [*before, &unit.repeat(10_000), middle, &close.repeat(10_000), after].concat();
        for dialect in DIALECTS {
            let outcome = ask(&text, dialect);
            assert!(!deep || outcome.status != Status::Verified, "{before}{unit} {dialect}");
        }
    }
}

#[test]
fn ten_megabytes_are_answered_at_once() {
    for unit in ["(", "a = 1 OR ", "''", ";", "CASE WHEN a THEN "] {
        let text = ["SELECT ", &unit.repeat(10_000_000 / unit.len())].concat();
        for dialect in ["postgres", "generic"] {
            assert_eq!(ask(&text, dialect).status, Status::Uncertain);
        }
    }
}

/// What people write is far within the limits.
#[test]
fn subqueries_may_be_nested_eight_deep_and_parentheses_sixteen() {
    let nested = |shape: &Shape, count| ask(&text(shape, count), "postgres").status;
    assert_eq!(nested(&("SELECT ", "(SELECT ", "1", ")", ""), 8), Status::Verified);
    assert_eq!(nested(&("SELECT * FROM ", "(SELECT * FROM ", "t", ") x", ""), 8), Status::Verified);
    assert_eq!(
        nested(&("SELECT * FROM t WHERE a IN ", "(SELECT b FROM t WHERE a IN ", "(1)", ")", ""), 8),
        Status::Verified
    );
    assert_eq!(nested(&("SELECT ", "(", "1", ")", ""), 16), Status::Verified);
    assert_eq!(nested(&("SELECT * FROM t WHERE ", "a = 1 OR ", "b = 2", "", ""), 200), Status::Verified);
    assert_eq!(nested(&("SELECT * FROM t WHERE a IN (", "1, ", "2", "", ")"), 10_000), Status::Verified);
}

#[test]
fn the_longest_text_is_read_and_one_byte_more_is_not() {
    let literal = |length: usize| format!("SELECT '{}'", "x".repeat(length - "SELECT ''".len()));
    assert_eq!(ask(&literal(TEXT_BYTES_MAX), "postgres").status, Status::Verified);
    assert_eq!(ask(&literal(TEXT_BYTES_MAX + 1), "postgres").status, Status::Uncertain);
}

#[test]
fn a_wide_schema_has_a_limit() {
    use interlock_verifiers::sql::COLUMNS_MAX;
    let schema = |columns: usize| {
        let names: Vec<String> = (0..columns).map(|at| format!("\"c{at}\"")).collect();
        format!("{{\"w\":[{}]}}", names.join(","))
    };
    let status = |columns: usize| {
        let text = format!("{{\"query\":\"SELECT c1 FROM w\",\"parameters\":{{\"schema\":{}}}}}", schema(columns));
        let document = interlock_core::json::parse(&text, &interlock_core::json::Limits::STATE).expect("JSON");
        let root = document.root();
        let (query, parameters) = (root.get("query"), root.get("parameters"));
        let action = interlock_core::action::ActionText { kind: "", query, code: None, target: None, parameters };
        let bundle = interlock_core::bundle::Bundle::built_in().expect("a bundle");
        let ground = interlock_verifiers::Ground::load(&bundle).expect("sound");
        interlock_verifiers::Verifier::verify(&interlock_verifiers::sql::Sql, &action, &ground).status
    };
    assert_eq!(status(COLUMNS_MAX), interlock_verifiers::Status::Verified);
    assert_ne!(status(COLUMNS_MAX + 1), interlock_verifiers::Status::Verified);
}
