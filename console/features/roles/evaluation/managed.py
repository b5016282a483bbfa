"""AWS managed policies that roles of state machines often have.

Source: "AWS managed policy reference". A role with another managed policy has a gap: it may allow
more than is known.
"""

from __future__ import annotations

from typing import Any

_STATEMENTS: dict[str, tuple[str, ...]] = {
    "AdministratorAccess": ("*",),
    "AWSLambdaRole": ("lambda:InvokeFunction",),
    "AWSStepFunctionsFullAccess": ("states:*",),
    "AmazonDynamoDBFullAccess_v2": ("dynamodb:*",),
    "AmazonS3ReadOnlyAccess": ("s3:Get*", "s3:List*", "s3:Describe*"),
    "AmazonS3FullAccess": ("s3:*", "s3-object-lambda:*"),
    "AmazonSNSFullAccess": ("sns:*",),
    "AmazonSQSFullAccess": ("sqs:*",),
    "AmazonEventBridgeFullAccess": ("events:*", "schemas:*", "scheduler:*", "pipes:*"),
    "AWSXRayDaemonWriteAccess": (
        "xray:PutTraceSegments",
        "xray:PutTelemetryRecords",
        "xray:GetSamplingRules",
        "xray:GetSamplingTargets",
        "xray:GetSamplingStatisticSummaries",
    ),
}
"""Name -> the actions allowed on every resource."""
_DENIES_ALL = "AWSDenyAll"


def managed_policy(name: str) -> dict[str, Any] | None:
    """Return an AWS managed policy by name or ARN, None if it is not in the table."""
    if name.startswith("arn:") and ":iam::aws:policy/" not in name:
        return None
    short = name.rpartition("/")[2]
    actions = ("*",) if short == _DENIES_ALL else _STATEMENTS.get(short)
    if actions is None:
        return None
    effect = "Deny" if short == _DENIES_ALL else "Allow"
    statement = {"Effect": effect, "Action": list(actions), "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}
