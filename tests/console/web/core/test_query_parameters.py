"""An address that programs read refuses a query parameter that it does not read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.test import Client, RequestFactory
from django.urls import URLResolver, get_resolver

from console.db.audit import Actor
from console.features.notifications.store import start_links
from console.web.core.query_parameters import PARAMETERS, refuse_parameters
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

_FILE = re.compile(r"\.(csv|json|svg|mmd|txt|asl\.json)$|/export/|<str:field>/$|<str:kind>$")
_PROGRAMS = {
    *("prometheus", "reset"),
    *("api-settings", "api-executions-paused", "api-inputs", "api-next-starts"),
}


def addresses(resolver: URLResolver | None = None) -> Iterator[tuple[str, str]]:
    """Yield name and pattern of every address."""
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern)
        else:
            yield pattern.name or "", str(pattern.pattern)


def test_every_address_of_a_file_or_a_program_says_what_it_reads() -> None:
    """A new one that is not in the table is seen here."""
    named = {name for name, pattern in addresses() if _FILE.search(pattern)}
    assert named | _PROGRAMS == set(PARAMETERS)


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_an_unknown_parameter_is_named(name: str) -> None:
    """The known ones are taken; the refusal names it and the accepted ones."""
    good = dict.fromkeys(PARAMETERS[name], "x")
    assert refuse_parameters(RequestFactory().get("/", good), name) is None
    refused = refuse_parameters(RequestFactory().get("/", {**good, "colour": "FAILED"}), name)
    assert refused is not None
    assert refused.status_code == 400
    assert refused.content.decode().startswith("colour is not a query parameter of this page.")


def test_files_refuse_it_where_they_are_served(project: Project, client: Client) -> None:
    """Before anything is read."""
    execution = start(create(project, PASS), name="x")
    drain(execution)
    for address in ("events.csv", "events.json", "export.json", "graph.svg", "input.json"):
        assert client.get(page(execution, address)).status_code == 200, address
        refused = text(client.get(page(execution, f"{address}?typ=PassStateEntered")), 400)
        assert refused.startswith("typ is not a query parameter")
    for address in ("/audit.csv", "/charts.csv"):
        assert text(client.get(f"{address}?form=json"), 400).startswith(
            "form is not a query parameter"
        )
    assert "no project" not in text(Client().get("/shared/x/graph.svg?at=3"), 400)


def test_probes_and_start_links_ignore_it(project: Project) -> None:
    """A monitor adds a time against caches, a webhook parameters of its own."""
    machine = create(project, PASS, "orders")
    _, secret = start_links.create_link(machine, "gitlab", Actor("ana"))
    for address in ("/healthz", "/readyz"):
        status = Client().get(address).status_code
        assert Client().get(f"{address}?t=1").status_code == status, address
    answer = Client().post(
        f"/start/orders/{secret}?source=shop&name=x", "{}", content_type="application/json"
    )
    assert b"unknown query parameter" not in answer.content


def test_the_page_of_events_links_to_its_files_with_its_filters(
    project: Project, client: Client
) -> None:
    """What else its address says is of the page alone."""
    execution = start(create(project, PASS), name="x")
    drain(execution)
    typed = "events/?type=PassStateEntered&page=1&open=2&view=steps&step=P"
    shown = text(client.get(page(execution, typed)))
    for ending in ("csv", "json"):
        (link,) = re.findall(rf'href="([^"]*events\.{ending}[^"]*)"', shown)
        assert link.endswith(f"events.{ending}?type=PassStateEntered")
        assert client.get(link).status_code == 200
