"""Signals of one transaction share jobs of the queue."""

from __future__ import annotations

import json
from datetime import timedelta

from console.worker.pg_signals import SIGNAL, SIGNALS, STEP, _together


def signal(number: int) -> tuple[str, bytes, None]:
    """Return the job of a signal for now."""
    return SIGNAL, json.dumps([["task"], [number, 5]]).encode(), None


def test_signals_for_now_are_put_together() -> None:
    """Eight in a job, in their order."""
    jobs = _together([signal(number) for number in range(10)])
    assert [name for name, _, _ in jobs] == [SIGNALS, SIGNALS]
    told = [values[0] for _, payload, _ in jobs for _, values in json.loads(payload)]
    assert told == list(range(10))
    assert len(json.loads(jobs[0][1])) == 8


def test_a_signal_alone_is_what_the_release_before_understands() -> None:
    """So are steps, and what is for later."""
    later = SIGNAL, b"[]", timedelta(seconds=1)
    step = STEP, b"1", None
    assert _together([signal(1), later, step]) == [signal(1), later, step]
    assert _together([signal(1), signal(2), later, step])[:2] == [later, step]


def test_steps_are_put_together() -> None:
    """As signals that an execution can go on; one alone stays what it was."""
    steps = [(STEP, str(number).encode(), None) for number in range(9)]
    jobs = _together([*steps, signal(9)])
    assert [name for name, _, _ in jobs] == [SIGNAL, SIGNALS, SIGNALS]
    told = [json.loads(payload) for _, payload, _ in jobs[1:]]
    assert told[0][0] == [["runnable"], [0]]
    assert [values for share in told for _, values in share] == [[number] for number in range(9)]
    assert _together(steps[:1]) == steps[:1]
