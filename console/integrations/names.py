"""Derive the AWS operation from a Resource, and the names of its errors.

Optimized integrations speak through the older Java SDK, ``aws-sdk`` ones through the newer; each
has its own spelling of services, exceptions and causes [recorded].
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import botocore
from botocore.loaders import Loader
from botocore.model import ServiceModel

if TYPE_CHECKING:
    from botocore.model import OperationModel

SDK = "aws-sdk:"
_HEAD = 6_000  # characters; a service's metadata stand at the beginning of its model
_ID = re.compile(rb'"serviceId"\s*:\s*"([^"]+)"')
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


@dataclass(frozen=True, slots=True)
class OldSdkNames:
    """How the older SDK calls a service.

    ``client``: botocore's name. ``prefix``: before the dot of an error. ``other``: the exception of
    an error that is not modelled. ``shown``: the service in a cause.
    """

    client: str
    prefix: str
    other: str
    shown: str


OPTIMIZED = {
    "athena": OldSdkNames("athena", "Athena", "AmazonAthenaException", "AmazonAthena"),
    "batch": OldSdkNames("batch", "Batch", "AWSBatchException", "AWSBatch"),
    "bedrock": OldSdkNames("bedrock", "Bedrock", "BedrockException", "Bedrock"),
    "codebuild": OldSdkNames("codebuild", "CodeBuild", "AWSCodeBuildException", "AWSCodeBuild"),
    "databrew": OldSdkNames("databrew", "DataBrew", "AWSGlueDataBrewException", "AWSGlueDataBrew"),
    "dynamodb": OldSdkNames("dynamodb", "DynamoDB", "AmazonDynamoDBException", "AmazonDynamoDBv2"),
    "ecs": OldSdkNames("ecs", "ECS", "AmazonECSException", "AmazonECS"),
    "eks": OldSdkNames("eks", "EKS", "AmazonEKSException", "AmazonEKS"),
    "elasticmapreduce": OldSdkNames(
        "emr", "ElasticMapReduce", "AmazonElasticMapReduceException", "AmazonElasticMapReduce"
    ),
    "emr-containers": OldSdkNames(
        "emr-containers", "EMRContainers", "AmazonEMRContainersException", "AmazonEMRContainers"
    ),
    "emr-serverless": OldSdkNames(
        "emr-serverless", "EMRServerless", "AWSEMRServerlessException", "AWSEMRServerless"
    ),
    "events": OldSdkNames(
        "events", "EventBridge", "AmazonEventBridgeException", "AmazonEventBridge"
    ),
    "glue": OldSdkNames("glue", "Glue", "AWSGlueException", "AWSGlue"),
    "lambda": OldSdkNames("lambda", "Lambda", "AWSLambdaException", "AWSLambda"),
    "mediaconvert": OldSdkNames(
        "mediaconvert", "MediaConvert", "AWSMediaConvertException", "AWSMediaConvert"
    ),
    "sagemaker": OldSdkNames(
        "sagemaker", "SageMaker", "AmazonSageMakerException", "AmazonSageMaker"
    ),
    "states": OldSdkNames(
        "stepfunctions", "StepFunctions", "AWSStepFunctionsException", "AWSStepFunctions"
    ),
    "sns": OldSdkNames("sns", "SNS", "AmazonSNSException", "AmazonSNS"),
    "sqs": OldSdkNames("sqs", "SQS", "AmazonSQSException", "AmazonSQS"),
}
_OTHER_CLIENT = {("bedrock", "invokeModel"): "bedrock-runtime"}
_OTHER_NAME = {
    ("elasticmapreduce", "createCluster"): "RunJobFlow",
    ("elasticmapreduce", "terminateCluster"): "TerminateJobFlows",
    ("elasticmapreduce", "addStep"): "AddJobFlowSteps",
    ("elasticmapreduce", "cancelStep"): "CancelSteps",
    ("elasticmapreduce", "setClusterTerminationProtection"): "SetTerminationProtection",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a service. ``old``: None for an ``aws-sdk`` integration."""

    client: str
    model: OperationModel
    old: OldSdkNames | None

    @property
    def prefix(self) -> str:
        """What stands before the dot in the names of its errors."""
        return self.old.prefix if self.old else pascal_case(self.model.service_model.service_id)


def find_operation(service: str, action: str) -> Operation | None:
    """Return the operation a Resource names, None if there is none."""
    old = OPTIMIZED.get(service)
    if old is not None:
        client = _OTHER_CLIENT.get((service, action), old.client)
    else:
        client = client_names().get(service.removeprefix(SDK), "")
    name = _OTHER_NAME.get((service, action), action[:1].upper() + action[1:])
    if not client or name not in service_model(client).operation_names:
        return None
    return Operation(client, service_model(client).operation_model(name), old)


@lru_cache(maxsize=64)
def service_model(client: str) -> ServiceModel:
    """Return botocore's model of a service."""
    return ServiceModel(Loader().load_service_model(client, "service-2"), client)


@lru_cache(maxsize=1)
def client_names() -> dict[str, str]:
    """Return the Java SDK's names -> botocore's: ``sfn`` -> ``stepfunctions``."""
    data = Path(botocore.__file__).parent / "data"
    names = Loader().list_available_services("service-2")
    found = {_service_id(data / name): name for name in names}
    return {re.sub(r"[\s-]", "", known).lower(): name for known, name in found.items() if known}


def _service_id(folder: Path) -> str:
    newest = max(one for one in folder.iterdir() if one.name[0].isdigit())
    packed = newest / "service-2.json.gz"
    plain = newest / "service-2.json"
    with gzip.open(packed) if packed.exists() else plain.open("rb") as file:
        match = _ID.search(file.read(_HEAD))
    return match[1].decode() if match else ""


def pascal_case(name: str) -> str:
    """Return a name as Java's classes are called: ``DynamoDB`` -> ``DynamoDb``."""
    return "".join(word[:1].upper() + word[1:].lower() for word in _WORD.findall(name))


def exception_name(operation: Operation, code: str) -> str:
    """Return the name of the error a service answered with ``code``."""
    shape = _modelled(operation, code)
    if shape is not None:
        return f"{operation.prefix}.{_exception_name(shape)}"
    other = operation.old.other if operation.old else f"{operation.prefix}Exception"
    return f"{operation.prefix}.{other}"


def _modelled(operation: Operation, code: str) -> str | None:
    """Return the shape of an error, which may be sent under another code."""
    code = code.rpartition("#")[2]
    shapes: list[Any] = operation.model.error_shapes
    for shape in shapes:
        if code in (shape.name, shape.error_code):
            return str(shape.name)
    return None


def _exception_name(shape: str) -> str:
    if shape.endswith("Exception"):
        return shape
    return shape.removesuffix("Fault") + "Exception"
