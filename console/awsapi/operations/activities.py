"""Actions on activities: CreateActivity, DescribeActivity, DeleteActivity, ListActivities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.awsapi import paging
from console.awsapi.members import reads
from console.awsapi.operations import encryption
from console.awsapi.operations.call import Call, seconds
from console.awsapi.operations.tags import as_mapping
from console.store.machines import tags
from console.store.tasks import activities

if TYPE_CHECKING:
    from console.models import Activity


@reads(
    "name tags.key tags.value encryptionConfiguration.kmsKeyId "
    "encryptionConfiguration.kmsDataKeyReusePeriodSeconds encryptionConfiguration.type"
)
def create(call: Call) -> dict[str, Any]:
    """CreateActivity."""
    new_tags = as_mapping(call.params.get("tags") or ())
    tags.check_tags(new_tags)
    activity = activities.create_activity(
        call.project,
        call.region,
        call.params["name"],
        call.actor,
        encryption=encryption.encryption_as_text(call.params.get("encryptionConfiguration")),
        tags=new_tags,
    )
    return {"activityArn": activity.arn, "creationDate": seconds(activity.created_ms)}


@reads("activityArn")
def describe(call: Call) -> dict[str, Any]:
    """DescribeActivity."""
    activity = activities.get_activity(call.project, call.params["activityArn"])
    return {
        "activityArn": activity.arn,
        "name": activity.name,
        "creationDate": seconds(activity.created_ms),
        "encryptionConfiguration": encryption.encryption_members(activity.encryption),
    }


@reads("activityArn")
def delete(call: Call) -> dict[str, Any]:
    """DeleteActivity."""
    activities.delete_activity(call.project, call.params["activityArn"], call.actor)
    return {}


@reads("maxResults nextToken")
def list_page(call: Call) -> dict[str, Any]:
    """ListActivities, by name."""
    after = paging.open_position(call, call.params) or ""
    limit = paging.page_size(call.params) + 1
    rows = activities.list_page(call.project, call.region, after=after, limit=limit)
    return paging.page_answer(call, "activities", rows, _item, lambda row: row.name)


def _item(row: Activity) -> dict[str, Any]:
    return {"activityArn": row.arn, "name": row.name, "creationDate": seconds(row.created_ms)}
