"""How is a long history read at once?  By its gist: what happened when, in one row.

History only grows, so a gist stays true: what came after it is read from the events. Upkeep keeps
it, never a step; without one all is read from the events, which takes twice as long.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from itertools import accumulate, islice
from operator import sub
from typing import TYPE_CHECKING

from django.db import connection

from console.models import Gist
from console.store.db import rows, signals
from console.store.db.writer import write
from console.store.state import history_columns
from engine import EventBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONG = 2_000
"""From so many events on a history has a gist."""
STEP = 4_000
"""It is made anew after so many events, and at the end."""
_KEPT = "SELECT last, body FROM console_gist WHERE execution_id = %s"
_LAST = "SELECT last FROM console_gist WHERE execution_id = %s"
_BODY = "SELECT body FROM console_gist WHERE execution_id = %s"
_BOTH = {
    vendor: (
        f"SELECT ({_LAST}), ({_BODY}), {joined} FROM console_historyevent"
        f" WHERE execution_id = %s AND event_id > coalesce(({_LAST}), 0) AND event_id <= %s"
    )
    for vendor, joined in history_columns.JOINED.items()
}
_THERE = "SELECT 1 FROM console_execution WHERE id = %s"


def is_due(first: int, following: int, *, running: bool) -> bool:
    """Tell whether events from ``first`` on, before ``following``, are a reason for a gist."""
    return following > LONG and (not running or first // STEP != following // STEP)


def read(
    execution_id: int, after: int = 0, upto: int = history_columns.LAST
) -> Iterator[EventBatch]:
    """Yield the events after one of them, up to another, by one query."""
    if after:
        rest = history_columns.read(execution_id, after, upto)
    else:
        with connection.cursor() as cursor:
            cursor.execute(_BOTH[connection.vendor], [*[execution_id] * 4, upto])
            kept, body, *joined = cursor.fetchone()
        if kept:
            yield unpacked(bytes(body), min(kept, upto))
        after = kept or 0
        rest = history_columns.apart([execution_id, after, upto], joined)
    if rest is not None:
        if rest.last - after > STEP:
            signals.publish(("long",), execution_id)
        yield rest


def keep(execution_id: int) -> None:
    """Keep the gist of a history, unless it is short or little has come since."""
    before, body = _kept(execution_id) or (0, b"")
    rest = history_columns.read(execution_id, before)
    if rest is None or rest.last <= LONG or rest.last - before < LONG // 2:
        return
    packed_up = packed([unpacked(body, before), rest] if before else [rest])

    def store() -> None:
        with connection.cursor() as cursor:
            cursor.execute(rows.kept(_THERE), [execution_id])
            if cursor.fetchone() is None:  # it was removed
                return
        Gist.objects.update_or_create(
            execution_id=execution_id, defaults={"last": rest.last, "body": packed_up}
        )

    write(store)


def _kept(execution_id: int) -> tuple[int, bytes] | None:
    with connection.cursor() as cursor:
        cursor.execute(_KEPT, [execution_id])
        row = cursor.fetchone()
    return None if row is None else (int(row[0]), bytes(row[1]))


# -- the body: a line of JSON, then three columns of numbers, little-endian, compressed ------------

_COLUMNS = "IqH"  # how far back the event before is, milliseconds since then, place in the kinds


def packed(batches: Sequence[EventBatch]) -> bytes:
    """Return the events from the first on as bytes."""
    places: dict[tuple[str, str], int] = {}
    lengths: dict[int, int] = {}
    previous, at_ms, codes = array("q"), array("q"), array("H")
    for one in batches:
        previous.extend(one.previous)
        at_ms.extend(one.at_ms)
        codes.extend(places.setdefault(kind, len(places)) for kind in one.kinds)
        lengths |= one.lengths
    back = array("I", map(sub, range(1, len(previous) + 1), previous))
    since = array("q", [at_ms[0], *map(sub, islice(at_ms, 1, None), at_ms)])
    told = {"events": len(previous), "kinds": list(places), "lengths": list(lengths.items())}
    texts = [json.dumps(told).encode(), b"\n", *map(_bytes, (back, since, codes))]
    return zlib.compress(b"".join(texts), 6)


def unpacked(body: bytes, upto: int) -> EventBatch:
    """Return the events of a gist, up to one of them."""
    text = zlib.decompress(body)
    place = text.index(b"\n") + 1
    told = json.loads(text[:place])
    found = []
    for code in _COLUMNS:
        column = array(code)
        end = place + told["events"] * column.itemsize
        column.frombytes(text[place:end])
        found.append(_swapped(column))
        place = end
    back, since, codes = found
    kinds = [(kind, state) for kind, state in told["kinds"]]
    return EventBatch(
        upto,
        map(sub, range(1, upto + 1), back),
        islice(accumulate(since), upto),
        map(kinds.__getitem__, islice(codes, upto)),
        {number: length for number, length in told["lengths"] if number <= upto},
    )


def _bytes(column: array[int]) -> bytes:
    return _swapped(column[:]).tobytes()


def _swapped(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column
