"""Lists of executions are sorted as ListExecutions documents it.

"Results are sorted by time, with the most recent execution first. Running executions are sorted by
their startDate or redriveDate, and other executions are sorted by their stopDate."
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from console.awsapi import paging
from console.awsapi.operations import executions
from console.errors import InvalidToken
from console.models import Execution, StateMachine
from console.store.executions.find import list_executions, listing_place
from console.store.machines import versions
from tests.console.store.helpers import PASS, create, start

if TYPE_CHECKING:
    from console.models import Project

LIVES: dict[str, dict[str, Any]] = {
    "early": {"start_ms": 100, "stop_ms": 900, "status": "SUCCEEDED"},
    "short": {"start_ms": 300, "stop_ms": 400, "status": "FAILED"},
    "running": {"start_ms": 500, "status": "RUNNING"},
    "redriven": {"start_ms": 50, "redrive_ms": 700, "status": "RUNNING", "redrive_count": 1},
    "again": {"start_ms": 60, "redrive_ms": 610, "stop_ms": 620, "status": "FAILED"},
    "twin": {"start_ms": 310, "stop_ms": 400, "status": "ABORTED"},
}
SORTED = ["early", "redriven", "again", "running", "twin", "short"]


@pytest.fixture
def machine(project: Project) -> StateMachine:
    """Return a machine with an execution of each life."""
    machine = create(project, PASS)
    version = versions.publish_version(machine)
    for name, life in LIVES.items():
        execution = start(machine, name=name)
        changed = {"stop_ms": None, "version_arn": version.arn, **life}
        Execution.objects.filter(pk=execution.pk).update(**changed)
    start(create(project, PASS, name="other"), name="other")
    return machine


def test_a_token_of_the_version_before_is_refused(machine: StateMachine) -> None:
    """It has the start of an execution, which is no place in this order."""
    query = {"stateMachineArn": machine.arn}
    about = {"action": "ListExecutions", "project": machine.project, "region": "us-east-1"}
    call: Any = SimpleNamespace(params=query, **about)
    query["nextToken"] = paging.seal_position(call, query, [500, 1])
    with pytest.raises(InvalidToken):
        executions.list_page(call)


def names(rows: list[Execution]) -> list[str]:
    """Return the names in their order."""
    return [row.name for row in rows]


def test_what_happened_last_is_first(machine: StateMachine) -> None:
    """An execution that ended late is before one that began after it."""
    assert names(list_executions(machine)) == SORTED
    assert names(list_executions(machine, limit=2)) == SORTED[:2]
    version = versions.resolve_target(machine.project, f"{machine.arn}:1").version
    assert version is not None
    assert names(list_executions(version)) == SORTED


@pytest.mark.parametrize("status", ["RUNNING", "FAILED", "SUCCEEDED", "TIMED_OUT"])
def test_a_status_keeps_the_order(machine: StateMachine, status: str) -> None:
    """The same order, with fewer in it."""
    expected = [name for name in SORTED if LIVES[name]["status"] == status]
    assert names(list_executions(machine, status=status)) == expected


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pages_have_each_execution_once(machine: StateMachine, size: int) -> None:
    """Also where two ended in one millisecond."""
    listed: list[str] = []
    after = None
    while rows := list_executions(machine, after=after, limit=size):
        listed += names(rows)
        after = listing_place(rows[-1])
    assert listed == SORTED


@pytest.mark.parametrize("redriven", [True, False])
def test_a_filter_by_redrive(machine: StateMachine, redriven: bool) -> None:
    """As for children of Map Runs."""
    expected = [name for name in SORTED if bool(LIVES[name].get("redrive_count")) is redriven]
    assert names(list_executions(machine, redriven=redriven)) == expected


def test_a_page_is_read_from_the_index(machine: StateMachine) -> None:
    """A machine may have a million executions: a page neither sorts nor reads them all."""
    asked: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        list_executions(machine, limit=2)
        list_executions(machine, status="FAILED", after=(500, 3), limit=2)
    assert len(asked) == 6
    for sql, params in asked if connection.vendor == "sqlite" else ():
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            plan = " / ".join(row[3] for row in cursor.fetchall())
        assert "execution_by_time" in plan, plan
        assert "TEMP B-TREE" not in plan, plan
