"""A start on PostgreSQL may use a machine that was read a moment ago, and never an old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.db import rows
from console.errors import ErrorCode, ServiceError
from console.models import Execution, StateMachine
from console.store.machines import machines
from tests.console.awsapi.world import FAIL, World, definition
from tests.console.store.helpers import PASS, WORK

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.postgres_only


@pytest.fixture
def machine(world: World) -> StateMachine:
    """A machine of one Pass state, of which an execution was just started."""
    arn = world.create("kept", PASS)
    world.ask("StartExecution", stateMachineArn=arn)
    assert (world.principal.project.pk, arn) in machines._kept
    return StateMachine.objects.get(arn=arn)


def statuses() -> list[str]:
    """Return how the executions ended, in their order."""
    return list(Execution.objects.order_by("pk").values_list("status", flat=True))


def test_it_is_not_read_for_each_start(
    world: World, machine: StateMachine, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """Nothing is read before the commit, whose statements another thread sends."""
    with django_assert_num_queries(0):
        world.ask("StartExecution", stateMachineArn=machine.arn)
    assert statuses() == ["SUCCEEDED", "SUCCEEDED"]


def test_limits_of_activities_are_read_by_a_prepared_statement(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django's cursor would check the connection first, and PostgreSQL parse the statement."""
    arn = world.create("works", WORK)
    world.ask("StartExecution", stateMachineArn=arn)

    def refuse() -> None:
        raise AssertionError

    monkeypatch.setattr(rows, "open_cursor", refuse)
    world.ask("StartExecution", stateMachineArn=arn)
    assert statuses() == ["RUNNING", "RUNNING"]


def test_a_change_by_another_process_holds_for_the_next_start(
    world: World, machine: StateMachine
) -> None:
    """The commit finds another row, and the start begins anew with that."""
    before = dict(machines._kept)
    world.ask("UpdateStateMachine", stateMachineArn=machine.arn, definition=definition(FAIL))
    machines._kept.update(before)  # as the other process has it
    world.ask("StartExecution", stateMachineArn=machine.arn)
    assert statuses() == ["SUCCEEDED", "FAILED"]
    revision = StateMachine.objects.get(pk=machine.pk).revision_id
    assert Execution.objects.latest("pk").revision_id == revision


def test_a_name_is_given_once_whatever_is_kept(world: World, machine: StateMachine) -> None:
    """The other reason for which a start is run by itself is no reason to begin anew."""
    world.ask("StartExecution", stateMachineArn=machine.arn, name="one")
    with pytest.raises(ServiceError) as told:
        world.ask("StartExecution", stateMachineArn=machine.arn, name="one", input="[1]")
    assert told.value.code == ErrorCode.ExecutionAlreadyExists
    assert statuses() == ["SUCCEEDED", "SUCCEEDED"]


@pytest.mark.parametrize("deleting", [False, True], ids=["gone", "being-deleted"])
def test_a_deleted_machine_starts_nothing(
    world: World, machine: StateMachine, deleting: bool
) -> None:
    """It is told as if the machine had not been kept."""
    if deleting:
        StateMachine.objects.filter(pk=machine.pk).update(status="DELETING")
    else:
        Execution.objects.all().delete()
        StateMachine.objects.filter(pk=machine.pk).delete()
    with pytest.raises(ServiceError) as told:
        world.ask("StartExecution", stateMachineArn=machine.arn)
    expected = ErrorCode.StateMachineDeleting if deleting else ErrorCode.StateMachineDoesNotExist
    assert told.value.code == expected
