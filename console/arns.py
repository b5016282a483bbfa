"""Build and parse the ARNs of this server: state machines, executions, activities, Map Runs."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from console.errors import ErrorCode, ServiceError, ValidationException

_FORBIDDEN = re.compile(
    r"[\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f\ufffe\uffff\U0010ffff\ud800-\udfff]"
)
_PARTITIONS = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "eu-isoe-": "aws-iso-e",
    "us-isof-": "aws-iso-f",
    "eusc-": "aws-eusc",
}
"""Start of a region's name -> its partition. Source: botocore's ``partitions.json``."""
_MAX_NAME = 80
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Arn:
    """A parsed ARN. ``rest``: the part after the resource type."""

    text: str
    partition: str
    region: str
    account: str
    kind: str
    rest: str


def partition_of(region: str) -> str:
    """Return the partition of a region: ``aws``, or that of China, GovCloud and the like."""
    return next((name for start, name in _PARTITIONS.items() if region.startswith(start)), "aws")


def account_of(arn: str) -> str:
    """Return the account in a valid ARN."""
    return arn.split(":", 5)[4]


def state_machine_arn(region: str, account: str, name: str) -> str:
    """Return the ARN of a state machine."""
    return f"arn:{partition_of(region)}:states:{region}:{account}:stateMachine:{name}"


def execution_arn(machine_arn: str, name: str) -> str:
    """Return the ARN of an execution of a machine."""
    return f"{machine_arn.replace(':stateMachine:', ':execution:', 1)}:{name}"


def express_arn(machine_arn: str, name: str, run: str) -> str:
    """Return the ARN of an Express execution. ``run``: a unique id, because names may repeat."""
    return f"{machine_arn.replace(':stateMachine:', ':express:', 1)}:{name}:{run}"


def express_child_arn(labelled_arn: str, name: str) -> str:
    """Return the ARN of an Express child of a Map Run. ``labelled_arn``: ``MACHINE/LABEL``.

    The last part is derived from the name, a UUID, so a child can be found by its name. Raise
    ``ValueError`` for any other name.
    """
    return express_arn(labelled_arn, name, str(uuid.uuid5(uuid.UUID(name), "run")))


def is_express(execution_arn: str) -> bool:
    """Return whether an ARN is of an Express execution: of an Express machine, or of a Map Run."""
    return execution_arn.split(":", 6)[5] == "express"


def activity_arn(region: str, account: str, name: str) -> str:
    """Return the ARN of an activity."""
    return f"arn:{partition_of(region)}:states:{region}:{account}:activity:{name}"


def parse_arn(text: str, *kinds: str) -> Arn:
    """Parse an ARN; raise ``InvalidArn`` unless it is of this service and one of ``kinds``."""
    parts = text.split(":", 6)
    if len(parts) < 2 or parts[0] != "arn":  # noqa: PLR2004 - "arn" and something
        raise ServiceError(ErrorCode.InvalidArn, f"Invalid Arn: 'Invalid ARN prefix: {text}'")
    if len(parts) < 7 or parts[2] != "states" or not parts[6] or "\x00" in text:  # noqa: PLR2004
        raise ServiceError(ErrorCode.InvalidArn, f"Invalid Arn: '{text}'")
    arn = Arn(text, parts[1], parts[3], parts[4], parts[5], parts[6])
    if kinds and arn.kind not in kinds:
        msg = f"Invalid Arn: 'Resource type not valid in this context: {arn.kind}'"
        raise ServiceError(ErrorCode.InvalidArn, msg)
    return arn


def is_labelled(arn: str) -> bool:
    """Return whether an ARN names a Distributed Map state of a machine, or a child execution of it.

    ``arn:PARTITION:states:REGION:ACCOUNT:KIND:MACHINE/LABEL...``
    """
    parts = arn.split(":", 7)
    return len(parts) > 6 and "/" in parts[6]  # noqa: PLR2004 - the name of the machine


def check_unlabelled(machine_arn: str) -> None:
    """Raise ``ValidationException`` for the ARN of a distributed Map within a state machine."""
    if "/" in machine_arn.partition(":stateMachine:")[2]:
        raise ValidationException(
            "This operation does not support state machine ARNs that refer to a Distributed Map "
            "state",
            reason="API_DOES_NOT_SUPPORT_LABELED_ARNS",
        )


def check_name(name: str) -> None:
    """Raise ``InvalidName`` for an invalid name of a state machine, execution or activity."""
    if not 1 <= len(name) <= _MAX_NAME or _FORBIDDEN.search(name):
        raise ServiceError(ErrorCode.InvalidName, f"Invalid Name: '{name}'")


def check_role(role_arn: str) -> None:
    """Raise ``InvalidArn`` unless a text is the ARN of an IAM role, which need not exist."""
    match = re.fullmatch(r"arn:aws[a-z-]*:iam::\d{12}:role/[^\x00]+", role_arn)
    if match is None or len(role_arn) > _LONGEST:
        raise ServiceError(ErrorCode.InvalidArn, f"Invalid Role Arn: '{role_arn[:_LONGEST]}'")
