"""Keep which executions have lines of control at breakpoints, where lists find them.

The run's own plan is the truth, and is in its snapshot. A row beside it saves a list from reading
snapshots; the step that changes the plan writes it, so that the two never differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.db import rows
from console.db.rows import Statement, storable

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_LINES = 20
"""So many lines a row names; it counts all."""
_FORGET = Statement(50, "DELETE FROM console_haltedexecution WHERE execution_id = %s", ("bigint",))
_COLUMNS = "execution_id, since_ms, count, newest, lines"


def halts_of(run: engine.Run) -> tuple[engine.Halt, ...]:
    """Return where lines of control of a run stand, in the order in which they stopped."""
    return run.plan.halts if run.plan is not None else ()


def record_halts(execution_id: int, run: engine.Run) -> None:
    """Write where the lines of a run stand now, inside the transaction of its step."""
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
