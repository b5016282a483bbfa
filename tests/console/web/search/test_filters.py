"""E17: the list shows what its address asks for, page by page, at a bounded cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from console.db.audit import Actor
from console.models import Execution, MapRun
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.web.core.formatting import DAY, HOUR, MINUTE
from console.web.search import scan
from console.web.search.filters import ExecutionFilters
from console.web.search.moments import parse_moment, parse_span
from tests.console.store.helpers import PASS, WAIT, create, start
from tests.console.web.helpers import MARKUP, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project, StateMachine

NOON = parse_moment("2026-01-02T12:00")


def seed(project: Project, machine: StateMachine, count: int, **values: Any) -> list[Execution]:
    """Store executions without running them, one a second from noon; return them."""
    template = Execution(
        project=project,
        state_machine=machine,
        state_machine_arn=machine.arn,
        definition_id=machine.definition_id,
        machine_updated_ms=0,
        input="{}",
    )
    first = Execution.objects.count()
    rows = []
    for number in range(first, first + count):
        name = f"seed-{number:05}"
        arn = f"{machine.arn.replace(':stateMachine:', ':execution:')}:{name}"
        defaults = {
            field.attname: getattr(template, field.attname) for field in Execution._meta.fields
        }
        own: dict[str, Any] = {
            "id": None,
            "name": name,
            "arn": arn,
            "start_ms": NOON + number * 1000,
        }
        status = values.get("status", "SUCCEEDED")
        own["stop_ms"] = None if status == "RUNNING" else own["start_ms"] + 500
        rows.append(Execution(**{**defaults, **own, "status": status, **values}))
    return Execution.objects.bulk_create(rows)


def names(client: Client, query: str, path: str = "/executions/") -> list[str]:
    """Return the names a list shows."""
    return [row.name for row in client.get(f"{path}?{query}").context["executions"].rows]


@pytest.fixture
def mixed(project: Project) -> dict[str, Execution]:
    """Return executions that each differ in one way from the plain one."""
    machine, other = create(project, PASS), create(project, PASS, "other")
    differences: dict[str, dict[str, Any]] = {
        "plain": {},
        "failed": {"status": "FAILED", "error": "Orders.Late"},
        "timed": {"status": "TIMED_OUT", "error": "States.Timeout"},
        "running": {"status": "RUNNING"},
        "long": {"stop_ms": NOON + 2 * HOUR},
        "theirs": {"started_by": "mallory"},
        "redriven": {"redrive_count": 2, "redrive_ms": NOON},
        "versioned": {"version_arn": f"{machine.arn}:3", "alias_arn": f"{machine.arn}:prod"},
        "old": {"start_ms": NOON - DAY, "stop_ms": NOON - DAY + 1},
    }
    executions = {}
    for name, values in differences.items():
        (executions[name],) = seed(project, machine, 1, **{"name": name, **values})
    (executions["elsewhere"],) = seed(project, other, 1, name="elsewhere")
    parent = MapRun.objects.create(
        parent=executions["plain"],
        task=1,
        arn="arn:run",
        definition_id=machine.definition_id,
        state_machine_arn=f"{machine.arn}/Each",
        total=1,
        start_ms=NOON,
    )
    (executions["child"],) = seed(
        project,
        machine,
        1,
        name="child",
        map_run_id=parent.pk,
        state_machine_id=None,
        state_machine_arn=f"{machine.arn}/Each",
    )
    return executions


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("status=FAILED", {"failed"}),
        ("status=FAILED&status=TIMED_OUT&status=RUNNING", {"failed", "timed", "running"}),
        ("q=LAI", {"plain"}),
        ("q=%25", set()),
        ("machine=other", {"elsewhere"}),
        ("version=3", {"versioned"}),
        ("version=prod", {"versioned"}),
        ("to=2026-01-02", {"old"}),
        ("from=2026-01-02&to=2026-01-02T12:00:00.500Z", {"plain"}),
        ("min=1 h&max=3h", {"long"}),
        ("error=late", {"failed"}),
        ("error=late&status=SUCCEEDED", set()),
        ("by=mallory", {"theirs"}),
        ("redriven=yes", {"redriven"}),
        ("children=only", {"child"}),
        ("children=only&machine=machine", {"child"}),
        ("children=with&machine=other", {"elsewhere"}),
        ("children=only&machine=other", set()),
    ],
)
@pytest.mark.postgres_too
def test_each_field_narrows_the_list(
    mixed: dict[str, Execution], client: Client, query: str, expected: set[str]
) -> None:
    """The list of all shows exactly what the address asks for."""
    assert mixed
    assert set(names(client, query)) == expected


@pytest.mark.postgres_too
def test_no_and_with_leave_the_rest(mixed: dict[str, Execution], client: Client) -> None:
    """Without a filter the children of Map Runs are left out; "not redriven" is a choice, too."""
    everything = set(mixed)
    assert set(names(client, "")) == everything - {"child"}
    assert set(names(client, "children=with")) == everything
    assert set(names(client, "redriven=no")) == everything - {"redriven", "child"}
    of_machine = set(names(client, "", "/machines/machine/"))
    assert of_machine == everything - {"child", "elsewhere"}


def test_running_executions_have_lasted_until_now(project: Project, client: Client) -> None:
    """One that has been running for a minute took at least a minute."""
    execution = start(create(project, WAIT), name="slow")
    assert names(client, "min=1min") == []
    Execution.objects.filter(pk=execution.pk).update(start_ms=execution.start_ms - 2 * MINUTE)
    assert names(client, "min=1min") == ["slow"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("from=someday", "Enter a time (UTC) such as"),
        ("from=2026-01-03&to=2026-01-02", "The end is before the start."),
        ("min=long", "is not a duration such as"),
        ("min=2h&max=1h", "maximum is shorter than the minimum"),
        ("status=FALIED", "There is no status “FALIED”"),
        ("redriven=maybe", "Use yes or no"),
        ("paused=no", "Use yes"),
        ("machine=nowhere", "There is no state machine “nowhere”"),
    ],
)
def test_a_bad_value_is_told_at_its_field(
    project: Project, client: Client, query: str, words: str
) -> None:
    """The field keeps what was typed, nothing is listed as if it were not there."""
    start(create(project, WAIT), name="shown-otherwise")
    shown = text(client.get(f"/executions/?{query}"), 422)
    assert words in shown
    assert "shown-otherwise" not in shown
    name, _, value = query.rsplit("&", maxsplit=1)[-1].partition("=")
    if name not in ("status", "redriven", "paused"):
        field = shown.split(f'<input id="{name}"')[1].split(">")[0]
        assert f'value="{value}"' in field
        assert 'aria-invalid="true"' in field


def test_what_is_typed_is_escaped(project: Project, client: Client) -> None:
    """Markup in a filter stays text."""
    start(create(project, WAIT))
    page = client.get("/executions/", {"q": MARKUP, "machine": MARKUP}).content.decode()
    assert MARKUP not in page


def test_spans_and_moments_are_read_as_people_write_them() -> None:
    """Units, zones, and a bare number in seconds."""
    assert [parse_span(span) for span in ("90", "250 ms", "1.5s", "3 min", "2H", "1d")] == [
        *(90_000, 250, 1500, 3 * MINUTE),
        *(2 * HOUR, DAY),
    ]
    assert parse_moment("2026-01-02 13:00:00+01:00") == NOON


def test_the_address_says_the_same_without_blanks() -> None:
    """What a form sends with empty fields has a short address that means the same."""
    query = QueryDict("status=FAILED&status=RUNNING&q=&from=&min=2+s&redriven=yes&before=5-6")
    filters = ExecutionFilters.of(query)
    assert filters.address == "status=RUNNING&status=FAILED&min=2+s&redriven=yes"
    again = ExecutionFilters.of(QueryDict(filters.address))
    assert (again.statuses, again.shortest, again.redriven) == (
        *(filters.statuses, filters.shortest, filters.redriven),
    )


@pytest.mark.parametrize("filters", ["", "status=FAILED&status=RUNNING", "q=seed", "error=x"])
@pytest.mark.postgres_too
def test_pages_neither_repeat_nor_skip(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch, filters: str
) -> None:
    """Many that start in the same millisecond, and others while somebody turns the pages."""
    monkeypatch.setattr(scan, "WINDOW", 70)  # pages end at a window, too
    machine = create(project, WAIT)
    expected = set()
    for status in ("FAILED", "RUNNING", "SUCCEEDED"):
        values = {"status": status, "error": "x" if status == "FAILED" else None}
        rows = seed(project, machine, 60, start_ms=NOON, stop_ms=NOON + 1, **values)
        if (not filters.startswith("status") or status != "SUCCEEDED") and (
            filters != "error=x" or status == "FAILED"
        ):
            expected |= {row.name for row in rows}
    seen: list[str] = []
    before = ""
    for _ in range(20):
        page = client.get(f"/executions/?{filters}&before={before}").context["executions"]
        seen += [row.name for row in page.rows]
        before = page.before
        start_execution(machine, name=f"late-{len(seen)}-{_}", actor=Actor("late"))
        if not before:
            break
    assert not before
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


def test_a_page_looks_through_one_window(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing matches, the page says how far it looked, and the next one looks on."""
    machine = create(project, WAIT)
    seed(project, machine, 1, name="needle")
    seed(project, machine, 25)
    monkeypatch.setattr(scan, "WINDOW", 20)
    shown = client.get("/executions/?q=needle")
    assert "No matching executions so far" in text(shown)
    assert "Searched so far: executions started since" in text(shown)
    answer = client.get(f"/executions/?q=needle&before={shown.context['executions'].before}")
    assert [row.name for row in answer.context["executions"].rows] == ["needle"]
    assert "Search on" not in text(answer)


@pytest.mark.postgres_too
def test_a_page_takes_as_many_queries_for_many_rows(project: Project, client: Client) -> None:
    """At most fifteen, whatever is asked, and the same for one row and for a full page."""
    machine = create(project, WAIT)
    every = "&".join(f"status={status}" for status in ("FAILED", "RUNNING", "ABORTED", "SUCCEEDED"))
    counts = []
    seed(project, machine, 1)
    for _ in range(2):
        with CaptureQueriesContext(connection) as taken:
            text(client.get(f"/executions/?{every}&q=seed&machine=machine&min=0"))
        counts.append(len(taken))
        seed(project, machine, 100)
    assert counts[0] == counts[1]
    assert counts[0] <= 15


@pytest.mark.postgres_too
def test_the_poll_counts_what_matches(project: Project, client: Client) -> None:
    """A filtered list announces only what it would show."""
    machine = create(project, WAIT)
    newest = start(machine, name="first").pk
    start(machine, name="wanted")
    stop_execution(start(machine, name="other"))
    poll = f"_new?newest={newest}&count=0"
    assert "1 new execution<" in text(client.get(f"/executions/{poll}&status=ABORTED"))
    assert "1 new execution<" in text(client.get(f"/machines/machine/{poll}&q=want"))
    assert "2 new executions<" in text(client.get(f"/executions/{poll}"))
    assert client.get(f"/executions/{poll}&q=nothing").status_code == 204


def test_another_projects_executions_stay_unseen(
    mixed: dict[str, Execution], client: Client
) -> None:
    """No filter reaches into another project."""
    from console.models import Project

    assert mixed
    theirs = Project.objects.create(name="theirs", account_id="999999999999")
    seed(theirs, create(theirs, PASS, "secret"), 3)
    for query in ("", "q=seed", "status=SUCCEEDED", "children=with"):
        assert not [name for name in names(client, query) if name.startswith("seed")]
    assert client.get("/executions/?machine=secret").status_code == 422


# -- the order -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "filters", ["", "status=FAILED&status=SUCCEEDED", "q=seed", "find=input.n+%3E+2", "machine=m"]
)
@pytest.mark.postgres_too
def test_the_oldest_stand_first_if_asked(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch, filters: str
) -> None:
    """On every page of the list, with every filter; what starts meanwhile stands at its end."""
    monkeypatch.setattr(scan, "WINDOW", 70)  # pages end at a window, too
    monkeypatch.setattr(scan, "FIND_WINDOW", 70)
    machine = create(project, WAIT, "m")
    for status in ("FAILED", "SUCCEEDED"):
        seed(project, machine, 60, status=status, input='{"n": 3}')
        seed(project, machine, 30, status=status, input='{"n": 3}', start_ms=NOON)
    newest_first: list[str] = []
    oldest_first: list[str] = []
    for seen, order in ((newest_first, ""), (oldest_first, "oldest")):
        before = ""
        for _ in range(20):
            query = f"{filters}&sort={order}&before={before}"
            page = client.get(f"/executions/?{query}").context["executions"]
            seen += [row.name for row in page.rows]
            before = page.before
            if not before:
                break
    assert len(set(newest_first)) == 180
    assert oldest_first == newest_first[::-1]


@pytest.mark.postgres_too
def test_an_order_stays_with_its_list(project: Project, client: Client) -> None:
    """In chips, pages, bulk actions and the address; the heading says it and turns it around."""
    machine = create(project, WAIT)
    seed(project, machine, 60, status="FAILED")
    shown = text(client.get("/executions/?sort=oldest&status=FAILED&q=seed"))
    assert 'aria-sort="ascending"' in shown
    assert 'href="?status=FAILED&q=seed"' in shown  # the heading
    assert 'href="/executions/?status=FAILED&sort=oldest"' in shown  # a chip
    assert "oldest first" in shown
    assert "Newer<" in shown
    plain = text(client.get("/executions/?status=FAILED"))
    assert 'aria-sort="descending"' in plain
    assert 'href="?status=FAILED&sort=oldest"' in plain
    answer = client.get("/executions/?sort=oldest&status=FAILED&q=", HTTP_HX_REQUEST="true")
    assert answer["HX-Push-Url"] == "/executions/?status=FAILED&sort=oldest"
    assert "Use oldest" in text(client.get("/executions/?sort=name"), 422)


def test_a_list_that_begins_with_the_oldest_announces_nothing_above(
    project: Project, client: Client
) -> None:
    """What is new stands at the end of the list; rows that end are still painted."""
    machine = create(project, WAIT)
    running = start(machine, name="first")
    poll = f"/executions/_new?newest={running.pk}&count=0&sort=oldest"
    start(machine, name="second")
    assert client.get(poll).status_code == 204
    stop_execution(running)
    changed = text(client.get(f"{poll}&running={running.pk}"))
    assert f'id="x{running.pk}"' in changed
    assert "new execution" not in changed
