"""Store the tags of rules and schedule groups; tags have no effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.db import audit
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.models import Tag
from console.store.machines.tags import check_characters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from console.models import EventRule, Project, ScheduleGroup

MOST_TAGS = 50


@dataclass(frozen=True, slots=True)
class TaggedResources:
    """The taggable resources of a service.

    ``service``: the prefix of its actions. ``get``: returns the resource of an ARN in a project and
    region, raises ResourceNotFoundException. ``too_many``: the service's error code for more than
    50 tags of a resource.
    """

    service: str
    get: Callable[[Project, str, str], EventRule | ScheduleGroup]
    too_many: ErrorCode

    def tags(self, project: Project, region: str, arn: str) -> dict[str, str]:
        """Return key -> value in the order they were set; raise ResourceNotFoundException."""
        rows = Tag.objects.filter(arn=self.get(project, region, arn).arn)
        return dict(rows.order_by("pk").values_list("key", "value"))

    def set_tags(
        self,
        project: Project,
        region: str,
        arn: str,
        tags: Mapping[str, str],
        actor: audit.Actor = audit.NOBODY,
    ) -> None:
        """Set tags of a resource and keep its others.

        Raise ResourceNotFoundException, ValidationException, ``too_many``.
        """

        def store() -> None:
            resource = self.get(project, region, arn)
            insert_tags(resource.arn, tags, self.too_many)
            audit.record(project, actor, f"{self.service}:TagResource", resource.arn)

        write(store)

    def remove_tags(
        self,
        project: Project,
        region: str,
        arn: str,
        keys: Sequence[str],
        actor: audit.Actor = audit.NOBODY,
    ) -> None:
        """Remove existing tags of a resource; raise ResourceNotFoundException."""

        def store() -> None:
            resource = self.get(project, region, arn)
            Tag.objects.filter(arn=resource.arn, key__in=keys).delete()
            audit.record(project, actor, f"{self.service}:UntagResource", resource.arn)

        write(store)


def insert_tags(arn: str, tags: Mapping[str, str], too_many: ErrorCode) -> None:
    """Set tags of a resource and keep its others; call it inside a write.

    Raise ValidationException for a tag that nobody may set, and the error ``too_many`` for more
    than 50 tags.
    """
    for name, value in tags.items():
        if name.lower().startswith("aws:"):
            raise ValidationException(f"Tag keys must not begin with aws: got {name!r}")
        check_characters(name, value)
        Tag.objects.update_or_create(arn=arn, key=name, defaults={"value": value})
    if Tag.objects.filter(arn=arn).count() > MOST_TAGS:
        raise ServiceError(too_many, f"Got more than {MOST_TAGS} tags for '{arn}'.")


def missing_resource(arn: str) -> ServiceError:
    """Return the error for an ARN without a taggable resource."""
    return ServiceError(ErrorCode.ResourceNotFoundException, f"Resource {arn} does not exist.")
