"""How does a JSON payload look on a page?

As a tree of ``<details>`` that opens and closes without a script. Numbers keep their text,
duplicate keys stay, long strings wrap; everything goes in escaped. Of big payloads the beginning is
shown as text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from console.web.core.formatting import size, visible

TREE_LIMIT = 64 * 1024
"""Payloads above this many characters are shown cut, as text, with a link to all of it."""
OPEN_LEVELS, DEEPEST = 2, 40
MOST_CHILDREN = 200
"""Of longer arrays and objects the beginning is shown; copying takes all of it."""
SMALL = 60  # an object or array whose text is at most this long stays on one line


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload for the template. ``url``: where the whole of it can be had, or ""."""

    text: str
    html: SafeString
    size: str
    cut: bool = False
    url: str = ""


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """An object's members in their order, duplicates included."""


def payload(text: str, url: str = "") -> Payload:
    """Return a payload for display. ``text``: JSON, or anything else, which is shown as it is."""
    count = size(len(text.encode("utf-8", "surrogatepass")))
    if len(text) > TREE_LIMIT:
        beginning = escape(visible(text[:TREE_LIMIT]))
        return Payload("", mark_safe(f"<pre>{beginning}…</pre>"), count, cut=True, url=url)  # noqa: S308 - escaped
    try:
        html = _tree(_parse(text), 0, "")
    except (ValueError, RecursionError):
        return Payload(text, mark_safe(f"<pre>{escape(visible(text))}</pre>"), count, url=url)  # noqa: S308
    return Payload(text, mark_safe(html), count, url=url)  # noqa: S308 - escaped below


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number)


def _tree(value: Any, level: int, label: str) -> str:
    """Return the HTML of a value. ``label``: HTML of its key, with colon, or ""."""
    if isinstance(value, list) and value:
        flat = _flat(value)
        if len(flat) > SMALL and level < DEEPEST:
            return _branch(value, level, label)
        return f'<div class="leaf">{label}{_colour(value)}</div>'
    return f'<div class="leaf">{label}{_colour(value)}</div>'


def _branch(value: list[Any], level: int, label: str) -> str:
    signs = "{}" if isinstance(value, _Object) else "[]"
    noun = ("key", "keys") if isinstance(value, _Object) else ("item", "items")
    count = f"{len(value)} {noun[len(value) != 1]}"
    shown = value[:MOST_CHILDREN]
    parts = (
        [_tree(inner, level + 1, _key(key)) for key, inner in shown]
        if isinstance(value, _Object)
        else [_tree(inner, level + 1, "") for inner in shown]
    )
    if len(value) > len(shown):
        rest = f"… {len(value) - len(shown):,} more {noun[1]}: the raw text and a copy have them"
        parts.append(f'<div class="leaf"><i>{rest}</i></div>')
    state = " open" if level < OPEN_LEVELS else ""
    return (
        f"<details{state}><summary>{label}<b>{signs[0]}</b><i>{count}</i></summary>"
        f'<div class="inner">{"".join(parts)}</div><b>{signs[1]}</b></details>'
    )


def _key(key: str) -> str:
    return f'<span class="k">{_quoted(key)}</span>: '


def _quoted(text: str) -> str:
    return f"<bdi>{escape(json.dumps(text, ensure_ascii=False))}</bdi>"


def _colour(value: Any) -> str:
    """Return a value on one line, its kinds told apart."""
    if isinstance(value, _Object):
        inner = ", ".join(f"{_key(key)}{_colour(one)}" for key, one in value)
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(_colour(one) for one in value)}]"
    if isinstance(value, _Number):
        return f'<span class="n">{escape(value)}</span>'
    if isinstance(value, str):
        return f'<span class="s">{_quoted(value)}</span>'
    return f'<span class="c">{json.dumps(value)}</span>'


def _flat(value: Any) -> str:
    """Return about the text of a value, stopping when it is surely long."""
    if isinstance(value, _Object):
        return "".join(f"{key}: {_flat(one)}, " for key, one in value[:SMALL])
    if isinstance(value, list):
        return "".join(f"{_flat(one)}, " for one in value[:SMALL])
    return str(value)[: SMALL + 1]
