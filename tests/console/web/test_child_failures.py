"""The banner of a failed distributed Map says how its children failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from console.models import Execution, MapRun
from console.web.execution import child_counts
from tests.console.store.helpers import create, ended, start
from tests.console.web.helpers import page, text
from tests.console.web.test_map_run import over

if TYPE_CHECKING:
    import pytest
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
    summaries = client.get(page(execution)).context["summaries"].values()
    look = next(each for each in summaries if each.node.name == "Look")
    assert look.under == "In child executions"
