"""Quotas and rates hold, separately for each project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console import errors
from console.config import quotas
from console.config.quotas import Rate
from console.db import clock
from console.db.writer import write
from console.errors import ErrorCode
from console.models import Project, ThrottledMinute
from console.own_api import Parent
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.state import throttle
from console.store.tasks import activities
from tests.console.store.helpers import PASS, REGION, WAIT, create, crowd, start
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_django.fixtures import Settings

SLOW = {"bucket": 2, "refill": 0.01}


@pytest.fixture
def set_quotas(settings: Settings) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Return a function that sets the quotas."""

    def put(numbers: dict[str, Any]) -> None:
        settings.STATEYARD_QUOTAS = numbers
        quotas.forget()

    yield put
    quotas.forget()


def test_without_a_setting_nothing_is_throttled(project: Project) -> None:
    """AWS's numbers hold for what is counted; rates are off."""
    assert quotas.quotas_of(project.name) == quotas.Quotas()
    assert quotas.quotas_of(project.name).start_execution is None


def test_starts_beyond_the_rate_are_refused_and_counted(project: Project, set_quotas: Any) -> None:
    """Two fit in the bucket; the third is refused with AWS's code and leaves no execution."""
    machine = create(project, PASS)
    set_quotas({"start_execution": SLOW})
    start(machine)
    start(machine)
    with pytest.raises(errors.ThrottlingException):
        start(machine)
    assert machine.execution_set.count() == 2
    assert ThrottledMinute.objects.get(state_machine_arn=machine.arn).count == 1


def test_a_projects_own_quota_goes_before_everybodys(project: Project, set_quotas: Any) -> None:
    """What stands under its name replaces what stands for all."""
    set_quotas({"activities": 5, "projects": {project.name: {"activities": 1}, "other": {}}})
    assert quotas.quotas_of("other").activities == 5
    activities.create_activity(project, REGION, "one")
    with raises_code(ErrorCode.ActivityLimitExceeded):
        activities.create_activity(project, REGION, "two")


def test_tokens_come_back_with_time(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many a second of the database's clock, never more than the bucket holds."""
    now = 1_000_000
    monkeypatch.setattr(clock, "now_ms", lambda: now)
    rate = Rate(bucket=10, refill=2)

    def take(count: int) -> int:
        return write(lambda: throttle.take(project.pk, "x", rate, count))

    assert take(100) == 10
    assert take(1) == 0
    now += 1500
    assert take(100) == 3
    now += 60_000
    assert take(100) == 10


@pytest.mark.django_db(transaction=True)
def test_a_crowd_gets_no_more_than_the_bucket(project: Project, set_quotas: Any) -> None:
    """Of eight starts at once as many are taken as there are tokens."""
    machine = create(project, WAIT)
    set_quotas({"start_execution": {"bucket": 3, "refill": 0.001}})
    outcomes = crowd(8, lambda _: start(machine))
    refused = [outcome for outcome in outcomes if isinstance(outcome, errors.ThrottlingException)]
    assert len(refused) == 5
    assert machine.execution_set.count() == 3


def test_open_executions_are_limited_where_that_is_set(project: Project, set_quotas: Any) -> None:
    """The one above the quota gets ExecutionLimitExceeded."""
    machine = create(project, WAIT)
    set_quotas({"open_executions": 2})
    start(machine)
    start(machine)
    with raises_code(ErrorCode.ExecutionLimitExceeded):
        start(machine)


def test_open_executions_are_limited_by_default(project: Project) -> None:
    """Children of Map Runs do not count: their Map Run has a limit of its own."""
    assert quotas.quotas_of(project.name).open_executions == 100_000
    assert quotas.quotas_of(project.name).nesting_depth == 20


def test_starts_far_from_the_limit_count_nothing(project: Project, set_quotas: Any) -> None:
    """Not one of a hundred counts what runs; a process counts again when its share is used."""
    machine = create(project, PASS)
    set_quotas({"open_executions": 8 * 64 + 1})
    start(machine)
    with CaptureQueriesContext(connection) as caught:
        for _ in range(64):
            start(machine)
    assert len([query for query in caught if "COUNT" in query["sql"]]) == 1


def test_a_full_project_is_counted_as_far_as_the_limit(project: Project, set_quotas: Any) -> None:
    """A refusal of a large project holds for a moment: refusing costs less than starting."""
    machine = create(project, WAIT)
    start(machine)
    set_quotas({"open_executions": 1})
    for _ in range(3):
        with raises_code(ErrorCode.ExecutionLimitExceeded, match="open executions is reached: 1"):
            start(machine)
    stop_execution(machine.execution_set.get())
    start(machine)


def test_nesting_is_limited(project: Project, set_quotas: Any) -> None:
    """The refusal says how deep it would be, and which quota that is."""
    machine = create(project, PASS)
    set_quotas({"nesting_depth": 3})
    parent = Parent(1, 2)
    assert start_execution(machine, parent=parent).depth == 3
    message = r"4 executions above it, more than the quota nesting_depth of 3"
    with raises_code(ErrorCode.ExecutionLimitExceeded, match=message):
        start_execution(machine, parent=Parent(1, 3))


@pytest.mark.parametrize(
    "wrong",
    [
        {"unknown": 1},
        {"activities": -1},
        {"activities": "many"},
        {"nesting_depth": None},
        {"start_execution": {"bucket": 800}},
        {"start_execution": {"bucket": 0, "refill": 1}},
        {"projects": {"p": {"nothing": 1}}},
    ],
)
def test_a_wrong_setting_is_told(set_quotas: Any, wrong: dict[str, Any]) -> None:
    """The message names the member, what was there and what is wanted."""
    set_quotas(wrong)
    with pytest.raises(ImproperlyConfigured, match=r"quotas: .*got .*wanted"):
        quotas.quotas_of("p")
