"""Whoever has fixed a definition gets the fixed one: in a replay, a test and the editor."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console.features.replay import plans
from console.store.machines import machines
from tests.console.store.helpers import PASS, ROLE, create, drain, function, start
from tests.console.web.execution.test_root_cause import ORDERS
from tests.console.web.helpers import markup, page, text
from tests.features.test_state.test_scenario import answer

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project

BROKEN: dict[str, Any] = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Pass", "Next": "Pay"},
        "Pay": {**function("pay"), "End": True},
    },
}


@pytest.fixture
def failed(project: Project) -> Execution:
    """Return an execution whose second state failed."""
    return answer(drain(start(create(project, BROKEN), {"n": 1}, "x")), "Pay", ("Bad", "broke"))


def fix(execution: Execution, **states: Any) -> None:
    """Change the definition of its state machine."""
    machine = execution.state_machine
    assert machine is not None
    whole = {"StartAt": next(iter(states)), "States": states}
    machines.update_machine(machine, definition=json.dumps(whole))


def chosen_definition(client: Client, address: str) -> list[str]:
    """Return the values of a form's definitions, the preselected one first."""
    select = markup(client.get(address)).split('<select id="definition"')
    if len(select) == 1:
        return []
    options = re.findall(r'<option value="(\w*)"( selected)?', select[1].split("</select>")[0])
    return [value for value, _ in sorted(options, key=lambda option: not option[1])]


def test_the_current_definition_is_preselected(client: Client, failed: Execution) -> None:
    """Where it differs and has the state still; the old one can be chosen."""
    replay = page(failed, "replay/?step=Pay")
    test = f"/machines/machine/test/?state=Pay&origin={failed.name}&visit=1"
    assert chosen_definition(client, replay) == []
    assert chosen_definition(client, test) == []
    fix(failed, Pay={"Type": "Pass", "Result": "mended", "End": True})
    assert chosen_definition(client, replay) == ["changed", ""]
    assert chosen_definition(client, test) == ["changed", "original"]
    assert chosen_definition(client, f"{test}&definition=original") == ["original", "changed"]
    sent = {"origin": failed.name, "step": "Pay", "visit": "1", "state": "Pay", "mock": ""}
    shown = client.post("/machines/machine/test/", {**sent, "definition": "changed"})
    assert shown.context["tested"].answer["output"] == '"mended"'


def test_a_definition_without_the_state_is_not_offered(client: Client, failed: Execution) -> None:
    """The old one is all that can run there, and the page says why."""
    fix(failed, Other={"Type": "Succeed"})
    replay = page(failed, "replay/?step=Pay")
    assert chosen_definition(client, replay) == [""]
    assert "cannot start at<bdi>Pay</bdi>" in markup(client.get(replay))
    test = f"/machines/machine/test/?state=Pay&origin={failed.name}&visit=1"
    assert chosen_definition(client, test)[0] == "original"
    assert "has no state<bdi>Pay</bdi>" in markup(client.get(test))


def test_a_redrive_offers_the_replay(client: Client, failed: Execution) -> None:
    """A redrive runs the definition of the execution, as on AWS."""
    assert 'id="replay-instead"' not in text(client.get(page(failed, "redrive/")))
    fix(failed, Pay={"Type": "Pass", "Result": "mended", "End": True})
    shown = markup(client.get(page(failed, "redrive/")))
    assert f'{page(failed)}replay/?step=Pay">from' in shown
    fix(failed, Other={"Type": "Succeed"})
    assert 'id="replay-instead"' not in text(client.get(page(failed, "redrive/")))


def test_the_editor_opens_at_the_failed_state(
    project: Project, client: Client, failed: Execution
) -> None:
    """At the state whose error was caught, if that led to the end."""
    assert "/machines/machine/edit/?state=Pay" in text(client.get(page(failed)))
    shown = text(client.get("/machines/machine/edit/?state=Pay"))
    assert 'data-open="Pay"' in shown
    shown = markup(client.get("/machines/machine/edit/?state=Gone"))
    assert "no longer has the state<bdi>Gone</bdi>" in shown
    assert 'data-open="' not in shown
    led = drain(start(create(project, ORDERS, "orders"), name="led"))
    assert "/machines/orders/edit/?state=Connect" in text(client.get(page(led)))
    done = drain(start(create(project, PASS, "good"), name="done"))
    assert '/machines/good/edit/"' in text(client.get(page(done)))


def save(client: Client, failed: Execution, definition: dict[str, Any], **fields: str) -> str:
    """Save a definition in the editor of a failed execution; return where that leads."""
    edit = re.search(r'href="(/machines/[^"]*/edit/[^"]*)"', text(client.get(page(failed))))
    assert edit is not None
    address = html.unescape(edit[1])
    revision = re.search(r'name="revision" value="([^"]*)"', markup(client.get(address)))
    assert revision is not None
    sent = {"text": json.dumps(definition), "revision": revision[1], **fields}
    answer = client.post(address, {"role": ROLE, **sent})
    assert answer.status_code == 302, text(answer)
    return str(answer["Location"])


def offer(client: Client, address: str) -> str:
    """Return the banner that offers a replay, "" if there is none."""
    shown = text(client.get(address))
    return (
        shown.split('id="replay-offer"')[1].split("</section")[0] if "replay-offer" in shown else ""
    )


def with_pay(state: dict[str, Any]) -> dict[str, Any]:
    """Return the broken definition with another second state."""
    return {**BROKEN, "States": {**BROKEN["States"], "Pay": state}}


def test_a_save_offers_a_replay_of_the_failed_execution(client: Client, failed: Execution) -> None:
    """From the state that failed; the page of the definition offers none without a failure."""
    leads_to = save(client, failed, with_pay({"Type": "Pass", "Result": "mended", "End": True}))
    assert leads_to == f"/machines/machine/definition/?execution={failed.name}"
    assert f'{page(failed)}replay/?step=Pay"' in offer(client, leads_to)
    assert chosen_definition(client, page(failed, "replay/?step=Pay"))[0] == "changed"
    assert offer(client, "/machines/machine/definition/") == ""


def test_a_save_that_runs_starts_with_the_input_that_failed(
    client: Client, failed: Execution
) -> None:
    """*Save and run* leads to the start form of an execution like the failed one."""
    mended = with_pay({"Type": "Succeed"})
    leads_to = save(client, failed, mended, run="1")
    assert leads_to == f"/machines/machine/start/?origin={failed.name}"


@pytest.mark.parametrize(
    "mended",
    [BROKEN, {"StartAt": "First", "States": {"First": {"Type": "Succeed"}}}],
    ids=["the same", "without the state"],
)
def test_no_replay_is_offered_that_would_try_nothing_new(
    client: Client, failed: Execution, mended: dict[str, Any]
) -> None:
    """Then the input of the failed execution is offered."""
    shown = offer(client, save(client, failed, mended))
    assert "replay/" not in shown
    assert f"start/?origin={failed.name}" in shown


def test_a_replay_begins_at_the_outermost_state_around_a_failure(
    project: Project, client: Client
) -> None:
    """Whether its error was caught or ended the execution; a Fail state is never repeated."""
    bad = {"StartAt": "Bad", "States": {"Bad": {"Type": "Fail", "Error": "Broken"}}}
    inner = {
        "StartAt": "Inner",
        "States": {"Inner": {"Type": "Parallel", "Branches": [bad], "End": True}},
    }
    outer = {"Type": "Parallel", "Branches": [inner], "End": True}
    ended = drain(
        start(create(project, {"StartAt": "Outer", "States": {"Outer": outer}}, "nested"))
    )
    led = drain(start(create(project, ORDERS, "orders"), name="led"))
    only = drain(start(create(project, bad, "only"), name="only"))
    for execution, begins_at in ((ended, "Outer"), (led, "Charge card"), (only, None)):
        machine = execution.state_machine
        assert machine is not None
        whole = json.loads(machine.definition.text) | {"Comment": "mended"}
        machines.update_machine(machine, definition=json.dumps(whole))
        point = plans.replay_point(type(execution).objects.get(pk=execution.pk))
        assert (point.state if point else None) == begins_at


def test_a_definition_page_knows_the_execution_of_its_address(
    client: Client, failed: Execution
) -> None:
    """One that does not exist is not found, by the editor neither."""
    for view in ("definition", "edit"):
        assert client.get(f"/machines/machine/{view}/?execution={failed.name}").status_code == 200
        assert client.get(f"/machines/machine/{view}/?execution=other").status_code == 404
