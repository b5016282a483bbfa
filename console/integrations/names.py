"""Find the AWS operation of a Task's Resource, and derive the names of its errors.

Optimized integrations use names of the AWS SDK for Java 1, ``aws-sdk`` ones of version 2; each has
its own spelling of services, exceptions and causes [recorded].
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

from console.integrations import sdk_names

if TYPE_CHECKING:
    from io import BufferedReader

    from botocore.model import OperationModel

    from console.integrations.sdk_names import FieldName

SDK = "aws-sdk:"
_HEAD = 6_000  # characters; a service's metadata stand at the beginning of its model
_OPERATION = re.compile(rb'"(\w+)"\s*:\s*\{\s*"name"\s*:\s*"\1"')
_DATA = Path(botocore.__file__).parent / "data"
_ID = re.compile(rb'"serviceId"\s*:\s*"([^"]+)"')
_EVENT_STREAM = re.compile(rb'"eventstream"\s*:\s*true')
_NOT_OFFERED_SERVICES = frozenset(
    {
        *("importexport", "simpledb", "simpledbv2"),  # not in the SDK for Java 2.x
        # Each of their resources has an endpoint of its own, which a state cannot name.
        *("apigatewaymanagementapi", "cloudsearchdomain", "iotdataplane", "mediastoredata"),
        "neptunedata",
    }
)
"""Services of botocore without an ``aws-sdk`` integration."""
_NOT_OFFERED = {
    "applicationdiscovery": {"DescribeExportConfigurations", "ExportConfigurations"},
    "codedeploy": {
        *("BatchGetDeploymentInstances", "GetDeploymentInstance", "ListDeploymentInstances"),
        "SkipWaitTimeForInstanceTermination",
    },
    "comprehendmedical": {"DetectEntities"},
    "dataexchange": {"SendApiAsset"},
    "directconnect": {
        *("AllocateConnectionOnInterconnect", "DescribeConnectionLoa"),
        *("DescribeConnectionsOnInterconnect", "DescribeInterconnectLoa"),
    },
    "efs": {"CreateTags"},
    "emr": {"DescribeJobFlows"},
    "iot": {
        *("AttachPrincipalPolicy", "DetachPrincipalPolicy"),
        *("ListPolicyPrincipals", "ListPrincipalPolicies"),
    },
    "mediapackage": {"RotateChannelCredentials"},
    "rdsdata": {"ExecuteSql"},
    "shield": {"DeleteSubscription"},
    "sts": {"AssumeRole", "AssumeRoleWithSAML", "AssumeRoleWithWebIdentity"},
}
"""Operations that AWS lists as unsupported.

Operations with event streams are detected by their models. AWS also lists ``lambda:InvokeAsync``,
which is supported here.
Source: "Learning to use AWS service SDK integrations in Step Functions".
"""


@dataclass(frozen=True, slots=True)
class OldSdkNames:
    """Names of a service in the older SDK.

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
ADDED_FIELDS = {("bedrock", "invokeModel"): {"Input": {"S3Uri"}, "Output": {"S3Uri"}}}
"""Optimized action -> fields that Step Functions adds to the request, and their members."""
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
        """Prefix of error names: the part before the dot."""
        if self.old:
            return self.old.prefix
        return sdk_names.service_class(self.model.service_model.service_id)

    @property
    def field_name(self) -> FieldName:
        """The spelling of fields in parameters and results."""
        return sdk_names.capitalized_name if self.old else sdk_names.sdk_field_name


def find_operation(service: str, action: str) -> Operation | None:
    """Return the operation a Resource names, None if there is none."""
    old = OPTIMIZED.get(service)
    name = _OTHER_NAME.get((service, action), action[:1].upper() + action[1:])
    client = client_names().get(service.removeprefix(SDK), "")
    if old is not None:
        client = _OTHER_CLIENT.get((service, action), old.client)
    if service.startswith(SDK) and not has_operation(service.removeprefix(SDK), action):
        return None
    if not client or name not in service_model(client).operation_names:
        return None
    return Operation(client, service_model(client).operation_model(name), old)


def split_added_fields(service: str, action: str, parameters: Any) -> tuple[dict[str, Any], Any]:
    """Return two parts of a request: fields that Step Functions adds to an action, and others."""
    names_added = ADDED_FIELDS.get((service, action), {})
    if not names_added or not isinstance(parameters, dict):
        return {}, parameters
    added = {key: value for key, value in parameters.items() if key in names_added}
    return added, {key: value for key, value in parameters.items() if key not in added}


def has_operation(service: str, action: str) -> bool:
    """Return whether a service of ``aws-sdk`` (``s3``) has an action (``getObject``)."""
    client = client_names().get(service, "")
    name = action[:1].upper() + action[1:]
    return bool(client) and name in _offered_names(service, client)


@lru_cache(maxsize=512)
def _offered_names(service: str, client: str) -> frozenset[str]:
    """Return the names of the operations that Step Functions can call."""
    if service in _NOT_OFFERED_SERVICES:
        return frozenset()
    with _open_model(_DATA / client) as file:
        text = file.read()
    offered = _operation_names(client, text) - _NOT_OFFERED.get(service, set())
    if not _EVENT_STREAM.search(text):
        return offered
    model = service_model(client)
    streaming = set()
    for name in model.operation_names:
        operation = model.operation_model(name)
        if operation.has_event_stream_input or operation.has_event_stream_output:
            streaming.add(name)
    return offered - streaming


def _operation_names(client: str, text: bytes) -> frozenset[str]:
    """Return the operation names without parsing the model's JSON.

    A definition may name every service: all models together take 16 seconds to parse, and their
    names 2 seconds to find.
    """
    names = _OPERATION.findall(text)
    if names:
        return frozenset(name.decode() for name in names)
    # A few models write their operations in another way.
    return frozenset(Loader().load_service_model(client, "service-2")["operations"])


@lru_cache(maxsize=64)
def service_model(client: str) -> ServiceModel:
    """Return botocore's model of a service."""
    return ServiceModel(Loader().load_service_model(client, "service-2"), client)


@lru_cache(maxsize=1)
def client_names() -> dict[str, str]:
    """Return Step Functions' names -> botocore's: ``databasemigration`` -> ``dms``."""
    names = Loader().list_available_services("service-2")
    service_ids = {name: _service_id(_DATA / name) for name in names}
    return {
        sdk_names.service_class(service_id).lower(): name
        for name, service_id in service_ids.items()
        if service_id
    }


def _open_model(folder: Path) -> gzip.GzipFile | BufferedReader:
    """Open the newest model of a service."""
    newest = max(version for version in folder.iterdir() if version.name[0].isdigit())
    packed = newest / "service-2.json.gz"
    return gzip.open(packed) if packed.exists() else (newest / "service-2.json").open("rb")


def _service_id(folder: Path) -> str:
    with _open_model(folder) as file:
        match = _ID.search(file.read(_HEAD))
    return match[1].decode() if match else ""


def exception_name(operation: Operation, *codes: str) -> str:
    """Return the error name for a service's error code.

    ``codes``: the error code in the answer. A service that spoke the query protocol before has two:
    the old code (``AWS.SimpleQueueService.NonExistentQueue``) and the shape of today.
    """
    for code in codes:
        shape = _find_shape(operation, code.rpartition("#")[2])
        if shape is not None:
            return f"{operation.prefix}.{_exception_class(operation, shape)}"
    other = operation.old.other if operation.old else f"{operation.prefix}Exception"
    return f"{operation.prefix}.{other}"


def _find_shape(operation: Operation, code: str) -> str | None:
    """Return the model's shape of an error code, which may be an alias.

    The newer SDK knows each error of a service for all of its operations: ``s3:putObject`` fails
    with ``S3.NoSuchBucketException``, although the model names it for other operations only
    [measured].
    """
    model = operation.model
    shapes: list[Any] = [*model.error_shapes]
    if operation.old is None:
        shapes += model.service_model.error_shapes
    return next(
        (str(shape.name) for shape in shapes if code in (shape.name, shape.error_code)), None
    )


def _exception_class(operation: Operation, shape: str) -> str:
    if operation.old is None:
        return sdk_names.exception_class(shape)
    return shape if shape.endswith("Exception") else shape.removesuffix("Fault") + "Exception"
