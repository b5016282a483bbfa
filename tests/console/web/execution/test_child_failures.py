"""The banner of a failed distributed Map says how its children failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from console.models import Execution, MapRun
from console.web.execution import child_counts
from tests.console.store.helpers import create, ended, start
from tests.console.web.helpers import page, text
from tests.features.map_runs.test_map_run import over

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project
    from console.worker import Embedded

BAD = {"Variable": "$.bad", "BooleanEquals": True, "Next": "Missing"}
LATE = {"Variable": "$.late", "BooleanEquals": True, "Next": "Late"}
INNER: dict[str, Any] = {
    "StartAt": "Look",
    "States": {
        "Look": {"Type": "Choice", "Choices": [BAD, LATE], "Default": "Good"},
        "Good": {"Type": "Pass", "End": True},
        "Missing": {"Type": "Fail", "Error": "KeyError", "Cause": "'sku-37'"},
        "Late": {"Type": "Fail", "Error": "Late", "Cause": "took 12 s"},
    },
}


def failed_map(project: Project) -> Execution:
    """Return an execution whose Map Run ended with two children of one kind and one of another."""
    items = [{"bad": place in (2, 4), "late": place == 5} for place in range(6)]
    machine = create(project, over(INNER, MaxConcurrency=1, ToleratedFailureCount=2))
    return ended(start(machine, items, "x"))


def test_errors_are_grouped_with_links(project: Project, worker: Embedded, client: Client) -> None:
    """The most frequent first; the first child of each kind and the list are one press away."""
    del worker
    execution = failed_map(project)
    assert execution.status == "FAILED"
    shown = text(client.get(page(execution)))
    banner = " ".join(shown.split('id="child-failures"')[1].split("</p>")[0].split())
    assert "3 of 6 failed" in banner
    assert banner.index("KeyError") < banner.index("Late")
    assert re.search(r"'sku-37'</a> <span class=\"note\">\W2</span>", banner)
    first = Execution.objects.get(map_run=MapRun.objects.get(), item_index=2)
    assert first.arn in banner
    address = banner.split('href="')[1].split('"')[0]
    assert "status=FAILED" in address
    assert "KeyError" in text(client.get(address))


def test_hidden_values_stay_hidden(project: Project, worker: Embedded, client: Client) -> None:
    """What the project masks is in no cause of the banner."""
    del worker
    project.masked = "$.secret"
    project.save(update_fields=["masked"])
    inner = {
        "StartAt": "Missing",
        "States": {"Missing": {"Type": "Fail", "Error": "KeyError", "CausePath": "$.secret"}},
    }
    execution = ended(start(create(project, over(inner)), [{"secret": "canary-4711"}], "x"))
    banner = text(client.get(page(execution))).split('id="child-failures"')[1].split("</p>")[0]
    assert "KeyError" in banner
    assert "canary-4711" not in banner


def test_what_is_too_much_is_not_counted(
    project: Project, worker: Embedded, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states then say where they run, and no half a count."""
    del worker
    execution = failed_map(project)
    monkeypatch.setattr(child_counts, "MOST_EVENTS", 3)
    summaries = client.get(page(execution)).context["graph"].painting.summaries.values()
    look = next(each for each in summaries if each.node.name == "Look")
    assert look.under == "In child executions"


def of_map_run(execution: Execution, more: str = "") -> str:
    """Return the address of the page of an execution's Map Run."""
    return page(execution, f"map-runs/{MapRun.objects.get(parent=execution).task}/{more}")


def test_the_page_of_the_map_run_groups_them_too(
    project: Project, worker: Embedded, client: Client
) -> None:
    """With a link to the first child of each kind; one of a tolerant Map Run, too."""
    del worker
    execution = failed_map(project)
    shown = " ".join(text(client.get(of_map_run(execution))).split())
    failures = shown.split('id="failures"')[1].split("</section>")[0]
    assert "3 of 6 failed" in failures
    assert failures.index("KeyError") < failures.index("Late")
    for index in (2, 5):
        child = Execution.objects.get(map_run__parent=execution, item_index=index)
        assert f'href="/arn/{child.arn}"' in failures
        assert f">item {index}</a>" in failures
    assert "status=FAILED#children-title" in failures
    machine = create(project, over(INNER, ToleratedFailureCount=2), "tolerant")
    tolerant = ended(start(machine, [{"bad": False, "late": True}], "y"))
    assert tolerant.status == "SUCCEEDED"
    assert "1 of 1 failed" in text(client.get(of_map_run(tolerant)))


def test_children_that_timed_out_are_listed_as_such(
    project: Project, worker: Embedded, client: Client
) -> None:
    """The list of those that failed would be empty."""
    del worker
    execution = failed_map(project)
    Execution.objects.filter(map_run__parent=execution, status="FAILED").update(status="TIMED_OUT")
    MapRun.objects.update(failed=0, timed_out=3)
    for address in (page(execution), of_map_run(execution)):
        shown = text(client.get(address))
        assert "status=TIMED_OUT" in shown
        assert "status=FAILED" not in shown.split("3 of 6 failed")[0].rpartition("<section")[2]


def test_a_tick_groups_failures_only_where_there_are_new_ones(
    project: Project, worker: Embedded, client: Client
) -> None:
    """The causes of a thousand children are not read twice a second."""
    del worker
    execution = failed_map(project)
    assert 'id="failures"' not in text(client.get(of_map_run(execution, "_delta?failed=3")))
    assert 'id="failures"' in text(client.get(of_map_run(execution, "_delta?failed=2")))


def test_the_page_of_the_map_run_hides_what_is_hidden(
    project: Project, worker: Embedded, client: Client
) -> None:
    """Neither the cause nor what it is grouped by says a masked value."""
    del worker
    project.masked = "$.secret"
    project.save(update_fields=["masked"])
    inner = {
        "StartAt": "Missing",
        "States": {"Missing": {"Type": "Fail", "Error": "KeyError", "CausePath": "$.secret"}},
    }
    execution = ended(start(create(project, over(inner)), [{"secret": "canary-4712"}], "x"))
    shown = text(client.get(of_map_run(execution)))
    assert "KeyError" in shown.split('id="failures"')[1]
    assert "canary-4712" not in shown


def test_items_are_counted_where_they_are_no_executions(
    project: Project, worker: Embedded, client: Client
) -> None:
    """Children that take one item each are counted once."""
    del worker
    items = [{"bad": False, "late": False}] * 7
    batches = {"MaxItemsPerBatch": 3}
    passes: dict[str, Any] = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    machine = create(project, over(passes, ItemBatcher=batches))
    batched = ended(start(machine, items, "x"))
    single = ended(start(create(project, over(passes), "single"), items, "y"))
    shown = [text(client.get(of_map_run(each))) for each in (batched, single)]
    tallies = [part.split('id="counts"')[1].split("</ul>")[0] for part in shown]
    assert "7 items" in tallies[0]
    assert "item" not in tallies[1]


@pytest.mark.postgres_too
def test_a_kind_of_children_is_redriven_by_its_parents(
    project: Project, worker: Embedded, client: Client
) -> None:
    """The action beside it is a dry run of just those; without one it leads to the Map Run."""
    del worker
    parent = failed_map(project)
    shown = text(client.get("/failures/?children=with"))
    address = f"/executions/bulk/?action=redrive&x={parent.pk}"
    assert shown.count(f'"{address}"') == 2  # of KeyError and of Late
    plan = client.get(address).context["plan"]
    assert [execution.pk for execution in plan.eligible] == [parent.pk]
    Execution.objects.filter(pk=parent.pk).update(status="SUCCEEDED")
    shown = text(client.get("/failures/?children=with"))
    assert address not in shown
    run = MapRun.objects.get(parent=parent)
    assert shown.count(f'href="{page(parent, f"map-runs/{run.task}/")}"') == 2
