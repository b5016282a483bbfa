"""A mixed run: executions of every shape that end, wait, and go on in every way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine
from console.models import Execution, TaskRow, Timer
from console.store.executions import redrive
from console.store.executions.stop import stop_execution
from console.store.tasks import activities, claim, complete
from tests.console.store.helpers import ACTIVITY, REGION, create, ended, function, one, start
from tests.waiting import wait_until

if TYPE_CHECKING:
    from console.models import Project

BROKEN: set[str] = set()
"""Inputs at which the function fails; "once" only once."""


def work(event: Any, context: Any) -> Any:
    """Fail what is broken, and anything at its first attempt that asks for it."""
    name = str(event)
    if name in BROKEN:
        if name == "once":
            BROKEN.discard(name)
        raise RuntimeError(f"{name} is broken")
    return event


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
BRANCHES = one(
    "Five", Type="Parallel", Branches=[one(f"B{n}", Type="Pass", Result=n) for n in range(5)]
)
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
LATE = {**LONG, "TimeoutSeconds": 1}
FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "c\x00"}}}
ITEM_LIST = list(range(30))
ACTIVITIES = ("work", "silent", "sent")
WAITING = one("Await", Type="Task", Resource=ACTIVITY)
PATIENT = {
    "StartAt": "Try",
    "States": {
        "Try": {"Type": "Parallel", "Branches": [CALL, WAITING], "Catch": CATCH, "End": True},
        "Caught": {"Type": "Wait", "Seconds": 3600, "End": True},
    },
}


def activity(name: str, **more: Any) -> dict[str, Any]:
    """Return a machine that waits for a worker of an activity."""
    return one("A", Type="Task", Resource=ACTIVITY.replace(":work", f":{name}"), **more)


def distributed(inner: dict[str, Any]) -> dict[str, Any]:
    """Return a machine of one distributed Map."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    return one("Run", Type="Map", ItemProcessor={"ProcessorConfig": config, **inner})


SHAPES: dict[str, tuple[dict[str, Any], Any, str]] = {
    "chain": (CHAIN, 1, "SUCCEEDED"),
    "loop": (LOOP, {"n": 0}, "SUCCEEDED"),
    "branches": (BRANCHES, {"a": 1}, "SUCCEEDED"),
    "mixed": (MIXED, 7, "SUCCEEDED"),
    "items": (ITEMS, ITEM_LIST, "SUCCEEDED"),
    "none": (ITEMS, [], "SUCCEEDED"),
    "tried": (TRIED, "once", "SUCCEEDED"),
    "caught": (CAUGHT, "always", "SUCCEEDED"),
    "failed": (FAIL, 1, "FAILED"),
    "broken": (TRIED, "later", "SUCCEEDED"),
    "half": (ITEMS, [1, "later", 3], "SUCCEEDED"),
    "group": (one("G", Type="Parallel", Branches=[CALL, PAUSE]), "later", "SUCCEEDED"),
    "children": (distributed(CALL), [1, "a", 3], "SUCCEEDED"),
    "bad-child": (distributed(CALL), [1, "later", 3], "SUCCEEDED"),
    "late": (LATE, 1, "TIMED_OUT"),
    "silent": (activity("silent", HeartbeatSeconds=1), 1, "FAILED"),
    "sent": (activity("sent"), 1, "SUCCEEDED"),
    "stopped": (LONG, 1, "ABORTED"),
    "halted": (WAITING, 1, "ABORTED"),
    "waits": (WAITING, 1, "RUNNING"),
    "sleeps": (LONG, 1, "RUNNING"),
    "forks": (one("Two", Type="Parallel", Branches=[LONG, WAITING]), 1, "RUNNING"),
    "patient": (PATIENT, "always", "RUNNING"),
    "stands": (CHAIN, 1, "RUNNING"),
    "open-children": (distributed(WAITING), [1], "RUNNING"),
}
"""Name -> machine, input, and how it ends."""
BREAKPOINTS = {"stands": [engine.Breakpoint("P3")]}


def run_all(project: Project) -> dict[str, Execution]:
    """Start executions of every shape; break some, stop some, and redrive what can be."""
    for name in ACTIVITIES:
        activities.create_activity(project, REGION, name)
    BROKEN.update({"once", "always", "later"})
    executions = {
        name: start(create(project, text, name), data, breakpoints=BREAKPOINTS.get(name, ()))
        for name, (text, data, _) in SHAPES.items()
    }
    take("silent")
    complete.succeed(take("sent").token, '"answer"')
    wait_until(lambda: TaskRow.objects.filter(execution=executions["halted"]).exists())
    for name in ("stopped", "halted"):
        stop_execution(executions[name], error="E", cause="enough")
    wait_until(
        lambda: Execution.objects.filter(map_run__parent=executions["open-children"]).exists()
    )
    wait_until(lambda: Timer.objects.filter(execution=executions["patient"]).exists())
    for name, (_, _, status) in SHAPES.items():
        executions[name] = executions[name] if status == "RUNNING" else ended(executions[name])
    BROKEN.clear()
    for name in ("broken", "half", "group", "bad-child", "failed", "late"):
        wait_until(lambda name=name: not redrive.redrive_refusal(executions[name]))
        redrive.redrive_execution(executions[name])
    for name in ("broken", "half", "group", "bad-child", "failed", "late"):
        executions[name] = ended(executions[name])
    return executions


def take(name: str) -> claim.ClaimedTask:
    """Take the task of an activity that one execution has, and leave it at that."""
    tasks: list[claim.ClaimedTask] = []

    def try_it() -> bool:
        work = claim.take_activity_task(ACTIVITY.replace(":work", f":{name}"), "lazy")
        tasks.extend([work] if work is not None else [])
        return bool(tasks)

    wait_until(try_it)
    return tasks[0]
