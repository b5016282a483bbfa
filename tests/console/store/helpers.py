"""Small machines and ways to drive them, for tests of the store."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from django.db import connection

from console.features.doctor.invariants import check
from console.models import (
    Execution,
    HistoryEvent,
    Project,
    StateMachine,
)
from console.store.executions import step
from console.store.executions.start import start_execution
from console.store.machines import machines
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import engine

ROLE = "arn:aws:iam::123456789012:role/test"
REGION = "us-east-1"


def one(name: str, **state: Any) -> dict[str, Any]:
    """Return a machine of one last state."""
    return {"StartAt": name, "States": {name: {**state, "End": True}}}


PASS = one("P", Type="Pass")
ENDS = {"ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"}
WAIT = one("W", Type="Wait", Seconds=3600)
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:work"


def renamed(block: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a block whose states have a number in their names: each name stands once."""
    states = {}
    for name, state in block["States"].items():
        following = {"Next": f"{state['Next']}-{number}"} if "Next" in state else {}
        states[f"{name}-{number}"] = {**state, **following}
    return {"StartAt": f"{block['StartAt']}-{number}", "States": states}


WORK = one("A", Type="Task", Resource=ACTIVITY)


def function(name: str, **more: Any) -> dict[str, Any]:
    """Return a Task that calls a registered function."""
    arn = f"arn:aws:lambda:us-east-1:123456789012:function:{name}"
    return {"Type": "Task", "Resource": arn, **more}


def create(project: Project, definition: dict[str, Any], name: str = "machine") -> StateMachine:
    """Create a state machine."""
    return machines.create_machine(
        project, REGION, name=name, definition=json.dumps(definition), role_arn=ROLE
    )


def start(
    machine: StateMachine,
    data: Any = None,
    name: str | None = None,
    *,
    breakpoints: Sequence[engine.Breakpoint] = (),
) -> Execution:
    """Start an execution."""
    text = "{}" if data is None else json.dumps(data)
    return start_execution(machine, name=name, input=text, breakpoints=breakpoints)


def drain(execution: Execution) -> Execution:
    """Step an execution, in this thread, until it can go no further; return it anew."""
    while step.step_execution(execution.pk):
        pass
    return Execution.objects.get(pk=execution.pk)


def ended(execution: Execution, seconds: float = PATIENCE_S) -> Execution:
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


def assert_nothing_wrong() -> None:
    """Check what must hold at any instant, but that timers are not early: tests hurry them."""
    assert [str(violation) for violation in check() if violation.id not in ("I7", "I8")] == []
