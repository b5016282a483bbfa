"""Store what people typed into the editor and did not save: one draft a person and machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console import clock
from console.errors import ValidationException
from console.fast_path.rows import storable
from console.models import DefinitionDraft
from console.store.db.writer import write

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from console.models import Project

LONGEST = 2_097_152
"""Bytes of a draft: twice what a definition may have, for a text that is being cut down."""


def put_draft(project: Project, user: User, machine_arn: str, text: str, revision: str) -> None:
    """Keep a draft in place of the one before; raise ValidationException if it is too long.

    ``machine_arn``: "" for a machine that is not created yet.
    """
    size = engine.byte_size(text)
    if size > LONGEST:
        raise ValidationException(f"The draft: got {size} bytes, wanted at most {LONGEST}.")
    row = {"text": storable(text), "revision": revision[:80], "saved_ms": clock.now_ms()}

    def store() -> None:
        DefinitionDraft.objects.update_or_create(
            project=project, user=user, machine_arn=machine_arn, defaults=row
        )

    write(store)


def remove_draft(project: Project, user: User, machine_arn: str) -> None:
    """Forget a draft, if there is one."""
    write(lambda: _drafts(project, user, machine_arn).delete())


def find_draft(project: Project, user: User, machine_arn: str) -> DefinitionDraft | None:
    """Return a person's draft of a machine, None if there is none."""
    return _drafts(project, user, machine_arn).first()


def _drafts(project: Project, user: User, machine_arn: str) -> QuerySet[DefinitionDraft]:
    return DefinitionDraft.objects.filter(project=project, user=user, machine_arn=machine_arn)
