"""The schema of a database as text that can be compared."""

from __future__ import annotations

import re

from django.db import connection

_COLUMNS = (
    "SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull,"
    " attidentity, collname, pg_get_expr(adbin, adrelid)"
    " FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
    " LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
    " LEFT JOIN pg_collation ON pg_collation.oid = attcollation"
    " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    " AND attnum > 0 AND NOT attisdropped"
)
_CONSTRAINTS = (
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace"
)
_INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
_INVALID = "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
_OPTIONS = "SELECT oid::regclass::text, reloptions FROM pg_class WHERE reloptions IS NOT NULL"


def schema() -> list[str]:
    """Return a line for each column, constraint, index and storage option, in order.

    The order of the columns of a table is left out: no statement depends on it.
    """
    if connection.vendor == "postgresql":
        queries = (_COLUMNS, _CONSTRAINTS, _INDEXES, _INVALID, _OPTIONS)
        return sorted(str(row) for query in queries for row in _rows(query))
    lines = []
    for kind, table, sql in _rows("SELECT type, tbl_name, sql FROM sqlite_master"):
        if kind == "table":
            lines += [f"{table}: {part}" for part in _parts(sql)]
        elif sql:
            lines.append(sql)
    return sorted(lines)


def _rows(query: str) -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def _parts(sql: str) -> list[str]:
    """Return the columns and constraints of a CREATE TABLE of SQLite."""
    parts, depth = [""], 0
    for character in re.sub(r"\s+", " ", sql[sql.index("(") + 1 : sql.rindex(")")]):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
