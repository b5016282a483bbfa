"""Jobs as data: what is asked of each service on the wire, and what a state makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ARN = "arn:aws:ecs:us-east-1:123456789012:task/c/1"
WELL, BADLY, GOES_ON = 0, 1, 2


@dataclass(frozen=True)
class Case:
    """A kind of job.

    ``begins``, ``looks``, ``stops``: operation and what the service must be asked by it (of
    ``begins`` only a part). ``first``: the answer to ``begins``. ``told``: how ``looks`` is
    answered for a job that ended well, badly, or goes on. ``shown``: the state's result of the
    first, the failure's cause of the second.
    """

    resource: str
    parameters: dict[str, Any]
    begins: tuple[str, dict[str, Any]]
    first: dict[str, Any]
    looks: tuple[str, dict[str, Any]]
    told: tuple[dict[str, Any], ...]
    shown: tuple[dict[str, Any], ...]
    stops: tuple[str, dict[str, Any]] | None
    stopped: Any = None


def _batch(status: str, **more: Any) -> dict[str, Any]:
    job = {"jobName": "n", "jobId": "j-1", "jobQueue": "q", "status": status, **more}
    return {"jobs": [{**job, "container": {"exitCode": int(status == "FAILED")}}]}


def _batch_shown(status: str, **more: Any) -> dict[str, Any]:
    job = {"JobName": "n", "JobId": "j-1", "JobQueue": "q", "Status": status, **more}
    return {**job, "Container": {"ExitCode": int(status == "FAILED")}}


def _task(status: str, code: int | None = None) -> dict[str, Any]:
    containers = [{"name": "app", **({} if code is None else {"exitCode": code})}]
    return {"tasks": [{"taskArn": ARN, "lastStatus": status, "containers": containers}]}


def _task_shown(code: int) -> dict[str, Any]:
    containers = [{"Name": "app", "ExitCode": code}]
    return {"TaskArn": ARN, "LastStatus": "STOPPED", "Containers": containers}


def _sagemaker(kind: str, **more: Any) -> Case:
    name = {f"{kind}Name": "j"}

    def told(status: str, **also: Any) -> dict[str, Any]:
        return {**name, f"{kind}Status": status, "CreationTime": 1_700_000_000, **also}

    def shown(status: str, **also: Any) -> dict[str, Any]:
        return {**told(status, **also), "CreationTime": 1_700_000_000_000}

    why = {"FailureReason": "AlgorithmError: it diverged"}
    return Case(
        f"sagemaker:create{kind}",
        {**name, **more},
        (f"Create{kind}", {**name, **more}),
        {f"{kind}Arn": "arn"},
        (f"Describe{kind}", name),
        (told("Completed"), told("Failed", **why), told("InProgress")),
        (shown("Completed"), shown("Failed", **why)),
        (f"Stop{kind}", name),
    )


def _build(kind: str, look: str, status: str) -> Case:
    """``kind``: Build or BuildBatch; ``status``: the member that has its status."""
    member = kind[0].lower() + kind[1:]
    many = {"Build": "builds", "BuildBatch": "buildBatches"}[kind]
    pascal = status[0].upper() + status[1:]

    def told(what: str) -> dict[str, Any]:
        return {many: [{"id": "p:1", status: what, "startTime": 1_700_000_000}]}

    def shown(what: str) -> dict[str, Any]:
        return {kind: {"Id": "p:1", pascal: what, "StartTime": 1_700_000_000_000}}

    return Case(
        f"codebuild:start{kind}",
        {"ProjectName": "p"},
        (f"Start{kind}", {"projectName": "p"}),
        {member: {"id": "p:1"}},
        (look, {"ids": ["p:1"]}),
        (told("SUCCEEDED"), told("FAULT"), told("IN_PROGRESS")),
        (shown("SUCCEEDED"), shown("FAULT")),
        (f"Stop{kind}", {"id": "p:1"}),
    )


def _state(member: str, key: str, states: tuple[str, str, str], **more: Any) -> Any:
    """Return the three answers of a service that tells ``{member: {key: state}}``."""
    return tuple({member: {**more, key: state}} for state in states)


def _emr(kind: str, states: tuple[str, str, str], number: str) -> Any:
    return tuple({kind: {"Id": number, "Status": {"State": state}}} for state in states)


_CLUSTER = _emr("Cluster", ("WAITING", "TERMINATED_WITH_ERRORS", "STARTING"), "c-1")
_STEP = _emr("Step", ("COMPLETED", "FAILED", "RUNNING"), "s-1")
_STEP_GIVEN = {"Name": "s", "HadoopJarStep": {"Jar": "x.jar"}}
_ROLE = "arn:aws:iam::123456789012:role/service"
_INSTANCES = {"KeepJobFlowAliveWhenNoSteps": True}
_DRIVER = {"SparkSubmit": {"EntryPoint": "s3://b/x.py"}}
_SERVERLESS = {"applicationId": "a", "jobRunId": "r"}
_CONTAINERS = {"virtualClusterId": "v", "id": "r"}
_QUERY_GIVEN = {"QueryString": "SELECT 1"}
_STATUS: tuple[dict[str, Any], ...] = tuple(
    {"QueryExecution": {"QueryExecutionId": "q", "Status": {"State": state}}}
    for state in ("SUCCEEDED", "CANCELLED", "QUEUED")
)

CASES = [
    Case(
        "batch:submitJob",
        {"JobName": "n", "JobQueue": "q", "JobDefinition": "d", "Parameters": {"a": "1"}},
        ("SubmitJob", {"jobName": "n", "jobQueue": "q", "parameters": {"a": "1"}}),
        {"jobName": "n", "jobId": "j-1"},
        ("DescribeJobs", {"jobs": ["j-1"]}),
        (_batch("SUCCEEDED"), _batch("FAILED", statusReason="exited"), _batch("RUNNABLE")),
        (_batch_shown("SUCCEEDED"), _batch_shown("FAILED", StatusReason="exited")),
        ("TerminateJob", {"jobId": "j-1", "reason": "The execution was stopped."}),
    ),
    Case(
        "ecs:runTask",
        {"Cluster": "c", "TaskDefinition": "d", "LaunchType": "FARGATE"},
        ("RunTask", {"cluster": "c", "taskDefinition": "d", "launchType": "FARGATE"}),
        {"tasks": [{"taskArn": ARN, "lastStatus": "PROVISIONING"}], "failures": []},
        ("DescribeTasks", {"cluster": "c", "tasks": [ARN]}),
        (_task("STOPPED", 0), _task("STOPPED", 137), _task("RUNNING")),
        (_task_shown(0), _task_shown(137)),
        ("StopTask", {"cluster": "c", "task": ARN}),
    ),
    Case(
        "glue:startJobRun",
        {"JobName": "j", "Arguments": {"--day": "1"}},
        ("StartJobRun", {"JobName": "j", "Arguments": {"--day": "1"}}),
        {"JobRunId": "r"},
        ("GetJobRun", {"JobName": "j", "RunId": "r"}),
        _state("JobRun", "JobRunState", ("SUCCEEDED", "TIMEOUT", "RUNNING"), Id="r"),
        ({"Id": "r", "JobRunState": "SUCCEEDED"}, {"Id": "r", "JobRunState": "TIMEOUT"}),
        ("BatchStopJobRun", {"JobName": "j", "JobRunIds": ["r"]}),
    ),
    Case(
        "databrew:startJobRun",
        {"Name": "j"},
        ("StartJobRun", {"Name": "j"}),
        {"RunId": "r"},
        ("DescribeJobRun", {"Name": "j", "RunId": "r"}),
        tuple({"JobName": "j", "State": state} for state in ("SUCCEEDED", "FAILED", "RUNNING")),
        ({"JobName": "j", "State": "SUCCEEDED"}, {"JobName": "j", "State": "FAILED"}),
        ("StopJobRun", {"Name": "j", "RunId": "r"}),
        {"RunId": "r"},
    ),
    _sagemaker("TrainingJob", RoleArn=_ROLE, OutputDataConfig={"S3OutputPath": "s3://b/o"}),
    _sagemaker(
        "TransformJob",
        ModelName="m",
        TransformInput={"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "u"}}},
        TransformOutput={"S3OutputPath": "s3://b/o"},
        TransformResources={"InstanceType": "ml.m5.large", "InstanceCount": 1},
    ),
    _sagemaker(
        "ProcessingJob",
        RoleArn=_ROLE,
        AppSpecification={"ImageUri": "i"},
        ProcessingResources={
            "ClusterConfig": {
                "InstanceType": "ml.m5.large",
                "InstanceCount": 1,
                "VolumeSizeInGB": 1,
            }
        },
    ),
    Case(
        "athena:startQueryExecution",
        _QUERY_GIVEN,
        ("StartQueryExecution", _QUERY_GIVEN),
        {"QueryExecutionId": "q"},
        ("GetQueryExecution", {"QueryExecutionId": "q"}),
        _STATUS,
        _STATUS[:2],
        ("StopQueryExecution", {"QueryExecutionId": "q"}),
    ),
    _build("Build", "BatchGetBuilds", "buildStatus"),
    _build("BuildBatch", "BatchGetBuildBatches", "buildBatchStatus"),
    Case(
        "elasticmapreduce:createCluster",
        {"Name": "c", "Instances": _INSTANCES},
        ("RunJobFlow", {"Name": "c", "Instances": _INSTANCES}),
        {"JobFlowId": "c-1"},
        ("DescribeCluster", {"ClusterId": "c-1"}),
        _CLUSTER,
        ({**_CLUSTER[0], "ClusterId": "c-1"}, _CLUSTER[1]),
        ("TerminateJobFlows", {"JobFlowIds": ["c-1"]}),
    ),
    Case(
        "elasticmapreduce:addStep",
        {"ClusterId": "c-1", "Step": _STEP_GIVEN},
        ("AddJobFlowSteps", {"JobFlowId": "c-1", "Steps": [_STEP_GIVEN]}),
        {"StepIds": ["s-1"]},
        ("DescribeStep", {"ClusterId": "c-1", "StepId": "s-1"}),
        _STEP,
        _STEP[:2],
        ("CancelSteps", {"ClusterId": "c-1", "StepIds": ["s-1"]}),
    ),
    Case(
        "emr-serverless:startJobRun",
        {"ApplicationId": "a", "ExecutionRoleArn": _ROLE, "JobDriver": _DRIVER},
        ("StartJobRun", {"applicationId": "a", "executionRoleArn": _ROLE}),
        {"applicationId": "a", "jobRunId": "r", "arn": "arn"},
        ("GetJobRun", _SERVERLESS),
        _state("jobRun", "state", ("SUCCESS", "FAILED", "RUNNING"), jobRunId="r"),
        _state("JobRun", "State", ("SUCCESS", "FAILED", ""), JobRunId="r")[:2],
        ("CancelJobRun", _SERVERLESS),
        _SERVERLESS,
    ),
    Case(
        "emr-serverless:startApplication",
        {"ApplicationId": "a"},
        ("StartApplication", {"applicationId": "a"}),
        {},
        ("GetApplication", {"applicationId": "a"}),
        _state("application", "state", ("STARTED", "TERMINATED", "STARTING"), applicationId="a"),
        (
            {"ApplicationId": "a"},
            {"Application": {"ApplicationId": "a", "State": "TERMINATED"}},
        ),
        None,
    ),
    Case(
        "emr-containers:startJobRun",
        {"VirtualClusterId": "v", "Name": "n", "ExecutionRoleArn": _ROLE},
        ("StartJobRun", {"virtualClusterId": "v", "name": "n"}),
        {"id": "r", "virtualClusterId": "v"},
        ("DescribeJobRun", _CONTAINERS),
        _state("jobRun", "state", ("COMPLETED", "FAILED", "RUNNING"), id="r"),
        _state("JobRun", "State", ("COMPLETED", "FAILED", ""), Id="r")[:2],
        ("CancelJobRun", _CONTAINERS),
        {"id": "r", "virtualClusterId": "v"},
    ),
    Case(
        "eks:createNodegroup",
        {"ClusterName": "c", "NodegroupName": "g", "Subnets": ["s"], "NodeRole": "role"},
        ("CreateNodegroup", {"clusterName": "c", "nodegroupName": "g"}),
        {"nodegroup": {"status": "CREATING"}},
        ("DescribeNodegroup", {"clusterName": "c", "nodegroupName": "g"}),
        _state("nodegroup", "status", ("ACTIVE", "CREATE_FAILED", "CREATING")),
        _state("Nodegroup", "Status", ("ACTIVE", "CREATE_FAILED", ""))[:2],
        None,
    ),
    Case(
        "mediaconvert:createJob",
        {"Role": "role", "Settings": {"AdAvailOffset": 1}},
        ("CreateJob", {"Role": "role", "Settings": {"AdAvailOffset": 1}}),
        {"Job": {"Id": "1", "Status": "SUBMITTED"}},
        ("GetJob", {"Id": "1"}),
        _state("Job", "Status", ("COMPLETE", "ERROR", "PROGRESSING"), Id="1"),
        _state("Job", "Status", ("COMPLETE", "ERROR", ""), Id="1")[:2],
        ("CancelJob", {"Id": "1"}),
    ),
    Case(
        "bedrock:createModelCustomizationJob",
        {
            "JobName": "j",
            "CustomModelName": "m",
            "RoleArn": "arn:aws:iam::1:role/r",
            "BaseModelIdentifier": "b",
            "HyperParameters": {"epochs": "1"},
            "TrainingDataConfig": {"S3Uri": "s3://b/t"},
            "OutputDataConfig": {"S3Uri": "s3://b/o"},
        },
        ("CreateModelCustomizationJob", {"jobName": "j", "customModelName": "m"}),
        {"jobArn": "arn"},
        ("GetModelCustomizationJob", {"jobIdentifier": "arn"}),
        tuple(
            {"jobName": "j", "status": status} for status in ("Completed", "Failed", "InProgress")
        ),
        ({"JobName": "j", "Status": "Completed"}, {"JobName": "j", "Status": "Failed"}),
        ("StopModelCustomizationJob", {"jobIdentifier": "arn"}),
    ),
]
