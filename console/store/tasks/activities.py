"""Create, delete and find activities, with AWS's rules of idempotence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import arns
from console.config import quotas
from console.db import audit, clock, rows
from console.db.writer import write
from console.errors import ErrorCode, ServiceError
from console.models import Activity, Tag
from console.statuses import TaskKind, TaskStatus
from console.store.machines.tags import put_tags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import Project


_HAS_TASK = (
    "SELECT EXISTS (SELECT 1 FROM console_taskrow WHERE resource = console_activity.arn"
    f" AND status = '{TaskStatus.SCHEDULED}' AND kind = '{TaskKind.ACTIVITY}')"
    " FROM console_activity WHERE arn = %s AND project_id = %s"
)


def create_activity(
    project: Project,
    region: str,
    name: str,
    actor: audit.Actor = audit.NOBODY,
    *,
    encryption: str = "",
    tags: Mapping[str, str] | None = None,
) -> Activity:
    """Create an activity, or return the existing one with this name.

    ``tags``: for a new activity; an existing activity keeps its tags.

    Raises InvalidName, ActivityLimitExceeded, ActivityAlreadyExists (with another encryption).
    """
    arns.check_name(name)
    arn = arns.activity_arn(region, project.account_id, name)

    def store() -> Activity:
        existing = Activity.objects.filter(arn=arn).first()
        if existing is not None and existing.encryption != encryption:
            raise ServiceError(ErrorCode.ActivityAlreadyExists, f"Activity Already Exists: '{arn}'")
        if existing is not None:
            return existing
        limit = quotas.quotas_of(project.name).activities
        if Activity.objects.filter(project=project, region=region).count() >= limit:
            raise ServiceError(
                ErrorCode.ActivityLimitExceeded, f"Activity Limit Exceeded: '{limit}'"
            )
        activity = Activity(
            project=project,
            region=region,
            name=name,
            arn=arn,
            encryption=encryption,
            created_ms=clock.now_ms(),
        )
        activity.save(force_insert=True)
        put_tags(arn, tags or {})
        audit.record(project, actor, "CreateActivity", arn)
        return activity

    return write(store)


def get_activity(project: Project, arn: str) -> Activity:
    """Return an activity of the project; raise InvalidArn or ActivityDoesNotExist."""
    arns.parse_arn(arn, "activity")
    activity = rows.fetch_one(Activity, "arn = %s AND project_id = %s", [arn, project.pk])
    if activity is None:
        raise _missing(arn)
    return activity


def has_task(project: Project, arn: str) -> bool:
    """Return whether an activity of the project has an unclaimed task.

    Raise InvalidArn or ActivityDoesNotExist.
    """
    arns.parse_arn(arn, "activity")
    row = rows.fetch_row(_HAS_TASK, [arn, project.pk])
    if row is None:
        raise _missing(arn)
    return bool(row[0])


def _missing(arn: str) -> ServiceError:
    return ServiceError(ErrorCode.ActivityDoesNotExist, f"Activity Does Not Exist: '{arn}'")


def delete_activity(project: Project, arn: str, actor: audit.Actor = audit.NOBODY) -> None:
    """Delete an activity with its tags; deleting a missing one succeeds."""
    arns.parse_arn(arn, "activity")

    def store() -> None:
        deleted, _ = Activity.objects.filter(project=project, arn=arn).delete()
        if deleted:
            Tag.objects.filter(arn=arn).delete()
            audit.record(project, actor, "DeleteActivity", arn)

    write(store)


def list_page(
    project: Project, region: str, *, after: str = "", limit: int = 100
) -> list[Activity]:
    """Return up to ``limit`` activities by name, after the name ``after``."""
    activities = Activity.objects.filter(project=project, region=region, name__gt=after)
    return list(activities.order_by("name")[:limit])
