"""Start an execution that repeats an import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console.db import audit
from console.errors import ValidationException
from console.statuses import MachineType
from console.store.executions.recorded_answers import import_case
from console.store.executions.replay import check_state
from console.store.executions.start import Replay, start_execution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Execution, StateMachine


def start_reproduction(
    imported: Execution,
    machine: StateMachine,
    *,
    until: int | None,
    begin: tuple[str, str, str] | None = None,
    changed: bool = False,
    breakpoints: Sequence[engine.Breakpoint] = (),
    actor: audit.Actor = audit.NOBODY,
) -> Execution:
    """Start an execution that repeats an import, as an execution of a state machine.

    ``until``: the event that entered the state from which its calls are live, 0 for none live,
    None for all. ``begin``: state, input and variables to begin with, instead of the start.
    ``changed``: use the machine's current definition instead of the import's. Raises as
    ``replay.start_replay``.
    """
    if machine.type == MachineType.EXPRESS:
        raise ValidationException(
            f"{machine.name} is an Express state machine; expected a Standard one"
        )
    definition = machine.definition if changed else imported.definition
    try:
        compiled = engine.parse_stored(definition.text)
    except engine.DefinitionError as error:
        raise ValidationException(f"The definition cannot be run: {error}") from None
    state, text, variables = begin or (compiled.block.start_at, imported.input, "")
    check_state(definition.text, state)
    edited_by = machine.edited_by if changed else None
    return start_execution(
        machine,
        input=text,
        replay=Replay(imported.arn, state, variables, definition.pk, edited_by),
        test_case="" if until is None else import_case(imported.pk, until),
        breakpoints=breakpoints,
        actor=actor,
    )
