"""Events become deliveries to the targets of the rules that match them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.notifications.store import routing
from console.models import Delivery, EventTarget
from tests.console.store.events.test_outbox import listen, told
from tests.console.store.helpers import PASS, create, drain, start

if TYPE_CHECKING:
    from console.models import Project


def test_routing_writes_one_delivery_a_target(project: Project) -> None:
    """Of the rules that match, once; what nobody waits for is removed."""
    rule = listen(project, {"detail": {"status": ["SUCCEEDED"]}})
    EventTarget.objects.create(rule=rule, target_id="2", address="mailto:a@example.com")
    listen(project, {"detail": {"status": ["FAILED"]}}, name="other")
    drain(start(create(project, PASS), name="x"))
    assert not routing.route_events()
    routing.route_events()
    assert told() == [("x", "SUCCEEDED")]
    assert list(Delivery.objects.values_list("target__rule__name", "status")) == [
        ("rule", "waiting"),
        ("rule", "waiting"),
    ]


def test_another_projects_rule_and_a_disabled_one_get_nothing(project: Project) -> None:
    """Whatever their patterns say."""
    from console.models import Project as Projects

    other = Projects.objects.create(name="other", account_id="999999999999")
    listen(other)
    listen(project, state="DISABLED", name="off")
    start(create(project, PASS), name="x")
    listen(project, {"source": ["my.app"]}, name="on")
    drain(start(create(project, PASS), name="y"))
    routing.route_events()
    assert Delivery.objects.count() == 0
    assert told() == []
