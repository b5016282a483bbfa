"""Find the AWS limits that an execution comes near: payloads, history, time, Maps, transitions.

``limits_ahead`` reads a ``Trace`` of a running or ended execution. Pages, metrics and the coverage
report show its results as warnings.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.history.event_types import EVENT_TYPES, STATE_ENTRIES, Stage
from engine.jsontext import NEAR_PERCENT, payload_limit
from engine.runtime.advance import MAX_EXECUTION_S
from engine.runtime.groups import INLINE_CONCURRENCY
from engine.runtime.turn import MAX_EVENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.history.fold import Trace

MAX_CHILDREN = 10_000
"""AWS: a Map Run runs at most 10,000 child executions at a time."""


class LimitKind(StrEnum):
    """The kinds of limits."""

    PAYLOAD = "payload"  # input, output, arguments or result of a state
    HISTORY = "history"  # events of the execution
    DURATION = "duration"  # time since its start
    ITERATIONS = "iterations"  # concurrent iterations of an inline Map
    CHILDREN = "children"  # concurrent child executions of a distributed Map
    TRANSITIONS = "transitions"  # within one second


@dataclass(frozen=True, slots=True)
class LimitAhead:
    """A limit that an execution has come near, or reached.

    ``state``: "" for a limit of the whole execution; ``subject``: which payload, such as "output";
    ``event``: the event with the value, 0 without one. ``value``, ``limit``: in ``unit``.
    """

    kind: LimitKind
    value: int
    limit: int
    unit: str
    state: str = ""
    subject: str = ""
    event: int = 0

    @property
    def percent(self) -> int:
        """Return the value as a percentage of the limit, rounded down."""
        return self.value * 100 // self.limit

    @property
    def words(self) -> str:
        """Return the limit as a line of text: ``Output of Pack: 230 KiB of 256 KiB``."""
        value, limit = _show(self.kind, self.value), _show(self.kind, self.limit)
        match self.kind:
            case LimitKind.PAYLOAD:
                unit = "" if self.unit == "bytes" else f" {self.unit}"
                subject = f"{self.subject.capitalize()} of {self.state}"
                if not self.state:
                    subject = f"Execution {self.subject}"
                return f"{subject}: {value} of {limit}{unit}"
            case LimitKind.HISTORY:
                return f"History: {value} of {limit} events"
            case LimitKind.DURATION:
                return f"Duration: {value} of {limit}"
            case LimitKind.ITERATIONS:
                return f"{self.state}: {value} iterations at a time, of about {limit}"
            case LimitKind.CHILDREN:
                return f"{self.state}: {value} child executions at a time, of {limit}"
            case LimitKind.TRANSITIONS:
                return f"Transitions: {value} within a second, of {limit}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the identity of the limit within a state machine."""
        return self.kind, self.state, self.subject

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LimitAhead:
        """Parse the result of ``as_json``; raise KeyError, TypeError or ValueError."""
        fields = {name: value for name, value in document.items() if name != "percent"}
        limit = cls(**{**fields, "kind": LimitKind(document["kind"])})
        if not (isinstance(limit.value, int) and isinstance(limit.limit, int) and limit.limit > 0):
            raise ValueError(f"{limit.value!r} of {limit.limit!r} is no limit")
        return limit

    def as_json(self) -> dict[str, Any]:
        """Return the limit as a JSON object, without empty members."""
        optional = {"state": self.state, "subject": self.subject, "event": self.event}
        return {
            "kind": str(self.kind),
            **{name: value for name, value in optional.items() if value},
            "value": self.value,
            "limit": self.limit,
            "unit": self.unit,
            "percent": self.percent,
        }


def _show(kind: LimitKind, value: int) -> str:
    """Return a value as text, without the unit if the text of the limit has it."""
    if kind is LimitKind.DURATION:
        for length, name in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min")):
            if value >= 2 * length:
                return f"{value // length} {name}"
        return f"{value // 1000} s"
    if kind is LimitKind.PAYLOAD and payload_limit().unit != "characters":
        return f"{value / 1024:.0f} KiB"
    return f"{value:,}"


def is_near(value: int, limit: int) -> bool:
    """Return whether a value is at least ``NEAR_PERCENT`` of a limit."""
    return value >= limit * NEAR_PERCENT // 100


def limits_ahead(
    trace: Trace,
    *,
    now_ms: int | None = None,
    longest_ms: int = MAX_EXECUTION_S * 1000,
    children: Mapping[str, int] | None = None,
    transition_rate: int | None = None,
) -> list[LimitAhead]:
    """Return the limits that an execution has come near, nearest first.

    ``now_ms``: for a running execution, in epoch milliseconds; None for an ended one.
    ``longest_ms``: the limit of its type. ``children``: node id -> largest number of concurrent
    child executions of a distributed Map. ``transition_rate``: the quota of transitions per second;
    None if the times are virtual.
    """
    if not trace.last:
        return []
    until = trace.times[-1] if now_ms is None else now_ms
    limits = [
        *_payloads(trace),
        LimitAhead(LimitKind.HISTORY, trace.last, MAX_EVENTS, "events"),
        LimitAhead(LimitKind.DURATION, until - trace.times[1], longest_ms, "milliseconds"),
        *_concurrency(trace, children or {}),
    ]
    if transition_rate is not None:
        fastest = _fastest_second(trace)
        limits.append(LimitAhead(LimitKind.TRANSITIONS, fastest, transition_rate, "a second"))
    near = [limit for limit in limits if is_near(limit.value, limit.limit)]
    return sorted(near, key=lambda limit: limit.value / limit.limit, reverse=True)


_SUBJECTS = {
    Stage.ENTERED: "input",
    Stage.EXITED: "output",
    Stage.SCHEDULED: "arguments",
    Stage.SUBMITTED: "result",
    Stage.STARTED: "input",
}
"""Stage of an event -> its payload."""


def _payloads(trace: Trace) -> list[LimitAhead]:
    """Return the largest payload of each subject and state."""
    used = payload_limit()
    largest: dict[tuple[str, str], LimitAhead] = {}
    for event, size in trace.payloads.items():
        name, state = trace.kind_of(event)
        kind = EVENT_TYPES.get(name)
        subject = _SUBJECTS.get(kind.stage, "") if kind else ""
        subject = subject or ("result" if state else "output")
        previous = largest.get((state, subject))
        if previous is None or previous.value < size:
            unit = used.unit.split(" ", 1)[0]
            largest[state, subject] = LimitAhead(
                LimitKind.PAYLOAD, size, used.most, unit, state, subject, event
            )
    return list(largest.values())


def _concurrency(trace: Trace, children: Mapping[str, int]) -> list[LimitAhead]:
    """Return the largest concurrency of each Map."""
    names = {node.id: node.name for node in trace.graph.nodes}
    kinds = (
        (LimitKind.ITERATIONS, INLINE_CONCURRENCY, "at a time", trace.widest),
        (LimitKind.CHILDREN, MAX_CHILDREN, "at a time", children),
    )
    return [
        LimitAhead(kind, count, limit, unit, names.get(node, node))
        for kind, limit, unit, counts in kinds
        for node, count in counts.items()
    ]


def _fastest_second(trace: Trace) -> int:
    """Return the most states entered within any second."""
    return most_within_a_second(
        [
            at_ms
            for event, at_ms in enumerate(trace.times)
            if event and trace.kind_of(event)[0] in STATE_ENTRIES
        ]
    )


def most_within_a_second(times: Sequence[int]) -> int:
    """Return how many of some times, in order and in milliseconds, are within any second."""
    most = first = 0
    for last, at_ms in enumerate(times):
        while times[first] <= at_ms - 1000:
            first += 1
        most = max(most, last - first + 1)
    return most
