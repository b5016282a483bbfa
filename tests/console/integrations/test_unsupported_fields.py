"""A definition must not give an action a field that the action does not have.

Sources: developer guide, "Learning to use AWS service SDK integrations" (parameters are in
PascalCase, even if the service's own API is in camelCase); the answers of the service in
``aws/aws-step-functions-data-science-sdk-python`` issue 200 (``key`` in a list of tags) and in
``aws/aws-cdk`` issues 10014 and 17452. ``bedrock:invokeModel`` has ``Input`` and ``Output``
beside the request's members (developer guide, "Invoke and customize Amazon Bedrock models").
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.errors import InvalidDefinition
from console.integrations import parameters
from tests.console.store.helpers import create

if TYPE_CHECKING:
    from console.models import Project

TRAIN = "arn:aws:states:::sagemaker:createTrainingJob.sync"
LIST = "arn:aws:states:::aws-sdk:sfn:listStateMachines"
RUN = "arn:aws:states:::ecs:runTask"
ASK = "arn:aws:states:::bedrock:invokeModel"
GROUPS = {"AwsvpcConfiguration": {"subnets": ["s"], "SecurityGroups": ["g"]}}


def machine(resource: str, **fields: Any) -> str:
    """Return a definition with one Task."""
    task = {"Type": "Task", "Resource": resource, "End": True, **fields}
    return json.dumps({"StartAt": "Train Step", "States": {"Train Step": task}})


def refused(text: str) -> list[tuple[str, str, str]]:
    """Return code, message and place of what a definition is refused for."""
    return [(problem.code, problem.message, problem.location) for problem in engine.check(text)]


def unsupported(name: str, place: str = "/States/Train Step/Parameters") -> tuple[str, str, str]:
    """Return what is said of a field."""
    message = f'The field "{name}" is not supported by Step Functions'
    return "SCHEMA_VALIDATION_FAILED", message, place


@pytest.mark.parametrize(
    ("resource", "fields", "names"),
    [
        (TRAIN, {"Tags": [{"key": "cart", "Value": "v"}]}, ["key"]),
        (LIST, {"maxResults": 1}, ["maxResults"]),
        (LIST, {"MaxResults": 1, "Limit": 2}, ["Limit"]),
        (RUN, {"TaskDefinition": "t", "NetworkConfiguration": GROUPS}, ["subnets"]),
        (ASK, {"ModelId": "m", "Input": {"S3Url": "s3://b/i"}, "input": {}}, ["S3Url", "input"]),
        (RUN, {"taskDefinition": "t", "Overrides": {"cpu": "1"}}, ["taskDefinition", "cpu"]),
    ],
)
def test_a_field_that_the_action_does_not_have_is_refused(
    resource: str, fields: Any, names: list[str]
) -> None:
    """At any depth; a small letter at the beginning makes it another field."""
    problems = [unsupported(name) for name in names]
    assert refused(machine(resource, Parameters=fields)) == problems
    place = "/States/Train Step/Arguments"
    assert refused(machine(resource, Arguments=fields, QueryLanguage="JSONata")) == [
        unsupported(name, place) for name in names
    ]


@pytest.mark.parametrize(
    ("resource", "fields"),
    [
        (LIST, {"maxResults.$": "$.x"}),  # judged when the task runs, as the service does
        (LIST, {}),
        (ASK, {"ModelId": "m", "Input": {"S3Uri.$": "$.i"}, "Output": {"S3Uri": "s3://b/o"}}),
        ("arn:aws:states:::lambda:invoke", {"FunctionName": "f", "Payload": {"any": 1}}),
        ("arn:aws:states:::states:startExecution", {"StateMachineArn": "a", "Input": {"any": 1}}),
        (
            "arn:aws:states:::dynamodb:putItem",
            {"TableName": "t", "Item": {"small": {"S.$": "$.s"}}},
        ),
        (
            "arn:aws:states:::http:invoke",
            {"ApiEndpoint": "https://x", "Method": "GET", "InvocationConfig": {}},
        ),
        (
            "arn:aws:states:::elasticmapreduce:addStep",
            {"ClusterId": "c", "Step": {"Name": "s"}},
        ),
        ("arn:aws:lambda:us-east-1:123456789012:function:f", {"any": 1}),
    ],
)
def test_other_names_are_those_of_the_caller(resource: str, fields: Any) -> None:
    """Payloads, keys of maps and what only the execution knows are not judged."""
    assert refused(machine(resource, Parameters=fields)) == []


def test_the_place_is_named_inside_branches_and_maps() -> None:
    """As for every other error."""
    task = json.loads(machine(LIST, Parameters={"maxResults": 1}))
    fan = {"Type": "Parallel", "Branches": [task], "End": True}
    text = json.dumps({"StartAt": "P", "States": {"P": fan}})
    place = "/States/P/Branches[0]/States/Train Step/Parameters"
    assert refused(text) == [unsupported("maxResults", place)]
    fan = {"Type": "Map", "ItemProcessor": task, "End": True}
    text = json.dumps({"StartAt": "M", "States": {"M": fan}})
    place = "/States/M/ItemProcessor/States/Train Step/Parameters"
    assert refused(text) == [unsupported("maxResults", place)]


def test_a_machine_with_such_a_field_is_not_created(project: Project) -> None:
    """One that is stored already still parses, and a state of it can still be tried."""
    text = machine(LIST, Parameters={"maxResults": 1})
    words = 'The field "maxResults" is not supported by Step Functions at /States/Train Step'
    with pytest.raises(InvalidDefinition, match=words):
        create(project, json.loads(text))
    alone = json.loads(text)["States"]["Train Step"]
    for tried in (alone, {**alone, "End": False, "Next": "Elsewhere"}):
        with pytest.raises(engine.DefinitionError, match="maxResults"):
            engine.parse_state(json.dumps(tried))
    assert engine.parse_stored(text).text == text
    assert engine.parse_stored_state(text, "Train Step")[1] == "Train Step"


def test_a_stored_definition_keeps_its_small_letters() -> None:
    """It could be saved before, so its Tasks go on; a name that is unknown in any case fails."""
    parsed: Any = engine.parse_stored(machine(LIST, Parameters={}))
    task = parsed.block.states["Train Step"]
    assert parameters.parameter_problem(task.resource, "Train Step", {"maxResults": 1}) == ""
    problem = parameters.parameter_problem(task.resource, "Train Step", {"limit": 1})
    assert problem == 'The field "limit" is not supported by Step Functions'


def test_a_hostile_definition_names_every_service() -> None:
    """Only the fields of the first 20 are looked up."""
    few = ["sqs", "sns", "sfn", "ssm", "kms", "ecr", "sts", "iam", "efs", "mq", "dax", "swf"]
    few += ["ses", "acm", "ecs", "eks", "rum", "oam", "emr", "glue"]
    states = {
        str(number): {
            "Type": "Task",
            "Resource": f"arn:aws:states:::aws-sdk:{service}:{action}",
            "Parameters": {"nope": 1},
            "End": True,
        }
        for number, (service, action) in enumerate(known_actions(few))
    }
    chained = dict(states)
    for number, state in list(chained.items())[:-1]:
        chained[number] = {**state, "Next": str(int(number) + 1)}
        del chained[number]["End"]
    problems = refused(json.dumps({"StartAt": "0", "States": chained}))
    assert len(problems) == min(len(states), 20)


def known_actions(services: list[str]) -> list[tuple[str, str]]:
    """Return an action with parameters of each service that botocore knows, and of two more."""
    from console.integrations import names

    pairs = []
    for service in [*services, "rds", "athena", "batch"]:
        client = names.client_names().get(service)
        if client is None:
            continue
        model = names.service_model(client)
        actions = (
            name[:1].lower() + name[1:]
            for name in model.operation_names
            if model.operation_model(name).input_shape
        )
        pairs.append(
            (service, next(action for action in actions if names.has_operation(service, action)))
        )
    return pairs
