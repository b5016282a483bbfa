"""Read the environment variables of Step Functions Local, for users who migrate from it.

``up`` also accepts the options of its command line: they set the variables before the settings are
read. Endpoints become targets, ``WAIT_TIME_SCALE`` scales Wait states and delays before retries,
and ``AWS_ACCOUNT_ID`` is the account of the first project. ``AWS_DEFAULT_REGION`` is ignored: each
call names its region, and many shells set the variable for other programs. Source: "Setting
configuration options for Step Functions Local".
"""

from __future__ import annotations

import argparse
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from console.config import environment
from console.config.environment import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ENDPOINTS = {
    "BATCH_ENDPOINT": "batch",
    "DYNAMODB_ENDPOINT": "dynamodb",
    "ECS_ENDPOINT": "ecs",
    "GLUE_ENDPOINT": "glue",
    "LAMBDA_ENDPOINT": "lambda",
    "SAGE_MAKER_ENDPOINT": "sagemaker",
    "SNS_ENDPOINT": "sns",
    "SQS_ENDPOINT": "sqs",
    "STEP_FUNCTIONS_ENDPOINT": "stepfunctions",
}
"""Variable -> service (botocore's name) to call at the endpoint in it."""
VARIABLES = (*ENDPOINTS, "AWS_ACCOUNT_ID", "SFN_MOCK_CONFIG", "WAIT_TIME_SCALE")
COMMAND_LINE = {
    "AWS_ACCOUNT_ID": ("-account", "--aws-account"),
    "STATEYARD_REGION": ("-region", "--aws-region"),
    "WAIT_TIME_SCALE": ("-waitTimeScale", "--wait-time-scale"),
    "LAMBDA_ENDPOINT": ("-lambdaEndpoint", "--lambda-endpoint"),
    "BATCH_ENDPOINT": ("-batchEndpoint", "--batch-endpoint"),
    "DYNAMODB_ENDPOINT": ("-dynamoDBEndpoint", "--dynamodb-endpoint"),
    "ECS_ENDPOINT": ("-ecsEndpoint", "--ecs-endpoint"),
    "GLUE_ENDPOINT": ("-glueEndpoint", "--glue-endpoint"),
    "SAGE_MAKER_ENDPOINT": ("-sageMakerEndpoint", "--sagemaker-endpoint"),
    "SQS_ENDPOINT": ("-sqsEndpoint", "--sqs-endpoint"),
    "SNS_ENDPOINT": ("-snsEndpoint", "--sns-endpoint"),
    "STEP_FUNCTIONS_ENDPOINT": ("-stepFunctionsEndpoint", "--step-functions-endpoint"),
}
"""Variable -> options of ``up`` that set it, as in the JAR of Step Functions Local."""
_KEY = "stepfunctions-local"
"""A dummy access key: local endpoints accept any, and must not receive a real one."""
_ACCOUNT = re.compile(r"[0-9]{12}")
_HTTP_PORTS = {"http": 80, "https": 443}
_MOST_SCALE = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of a command; ``apply_arguments`` has read them before."""
    group = parser.add_argument_group("options of Step Functions Local")
    for variable, options in COMMAND_LINE.items():
        group.add_argument(
            *options, dest=variable.lower(), metavar="VALUE", help=f"sets {variable}"
        )


def apply_arguments(words: list[str]) -> None:
    """Set the variables of the options in a command line.

    Errors in the options are reported by the command's own parser.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_arguments(parser)
    with suppress(argparse.ArgumentError):
        options, _ = parser.parse_known_args(words)
        os.environ.update(
            {name.upper(): value for name, value in vars(options).items() if value is not None}
        )


def read_targets() -> dict[str, dict[str, Any]]:
    """Return service -> target, from ``LAMBDA_ENDPOINT`` and the other endpoint variables."""
    addresses = {service: environment.read_web_address(name) for name, service in ENDPOINTS.items()}
    return {
        service: {"endpoint_url": url, "access_key_id": _KEY, "secret_access_key": _KEY}
        for service, url in addresses.items()
        if url
    }


def read_wait_time_scale() -> float:
    """Return the factor for Wait states and delays before retries; 1: as defined."""
    return environment.read_number("WAIT_TIME_SCALE", 1, 0, _MOST_SCALE, "times")


def read_account(default: str) -> str:
    """Return the account of the first project."""
    account = environment.read_text("AWS_ACCOUNT_ID", default)
    if not _ACCOUNT.fullmatch(account):
        raise SettingError("AWS_ACCOUNT_ID", repr(account), "an account number of 12 digits")
    return account


def without_own_endpoint(
    targets: Mapping[str, Any], port: int, is_own_host: Callable[[str], bool]
) -> dict[str, Any]:
    """Return targets without a ``STEP_FUNCTIONS_ENDPOINT`` that is this server.

    Step Functions Local needs its own address to run nested executions. Stateyard does not, and it
    would refuse the dummy key of a local endpoint.
    """
    target = targets.get("stepfunctions")
    if not isinstance(target, dict) or target.get("access_key_id") != _KEY:
        return dict(targets)
    address = urlsplit(target["endpoint_url"])
    own = (address.port or _HTTP_PORTS[address.scheme]) == port and is_own_host(
        address.hostname or ""
    )
    return {name: entry for name, entry in targets.items() if not own or name != "stepfunctions"}
