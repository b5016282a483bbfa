"""Store the note and the assignee of an execution; the latest change wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.db import audit, clock
from console.db.rows import storable
from console.db.writer import write
from console.errors import ValidationException
from console.models import ExecutionNote

if TYPE_CHECKING:
    from console.models import Execution

LONGEST = 2_000


def put_note(execution: Execution, text: str, actor: audit.Actor) -> None:
    """Write or delete the note of an execution; raise ValidationException."""
    text = storable("\n".join(text.strip().splitlines()))  # forms end lines with CR LF
    if len(text) > LONGEST:
        raise ValidationException(
            f"The note has {len(text)} characters. At most {LONGEST} are accepted."
        )

    def store() -> None:
        _change(execution, text=text, noted_by=actor.name, noted_ms=clock.now_ms())
        audit.record(execution.project, actor, "PutNote", execution.arn)

    write(store)


def set_assignee(execution: Execution, actor: audit.Actor, *, on: bool) -> None:
    """Assign an execution to the actor, in place of its assignee, or remove the assignment."""
    now_ms = clock.now_ms() if on else None
    write(lambda: _change(execution, assignee=actor.name if on else "", assigned_ms=now_ms))


def _change(execution: Execution, **fields: Any) -> None:
    ExecutionNote.objects.update_or_create(execution_id=execution.pk, defaults=fields)
