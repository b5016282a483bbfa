"""Does the checker of invariants find nothing in sound rows, and each kind of harm in others?"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from console.invariants import Checked, check
from console.models import (
    Execution,
    TaskRow,
)
from console.store import activities, executions, redrive, tasks
from tests.console.store.helpers import ACTIVITY, REGION, create, ended, function, one, start

if TYPE_CHECKING:
    from console.models import Project
    from console.worker import Embedded

BROKEN: set[str] = set()


def work(event: Any, context: Any) -> Any:
    """Fail what is broken, and anything at its first attempt that asks for it."""
    name = str(event)
    if name in BROKEN:
        if name == "once":
            BROKEN.discard(name)
        raise RuntimeError(f"{name} is broken")
    return event


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the function; nothing is broken."""
    settings.STEPYARD_FUNCTIONS = {"work": f"{__name__}:work"}
    BROKEN.clear()


RETRY = [{"ErrorEquals": ["RuntimeError"], "IntervalSeconds": 1, "MaxAttempts": 2}]
CATCH = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
CALL = one("T", **function("work"))
PAUSE = one("W", Type="Wait", Seconds=1)
LONG = one("W", Type="Wait", Seconds=3600)
CHAIN = {
    "StartAt": "P0",
    "States": {
        **{f"P{n}": {"Type": "Pass", "Next": f"P{n + 1}"} for n in range(20)},
        "P20": {"Type": "Succeed"},
    },
}
LOOP = {
    "StartAt": "More",
    "States": {
        "More": {
            "Type": "Pass",
            "Parameters": {"n.$": "States.MathAdd($.n, 1)"},
            "Next": "Enough",
        },
        "Enough": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericLessThan": 50, "Next": "More"}],
            "Default": "Done",
        },
        "Done": {"Type": "Succeed"},
    },
}
BRANCHES = one("Five", Type="Parallel", Branches=[one(f"B{n}", Type="Pass") for n in range(5)])
MIXED = one("Two", Type="Parallel", Branches=[CALL, PAUSE])
ITEMS = one("Each", Type="Map", MaxConcurrency=5, ItemProcessor=CALL)
TRIED = one("R", **function("work"), Retry=RETRY)
CAUGHT = {
    "StartAt": "Try",
    "States": {
        "Try": {
            "Type": "Parallel",
            "Branches": [CALL, LONG],
            "Catch": CATCH,
            "Retry": RETRY,
            "Next": "Caught",
        },
        "Caught": {"Type": "Succeed"},
    },
}
DISTRIBUTED = one(
    "Run",
    Type="Map",
    ItemProcessor={
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **CALL,
    },
)
WORK = one("A", Type="Task", Resource=ACTIVITY, HeartbeatSeconds=1)
LATE = {**LONG, "TimeoutSeconds": 1}
ITEM_LIST = list(range(30))
FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "c"}}}
WAITING = one("Await", Type="Task", Resource=ACTIVITY)


def run_all(project: Project) -> dict[str, Execution]:
    """Start executions of every shape; break some, stop some, and redrive what can be."""
    activities.create(project, REGION, "work")
    shapes = {
        "chain": (CHAIN, 1),
        "loop": (LOOP, {"n": 0}),
        "branches": (BRANCHES, {"a": 1}),
        "mixed": (MIXED, 7),
        "items": (ITEMS, ITEM_LIST),
        "none": (ITEMS, []),
        "tried": (TRIED, "once"),
        "caught": (CAUGHT, "always"),
        "failed": (FAIL, 1),
        "broken": (TRIED, "later"),
        "half": (ITEMS, [1, "later", 3]),
        "group": (one("G", Type="Parallel", Branches=[CALL, PAUSE]), "later"),
        "children": (DISTRIBUTED, [1, "a", 3]),
        "bad-child": (DISTRIBUTED, [1, "later", 3]),
        "late": (LATE, 1),
        "silent": (WORK, 1),
        "stopped": (LONG, 1),
        "waits": (WAITING, 1),
        "sleeps": (LONG, 1),
    }
    BROKEN.update({"once", "always", "later"})
    made = {name: start(create(project, text, name), data) for name, (text, data) in shapes.items()}
    tasks_taken(made["silent"])
    executions.stop(made["stopped"], error="E", cause="enough")
    open_ = ("waits", "sleeps")
    for name, execution in made.items():
        made[name] = execution if name in open_ else ended(execution)
    BROKEN.clear()
    for name in ("broken", "half", "group", "bad-child", "failed", "late"):
        redrive_soon(made[name])
        made[name] = ended(made[name])
    return made


def tasks_taken(execution: Execution) -> None:
    """Take the activity's task of an execution, and leave it at that."""
    until = time.monotonic() + 10
    while not TaskRow.objects.filter(execution=execution).exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    while True:
        work = tasks.take_activity_task(ACTIVITY, "lazy")
        if work is not None and work.execution_id == execution.pk:
            return
        if work is not None:
            tasks.put_back(work)


def redrive_soon(execution: Execution) -> None:
    """Redrive an execution as soon as its Map Run is at rest."""
    until = time.monotonic() + 10
    while redrive.refusal(execution) and time.monotonic() < until:
        time.sleep(0.02)
    redrive.redrive(execution)


def wrong() -> list[str]:
    """Return all that the checker finds."""
    return [str(one) for one in check()]


def test_sound_rows(project: Project, worker: Embedded) -> None:
    """Every shape, and every way to end and to go on, shows nothing."""
    made = run_all(project)
    checked = Checked()
    assert [str(one) for one in check(checked=checked)] == []
    assert checked.n == Execution.objects.count() > len(made)
    ends = {name: row.status for name, row in made.items()}
    bad = {"failed": "FAILED", "late": "TIMED_OUT", "silent": "FAILED", "stopped": "ABORTED"}
    running = {"waits": "RUNNING", "sleeps": "RUNNING"}
    assert ends == dict.fromkeys(made, "SUCCEEDED") | bad | running
    assert json.loads(str(made["items"].output)) == ITEM_LIST
