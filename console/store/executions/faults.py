"""Start an execution with injected faults, and read which of them struck.

The faults are a part of its snapshot from its first commit on, so that any worker applies them.
``Execution.faults`` keeps them for the pages when the snapshot has no run any more.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

import engine
from console.errors import ValidationException
from console.models import DebugEdit
from console.statuses import MachineType
from console.store.executions.start import start_execution
from console.store.machines.machines import compiled_machines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.db import audit
    from console.models import Execution
    from console.store.machines.versions import Target

ACTION = "InjectFaults"
"""The action of a start with faults, for rights."""
MOST_STRIKES = 200
FAULT = "fault"
"""``DebugEdit.what`` of a fault that struck."""
_MOST_SEED = 2**53


@dataclass(frozen=True, slots=True)
class FaultStrike:
    """A fault that struck a state. ``text``: the fault in words; ``replaced``: a result, or ""."""

    state: str
    attempt: int
    text: str
    event_id: int
    at_ms: int
    replaced: str


def read_document(text: str) -> Any:
    """Return the document of faults in a call; raise ValidationException for another text."""
    try:
        return engine.loads(text, unique=True)
    except engine.JsonTextError as error:
        raise ValidationException(f"faults must be a JSON text: {error}") from None


def read_plan(target: Target, document: Any, by: str) -> engine.FaultPlan:
    """Return the faults of a document for a state machine; raise ValidationException.

    A document without a seed gets a random one. ``by``: who injects them.
    """
    if target.machine.type == MachineType.EXPRESS:
        raise ValidationException("An Express execution takes no faults.")
    definition = target.version or target.machine
    machine = compiled_machines.get(definition.definition_id)
    try:
        plan = engine.read_faults(document, machine, seed=secrets.randbelow(1_000_000))
    except engine.FaultError as error:
        raise ValidationException(str(error)) from None
    if not plan.faults:
        raise ValidationException("faults: got none, wanted at least one")
    if abs(plan.seed) > _MOST_SEED:
        raise ValidationException(f"seed: got {plan.seed}, wanted at most 2 to the power of 53")
    return replace(plan, by=by)


def start_faulty(
    target: Target,
    document: Any,
    actor: audit.Actor,
    *,
    input: str = "{}",  # noqa: A002 - AWS's name of the field
    name: str | None = None,
) -> Execution:
    """Start an execution with the faults of a document; raise as ``start_execution`` does."""
    return start_execution(
        target.machine,
        version=target.version,
        alias_arn=target.alias.arn if target.alias else "",
        name=name,
        input=input,
        faults=read_plan(target, document, actor.name),
        actor=actor,
    )


def planned_faults(execution: Execution) -> tuple[int, Sequence[str]]:
    """Return the seed and the faults, as text, of an execution with injected faults."""
    document = json.loads(execution.faults or '{"seed": 0, "faults": []}')
    return document["seed"], engine.describe_stored(document)


def strikes_of(execution: Execution) -> list[FaultStrike]:
    """Return the faults that struck, in their order; the first 200."""
    if not execution.faults:
        return []
    rows = DebugEdit.objects.filter(execution=execution, what=FAULT).order_by("pk")
    return [_strike(row) for row in rows[:MOST_STRIKES]]


def _strike(row: DebugEdit) -> FaultStrike:
    attempt, text = engine.describe_strike(row.state, row.after)
    return FaultStrike(row.state, attempt, text, row.event_id, row.at_ms, row.before)
