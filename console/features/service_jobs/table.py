"""Table of the ``.sync`` jobs of each service: how to poll, judge and cancel a job.

Add an entry (service and action) to support another job. Source: the pages of the optimized
integrations in the documentation, and the services' own models.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from console.integrations.jobs import NOTHING, Job

if TYPE_CHECKING:
    from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _sagemaker(kind: str) -> Job:
    name_parameter = {f"{kind}Name": f"?{kind}Name"}
    status = f"{kind}Status"
    good, bad = _words("Completed"), _words("Failed Stopped")
    return Job(
        f"describe{kind}", name_parameter, status, good, bad, cancel=(f"stop{kind}", name_parameter)
    )


def _codebuild(kind: str, look: str, stop: str) -> Job:
    build_id, where = f"@{kind}.Id", "Builds.0" if kind == "Build" else "BuildBatches.0"
    return Job(
        look,
        {"Ids": [build_id]},
        f"{where}.{kind}Status",
        _words("SUCCEEDED"),
        _words("FAILED FAULT STOPPED TIMED_OUT"),
        result=where,
        under=kind,
        cancel=(stop, {"Id": build_id}),
    )


def _eks_job(kind: str, ask: Mapping[str, Any], bad: str, *, deleted: bool = False) -> Job:
    """Return the job of an EKS resource. ``deleted``: wait for its deletion."""
    good = frozenset() if deleted else _words("ACTIVE")
    look = Job(f"describe{kind}", ask, f"{kind}.Status", good, _words(bad), gone=deleted)
    return replace(look, result=NOTHING, also={kind: f"@{kind}"}) if deleted else look


def _application(good: str, also: Mapping[str, Any], *, named: str = "?") -> Job:
    """Return the job of an EMR Serverless application. ``named``: the place of its id."""
    ask = {"ApplicationId": f"{named}ApplicationId"}
    statuses, bad = _words(good), _words("TERMINATED") - _words(good)
    ends_terminated = "TERMINATED" in statuses
    return Job(
        "getApplication",
        ask,
        "Application.State",
        statuses,
        bad,
        NOTHING,
        "",
        also,
        ends_terminated,
    )


_BATCH = _codebuild("BuildBatch", "batchGetBuildBatches", "stopBuildBatch")
_GLUE = {"JobName": "?JobName", "RunId": "@JobRunId"}
_BREW = {"Name": "?Name", "RunId": "@RunId"}
_QUERY = {"QueryExecutionId": "@QueryExecutionId"}
_STEP = {"ClusterId": "?ClusterId", "StepId": "@StepId"}
_SERVERLESS = {"ApplicationId": "@ApplicationId", "JobRunId": "@JobRunId"}
_CANCELLED = {"ApplicationId": "?ApplicationId", "JobRunId": "?JobRunId"}
_APPLICATION = {"ApplicationId": "?ApplicationId"}
_CONTAINERS = {"VirtualClusterId": "?VirtualClusterId", "Id": "@Id"}
_MODEL = {"JobIdentifier": "@JobArn"}
_FARGATE = {"ClusterName": "?ClusterName", "FargateProfileName": "?FargateProfileName"}
_GROUP = {"ClusterName": "?ClusterName", "NodegroupName": "?NodegroupName"}
_JOB = {"Id": "@Job.Id"}

JOBS: dict[tuple[str, str], Job] = {
    ("batch", "submitJob"): Job(
        "describeJobs",
        {"Jobs": ["@JobId"]},
        "Jobs.0.Status",
        _words("SUCCEEDED"),
        _words("FAILED"),
        result="Jobs.0",
        cancel=("terminateJob", {"JobId": "@JobId", "Reason": "The execution was stopped."}),
    ),
    ("ecs", "runTask"): Job(
        "describeTasks",
        {"Cluster": "?Cluster", "Tasks": "@Tasks.*.TaskArn"},
        "LastStatus",
        _words("STOPPED"),
        frozenset(),
        cancel=("stopTask", {"Cluster": "?Cluster", "Task": "@Tasks.*.TaskArn"}),
        each="Tasks",
    ),
    ("glue", "startJobRun"): Job(
        "getJobRun",
        _GLUE,
        "JobRun.JobRunState",
        _words("SUCCEEDED"),
        _words("FAILED TIMEOUT STOPPED ERROR EXPIRED"),
        result="JobRun",
        cancel=("batchStopJobRun", {"JobName": "?JobName", "JobRunIds": ["@JobRunId"]}),
    ),
    ("databrew", "startJobRun"): Job(
        "describeJobRun",
        _BREW,
        "State",
        _words("SUCCEEDED"),
        _words("FAILED TIMEOUT STOPPED"),
        cancel=("stopJobRun", _BREW),
    ),
    ("sagemaker", "createTrainingJob"): _sagemaker("TrainingJob"),
    ("sagemaker", "createTransformJob"): _sagemaker("TransformJob"),
    ("sagemaker", "createProcessingJob"): _sagemaker("ProcessingJob"),
    ("sagemaker", "createHyperParameterTuningJob"): _sagemaker("HyperParameterTuningJob"),
    ("sagemaker", "createLabelingJob"): _sagemaker("LabelingJob"),
    ("athena", "startQueryExecution"): Job(
        "getQueryExecution",
        _QUERY,
        "QueryExecution.Status.State",
        _words("SUCCEEDED"),
        _words("FAILED CANCELLED"),
        cancel=("stopQueryExecution", _QUERY),
    ),
    ("codebuild", "startBuild"): _codebuild("Build", "batchGetBuilds", "stopBuild"),
    ("codebuild", "startBuildBatch"): _BATCH,
    ("codebuild", "retryBuildBatch"): _BATCH,
    ("elasticmapreduce", "createCluster"): Job(
        "describeCluster",
        {"ClusterId": "@ClusterId"},
        "Cluster.Status.State",
        _words("WAITING"),
        _words("TERMINATING TERMINATED TERMINATED_WITH_ERRORS"),
        also={"ClusterId": "@ClusterId"},
        cancel=("terminateJobFlows", {"JobFlowIds": ["@ClusterId"]}),
    ),
    ("elasticmapreduce", "terminateCluster"): Job(
        "describeCluster",
        {"ClusterId": "?ClusterId"},
        "Cluster.Status.State",
        _words("TERMINATED TERMINATED_WITH_ERRORS"),
        frozenset(),
    ),
    ("elasticmapreduce", "addStep"): Job(
        "describeStep",
        _STEP,
        "Step.Status.State",
        _words("COMPLETED"),
        _words("FAILED CANCELLED INTERRUPTED"),
        cancel=("cancelSteps", {"ClusterId": "?ClusterId", "StepIds": ["@StepId"]}),
    ),
    ("emr-serverless", "createApplication"): _application(
        "CREATED STARTED",
        {"ApplicationId": "@ApplicationId", "Arn": "@Arn", "Name": "@Name"},
        named="@",
    ),
    ("emr-serverless", "startApplication"): _application("STARTED", _APPLICATION),
    ("emr-serverless", "stopApplication"): _application("STOPPED", _APPLICATION),
    ("emr-serverless", "deleteApplication"): _application("TERMINATED", _APPLICATION),
    ("emr-serverless", "startJobRun"): Job(
        "getJobRun",
        _SERVERLESS,
        "JobRun.State",
        _words("SUCCESS"),
        _words("FAILED CANCELLED"),
        cancel=("cancelJobRun", _SERVERLESS),
    ),
    ("emr-serverless", "cancelJobRun"): Job(
        "getJobRun", _CANCELLED, "JobRun.State", _words("CANCELLED"), _words("SUCCESS FAILED")
    ),
    ("emr-containers", "createVirtualCluster"): Job(
        "describeVirtualCluster",
        {"Id": "@Id"},
        "VirtualCluster.State",
        _words("RUNNING"),
        _words("TERMINATED ARRESTED"),
    ),
    ("emr-containers", "deleteVirtualCluster"): Job(
        "describeVirtualCluster",
        {"Id": "?Id"},
        "VirtualCluster.State",
        _words("TERMINATED"),
        _words("ARRESTED"),
        gone=True,
    ),
    ("emr-containers", "startJobRun"): Job(
        "describeJobRun",
        _CONTAINERS,
        "JobRun.State",
        _words("COMPLETED"),
        _words("FAILED CANCELLED"),
        cancel=("cancelJobRun", _CONTAINERS),
    ),
    ("eks", "createCluster"): _eks_job("Cluster", {"Name": "?Name"}, "FAILED"),
    ("eks", "deleteCluster"): _eks_job("Cluster", {"Name": "?Name"}, "FAILED", deleted=True),
    ("eks", "createNodegroup"): _eks_job("Nodegroup", _GROUP, "CREATE_FAILED DEGRADED"),
    ("eks", "deleteNodegroup"): _eks_job("Nodegroup", _GROUP, "DELETE_FAILED", deleted=True),
    ("eks", "createFargateProfile"): _eks_job("FargateProfile", _FARGATE, "CREATE_FAILED"),
    ("eks", "deleteFargateProfile"): _eks_job(
        "FargateProfile", _FARGATE, "DELETE_FAILED", deleted=True
    ),
    ("mediaconvert", "createJob"): Job(
        "getJob",
        _JOB,
        "Job.Status",
        _words("COMPLETE"),
        _words("ERROR CANCELED"),
        cancel=("cancelJob", _JOB),
    ),
    ("bedrock", "createModelCustomizationJob"): Job(
        "getModelCustomizationJob",
        _MODEL,
        "Status",
        _words("Completed"),
        _words("Failed Stopped"),
        cancel=("stopModelCustomizationJob", _MODEL),
    ),
}
