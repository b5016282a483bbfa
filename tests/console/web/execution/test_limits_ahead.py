"""The limits of AWS that an execution comes near, on its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db import clock
from console.models import HistoryEvent, MapRun
from console.store.state import history_columns
from console.web.history import traces
from tests.console.store.helpers import PASS, create, drain, ended, start
from tests.console.web.helpers import CHAIN, page, text
from tests.features.map_runs.test_map_run import over

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project
    from console.worker import Embedded

_DAY_MS = 86_400_000
ONE_PASS = {"StartAt": "In", "States": {"In": {"Type": "Pass", "End": True}}}
_NEAR = 'id="limits">'
_NONE = 'id="limits" hidden>'


def test_a_large_payload_is_on_the_page(project: Project, client: Client) -> None:
    """Its state is a link to the step; only the sizes are shown."""
    execution = drain(start(create(project, PASS), {"secret": "s" * 230_000}))
    shown = text(client.get(page(execution)))
    assert _NEAR in shown
    assert "Output of P: 225 KiB of 256 KiB" in shown
    assert f'href="{page(execution)}?step=P"' in shown
    assert "and 1 more" in shown


def test_usual_executions_are_near_nothing(project: Project, client: Client) -> None:
    """The fact is hidden, and there for the script to fill."""
    execution = drain(start(create(project, PASS), {"text": "s" * 9_000}))
    assert _NONE in text(client.get(page(execution)))


def test_the_page_reads_a_large_payload_once(project: Project, client: Client) -> None:
    """A page costs no query more than before, but for the events that are large, once."""
    small = drain(start(create(project, PASS), {"text": "s"}, "small"))
    large = drain(start(create(project, PASS), {"text": "s" * 230_000}, "large"))
    counts = []
    for execution in (small, large, small, large):
        with CaptureQueriesContext(connection) as queries:
            client.get(page(execution))
        counts.append(len(queries))
    assert counts[2] == counts[3]
    assert counts[1] - counts[0] == 4  # input and output, of the state and of the execution


def test_a_running_execution_near_its_year(project: Project, client: Client) -> None:
    """The poll brings it, too: it may come near while the page is open."""
    execution = start(create(project, CHAIN), {}, "x")
    drain(execution)
    assert _NONE in text(client.get(page(execution)))
    HistoryEvent.objects.filter(execution=execution).update(at_ms=clock.now_ms() - 300 * _DAY_MS)
    traces._TRACES._known.clear()
    assert "Duration: 300 d of 365 d" in text(client.get(page(execution)))
    polled = text(client.get(page(execution, "_delta?after=1")))
    assert '<div id="limits" hx-swap-oob="true">' in polled
    assert "Duration: 300 d of 365 d" in polled


def test_a_map_run_near_its_concurrency(project: Project, client: Client, worker: Embedded) -> None:
    """How many children MaxConcurrency allows at a time counts, not how many there are."""
    del worker
    execution = ended(start(create(project, over(ONE_PASS)), [1], "x"))
    run = MapRun.objects.get(parent=execution)
    for total, concurrency, near in ((7_999, 0, 0), (12_000, 1_000, 0), (12_000, 0, 12_000)):
        MapRun.objects.filter(pk=run.pk).update(total=total, max_concurrency=concurrency)
        shown = text(client.get(page(execution)))
        assert (f"Each: {near:,} child executions at a time, of 10,000" in shown) == bool(near)


def test_the_columns_have_sizes_of_large_payloads(project: Project) -> None:
    """A name of a state that breaks the columns does not lose them, and escapes do not count."""
    definition = {"StartAt": "a\x1fb", "States": {"a\x1fb": {"Type": "Pass", "End": True}}}
    for words, near in (("s" * 230_000, 230_002), ('"' * 110_000, 220_002), ('"' * 99_999, 0)):
        execution = drain(start(create(project, definition, "m"), words))
        batch = history_columns.read_batch(execution.pk)
        assert batch is not None
        assert set(batch.sizes.values()) == ({near} if near else set())
        assert len(batch.sizes) == (4 if near else 0)


def test_insights_list_the_limits_of_recent_executions(project: Project, client: Client) -> None:
    """Each once, with the number of executions and a link to the nearest one."""
    machine = create(project, PASS)
    drain(start(machine, "s" * 220_000, "near"))
    nearest = drain(start(machine, "s" * 240_000, "nearest"))
    drain(start(machine, "s", "small"))
    shown = text(client.get(f"/machines/{machine.name}/insights/"))
    assert "Near a limit: 4" in shown
    rows = client.get(f"/machines/{machine.name}/insights/").context["limits"]
    assert [(row.limit.words, row.executions, row.nearest) for row in rows if row.limit.state] == [
        (f"{subject} of P: 234 KiB of 256 KiB", 2, nearest) for subject in ("Input", "Output")
    ]
    other = create(project, PASS, "b")
    drain(start(other, "s", "small"))
    assert "Near a limit" not in text(client.get(f"/machines/{other.name}/insights/"))


def test_insights_cost_no_query_for_limits(project: Project, client: Client) -> None:
    """But those for the events that are large, once."""
    machine = create(project, PASS)
    drain(start(machine, "s", "small"))
    address = f"/machines/{machine.name}/insights/"
    counts = []
    for name in ("", "s" * 230_000, ""):
        if name:
            drain(start(machine, name, "large"))
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        counts.append(len(queries))
    assert counts[1] - counts[2] == 5  # its history, and its four large events
    assert counts[2] == counts[0] - 1  # no history is new
