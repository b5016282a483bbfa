"""What a row of the executions says, and what a list says of its filter."""

from __future__ import annotations

import logging
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from console.models import Project
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import CHAIN, markup, text

if TYPE_CHECKING:
    from django.test import Client

PAY = {
    "StartAt": "Check the card",
    "States": {
        "Check the card": {
            "Type": "Fail",
            "ErrorPath": "$.secret",
            "CausePath": "$.secret",
        }
    },
}


def plain(client: Client, address: str) -> str:
    """Return a page's HTML without the marks at which names may break."""
    return (
        markup(client.get(address)).replace("<wbr>", "").replace("<bdi>", "").replace("</bdi>", "")
    )


def test_a_row_says_where_an_execution_is_and_how_it_failed(
    project: Project, client: Client
) -> None:
    """The state it runs in or failed in, and the error; a poll brings a row that went on."""
    running = drain(start(create(project, CHAIN, "Chain"), name="napping"))
    drain(start(create(project, PAY, "Pay"), name="late", data={"secret": "CardTooLate"}))
    shown = plain(client, "/executions/")
    assert '<td class="secondary from-900 nowrap">Nap</td>' in shown
    assert '<td class="secondary from-900 nowrap">Check the card</td>' in shown
    assert '<td class="secondary from-1280">CardTooLate</td>' in shown
    facts = client.get("/executions/").context["facts"][running.pk]
    newest = client.get("/executions/").context["executions"].newest
    poll = f"/executions/_new?newest={newest}&running={running.pk}"
    assert client.get(f"{poll}&entered={running.pk}:{facts.entered}").status_code == 204
    assert "napping" in text(client.get(f"{poll}&entered={running.pk}:{facts.entered - 1}"))


def test_a_rows_error_hides_what_the_project_hides(project: Project, client: Client) -> None:
    """The error of a list is the error of the page."""
    drain(start(create(project, PAY, "Pay"), name="late", data={"secret": "CardTooLate"}))
    Project.objects.filter(pk=project.pk).update(masked="$.secret")
    assert "CardTooLate" not in plain(client, "/executions/")


@pytest.mark.postgres_too
def test_the_filters_in_use_are_chips_with_a_way_out(project: Project, client: Client) -> None:
    """Each leads to the list without it, and keeps the others."""
    start(create(project, CHAIN, "Chain"), name="napping")
    response = client.get("/executions/?status=RUNNING&status=FAILED&q=nap&min=1ms")
    chips = {(chip.label, chip.value): chip.address for chip in response.context["chips"]}
    assert chips["Status", "Failed"] == "status=RUNNING&q=nap&min=1ms"
    assert chips["Name contains", "nap"] == "status=RUNNING&status=FAILED&min=1ms"
    assert client.get("/executions/").context["chips"] == []
    [only] = client.get("/executions/?q=nap").context["chips"]
    assert only.address == "view="


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("input.orderId = 4711", "input.orderId is 4711</bdi>"),
        ('output.items[0].sku = "A 1"', 'output.items[0].sku is "A 1" (exact match'),
        ("error = Check order", '<bdi>error = "Check order"</bdi></a>'),
        ("state = Check order", 'running, now in "Check order"'),
        ("late", "“late” somewhere in name, input, output, error or cause"),
    ],
)
@pytest.mark.postgres_too
def test_a_search_that_finds_nothing_says_what_it_understood(
    client: Client, search: str, words: str
) -> None:
    """Else one cannot tell an empty answer from a misread question."""
    response = client.get("/executions/", {"find": search, "status": "FAILED"})
    shown = text(response)
    assert "No matching executions" in shown
    assert words in shown


@pytest.mark.postgres_too
def test_a_hint_of_a_search_searches(project: Project, client: Client) -> None:
    """A press asks for the error that was caught, and keeps the other filters."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Fine"}]
    fails = {"Type": "Parallel", "Branches": [PAY], "Catch": catch, "End": True}
    states = {"Both": fails, "Fine": {"Type": "Succeed"}}
    drain(start(create(project, {"StartAt": "Both", "States": states}, "Calm"), {"secret": "Oops"}))
    shown = markup(client.get("/executions/", {"find": "error = Oops", "machine": "Calm"}))
    link = re.search(r'href="([^"]+)">(?:<bdi>)?caught = "Oops"', shown)
    assert link is not None
    assert "/machines/Calm/executions/" in text(client.get(f"/executions/{link[1]}"))


def failed_lookups(client: Client, caplog: pytest.LogCaptureFixture, address: str) -> Counter[str]:
    """Return what the templates of a page looked up that is not there -> how often."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="django.template"):
        assert client.get(address).status_code == 200
    return Counter(
        record.args[0]
        for record in caplog.records
        if record.name == "django.template" and isinstance(record.args, tuple)
    )


@pytest.mark.parametrize("address", ["/executions/", "/machines/Chain/"])
def test_a_row_looks_up_what_it_has(
    project: Project, client: Client, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    """A look-up that fails takes ten times as long as another one; a list has fifty rows."""
    machine = create(project, CHAIN, "Chain")
    start(machine, name="first")
    few = failed_lookups(client, caplog, address)
    assert few  # they are seen
    for number in range(4):
        drain(start(machine, name=f"more{number}"))
    assert failed_lookups(client, caplog, address) == few
