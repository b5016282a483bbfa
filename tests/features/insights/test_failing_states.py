"""Which state fails most: the page of insights sorts, finds a state and links its figures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import markup, page

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

WAYS = {
    "StartAt": "Choose",
    "States": {
        "Choose": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "Often"}],
            "Default": "Rarely",
        },
        "Rarely": {"Type": "Fail", "Error": "B"},
        "Often": {"Type": "Fail", "Error": "A"},
    },
}


def states(shown: str) -> list[str]:
    """Return the states of the table, in its order."""
    body = shown.split('id="states"')[1].split("<tbody>")[1].split("</tbody>", maxsplit=1)[0]
    return re.findall(r'<td class="name"><bdi>(.*?)</bdi>', body)


def test_insights_sort_find_and_link(project: Project, client: Client) -> None:
    """Each figure leads to the newest execution that is in it."""
    machine = create(project, WAYS)
    executions = [
        drain(start(machine, {"n": number}, f"x{number}-{at}"))
        for at, number in enumerate((1, 1, 1, 2))
    ]
    shown = markup(client.get("/machines/machine/"))
    assert "/failures/?machine=machine&span=7d" in shown
    assert "/machines/machine/hot-states/" in shown
    address = "/machines/machine/insights/"
    assert states(markup(client.get(address)))[0] == "Choose"
    by_failures = markup(client.get(f"{address}?sort=failed"))
    assert states(by_failures)[:2] == ["Often", "Rarely"]
    assert 'aria-sort="descending"' in by_failures
    assert f'href="{page(executions[2])}?step=Often">3</a>' in by_failures
    assert f'href="{page(executions[3])}?step=Rarely">1</a>' in by_failures
    assert states(markup(client.get(f"{address}?sort=name")))[0] == "Choose"
    html = markup(client.get(f"{address}?q=often&sort=failed"))
    assert states(html) == ["Often"]
    assert "No state has" in markup(client.get(f"{address}?q=nothing"))
    assert "/failures/?machine=machine&span=7d" in by_failures
