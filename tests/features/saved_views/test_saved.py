"""X16: lists that a project keeps under a name: one saves, everybody opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db.audit import NOBODY
from console.features.saved_views import store as saved_views
from console.models import AuditEntry, SavedView
from console.web.search import scan
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import markup, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


@pytest.fixture
def yard(project: Project) -> Project:
    """Return a project with three executions that ended and two that run, of two machines."""
    short, long = create(project, PASS, "short"), create(project, WAIT, "long")
    for number in range(3):
        drain(start(short, {"n": number}, f"s{number}"))
    for number in range(2):
        drain(start(long, {"n": number}, f"l{number}"))
    return project


def save(client: Client, name: str, query: str, **more: str) -> str:
    """Save a view by its form; return where that leads."""
    form = {"act": "save", "name": name, "query": query, **more}
    return str(client.post("/executions/views/", form)["Location"])


def names(client: Client, address: str) -> list[str]:
    """Return the executions of a list, following where it leads."""
    answer: Any = client.get(address, follow=True)
    return [row.name for row in answer.context["executions"].rows]


@pytest.mark.postgres_too
def test_x16_one_saves_and_another_opens(yard: Project, signed_in: SignIn) -> None:
    """By its name, and by the address without the name: the same list."""
    ana, ben = signed_in("operator"), signed_in("viewer")
    assert save(ana, " still  running ", "status=RUNNING&q=l") == "/executions/?view=still+running"
    lead = ben.get("/executions/?view=still running")["Location"]
    assert dict(parse_qsl(lead.partition("?")[2])) == {
        "status": "RUNNING",
        "q": "l",
        "view": "still running",
    }
    assert names(ben, lead) == ["l1", "l0"]
    assert names(ben, lead.partition("&view=")[0]) == ["l1", "l0"]
    shown = markup(ben.get(lead))
    assert "Save as a view" not in shown
    assert 'aria-current="true"><bdi>still running</bdi><span class="count">2</span>' in shown
    row = AuditEntry.objects.get(action="PutView")
    assert (row.actor, row.target, row.reason) == (
        "operator",
        "still running",
        "status=RUNNING&q=l",
    )


@pytest.mark.postgres_too
def test_x16_a_machine_begins_with_its_default(yard: Project, client: Client) -> None:
    """Its page leads there; "All" does not, and neither does a filter that was emptied."""
    to = {"machine": "short", "default": "1"}
    assert save(client, "first", "q=s1&machine=short", **to) == "/machines/short/?view=first"
    assert client.get("/machines/short/")["Location"] == "/machines/short/?q=s1&view=first"
    assert names(client, "/machines/short/") == ["s1"]
    assert names(client, "/machines/short/?view=") == ["s2", "s1", "s0"]
    assert names(client, "/executions/?view=first") == ["s1"]
    emptied = client.get("/machines/short/?q=&find=&view=", headers={"HX-Request": "true"})
    assert emptied["HX-Push-Url"] == "/machines/short/?view="
    newest = text(client.get("/machines/short/_new?view=&newest=0&count=0"))
    assert 'href="?view="' in newest
    assert client.get("/machines/long/").status_code == 200
    save(client, "second", "q=s2&machine=short", **to)
    assert names(client, "/machines/short/") == ["s2"]
    save(client, "second", "q=s2&machine=short", machine="short")
    assert names(client, "/machines/short/") == ["s2", "s1", "s0"]


@pytest.mark.postgres_too
def test_x16_each_view_has_its_count(yard: Project, client: Client) -> None:
    """What must be looked into is counted by a request of its own."""
    save(client, "all", "")
    save(client, "inside", "find=input.n+%3D+1")
    save(client, "of one", "machine=short")
    save(client, "gone", "machine=nowhere")
    shown: Any = client.get("/executions/")
    counts = {entry.view.name: entry.count for entry in shown.context["saved"].views}
    assert counts == {"all": "5", "inside": "", "of one": "3", "gone": "0"}
    number = SavedView.objects.get(name="inside").pk
    assert client.get(f"/executions/views/{number}/_count").content == b"2"
    on_machine: Any = client.get("/machines/long/")
    counts = {entry.view.name: entry.count for entry in on_machine.context["saved"].views}
    assert counts == {"all": "2", "inside": ""}


@pytest.mark.postgres_too
def test_x16_a_count_says_where_it_ends(
    yard: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At so many matches, and at so many executions looked at."""
    save(client, "all", "")
    save(client, "s", "q=s")
    monkeypatch.setattr(scan, "MOST_COUNTED", 4)
    shown: Any = client.get("/executions/")
    assert [entry.count for entry in shown.context["saved"].views] == ["4+", "3"]
    monkeypatch.setattr(scan, "COUNTED", 3)
    shown = client.get("/executions/")
    assert [entry.count for entry in shown.context["saved"].views] == ["4+", "2+"]


@pytest.mark.postgres_too
def test_x16_views_cost_the_same_however_many(yard: Project, client: Client) -> None:
    """At most 15 queries, with one view and with thirty."""
    counts = []
    for upto in (1, 30):
        for number in range(upto):
            query = f"q={number}&machine=short" if number % 2 else "status=FAILED&status=RUNNING"
            saved_views.put_view(yard, f"v{number}", query, None, NOBODY)
        for address in ("/executions/?q=s", "/machines/short/?q=s"):
            with CaptureQueriesContext(connection) as queries:
                text(client.get(address))
            assert len(queries) <= 15, [query["sql"][:90] for query in queries]
        counts.append(upto)
    assert SavedView.objects.count() == 30
    assert "view=v29" not in save(client, "one more", "")


def test_x16_a_view_keeps_its_order(yard: Project, client: Client) -> None:
    """Oldest first is a part of what is saved."""
    save(client, "longest", "status=RUNNING&sort=oldest")
    address = client.get("/executions/?view=longest")["Location"]
    assert address == "/executions/?status=RUNNING&sort=oldest&view=longest"
    assert not client.get(address).context["saved"].changed
    assert client.get(address.replace("sort=oldest&", "")).context["saved"].changed


def test_x16_a_view_is_changed_and_deleted(yard: Project, client: Client) -> None:
    """Under its name; a page that has another filter says so."""
    save(client, "mine", "q=s")
    shown = text(client.get("/executions/?q=s1&view=mine"))
    assert "differs from the view" in shown
    assert "differs from the view" not in text(client.get("/executions/?q=s&view=mine"))
    save(client, "mine", "q=s1&before=5-5&nonsense=1")
    assert SavedView.objects.get().query == "q=s1"
    client.post("/executions/views/", {"act": "delete", "name": "mine"})
    assert not SavedView.objects.exists()
    assert "no view “mine”" in text(client.get("/executions/?view=mine"), 404)


def test_x16_what_makes_no_view_is_refused(yard: Project, signed_in: SignIn) -> None:
    """A viewer, a filter that is not understood, a name that is none."""
    viewer, editor = signed_in("viewer"), signed_in("editor")
    for act in ("save", "delete"):
        assert viewer.post("/executions/views/", {"act": act, "name": "x"}).status_code == 403
    for name, query, told in (
        ("x", "min=nonsense", "A filter with errors"),
        (" ", "", "The name must have 1 to 80 printable characters"),
        ("x" * 81, "", "The name must have 1 to 80 printable characters"),
    ):
        assert told in text(editor.get(save(editor, name, query)))
    assert not SavedView.objects.exists()
    assert text(editor.post("/executions/views/", {"act": "x"}), 404)
