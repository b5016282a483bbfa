"""X3: a search inside executions finds exact values in a bounded time."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from console.store.executions.stop import stop_execution
from console.web.search import scan, verify
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import CHAIN, text
from tests.console.web.search.test_filters import names, seed

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def found(client: Client, find: str, **more: str) -> list[str]:
    """Return the names that a search shows."""
    answer = client.get("/executions/", {"find": find, **more})
    return [row.name for row in answer.context["executions"].rows]


INPUTS = {
    "number": '{"orderId": 4711}',
    "text": '{"orderId": "4711"}',
    "float": '{"orderId": 4711.0}',
    "power": '{"orderId": 4.711e3}',
    "escaped": '{"\\u006frderId": 4711}',
    "longer": '{"orderId": 47110}',
    "elsewhere": '{"other": {"orderId": 4711}}',
    "nested": '{"items": [{"sku": "A 1"}, {"sku": "caf\\u00e9"}], "on": true, "nothing": null}',
    "one": '{"on": 1}',
    "spaced": '{"order id": "x"}',
    "scalar": "4711",
}


@pytest.mark.parametrize(
    ("find", "expected"),
    [
        ("input.orderId = 4711", {"number", "text", "float", "power", "escaped"}),
        ('input.orderId = "4711"', {"text"}),
        ("input.orderId=4711.0", {"number", "float", "power", "escaped"}),
        ("input.other.orderId = 4711", {"elsewhere"}),
        ('input.items[0].sku = "A 1"', {"nested"}),
        ("input.items[1].sku = café", {"nested"}),
        ("input.items[2].sku = x", set()),
        ("input.on = true", {"nested"}),
        ("input.on = 1", {"one"}),
        ("input.nothing = null", {"nested"}),
        ('input["order id"] = x', {"spaced"}),
        ("47110", {"longer"}),
        ('"A 1"', {"nested"}),
        ("ORDERID 47110", {"longer"}),
        ("name = scalar", {"scalar"}),
        ("input.orderId = 4711 name = number", {"number"}),
        ('input.items[0].sku = "A 1" input.on = true', {"nested"}),
        ("input.on = true input.nothing = 1", set()),
        ("100%", set()),
    ],
)
@pytest.mark.postgres_too
def test_values_are_found_however_they_are_written(
    project: Project, client: Client, find: str, expected: set[str]
) -> None:
    """Numbers by value, keys however escaped; quotes ask for a text; all conditions hold."""
    machine = create(project, PASS)
    for name, payload in INPUTS.items():
        seed(project, machine, 1, name=name, input=payload)
    assert set(found(client, find)) == expected


@pytest.mark.postgres_too
def test_output_error_and_cause_are_searched(project: Project, client: Client) -> None:
    """An error by its whole name; free text in every field."""
    machine = create(project, PASS)
    seed(project, machine, 1, name="paid", output='{"x": {"y": "text"}}')
    failed = {"status": "FAILED", "error": "Orders.Late", "cause": "The lorry broke down"}
    seed(project, machine, 1, name="late", **failed)
    assert found(client, 'output.x.y = "text"') == ["paid"]
    assert found(client, "input.x.y = text") == []
    assert found(client, "error = Orders.Late") == ["late"]
    assert found(client, "error = Orders") == []
    assert found(client, "lorry broke") == ["late"]
    assert found(client, 'cause = "The lorry broke down"') == ["late"]


def test_a_state_is_where_executions_are_now(project: Project, client: Client) -> None:
    """Those that were in it, or only have its name inside, are not found."""
    machine = create(project, CHAIN)
    here = start(machine, name="here")
    drain(here)
    gone = start(machine, name="gone")
    drain(gone)
    stop_execution(gone)
    drain(start(create(project, WAIT, "other"), {"state": "Nap"}, name="says-so"))
    assert found(client, "state = Nap") == ["here"]
    assert found(client, "state = First") == []
    assert found(client, "state = Nap", status="FAILED") == []


@pytest.mark.parametrize(
    ("find", "words"),
    [
        ("input = 3", "Enter input.path"),
        ("input.x =", "Enter input.path"),
        ("= 3", "Enter input.path"),
        ("error.x = 3", "Enter input.path"),
        ("foo.bar = 3", "“foo.bar” is not a field. Did you mean input.foo.bar?"),
        ("input.a=b c d=", "“d” is not a field. Did you mean input.d?"),
        ("a==b", "“a” is not a field. Did you mean input.a?"),
    ],
)
def test_what_is_not_understood_is_told_at_the_field(
    project: Project, client: Client, find: str, words: str
) -> None:
    """The words name what can stand there; the page is no error page."""
    assert project
    shown = text(client.get("/executions/", {"find": find}), 422)
    assert words in shown.split('id="find-problem"')[1].split("</p>")[0]


@pytest.mark.slow
@pytest.mark.postgres_too
def test_one_of_ten_thousand_is_found_within_a_second(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every row must be looked into. Of processor time: the benchmark measures the clock."""
    machine = create(project, PASS)
    rows = seed(project, machine, 10_000)
    for number, row in enumerate(rows):
        row.input = json.dumps({"orderId": number, "note": "4711 " + "x" * 300})
    type(rows[0]).objects.bulk_update(rows, ["input"], batch_size=500)
    monkeypatch.setattr(verify, "VERIFY_S", 60.0)
    assert client.get("/executions/").status_code == 200  # templates and icons are read once
    begun = time.thread_time()
    answer = client.get("/executions/", {"find": "input.orderId = 4711"})
    took = time.thread_time() - begun
    assert [row.name for row in answer.context["executions"].rows] == ["seed-04711"]
    assert answer.context["executions"].looked is None
    assert took < 1


@pytest.mark.postgres_too
def test_a_search_goes_on_where_it_stopped(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In windows, and where looking inside takes too long: nothing is skipped, nothing twice."""
    machine = create(project, PASS)
    seed(project, machine, 120, input='{"orderId": 1}')
    seed(project, machine, 3, input='{"orderId": 2, "old": 1}')
    monkeypatch.setattr(scan, "FIND_WINDOW", 37)
    seen: list[str] = []
    before, pages = "", 0
    while pages == 0 or before:
        monkeypatch.setattr(verify, "VERIFY_S", -1.0 if pages == 1 else 5.0)
        query = {"find": "input.orderId = 1", "before": before}
        page: Any = client.get("/executions/", query)
        seen += [row.name for row in page.context["executions"].rows]
        before, pages = page.context["executions"].before, pages + 1
        assert pages < 20
    assert len(seen) == len(set(seen)) == 120
    assert pages >= 4


@pytest.mark.postgres_too
def test_a_search_can_be_combined_and_has_an_address(project: Project, client: Client) -> None:
    """The other filters narrow it; the form shows it again."""
    machine, other = create(project, PASS), create(project, PASS, "other")
    seed(project, machine, 1, name="a", input='{"n": 1}')
    seed(project, other, 1, name="b", input='{"n": 1}')
    assert names(client, "find=input.n+%3D+1&machine=other") == ["b"]
    assert 'value="input.n = 1"' in text(client.get("/executions/?find=input.n+%3D+1"))
