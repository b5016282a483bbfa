"""The overview names durations that drift and state machines that have not run for long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db import clock
from console.models import Execution, StateMachine
from console.web.core.formatting import DAY, HOUR, MINUTE, SECOND
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.test import Client

    from console.features.insights.trends import MachineTrends
    from console.models import Project


def run_at(machine: StateMachine, ages: Sequence[int], lasted: Sequence[int]) -> None:
    """Let a machine have succeeded so long ago, and have taken so long, in milliseconds."""
    first = drain(start(machine))
    now = clock.now_ms()
    fields = {field.attname: getattr(first, field.attname) for field in first._meta.concrete_fields}
    Execution.objects.bulk_create(
        Execution(
            **fields
            | {"id": None, "arn": f"{first.arn}-{number}", "name": f"{first.name}-{number}"}
            | {"start_ms": now - age, "stop_ms": now - age + span}
        )
        for number, (age, span) in enumerate(zip(ages, lasted, strict=True))
    )
    first.delete()


def trends(client: Client) -> MachineTrends:
    """Return what the page of the overview says."""
    answer = client.get("/")
    assert answer.status_code == 200
    shown: MachineTrends = answer.context["trends"]
    return shown


def test_a_duration_that_drifts_is_named(project: Project, client: Client) -> None:
    """Ten of eight seconds after thirty of one are eight times slower, and the page says so."""
    ages = [minute * MINUTE for minute in range(40)]
    run_at(create(project, PASS, "Drifts"), ages, [8 * SECOND] * 10 + [SECOND] * 30)
    run_at(create(project, PASS, "Recovers"), ages, [SECOND] * 10 + [3 * SECOND] * 30)
    run_at(create(project, PASS, "Stays"), ages, [SECOND, 9 * SECOND] * 20)
    run_at(create(project, PASS, "IsShort"), ages, [90] * 10 + [9] * 30)
    run_at(create(project, PASS, "IsNew"), ages[:19], [8 * SECOND] * 10 + [SECOND] * 9)
    drifts = trends(client).drifts
    assert [(drift.machine, drift.status.word) for drift in drifts] == [
        ("Drifts", "8.0× slower"),  # noqa: RUF001 - as the page has it
        ("Recovers", "3.0× faster"),  # noqa: RUF001
    ]
    assert (drifts[0].now, drifts[0].before) == (8 * SECOND, SECOND)
    assert "8.0× slower" in text(client.get("/"))  # noqa: RUF001


def test_failures_are_no_drift(project: Project, client: Client) -> None:
    """What fails ends early, or late: only what succeeded is compared."""
    ages = [minute * MINUTE for minute in range(40)]
    run_at(create(project, PASS, "Fails"), ages, [8 * SECOND] * 10 + [SECOND] * 30)
    newest = Execution.objects.order_by("-start_ms").values_list("pk", flat=True)[:10]
    Execution.objects.filter(pk__in=list(newest)).update(status="FAILED")
    assert not trends(client).drifts


def test_what_has_not_run_for_long_is_named(project: Project, client: Client) -> None:
    """A broken rhythm comes first; what people start by hand is quiet after a week."""
    every_hour = [number * HOUR for number in range(10)]
    run_at(create(project, PASS, "OnTime"), [10 * MINUTE + age for age in every_hour], [9] * 10)
    run_at(create(project, PASS, "Stopped"), [2 * HOUR + age for age in every_hour], [9] * 10)
    by_hand = [0, SECOND, HOUR, 2 * DAY, 3 * DAY, 9 * DAY]
    run_at(create(project, PASS, "Forgotten"), [8 * DAY + age for age in by_hand], [9] * 6)
    run_at(create(project, PASS, "ByHand"), [5 * HOUR + age for age in by_hand], [9] * 6)
    create(project, PASS, "Never")
    silent = trends(client).silent
    assert [(row.machine, row.status.word, row.rhythm) for row in silent] == [
        ("Stopped", "Late", "Usually every 1 h"),
        ("Forgotten", "Quiet", ""),
    ]
    page = text(client.get("/"))
    assert "Usually every 1 h" in page
    assert "Never" not in page.partition("Not started recently")[2].partition("</section>")[0]


def test_a_rest_over_the_weekend_is_a_rhythm(project: Project, client: Client) -> None:
    """Daily but for two days: the third day of silence is usual, the fifth is not."""
    workdays = [0, DAY, 2 * DAY, 3 * DAY, 4 * DAY, 7 * DAY, 8 * DAY, 9 * DAY]
    run_at(create(project, PASS, "Sunday"), [3 * DAY + age for age in workdays], [9] * 8)
    run_at(create(project, PASS, "Missed"), [5 * DAY + age for age in workdays], [9] * 8)
    assert [row.machine for row in trends(client).silent] == ["Missed"]


@pytest.mark.parametrize("machines", [2, 12])
@pytest.mark.postgres_too
def test_it_costs_one_query_however_many_machines_there_are(
    project: Project, client: Client, machines: int
) -> None:
    """Each of them reads its own end of an index."""
    for number in range(machines):
        ages = [minute * MINUTE for minute in range(40)]
        run_at(create(project, PASS, f"M{number}"), ages, [8 * SECOND] * 10 + [SECOND] * 30)
    client.get("/")
    with CaptureQueriesContext(connection) as asked:
        client.get("/")
    parts = [q["sql"] for q in asked if re.search(r"LIMIT 60\)", q["sql"])]
    assert len(parts) == 1
    for sql in parts:
        assert sql.count("LIMIT") == machines
        if connection.vendor == "sqlite":  # PostgreSQL chooses by how large the table is
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN QUERY PLAN " + sql)
                steps = [row[3] for row in cursor.fetchall()]
            assert sum("USING INDEX execution_by_" in step for step in steps) == machines
            assert not any("SCAN console_execution" in step for step in steps)


def test_a_young_yard_claims_no_steady_durations(project: Project, client: Client) -> None:
    """Nothing drifts where nothing can be compared: the page says what it takes."""
    ages = [minute * MINUTE for minute in range(20)]
    run_at(create(project, PASS, "IsNew"), ages[:19], [SECOND] * 19)
    assert trends(client).compared == 0
    assert "Not enough runs yet to detect drift" in text(client.get("/"))
    assert "Durations look normal" not in text(client.get("/"))
    run_at(create(project, PASS, "IsKnown"), ages, [SECOND] * 20)
    assert trends(client).compared == 1
    assert "Durations look normal" in text(client.get("/"))
