"""An import runs again here: with its recorded answers up to the failing state, from there live."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.db.audit import NOBODY
from console.features.breakpoints.setting import put_allowed
from console.models import Execution, Membership, Project, StateMachine, TaskRow
from console.recordings.printed import read_printed
from console.store.executions import imports
from console.web.core.addresses import import_address
from tests.console.store.helpers import create, ended, types
from tests.console.web.helpers import text
from tests.features.test_state.scenarios.helpers import (
    ANSWERS,
    ORDERS,
    busy_once,
    call,
    changed,
    printed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

INPUT = {"total": 120, "items": [1, 2]}
FUNCTIONS = dict.fromkeys(("check", "approve", "pack", "ship"), f"{__name__}:live")


def live(event: Any, _: Any) -> Any:
    """Answer as nothing in a recording does."""
    return {"id": "live", "box": "live", "of": event}


def refuse_two(item: Any) -> Any:
    """Fail for the second item."""
    import engine

    if item == 2:
        raise engine.StatesError("Refused", "no box")
    return {"box": item}


FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:pay"


def take_no_card(_event: Any, *_context: Any) -> Any:
    """Fail."""
    import engine

    raise engine.StatesError("Refused", "no card")


def brought(project: Project, **answers: Any) -> Execution:
    """Import an execution of orders."""
    texts = printed(ORDERS, INPUT, {**ANSWERS, **answers})
    return imports.import_execution(project, read_printed(*texts.values()))


def address(execution: Execution) -> str:
    """Return the address of the page of an import."""
    return f"/machines/{import_address(execution)}/executions/{execution.name}/"


def reproduce(client: Client, execution: Execution, **fields: str) -> Execution:
    """Send the form; return the execution that it started."""
    sent = {"machine": "again", "calls": "live", **fields}
    answer = client.post(f"{address(execution)}reproduce/", sent)
    assert answer.status_code == 302, text(answer, answer.status_code)
    return Execution.objects.order_by("-pk")[0]


def refusal(client: Client, execution: Execution, **fields: str) -> str:
    """Send a form that is refused; return the page."""
    sent = {"machine": "again", "calls": "live", **fields}
    return text(client.post(f"{address(execution)}reproduce/", sent), 422)


def entered(execution: Execution) -> list[tuple[str, Any]]:
    """Return name and input of the entered states, in order."""
    rows = execution.historyevent_set.filter(type__endswith="StateEntered").order_by("event_id")
    details = [json.loads(row.details) for row in rows]
    return [(each["name"], json.loads(each["input"])) for each in details]


@pytest.mark.usefixtures("worker")
def test_recorded_answers_repeat_it(project: Project, client: Client, settings: Any) -> None:
    """The same states, inputs and output, a retried call and items included; nothing is called."""
    settings.STATEYARD_FUNCTIONS = FUNCTIONS
    imported = brought(project, Check=busy_once())
    assert "Reproduce</a>" in client.get(address(imported)).content.decode()
    again = ended(reproduce(client, imported, calls="recorded"))
    assert (again.status, again.output) == ("SUCCEEDED", imported.output)
    assert sorted(map(str, entered(again))) == sorted(map(str, entered(imported)))
    assert types(again).count("LambdaFunctionFailed") == 1
    assert again.state_machine is not None
    assert again.state_machine.definition_id == imported.definition_id
    shown = text(client.get(f"/machines/again/executions/{again.name}/"))
    assert "Calls up to its failing state are answered as recorded" in shown


@pytest.mark.usefixtures("worker")
def test_each_event_is_read_once(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer reads the events since the answer before, not the whole history."""
    from console.store.state import history_columns

    afters: dict[int, list[int]] = {}
    read_batch = history_columns.read_batch

    def noted(number: int, after: int = 0, *rest: int) -> Any:
        afters.setdefault(number, []).append(after)
        return read_batch(number, after, *rest)

    monkeypatch.setattr(history_columns, "read_batch", noted)
    imported = brought(project)
    again = ended(reproduce(client, imported, calls="recorded"))
    assert again.status == "SUCCEEDED"
    begins = afters[again.pk]
    assert begins == sorted(begins)
    assert begins.count(0) == 1
    assert len(begins) > 1


@pytest.mark.usefixtures("worker")
def test_the_failing_state_is_live(project: Project, client: Client, settings: Any) -> None:
    """Of two items the failed one is called here; what comes after it is, too."""
    settings.STATEYARD_FUNCTIONS = FUNCTIONS
    imported = brought(project, Pack=refuse_two)
    assert imported.error == "Refused"
    shown = text(client.get(f"{address(imported)}reproduce/"))
    assert "Recorded up to Pack, live from there" in shown
    assert "(iteration #1)" in shown
    again = ended(reproduce(client, imported))
    assert again.status == "SUCCEEDED"
    inputs = dict(entered(again))
    assert inputs["Ship"]["checked"] == "fine"  # recorded
    assert inputs["Ship"]["boxes"] == [{"box": 1}, {"box": "live"}]
    assert again.output == '{"shipped":"live"}'


@pytest.mark.postgres_too
@pytest.mark.usefixtures("worker")
def test_a_corrected_definition_is_tried(project: Project, client: Client, settings: Any) -> None:
    """The current definition of a state machine here; recorded answers fit its calls still."""
    settings.STATEYARD_FUNCTIONS = FUNCTIONS
    imported = brought(project, Ship=lambda _: {"no": "id"})
    assert imported.status == "FAILED"
    create(project, changed(ORDERS, "States/Done/Parameters", {"shipped": "now"}), "orders")
    again = ended(
        reproduce(client, imported, machine="orders", calls="recorded", definition="changed")
    )
    assert (again.status, again.output) == ("SUCCEEDED", '{"shipped":"now"}')
    assert StateMachine.objects.filter(name="orders").count() == 1


@pytest.mark.postgres_too
@pytest.mark.usefixtures("worker")
def test_it_begins_at_the_failing_state(project: Project, client: Client, settings: Any) -> None:
    """With the recorded input of the Map around it, and all calls live."""
    settings.STATEYARD_FUNCTIONS = FUNCTIONS
    imported = brought(project, Pack=refuse_two)
    again = ended(reproduce(client, imported, calls="state"))
    assert entered(again)[0] == ("Each", {**INPUT, "checked": "fine", "by": "ada"})
    assert dict(entered(again))["Ship"]["boxes"] == [{"box": "live"}, {"box": "live"}]


@pytest.mark.usefixtures("worker")
def test_it_stops_before_the_failing_state(project: Project, client: Client) -> None:
    """There its input can be edited; the calls before it were answered."""
    from tests.waiting import wait_until

    imported = brought(project, Approve=refuse)
    again = reproduce(client, imported, stop="on")
    rows = TaskRow.objects.filter(execution_id=again.pk, closed_ms__isnull=False)
    wait_until(lambda: rows.filter(state="Check").exists())
    wait_until(lambda: ("Approve", {**INPUT, "checked": "fine"}) in entered(again))
    assert not TaskRow.objects.filter(execution_id=again.pk, state="Approve").exists()


def refuse(_: Any) -> Any:
    """Fail."""
    import engine

    raise engine.StatesError("Refused", "not today")


@pytest.mark.usefixtures("worker")
def test_what_was_not_recorded_fails(project: Project, client: Client) -> None:
    """A call more than the import has, and any call once the import is gone."""
    imported = brought(project)
    create(project, changed(ORDERS, "States/Big?/Default", "Approve"), "orders")
    other = call("extra", Next="Big?", ResultPath="$.extra")
    more = changed(changed(ORDERS, "States/Extra", other), "States/Check/Next", "Extra")
    create(project, more, "more")
    again = ended(
        reproduce(client, imported, machine="more", calls="recorded", definition="changed")
    )
    assert again.cause == "The import has no answer to call 1 of Extra."
    imports.delete_import(project, imported.pk)
    lost = Execution.objects.get(pk=again.pk)
    from console.store.executions.recorded_answers import recorded_answer

    answer = recorded_answer(lost.pk, TaskRow.objects.filter(execution_id=lost.pk)[0].task)
    assert answer is not None
    assert answer.cause == "The import of this reproduction was deleted."


def test_the_import_of_another_project_is_none(project: Project) -> None:
    """A mock configuration may have a test case of such a name: it answers nothing."""
    from console.store.executions.recorded_answers import recorded_answer
    from console.store.executions.start import start_execution
    from tests.console.store.helpers import drain

    other = Project.objects.create(name="other", account_id="222222222222")
    imported = brought(other)
    machine = create(project, ORDERS)
    started = start_execution(machine, input=json.dumps(INPUT), test_case=f"import:{imported.pk}:0")
    drain(started)
    answer = recorded_answer(started.pk, TaskRow.objects.get(execution_id=started.pk).task)
    assert answer is not None
    assert answer.output is None


def test_bad_forms_are_refused(project: Project, client: Client) -> None:
    """Each in a sentence; nothing starts."""
    imported = brought(project)
    failed = brought(project, Pack=refuse_two)
    assert "Choose what the calls do." in refusal(client, failed, calls="all")
    assert "only recorded calls repeat it" in refusal(client, imported)
    assert "nvalid" in refusal(client, failed, machine="a b<")
    assert "nvalid" in refusal(client, failed, machine="")
    assert "Choose one of the two definitions." in refusal(client, failed, definition="x")
    assert not Execution.objects.exists()
    assert not StateMachine.objects.exists()


def test_a_refusal_creates_no_state_machine(project: Project, client: Client) -> None:
    """The owners forbid breakpoints, and the form was sent with one."""
    failed = brought(project, Pack=refuse_two)
    put_allowed(project, NOBODY, allowed=False)
    assert "You cannot set breakpoints here." in refusal(client, failed, stop="on")
    assert not StateMachine.objects.exists()


@pytest.mark.usefixtures("worker")
def test_an_import_without_payloads_answers_nothing(project: Project, client: Client) -> None:
    """The AWS CLI leaves them out with ``--no-include-execution-data``."""
    texts = printed(ORDERS, INPUT, ANSWERS)
    history = json.loads(texts["history"])
    for event in history["events"]:
        for details in event.values():
            if isinstance(details, dict):
                details.pop("output", None)
    parsed = read_printed(json.dumps(history), texts["machine"], texts["execution"])
    imported = imports.import_execution(project, parsed)
    again = ended(reproduce(client, imported, calls="recorded"))
    assert again.cause == "The import was recorded without its payloads."


def with_map_run(project: Project, **answers: Any) -> Execution:
    """Import an execution with a distributed Map."""
    apart = changed(
        ORDERS,
        "States/Each/ItemProcessor/ProcessorConfig",
        {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    )
    texts = printed(ORDERS, INPUT, {**ANSWERS, **answers})
    history = json.loads(texts["history"])
    started = next(each for each in history["events"] if each["type"] == "MapStateStarted")
    number = started["id"]
    for event in history["events"]:
        for key in ("id", "previousEventId"):
            event[key] += event[key] > number
    run = {"type": "MapRunStarted", "id": number + 1, "previousEventId": number}
    details = {"mapRunStartedEventDetails": {"mapRunArn": "arn:aws:states:::mapRun:m:1"}}
    history["events"].append({**run, **details, "timestamp": started["timestamp"]})
    machine = json.dumps({**json.loads(texts["machine"]), "definition": json.dumps(apart)})
    parsed = read_printed(json.dumps(history), machine, texts["execution"])
    return imports.import_execution(project, parsed)


def test_a_distributed_map_before_it_is_refused(project: Project, client: Client) -> None:
    """Its items have imports of their own, so the execution begins at the failing state."""
    imported = with_map_run(project, Ship=refuse)
    assert "Each is a distributed Map" in refusal(client, imported)
    assert "Recorded up to" not in text(client.get(f"{address(imported)}reproduce/"))


def test_a_success_with_a_distributed_map_has_no_form(project: Project, client: Client) -> None:
    """No choice would be left; the page says why."""
    page = client.get(f"{address(with_map_run(project))}reproduce/")
    assert "Each is a distributed Map" in text(page)
    assert b'name="calls"' not in page.content


@pytest.mark.postgres_too
def test_only_who_may_start(project: Project, client: Client) -> None:
    """A viewer gets no form, an operator creates no state machine; ours are not reproduced."""
    imported = brought(project, Pack=refuse_two)
    Membership.objects.update(role="operator")
    assert "your role cannot create one" in refusal(client, imported)
    Membership.objects.update(role="viewer")
    assert client.get(f"{address(imported)}reproduce/").status_code == 403
    assert "Reproduce</a>" not in client.get(address(imported)).content.decode()


def test_a_hidden_value_stays_hidden(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """A state has it under another path: an execution that begins there would show it."""
    states: dict[str, Any] = {
        "Take": {"Type": "Pass", "Parameters": {"number.$": "$.card"}, "Next": "Pay"},
        "Pay": {"Type": "Task", "Resource": FUNCTION, "End": True},
    }
    texts = printed(
        {"StartAt": "Take", "States": states}, {"card": "4242 4242"}, {"Pay": take_no_card}
    )
    imported = imports.import_execution(project, read_printed(*texts.values()))
    Project.objects.filter(pk=project.pk).update(masked="$.card")
    shown = refusal(client, imported, calls="state")
    assert "The input has values that the project masks at another path" in shown
    assert "4242" not in shown
    again = reproduce(client, imported, calls="recorded")
    assert again.input == '{"card": "4242 4242"}'
    viewer = signed_in("viewer")
    assert "4242" not in text(viewer.get(f"/machines/again/executions/{again.name}/?step=Pay"))
    Project.objects.filter(pk=project.pk).update(masked="$.card\n$.number")
    again = reproduce(client, imported, calls="state")
    assert again.input == '{"number":"4242 4242"}'
    assert "4242" not in text(viewer.get(f"/machines/again/executions/{again.name}/"))
