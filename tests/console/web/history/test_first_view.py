"""The first view of a long history is right and takes as many queries as a short one's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.store.executions.stop import stop_execution
from console.web.execution import steps
from console.web.history import traces
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project

LONG = 25_000
LOOP = {
    "StartAt": "Count",
    "States": {
        "Count": {
            "Type": "Pass",
            "Parameters": {"n.$": "States.MathAdd($.n, 1)", "turns.$": "$.turns"},
            "Next": "More",
        },
        "More": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericLessThanPath": "$.turns", "Next": "Count"}],
            "Default": "Nap",
        },
        "Nap": {"Type": "Wait", "Seconds": 3600, "End": True},
    },
}


@pytest.fixture
def executions(project: Project) -> dict[str, Execution]:
    """Return executions of 24 events and of 25,000."""
    machine = create(project, LOOP)
    turns = {"short": 5, "long": LONG // 4 - 1}
    executions = {}
    for name, count in turns.items():
        executions[name] = drain(start(machine, {"n": 0, "turns": count}, name))
    return executions


def look(client: Client, address: str) -> tuple[Any, int]:
    """Look at a page for the first time; return its context and how many queries it took."""
    traces._TRACES._known.clear()
    traces._past.clear()
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(address)
    assert answer.status_code == 200
    return answer.context, len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "?view=timeline", "?step=Count&tab=events", "?at=20"])
def test_it_needs_as_many_queries(
    client: Client, executions: dict[str, Execution], query: str
) -> None:
    """Few, and no more for 25,000 events than for 24."""
    counts = {  # of two: now and then the clock asks a database what time it is
        name: min(look(client, page(execution, query))[1] for _ in range(2))
        for name, execution in executions.items()
    }
    assert len(set(counts.values())) == 1
    assert counts["long"] <= 15


def test_the_page_of_a_long_history_goes_on(
    client: Client, executions: dict[str, Execution]
) -> None:
    """A tick carries what is new, and the end."""
    execution = executions["long"]
    context, _ = look(client, page(execution))
    assert context["poll"].cursor == LONG - 2
    stop_execution(execution)
    answer = text(client.get(page(execution, f"_delta?after={LONG - 2}&follow=1")))
    assert "The execution has ended: Aborted." in answer
    assert json.dumps({"tone": "aborted"})[1:-1] in answer
    assert look(client, page(execution))[0]["poll"].cursor == LONG - 1


def test_many_visits_fit_into_their_box() -> None:
    """From a thousand on the word has no room there."""
    assert steps._note_text("", "", 0, 999) == "999 visits"
    assert steps._note_text("", "", 0, 12_500) == "12500×"  # noqa: RUF001
