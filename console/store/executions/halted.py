"""Store which executions have lines of control at breakpoints, so that lists find them.

The run's plan in its snapshot is authoritative. Lists read this row instead of the snapshot; the
step that changes the plan writes the row, so the two never differ.
"""

from __future__ import annotations

import engine
from console.db import rows
from console.db.rows import Statement, storable

MOST_LINES = 20
"""Maximum number of lines in a row; the row counts all."""
_FORGET = Statement(50, "DELETE FROM console_haltedexecution WHERE execution_id = %s", ("bigint",))
_COLUMNS = "execution_id, since_ms, count, newest, lines"


def halts_of(run: engine.Run) -> tuple[engine.Halt, ...]:
    """Return the halts of a run, in the order in which the lines stopped."""
    return run.plan.halts if run.plan is not None else ()


def record_halts(execution_id: int, run: engine.Run) -> None:
    """Write the current halts of a run, inside the transaction of its step."""
    rows.change(_FORGET, [(execution_id,)])
    values = row_of(run)
    if values is not None:
        rows.append("console_haltedexecution", _COLUMNS, [(execution_id, *values)])


def row_of(run: engine.Run) -> tuple[int, int, int, str] | None:
    """Return the values of the row beside a run: since_ms, count, newest, lines; None for none."""
    halts = halts_of(run)
    if not halts:
        return None
    lines = [
        [halt.number, run.frames[halt.frame].state, str(halt.when), halt.since_ms]
        for halt in halts[:MOST_LINES]
    ]
    return halts[0].since_ms, len(halts), halts[-1].number, storable(engine.dumps(lines))
