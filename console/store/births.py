"""What is written when an execution begins?  All it needs to go on, in one transaction (G1)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import engine
from console import arns
from console.models import RunRow
from console.store import hints, history, rows, runs
from console.store.caches import machines
from console.store.values import StoredValues, save_values

if TYPE_CHECKING:
    from console.models import Execution


EXPRESS_S = 300
"""AWS: how long an execution of an Express machine may run at most."""


def give_birth(execution: Execution, machine_name: str, *, sync: bool = False) -> None:
    """Save a new execution with event 1, its snapshot and its first work item.

    ``sync``: it was started by StartSyncExecution.
    """
    rows.insert(execution)
    machine = machines.get(execution.definition_id)
    timeout_s = None
    if arns.is_express(execution.arn):
        timeout_s = min(machine.timeout_seconds or EXPRESS_S, EXPRESS_S)
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
        timeout_seconds=timeout_s,
        redrive_count_known=not sync,
    )
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
