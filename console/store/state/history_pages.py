"""Return a page of a history as JSON in AWS's shape, joined from texts.

``history.aws_event`` makes values of an event. An answer in JSON needs none:

1. The database joins each column of the page to one text: a row costs more than its values.
2. The texts are split, and put between the names of AWS's members.
3. Beside each payload stands a note that it is whole (``inputDetails``). Whether an event has one
   is seen in the text of its details.

Step 3 relies on how ``step_rows`` writes details: JSON without blanks. There ``,"input":`` begins a
member, and is never within a value, whose quotes are escaped. If the text holds more than one
object, the member may be of an inner one, and the details are split instead (``_noted_details``).

Whole events could be stored as the bytes of the answer. That would double what a small event takes
on the disk, because pages and searches need its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from django.db import connection

import engine
from console.fast_path.rows import fetch_row
from console.store.state import history_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

_SEPARATOR = "\x1f"  # no JSON text has it: it is escaped there
_WHOLE = '{"truncated":false}'
_INPUT, _OUTPUT = f',"inputDetails":{_WHOLE}', f',"outputDetails":{_WHOLE}'
_NOTES = {
    "input": "inputDetails",
    "output": "outputDetails",
    "assignedVariables": "assignedVariablesDetails",
}
_TYPES = {name: f',"type":"{name}","id":' for name in engine.DETAILS}
_MEMBERS = {name: f',"{member}":' if member else "" for name, member in engine.DETAILS.items()}
_FROM = (
    " FROM (SELECT event_id, previous, at_ms, type, details FROM console_historyevent"
    " WHERE execution_id = %s AND event_id"
)
# Both databases join in the order in which the rows come: that of the inner SELECT.
_JOINED = {
    "sqlite": (
        "SELECT group_concat(event_id), group_concat(previous), group_concat(at_ms),"
        " group_concat(type), group_concat(details, char(31))"
    ),
    "postgresql": (
        "SELECT string_agg(event_id::text, ','), string_agg(previous::text, ','),"
        " string_agg(at_ms::text, ','), string_agg(type, ','), string_agg(details, chr(31))"
    ),
}
_split_details = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
EventText = tuple[str, str, str, str, str]
"""Event id, previous event id, epoch milliseconds, type, details."""


class HistoryPage(NamedTuple):
    """Events as the text of a JSON array. ``last``: the id of the last one, if there are more."""

    events: bytes
    last: int | None


def read_page(execution_id: int, *, after: int, size: int, reverse: bool) -> HistoryPage:
    """Return up to ``size`` events after event ``after``.

    In reverse: before it, or from the end if it is 0.
    """
    texts = _read_texts(execution_id, after, size + 1, reverse=reverse)
    page = texts[:size]
    events = f"[{','.join(event_texts(page))}]".encode()
    return HistoryPage(events, int(page[-1][0]) if len(texts) > size else None)


def _read_texts(execution_id: int, after: int, limit: int, *, reverse: bool) -> list[EventText]:
    """Return the columns of up to so many events."""
    where = "> %s ORDER BY event_id LIMIT %s) AS page"
    if reverse:
        where = "< %s ORDER BY event_id DESC LIMIT %s) AS page"
        after = after or history_columns.LAST
    parameters = [execution_id, after, limit]
    joined = fetch_row(f"{_JOINED[connection.vendor]}{_FROM} {where}", parameters)
    if joined[0] is None:
        return []
    columns = [text.split(",") for text in joined[:4]]
    return [*zip(*columns, joined[4].split(_SEPARATOR), strict=True)]


def event_texts(texts: Iterable[EventText]) -> list[str]:
    """Return events as JSON texts. One loop without calls: it runs a thousand times a page."""
    joined: list[str] = []
    add, types, members = joined.append, _TYPES, _MEMBERS
    stamped = stamp = ""
    for number, previous, at_ms, kind, details in texts:
        if at_ms != stamped:  # those of one step have the same time
            stamped, stamp = at_ms, f'{{"timestamp":{int(at_ms) / 1000}'
        member = members[kind]
        if not member:
            ending = ""
        elif details.count('{"') != 1 or 'Variables":' in details:
            ending = _noted_details(details)
        elif ',"input":' in details and '"output":' not in details:
            ending = f"{details[:-1]}{_INPUT}}}"
        elif ',"output":' in details and '"input":' not in details:
            ending = f"{details[:-1]}{_OUTPUT}}}"
        elif 'put":' in details:
            ending = _noted_details(details)
        else:
            ending = details
        add(f'{stamp}{types[kind]}{number},"previousEventId":{previous}{member}{ending}}}')
    return joined


def _noted_details(text: str) -> str:
    """Return details with the notes of their payloads, whatever they hold."""
    details = _split_details(text) if text else {}
    for name, note in _NOTES.items():
        if name in details:
            details[note] = msgspec.Raw(_WHOLE)
    return _encode(details).decode()
