"""Check I7: each failure was retried as often, and as late, as its Retry says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.features.doctor.found import states_of
from console.features.doctor.walk import OUTCOMES, between

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.features.doctor.found import FoundExecution
    from console.features.doctor.walk import Walk

_TIMEOUT = "States.Timeout"  # the event of a missed heartbeat has this name, too
_SPECIAL = {_TIMEOUT, "States.DataLimitExceeded", "States.Runtime"}
_MAX_ATTEMPTS, _INTERVAL_S, _RATE = 3, 1, 2.0
ROUNDED_MS = 1


def attempts(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I7: at most 1 + MaxAttempts attempts, each after its pause; a redrive counts anew."""
    repeated = {visit: starts for visit, starts in walk.starts.items() if len(starts) > 1}
    if not repeated:
        return
    states = states_of(record.definition)
    for visit, starts in repeated.items():
        state = states.get(walk.by_id[visit].state)
        if state is None:
            continue
        retriers = state.get("Retry", [])
        most = 1 + sum(retrier.get("MaxAttempts", _MAX_ATTEMPTS) for retrier in retriers)
        for tries in between(starts, walk.redrives):
            if len(tries) > most:
                name = walk.by_id[visit].state
                yield "I7", f"state {name!r} (event {visit}): {len(tries)} attempts of {most}"
            elif len(tries) > 1:
                yield from _pauses(record, walk, retriers, tries)


def _pauses(
    record: FoundExecution, walk: Walk, retriers: Sequence[Mapping[str, Any]], tries: Sequence[int]
) -> Iterator[tuple[str, str]]:
    """Compare the pause before each further attempt with what its Retrier asks for."""
    failures = [walk.by_id[walk.by_id[start].previous] for start in tries[1:]]
    details = record.details([failure.id for failure in failures if failure.type in OUTCOMES])
    made = [0] * len(retriers)
    for start, failure in zip(tries[1:], failures, strict=True):
        place = _taker(retriers, details.get(failure.id, {}).get("error"))
        if place is None:
            wanted_s = min(_pause_s(retrier, 0) for retrier in retriers)
        else:
            wanted_s = _pause_s(retriers[place], made[place])
            made[place] += 1
        pause = walk.by_id[start].at_ms - failure.at_ms
        if pause + ROUNDED_MS < wanted_s * 1000:
            yield "I7", f"attempt {start} came {pause} ms after a failure, wanted {wanted_s} s"


def _taker(retriers: Sequence[Mapping[str, Any]], error: str | None) -> int | None:
    """Return the index of the Retrier that took an error, None if the event does not tell."""
    if error is None or error in _SPECIAL:
        return None
    takers = {error, "States.ALL", "States.TaskFailed"}
    places = (
        place for place, retrier in enumerate(retriers) if takers & set(retrier["ErrorEquals"])
    )
    return next(places, None)


def _pause_s(retrier: Mapping[str, Any], made: int) -> float:
    """Return the shortest pause that a Retrier may make after so many retries."""
    if retrier.get("JitterStrategy") == "FULL":
        return 0
    interval = float(retrier.get("IntervalSeconds", _INTERVAL_S))
    try:
        pause = interval * float(retrier.get("BackoffRate", _RATE)) ** made
    except OverflowError:
        pause = 99_999_999.0
    return min(pause, float(retrier.get("MaxDelaySeconds", 99_999_999)))
