"""How are the timers of an execution kept?  As rows that the step which takes them deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.fast_path import rows, sql
from console.statuses import DueKind
from console.store.db import signals

if TYPE_CHECKING:
    from collections.abc import Sequence


def set_timers(execution_id: int, commands: Sequence[engine.Command]) -> None:
    """Arm timers (inside a transaction), but for those that the same commit cancels."""
    gone = {one.timer for one in commands if isinstance(one, engine.CancelTimer)}
    wanted = [one for one in commands if isinstance(one, engine.SetTimer) and one.timer not in gone]
    values = [(execution_id, one.timer, one.due_ms) for one in wanted]
    rows.append("console_timer", "execution_id, name, due_ms", values)
    for one in wanted:
        signals.publish_due(one.due_ms, DueKind.TIMER, execution_id)


def drop_timers(execution_id: int, names: Sequence[str]) -> None:
    """Forget timers (inside a transaction)."""
    if names:
        with sql.cursor() as cursor:
            cursor.executemany(
                "DELETE FROM console_timer WHERE execution_id = %s AND name = %s",
                [(execution_id, name) for name in names],
            )
