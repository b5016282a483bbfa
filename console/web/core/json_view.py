"""Render a JSON payload as HTML: a tree of ``<details>`` that works without scripts.

Numbers keep their spelling, duplicate keys stay, long strings wrap, all text is escaped. Of large
payloads the beginning is shown as text, one member per line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from console.web.core.formatting import size_text, visible_text

if TYPE_CHECKING:
    from collections.abc import Sequence

TREE_LIMIT = 64 * 1024
"""Payloads above this many characters are shown cut, as text, with a link to all of it."""
OPEN_LEVELS, DEEPEST = 2, 40
MOST_CHILDREN = 200
"""The number of children shown of an array or object; copying takes all of it."""
SMALL = 60  # an object or array whose text is at most this long stays on one line


@dataclass(frozen=True, slots=True)
class PayloadView:
    """A payload for the template. ``url``: the address of its full text, or ""."""

    text: str
    html: SafeString
    size: str
    cut: bool = False
    url: str = ""


class _Number(str):
    """A number with its spelling."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """An object's members in order, including duplicates."""


def payload_view(text: str, url: str = "") -> PayloadView:
    """Return a payload for display. ``text``: JSON; other text is shown unchanged."""
    count = size_text(len(text.encode("utf-8", "surrogatepass")))
    if len(text) > TREE_LIMIT:
        beginning = escape(visible_text(_laid_out(text)))
        return PayloadView("", mark_safe(f"<pre>{beginning}…</pre>"), count, cut=True, url=url)  # noqa: S308 - escaped
    return PayloadView(text, _whole_html(text), count, url=url)


@lru_cache(maxsize=16)
def _whole_html(text: str) -> SafeString:
    """Return the HTML of a payload, cached because pages and polls repeat payloads."""
    try:
        return mark_safe(_tree_html(_parse(text), 0, ""))  # noqa: S308 - escaped below
    except (ValueError, RecursionError):
        return mark_safe(f"<pre>{escape(visible_text(text))}</pre>")  # noqa: S308 - escaped


_PIECE = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def _laid_out(text: str) -> str:
    """Return the first ``TREE_LIMIT`` characters of a long text; of JSON one member per line.

    Nothing but white space between values is changed, so the beginning need not be whole.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text[:TREE_LIMIT]
    pieces = _PIECE.findall(text[:TREE_LIMIT])
    parts: list[str] = []
    depth = place = 0
    while place < len(pieces):
        piece = pieces[place]
        if piece in _CLOSING and (line := _on_one_line(pieces, place)):
            parts += line
            place += len(line)
            continue
        depth += (piece in _CLOSING) - (piece in _CLOSING.values())
        broken = "\n" + "  " * min(depth, DEEPEST)
        if piece in _CLOSING or piece == ",":
            parts += piece, broken
        elif piece in _CLOSING.values():
            parts += broken, piece
        else:
            parts.append(": " if piece == ":" else piece)
        place += 1
    return "".join(parts)


def _on_one_line(pieces: Sequence[str], place: int) -> list[str]:
    """Return the spaced pieces of a short flat object or array; else none."""
    line, length = [pieces[place]], 1
    for piece in islice(pieces, place + 1, place + SMALL):
        length += len(piece)
        if length > SMALL or piece in _CLOSING:
            return []
        line.append(f"{piece} " if piece in {",", ":"} else piece)
        if piece in _CLOSING.values():
            return line
    return []


def is_equal_but_for_spaces(text: str, other: str) -> bool:
    """Whether two JSON texts differ only in whitespace between tokens.

    Numbers count as they are written, members in their order, and repeated keys. Raise
    ``ValueError`` if the texts differ and one of them is no JSON.
    """
    return text == other or _parts_of(text) == _parts_of(other)


def _parts_of(text: str) -> Any:
    """Parse JSON: objects as tuples of members, arrays as lists, numbers as texts."""
    number = "\0{}".format  # no text of a payload begins so by accident
    return json.loads(
        text,
        object_pairs_hook=tuple,
        parse_int=number,
        parse_float=number,
        parse_constant=number,
    )


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number)


def _tree_html(value: Any, level: int, label: str) -> str:
    """Return the HTML of a value. ``label``: HTML of its key with colon, or ""."""
    if isinstance(value, list) and value:
        flat = _short_text(value)
        if len(flat) > SMALL and level < DEEPEST:
            return _branch_html(value, level, label)
        return f'<div class="leaf">{label}{_coloured_html(value)}</div>'
    inner = _json_in_text(value) if level < DEEPEST else None
    if inner:
        return _branch_html(inner, level, label, quote='"')
    return f'<div class="leaf">{label}{_coloured_html(value)}</div>'


def _json_in_text(value: Any) -> list[Any] | None:
    """Return the object or array inside a long string of JSON, as in causes and bodies."""
    if not isinstance(value, str) or len(value) <= SMALL or value[0] not in "{[":
        return None
    try:
        inner = _parse(value)
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, list) else None


def _branch_html(value: list[Any], level: int, label: str, quote: str = "") -> str:
    """Return an object or array. ``quote``: quotation marks around JSON inside a string."""
    signs = "{}" if isinstance(value, _Members) else "[]"
    noun = ("key", "keys") if isinstance(value, _Members) else ("item", "items")
    count = f"{len(value)} {noun[len(value) != 1]}{', JSON in a string' if quote else ''}"
    children = value[:MOST_CHILDREN]
    parts = (
        [_tree_html(inner, level + 1, _key_html(key)) for key, inner in children]
        if isinstance(value, _Members)
        else [_tree_html(inner, level + 1, "") for inner in children]
    )
    if len(value) > len(children):
        rest = f"… {len(value) - len(children):,} more {noun[1]}: the raw text and a copy have them"
        parts.append(f'<div class="leaf"><i>{rest}</i></div>')
    state = " open" if level < OPEN_LEVELS else ""
    return (
        f"<details{state}><summary>{label}<b>{quote}{signs[0]}</b><i>{count}</i></summary>"
        f'<div class="inner">{"".join(parts)}</div><b>{signs[1]}{quote}</b></details>'
    )


def _key_html(key: str) -> str:
    return f'<span class="k">{_quoted_html(key)}</span>: '


def _quoted_html(text: str) -> str:
    return f"<bdi>{escape(json.dumps(text, ensure_ascii=False))}</bdi>"


def _coloured_html(value: Any) -> str:
    """Return a value on one line, coloured by type."""
    if isinstance(value, _Members):
        inner = ", ".join(f"{_key_html(key)}{_coloured_html(item)}" for key, item in value)
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(_coloured_html(item) for item in value)}]"
    if isinstance(value, _Number):
        return f'<span class="n">{escape(value)}</span>'
    if isinstance(value, str):
        return f'<span class="s">{_quoted_html(value)}</span>'
    return f'<span class="c">{json.dumps(value)}</span>'


def _short_text(value: Any) -> str:
    """Return the approximate text of a value; stop once it is surely long."""
    if isinstance(value, _Members):
        return "".join(f"{key}: {_short_text(item)}, " for key, item in value[:SMALL])
    if isinstance(value, list):
        return "".join(f"{_short_text(item)}, " for item in value[:SMALL])
    return str(value)[: SMALL + 1]
