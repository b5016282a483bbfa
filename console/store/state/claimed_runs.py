"""Cache the run that the claim of a call read, for the step after the call's outcome.

The cached run may be outdated by then. The step's commit checks its version, so a step from an old
run writes nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = (
    "r.version, r.snapshot, r.ready, r.parked, e.status, e.arn, e.definition_id, NULL,"
    " e.map_run_id, e.state_machine_arn, e.project_id, e.parent, e.parent_task"
)
"""The columns of a run ``r`` and its execution ``e``: those of ``read_steps.LOAD``, without the
machine's.
"""
COUNT = 13
_MOST = 200
_FRESH_S = 1.0
"""Maximum age: after a long call the run has probably changed, so it is read again."""
_kept: OrderedDict[int, tuple[float, Sequence[Any]]] = OrderedDict()


def keep(execution_id: int, row: Sequence[Any]) -> None:
    """Cache the row of a claim, dropping the oldest."""
    _kept[execution_id] = (time.monotonic(), row)
    while len(_kept) > _MOST:
        with contextlib.suppress(KeyError):  # another thread was first
            _kept.popitem(last=False)


def take(execution_id: int) -> Sequence[Any] | None:
    """Remove and return the cached row of an execution; None without a fresh one."""
    read_at, row = _kept.pop(execution_id, (0.0, None))
    return row if time.monotonic() - read_at < _FRESH_S else None
