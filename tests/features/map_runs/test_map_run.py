"""E18: the page of a Map Run counts, lists and changes what it should."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.access import Principal
from console.awsapi import services
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.errors import ValidationException
from console.models import AuditEntry, Execution, MapRun, Role
from console.store.executions.stop import stop_execution
from console.store.map_runs import map_counts
from tests.console.store.helpers import create, drain, ended, one, start
from tests.console.web.helpers import MARKUP, markup, page, text
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project
    from console.worker import Embedded

    SignIn = Callable[[str], Client]

COUNTED = ("pending", "running", "pending_redrive", "succeeded", "failed", "timed_out", "aborted")
FAILS = {
    "StartAt": "Three?",
    "States": {
        "Three?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$", "NumericEquals": 3, "Next": "Bad"}],
            "Default": "Good",
        },
        "Good": {"Type": "Pass", "End": True},
        "Bad": {"Type": "Fail", "Error": "Oops"},
    },
}
NAPS = one("Nap", Type="Wait", Seconds=3600)


def over(inner: dict[str, Any], kind: str = "STANDARD", **more: Any) -> dict[str, Any]:
    """Return a machine of one distributed Map. ``kind``: of its child executions."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": kind}
    return one(
        "Each", Type="Map", Label="L", ItemProcessor={"ProcessorConfig": config, **inner}, **more
    )


def address(run: MapRun, more: str = "") -> str:
    """Return the address of a Map Run's page."""
    return page(run.parent, f"map-runs/{run.task}/{more}")


def begun(execution: Execution, running: int) -> MapRun:
    """Wait until so many children run."""
    children = Execution.objects.filter(map_run__parent=execution)
    wait_until(lambda: children.count() == running)
    return MapRun.objects.select_related("parent").get(parent=execution)


@pytest.fixture
def tolerant(project: Project, worker: Embedded) -> MapRun:
    """Return a Map Run of five items, of which one failed and was tolerated."""
    del worker
    machine = create(project, over(FAILS, ToleratedFailureCount=1))
    ended(start(machine, [1, 2, 3, 4, 5], "x"))
    return MapRun.objects.select_related("parent").get()


@pytest.fixture
def napping(project: Project, worker: Embedded) -> MapRun:
    """Return a Map Run of six items, of which two run."""
    del worker
    execution = start(create(project, over(NAPS, MaxConcurrency=2)), list(range(6)), "x")
    return begun(execution, 2)


@pytest.fixture
def update_by_nothing(project: Project, django_user_model: Any) -> Callable[[str], Any]:
    """Call UpdateMapRun without settings, as an owner."""
    user = django_user_model.objects.create_user("caller")
    principal = Principal(user, project, Role.OWNER, "AKIATEST")

    def update(arn: str) -> Any:
        action, params = "UpdateMapRun", {"mapRunArn": arn}
        call = Call(action, params, principal, "us-east-1", Actor("caller", "AKIATEST"))
        return services.STATES.handler(action)(call)

    return update


def flat(answer: Any) -> str:
    """Return the words of a page, without tags, with single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", text(answer)).split())


def counted(answer: Any) -> dict[str, tuple[int | None, int]]:
    """Return word -> (items, executions) as a page has them."""
    return {
        count.status.word: (count.items, count.executions) for count in answer.context["counts"]
    }


def test_e18_the_counts_are_told_by_status(tolerant: MapRun, client: Client) -> None:
    """Of items and executions, with the total; the bar says it in words."""
    answer: Any = client.get(address(tolerant))
    shown = text(answer)
    assert counted(answer)["Succeeded"] == (4, 4)
    assert counted(answer)["Failed"] == (1, 1)
    assert answer.context["of_items"].total == 5
    assert "5 of 5 children have ended" in shown
    assert '<progress id="bar" max="5" value="5">' in markup(answer)
    assert "hx-get" not in shown.split('id="poll"')[1].split("</i>")[0]


def test_e18_the_bar_has_a_part_for_each_outcome(tolerant: MapRun, client: Client) -> None:
    """Those that failed stand first, in their colour; the words are those of the table."""
    shown = text(client.get(address(tolerant)))
    parts = re.findall(r'<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)"', shown)
    assert [(tone, float(x), float(width)) for tone, x, width in parts] == [
        ("failed", 0, 20),
        ("succeeded", 20, 80),
    ]


def test_e18_the_counts_add_up_while_it_runs(
    project: Project, worker: Embedded, client: Client
) -> None:
    """At every look, from the first to the last child."""
    del worker
    fails: dict[str, Any] = {
        **FAILS,
        "States": {**FAILS["States"], "Good": {"Type": "Wait", "Seconds": 1, "End": True}},
    }
    machine = create(project, over(fails, MaxConcurrency=3, ToleratedFailurePercentage=100))
    execution = start(machine, [1, 2, 3] * 3)
    begun_run = None
    deadline = time.monotonic() + PATIENCE_S
    looks = set()
    while time.monotonic() < deadline:
        begun_run = begun_run or MapRun.objects.select_related("parent").first()
        if begun_run is not None:
            answer: Any = client.get(address(begun_run))
            shown = counted(answer)
            total = answer.context["of_children"].total
            assert sum(number for _, number in shown.values()) == total
            assert sum(number or 0 for number, _ in shown.values()) == total
            looks.add(tuple(shown.values()))
            if answer.context["over"]:
                break
        time.sleep(0.1)
    assert ended(execution).status == "SUCCEEDED"
    assert len(looks) > 2


def test_e18_items_in_batches_are_counted(project: Project, worker: Embedded) -> None:
    """Seven items in children of three."""
    del worker
    ended(
        start(
            create(project, over(one("P", Type="Pass"), ItemBatcher={"MaxItemsPerBatch": 3})),
            [0] * 7,
        )
    )
    run = MapRun.objects.select_related("parent__definition").get()
    children = map_counts.count_executions(run)
    items = map_counts.count_items(run, children)
    assert (children.succeeded, children.total) == (3, 3)
    assert (items.succeeded, items.total) == (7, 7)


def test_e18_too_many_batches_are_not_read(
    project: Project, worker: Embedded, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then items are left out; the children are counted all the same."""
    del worker
    monkeypatch.setattr("console.features.map_runs.map_run_display.MOST_BATCHES", 2)
    ended(
        start(
            create(project, over(one("P", Type="Pass"), ItemBatcher={"MaxItemsPerBatch": 3})),
            [0] * 7,
        )
    )
    answer: Any = client.get(address(MapRun.objects.select_related("parent").get()))
    assert counted(answer)["Succeeded"] == (None, 3)


def test_e18_children_are_listed_and_filtered(tolerant: MapRun, client: Client) -> None:
    """Failed first, or by item; the failed one with its error; what is no status is no filter."""
    answer: Any = client.get(address(tolerant))
    assert [row[0].item_index for row in answer.context["children"].rows] == [2, 0, 1, 3, 4]
    answer = client.get(address(tolerant, "?order=item"))
    assert [row[0].item_index for row in answer.context["children"].rows] == [0, 1, 2, 3, 4]
    failed: Any = client.get(address(tolerant, "?status=FAILED"))
    [(child, status, error)] = failed.context["children"].rows
    assert (child.item_index, status.word, error) == (2, "Failed", "Oops")
    assert "/machines/machine~L/executions/" in text(failed)
    assert "None." in text(client.get(address(tolerant, "?status=ABORTED")))
    assert len(client.get(address(tolerant, f"?status={MARKUP}")).context["children"].rows) == 5


@pytest.mark.parametrize(
    ("order", "items"), [("failed", [2, 0, 1, 3, 4]), ("item", [0, 1, 2, 3, 4])]
)
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.postgres_too
def test_e18_children_come_in_pages(
    tolerant: MapRun,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    order: str,
    items: list[int],
    size: int,
) -> None:
    """By the last one, so nothing repeats; each page says which of how many it has."""
    monkeypatch.setattr("console.features.map_runs.views.PAGE", size)
    seen: list[int] = []
    after = ""
    for _ in range(-(-5 // size)):
        answer: Any = client.get(address(tolerant, f"?order={order}&after={after}"))
        rows = [row[0].item_index for row in answer.context["children"].rows]
        assert f"<span>{len(seen) + 1} to {len(seen) + len(rows)} of 5</span>" in text(answer)
        seen += rows
        after = answer.context["children"].after
    assert (seen, after) == (items, "")


@pytest.mark.postgres_too
def test_e18_children_that_failed_alike_are_listed(
    project: Project, worker: Embedded, client: Client
) -> None:
    """All of a kind; an unknown kind has none."""
    del worker
    machine = create(project, over(FAILS, ToleratedFailurePercentage=100))
    ended(start(machine, [3] * 12 + [1], "x"))
    run = MapRun.objects.select_related("parent").get()
    [link] = re.findall(
        r'class="count" id="[^"]+" href="\?([^"#]+)', text(client.get(address(run)))
    )
    answer: Any = client.get(address(run, f"?{link}"))
    assert [row[0].item_index for row in answer.context["children"].rows] == list(range(12))
    assert "1 to 12 of 12" in text(answer)
    assert "Show all child executions" in text(answer)
    assert "None." in text(client.get(address(run, "?kind=0123456789ab")))


def test_e18_parent_step_and_child_lead_to_it(tolerant: MapRun, client: Client) -> None:
    """By its ARN, whose page it is; and it leads back."""
    by_arn = f"/arn/{tolerant.arn}"
    assert by_arn in text(client.get(page(tolerant.parent, "?step=Each")))
    child = Execution.objects.filter(map_run=tolerant).first()
    assert child is not None
    shown = text(client.get(f"/machines/machine~L/executions/{child.name}/"))
    assert by_arn in shown
    assert client.get(by_arn)["Location"] == f"{address(tolerant)}?region=us-east-1"
    assert client.get(f"{by_arn}0").status_code == 404
    assert page(tolerant.parent) in text(client.get(address(tolerant)))


def test_e18_what_waits_for_it_leads_to_it(napping: MapRun, client: Client) -> None:
    """The panel of the parent has the way while it runs."""
    assert address(napping) in text(client.get(page(napping.parent)))


def test_e18_an_operator_changes_the_concurrency(napping: MapRun, signed_in: SignIn) -> None:
    """More children start, the audit has who; an empty field changes nothing."""
    operator = signed_in("operator")
    form = {"max_concurrency": "4", "tolerated_count": "", "tolerated_percentage": "12.5"}
    assert operator.post(address(napping), form).status_code == 302
    run = begun(napping.parent, 4)
    assert (run.max_concurrency, run.tolerated_count, run.tolerated_percentage) == (4, None, 12.5)
    row = AuditEntry.objects.get(action="UpdateMapRun")
    assert (row.actor, row.target) == ("operator", run.arn)
    assert row.reason == "max_concurrency 4, tolerated_percentage 12.5"
    assert operator.post(address(napping), form).status_code == 302
    assert AuditEntry.objects.filter(action="UpdateMapRun").count() == 1


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("max_concurrency", "-1"),
        ("max_concurrency", "1.5"),
        ("tolerated_count", "9999999999"),
        ("tolerated_percentage", "101"),
        ("tolerated_percentage", "nan"),
        ("tolerated_percentage", MARKUP),
    ],
)
def test_e18_a_wrong_number_is_told_at_its_field(
    napping: MapRun, client: Client, name: str, typed: str
) -> None:
    """With what was wanted; nothing changes."""
    answer = client.post(address(napping), {"max_concurrency": "5", name: typed})
    assert f'id="{name}-error"' in text(answer, 422)
    assert MARKUP not in answer.content.decode()
    assert MapRun.objects.get().max_concurrency == 2


def test_e18_who_may_not_or_comes_too_late_changes_nothing(
    tolerant: MapRun, client: Client, signed_in: SignIn
) -> None:
    """403 for a viewer, who has no form; an ended run says that it has ended."""
    viewer = signed_in("viewer")
    assert viewer.post(address(tolerant), {"max_concurrency": "4"}).status_code == 403
    assert 'name="max_concurrency"' not in text(client.get(address(tolerant)))
    answer = client.post(address(tolerant), {"max_concurrency": "4"}, follow=True)
    assert "The Map Run has ended" in text(answer)
    assert not AuditEntry.objects.filter(action="UpdateMapRun").exclude(actor="viewer").exists()


def test_an_ended_map_run_is_not_updated_by_nothing_either(
    tolerant: MapRun, update_by_nothing: Callable[[str], Any]
) -> None:
    """UpdateMapRun without settings refuses what has ended, as with settings."""
    with pytest.raises(ValidationException) as refused:
        update_by_nothing(tolerant.arn)
    assert refused.value.reason == "CANNOT_UPDATE_COMPLETED_MAP_RUN"
    assert not AuditEntry.objects.filter(action="UpdateMapRun").exists()


def test_a_running_map_run_takes_an_update_by_nothing(
    napping: MapRun, update_by_nothing: Callable[[str], Any]
) -> None:
    """It changes nothing, and nothing is recorded."""
    assert update_by_nothing(napping.arn) == {}
    assert not AuditEntry.objects.filter(action="UpdateMapRun").exists()


@pytest.mark.postgres_too
def test_e18_a_viewer_reads_it_without_the_form(napping: MapRun, signed_in: SignIn) -> None:
    """The page, not the settings; another project's people find nothing."""
    shown = text(signed_in("viewer").get(address(napping)))
    assert "unlimited" not in shown
    assert 'name="max_concurrency"' not in shown
    assert 'name="max_concurrency"' in text(signed_in("operator").get(address(napping)))


def test_e18_another_project_finds_nothing(tolerant: MapRun, client: Client) -> None:
    """Neither by name nor by ARN."""
    from console.models import Membership, Project

    other = Project.objects.create(name="other", account_id="999999999999")
    Membership.objects.filter(user__username="editor").update(project=other)
    for asked in (address(tolerant), address(tolerant, "_delta"), f"/arn/{tolerant.arn}"):
        assert client.get(asked).status_code == 404


def test_e18_a_tick_tells_what_changed_until_the_end(napping: MapRun, client: Client) -> None:
    """Nothing while nothing changed; the last one has a slow poll and no form."""
    seen = client.get(address(napping)).context["seen"]
    assert client.get(address(napping, f"_delta?seen={seen}")).status_code == 204
    first = text(client.get(address(napping, "_delta?seen=x&status=RUNNING")))
    assert "hx-get" in first
    assert "status=RUNNING" in first.split('id="poll"')[1].split("</i>")[0]
    stop_execution(napping.parent)
    wait_until(lambda: client.get(address(napping)).context["over"])
    last = client.get(address(napping, "_delta"))
    assert "every 500ms" not in text(last)
    assert "<title>Map Run of Each: Aborted · Stateyard</title>" in text(last)
    assert "The Map Run has ended: Aborted." in text(last)
    assert counted(last)["Aborted"][1] == 2
    assert sum(number for _, number in counted(last).values()) == 6


def test_a_page_that_showed_the_end_learns_of_a_redrive(napping: MapRun, client: Client) -> None:
    """Nothing until then; afterwards it runs again, with the form for its settings."""
    stop_execution(napping.parent)
    wait_until(lambda: client.get(address(napping)).context["over"])
    assert "every 10s" in text(client.get(address(napping)))
    assert client.get(address(napping, "_delta?ended=0")).status_code == 204
    client.post(page(napping.parent, "redrive/"))
    wait_until(lambda: not client.get(address(napping)).context["over"])
    shown = markup(client.get(address(napping, "_delta?ended=0")))
    assert "<title>Map Run of Each: Running · Stateyard</title>" in shown
    assert "The Map Run was redriven." in shown
    assert "Edit concurrency and tolerated failures" in shown
    assert "every 500ms" in shown


def test_an_aborted_one_says_who_stopped_its_execution(napping: MapRun, client: Client) -> None:
    """With the reason, on the page and in its last tick; a running one says nothing."""
    assert "Its execution was stopped" not in text(client.get(address(napping)))
    stop_execution(napping.parent, cause="Wrong file", actor=Actor("ann"))
    wait_until(lambda: MapRun.objects.get().status != "RUNNING")
    assert "Its execution was stopped by ann" in flat(client.get(address(napping)))
    assert "Its execution was stopped by ann" in flat(client.get(address(napping, "_delta")))


def test_e18_it_is_redriven_by_its_execution(
    project: Project, worker: Embedded, client: Client
) -> None:
    """A way to the redrive where it failed, none where the parent cannot be."""
    del worker
    parent = ended(start(create(project, over(FAILS)), [1, 3]))
    run = MapRun.objects.select_related("parent").get()
    assert f'href="{page(parent, "redrive/")}"' in text(client.get(address(run)))
    Execution.objects.filter(pk=parent.pk).update(stop_ms=1)
    shown = text(client.get(address(run)))
    assert f'href="{page(parent, "redrive/")}"' not in shown
    assert "Execution redrivable period exceeded" in shown


def test_e18_a_redrive_is_counted(project: Project, worker: Embedded, client: Client) -> None:
    """What failed runs again; the page says how often."""
    del worker
    parent = ended(start(create(project, over(FAILS)), [1, 3]))
    client.post(page(parent, "redrive/"))
    ended(Execution.objects.get(pk=parent.pk))
    run = MapRun.objects.select_related("parent").get()
    assert "1 time, last" in text(client.get(address(run)))


@pytest.mark.postgres_too
def test_e18_masked_errors_stay_hidden(tolerant: MapRun, client: Client, project: Project) -> None:
    """The error of a child is shown as its own page shows it."""
    type(project).objects.update(masked="$.card")
    Execution.objects.filter(map_run=tolerant, status="FAILED").update(
        error="canary-77", input=json.dumps({"card": "canary-77"})
    )
    answer = client.get(address(tolerant, "?status=FAILED"))
    assert "canary-77" not in text(answer)
    assert "(masked)" in text(answer)


@pytest.mark.slow
def test_e18_a_thousand_children_take_as_few_queries_as_one(
    tolerant: MapRun, client: Client, project: Project
) -> None:
    """At most fifteen, in a project that masks, after a failure."""
    type(project).objects.update(masked="$.card")
    like = Execution.objects.filter(map_run=tolerant, status="FAILED").get()
    Execution.objects.filter(map_run=tolerant).exclude(pk=like.pk).delete()
    MapRun.objects.update(status="FAILED", total=1, started=1, succeeded=0, failed=1)
    Execution.objects.filter(pk=tolerant.parent_id).update(status="FAILED")
    few = _queries(client, tolerant)
    new = []
    for index in range(1, 1000):
        like.pk, like.name, like.arn = None, f"n{index}", f"{like.arn.rpartition(':')[0]}:n{index}"
        like.item_index = index + 10
        new.append(
            Execution(
                **{
                    field.attname: getattr(like, field.attname)
                    for field in like._meta.concrete_fields
                }
            )
        )
    Execution.objects.bulk_create(new)
    MapRun.objects.update(total=1000, started=1000, failed=1000)
    many = _queries(client, tolerant)
    assert few == many
    assert few <= 15


def _queries(client: Client, run: MapRun) -> int:
    from console.masking import masked_execution

    masked_execution._memory.clear()
    with CaptureQueriesContext(connection) as asked:
        text(client.get(address(run)))
    return len(asked)


def test_e18_a_map_run_that_is_not_there_is_a_404(project: Project, client: Client) -> None:
    """Of an execution without one."""
    done = drain(start(create(project, one("P", Type="Pass"))))
    assert client.get(page(done, "map-runs/1/")).status_code == 404
