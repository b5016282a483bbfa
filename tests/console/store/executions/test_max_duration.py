"""Every execution ends after a year, or after a shorter limit of its own, and not before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.db import clock
from console.models import Execution, HistoryEvent, ServerFact, Timer
from console.store.executions import max_duration, redrive
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.machines import machines
from console.store.tasks import activities
from console.worker import Embedded
from tests.console.store.helpers import (
    REGION,
    ROLE,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    one,
    start,
    types,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from console.models import Project
    from tests.console.transition_rates import Clock

DAY_S = 24 * 3600
YEAR_S = 365 * DAY_S
LONG = WORK  # of an activity, which nobody does


@pytest.fixture(autouse=True)
def activity(project: Project) -> None:
    """Let there be the activity."""
    activities.create_activity(project, REGION, "work")


def deadlines(execution: Execution) -> list[int]:
    """Return when the timers of the execution itself are due."""
    rows = Timer.objects.filter(execution=execution, name="execution")
    return list(rows.values_list("due_ms", flat=True))


def test_a_year_ends_an_execution_without_a_limit(project: Project, now: Clock) -> None:
    """A day before it gets its timer; at its year it times out, to the millisecond."""
    execution = drain(start(create(project, LONG)))
    assert max_duration.arm_ends() == 0
    now.later(YEAR_S - 2 * DAY_S)
    assert max_duration.arm_ends() == 0
    now.later(DAY_S)
    assert max_duration.arm_ends() == 1
    assert deadlines(execution) == [execution.start_ms + YEAR_S * 1000]
    assert max_duration.arm_ends() == 0
    now.later(DAY_S - 1)
    assert drain(execution).status == "RUNNING"
    now.later(2)
    execution = drain(execution)
    assert (execution.status, execution.error) == ("TIMED_OUT", None)
    assert execution.stop_ms == execution.start_ms + YEAR_S * 1000
    assert types(execution)[-1] == "ExecutionTimedOut"
    assert not Timer.objects.exists()
    assert_nothing_wrong()


def test_a_longer_limit_is_a_year(project: Project, now: Clock) -> None:
    """TimeoutSeconds of three years, of the machine or of the start."""
    machine = create(project, LONG | {"TimeoutSeconds": 99_999_999})
    execution = drain(start(machine))
    assert deadlines(execution) == [execution.start_ms + YEAR_S * 1000]
    other = drain(start_execution(create(project, LONG, "b"), timeout_s=99_999_999))
    assert deadlines(other) == [other.start_ms + YEAR_S * 1000]
    now.later(YEAR_S + 1)
    assert max_duration.arm_ends() == 0
    assert drain(execution).status == "TIMED_OUT"
    assert_nothing_wrong()


def test_what_an_earlier_version_started_ends_too(project: Project, now: Clock) -> None:
    """Its timer of three years is moved, and a shorter one is left alone."""
    late = drain(start(create(project, LONG | {"TimeoutSeconds": 99_999_999})))
    Timer.objects.filter(execution=late).update(due_ms=late.start_ms + 99_999_999_000)
    soon = drain(start(create(project, LONG | {"TimeoutSeconds": YEAR_S - 60}, "soon")))
    before = deadlines(soon)
    now.later(YEAR_S - 3600)
    assert max_duration.arm_ends() == 1
    assert deadlines(late) == [late.start_ms + YEAR_S * 1000]
    assert deadlines(soon) == before


def test_a_redrive_starts_the_year_anew(project: Project, now: Clock) -> None:
    """As AWS says of TimeoutSeconds; nothing is left of the first year."""
    execution = drain(start(create(project, LONG)))
    now.later(YEAR_S - DAY_S)
    stop_execution(execution)
    drain(execution)
    now.later(3600)
    redrive.redrive_execution(execution)
    execution = drain(execution)
    now.later(DAY_S)
    assert max_duration.arm_ends() == 0
    now.later(YEAR_S - DAY_S)
    assert max_duration.arm_ends() == 1
    assert deadlines(execution) == [(execution.redrive_ms or 0) + YEAR_S * 1000]


def test_what_has_ended_gets_no_timer(project: Project, now: Clock) -> None:
    """Not after a year either."""
    execution = drain(start(create(project, LONG)))
    stop_execution(execution)
    drain(execution)
    now.later(YEAR_S)
    assert max_duration.arm_ends() == 0
    assert not Timer.objects.exists()


def test_express_ends_after_five_minutes(project: Project, now: Clock) -> None:
    """Without TimeoutSeconds, and with more of them."""
    for name, more in (("bare", {}), ("more", {"TimeoutSeconds": 4000})):
        definition = json.dumps(one("W", Type="Wait", Seconds=3600) | more)
        machine = machines.create_machine(
            project,
            REGION,
            name=name,
            definition=definition,
            role_arn=ROLE,
            type="EXPRESS",
        )
        execution = drain(start(machine))
        assert deadlines(execution) == [execution.start_ms + 300_000]
        now.later(301)
        assert drain(execution).status == "TIMED_OUT"


def test_a_worker_looks_for_them(project: Project) -> None:
    """It ends one that was left running for longer than a year as soon as it is started."""
    execution = drain(start(create(project, LONG)))
    Execution.objects.update(start_ms=clock.now_ms() - (YEAR_S + 60) * 1000)
    minute = clock.now_ms() // 60_000 * 60_000  # else the metrics sum up a year
    ServerFact.objects.create(name="metrics summed until", value=str(minute))
    worker = Embedded()
    worker.start()
    try:
        wait_until(lambda: Execution.objects.get(pk=execution.pk).status != "RUNNING")
    finally:
        worker.stop()
    assert Execution.objects.get(pk=execution.pk).status == "TIMED_OUT"
    last = HistoryEvent.objects.filter(execution=execution).order_by("event_id").last()
    assert last is not None
    assert last.type == "ExecutionTimedOut"
