"""Measure what the engine costs in memory: steps, and the texts of snapshots.

``python -m tests.benchmarks.advance_rate`` prints figures of processor time, each the best of five
rounds: Pass states entered in a second, and microseconds for an iteration of an inline Map, for an
execution that calls one function, and for the text of a run with 40 lines of control.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import engine
from engine.runtime.memory import start_message

if TYPE_CHECKING:
    from collections.abc import Callable

STATES = 8_000
ITERATIONS = 1_000
LINES = 40
_PASS = {"Type": "Pass", "End": True}
_TASK = {
    "Type": "Task",
    "Resource": "arn:aws:lambda:us-east-1:123456789012:function:work",
    "End": True,
}
_MOMENT = engine.Moment(0)


def main() -> None:
    """Print the best of five rounds of each."""
    chain, iterations, call = _chain(), _map_of(_PASS), _machine({"Only": _TASK})
    print(f"{STATES / best_seconds(lambda: run(chain, {'n': 1})):,.0f} Pass states a second")
    seconds = best_seconds(lambda: run(iterations, [*range(ITERATIONS)]))
    print(f"{seconds * 1e6 / ITERATIONS:.1f} µs an iteration of a Map")
    order = {"items": [{"name": "a name of some length", "number": n} for n in range(50)]}
    seconds = best_seconds(lambda: run(call, order), 500)
    print(f"{seconds * 1e6:.1f} µs an execution of one function")
    waiting = engine.advance(
        _map_of(_TASK), engine.NEW_RUN, start_message([*range(LINES)]), _MOMENT
    ).run
    text = waiting.dumps()
    print(f"{best_seconds(waiting.dumps, 500) * 1e6:.1f} µs to write a run of {LINES} lines")
    seconds = best_seconds(lambda: engine.Run.loads(text, waiting.values), 500)
    print(f"{seconds * 1e6:.1f} µs to read it")


def best_seconds(act: Callable[[], Any], times: int = 1) -> float:
    """Return the seconds of processor time that ``act`` takes, in the best of five rounds."""
    rounds = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(times):
            act()
        rounds.append((time.process_time() - begun) / times)
    return min(rounds)


def run(machine: engine.Machine, data: Any) -> None:
    """Run a machine to its end, and write a snapshot after each step."""
    values = engine.DictValues()
    step = engine.advance(machine, engine.NEW_RUN, start_message(data), _MOMENT)
    while step.run.status == "RUNNING":
        values.update(step.values)
        step.run.dumps()
        step = engine.advance(machine, step.run.reading(values), _following(step), _MOMENT)
    if step.run.status != "SUCCEEDED":
        raise SystemExit(f"the execution ended {step.run.status}")


def _following(step: engine.Step) -> engine.Message:
    tasks = [command for command in step.commands if isinstance(command, engine.RunTask)]
    return engine.TaskSucceeded(tasks[0].task, '{"ok":true}') if tasks else engine.Continue()


def _chain() -> engine.Machine:
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(STATES)}
    return _machine({**states, f"S{STATES}": {"Type": "Succeed"}})


def _map_of(state: dict[str, Any]) -> engine.Machine:
    processor = {"StartAt": "Only", "States": {"Only": state}}
    return _machine({"Each": {"Type": "Map", "ItemProcessor": processor, "End": True}})


def _machine(states: dict[str, Any]) -> engine.Machine:
    return engine.parse(json.dumps({"StartAt": next(iter(states)), "States": states}))


if __name__ == "__main__":
    main()
