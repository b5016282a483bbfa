"""Store which executions have lines of control at breakpoints, so that lists find them.

The run's plan in its snapshot is authoritative. A row beside it saves lists from reading snapshots;
the step that changes the plan writes the row, so the two never differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.db import rows
from console.db.rows import Statement, storable

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_LINES = 20
"""Maximum number of lines in a row; the row counts all."""
_FORGET = Statement(50, "DELETE FROM console_haltedexecution WHERE execution_id = %s", ("bigint",))
_COLUMNS = "execution_id, since_ms, count, newest, lines"


def halts_of(run: engine.Run) -> tuple[engine.Halt, ...]:
    """Return the halts of a run, in the order in which the lines stopped."""
    return run.plan.halts if run.plan is not None else ()


def record_halts(execution_id: int, run: engine.Run) -> None:
    """Write the current halts of a run, inside the transaction of its step."""
    halts = halts_of(run)
    rows.change(_FORGET, [(execution_id,)])
    if not halts:
        return
    text = storable(engine.dumps(_described(run, halts[:MOST_LINES])))
    values = (execution_id, halts[0].since_ms, len(halts), halts[-1].number, text)
    rows.append("console_haltedexecution", _COLUMNS, [values])


def _described(run: engine.Run, halts: Sequence[engine.Halt]) -> list[list[int | str]]:
    return [
        [halt.number, run.frames[halt.frame].state, str(halt.when), halt.since_ms] for halt in halts
    ]
