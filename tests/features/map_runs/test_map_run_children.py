"""The pages of child executions of a Map Run, Standard and Express."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.models import Execution, MapRun, StateMachine
from tests.console.store.helpers import create, ended, one, start
from tests.console.web.helpers import text
from tests.features.map_runs.test_map_run import FAILS, over

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project
    from console.worker import Embedded


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
@pytest.mark.postgres_too
def test_e18_a_child_leads_to_the_machine_above(
    project: Project, worker: Embedded, client: Client, kind: str
) -> None:
    """Which is there; and who would redrive the child alone is told that its parent does it."""
    del worker
    ended(start(create(project, over(FAILS, kind, ToleratedFailureCount=1)), [3], "x"))
    child = Execution.objects.get(map_run__isnull=False)
    own = f"/machines/machine~L/executions/{child.name}/"
    shown = text(client.get(own))
    assert shown.count('href="/machines/machine/"') == 2  # in the breadcrumbs and the facts
    assert "(deleted)" not in shown
    assert f'href="{own}redrive/' not in shown
    assert "is redriven by its parent" in shown
    assert "is redriven by its parent" in text(client.get(f"{own}redrive/"))
    assert client.post(f"{own}redrive/").status_code == 422
    assert client.get(f"/arn/{child.arn}")["Location"].startswith(own)
    StateMachine.objects.all().delete()
    assert text(client.get(own)).count("(deleted)") == 2


def test_a_child_is_not_replayed(project: Project, worker: Embedded, client: Client) -> None:
    """Its page says why. The address of a child has ``~`` where its ARN has a slash."""
    del worker
    ended(start(create(project, over(FAILS, ToleratedFailureCount=1)), [3], "x"))
    child = Execution.objects.get(map_run__isnull=False)
    address = f"/machines/machine~L/executions/{child.name}/replay/?step=Three%3F&visit=1"
    reason = "A replay cannot start at this state: the execution is a child of a Map Run."
    assert reason in text(client.get(address))
    sent = {"name": "again", "input": "3"}
    assert reason in text(client.post(address, sent), 422)
    assert not Execution.objects.filter(name="again").exists()


@pytest.mark.postgres_too
def test_e18_a_map_run_in_an_express_child_is_found(
    project: Project, worker: Embedded, client: Client
) -> None:
    """Its parent is found by another ARN. Such a machine was stored before it was refused."""
    del worker
    inner = over(one("P", Type="Pass"))
    inner["States"]["Inner"] = inner["States"].pop("Each") | {"Label": "Inner"}
    inner["StartAt"] = "Inner"
    machine = create(project, over(one("P", Type="Pass"), "EXPRESS"))
    machine.definition.text = json.dumps(over(inner, "EXPRESS"))
    machine.definition.save()
    ended(start(machine, [[1, 2]], "x"))
    run = MapRun.objects.get(state_machine_arn__endswith="/Inner")
    answer = client.get(f"/arn/{run.arn}")
    assert client.get(answer["Location"]).status_code == 200
