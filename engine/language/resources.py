"""What does a Task's Resource name, and does the service know it?"""

from __future__ import annotations

import re
from functools import lru_cache

from engine.language.model import Pattern, Resource

_LAMBDA = re.compile(r"arn:aws[a-z-]*:lambda:[\w-]*:[\w-]*:function:[\w.$-]+(:[\w$-]+)?", re.ASCII)
_ACTIVITY = re.compile(r"arn:aws[a-z-]*:states:[\w-]+:\d+:activity:[^\s:]+")
_SERVICE = re.compile(
    r"arn:aws[a-z-]*:states:[\w-]*:\d*:(?P<service>aws-sdk:[\w-]+|[\w-]+):(?P<action>\w+)"
    r"(?P<pattern>\.sync:2|\.sync|\.waitForTaskToken)?",
    re.ASCII,
)
_OWN = re.compile(r"arn:aws[a-z-]*:(states|lambda):")
_RR, _SYNC, _TOKEN = "", ".sync", ".waitForTaskToken"


def _table(text: str, *patterns: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(text.split(), patterns)


OPTIMIZED: dict[str, dict[str, tuple[str, ...]]] = {
    "lambda": _table("invoke", _RR, _TOKEN),
    "dynamodb": _table("getItem putItem updateItem deleteItem", _RR),
    "batch": _table("submitJob", _RR, _SYNC),
    "ecs": _table("runTask", _RR, _SYNC, _TOKEN),
    "sns": _table("publish", _RR, _TOKEN),
    "sqs": _table("sendMessage", _RR, _TOKEN),
    "glue": _table("startJobRun", _RR, _SYNC),
    "databrew": _table("startJobRun", _RR, _SYNC),
    "sagemaker": {
        **_table(
            "createTrainingJob createTransformJob createHyperParameterTuningJob "
            "createLabelingJob createProcessingJob",
            _RR,
            _SYNC,
        ),
        **_table("createModel createEndpoint createEndpointConfig updateEndpoint", _RR),
    },
    "events": _table("putEvents", _RR, _TOKEN),
    "apigateway": _table("invoke", _RR, _TOKEN),
    "states": _table("startExecution", _RR, _SYNC, ".sync:2", _TOKEN),
    "athena": {
        **_table("startQueryExecution", _RR, _SYNC),
        **_table("stopQueryExecution getQueryExecution getQueryResults", _RR),
    },
    "codebuild": {
        **_table("startBuild startBuildBatch retryBuildBatch", _RR, _SYNC),
        **_table("stopBuild stopBuildBatch batchDeleteBuilds batchGetReports", _RR),
        **_table("deleteBuildBatch", _RR),
    },
    "elasticmapreduce": {
        **_table("createCluster terminateCluster addStep", _RR, _SYNC),
        **_table("cancelStep setClusterTerminationProtection", _RR),
        **_table("modifyInstanceFleetByName modifyInstanceGroupByName", _RR),
    },
    "emr-containers": _table("createVirtualCluster deleteVirtualCluster startJobRun", _RR, _SYNC),
    "emr-serverless": _table(
        "createApplication startApplication stopApplication deleteApplication startJobRun "
        "cancelJobRun",
        _RR,
        _SYNC,
    ),
    "eks": {
        **_table("call", _RR),
        **_table("runJob", _RR, _SYNC),
        **_table(
            "createCluster deleteCluster createNodegroup deleteNodegroup createFargateProfile "
            "deleteFargateProfile",
            _RR,
            _SYNC,
        ),
    },
    "mediaconvert": _table("createJob", _RR, _SYNC),
    "bedrock": {
        **_table("invokeModel", _RR, _TOKEN),
        **_table("createModelCustomizationJob", _RR, _SYNC),
    },
    "bedrockagentcore": _table("invokeHarness", _RR),
    "http": _table("invoke", _RR),
}


def is_own(arn: str) -> bool:
    """Tell whether a Resource is in the ARN namespaces that the service itself calls."""
    return _OWN.match(arn) is not None


@lru_cache(maxsize=2048)
def parse_resource(arn: str) -> Resource | None:
    """Take a Resource apart; None if the service would not recognise it."""
    if _LAMBDA.fullmatch(arn):
        return Resource(arn, "lambda")
    if _ACTIVITY.fullmatch(arn):
        return Resource(arn, "activity")
    match = _SERVICE.fullmatch(arn)
    if match is None:
        return None
    service, action, pattern = match["service"], match["action"], match["pattern"] or ""
    if not service.startswith("aws-sdk:"):
        patterns = OPTIMIZED.get(service, {}).get(action)
        if patterns is None or pattern not in patterns:
            return None
    elif pattern not in (_RR, _TOKEN) or not action[0].islower():
        return None
    return Resource(arn, "service", service, action, Pattern(pattern))
