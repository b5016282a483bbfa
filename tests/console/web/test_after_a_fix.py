"""Whoever has fixed a definition gets the fixed one: in a replay, a test and the editor."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console.store.machines import machines
from tests.console.store.helpers import PASS, create, drain, function, start
from tests.console.web.helpers import markup, page, text
from tests.console.web.test_root_cause import ORDERS
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
    assert "cannot begin in the state<bdi>Pay</bdi>" in markup(client.get(replay))
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
