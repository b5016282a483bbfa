"""A recorded execution whose input and answers the trials of a report use."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_ENDS = {
    "TaskSucceeded": "taskSucceededEventDetails",
    "LambdaFunctionSucceeded": "lambdaFunctionSucceededEventDetails",
    "ActivitySucceeded": "activitySucceededEventDetails",
}
_MOST_STEPS = 20_000


@dataclass(frozen=True)
class Rehearsal:
    """Input and answers of an execution. ``recorded``: state -> the results of its calls.

    ``name``: the execution's name. ``input_name``: the named input that replaces its own input.
    """

    name: str
    input: Any
    recorded: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    input_name: str = ""

    def answers(self, state: str) -> Iterator[Any]:
        """Yield the recorded results of a state in order; then repeat the last one."""
        results = self.recorded.get(state) or [{}]
        return itertools.chain(results, itertools.repeat(results[-1]))

    def tasks(self) -> dict[str, Callable[[Any], Any]]:
        """Return functions for one run of ``engine.run`` that answer as recorded."""
        return {state: _replayed(self.answers(state)) for state in self.recorded}

    def usual_calls(self, definition: Mapping[str, Any]) -> dict[str, int]:
        """Return state -> number of calls in a run without errors; {} if it does not fit."""
        try:
            result = engine.run(definition, self.input, self.tasks(), max_steps=_MOST_STEPS)
        except (engine.EngineError, KeyError):
            return {}
        if result.status != "SUCCEEDED":
            return {}
        calls: dict[str, int] = {}
        for call in result.calls:
            calls[call.state] = calls.get(call.state, 0) + 1
        return calls


def read_rehearsal(name: str, text: str, events: Sequence[Mapping[str, Any]]) -> Rehearsal:
    """Parse a recorded execution. ``text``: its input; ``events``: in AWS's API form."""
    states: dict[int, str] = {}
    recorded: dict[str, list[Any]] = {}
    maps: set[str] = set()
    for event in events:
        state = states.get(event.get("previousEventId", 0), "")
        entered = event.get("stateEnteredEventDetails")
        if entered:
            state = entered["name"]
        states[event["id"]] = state
        kind = event["type"]
        if kind == "MapRunStarted":
            maps.add(state)
        details = event.get(_ENDS.get(kind, ""), {})
        if kind == "MapStateExited" and state in maps:
            details = event["stateExitedEventDetails"]
        if "output" in details:
            recorded.setdefault(state, []).append(engine.loads(details["output"]))
    return Rehearsal(name, engine.loads(text), recorded)


def _replayed(answers: Iterator[Any]) -> Callable[[Any], Any]:
    return lambda _input: next(answers)
