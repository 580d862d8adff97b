"""What the SQL verifier calls read-only runs on real databases and changes nothing; see scripts/sql-test."""

import collections
import glob
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

import certificate
import state
from postgres import Postgres, Refused

program, socket, data = sys.argv[1:]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
CASES = os.path.join(ROOT, "conformance/sql")
# What SQLite understands and the verifier's parser does not: known false alarms.
BEYOND_THE_PARSER = ("1 << 4, 256 >> 2", "email IS NOT 'dairy", "INDEXED BY")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def lines(path):
    return [json.loads(line) for line in read(path).splitlines() if line]


def ask(actions):
    given = "".join(json.dumps(action) + "\n" for action in actions)
    answers = subprocess.run([program, "engine", "sql", "--jsonl"], input=given, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in answers.stdout.splitlines()]
    assert len(found) == len(actions), "an answer is missing"
    return found


def is_low(answer):
    return answer["status"] == "VERIFIED" and answer["risk"] == "low"


def differences(before, after):
    return [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]


class OnPostgres:
    name = "postgres"
    dialects = (None, "generic", "postgres")
    writing = [
        "UPDATE customers SET active = NOT active WHERE id = 1",
        "INSERT INTO customers SELECT 999, name, region, joined_on, active, email FROM customers LIMIT 1",
        "CREATE TEMPORARY TABLE scribble (id integer)",
        "SELECT * INTO scribble FROM customers",
        "SET work_mem = '1MB'",
        "SELECT id FROM customers FOR UPDATE",
        "SELECT pg_advisory_lock(1)",
        "CREATE FUNCTION scribble() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "PREPARE scribble AS SELECT 1",
        "COMMENT ON TABLE customers IS 'x'",
    ]

    def __init__(self):
        self.server = Postgres(socket)
        self.server.query(read(os.path.join(CASES, "real/postgres.sql")))
        self.files = state.of_directory(data)

    def run(self, text):
        """What a statement changes, or an exception."""
        self.server.query("BEGIN")
        try:
            before = state.of_postgres(self.server)
            self.server.query(text)
            return differences(before, state.of_postgres(self.server))
        finally:
            self.server.query("ROLLBACK")
            self.server.query("DISCARD ALL")

    def finish(self):
        assert state.of_directory(data) == self.files, "the data directory has changed"


class OnSqlite:
    name = "sqlite"
    dialects = (None, "generic", "sqlite")
    writing = [
        "UPDATE customers SET active = NOT active WHERE id = 1",
        "DELETE FROM customers WHERE id = 1",
        "CREATE TEMPORARY TABLE scribble (id integer)",
        "PRAGMA user_version = 7",
        "CREATE INDEX scribble ON customers (name)",
    ]

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "shop.db")
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.executescript(read(os.path.join(CASES, "real/sqlite.sql")))

    def run(self, text):
        self.connection.execute("BEGIN")
        try:
            before = state.of_sqlite(self.connection)
            self.connection.execute(text).fetchall()
            return differences(before, state.of_sqlite(self.connection))
        finally:
            self.connection.execute("ROLLBACK")

    def finish(self):
        assert os.listdir(self.directory.name) == ["shop.db"], "there are other files"


def main():
    databases = [OnPostgres(), OnSqlite()]
    counts = collections.Counter()
    failures = []

    # The comparison can fail: each of these must be noticed.
    for database in databases:
        for text in database.writing:
            try:
                changed = database.run(text)
            except (Refused, sqlite3.Error) as error:
                changed = []
                failures.append(f"{database.name}: {text}: {error}")
            if changed:
                counts[f"writing statements noticed on {database.name}"] += 1
            else:
                failures.append(f"{database.name}: nothing noticed of: {text}")

    check_the_checker(failures)

    # Statements made for the shop: every one must be called read-only, run, and change nothing.
    real = lines(os.path.join(CASES, "real/read_only.jsonl"))
    answers = ask([{"query": case["query"], "parameters": {"dialect": case["dialect"]}} for case in real])
    for case, answer in zip(real, answers):
        if any(part in case["query"] for part in BEYOND_THE_PARSER):
            counts["statements beyond the parser"] += 1
            continue
        if not is_low(answer):
            failures.append(f"not called read-only: {case['query']}")
            continue
        database = next(database for database in databases if database.name == case["dialect"])
        try:
            changed = database.run(case["query"])
        except (Refused, sqlite3.Error) as error:
            failures.append(f"{database.name}: {case['query']}: {error}")
            continue
        if changed:
            failures.append(f"{database.name}: {case['query']} changed {changed}")
        counts[f"statements of the shop run on {database.name}"] += 1
        check_certificate(case["query"], answer, counts, failures)

    # Every conformance case that is called read-only, where it runs; the tables of most are not there.
    cases = [case for path in sorted(glob.glob(os.path.join(CASES, "*.jsonl"))) for case in lines(path)]
    for case, answer in zip(cases, ask([case["action"] for case in cases])):
        text = case["action"]["query"]
        if answer["status"] == "VERIFIED":
            check_certificate(text, answer, counts, failures)
        if not is_low(answer):
            continue
        dialect = case["action"].get("parameters", {}).get("dialect")
        for database in databases:
            if dialect not in database.dialects:
                continue
            try:
                changed = database.run(text)
            except (Refused, sqlite3.Error):
                counts[f"conformance cases that do not run on {database.name}"] += 1
                continue
            counts[f"conformance cases run on {database.name}"] += 1
            if changed:
                failures.append(f"{database.name}: {text} changed {changed}")
    for database in databases:
        database.finish()
    for name, count in sorted(counts.items()):
        print(f"{count:5} {name}")
    for failure in failures:
        print(f"FAILED {failure}")
    enough = counts["statements of the shop run on postgres"] >= 80 and counts["certificates checked in full"] >= 200
    if failures or not enough:
        raise SystemExit(f"{len(failures)} failures" if failures else "too little was checked")


def check_the_checker(failures):
    """A certificate that is not true must be found out."""
    text = "SELECT lower(name) FROM customers WHERE id = 7"
    (answer,) = ask([{"query": text, "parameters": {"dialect": "postgres"}}])
    true = answer["evidence"]["certificate"]
    certificate.check(text, true)
    lies = [{"kind": "insert"}, {"reads": []}, {"reads": ["customers", "orders"]}, {"functions": []}]
    lies += [{"functions": ["lower", "upper"]}, {"statement_sha256": "00"}]
    for lie in lies:
        try:
            certificate.check(text, {**true, **lie})
            failures.append(f"a false certificate was believed: {lie}")
        except certificate.Wrong:
            pass
    try:
        certificate.check("DELETE FROM customers WHERE id = 7", {**true, "read_only": True})
        failures.append("a certificate of another statement was believed")
    except certificate.Wrong:
        pass


def check_certificate(text, answer, counts, failures):
    try:
        extent = certificate.check(text, answer["evidence"]["certificate"])
    except certificate.Wrong as wrong:
        failures.append(f"certificate: {wrong}: {text}")
        return
    counts["certificates checked in full" if extent == "all" else "certificates of which only the digest was checked"] += 1


main()
