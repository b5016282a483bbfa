"""Store the note and the assignee of an execution; the latest change wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console import clock
from console.errors import ValidationException
from console.models import Remark
from console.store.db import audit
from console.store.db.texts import storable
from console.store.db.writer import write

if TYPE_CHECKING:
    from console.models import Execution

LONGEST = 2_000


def put_note(execution: Execution, text: str, actor: audit.Actor) -> None:
    """Write the note of an execution, or take it away; raise ValidationException."""
    text = storable("\n".join(text.strip().splitlines()))  # forms end lines with CR LF
    if len(text) > LONGEST:
        raise ValidationException(
            f"The note: got {len(text)} characters, wanted at most {LONGEST}."
        )

    def store() -> None:
        _change(execution, note=text, noted_by=actor.name, noted_ms=clock.now_ms())
        audit.record(execution.project, actor, "PutNote", execution.arn)

    write(store)


def set_assignee(execution: Execution, actor: audit.Actor, *, on: bool) -> None:
    """Tell that somebody looks into an execution, in place of who did, or no longer does."""
    now_ms = clock.now_ms() if on else None
    write(lambda: _change(execution, looker=actor.name if on else "", looking_ms=now_ms))


def _change(execution: Execution, **fields: Any) -> None:
    Remark.objects.update_or_create(execution_id=execution.pk, defaults=fields)
