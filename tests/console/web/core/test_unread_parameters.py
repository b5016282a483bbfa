"""A parameter that a page does not read is named on the page, and no link of a page has one."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pytest
from django.urls import NoReverseMatch, resolve, reverse

from console.store.executions.stop import stop_execution
from console.web.core.rights import PAGES
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.execution.test_root_cause import ORDERS
from tests.console.web.helpers import CHAIN, page, text
from tests.console.web.search.test_filters import seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client

    from console.models import Project

UNREAD = 'id="unread-parameters"'
NO_PAGES = {
    *("healthz", "readyz", "prometheus", "audit-csv", "charts-csv", "charts-delta", "arn"),
    *("overview-updates", "executions-updates", "tasks-updates", "schedule-times", "login-link"),
    *("palette", "login"),
}
"""Addresses without a page: files, fragments and redirects; and a page that an htmx part is of."""
MOST = 260
"""How many pages a walk opens."""


def _plain_pages() -> Iterator[str]:
    for name, methods in PAGES.items():
        if "GET" in methods and name not in NO_PAGES:
            try:
                yield reverse(name)
            except NoReverseMatch:  # a page of one object
                continue


@pytest.fixture
def yard(project: Project, client: Client) -> list[str]:
    """Fill a project, and return addresses of objects to begin a walk at."""
    create(project, PASS)
    orders, chain = create(project, ORDERS, "orders"), create(project, CHAIN, "chain")
    failed = drain(start(orders, name="led"))
    running = start(chain, name="runs")
    drain(running)
    stopped = start(chain, name="stopped")
    drain(stopped)
    stop_execution(stopped)
    seed(project, orders, 60)
    client.post("/notifications/", {"act": "create", "name": "told", "about": "executions"})
    return [
        *_plain_pages(),
        *("/machines/orders/", "/machines/chain/", page(failed), page(running)),
        *(page(failed, query) for query in ("?view=timeline", "?step=Charge+card&tab=flow")),
        *("/executions/?status=FAILED&sort=oldest&find=error+~+a", "/failures/?span=7d"),
    ]


def test_every_page_names_what_it_does_not_read(
    signed_in: Callable[[str], Client], yard: list[str]
) -> None:
    """A misspelt filter would show a list that looks filtered."""
    owner = signed_in("owner")
    for address in yard:
        joined = f"{address}{'&' if '?' in address else '?'}nonsense=1&machin=x"
        response = owner.get(joined)
        if response.status_code in (200, 422):
            shown = text(response, response.status_code)
            assert "ignores the parameter “nonsense”" in shown, address
            assert "ignores the parameter “machin”" in shown, address


def test_a_misspelt_filter_has_a_suggestion(client: Client, yard: list[str]) -> None:
    """The name that was probably meant."""
    assert yard
    for address, meant in (
        ("/executions/?statsu=FAILED", "status"),
        ("/executions/?Find=x", "find"),
        ("/machines/?search=x&sor=name", "sort"),
        ("/failures/?spn=7d", "span"),
        ("/tasks/?kinds=activity", "kind"),
        ("/audit/?actt=x", "act"),
        ("/charts/?rang=1d", "range"),
    ):
        assert f"Did you mean “{meant}”?" in text(client.get(address)), address
    assert UNREAD not in text(client.get("/nowhere/?statsu=FAILED"), 404)
    assert UNREAD not in text(client.get("/executions/?status=FAILED&find=&q=&before="))


def test_a_doubled_parameter_is_named(client: Client, yard: list[str]) -> None:
    """One value has an effect; where several are read, all of them have."""
    assert yard
    for query, name in (
        ("/executions/?find=a&find=b", "find"),
        ("/machines/?sort=name&sort=-name", "sort"),
        ("/failures/?span=7d&span=1d", "span"),
    ):
        words = f"The parameter “{name}” stands several times in this address: its last value"
        assert words in text(client.get(query)), query
    assert UNREAD not in text(client.get("/executions/?status=FAILED&status=RUNNING&find=a"))
    shown = text(client.get("/executions/?statsu=FAILED&statsu=RUNNING"))
    assert "ignores the parameter “statsu”" in shown
    assert "stands several times" not in shown


def test_a_wrong_value_is_named(client: Client, yard: list[str]) -> None:
    """A page that falls back to a default would look like the page that was asked for."""
    execution = next(address for address in yard if address.endswith("/led/"))
    for address, name, expected in (
        ("/machines/?sort=size", "sort", "name, -name, "),
        ("/machines/orders/insights/?last=7", "last", "25"),
        ("/machines/orders/insights/?sort=size", "sort", ""),
        ("/machines/orders/hot-states/?last=7", "last", ""),
        ("/machines/orders/hot-states/?by=luck", "by", "failures, retries"),
        ("/machines/orders/hot-states/?sort=luck", "sort", "failures, retries"),
        ("/charts/?range=1y", "range", ""),
        ("/charts/?range=own&from=noon", "from", "a time like 2026-01-31T10:05"),
        ("/charts/?period=7", "period", ""),
        ("/charts/?statistic=mean", "statistic", ""),
        ("/charts/?group=eight", "group", ""),
        (f"{execution}?view=table", "view", "graph, steps or timeline"),
        (f"{execution}?step=Charge+card&tab=out", "tab", "io, flow"),
        (f"{execution}?tab=x", "tab", "io, flow, details, definition, attempts, logs or events."),
        (f"{execution}?view=steps&sort=size", "sort", "name, -name"),
        (f"{execution}?view=steps&status=lost", "status", ""),
        (f"{execution}?at=last", "at", "the number of an event"),
        (f"{execution}?order=random", "order", "oldest or newest"),
        (f"{execution}?since=noon", "since", "a time"),
        ("/machines/new/?template=none", "template", ""),
        ("/alarms/?state=BROKEN", "state", "OK, ALARM"),
    ):
        value = dict(parse_qsl(urlsplit(address).query))[name]
        words = f"The parameter “{name}” cannot be “{value}”; expected {expected}"
        assert words in text(client.get(address)), address
    assert UNREAD not in text(client.get(f"{execution}?view=steps&sort=-name&order=newest&at=3"))


def test_a_file_with_a_misspelt_filter_is_refused(client: Client, yard: list[str]) -> None:
    """It would have every row, and its reader could not see that."""
    execution = next(address for address in yard if address.endswith("/led/"))
    for address, words in (
        ("/audit.csv?actt=x", "is not a query parameter of this page. Accepted:"),
        ("/charts.csv?rang=1d", "is not a query parameter of this page. Accepted:"),
        (f"{execution}events.csv?typ=x", "is not a query parameter of this page. Accepted:"),
        ("/charts.csv?range=1y", "The parameter “range” cannot be “1y”; expected "),
        ("/charts.csv?range=1d&range=1h", "The parameter “range” stands several times"),
        (f"{execution}events.csv?order=random", "The parameter “order” cannot be “random”"),
    ):
        response = client.get(address)
        assert response.status_code == 400, address
        assert words in response.content.decode(), address
        assert client.get(address.partition("?")[0]).status_code == 200


@pytest.mark.slow
@pytest.mark.postgres_too
def test_no_link_of_a_page_has_a_parameter_that_is_not_read(
    signed_in: Callable[[str], Client], yard: list[str]
) -> None:
    """A walk over the links of a filled project: each shape of address once."""
    owner = signed_in("owner")
    open_addresses, seen = list(yard), set[tuple[str, ...]]()
    wrong: list[tuple[str, object]] = []
    while open_addresses and len(seen) < MOST:
        address = open_addresses.pop(0)
        shape = _shape(address)
        if shape is None or shape in seen:
            continue
        seen.add(shape)
        response = owner.get(address)
        if response.status_code == 400:
            wrong.append((address, response.content.decode()))
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            continue
        shown = response.content.decode()
        if UNREAD in shown:
            names = re.findall(r"parameter “(.*?)”", shown)
            wrong.append((address, names))
        links = re.findall(r'href="([^"#]+)', shown)
        open_addresses += [urljoin(address, unescape(link)) for link in links]
        open_addresses += [urljoin(address, sent) for sent in _sent_forms(address, shown)]
    assert not wrong
    assert len(seen) > 100


def _sent_forms(address: str, shown: str) -> Iterator[str]:
    """Yield what the forms of a page ask for."""
    for tag, inside in re.findall(r'<form([^>]*method="get"[^>]*)>(.*?)</form>', shown, re.DOTALL):
        action = re.search(r'action="([^"#]*)', tag)
        names = dict.fromkeys(re.findall(r'\bname="([^"]+)"', inside), "")
        names |= {"action": "stop"} if "action" in names else {}  # of a button
        yield f"{unescape(action[1]) if action else urlsplit(address).path}?{urlencode(names)}"


def _shape(address: str) -> tuple[str, ...] | None:
    """Return the view of an address and the parameters it has, None if it is no page of ours."""
    parts = urlsplit(address)
    if parts.scheme or not parts.path.startswith("/") or parts.path.startswith("/static/"):
        return None
    name = resolve(parts.path).url_name or ""
    if "GET" not in PAGES.get(name, {}):
        return None
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    return (name, *(f"{key}={value}" if key == "view" else key for key, value in pairs))
