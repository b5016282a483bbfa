"""Import a history from the AWS CLI's output, as rows that pages can show.

``Execution.objects`` leaves imported executions out, so the engine, the API, the lists and the
metrics never see them. They have no run, so no worker can step them.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import engine
from console.db import audit, clock
from console.db.rows import storable
from console.db.writer import write
from console.errors import ValidationException
from console.models import DebugEdit, Execution
from console.statuses import ExecutionStatus
from console.store.machines import machines
from console.store.state import step_rows
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project

MOST_EVENTS, MOST_EDITS = 25_000, 1_000
_EDIT_TEXTS = ("state", "change", "by", "before", "after")
_EDIT_MEMBERS = ("timestamp", "eventId", *_EDIT_TEXTS)
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
    """A parsed history. ``description``: of the execution, {} without one.

    ``edits``: what people changed at breakpoints, from an export of this server; without rows yet.
    """

    events: list[engine.Event]
    definition: str
    machine: dict[str, Any]
    description: dict[str, Any] = field(default_factory=dict)
    edits: Sequence[DebugEdit] = ()


def read_printed(events: str, machine: str, description: str = "") -> Printed:
    """Read the output of get-execution-history, describe-state-machine and describe-execution.

    A bare definition is accepted in place of describe-state-machine. Raise a ValidationException
    with the invalid text and its problem.
    """
    history = _json(events, "The history")
    printed_events = history.get("events")
    if not isinstance(printed_events, list) or not printed_events:
        raise ValidationException("The history: it has no “events”.")
    machine_json = _json(machine, "The state machine")
    if "definition" not in machine_json and "StartAt" not in machine_json:
        raise ValidationException("The state machine: it has neither “definition” nor “StartAt”.")
    text = machine_json.get("definition") if "definition" in machine_json else machine
    if not isinstance(text, str):
        raise ValidationException("The state machine: “definition” is not a text.")
    _json(text, "The definition")
    description_json = _json(description, "The execution") if description.strip() else {}
    return Printed(
        _events(printed_events),
        text,
        machine_json if "definition" in machine_json else {},
        description_json,
        _edits(history.get("edits", [])),
    )


def import_execution(
    project: Project, printed: Printed, actor: audit.Actor = audit.NOBODY
) -> Execution:
    """Store a parsed history as an execution; durable when this returns."""
    first, last = printed.events[0], printed.events[-1]
    description, last_details = printed.description, last.details or {}
    recorded_input = (first.details or {}).get("input")
    execution = Execution(
        project=project,
        imported_ms=clock.now_ms(),
        started_by=actor.name,
        arn=f"import:{secrets.token_hex(8)}:{description.get('executionArn', '')}"[:512],
        name=_name(description, "name", description.get("executionArn"), "imported"),
        state_machine_arn=_machine_arn(printed),
        status=_ENDS.get(last.type, ExecutionStatus.UNFINISHED),
        role_arn=str(printed.machine.get("roleArn", ""))[:256],
        machine_updated_ms=0,
        input=storable(str(description.get("input") or recorded_input or "{}")),
        output=_text(last_details.get("output") if last.type in _ENDS else None),
        error=_text(last_details.get("error") if last.type in _ENDS else None),
        cause=_text(last_details.get("cause") if last.type in _ENDS else None),
        start_ms=first.at_ms,
        stop_ms=last.at_ms,
        redrive_count=sum(event.type == "ExecutionRedriven" for event in printed.events),
    )

    def store() -> None:
        execution.definition = machines.keep_definition(printed.definition)
        execution.save(force_insert=True)
        step_rows.append_events(execution.pk, printed.events)
        for edit in printed.edits:
            edit.execution = execution
        DebugEdit.objects.bulk_create(printed.edits)
        audit.record(project, actor, "ImportExecution", execution.arn)

    write(store)
    return execution


def delete_import(project: Project, number: int, actor: audit.Actor = audit.NOBODY) -> bool:
    """Delete an imported execution; return whether there was one."""

    def delete() -> bool:
        imports = Execution.imports.filter(project=project, pk=number)
        arn = imports.values_list("arn", flat=True).first()
        if arn is None:
            return False
        imports.delete()
        audit.record(project, actor, "DeleteImport", arn)
        return True

    return write(delete)


# -- reading ---------------------------------------------------------------------------------------


def _json(text: str, label: str) -> dict[str, Any]:
    if not text.strip():
        raise ValidationException(f"{label}: it is missing. Choose its file, or paste its text.")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValidationException(f"{label}: it is not JSON: {error}.") from None
    except RecursionError:
        raise ValidationException(f"{label} is nested too deeply.") from None
    if not isinstance(value, dict):
        raise ValidationException(f"{label} is not a JSON object but {type(value).__name__}.")
    return value


def _edits(printed_edits: Any) -> list[DebugEdit]:
    """Return the changes at breakpoints that an export has; raise ValidationException."""
    if not isinstance(printed_edits, list) or len(printed_edits) > MOST_EDITS:
        raise ValidationException(f"The history: “edits” is no list of at most {MOST_EDITS:,}.")
    return [_edit(entry) for entry in printed_edits]


def _edit(entry: Any) -> DebugEdit:
    if not isinstance(entry, dict) or not {*_EDIT_TEXTS} <= {*entry} <= {*_EDIT_MEMBERS}:
        raise ValidationException(f"The history: an edit must have {', '.join(_EDIT_MEMBERS)}.")
    texts = {name: storable(str(entry[name])) for name in _EDIT_TEXTS}
    try:
        number, at_ms = int(entry["eventId"]), _moment(entry["timestamp"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValidationException(f"The history: this is no edit: {str(error)[:80]}") from None
    if not 0 <= number <= MOST_EVENTS:
        raise ValidationException(f"The history: an edit names event {str(number)[:20]}.")
    return DebugEdit(
        event_id=number,
        at_ms=at_ms,
        state=texts["state"][:80],
        what=texts["change"][:10],
        by=texts["by"][:150],
        before=texts["before"],
        after=texts["after"],
    )


def _events(printed_events: list[Any]) -> list[engine.Event]:
    """Return the events in order, each with its state, which AWS does not repeat."""
    if len(printed_events) > MOST_EVENTS:
        raise ValidationException(f"The history: it has more than {MOST_EVENTS:,} events.")
    events = sorted((_event(entry) for entry in printed_events), key=lambda event: event.id)
    for position, event in enumerate(events, 1):
        if event.id != position or not 0 <= event.previous < event.id:
            msg = f"The history: event {position} is missing. Print all pages, from the beginning."
            raise ValidationException(msg)
    owners = [""]
    for event in events:
        owners.append(_owner(event, events, owners))
    return [
        engine.Event(
            event.id, event.previous, event.at_ms, event.type, event.details, owners[event.id][:80]
        )
        for event in events
    ]


def _event(entry: Any) -> engine.Event:
    try:
        kind = str(entry["type"])
        member = engine.DETAILS[kind]
        number, previous = int(entry["id"]), int(entry.get("previousEventId") or 0)
        details = entry.get(member) if member else None
        fields = {key: value for key, value in (details or {}).items() if key not in _NOTES}
        return engine.Event(number, previous, _moment(entry["timestamp"]), kind, fields or None)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        shown = json.dumps(entry, ensure_ascii=False)[:120]
        msg = f"The history: this is no event ({type(error).__name__}: {error}): {shown}"
        raise ValidationException(msg) from None


def _moment(timestamp: Any) -> int:
    """Return epoch milliseconds of the CLI's timestamp: ISO 8601, or fractional seconds."""
    if isinstance(timestamp, int | float):
        at_ms = round(timestamp * 1000)
    else:
        moment = datetime.fromisoformat(timestamp)
        if moment.tzinfo is None:
            raise ValueError("a timestamp without a zone")
        at_ms = round(moment.timestamp() * 1000)
    if not clock.FIRST_MS <= at_ms <= clock.LAST_MS:
        raise ValueError("a timestamp outside of UTC's years 1 to 9999")
    return at_ms


def _owner(event: engine.Event, events: list[engine.Event], owners: list[str]) -> str:
    """Return the state of an event: its own, or that of the event before it."""
    if engine.EVENT_TYPES[event.type].family is engine.Family.EXECUTION:
        return ""
    named = (event.details or {}).get("name") or (event.details or {}).get("state")
    if isinstance(named, str) and event.type in _NAMED_EVENTS:
        return named
    if event.type in _GROUP_EVENTS:
        return _group(event, events, owners)
    number = event.previous
    while number and not owners[number]:  # a redrive continues with the failed state
        number = events[number - 1].previous
    return owners[number]


def _group(event: engine.Event, events: list[engine.Event], owners: list[str]) -> str:
    """Return the Map or Parallel state that an event ends or restarts.

    Go back event by event, past the groups within it, to its start.
    """
    family = engine.EVENT_TYPES[event.type].family
    depth, number = 0, event.previous
    while number:
        earlier = events[number - 1]
        same_family = engine.EVENT_TYPES[earlier.type].family is family
        if same_family and earlier.type in event_types.GROUP_STARTED:
            if not depth:
                return owners[number]
            depth -= 1
        elif same_family and earlier.type in _GROUP_ENDS:
            depth += 1
        elif number == event.previous and earlier.type == _GROUP_ENTRIES[family]:
            return owners[number]
        number = earlier.previous
    return owners[event.previous]


def _machine_arn(printed: Printed) -> str:
    arn = printed.description.get("stateMachineArn") or printed.machine.get("stateMachineArn")
    name = _name(printed.machine, "name", arn, "machine")
    return f"arn:aws:states:::stateMachine:{name}" if not arn else str(arn)[:256]


def _name(attributes: dict[str, Any], key: str, arn: Any, fallback: str) -> str:
    """Return a name that is valid in an address."""
    name = attributes.get(key) or str(arn or "").rpartition(":")[2] or fallback
    return storable(str(name))[:80].replace("/", "~")


def _text(value: Any) -> str | None:
    return None if value is None else storable(str(value))


def machine_address(execution: Execution) -> str:
    """Return the machine's name for the address of an imported execution."""
    machine = execution.state_machine_arn.rpartition(":")[2].replace("/", "~")
    return f"{machine}~import-{execution.pk}"
