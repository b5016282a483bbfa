"""Fetch an execution from AWS, with a profile that the operator names for the project.

Only the operator's configuration decides where requests go: to the ``endpoint_url`` of the profile,
or without one to AWS's endpoint of the region in the ARN, which has to be one that AWS has.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.conf import settings

from console.db.branch_names import is_branch, parent_name
from console.db.writer import release_connection
from console.errors import ValidationException
from console.features.deploy.executions import arn_problem, read_execution
from console.features.imports.forms import IMPORT_MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from console.models import Project
    from console.recordings.printed import Printed

_LONGEST_S = 60.0
_EVERY_PROJECT = "*"


def profile_of(project: Project) -> str:
    """Return the profile with which a project's executions are fetched, "" without one."""
    profiles: dict[str, str] = settings.STATEYARD_FETCH_PROFILES
    name = parent_name(project.name) if is_branch(project.name) else project.name
    return profiles.get(name, profiles.get(_EVERY_PROJECT, ""))


def fetch_execution(profile: str, arn: str) -> Printed:
    """Read an execution with its whole history; raise ``ValidationException`` in one sentence."""
    from botocore.exceptions import BotoCoreError, ClientError

    if problem := arn_problem(arn):
        raise ValidationException(f"The ARN: {problem}.")
    release_connection()  # AWS may be slow
    try:
        return read_execution(_client(profile, arn), arn, _bounded).printed
    except ClientError as error:
        details = error.response["Error"]
        text = f"AWS refused {error.operation_name}: {details['Code']}: {details['Message']}"
    except BotoCoreError as error:
        text = f"AWS could not be asked: {error}"
    raise ValidationException(" ".join(text.split()))


def _client(profile: str, arn: str) -> Any:
    """Return the client for an ARN; raise ``ValidationException`` for an unknown region."""
    import boto3
    import botocore.session
    from botocore.config import Config

    core = botocore.session.Session(profile=profile)
    endpoint = core.get_scoped_config().get("endpoint_url")
    partition, region = arn.split(":")[1], arn.split(":")[3]
    session = boto3.Session(botocore_session=core, region_name=region)
    if region not in session.get_available_regions("stepfunctions", partition):
        raise ValidationException(
            f"The ARN names {region!r}, which is no region of Step Functions."
        )
    config = Config(
        connect_timeout=5,
        read_timeout=15,
        retries={"total_max_attempts": 2, "mode": "standard"},
        inject_host_prefix=False,
        ignore_configured_endpoint_urls=True,  # those of the server's environment
    )
    return session.client("stepfunctions", endpoint_url=endpoint, config=config)


def _bounded(pages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the pages of a history; raise ``ValidationException`` for one that is too large."""
    until, size = time.monotonic() + _LONGEST_S, 0
    for page in pages:
        size += len(str(page["events"]))
        if size > IMPORT_MOST_BYTES:
            raise ValidationException("The history is larger than 64 MiB.")
        if time.monotonic() > until:
            raise ValidationException(f"The history did not arrive within {_LONGEST_S:g} s.")
        yield page
