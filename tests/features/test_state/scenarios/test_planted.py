"""Recordings replayed against changed definitions: each planted difference is named, no other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.features.test_state.scenarios.files import read_scenario
from tests.features.test_state.scenarios.helpers import (
    ANSWERS,
    ORDERS,
    busy_once,
    changed,
    printed,
    refuse,
    write_files,
)

if TYPE_CHECKING:
    from pathlib import Path

BIG = {"total": 120, "items": [1, 2]}
SMALL = {"total": 20, "items": [1, 2]}
EXECUTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "big": (BIG, ANSWERS),
    "small": (SMALL, ANSWERS),
    "refused": (BIG, {"Check": refuse}),
}
NO_ITEMS = [f"path of Each[{n}], state 1: got the end, wanted Pack" for n in (0, 1)]
SORRY = [
    "path, state 2 (after Check): got Sorry, wanted Big?",
    *NO_ITEMS,
    "status: got FAILED (OrderFailed), wanted SUCCEEDED",
]
LOST = "definition: got MISSING_TRANSITION_TARGET"
PACK = "/States/Each/ItemProcessor/States/Pack"
FAILED = "status: got FAILED (States.Runtime), wanted SUCCEEDED"
ARN = "arn:aws:lambda:eu-west-1:999999999999:function:ship"
NO_BOXES = 'input of Ship $.boxes: got nothing, wanted [{"box":1},{"box":2}]'
WHOLE = '{"total":120,"items":[1,2],"checked":"fine","by":"ada","boxes":[{"box":1},{"box":2}]}'
# execution, changed field, its value, the differences
PLANTED: list[tuple[str, str, Any, list[str]]] = [
    (
        "big",
        "States/Check/ResultPath",
        "$.verified",
        [
            'input of Approve $.checked: got nothing, wanted "fine"',
            'input of Approve $.verified: got "fine", wanted nothing',
            'input of Ship $.checked: got nothing, wanted "fine"',
            'input of Ship $.verified: got "fine", wanted nothing',
        ],
    ),
    ("busy", "States/Check/Retry", None, SORRY),
    ("busy", "States/Check/Retry/0/MaxAttempts", 0, SORRY),
    ("busy", "States/Check/Retry/0/ErrorEquals", ["Other"], SORRY),
    ("refused", "States/Sorry/Error", "Rejected", ['error: got "Rejected", wanted "OrderFailed"']),
    (
        "refused",
        "States/Sorry/Cause",
        "nobody knows",
        ['cause: got "nobody knows", wanted "the check failed"'],
    ),
    (
        "big",
        "States/Big?/Choices/0/NumericGreaterThan",
        150,
        [
            'input of Ship $.by: got nothing, wanted "ada"',
            "path, state 3 (after Big?): got Each, wanted Approve",
        ],
    ),
    (
        "small",
        "States/Big?/Choices/0/NumericGreaterThan",
        10,
        [
            "task of Approve: got one more call, wanted only those recorded",
            "path, state 3 (after Big?): got Approve, wanted Each",
            *NO_ITEMS,
            "status: got RUNNING, waiting for Approve, wanted SUCCEEDED",
        ],
    ),
    (
        "small",
        "States/Big?/Default",
        "Ship",
        [NO_BOXES, "path, state 3 (after Big?): got Ship, wanted Each", *NO_ITEMS],
    ),
    (
        "small",
        "States/Big?/Default",
        None,
        ["path, state 3 (after Big?): got the end, wanted Each", *NO_ITEMS, FAILED],
    ),
    (
        "big",
        "States/Approve/Next",
        "Ship",
        [NO_BOXES, "path, state 4 (after Approve): got Ship, wanted Each", *NO_ITEMS],
    ),
    (
        "big",
        "States/Each/ItemsPath",
        "$.checked",
        ["path, state 5 (after Each): got the end, wanted Ship", *NO_ITEMS, FAILED],
    ),
    (
        "big",
        "States/Each/ResultPath",
        None,
        [f'input of Ship $: got [{{"box":1}},{{"box":2}}], wanted {WHOLE}'],
    ),
    ("big", "States/Ship/OutputPath", "$.id", [FAILED]),
    ("big", "States/Ship/Resource", f"{ARN}2", [f"resource of Ship: got {ARN}2, wanted {ARN}"]),
    ("big", "States/Done/Parameters/shipped.$", "$.total", [FAILED]),
    (
        "big",
        "States/Done/Parameters",
        {"shipped": 7, "late": True},
        ["output $.late: got true, wanted nothing"],
    ),
    (
        "big",
        "States/Ship/Next",
        "Sorry",
        [f'{LOST}: State "Done" is not reachable. at /States/Done, wanted one without errors'],
    ),
    (
        "big",
        "States/Each/ItemProcessor/StartAt",
        "Label",
        [f'{LOST}: State "Pack" is not reachable. at {PACK}, wanted one without errors'],
    ),
    (
        "big",
        "States/Done/Type",
        "Succeed",
        [
            f"definition: got SCHEMA_VALIDATION_FAILED: Field '{field}' is not supported "
            "at /States/Done, wanted one without errors"
            for field in ("Parameters", "End")
        ],
    ),
]


def test_there_are_twenty() -> None:
    """The bar: 20 of 20."""
    assert len(PLANTED) == 20


@pytest.mark.parametrize(("name", "path", "value", "differences"), PLANTED)
def test_a_planted_difference_is_listed(
    name: str, path: str, value: Any, differences: list[str], tmp_path: Path
) -> None:
    """The recorded definition does the same; the changed one differs exactly so."""
    data, answers = EXECUTIONS.get(name) or (BIG, {**ANSWERS, "Check": busy_once()})
    file = write_files(tmp_path, printed(ORDERS, data, answers))
    text = json.dumps(read_scenario(file))
    assert engine.replay(text) == []
    other = json.dumps(changed(ORDERS, path, value))
    assert [str(difference) for difference in engine.replay(text, other)] == differences
