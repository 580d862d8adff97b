"""Everything about a database that a statement could change, as one value to compare."""

import hashlib
import os
import sqlite3

# What a session or a cluster consists of besides rows. Each is one text.
CATALOGUE = {
    "relations": "SELECT string_agg(c::text, E'\\n' ORDER BY oid) FROM"
    " (SELECT oid, relname, relkind, relfilenode, relacl::text, reloptions::text FROM pg_class) c",
    "columns": "SELECT count(*)::text FROM pg_attribute",
    "functions": "SELECT string_agg(p::text, E'\\n' ORDER BY oid) FROM (SELECT oid, proname, prosrc FROM pg_proc) p",
    "roles": "SELECT string_agg(r::text, E'\\n' ORDER BY oid) FROM pg_authid r",
    "databases": "SELECT string_agg(d::text, E'\\n' ORDER BY oid) FROM (SELECT oid, datname, datacl::text FROM pg_database) d",
    "types": "SELECT count(*)::text FROM pg_type",
    "namespaces": "SELECT string_agg(n::text, E'\\n' ORDER BY oid) FROM pg_namespace n",
    "triggers": "SELECT string_agg(tgname, ',' ORDER BY oid) FROM pg_trigger",
    "policies": "SELECT count(*)::text FROM pg_policy",
    "extensions": "SELECT string_agg(extname, ',' ORDER BY oid) FROM pg_extension",
    "large objects": "SELECT count(*)::text FROM pg_largeobject_metadata",
    "settings": "SELECT string_agg(name || '=' || coalesce(setting, ''), E'\\n' ORDER BY name) FROM pg_settings",
    "sequences": "SELECT string_agg(s::text, E'\\n' ORDER BY sequencename) FROM pg_sequences s",
    "advisory locks": "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory'",
    "row locks": "SELECT count(*)::text FROM pg_locks WHERE mode IN"
    " ('RowShareLock', 'RowExclusiveLock', 'ShareLock', 'ExclusiveLock', 'AccessExclusiveLock') AND pid = pg_backend_pid()"
    " AND locktype = 'relation'",
    "prepared statements": "SELECT count(*)::text FROM pg_prepared_statements",
    "channels": "SELECT count(*)::text FROM pg_listening_channels()",
    "transaction": "SELECT coalesce(pg_current_xact_id_if_assigned()::text, 'none')",
}
TABLES = (
    "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid ="
    " c.relnamespace WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
)


def of_postgres(server):
    state = {name: server.query(text)[0][0] for name, text in CATALOGUE.items()}
    for (table,) in server.query(TABLES):
        rows = server.query(f"SELECT md5(string_agg(t::text, E'\\n' ORDER BY t::text)), count(*) FROM {table} t")
        state[f"rows of {table}"] = rows[0]
    return state


def of_directory(path):
    """The names at the top of the data directory, and the settings file."""
    names = sorted(os.listdir(path)) if os.access(path, os.R_OK) else []
    auto = os.path.join(path, "postgresql.auto.conf")
    with open(auto, "rb") as file:
        return names, hashlib.sha256(file.read()).hexdigest()


def of_sqlite(connection):
    state = {"schema": connection.execute("SELECT * FROM sqlite_master ORDER BY name").fetchall()}
    state["temporary"] = connection.execute("SELECT * FROM sqlite_temp_master ORDER BY name").fetchall()
    state["changes"] = connection.total_changes
    for pragma in ("user_version", "application_id", "schema_version", "foreign_keys", "journal_mode", "database_list"):
        state[pragma] = connection.execute(f"PRAGMA {pragma}").fetchall()
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        try:
            rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()
        except sqlite3.OperationalError:
            continue
        state[f"rows of {table}"] = hashlib.sha256(repr(sorted(rows, key=repr)).encode()).hexdigest()
    return state
