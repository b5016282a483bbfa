"""State machines are created, updated and deleted by AWS's rules."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from typing import Any

import pytest
from django.db import connection

from console import errors
from console.db import clock, merged
from console.errors import ErrorCode
from console.models import AuditEntry, Execution, Project, StateMachine
from console.store.executions import start as start_module
from console.store.machines import machines
from tests.console.store.helpers import PASS, REGION, ROLE, WAIT, create, crowd, drain, one, start
from tests.refusals import raises_code


def test_creating_the_same_again_returns_the_first(project: Project) -> None:
    """Name, definition, type and configurations alike: the same machine.

    Role and tags do not count.
    """
    first = create(project, PASS)
    again = machines.create_machine(
        project, REGION, name="machine", definition=json.dumps(PASS), role_arn=ROLE + "2"
    )
    assert (again.pk, again.role_arn) == (first.pk, ROLE)
    assert StateMachine.objects.count() == 1


def test_creating_another_of_the_same_name_is_refused(project: Project) -> None:
    """White space in the definition is a difference, too."""
    machine = create(project, PASS)
    with raises_code(ErrorCode.StateMachineAlreadyExists) as caught:
        machines.create_machine(
            project, REGION, name="machine", definition=json.dumps(PASS) + " ", role_arn=ROLE
        )
    assert caught.value.message == f"State Machine Already Exists: '{machine.arn}'"


@pytest.mark.parametrize("name", ["", "a b", "a" * 81, "a<b", 'a"b', "a/b", "a\x7fb", "a,b"])
def test_bad_names_are_refused(project: Project, name: str) -> None:
    """The characters AWS refuses are refused."""
    with raises_code(ErrorCode.InvalidName):
        create(project, PASS, name)


@pytest.mark.parametrize("name", ["a", "a" * 80, "Zahlung-1.2_3", "注文"])
def test_good_names_are_taken(project: Project, name: str) -> None:
    """Letters of any script are fine."""
    assert create(project, PASS, name).arn.endswith(f":stateMachine:{name}")


def test_bad_definition_is_refused_with_every_problem(project: Project) -> None:
    """The message lists code, words and place of each problem; nothing is stored."""
    with pytest.raises(errors.InvalidDefinition) as caught:
        create(project, {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}}})
    assert "MISSING_TRANSITION_TARGET: Missing 'Next' target: B at /States/A/Next" in str(
        caught.value
    )
    assert len(caught.value.diagnostics) >= 1
    assert not StateMachine.objects.exists()


def test_update_makes_a_revision_only_if_something_changed(project: Project) -> None:
    """The revision id appears with the first real change."""
    machine = create(project, PASS)
    same = machines.update_machine(machine, definition=json.dumps(PASS))
    assert same.revision_id == ""
    changed = machines.update_machine(machine, definition=json.dumps(WAIT))
    assert len(changed.revision_id) == 36
    with raises_code(ErrorCode.MissingRequiredParameter):
        machines.update_machine(machine)


def test_running_executions_keep_their_definition(project: Project) -> None:
    """An edit never touches what runs."""
    machine = create(project, WAIT)
    execution = start(machine)
    machines.update_machine(machine, definition=json.dumps(PASS))
    execution.refresh_from_db()
    assert execution.definition.text == json.dumps(WAIT)
    assert drain(execution).status == "RUNNING"


def test_an_unused_machine_is_deleted_at_once_and_its_name_is_free(project: Project) -> None:
    """Deleting a missing machine succeeds. Past executions stay visible."""
    machine = create(project, PASS)
    execution = drain(start(machine))
    machines.delete_machine(project, machine.arn)
    machines.delete_machine(project, machine.arn)
    execution.refresh_from_db()
    assert (execution.status, execution.state_machine_id) == ("SUCCEEDED", None)
    assert create(project, WAIT).arn == machine.arn


def test_what_runs_ends_at_its_next_transition_when_its_machine_is_deleted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits on, is aborted where it would enter a further state, and frees the name then."""
    states = {"W": {"Type": "Wait", "Seconds": 60, "Next": "P"}, "P": {"Type": "Pass", "End": True}}
    machine = create(project, {"StartAt": "W", "States": states})
    execution = start(machine)
    assert drain(execution).status == "RUNNING"
    machines.delete_machine(project, machine.arn)
    machines.delete_machine(project, machine.arn)
    assert drain(execution).status == "RUNNING"
    machines.finish_deletions()
    machine.refresh_from_db()
    assert machine.status == "DELETING"
    with raises_code(ErrorCode.StateMachineDeleting):
        create(project, PASS)
    later = clock.now_ms() + 60_000
    monkeypatch.setattr(clock, "now_ms", lambda: later)
    assert drain(execution).status == "ABORTED"
    kinds = list(execution.historyevent_set.values_list("type", flat=True))
    assert kinds == ["ExecutionStarted", "WaitStateEntered", "WaitStateExited", "ExecutionAborted"]
    machines.finish_deletions()
    execution.refresh_from_db()
    assert execution.state_machine_id is None
    assert create(project, PASS).arn == machine.arn


def test_an_execution_in_its_last_state_succeeds_while_its_machine_is_deleted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no transition left at which it could end."""
    machine = create(project, WAIT)
    execution = start(machine)
    drain(execution)
    machines.delete_machine(project, machine.arn)
    later = clock.now_ms() + 3_600_000
    monkeypatch.setattr(clock, "now_ms", lambda: later)
    assert drain(execution).status == "SUCCEEDED"
    machines.finish_deletions()
    assert not StateMachine.objects.exists()


def test_what_starts_while_its_machine_is_deleted_is_ended(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start comes before the deletion, and is seen by it, or after it, and is refused."""
    machine = create(project, WAIT)
    inserting = threading.Event()
    # On PostgreSQL a start has locked its machine when the second half of its transaction begins.
    in_one = connection.vendor == "postgresql"
    module: Any = merged if in_one else start_module
    name = "_signals" if in_one else "insert_execution"
    inside = getattr(module, name)

    def slowly(*arguments: Any, **more: Any) -> Any:
        if not inserting.is_set():
            inserting.set()
            time.sleep(0.3)
        return inside(*arguments, **more)

    def act(number: int) -> None:
        if number:
            start(machine)
        else:
            inserting.wait(5)
            machines.delete_machine(project, machine.arn)

    monkeypatch.setattr(module, name, slowly)
    assert crowd(2, act) == [None, None]
    assert drain(Execution.objects.get()).status == "ABORTED"
    machines.finish_deletions()
    assert not StateMachine.objects.exists()


def test_projects_do_not_see_each_other(project: Project) -> None:
    """A machine of another project does not exist for this one."""
    machine = create(project, PASS)
    other = Project.objects.create(name="other", account_id="999999999999")
    with pytest.raises(errors.StateMachineDoesNotExist):
        machines.get_machine(other, machine.arn)


def test_changes_are_audited(project: Project) -> None:
    """Create, update and delete each leave one row."""
    machine = create(project, PASS)
    machines.update_machine(machine, role_arn=ROLE + "2")
    machines.delete_machine(project, machine.arn)
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["CreateStateMachine", "UpdateStateMachine", "DeleteStateMachine"]


def _save(machine: StateMachine, texts: list[str], revision: str, number: int) -> StateMachine:
    return machines.update_machine(machine, definition=texts[number], revision=revision)


def test_one_of_two_saves_of_the_same_revision_wins(project: Project) -> None:
    """The other one hears of the conflict, whatever both had read before; neither is half kept."""
    machine = create(project, PASS)
    for round_ in range(5):
        machine.refresh_from_db()
        revision = machines.revision_of(machine)
        texts = [json.dumps(one(f"By{number}In{round_}", Type="Pass")) for number in range(4)]

        save = partial(_save, machine, texts, revision)
        results = crowd(4, save)
        won = [each for each in results if isinstance(each, StateMachine)]
        lost = [each for each in results if isinstance(each, errors.ConflictException)]
        assert (len(won), len(lost)) == (1, 3), results
        machine = StateMachine.objects.get(pk=machine.pk)
        assert machine.definition_id == won[0].definition_id
        assert machine.revision_id == won[0].revision_id != ""


def test_a_revision_is_not_that_of_a_namesake(project: Project) -> None:
    """Two machines that were never changed differ, though neither has a revision id."""
    machine = create(project, PASS)
    machines.delete_machine(project, machine.arn)
    again = create(project, PASS)
    assert machines.revision_of(again) != machines.revision_of(machine)
