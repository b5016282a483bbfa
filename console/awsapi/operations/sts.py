"""GetCallerIdentity, the only action of STS here: Terraform, CDK and the AWS CLI call it first."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from console import arns
from console.awsapi.members import reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.awsapi.operations.call import Answer, Call


@reads("")
def get_caller_identity(call: Call) -> dict[str, Any]:
    """GetCallerIdentity: the person behind the key, as a user of the project's account."""
    name = call.principal.user.get_username()
    account = call.project.account_id
    unique = base64.b32encode(hashlib.sha256(f"{account}/{name}".encode()).digest()).decode()
    return {
        "UserId": f"AIDA{unique[:17]}",
        "Account": account,
        "Arn": f"arn:{arns.partition_of(call.region)}:iam::{account}:user/{name}",
    }


HANDLERS: dict[str, Callable[[Call], Answer]] = {"GetCallerIdentity": get_caller_identity}
