"""Executions recorded on AWS become scenarios, and a replay takes the recorded way to its end."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from console.features.test_state.scenarios.files import make_scenario
from console.recordings.printed import read_printed
from tests.conformance import recorded

OTHERWISE = {
    "test_max_concurrency_path_negative": "recorded while it ran",
    "[MAP_STATE_REFERENCE_IN_MAX_ITEMS_PATH]": "the history has not what the reader read",
    "data_limit_exceeded_on_large_utf8_response": "the result was too large for the history",
}
"""Cases whose recording lacks a part that decided their way."""
CASES = [
    case for case in recorded.list_recorded() if not any(part in case["id"] for part in OTHERWISE)
]


def test_there_are_cases() -> None:
    """The bar asks for 60 executions."""
    assert len(CASES) > 200


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"].split("/", 1)[-1])
def test_the_recorded_way_is_taken_again(case: dict[str, Any]) -> None:
    """The same states and the same status. Payloads of the recordings have placeholders in them."""
    texts = recorded.print_case(case)
    printed = read_printed(texts["history"], texts["machine"], texts["execution"])
    scenario = json.dumps(make_scenario(printed, case["id"]))
    differences = engine.replay(scenario, requests=False)
    assert [each for each in differences if each.where.startswith(("path", "status", "task"))] == []
