"""All schedules of a project stand still, and resume without a burst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.db.audit import Actor
from console.errors import ConflictException
from console.features.notifications.store import (
    deliveries,
    manual_events,
    routing,
    rules,
    schedule_pause,
    scheduler,
)
from console.models import AuditEntry, Delivery, EventRule, OutboxEvent, SchedulePause
from console.store.state.late_schedules import start_delays
from tests.console.store.helpers import PASS, ROLE, create, drain, start
from tests.console.web.helpers import text
from tests.features.notifications.relay import REGION, SUCCEEDED, carry_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project
    from tests.console.transition_rates import Clock

ANA = Actor("ana")
HOUR_S = 3600


@pytest.fixture
def machine(project: Project) -> str:
    """Return the ARN of a state machine for schedules to start."""
    return create(project, PASS).arn


def schedule_of(project: Project, machine: str, **settings: Any) -> EventRule:
    """Create a schedule of EventBridge Scheduler that is due every hour from now on."""
    key = scheduler.ScheduleKey(project, REGION, "default", f"s{EventRule.objects.count()}")
    target = {"Arn": machine, "RoleArn": ROLE}
    return scheduler.create_schedule(
        key, scheduler.ScheduleSettings("rate(1 hour)", target, **settings)
    )


def rule_of(project: Project, machine: str, name: str, **fields: Any) -> EventRule:
    """Create a rule of the event bus that starts a machine."""
    created = rules.put_rule(project, REGION, name, **fields)
    rules.put_targets(project, REGION, name, [{"Id": "1", "Arn": machine}])
    return created


def test_moments_of_a_pause_are_skipped(project: Project, machine: str, now: Clock) -> None:
    """A resume starts nothing in a burst; each schedule goes on with its next moment."""
    schedule_of(project, machine)
    rule_of(project, machine, "tick", schedule="rate(1 hour)")
    while deliveries.fire_due():
        pass
    carry_all()
    sent = Delivery.objects.count()
    schedule_pause.pause_schedules(project, ANA, "look")
    for _ in range(5):
        now.later(HOUR_S)
        while deliveries.fire_due():
            pass
    assert Delivery.objects.count() == sent
    assert not start_delays(now.now_ms)
    assert schedule_pause.resume_schedules(project, ANA) == 0
    assert deliveries.fire_due() == 0
    now.later(HOUR_S)
    assert deliveries.fire_due() == 2
    assert Delivery.objects.count() == sent + 2
    entries = AuditEntry.objects.filter(target="schedules").order_by("id")
    assert list(entries.values_list("action", "actor", "reason")) == [
        ("PauseSchedules", "ana", "look"),
        ("ResumeSchedules", "ana", ""),
    ]


@pytest.mark.postgres_too
def test_an_open_window_starts_a_missed_moment_once(
    project: Project, machine: str, now: Clock
) -> None:
    """Within the rest of its window, also if several of its moments were missed."""
    schedule_of(project, machine, window_minutes=90)
    deliveries.fire_due()
    Delivery.objects.update(status="delivered")
    schedule_pause.pause_schedules(project, ANA)
    now.later(2 * HOUR_S + 600)
    while deliveries.fire_due():
        pass
    assert schedule_pause.plan_change(project).missed
    assert schedule_pause.resume_schedules(project, ANA) == 1
    delivery = Delivery.objects.exclude(status="delivered").get()
    assert now.now_ms <= delivery.next_ms <= now.now_ms + 90 * 60_000
    assert deliveries.fire_due() == 0


@pytest.mark.postgres_too
def test_a_start_that_is_on_its_way_waits(project: Project, machine: str, now: Clock) -> None:
    """It follows at the resume; a run by hand and a rule that matches events go on."""
    row = schedule_of(project, machine)
    deliveries.fire_due()
    schedule_pause.pause_schedules(project, ANA)
    assert deliveries.due_targets() == []
    assert deliveries.claim_due({row.targets.get().pk: 5}) == []
    now.later(60)
    assert not start_delays(now.now_ms), "it is held back on purpose"
    manual_events.run_schedule(row, ANA)
    assert [target.count for target in deliveries.due_targets()] == [1]
    rule_of(project, machine, "events", pattern=SUCCEEDED)
    Delivery.objects.exclude(event__sent_by="").update(status="delivered")
    other = create(project, PASS, "other")
    drain(start(other))
    routing.route_events()
    carry_all()
    routed = OutboxEvent.objects.exclude(about=row.arn)
    assert Delivery.objects.filter(event__in=routed, status="delivered").exists()
    schedule_pause.resume_schedules(project, ANA)
    assert [target.count for target in deliveries.due_targets()] == [1]


def test_another_project_goes_on(project: Project, machine: str) -> None:
    """A pause is of one project."""
    from console.models import Project

    theirs = Project.objects.create(name="theirs", account_id="999999999999")
    schedule_pause.pause_schedules(theirs, ANA)
    schedule_of(project, machine)
    assert deliveries.fire_due() == 1
    assert [target.count for target in deliveries.due_targets()] == [1]


def test_what_was_decided_meanwhile_is_refused(project: Project) -> None:
    """Two people pause, or resume, the same."""
    schedule_pause.pause_schedules(project, ANA)
    with pytest.raises(ConflictException, match="already paused by ana"):
        schedule_pause.pause_schedules(project, ANA)
    schedule_pause.resume_schedules(project, ANA)
    with pytest.raises(ConflictException, match="not paused"):
        schedule_pause.resume_schedules(project, ANA)


def test_the_pages_pause_and_resume(project: Project, client: Client, machine: str) -> None:
    """A dry run lists what would stand still; every page of schedules says that it is paused."""
    schedule_of(project, machine, state="DISABLED")
    schedule_of(project, machine)
    rule_of(project, machine, "tick", schedule="rate(1 hour)")
    rule_of(project, machine, "events", pattern=SUCCEEDED)
    assert "Pause all…" in text(client.get("/schedules/"))
    page = client.get("/schedules/pause/")
    assert {each.name for each, *_ in page.context["rows"]} == {
        *EventRule.objects.filter(schedule_name="s1").values_list("name", flat=True),
        "tick",
    }
    assert "are skipped and do not start after the resume" in text(page)
    assert not SchedulePause.objects.exists()
    shown: Any = client.post("/schedules/pause/", {"note": "<look>"}, follow=True)
    assert "&lt;look&gt;" in shown.content.decode()
    assert "Pause all…" not in text(shown)
    pages = ("/schedules/", "/notifications/", "/schedules/default/s1/", "/rules/tick/", "/")
    for path in (*pages, "/machines/machine/triggers/"):
        assert "All schedules paused by" in text(client.get(path)), path
    assert "All schedules paused by" not in text(client.get("/rules/events/"))
    assert client.get("/schedules/resume/").context["plan"].total == 2
    shown = client.post("/schedules/resume/", follow=True)
    assert "All schedules are resumed." in text(shown)
    assert "All schedules paused by" not in text(client.get("/"))
    shown = client.post("/schedules/resume/", follow=True)
    assert "The schedules are not paused." in text(shown)


def test_operators_cannot_pause_schedules(
    project: Project, signed_in: Callable[[str], Client], machine: str
) -> None:
    """As they cannot disable one; they see the pause without its button."""
    schedule_of(project, machine)
    operator = signed_in("operator")
    assert "Pause all…" not in text(operator.get("/schedules/"))
    assert operator.get("/schedules/pause/").status_code == 403
    assert operator.post("/schedules/pause/").status_code == 403
    schedule_pause.pause_schedules(project, ANA)
    assert "Resume all…" not in text(operator.get("/schedules/"))
    assert operator.post("/schedules/resume/").status_code == 403
    assert SchedulePause.objects.exists()
