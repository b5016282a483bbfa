"""Actions give defined answers in the cases that AWS's documentation leaves open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import arns
from console.errors import ServiceError, ValidationException
from console.features.notifications.store import rules
from console.integrations import aws
from console.integrations.outcome import TaskAttempt
from console.models import Project, Version
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


def test_an_update_of_the_encryption_alone_is_one(world: World) -> None:
    """The documentation names it among what UpdateStateMachine changes."""
    arn = world.fresh(PASS)
    key = {"type": "CUSTOMER_MANAGED_KMS_KEY", "kmsKeyId": "alias/k"}
    changed = world.ask("UpdateStateMachine", stateMachineArn=arn, encryptionConfiguration=key)
    assert "revisionId" in changed
    described = world.ask("DescribeStateMachine", stateMachineArn=arn)
    assert described["encryptionConfiguration"]["kmsKeyId"] == "alias/k"


def test_an_alias_points_to_versions_of_its_own_machine(world: World) -> None:
    """A version of another machine is refused, and nothing changes: it became version 1 here."""
    own, foreign = (
        world.ask("PublishStateMachineVersion", stateMachineArn=world.create(name, PASS))
        for name in ("own", "foreign")
    )
    routing = [{"stateMachineVersionArn": own["stateMachineVersionArn"], "weight": 100}]
    alias = world.ask("CreateStateMachineAlias", name="live", routingConfiguration=routing)
    arn = alias["stateMachineAliasArn"]
    wrong = [{"stateMachineVersionArn": foreign["stateMachineVersionArn"], "weight": 100}]
    with pytest.raises(ValidationException, match="versions of one state machine"):
        world.ask("UpdateStateMachineAlias", stateMachineAliasArn=arn, routingConfiguration=wrong)
    described = world.ask("DescribeStateMachineAlias", stateMachineAliasArn=arn)
    assert described["routingConfiguration"] == routing


@pytest.mark.parametrize("percentage", [-1, -0.1, 100.1, 101])
def test_a_tolerated_percentage_is_one(world: World, percentage: float) -> None:
    """A Map Run took -1, and failed at once."""
    with pytest.raises(ValidationException, match="'toleratedFailurePercentage' failed to satisfy"):
        world.ask(
            "UpdateMapRun",
            mapRunArn="arn:aws:states:us-east-1:123456789012:mapRun:m/l:r",
            toleratedFailurePercentage=percentage,
        )


def test_a_worker_has_a_name_of_at_most_80_characters(world: World) -> None:
    """GetActivityTask has no InvalidName."""
    with pytest.raises(ValidationException, match="'workerName' failed to satisfy constraint"):
        world.ask("GetActivityTask", activityArn=world.activity, workerName="w" * 81)


def test_versions_of_a_machine_that_is_not_there_are_an_invalid_arn(world: World) -> None:
    """ListStateMachineVersions has no StateMachineDoesNotExist."""
    with pytest.raises(ServiceError) as refused:
        world.ask("ListStateMachineVersions", stateMachineArn=f"{world.fresh(PASS)}-gone")
    assert refused.value.code == "InvalidArn"


@pytest.mark.parametrize(
    "operation", ["StartExecution", "DescribeStateMachine", "DeleteStateMachine"]
)
def test_the_arn_of_a_role_is_no_label_of_a_map(world: World, operation: str) -> None:
    """It has a slash, too."""
    with pytest.raises(ServiceError) as refused:
        world.ask(operation, stateMachineArn=ROLE)
    assert (refused.value.code, str(refused.value)) == ("InvalidArn", f"Invalid Arn: '{ROLE}'")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{",
            (
                "Unexpected end-of-input: expected close marker for Object (start marker at "
                '[Source: (String)"{"; line: 1, column: 1])'
            ),
        ),
        ('{"a":', "Unexpected end-of-input within/between Object entries"),
        ("[1,", "Unexpected end-of-input within/between Array entries"),
        ('{"a', "Unexpected end-of-input in field name"),
        ('"a', "Unexpected end-of-input: was expecting closing quote for a string value"),
        (
            "[1 2]",
            "Unexpected character ('2' (code 50)): was expecting comma to separate Array entries",
        ),
        (
            '{"a" 1}',
            (
                "Unexpected character ('1' (code 49)): was expecting a colon to separate field "
                "name and value"
            ),
        ),
        (
            '{"a":1,}',
            (
                "Unexpected character ('}' (code 125)): was expecting double-quote to start "
                "field name"
            ),
        ),
        (
            "[1,]",
            (
                "Unexpected character (']' (code 93)): expected a valid value (JSON String, "
                "Number, Array, Object or token 'null', 'true' or 'false')"
            ),
        ),
        (
            "[1}",
            (
                "Unexpected close marker '}': expected ']' (for Array starting at [Source: "
                '(String)"[1}"; line: 1, column: 1])'
            ),
        ),
        ('"\\x"', "Unrecognized character escape 'x' (code 120)"),
        (
            '"\\u12"',
            (
                "Unexpected character ('\"' (code 34)): expected a hex-digit for character "
                "escape sequence"
            ),
        ),
        (
            '"\x01"',
            (
                "Illegal unquoted character ((CTRL-CHAR, code 1)): has to be escaped using "
                "backslash to be included in string value"
            ),
        ),
        (
            '{"a": "b\n  }',
            (
                "Illegal unquoted character ((CTRL-CHAR, code 10)): has to be escaped using "
                "backslash to be included in string value"
            ),
        ),
        ("01", "Invalid numeric value: Leading zeroes not allowed"),
    ],
)
def test_wrong_json_is_described_as_jackson_does(world: World, text: str, message: str) -> None:
    """The service's parser: its recorded messages are among them."""
    with pytest.raises(ServiceError) as refused:
        world.ask("StartExecution", stateMachineArn=world.fresh(PASS), input=text)
    assert str(refused.value) == f"Invalid State Machine Execution Input: '{message}'"


def test_creating_again_leaves_the_tags_alone(world: World) -> None:
    """A machine or activity that is there keeps its tags, whatever the call names."""
    old, new = [{"key": "team", "value": "a"}], [{"key": "team", "value": "b"}]
    machine = world.create("tagged", PASS, tags=old)
    assert world.create("tagged", PASS, tags=new) == machine
    activity = world.ask("CreateActivity", name="tagged", tags=old)["activityArn"]
    assert world.ask("CreateActivity", name="tagged", tags=new)["activityArn"] == activity
    for arn in (machine, activity):
        assert world.ask("ListTagsForResource", resourceArn=arn) == {"tags": old}


@pytest.mark.parametrize(
    ("key", "value", "good"),
    [
        ("Ünïcode 9 _.:/=+-@", "日本 _.:/=+-@", True),
        ("k" * 128, "v" * 256, True),
        ("key", "", True),
        ("tab\tkey", "\u00a0", True),
        ("a*b", "v", False),
        ("k", "a;b", False),
        ("k", '"quoted"', False),
        ("aws:k", "v", False),
        ("k" * 129, "v", False),
        ("k", "v" * 257, False),
        ("", "v", False),
    ],
)
def test_tags_have_the_characters_of_aws(world: World, key: str, value: str, good: bool) -> None:
    """Letters, digits and white space of Unicode, and nine signs; within AWS's lengths."""
    tags = [{"key": key, "value": value}]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("TagResource", {"resourceArn": world.machine, "tags": tags}),
        ("CreateActivity", {"name": "signs", "tags": tags}),
        (
            "CreateStateMachine",
            {"name": "signs", "definition": json.dumps(PASS), "roleArn": ROLE, "tags": tags},
        ),
    ]
    for action, params in calls:
        if good:
            world.ask(action, **params)
            continue
        with pytest.raises(ValidationException):
            world.ask(action, **params)


def test_fifty_tags_are_the_most(world: World) -> None:
    """However they are set; what was refused is not there."""
    fifty = [{"key": f"k{number}", "value": "v"} for number in range(50)]
    arn = world.fresh(PASS, tags=fifty)
    for action, params in (
        ("TagResource", {"resourceArn": arn, "tags": [{"key": "one more", "value": "v"}]}),
        ("CreateActivity", {"name": "many", "tags": [*fifty, {"key": "x", "value": "v"}]}),
    ):
        with pytest.raises(ServiceError) as caught:
            world.ask(action, **params)
        assert caught.value.code == "TooManyTags"
    assert len(world.ask("ListTagsForResource", resourceArn=arn)["tags"]) == 50
    names = [row["name"] for row in world.ask("ListActivities")["activities"]]
    assert "many" not in names


def test_a_version_has_the_configurations_it_was_published_with(world: World) -> None:
    """What is changed afterwards is the machine's; executions show what they were started with."""
    arn = world.fresh(PASS, tracingConfiguration={"enabled": True})
    version = world.version(arn)
    world.ask("UpdateStateMachine", stateMachineArn=arn, tracingConfiguration={"enabled": False})
    described = world.ask("DescribeStateMachine", stateMachineArn=version)
    assert described["tracingConfiguration"] == {"enabled": True}
    described = world.ask("DescribeStateMachine", stateMachineArn=arn)
    assert described["tracingConfiguration"] == {"enabled": False}
    execution = world.start(version)
    described = world.ask("DescribeStateMachineForExecution", executionArn=execution)
    assert described["tracingConfiguration"] == {"enabled": True}


def test_a_version_of_an_earlier_release_shows_the_machines_configurations(world: World) -> None:
    """It has none of its own."""
    arn = world.fresh(PASS, tracingConfiguration={"enabled": True})
    version = world.version(arn)
    Version.objects.update(logging=None, tracing=None, encryption=None)
    world.ask("UpdateStateMachine", stateMachineArn=arn, tracingConfiguration={"enabled": False})
    described = world.ask("DescribeStateMachine", stateMachineArn=version)
    assert described["tracingConfiguration"] == {"enabled": False}


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
    data = mocked(world, state, [1], inspectionLevel="DEBUG")["inspectionData"]
    assert set(data) == {"input", "afterResultSelector", "afterResultPath"}


def test_a_mocked_map_without_items_names_the_path(world: World) -> None:
    """In the words of TestState, which are not those of an execution."""
    inner = {"StartAt": "B", "States": {"B": {"Type": "Pass", "End": True}}}
    state = {"Type": "Map", "ItemsPath": "$.a", "ItemProcessor": inner, "End": True}
    answer = mocked(world, state, [1], input='{"a": 1}')
    assert (answer["status"], answer["error"]) == ("FAILED", "States.Runtime")
    assert answer["cause"] == 'Reference path "$.a" must point to array.'


def test_a_context_object_needs_a_mock(world: World) -> None:
    """As the API reference says."""
    state = json.dumps({"Type": "Pass", "End": True})
    with pytest.raises(ValidationException, match="Context"):
        world.ask("TestState", definition=state, context='{"State": {"Name": "s"}}')


def test_a_state_tried_without_a_role_has_a_null_role(world: World) -> None:
    """The context object has the field all the same."""
    pass_state = {"Type": "Pass", "Parameters": {"role.$": "$$.Execution.RoleArn"}, "End": True}
    answer = world.ask("TestState", definition=json.dumps(pass_state))
    assert json.loads(answer["output"]) == {"role": None}


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


def test_rules_are_of_the_regions_partition() -> None:
    """China and GovCloud have their own."""
    project = Project(account_id="123456789012")
    assert (
        rules.arn_of(project, "cn-north-1", "r")
        == "arn:aws-cn:events:cn-north-1:123456789012:rule/r"
    )
    assert rules.arn_of(project, "us-gov-west-1", "r").startswith("arn:aws-us-gov:events:")


@pytest.mark.parametrize("parameters", [{}, {"Name": None}])
def test_a_start_without_a_name_gets_one_that_can_be_repeated(parameters: dict[str, Any]) -> None:
    """A null is no name either: an attempt that is made again must start nothing twice."""
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:m"
    task = TaskAttempt(
        kind="service",
        resource="arn:aws:states:::states:startExecution",
        service="states",
        action="startExecution",
        input=json.dumps({"StateMachineArn": arn, **parameters}),
        idempotency_key="the-key",
        execution_arn="",
        token="",
    )
    asked = aws.build_request(task)
    assert isinstance(asked, aws.Request)
    assert asked.sent == {"stateMachineArn": arn, "name": "the-key"}


def test_executions_of_nothing_are_refused_in_the_words_of_the_service(world: World) -> None:
    """Others have met the error on AWS."""
    with pytest.raises(
        ValidationException, match=r"^Must provide a StateMachine ARN or MapRun ARN$"
    ):
        world.ask("ListExecutions")
