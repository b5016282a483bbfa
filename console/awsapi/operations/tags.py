"""Actions on tags: TagResource, UntagResource, ListTagsForResource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.awsapi.members import reads
from console.store.machines import tags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.awsapi.operations.call import Call


def as_mapping(tag_list: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Convert AWS's list of tags to key -> value."""
    return {tag.get("key") or "": tag.get("value") or "" for tag in tag_list}


@reads("resourceArn tags.key tags.value")
def tag_resource(call: Call) -> dict[str, Any]:
    """TagResource."""
    tags.check_owner(call.project, call.params["resourceArn"])
    new_tags = as_mapping(call.params["tags"])
    tags.put_tags(call.params["resourceArn"], new_tags, call.project, call.actor)
    return {}


@reads("resourceArn tagKeys")
def untag_resource(call: Call) -> dict[str, Any]:
    """UntagResource."""
    tags.check_owner(call.project, call.params["resourceArn"])
    tags.remove_tags(call.params["resourceArn"], call.params["tagKeys"], call.project, call.actor)
    return {}


@reads("resourceArn")
def list_tags(call: Call) -> dict[str, Any]:
    """ListTagsForResource."""
    tags.check_owner(call.project, call.params["resourceArn"])
    values = tags.get_tags(call.params["resourceArn"])
    return {"tags": [{"key": key, "value": value} for key, value in values.items()]}
