"""Tag actions of rules and schedule groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.awsapi.members import reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.awsapi.operations.call import Call
    from console.features.notifications.store.resource_tags import TaggedResources


def requested_tags(call: Call) -> dict[str, str]:
    """Return key -> value of the request's ``Tags``."""
    return {tag["Key"]: tag["Value"] for tag in call.params.get("Tags") or ()}


def tag_handlers(
    resources: TaggedResources, arn_name: str
) -> dict[str, Callable[[Call], dict[str, Any]]]:
    """Return the handlers of the three tag actions; ``arn_name``: parameter with the ARN."""

    @reads(f"{arn_name} Tags.Key Tags.Value")
    def tag_resource(call: Call) -> dict[str, Any]:
        tags = requested_tags(call)
        resources.set_tags(call.project, call.region, call.params[arn_name], tags, call.actor)
        return {}

    @reads(f"{arn_name} TagKeys")
    def untag_resource(call: Call) -> dict[str, Any]:
        keys = call.params["TagKeys"]
        resources.remove_tags(call.project, call.region, call.params[arn_name], keys, call.actor)
        return {}

    @reads(arn_name)
    def list_tags(call: Call) -> dict[str, Any]:
        tags = resources.tags(call.project, call.region, call.params[arn_name])
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    return {
        "TagResource": tag_resource,
        "UntagResource": untag_resource,
        "ListTagsForResource": list_tags,
    }
