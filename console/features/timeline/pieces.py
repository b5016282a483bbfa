"""Split the bars of a timeline row by the attempts of its execution.

Nothing is drawn between the end of an attempt and the next redrive, because nothing ran.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from console.web.execution.iteration_rows import WORST_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.http import QueryDict

    from console.features.timeline.axis import ExecutionAttempt, TimeAxis
    from engine import Trace


@dataclass(frozen=True, slots=True)
class BarPiece:
    """A part of a row's bar, in epoch milliseconds, not yet positioned.

    ``retry``: whether it is a single try of a Task, which ends with the execution's attempt.
    ``interrupted``: number of an attempt -> status of the visit at its end, before a redrive.
    ``worked_ms``: the time that several visits cover together; None for a single visit.
    """

    since: int
    until: int
    tone: str
    text: str
    retry: bool = False
    critical: bool = False
    interrupted: Mapping[int, str] = field(default_factory=dict)
    worked_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptStay:
    """The time of several visits in one attempt of the execution: first begin to last end.

    ``cut``: whether a redrive continued a visit. ``status``: that of such a visit at the end of the
    attempt, else the worst status. ``visits``: their number. ``critical``: whether a visit is on
    the critical path.
    """

    attempt: ExecutionAttempt
    since: int
    until: int
    status: str
    cut: bool
    visits: int = 1
    critical: bool = False


def clip_piece(
    piece: BarPiece, attempts: Sequence[ExecutionAttempt]
) -> Iterator[tuple[ExecutionAttempt, int, int]]:
    """Yield the parts of a piece, one per attempt of the execution."""
    for place, attempt in enumerate(attempts, 1):
        since = piece.since if place == 1 else max(piece.since, attempt.since)
        until = piece.until if place == len(attempts) else min(piece.until, attempt.until)
        if since < until or since == until == piece.since or _ended_at_once(piece, attempts, place):
            yield attempt, since, until
            if piece.retry:
                return  # it did not outlive the attempt it began in


def _ended_at_once(piece: BarPiece, attempts: Sequence[ExecutionAttempt], place: int) -> bool:
    """Whether a piece of an earlier attempt ended in the millisecond of this redrive.

    An overdue Wait ends like that. If the previous attempt also ended in that millisecond, the
    piece may have ended with it, and is not drawn twice.
    """
    before, attempt = attempts[place - 2], attempts[place - 1]
    return place > 1 and before.until < attempt.since == piece.until and piece.since < piece.until


def stays_by_attempt(
    trace: Trace, numbers: Iterable[int], axis: TimeAxis, final: str = ""
) -> list[AttemptStay]:
    """Return the time of several visits in each attempt of the execution.

    ``numbers``: of the visits. ``final``: the status in the last attempt, for an iteration, which
    has a status of its own; "" to use that of the visits.
    """
    stays: dict[int, AttemptStay] = {}
    now, on_path = axis.span.now, axis.critical.visits
    for number in numbers:
        left_ms = trace.end_times.get(number, now)
        cuts, status = trace.interrupted.get(number, {}), trace.status(number)
        piece = BarPiece(trace.times[number], left_ms, "", "")
        for attempt, since, until in clip_piece(piece, axis.attempts):
            cut = attempt.number in cuts
            stay_status = cuts[attempt.number] if cut else status
            stay = AttemptStay(attempt, since, until, stay_status, cut, 1, number in on_path)
            before = stays.get(attempt.number)
            stays[attempt.number] = _join_stays(before, stay) if before else stay
    ordered = [stays[place] for place in sorted(stays)]
    if final and ordered:
        ordered[-1] = replace(ordered[-1], status=final)
    return ordered


def _join_stays(first: AttemptStay, second: AttemptStay) -> AttemptStay:
    """Join two stays; the outcome is that of the redriven visit."""
    telling = min((first, second), key=lambda stay: (not stay.cut, WORST_FIRST.index(stay.status)))
    return replace(
        telling,
        since=min(first.since, second.since),
        until=max(first.until, second.until),
        visits=first.visits + second.visits,
        critical=first.critical or second.critical,
    )


_SECONDS = re.compile(r"\d{1,9}(\.\d{1,3})?", re.ASCII)
_ATTEMPT = re.compile(r"\d{1,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TimelineZoom:
    """The selected part of the timeline.

    ``attempt``: number of the attempt (each redrive begins one) to show, 0 for all attempts.

    ``since``, ``until``: milliseconds after the beginning of the attempt, or of the execution; None
    for its begin and end.
    """

    attempt: int = 0
    since: int | None = None
    until: int | None = None

    @classmethod
    def of(cls, query: QueryDict) -> TimelineZoom:
        """Read the query string; invalid values are ignored."""
        chosen = query.get("attempt", "")
        since, until = (_milliseconds(query.get(name, "")) for name in ("from", "to"))
        if since is not None and until is not None and since >= until:
            since = until = None
        return cls(int(chosen) if _ATTEMPT.fullmatch(chosen) else 0, since, until)

    def cut(self, begin: int, end: int) -> tuple[int, int]:
        """Return the selected part of a time range; the whole range if it would be empty."""
        since = begin if self.since is None else begin + self.since
        until = end if self.until is None else min(end, begin + self.until)
        return (since, until) if since < until else (begin, end)

    @property
    def seconds(self) -> tuple[str, str]:
        """Return begin and end for the form's fields, "" for none."""
        texts = ("" if ms is None else f"{ms / 1000:g}" for ms in (self.since, self.until))
        first, last = texts
        return first, last


WHOLE_TIME = TimelineZoom()


def _milliseconds(seconds: str) -> int | None:
    return round(float(seconds) * 1000) if _SECONDS.fullmatch(seconds) else None
