"""What makes a sixth strike of the five faults of ``faulty``: a limit passes in a late answer."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import engine
from tests.chaos.people import Note, wrong_strikes
from tests.chaos.shapes import FAULTS, FAULTY
from tests.engine.runtime.test_faults import FaultySim

LIMIT_MS = 10_000


def strikes_of(answered_ms: int) -> list[Note]:
    """Return the strikes of an execution whose activity is answered so long after its start."""
    sim = FaultySim(FAULTY.definition, *FAULTS)
    while "Ask" not in {task.state for task in sim.tasks.values()}:
        if sim.timers:
            sim.fire()
        else:
            sim.succeed(next(iter(sim.tasks.values())).state, {"n": 1})
    sim.send(engine.TaskStarted(sim.task("Ask")))
    sim.now_ms += answered_ms
    if answered_ms >= LIMIT_MS:
        sim.send(engine.TaskTimedOut(sim.task("Ask")))
    else:
        sim.succeed("Ask", {"done": 1})
    while sim.finish is None:
        if sim.timers:
            sim.fire()
        else:
            sim.send(engine.TaskStarted(sim.task("Ask")))
            sim.succeed("Ask", {"done": 1})
    assert sim.output == {"n": 1}
    return [Note("e", "fault", note.state, note.before, note.after) for note in sim.notes]


@pytest.mark.parametrize(
    ("answered_ms", "count", "lost"),
    [(0, 5, 0), (8_900, 5, 0), (9_500, 6, 1), (LIMIT_MS, 5, 0)],
)
def test_only_a_lost_answer_is_struck_again(answered_ms: int, count: int, lost: int) -> None:
    """In the last second before the limit; a task that times out by itself has no strike more."""
    strikes = strikes_of(answered_ms)
    assert (len(strikes), sum(strike.is_lost for strike in strikes)) == (count, lost)
    assert wrong_strikes(strikes) == []


def test_other_strikes_are_wrong() -> None:
    """One too few, one twice at an attempt, one of another attempt without a lost answer."""
    strikes = strikes_of(9_500)
    for number in range(len(strikes)):
        if not strikes[number].is_lost:
            assert wrong_strikes(strikes[:number] + strikes[number + 1 :])
        assert wrong_strikes([*strikes, strikes[number]])
        after = json.dumps({**json.loads(strikes[number].after), "attempt": 9})
        more = replace(strikes[number], after=after, before="")
        assert wrong_strikes([*strikes, more])
