"""What the simulated executions do: each shape waits for another kind of thing."""

from __future__ import annotations

from typing import Any

import engine
from tests.console.store.helpers import ACTIVITY, function, one

_RETRY = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 3, "MaxAttempts": 1}]
_CATCH = [{"ErrorEquals": ["Broken"], "Next": "Caught"}]
_CALL = one("Call", **function("work"))
_TRIED = one("Tried", **function("work"), Retry=_RETRY)
_PAUSE = one("Pause", Type="Wait", Seconds=5)
_ACT = one("Act", Type="Task", Resource=ACTIVITY, HeartbeatSeconds=10, TimeoutSeconds=30)
_CALLBACK = {
    "Type": "Task",
    "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
    "Parameters": {"QueueUrl": "q", "MessageBody": {"token.$": "$$.Task.Token"}},
    "TimeoutSeconds": 60,
}


_START = "arn:aws:states:::states:startExecution"


def _child(machine: str, suffix: str = "", **more: Any) -> dict[str, Any]:
    """Return a Task that starts an execution of another of these machines."""
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{machine}"
    parameters = {"StateMachineArn": arn, "Input.$": "$"}
    return {"Type": "Task", "Resource": _START + suffix, "Parameters": parameters, **more}


def _line(*states: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a machine of states one after the other."""
    names = [name for name, _ in states]
    following = [{"Next": name} for name in names[1:]] + [{"End": True}]
    by_name = {
        name: {**state, **then} for (name, state), then in zip(states, following, strict=True)
    }
    return {"StartAt": names[0], "States": by_name, **more}


SHAPES: dict[str, dict[str, Any]] = {
    "chain": _line(*[(f"P{n}", {"Type": "Pass"}) for n in range(5)]),
    "wait": _line(("Sleep", {"Type": "Wait", "Seconds": 5}), ("After", {"Type": "Pass"})),
    "task": {
        "StartAt": "T",
        "States": {
            "T": {**function("work"), "Retry": _RETRY, "Catch": _CATCH, "Next": "Done"},
            "Done": {"Type": "Pass", "Result": "done", "End": True},
            "Caught": {"Type": "Pass", "End": True},
        },
    },
    "activity": one(
        "A",
        Type="Task",
        Resource=ACTIVITY,
        HeartbeatSeconds=10,
        TimeoutSeconds=30,
        Retry=[{"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 2, "MaxAttempts": 2}],
    ),
    "parallel": one("All", Type="Parallel", Branches=[_CALL, _PAUSE, _ACT], Retry=_RETRY),
    "map": one("Each", Type="Map", MaxConcurrency=2, ItemsPath="$.items", ItemProcessor=_TRIED),
    "nested": one(
        "Outer",
        Type="Parallel",
        Branches=[
            one("Inner", Type="Map", ItemsPath="$.items", ItemProcessor=_CALL),
            _PAUSE,
            one("Last", Type="Pass"),
        ],
    ),
    "distributed": one(
        "Run",
        Type="Map",
        MaxConcurrency=2,
        ItemsPath="$.items",
        ToleratedFailureCount=1,
        ItemProcessor={
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            **_CALL,
        },
    ),
    "callback": _line(("Back", _CALLBACK), ("After", {"Type": "Pass"})),
    "waits": _line(("Child", _child("task", ".sync:2", Retry=_RETRY)), ("After", {"Type": "Pass"})),
    "forgets": _line(("Child", _child("wait", ResultPath=None)), ("After", {"Type": "Pass"})),
    "limited": _line(
        ("Nap", {"Type": "Wait", "Seconds": 15}), ("Call", function("work")), TimeoutSeconds=20
    ),
    "fail": _line(("Before", {"Type": "Pass"}), ("Call", function("work")))
    | {
        "States": {
            "Before": {"Type": "Pass", "Next": "Bad"},
            "Bad": {"Type": "Fail", "Error": "E", "Cause": "c"},
        }
    },
}
"""Name -> machine. All take the same input."""

BREAKPOINTS = {
    "task": (engine.Breakpoint("T"), engine.Breakpoint("T", engine.BreakTime.ERROR)),
    "parallel": (engine.Breakpoint("Pause", engine.BreakTime.AFTER), engine.Breakpoint("Call")),
    "map": (engine.Breakpoint("Tried", condition="$states.input > 1", hits=2),),
    "nested": (engine.Breakpoint("Outer"), engine.Breakpoint("Inner")),
    "chain": (engine.Breakpoint("P1"), engine.Breakpoint("P3", engine.BreakTime.AFTER)),
}
"""Name of a shape -> the breakpoints of its executions that are debugged."""

FAULTS: dict[str, list[dict[str, Any]]] = {
    "task": [
        {"state": "T", "error": "Broken", "attempts": [1]},
        {"state": "T", "type": "latency", "seconds": 2, "attempts": [2]},
    ],
    "activity": [
        {"state": "A", "type": "timeout", "attempts": [1]},
        {"state": "A", "type": "lose-heartbeat", "seconds": 2, "attempts": [2]},
        {"state": "A", "type": "delay-callback", "seconds": 2, "attempts": [3]},
    ],
    "parallel": [
        {"state": "Call", "when": "after", "attempts": [1]},
        {"state": "Act", "type": "latency", "seconds": 4},
    ],
    "map": [
        {"state": "Tried", "type": "throttle", "rate": 0.5},
        {"state": "Tried", "type": "latency", "seconds": 3, "rate": 0.5},
    ],
    "nested": [{"state": "Inner", "type": "fail-children", "children": 2}],
    "distributed": [
        {"state": "Run", "type": "fail-children", "children": 1, "error": "Broken"},
        {"state": "Call", "type": "latency", "seconds": 2, "rate": 0.5},
    ],
    "callback": [
        {"state": "Back", "type": "delay-callback", "seconds": 3, "rate": 0.7},
        {"state": "Back", "type": "duplicate-callback"},
        {"state": "Back", "when": "after", "rate": 0.5},
    ],
    "waits": [
        {"state": "Child", "attempts": [1]},
        {"state": "Child", "type": "latency", "seconds": 5, "attempts": [2]},
    ],
}
"""Name of a shape -> the faults of its executions that are faulty."""

INPUT = '{"items":[1,2,3]}'
