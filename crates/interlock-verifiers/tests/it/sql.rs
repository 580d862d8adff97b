//! The SQL engine from outside: a table of statements, whose word counts, and what a bundle may say.

use interlock_core::action::ActionText;
use interlock_core::bundle::SqlSettings;
use interlock_core::json::{self, Limits, quote};
use interlock_verifiers::sql::{Databases, Sql};
use interlock_verifiers::{Ground, Outcome, Risk, Status, Verifier};

use Status::{Failed, Uncertain, Verified};

/// Asks with an action of this JSON and settings of this TOML-like value.
fn ask(action: &str, settings: Option<&SqlSettings>, trusted: bool) -> Outcome {
    let document = json::parse(action, &Limits::STATE).unwrap();
    let root = document.root();
    let action = ActionText {
        kind: "execute_sql",
        query: root.get("query"),
        code: None,
        target: root.get("target"),
        parameters: root.get("parameters"),
    };
    let databases = Databases::load(settings).unwrap();
    let commands = interlock_verifiers::shell::Commands::load(None).unwrap();
    let ground = Ground { databases, commands, trusts_action: trusted };
    let outcome = Sql.verify(&action, &ground);
    assert_eq!(outcome, Sql.verify(&action, &ground), "the same text, the same outcome");
    outcome
}

fn ask_in(text: &str, dialect: &str) -> Outcome {
    ask(&format!("{{\"query\":{},\"parameters\":{{\"dialect\":\"{dialect}\"}}}}", quote(text)), None, true)
}

fn failed_checks(outcome: &Outcome) -> Vec<&'static str> {
    outcome.checks.iter().filter(|check| !check.passed).map(|check| check.name).collect()
}

/// The dialect, the text, and what must be said of it: the kind, a risk, or the check that does not pass.
type Case = (&'static str, &'static str, Status, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Read-only.
    ("generic",   "SELECT id FROM orders WHERE customer_id = 7 ORDER BY id",                    Verified,  "low"),
    ("postgres",  "SELECT count(*) FROM orders",                                                Verified,  "low"),
    ("postgres",  "SELECT o.id, sum(l.price) FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY o.id HAVING sum(l.price) > 10", Verified, "low"),
    ("postgres",  "SELECT id FROM a UNION ALL SELECT id FROM b EXCEPT SELECT id FROM c",         Verified,  "low"),
    ("postgres",  "WITH recent AS (SELECT id FROM orders WHERE placed > now() - interval '1 day') SELECT * FROM recent", Verified, "low"),
    ("postgres",  "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT n FROM t", Verified, "low"),
    ("postgres",  "VALUES (1, 'a'), (2, 'b')",                                                  Verified,  "low"),
    ("postgres",  "TABLE orders",                                                               Verified,  "low"),
    ("mysql",     "TABLE orders ORDER BY id LIMIT 3",                                           Verified,  "low"),
    ("postgres",  "TABLE orders FOR UPDATE",                                                    Verified,  "high"),
    ("mssql",     "TABLE orders FOR UPDATE",                                                    Failed,    "parsed"),
    ("postgres",  "SELECT 1 UNION TABLE orders FOR SHARE",                                      Uncertain, "parsed"),
    ("postgres",  "EXPLAIN SELECT id FROM orders",                                              Verified,  "low"),
    ("postgres",  "EXPLAIN (ANALYZE, BUFFERS) SELECT id FROM orders",                           Verified,  "low"),
    ("postgres",  "SHOW search_path",                                                           Verified,  "low"),
    ("mysql",     "SHOW TABLES",                                                                Verified,  "low"),
    ("mysql",     "DESCRIBE orders",                                                            Verified,  "low"),
    ("mysql",     "SELECT `id` FROM `orders` WHERE `total` >= 5 LIMIT 3, 10",                   Verified,  "low"),
    ("mssql",     "SELECT TOP 10 [id] FROM [dbo].[orders] WHERE [total] > 5",                   Verified,  "low"),
    ("mssql",     "SELECT id FROM orders WITH (NOLOCK)",                                        Verified,  "low"),
    ("mssql",     "SELECT o.id, l.n FROM orders o CROSS APPLY (SELECT count(*) AS n FROM lines WHERE order_id = o.id) l", Verified, "low"),
    ("sqlite",    "SELECT [id] FROM orders WHERE total > ?1",                                   Verified,  "low"),
    ("sqlite",    "PRAGMA table_info(orders)",                                                  Verified,  "low"),
    ("bigquery",  "SELECT id FROM `shop.orders` WHERE DATE_TRUNC(placed, MONTH) = DATE '2026-01-01'", Verified, "low"),
    ("bigquery",  "SELECT * EXCEPT (note) FROM orders",                                         Verified,  "low"),
    ("snowflake", "SELECT data:customer.name::string FROM events",                              Verified,  "low"),
    ("postgres",  "SELECT row_number() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t", Verified, "low"),
    ("postgres",  "SELECT count(*) FILTER (WHERE status = 'paid') FROM orders",                 Verified,  "low"),
    ("postgres",  "SELECT data ->> 'name' FROM events WHERE data @> '{\"kind\": \"x\"}'",       Verified,  "low"),
    ("postgres",  "SELECT id FROM orders WHERE id = ANY($1)",                                   Verified,  "low"),
    ("postgres",  "SELECT g FROM generate_series(1, 10) AS g",                                  Verified,  "low"),
    ("postgres",  "SELECT x.id FROM a JOIN LATERAL (SELECT id FROM b WHERE b.a = a.id LIMIT 1) x ON true", Verified, "low"),
    ("postgres",  "SELECT pg_catalog.lower(name) FROM people",                                  Verified,  "low"),
    ("postgres",  "SELECT $$it's$$",                                                            Verified,  "low"),
    ("postgres",  "SELECT E'it\\'s'",                                                           Verified,  "low"),
    ("postgres",  "SELECT U&'\\0041'",                                                          Verified,  "low"),
    ("postgres",  "SELECT größe FROM maße",                                                     Verified,  "low"),
    ("postgres",  "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END FROM t",                        Verified,  "low"),
    ("postgres",  "SELECT id FROM t WHERE id IN (SELECT t_id FROM u) AND NOT EXISTS (SELECT 1 FROM v WHERE v.id = t.id)", Verified, "low"),
    ("postgres",  "SELECT id FROM t FETCH FIRST 3 ROWS ONLY",                                   Verified,  "low"),
    ("postgres",  "SELECT id FROM t;",                                                          Verified,  "low"),
    ("postgres",  "SELECT id FROM t WHERE random() < 0.1",                                      Verified,  "low"),
    ("postgres",  "SELECT 1 = 1, true",                                                         Verified,  "low"),
    // Writes.
    ("postgres",  "INSERT INTO orders (id) VALUES (1)",                                         Verified,  "high"),
    ("postgres",  "INSERT INTO orders (id) SELECT id FROM old RETURNING id",                    Verified,  "high"),
    ("postgres",  "INSERT INTO t (id, n) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = excluded.n", Verified, "high"),
    ("mysql",     "INSERT INTO t (id, n) VALUES (1, 2) ON DUPLICATE KEY UPDATE n = VALUES(n)",  Verified,  "high"),
    ("postgres",  "UPDATE orders SET status = 'paid' WHERE id = 7",                             Verified,  "high"),
    ("postgres",  "DELETE FROM orders WHERE id = 7",                                            Verified,  "high"),
    ("postgres",  "SELECT id FROM orders FOR UPDATE",                                           Verified,  "high"),
    ("postgres",  "SELECT id FROM orders FOR SHARE",                                            Verified,  "high"),
    ("postgres",  "SELECT id INTO copy FROM orders",                                            Verified,  "high"),
    ("mssql",     "SELECT id FROM orders WITH (UPDLOCK)",                                       Verified,  "high"),
    ("postgres",  "CREATE TABLE t (id int PRIMARY KEY, password text DEFAULT lower('X'))",      Verified,  "high"),
    ("postgres",  "CREATE TABLE t AS SELECT id FROM orders",                                    Verified,  "high"),
    ("postgres",  "WITH gone AS (DELETE FROM orders WHERE id = 7 RETURNING id) SELECT * FROM gone", Verified, "high"),
    ("postgres",  "EXPLAIN ANALYZE DELETE FROM orders WHERE id = 7",                            Verified,  "high"),
    ("postgres",  "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)", Verified, "high"),
    ("snowflake", "SELECT numbers.nextval",                                                     Verified,  "high"),
    // Destructive or administrative.
    ("postgres",  "DELETE FROM orders",                                                         Verified,  "critical"),
    ("postgres",  "UPDATE orders SET status = 'paid'",                                          Verified,  "critical"),
    ("postgres",  "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",          Verified,  "critical"),
    ("postgres",  "EXPLAIN ANALYZE DELETE FROM orders",                                         Verified,  "critical"),
    ("generic",   "DROP TABLE orders",                                                          Verified,  "critical"),
    ("postgres",  "TRUNCATE orders, lines CASCADE",                                             Verified,  "critical"),
    ("postgres",  "ALTER TABLE orders DROP COLUMN note",                                        Verified,  "critical"),
    ("postgres",  "GRANT ALL ON orders TO app",                                                 Verified,  "critical"),
    ("postgres",  "REVOKE ALL ON orders FROM app",                                              Verified,  "critical"),
    ("postgres",  "COPY orders TO PROGRAM 'cat'",                                               Verified,  "critical"),
    ("postgres",  "COPY orders FROM '/tmp/x'",                                                  Verified,  "critical"),
    ("postgres",  "COPY (SELECT id FROM orders) TO '/tmp/x'",                                   Verified,  "critical"),
    ("postgres",  "CREATE EXTENSION plpython3u",                                                Verified,  "critical"),
    ("postgres",  "CREATE ROLE root SUPERUSER",                                                 Verified,  "critical"),
    ("postgres",  "SET session_replication_role = replica",                                     Verified,  "critical"),
    ("postgres",  "VACUUM",                                                                     Verified,  "critical"),
    ("postgres",  "PREPARE p AS DELETE FROM orders",                                            Verified,  "critical"),
    ("postgres",  "EXECUTE p",                                                                  Verified,  "critical"),
    ("mysql",     "REPLACE INTO t (id) VALUES (1)",                                             Verified,  "critical"),
    ("mysql",     "SET GLOBAL general_log = 1",                                                 Verified,  "critical"),
    ("mysql",     "KILL 7",                                                                     Verified,  "critical"),
    ("sqlite",    "ATTACH DATABASE '/tmp/x' AS y",                                              Verified,  "critical"),
    ("sqlite",    "PRAGMA writable_schema = 1",                                                 Verified,  "critical"),
    ("sqlite",    "PRAGMA wal_checkpoint",                                                      Verified,  "critical"),
    ("postgres",  "CALL refresh_all()",                                                         Verified,  "critical"),
    // Not a statement.
    ("postgres",  "",                                                                           Failed,    "parsed"),
    ("postgres",  "hello",                                                                      Failed,    "parsed"),
    ("postgres",  "SELECT 'x",                                                                  Failed,    "parsed"),
    ("postgres",  "SELECT \u{ff07}x\u{ff07}",                                                   Failed,    "parsed"),
    ("postgres",  "\u{feff}SELECT 1",                                                           Failed,    "parsed"),
    ("postgres",  "SELECT\u{a0}1",                                                              Failed,    "parsed"),
    ("postgres",  "SELECT 1\0",                                                                 Failed,    "parsed"),
    ("postgres",  "SELECT 'a\0b'",                                                              Failed,    "parsed"),
    ("postgres",  "SELECT 1or 1",                                                               Failed,    "parsed"),
    ("postgres",  "SELECT 'a'b",                                                                Failed,    "parsed"),
    ("postgres",  "\\! rm -rf /",                                                               Failed,    "parsed"),
    ("sqlite",    ".shell rm",                                                                  Failed,    "parsed"),
    ("mysql",     "\\! id",                                                                     Failed,    "parsed"),
    ("mysql",     "delimiter //",                                                               Failed,    "parsed"),
    ("mysql",     "SELECT id FROM t INTO OUTFILE '/tmp/x'",                                     Failed,    "parsed"),
    ("mssql",     "SELECT id FROM t SHUTDOWN",                                                  Failed,    "parsed"),
    ("mssql",     "SELECT id FROM t\nGO",                                                       Failed,    "parsed"),
    ("mssql",     "SELECT id FROM t DROP TABLE t",                                              Failed,    "parsed"),
    ("postgres",  "SELECT id FROM t END",                                                       Failed,    "parsed"),
    ("postgres",  "SELECT `id` FROM t",                                                         Failed,    "parsed"),
    ("postgres",  "SELECT FROM WHERE",                                                          Failed,    "parsed"),
    // Several.
    ("postgres",  "SELECT 1; SELECT 2",                                                         Failed,    "single_statement"),
    ("postgres",  "SELECT 1; DROP TABLE t",                                                     Failed,    "single_statement"),
    ("postgres",  "SELECT 1;;",                                                                 Failed,    "single_statement"),
    ("postgres",  "; SELECT 1",                                                                 Failed,    "single_statement"),
    ("mysql",     "SELECT 'a\\'; DROP TABLE t; -- '",                                           Failed,    "single_statement"),
    ("postgres",  "SELECT 'a\\'; DROP TABLE t; -- '",                                           Failed,    "single_statement"),
    ("postgres",  "SELECT 'a\\', '; DROP TABLE t; -- '",                                        Failed,    "single_statement"),
    ("postgres",  "SELECT 1; DO $$ BEGIN END $$",                                               Failed,    "single_statement"),
    // Comments.
    ("postgres",  "SELECT 1 -- x",                                                              Failed,    "no_comments"),
    ("postgres",  "SELECT /* x */ 1",                                                           Failed,    "no_comments"),
    ("postgres",  "SELECT 1 /* /* */ */",                                                       Failed,    "no_comments"),
    ("mysql",     "SELECT 1 /*!50000 + 1 */",                                                   Failed,    "no_comments"),
    ("mysql",     "SELECT 1 # x",                                                               Failed,    "no_comments"),
    ("mysql",     "SELECT 1 /*+ MAX_EXECUTION_TIME(1) */",                                      Failed,    "no_comments"),
    ("generic",   "SELECT 1 /*! + 1 */",                                                        Failed,    "no_comments"),
    ("snowflake", "SELECT 1 // x",                                                              Failed,    "no_comments"),
    ("mysql",     "SELECT 5--3",                                                                Verified,  "low"),
    ("postgres",  "SELECT '-- no comment /* */ ; '",                                            Verified,  "low"),
    // Conditions that say nothing.
    ("postgres",  "SELECT id FROM t WHERE true",                                                Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR 'a' || 'b' = 'ab'",                          Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR 1 + 1 = 2",                                  Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 AND 1 = 2",                                     Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR NOT 1 = 2",                                  Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR 1 IN (1, 2)",                                Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR 1 BETWEEN 0 AND 2",                          Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR NULL IS NULL",                               Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR EXISTS (SELECT 1)",                          Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR (SELECT 1) = 1",                             Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR abs(-1) = 1",                                Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = a",                                               Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE t.a = A",                                             Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = (a + 0)",                                         Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE lower(a) = lower(a)",                                 Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a IS NULL OR a IS NOT NULL",                          Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR b = 2 OR a <> 1",                            Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a OR NOT a",                                          Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a LIKE '%'",                                          Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a IN (1, a)",                                         Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a BETWEEN a AND 9",                                   Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR current_user = current_user",                Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a = 1 OR now() IS NOT NULL",                          Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE CASE WHEN a > 1 THEN true ELSE true END",             Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE a ~ ''",                                              Failed,    "no_tautology"),
    ("mysql",     "SELECT id FROM t WHERE a = 1 || 1",                                          Failed,    "no_tautology"),
    ("mysql",     "SELECT id FROM t WHERE IF(1 = 1, a, b) = 2",                                 Failed,    "no_tautology"),
    ("postgres",  "SELECT CASE WHEN 1 = 1 THEN a END FROM t",                                   Failed,    "no_tautology"),
    ("postgres",  "SELECT count(*) FILTER (WHERE 1 = 1) FROM t",                                Failed,    "no_tautology"),
    ("postgres",  "SELECT 1 FROM a JOIN b ON 1 = 1",                                            Failed,    "no_tautology"),
    ("postgres",  "DELETE FROM t WHERE 1 = 1",                                                  Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t GROUP BY id HAVING 2 > 1",                                  Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE 'x' = 'x')",            Failed,    "no_tautology"),
    ("postgres",  "SELECT id FROM t WHERE $1 = 1",                                              Verified,  "low"),
    ("postgres",  "SELECT id FROM t GROUP BY id HAVING count(1) > 1",                           Verified,  "low"),
    // Functions.
    ("postgres",  "SELECT pg_sleep(9)",                                                         Failed,    "functions_allowed"),
    ("postgres",  "SELECT pg_read_file('/etc/passwd')",                                         Failed,    "functions_allowed"),
    ("postgres",  "SELECT * FROM dblink('x', 'y') AS t(a int)",                                 Failed,    "functions_allowed"),
    ("postgres",  "SELECT lo_export(1, '/tmp/x')",                                              Failed,    "functions_allowed"),
    ("postgres",  "SELECT set_config('a', 'b', false)",                                         Failed,    "functions_allowed"),
    ("postgres",  "SELECT nextval('s')",                                                        Failed,    "functions_allowed"),
    ("postgres",  "SELECT my_function(1)",                                                      Failed,    "functions_allowed"),
    ("postgres",  "SELECT evil.lower('x')",                                                     Failed,    "functions_allowed"),
    ("postgres",  "SELECT \"LOWER\"('x')",                                                      Failed,    "functions_allowed"),
    ("postgres",  "SELECT id FROM t ORDER BY pg_sleep(1)",                                      Failed,    "functions_allowed"),
    ("postgres",  "SELECT id FROM t LIMIT (SELECT length(pg_read_file('x')))",                  Failed,    "functions_allowed"),
    ("postgres",  "SELECT sum(a) OVER (ORDER BY pg_sleep(1)) FROM t",                           Failed,    "functions_allowed"),
    ("postgres",  "SELECT (60.0).pg_sleep",                                                     Failed,    "functions_allowed"),
    ("postgres",  "SELECT (1234).\"pg_terminate_backend\"",                                     Failed,    "functions_allowed"),
    ("mysql",     "SELECT load_file('/etc/passwd')",                                            Failed,    "functions_allowed"),
    ("mysql",     "SELECT sleep(5)",                                                            Failed,    "functions_allowed"),
    ("sqlite",    "SELECT load_extension('x')",                                                 Failed,    "functions_allowed"),
    ("sqlite",    "SELECT * FROM pragma_table_info('x')",                                       Failed,    "functions_allowed"),
    ("mssql",     "EXEC xp_cmdshell 'dir'",                                                     Failed,    "functions_allowed"),
    ("mssql",     "SELECT * FROM OPENROWSET('x', 'y', 'z')",                                    Failed,    "functions_allowed"),
    // Sensitive columns.
    ("postgres",  "SELECT Password FROM users",                                                 Failed,    "no_sensitive_columns"),
    ("postgres",  "SELECT id FROM users WHERE users.password_hash LIKE 'a%'",                   Failed,    "no_sensitive_columns"),
    ("postgres",  "SELECT id FROM users ORDER BY ssn",                                          Failed,    "no_sensitive_columns"),
    ("postgres",  "SELECT p FROM (SELECT api_key AS p FROM apps) x",                            Failed,    "no_sensitive_columns"),
    ("postgres",  "SELECT (u).password FROM users u",                                           Failed,    "no_sensitive_columns"),
    ("postgres",  "SELECT data ->> 'password' FROM users",                                      Failed,    "no_sensitive_columns"),
    ("postgres",  "SELECT data #>> '{login,password}' FROM users",                              Failed,    "no_sensitive_columns"),
    ("sqlite",    "SELECT json_extract(data, '$.login.password') FROM users",                   Failed,    "no_sensitive_columns"),
    ("snowflake", "SELECT data:login.password FROM users",                                      Failed,    "no_sensitive_columns"),
    ("mssql",     "SELECT [password ] FROM users",                                              Failed,    "no_sensitive_columns"),
    ("postgres",  "SELECT * FROM pg_shadow",                                                    Failed,    "no_sensitive_columns"),
    ("postgres",  "SELECT id FROM a JOIN b USING (password)",                                   Failed,    "no_sensitive_columns"),
    ("postgres",  "UPDATE users SET name = 'x' WHERE id = 1 RETURNING password",                Failed,    "no_sensitive_columns"),
    // What depends on a setting of the server is never low.
    ("mysql",     "SELECT \"id\" FROM t",                                                       Verified,  "high"),
    ("sqlite",    "SELECT \"id\" FROM t",                                                       Verified,  "high"),
    ("mysql",     "SELECT id FROM t WHERE a = 'x' || 'y'",                                      Failed,    "no_tautology"),
    ("mysql",     "SELECT id FROM t WHERE a || b",                                              Verified,  "high"),
    ("mysql",     "SELECT id FROM t WHERE a = 'it\\'s'",                                        Verified,  "high"),
    ("mysql",     "SELECT id FROM t WHERE \"a\" = 'a'",                                         Failed,    "no_tautology"),
    ("sqlite",    "SELECT id FROM t WHERE \"a\" = 'a'",                                         Failed,    "no_tautology"),
    ("mysql",     "SELECT größe FROM t",                                                        Verified,  "high"),
    ("postgres",  "SELECT \"id\" FROM \"t\"",                                                   Verified,  "low"),
    // Without a dialect.
    ("generic",   "SELECT date_trunc('day', placed) FROM orders",                               Verified,  "high"),
    ("generic",   "SELECT `id` FROM t",                                                         Verified,  "high"),
    ("generic",   "SELECT my_function(1)",                                                      Failed,    "functions_allowed"),
    ("generic",   "DELETE FROM t",                                                              Verified,  "critical"),
    // Not understood.
    ("postgres",  "SELECT U&\"\\0041\" FROM t",                                                   Uncertain, "parsed"),
    ("postgres",  "SELECT * FROM ONLY pg_shadow",                                               Uncertain, "parsed"),
    ("mysql",     "SELECT id FROM t WHERE a = 1 XOR 1 = 1",                                     Uncertain, "parsed"),
    ("mssql",     "EXEC('DROP TABLE x')",                                                       Uncertain, "parsed"),
    ("postgres",  "SELECT data #>> '{pass\\u0077ord}' FROM t",                                  Uncertain, "parsed"),
    ("postgres",  "SELECT (60.0).my_function",                                                  Uncertain, "parsed"),
    ("postgres",  "SELECT '1'::my_type",                                                        Uncertain, "parsed"),
    ("postgres",  "SELECT 1 OPERATOR(pg_catalog.+) 2",                                          Uncertain, "parsed"),
    ("mssql",     "SELECT {fn upper('x')}",                                                     Uncertain, "parsed"),
    ("mysql",     "SELECT @a := 1",                                                             Uncertain, "parsed"),
    ("snowflake", "SELECT $1 FROM t",                                                           Uncertain, "parsed"),
    ("snowflake", "SELECT * FROM @stage",                                                       Uncertain, "parsed"),
    ("mssql",     "SELECT * FROM a.b.c.d",                                                      Uncertain, "parsed"),
    ("bigquery",  "FROM t |> WHERE a > 1",                                                      Uncertain, "parsed"),
];

#[test]
fn the_table_holds() {
    let mut wrong = Vec::new();
    for (dialect, text, status, word) in CASES {
        let outcome = ask_in(text, dialect);
        let risk = outcome.risk.map_or("none", Risk::as_str);
        let failed = failed_checks(&outcome);
        let right = outcome.status == *status
            && if *status == Verified { risk == *word } else { failed.contains(word) }
            && (outcome.certificate.is_empty() == (outcome.status == Uncertain));
        if !right {
            wrong.push(format!("{dialect}: {text}\n    {} {risk} {:?}", outcome.status, outcome.checks));
        }
    }
    assert!(CASES.len() >= 150);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

/// Clauses and functions of daily life, each in the dialect that has them.
#[rustfmt::skip]
const READING: &[(&str, &str)] = &[
    ("postgres", "SELECT a FROM t FETCH FIRST ROW ONLY"),
    ("postgres", "SELECT a FROM t FETCH NEXT 3 ROW ONLY"),
    ("postgres", "SELECT ALL a FROM t"),
    ("postgres", "SELECT a FROM t UNION DISTINCT SELECT b FROM u"),
    ("postgres", "SELECT a FROM t LEFT OUTER JOIN u ON t.a = u.a CROSS JOIN v FULL OUTER JOIN w USING (a)"),
    ("postgres", "SELECT a IS NOT UNKNOWN, trim(both ' ' from b), extract(year from c), substr(b, 1), position('a' in b) FROM t"),
    ("postgres", "SELECT a::double precision, b::timestamp without time zone, c::character varying(10), d::timestamptz FROM t"),
    ("postgres", "SELECT interval '1' day, interval '1 day', now() at time zone 'utc'"),
    ("postgres", "SELECT a FROM t ORDER BY a DESC NULLS LAST, b ASC NULLS FIRST"),
    ("postgres", "WITH x AS NOT MATERIALIZED (SELECT 1) SELECT * FROM x"),
    ("postgres", "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY c RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
    ("postgres", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t"),
    ("postgres", "SELECT a FROM t TABLESAMPLE BERNOULLI (10) REPEATABLE (1)"),
    ("postgres", "SELECT a, count(*) FROM t GROUP BY ROLLUP (a)"),
    ("postgres", "SELECT a FROM t WHERE a SIMILAR TO 'x' AND b NOT ILIKE 'y' AND c IS DISTINCT FROM d"),
    ("postgres", "SELECT a FROM t WHERE a = SOME (ARRAY[1,2])"),
    ("postgres", "SELECT CAST(a AS int), a::int4 FROM t"),
    ("postgres", "SELECT DISTINCT ON (a) a FROM t"),
    ("postgres", "SELECT count(DISTINCT a), array_agg(a ORDER BY b) FROM t"),
    ("postgres", "SELECT string_agg(a, ',') FILTER (WHERE b > 1) FROM t"),
    ("postgres", "SELECT overlay('abc' placing 'x' from 1 for 2), substring('abc' from 1 for 2)"),
    ("postgres", "SELECT current_date, localtimestamp, current_user"),
    ("postgres", "EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT 1"),
    ("postgres", "EXPLAIN ANALYZE VERBOSE SELECT 1"),
    ("mysql", "SHOW FULL COLUMNS FROM t"),
    ("mysql", "DESC t"),
    ("mysql", "SHOW CREATE TABLE t"),
    ("mysql", "SELECT a FROM t FORCE INDEX (i) WHERE b = 1"),
    ("mysql", "SELECT group_concat(DISTINCT a ORDER BY b SEPARATOR ',') FROM t"),
    ("mysql", "SELECT DATE_ADD(a, INTERVAL 1 DAY), TIMESTAMPDIFF(DAY, a, b) FROM t"),
    ("mysql", "SELECT CONVERT(a USING utf8mb4), CAST(a AS UNSIGNED), CAST(a AS CHAR(10)) FROM t"),
    ("mysql", "SELECT a FROM t STRAIGHT_JOIN u ON t.a = u.a"),
    ("mysql", "SELECT MATCH (a) AGAINST ('x' IN BOOLEAN MODE) FROM t"),
    ("mysql", "SELECT a FROM t GROUP BY a WITH ROLLUP"),
    ("mssql", "SELECT TOP 5 PERCENT a FROM t"),
    ("mssql", "SELECT TOP 5 WITH TIES a FROM t ORDER BY a"),
    ("mssql", "SELECT CONVERT(varchar(10), a, 120), TRY_CAST(a AS int), ISNULL(a, 0), DATEDIFF(day, a, b), GETDATE() FROM t"),
    ("mssql", "SELECT a FROM t CROSS APPLY (SELECT 1 AS b) x OUTER APPLY (SELECT 2 AS c) y"),
    ("mssql", "SELECT a FROM t ORDER BY a OFFSET 5 ROWS FETCH NEXT 1 ROW ONLY"),
    ("mssql", "SELECT IIF(a > 1, 'x', 'y'), STRING_AGG(a, ',') WITHIN GROUP (ORDER BY a) FROM t"),
    ("bigquery", "SELECT IF(a > 1, 'x', 'y'), SAFE_CAST(a AS INT64), ARRAY_AGG(a IGNORE NULLS), DATE_DIFF(a, b, DAY) FROM t"),
    ("bigquery", "SELECT x FROM UNNEST([1, 2]) AS x WITH OFFSET AS y"),
    ("bigquery", "SELECT STRUCT(1 AS a, 'x' AS b), a.b.c FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1"),
    ("bigquery", "SELECT a FROM my-project.d.t"),
    ("snowflake", "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1"),
    ("snowflake", "SELECT f.value FROM t, LATERAL FLATTEN(input => t.a) f"),
    ("snowflake", "SELECT a FROM t SAMPLE (10)"),
    ("snowflake", "SELECT listagg(a, ',') WITHIN GROUP (ORDER BY a) FROM t"),
    ("snowflake", "SELECT TO_DATE(a), DATEADD(month, 1, a), a::variant FROM t"),
    ("sqlite", "SELECT a FROM t LIMIT 5 OFFSET 3"),
    ("sqlite", "SELECT a COLLATE NOCASE FROM t WHERE a GLOB 'x*'"),
    ("sqlite", "EXPLAIN QUERY PLAN SELECT 1"),
    ("sqlite", "SELECT iif(a, 1, 2), strftime('%Y', a), json_extract(b, '$.x'), b ->> 'y' FROM t"),
    ("generic", "SELECT c.name, count(o.id) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.name HAVING count(o.id) > 3 ORDER BY n DESC"),
];

#[test]
fn statements_of_daily_life_are_proven_read_only() {
    for (dialect, text) in READING {
        let outcome = ask_in(text, dialect);
        assert_eq!(
            (outcome.status, outcome.risk),
            (Verified, Some(Risk::Low)),
            "{dialect}: {text}: {:?}",
            outcome.checks
        );
    }
}

#[test]
fn the_checks_are_there_in_their_order() {
    let names = |outcome: &Outcome| outcome.checks.iter().map(|check| check.name).collect::<Vec<_>>();
    let all = [
        "parsed",
        "single_statement",
        "no_comments",
        "no_tautology",
        "functions_allowed",
        "no_sensitive_columns",
        "no_destructive_operations",
    ];
    assert_eq!(names(&ask_in("SELECT 1", "postgres")), all);
    assert_eq!(names(&ask_in("DROP TABLE t", "postgres")), all);
    let with_schema =
        ask(r#"{"query":"SELECT id FROM t","parameters":{"dialect":"postgres","schema":{"t":["id"]}}}"#, None, true);
    assert_eq!(names(&with_schema).get(6), Some(&"schema_valid"));
    assert_eq!(with_schema.checks.len(), 8);
}

#[test]
fn only_attacks_are_hostile() {
    let hostile = |text: &str| ask_in(text, "postgres").hostile;
    for attack in [
        "SELECT 1; DROP TABLE t",
        "SELECT id FROM t WHERE a = '' OR 1 = 1",
        "SELECT 1 UNION/**/SELECT 2",
        "SELECT 1 /*! x */",
        "SELECT pg_sleep(9)",
    ] {
        assert!(hostile(attack), "{attack}");
    }
    for mistake in [
        "SELEC 1",
        "SELECT my_function(1)",
        "SELECT password FROM users",
        "SELECT 1;;",
        "SELECT id FROM t -- the orders",
        "DROP TABLE t",
    ] {
        assert!(!hostile(mistake), "{mistake}");
    }
}

#[test]
fn a_star_over_unknown_columns_is_said_to_be_one() {
    let outcome = ask_in("SELECT * FROM users", "postgres");
    let check = outcome.checks.iter().find(|check| check.name == "no_sensitive_columns").unwrap();
    assert!(check.passed && check.message.contains("not known"), "{}", check.message);
}

#[test]
fn a_certificate_says_what_was_proven() {
    let outcome = ask_in("SELECT lower(name) FROM shop.people p JOIN (SELECT 1 FROM b) x ON p.id = x.id", "postgres");
    let digest =
        interlock_core::Digest::of(&["SELECT lower(name) FROM shop.people p JOIN (SELECT 1 FROM b) x ON p.id = x.id"]);
    assert_eq!(
        outcome.certificate,
        format!(
            "{{\"dialects\":[\"postgres\"],\"functions\":[\"lower\"],\"kind\":\"select\",\"read_only\":true,\
             \"reads\":[\"b\",\"shop.people\"],\"statement_sha256\":\"{}\",\"writes\":[]}}",
            digest.to_string().trim_start_matches("sha256:"),
        )
    );
}

fn settings(text: &str) -> SqlSettings {
    json::from_str(text).unwrap()
}

#[test]
fn an_agents_word_lowers_nothing() {
    // Read-only in PostgreSQL, which nobody but the agent says it is.
    let claimed = r#"{"query":"SELECT date_trunc('day', a) FROM t","parameters":{"dialect":"postgres"}}"#;
    assert_eq!(ask(claimed, None, true).risk, Some(Risk::Low));
    let outcome = ask(claimed, None, false);
    assert_eq!((outcome.status, outcome.risk), (Verified, Some(Risk::High)));
    // A text that is an attack where the operator is silent stays one.
    let claimed = r#"{"query":"SELECT 1 /*! + 1 */","parameters":{"dialect":"postgres"}}"#;
    assert_eq!(ask(claimed, None, false).status, Failed);
    // It must parse where the agent says it does.
    let claimed = r#"{"query":"SELECT `a` FROM t","parameters":{"dialect":"postgres"}}"#;
    assert_eq!(ask(claimed, None, false).status, Failed);
    // It must not contradict the operator, and must make sense.
    let mysql = settings(r#"{"dialect":"mysql"}"#);
    let claimed = r#"{"query":"SELECT a FROM t","parameters":{"dialect":"postgres"}}"#;
    assert_eq!(ask(claimed, Some(&mysql), false).status, Failed);
    let claimed = r#"{"query":"SELECT a FROM t","parameters":{"dialect":"mysql"}}"#;
    assert_eq!(ask(claimed, Some(&mysql), false).risk, Some(Risk::Low));
    let claimed = r#"{"query":"SELECT a FROM t","parameters":{"dialect":"dbase"}}"#;
    assert_eq!(ask(claimed, Some(&mysql), false).status, Failed);
}

#[test]
fn a_claimed_schema_can_only_add_a_failure() {
    let postgres = settings(r#"{"dialect":"postgres"}"#);
    let ask = |query: &str, schema: &str| {
        ask(&format!("{{\"query\":{},\"parameters\":{{\"schema\":{schema}}}}}", quote(query)), Some(&postgres), false)
    };
    assert_eq!(failed_checks(&ask("SELECT b FROM t", r#"{"t":["a"]}"#)), ["schema_valid"]);
    let outcome = ask("SELECT a FROM t", r#"{"t":["a"]}"#);
    assert_eq!((outcome.status, outcome.risk), (Verified, Some(Risk::Low)));
    assert!(outcome.checks.iter().any(|check| check.name == "schema_valid" && check.passed));
    // That the columns are harmless is not the agent's to say.
    let outcome = ask("SELECT * FROM t", r#"{"t":["a"]}"#);
    let check = outcome.checks.iter().find(|check| check.name == "no_sensitive_columns").unwrap();
    assert!(check.message.contains("not known"));
    assert_eq!(ask("SELECT a FROM t", r#""nonsense""#).status, Failed);
    assert_eq!(ask("SELECT password FROM t", r#"{"t":["password"]}"#).status, Failed);
}

#[test]
fn the_operators_word_is_chosen_by_the_target() {
    let settings = settings(
        r#"{"dialect":"mysql","sensitive_columns":["salary","people.home"],"functions":["shop.total"],
            "targets":{"books":{"dialect":"postgres","schema":"CREATE TABLE books (id int, note text, price numeric);",
                               "sensitive_columns":["books.note"],"functions":["Rank_Of"]}}}"#,
    );
    let ask = |query: &str, target: &str| {
        ask(&format!("{{\"query\":{},\"target\":{}}}", quote(query), quote(target)), Some(&settings), false)
    };
    assert_eq!(ask("SELECT `id` FROM t", "other").risk, Some(Risk::Low));
    assert_eq!(ask("SELECT `id` FROM books", "books").status, Failed);
    assert_eq!(ask("SELECT id FROM books", "books").risk, Some(Risk::Low));
    assert_eq!(failed_checks(&ask("SELECT isbn FROM books", "books")), ["schema_valid"]);
    assert_eq!(failed_checks(&ask("SELECT b.* FROM books b", "books")), ["no_sensitive_columns"]);
    assert_eq!(failed_checks(&ask("SELECT b FROM books b", "books")), ["no_sensitive_columns"]);
    assert_eq!(failed_checks(&ask("SELECT row_to_json(b) FROM books b", "books")), ["no_sensitive_columns"]);
    assert_eq!(
        failed_checks(&ask("SELECT b.row_to_json FROM books b", "books")),
        ["no_sensitive_columns", "schema_valid"]
    );
    assert_eq!(failed_checks(&ask("SELECT note FROM books", "books")), ["no_sensitive_columns"]);
    assert_eq!(failed_checks(&ask("SELECT salary FROM t", "other")), ["no_sensitive_columns"]);
    assert_eq!(failed_checks(&ask("SELECT * FROM people", "other")), ["no_sensitive_columns"]);
    assert_eq!(failed_checks(&ask("SELECT home FROM people", "other")), ["no_sensitive_columns"]);
    assert_eq!(ask("SELECT home FROM places", "other").status, Verified);
    assert_eq!(ask("SELECT rank_of(id) FROM books", "books").risk, Some(Risk::Low));
    assert_eq!(ask("SELECT shop.total(id) FROM books", "books").risk, Some(Risk::Low));
    assert_eq!(failed_checks(&ask("SELECT total(id) FROM books", "books")), ["functions_allowed"]);
    assert_eq!(failed_checks(&ask("SELECT rank_of(id) FROM t", "other")), ["functions_allowed"]);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for (text, reason) in [
        (r#"{"dialect":"oracle"}"#, "unknown dialect `oracle`"),
        (r#"{"schema":"CREATE TABLE ("}"#, "the schema is not postgres"),
        (r#"{"schema":"{\"t\":7}"}"#, "neither a list nor an object"),
        (r#"{"schema":"SELECT 1"}"#, "the schema has no table"),
        (r#"{"schema":"{\"tables\":{\"t\":{\"columns\":[\"a\"],\"sensitive\":[\"b\"]}}}"}"#, "not among the columns"),
        (r#"{"schema":"CREATE TABLE t (a int); CREATE TABLE T (b int)"}"#, "there twice"),
        (r#"{"sensitive_columns":[""]}"#, "is not the name of a column"),
        (r#"{"sensitive_columns":["a..b"]}"#, "is not the name of a column"),
        (r#"{"functions":[""]}"#, "is not the name of a function"),
        (r#"{"targets":{"":{}}}"#, "a target has no name"),
        (r#"{"targets":{"books":{"dialect":"x"}}}"#, "target `books`: unknown dialect `x`"),
    ] {
        let why = Databases::load(Some(&settings(text))).unwrap_err().to_string();
        assert!(why.contains(reason), "{text}: {why}");
    }
    assert!(Databases::load(Some(&settings(r#"{"dialect":"generic"}"#))).is_ok());
}

#[test]
fn names_are_resolved_where_they_stand() {
    let schema = r#"{"users":["id","name","boss"],"orders":["id","user_id","total"],"t":["tags"]}"#;
    let judge = |query: &str, dialect: &str| {
        let action =
            format!("{{\"query\":{},\"parameters\":{{\"dialect\":\"{dialect}\",\"schema\":{schema}}}}}", quote(query));
        ask(&action, None, true)
    };
    for known in [
        "SELECT u.name, sum(o.total) AS spent FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.name ORDER BY spent",
        "SELECT name FROM users WHERE EXISTS (SELECT 1 FROM orders WHERE user_id = users.id)",
        "WITH big (who, how_much) AS (SELECT user_id, total FROM orders) SELECT who FROM big WHERE how_much > 3",
        "WITH RECURSIVE up AS (SELECT id, boss FROM users WHERE id = 7 UNION ALL SELECT u.id, u.boss FROM users u JOIN up ON u.id = up.boss) SELECT boss FROM up",
        "SELECT x.n FROM (SELECT name AS n FROM users) x",
        "SELECT x.a FROM (SELECT name FROM users) x (a)",
        "SELECT l.total FROM users u, LATERAL (SELECT total FROM orders WHERE user_id = u.id) l",
        "SELECT name FROM users UNION SELECT total::text FROM orders ORDER BY name",
        "SELECT id FROM users JOIN orders USING (id)",
        "SELECT public.users.id FROM public.users",
        "SELECT count(*) AS n FROM orders GROUP BY user_id HAVING count(*) > 2 ORDER BY n",
        "SELECT tag FROM t, unnest(tags) AS tag",
        "SELECT n FROM generate_series(1, 3) AS g(n)",
        "SELECT u.* FROM users AS u",
        "INSERT INTO orders (id, user_id) SELECT 1, id FROM users WHERE name = 'x'",
        "UPDATE orders SET total = total + 1 WHERE user_id IN (SELECT id FROM users WHERE name = 'x')",
    ] {
        let outcome = judge(known, "postgres");
        assert_eq!(outcome.status, Verified, "{known}: {:?}", outcome.checks);
    }
    for unknown in [
        "SELECT nick FROM users",
        "SELECT nick AS nick FROM users",
        "SELECT u.nick FROM users u",
        "SELECT users.id FROM users u",
        "SELECT o.id FROM users u",
        "SELECT id FROM people",
        "SELECT id FROM users WHERE nick = 'x'",
        "SELECT x.name FROM (SELECT id FROM users) x",
        "SELECT x.id FROM users u, (SELECT u.id) x",
        "WITH w AS (SELECT id FROM users) SELECT name FROM w",
        "SELECT id FROM users ORDER BY nick",
        "SELECT p.* FROM users",
        "SELECT id FROM users WHERE id IN (SELECT buyer FROM orders)",
        "INSERT INTO orders (id, buyer) VALUES (1, 2)",
        "UPDATE orders SET buyer = 1 WHERE id = 1",
        "DELETE FROM people WHERE id = 1",
    ] {
        let outcome = judge(unknown, "postgres");
        assert_eq!(failed_checks(&outcome), ["schema_valid"], "{unknown}: {:?}", outcome.checks);
    }
}
