"""Events are committed with the changes that they report, and only where a rule wants them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.models import EventRule, EventTarget, Execution, OutboxEvent
from console.store.events import outbox
from console.store.executions import redrive
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from tests.console.store.helpers import PASS, WAIT, create, drain, one, start

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from console.models import Project

FAIL = one("F", Type="Fail", Error="Broken", Cause="it is") | {}
FAIL["States"]["F"].pop("End")


def listen(
    project: Project, pattern: dict[str, Any] | None = None, *, forget: bool = True, **more: Any
) -> EventRule:
    """Make a rule with one target."""
    event_pattern = {"source": ["aws.states"]} if pattern is None else pattern
    name = more.pop("name", "rule")
    rule = EventRule.objects.create(
        project=project,
        region="us-east-1",
        name=name,
        arn=f"arn:aws:events:us-east-1:{project.account_id}:rule/{name}",
        pattern=json.dumps(event_pattern),
        created_ms=1,
        **more,
    )
    EventTarget.objects.create(rule=rule, target_id="1", address="https://example.com/hook")
    if forget:
        outbox.forget_rules()
    return rule


def told() -> list[tuple[str, str]]:
    """Return name and status of all events, in order."""
    bodies = OutboxEvent.objects.order_by("pk").values_list("body", flat=True)
    details = [json.loads(body)["detail"] for body in bodies]
    return [(detail["name"], detail["status"]) for detail in details]


def test_without_notifications_nothing_is_written(project: Project, settings: Settings) -> None:
    """Nobody would ever send what a server without them wrote."""
    settings.STATEYARD_FEATURES = tuple({*settings.STATEYARD_FEATURES} - {"notifications"})
    listen(project)
    start(create(project, PASS))
    settings.STATEYARD_FEATURES += ("notifications",)
    outbox.forget_rules()
    assert not OutboxEvent.objects.exists()
    start(create(project, PASS, "other"))
    assert OutboxEvent.objects.exists()


def test_without_a_rule_nothing_is_written(project: Project) -> None:
    """And whether there is one is not asked again: a rule made behind its back is not seen yet."""
    machine = create(project, PASS)
    drain(start(machine, name="first"))
    outbox.forget_rules()
    assert not outbox.has_rules(project.pk)
    listen(project, forget=False)
    start(machine, name="second")
    assert told() == []
    outbox.forget_rules()
    start(machine, name="third")
    assert told() == [("third", "RUNNING")]


def test_start_and_end_are_told(project: Project) -> None:
    """With the output, and the error of those that fail."""
    listen(project)
    drain(start(create(project, PASS), {"a": 1}, name="good"))
    drain(start(create(project, FAIL, "failing"), name="bad"))
    stop_execution(start(create(project, WAIT, "waiting"), name="stopped"), error="no")
    assert told() == [
        ("good", "RUNNING"),
        ("good", "SUCCEEDED"),
        ("bad", "RUNNING"),
        ("bad", "FAILED"),
        ("stopped", "RUNNING"),
        ("stopped", "ABORTED"),
    ]
    details = [json.loads(event.body)["detail"] for event in OutboxEvent.objects.order_by("pk")]
    assert details[1]["output"] == '{"a": 1}'
    assert (details[3]["error"], details[3]["cause"]) == ("Broken", "it is")


def test_an_execution_that_ends_where_it_is_born_is_told_twice(project: Project) -> None:
    """First RUNNING, then its end, though both are one transaction."""
    listen(project)
    start_execution(create(project, PASS), name="quick", ahead=True)
    assert told() == [("quick", "RUNNING"), ("quick", "SUCCEEDED")]


def test_a_redrive_is_told_as_running(project: Project) -> None:
    """With its count and date."""
    listen(project)
    failed = drain(start(create(project, FAIL), name="bad"))
    redrive.redrive_execution(failed)
    assert told()[-1] == ("bad", "RUNNING")
    last = json.loads(OutboxEvent.objects.latest("pk").body)["detail"]
    assert last["redriveStatus"] == "REDRIVE_IN_PROGRESS"
    assert last["redriveDate"] == Execution.objects.get(pk=failed.pk).redrive_ms


def test_what_is_rolled_back_is_not_told(project: Project) -> None:
    """The event goes with the transaction it tells of."""
    listen(project)
    machine = create(project, WAIT)
    start(machine, name="x")
    with pytest.raises(Exception, match="Already Exists"):
        start(machine, {"other": "input"}, name="x")
    assert told() == [("x", "RUNNING")]


def test_express_executions_are_told_only_where_the_operator_says(
    project: Project, settings: Any
) -> None:
    """AWS tells of none."""
    listen(project)
    machine = create(project, PASS)
    type(machine).objects.filter(pk=machine.pk).update(type="EXPRESS")
    machine.refresh_from_db()
    drain(start(machine, name="silent"))
    settings.STATEYARD_EXPRESS_EVENTS = True
    drain(start(machine, name="loud"))
    assert told() == [("loud", "RUNNING"), ("loud", "SUCCEEDED")]
