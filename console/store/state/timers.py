"""Store the timers of an execution as rows, until the step that takes them deletes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.fast_path import rows
from console.statuses import DueKind
from console.store.db import signals
from console.store.db.recording import Statement
from console.store.state import wait_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

_DROP = Statement(
    50, "DELETE FROM console_timer WHERE execution_id = %s AND name = %s", ("bigint", "text")
)


def set_timers(execution_id: int, commands: Sequence[engine.Command]) -> None:
    """Arm timers (inside a transaction), but for those that the same commit cancels."""
    cancelled = {command.timer for command in commands if isinstance(command, engine.CancelTimer)}
    armed = [
        command
        for command in commands
        if isinstance(command, engine.SetTimer) and command.timer not in cancelled
    ]
    values = [(execution_id, command.timer, wait_scale.scaled_due_ms(command)) for command in armed]
    rows.append("console_timer", "execution_id, name, due_ms", values)
    for _, _, due_ms in values:
        signals.publish_due(due_ms, DueKind.TIMER, execution_id)


def drop_timers(execution_id: int, names: Sequence[str]) -> None:
    """Forget timers (inside a transaction)."""
    rows.change(_DROP, [(execution_id, name) for name in names])
