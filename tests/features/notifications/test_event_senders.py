"""Who put an event is known: in its row, in what a rule starts for it, and in the audit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import execution_rights
from console.db.audit import Actor
from console.features.audit.views import audit_row
from console.features.notifications.store import deliveries, manual_events, routing, rules
from console.features.notifications.store.scheduler import (
    ScheduleKey,
    ScheduleSettings,
    create_schedule,
)
from console.models import AuditEntry, EventRule, Execution, OutboxEvent
from tests.console.store.helpers import PASS, REGION, ROLE, create, drain, start
from tests.features.notifications.relay import carry_all, rule_to
from tests.features.notifications.test_event_actions import ENTRY, ask

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

ORDERS = json.dumps({"source": ["shop"]})


def routed() -> None:
    """Route and deliver all there is."""
    while routing.route_events():
        pass
    carry_all()


@pytest.mark.postgres_too
def test_the_sender_is_in_the_row_the_execution_and_the_audit(
    project: Project, signed_in: Any
) -> None:
    """Once for each rule that matched; an event that nobody waits for leaves no entry."""
    machine = create(project, PASS)
    rule = rule_to(project, machine.arn, pattern=ORDERS)
    entries = [ENTRY, ENTRY | {"Source": "other"}]
    ask(project, "PutEvents", "operator", Entries=entries)
    assert list(OutboxEvent.objects.values_list("sent_by", flat=True)) == ["operator"] * 2
    routed()
    execution = drain(Execution.objects.get())
    assert execution.started_by == "rule rule, by an event of operator"
    entry = AuditEntry.objects.get(action="events:PutEvents")
    sent = OutboxEvent.objects.get(sent_by="operator")
    assert (entry.actor, entry.target, entry.reason) == (
        "operator",
        rule.arn,
        f"event {sent.event_id}",
    )
    begun = audit_row(AuditEntry.objects.get(action="StartExecution"))
    assert (begun.rule, begun.origin) == ("rule", "Server")
    viewer: Client = signed_in("viewer")
    page = viewer.get(f"/machines/machine/executions/{execution.name}/").content.decode()
    assert "by an event of operator" in page
    shown = viewer.get("/executions/", {"by": "rule rule"}).content.decode()
    assert execution.name in shown


@pytest.mark.postgres_too
def test_the_rights_are_those_of_the_rule(project: Project) -> None:
    """A sender gives an execution none of theirs."""
    machine = create(project, PASS)
    rule_to(project, machine.arn, pattern=ORDERS)
    EventRule.objects.update(edited_by='["ed"]')
    ask(project, "PutEvents", "operator", Entries=[ENTRY])
    routed()
    assert execution_rights.starters_of(Execution.objects.get()) == ("ed",)


@pytest.mark.postgres_too
def test_what_is_done_by_hand_names_the_person(project: Project) -> None:
    """A schedule that is run now, and a test of a target; one that fires by itself names nobody."""
    machine = create(project, PASS)
    rules.put_rule(project, REGION, "every", schedule="rate(1 minute)")
    rules.put_targets(project, REGION, "every", [{"Id": "1", "Arn": machine.arn}])
    rule = EventRule.objects.get()
    manual_events.run_schedule(rule, Actor("ana"))
    manual_events.send_test(rule, "1", Actor("ben"))
    EventRule.objects.update(next_ms=1)
    deliveries.fire_due()
    key = ScheduleKey(project, REGION, "default", "nightly")
    settings = ScheduleSettings("rate(1 hour)", {"Arn": machine.arn, "RoleArn": ROLE})
    manual_events.run_schedule(create_schedule(key, settings), Actor("ana"))
    carry_all()
    assert sorted(Execution.objects.values_list("started_by", flat=True)) == [
        "rule every",
        "rule every, by an event of ana",
        "rule every, by an event of ben",
        "schedule default/nightly, by an event of ana",
    ]
    last = AuditEntry.objects.filter(action="StartExecution", actor__startswith="schedule").get()
    assert audit_row(last).schedule == ("default", "nightly")


def test_a_rule_goes_round_whoever_put_the_event(project: Project) -> None:
    """An execution that it started for a person's event is its own, too."""
    machine = create(project, PASS)
    rule_to(project, machine.arn, pattern=ORDERS)
    ask(project, "PutEvents", "operator", Entries=[ENTRY])
    routed()
    first = Execution.objects.get()
    ask(project, "PutEvents", "operator", Entries=[ENTRY | {"Resources": [first.arn]}])
    routed()
    assert Execution.objects.count() == 1
    drain(start(machine))
    assert Execution.objects.count() == 2


def test_a_long_sender_is_cut_and_the_rule_is_not() -> None:
    """An execution of a rule is found by all that stands before the sender."""
    name = f"rule {'r' * 64}"
    started_by = execution_rights.name_with_sender(name, "s" * 150)
    assert started_by.startswith(name + execution_rights.BY_EVENT + "s")
    assert len(started_by) == 150
    longest = f"schedule {'g' * 64}/{'n' * 64}"
    assert execution_rights.name_with_sender(longest, "ana") == longest
