"""A caught error that ends in a Fail state is named wherever its end is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.models import Timer
from console.web.execution.root_cause import root_cause_of
from tests.console.store.helpers import create, drain, function, start
from tests.console.web.helpers import page, text
from tests.features.test_state.test_scenario import answer

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

CONNECT = {
    "StartAt": "Connect",
    "States": {"Connect": {"Type": "Fail", "Error": "ConnectionError"}},
}
CHARGE: dict[str, Any] = {
    "Type": "Parallel",
    "Branches": [CONNECT],
    "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Release", "ResultPath": "$.error"}],
    "Next": "Ship",
}
ORDERS: dict[str, Any] = {
    "StartAt": "Charge card",
    "States": {
        "Charge card": CHARGE,
        "Release": {"Type": "Pass", "Next": "Rejected"},
        "Rejected": {"Type": "Fail", "Error": "OrderRejected"},
        "Ship": {"Type": "Succeed"},
    },
}
LED = "ConnectionError at Connect, caught by Charge card"


def with_states(**states: Any) -> dict[str, Any]:
    """Return the machine with other states."""
    return {**ORDERS, "States": {**ORDERS["States"], **states}}


def test_banner_groups_compare_and_redrive_name_it(project: Project, client: Client) -> None:
    """All of them say what was caught, and where."""
    failed = drain(start(create(project, ORDERS)))
    assert failed.status == "FAILED"
    shown = text(client.get(page(failed)))
    banner = " ".join(shown.split('id="root-cause"')[1].split("</p>")[0].split())
    assert "Caused by <b><bdi>ConnectionError</bdi></b>" in banner
    assert "step=Charge+card" in banner
    assert "step=Connect" in banner
    assert "caught by <a" in banner
    assert LED in text(client.get("/failures/"))
    assert LED in text(client.get(f"/compare/?a={failed.arn}&b={drain_other(project).arn}"))
    redrive = text(client.get(page(failed, "redrive/")))
    assert "Only a Fail state would run again" in redrive
    assert LED in redrive
    assert "replay/?step=Charge%20card&visit=1" in redrive


def drain_other(project: Project) -> Any:
    """Return another execution that has ended."""
    return drain(start(create(project, {**CONNECT}, "other")))


def test_an_error_that_was_recovered_from_is_not_blamed(project: Project) -> None:
    """The Choice after the handler is on the usual way, too: the end may have other reasons."""
    states = with_states(
        **{
            "Charge card": {**CHARGE, "Next": "Decide"},
            "Release": {"Type": "Pass", "Next": "Decide"},
            "Decide": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.x", "IsPresent": True, "Next": "Ship"}],
                "Default": "Rejected",
            },
        }
    )
    assert root_cause_of(drain(start(create(project, states)))) is None


def test_a_choice_of_the_handler_keeps_the_blame(project: Project) -> None:
    """It is only reached by catching the error, so nothing else led to the end."""
    decide = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.x", "IsPresent": True, "Next": "Ship"}],
        "Default": "Rejected",
    }
    states = with_states(Release={"Type": "Pass", "Next": "Decide"}, Decide=decide)
    root = root_cause_of(drain(start(create(project, states))))
    assert root is not None
    assert root.text == LED


def test_a_failure_that_nothing_caught_has_no_other_cause(project: Project, client: Client) -> None:
    """Neither a plain failure nor a caught error that ended well."""
    failed = drain(start(create(project, CONNECT)))
    assert root_cause_of(failed) is None
    assert "Caused by" not in text(client.get(page(failed)))
    ends_well = with_states(Release={"Type": "Pass", "Next": "Ship"})
    del ends_well["States"]["Rejected"]
    assert root_cause_of(drain(start(create(project, ends_well, "well")))) is None


def test_inside_a_map_the_error_of_that_iteration_is_named(project: Project) -> None:
    """The iteration that ended the Map, and no other one that caught something."""
    ok = {"Variable": "$.fine", "BooleanEquals": True, "Next": "Good"}
    inner = {
        "StartAt": "Fine?",
        "States": {
            "Fine?": {"Type": "Choice", "Choices": [ok], "Default": "Charge card"},
            "Good": {"Type": "Pass", "End": True},
            **ORDERS["States"],
        },
    }
    each = {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": inner, "End": True}
    machine = create(project, {"StartAt": "Each", "States": {"Each": each}})
    failed = drain(start(machine, [{"fine": True}, {"fine": False}]))
    root = root_cause_of(failed)
    assert root is not None
    assert (root.at.state, root.at.iteration) == ("Charge card", "1")


def test_a_redrive_of_real_work_has_no_warning(project: Project, client: Client) -> None:
    """The branch would fail again, but what is around it may retry."""
    charge = {**CHARGE, "Catch": [{"ErrorEquals": ["Other"], "Next": "Release"}]}
    failed = drain(start(create(project, with_states(**{"Charge card": charge}))))
    shown = text(client.get(page(failed, "redrive/")))
    assert "run again" in shown
    assert "Only a Fail state" not in shown


def test_a_map_names_the_iteration_and_the_attempts_of_what_failed(project: Project) -> None:
    """The Map only caught it: who looks for the reason wants the state inside of it."""
    inner = {
        "StartAt": "Fine?",
        "States": {
            "Fine?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "NumericLessThan": 2, "Next": "Good"}],
                "Default": "Connect",
            },
            "Good": {"Type": "Pass", "End": True},
            "Connect": {"Type": "Fail", "Error": "ConnectionError"},
        },
    }
    each = {**CHARGE, "Type": "Map", "ItemsPath": "$.items", "ItemProcessor": inner}
    del each["Branches"]
    machine = create(project, with_states(**{"Charge card": {**each, "Next": "Ship"}}))
    failed = drain(start(machine, {"items": [0, 1, 2]}))
    root = root_cause_of(failed)
    assert root is not None
    assert root.inside is not None
    assert root.text == "ConnectionError at Connect (iteration #2), caught by Charge card"


def test_a_task_that_caught_its_own_error_is_named_alone(project: Project, client: Client) -> None:
    """With its attempts."""
    retry = [{"ErrorEquals": ["ConnectionError"], "MaxAttempts": 1, "IntervalSeconds": 1}]
    task = {**function("charge"), "Retry": retry, "Catch": CHARGE["Catch"], "Next": "Ship"}
    execution = drain(start(create(project, with_states(**{"Charge card": task}))))
    answer(execution, "Charge card", ("ConnectionError", "no route"))
    Timer.objects.update(due_ms=0)
    drain(execution)
    failed = answer(execution, "Charge card", ("ConnectionError", "no route"))
    root = root_cause_of(failed)
    assert root is not None
    assert root.text == "ConnectionError at Charge card (caught, 2 attempts)"
    banner = text(client.get(page(failed))).split('id="root-cause"')[1].split("</p>")[0]
    assert "(caught, 2 attempts)" in banner
