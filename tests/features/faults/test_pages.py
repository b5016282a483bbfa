"""The pages mark an execution with faults, and say which of them struck."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit
from console.errors import ValidationException
from console.models import Execution
from console.recordings.printed import read_printed
from console.store.executions import faults, imports
from console.store.executions.outcome_steps import step_ahead
from console.store.machines.versions import Target
from console.store.tasks import activities, claim, complete
from console.web.core.addresses import import_address
from tests.console.store.helpers import ACTIVITY, REGION, WORK, create, drain, function, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

RUN = "/machines/machine/executions/run/"
DEFINITION = {
    "StartAt": "Call",
    "States": {
        "Call": {
            **function("work"),
            "Catch": [{"ErrorEquals": ["Busy"], "Next": "Done"}],
            "Next": "Done",
        },
        "Done": {"Type": "Pass", "End": True},
    },
}
BUSY = {"state": "Call", "error": "Busy", "attempts": [1]}


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution that a fault has struck."""
    document = {"faults": [BUSY], "seed": 7}
    target = Target(create(project, DEFINITION))
    return drain(faults.start_faulty(target, document, audit.Actor("ana"), name="run"))


def shown(answer: Any) -> str:
    """Return the text of a page, with single blanks."""
    return " ".join(answer.content.decode().split())


def test_the_execution_is_marked(client: Client, execution: Execution) -> None:
    """By a banner on its page, in the panel of the state, in the list, in its export."""
    assert execution.status == "SUCCEEDED"
    page = shown(client.get(RUN))
    assert "<b>Faults injected.</b> Call fails with Busy before its call at attempt 1" in page
    assert "(seed 7)" in page
    assert f'href="{RUN}faults/"' in page
    panel = shown(client.get(f"{RUN}?step=Call"))
    assert "<b>Fault injected</b> at attempt 1: Call fails with Busy before its call." in panel
    assert "<b>Fault injected</b>" not in shown(client.get(f"{RUN}?step=Done"))
    for by_script in ("_step?step=Call", "_at?at=9&step=Call"):
        assert "<b>Fault injected</b> at attempt 1" in shown(client.get(f"{RUN}{by_script}"))
    assert "Changes at breakpoints" not in page + panel
    assert "Changes at breakpoints" not in shown(client.get(f"{RUN}breakpoints/"))
    assert "Faults injected" in shown(client.get("/executions/"))
    exported = json.loads(b"".join(client.get(f"{RUN}export.json")))
    assert exported["execution"]["faults"] == {"seed": 7, "faults": [{**BUSY, "type": "fail"}]}


def test_the_page_of_faults(client: Client, execution: Execution) -> None:
    """It has the faults, the seed and the strikes."""
    page = shown(client.get(f"{RUN}faults/"))
    assert "<li>Call fails with Busy before its call at attempt 1</li>" in page
    assert "Seed 7" in page
    assert "attempt 1," in page
    assert "Redrives and replays run without faults" in page
    assert client.post(f"{RUN}faults/").status_code == 405


def test_a_replaced_result_is_masked(client: Client, project: Project) -> None:
    """As the payloads of the execution are."""
    project.masked = "$.card"
    project.save()
    call = {**WORK["States"]["A"], "Catch": DEFINITION["States"]["Call"]["Catch"]}
    activities.create_activity(project, REGION, "work")
    definition = {"StartAt": "Call", "States": {**DEFINITION["States"], "Call": call}}
    document = [{**BUSY, "when": "after"}]
    target = Target(create(project, definition))
    drain(faults.start_faulty(target, document, audit.Actor("ana"), name="run"))
    work = claim.take_activity_task(ACTIVITY, "w1")
    assert work is not None
    complete.pending_success(
        work.token, '{"card": "secret-4711", "kept": 1}', None, step_ahead
    ).result()
    page = shown(client.get(f"{RUN}faults/"))
    assert "Replaced result" in page
    assert "kept" in page
    assert "secret-4711" not in page


def test_replay_and_redrive_say_that_they_have_no_faults(
    client: Client, project: Project, execution: Execution
) -> None:
    """The redrive page only if it can be redriven."""
    assert "The replay has no injected faults." in shown(client.get(f"{RUN}replay/?step=Call"))
    document = {"faults": [{**BUSY, "error": "Broken"}], "seed": 7}
    machine = execution.state_machine
    assert machine is not None
    target = Target(machine)
    drain(faults.start_faulty(target, document, audit.Actor("ana"), name="bad"))
    page = shown(client.get("/machines/machine/executions/bad/redrive/"))
    assert "Its injected faults are not injected again." in page


def test_nothing_is_marked_without_faults(client: Client, project: Project) -> None:
    """The page of faults says how to inject some."""
    drain(start(create(project, DEFINITION), name="run"))
    assert "Faults injected" not in shown(client.get(RUN)) + shown(client.get("/executions/"))
    page = shown(client.get(f"{RUN}faults/"))
    assert "No faults are injected into this execution." in page
    assert "--fault FILE.yaml" in page


def export_of(client: Client, address: str = RUN) -> dict[str, Any]:
    """Return the export of an execution."""
    exported: dict[str, Any] = json.loads(b"".join(client.get(f"{address}export.json")))
    return exported


def test_an_import_shows_the_faults(client: Client, project: Project, execution: Execution) -> None:
    """Its page, its panel, its page of faults and its own export, as those of the original."""
    original = export_of(client)
    printed = read_printed(json.dumps(original), json.dumps(DEFINITION))
    imported = imports.import_execution(project, printed)
    address = f"/machines/{import_address(imported)}/executions/{imported.name}/"
    page = shown(client.get(address))
    assert "<b>Faults injected.</b> Call fails with Busy before its call at attempt 1" in page
    assert "<b>Fault injected</b> at attempt 1" in shown(client.get(f"{address}?step=Call"))
    assert "Call fails with Busy before its call" in shown(client.get(f"{address}faults/"))
    again = export_of(client, address)
    assert again["execution"]["faults"] == original["execution"]["faults"]
    assert again["edits"] == original["edits"]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"faults": [BUSY]}, "wanted an integer seed"),
        ({"seed": 1}, "wanted an object with faults and seed"),
        ({"seed": 1, "faults": [{"state": "Call", "type": "explode"}]}, "got 'explode'"),
        ({"seed": 1, "faults": [{"state": "Call", "rate": "x"}]}, "faults[0].rate: got 'x'"),
        ({"seed": 1, "faults": [BUSY] * 51}, "at most 50 faults"),
    ],
)
def test_an_import_refuses_faults(
    client: Client, execution: Execution, changed: Any, problem: str
) -> None:
    """In words: a page could not show them."""
    assert execution.faults
    export = export_of(client)
    export["execution"]["faults"] = changed
    with pytest.raises(ValidationException) as refused:
        read_printed(json.dumps(export), json.dumps(DEFINITION))
    assert refused.value.message.startswith("The history: “faults”: ")
    assert problem in refused.value.message


@pytest.mark.parametrize(
    "after", ["{", "1", "{}", '{"attempt": true}', '{"attempt": 1, "type": 2}']
)
def test_an_import_refuses_strikes(client: Client, execution: Execution, after: str) -> None:
    """The note of a fault that struck has the fault and its attempt."""
    assert execution.faults
    export = export_of(client)
    export["edits"][0]["after"] = after
    with pytest.raises(ValidationException, match="The history: “edits”: "):
        read_printed(json.dumps(export), json.dumps(DEFINITION))


def test_a_comparison_names_the_faults(
    client: Client, project: Project, execution: Execution
) -> None:
    """Of the side that has some."""
    assert execution.state_machine is not None
    other = drain(start(execution.state_machine, {}, name="other"))
    address = "/compare/"
    page = shown(client.get(address, {"a": execution.arn, "b": other.arn}))
    assert page.count("Faults injected.") == 1
    assert "Call fails with Busy before its call at attempt 1." in page


FORM = "/machines/machine/start/"


def test_the_start_form_injects_faults(client: Client, project: Project) -> None:
    """By state, type and attempt; rows without a state count for nothing."""
    create(project, DEFINITION)
    assert 'name="fault_state"' in shown(client.get(FORM))
    fields = {
        "name": "run",
        "input": "{}",
        "fault_state": ["Call", "", "Call"],
        "fault_type": ["fail", "fail", "latency"],
        "fault_error": ["Busy", "", ""],
        "fault_seconds": ["", "", "2"],
        "fault_attempts": ["1, 3", "", ""],
        "fault_rate": ["", "", "0.5"],
        "fault_seed": "7",
    }
    assert client.post(FORM, fields).status_code == 302
    execution = Execution.objects.get(name="run")
    assert faults.planned_faults(execution) == (
        7,
        [
            "Call fails with Busy before its call at attempts 1, 3",
            "Call is called 2 s later, at a rate of 0.5",
        ],
    )


MAP = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemProcessor": {
                "StartAt": "Call",
                "States": {"Call": {**function("work"), "End": True}},
            },
            "End": True,
        }
    },
}


def test_the_start_form_has_every_field_of_a_file(client: Client, project: Project) -> None:
    """Failing iterations, a cause, and an error in place of the outcome of a call."""
    create(project, MAP)
    fields = {
        "name": "run",
        "input": "[1, 2, 3]",
        "fault_state": ["Each", "Call"],
        "fault_type": ["fail-children", "fail"],
        "fault_error": ["", "Busy"],
        "fault_cause": ["", "too many"],
        "fault_when": ["before", "after"],
        "fault_children": ["2", ""],
        "fault_seed": "7",
    }
    assert client.post(FORM, fields).status_code == 302
    stored = json.loads(Execution.objects.get(name="run").faults or "")
    assert stored["faults"] == [
        {"state": "Each", "type": "fail-children", "children": 2},
        {"state": "Call", "type": "fail", "error": "Busy", "cause": "too many", "when": "after"},
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"fault_state": "Call", "fault_type": "fail-children"}, "got Call, a Task, wanted a Map"),
        ({"fault_state": "Call", "fault_when": "never"}, "wanted before or after"),
        (
            {"fault_state": "Call", "fault_type": "latency", "fault_when": "after"},
            "got &#x27;when&#x27;",
        ),
        ({"fault_state": "Call", "fault_children": "x"}, "The number of iterations must be a"),
        ({"fault_cause": "too many"}, "Fault 1: select a state."),
        ({"fault_state": "Done"}, "got Done, a Pass, wanted a Task or Parallel or Map"),
        ({"fault_state": "Nope"}, "got the state &#x27;Nope&#x27;"),
        ({"fault_state": "Call", "fault_type": "latency"}, "faults[0].seconds: got 0"),
        (
            {"fault_state": "Call", "fault_type": "timeout", "fault_error": "E"},
            "got &#x27;error&#x27;",
        ),
        (
            {"fault_state": "Call", "fault_attempts": "1,x"},
            "The attempts must be a whole number, not &#x27;x&#x27;",
        ),
        ({"fault_state": "Call", "fault_rate": "nan"}, "rate: got nan"),
        ({"fault_error": "Busy"}, "Fault 1: select a state."),
        ({"fault_seed": "3"}, "The seed has no fault"),
    ],
)
def test_the_start_form_refuses_faults(
    client: Client, project: Project, fields: dict[str, str], words: str
) -> None:
    """In words, with what was typed; nothing starts."""
    create(project, DEFINITION)
    answer = client.post(FORM, {"name": "run", "input": "{}", **fields})
    assert answer.status_code == 422
    assert words in shown(answer)
    typed = (
        fields.get("fault_error")
        or fields.get("fault_cause")
        or fields.get("fault_attempts")
        or fields.get("fault_seed")
    )
    assert typed is None or f'value="{typed}"' in shown(answer)
    assert not Execution.objects.exists()


def test_operators_start_without_faults(
    signed_in: Callable[[str], Client], project: Project
) -> None:
    """The form has no such fields, and a request with them is refused."""
    create(project, DEFINITION)
    operator = signed_in("operator")
    assert 'name="fault_state"' not in shown(operator.get(FORM))
    answer = operator.post(FORM, {"name": "run", "input": "{}", "fault_state": "Call"})
    assert answer.status_code == 422
    assert "Only editors and owners inject faults." in shown(answer)
    assert not Execution.objects.exists()
