"""Store the tags of state machines and activities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import re2

from console import arns
from console.db import audit
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.models import Activity, StateMachine, Tag
from console.store.machines import activity_limits, machine_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.models import Project

MOST_TAGS = 50
_ALLOWED = re2.compile(r"[\p{L}\p{Z}\p{N}\s_.:/=+\-@]*")
"""Source: API reference, Tag."""


def check_owner(project: Project, arn: str) -> None:
    """Raise ResourceNotFound unless the ARN is a machine or activity of the project."""
    parsed = arns.parse_arn(arn)
    kinds = {"stateMachine": StateMachine, "activity": Activity}
    model = kinds.get(parsed.kind)
    if model is None or not model.objects.filter(project=project, arn=arn).exists():  # type: ignore[attr-defined]
        raise ServiceError(ErrorCode.ResourceNotFound, f"Resource not found: '{arn}'")


def check_tags(tags: Mapping[str, str]) -> None:
    """Raise ValidationException for reserved or invalid keys, and for bad values of options."""
    for key, value in tags.items():
        if not key:
            raise ValidationException("Tag keys must have at least 1 character")
        if key.lower().startswith("aws:"):
            raise ValidationException(f"Tag keys must not begin with aws: got {key!r}")
        check_characters(key, value)
        activity_limits.check_tag(key, value)
        machine_options.check_tag(key, value)


def check_characters(key: str, value: str) -> None:
    """Raise ValidationException for characters that AWS does not allow in tags.

    The expression of a summary may have any: the tag has no effect on AWS.
    """
    free = key == machine_options.SUMMARY
    for part, text in (("key", key), *(() if free else (("value", value),))):
        if not _ALLOWED.fullmatch(text):
            raise ValidationException(
                f"Tags may only contain Unicode letters, digits, white space, or these symbols: "
                f"_ . : / = + - @. Got the {part} {text!r}"
            )


def put_tags(
    arn: str,
    tags: Mapping[str, str],
    project: Project | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> None:
    """Set tags; other tags of the resource stay. ``project``: records the call in its audit.

    Raises ValidationException, TooManyTags above 50.
    """
    check_tags(tags)

    def store() -> None:
        for key, value in tags.items():
            Tag.objects.update_or_create(arn=arn, key=key, defaults={"value": value})
        if Tag.objects.filter(arn=arn).count() > MOST_TAGS:
            raise too_many_tags(arn)
        if project is not None:
            audit.record(project, actor, "TagResource", arn)

    write(store)


def too_many_tags(arn: str) -> ServiceError:
    """Return the error for more tags than a resource may have."""
    return ServiceError(
        ErrorCode.TooManyTags, f"Too many tags: got more than {MOST_TAGS} for '{arn}'"
    )


def put_own_tags(project: Project, arn: str, tags: Mapping[str, str], actor: audit.Actor) -> None:
    """Set tags that change the behaviour of this server, and record them in the audit log.

    Raises ValidationException, TooManyTags, ResourceNotFound.
    """

    def store() -> None:
        check_owner(project, arn)
        put_tags(arn, tags)
        detail = ", ".join(f"{key}={value}" for key, value in tags.items())
        audit.record(project, actor, "TagResource", arn, detail)

    write(store)


def remove_tags(
    arn: str,
    keys: Sequence[str],
    project: Project | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> None:
    """Remove tags, if present. ``project``: records the call in its audit."""

    def store() -> None:
        Tag.objects.filter(arn=arn, key__in=keys).delete()
        if project is not None:
            audit.record(project, actor, "UntagResource", arn)

    write(store)


def get_tags(arn: str) -> dict[str, str]:
    """Return key -> value in the order they were set."""
    return dict(Tag.objects.filter(arn=arn).order_by("pk").values_list("key", "value"))
