"""Store the write-once texts of a run as rows, which are read when the engine needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.fast_path import rows, sql
from console.store.db.recording import Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    import engine

# A range, which the primary key finds at once (a LIKE would look at every value of the execution).
# Keys compare byte by byte: SQLite does that anyway, on PostgreSQL migration 0002 sees to it.
_DELETE = Statement(
    50,
    "DELETE FROM console_runvalue WHERE execution_id = %s AND key >= %s AND key < %s",
    ("bigint", "text", "text"),
)
_CHUNK = 500


class StoredValues:
    """The values of one execution, with what the steps of the current commit add and drop."""

    def __init__(self, execution_id: int) -> None:
        """Read lazily from the rows of this execution."""
        self.execution_id = execution_id
        self.fresh: dict[str, str] = {}
        self.dropped: list[str] = []

    def many(self, keys: Sequence[str]) -> list[str]:
        """Return the texts under these keys, in that order."""
        texts = {key: self.fresh[key] for key in keys if key in self.fresh}
        missing = [key for key in keys if key not in texts]
        for start in range(0, len(missing), _CHUNK):
            texts.update(self._read(missing[start : start + _CHUNK]))
        return [texts[key] for key in keys]

    def apply(self, step: engine.Step) -> None:
        """Take in what a step drops and keeps."""
        for prefix in step.dropped:
            self.fresh = {
                key: text for key, text in self.fresh.items() if not key.startswith(prefix)
            }
            self.dropped.append(prefix)
        self.fresh.update(step.kept)

    def _read(self, keys: Sequence[str]) -> dict[str, str]:
        marks = ",".join(["%s"] * len(keys))
        with sql.cursor() as cursor:
            cursor.execute(
                "SELECT key, text FROM console_runvalue"
                f" WHERE execution_id = %s AND key IN ({marks})",
                [self.execution_id, *keys],
            )
            return dict(cursor.fetchall())


def save_values(values: StoredValues) -> None:
    """Write what was kept and delete what was dropped (inside a transaction)."""
    number = values.execution_id
    rows.change(_DELETE, [(number, key, _after(key)) for key in values.dropped])
    fresh = [(number, key, text) for key, text in values.fresh.items()]
    rows.append("console_runvalue", "execution_id, key, text", fresh)


def _after(prefix: str) -> str:
    """Return the first text behind all that begin with the prefix (all keys are ASCII)."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\x7f"
