"""Read the latest executions of several state machines in one query."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connection

from console.models import Execution

if TYPE_CHECKING:
    from collections.abc import Sequence


def newest_rows(
    machines: Sequence[int], fields: Sequence[str], most: int
) -> dict[int, list[tuple[Any, ...]]]:
    """Return state machine id -> start and ``fields`` of its latest executions.

    Children of Map Runs are left out. An index gives each machine's own part of the query, so the
    cost grows with ``most`` and the number of machines, and not with the executions there are.
    """
    newest: dict[int, list[tuple[Any, ...]]] = {}
    if not machines:
        return newest
    sql = _sql_of_newest(connection.vendor, tuple(fields), most)
    parts = (
        f"SELECT {int(machine)}, part{place}.* FROM ({sql}) AS part{place}"
        for place, machine in enumerate(machines)
    )
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), machines)
        for machine, *row in cursor.fetchall():
            newest.setdefault(machine, []).append(tuple(row))
    return {
        machine: [(row[0], *row[2:]) for row in sorted(rows, key=lambda row: row[:2], reverse=True)]
        for machine, rows in newest.items()
    }


@lru_cache(maxsize=32)
def _sql_of_newest(_vendor: str, fields: Sequence[str], most: int) -> str:
    """Return the SQL of one state machine, whose id is the only parameter."""
    rows = Execution.objects.filter(state_machine=1, map_run=None)
    rows = rows.order_by("-start_ms", "-id")
    sql, (_machine,) = rows.values_list("start_ms", "id", *fields)[:most].query.sql_with_params()
    return str(sql)
