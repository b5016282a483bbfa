"""Limited projects and how far their executions are, for tests of the pace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.models import Execution, Timer, TokenBucket
from console.store.state import transition_rate
from tests.console.store.helpers import types

if TYPE_CHECKING:
    from console.models import Project


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ms += int(seconds * 1000)


def chain(length: int) -> dict[str, Any]:
    """Return a machine of so many Pass states."""
    states: dict[str, Any] = {
        f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(1, length)
    }
    return {"StartAt": "S1", "States": states | {f"S{length}": {"Type": "Pass", "End": True}}}


def entered(execution: Execution) -> int:
    """Return how many states an execution has entered."""
    return sum(kind.endswith("StateEntered") for kind in types(execution))


def held(execution: Execution) -> list[str]:
    """Return the timers of an execution that say when tokens are there."""
    return [
        timer.name
        for timer in Timer.objects.filter(execution=execution)
        if transition_rate.is_token_timer(timer.name)
    ]


def left(project: Project) -> float:
    """Return what the bucket holds."""
    return TokenBucket.objects.get(project=project, name=transition_rate.BUCKET).tokens
