"""Jobs (``.sync``) are begun, looked at and stopped as their services want it on the wire."""

from __future__ import annotations

import json
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.aws import KEYS
from tests.acceptance.jobcases import ARN, BADLY, CASES, GOES_ON, WELL, Case
from tests.acceptance.server import Server, history, wait_for_end
from tests.acceptance.wire import Wire, WireError
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/test"
BATCH = CASES[0]
TOKEN = "$$.Task.Token"
every_job = pytest.mark.parametrize("case", CASES, ids=lambda case: case.resource)


@pytest.fixture(scope="module")
def services() -> Iterator[Wire]:
    """All services, at one address."""
    with Wire() as wire:
        yield wire


@pytest.fixture(scope="module")
def server(services: Wire, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose calls go there."""
    targets = json.dumps({"*": {"endpoint_url": services.url, **KEYS}})
    data = tmp_path_factory.mktemp("jobs") / "data"
    running = Server(data, STATEYARD_TARGETS=targets).start()
    yield running
    running.stop()


@pytest.fixture
def sfn(server: Server) -> Any:
    """A client of the server."""
    return server.client()


def definition(resource: str, parameters: Any, **more: Any) -> dict[str, Any]:
    """Return a machine of one Task."""
    arn = f"arn:aws:states:::{resource}"
    state = {"Type": "Task", "Resource": arn, "Parameters": parameters, "End": True, **more}
    return {"StartAt": "T", "States": {"T": state}}


def start(sfn: Any, definition: dict[str, Any]) -> str:
    """Start a machine of its own; return the execution."""
    machine = sfn.create_state_machine(
        name=uuid.uuid4().hex, definition=json.dumps(definition), roleArn=ROLE
    )
    arn: str = sfn.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
    return arn


def begun(sfn: Any, services: Wire, case: Case, how: int, **more: Any) -> str:
    """Start a job which then ends so; return its execution."""
    told: list[Any] = [case.told[how]]
    if how == WELL:
        told.insert(0, case.told[GOES_ON])
    answers = {case.begins[0]: case.first, case.looks[0]: told}
    if case.stops is not None:
        answers[case.stops[0]] = case.stopped or {}
    services.begin(answers)
    return start(sfn, definition(f"{case.resource}.sync", case.parameters, **more))


def kinds(sfn: Any, execution: str) -> list[str]:
    """Return the types of an execution's events."""
    return [event["type"] for event in history(sfn, execution)]


@every_job
def test_a_job_that_ends_well(sfn: Any, services: Wire, case: Case) -> None:
    """A job is begun with the state's parameters; its last description is the result."""
    execution = begun(sfn, services, case, WELL)
    ended = wait_for_end(sfn, execution)
    assert services.problems == []
    assert ended["status"] == "SUCCEEDED", ended.get("cause")
    assert json.loads(ended["output"]) == case.shown[WELL]
    (asked,) = services.asked(case.begins[0])
    assert asked.items() >= case.begins[1].items()
    assert services.asked(case.looks[0]) == [case.looks[1]] * 2
    assert case.stops is None or not services.asked(case.stops[0])
    assert kinds(sfn, execution)[2:6] == [
        *("TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded")
    ]


@every_job
def test_a_job_that_fails(sfn: Any, services: Wire, case: Case) -> None:
    """The error is States.TaskFailed, its cause the description of the job."""
    execution = begun(sfn, services, case, BADLY)
    ended = wait_for_end(sfn, execution)
    assert services.problems == []
    assert (ended["status"], ended["error"]) == ("FAILED", "States.TaskFailed"), ended
    assert json.loads(ended["cause"]) == case.shown[BADLY]
    assert "TaskFailed" in kinds(sfn, execution)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.stops], ids=lambda case: case.resource
)
def test_a_job_that_is_stopped(sfn: Any, services: Wire, case: Case) -> None:
    """StopExecution stops the job at its service, too, and once."""
    execution = begun(sfn, services, case, GOES_ON)
    wait_until(lambda: services.asked(case.looks[0]))
    assert case.stops is not None
    assert not services.asked(case.stops[0])
    sfn.stop_execution(executionArn=execution)
    wait_until(lambda: services.asked(case.stops[0]))
    assert services.asked(case.stops[0]) == [case.stops[1]]
    assert services.problems == []


def test_a_job_that_began_after_the_stop(sfn: Any, services: Wire) -> None:
    """A service that answers late is told to stop what nobody waits for."""
    services.begin({"SubmitJob": BATCH.first, "TerminateJob": {}})
    services.held["SubmitJob"] = threading.Event()
    execution = start(sfn, definition("batch:submitJob.sync", BATCH.parameters))
    wait_until(lambda: services.asked("SubmitJob"))
    sfn.stop_execution(executionArn=execution)
    services.held["SubmitJob"].set()
    wait_until(lambda: services.asked("TerminateJob"))
    assert services.asked("TerminateJob")[0]["jobId"] == "j-1"


def test_a_job_that_takes_too_long(sfn: Any, services: Wire) -> None:
    """The state's own timeout stops it as well."""
    execution = begun(sfn, services, BATCH, GOES_ON, TimeoutSeconds=1)
    assert wait_for_end(sfn, execution)["error"] == "States.Timeout"
    wait_until(lambda: services.asked("TerminateJob"))


def test_a_look_that_hangs_is_replaced(sfn: Any, services: Wire, server: Server) -> None:
    """A service that does not describe a job keeps its own thread only; the sweeper goes on."""
    execution = begun(sfn, services, BATCH, GOES_ON, TimeoutSeconds=2)
    services.held["DescribeJobs"] = threading.Event()
    wait_until(lambda: services.asked("DescribeJobs"))
    try:
        assert wait_for_end(sfn, execution)["error"] == "States.Timeout"
        wait_until(lambda: "a call hangs though its task has ended" in server.log())
    finally:
        services.held["DescribeJobs"].set()
    assert "a sweep failed" not in server.log()


def test_a_branch_that_fails_stops_the_job_of_another(sfn: Any, services: Wire) -> None:
    """When a sibling branch fails, the job of the other branch is stopped at its service."""
    services.begin({"SubmitJob": BATCH.first, "DescribeJobs": BATCH.told[GOES_ON]})
    services.answers["TerminateJob"] = {}
    job = definition("batch:submitJob.sync", BATCH.parameters)
    wait = {"Type": "Wait", "Seconds": 1, "Next": "F"}
    sibling = {"StartAt": "W", "States": {"W": wait, "F": {"Type": "Fail", "Error": "Boom"}}}
    both = {"Type": "Parallel", "Branches": [job, sibling], "End": True}
    execution = start(sfn, {"StartAt": "P", "States": {"P": both}})
    assert wait_for_end(sfn, execution)["error"] == "Boom"
    wait_until(lambda: services.asked("TerminateJob"))


@pytest.mark.parametrize(
    ("resource", "parameters", "operation", "prefix", "said"),
    [
        ("batch:submitJob.sync", BATCH.parameters, "SubmitJob", "Batch", "AWSBatch"),
        (
            *("ecs:runTask.waitForTaskToken", {"TaskDefinition": "d", "Group.$": TOKEN}),
            *("RunTask", "ECS", "AmazonECS"),
        ),
    ],
)
def test_a_job_that_is_refused(
    sfn: Any, services: Wire, resource: str, parameters: Any, operation: str, prefix: str, said: str
) -> None:
    """The error is the service's, as the integration words it; the event says it never began."""
    services.begin({operation: WireError("ClientException", "It can not be found.")})
    execution = start(sfn, definition(resource, parameters))
    ended = wait_for_end(sfn, execution)
    assert ended["error"] == f"{prefix}.ClientException"
    assert ended["cause"] == (
        f"It can not be found. (Service: {said}; Status Code: 400; "
        "Error Code: ClientException; Request ID: request-1; Proxy: null)"
    )
    assert kinds(sfn, execution)[2:5] == ["TaskScheduled", "TaskStarted", "TaskSubmitFailed"]
    (told,) = [e for e in history(sfn, execution) if e["type"] == "TaskSubmitFailed"]
    details = told["taskSubmitFailedEventDetails"]
    assert (details["resource"], details["error"]) == (resource.split(":")[1], ended["error"])


def test_a_service_that_is_busy_says_nothing_of_the_job(sfn: Any, services: Wire) -> None:
    """Throttling and trouble inside the service are asked about again."""
    busy = [
        WireError("ThrottlingException", "Rate exceeded"),
        WireError("ServerException", "not now", 500),
    ]
    answers = [*busy, BATCH.told[WELL]]
    services.begin({"SubmitJob": BATCH.first, "DescribeJobs": answers})
    execution = start(sfn, definition("batch:submitJob.sync", BATCH.parameters))
    assert wait_for_end(sfn, execution)["status"] == "SUCCEEDED"
    assert len(services.asked("DescribeJobs")) == len(busy) + 1


@pytest.mark.parametrize("pattern", ["", ".sync", ".waitForTaskToken"])
def test_a_container_that_cannot_be_placed(sfn: Any, services: Wire, pattern: str) -> None:
    """ECS answers 200 and why; only a state that waits for the container fails."""
    failures = [{"arn": "a", "reason": "RESOURCE:CPU"}]
    placed = [{"taskArn": f"{ARN}2"}]  # another of the same call
    services.begin({"RunTask": {"tasks": placed, "failures": failures}})
    parameters = {"TaskDefinition": "d", "Cluster": "c", "Count": 2}
    ended = wait_for_end(sfn, start(sfn, definition(f"ecs:runTask{pattern}", parameters)))
    shown = [{"Arn": "a", "Reason": "RESOURCE:CPU"}]
    if not pattern:
        assert json.loads(ended["output"])["Failures"] == shown
    else:
        assert (ended["error"], json.loads(ended["cause"])) == ("AmazonECS.Unknown", shown)


ARNS = [f"arn:aws:ecs:us-east-1:123456789012:task/c/{number}" for number in range(3)]


def tasks_of_ecs(*codes: int | None) -> dict[str, Any]:
    """Return how ECS describes tasks; one without an exit code still runs."""
    told = [
        {"taskArn": arn, "lastStatus": "RUNNING", "containers": [{"name": "n"}]}
        if code is None
        else {"taskArn": arn, "lastStatus": "STOPPED", "containers": [{"exitCode": code}]}
        for arn, code in zip(ARNS, codes, strict=True)
    ]
    return {"tasks": told, "failures": []}


def several_tasks(sfn: Any, services: Wire, *told: dict[str, Any]) -> str:
    """Start a state that begins three tasks at once."""
    first = {"tasks": [{"taskArn": arn} for arn in ARNS], "failures": []}
    services.begin({"RunTask": first, "DescribeTasks": list(told), "StopTask": {}})
    parameters = {"Cluster": "c", "TaskDefinition": "d", "Count": 3}
    return start(sfn, definition("ecs:runTask.sync", parameters))


def test_all_tasks_of_one_call_are_waited_for(sfn: Any, services: Wire) -> None:
    """The state waits until the last task has stopped; its result describes all of them."""
    missing = {"tasks": tasks_of_ecs(0, 0, 0)["tasks"][:2], "failures": [{"arn": ARNS[2]}]}
    told = [tasks_of_ecs(0, None, 0), missing, tasks_of_ecs(0, 0, 0)]
    ended = wait_for_end(sfn, several_tasks(sfn, services, *told))
    assert ended["status"] == "SUCCEEDED", ended
    shown = json.loads(ended["output"])["Tasks"]
    assert [(task["TaskArn"], task["Containers"][0]["ExitCode"]) for task in shown] == [
        (arn, 0) for arn in ARNS
    ]
    assert services.asked("DescribeTasks") == [{"cluster": "c", "tasks": ARNS}] * 3
    assert services.problems == []


def test_one_task_of_several_that_fails(sfn: Any, services: Wire) -> None:
    """The state fails, but not before the others have stopped."""
    told = [tasks_of_ecs(1, None, 0), tasks_of_ecs(1, 0, 0)]
    ended = wait_for_end(sfn, several_tasks(sfn, services, *told))
    assert ended["error"] == "States.TaskFailed"
    codes = [task["Containers"][0]["ExitCode"] for task in json.loads(ended["cause"])["Tasks"]]
    assert codes == [1, 0, 0]
    assert len(services.asked("DescribeTasks")) == len(told)


@pytest.mark.parametrize("how", ["stop", "timeout"])
def test_several_tasks_are_all_stopped(sfn: Any, services: Wire, how: str) -> None:
    """Each by a call of its own, also when one cannot be stopped."""
    more = {"TimeoutSeconds": 1} if how == "timeout" else {}
    first = {"tasks": [{"taskArn": arn} for arn in ARNS], "failures": []}
    refused = WireError("InvalidParameterException", "The referenced task was not found.")
    running = tasks_of_ecs(None, None, None)
    services.begin({"RunTask": first, "DescribeTasks": running, "StopTask": [refused, {}]})
    parameters = {"Cluster": "c", "TaskDefinition": "d", "Count": 3}
    execution = start(sfn, definition("ecs:runTask.sync", parameters, **more))
    wait_until(lambda: services.asked("DescribeTasks"))
    if how == "stop":
        sfn.stop_execution(executionArn=execution)
    wait_until(lambda: len(services.asked("StopTask")) == len(ARNS))
    assert services.asked("StopTask") == [{"cluster": "c", "task": arn} for arn in ARNS]


@pytest.mark.parametrize(
    ("resource", "parameters", "operation", "answer", "asked", "shown"),
    [
        (
            *("glue:startJobRun", {"JobName": "j"}, "StartJobRun", {"JobRunId": "r"}),
            *({"JobName": "j"}, {"JobName": "j", "JobRunId": "r"}),
        ),
        (
            *("emr-serverless:stopApplication", {"ApplicationId": "a"}, "StopApplication", {}),
            *({"applicationId": "a"}, {"ApplicationId": "a"}),
        ),
        (
            *("elasticmapreduce:terminateCluster", {"ClusterId": "c"}, "TerminateJobFlows", {}),
            *({"JobFlowIds": ["c"]}, {}),
        ),
        (
            "elasticmapreduce:cancelStep",
            {"ClusterId": "c", "StepId": "s"},
            "CancelSteps",
            {"CancelStepsInfoList": [{"StepId": "s", "Status": "SUBMITTED"}]},
            {"ClusterId": "c", "StepIds": ["s"]},
            {"CancelStepsInfo": {"StepId": "s", "Status": "SUBMITTED"}},
        ),
        (
            "elasticmapreduce:setClusterTerminationProtection",
            {"ClusterId": "c", "TerminationProtected": True},
            *("SetTerminationProtection", {}),
            *({"JobFlowIds": ["c"], "TerminationProtected": True}, {}),
        ),
    ],
)
def test_fields_that_the_integration_names_otherwise(
    sfn: Any,
    services: Wire,
    resource: str,
    parameters: Any,
    operation: str,
    answer: Any,
    asked: Any,
    shown: Any,
) -> None:
    """Parameters reach the service by its own names; results have the integration's names."""
    services.begin({operation: answer})
    ended = wait_for_end(sfn, start(sfn, definition(resource, parameters)))
    assert services.asked(operation) == [asked]
    output = json.loads(ended["output"])
    assert {name: output[name] for name in output if not name.startswith("Sdk")} == shown


def test_a_fleet_by_its_name(sfn: Any, services: Wire) -> None:
    """EMR knows it by an id, which is looked up."""
    fleets = [{"Id": "f-1", "Name": "core"}, {"Id": "f-2", "Name": "task"}]
    services.begin({"ListInstanceFleets": {"InstanceFleets": fleets}, "ModifyInstanceFleet": {}})
    change = {"TargetSpotCapacity": 0}
    parameters = {"ClusterId": "c", "InstanceFleetName": "task", "InstanceFleet": change}
    machine = definition("elasticmapreduce:modifyInstanceFleetByName", parameters)
    assert wait_for_end(sfn, start(sfn, machine))["status"] == "SUCCEEDED"
    (asked,) = services.asked("ModifyInstanceFleet")
    assert asked == {"ClusterId": "c", "InstanceFleet": {"InstanceFleetId": "f-2", **change}}


def test_a_number_where_a_service_wants_a_text(sfn: Any, services: Wire) -> None:
    """A number in place of a text is refused before the service is asked, by the field's name."""
    services.begin({})
    parameters = {**BATCH.parameters, "Parameters": {"frame_id": 7}}
    ended = wait_for_end(sfn, start(sfn, definition("batch:submitJob", parameters)))
    assert ended["error"] == "States.Runtime"
    assert "The value for the field 'Parameters.frame_id' must be a STRING, got 7" in ended["cause"]
    assert services.seen == []
