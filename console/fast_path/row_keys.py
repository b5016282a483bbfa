"""Keys of rows that are recorded before they are inserted (PostgreSQL)."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque

from django.db import connection

from console.postgres import execute_prepared

_KEYS, _KEYS_S = 20, 0.3
_TAKE_KEYS = "SELECT nextval(pg_get_serial_sequence($1, $2)) FROM generate_series(1, $3::integer)"
_keys_until: dict[str, float] = {}
_keys: dict[str, deque[int]] = defaultdict(deque)
_keys_lock = threading.Lock()


def next_key(table: str, key: str) -> int:
    """Return a key that nobody else gets: the process takes some at a time.

    It keeps them for a moment only, for pages tell by its key what is newer than what they show.
    """
    with _keys_lock:
        if _keys[table] and time.monotonic() <= _keys_until[table]:
            return _keys[table].popleft()
    # Without the lock: if the database is silent, each caller waits for as long as it would anyway,
    # and not for all those before it.
    first, *others = _take_keys(table, key)
    with _keys_lock:
        _keys[table] = deque(others)
        _keys_until[table] = time.monotonic() + _KEYS_S
    return first


def _take_keys(table: str, key: str) -> list[int]:
    connection.ensure_connection()
    with connection.wrap_database_errors:
        rows = execute_prepared(connection.connection, _TAKE_KEYS, [table, key, _KEYS]).fetchall()
    return [number for (number,) in rows]
