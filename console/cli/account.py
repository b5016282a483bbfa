"""The account and region of a deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Account:
    """The account and region of the deployment."""

    number: str = "123456789012"
    region: str = "us-east-1"
    partition: str = "aws"

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.number}:{resource}"

    @property
    def pseudo_parameters(self) -> dict[str, Any]:
        """Return the values of pseudo parameters such as ``AWS::Region``."""
        return {
            "AWS::AccountId": self.number,
            "AWS::Region": self.region,
            "AWS::Partition": self.partition,
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": "stateyard",
            "AWS::StackId": self.arn("cloudformation", "stack/stateyard/0"),
            "AWS::NotificationARNs": [],
        }

    def queue_url(self, name: str) -> str:
        """Return the URL of a queue."""
        return f"https://sqs.{self.region}.amazonaws.com/{self.number}/{name}"

    def role(self, name: str) -> str:
        """Return the ARN of a role."""
        return f"arn:{self.partition}:iam::{self.number}:role/{name}"
