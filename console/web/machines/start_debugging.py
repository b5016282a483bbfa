"""Fields for breakpoints and injected faults in the start form, and parsing them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import engine
from console.errors import ValidationException
from console.feature import has_feature
from console.store.executions import breakpoints, faults
from console.store.machines import machines
from console.web.core.formatting import BREAK_TIMES
from console.web.core.numbers import whole_number
from console.web.core.scope import actor_of
from engine import MachineType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import QueryDict

    from console.models import StateMachine
    from console.store.machines.versions import Target
    from console.web.core.scope import Scope

MOST_ROWS = 5
"""Number of rows for breakpoints, and for faults."""
BREAK_FIELDS = ("state", "when", "condition", "hits")
FAULT_FIELDS = (
    *("state", "type", "error", "cause", "when"),
    *("seconds", "children", "attempts", "rate"),
)
FAULT_TYPES = {
    "fail": "Error",
    "latency": "Latency",
    "timeout": "Timeout",
    "lose-heartbeat": "Lost heartbeat",
    "throttle": "Throttling",
    "delay-callback": "Delayed answer",
    "duplicate-callback": "Duplicate answer",
    "fail-children": "Failing iterations",
}
"""Types of faults, in words."""
FAULT_TIMES = {"before": "Before the call", "after": "After the call"}
_FAULTY = ("Task", "Parallel", "Map")


@dataclass(frozen=True, slots=True)
class DebugFields:
    """The fields of breakpoints and faults.

    ``break_states``, ``fault_states``: the states to select, [] for readers without the right.
    """

    break_states: list[str]
    fault_states: list[str]
    break_rows: list[dict[str, str]]
    fault_rows: list[dict[str, str]]
    seed: str
    breakpoints_error: str = ""
    faults_error: str = ""

    @property
    def break_times(self) -> Mapping[str, str]:
        """Return the times of breakpoints, in words."""
        return BREAK_TIMES

    @property
    def fault_types(self) -> Mapping[str, str]:
        """Return the types of faults, in words."""
        return FAULT_TYPES

    @property
    def fault_times(self) -> Mapping[str, str]:
        """Return when a Task fails, in words."""
        return FAULT_TIMES

    @property
    def has_more_breakpoints(self) -> bool:
        """Return whether a row after the first has a value."""
        return any(_has_values(row) for row in self.break_rows[1:])

    @property
    def has_faults(self) -> bool:
        """Return whether the fields of faults are open: one has a value, or an error."""
        return bool(self.faults_error) or any(_has_values(row) for row in self.fault_rows)

    @property
    def has_more_faults(self) -> bool:
        """Return whether a row of faults after the first has a value."""
        return any(_has_values(row) for row in self.fault_rows[1:])


def debug_fields(
    scope: Scope, machine: StateMachine, sent: QueryDict, **errors: str
) -> DebugFields:
    """Return the fields with the sent values. ``errors``: by field of the result."""
    may_stop = has_feature("breakpoints") and scope.may(breakpoints.ACTION)
    may_stop = may_stop and not breakpoints.is_forbidden(scope.project.name)
    may_fail = has_feature("faults") and scope.may(faults.ACTION)
    compiled = _compiled(machine) if may_stop or may_fail else None
    own = engine.own_states(compiled) if compiled and may_stop else ()
    faulty = engine.faulty_states(compiled) if compiled and may_fail else ()
    return DebugFields(
        sorted(name for name, _ in own),
        sorted(name for name, state in faulty if type(state).__name__ in _FAULTY),
        _rows(sent, "break", BREAK_FIELDS, MOST_ROWS),
        _rows(sent, "fault", FAULT_FIELDS, MOST_ROWS),
        str(sent.get("fault_seed", "")),
        **errors,
    )


def _compiled(machine: StateMachine) -> engine.Machine | None:
    """Return the definition of a machine, compiled; None for Express, or an invalid one."""
    if machine.type == MachineType.EXPRESS:
        return None
    try:
        return machines.compiled_machines.get(machine.definition_id)
    except engine.DefinitionError:  # stored by a version that checked less
        return None


def _has_values(row: Mapping[str, str]) -> bool:
    """Return whether a row has a state, or a typed value; selects always have one."""
    return any(value.strip() for name, value in row.items() if name not in ("type", "when"))


def _rows(
    sent: QueryDict, prefix: str, fields: tuple[str, ...], least: int = 0
) -> list[dict[str, str]]:
    """Return repeated fields as rows. ``least``: the minimum number of rows."""
    columns = [sent.getlist(f"{prefix}_{field}") for field in fields]
    rows = [dict(zip(fields, row, strict=True)) for row in zip_longest(*columns, fillvalue="")]
    empty = dict.fromkeys(fields, "")
    return rows + [empty] * (least - len(rows))


def sent_breakpoints(
    scope: Scope, target: Target, sent: QueryDict
) -> tuple[engine.Breakpoint, ...]:
    """Return the breakpoints of the new execution; raise ServiceError if not allowed."""
    rows = _rows(sent, "break", BREAK_FIELDS)
    for number, row in enumerate(rows, 1):
        if row["condition"].strip() and not row["state"]:
            raise ValidationException(f"The condition {row['condition'][:80]!r} has no state.")
        if not row["state"] and _has_values(row):
            raise ValidationException(f"Breakpoint {number}: select a state.")
    places = [_breakpoint(row) for row in rows if row["state"]]
    if not places:
        return ()
    if not has_feature("breakpoints"):
        raise ValidationException("This server has no breakpoints.")
    if not scope.may(breakpoints.ACTION):
        raise ValidationException("Only editors and owners set breakpoints.")
    return breakpoints.breakpoints_of_start(target.machine, target.version, engine.dumps(places))


def sent_faults(scope: Scope, target: Target, sent: QueryDict) -> engine.FaultPlan | None:
    """Return the faults of the new execution, None for none; raise ServiceError if not allowed."""
    rows = _rows(sent, "fault", FAULT_FIELDS)
    for number, row in enumerate(rows, 1):
        if not row["state"] and _has_values(row):
            raise ValidationException(f"Fault {number}: select a state.")
    document: dict[str, Any] = {"faults": [_fault(row) for row in rows if row["state"]]}
    seed = str(sent.get("fault_seed", ""))
    if seed.strip():
        document["seed"] = _whole("seed", seed)
    if not document["faults"]:
        if "seed" in document:
            raise ValidationException("The seed has no fault: select a state.")
        return None
    if not has_feature("faults"):
        raise ValidationException("This server injects no faults.")
    if not scope.may(faults.ACTION):
        raise ValidationException("Only editors and owners inject faults.")
    return faults.read_plan(target, document, actor_of(scope).name)


def _breakpoint(row: dict[str, str]) -> dict[str, Any]:
    """Return a row as the API takes a breakpoint."""
    place: dict[str, Any] = {name: row[name] for name in BREAK_FIELDS if row[name]}
    if row["hits"].strip():
        place["hits"] = _whole("hit count", row["hits"])
    else:
        place.pop("hits", None)
    return place


def _fault(row: dict[str, str]) -> dict[str, Any]:
    """Return a row as an entry of a fault file."""
    fault: dict[str, Any] = {"state": row["state"], "type": row["type"] or "fail"}
    for name in ("error", "cause"):
        if row[name].strip():
            fault[name] = row[name].strip()
    if row["when"] not in ("", "before"):  # the default, which other types do not take
        fault["when"] = row["when"]
    for name, words in (("seconds", "seconds"), ("children", "number of iterations")):
        if row[name].strip():
            fault[name] = _whole(words, row[name])
    if row["attempts"].strip():
        fault["attempts"] = [_whole("attempts", part) for part in row["attempts"].split(",")]
    if row["rate"].strip():
        try:
            fault["rate"] = float(row["rate"])
        except ValueError:
            raise ValidationException(
                f"The rate must be a number above 0 and at most 1, not {row['rate'][:40]!r}"
            ) from None
    return fault


def _whole(name: str, text: str) -> int:
    number = whole_number(text.strip())
    if number is None:
        raise ValidationException(f"The {name} must be a whole number, not {text.strip()[:40]!r}")
    return number
