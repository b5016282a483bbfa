"""The state machines of the chaos suite, and the output that each must have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:"
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:chaos"


@dataclass(frozen=True, slots=True)
class Shape:
    """A definition, and the output for the input ``{"n": n}``. ``nominal_s``: how long it takes."""

    name: str
    definition: dict[str, Any]
    output: Callable[[int], Any]
    nominal_s: float = 0.0

    @property
    def text(self) -> str:
        """Return the definition as text."""
        return json.dumps(self.definition)


def _task(function: str, **more: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": _LAMBDA + function, **more}


def _one(name: str = "Only", **state: Any) -> dict[str, Any]:
    return {"StartAt": name, "States": {name: {**state, "End": True}}}


def _chain() -> dict[str, Any]:
    states: dict[str, Any] = {f"S{k}": {"Type": "Pass", "Next": f"S{k + 1}"} for k in range(10)}
    states["S3"] = {"Type": "Wait", "Seconds": 1, "Next": "S4"}
    return {"StartAt": "S0", "States": {**states, "S10": {"Type": "Succeed"}}}


_RETRY = [{"ErrorEquals": ["ConnectionError"], "IntervalSeconds": 1, "MaxAttempts": 3}]
_FLAKY = _task("flaky", Parameters={"n.$": "$.n", "attempt.$": "$$.State.RetryCount"}, Retry=_RETRY)
_ITEMS = {"Type": "Pass", "Result": [3, 1, 2, 5, 4], "ResultPath": "$.items", "Next": "Map"}
_EACH = {"n.$": "$.n", "item.$": "$$.Map.Item.Value"}


def _map(mode: str) -> dict[str, Any]:
    processor = {"ProcessorConfig": {"Mode": mode}, **_one(**_task("echo"))}
    if mode == "DISTRIBUTED":
        processor["ProcessorConfig"]["ExecutionType"] = "STANDARD"
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True}
    return {"StartAt": "Items", "States": {"Items": _ITEMS, "Map": {**each, "ItemSelector": _EACH}}}


def _each(n: int) -> list[dict[str, int]]:
    return [{"n": n, "item": item} for item in (3, 1, 2, 5, 4)]


def _parallel() -> dict[str, Any]:
    waits = {
        "StartAt": "W",
        "States": {
            "W": {"Type": "Wait", "Seconds": 1, "Next": "E"},
            "E": _task("echo", End=True),
        },
    }
    return _one(Type="Parallel", Branches=[_one("Echo", **_task("echo")), waits])


def _caught() -> dict[str, Any]:
    catch = [{"ErrorEquals": ["ValueError"], "ResultPath": "$.error", "Next": "Caught"}]
    return {
        "StartAt": "Fails",
        "States": {
            "Fails": {**_task("broken"), "Catch": catch, "End": True},
            "Caught": {"Type": "Pass", "OutputPath": "$.n", "End": True},
        },
    }


_MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:"
_START = "arn:aws:states:::states:startExecution"


def _nested(name: str, suffix: str, child: str = "child", **more: Any) -> dict[str, Any]:
    """Return a machine that starts the child, under a name that tells whose it is."""
    parameters = {
        "StateMachineArn": f"{_MACHINE}{child}",
        "Name.$": f"States.Format('{name}-{{}}', $.n)",
        "Input": {"n.$": "$.n"},
    }
    return _one(Type="Task", Resource=_START + suffix, Parameters=parameters, **more)


_CHILD = {
    "StartAt": "W",
    "States": {"W": {"Type": "Wait", "Seconds": 1, "Next": "E"}, "E": _task("echo", End=True)},
}
CHILD = Shape("child", _CHILD, lambda n: {"n": n}, 1)
_ACTIVITY: dict[str, Any] = {
    "Type": "Task",
    "Resource": ACTIVITY,
    # a kill may cut off the answer that has the token: the task is then open until its time is over
    "TimeoutSeconds": 10,
    "Retry": [{"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 1, "MaxAttempts": 20}],
}
PLAIN = (
    Shape("chain", _chain(), lambda n: {"n": n}, 1),
    Shape("wait", _one(Type="Wait", Seconds=2), lambda n: {"n": n}, 2),
    Shape("retry", _one(**_FLAKY), lambda n: n, 1),
    Shape("parallel", _parallel(), lambda n: [{"n": n}, {"n": n}], 1),
    Shape("map", _map("INLINE"), _each),
    Shape("distributed", _map("DISTRIBUTED"), _each),
    Shape("activity", _one(**_ACTIVITY), lambda n: {"done": n}),
    Shape("caught", _caught(), lambda n: n),
)
NESTED = (
    Shape("nested", _nested("nested", ".sync:2", OutputPath="$.Output"), lambda n: {"n": n}, 1),
    Shape("forgets", _nested("forgets", "", ResultPath=None), lambda n: {"n": n}),
)
"""Each execution of these has one child of the machine ``child``, of the same name."""
SHAPES = (*PLAIN, *NESTED)
GATE = "arn:aws:states:us-east-1:123456789012:activity:gate"
WAYS = ("continue", "step", "into", "run-to", "edit", "answer", "skip", "fail")
"""How a person lets an execution of ``debugged`` continue from its breakpoint, by its number."""


def _debugged() -> dict[str, Any]:
    catch = [{"ErrorEquals": ["ByHand"], "Next": "Last"}]
    branches = [_one("Left", Type="Pass"), _one("Right", **_task("echo"))]
    states = {
        "Gate": {**_ACTIVITY, "Resource": GATE, "ResultPath": None, "Next": "Call"},
        "Call": {**_task("charge"), "Catch": catch, "Next": "Both"},
        "Both": {"Type": "Parallel", "Branches": branches, "Next": "Last"},
        "Last": {"Type": "Pass", "End": True},
    }
    return {"StartAt": "Gate", "States": states}


def _debugged_output(n: int) -> Any:
    way = WAYS[n % len(WAYS)]
    if way == "fail":
        return {"Error": "ByHand", "Cause": "chaos"}
    outputs = {"edit": {"n": n, "edited": True}, "answer": {"answered": n}, "skip": {"skipped": n}}
    return [outputs.get(way, {"n": n})] * 2


_INJECTED = [{"ErrorEquals": ["Injected"], "IntervalSeconds": 1, "MaxAttempts": 2}]
_FAULTY = {
    "StartAt": "Call",
    "States": {
        "Call": {**_task("charge"), "Retry": _INJECTED, "Next": "Answer"},
        "Answer": {**_task("echo"), "Retry": _INJECTED, "Next": "Ask"},
        "Ask": {**_ACTIVITY, "ResultPath": None, "End": True},
    },
}
FAULTY = Shape("faulty", _FAULTY, lambda n: {"n": n}, 5)
FAULTS: list[dict[str, Any]] = [
    {"state": "Call", "error": "Injected", "attempts": [1]},
    {"state": "Call", "type": "latency", "seconds": 1, "attempts": [2]},
    {"state": "Answer", "error": "Injected", "when": "after", "attempts": [1]},
    {"state": "Ask", "type": "delay-callback", "seconds": 1},
    {"state": "Ask", "type": "duplicate-callback"},
]
"""Faults of each execution of ``faulty``: each strikes once, one of them in place of a call.

Those of ``Ask`` strike each answer. An answer is lost if the limit of its task passes while it is
held back: then the task is retried, and the next answer is struck.
"""

_PLACED = {
    "StartAt": "Call",
    "States": {"Call": {**_task("charge"), "Retry": _INJECTED, "End": True}},
}
PLACED = Shape("placed", _PLACED, lambda n: {"n": n}, 1)
PLACED_FAULTS = [{"state": "Call", "error": "Injected", "attempts": [1]}]
"""Faults for the next starts of ``placed``: each strikes once, in place of a call."""
STARTS_PLACED = Shape(
    "starts-placed", _nested("placed", "", ResultPath=None, child="placed"), lambda n: {"n": n}
)
"""Each execution of it starts one of ``placed``, from a worker."""

DEBUGGED = Shape("debugged", _debugged(), _debugged_output)
DEADLY = Shape("deadly", _one(**_task("deadly")), lambda _: None)
CALLBACK = Shape("callback", _one(Type="Task", Resource=ACTIVITY), lambda n: n)
TIMER = Shape("timer", _one(Type="Wait", TimestampPath="$.at"), lambda n: n)
FUNCTIONS: dict[str, Any] = {
    name: f"tests.chaos.functions:{name}" for name in ("echo", "charge", "flaky", "broken")
}
FUNCTIONS["deadly"] = {"handler": "tests.chaos.functions:deadly", "process": "shared"}
