"""The parameters of API calls do what the service model says of them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console.awsapi.operations.call import Call
from console.awsapi.services import answer_elsewhere
from console.db.audit import NOBODY
from console.errors import ErrorCode, ValidationException
from console.models import Execution, MapRun
from console.store.machines import log_groups
from console.store.map_runs import map_runs, map_tasks
from tests.console.awsapi.world import FAIL, MAP, World, definition
from tests.console.store.helpers import PASS, ROLE, drain, ended
from tests.refusals import raises_code

if TYPE_CHECKING:
    from console.worker import Embedded

UNUSUAL = {"Type": "Pass", "Parameters": {"x": "$.y"}, "End": True}
WARNS = definition({"StartAt": "P", "States": {"P": UNUSUAL}})
BROKEN = definition({"StartAt": "A", "States": {"A": {"Type": "Pas"}, "B": {"Type": "Tas"}}})
GROUP = "arn:aws:logs:us-east-1:123456789012:log-group:/calls:*"
LOGGING = {
    "level": "ERROR",
    "includeExecutionData": True,
    "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": GROUP}}],
}
KEY = {
    "type": "CUSTOMER_MANAGED_KMS_KEY",
    "kmsKeyId": "alias/key",
    "kmsDataKeyReusePeriodSeconds": 90,
}


def test_warnings_are_told_where_they_are_asked_for(world: World) -> None:
    """ERROR leaves them out; neither makes a definition fail."""
    ask = "ValidateStateMachineDefinition"
    plain = world.ask(ask, definition=WARNS)
    assert (plain["result"], plain["diagnostics"], plain["truncated"]) == ("OK", [], False)
    answer = world.ask(ask, definition=WARNS, severity="WARNING")
    assert answer["result"] == "OK"
    assert [diagnostic["severity"] for diagnostic in answer["diagnostics"]] == ["WARNING"]
    assert {"code", "message", "location"} <= set(answer["diagnostics"][0])


def test_diagnostics_are_cut_where_that_is_asked_for(world: World) -> None:
    """``truncated`` says that there are more."""
    ask = "ValidateStateMachineDefinition"
    every = world.ask(ask, definition=BROKEN)
    assert (every["result"], every["truncated"]) == ("FAIL", False)
    assert len(every["diagnostics"]) > 1
    answer = world.ask(ask, definition=BROKEN, maxResults=1)
    assert answer == {**every, "diagnostics": every["diagnostics"][:1], "truncated": True}


def test_configurations_are_kept_and_returned(world: World) -> None:
    """Of a machine as it is, of one that was changed, and of the one that an execution ran."""
    log_groups.create_group(world.principal.project, "us-east-1", "/calls")
    configurations: dict[str, Any] = {
        "loggingConfiguration": LOGGING,
        "tracingConfiguration": {"enabled": True},
        "encryptionConfiguration": KEY,
    }
    arn = world.fresh(PASS, **configurations)
    execution = world.start(arn)
    for machine in (
        world.ask("DescribeStateMachine", stateMachineArn=arn),
        world.ask("DescribeStateMachineForExecution", executionArn=execution),
    ):
        assert {name: machine[name] for name in configurations} == configurations
    off = {"tracingConfiguration": {"enabled": False}}
    world.ask("UpdateStateMachine", stateMachineArn=arn, **off)
    machine = world.ask("DescribeStateMachine", stateMachineArn=arn)
    assert {name: machine[name] for name in configurations} == configurations | off


def test_without_configurations_aws_s_defaults_are_answered(world: World) -> None:
    """Logging is off, tracing too, and the key is AWS's own."""
    machine = world.ask("DescribeStateMachine", stateMachineArn=world.fresh(PASS))
    assert machine["loggingConfiguration"] == {"level": "OFF", "includeExecutionData": False}
    assert machine["tracingConfiguration"] == {"enabled": False}
    assert machine["encryptionConfiguration"] == {"type": "AWS_OWNED_KEY"}


def test_metadata_only_leaves_the_data_out(world: World) -> None:
    """Definitions, input and output: what a key would have to be used for."""
    arn = world.fresh(PASS)
    execution = world.start(arn)
    drain(Execution.objects.get(arn=execution))
    for action, params in (
        ("DescribeStateMachine", {"stateMachineArn": arn}),
        ("DescribeStateMachineForExecution", {"executionArn": execution}),
    ):
        whole = world.ask(action, **params)
        less = world.ask(action, **params, includedData="METADATA_ONLY")
        assert json.loads(whole["definition"]) == PASS
        assert less == whole | {"definition": "{}"}  # a member that an answer must have
    whole = world.ask("DescribeExecution", executionArn=execution)
    less = world.ask("DescribeExecution", executionArn=execution, includedData="METADATA_ONLY")
    assert set(whole) - set(less) == {"input", "inputDetails", "output", "outputDetails"}
    assert less.items() <= whole.items()


def test_an_express_child_of_a_map_run_is_described_alone(world: World) -> None:
    """Its ARN has a label and an id of the run; no action but DescribeExecution takes it.

    Source: service authorization reference, resource types "labelled express".
    """
    machine = json.loads(json.dumps(MAP))
    config = machine["States"]["M"]["ItemProcessor"]["ProcessorConfig"]
    config["ExecutionType"] = "EXPRESS"
    arn = world.fresh(machine)
    parent = Execution.objects.get(arn=world.start(arn, input="[1]"))
    drain(parent)
    run = map_runs.begin_map_run(*map_tasks.scheduled_maps()[0])
    assert run is not None
    while map_runs.advance_map_run(run):
        pass
    map_run = world.ask("ListMapRuns", executionArn=parent.arn)["mapRuns"][0]["mapRunArn"]
    child = world.ask("ListExecutions", mapRunArn=map_run)["executions"][0]["executionArn"]
    express = arn.replace(":stateMachine:", ":express:")
    assert re.fullmatch(rf"{express}/lab:[0-9a-f-]{{36}}:[0-9a-f-]{{36}}", child)
    described = world.ask("DescribeExecution", executionArn=child)
    assert (described["mapRunArn"], described["input"]) == (map_run, "1")
    assert described["stateMachineArn"] == f"{arn}/lab"
    for action in (
        *("GetExecutionHistory", "StopExecution", "RedriveExecution", "ListMapRuns"),
        "DescribeStateMachineForExecution",
    ):
        with raises_code(ErrorCode.InvalidArn, match="not valid in this context: express"):
            world.ask(action, executionArn=child)
    elsewhere = child.replace("us-east-1", "eu-west-1")
    call = Call(
        "DescribeExecution", {"executionArn": elsewhere}, world.principal, "us-east-1", NOBODY
    )
    with raises_code(ErrorCode.ExecutionDoesNotExist):
        answer_elsewhere(call)
    alone = child.replace("/lab:", ":")
    with raises_code(ErrorCode.InvalidArn, match="not valid in this context: express"):
        world.ask("DescribeExecution", executionArn=alone)


@pytest.mark.postgres_too
def test_a_history_is_read_from_both_ends(world: World) -> None:
    """``reverseOrder`` over pages gives the same events, the newest first."""
    execution = world.start(world.fresh(PASS))
    drain(Execution.objects.get(arn=execution))
    ids = []
    more: dict[str, Any] = {}
    while True:
        page = world.ask(
            "GetExecutionHistory", executionArn=execution, reverseOrder=True, maxResults=3, **more
        )
        ids += [event["id"] for event in page["events"]]
        if "nextToken" not in page:
            break
        more = {"nextToken": page["nextToken"]}
    assert ids == [4, 3, 2, 1]


@pytest.mark.postgres_too
def test_children_are_filtered_by_redrive(world: World, worker: Embedded) -> None:
    """Of a Map Run only; with a state machine the filter is refused."""
    del worker
    processor = {**MAP["States"]["M"]["ItemProcessor"], **FAIL}
    state = {**MAP["States"]["M"], "ItemProcessor": processor}
    parent = world.start(world.fresh({"StartAt": "M", "States": {"M": state}}), input="[1]")
    ended(Execution.objects.get(arn=parent))
    (run,) = world.ask("ListMapRuns", executionArn=parent)["mapRuns"]

    def count(which: str) -> int:
        answer = world.ask("ListExecutions", mapRunArn=run["mapRunArn"], redriveFilter=which)
        return len(answer["executions"])

    assert (count("REDRIVEN"), count("NOT_REDRIVEN")) == (0, 1)
    world.ask("RedriveExecution", executionArn=parent)
    ended(Execution.objects.get(arn=parent))
    assert (count("REDRIVEN"), count("NOT_REDRIVEN")) == (1, 0)
    with pytest.raises(ValidationException):
        world.ask("ListExecutions", stateMachineArn=world.machine, redriveFilter="REDRIVEN")


@pytest.mark.postgres_too
def test_children_that_wait_for_a_redrive_say_so(world: World, worker: Embedded) -> None:
    """One at a time is redriven; the others have ended badly, and are to be done again."""
    del worker
    wait = {"Type": "Wait", "SecondsPath": "$", "Next": "F"}
    fail = {"Type": "Fail", "Error": "E"}
    processor = MAP["States"]["M"]["ItemProcessor"] | {
        "StartAt": "W",
        "States": {"W": wait, "F": fail},
    }
    state = MAP["States"]["M"] | {"ItemProcessor": processor, "ToleratedFailureCount": 2}
    block = {"M": state | {"MaxConcurrency": 1, "Next": "E"}, "E": fail}
    block["M"].pop("End")
    parent = world.start(world.fresh({"StartAt": "M", "States": block}), input="[0, 0, 0]")
    ended(Execution.objects.get(arn=parent))
    (run,) = world.ask("ListMapRuns", executionArn=parent)["mapRuns"]
    MapRun.objects.update(pending_redrive=2, failed=1)
    # as while the first one, which was redriven, runs again
    first = Execution.objects.exclude(map_run=None).order_by("item_index").first()
    assert first is not None
    MapRun.objects.update(redrive_ms=first.start_ms)
    Execution.objects.filter(pk=first.pk).update(redrive_ms=first.start_ms)

    def listed(**which: str) -> list[str]:
        answer = world.ask("ListExecutions", mapRunArn=run["mapRunArn"], **which)
        return sorted(row["status"] for row in answer["executions"])

    assert listed() == ["FAILED", "PENDING_REDRIVE", "PENDING_REDRIVE"]
    assert listed(statusFilter="PENDING_REDRIVE") == ["PENDING_REDRIVE"] * 2
    assert listed(statusFilter="FAILED") == ["FAILED"]
    answer = world.ask("ListExecutions", mapRunArn=run["mapRunArn"])
    for row in answer["executions"]:
        described = world.ask("DescribeExecution", executionArn=row["executionArn"])
        assert described["status"] == row["status"]
    with pytest.raises(ValidationException):
        world.ask("ListExecutions", stateMachineArn=world.machine, statusFilter="PENDING_REDRIVE")


@pytest.mark.postgres_too
def test_creating_the_same_again_is_the_same(world: World) -> None:
    """A machine, an activity and a running execution; a role and tags do not count."""
    text = definition(PASS)
    first = world.ask("CreateStateMachine", name="same", definition=text, roleArn=ROLE)
    other = {"roleArn": f"{ROLE}2", "tags": [{"key": "k", "value": "v"}]}
    assert world.ask("CreateStateMachine", name="same", definition=text, **other) == first
    activity = world.ask("CreateActivity", name="same")
    assert world.ask("CreateActivity", name="same", tags=other["tags"]) == activity
    machine = world.fresh()
    begun = world.ask("StartExecution", stateMachineArn=machine, name="x", input="{}")
    assert world.ask("StartExecution", stateMachineArn=machine, name="x", input="{}") == begun


def test_a_map_run_counts_items_and_executions(world: World, worker: Embedded) -> None:
    """Of batches they differ: one of three fails, with two of the five items in it."""
    del worker
    which = [{"Variable": "$.Items[0]", "NumericEquals": 3, "Next": "F"}]
    line = {
        "StartAt": "C",
        "States": {
            "C": {"Type": "Choice", "Choices": which, "Default": "S"},
            "S": {"Type": "Succeed"},
            **FAIL["States"],
        },
    }
    state = {
        **MAP["States"]["M"],
        "ItemProcessor": {**MAP["States"]["M"]["ItemProcessor"], **line},
        "ItemBatcher": {"MaxItemsPerBatch": 2},
        "ToleratedFailurePercentage": 100,
    }
    machine = world.fresh({"StartAt": "M", "States": {"M": state}})
    parent = world.start(machine, input="[1, 2, 3, 4, 5]")
    ended(Execution.objects.get(arn=parent))
    (run,) = world.ask("ListMapRuns", executionArn=parent)["mapRuns"]
    answer = world.ask("DescribeMapRun", mapRunArn=run["mapRunArn"])
    expected = {"total": 3, "succeeded": 2, "failed": 1, "pending": 0, "running": 0}
    assert expected.items() <= answer["executionCounts"].items()
    expected = {"total": 5, "succeeded": 3, "failed": 2, "pending": 0, "running": 0}
    assert expected.items() <= answer["itemCounts"].items()
    assert answer["itemCounts"].keys() == answer["executionCounts"].keys()
