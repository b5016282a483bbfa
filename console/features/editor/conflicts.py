"""Show who loses a race both definitions side by side, and merge them as the reader chooses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.db import audit
from console.features.editor.merge import MergeChunk, MergeSide, merge_chunks, merged_text
from console.store.machines import machines as store
from console.store.machines import revisions
from console.web.graph.definition_text import readable_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import StateMachine

_CHOICE = re.compile(r"take-(\d{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class DefinitionConflict:
    """What somebody else saved since the page of the editor was opened.

    ``saved_by``: "" if nobody knows; ``note``: of their save; ``chunks``: both definitions, None if
    they are too long to compare; ``revision``: what ``Save over it`` may replace.
    """

    revision: str
    saved_by: str
    saved_ms: int
    note: str
    text: str
    role: str
    chunks: list[MergeChunk] | None

    @property
    def differences(self) -> int:
        """Return in how many places the definitions differ."""
        return sum(chunk.number > 0 for chunk in self.chunks or ())

    @property
    def clashes(self) -> int:
        """Return in how many places both changed the same lines."""
        return sum(chunk.conflict for chunk in self.chunks or ())


def definition_conflict(theirs: StateMachine, mine: str, made_from: str) -> DefinitionConflict:
    """Compare what a machine has with what somebody typed.

    ``made_from``: the revision of the machine (``store.revision_of``) that ``mine`` was made from.
    """
    saved = revisions.find_revision(theirs, theirs.revision_id)
    text = readable_text(theirs.definition.text)
    return DefinitionConflict(
        revision=store.revision_of(theirs),
        saved_by=_saved_by(theirs),
        saved_ms=theirs.updated_ms,
        note=saved.note if saved else "",
        text=text,
        role=theirs.role_arn,
        chunks=merge_chunks(_base_text(theirs, made_from), readable_text(mine), text),
    )


def _base_text(machine: StateMachine, made_from: str) -> str | None:
    number, _, revision_id = made_from.partition(".")
    if number != str(machine.pk):  # of a machine that was deleted since, and made again
        return None
    base = revisions.find_revision(machine, revision_id)
    return readable_text(base.definition.text) if base else None


def _saved_by(machine: StateMachine) -> str:
    entry = audit.find_latest(
        machine.project, machine.arn, "CreateStateMachine", "UpdateStateMachine"
    )
    return entry.actor if entry else ""


def merge_choices(sent: Mapping[str, str]) -> dict[int, MergeSide]:
    """Return difference -> side from the fields ``take-1``, ``take-2`` … of a form."""
    sides = {str(side): side for side in MergeSide}
    return {
        int(match[1]): sides[value]
        for name, value in sent.items()
        if (match := _CHOICE.fullmatch(name)) and value in sides
    }


def merge_definitions(conflict: DefinitionConflict, sent: Mapping[str, str]) -> str | None:
    """Return the merged text of a conflict, None if its definitions are too long to compare."""
    if conflict.chunks is None:
        return None
    return merged_text(conflict.chunks, merge_choices(sent))
