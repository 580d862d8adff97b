"""Checks a certificate of the SQL verifier against the statement, with sqlglot."""

import hashlib
import logging

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType

# It warns of what it cannot parse; that is counted below.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

DIALECTS = {"mssql": "tsql"}

WRITING = (
    exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Drop, exp.Create, exp.Alter, exp.TruncateTable, exp.Into, exp.Lock,
    exp.Grant, exp.Copy, exp.Set, exp.Use, exp.Attach, exp.Detach, exp.Kill,
)

KINDS = {
    "select": (exp.Select, exp.SetOperation, exp.Subquery),
    "values": (exp.Values, exp.Select),
    "insert": exp.Insert,
    "replace": exp.Insert,
    "update": exp.Update,
    "delete": exp.Delete,
    "merge": exp.Merge,
    "create_table": exp.Create,
    "create_view": exp.Create,
    "create_index": exp.Create,
    "drop_table": exp.Drop,
    "truncate": exp.TruncateTable,
    "alter_table": exp.Alter,
}

# Words before a parenthesis that are syntax, types or nodes of their own, not functions.
SYNTAX = set(
    """all and any array as between by case cast ceil ceiling char character collate conflict convert cube current_row
    decimal distinct else end except except_ exclude exists extract fetch filter first float floor following for from
    group grouping having if in index inner insert integer intersect interval into is join key lateral left like limit
    materialized matched merge natural not not_between numeric nvarchar offset on only or order over overlay partition
    position preceding primary qualify references returning right rollup row rows safe_cast select set sets some
    string struct substring substr table tablesample text then time timestamp timestamptz top trim try_cast union unique
    unnest update using values varchar varying when where window with within zone int bigint number datetime view
    openjson json_table apply try_convert varbinary binary bit cross double unsigned signed nolock generated
    system bernoulli""".split()
) | {"grouping sets"}


class Wrong(Exception):
    """The certificate does not hold."""


def check(text, certificate):
    """Raises Wrong, or answers how much was checked: 'all', or 'digest' where sqlglot cannot parse the statement."""
    if hashlib.sha256(text.encode()).hexdigest() != certificate["statement_sha256"]:
        raise Wrong("another statement")
    dialect = certificate["dialects"][0]
    name = DIALECTS.get(dialect, dialect)
    try:
        statements = [tree for tree in sqlglot.parse(text, read=name) if tree is not None]
    except sqlglot.errors.SqlglotError:
        return "digest"
    if len(statements) != 1:
        raise Wrong("not one statement")
    tree = statements[0]
    if isinstance(tree, (exp.Command, exp.Describe, exp.Show, exp.Pragma)) or certificate["kind"] not in KINDS:
        return "digest"
    if not isinstance(tree, KINDS[certificate["kind"]]):
        raise Wrong(f"kind {certificate['kind']}, but {type(tree).__name__}")
    if certificate["read_only"] and next(tree.find_all(*WRITING), None) is not None:
        raise Wrong("it writes")
    check_tables(tree, certificate)
    check_functions(text, name, tree, certificate)
    return "all"


def check_tables(tree, certificate):
    queries = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    stated = {name.split(".")[-1].lower() for name in certificate["reads"] + certificate["writes"]}
    for table in tree.find_all(exp.Table):
        name = table.name.split(".")[-1].lower()
        # Functions that return tables have no name of a table; a named query is none either.
        if not name or isinstance(table.this, exp.Func) or isinstance(table.parent, exp.Index):
            continue
        if name not in stated and name not in queries:
            raise Wrong(f"table {name} is not stated")
    named = {table.name.split(".")[-1].lower() for table in tree.find_all(exp.Table)}
    for name in stated - named:
        raise Wrong(f"there is no table {name}")


def check_functions(text, dialect, tree, certificate):
    stated = {name.split(".")[-1].lower() for name in certificate["functions"]}
    tokens = sqlglot.tokenize(text, read=dialect)
    words = {token.text.lower() for token in tokens}
    for name in stated - words:
        raise Wrong(f"there is no function {name}")
    tables = {part.lower() for name in certificate["reads"] + certificate["writes"] for part in name.split(".")}
    aliases = {alias.name.lower() for alias in tree.find_all(exp.TableAlias)}
    for word, after in zip(tokens, tokens[1:]):
        name = word.text.lower()
        if after.token_type is not TokenType.L_PAREN or not (name[:1].isalpha() or name[:1] == "_"):
            continue
        if word.token_type is TokenType.STRING or name in SYNTAX or name in tables or name in aliases:
            continue
        if name not in stated:
            raise Wrong(f"function {name} is not stated")
