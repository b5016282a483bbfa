"""The same request again is answered as the first one; what makes it another is documented.

Source: API reference, the paragraphs on idempotency of each action, and the rules of their members.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.errors import ErrorCode, ServiceError
from console.store.machines import machines, versions
from tests.console.awsapi.world import routes
from tests.console.store.helpers import PASS, ROLE, one
from tests.refusals import raises_code

if TYPE_CHECKING:
    from console.models import StateMachine
    from tests.console.awsapi.world import World

PUBLISHED = {"name": "once", "definition": json.dumps(PASS), "roleArn": ROLE, "publish": True}


def test_a_machine_is_the_same_with_the_same_description_of_its_version(world: World) -> None:
    """CreateStateMachine: "based on the publish and versionDescription parameters", too."""
    first = world.ask("CreateStateMachine", **PUBLISHED, versionDescription="one")
    other = {**PUBLISHED, "roleArn": f"{ROLE}2", "versionDescription": "one"}
    assert world.ask("CreateStateMachine", **other) == first
    for description in ({"versionDescription": "two"}, {}):
        with raises_code(ErrorCode.StateMachineAlreadyExists):
            world.ask("CreateStateMachine", **PUBLISHED, **description)
    listed = world.ask("ListStateMachineVersions", stateMachineArn=first["stateMachineArn"])
    assert len(listed["stateMachineVersions"]) == 1


def test_an_unpublished_machine_is_published_by_a_repeated_create(world: World) -> None:
    """The machine is there, its version is not."""
    plain = {name: value for name, value in PUBLISHED.items() if name != "publish"}
    answer = world.ask("CreateStateMachine", **plain)
    again = world.ask("CreateStateMachine", **PUBLISHED, versionDescription="one")
    assert again["stateMachineVersionArn"] == f"{answer['stateMachineArn']}:1"


def test_a_create_without_its_version_stores_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state machine and its version are created in one transaction."""

    def fail(*_: Any, **__: Any) -> None:
        raise ServiceError(ErrorCode.ServiceQuotaExceededException, "no more versions")

    monkeypatch.setattr(versions, "publish_version", fail)
    with raises_code(ErrorCode.ServiceQuotaExceededException):
        world.ask("CreateStateMachine", **PUBLISHED)
    monkeypatch.undo()
    listed = world.ask("ListStateMachines")["stateMachines"]
    assert "once" not in [machine["name"] for machine in listed]


@pytest.mark.parametrize("action", ["CreateStateMachineAlias", "UpdateStateMachineAlias"])
def test_an_alias_does_not_get_a_deleted_version(
    world: World, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """A version can be deleted after the routing of an alias was checked, before it is stored."""
    version = world.version()
    another = world.ask(
        "UpdateStateMachine",
        stateMachineArn=version.removesuffix(":1"),
        definition=json.dumps(one("Q", Type="Pass")),
        publish=True,
    )["stateMachineVersionArn"]
    name: dict[str, Any] = {"name": "late"}
    if action == "UpdateStateMachineAlias":
        name = {"stateMachineAliasArn": world.alias(version)}
    check = versions._routing

    def check_before_a_deletion(*arguments: Any) -> Any:
        result = check(*arguments)
        monkeypatch.undo()
        world.ask("DeleteStateMachineVersion", stateMachineVersionArn=another)
        return result

    monkeypatch.setattr(versions, "_routing", check_before_a_deletion)
    with raises_code(ErrorCode.ResourceNotFound):
        world.ask(action, **name, routingConfiguration=routes(another))


def test_an_update_publishes_what_it_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client's update cannot come between the update and its version."""
    update = machines.update_machine
    theirs, mine = (json.dumps(one("P", Type="Pass", Comment=text)) for text in ("theirs", "mine"))

    def update_before_another(machine: StateMachine, **more: Any) -> StateMachine:
        changed = update(machine, **more)
        update(machine, definition=theirs)
        return changed

    monkeypatch.setattr(machines, "update_machine", update_before_another)
    answer = world.ask(
        "UpdateStateMachine", stateMachineArn=world.machine, definition=mine, publish=True
    )
    version = world.ask("DescribeStateMachine", stateMachineArn=answer["stateMachineVersionArn"])
    assert version["definition"] == mine
    assert version["revisionId"] == answer["revisionId"]


def test_an_alias_that_is_updated_to_what_it_is_keeps_its_date(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UpdateStateMachineAlias: "the same parameters return an idempotent response"."""
    version = world.version()
    alias = world.alias(version)
    same: dict[str, Any] = {"routingConfiguration": routes(version), "description": "d"}
    first = world.ask("UpdateStateMachineAlias", stateMachineAliasArn=alias, **same)
    later = clock.now_ms() + 60_000
    monkeypatch.setattr(clock, "now_ms", lambda: later)
    assert world.ask("UpdateStateMachineAlias", stateMachineAliasArn=alias, **same) == first
    changed = world.ask("UpdateStateMachineAlias", stateMachineAliasArn=alias, description="e")
    assert changed == {"updateDate": later / 1000}


@pytest.mark.parametrize("name", ["a\U0010ffff", "a\ufffe", "a\uffff"])
def test_a_name_has_no_invalid_characters(world: World, name: str) -> None:
    """CreateStateMachine, StartExecution, CreateActivity: the characters of a name."""
    for action, more in (
        ("CreateStateMachine", {"definition": json.dumps(PASS), "roleArn": ROLE}),
        ("CreateActivity", {}),
        ("StartExecution", {"stateMachineArn": world.machine}),
    ):
        with raises_code(ErrorCode.InvalidName):
            world.ask(action, name=name, **more)


def test_a_tag_has_a_key(world: World) -> None:
    """A key is 1 to 128 characters long, so a tag without one is none."""
    with raises_code(ErrorCode.ValidationException):
        world.ask("TagResource", resourceArn=world.machine, tags=[{"value": "v"}])
    assert world.ask("ListTagsForResource", resourceArn=world.machine) == {"tags": []}
