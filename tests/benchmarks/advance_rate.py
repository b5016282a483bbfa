"""Measure how many states ``advance`` enters in a second, in memory, on one core.

``python -m tests.benchmarks.advance_rate``
"""

from __future__ import annotations

import json
import time

import engine
from engine.runtime.memory import start_message

STATES = 8_000


def main() -> None:
    """Run chains of Pass states, five times, and print the best."""
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(STATES)}
    states[f"S{STATES}"] = {"Type": "Succeed"}
    machine = engine.parse(json.dumps({"StartAt": "S0", "States": states}))
    best = max(_once(machine) for _ in range(5))
    print(f"{best:,.0f} Pass states a second")


def _once(machine: engine.Machine) -> float:
    begun = time.perf_counter()
    moment = engine.Moment(0)
    step = engine.advance(machine, engine.NEW_RUN, start_message({"n": 1}), moment)
    while step.run.ready:
        step = engine.advance(machine, step.run, engine.Continue(), moment)
        step.run.dumps()
    if step.run.status != "SUCCEEDED":
        raise SystemExit(f"the chain ended {step.run.status}")
    return STATES / (time.perf_counter() - begun)


if __name__ == "__main__":
    main()
