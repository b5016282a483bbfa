"""First commands and program to copy, for readers without a state machine."""

from __future__ import annotations

import configparser
import shlex
from typing import TYPE_CHECKING, Any

from console.config.client_profile import PROFILE
from console.config.data_folder import data_folder
from console.models import AccessKey
from console.web.core.cli_commands import CliCommand

if TYPE_CHECKING:
    from pathlib import Path

    from django.http import HttpRequest

    from console.web.core.scope import Scope

_HELLO = (
    '{"StartAt": "Hello", "States": {"Hello": {"Type": "Pass", "Result": "Hello!", "End": true}}}'
)
_THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "[::1]"})


def first_calls_context(request: HttpRequest, scope: Scope) -> dict[str, Any]:
    """Return commands and program; ``credentials``: the file with the reader's own key.

    They name that file where they work as they are: on the server's own machine, for its owner.
    """
    credentials = _own_credentials(request, scope)
    return {
        "credentials": credentials,
        "endpoint": _endpoint(request),
        "first_calls": _first_calls(request, scope, credentials),
        "first_program": _first_program(request, scope),
    }


def _endpoint(request: HttpRequest) -> str:
    return f"{request.scheme}://{request.get_host()}"


def _own_credentials(request: HttpRequest, scope: Scope) -> Path | None:
    """Return the file that ``up`` wrote, None if missing or another person's."""
    if request.get_host().rpartition(":")[0] not in _THIS_MACHINE:
        return None
    path = data_folder() / "credentials"
    profiles = configparser.RawConfigParser(strict=False)
    try:
        profiles.read_string(path.read_text("utf-8"))
        key = profiles.get(PROFILE, "aws_access_key_id")
    except (OSError, UnicodeDecodeError, configparser.Error):
        return None
    keys = AccessKey.objects.filter(
        key_id=key, project=scope.project, user=scope.principal.user, disabled_ms=None
    )
    return path if keys.exists() else None


def _first_calls(request: HttpRequest, scope: Scope, credentials: Path | None) -> list[CliCommand]:
    create = [
        "aws stepfunctions create-state-machine",
        "--name HelloWorld",
        f"--role-arn arn:aws:iam::{scope.project.account_id}:role/stateyard",
        f"--definition '{_HELLO}'",
    ]
    start = [
        "aws stepfunctions start-execution",
        f"--state-machine-arn {scope.arn('stateMachine', 'HelloWorld')}",
        "--input '{}'",
    ]
    place = [
        f"AWS_ENDPOINT_URL={_endpoint(request)}",
        f"AWS_DEFAULT_REGION={scope.region}",
        f"AWS_PROFILE={PROFILE}",
    ]
    if credentials is not None:
        place.insert(0, f"AWS_SHARED_CREDENTIALS_FILE={shlex.quote(str(credentials))}")
    export = "\n".join(f"export {each}" for each in place)
    if not scope.may("CreateStateMachine"):
        look = "aws stepfunctions list-state-machines"
        return [CliCommand("Say where the server is", export), CliCommand("Look around", look)]
    return [
        CliCommand("Say where the server is", export),
        CliCommand("Create a state machine", " \\\n  ".join(create)),
        CliCommand("Start it", " \\\n  ".join(start)),
    ]


def _first_program(request: HttpRequest, scope: Scope) -> CliCommand:
    """Return the commands as a Python program, with the same profile."""
    lines = [
        "import boto3",
        "",
        f'session = boto3.Session(profile_name="{PROFILE}")',
        "sfn = session.client(",
        '    "stepfunctions",',
        f'    endpoint_url="{_endpoint(request)}",',
        f'    region_name="{scope.region}",',
        ")",
        "machine = sfn.create_state_machine(",
        '    name="HelloPython",',
        f'    roleArn="arn:aws:iam::{scope.project.account_id}:role/stateyard",',
        f"    definition='{_HELLO}',",
        ")",
        'arn = machine["stateMachineArn"]',
        "print(sfn.start_execution(stateMachineArn=arn))",
    ]
    return CliCommand("Or with boto3, in the same shell", "\n".join(lines))
