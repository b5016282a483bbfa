"""Store CloudWatch log groups, and the routes of machines' logs to these groups."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from console.db import audit, clock
from console.db.writer import write
from console.errors import ErrorCode, ServiceError
from console.models import LogGroup, LogRoute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import Project, StateMachine

VENDED = "/aws/vendedlogs/states/"
"""Groups with these names are made when they are first named, as the AWS console makes them."""

_GROUP = re.compile(r"arn:aws[\w-]*:logs:([\w-]+):(\d{12}):log-group:([\w./#-]{1,512})(:\*)?")
_INVALID = "Invalid Logging Configuration: "


# -- groups ----------------------------------------------------------------------------------------


def create_group(
    project: Project, region: str, name: str, actor: audit.Actor = audit.NOBODY
) -> None:
    """Create an empty log group; raise ``ServiceError`` if its name is taken."""

    def store() -> None:
        if _live(project, region, name) is not None:
            raise ServiceError(
                ErrorCode.ResourceAlreadyExistsException, "The specified log group already exists"
            )
        _make(project, region, name)
        audit.record(project, actor, "logs:CreateLogGroup", name)

    write(store)


def delete_group(
    project: Project, region: str, name: str, actor: audit.Actor = audit.NOBODY
) -> None:
    """Delete a log group; its lines cannot be read any more. Raise ``ServiceError`` if missing."""

    def store() -> None:
        group = get_group(project, region, name)
        group.deleted_ms = clock.now_ms()
        group.save(update_fields=["deleted_ms"])
        audit.record(project, actor, "logs:DeleteLogGroup", name)

    write(store)


def get_group(project: Project, region: str, name: str) -> LogGroup:
    """Return a log group; raise ``ServiceError`` if it does not exist."""
    group = _live(project, region, name)
    if group is None:
        raise ServiceError(
            ErrorCode.ResourceNotFoundException, "The specified log group does not exist."
        )
    return group


def has_group(project: Project, region: str, name: str) -> bool:
    """Return whether a log group exists."""
    return _live(project, region, name) is not None


def _live(project: Project, region: str, name: str) -> LogGroup | None:
    groups = LogGroup.objects.filter(project=project, region=region, name=name)
    return groups.filter(deleted_ms=None).first()


def _make(project: Project, region: str, name: str) -> None:
    LogGroup.objects.update_or_create(
        project=project,
        region=region,
        name=name,
        defaults={"created_ms": clock.now_ms(), "deleted_ms": None},
    )


def list_groups(project: Project, region: str) -> list[LogGroup]:
    """Return the groups of a project in a region."""
    return list(LogGroup.objects.filter(project=project, region=region, deleted_ms=None))


def is_routed(project: Project, region: str, name: str) -> bool:
    """Return whether a state machine logs, or has logged, to a group."""
    routes = LogRoute.objects.filter(project=project, region=region, group=name)
    return routes.exists() and has_group(project, region, name)


# -- routes ----------------------------------------------------------------------------------------


def check_group_name(project: Project, region: str, logging: Mapping[str, Any]) -> None:
    """Raise ``InvalidLoggingConfiguration`` for an unusable log group."""
    destinations = logging.get("destinations") or []
    if len(destinations) > 1 or (logging.get("level", "OFF") != "OFF" and not destinations):
        msg = f"{_INVALID}Must specify exactly one Log Destination."
        raise ServiceError(ErrorCode.InvalidLoggingConfiguration, msg)
    for destination in destinations:
        _check_group(project, region, _destination_arn(destination))


def _check_group(project: Project, region: str, arn: str) -> None:
    match = _GROUP.fullmatch(arn)
    if match and not match[4]:
        msg = f"{_INVALID}Log Group ARN must be provided with '*' qualifier."
        raise ServiceError(ErrorCode.InvalidLoggingConfiguration, msg)
    if match is None or match[1] != region or not _usable(project, region, match[3]):
        raise ServiceError(
            ErrorCode.InvalidLoggingConfiguration, f"{_INVALID}Log Destination not found."
        )


def _usable(project: Project, region: str, name: str) -> bool:
    group = LogGroup.objects.filter(project=project, region=region, name=name).first()
    return name.startswith(VENDED) if group is None else group.deleted_ms is None


def _destination_arn(destination: Mapping[str, Any]) -> str:
    group = destination.get("cloudWatchLogsLogGroup") or {}
    return str(group.get("logGroupArn") or "")


def route_logs(machine: StateMachine, moment: int) -> None:
    """Store the log group of executions that start from now on (in the caller's transaction)."""
    logging = json.loads(machine.logging) if machine.logging else {}
    name = group_name(logging)
    before = LogRoute.objects.filter(machine_arn=machine.arn).exists()
    if not before and not name:
        return
    if name and not LogGroup.objects.filter(**_place(machine), name=name).exists():
        _make(machine.project, machine.region, name)
    route = route_of(machine, moment)
    columns = ("project_id", "region", "level", "with_data", "group")
    LogRoute.objects.update_or_create(
        machine_arn=machine.arn,
        since_ms=moment,
        defaults={column: getattr(route, column) for column in columns},
    )


def route_of(machine: StateMachine, moment: int) -> LogRoute:
    """Return the row with a machine's log group for executions from a moment on."""
    logging = json.loads(machine.logging) if machine.logging else {}
    return LogRoute(
        **_place(machine),
        machine_arn=machine.arn,
        since_ms=moment,
        level=logging.get("level", "OFF"),
        with_data=bool(logging.get("includeExecutionData")),
        group=group_name(logging),
    )


def _place(machine: StateMachine) -> dict[str, Any]:
    return {"project_id": machine.project_id, "region": machine.region}


def group_name(logging: Mapping[str, Any]) -> str:
    """Return the name of a logging configuration's group, "" for none."""
    matches = [
        _GROUP.fullmatch(_destination_arn(destination))
        for destination in logging.get("destinations") or []
    ]
    return matches[0][3] if matches and matches[0] else ""
