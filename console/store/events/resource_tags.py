"""Store the tags of rules and of groups of schedules: they describe, and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.errors import ErrorCode, ServiceError, ValidationException
from console.models import Tag
from console.store.machines.tags import check_characters

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_TAGS = 50


def set_tags(arn: str, tags: Mapping[str, str], too_many: ErrorCode) -> None:
    """Set tags of a resource, others stay; to be called within a write.

    Raise ValidationException for a tag that nobody may set, and ``too_many``, as which the service
    refuses more than 50.
    """
    for name, value in tags.items():
        if name.lower().startswith("aws:"):
            raise ValidationException(f"Tag keys must not begin with aws: got {name!r}")
        check_characters(name, value)
        Tag.objects.update_or_create(arn=arn, key=name, defaults={"value": value})
    if Tag.objects.filter(arn=arn).count() > MOST_TAGS:
        raise ServiceError(too_many, f"Got more than {MOST_TAGS} tags for '{arn}'.")


def tags_of(arn: str) -> dict[str, str]:
    """Return key -> value in the order they were set."""
    return dict(Tag.objects.filter(arn=arn).order_by("pk").values_list("key", "value"))
