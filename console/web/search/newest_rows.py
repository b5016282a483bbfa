"""Read the newest executions of each of several state machines in one query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection

from console.models import Execution

if TYPE_CHECKING:
    from collections.abc import Sequence


def newest_rows(
    machines: Sequence[int], fields: Sequence[str], most: int
) -> dict[int, list[tuple[Any, ...]]]:
    """Return machine number -> start and ``fields`` of its newest executions, the newest first.

    Children of Map Runs are left out. An index gives each machine's own part of the query, so the
    cost grows with ``most`` and the number of machines, and not with the executions there are.
    """
    parts: list[str] = []
    values: list[Any] = []
    for place, machine in enumerate(machines):
        rows = Execution.objects.filter(state_machine=machine, map_run=None)
        rows = rows.order_by("-start_ms", "-id")
        chosen = rows.values_list("start_ms", "id", *fields)[:most]
        sql, params = chosen.query.sql_with_params()
        parts.append(f"SELECT {int(machine)}, part{place}.* FROM ({sql}) AS part{place}")
        values += params
    newest: dict[int, list[tuple[Any, ...]]] = {}
    if parts:
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), values)
            for machine, *row in cursor.fetchall():
                newest.setdefault(machine, []).append(tuple(row))
    return {
        machine: [(row[0], *row[2:]) for row in sorted(rows, key=lambda row: row[:2], reverse=True)]
        for machine, rows in newest.items()
    }
