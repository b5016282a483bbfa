"""Executions recorded on AWS run again on this server, to the same states with the same inputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.features.reproduce.start import start_reproduction
from console.models import HistoryEvent
from console.recordings.printed import read_printed
from console.store.executions import imports
from console.store.machines import machines
from tests.conformance import recorded
from tests.conformance.test_recordings import CASES as WHOLE
from tests.console.store.helpers import REGION, ROLE, ended

if TYPE_CHECKING:
    from console.models import Execution, Project

CASES = [case for case in WHOLE if "DISTRIBUTED" not in case["steps"][0]["params"]["definition"]]
CHANGED = ("<", "lambda_function_name", "bucket-name", "table-name", "function_name")
"""Parts of names that the recordings have in place of those that the tests had sent."""


def entries(execution: Execution) -> list[tuple[str, Any]]:
    """Return the names and inputs of entered states, in an order of their own."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk, type__endswith="StateEntered")
    details = [json.loads(row.details) for row in rows]
    pairs = [(each["name"], json.loads(each["input"])) for each in details]
    return sorted(pairs, key=lambda pair: json.dumps(pair, sort_keys=True))


def test_there_are_sixty() -> None:
    """The bar."""
    assert len(CASES) >= 60


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_recorded_executions_are_reproduced(project: Project) -> None:
    """All cases: the same states, and the same inputs where the recording has them unchanged."""
    executions = []
    for number, case in enumerate(CASES):
        texts = recorded.print_case(case)
        imported = imports.import_execution(project, read_printed(*texts.values()))
        definition = imported.definition.text
        machine = machines.create_machine(
            project, REGION, name=f"m{number}", definition=definition, role_arn=ROLE
        )
        started = start_reproduction(imported, machine, until=0)
        executions.append((case["id"], imported, started))
    other, inputs = [], 0
    for name, imported, started in executions:
        done, expected = entries(ended(started)), entries(imported)
        whole = not any(part in str(expected) for part in CHANGED)
        inputs += whole
        if [each[0] for each in done] != [each[0] for each in expected]:
            other.append((name, "states"))
        elif whole and done != expected:
            other.append((name, str(done)))
    assert other == []
    assert inputs >= 60, inputs
