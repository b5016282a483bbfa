"""Store unsaved text of the definition editor: one draft per person and machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.db import clock
from console.db.prepared import read_models
from console.db.rows import storable
from console.db.writer import write
from console.errors import ValidationException
from console.models import DefinitionDraft

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from console.models import Project

LONGEST = 2_097_152
"""Maximum bytes of a draft: twice a definition's, for a text that is being shortened."""
_SAVED = "saved from "
"""In ``revision``: the row is not a draft, but has the editor page that saved its text last.

1. A page sends a draft; the request waits, in the browser or here.
2. The reader presses Save: the text is saved and the draft forgotten.
3. The draft arrives. Without this row it would be kept, and shown as not saved next time.
"""


def put_draft(
    project: Project, user: User, machine_arn: str, text: str, revision: str, page: str = ""
) -> None:
    """Store a draft, unless its page has saved the text since.

    ``machine_arn``: "" for a machine that is not created yet. ``page``: the opened page of the
    editor that the draft comes from. Raise ValidationException if the draft is too long.
    """
    size = engine.byte_size(text)
    if size > LONGEST:
        raise ValidationException(f"The draft has {size} bytes. At most {LONGEST} are accepted.")
    row = {"text": storable(text), "revision": revision[:80], "saved_ms": clock.now_ms()}

    def store() -> None:
        rows = _rows(project.pk, user.pk, machine_arn)
        # one statement: a save that comes between a look and an update would be undone
        if (rows.exclude(revision=_saved_from(page)) if page else rows).update(**row):
            return
        DefinitionDraft.objects.get_or_create(
            project=project, user=user, machine_arn=machine_arn, defaults=row
        )

    write(store)


def remove_draft(project: Project, user: User, machine_arn: str) -> None:
    """Delete a draft, if there is one."""
    write(lambda: _drafts(project.pk, user.pk, machine_arn).delete())


def close_draft(project: Project, user: User, machine_arn: str, page: str) -> None:
    """Delete a draft whose text is saved, and reject late requests of its page."""
    row = {"text": "", "revision": _saved_from(page), "saved_ms": clock.now_ms()}

    def store() -> None:
        DefinitionDraft.objects.update_or_create(
            project=project, user=user, machine_arn=machine_arn, defaults=row
        )

    if page:
        write(store)
    else:  # a browser without scripts sends no drafts
        remove_draft(project, user, machine_arn)


def find_draft(project: Project, user: User, machine_arn: str) -> DefinitionDraft | None:
    """Return a person's draft of a machine, None if there is none."""
    drafts = read_models("draft", _drafts, project.pk, user.pk, machine_arn)
    return drafts[0] if drafts else None


def _saved_from(page: str) -> str:
    return f"{_SAVED}{page}"[:80]


def _rows(project: int, user: int, machine_arn: str) -> QuerySet[DefinitionDraft]:
    """Return the query of a person's row for a machine; there is at most one."""
    return DefinitionDraft.objects.filter(project=project, user=user, machine_arn=machine_arn)


def _drafts(project: int, user: int, machine_arn: str) -> QuerySet[DefinitionDraft]:
    """Return the query of this row, if it is a draft."""
    return _rows(project, user, machine_arn).exclude(revision__startswith=_SAVED)
