"""Parse the Resource of a Task, such as ``arn:aws:states:::lambda:invoke``.

Resources are functions, activities, optimized integrations and AWS SDK integrations.
"""

from __future__ import annotations

import re
from functools import lru_cache

from engine.language.model import IntegrationPattern, Resource, TaskKind

_LAMBDA = re.compile(r"arn:aws[a-z-]*:lambda:[\w-]*:[\w-]*:function:[\w.$-]+(:[\w$-]+)?", re.ASCII)
_ACTIVITY = re.compile(r"arn:aws[a-z-]*:states:[\w-]+:\d+:activity:[^\s:]+")
_SERVICE = re.compile(
    r"arn:aws[a-z-]*:states:[\w-]*:\d*:(?P<service>aws-sdk:[\w-]+|[\w-]+):(?P<action>\w+)"
    r"(?P<pattern>\.sync:2|\.sync|\.waitForTaskToken)?",
    re.ASCII,
)
_OWN = re.compile(r"arn:aws[a-z-]*:(states|lambda):")
_ANY_ARN = re.compile(r"arn:[\w-]+:[\w-]+:[\w-]*:[\w-]*:[^${}\s]+", re.ASCII)
_RR, _SYNC, _TOKEN = "", ".sync", ".waitForTaskToken"
"""Suffixes of the integration patterns; ``_RR``: request response, which has none."""


def _actions(text: str, *patterns: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(text.split(), patterns)


OPTIMIZED: dict[str, dict[str, tuple[str, ...]]] = {
    "lambda": _actions("invoke", _RR, _TOKEN),
    "dynamodb": _actions("getItem putItem updateItem deleteItem", _RR),
    "batch": _actions("submitJob", _RR, _SYNC),
    "ecs": _actions("runTask", _RR, _SYNC, _TOKEN),
    "sns": _actions("publish", _RR, _TOKEN),
    "sqs": _actions("sendMessage", _RR, _TOKEN),
    "glue": _actions("startJobRun", _RR, _SYNC),
    "databrew": _actions("startJobRun", _RR, _SYNC),
    "sagemaker": {
        **_actions(
            "createTrainingJob createTransformJob createHyperParameterTuningJob "
            "createLabelingJob createProcessingJob",
            _RR,
            _SYNC,
        ),
        **_actions("createModel createEndpoint createEndpointConfig updateEndpoint", _RR),
    },
    "events": _actions("putEvents", _RR, _TOKEN),
    "apigateway": _actions("invoke", _RR, _TOKEN),
    "states": _actions("startExecution", _RR, _SYNC, ".sync:2", _TOKEN),
    "athena": {
        **_actions("startQueryExecution", _RR, _SYNC),
        **_actions("stopQueryExecution getQueryExecution getQueryResults", _RR),
    },
    "codebuild": {
        **_actions("startBuild startBuildBatch retryBuildBatch", _RR, _SYNC),
        **_actions("stopBuild stopBuildBatch batchDeleteBuilds batchGetReports", _RR),
        **_actions("deleteBuildBatch", _RR),
    },
    "elasticmapreduce": {
        **_actions("createCluster terminateCluster addStep", _RR, _SYNC),
        **_actions("cancelStep setClusterTerminationProtection", _RR),
        **_actions("modifyInstanceFleetByName modifyInstanceGroupByName", _RR),
    },
    "emr-containers": _actions("createVirtualCluster deleteVirtualCluster startJobRun", _RR, _SYNC),
    "emr-serverless": _actions(
        "createApplication startApplication stopApplication deleteApplication startJobRun "
        "cancelJobRun",
        _RR,
        _SYNC,
    ),
    "eks": {
        **_actions("call", _RR),
        **_actions("runJob", _RR, _SYNC),
        **_actions(
            "createCluster deleteCluster createNodegroup deleteNodegroup createFargateProfile "
            "deleteFargateProfile",
            _RR,
            _SYNC,
        ),
    },
    "mediaconvert": _actions("createJob", _RR, _SYNC),
    "bedrock": {
        **_actions("invokeModel", _RR, _TOKEN),
        **_actions("createModelCustomizationJob", _RR, _SYNC),
    },
    "bedrockagentcore": _actions("invokeHarness", _RR),
    "http": _actions("invoke", _RR),
}


def service_actions() -> tuple[str, ...]:
    """Return the optimized actions with their patterns, such as ``.sync``."""
    return tuple(
        f"{service}:{action}{pattern}"
        for service, actions in OPTIMIZED.items()
        for action, patterns in actions.items()
        for pattern in patterns
    )


def is_arn(text: str) -> bool:
    """Return whether a text is an ARN with six parts and without placeholders."""
    return _ANY_ARN.fullmatch(text) is not None


def is_own(arn: str) -> bool:
    """Return whether an ARN is of Step Functions or Lambda, so the parser must know its form."""
    return _OWN.match(arn) is not None


@lru_cache(maxsize=2048)
def parse_resource(arn: str) -> Resource | None:
    """Parse a Resource; return None if the service would not recognise it."""
    if _LAMBDA.fullmatch(arn):
        return Resource(arn, TaskKind.LAMBDA)
    if _ACTIVITY.fullmatch(arn):
        return Resource(arn, TaskKind.ACTIVITY)
    match = _SERVICE.fullmatch(arn)
    if match is None:
        return None
    service, action, pattern = match["service"], match["action"], match["pattern"] or ""
    if not service.startswith("aws-sdk:"):
        patterns = OPTIMIZED.get(service, {}).get(action)
        if patterns is None or pattern not in patterns:
            return None
    # AWS SDK integrations have no .sync, and their actions are written in camel case.
    elif pattern not in (_RR, _TOKEN) or not action[0].islower():
        return None
    return Resource(arn, TaskKind.SERVICE, service, action, IntegrationPattern(pattern))
