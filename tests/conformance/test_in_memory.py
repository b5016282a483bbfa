"""The engine alone writes the history that the service wrote."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import engine
from tests.conformance import cases

_STEPS = ["CreateStateMachine", "StartExecution", "GetExecutionHistory"]


def _plain(case: dict[str, Any]) -> bool:
    """Return whether a case is one machine run once with nothing outside."""
    calls = [step["call"] for step in case["steps"]]
    text = json.dumps(case["steps"][0]["params"])
    asks = calls == _STEPS and case["steps"][2]["expect"].get("get_execution_history")
    return bool(asks) and not case["needs"] and "DISTRIBUTED" not in text and "arn" in text


def _outside(case: dict[str, Any]) -> bool:
    definition = case["steps"][0]["params"].get("definition", "")
    return ":::" in definition or ":activity:" in definition


CASES = [case for case in cases.load() if _plain(case) and not _outside(case)]


def _shaped(event: engine.Event) -> dict[str, Any]:
    """Return an event as GetExecutionHistory shows it."""
    shown: dict[str, Any] = {
        "timestamp": event.at_ms / 1000,
        "type": event.type,
        "id": event.id,
        "previousEventId": event.previous,
    }
    member = engine.DETAILS[event.type]
    if member:
        details = dict(event.details or {})
        for name in ("input", "output", "assignedVariables"):
            if name in details:
                details[f"{name}Details"] = {"truncated": False}
        shown[member] = details
    return shown


def test_there_are_cases() -> None:
    """An empty folder must not look like success."""
    assert len(CASES) > 100


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"].split("/", 1)[-1])
def test_the_history_is_the_recorded_one(case: dict[str, Any]) -> None:
    """Compare event by event; a case with a reason to differ must differ, or the reason goes."""
    created, started, told = case["steps"]
    data = json.loads(started["params"].get("input", "{}"))
    now_ms = int(time.time() * 1000)
    result = engine.run(created["params"]["definition"], data, start_ms=now_ms)
    expected = told["expect"]["get_execution_history"]["events"]
    events = json.loads(json.dumps([_shaped(event) for event in result.events]))
    if expected[-1]["type"] == "WaitStateEntered":  # recorded while it waited; here time passes
        events = events[: len(expected)]
    difference = cases.runner().diff_events(expected, events, "events")
    if cases.defect(case["id"]) or cases.unreachable(case["id"]):
        assert difference is not None
    else:
        assert difference is None
