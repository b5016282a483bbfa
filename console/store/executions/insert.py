"""What is written when an execution begins?  All it needs to go on, in one transaction (G1).

Whoever starts it may take it a first step before that: most executions get to their end, or to
something they wait for, in no time, and need no second transaction and no worker for it.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console import arns
from console.models import RunRow
from console.store.db import rows, signals
from console.store.events import outbox
from console.store.executions import commands, step
from console.store.state import history
from console.store.state.caches import kept_runs, machines
from console.store.state.values import StoredValues, save_values

if TYPE_CHECKING:
    from console.models import Execution


EXPRESS_S = 300
"""AWS: how long an execution of an Express machine may run at most."""


@dataclass(frozen=True, slots=True)
class PreparedStart:
    """The first steps of an execution that is not stored yet."""

    steps: tuple[engine.Step, ...]

    @property
    def run(self) -> engine.Run:
        """Return how far it has come."""
        return self.steps[-1].run


@dataclass(frozen=True, slots=True)
class Replay:
    """Which execution is repeated from which state; ``variables``: those it had then, or "".

    ``edited_by``: who wrote the definition, as ``Execution`` has it.
    """

    origin: str
    state: str
    variables: str
    definition_id: str
    edited_by: str | None = None


@dataclass(frozen=True, slots=True)
class Parent:
    """The execution whose Task starts another one.

    ``depth``: how many executions are above it; ``task``: its task that waits for the end of the
    other one, None if it does not wait.
    """

    execution_id: int
    depth: int
    task: int | None = None


_AHEAD_S = 0.02


def prepare_start(
    execution: Execution,
    machine_name: str,
    *,
    sync: bool = False,
    ahead: bool = False,
    timeout_s: int | None = None,
    replay: Replay | None = None,
) -> PreparedStart:
    """Make event 1 and, ``ahead``, go on for a moment; outside any transaction.

    ``sync``: it is started by StartSyncExecution; ``timeout_s``: its limit, instead of the
    machine's; ``replay``: where it begins instead of at the start. JSONata may take a second, so
    it is left to the worker.
    """
    machine = machines.get(execution.definition_id)
    if arns.is_express(execution.arn):
        timeout_s = min(timeout_s or machine.timeout_seconds or EXPRESS_S, EXPRESS_S)
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
        start_at=replay.state if replay else None,
        variables=(replay.variables if replay else "") or None,
        origin=replay.origin if replay else None,
    )
    if ahead and "JSONata" not in machine.text:
        gone = _ahead(machine, message)
        if gone is not None:
            return PreparedStart((gone,))
    moment = engine.Moment(execution.start_ms, secrets.randbits(63))
    return PreparedStart((engine.advance(machine, engine.NEW_RUN, message, moment, budget=0),))


def _ahead(machine: engine.Machine, message: engine.Start) -> engine.Step | None:
    """Begin and go on for a moment; None if something goes wrong, which is the worker's to see."""
    until = time.monotonic() + _AHEAD_S
    try:
        return engine.advance(
            machine,
            engine.NEW_RUN,
            message,
            step.moment(machine, message.start_ms),
            enough=lambda: time.monotonic() > until,
        )
    except Exception:  # noqa: BLE001 - it fails again where failures are counted
        return None


def insert_execution(
    execution: Execution, machine_name: str, birth: PreparedStart | None = None
) -> None:
    """Save a new execution with its first events, its snapshot and its first work item."""
    birth = birth or prepare_start(execution, machine_name)
    rows.insert(execution)
    run = birth.run
    begun = {
        "execution_id": execution.pk,
        "snapshot": run.dumps(),
        "next_event": run.next_event,
        "ready": bool(run.ready),
    }
    rows.insert_rows(RunRow, [begun])
    outbox.changed(execution)
    history.append(execution.pk, [event for one in birth.steps for event in one.events])
    values = StoredValues(execution.pk)
    for one in birth.steps:
        values.apply(one)
    save_values(values)
    wanted = [command for one in birth.steps for command in one.commands]
    commands.apply_commands(execution.pk, execution.arn, wanted)
    if run.ready:
        signals.publish_created(execution.pk)


def remember(execution: Execution, birth: PreparedStart) -> None:
    """Keep the run of an execution that was just committed, for its next step."""
    kept_runs.put(execution.pk, 0, birth.run)
