"""Small machines and ways to drive them, for tests of the store."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import QuerySet

from console.models import (
    Execution,
    HistoryEvent,
    InboxMessage,
    Project,
    RunValue,
    StateMachine,
    TaskRow,
    Timer,
)
from console.store import executions, machines, runs

if TYPE_CHECKING:
    from collections.abc import Callable

ROLE = "arn:aws:iam::123456789012:role/test"
REGION = "us-east-1"


def one(name: str, **state: Any) -> dict[str, Any]:
    """Return a machine of one last state."""
    return {"StartAt": name, "States": {name: {**state, "End": True}}}


PASS = one("P", Type="Pass")
ENDS = {"ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"}
WAIT = one("W", Type="Wait", Seconds=3600)
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:work"
WORK = one("A", Type="Task", Resource=ACTIVITY)


def function(name: str, **more: Any) -> dict[str, Any]:
    """Return a Task that calls a registered function."""
    arn = f"arn:aws:lambda:us-east-1:123456789012:function:{name}"
    return {"Type": "Task", "Resource": arn, **more}


def create(project: Project, definition: dict[str, Any], name: str = "machine") -> StateMachine:
    """Create a state machine."""
    return machines.create(
        project, REGION, name=name, definition=json.dumps(definition), role_arn=ROLE
    )


def start(machine: StateMachine, data: Any = None, name: str | None = None) -> Execution:
    """Start an execution."""
    text = "{}" if data is None else json.dumps(data)
    return executions.start(machine, name=name, input=text)


def drain(execution: Execution) -> Execution:
    """Step an execution, in this thread, until it can go no further; return it anew."""
    while runs.step(execution.pk):
        pass
    return Execution.objects.get(pk=execution.pk)


def ended(execution: Execution, seconds: float = 10) -> Execution:
    """Wait until a worker has taken an execution to its end; return it anew."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        row = Execution.objects.get(pk=execution.pk)
        if row.status != "RUNNING":
            return row
        time.sleep(0.01)
    raise AssertionError(f"still running: {types(execution)}")


def types(execution: Execution) -> list[str]:
    """Return the types of an execution's events, in order."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
    return list(rows.values_list("type", flat=True))


def crowd(size: int, act: Callable[[int], Any]) -> list[Any]:
    """Let so many threads do the same at once; return their results, errors among them."""
    results: list[Any] = []
    gate = threading.Barrier(size)

    def one_of_them(number: int) -> None:
        gate.wait()
        try:
            results.append(act(number))
        except Exception as error:  # noqa: BLE001 - it is what the test asks for
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=one_of_them, args=(number,)) for number in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


_WITHOUT_WITNESS = """
SELECT e.arn FROM console_execution e JOIN console_runrow r ON r.execution_id = e.id
WHERE e.status = 'RUNNING' AND NOT r.ready
AND NOT EXISTS (SELECT 1 FROM console_inboxmessage i WHERE i.execution_id = e.id)
AND NOT EXISTS (SELECT 1 FROM console_timer t WHERE t.execution_id = e.id)
AND NOT EXISTS (SELECT 1 FROM console_taskrow k WHERE k.execution_id = e.id
                AND k.status <> 'closed')
"""


def assert_nothing_wrong() -> None:
    """Check what must hold at any instant.

    Whatever runs has something that will move it, whatever ended awaits nothing, every history is
    numbered 1..n and has at most one end, which is its last event.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_WITNESS)
        assert cursor.fetchall() == []
    over = Execution.objects.exclude(status="RUNNING").values("pk")
    for awaited in (Timer, InboxMessage, RunValue, TaskRow.objects.exclude(status="closed")):
        rows = awaited if isinstance(awaited, QuerySet) else awaited.objects.all()
        assert not rows.filter(execution_id__in=over).exists()
    for execution in Execution.objects.all():
        rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
        events = list(rows.values_list("event_id", "type", "at_ms"))
        assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
        assert sorted(events, key=lambda one: one[2]) == events
        ends = [number for number, kind, _ in events if kind in ENDS]
        assert ends == ([] if execution.status == "RUNNING" else [len(events)])
