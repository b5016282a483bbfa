"""What is written when an execution begins?  All it needs to go on, in one transaction (G1)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import engine
from console.models import RunRow
from console.store import hints, history, rows, runs
from console.store.caches import machines
from console.store.values import StoredValues, save_values

if TYPE_CHECKING:
    from console.models import Execution


def give_birth(execution: Execution, machine_name: str) -> None:
    """Save a new execution with event 1, its snapshot and its first work item."""
    rows.insert(execution)
    message = engine.Start(
        execution_arn=execution.arn,
        execution_name=execution.name,
        state_machine_arn=execution.state_machine_arn,
        state_machine_name=machine_name,
        role_arn=execution.role_arn,
        input=execution.input,
        start_ms=execution.start_ms,
        version_arn=execution.version_arn or None,
        alias_arn=execution.alias_arn or None,
    )
    machine = machines.get(execution.definition_id)
    moment = engine.Moment(execution.start_ms, secrets.randbits(63))
    made = engine.advance(machine, engine.NEW_RUN, message, moment, budget=0)
    begun = RunRow(
        execution_id=execution.pk,
        snapshot=made.run.dumps(),
        next_event=made.run.next_event,
        ready=True,
    )
    rows.insert(begun)
    history.append(execution.pk, made.events)
    values = StoredValues(execution.pk)
    values.apply(made)
    save_values(values)
    runs.carry_out(execution.pk, execution.arn, made.commands)
    hints.wake(execution.pk)
