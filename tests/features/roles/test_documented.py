"""AWS's documented policy of each integration is enough, and each of its statements is needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from console.features.roles.evaluation import (
    Decision,
    RoleAccount,
    RoleReport,
    RoleSource,
    RoleVerdict,
    examine,
    least_policy,
    needs_of,
    parse_policy,
)

HOME = RoleAccount("123456789012", "us-east-1")
_REGION = "us-east-1:123456789012"
_RULE = "events:PutTargets events:PutRule events:DescribeRule"


def rule(name: str) -> tuple[str, str]:
    """Return the statement for a managed rule, whose name begins in the same way."""
    return _RULE, f"arn:aws:events:{_REGION}:rule/StepFunctionsGetEvent{name}Rule"


def arn(service: str, resource: str) -> str:
    """Return an ARN of the account."""
    return f"arn:aws:{service}:{_REGION}:{resource}"


ROLE = "arn:aws:iam::123456789012:role/job"
CLUSTER = arn("elasticmapreduce", "cluster/j-1")
PROJECT = arn("codebuild", "project/p")
ANY_PROJECT = arn("codebuild", "project/*")
APPLICATION = arn("emr-serverless", "/applications/a1")
JOB_RUNS = f"{APPLICATION}/jobruns/*"
MACHINE = arn("states", "stateMachine:child")
WORKGROUP = arn("athena", "workgroup/w")
CATALOG = arn("athena", "datacatalog/*")
VIRTUAL = arn("emr-containers", "/virtualclusters/v1")
QUERY_DATA = (
    ("s3:GetBucketLocation s3:GetObject s3:PutObject", "arn:aws:s3:::*"),
    ("glue:GetDatabase", arn("glue", "database/*")),
    ("glue:GetTable", arn("glue", "table/*")),
    ("lakeformation:GetDataAccess", "*"),
)
CONNECTION = arn("events", "connection/c/1")
SECRET = arn("secretsmanager", "secret:events!connection/*")

Statements = tuple[tuple[str, ...], ...]
"""Actions, resource, and the service that a role is passed to, of each statement."""

POLICIES: dict[str, tuple[dict[str, Any], Statements]] = {
    "lambda:invoke": (
        {"FunctionName": "f"},
        (("lambda:InvokeFunction", arn("lambda", "function:f")),),
    ),
    "lambda:invoke.waitForTaskToken": (
        {"FunctionName": arn("lambda", "function:f:live")},
        (("lambda:InvokeFunction", arn("lambda", "function:f:*")),),
    ),
    "dynamodb:getItem": (
        {"TableName": "t"},
        (("dynamodb:GetItem", arn("dynamodb", "table/t")),),
    ),
    "dynamodb:putItem": ({"TableName": "t"}, (("dynamodb:PutItem", arn("dynamodb", "table/t")),)),
    "dynamodb:updateItem": (
        {"TableName.$": "$.table"},
        (("dynamodb:UpdateItem", arn("dynamodb", "table/*")),),
    ),
    "dynamodb:deleteItem": (
        {"TableName": "t"},
        (("dynamodb:DeleteItem", arn("dynamodb", "table/t")),),
    ),
    "batch:submitJob": ({"JobName": "j"}, (("batch:SubmitJob", "*"),)),
    "batch:submitJob.sync": (
        {"JobName": "j"},
        (("batch:SubmitJob batch:DescribeJobs batch:TerminateJob", "*"), rule("sForBatchJobs")),
    ),
    "ecs:runTask": (
        {"TaskDefinition": arn("ecs", "task-definition/t:1")},
        (
            ("ecs:RunTask", arn("ecs", "task-definition/t:1")),
            ("iam:PassRole", ROLE, "ecs-tasks.amazonaws.com"),
        ),
    ),
    "ecs:runTask.sync": (
        {"TaskDefinition": arn("ecs", "task-definition/t:1")},
        (
            ("ecs:RunTask", arn("ecs", "task-definition/t:1")),
            ("ecs:StopTask ecs:DescribeTasks", "*"),
            rule("sForECSTask"),
        ),
    ),
    "ecs:runTask.waitForTaskToken": ({"TaskDefinition.$": "$.t"}, (("ecs:RunTask", "*"),)),
    "sns:publish": (
        {"TopicArn": arn("sns", "topic"), "Message": "m"},
        (("sns:Publish", arn("sns", "topic")),),
    ),
    "sns:publish.waitForTaskToken": (
        {"PhoneNumber": "+100", "Message": "m"},
        (("sns:Publish", "*"),),
    ),
    "sqs:sendMessage": (
        {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/q"},
        (("sqs:SendMessage", arn("sqs", "q")),),
    ),
    "sqs:sendMessage.waitForTaskToken": (
        {"QueueUrl": "{% $url %}"},
        (("sqs:SendMessage", arn("sqs", "*")),),
    ),
    "glue:startJobRun": ({"JobName": "j"}, (("glue:StartJobRun", "*"),)),
    "glue:startJobRun.sync": (
        {"JobName": "j"},
        (("glue:StartJobRun glue:GetJobRun glue:GetJobRuns glue:BatchStopJobRun", "*"),),
    ),
    "databrew:startJobRun": (
        {"Name": "j"},
        (("databrew:startJobRun", arn("databrew", "job/*")),),
    ),
    "databrew:startJobRun.sync": (
        {"Name": "j"},
        (
            (
                "databrew:startJobRun databrew:listJobRuns databrew:stopJobRun",
                arn("databrew", "job/*"),
            ),
        ),
    ),
    "events:putEvents": (
        {"Entries": [{"EventBusName": "b"}]},
        (("events:PutEvents", arn("events", "event-bus/b")),),
    ),
    "events:putEvents.waitForTaskToken": (
        {"Entries": [{"EventBusName": "b"}, {}]},
        (
            ("events:PutEvents", arn("events", "event-bus/b")),
            ("events:PutEvents", arn("events", "event-bus/default")),
        ),
    ),
    "apigateway:invoke": (
        {
            "ApiEndpoint": "abc.execute-api.us-east-1.amazonaws.com",
            "Method": "GET",
            "Stage": "prod",
            "Path": "/pets",
            "AuthType": "IAM_ROLE",
        },
        (("execute-api:Invoke", arn("execute-api", "abc/prod/GET/pets")),),
    ),
    "apigateway:invoke.waitForTaskToken": (
        {"ApiEndpoint.$": "$.api", "Method": "GET", "AuthType": "IAM_ROLE"},
        (("execute-api:Invoke", f"arn:aws:execute-api:{_REGION}:*"),),
    ),
    "states:startExecution": (
        {"StateMachineArn": MACHINE},
        (("states:StartExecution", MACHINE),),
    ),
    "states:startExecution.waitForTaskToken": (
        {"StateMachineArn": MACHINE},
        (("states:StartExecution", MACHINE),),
    ),
    "states:startExecution.sync": (
        {"StateMachineArn": MACHINE},
        (
            ("states:StartExecution", MACHINE),
            ("states:DescribeExecution states:StopExecution", arn("states", "execution:child:*")),
            rule("sForStepFunctionsExecution"),
        ),
    ),
    "states:startExecution.sync:2": (
        {"StateMachineArn.$": "$.machine"},
        (
            ("states:StartExecution", "*"),
            ("states:DescribeExecution states:StopExecution", arn("states", "execution:*")),
            rule("sForStepFunctionsExecution"),
        ),
    ),
    "athena:startQueryExecution": (
        {"WorkGroup": "w"},
        (
            ("athena:startQueryExecution", WORKGROUP),
            ("athena:getDataCatalog", CATALOG),
            *QUERY_DATA,
        ),
    ),
    "athena:startQueryExecution.sync": (
        {"WorkGroup": "w"},
        (
            (
                "athena:startQueryExecution athena:stopQueryExecution athena:getQueryExecution",
                WORKGROUP,
            ),
            ("athena:getDataCatalog", CATALOG),
            *QUERY_DATA,
        ),
    ),
    "athena:stopQueryExecution": (
        {"QueryExecutionId": "q"},
        (("athena:stopQueryExecution", arn("athena", "workgroup/*")),),
    ),
    "athena:getQueryExecution": (
        {"QueryExecutionId": "q"},
        (("athena:getQueryExecution", arn("athena", "workgroup/*")),),
    ),
    "athena:getQueryResults": (
        {"QueryExecutionId": "q"},
        (
            ("athena:getQueryResults", arn("athena", "workgroup/*")),
            ("s3:GetObject", "arn:aws:s3:::*"),
        ),
    ),
    "codebuild:startBuild": ({"ProjectName": "p"}, (("codebuild:StartBuild", PROJECT),)),
    "codebuild:startBuild.sync": (
        {"ProjectName": "p"},
        (
            ("codebuild:StartBuild codebuild:StopBuild codebuild:BatchGetBuilds", PROJECT),
            rule("ForCodeBuildStartBuild"),
        ),
    ),
    "codebuild:startBuildBatch": (
        {"ProjectName": "p"},
        (("codebuild:StartBuildBatch", PROJECT),),
    ),
    "codebuild:startBuildBatch.sync": (
        {"ProjectName": "p"},
        (
            (
                "codebuild:StartBuildBatch codebuild:StopBuildBatch codebuild:BatchGetBuildBatches",
                PROJECT,
            ),
            rule("ForCodeBuildStartBuildBatch"),
        ),
    ),
    "codebuild:retryBuildBatch": ({"Id": "p:1"}, (("codebuild:RetryBuildBatch", ANY_PROJECT),)),
    "codebuild:retryBuildBatch.sync": (
        {"Id": "p:1"},
        (
            (
                "codebuild:RetryBuildBatch codebuild:StopBuildBatch codebuild:BatchGetBuildBatches",
                ANY_PROJECT,
            ),
        ),
    ),
    "codebuild:stopBuild": ({"Id": "p:1"}, (("codebuild:StopBuild", ANY_PROJECT),)),
    "codebuild:stopBuildBatch": ({"Id": "p:1"}, (("codebuild:StopBuildBatch", ANY_PROJECT),)),
    "codebuild:batchDeleteBuilds": (
        {"Ids": ["p:1"]},
        (("codebuild:BatchDeleteBuilds", ANY_PROJECT),),
    ),
    "codebuild:deleteBuildBatch": ({"Id": "p:1"}, (("codebuild:DeleteBuildBatch", ANY_PROJECT),)),
    "codebuild:batchGetReports": (
        {"ReportArns": ["r"]},
        (("codebuild:BatchGetReports", arn("codebuild", "report-group/*")),),
    ),
    "elasticmapreduce:createCluster": (
        {"Name": "c", "ServiceRole": "job", "JobFlowRole": "job"},
        (("elasticmapreduce:RunJobFlow", "*"), ("iam:PassRole", ROLE)),
    ),
    "elasticmapreduce:createCluster.sync": (
        {"Name": "c", "ServiceRole": "job", "JobFlowRole": "job"},
        (
            (
                (
                    "elasticmapreduce:RunJobFlow elasticmapreduce:DescribeCluster "
                    "elasticmapreduce:TerminateJobFlows"
                ),
                "*",
            ),
            ("iam:PassRole", ROLE),
            rule("ForEMRRunJobFlow"),
        ),
    ),
    "elasticmapreduce:terminateCluster": (
        {"ClusterId": "j-1"},
        (("elasticmapreduce:TerminateJobFlows", CLUSTER),),
    ),
    "elasticmapreduce:terminateCluster.sync": (
        {"ClusterId": "j-1"},
        (
            ("elasticmapreduce:TerminateJobFlows elasticmapreduce:DescribeCluster", CLUSTER),
            rule("ForEMRTerminateJobFlows"),
        ),
    ),
    "elasticmapreduce:addStep": (
        {"ClusterId.$": "$.id"},
        (("elasticmapreduce:AddJobFlowSteps", "arn:aws:elasticmapreduce:*:*:cluster/*"),),
    ),
    "elasticmapreduce:addStep.sync": (
        {"ClusterId": "j-1"},
        (
            (
                (
                    "elasticmapreduce:AddJobFlowSteps elasticmapreduce:DescribeStep "
                    "elasticmapreduce:CancelSteps"
                ),
                CLUSTER,
            ),
            rule("ForEMRAddJobFlowSteps"),
        ),
    ),
    "elasticmapreduce:cancelStep": (
        {"ClusterId": "j-1"},
        (("elasticmapreduce:CancelSteps", CLUSTER),),
    ),
    "elasticmapreduce:setClusterTerminationProtection": (
        {"ClusterId": "j-1"},
        (("elasticmapreduce:SetTerminationProtection", CLUSTER),),
    ),
    "elasticmapreduce:modifyInstanceFleetByName": (
        {"ClusterId": "j-1"},
        (("elasticmapreduce:ModifyInstanceFleet elasticmapreduce:ListInstanceFleets", CLUSTER),),
    ),
    "elasticmapreduce:modifyInstanceGroupByName": (
        {"ClusterId": "j-1"},
        (("elasticmapreduce:ModifyInstanceGroups elasticmapreduce:ListInstanceGroups", CLUSTER),),
    ),
    "emr-containers:createVirtualCluster": (
        {"Name": "v"},
        (
            ("emr-containers:CreateVirtualCluster", "*"),
            ("iam:CreateServiceLinkedRole", "*"),
        ),
    ),
    "emr-containers:createVirtualCluster.sync": (
        {"Name": "v"},
        (
            ("emr-containers:CreateVirtualCluster", "*"),
            ("emr-containers:DescribeVirtualCluster", arn("emr-containers", "/virtualclusters/*")),
            ("iam:CreateServiceLinkedRole", "*"),
        ),
    ),
    "emr-containers:deleteVirtualCluster": (
        {"Id": "v1"},
        (("emr-containers:DeleteVirtualCluster", VIRTUAL),),
    ),
    "emr-containers:deleteVirtualCluster.sync": (
        {"Id": "v1"},
        (("emr-containers:DeleteVirtualCluster emr-containers:DescribeVirtualCluster", VIRTUAL),),
    ),
    "emr-containers:startJobRun": (
        {"VirtualClusterId": "v1", "ExecutionRoleArn": ROLE},
        (("emr-containers:StartJobRun", VIRTUAL),),
    ),
    "emr-containers:startJobRun.sync": (
        {"VirtualClusterId": "v1", "ExecutionRoleArn": ROLE},
        (
            ("emr-containers:StartJobRun", VIRTUAL),
            ("emr-containers:DescribeJobRun emr-containers:CancelJobRun", f"{VIRTUAL}/jobruns/*"),
        ),
    ),
    "emr-serverless:createApplication": (
        {"Name": "a"},
        (
            ("emr-serverless:CreateApplication", arn("emr-serverless", "/*")),
            ("iam:CreateServiceLinkedRole", "*"),
        ),
    ),
    "emr-serverless:createApplication.sync": (
        {"Name": "a"},
        (
            ("emr-serverless:CreateApplication", arn("emr-serverless", "/*")),
            (
                "emr-serverless:GetApplication emr-serverless:DeleteApplication",
                arn("emr-serverless", "/applications/*"),
            ),
            rule("sForEMRServerlessApplication"),
            ("iam:CreateServiceLinkedRole", "*"),
        ),
    ),
    **{
        f"emr-serverless:{action[:1].lower()}{action[1:]}{pattern}": (
            {"ApplicationId": "a1"},
            (
                (f"emr-serverless:{action}{more if pattern else ''}", APPLICATION),
                *((rule("sForEMRServerlessApplication"),) if pattern else ()),
            ),
        )
        for action, more in (
            (
                "StartApplication",
                " emr-serverless:GetApplication emr-serverless:StopApplication",
            ),
            ("StopApplication", " emr-serverless:GetApplication"),
            ("DeleteApplication", " emr-serverless:GetApplication"),
        )
        for pattern in ("", ".sync")
    },
    "emr-serverless:startJobRun": (
        {"ApplicationId": "a1", "ExecutionRoleArn": ROLE},
        (
            ("emr-serverless:StartJobRun", APPLICATION),
            ("iam:PassRole", ROLE, "emr-serverless.amazonaws.com"),
        ),
    ),
    "emr-serverless:startJobRun.sync": (
        {"ApplicationId": "a1", "ExecutionRoleArn": ROLE},
        (
            ("emr-serverless:StartJobRun", APPLICATION),
            ("iam:PassRole", ROLE, "emr-serverless.amazonaws.com"),
            ("emr-serverless:GetJobRun emr-serverless:CancelJobRun", JOB_RUNS),
            rule("sForEMRServerlessJob"),
        ),
    ),
    "emr-serverless:cancelJobRun": (
        {"ApplicationId": "a1", "JobRunId": "r1"},
        (("emr-serverless:CancelJobRun", f"{APPLICATION}/jobruns/r1"),),
    ),
    "emr-serverless:cancelJobRun.sync": (
        {"ApplicationId": "a1", "JobRunId": "r1"},
        (
            (
                "emr-serverless:CancelJobRun emr-serverless:GetJobRun",
                f"{APPLICATION}/jobruns/r1",
            ),
            rule("sForEMRServerlessJob"),
        ),
    ),
    "eks:createCluster": (
        {"Name": "c", "RoleArn": ROLE},
        (("eks:CreateCluster", "*"), ("iam:PassRole", ROLE, "eks.amazonaws.com")),
    ),
    "eks:createCluster.sync": (
        {"Name": "c", "RoleArn": ROLE},
        (
            ("eks:CreateCluster", "*"),
            ("eks:DescribeCluster eks:DeleteCluster", arn("eks", "cluster/*")),
            ("iam:PassRole", ROLE, "eks.amazonaws.com"),
        ),
    ),
    "eks:deleteCluster": ({"Name": "c"}, (("eks:DeleteCluster", arn("eks", "cluster/c")),)),
    "eks:deleteCluster.sync": (
        {"Name": "c"},
        (("eks:DeleteCluster eks:DescribeCluster", arn("eks", "cluster/c")),),
    ),
    "eks:createNodegroup": (
        {"ClusterName": "c", "NodegroupName": "n", "NodeRole": ROLE},
        (
            ("ec2:DescribeSubnets eks:CreateNodegroup", "*"),
            ("iam:GetRole iam:ListAttachedRolePolicies", "arn:aws:iam::123456789012:role/*"),
            ("iam:PassRole", ROLE, "eks.amazonaws.com"),
        ),
    ),
    "eks:createNodegroup.sync": (
        {"ClusterName": "c", "NodegroupName": "n", "NodeRole": ROLE},
        (
            ("ec2:DescribeSubnets eks:CreateNodegroup", "*"),
            ("eks:DescribeNodegroup eks:DeleteNodegroup", arn("eks", "nodegroup/*")),
            ("iam:GetRole iam:ListAttachedRolePolicies", "arn:aws:iam::123456789012:role/*"),
            ("iam:PassRole", ROLE, "eks.amazonaws.com"),
        ),
    ),
    "eks:deleteNodegroup": (
        {"ClusterName": "c", "NodegroupName": "n"},
        (("eks:DeleteNodegroup", arn("eks", "nodegroup/c/n/*")),),
    ),
    "eks:deleteNodegroup.sync": (
        {"ClusterName": "c", "NodegroupName": "n"},
        (("eks:DeleteNodegroup eks:DescribeNodegroup", arn("eks", "nodegroup/c/n/*")),),
    ),
    "eks:createFargateProfile": (
        {"ClusterName": "c", "FargateProfileName": "f", "PodExecutionRoleArn": ROLE},
        (
            ("eks:CreateFargateProfile", arn("eks", "cluster/c")),
            ("iam:PassRole", ROLE, "eks-fargate-pods.amazonaws.com"),
        ),
    ),
    "eks:createFargateProfile.sync": (
        {"ClusterName": "c", "FargateProfileName": "f", "PodExecutionRoleArn": ROLE},
        (
            ("eks:CreateFargateProfile", arn("eks", "cluster/c")),
            ("eks:DescribeFargateProfile", arn("eks", "fargateprofile/c/f/*")),
            ("iam:PassRole", ROLE, "eks-fargate-pods.amazonaws.com"),
        ),
    ),
    "eks:deleteFargateProfile": (
        {"ClusterName": "c", "FargateProfileName": "f"},
        (("eks:DeleteFargateProfile", arn("eks", "fargateprofile/c/f/*")),),
    ),
    "eks:deleteFargateProfile.sync": (
        {"ClusterName": "c", "FargateProfileName": "f"},
        (
            (
                "eks:DeleteFargateProfile eks:DescribeFargateProfile",
                arn("eks", "fargateprofile/c/f/*"),
            ),
        ),
    ),
    "eks:call": ({"ClusterName": "c"}, ()),
    "eks:runJob": ({"ClusterName": "c"}, ()),
    "eks:runJob.sync": ({"ClusterName": "c"}, ()),
    "mediaconvert:createJob": (
        {"Role": ROLE},
        (("iam:PassRole", "*"), ("mediaconvert:CreateJob", "*")),
    ),
    "mediaconvert:createJob.sync": (
        {"Role": ROLE},
        (
            ("iam:PassRole", "*"),
            ("mediaconvert:CreateJob mediaconvert:GetJob mediaconvert:CancelJob", "*"),
            rule("sForMediaConvertJob"),
        ),
    ),
    "bedrock:invokeModel": (
        {
            "ModelId": "amazon.titan-text-express-v1",
            "Input": {"S3Uri": "s3://in/key"},
            "Output": {"S3Uri": "s3://out/key"},
        },
        (
            (
                "bedrock:InvokeModel",
                "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-text-express-v1",
            ),
            ("s3:GetObject", "arn:aws:s3:::in/key"),
            ("s3:PutObject", "arn:aws:s3:::out/key"),
        ),
    ),
    "bedrock:invokeModel.waitForTaskToken": (
        {"ModelId": arn("bedrock", "inference-profile/us.x")},
        (("bedrock:InvokeModel", arn("bedrock", "inference-profile/us.x")),),
    ),
    "bedrock:createModelCustomizationJob": (
        {"RoleArn": ROLE},
        (
            ("bedrock:CreateModelCustomizationJob", "*"),
            ("iam:PassRole", ROLE, "bedrock.amazonaws.com"),
        ),
    ),
    "bedrock:createModelCustomizationJob.sync": (
        {"RoleArn": ROLE},
        (
            (
                (
                    "bedrock:CreateModelCustomizationJob bedrock:GetModelCustomizationJob "
                    "bedrock:StopModelCustomizationJob"
                ),
                "*",
            ),
            ("iam:PassRole", ROLE, "bedrock.amazonaws.com"),
        ),
    ),
    "bedrockagentcore:invokeHarness": (
        {"HarnessArn": arn("bedrock-agentcore", "harness/h")},
        (("bedrock-agentcore:InvokeHarness", arn("bedrock-agentcore", "harness/h")),),
    ),
    "http:invoke": (
        {
            "ApiEndpoint": "https://api.example.com/v1/pay",
            "Method": "POST",
            "InvocationConfig": {"ConnectionArn": CONNECTION},
        },
        (
            ("states:InvokeHTTPEndpoint", arn("states", "stateMachine:flow")),
            ("events:RetrieveConnectionCredentials", CONNECTION),
            ("secretsmanager:GetSecretValue secretsmanager:DescribeSecret", SECRET),
        ),
    ),
}
for _kind, _path, _name, _rules in (
    ("TrainingJob", "training-job", "TrainingJobName", "Training"),
    ("TransformJob", "transform-job", "TransformJobName", "Transform"),
    ("HyperParameterTuningJob", "hyper-parameter-tuning-job", None, "Tuning"),
    ("LabelingJob", "labeling-job", "LabelingJobName", "Labeling"),
    ("ProcessingJob", "processing-job", "ProcessingJobName", "Processing"),
):
    _parameters: dict[str, Any] = {_name or f"{_kind}Name": "j"}
    _passes = _kind != "TransformJob"
    if _kind == "HyperParameterTuningJob":
        _parameters["TrainingJobDefinition"] = {"RoleArn": ROLE}
    elif _passes:
        _parameters["RoleArn"] = ROLE
    for _pattern in ("", ".sync"):
        _actions = f"sagemaker:Create{_kind}"
        if _pattern:
            _actions += f" sagemaker:Describe{_kind} sagemaker:Stop{_kind}"
        _statements: list[tuple[str, ...]] = [
            (_actions, arn("sagemaker", f"{_path}/j*")),
            ("sagemaker:ListTags", "*"),
        ]
        if _passes:
            _statements.append(("iam:PassRole", ROLE, "sagemaker.amazonaws.com"))
        if _pattern:
            _statements.append(rule(f"sForSageMaker{_rules}Jobs"))
        POLICIES[f"sagemaker:create{_kind}{_pattern}"] = _parameters, tuple(_statements)
for _action, _path, _name in (
    ("createEndpoint", "endpoint", "EndpointName"),
    ("updateEndpoint", "endpoint", "EndpointName"),
    ("createEndpointConfig", "endpoint-config", "EndpointConfigName"),
):
    POLICIES[f"sagemaker:{_action}"] = (
        {_name: "e"},
        (
            (
                f"sagemaker:{_action[:1].upper()}{_action[1:]}",
                arn("sagemaker", f"{_path}/e"),
            ),
        ),
    )
POLICIES["sagemaker:createModel"] = (
    {"ModelName": "m", "ExecutionRoleArn": ROLE},
    (
        ("sagemaker:CreateModel", arn("sagemaker", "model/m")),
        ("iam:PassRole", ROLE, "sagemaker.amazonaws.com"),
    ),
)


def definition_of(call: str, parameters: dict[str, Any]) -> str:
    """Return a definition with one Task."""
    jsonata = any(str(value).startswith("{%") for value in parameters.values())
    fields = {"QueryLanguage": "JSONata", "Arguments": parameters} if jsonata else {}
    task = {
        "Type": "Task",
        "Resource": f"arn:aws:states:::{call}",
        "End": True,
        **(fields or {"Parameters": parameters}),
    }
    return json.dumps({"StartAt": "Call", "States": {"Call": task}})


def policy_of(statements: Statements) -> dict[str, Any]:
    """Return the policy with these statements."""
    listed: list[dict[str, Any]] = []
    for actions, resource, *service in statements:
        body: dict[str, Any] = {"Effect": "Allow", "Action": actions.split(), "Resource": resource}
        if service:
            body["Condition"] = {"StringEquals": {"iam:PassedToService": service[0]}}
        listed.append(body)
    return {"Version": "2012-10-17", "Statement": listed}


def _others(report: RoleReport) -> list[Decision]:
    """Return the decisions on permissions that are not allowed."""
    return [each for each in report.decisions if each.verdict != RoleVerdict.ALLOWED]


def test_every_integration_and_pattern_has_its_policy() -> None:
    """The table has each action and pattern that definitions may use."""
    assert set(engine.service_actions()) - POLICIES.keys() == set()
    assert POLICIES.keys() - set(engine.service_actions()) == set()


@pytest.mark.parametrize("call", sorted(POLICIES))
def test_the_documented_policy_is_enough(call: str) -> None:
    """All permissions are allowed, but for the roles of ECS that the task definition names."""
    parameters, statements = POLICIES[call]
    needs = needs_of(definition_of(call, parameters), "flow", HOME)
    role = RoleSource("r", (("policy", policy_of(statements)),))
    report = examine(needs, role, "flow")
    others = {each.need.action for each in _others(report)}
    expected = {"iam:PassRole"} if call.startswith("ecs:") else set()
    assert others == expected
    assert not report.failing
    assert not report.unused


@pytest.mark.parametrize("call", sorted(POLICIES))
def test_a_statement_that_is_left_out_is_named(call: str) -> None:
    """Without any one statement exactly its actions are missing, or named as maybe needed."""
    parameters, statements = POLICIES[call]
    needs = needs_of(definition_of(call, parameters), "flow", HOME)
    for number, (actions, *_) in enumerate(statements):
        rest = statements[:number] + statements[number + 1 :]
        role = RoleSource("r", (("policy", policy_of(rest)),) if rest else ())
        report = examine(needs, role, "flow")
        others = {each.need.action.lower() for each in _others(report)}
        expected = set(actions.lower().split())
        assert others - {"iam:passrole"} == expected - {"iam:passrole"}
        assert expected <= others
        certain = {need.action.lower() for need in needs if not need.reason}
        missing = {each.need.action.lower() for each in report.failing}
        assert missing == expected & certain


@pytest.mark.parametrize("call", sorted(POLICIES))
def test_the_least_policy_is_enough(call: str) -> None:
    """It allows what is certainly needed, each of its actions is used."""
    parameters, _ = POLICIES[call]
    needs = needs_of(definition_of(call, parameters), "flow", HOME)
    policy = least_policy(needs)
    assert all(parse_policy(policy, "policy")) or not needs
    report = examine(needs, RoleSource("r", (("policy", policy),)), "flow")
    assert [each.need.action for each in _others(report) if not each.need.reason] == []
    assert report.unused == ()
