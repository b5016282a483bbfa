"""The recorded execution whose input and answers a trial uses."""

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

    ``name``: that of the execution.
    """

    name: str
    input: Any
    recorded: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def answers(self, state: str) -> Iterator[Any]:
        """Yield the recorded results of a state in their order, and the last one from then on."""
        results = self.recorded.get(state) or [{}]
        return itertools.chain(results, itertools.repeat(results[-1]))

    def tasks(self) -> dict[str, Callable[[Any], Any]]:
        """Return functions for ``engine.run`` that answer as recorded, for one run."""
        return {state: _replayed(self.answers(state)) for state in self.recorded}

    def usual_calls(self, definition: Mapping[str, Any]) -> dict[str, int]:
        """Return state -> its calls without an error; {} if the recording does not fit."""
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
    """Return what an execution recorded. ``text``: its input; ``events``: as AWS's API has them."""
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
