"""The pages mark the child executions of a Map Run that have faults."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.db import audit
from console.models import Execution, MapRun
from console.store.executions import faults
from console.store.machines.versions import Target
from tests.console.store.helpers import create, ended, function, one
from tests.features.faults.test_pages import FORM, shown

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project
    from console.worker import Embedded


@pytest.mark.postgres_too
@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_children_are_marked(project: Project, worker: Embedded, client: Client, kind: str) -> None:
    """On the page of the Map Run, on their own pages, in their exports; others are not."""
    del worker
    config = {"Mode": "DISTRIBUTED", "ExecutionType": kind}
    processor = {"ProcessorConfig": config, **one("Call", **function("work"))}
    definition = one("Each", Type="Map", Label="L", ItemProcessor=processor)
    broken = {"state": "Call", "error": "Broken"}
    document = {"faults": [broken], "seed": 7}
    target = Target(create(project, definition))
    execution = ended(faults.start_faulty(target, document, audit.Actor("ana"), input="[1]"))
    run = MapRun.objects.get()
    page = shown(client.get(f"/machines/machine/executions/{execution.name}/map-runs/{run.task}/"))
    assert page.count("Faults injected") == 1
    child = Execution.objects.get(map_run=run)
    own = f"/machines/machine~L/executions/{child.name}/"
    page = shown(client.get(own))
    assert "<b>Faults injected.</b> Call fails with Broken before its call" in page
    assert "attempt 1," in shown(client.get(f"{own}faults/"))
    exported = json.loads(b"".join(client.get(f"{own}export.json")))
    assert exported["execution"]["faults"]["faults"] == [{**broken, "type": "fail"}]
    assert [edit["state"] for edit in exported["edits"]] == ["Call"]


def test_the_start_form_offers_states_of_children(client: Client, project: Project) -> None:
    """For faults; a breakpoint there never stops."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    processor = {"ProcessorConfig": config, **one("Call", **function("work"))}
    create(project, one("Each", Type="Map", ItemProcessor=processor))
    page = shown(client.get(FORM))
    assert page.count('<option value="Call">') == 5
    assert page.count('<option value="Each">') == 10
    sent = {"input": "[1]", "name": "a", "fault_state": "Call", "fault_type": "fail"}
    fields = ("error", "cause", "when", "seconds", "children", "attempts", "rate")
    sent |= {f"fault_{field}": "" for field in fields} | {"fault_rate": "0.5", "fault_seed": "9"}
    assert client.post(FORM, sent).status_code == 302
    execution = Execution.objects.get(name="a")
    assert faults.planned_faults(execution) == (
        9,
        ["Call fails with States.TaskFailed before its call, at a rate of 0.5"],
    )
