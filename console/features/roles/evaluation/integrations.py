"""Table of the permissions that AWS documents for each optimized integration and pattern.

Source: "How Step Functions generates IAM policies for integrated services" and the page of each
service in the Developer Guide. A resource is written as ``service:resource``; ``{Name}`` is a
parameter with its name or ARN, ``{Name=default}`` has a default.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = "?"
"""Resource of a permission that the service checks for resources not named in the call."""
EVERYTHING = "*"
"""Resource of an action that IAM cannot limit to a resource."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Actions on a resource. ``sync``: only for the pattern Run a Job.

    ``passed_to``: the service that a role is passed to. ``reason``: why it may not be needed.
    """

    actions: str
    resource: str
    sync: bool = False
    passed_to: str = ""
    reason: str = ""


def _rule(name: str) -> Grant:
    """Return the permissions for the managed rule that reports a job's end."""
    return Grant(
        "events:PutTargets events:PutRule events:DescribeRule", f"events:rule/{name}", True
    )


def _role(field: str, service: str) -> Grant:
    return Grant("iam:PassRole", f"iam:role/{{{field}}}", passed_to=f"{service}.amazonaws.com")


def _training(kind: str, rule: str, role: str, path: str) -> tuple[Grant, ...]:
    """Return the permissions of a SageMaker job. ``role``: the parameter with its role."""
    resource = f"sagemaker:{path}/{{{kind}Name}}"
    grants = (
        Grant(f"sagemaker:Create{kind}", resource),
        Grant(f"sagemaker:Describe{kind} sagemaker:Stop{kind}", resource, sync=True),
        Grant("sagemaker:ListTags", UNKNOWN, reason="needed for the tags that Step Functions adds"),
        _rule(f"StepFunctionsGetEventsForSageMaker{rule}JobsRule"),
    )
    return (*grants, _role(role, "sagemaker")) if role else grants


def _build(action: str, resource: str = "codebuild:project/{ProjectName}") -> tuple[Grant, ...]:
    return (Grant(f"codebuild:{action}", resource),)


def _serverless(action: str, cancel: str = "") -> tuple[Grant, ...]:
    application = "emr-serverless:/applications/{ApplicationId}"
    polled = f"emr-serverless:GetApplication {cancel}"
    return (
        Grant(f"emr-serverless:{action}", application),
        Grant(polled, application, sync=True),
        _rule("StepFunctionsGetEventsForEMRServerlessApplicationRule"),
    )


_CLUSTER = "elasticmapreduce:cluster/{ClusterId}"
_PROJECT = "codebuild:project/{ProjectName}"
_QUERY = "athena:workgroup/{WorkGroup=primary}"
_VIRTUAL = "emr-containers:/virtualclusters/{VirtualClusterId}"
_JOB_RUN = "emr-serverless:/applications/{ApplicationId}/jobruns/"
_OF_QUERY = "needed if the query reads or writes such data"
_OF_TASK = "needed if the task definition has a task role or an execution role"
_FIRST_USE = "needed once an account, for the service-linked role"

GRANTS: dict[str, tuple[Grant, ...]] = {
    "dynamodb:getItem": (Grant("dynamodb:GetItem", "dynamodb:table/{TableName}"),),
    "dynamodb:putItem": (Grant("dynamodb:PutItem", "dynamodb:table/{TableName}"),),
    "dynamodb:updateItem": (Grant("dynamodb:UpdateItem", "dynamodb:table/{TableName}"),),
    "dynamodb:deleteItem": (Grant("dynamodb:DeleteItem", "dynamodb:table/{TableName}"),),
    "batch:submitJob": (
        Grant("batch:SubmitJob", UNKNOWN),
        Grant("batch:DescribeJobs batch:TerminateJob", UNKNOWN, sync=True),
        _rule("StepFunctionsGetEventsForBatchJobsRule"),
    ),
    "ecs:runTask": (
        Grant("ecs:RunTask", "ecs:task-definition/{TaskDefinition}"),
        Grant("ecs:StopTask ecs:DescribeTasks", UNKNOWN, sync=True),
        _rule("StepFunctionsGetEventsForECSTaskRule"),
        Grant("iam:PassRole", UNKNOWN, passed_to="ecs-tasks.amazonaws.com", reason=_OF_TASK),
    ),
    "glue:startJobRun": (
        Grant("glue:StartJobRun", "glue:job/{JobName}"),
        Grant("glue:GetJobRun glue:GetJobRuns glue:BatchStopJobRun", "glue:job/{JobName}", True),
    ),
    "databrew:startJobRun": (
        Grant("databrew:StartJobRun", "databrew:job/{Name}"),
        Grant("databrew:ListJobRuns databrew:StopJobRun", "databrew:job/{Name}", sync=True),
    ),
    "sagemaker:createTrainingJob": _training("TrainingJob", "Training", "RoleArn", "training-job"),
    "sagemaker:createTransformJob": _training("TransformJob", "Transform", "", "transform-job"),
    "sagemaker:createHyperParameterTuningJob": _training(
        "HyperParameterTuningJob",
        "Tuning",
        "TrainingJobDefinition.RoleArn",
        "hyper-parameter-tuning-job",
    ),
    "sagemaker:createLabelingJob": _training("LabelingJob", "Labeling", "RoleArn", "labeling-job"),
    "sagemaker:createProcessingJob": _training(
        "ProcessingJob", "Processing", "RoleArn", "processing-job"
    ),
    "sagemaker:createModel": (
        Grant("sagemaker:CreateModel", "sagemaker:model/{ModelName}"),
        _role("ExecutionRoleArn", "sagemaker"),
    ),
    "sagemaker:createEndpointConfig": (
        Grant("sagemaker:CreateEndpointConfig", "sagemaker:endpoint-config/{EndpointConfigName}"),
    ),
    "sagemaker:createEndpoint": (
        Grant("sagemaker:CreateEndpoint", "sagemaker:endpoint/{EndpointName}"),
    ),
    "sagemaker:updateEndpoint": (
        Grant("sagemaker:UpdateEndpoint", "sagemaker:endpoint/{EndpointName}"),
    ),
    "athena:startQueryExecution": (
        Grant("athena:StartQueryExecution", _QUERY),
        Grant("athena:GetDataCatalog", "athena:datacatalog/{QueryExecutionContext.Catalog}"),
        Grant("athena:StopQueryExecution athena:GetQueryExecution", _QUERY, sync=True),
        Grant("s3:GetBucketLocation s3:GetObject s3:PutObject", "s3:{?}", reason=_OF_QUERY),
        Grant("glue:GetDatabase", "glue:database/{?}", reason=_OF_QUERY),
        Grant("glue:GetTable", "glue:table/{?}", reason=_OF_QUERY),
        Grant("lakeformation:GetDataAccess", UNKNOWN, reason=_OF_QUERY),
    ),
    "athena:stopQueryExecution": (Grant("athena:StopQueryExecution", "athena:workgroup/{?}"),),
    "athena:getQueryExecution": (Grant("athena:GetQueryExecution", "athena:workgroup/{?}"),),
    "athena:getQueryResults": (
        Grant("athena:GetQueryResults", "athena:workgroup/{?}"),
        Grant("s3:GetObject", "s3:{?}/{?}"),
    ),
    "codebuild:startBuild": (
        Grant("codebuild:StartBuild", _PROJECT),
        Grant("codebuild:StopBuild codebuild:BatchGetBuilds", _PROJECT, sync=True),
        _rule("StepFunctionsGetEventForCodeBuildStartBuildRule"),
    ),
    "codebuild:startBuildBatch": (
        Grant("codebuild:StartBuildBatch", _PROJECT),
        Grant("codebuild:StopBuildBatch codebuild:BatchGetBuildBatches", _PROJECT, sync=True),
        _rule("StepFunctionsGetEventForCodeBuildStartBuildBatchRule"),
    ),
    "codebuild:retryBuildBatch": (
        Grant("codebuild:RetryBuildBatch", "codebuild:project/{?}"),
        Grant(
            "codebuild:StopBuildBatch codebuild:BatchGetBuildBatches", "codebuild:project/{?}", True
        ),
    ),
    "codebuild:stopBuild": _build("StopBuild", "codebuild:project/{?}"),
    "codebuild:stopBuildBatch": _build("StopBuildBatch", "codebuild:project/{?}"),
    "codebuild:batchDeleteBuilds": _build("BatchDeleteBuilds", "codebuild:project/{?}"),
    "codebuild:deleteBuildBatch": _build("DeleteBuildBatch", "codebuild:project/{?}"),
    "codebuild:batchGetReports": _build("BatchGetReports", "codebuild:report-group/{?}"),
    "elasticmapreduce:createCluster": (
        Grant("elasticmapreduce:RunJobFlow", UNKNOWN),
        Grant("elasticmapreduce:DescribeCluster elasticmapreduce:TerminateJobFlows", UNKNOWN, True),
        Grant("iam:PassRole", "iam:role/{ServiceRole}"),
        Grant("iam:PassRole", "iam:role/{JobFlowRole}"),
        _rule("StepFunctionsGetEventForEMRRunJobFlowRule"),
    ),
    "elasticmapreduce:terminateCluster": (
        Grant("elasticmapreduce:TerminateJobFlows", _CLUSTER),
        Grant("elasticmapreduce:DescribeCluster", _CLUSTER, sync=True),
        _rule("StepFunctionsGetEventForEMRTerminateJobFlowsRule"),
    ),
    "elasticmapreduce:addStep": (
        Grant("elasticmapreduce:AddJobFlowSteps", _CLUSTER),
        Grant("elasticmapreduce:DescribeStep elasticmapreduce:CancelSteps", _CLUSTER, sync=True),
        _rule("StepFunctionsGetEventForEMRAddJobFlowStepsRule"),
    ),
    "elasticmapreduce:cancelStep": (Grant("elasticmapreduce:CancelSteps", _CLUSTER),),
    "elasticmapreduce:setClusterTerminationProtection": (
        Grant("elasticmapreduce:SetTerminationProtection", _CLUSTER),
    ),
    "elasticmapreduce:modifyInstanceFleetByName": (
        Grant("elasticmapreduce:ModifyInstanceFleet elasticmapreduce:ListInstanceFleets", _CLUSTER),
    ),
    "elasticmapreduce:modifyInstanceGroupByName": (
        Grant(
            "elasticmapreduce:ModifyInstanceGroups elasticmapreduce:ListInstanceGroups", _CLUSTER
        ),
    ),
    "emr-containers:createVirtualCluster": (
        Grant("emr-containers:CreateVirtualCluster", UNKNOWN),
        Grant("emr-containers:DescribeVirtualCluster", "emr-containers:/virtualclusters/{?}", True),
        Grant("iam:CreateServiceLinkedRole", UNKNOWN, reason=_FIRST_USE),
    ),
    "emr-containers:deleteVirtualCluster": (
        Grant("emr-containers:DeleteVirtualCluster", "emr-containers:/virtualclusters/{Id}"),
        Grant(
            "emr-containers:DescribeVirtualCluster", "emr-containers:/virtualclusters/{Id}", True
        ),
    ),
    "emr-containers:startJobRun": (
        Grant("emr-containers:StartJobRun", _VIRTUAL),
        Grant(
            "emr-containers:DescribeJobRun emr-containers:CancelJobRun",
            f"{_VIRTUAL}/jobruns/{{?}}",
            sync=True,
        ),
    ),
    "emr-serverless:createApplication": (
        Grant("emr-serverless:CreateApplication", "emr-serverless:/"),
        Grant(
            "emr-serverless:GetApplication emr-serverless:DeleteApplication",
            "emr-serverless:/applications/{?}",
            sync=True,
        ),
        _rule("StepFunctionsGetEventsForEMRServerlessApplicationRule"),
        Grant("iam:CreateServiceLinkedRole", UNKNOWN, reason=_FIRST_USE),
    ),
    "emr-serverless:startApplication": _serverless(
        "StartApplication", "emr-serverless:StopApplication"
    ),
    "emr-serverless:stopApplication": _serverless("StopApplication"),
    "emr-serverless:deleteApplication": _serverless("DeleteApplication"),
    "emr-serverless:startJobRun": (
        Grant("emr-serverless:StartJobRun", "emr-serverless:/applications/{ApplicationId}"),
        _role("ExecutionRoleArn", "emr-serverless"),
        Grant("emr-serverless:GetJobRun emr-serverless:CancelJobRun", f"{_JOB_RUN}{{?}}", True),
        _rule("StepFunctionsGetEventsForEMRServerlessJobRule"),
    ),
    "emr-serverless:cancelJobRun": (
        Grant("emr-serverless:CancelJobRun", f"{_JOB_RUN}{{JobRunId}}"),
        Grant("emr-serverless:GetJobRun", f"{_JOB_RUN}{{JobRunId}}", sync=True),
        _rule("StepFunctionsGetEventsForEMRServerlessJobRule"),
    ),
    "eks:createCluster": (
        Grant("eks:CreateCluster", UNKNOWN),
        Grant("eks:DescribeCluster eks:DeleteCluster", "eks:cluster/{Name}", sync=True),
        _role("RoleArn", "eks"),
    ),
    "eks:deleteCluster": (
        Grant("eks:DeleteCluster", "eks:cluster/{Name}"),
        Grant("eks:DescribeCluster", "eks:cluster/{Name}", sync=True),
    ),
    "eks:createNodegroup": (
        Grant("eks:CreateNodegroup ec2:DescribeSubnets", UNKNOWN),
        Grant(
            "eks:DescribeNodegroup eks:DeleteNodegroup",
            "eks:nodegroup/{ClusterName}/{NodegroupName}/{?}",
            sync=True,
        ),
        Grant("iam:GetRole iam:ListAttachedRolePolicies", "iam:role/{NodeRole}"),
        _role("NodeRole", "eks"),
    ),
    "eks:deleteNodegroup": (
        Grant("eks:DeleteNodegroup", "eks:nodegroup/{ClusterName}/{NodegroupName}/{?}"),
        Grant(
            "eks:DescribeNodegroup", "eks:nodegroup/{ClusterName}/{NodegroupName}/{?}", sync=True
        ),
    ),
    "eks:createFargateProfile": (
        Grant("eks:CreateFargateProfile", "eks:cluster/{ClusterName}"),
        Grant(
            "eks:DescribeFargateProfile",
            "eks:fargateprofile/{ClusterName}/{FargateProfileName}/{?}",
            sync=True,
        ),
        _role("PodExecutionRoleArn", "eks-fargate-pods"),
    ),
    "eks:deleteFargateProfile": (
        Grant(
            "eks:DeleteFargateProfile", "eks:fargateprofile/{ClusterName}/{FargateProfileName}/{?}"
        ),
        Grant(
            "eks:DescribeFargateProfile",
            "eks:fargateprofile/{ClusterName}/{FargateProfileName}/{?}",
            sync=True,
        ),
    ),
    "eks:call": (),  # the cluster checks the role itself
    "eks:runJob": (),
    "mediaconvert:createJob": (
        Grant("mediaconvert:CreateJob", UNKNOWN),
        Grant("mediaconvert:GetJob mediaconvert:CancelJob", UNKNOWN, sync=True),
        _role("Role", "mediaconvert"),
        _rule("StepFunctionsGetEventsForMediaConvertJobRule"),
    ),
    "bedrock:createModelCustomizationJob": (
        Grant("bedrock:CreateModelCustomizationJob", UNKNOWN),
        Grant("bedrock:GetModelCustomizationJob bedrock:StopModelCustomizationJob", UNKNOWN, True),
        _role("RoleArn", "bedrock"),
    ),
    "bedrockagentcore:invokeHarness": (Grant("bedrock-agentcore:InvokeHarness", "{HarnessArn}"),),
}
"""``service:action`` of an optimized integration -> the permissions that it needs.

The integrations with resources of another form are in ``calls``.
"""
