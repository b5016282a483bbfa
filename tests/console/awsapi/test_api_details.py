"""Actions give defined answers in the cases that AWS's documentation leaves open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import arns
from console.errors import ServiceError, ValidationException
from tests.console.awsapi.world import MAP
from tests.console.store.helpers import PASS, ROLE

if TYPE_CHECKING:
    from tests.console.awsapi.world import World


def test_an_update_with_a_new_description_publishes_an_unchanged_definition(world: World) -> None:
    """The version has the description; the same call again makes no third one."""
    first = world.ask(
        "CreateStateMachine",
        name="described",
        definition=json.dumps(PASS),
        roleArn=ROLE,
        publish=True,
        versionDescription="first",
    )
    arn = first["stateMachineArn"]
    change = {"definition": json.dumps(PASS), "publish": True, "versionDescription": "second"}
    second = world.ask("UpdateStateMachine", stateMachineArn=arn, **change)
    again = world.ask("UpdateStateMachine", stateMachineArn=arn, **change)
    assert second["stateMachineVersionArn"] == again["stateMachineVersionArn"] == f"{arn}:2"
    described = world.ask("DescribeStateMachine", stateMachineArn=f"{arn}:2")
    assert described["description"] == "second"
    described = world.ask("DescribeStateMachine", stateMachineArn=f"{arn}:1")
    assert described["description"] == "first"


def test_an_update_that_changes_nothing_answers_the_current_revision(world: World) -> None:
    """There is none before the first change."""
    arn, text = world.fresh(PASS), json.dumps(PASS)
    assert "revisionId" not in world.ask("UpdateStateMachine", stateMachineArn=arn, definition=text)
    role = f"{ROLE}2"
    changed = world.ask("UpdateStateMachine", stateMachineArn=arn, roleArn=role)
    same = world.ask("UpdateStateMachine", stateMachineArn=arn, roleArn=role)
    assert same["revisionId"] == changed["revisionId"]


def test_creating_again_leaves_the_tags_alone(world: World) -> None:
    """A machine or activity that is there keeps its tags, whatever the call names."""
    old, new = [{"key": "team", "value": "a"}], [{"key": "team", "value": "b"}]
    machine = world.create("tagged", PASS, tags=old)
    assert world.create("tagged", PASS, tags=new) == machine
    activity = world.ask("CreateActivity", name="tagged", tags=old)["activityArn"]
    assert world.ask("CreateActivity", name="tagged", tags=new)["activityArn"] == activity
    for arn in (machine, activity):
        assert world.ask("ListTagsForResource", resourceArn=arn) == {"tags": old}


def test_an_activity_of_a_deleted_name_has_no_tags(world: World) -> None:
    """Tags go with their activity."""
    tag = [{"key": "team", "value": "a"}]
    arn = world.ask("CreateActivity", name="short-lived", tags=tag)["activityArn"]
    world.ask("DeleteActivity", activityArn=arn)
    world.ask("CreateActivity", name="short-lived")
    assert world.ask("ListTagsForResource", resourceArn=arn) == {"tags": []}


def test_an_update_of_an_alias_needs_a_change(world: World) -> None:
    """The reason says which kind of violation it is."""
    with pytest.raises(ValidationException) as caught:
        world.ask("UpdateStateMachineAlias", stateMachineAliasArn=world.alias())
    assert caught.value.reason == "MISSING_REQUIRED_PARAMETER"


def test_an_alias_can_be_deleted_twice(world: World) -> None:
    """The second call changes nothing; an alias of an unknown machine is an error."""
    alias = world.alias()
    for _ in range(2):
        assert world.ask("DeleteStateMachineAlias", stateMachineAliasArn=alias) == {}
    unknown = alias.replace("stateMachine:", "stateMachine:no-")
    with pytest.raises(ServiceError, match="does not exist"):
        world.ask("DeleteStateMachineAlias", stateMachineAliasArn=unknown)


def test_a_routing_of_three_versions_is_refused_in_the_words_of_the_service(world: World) -> None:
    """Structures stand in the text as the service prints them."""
    version = world.version()
    route = [{"stateMachineVersionArn": version, "weight": weight} for weight in (50, 30, 20)]
    with pytest.raises(ValidationException) as caught:
        world.ask("CreateStateMachineAlias", name="live", routingConfiguration=route)
    shown = ", ".join(
        f"RoutingConfigurationListItem(stateMachineVersionArn={version}, weight={weight})"
        for weight in (50, 30, 20)
    )
    assert caught.value.message == (
        f"1 validation error detected: Value '[{shown}]' at 'routingConfiguration' failed to "
        "satisfy constraint: Member must have length less than or equal to 2"
    )


def mocked(world: World, state: dict[str, Any], result: Any, **more: Any) -> dict[str, Any]:
    """Try a state whose work is replaced by a result."""
    mock = {"result": json.dumps(result)}
    return world.ask("TestState", definition=json.dumps(state), mock=mock, **more)


@pytest.mark.parametrize(
    ("service", "result", "words"),
    [
        ("kms:encrypt", {"CiphertextBlob": ""}, "is smaller than the minimum length"),
        ("kms:encrypt", {"CiphertextBlob": "A" * 8200}, "exceeds the maximum length"),
        ("lambda:getFunction", {"Configuration": {"MemorySize": 127}}, "less than the minimum"),
        ("lambda:getFunction", {"Configuration": {"MemorySize": 10_241}}, "exceeds the maximum v"),
    ],
)
def test_mocked_fields_keep_their_limits(
    world: World, service: str, result: Any, words: str
) -> None:
    """Values and lengths are those of the service model."""
    state = {"Type": "Task", "Resource": f"arn:aws:states:::aws-sdk:{service}", "End": True}
    with pytest.raises(ValidationException, match=words):
        mocked(world, state, result)


def test_a_mocked_parallel_shows_the_stages_of_its_result(world: World) -> None:
    """The stages of its input are no part of the inspection data."""
    branch = {"StartAt": "B", "States": {"B": {"Type": "Pass", "End": True}}}
    state = {"Type": "Parallel", "Branches": [branch], "End": True}
    found = mocked(world, state, [1], inspectionLevel="DEBUG")["inspectionData"]
    assert set(found) == {"input", "afterResultSelector", "afterResultPath"}


def test_a_mocked_map_without_items_names_the_path(world: World) -> None:
    """In the words of TestState, which are not those of an execution."""
    inner = {"StartAt": "B", "States": {"B": {"Type": "Pass", "End": True}}}
    state = {"Type": "Map", "ItemsPath": "$.a", "ItemProcessor": inner, "End": True}
    found = mocked(world, state, [1], input='{"a": 1}')
    assert (found["status"], found["error"]) == ("FAILED", "States.Runtime")
    assert found["cause"] == 'Reference path "$.a" must point to array.'


def test_a_context_object_needs_a_mock(world: World) -> None:
    """As the API reference says."""
    state = json.dumps({"Type": "Pass", "End": True})
    with pytest.raises(ValidationException, match="Context"):
        world.ask("TestState", definition=state, context='{"State": {"Name": "s"}}')


def test_a_state_tried_without_a_role_has_a_null_role(world: World) -> None:
    """The context object has the field all the same."""
    pass_state = {"Type": "Pass", "Parameters": {"role.$": "$$.Execution.RoleArn"}, "End": True}
    found = world.ask("TestState", definition=json.dumps(pass_state))
    assert json.loads(found["output"]) == {"role": None}


def test_an_arn_of_a_map_state_is_no_machine(world: World) -> None:
    """Start, update and delete refuse it with a reason."""
    arn = world.fresh(MAP) + "/lab"
    for action, more in (
        ("StartExecution", {}),
        ("StartSyncExecution", {}),
        ("UpdateStateMachine", {"roleArn": ROLE}),
        ("DeleteStateMachine", {}),
    ):
        with pytest.raises(ValidationException) as caught:
            world.ask(action, stateMachineArn=arn, **more)
        assert caught.value.reason == "API_DOES_NOT_SUPPORT_LABELED_ARNS"


@pytest.mark.parametrize(
    ("region", "partition"),
    [
        ("eu-west-1", "aws"),
        ("cn-north-1", "aws-cn"),
        ("us-gov-west-1", "aws-us-gov"),
        ("us-iso-east-1", "aws-iso"),
        ("us-isob-east-1", "aws-iso-b"),
        ("eusc-de-east-1", "aws-eusc"),
    ],
)
def test_a_region_has_its_partition(region: str, partition: str) -> None:
    """Machines and activities of China and of the governments have other ARNs."""
    arn = arns.state_machine_arn(region, "123456789012", "m")
    assert arn == f"arn:{partition}:states:{region}:123456789012:stateMachine:m"
    assert arns.activity_arn(region, "123456789012", "a").startswith(f"arn:{partition}:")
