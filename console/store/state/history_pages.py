"""Return a page of a history as JSON in AWS's shape, for GetExecutionHistory.

The JSON is joined from stored texts, without parsing them as ``history.aws_event`` does:

1. The database joins each column of the page to one text: a row costs more than its values.
2. The texts are split, and each payload gets a note that it is not truncated (``inputDetails``).
3. The values are inserted between the names of AWS's members.

Step 2 relies on how ``step_rows`` writes details: JSON without blanks. There ``,"input":`` begins a
member, and is never within a value, whose quotes are escaped. If a text holds more than one
object, the member may be of an inner one, and the details are split instead (``_noted_details``).

Whole events could be stored as the bytes of the answer. That would double what a small event takes
on the disk, because pages and searches need its columns.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from django.db import connection

import engine
from console.db.rows import fetch_row
from console.store.state import history_columns

_SEPARATOR = "\x1f"  # no JSON text has it: it is escaped there
_WHOLE = '{"truncated":false}'
_NOTES = {
    "input": "inputDetails",
    "output": "outputDetails",
    "assignedVariables": "assignedVariablesDetails",
}
_NOTED = {
    f'{before}"{name}":': f'{before}"{_NOTES[name]}":{_WHOLE},"{name}":'
    for before in (",", "{")  # in this order: what comes of "{" has a "," in it
    for name in ("input", "output")
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
# To stop after a number of rows takes SQLite longer than to stop at an event: 0.53 ms, not 0.35.
_FOLLOWING = (
    f"{_JOINED['sqlite']}, (SELECT max(event_id) FROM console_historyevent"
    " WHERE execution_id = %s) FROM console_historyevent"
    " WHERE execution_id = %s AND event_id BETWEEN %s AND %s"
)
_split_details = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class EventTexts(NamedTuple):
    """The columns of some events."""

    ids: list[str]
    previous: list[str]
    at_ms: list[str]
    types: list[str]
    details: list[str]


class HistoryPage(NamedTuple):
    """Events as a JSON array. ``last``: the id of the last one, if there are more."""

    events: bytes
    last: int | None


def read_page(execution_id: int, *, after: int, size: int, reverse: bool) -> HistoryPage:
    """Return up to ``size`` events after event ``after``.

    In reverse: before it, or from the end if it is 0.
    """
    texts = None if reverse else _read_following(execution_id, after, size + 1)
    texts = texts or _read_texts(execution_id, after, size + 1, reverse=reverse)
    events = f"[{','.join(event_texts(texts)[:size])}]".encode()
    return HistoryPage(events, int(texts.ids[size - 1]) if len(texts.ids) > size else None)


def _read_following(execution_id: int, after: int, limit: int) -> EventTexts | None:
    """Return up to ``limit`` events after one by the fast query, None if it cannot be used.

    SQLite joins in the order in which it reads: the order of the key, which is also the index. Ids
    have no gaps; if they had, the last id would show it.
    """
    if connection.vendor != "sqlite":
        return None
    parameters = [execution_id, execution_id, after + 1, after + limit]
    *joined, last = fetch_row(_FOLLOWING, parameters)
    texts = _split(*joined)
    count = min(limit, (last or 0) - after)
    is_complete = count > 0 and len(texts.ids) == count and texts.ids[-1] == str(after + count)
    return texts if is_complete else None


def _read_texts(execution_id: int, after: int, limit: int, *, reverse: bool) -> EventTexts:
    """Return the columns of up to ``limit`` events."""
    where = "> %s ORDER BY event_id LIMIT %s) AS page"
    if reverse:
        where = "< %s ORDER BY event_id DESC LIMIT %s) AS page"
        after = after or history_columns.LAST
    parameters = [execution_id, after, limit]
    return _split(*fetch_row(f"{_JOINED[connection.vendor]}{_FROM} {where}", parameters))


def _split(ids: str | None, previous: str, at_ms: str, types: str, details: str) -> EventTexts:
    if ids is None:
        return EventTexts([], [], [], [], [])
    return EventTexts(
        ids.split(","),
        previous.split(","),
        at_ms.split(","),
        types.split(","),
        details.split(_SEPARATOR),
    )


def event_texts(events: EventTexts) -> list[str]:
    """Return events as JSON texts."""
    if not events.ids:
        return []
    stamps = {at_ms: f'{{"timestamp":{int(at_ms) / 1000}' for at_ms in {*events.at_ms}}
    columns = zip(
        events.ids,
        events.previous,
        events.at_ms,
        events.types,
        _note_all_payloads(events.details),
        strict=True,
    )
    types, members = _TYPES, _MEMBERS
    return [
        f'{stamps[at_ms]}{types[kind]}{number},"previousEventId":{previous}'
        f"{(member := members[kind])}{(details or '{}') if member else ''}}}"
        for number, previous, at_ms, kind, details in columns
    ]


def _note_all_payloads(details: list[str]) -> list[str]:
    """Return all details as ``_note_payloads`` does; if none has inner objects, as one text."""
    joined = _SEPARATOR.join(details)
    begins = joined.startswith('{"') + joined.count(f'{_SEPARATOR}{{"')
    if joined.count('{"') > begins or 'Variables":' in joined:
        return [_note_payloads(text) for text in details]
    return _with_notes(joined).split(_SEPARATOR)


def _note_payloads(text: str) -> str:
    """Return details with a note before each payload that it is not truncated."""
    if text.count('{"') > 1 or 'Variables":' in text:
        return _noted_details(text)
    return _with_notes(text)


def _with_notes(text: str) -> str:
    for member, noted in _NOTED.items():
        text = text.replace(member, noted)
    return text


def _noted_details(text: str) -> str:
    """Return details with the notes of their payloads, in the general way."""
    noted: dict[str, msgspec.Raw] = {}
    for name, value in _split_details(text).items():
        if name in _NOTES:
            noted[_NOTES[name]] = msgspec.Raw(_WHOLE)
        noted[name] = value
    return _encode(noted).decode()
