"""What goes into an integration, and what comes out?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt of a task.

    ``input``: JSON text; ``timeout_s``: how long it may take, None for no limit.

    ``idempotency_key``: the same for every dispatch of this attempt, also after a crash.
    """

    kind: str
    resource: str
    service: str
    action: str
    input: str
    idempotency_key: str
    execution_arn: str
    token: str
    timeout_s: int | None = None


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The result, as JSON text."""

    output: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The error's name and cause; either may be absent."""

    error: str | None
    cause: str | None = None


Outcome = Succeeded | Failed
