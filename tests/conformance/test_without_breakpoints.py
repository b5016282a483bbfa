"""An execution that never stops has the very history and snapshots of one without breakpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import engine
from console import samples
from engine.runtime.memory import _Runner, start_message
from tests.conformance import cases, test_definitions, test_in_memory

_START_MS = 1_700_000_000_000
_MOST_STEPS = 300
_MOST_EVENTS = 2_000


class EveryTask(Mapping[str, Callable[[Any], Any]]):
    """Functions of every name: each returns what it gets, and fails at every third call."""

    def __init__(self) -> None:
        self.calls = 0

    def __getitem__(self, name: str) -> Callable[[Any], Any]:
        return self._call

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def _call(self, value: Any) -> Any:
        self.calls += 1
        if self.calls % 3 == 0:
            raise engine.StatesError("Third", "each third call fails")
        return value


class SeenRunner(_Runner):
    """A runner that keeps each snapshot, without what a plan adds to it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.snapshots: list[str] = []

    def send(self, message: engine.Message) -> None:
        """Take a message, and keep the snapshot that follows."""
        super().send(message)
        stored = json.loads(self.run.dumps())
        stored.pop("plan", None)
        stored.pop("format")
        self.snapshots.append(json.dumps(stored))


def lived(definition: Any, data: Any, plan: engine.DebugPlan | None) -> tuple[list[str], list[str]]:
    """Run a definition with a plan; return its events, and its snapshots without the plan."""
    text = definition if isinstance(definition, str) else json.dumps(definition)
    runner = SeenRunner(engine.parse(text), EveryTask(), 7, _START_MS)
    runner.run = runner.run.with_plan(plan)
    runner.send(start_message(data, _START_MS))
    while runner.finish is None and runner.steps < _MOST_STEPS:
        runner.next()
        if len(runner.events) > _MOST_EVENTS:  # a loop that nothing ends
            break
    events = [
        engine.dumps([e.id, e.previous, e.at_ms, e.type, e.state, e.details]) for e in runner.events
    ]
    return events, runner.snapshots


def never(definition: Any) -> engine.DebugPlan:
    """Return a plan with breakpoints at each state, whose condition never holds."""
    text = definition if isinstance(definition, str) else json.dumps(definition)
    names = [name for name, _ in engine.own_states(engine.parse(text))]
    places = [
        engine.Breakpoint(name, when, "$random() < 0")
        for name in names
        for when in engine.BreakTime
    ]
    return engine.DebugPlan.of(places)


def assert_same(definition: Any, data: Any) -> int:
    """Compare the lives without a plan, with an empty one, and with one that never stops.

    Return the number of events.
    """
    plain = lived(definition, data, None)
    assert lived(definition, data, engine.DebugPlan()) == plain
    assert lived(definition, data, never(definition)) == plain
    return len(plain[0])


@pytest.mark.parametrize(
    "case", test_in_memory.CASES, ids=lambda case: case["id"].split("/", 1)[-1]
)
def test_a_recorded_history_is_the_same_with_a_plan(case: dict[str, Any]) -> None:
    """Without a plan it is the one that the service wrote; a plan changes no byte of it."""
    created, started, _ = case["steps"]
    data = json.loads(started["params"].get("input", "{}"))
    assert_same(created["params"]["definition"], data)


@pytest.mark.slow
def test_published_definitions_have_the_same_history_with_a_plan() -> None:
    """Their tasks answer and fail in turn, so that Retriers, Catchers and loops are run."""
    entries = [entry for entry in test_definitions.load("*.json") if "definition" in entry]
    entries += [{"definition": text} for text in sample_definitions()]
    lives = [
        assert_same(entry["definition"], {"n": 1})
        for entry in entries
        if not test_definitions.problems(entry)
    ]
    assert len(lives) > (100 if cases.DEFINITIONS.exists() else 10)
    assert sum(lives) > 10 * len(lives)


def sample_definitions() -> list[str]:
    """Return the definitions of the samples, which are there without the published ones, too."""
    files = sorted(Path(samples.__file__).parent.glob("*.asl.json"))
    return [file.read_text(encoding="utf-8") for file in files]
