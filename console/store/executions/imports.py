"""How is a history from elsewhere read and kept?  What the AWS CLI printed becomes rows to look at.

An imported execution is a row that ``Execution.objects`` leaves out, so the engine, the API, the
lists and the metrics never meet it; it has no run, so no worker could take it up.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import engine
from console import clock
from console.errors import ValidationException
from console.models import Execution
from console.statuses import ExecutionStatus
from console.store.db import audit
from console.store.db.texts import storable
from console.store.db.writer import write
from console.store.machines import definitions
from console.store.state import history
from engine import event_types

if TYPE_CHECKING:
    from console.models import Project

MOST_EVENTS = 25_000
_ENDS = event_types.EXECUTION_ENDS
_NOTES = ("inputDetails", "outputDetails", "assignedVariablesDetails")
_GROUP_EVENTS = engine.event_names(event_types.GROUP_FAMILIES)
_GROUP_ENTRIES = {
    engine.Family.MAP: "MapStateEntered",
    engine.Family.PARALLEL: "ParallelStateEntered",
}
_NAMED_EVENTS = engine.event_names(
    event_types.GROUP_FAMILIES | {engine.Family.STATE, engine.Family.MAP_ITERATION}
)
"""Events whose details have the name of their state."""
_GROUP_ENDS = _GROUP_EVENTS - event_types.GROUP_STARTED


@dataclass(frozen=True, slots=True)
class Printed:
    """What was read. ``description``: of the execution, {} if it was not given."""

    events: list[engine.Event]
    definition: str
    machine: dict[str, Any]
    description: dict[str, Any] = field(default_factory=dict)


def read_printed(events: str, machine: str, description: str = "") -> Printed:
    """Read the output of get-execution-history, describe-state-machine and describe-execution.

    In the place of the second a bare definition will do. Raises ValidationException that says which
    of them is wrong, and how.
    """
    told = _json(machine, "The state machine")
    if "definition" not in told and "StartAt" not in told:
        raise ValidationException("The state machine: it has neither “definition” nor “StartAt”.")
    text = told.get("definition") if "definition" in told else machine
    if not isinstance(text, str):
        raise ValidationException("The state machine: “definition” is not a text.")
    _json(text, "The definition")
    listed = _json(events, "The history").get("events")
    if not isinstance(listed, list) or not listed:
        raise ValidationException("The history: it has no “events”.")
    named = _json(description, "The execution") if description.strip() else {}
    return Printed(_events(listed), text, told if "definition" in told else {}, named)


def import_execution(
    project: Project, printed: Printed, actor: audit.Actor = audit.NOBODY
) -> Execution:
    """Store what was read; durable when this returns."""
    first, last = printed.events[0], printed.events[-1]
    told, ended = printed.description, last.details or {}
    given = (first.details or {}).get("input")
    execution = Execution(
        project=project,
        imported_ms=clock.now_ms(),
        started_by=actor.name,
        arn=f"import:{secrets.token_hex(8)}:{told.get('executionArn', '')}"[:512],
        name=_name(told, "name", told.get("executionArn"), "imported"),
        state_machine_arn=_machine_arn(printed),
        status=_ENDS.get(last.type, ExecutionStatus.UNFINISHED),
        role_arn=str(printed.machine.get("roleArn", ""))[:256],
        machine_updated_ms=0,
        input=storable(str(told.get("input") or given or "{}")),
        output=_text(ended.get("output") if last.type in _ENDS else None),
        error=_text(ended.get("error") if last.type in _ENDS else None),
        cause=_text(ended.get("cause") if last.type in _ENDS else None),
        start_ms=first.at_ms,
        stop_ms=last.at_ms,
        redrive_count=sum(one.type == "ExecutionRedriven" for one in printed.events),
    )

    def store() -> None:
        execution.definition = definitions.keep_definition(printed.definition)
        execution.save(force_insert=True)
        history.append_events(execution.pk, printed.events)
        audit.record(project, actor, "ImportExecution", execution.arn)

    write(store)
    return execution


def delete_import(project: Project, number: int, actor: audit.Actor = audit.NOBODY) -> bool:
    """Delete an imported execution; return whether there was one."""

    def delete() -> bool:
        found = Execution.imports.filter(project=project, pk=number)
        arn = found.values_list("arn", flat=True).first()
        if arn is None:
            return False
        found.delete()
        audit.record(project, actor, "DeleteImport", arn)
        return True

    return write(delete)


# -- reading ---------------------------------------------------------------------------------------


def _json(text: str, what: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise ValidationException(f"{what}: it is not JSON: {error}.") from None
    except RecursionError:
        raise ValidationException(f"{what}: it is nested too deeply.") from None
    if not isinstance(told, dict):
        raise ValidationException(f"{what}: got {type(told).__name__}, wanted an object.")
    return told


def _events(listed: list[Any]) -> list[engine.Event]:
    """Return the events in order, each with the state it belongs to, which AWS does not repeat."""
    if len(listed) > MOST_EVENTS:
        raise ValidationException(f"The history: it has more than {MOST_EVENTS:,} events.")
    rows = sorted((_event(one) for one in listed), key=lambda one: one.id)
    for place, one in enumerate(rows, 1):
        if one.id != place or not 0 <= one.previous < one.id:
            msg = f"The history: event {place} is missing. Print all pages, from the beginning."
            raise ValidationException(msg)
    owners = [""]
    for one in rows:
        owners.append(_owner(one, rows, owners))
    return [
        engine.Event(one.id, one.previous, one.at_ms, one.type, one.details, owners[one.id][:80])
        for one in rows
    ]


def _event(told: Any) -> engine.Event:
    try:
        kind = str(told["type"])
        member = engine.DETAILS[kind]
        number, previous = int(told["id"]), int(told.get("previousEventId") or 0)
        details = told.get(member) if member else None
        kept = {key: one for key, one in (details or {}).items() if key not in _NOTES}
        return engine.Event(number, previous, _moment(told["timestamp"]), kind, kept or None)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        shown = json.dumps(told, ensure_ascii=False)[:120]
        msg = f"The history: this is no event ({type(error).__name__}: {error}): {shown}"
        raise ValidationException(msg) from None


def _moment(told: Any) -> int:
    """Return epoch milliseconds: the CLI prints ISO 8601, or seconds with a fraction."""
    if isinstance(told, int | float):
        return round(told * 1000)
    moment = datetime.fromisoformat(told)
    if moment.tzinfo is None:
        raise ValueError("a timestamp without a zone")
    return round(moment.timestamp() * 1000)


def _owner(event: engine.Event, rows: list[engine.Event], owners: list[str]) -> str:
    """Return the state an event belongs to: its own, or that of the event it followed."""
    if engine.EVENT_TYPES[event.type].family is engine.Family.EXECUTION:
        return ""
    named = (event.details or {}).get("name") or (event.details or {}).get("state")
    if isinstance(named, str) and event.type in _NAMED_EVENTS:
        return named
    if event.type in _GROUP_EVENTS:
        return _group(event, rows, owners)
    at = event.previous
    while at and not owners[at]:  # a redrive goes on with what had failed
        at = rows[at - 1].previous
    return owners[at]


def _group(event: engine.Event, rows: list[engine.Event], owners: list[str]) -> str:
    """Return the Map or Parallel that ends or starts again here.

    The way back leads past the groups within it to its start.
    """
    family = engine.EVENT_TYPES[event.type].family
    depth, at = 0, event.previous
    while at:
        one = rows[at - 1]
        if one.type in event_types.GROUP_STARTED and engine.EVENT_TYPES[one.type].family is family:
            if not depth:
                return owners[at]
            depth -= 1
        elif one.type in _GROUP_ENDS and engine.EVENT_TYPES[one.type].family is family:
            depth += 1
        elif at == event.previous and one.type == _GROUP_ENTRIES[family]:
            return owners[at]
        at = one.previous
    return owners[event.previous]


def _machine_arn(printed: Printed) -> str:
    told = printed.description.get("stateMachineArn") or printed.machine.get("stateMachineArn")
    name = _name(printed.machine, "name", told, "machine")
    return f"arn:aws:states:::stateMachine:{name}" if not told else str(told)[:256]


def _name(told: dict[str, Any], key: str, arn: Any, otherwise: str) -> str:
    """Return a name that an address can hold."""
    name = told.get(key) or str(arn or "").rpartition(":")[2] or otherwise
    return storable(str(name))[:80].replace("/", "~")


def _text(told: Any) -> str | None:
    return None if told is None else storable(str(told))


def machine_address(execution: Execution) -> str:
    """Return what stands for the machine in the address of an imported execution."""
    machine = execution.state_machine_arn.rpartition(":")[2].replace("/", "~")
    return f"{machine}~import-{execution.pk}"
