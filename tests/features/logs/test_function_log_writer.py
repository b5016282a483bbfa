"""The logs of calls are written together: a transaction each would cost more than the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.logs import function_log_store as stored_logs
from console.features.logs import function_log_writer as function_logs
from console.features.logs.models import FunctionLog
from console.functions.pool import CallRecord
from tests.console.store.helpers import WAIT, create, start
from tests.waiting import wait_until

if TYPE_CHECKING:
    import pytest

    from console.models import Project


def test_a_log_does_not_cut_the_pause_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many calls at once share a transaction; a full one is written without a pause."""
    batches: list[list[int]] = []
    monkeypatch.setattr(function_logs, "_PAUSE_S", 600.0)
    monkeypatch.setattr(function_logs, "_AT_ONCE", 10)
    monkeypatch.setattr(
        stored_logs,
        "insert_logs",
        lambda logs: batches.append([log.task for log in logs]),
    )
    logs = function_logs.LogWriter()
    for task in range(25):
        logs.add(1, task, "echo", CallRecord(output="x"))
    wait_until(lambda: len(batches) == 2)
    assert batches == [[*range(10)], [*range(10, 20)]]
    monkeypatch.setattr(function_logs, "_PAUSE_S", 0.0)
    for task in range(25, 30):
        logs.add(1, task, "echo", CallRecord())
    logs.flush(60)
    assert [task for batch in batches for task in batch] == [*range(30)]


def test_a_log_that_the_database_refuses_holds_up_no_other(project: Project) -> None:
    """Kept, it would be tried again for ever, and no log of any function would be stored."""
    execution = start(create(project, WAIT))
    logs = function_logs.LogWriter()
    for task, duration_ms in enumerate((1.0, float("nan"), 2.0)):
        logs.add(execution.pk, task, "echo", CallRecord(duration_ms=duration_ms))
    logs.flush(60)
    stored = FunctionLog.objects.filter(execution=execution).order_by("task")
    assert [row.task for row in stored] in ([0, 2], [0, 1, 2])  # PostgreSQL stores a NaN
