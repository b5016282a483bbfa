"""Set, list and remove the breakpoints and faults for the next starts of a state machine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import engine
from console.db import audit, clock
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.models import StateMachine
from console.statuses import MachineStatus, MachineType
from console.store.executions import next_starts
from console.store.executions.next_starts import NextStarts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project

SET, REMOVE = "SetNextStarts", "RemoveNextStarts"
"""The actions, for rights and the audit."""
MOST_STARTS = 100
MOST_HOURS = 7 * 24
DEFAULT_HOURS = 24
LONGEST = 64 * 1024
"""Characters of the stored text, which each start of the machine reads."""
_HOUR_MS = 3_600_000
EXPRESS = "Express executions have no breakpoints and no faults."
GONE = "They are gone: removed, used up, or past their time."


def set_next_starts(
    machine: StateMachine,
    *,
    starts: int,
    hours: int,
    places: Sequence[engine.Breakpoint],
    faults: engine.FaultPlan | None,
    seeded: bool,
    actor: audit.Actor,
) -> NextStarts:
    """Set breakpoints and faults for the next starts of a machine; return the stored setting.

    ``places``: breakpoints, ``faults``: faults, both valid for the machine's definition.
    ``seeded``: the user has set the seed of the faults, which is used for each start. A repeated
    call returns the same setting, until an execution has started with it. Raise
    ValidationException, and ConflictException while the machine has another setting.
    """
    if machine.type == MachineType.EXPRESS:
        raise ValidationException(EXPRESS)
    if not 1 <= starts <= MOST_STARTS:
        raise ValidationException(f"starts: got {starts}, expected 1 to {MOST_STARTS}")
    if not 1 <= hours <= MOST_HOURS:
        raise ValidationException(f"hours: got {hours}, expected 1 to {MOST_HOURS} (seven days)")
    if not places and faults is None:
        raise ValidationException("Select at least one breakpoint or one fault.")
    document = json.loads(engine.faults_text(faults)) if faults else {}
    if not seeded:
        document.pop("seed", None)
    now_ms = clock.now_ms()
    requested = NextStarts(
        set_by=actor.name,
        set_ms=now_ms,
        until_ms=now_ms + hours * _HOUR_MS,
        starts=starts,
        breakpoints=engine.breakpoints_text(places),
        faults=document,
    )
    if len(requested.text) > LONGEST:
        length = len(requested.text)
        raise ValidationException(
            f"The breakpoints and faults have {length:,} characters, expected at most {LONGEST:,}"
        )

    def store() -> NextStarts:
        current = _lock(machine)
        if current is not None and _is_repeated(requested, current):
            return current
        if current is not None:
            remaining = "start" if current.remaining == 1 else f"{current.remaining} starts"
            raise ConflictException(
                f"{current.set_by} has set some for the next {remaining}: remove these first."
            )
        next_starts.write_next_starts(machine, requested)
        audit.record(machine.project, actor, SET, machine.arn, _reason(requested, hours))
        return requested

    return write(store)


def remove_next_starts(machine: StateMachine, actor: audit.Actor, set_ms: int | None) -> NextStarts:
    """Remove the setting for the next starts of a machine, and return it.

    ``set_ms``: when the setting that the caller has seen was made, None for any. Raise
    ConflictException if it no longer exists or has been replaced.
    """

    def store() -> NextStarts:
        current = _lock(machine)
        if current is None:
            raise ConflictException(GONE)
        if set_ms not in (None, current.set_ms):
            raise ConflictException(f"{current.set_by} has set other ones meanwhile.")
        next_starts.write_next_starts(machine, None)
        taken = f"{current.taken} of {current.starts} taken"
        audit.record(machine.project, actor, REMOVE, machine.arn, taken)
        return current

    return write(store)


def list_next_starts(project: Project) -> list[tuple[StateMachine, NextStarts]]:
    """Return the machines of a project that have a setting for their next starts, by name."""
    machines = StateMachine.objects.filter(project=project, next_starts__isnull=False)
    now_ms = clock.now_ms()
    pairs = [
        (machine, next_starts.next_starts_of(machine, now_ms))
        for machine in machines.order_by("name", "region")
    ]
    return [(machine, current) for machine, current in pairs if current is not None]


def _lock(machine: StateMachine) -> NextStarts | None:
    """Return what the next starts get, locked; raise an error for a machine that is going."""
    if next_starts.lock_machine(machine) != MachineStatus.ACTIVE:
        raise ServiceError(
            ErrorCode.StateMachineDeleting, f"State Machine is being deleted: '{machine.arn}'"
        )
    return next_starts.next_starts_of(machine, clock.now_ms())


def _is_repeated(requested: NextStarts, current: NextStarts) -> bool:
    """Return whether a call was made twice, because its first answer was lost."""
    lasts = requested.until_ms - requested.set_ms == current.until_ms - current.set_ms
    return lasts and replace(requested, set_ms=current.set_ms, until_ms=current.until_ms) == current


def _reason(requested: NextStarts, hours: int) -> str:
    parts = [f"next {requested.starts} starts, for {hours} h", *requested.words]
    return "; ".join(parts)[: audit.LONGEST_REASON]
