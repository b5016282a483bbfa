"""Fold the events of a state to the attempts at its work, each with its outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import engine
from console.web.core import formatting
from console.web.core.causes import Cause, cause_of
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine import Visit

_STOPPED = (engine.VisitStatus.ABORTED, engine.VisitStatus.TIMED_OUT)
_WORDS = {engine.Stage.SUCCEEDED: "Succeeded", engine.Stage.TIMED_OUT: "Timed out"}


class AttemptEvent(Protocol):
    """An event as far as it matters here."""

    @property
    def id(self) -> int:
        """Return its number."""

    @property
    def at_ms(self) -> int:
        """Return when it happened."""

    @property
    def type(self) -> str:
        """Return its type."""

    @property
    def details(self) -> dict[str, Any]:
        """Return its fields."""


@dataclass(frozen=True, slots=True)
class StateAttempt:
    """One attempt at the work of a state. ``wait``: the pause before a retry of it.

    ``until_ms``: None while it runs. ``outcome`` is a word, ``tone`` its colour. ``task``: its
    number, 0 for a group. ``note``: which clock ran out, or that it was sent again. ``redriven``:
    how long after it a redrive began the next one, which is no retry.
    """

    number: int
    at_ms: int
    outcome: str
    tone: str
    until_ms: int | None = None
    error: str = ""
    cause: str = ""
    spent: str = ""
    wait: str = ""
    task: int = 0
    note: str = ""
    redriven: str = ""

    @property
    def opened_cause(self) -> Cause | None:
        """Return the cause, taken apart."""
        return cause_of(self.cause or None)


def list_attempts(events: Iterable[AttemptEvent], visit: Visit | None = None) -> list[StateAttempt]:
    """Return the attempts at a state's work, each with its outcome and the pause after it.

    ``visit``: the stay they belong to; if its execution's end stopped it, that ends what is open.
    """
    attempts: list[StateAttempt] = []
    for event in events:
        about = engine.EVENT_TYPES[event.type]
        if about.family is engine.Family.MAP_ITERATION:
            continue  # of the items, not of the Map's own attempt
        if event.type in event_types.ATTEMPT_BEGINNINGS:
            if attempts and (ended := attempts[-1].until_ms) is not None:
                attempts[-1] = _with_pause(attempts[-1], event.at_ms, ended, visit)
            begun = StateAttempt(
                len(attempts) + 1, event.at_ms, "In progress", "running", task=_task_number(event)
            )
            attempts.append(_end_attempt(begun, event) if about.is_failure else begun)
        elif attempts and attempts[-1].until_ms is None and _is_outcome(about):
            attempts[-1] = _end_attempt(attempts[-1], event)
    if attempts and attempts[-1].until_ms is None and visit is not None:
        attempts[-1] = _stop_attempt(attempts[-1], visit)
    return attempts


def _with_pause(
    attempt: StateAttempt, next_ms: int, ended_ms: int, visit: Visit | None
) -> StateAttempt:
    """Note what lies between an attempt and the next: a retry's pause, or the way to a redrive."""
    pause_ms = next_ms - ended_ms
    pause = formatting.duration_text(pause_ms)
    if visit is not None and visit.worked_ms(ended_ms, next_ms) < pause_ms:
        return replace(attempt, redriven=pause)
    return replace(attempt, wait=pause)


def _stop_attempt(begun: StateAttempt, visit: Visit) -> StateAttempt:
    """End an attempt with its visit, if that was stopped or the execution's time was over."""
    if visit.left_ms is None or visit.status not in _STOPPED:
        return begun
    status = formatting.STEP[visit.status]
    spent = formatting.duration_text(visit.left_ms - begun.at_ms)
    return replace(
        begun, outcome=status.word, tone=status.tone, until_ms=visit.left_ms, spent=spent
    )


def _task_number(event: AttemptEvent) -> int:
    """Return the number of the task it schedules, 0 for the start of a group."""
    return event.id if event.type in event_types.WORK_SCHEDULED else 0


def _is_outcome(about: engine.EventType) -> bool:
    return about.stage in event_types.OUTCOME_STAGES or about.name == "FailStateEntered"


def _end_attempt(begun: StateAttempt, event: AttemptEvent) -> StateAttempt:
    stage = engine.EVENT_TYPES[event.type].stage
    return replace(
        begun,
        outcome=_WORDS.get(stage, "Failed"),
        tone="succeeded" if stage is engine.Stage.SUCCEEDED else "failed",
        until_ms=event.at_ms,
        error=event.details.get("error") or "",
        cause=event.details.get("cause") or "",
        spent=formatting.duration_text(event.at_ms - begun.at_ms),
    )
