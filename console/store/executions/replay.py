"""Replay an execution from one of its states, as a new execution; AWS has no such action.

The new execution begins in that state, with its recorded or an edited input, and with the variables
of that moment. Its snapshot has the ARN of the origin; otherwise it is like any other execution.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console.db import audit
from console.errors import ErrorCode, ServiceError, ValidationException
from console.store.executions.recorded_answers import is_import_case
from console.store.executions.start import Replay, start_execution

if TYPE_CHECKING:
    from console.models import Execution


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a replay: the ARN of the other execution, and the start state."""

    arn: str
    state: str
    variables: dict[str, str]

    @property
    def is_import(self) -> bool:
        """Whether it is an import."""
        return self.arn.startswith("import:")

    @property
    def name(self) -> str:
        """Return the name of the other execution."""
        if self.is_import:
            return self.arn.rpartition(":")[2] or "an import"
        parts = self.arn.split(":")
        return parts[7] if len(parts) > 7 else self.arn  # noqa: PLR2004 - arn:...:machine:name


def start_replay(
    origin: Execution,
    state: str,
    *,
    input: str,  # noqa: A002 - AWS's name of the field
    variables: str = "",
    name: str | None = None,
    changed: bool = False,
    actor: audit.Actor = audit.NOBODY,
) -> Execution:
    """Start a new execution in a state of an earlier execution.

    ``variables``: a JSON object, or "". ``changed``: use the machine's current definition instead
    of the origin's. Raises ValidationException if there is no such state or
    machine, InvalidExecutionInput, and what ``start_execution`` raises.
    """
    machine = origin.state_machine
    if machine is None or origin.imported_ms is not None or origin.map_run_id is not None:
        raise ValidationException("Its state machine is not here, so nothing can be started")
    definition = machine.definition if changed else origin.definition
    check_state(definition.text, state)
    _check_variables(variables)
    edited_by = machine.edited_by if changed else origin.edited_by
    replay = Replay(origin.arn, state, variables, definition.pk, edited_by)
    # its answers are counted from the start of the execution
    test_case = "" if is_import_case(origin.test_case) else origin.test_case
    return start_execution(
        machine, name=name, input=input, replay=replay, test_case=test_case, actor=actor
    )


def check_state(text: str, state: str) -> None:
    """Raise ValidationException if an execution cannot begin in a state of this definition."""
    try:
        states = engine.parse_stored(text).block.states
    except engine.DefinitionError:
        raise ValidationException("The definition can no longer be run") from None
    if state not in states:
        names = ", ".join(states)
        msg = f"'{state}' is not a state outside any Parallel or Map. Use one of {names}"
        raise ValidationException(msg)


def begins_in(text: str, state: str) -> bool:
    """Whether an execution can begin in a state of this definition."""
    try:
        check_state(text, state)
    except ValidationException:
        return False
    return True


def has_changed(execution: Execution) -> bool:
    """Whether its state machine has another definition than the execution ran with."""
    machine = execution.state_machine
    return machine is not None and machine.definition_id != execution.definition_id


def origin_of(execution: Execution) -> Origin | None:
    """Return the origin of a replay, None for other executions."""
    text = execution.runrow.snapshot if hasattr(execution, "runrow") else ""
    if '"origin":' not in text:  # within a payload its quotes are escaped
        return None
    about = json.loads(text)["about"]
    values = json.loads(about.get("variables") or "{}")
    variables = {name: engine.dumps(value) for name, value in values.items()}
    return Origin(about["origin"], about["start_at"], variables) if "origin" in about else None


def _check_variables(text: str) -> None:
    try:
        value = engine.loads(text or "{}", max_bytes=engine.MAX_BYTES)
    except engine.JsonTextError as error:
        raise ServiceError(
            ErrorCode.InvalidExecutionInput, f"Invalid variables: '{error}'"
        ) from None
    if not isinstance(value, dict):
        raise ServiceError(
            ErrorCode.InvalidExecutionInput,
            "Invalid variables: enter a JSON object with a member per variable",
        )
