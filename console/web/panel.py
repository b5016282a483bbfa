"""What does the panel of the chosen step say?

It is about one visit: a state in a loop or a Map has many, and the panel leads to the others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from console.models import HistoryEvent
from console.web import jsonview, timeouts, words
from console.web.history import details_of
from console.web.steps import Summary, summaries

if TYPE_CHECKING:
    from console.models import Execution
    from engine import Node, Trace, Visit

MOST_EVENTS = 200
"""A Map of ten thousand items has more events than a panel can show; the first ones are enough."""


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt at the work of a state.

    ``wait``: the pause before the next one. ``task``: its ...Scheduled event. ``note``: which clock
    ran out, or that it was sent again.
    """

    number: int
    at_ms: int
    outcome: str
    tone: str
    error: str = ""
    cause: str = ""
    spent: str = ""
    wait: str = ""
    task: int = 0
    note: str = ""

    @property
    def opened_cause(self) -> Cause | None:
        """Return the cause, taken apart."""
        return cause_of(self.cause or None)


@dataclass(frozen=True, slots=True)
class Panel:
    """Everything about one visit of one state; ``number`` of ``count`` visits."""

    summary: Summary
    node: Node
    status: words.Status
    number: int
    count: int
    iteration: str = ""
    entered_ms: int | None = None
    left_ms: int | None = None
    spent: str = ""
    running_since: int | None = None
    input: jsonview.Payload | None = None
    output: jsonview.Payload | None = None
    error: str = ""
    cause: Cause | None = None
    resource: str = ""
    tries: tuple[Try, ...] = ()
    events: tuple[EventLine, ...] = ()
    failed_visits: tuple[int, ...] = ()

    @property
    def previous(self) -> int:
        """Return the number of the visit before this one."""
        return self.number - 1

    @property
    def next(self) -> int:
        """Return the number of the visit after this one."""
        return self.number + 1

    @property
    def next_failed(self) -> int:
        """Return the number of the next failed visit, 0 if there is none."""
        return next((one for one in self.failed_visits if one > self.number), 0)

    @property
    def previous_failed(self) -> int:
        """Return the number of the failed visit before this one, 0 if there is none."""
        return next((one for one in reversed(self.failed_visits) if one < self.number), 0)


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event of the visit."""

    id: int
    type: str
    tone: str
    elapsed: int


@dataclass(frozen=True, slots=True)
class Cause:
    """Why it failed. A function's JSON cause is taken apart; ``raw`` is what was reported."""

    raw: str
    message: str = ""
    kind: str = ""
    stack: str = ""


def panel(execution: Execution, trace: Trace, name: str, number: int = 0) -> Panel | None:
    """Return the panel of a state, None if there is no such state.

    ``number``: which visit, from 1; 0 for the one that tells most: the first failed, else the last.
    """
    node_id = trace.graph.by_name.get(name)
    if node_id is None:
        return None
    summary = summaries(trace, [node_id])[node_id]
    visits = trace.visits.get(node_id, [])
    if not visits:
        return Panel(summary, summary.node, summary.status, 0, 0)
    failed = tuple(place for place, one in enumerate(visits, 1) if one.status == "failed")
    if not 1 <= number <= len(visits):
        number = failed[0] if failed and visits[-1].status != "running" else len(visits)
    return _panel(execution, trace, summary, number, failed)


def _panel(
    execution: Execution, trace: Trace, summary: Summary, number: int, failed: tuple[int, ...]
) -> Panel:
    visits = trace.visits[summary.node.id]
    visit = visits[number - 1]
    events = _events(execution, visit)
    error, cause = _error(execution, trace, visit, events)
    left = visit.left_ms
    return Panel(
        summary=summary,
        node=summary.node,
        status=words.STEP[visit.status],
        number=number,
        count=len(visits),
        iteration=" → ".join(f"#{index}" for index in visit.iteration),
        entered_ms=visit.entered_ms,
        left_ms=left,
        spent="" if left is None else words.duration(left - visit.entered_ms),
        running_since=visit.entered_ms if left is None else None,
        input=_payload(events, "StateEntered", "input"),
        output=_payload(events, "StateExited", "output"),
        error=error,
        cause=cause_of(cause),
        resource=next((one.details["resource"] for one in events if "resource" in one.details), ""),
        tries=_noted(execution, _tries(_with_failures(execution, events))),
        events=tuple(
            EventLine(one.id, one.type, words.event_tone(one.type), one.at_ms - execution.start_ms)
            for one in events
        ),
        failed_visits=failed,
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """An event of the visit, read whole."""

    id: int
    at_ms: int
    type: str
    details: dict[str, Any]
    previous: int


def _events(execution: Execution, visit: Visit) -> list[_Seen]:
    return _read(execution, visit.events[:MOST_EVENTS] + visit.events[MOST_EVENTS:][-2:])


def _read(execution: Execution, wanted: list[int]) -> list[_Seen]:
    rows = (
        HistoryEvent.objects.filter(execution_id=execution.pk, event_id__in=wanted)
        .order_by("event_id")
        .values_list("event_id", "at_ms", "type", "details", "previous")
    )
    return [
        _Seen(number, at_ms, kind, details_of(text), previous)
        for number, at_ms, kind, text, previous in rows
    ]


def _payload(events: list[_Seen], ending: str, field: str) -> jsonview.Payload | None:
    for one in events:
        if one.type.endswith(ending) and field in one.details:
            return jsonview.payload(one.details[field], f"events/{one.id}/{field}/")
    return None


def _error(
    execution: Execution, trace: Trace, visit: Visit, events: list[_Seen]
) -> tuple[str, str | None]:
    """Return error and cause: of the last failed attempt, else of the execution it ended."""
    if visit.status not in ("failed", "caught"):
        return "", None
    for one in reversed(events):
        if "error" in one.details or "cause" in one.details:
            return one.details.get("error", ""), one.details.get("cause")
    if visit is trace.culprit or (visit.status == "failed" and not visit.iteration):
        return execution.error or "", execution.cause
    return "", None


def _with_failures(execution: Execution, events: list[_Seen]) -> list[_Seen]:
    """Add what made a Parallel or Map start again: the event its restart points back at."""
    own = {one.id for one in events}
    again = [one.previous for one in events if one.type.endswith(_BEGINS)][1:]
    causes = _read(execution, [one for one in again if one not in own])
    return sorted((*events, *causes), key=lambda one: one.id)


_BEGINS = ("Scheduled", "StateStarted")
_OUTCOMES = ("Succeeded", "Failed", "TimedOut")


def _tries(events: list[_Seen]) -> list[Try]:
    """Return the attempts at a state's work, each with its outcome and the pause after it."""
    tries: list[Try] = []
    begun = ended = 0
    for one in events:
        if one.type.startswith("MapIteration"):
            continue  # of the items, not of the Map's own attempt
        if one.type.endswith(_BEGINS):
            if tries and ended:
                tries[-1] = replace(tries[-1], wait=words.duration(one.at_ms - ended))
            begun, ended = one.at_ms, 0
            tries.append(Try(len(tries) + 1, one.at_ms, "In progress", "running", task=one.id))
        elif tries and not ended and one.type.endswith((*_OUTCOMES, "FailStateEntered")):
            ended = one.at_ms
            word = next((word for word in _OUTCOMES if one.type.endswith(word)), "Failed")
            tries[-1] = replace(
                tries[-1],
                outcome="Timed out" if word == "TimedOut" else word,
                tone="succeeded" if word == "Succeeded" else "failed",
                error=one.details.get("error", ""),
                cause=one.details.get("cause", ""),
                spent=words.duration(one.at_ms - begun),
            )
    return tries


def _noted(execution: Execution, tries: list[Try]) -> tuple[Try, ...]:
    """Add to the attempts what only the rows of their tasks know."""
    late = {one.task: one.outcome == "Timed out" for one in tries}
    told = timeouts.notes(execution, late) if late else {}
    return tuple(replace(one, note=told.get(one.task, "")) for one in tries)


def cause_of(text: str | None) -> Cause | None:
    """Take a cause apart: functions report ``{"errorMessage", "errorType", "stackTrace"}``."""
    if not text:
        return None
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return Cause(text)
    if not isinstance(parts, dict) or "errorMessage" not in parts:
        return Cause(text)
    frames = parts.get("stackTrace") or parts.get("trace") or ()
    stack = "\n".join(str(one).rstrip("\n") for one in frames if isinstance(frames, list))
    return Cause(text, str(parts["errorMessage"]), str(parts.get("errorType", "")), stack)
