"""Columns of execution lists from paths of input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.masking import masked_execution
from console.models import Execution, Project, SavedView
from console.web.search.payload_columns import column_values, read_columns
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import CHAIN, markup, text

if TYPE_CHECKING:
    from django.test import Client

ORDER = {"order": {"id": 90125, "output": "box"}, "items": [{"sku": "A 1"}], "card": "4242"}


def values_of(project: Project, execution: Execution, paths: str) -> list[str]:
    """Return the values of an execution."""
    columns, problem = read_columns(paths, outputs=True)
    assert not problem
    return column_values(project, [execution], columns)[execution.pk]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("order.id", "90125"),
        ("input.order.id", "90125"),
        ("$.order.id", "90125"),
        ("output.order.id", "90125"),
        ("items[0].sku", "A 1"),
        ("output.items[0].sku", "A 1"),
        ("input.order.output", "box"),
        ("order", '{"id": 90125, "output": "box"}'),
        ("output.nothing", ""),
        ("items[1].sku", ""),
        ("items.sku", ""),
        ("card[0]", ""),
    ],
)
def test_a_path_leads_to_its_value(project: Project, path: str, value: str) -> None:
    """Of the input, unless it begins with ``output``."""
    execution = drain(start(create(project, PASS), ORDER))
    assert values_of(project, execution, path) == [value]


def test_whole_payloads_are_shortened(project: Project) -> None:
    """An output that is not there yet is empty, and a line has 120 characters at most."""
    running = drain(start(create(project, CHAIN, "chain"), {"a": "s" * 9_000}))
    assert values_of(project, running, "output, output.a") == ["", ""]
    (whole,) = values_of(project, running, "input")
    assert (len(whole), whole[:6], whole[-1]) == (120, '{"a": ', "…")


def test_a_list_has_the_columns(project: Project, client: Client) -> None:
    """In the head and in each row; also beside the name where the window is narrow."""
    drain(start(create(project, PASS), ORDER, "x"))
    for address in ("/executions/", "/machines/machine/"):
        shown = markup(client.get(address, {"columns": "order.id, output.items[0].sku"}))
        shown = shown.replace("<bdi>", "").replace("</bdi>", "")
        assert '<th scope="col" class="secondary from-900">order.id</th>' in shown
        assert '<th scope="col" class="secondary from-900">output.items[0].sku</th>' in shown
        assert shown.count("90125") == 2
        assert "90125" not in text(client.get(address))


def test_a_poll_brings_them(project: Project, client: Client) -> None:
    """A row that has changed has the value of its output."""
    execution = drain(start(create(project, PASS), ORDER, "x"))
    newest = client.get("/executions/").context["executions"].newest
    poll = f"/executions/_new?newest={newest}&running={execution.pk}&columns=output.order.id"
    assert "90125" in text(client.get(poll))


def test_masked_values_are_not_shown(project: Project, client: Client) -> None:
    """Neither under the masked path nor where the value stands otherwise."""
    execution = drain(start(create(project, PASS), {"card": "4242 4242", "copy": "4242 4242"}, "x"))
    Project.objects.filter(pk=project.pk).update(masked="$.card")
    shown = text(client.get("/executions/", {"columns": "card, copy, output, output.copy"}))
    assert "4242" not in shown
    assert "masked" in shown
    project.masked = "$.card"
    values = values_of(project, execution, "card, output.card, input")
    assert masked_execution.masks_of(project, [execution.pk])
    assert not any("4242" in value for value in values)


@pytest.mark.parametrize("masked", ["", "$.card"])
def test_rows_cost_no_query_each(project: Project, client: Client, masked: str) -> None:
    """One more for all payloads of a page, with masks as without."""
    Project.objects.filter(pk=project.pk).update(masked=masked)
    machine = create(project, PASS)
    counts = []
    for number in range(9):
        drain(start(machine, ORDER, f"x{number}"))
        if number in (1, 8):
            for query in ({}, {"columns": "order.id, output.card"}):
                client.get("/executions/", query)
                with CaptureQueriesContext(connection) as queries:
                    client.get("/executions/", query)
                counts.append(len(queries))
    assert counts[:2] == counts[2:]
    assert counts[1] - counts[0] <= (3 if masked else 1)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("a b", "“a b” is not a path such as order.items[0].sku."),
        ("output.", "is not a path such as order.items[0].sku."),
        (f"a, {'long' * 100}", "The columns are longer than 400 characters."),
        ("a,b,c,d,e,f", "6 columns are too many. Select up to 5."),
    ],
)
def test_a_bad_path_is_named_at_its_field(
    project: Project, client: Client, columns: str, problem: str
) -> None:
    """The list is not shown as if it had none."""
    drain(start(create(project, PASS), ORDER, "x"))
    answer = client.get("/executions/", {"columns": columns})
    assert answer.status_code == 422
    shown = answer.content.decode()
    assert problem in shown.partition('id="columns-problem" role="alert">')[2].partition("</p>")[0]


def test_a_view_keeps_its_columns(project: Project, client: Client) -> None:
    """For all members of the project."""
    drain(start(create(project, PASS), ORDER, "x"))
    query = "status=SUCCEEDED&columns=order.id"
    client.post("/executions/views/", {"name": "orders", "query": query, "act": "save"})
    assert SavedView.objects.get().query == query
    shown: Any = client.get("/executions/?view=orders", follow=True)
    assert list(shown.context["paths"]) == ["order.id"]
