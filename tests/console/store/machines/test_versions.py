"""Versions never change, and aliases lead to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import errors
from console.errors import ErrorCode
from console.store.executions.find import list_executions
from console.store.executions.start import start_execution
from console.store.machines import machines, tags, versions
from tests.console.store.helpers import PASS, WAIT, create, crowd, drain, one
from tests.refusals import raises_code

if TYPE_CHECKING:
    from console.models import Project, StateMachine

OTHER = one("Q", Type="Pass", Result="other")


@pytest.fixture
def machine(project: Project) -> StateMachine:
    """A machine whose first text answers its input."""
    return create(project, PASS)


def routing(machine: StateMachine, *weights: int) -> list[dict[str, Any]]:
    """Return a routing configuration over the versions 1, 2, ..."""
    return [
        {"stateMachineVersionArn": f"{machine.arn}:{number}", "weight": weight}
        for number, weight in enumerate(weights, 1)
    ]


def test_a_version_runs_its_own_text(project: Project, machine: StateMachine) -> None:
    """An update changes the machine, not its versions."""
    version = versions.publish_version(machine)
    machines.update_machine(machine, definition=json.dumps(OTHER))
    target = versions.resolve_target(project, version.arn)
    execution = start_execution(target.machine, version=target.version, input="1")
    assert drain(execution).output == "1"
    assert (
        drain(start_execution(versions.resolve_target(project, machine.arn).machine)).output
        == '"other"'
    )


def test_one_revision_is_one_version(machine: StateMachine) -> None:
    """Publishing twice gives the same version; a guard refuses another revision."""
    first = versions.publish_version(machine, description="a")
    assert versions.publish_version(machine, description="b").pk == first.pk
    changed = machines.update_machine(machine, definition=json.dumps(OTHER))
    assert versions.publish_version(changed).number == 2
    with pytest.raises(errors.ConflictException, match="The current State Machine revision is"):
        versions.publish_version(changed, revision_id="INITIAL")


def test_numbers_are_never_used_again(project: Project, machine: StateMachine) -> None:
    """After a deletion counting goes on."""
    versions.publish_version(machine)
    second = versions.publish_version(
        machines.update_machine(machine, definition=json.dumps(OTHER))
    )
    versions.delete_version(project, second.arn)
    versions.delete_version(project, second.arn)
    third = versions.publish_version(machines.update_machine(machine, definition=json.dumps(WAIT)))
    assert third.number == 3


def test_an_alias_picks_by_weight(project: Project, machine: StateMachine) -> None:
    """All weight on one version: always that one; the execution keeps both ARNs."""
    versions.publish_version(machine)
    versions.publish_version(machines.update_machine(machine, definition=json.dumps(OTHER)))
    alias = versions.create_alias(project, "live", routing(machine, 0, 100))
    target = versions.resolve_target(project, alias.arn)
    execution = start_execution(
        target.machine, version=target.version, alias_arn=alias.arn, input="1"
    )
    assert drain(execution).output == '"other"'
    assert (execution.version_arn, execution.alias_arn) == (f"{machine.arn}:2", alias.arn)
    assert [row.pk for row in list_executions(alias)] == [execution.pk]
    picked = [versions._pick([[1, 50], [2, 50]]) for _ in range(200)]
    assert set(picked) == {1, 2}


@pytest.mark.parametrize(
    ("weights", "words"),
    [((70, 29), "must equal 100. Received: [70, 29]"), ((101,), "must equal 100")],
)
def test_weights_must_sum_to_100(
    project: Project, machine: StateMachine, weights: tuple[int, ...], words: str
) -> None:
    """In AWS's words."""
    versions.publish_version(machine)
    versions.publish_version(machines.update_machine(machine, definition=json.dumps(OTHER)))
    with pytest.raises(errors.ValidationException) as caught:
        versions.create_alias(project, "live", routing(machine, *weights))
    assert words in caught.value.message


def test_a_version_in_use_is_kept(project: Project, machine: StateMachine) -> None:
    """The message lists the aliases; a different alias of the same name is a conflict."""
    version = versions.publish_version(machine)
    versions.create_alias(project, "live", routing(machine, 100))
    same = versions.create_alias(project, "live", routing(machine, 100))
    assert versions.get_alias(project, same.arn).name == "live"
    with pytest.raises(errors.ConflictException, match=r"referencing this version: \[live\]"):
        versions.delete_version(project, version.arn)
    with pytest.raises(errors.ConflictException, match="different routing configuration"):
        versions.create_alias(project, "live", routing(machine, 100), description="other")


def test_tags(project: Project, machine: StateMachine) -> None:
    """Set, replace, remove; only on what is there; at most 50."""
    tags.put_tags(machine.arn, {"a": "1", "b": "2"})
    tags.put_tags(machine.arn, {"a": "3"})
    tags.remove_tags(machine.arn, ["b", "c"])
    assert tags.get_tags(machine.arn) == {"a": "3"}
    with raises_code(ErrorCode.TooManyTags):
        tags.put_tags(machine.arn, {f"k{number}": "" for number in range(50)})
    assert tags.get_tags(machine.arn) == {"a": "3"}
    with raises_code(ErrorCode.ResourceNotFound):
        tags.check_owner(project, machine.arn + ":1")


@pytest.mark.django_db(transaction=True)
def test_of_people_who_save_an_alias_at_once_one_succeeds(
    project: Project, machine: StateMachine
) -> None:
    """The others read the same update date, and get a conflict."""
    versions.publish_version(machine)
    alias = versions.create_alias(project, "live", routing(machine, 100))

    def save(number: int) -> Any:
        return versions.update_alias(
            project, alias.arn, description=f"by {number}", seen_ms=alias.updated_ms
        )

    results = crowd(4, save)
    refused = [result for result in results if isinstance(result, errors.ConflictException)]
    assert len(refused) == 3, results
