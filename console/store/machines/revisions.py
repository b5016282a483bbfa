"""Store a revision of a state machine for each save: definition, role, author, time and note.

Unlike a version of AWS, a revision needs no publication. Each save by a page, an SDK or an import
writes one, in its own transaction.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from console.db.rows import storable
from console.errors import ErrorCode, ServiceError
from console.models import MachineRevision

if TYPE_CHECKING:
    from console.db.audit import Actor
    from console.models import StateMachine

KEPT = frozenset({"definition_id", "role_arn"})
"""Columns of a machine. A change of one creates a revision."""
LONGEST_NOTE = 500


def add_revision(machine: StateMachine, actor: Actor, note: str) -> None:
    """Store the current machine as a revision, inside the transaction of its change."""
    _insert(machine, actor.name, storable(" ".join(note.split()))[:LONGEST_NOTE])


def add_first_revision(machine: StateMachine) -> None:
    """Store the current state as revision 1 before a change, if the machine has no revision."""
    if not machine.revisions.exists():
        _insert(machine, last_editor(machine), "")


def last_editor(machine: StateMachine) -> str:
    """Return the name of the last person to change a machine; "" if unknown."""
    names = json.loads(machine.edited_by) if machine.edited_by else []
    return str(names[0]) if len(names) == 1 else ""


def _insert(machine: StateMachine, saved_by: str, note: str) -> None:
    newest = machine.revisions.order_by("-number").first()
    number = newest.number + 1 if newest else 1
    make_revision(machine, number, saved_by, note).save(force_insert=True)


def make_revision(
    machine: StateMachine, number: int, saved_by: str, note: str = ""
) -> MachineRevision:
    """Return the current machine as a revision that is not stored yet."""
    return MachineRevision(
        state_machine=machine,
        number=number,
        revision_id=machine.revision_id,
        definition_id=machine.definition_id,
        role_arn=machine.role_arn,
        note=note,
        saved_by=saved_by,
        saved_ms=machine.updated_ms,
    )


def list_revisions(
    machine: StateMachine, *, before: int = 0, limit: int = 50
) -> list[MachineRevision]:
    """Return up to ``limit`` revisions, newest first; only numbers below ``before`` unless 0."""
    rows = MachineRevision.objects.filter(state_machine=machine)
    if before:
        rows = rows.filter(number__lt=before)
    return list(rows.order_by("-number")[:limit])


def get_revision(machine: StateMachine, number: int) -> MachineRevision:
    """Return a revision with its definition; raise ResourceNotFound."""
    rows = MachineRevision.objects.select_related("definition")
    row = rows.filter(state_machine=machine, number=number).first()
    if row is None:
        message = f"State machine {machine.name} has no revision {number}."
        raise ServiceError(ErrorCode.ResourceNotFound, message)
    return row


def find_revision(machine: StateMachine, revision_id: str) -> MachineRevision | None:
    """Return the machine's newest revision with this id, None if it is not stored."""
    rows = MachineRevision.objects.select_related("definition")
    rows = rows.filter(state_machine=machine, revision_id=revision_id)
    return rows.order_by("-number").first()
