"""The result of an execution in a test, with assertions whose failures show its path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from console.testing.function_server import Invocation

_LONGEST = 400
_ANYTHING = object()
_BAD = (engine.event_types.Tone.FAILED, engine.event_types.Tone.ABORTED)


@dataclass(frozen=True, slots=True)
class MachineRun:
    """A finished execution.

    ``output``: a JSON value, None without one. ``history``: events as in GetExecutionHistory, none
    for Express. ``invocations``: calls of the test's own callables during it.
    """

    arn: str
    status: str
    output: Any
    error: str | None
    cause: str | None
    history: tuple[dict[str, Any], ...]
    invocations: tuple[Invocation, ...]

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the states, in the order they were entered."""
        return tuple(
            event["stateEnteredEventDetails"]["name"]
            for event in self.history
            if "stateEnteredEventDetails" in event
        )

    def assert_succeeded(self, output: Any = _ANYTHING) -> MachineRun:
        """Fail unless the execution succeeded, with this output if given."""
        __tracebackhide__ = True
        self._check(self.status == "SUCCEEDED", "status SUCCEEDED", self.status)
        if output is not _ANYTHING:
            self._check(self.output == output, f"output {output!r}", repr(self.output))
        return self

    def assert_failed(self, error: str | None = None, cause: str | None = None) -> MachineRun:
        """Fail unless the execution failed, with this error, and this text in its cause."""
        __tracebackhide__ = True
        self._check(self.status == "FAILED", "status FAILED", self.status)
        if error is not None:
            self._check(self.error == error, f"error {error!r}", repr(self.error))
        if cause is not None:
            self._check(cause in (self.cause or ""), f"cause with {cause!r}", repr(self.cause))
        return self

    def assert_path(self, *states: str) -> MachineRun:
        """Fail unless exactly these states were entered, in this order."""
        __tracebackhide__ = True
        self._check(self.path == states, " > ".join(states), " > ".join(self.path))
        return self

    def describe(self) -> str:
        """Return status, result and path as lines of text."""
        lines = [f"{self.arn}: {self.status}"]
        for name in ("output", "error", "cause"):
            value = getattr(self, name)
            if value is not None:
                lines.append(f"  {name}: {_short(value)}")
        if self.history:
            lines += ["  path:", *(f"    {line}" for line in self._path_lines())]
        return "\n".join(lines)

    def _check(self, true: bool, expected: str, got: str) -> None:
        __tracebackhide__ = True
        if not true:
            raise AssertionError(f"wanted {expected}, got {got}\n{self.describe()}")

    def _path_lines(self) -> list[str]:
        """Return a line for each entered state and each failure."""
        lines = []
        for event in self.history:
            details = _details(event)
            if "stateEnteredEventDetails" in event:
                lines.append(f"{details['name']}  {_short(details.get('input', ''))}")
            elif engine.EVENT_TYPES[event["type"]].tone in _BAD:
                problem = ": ".join(details[key] for key in ("error", "cause") if details.get(key))
                lines.append(f"  ! {event['type']}  {_short(problem)}")
        return lines


def _details(event: dict[str, Any]) -> dict[str, Any]:
    return next((value for key, value in event.items() if key.endswith("EventDetails")), {})


def _short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
