"""Step an execution in the process that received a task's outcome, such as by SendTaskSuccess.

The outcome, the end of the task and the next step are then one commit, and no worker has to wake:

    1. SendTaskSuccess arrives at a web process, which reads the run and computes its next step.
    2. Meanwhile the execution is stopped, another process has stepped it, or the task timed out.
    3. The commit checks the version and that the task is open. One of them has changed, so it
       writes nothing. Then the outcome is recorded by itself, if its task is still open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from console.config import quotas
from console.db import epoch, rows, signals
from console.db.writer import is_embedded, is_outage
from console.statuses import TaskStatus
from console.store.executions import start, step
from console.store.executions.read_steps import MESSAGES, read_step_rows
from console.store.state import crash_watch
from console.store.state.caches import kept_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import engine

log = structlog.get_logger(__name__)
_CURRENT = (
    "SELECT 1 FROM console_runrow r JOIN console_taskrow t ON t.execution_id = r.execution_id"
    " WHERE r.execution_id = %s AND r.version = %s AND t.task = %s"
    f" AND t.status <> '{TaskStatus.CLOSED}'"
    f" AND r.parked = '' AND {epoch.GUARD}"
)
_READY = 2
"""Place in the columns of a run: it continues without a worker."""


def step_ahead(
    execution_id: int, outcome: engine.TaskSucceeded | engine.TaskFailed
) -> Callable[[], bool] | None:
    """Compute the step of an outcome; None if a worker must do it (``complete.Ahead``).

    That is so if the step may take long or fails, or if others may step the execution now, because
    it is ready or has several lines of control.
    """
    if quotas.limit_transitions():
        return None
    try:
        loaded = _load(execution_id, outcome)
        if loaded is None:
            return None
        with crash_watch.watch(execution_id):
            steps = step.advance_run(loaded, start.ahead_seconds())
    except Exception as error:
        if is_outage(error):
            raise
        log.debug("a step could not be computed ahead", why=str(error))  # a worker meets it again
        return None
    if len(steps) < len(loaded.messages):
        return None
    step.ask_ahead(loaded)
    return lambda: _write(loaded, steps)


def _load(
    execution_id: int, outcome: engine.TaskSucceeded | engine.TaskFailed
) -> step.Loaded | None:
    """Return a run with its messages and an outcome; None if a worker must step it."""
    read_epoch = ""
    if not is_embedded():  # this process outlives a restore: it relies on nothing it remembers
        read_epoch = epoch.recent_epoch()
        kept_runs.forget(execution_id)
    stored = read_step_rows([execution_id])[execution_id]
    if stored.run is None or stored.run[_READY] or len(stored.messages) >= MESSAGES:
        return None
    loaded = step.load_step(execution_id, stored, outcome)
    if loaded is None or loaded.deleting or len(loaded.run.frames) > 1:
        return None
    loaded.epoch = read_epoch
    return loaded if start.may_run_ahead(loaded.machine) else None


def _write(loaded: step.Loaded, steps: Sequence[engine.Step]) -> bool:
    """Write the step of an outcome; return False if the run has changed or may have."""
    if not rows.read_or_assume(lambda: is_embedded() and _is_current(loaded), assumed=True):
        return False
    step.commit_step(loaded, steps)
    if is_embedded():
        number, version = loaded.execution_id, loaded.version + 1
        signals.after_commit(lambda: kept_runs.put(number, version, loaded.run))
    return True


def _is_current(loaded: step.Loaded) -> bool:
    """Return whether the run and the task are unchanged (inside the only transaction)."""
    values = (loaded.execution_id, loaded.version, loaded.closes[0], epoch.process_epoch())
    with rows.open_cursor() as cursor:
        cursor.execute(_CURRENT, values)
        return cursor.fetchone() is not None
