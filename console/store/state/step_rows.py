"""Write the rows of a step: its events, its values and its timers, in one transaction.

History events are appended and never changed. Values are write-once texts of a run, read when the
engine needs them. A timer is a row that the step which handles it deletes. ``executions.commands``
applies the other commands of a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from django.conf import settings

import engine
from console.db import rows, signals
from console.db.rows import Statement, storable
from console.statuses import DueKind
from console.store.state import wait_scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_EVENT = "execution_id, event_id, previous, at_ms, type, state, details"
# A range uses the primary key; a LIKE would read every value of the execution. Keys compare byte by
# byte: always on SQLite, by migration 0002 on PostgreSQL.
_DELETE_VALUES = Statement(
    50,
    "DELETE FROM console_runvalue WHERE execution_id = %s AND key >= %s AND key < %s",
    ("bigint", "text", "text"),
)
_DELETE_TIMER = Statement(
    50, "DELETE FROM console_timer WHERE execution_id = %s AND name = %s", ("bigint", "text")
)
_CHUNK = 500
_encode = msgspec.json.Encoder().encode


def snapshot_text(run: engine.Run) -> str:
    """Serialize a run for storage; "" for a succeeded run, which never continues.

    An exception is a succeeded replay: its snapshot is stored, because it names the origin.
    """
    succeeded = run.status == engine.ExecutionStatus.SUCCEEDED
    return "" if succeeded and "origin" not in run.about else run.dumps()


# -- events ----------------------------------------------------------------------------------------


def append_events(execution_id: int, events: Iterable[engine.Event]) -> None:
    """Append history events, inside the caller's transaction."""
    events = [*events]
    names = {event.state: storable(event.state) for event in events}
    values = [
        (
            execution_id,
            event.id,
            event.previous,
            event.at_ms,
            event.type,
            names[event.state],
            "" if event.details is None else _details_text(event.details),
        )
        for event in events
    ]
    rows.append("console_historyevent", _EVENT, values)


def _details_text(details: Mapping[str, Any]) -> str:
    """Return details as JSON text, by the fast encoder if possible.

    The text has no U+0000, because JSON escapes it, and no lone surrogate, because the fast encoder
    refuses it.
    """
    try:
        return _encode(details).decode()
    except (TypeError, ValueError, OverflowError):  # a lone surrogate, or an integer beyond 64 bits
        return storable(engine.dumps(details))


# -- values ----------------------------------------------------------------------------------------


class StoredValues:
    """The values of one execution, with the additions and deletions of uncommitted steps."""

    def __init__(self, execution_id: int, uncommitted: Mapping[str, str] | None = None) -> None:
        """Read rows lazily, when ``many`` needs them.

        ``uncommitted``: key -> text of values that an earlier, perhaps unfinished commit adds.
        """
        self.execution_id = execution_id
        self._uncommitted = uncommitted or {}
        self.fresh: dict[str, str] = {}
        self.dropped: list[str] = []

    def many(self, keys: Sequence[str]) -> list[str]:
        """Return the texts of keys, in the order of the keys."""
        texts = {key: self._uncommitted[key] for key in keys if key in self._uncommitted}
        texts |= {key: self.fresh[key] for key in keys if key in self.fresh}
        missing = [key for key in keys if key not in texts]
        for start in range(0, len(missing), _CHUNK):
            texts.update(self._read(missing[start : start + _CHUNK]))
        return [texts[key] for key in keys]

    def apply(self, step: engine.Step) -> None:
        """Add the values written by a step, and note the key prefixes of deleted values."""
        for prefix in step.dropped:
            self.fresh = {
                key: text for key, text in self.fresh.items() if not key.startswith(prefix)
            }
            self.dropped.append(prefix)
        self.fresh.update(step.values)

    def _read(self, keys: Sequence[str]) -> dict[str, str]:
        marks = ",".join(["%s"] * len(keys))
        with rows.open_cursor() as cursor:
            cursor.execute(
                "SELECT key, text FROM console_runvalue"
                f" WHERE execution_id = %s AND key IN ({marks})",
                [self.execution_id, *keys],
            )
            return dict(cursor.fetchall())


def save_values(values: StoredValues) -> None:
    """Delete the noted prefixes, then write the added values, inside a transaction."""
    number = values.execution_id
    rows.change(_DELETE_VALUES, [(number, key, _after(key)) for key in values.dropped])
    fresh = [(number, key, text) for key, text in values.fresh.items()]
    rows.append("console_runvalue", "execution_id, key, text", fresh)


def _after(prefix: str) -> str:
    """Return the upper bound of all keys with a prefix (keys are ASCII)."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\x7f"


# -- timers ----------------------------------------------------------------------------------------


def set_timers(execution_id: int, commands: Sequence[engine.Command]) -> None:
    """Insert the timers of commands inside a transaction, except timers cancelled by them."""
    cancelled = {command.timer for command in commands if isinstance(command, engine.CancelTimer)}
    armed = [
        command
        for command in commands
        if isinstance(command, engine.SetTimer) and command.timer not in cancelled
    ]
    if settings.STATEYARD_WAIT_TIME_SCALE == 1:
        values = [(execution_id, command.timer, command.due_ms) for command in armed]
    else:
        values = [
            (execution_id, command.timer, wait_scale.scaled_due_ms(command)) for command in armed
        ]
    rows.append("console_timer", "execution_id, name, due_ms", values)
    for _, _, due_ms in values:
        signals.publish_due(due_ms, DueKind.TIMER, execution_id)


def drop_timers(execution_id: int, names: Sequence[str]) -> None:
    """Delete timers by name, inside a transaction."""
    rows.change(_DELETE_TIMER, [(execution_id, name) for name in names])
