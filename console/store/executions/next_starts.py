"""Breakpoints and faults for the next starts of a state machine.

Theory of operation
===================

An editor sets them for the next N starts, until a time. Each start takes a place, in the
transaction that inserts its execution: a refused start, or a process that dies, takes none.

They are JSON text in the row of the state machine, because each start reads this row anyway. A
machine without any costs a start nothing, and a process that keeps rows of machines for a while
(``machines.kept_machine``) sees by the mark of the row that somebody has set some meanwhile.

**Two starts at once** on PostgreSQL:

    1. A and B have read a text with one place left.
    2. A locks the row, and takes the place: the text is NULL. B waits for the lock.
    3. A commits. B reads NULL, and starts without breakpoints and faults.

So the first step of such a start is computed under the lock, up to the first state, and the start
is not merged with others (``db.merged``). That is a matter of a hundred starts at most.

**No place is taken** by a start with breakpoints or faults of its own, by a replay, and by the
start of a version whose definition lacks a state of them; nor while the project forbids
breakpoints.
"""

from __future__ import annotations

import json
import secrets
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

import engine
from console.db import audit, rows
from console.db.writer import is_embedded
from console.feature import has_feature
from console.store.executions import breakpoints
from console.store.machines import machines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Execution, StateMachine

    Debugging = tuple[Sequence[engine.Breakpoint], engine.FaultPlan | None]

FEATURE = "next_starts"
SEEDS = 1_000_000
_TIMES = {"before": "before", "after": "after", "error": "at an error of"}
_MISFITS = (engine.BreakpointError, engine.FaultError, engine.DefinitionError)
_READ = "SELECT next_starts, status FROM console_statemachine WHERE id = %s"
_WRITE = "UPDATE console_statemachine SET next_starts = %s WHERE id = %s"


@dataclass(frozen=True, slots=True)
class NextStarts:
    """Breakpoints and faults for the next starts of a state machine, as its row has them.

    ``set_ms``, ``until_ms``: epoch milliseconds. ``starts``: the number of places; ``taken``: of
    them. ``breakpoints``: JSON text, as the engine reads it. ``faults``: a document of faults; {}
    for none. Without a ``seed`` in it, each start draws its own.
    """

    set_by: str
    set_ms: int
    until_ms: int
    starts: int
    breakpoints: str
    faults: dict[str, Any]
    taken: int = 0

    @property
    def remaining(self) -> int:
        """Return the number of starts that still take a place."""
        return self.starts - self.taken

    @property
    def text(self) -> str:
        """Return the JSON text of the row."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @property
    def places(self) -> list[tuple[str, str]]:
        """Return each breakpoint in words, and its condition, which only editors may read."""
        places = json.loads(self.breakpoints)
        return [(_breakpoint_words(place), place.get("condition", "")) for place in places]

    @property
    def breakpoint_words(self) -> list[str]:
        """Return each breakpoint in words, without its condition."""
        return [words for words, _ in self.places]

    @property
    def fault_words(self) -> Sequence[str]:
        """Return each fault in words, without its cause."""
        return engine.describe_stored(self.faults) if self.faults else ()

    @property
    def words(self) -> list[str]:
        """Return breakpoints and faults in words."""
        return [*self.breakpoint_words, *self.fault_words]


@dataclass(frozen=True, slots=True)
class TakenPlace:
    """The place that an execution has taken, as its row has it: number ``number`` of ``starts``.

    ``breakpoints``: in words, without their conditions.
    """

    set_by: str
    set_ms: int
    starts: int
    number: int
    breakpoints: Sequence[str]


def next_starts_of(machine: StateMachine, now_ms: int) -> NextStarts | None:
    """Return breakpoints and faults for a machine's next starts; None if unset or expired."""
    if not machine.next_starts or not has_feature(FEATURE):
        return None
    current = NextStarts(**json.loads(machine.next_starts))
    return current if now_ms < current.until_ms else None


def place_of(execution: Execution) -> TakenPlace | None:
    """Return the place that an execution has taken, None without one."""
    return TakenPlace(**json.loads(execution.next_starts)) if execution.next_starts else None


def reason_of(execution: Execution, details: str) -> str:
    """Return the place that an execution has taken as the reason of its start in the audit."""
    place = place_of(execution)
    assert place is not None  # noqa: S101 - the caller has asked
    reason = f"start {place.number} of the next {place.starts}, set by {place.set_by}: {details}"
    return reason[: audit.LONGEST_REASON]


def problem_of(current: NextStarts, project: str, definition_id: str) -> str:
    """Return why they cannot apply to a definition, "" if they can. ``project``: its name."""
    try:
        _read(current, project, definition_id)
    except _MISFITS as error:
        return str(error)
    return ""


def _read(current: NextStarts, project: str, definition_id: str) -> Debugging:
    """Return the breakpoints and the faults (None: none) for an execution of a definition.

    Raise one of ``_MISFITS`` if it cannot have them.
    """
    machine = machines.compiled_machines.get(definition_id)
    places = engine.read_breakpoints(current.breakpoints, machine)
    if places and breakpoints.is_forbidden(project):
        raise engine.BreakpointError(breakpoints.FORBIDDEN)
    if not current.faults:
        return places, None
    plan = engine.read_faults(current.faults, machine, seed=secrets.randbelow(SEEDS))
    return places, structs.replace(plan, by=current.set_by)


def lock_machine(machine: StateMachine) -> str:
    """Read ``next_starts`` of a machine anew, locked until the end of the transaction.

    Return the status of the machine, "" if it is gone.
    """
    with rows.open_cursor() as cursor:
        cursor.execute(_READ if is_embedded() else f"{_READ} FOR NO KEY UPDATE", [machine.pk])
        row = cursor.fetchone()
    machine.next_starts, status = row or (None, "")
    return str(status)


def write_next_starts(machine: StateMachine, current: NextStarts | None) -> None:
    """Write what the next starts of a locked machine get."""
    machine.next_starts = None if current is None else current.text
    with rows.open_cursor() as cursor:
        cursor.execute(_WRITE, [machine.next_starts, machine.pk])


def take_place(machine: StateMachine, execution: Execution) -> Debugging | None:
    """Take a place for a new execution, and mark it; return its breakpoints and faults.

    None if there is no place for it. Inside the transaction of its start.
    """
    execution.next_starts = execution.faults = None  # an attempt that was rolled back has set them
    # A kept machine belongs to other starts, too. After a rollback its mark is still that of the
    # row, so a place taken in it would be lost to all of them.
    machine = copy(machine)
    lock_machine(machine)
    current = next_starts_of(machine, execution.start_ms)
    if current is None:
        if machine.next_starts and has_feature(FEATURE):  # its time is over
            write_next_starts(machine, None)
        return None
    try:
        places, plan = _read(current, machine.project.name, execution.definition_id)
    except _MISFITS:
        return None
    number = current.taken + 1
    write_next_starts(machine, replace(current, taken=number) if current.remaining > 1 else None)
    place = TakenPlace(
        current.set_by, current.set_ms, current.starts, number, current.breakpoint_words
    )
    execution.next_starts = json.dumps(asdict(place), ensure_ascii=False)
    execution.faults = engine.faults_text(plan) if plan else None
    return places, plan


def _breakpoint_words(place: dict[str, Any]) -> str:
    """Return a breakpoint of a stored text in words, without its condition."""
    words = f"Stops {_TIMES[place['when']]} {place['state']}"
    if "condition" in place:
        words += ", with a condition"
    return f"{words}, from hit {place['hits']} on" if "hits" in place else words
