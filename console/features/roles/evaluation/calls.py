"""Find the permissions that one call needs, from its Task's Resource and Parameters.

A hole (``${...}``) stands for a part that is not known before an execution, see ``patterns``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from console.features.roles.evaluation.actions import (
    further_actions,
    iam_actions,
    needs_no_permission,
)
from console.features.roles.evaluation.integrations import EVERYTHING, GRANTS, UNKNOWN, Grant
from console.features.roles.evaluation.patterns import HOLE, has_holes, literal_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine import Resource

_FIELD = re.compile(r"\{([\w.?]+)(?:=([^{}]*))?\}")
_GLOBAL = {"iam": "", "s3": ""}
"""Services whose ARNs have no region."""
_QUEUE_URL = re.compile(r"https?://[^/]+/(\d{12}|\$\{[^{}]*\})/([^/]+)")
_NAME = re.compile(r"(?:\$\{[^{}]*\}|[^:])*")
"""The name at the beginning of a text such as ``name:version``; a hole may have colons."""
_MODEL = re.compile(r"[a-z0-9-]+\.[\w.:-]+")
_NAMED_RESOURCES: dict[str, tuple[tuple[str, str], ...]] = {
    "dynamodb": (("TableName", "dynamodb:table/{TableName}"),),
    "firehose": (("DeliveryStreamName", "firehose:deliverystream/{DeliveryStreamName}"),),
    "glue": (("JobName", "glue:job/{JobName}"),),
    "athena": (("WorkGroup", "athena:workgroup/{WorkGroup}"),),
    "codebuild": (("ProjectName", "codebuild:project/{ProjectName}"),),
    "kinesis": (("StreamARN", "{StreamARN}"), ("StreamName", "kinesis:stream/{StreamName}")),
    "sns": (("TopicArn", "{TopicArn}"), ("TargetArn", "{TargetArn}")),
    "states": (
        ("StateMachineArn", "{StateMachineArn}"),
        ("ExecutionArn", "{ExecutionArn}"),
        ("ActivityArn", "{ActivityArn}"),
        ("MapRunArn", "{MapRunArn}"),
    ),
}
"""IAM prefix -> request fields with the name of the resource; the first one set is used."""
_PARAMETERS = {"ssm:GetParameter", "ssm:PutParameter", "ssm:DeleteParameter"}
_OF_VERSIONS = {
    *("s3:GetObject", "s3:GetObjectAcl", "s3:GetObjectTagging", "s3:DeleteObject"),
    *("s3:PutObjectAcl", "s3:PutObjectTagging", "s3:DeleteObjectTagging"),
}
"""Actions with a different name for object versions, such as ``s3:GetObjectVersion``."""
_OF_BUCKETS = {"s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"}


@dataclass(frozen=True, slots=True)
class RoleAccount:
    """Account, region and partition of a state machine; holes for unknown ones."""

    number: str = "${AWS::AccountId}"
    region: str = "${AWS::Region}"
    partition: str = "aws"

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of the account."""
        if service == "s3":
            return f"arn:{self.partition}:s3:::{resource}"
        region = _GLOBAL.get(service, self.region)
        return f"arn:{self.partition}:{service}:{region}:{self.number}:{resource}"


@dataclass(frozen=True, slots=True)
class Need:
    """A permission that a call needs.

    ``state``: the calling state, "" for the state machine itself. ``action``: "" if unknown.
    ``resource``: an ARN, which may have holes. ``call``: such as ``sqs:sendMessage``. ``context``:
    lower-case condition keys with their values, see ``conditions``. ``reason``: why the permission
    is uncertain, "" if it is certainly needed.
    """

    state: str
    action: str
    resource: str
    call: str
    context: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RoleCall:
    """A call of a Task. ``parameters``: its Parameters or Arguments, including templates.

    ``machine``: the ARN of the state machine. ``literal``: the parameters are already evaluated.
    """

    state: str
    resource: Resource
    parameters: Any
    account: RoleAccount
    machine: str
    literal: bool = False

    @property
    def name(self) -> str:
        """The call in the form of its Resource, such as ``sqs:sendMessage``."""
        if not self.resource.service:
            return str(self.resource.kind)
        return f"{self.resource.service}:{self.resource.action}{self.resource.pattern}"

    def value(self, name: str) -> str | None:
        """Return a parameter; a hole if it is an expression, None if missing."""
        value = self.parameters
        for part in name.split("."):
            if not isinstance(value, dict):
                return HOLE if self._is_dynamic(value) else None
            if f"{part}.$" in value and not self.literal:
                return HOLE
            value = value.get(part)
        if value is None or isinstance(value, list | dict):
            return None
        if self.literal:
            return literal_text(str(value))
        return HOLE if self._is_dynamic(value) else str(value)

    def _is_dynamic(self, value: Any) -> bool:
        """Return whether a value is an expression, evaluated only in an execution."""
        return isinstance(value, str) and value.lstrip().startswith("{%") and not self.literal

    def need(
        self, action: str, resource: str, reason: str = "", context: Mapping[str, str] | None = None
    ) -> Need:
        """Return a permission of this call. ``context``: condition keys and their values."""
        keys = {key.lower(): (value,) for key, value in (context or {}).items()}
        keys["aws:requestedregion"] = (self.account.region,)
        keys["aws:principalaccount"] = (self.account.number,)
        return Need(self.state, action, resource, self.name, keys, reason)

    def arn(self, template: str) -> str:
        """Return the ARN for a resource in the notation of ``integrations``."""
        if template == EVERYTHING:
            return EVERYTHING
        if template == UNKNOWN:
            return HOLE
        values = [self.value(match[1]) or match[2] or HOLE for match in _FIELD.finditer(template)]
        if len(values) == 1 and (values[0].startswith("arn:") or template.startswith("{")):
            return values[0]
        filled = _FIELD.sub(lambda _: values.pop(0), template)
        service, _, resource = filled.partition(":")
        return self.account.arn(service, resource)


def call_needs(call: RoleCall) -> list[Need]:
    """Return the permissions of a call."""
    resource = call.resource
    if resource.kind == "activity":
        return []
    if resource.kind == "lambda":
        return [call.need("lambda:InvokeFunction", resource.arn)]
    if resource.service.startswith("aws-sdk:"):
        return list(_sdk_needs(call))
    special = _SPECIAL.get(f"{resource.service}:{resource.action}")
    if special is not None:
        return list(special(call))
    grants = GRANTS.get(f"{resource.service}:{resource.action}")
    if grants is None:
        reason = f"the permissions of {call.name} are not known here"
        return [call.need("", HOLE, reason)]
    return [need for grant in grants for need in _granted(call, grant)]


def _granted(call: RoleCall, grant: Grant) -> Iterator[Need]:
    if grant.sync and not call.resource.pattern.startswith(".sync"):
        return
    context = {"iam:PassedToService": grant.passed_to} if grant.passed_to else {}
    if grant.actions == "emr-containers:StartJobRun":
        context["emr-containers:ExecutionRoleArn"] = call.value("ExecutionRoleArn") or HOLE
    for action in grant.actions.split():
        yield call.need(action, call.arn(grant.resource), grant.reason, context)


# -- integrations with resources of their own form -------------------------------------------------


def function_arn(call: RoleCall) -> str:
    """Return the ARN of the function in a Lambda call."""
    name, qualifier = call.value("FunctionName") or HOLE, call.value("Qualifier")
    if not name.startswith("arn:"):  # a name, or ``123456789012:function:name``
        number, _, short = name.rpartition(":function:")
        account = replace(call.account, number=number or call.account.number)
        name = account.arn("lambda", f"function:{short}")
    return f"{name}:{qualifier}" if qualifier else name


def _lambda_needs(call: RoleCall) -> Iterator[Need]:
    yield call.need("lambda:InvokeFunction", function_arn(call))


def queue_arn(call: RoleCall) -> str:
    """Return the ARN of the queue whose URL an SQS call has."""
    url = call.value("QueueUrl") or HOLE
    match = _QUEUE_URL.fullmatch(url)
    if match is None:
        return call.account.arn("sqs", HOLE) if url == HOLE else HOLE
    region = re.search(r"//sqs\.([\w-]+|\$\{[^{}]*\})\.", url)
    shown = region[1] if region else call.account.region
    return f"arn:{call.account.partition}:sqs:{shown}:{match[1]}:{match[2]}"


def _queue_needs(call: RoleCall) -> Iterator[Need]:
    yield call.need("sqs:SendMessage", queue_arn(call))


def _topic_needs(call: RoleCall) -> Iterator[Need]:
    target = call.value("TopicArn") or call.value("TargetArn")
    yield call.need("sns:Publish", target or EVERYTHING)  # a phone number is no resource


def _bus_needs(call: RoleCall) -> Iterator[Need]:
    entries = call.parameters.get("Entries") if isinstance(call.parameters, dict) else None
    if not isinstance(entries, list):
        yield call.need("events:PutEvents", call.account.arn("events", f"event-bus/{HOLE}"))
        return
    for entry in entries:
        inner = replace(call, parameters=entry)
        arn = inner.arn("events:event-bus/{EventBusName=default}")
        yield call.need("events:PutEvents", arn)


def _execution_needs(call: RoleCall) -> Iterator[Need]:
    machine = call.value("StateMachineArn") or HOLE
    yield call.need("states:StartExecution", machine)
    if not call.resource.pattern.startswith(".sync"):
        return
    head, mark, name = machine.partition(":stateMachine:")
    executions = call.account.arn("states", f"execution:{HOLE}")
    if mark and (match := _NAME.match(name)):
        executions = f"{head}:execution:{match[0]}:{HOLE}"
    for action in ("states:DescribeExecution", "states:StopExecution"):
        yield call.need(action, executions)
    rule = "rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"
    for action in ("events:PutTargets", "events:PutRule", "events:DescribeRule"):
        yield call.need(action, call.account.arn("events", rule))


def _container_needs(call: RoleCall) -> Iterator[Need]:
    """Yield the needs of ``ecs:runTask``, authorized for a task definition's revision."""
    for grant in GRANTS["ecs:runTask"]:
        for need in _granted(call, grant):
            family = need.resource.rpartition(":task-definition/")[2]
            revised = need.action != "ecs:RunTask" or ":" in family or has_holes(family)
            yield need if revised else replace(need, resource=f"{need.resource}:{HOLE}")


def _gateway_needs(call: RoleCall) -> Iterator[Need]:
    kind = call.value("AuthType") or "NO_AUTH"
    if kind == "NO_AUTH":
        return
    endpoint = call.value("ApiEndpoint") or HOLE
    api = HOLE if endpoint == HOLE else endpoint.split(".")[0]
    stage, method = call.value("Stage") or HOLE, call.value("Method") or HOLE
    path = (call.value("Path") or HOLE).lstrip("/")
    reason = "" if kind == "IAM_ROLE" else "needed unless the policy of the API allows the role"
    arn = call.account.arn("execute-api", f"{api}/{stage}/{method}/{path}")
    yield call.need("execute-api:Invoke", arn, reason)


def _http_needs(call: RoleCall) -> Iterator[Need]:
    method, endpoint = call.value("Method") or HOLE, call.value("ApiEndpoint") or HOLE
    context = {"states:HTTPMethod": method, "states:HTTPEndpoint": endpoint}
    yield call.need("states:InvokeHTTPEndpoint", call.machine, "", context)
    named = call.value("InvocationConfig.ConnectionArn")
    connection = named or call.value("Authentication.ConnectionArn") or HOLE
    yield call.need("events:RetrieveConnectionCredentials", connection)
    secret = call.account.arn("secretsmanager", f"secret:events!connection/{HOLE}")
    if ":connection/" in connection:
        head, _, name = connection.partition(":connection/")
        secret = f"{head.replace(':events:', ':secretsmanager:', 1)}:secret:events!connection/"
        secret += f"{name.split('/')[0]}/{HOLE}"
    for action in ("secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"):
        yield call.need(action, secret)


def _model_needs(call: RoleCall) -> Iterator[Need]:
    model = call.value("ModelId") or HOLE
    arn = model if model.startswith("arn:") else HOLE
    if _MODEL.fullmatch(model) and arn == HOLE:
        service = f"arn:{call.account.partition}:bedrock:{call.account.region}"
        arn = f"{service}::foundation-model/{model}"
    yield call.need("bedrock:InvokeModel", arn)
    for name, action in (("Input.S3Uri", "s3:GetObject"), ("Output.S3Uri", "s3:PutObject")):
        uri = call.value(name)
        if uri is not None:
            place = uri.removeprefix("s3://") if uri.startswith("s3://") else HOLE
            yield call.need(action, call.account.arn("s3", place))


_SPECIAL: dict[str, Callable[[RoleCall], Iterator[Need]]] = {
    "lambda:invoke": _lambda_needs,
    "sqs:sendMessage": _queue_needs,
    "sns:publish": _topic_needs,
    "events:putEvents": _bus_needs,
    "states:startExecution": _execution_needs,
    "ecs:runTask": _container_needs,
    "apigateway:invoke": _gateway_needs,
    "http:invoke": _http_needs,
    "bedrock:invokeModel": _model_needs,
}


# -- aws-sdk ---------------------------------------------------------------------------------------


def _sdk_needs(call: RoleCall) -> Iterator[Need]:
    service, action = call.resource.service.removeprefix("aws-sdk:"), call.resource.action
    if needs_no_permission(service, action):
        return
    actions = iam_actions(service, action)
    if not actions:
        reason = f"IAM's actions for {call.name} are not known here"
        yield call.need("", HOLE, reason)
    for name in actions:
        if name == "kms:ReEncryptTo":
            yield call.need(name, _key_arn(call, "DestinationKeyId"))
        elif name == "events:PutEvents":
            yield from _bus_needs(call)
        else:
            versioned = name in _OF_VERSIONS and call.value("VersionId")
            shown = name.replace("Object", "ObjectVersion", 1) if versioned else name
            yield call.need(shown, _sdk_resource(call, name))
    for name in further_actions(service, action, call.parameters):
        yield call.need(name, _sdk_resource(call, name))
    if (service, action) in (("s3", "copyObject"), ("s3", "uploadPartCopy")):
        source, version, _ = (call.value("CopySource") or HOLE).partition("?versionId=")
        read = "s3:GetObjectVersion" if version else "s3:GetObject"
        yield call.need(read, call.account.arn("s3", source.lstrip("/")))


def _sdk_resource(call: RoleCall, action: str) -> str:
    """Return the ARN that an SDK operation works on, a hole if unknown."""
    prefix = action.partition(":")[0]
    if action == "lambda:InvokeFunction":
        return function_arn(call)
    if prefix == "s3":
        return _object_arn(call, action)
    if prefix == "sqs" and call.value("QueueUrl"):
        return queue_arn(call)
    if prefix == "kms" and call.value("KeyId"):
        return _key_arn(call, "KeyId")
    if prefix == "secretsmanager" and call.value("SecretId"):
        secret = call.arn("secretsmanager:secret:{SecretId}")
        return secret if call.value("SecretId") in (secret, HOLE) else f"{secret}-{HOLE}"
    if action in _PARAMETERS and call.value("Name"):
        name = (call.value("Name") or "").lstrip("/")
        return name if name.startswith("arn:") else call.account.arn("ssm", f"parameter/{name}")
    if action in ("dynamodb:Query", "dynamodb:Scan") and call.value("IndexName"):
        return call.arn("dynamodb:table/{TableName}") + f"/index/{call.value('IndexName')}"
    for name, template in _NAMED_RESOURCES.get(prefix, ()):
        if call.value(name):
            return call.arn(template)
    return HOLE


def _object_arn(call: RoleCall, action: str) -> str:
    bucket, key = call.value("Bucket"), call.value("Key")
    if action == "s3:ListAllMyBuckets":
        return EVERYTHING
    if bucket is None:
        return HOLE
    head = bucket if bucket.startswith("arn:") else call.account.arn("s3", bucket)
    if action in _OF_BUCKETS or (key is None and action != "s3:DeleteObject"):
        return head
    return f"{head}/{key or HOLE}"


def _key_arn(call: RoleCall, field_name: str) -> str:
    key = call.value(field_name) or HOLE
    if key.startswith("arn:") and ":alias/" not in key:
        return key
    return call.account.arn("kms", f"key/{HOLE if 'alias/' in key else key}")
