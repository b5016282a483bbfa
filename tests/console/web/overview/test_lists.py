"""Overview and lists: what runs, what failed, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from console.models import Execution
from console.store.executions.stop import stop_execution
from console.store.tasks import activities
from console.web.search import scan
from tests.console.store.helpers import PASS, REGION, WAIT, WORK, create, drain, start
from tests.console.web.helpers import markup, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def copies(of: Execution, number: int, **fields: object) -> None:
    """Store so many more like one, each a second younger than the one before."""
    told = {field.attname: getattr(of, field.attname) for field in Execution._meta.concrete_fields}
    told |= {"id": None, **fields}
    begun = Execution.stored.order_by("-start_ms").values_list("start_ms", flat=True).first() or 0
    Execution.objects.bulk_create(
        Execution(
            **told
            | {
                "arn": f"{told['arn']}-{begun + at}",
                "name": f"{told['name']}-{at}",
                "start_ms": begun + at * 1000,
            }
        )
        for at in range(1, number + 1)
    )


def queries(client: Client, address: str) -> list[str]:
    """Return the SQL of a page."""
    client.get(address)  # what is asked only once
    with CaptureQueriesContext(connection) as told:
        assert client.get(address).status_code == 200
    return [query["sql"] for query in told.captured_queries]


def test_an_empty_yard_says_what_to_do(client: Client) -> None:
    """Overview and list lead to the first machine."""
    assert "create-state-machine" in text(client.get("/"))
    assert "No state machines yet" in text(client.get("/machines/"))
    assert "No executions yet" in text(client.get("/executions/"))


def test_the_overview_shows_running_and_failed(project: Project, client: Client) -> None:
    """What runs now and what failed lately is above the fold."""
    start(create(project, WAIT, "Waits"), name="still-running")
    drain(
        start(
            create(
                project,
                {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}},
                "Fails",
            ),
            name="went-wrong",
        )
    )
    shown = text(client.get("/"))
    assert "still-running" in shown
    assert "went-wrong" in shown
    assert "Oops" in shown


@pytest.mark.postgres_too
def test_the_overview_groups_failures_by_kind_with_their_trend(
    project: Project, client: Client
) -> None:
    """Equal failures are one row: how many, when, where the newest is, and whether they rise."""
    fails = {"StartAt": "Pay", "States": {"Pay": {"Type": "Fail", "Error": "Declined"}}}
    first = start(create(project, fails, "Orders"), name="declined")
    drain(first)
    first.refresh_from_db()
    copies(first, 4)
    for hours, execution in zip((0, 1, 2, 20), Execution.objects.order_by("-pk"), strict=False):
        Execution.objects.filter(pk=execution.pk).update(start_ms=F("start_ms") - hours * 3_600_000)
    response = client.get("/")
    kind = response.context["kinds"][0]  # the copies, which have no history
    assert (kind.count, sum(kind.bars), len(kind.bars)) == (4, 4, 12)
    assert kind.trend == "Rising"
    assert "Declined" in text(response)
    assert kind.group.like.name in text(response)
    assert client.get(f"/executions/?{kind.address}").status_code == 200


def test_the_overview_has_no_empty_area_beside_its_longer_list(
    project: Project, client: Client
) -> None:
    """What drifts and is silent stands below the shorter list; where nothing does, in one line."""
    machine = create(project, WAIT)
    running = [start(machine, name=f"r{number}") for number in range(2)]
    shown = markup(client.get("/"))
    order = ["running-title", "failed-title", "trends-note", "machines-title"]
    places = [shown.index(f'id="{name}"') for name in order]
    assert places == sorted(places)
    assert shown[places[1] : places[2]].count('<div class="stack">') == 0
    assert "drift-title" not in shown
    assert "silent-title" not in shown
    for execution in running:
        stop_execution(execution)
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}
    drain(start(create(project, fails, "fails"), name="failed"))
    shown = markup(client.get("/"))
    places = [shown.index(f'id="{name}"') for name in order]
    assert places[0] < places[2] < places[1]


def test_the_overview_shows_what_waits_for_somebody_and_where_executions_are(
    project: Project, client: Client
) -> None:
    """The oldest open tasks with their states; what runs has its state; a poll brings both."""
    assert 'id="waiting-title"' not in markup(client.get("/"))
    activities.create_activity(project, REGION, "work")
    machine = create(project, WORK, "Orders")
    for number in range(4):
        execution = start(machine, name=f"order-{number}")
        drain(execution)
    name = "0f8fad5b-d9cb-469f-a165-70867728950e"
    drain(start(create(project, WAIT, "Naps"), name=name))
    for shown in (markup(client.get("/")), markup(client.get("/_overview"))):
        waiting = shown.partition('id="waiting-title"')[2].partition("</section>")[0]
        assert "3 oldest of 4" in waiting
        assert [f"order-{number}" in waiting for number in range(4)] == [True, True, True, False]
        running = shown.partition('id="running-title"')[2].partition("</section>")[0]
        assert running.count("<bdi>A</bdi>") == 4
        assert f'title="{name}"><bdi>Naps</bdi></a>' in running


def test_the_overviews_poll_is_silent_until_something_changes(
    project: Project, client: Client
) -> None:
    """Nothing new is a 204; a new execution brings the lists, with their next poll."""
    machine = create(project, PASS)
    seen = client.get("/").context["seen"]
    assert client.get(f"/_overview?seen={seen}").status_code == 204
    start(machine)
    assert "hx-swap-oob" in text(client.get(f"/_overview?seen={seen}", HTTP_HX_REQUEST="true"))


def test_the_list_of_machines_can_be_searched_and_paged(project: Project, client: Client) -> None:
    """A part of the name finds; pages do not repeat."""
    for number in range(53):
        create(project, PASS, f"machine-{number:02}")
    first = text(client.get("/machines/"))
    assert "machine-49" in first
    assert "machine-50" not in first
    assert "machine-52" in text(client.get("/machines/?after=machine-49"))
    shown = text(client.get("/machines/?q=ne-07"))
    assert "machine-07" in shown
    assert "machine-08" not in shown
    assert "Show all" in text(client.get("/machines/?q=nothing"))


def test_executions_are_paged_by_key(project: Project, client: Client) -> None:
    """Executions that start meanwhile neither repeat nor hide a row."""
    machine = create(project, WAIT)
    for number in range(55):
        start(machine, name=f"x{number:02}")
    first = client.get("/machines/machine/").context["executions"]
    for number in range(3):
        start(machine, name=f"late{number}")
    second = client.get(f"/machines/machine/?before={first.before}").context["executions"]
    names = [row.name for row in (*first.rows, *second.rows)]
    assert sorted(names) == [f"x{number:02}" for number in range(55)]
    assert "3 new executions" in text(
        client.get(f"/machines/machine/_new?newest={first.newest}&count=0")
    )


def test_a_lists_poll_marks_what_ended(project: Project, client: Client) -> None:
    """A row that was running is replaced once it has ended, and only then."""
    execution = start(create(project, WAIT), name="soon")
    address = f"/executions/_new?newest={execution.pk}&count=0&running={execution.pk}"
    assert client.get(address).status_code == 204
    stop_execution(execution)
    answer = text(client.get(address))
    assert f'id="x{execution.pk}"' in answer
    assert "Aborted" in answer


def test_executions_are_filtered(project: Project, client: Client) -> None:
    """Status and name narrow the list; a filter without a match can be cleared."""
    machine = create(project, WAIT)
    start(machine, name="alpha")
    stop_execution(start(machine, name="beta"))
    shown = text(client.get("/executions/?status=ABORTED"))
    assert "beta" in shown
    assert "alpha" not in shown
    assert "Clear filters" in text(client.get("/executions/?q=gamma"))


def test_a_list_takes_as_many_queries_for_a_thousand(project: Project, client: Client) -> None:
    """No more than fifteen, whatever is asked."""
    execution = start(create(project, PASS, "Many"), name="x")
    drain(execution)
    execution.refresh_from_db()
    copies(execution, 100)  # more than a page, so that all are counted
    asked = ("", "?status=SUCCEEDED&status=FAILED", "?machine=Many", "?q=x", "?error=Oops")
    few = [len(queries(client, f"/executions/{query}")) for query in asked]
    copies(execution, 1000)
    many = [len(queries(client, f"/executions/{query}")) for query in asked]
    assert many == few
    assert max(many) <= 15


def test_many_imports_hide_no_execution(project: Project, client: Client) -> None:
    """They stand between the yard's own in the index, and in no list, count or page."""
    machine = create(project, WAIT)
    execution = start(machine, name="own")
    copies(execution, 10)
    copies(execution, 300, imported_ms=1, state_machine_id=None, arn="import:x")
    first = client.get("/executions/").context["executions"]
    assert len(first.rows) == 11
    assert first.looked is None
    copies(execution, 50)
    first = client.get("/executions/").context["executions"]
    second = client.get(f"/executions/?before={first.before}").context["executions"]
    assert (len(first.rows), len(second.rows)) == (50, 11)
    assert not second.before
    asked = f"/executions/_new?newest={execution.pk}&count=0"
    assert "60 new executions" in text(client.get(asked))


@pytest.mark.postgres_too
def test_how_far_a_page_looks_is_read_from_an_index(project: Project, client: Client) -> None:
    """Of PostgreSQL's index alone: it would else read twenty thousand rows to know where to end."""
    copies(start(create(project, WAIT), name="x"), 300)
    for query in ("?q=nothing", "?status=FAILED&by=nobody", "?q=a&by=nobody"):
        far = [sql for sql in queries(client, f"/executions/{query}") if "OFFSET" in sql]
        assert far
        plan = plan_of(far[0])
        assert "execution_listed" in plan
        assert "Index Only Scan" in plan or connection.vendor == "sqlite"


def test_the_list_of_a_machine_is_read_at_once(project: Project, client: Client) -> None:
    """Its index has them in order, page after page, whatever other machines do meanwhile.

    Only their count looks how far it reaches.
    """
    execution = start(create(project, WAIT, "Mine"), name="x")
    copies(execution, 60)
    start(create(project, WAIT, "Other"), name="other")
    for address in (
        "/machines/Mine/?",
        "/executions/?machine=Mine",
        "/executions/?machine=Mine&q=",
    ):
        of_count = f"OFFSET {scan.MOST_EXACT}"
        statements = queries(client, address)
        assert not any("OFFSET" in sql for sql in statements if of_count not in sql)
        first = client.get(address).context["executions"]
        second = client.get(f"{address}&before={first.before}").context["executions"]
        names = [row.name for row in (*first.rows, *second.rows)]
        assert names == [f"x-{number}" for number in range(60, 0, -1)] + ["x"]
        assert (second.before, second.looked) == ("", None)


def plan_of(sql: str) -> str:
    """Return how the database would run a query of a large table.

    VACUUM marks the pages that every transaction sees. Before it, PostgreSQL takes an index
    that holds all columns to cost no less than one that does not, and picks either.
    """
    large = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if large:
            cursor.execute("VACUUM (ANALYZE) console_execution")
    with transaction.atomic(), connection.cursor() as cursor:
        if large:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"{'EXPLAIN' if large else 'EXPLAIN QUERY PLAN'} {sql}")
        return " ".join(str(row[-1]) for row in cursor.fetchall())


def test_the_card_of_running_executions_counts_those_it_leaves_out(
    project: Project, client: Client
) -> None:
    """It shows the newest 8, and says of how many, as the list behind *All* does."""
    machine = create(project, WAIT, "Waits")
    for number in range(3):
        start(machine, name=f"early-{number}")
    head = markup(client.get("/")).partition('id="running-title"')[2].partition("</h2>")[0]
    assert head.endswith('<span class="note">3</span>')
    for number in range(7):
        start(machine, name=f"late-{number}")
    head = markup(client.get("/")).partition('id="running-title"')[2].partition("</h2>")[0]
    assert "8 most recent of 10" in head
