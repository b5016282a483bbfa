"""X4: the dry run and the page of a bulk job are true, and only permitted users see them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.features.bulk import store as bulk
from console.features.bulk.models import BulkJob
from console.features.bulk.views import parse_ranges, ranges_text
from console.models import AuditEntry, Execution
from console.store.executions.stop import stop_execution
from tests.console.store.helpers import WAIT, create, drain, start
from tests.console.web.helpers import markup, text
from tests.console.web.search.test_filters import seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}


@pytest.mark.postgres_too
def test_a_dry_run_changes_nothing_and_its_form_does_the_same_ones(
    project: Project, client: Client
) -> None:
    """What failed after the dry run is not in the job that it begins."""
    machine = create(project, FAIL)
    failed = [drain(start(machine, name=f"f{number}")) for number in range(3)]
    running = start(create(project, WAIT, "waits"), name="runs")
    page = client.get("/executions/bulk/?action=redrive&all=1&q=")
    shown = markup(page)
    assert "3 eligible" in shown
    assert "1: Execution is RUNNING and cannot be redriven" in shown
    assert "3 by unknown" in shown
    assert not BulkJob.objects.exists()
    drain(start(machine, name="later"))
    sent = {"action": "redrive", "numbers": page.context["numbers"]}
    answer: Any = client.post("/executions/bulk/", sent)
    job = BulkJob.objects.get()
    assert answer.url == f"/executions/bulk/{job.pk}/"
    assert job.total == 4
    while bulk.work_on_job(job.pk):
        pass
    assert set(Execution.objects.filter(redrive_count=1)) == set(failed)
    shown = text(client.get(answer.url))
    assert "4 of 4" in shown
    assert "ExecutionNotRedrivable" in shown
    assert text(client.get(f"{answer.url}?result=refused")).count("Refused</span>") == 1
    assert running.name in text(client.get(f"{answer.url}?result=refused"))


@pytest.mark.postgres_too
def test_marked_rows_and_filters_choose(project: Project, client: Client) -> None:
    """Rows that are marked, or all that match what the list was asked."""
    machine, other = create(project, WAIT), create(project, WAIT, "other")
    rows = [start(machine, name=f"a{number}") for number in range(3)]
    start(other, name="b")
    marked = "&".join(f"x={row.pk}" for row in rows[:2])
    plan = client.get(f"/executions/bulk/?action=stop&{marked}").context["plan"]
    assert set(plan.chosen) == set(rows[:2])
    plan = client.get("/executions/bulk/?action=stop&all=1&machine=machine&q=a").context["plan"]
    assert set(plan.chosen) == set(rows)
    shown = markup(client.get("/machines/other/?status=RUNNING"))
    form = shown.split('id="bulk"')[1].split("</form>")[0]
    assert '<input type="hidden" name="machine" value="other">' in form
    assert '<input type="hidden" name="status" value="RUNNING">' in form
    assert "No execution is selected" in text(client.get("/executions/bulk/?action=stop"))
    assert client.get("/executions/bulk/?action=stop&all=1&machine=none").status_code == 404
    assert client.get("/executions/bulk/?action=explode&all=1").status_code == 404


@pytest.mark.postgres_too
def test_a_job_is_paused_and_resumed_from_its_page(project: Project, client: Client) -> None:
    """The poll is silent while nothing changes; the switch is audited."""
    execution = start(create(project, WAIT))
    client.post("/executions/bulk/", {"action": "stop", "numbers": str(execution.pk)})
    job = BulkJob.objects.get()
    path = f"/executions/bulk/{job.pk}/"
    client.post(path, {"act": "pause"})
    assert not bulk.work_on_job(job.pk)
    page = client.get(path)
    assert "Paused" in text(page)
    assert client.get(f"{path}?seen={page.context['seen']}").status_code == 204
    client.post(path, {"act": "resume"})
    while bulk.work_on_job(job.pk):
        pass
    assert "hx-get" not in text(client.get(path)).split('id="progress"')[1].split(">")[0]
    acts = AuditEntry.objects.filter(target=f"bulk/{job.pk}").values_list("action", flat=True)
    assert set(acts) == {"BulkStop", "PauseBulk", "ResumeBulk"}
    assert f'href="{path}"' in text(client.get("/executions/bulk/"))


@pytest.mark.postgres_too
def test_bulk_actions_take_the_right_of_the_single_one(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """A viewer sees jobs, but neither a dry run nor a switch; strangers see nothing."""
    from console.models import Project

    execution = start(create(project, WAIT))
    client.post("/executions/bulk/", {"action": "stop", "numbers": str(execution.pk)})
    job = BulkJob.objects.get()
    viewer = signed_in("viewer")
    assert viewer.get("/executions/bulk/?action=stop&all=1").status_code == 403
    sent = {"action": "stop", "numbers": str(execution.pk)}
    assert viewer.post("/executions/bulk/", sent).status_code == 403
    assert viewer.post(f"/executions/bulk/{job.pk}/", {"act": "pause"}).status_code == 403
    assert "Pause" not in text(viewer.get(f"/executions/bulk/{job.pk}/"))
    assert 'name="action"' not in text(viewer.get("/executions/"))
    theirs = Project.objects.create(name="theirs", account_id="999999999999")
    BulkJob.objects.update(project=theirs)
    assert client.get(f"/executions/bulk/{job.pk}/").status_code == 404
    assert f"/executions/bulk/{job.pk}/" not in text(client.get("/executions/bulk/"))


def test_a_dry_run_takes_as_many_queries_for_many(project: Project, client: Client) -> None:
    """At most fifteen, the same for one and for hundreds."""
    machine = create(project, FAIL)
    counts = []
    for more in (1, 300):
        seed(project, machine, more, status="FAILED")
        with CaptureQueriesContext(connection) as taken:
            text(client.get("/executions/bulk/?action=redrive&all=1&status=FAILED"))
        counts.append(len(taken))
    assert counts[0] == counts[1]
    assert counts[0] <= 15


@pytest.mark.parametrize(
    ("chosen", "written"), [([], ""), ([5], "5"), ([3, 1, 2, 7, 9, 8], "1-3,7-9"), ([1, 3], "1,3")]
)
def test_numbers_are_written_short(chosen: list[int], written: str) -> None:
    """And read back the same."""
    assert ranges_text(chosen) == written
    assert parse_ranges(written) == sorted(chosen)


def test_a_forged_range_is_cut() -> None:
    """No more than one job takes, however far the range goes."""
    assert len(parse_ranges("1-999999999999,5")) == bulk.MOST
    assert parse_ranges("9-1") == []


def test_a_job_says_what_became_of_its_executions(project: Project, client: Client) -> None:
    """A redrive that failed again is no success; each row names its machine and status now."""
    machine = create(project, FAIL)
    failed = [drain(start(machine, name=f"f{number}")) for number in range(3)]
    numbers = ",".join(str(execution.pk) for execution in failed)
    client.post("/executions/bulk/", {"action": "redrive", "numbers": numbers})
    job = BulkJob.objects.get()
    path = f"/executions/bulk/{job.pk}/"
    assert 'id="outcome"' not in text(client.get(path)), "nothing is redriven yet"
    while bulk.work_on_job(job.pk):
        pass
    shown = " ".join(text(client.get(path)).split())
    assert "3 redriven: 0 succeeded, 0 failed again, 3 running" in shown
    assert 'hx-trigger="every 5s"' in shown
    for execution in failed[:2]:
        drain(Execution.objects.get(pk=execution.pk))
    Execution.objects.filter(pk=failed[1].pk).update(status="SUCCEEDED")
    shown = " ".join(text(client.get(path)).split())
    assert "3 redriven: 1 succeeded, 1 failed again, 1 running" in shown
    row = markup(client.get(path)).split('id="items"')[1].split("<tbody>")[1].split("</tr>")[0]
    assert '<td class="secondary">machine</td>' in re.sub(r"</?bdi>", "", row)
    assert "Current status" in shown
    Execution.objects.filter(pk=failed[2].pk).update(status="ABORTED")
    shown = " ".join(text(client.get(path)).split())
    assert "1 failed again, 0 running, 1 aborted" in shown
    assert "hx-trigger" not in shown.split('id="progress"')[1].split(">")[0]


def test_a_job_that_starts_again_counts_the_new_executions(
    project: Project, client: Client
) -> None:
    """Not those that it was selected from."""
    old = drain(start(create(project, FAIL), name="old"))
    client.post("/executions/bulk/", {"action": "start", "numbers": str(old.pk)})
    job = BulkJob.objects.get()
    while bulk.work_on_job(job.pk):
        pass
    path = f"/executions/bulk/{job.pk}/"
    assert "0 failed, 1 running" in " ".join(text(client.get(path)).split())
    drain(Execution.objects.exclude(pk=old.pk).get())
    shown = " ".join(text(client.get(path)).split())
    assert "1 started again: 0 succeeded, 1 failed, 0 running" in shown


def test_the_page_of_a_job_takes_as_many_queries_for_many(project: Project, client: Client) -> None:
    """The same for one execution and for sixty."""
    machine = create(project, FAIL)
    taken = []
    for count in (1, 60):
        rows = [start(machine, name=f"q{count}-{number}") for number in range(count)]
        numbers = ",".join(str(execution.pk) for execution in rows)
        client.post("/executions/bulk/", {"action": "redrive", "numbers": numbers})
        path = f"/executions/bulk/{BulkJob.objects.order_by('-pk')[0].pk}/"
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            client.get(path)
        taken.append(len(queries))
    assert taken[0] == taken[1]


def test_the_bar_of_the_list_knows_how_many_match(project: Project, client: Client) -> None:
    """For *all that match*, beside the number of selected rows."""
    machine = create(project, WAIT)
    for number in range(3):
        start(machine, name=f"a{number}")
    assert 'data-matching="3 match"' in text(client.get("/machines/machine/"))
    assert 'data-matching="1 match"' in text(client.get("/machines/machine/?q=a1"))


@pytest.mark.postgres_too
def test_a_bulk_stop_gives_error_and_cause(project: Project, client: Client) -> None:
    """Each stopped execution has both, as by the single Stop; the page of the job shows them."""
    machine = create(project, WAIT)
    rows = [drain(start(machine, name=f"w{number}")) for number in range(2)]
    numbers = ",".join(str(row.pk) for row in rows)
    marked = "&".join(f"x={row.pk}" for row in rows)
    shown = text(client.get(f"/executions/bulk/?action=stop&{marked}"))
    assert 'name="error"' in shown
    assert 'name="cause"' in shown
    assert 'name="error"' not in text(client.get(f"/executions/bulk/?action=start&{marked}"))
    sent = {"action": "stop", "numbers": numbers, "error": "WrongInput", "cause": "a <b>batch"}
    client.post("/executions/bulk/", sent)
    job = BulkJob.objects.get()
    while bulk.work_on_job(job.pk):
        pass
    ended = Execution.objects.filter(pk__in=[row.pk for row in rows])
    assert set(ended.values_list("status", "error", "cause")) == {
        ("ABORTED", "WrongInput", "a <b>batch")
    }
    assert AuditEntry.objects.filter(action="StopExecution", reason="a <b>batch").count() == 2
    shown = markup(client.get(f"/executions/bulk/{job.pk}/"))
    assert "WrongInput" in shown
    assert "a <b>batch" not in client.get(f"/executions/bulk/{job.pk}/").content.decode()


def test_the_list_of_jobs_says_what_became_of_them(project: Project, client: Client) -> None:
    """As many as the page of each job counts, in two queries however many jobs there are."""
    machine = create(project, WAIT)
    rows = [drain(start(machine, name=f"w{number}")) for number in range(4)]
    stop_execution(rows[0])
    gone = rows[1].pk
    numbers = ",".join(str(row.pk) for row in rows)
    client.post("/executions/bulk/", {"action": "stop", "numbers": numbers})
    Execution.objects.filter(pk=gone).delete()
    assert "4 to do" in text(client.get("/executions/bulk/"))
    first = BulkJob.objects.get()
    while bulk.work_on_job(first.pk):
        pass
    shown = text(client.get("/executions/bulk/"))
    for words in ("2 stopped", "1 already ended", "1 failed"):
        assert words in shown
        assert words in text(client.get(f"/executions/bulk/{first.pk}/"))
    assert "to do" not in shown.split("<tbody>")[1].split("</tbody>")[0]
    client.post("/executions/bulk/", {"action": "redrive", "numbers": str(rows[2].pk)})
    with CaptureQueriesContext(connection) as few:
        client.get("/executions/bulk/")
    for _ in range(3):
        client.post("/executions/bulk/", {"action": "stop", "numbers": numbers})
    with CaptureQueriesContext(connection) as many:
        client.get("/executions/bulk/")
    assert len(few) == len(many)
