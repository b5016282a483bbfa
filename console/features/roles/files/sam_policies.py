"""The policy templates of SAM that state machines use.

Source: "AWS SAM policy template list". The policies of a template that is not in this module are
reported as unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from console.cli.account import Account

_FIELD = re.compile(r"\{(\w+)\}")
_TABLE = ("dynamodb:table/{TableName}", "dynamodb:table/{TableName}/index/*")
_BUCKET = ("s3:{BucketName}", "s3:{BucketName}/*")
_READ_ITEMS = (
    "dynamodb:GetItem dynamodb:Scan dynamodb:Query dynamodb:BatchGetItem dynamodb:DescribeTable"
)
_WRITE_ITEMS = "dynamodb:PutItem dynamodb:UpdateItem dynamodb:BatchWriteItem"
_READ_OBJECTS = (
    "s3:GetObject s3:ListBucket s3:GetBucketLocation s3:GetObjectVersion "
    "s3:GetLifecycleConfiguration"
)
_WRITE_OBJECTS = "s3:PutObject s3:PutObjectAcl s3:PutLifecycleConfiguration"
_MACHINE = ("states:stateMachine:{StateMachineName}",)
_TEMPLATES: dict[str, tuple[str, tuple[str, ...]]] = {
    "AWSSecretsManagerGetSecretValuePolicy": ("secretsmanager:GetSecretValue", ("{SecretArn}",)),
    "CloudWatchPutMetricPolicy": ("cloudwatch:PutMetricData", ("*",)),
    "DynamoDBCrudPolicy": (
        f"{_READ_ITEMS} {_WRITE_ITEMS} dynamodb:DeleteItem dynamodb:ConditionCheckItem",
        _TABLE,
    ),
    "DynamoDBReadPolicy": (_READ_ITEMS, _TABLE),
    "DynamoDBWritePolicy": (_WRITE_ITEMS, _TABLE),
    "EcsRunTaskPolicy": ("ecs:RunTask", ("ecs:task-definition/{TaskDefinition}",)),
    "EventBridgePutEventsPolicy": ("events:PutEvents", ("events:event-bus/{EventBusName}",)),
    "FirehoseWritePolicy": (
        "firehose:PutRecord firehose:PutRecordBatch",
        ("firehose:deliverystream/{DeliveryStreamName}",),
    ),
    "KMSDecryptPolicy": ("kms:Decrypt", ("kms:key/{KeyId}",)),
    "KMSEncryptPolicy": ("kms:Encrypt", ("kms:key/{KeyId}",)),
    "LambdaInvokePolicy": ("lambda:InvokeFunction", ("lambda:function:{FunctionName}*",)),
    "S3CrudPolicy": (f"{_READ_OBJECTS} {_WRITE_OBJECTS} s3:DeleteObject", _BUCKET),
    "S3ReadPolicy": (_READ_OBJECTS, _BUCKET),
    "S3WritePolicy": (_WRITE_OBJECTS, _BUCKET),
    "SNSPublishMessagePolicy": ("sns:Publish", ("sns:{TopicName}",)),
    "SQSSendMessagePolicy": ("sqs:SendMessage*", ("sqs:{QueueName}",)),
    "StepFunctionsCallbackPolicy": (
        "states:SendTaskFailure states:SendTaskHeartbeat states:SendTaskSuccess",
        _MACHINE,
    ),
    "StepFunctionsExecutionPolicy": ("states:StartExecution", _MACHINE),
    "StepFunctionsExecutionPolicy_v2": (
        "states:StartExecution states:StartSyncExecution",
        _MACHINE,
    ),
}
"""Name -> the actions and the resources that it allows."""


def policy_of_template(
    name: str, values: dict[str, Any], account: Account
) -> dict[str, Any] | None:
    """Return the policy of a template with its parameters, None for a template not known here."""
    template = _TEMPLATES.get(name)
    if template is None:
        return None
    actions, places = template
    resources = []
    for place in places:
        filled = _FIELD.sub(lambda match: str(values.get(match[1], "*")), place)
        if place.startswith("{") or place == "*":
            resources.append(filled)
        elif place.startswith("s3:"):
            resources.append(f"arn:{account.partition}:s3:::{filled.removeprefix('s3:')}")
        else:
            service, _, resource = filled.partition(":")
            resources.append(account.arn(service, resource))
    statement = {"Effect": "Allow", "Action": actions.split(), "Resource": resources}
    return {"Version": "2012-10-17", "Statement": [statement]}
