"""The columns of tables that a member has chosen, stored with the membership."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """A table's columns by key, with labels; the name column is always first.

    ``plain``: the default columns. ``place``: the element id of the table's section.
    """

    place: str
    words: Mapping[str, str]
    plain: tuple[str, ...]


TABLES = {
    "steps": ColumnTable(
        "workflow",
        {
            "type": "Type",
            "status": "Status",
            "entered": "Entered",
            "left": "Left",
            "duration": "Duration",
            "visits": "Visits",
            "retries": "Retries",
        },
        ("type", "status", "entered", "duration", "visits"),
    ),
    "executions": ColumnTable(
        "list",
        {
            "machine": "State machine",
            "status": "Status",
            "state": "State",
            "error": "Error",
            "started": "Started",
            "ended": "Ended",
            "duration": "Duration",
            "by": "Started by",
            "version": "Version or alias",
            "redrives": "Redrives",
        },
        ("machine", "status", "state", "error", "started", "duration", "by"),
    ),
}


def chosen_columns(choice: str) -> dict[str, tuple[str, ...]]:
    """Return table -> keys of its columns. ``choice``: from ``Membership``."""
    choices: dict[str, list[str]] = json.loads(choice) if choice else {}
    return {
        name: _known_columns(name, choices.get(name, ())) or table.plain
        for name, table in TABLES.items()
    }


def updated_choice(before: str, table: str, keys: Collection[str]) -> str:
    """Return the choice to store; an empty list restores the default columns."""
    choices: dict[str, list[str]] = json.loads(before) if before else {}
    choices.pop(table, None)
    columns = _known_columns(table, keys)
    return json.dumps(choices | ({table: list(columns)} if columns else {}), sort_keys=True)


def _known_columns(table: str, keys: Collection[str]) -> tuple[str, ...]:
    return tuple(key for key in TABLES[table].words if key in keys)
