"""Parse executions printed by AWS CLI commands, and exports of this server."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

import engine
from console.errors import ValidationException

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_EVENTS, MOST_EDITS = 25_000, 1_000
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999 in UTC
_EDIT_TEXTS = ("state", "change", "by", "before", "after")
_EDIT_MEMBERS = ("timestamp", "eventId", *_EDIT_TEXTS)
_FAULT = "fault"
_MOST_STARTS, _LONGEST_WORDS = 100, 200
_NO_PLACE = (
    "The history: “nextStarts”: wanted an object with by, since, starts and number, and at most"
    f" {engine.MOST_BREAKPOINTS} breakpoints"
)
_NOTES = ("inputDetails", "outputDetails", "assignedVariablesDetails")
_TEXTS = ("name", "input", "output", "error", "cause", "parameters")
"""Detail fields that pages read as text."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A parsed history. ``description``: the execution's description, {} without one.

    From an export of this server, ``edits``: changes at breakpoints and faults that struck, with
    the fields of ``DebugEdit``; ``faults``: the injected faults as JSON text, "" for none;
    ``next_starts``: the place among its machine's next starts, as ``Execution`` has it, or "".
    """

    events: list[engine.Event]
    definition: str
    machine: dict[str, Any]
    description: dict[str, Any] = field(default_factory=dict)
    edits: Sequence[Mapping[str, Any]] = ()
    faults: str = ""
    next_starts: str = ""


def read_printed(events: str, machine: str, description: str = "") -> Printed:
    """Parse the output of get-execution-history, describe-state-machine and describe-execution.

    A bare definition is accepted in place of describe-state-machine. Raise a ValidationException
    that names the invalid text.
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
    exported = history.get("execution")
    whole = {**description_json, **exported} if isinstance(exported, dict) else description_json
    return Printed(
        read_events(printed_events),
        text,
        machine_json if "definition" in machine_json else {},
        description_json,
        _edits(history.get("edits", [])),
        _faults(whole.get("faults")),
        _place(whole.get("nextStarts")),
    )


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


def _faults(document: Any) -> str:
    """Return the injected faults in an export, "" for none; raise ValidationException."""
    if document is None:
        return ""
    try:
        return engine.faults_text(engine.read_recorded_faults(document))
    except engine.FaultError as error:
        raise ValidationException(f"The history: “faults”: {error}") from None


def _place(place: Any) -> str:
    """Return the place among the next starts in an export, "" for none; raise an error."""
    if place is None:
        return ""
    words = place.get("breakpoints", []) if isinstance(place, dict) else None
    if not isinstance(words, list) or len(words) > engine.MOST_BREAKPOINTS:
        raise ValidationException(_NO_PLACE)
    try:
        by, since_ms = str(place["by"])[:150], _moment(place["since"])
        starts, number = int(place["starts"]), int(place["number"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValidationException(_NO_PLACE) from None
    if not 1 <= number <= starts <= _MOST_STARTS:
        problem = f"got start {str(number)[:20]} of {str(starts)[:20]}, wanted 1 to {_MOST_STARTS}"
        raise ValidationException(f"The history: “nextStarts”: {problem}")
    members = {"set_by": by, "set_ms": since_ms, "starts": starts, "number": number}
    breakpoints = [str(each)[:_LONGEST_WORDS] for each in words]
    return json.dumps({**members, "breakpoints": breakpoints}, ensure_ascii=False)


def _edits(printed_edits: Any) -> list[dict[str, Any]]:
    """Return the changes at breakpoints in an export; raise ValidationException."""
    if not isinstance(printed_edits, list) or len(printed_edits) > MOST_EDITS:
        raise ValidationException(f"The history: “edits” is no list of at most {MOST_EDITS:,}.")
    return [_edit(entry) for entry in printed_edits]


def _edit(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict) or not {*_EDIT_TEXTS} <= {*entry} <= {*_EDIT_MEMBERS}:
        raise ValidationException(f"The history: an edit must have {', '.join(_EDIT_MEMBERS)}.")
    texts = {name: str(entry[name]) for name in _EDIT_TEXTS}
    try:
        number, at_ms = int(entry["eventId"]), _moment(entry["timestamp"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValidationException(f"The history: this is no edit: {str(error)[:80]}") from None
    if not 0 <= number <= MOST_EVENTS:
        raise ValidationException(f"The history: an edit names event {str(number)[:20]}.")
    if texts["change"] == _FAULT:
        try:
            engine.describe_strike(texts["state"], texts["after"])
        except engine.FaultError as error:
            raise ValidationException(f"The history: “edits”: {error}") from None
    return {
        "event_id": number,
        "at_ms": at_ms,
        "state": texts["state"][:80],
        "what": texts["change"][:10],
        "by": texts["by"][:150],
        "before": texts["before"],
        "after": texts["after"],
    }


def read_events(printed_events: Sequence[Any]) -> list[engine.Event]:
    """Return the events in order, each with its state, which AWS names only in some.

    They are from boto3 or the AWS CLI. Raise a ValidationException if one is missing.
    """
    if len(printed_events) > MOST_EVENTS:
        raise ValidationException(f"The history: it has more than {MOST_EVENTS:,} events.")
    events = sorted((_event(entry) for entry in printed_events), key=lambda event: event.id)
    for position, event in enumerate(events, 1):
        if event.id != position or not 0 <= event.previous < event.id:
            msg = f"The history: event {position} is missing. Print all pages, from the beginning."
            raise ValidationException(msg)
    states = engine.name_states(events)
    return [replace(event, state=state) for event, state in zip(events, states, strict=True)]


def _event(entry: Any) -> engine.Event:
    try:
        kind = str(entry["type"])
        member = engine.DETAILS[kind]
        number, previous = int(entry["id"]), int(entry.get("previousEventId") or 0)
        fields = _details(entry.get(member) if member else None)
        return engine.Event(number, previous, _moment(entry["timestamp"]), kind, fields or None)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        entry_text = json.dumps(entry)[:120]  # escaped: no page can show half a character
        msg = f"The history: this is no event ({type(error).__name__}: {error}): {entry_text}"
        raise ValidationException(msg) from None


def _details(details: Any) -> dict[str, Any]:
    """Return an event's details without the CLI's additions; raise ``TypeError``."""
    fields = {key: value for key, value in (details or {}).items() if key not in _NOTES}
    for name in _TEXTS:
        if not isinstance(fields.get(name), str | None):
            raise TypeError(f"{name}: got {type(fields[name]).__name__}, wanted a text")
    return fields


def _moment(timestamp: Any) -> int:
    """Parse the CLI's timestamp to epoch milliseconds: ISO 8601, or fractional seconds."""
    if isinstance(timestamp, int | float):
        at_ms = round(timestamp * 1000)
    else:
        moment = timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(timestamp)
        if moment.tzinfo is None:
            raise ValueError("a timestamp without a zone")
        at_ms = round(moment.timestamp() * 1000)
    if not _FIRST_MS <= at_ms <= _LAST_MS:
        raise ValueError("a timestamp outside of UTC's years 1 to 9999")
    return at_ms
